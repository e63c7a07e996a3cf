//! Lists in XML: sitemaps, RSS, Atom. Names count without their prefix, end tags may be wrong.

use std::collections::HashSet;
use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};
use xxhash_rust::xxh3::xxh3_64;

use super::{Config, Cut, Kind, List, URL_BYTES_MAX, push};

/// Deepest element.
const DEPTH_MAX: usize = 64;

/// Elements that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    /// A root, and what it makes of the list.
    Root(Kind),
    /// `url`, `sitemap`, `item`, `entry`.
    Entry,
    /// `loc`.
    Loc,
    /// `link`.
    Link,
    /// `guid`, if it is an address.
    Guid,
    Other,
}

impl Element {
    fn of(tag: &BytesStart<'_>) -> Self {
        match tag.local_name().as_ref() {
            "sitemapindex" => Self::Root(Kind::Index),
            "urlset" => Self::Root(Kind::Set),
            "rss" | "RDF" => Self::Root(Kind::Rss),
            "feed" => Self::Root(Kind::Atom),
            "url" | "sitemap" | "item" | "entry" => Self::Entry,
            "loc" => Self::Loc,
            "link" => Self::Link,
            "guid" if attribute(tag, "isPermaLink").is_none_or(|value| value != "false") => {
                Self::Guid
            }
            _ => Self::Other,
        }
    }
}

/// The list so far.
struct Reading<'a> {
    config: &'a Config,
    list: List,
    open: Vec<Element>,
    /// Text of the element at this depth is kept.
    keep: usize,
    text: String,
    /// The entry that is open has an address.
    has_link: bool,
    guid: String,
    /// Translations that a sitemap names beside its entries; most stand there as entries too.
    alternates: Vec<String>,
    seen: HashSet<u64>,
}

/// Reads a list; none if the root is of none.
pub(super) fn read(reader: impl BufRead, config: &Config) -> Option<List> {
    let mut reader = Reader::from_reader(reader);
    let rules = reader.config_mut();
    rules.check_end_names = false;
    rules.allow_unmatched_ends = true;
    // Addresses with a bare `&` are the usual fault of sitemaps.
    rules.allow_dangling_amp = true;
    let mut buffer = Vec::new();
    let mut reading: Option<Reading<'_>> = None;
    let cut = loop {
        buffer.clear();
        let Ok(event) = reader.read_event_into(&mut buffer) else { break Some(Cut::Syntax) };
        match (&mut reading, event) {
            (_, Event::Eof) => break Some(Cut::Syntax),
            (None, Event::Start(tag) | Event::Empty(tag)) => {
                let Element::Root(kind) = Element::of(&tag) else { return None };
                reading = Some(Reading::new(kind, config));
            }
            // A text before the root: no XML.
            (None, Event::Text(text)) if !text.trim().is_empty() => return None,
            (None, _) => {}
            (Some(reading), event) => match reading.take(event) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(cut) => break Some(cut),
            },
        }
    };
    reading.map(|reading| reading.finish(cut))
}

