//! Lists that are no XML: plain text with one URL a line, and JSON Feed.

use std::fmt;
use std::io::{BufRead, Read as _};

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{AddressList, Config, ListCut, ListKind, URL_BYTES_MAX, push};

/// Reads plain text, if any line is an address: a robots.txt is no sitemap.
pub(super) fn text(mut reader: impl BufRead, config: &Config) -> Option<AddressList> {
    let mut list = AddressList { kind: ListKind::Text, ..AddressList::default() };
    let mut line = Vec::new();
    loop {
        line.clear();
        let most = URL_BYTES_MAX as u64 + 2;
        if (&mut reader).take(most).read_until(b'\n', &mut line).ok()? == 0 {
            return Some(list).filter(|list| !list.entries.is_empty());
        }
        if !line.ends_with(b"\n") && line.len() as u64 == most {
            reader.skip_until(b'\n').ok()?;
        }
        let address = line.trim_ascii();
        if address.is_empty() {
            continue;
        }
        if !is_address(address) {
            list.bad += 1;
            continue;
        }
        if let Err(cut) = push(&mut list, &String::from_utf8_lossy(address), config) {
            list.cut = Some(cut);
            return Some(list);
        }
    }
}

fn is_address(line: &[u8]) -> bool {
    let starts = |scheme: &[u8]| {
        line.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    starts(b"http://") || starts(b"https://")
}

/// Reads a JSON Feed. One that breaks off gives the items before that.
pub(super) fn json(reader: impl BufRead, config: &Config) -> Option<AddressList> {
    let mut list = AddressList { kind: ListKind::Json, ..AddressList::default() };
    let mut feed = FeedVisitor { list: &mut list, config, named: false };
    let mut reader = serde_json::Deserializer::from_reader(reader);
    let read = reader.deserialize_map(&mut feed);
    if !feed.named {
        return None;
    }
    if read.is_err() {
        list.cut = list.cut.or(Some(ListCut::Syntax));
    }
    Some(list)
}

/// A feed while it is read: its items go to the list as they come.
struct FeedVisitor<'a> {
    list: &'a mut AddressList,
    config: &'a Config,
    /// Its version is that of a JSON Feed.
    named: bool,
}

impl<'de> Visitor<'de> for &mut FeedVisitor<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON Feed")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "version" => {
                    let version = map.next_value::<Value>()?;
                    let version = version.as_str().unwrap_or_default();
                    self.named = version.contains("jsonfeed.org/version/");
                }
                "items" => map.next_value_seed(Items { list: self.list, config: self.config })?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The items of a feed. What is no item, or has no URL, counts as an entry without one.
struct Items<'a> {
    list: &'a mut AddressList,
    config: &'a Config,
}

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, items: D) -> Result<(), D::Error> {
        items.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the items of a JSON Feed")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<Value>()? {
            let url = item.get("url").and_then(Value::as_str).unwrap_or_default();
            if let Err(cut) = push(self.list, url, self.config) {
                self.list.cut = Some(cut);
                return Err(serde::de::Error::custom(cut.as_str()));
            }
        }
        Ok(())
    }
}
