//! Lists that are no XML: plain text with one address a line, and JSON Feed.

use std::io::{BufRead, Read as _};

use serde::Deserialize;

use super::{Config, Cut, Kind, List, URL_BYTES_MAX, push};

/// Reads plain text, if its first line is an address: a robots.txt is no sitemap.
pub(super) fn text(mut reader: impl BufRead, config: &Config) -> Option<List> {
    let mut list = List { kind: Kind::Text, entries: Vec::new(), bad: 0, cut: None };
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
            if list.entries.is_empty() {
                return None;
            }
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

#[derive(Deserialize)]
struct Feed {
    version: String,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    url: Option<String>,
}

/// Reads a JSON Feed. One that breaks off gives nothing.
pub(super) fn json(reader: impl BufRead, config: &Config) -> Option<List> {
    let feed: Feed = serde_json::from_reader(reader).ok()?;
    if !feed.version.contains("jsonfeed.org/version/") {
        return None;
    }
    let mut list = List { kind: Kind::Json, entries: Vec::new(), bad: 0, cut: None };
    for item in feed.items {
        let url = item.url.unwrap_or_default();
        if push(&mut list, &url, config).is_err() {
            list.cut = Some(Cut::Entries);
            break;
        }
    }
    Some(list)
}