impl<'a> Reading<'a> {
    fn new(kind: Kind, config: &'a Config) -> Self {
        Self {
            config,
            list: List { kind, entries: Vec::new(), bad: 0, cut: None },
            open: vec![Element::Root(kind)],
            keep: usize::MAX,
            text: String::new(),
            has_link: false,
            guid: String::new(),
            alternates: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Takes the next event. Returns whether the list goes on.
    fn take(&mut self, event: Event<'_>) -> Result<bool, Cut> {
        match event {
            Event::Start(tag) => {
                if self.open.len() >= DEPTH_MAX {
                    return Err(Cut::Nested);
                }
                self.start(&tag)?;
            }
            Event::Empty(tag) => {
                self.start(&tag)?;
                return self.end();
            }
            Event::End(_) => return self.end(),
            Event::Text(text) => self.keep(&text),
            Event::CData(text) => self.keep(&text),
            Event::GeneralRef(name) => match name.resolve_char_ref() {
                Ok(Some(c)) => self.keep(c.encode_utf8(&mut [0; 4])),
                _ => match resolve_xml_entity(&name) {
                    Some(text) => self.keep(text),
                    // What looks like an entity is mostly a parameter after a bare `&`.
                    None => self.keep(&format!("&{};", &*name)),
                },
            },
            _ => {}
        }
        Ok(true)
    }

    fn start(&mut self, tag: &BytesStart<'_>) -> Result<(), Cut> {
        let parent = self.open.last().copied().unwrap_or(Element::Other);
        let element = Element::of(tag);
        self.open.push(element);
        let kind = self.list.kind;
        match (element, parent) {
            (Element::Entry, _) => {
                (self.has_link, self.guid) = (false, String::new());
                if let Some(about) = attribute(tag, "about").filter(|_| kind == Kind::Rss) {
                    self.guid = about;
                }
            }
            (Element::Loc, Element::Entry) if !kind.is_feed() => self.keep_from_here(),
            (Element::Link | Element::Guid, Element::Entry) if kind == Kind::Rss => {
                match attribute(tag, "href") {
                    Some(href) if element == Element::Link => self.link(tag, &href)?,
                    _ => self.keep_from_here(),
                }
            }
            (Element::Link, Element::Entry) => {
                if let Some(href) = attribute(tag, "href") {
                    self.link(tag, &href)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Result<bool, Cut> {
        let depth = self.open.len();
        let element = self.open.pop().unwrap_or(Element::Other);
        if depth == self.keep {
            self.keep = usize::MAX;
            let text = std::mem::take(&mut self.text);
            let is_address = text.trim_start().starts_with("http");
            if element == Element::Guid {
                self.guid = if is_address { text } else { String::new() };
            } else if element != Element::Link || !text.trim().is_empty() {
                self.has_link = true;
                push(&mut self.list, &text, self.config)?;
            }
        }
        if element == Element::Entry && !self.has_link {
            let guid = std::mem::take(&mut self.guid);
            push(&mut self.list, &guid, self.config)?;
        }
        Ok(!self.open.is_empty())
    }

    /// A link that is an attribute: the address of an Atom entry, or a translation in a sitemap.
    fn link(&mut self, tag: &BytesStart<'_>, href: &str) -> Result<(), Cut> {
        let alternate = attribute(tag, "rel").is_none_or(|rel| rel == "alternate");
        if !alternate {
            return Ok(());
        }
        if self.list.kind.is_feed() {
            self.has_link = true;
            return push(&mut self.list, href, self.config);
        }
        let room = self.alternates.len() < self.config.entries_max;
        if room && href.len() <= URL_BYTES_MAX && self.seen.insert(xxh3_64(href.as_bytes())) {
            self.alternates.push(href.to_owned());
        }
        Ok(())
    }

    fn keep_from_here(&mut self) {
        self.keep = self.open.len();
        self.text.clear();
    }

    fn keep(&mut self, text: &str) {
        if self.open.len() == self.keep && self.text.len() <= URL_BYTES_MAX {
            self.text.push_str(text);
        }
    }

    fn finish(mut self, cut: Option<Cut>) -> List {
        self.list.cut = cut;
        let named: HashSet<u64> =
            self.list.entries.iter().map(|entry| xxh3_64(entry.as_bytes())).collect();
        self.alternates.retain(|href| !named.contains(&xxh3_64(href.as_bytes())));
        self.list.entries.append(&mut self.alternates);
        self.list
    }
}

/// The value of an attribute, by its name without prefix.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    // Names that stand there twice are the page's own affair.
    let mut all = tag.attributes();
    let found = all
        .with_checks(false)
        .flatten()
        .find(|attribute| attribute.key.local_name().as_ref() == name)?;
    let value = quick_xml::escape::unescape(&found.value);
    // A bare `&` again: the value as it stands.
    Some(value.map_or_else(|_| found.value.to_string(), std::borrow::Cow::into_owned))
}
