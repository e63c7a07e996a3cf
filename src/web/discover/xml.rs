//! Lists in XML: sitemaps, RSS, Atom. Names count without their prefix.
//!
//! Lists are full of faults, and each costs one entry at most. An end tag closes what was opened
//! under its name, and all that was left open inside; one of which nothing is open is passed over.
//! An entry that begins ends the one before it. Each fault is counted by its kind.

use std::collections::HashSet;
use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::escape::resolve_html5_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use xxhash_rust::xxh3::xxh3_64;

use super::{AddressList, Config, ListCut, ListFault, ListKind, URL_BYTES_MAX, push};

/// Deepest element that is told apart.
const DEPTH_MAX: usize = 64;

/// Elements of HTML that have no end, as they stand in descriptions.
const VOID: [&str; 6] = ["br", "hr", "img", "input", "meta", "wbr"];

/// Elements that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    /// A root, and what it makes of the list.
    Root(ListKind),
    /// `url` and `sitemap`, or `item` and `entry`.
    Entry,
    /// `loc`.
    Loc,
    /// `link`.
    Link,
    /// `guid`, if it is a URL.
    Guid,
    Other,
}

impl Element {
    fn root(tag: &BytesStart<'_>) -> Option<ListKind> {
        Some(match tag.local_name().as_ref() {
            "sitemapindex" => ListKind::Index,
            "urlset" => ListKind::Set,
            "rss" | "RDF" => ListKind::Rss,
            "feed" => ListKind::Atom,
            _ => return None,
        })
    }

    fn of(tag: &BytesStart<'_>, is_feed: bool) -> Self {
        if let Some(kind) = Self::root(tag) {
            return Self::Root(kind);
        }
        match tag.local_name().as_ref() {
            "url" | "sitemap" if !is_feed => Self::Entry,
            "item" | "entry" if is_feed => Self::Entry,
            "loc" => Self::Loc,
            "link" => Self::Link,
            "guid" if attribute(tag, "isPermaLink").is_none_or(|value| value != "false") => {
                Self::Guid
            }
            _ => Self::Other,
        }
    }
}

/// An element whose end has not come.
#[derive(Debug, Clone, Copy)]
struct OpenTag {
    element: Element,
    /// Hash of its name without prefix.
    name: u64,
    /// Hash of its name with prefix.
    prefixed: u64,
}

impl OpenTag {
    fn new(element: Element, tag: &BytesStart<'_>) -> Self {
        let (name, prefixed) = (hash(tag.local_name().as_ref()), hash(tag.name().as_ref()));
        Self { element, name, prefixed }
    }
}

/// The list so far.
struct ListBuilder<'a> {
    config: &'a Config,
    list: AddressList,
    root: OpenTag,
    open: Vec<OpenTag>,
    /// Text of the element at this depth, and of what is in it, is kept.
    keep: usize,
    text: String,
    /// The URL that is being read has a part that cannot be told.
    half: bool,
    /// The entry that is open has a URL.
    has_link: bool,
    guid: String,
    /// Text of the entry itself.
    own: String,
    /// Translations that a sitemap names beside its entries; most stand there as entries too.
    alternates: Vec<String>,
    seen: HashSet<u64>,
}

/// Reads a list; none if the root is of none.
pub(super) fn read(source: impl BufRead, config: &Config) -> Option<AddressList> {
    let mut reader = forgiving(source);
    let mut buffer = Vec::new();
    let mut reading: Option<ListBuilder<'_>> = None;
    let cut = loop {
        buffer.clear();
        let Ok(event) = reader.read_event_into(&mut buffer) else {
            let Some(reading) = &mut reading else { return None };
            // Markup that ends nowhere has taken all there was. What ends is read on after it.
            let read = reader.buffer_position();
            let mut source = reader.into_inner();
            if read == 0 || source.fill_buf().is_ok_and(<[u8]>::is_empty) {
                break Some(ListCut::Syntax);
            }
            reading.list.faults.add(ListFault::Markup);
            reader = forgiving(source);
            continue;
        };
        match (&mut reading, event) {
            (_, Event::Eof) => break Some(ListCut::Syntax),
            (None, Event::Start(tag) | Event::Empty(tag)) => {
                let kind = Element::root(&tag)?;
                reading =
                    Some(ListBuilder::new(OpenTag::new(Element::Root(kind), &tag), kind, config));
            }
            // A text before the root: no XML.
            (None, Event::Text(text)) if !text.trim().is_empty() => return None,
            (None, _) => {}
            (Some(reading), event) => {
                if let Err(cut) = reading.take(event) {
                    break Some(cut);
                }
            }
        }
    };
    reading.map(|reading| reading.finish(cut))
}

fn forgiving<R: BufRead>(source: R) -> Reader<R> {
    let mut reader = Reader::from_reader(source);
    let rules = reader.config_mut();
    rules.check_end_names = false;
    rules.allow_unmatched_ends = true;
    // URLs with a bare `&` are the usual fault of sitemaps.
    rules.allow_dangling_amp = true;
    reader
}

impl<'a> ListBuilder<'a> {
    fn new(root: OpenTag, kind: ListKind, config: &'a Config) -> Self {
        Self {
            config,
            list: AddressList { kind, ..AddressList::default() },
            root,
            open: vec![root],
            keep: usize::MAX,
            text: String::new(),
            half: false,
            has_link: false,
            guid: String::new(),
            own: String::new(),
            alternates: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Takes the next event.
    fn take(&mut self, event: Event<'_>) -> Result<(), ListCut> {
        match event {
            Event::Start(tag) => self.start(&tag).map(|_| ()),
            Event::Empty(tag) => {
                if self.start(&tag)? {
                    self.close()
                } else {
                    Ok(())
                }
            }
            Event::End(tag) => self.end(hash(tag.local_name().as_ref())),
            Event::Text(text) => {
                self.keep(&text);
                Ok(())
            }
            Event::CData(text) => {
                self.keep(&text);
                Ok(())
            }
            Event::GeneralRef(name) => {
                match resolved(&name) {
                    Some(text) => self.keep(&text),
                    None if self.keeps() => {
                        self.list.faults.add(ListFault::Entity);
                        self.half = true;
                    }
                    None => {}
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes the start of an element. Returns whether it is open now.
    fn start(&mut self, tag: &BytesStart<'_>) -> Result<bool, ListCut> {
        if self.keep != usize::MAX && !self.text.trim().is_empty() {
            // A URL has no elements.
            self.list.faults.add(ListFault::Unclosed);
            self.half |= tag.name().as_ref().contains('<');
            self.close_to(self.keep - 1)?;
        }
        let mut open = OpenTag::new(Element::of(tag, self.list.kind.is_feed()), tag);
        if open.element == Element::Entry {
            self.begin_entry(&mut open)?;
        }
        if self.open.is_empty() {
            return Ok(false);
        }
        let is_void = VOID.contains(&tag.local_name().as_ref());
        if is_void || self.open.len() >= DEPTH_MAX {
            self.list.faults.add(if is_void { ListFault::Unclosed } else { ListFault::Markup });
            return Ok(false);
        }
        let parent = self.open.last().map_or(Element::Other, |open| open.element);
        self.open.push(open);
        let kind = self.list.kind;
        match (open.element, parent) {
            (Element::Entry, _) => {
                if let Some(about) = attribute(tag, "about").filter(|_| kind == ListKind::Rss) {
                    self.guid = about;
                }
            }
            (Element::Loc, Element::Entry) if !kind.is_feed() => self.keep_from_here(),
            (Element::Loc, Element::Root(_)) if !kind.is_feed() => {
                self.list.faults.add(ListFault::Misplaced);
                self.keep_from_here();
            }
            (Element::Link | Element::Guid, Element::Entry) if kind == ListKind::Rss => {
                match attribute(tag, "href") {
                    Some(href) if open.element == Element::Link => self.link(tag, &href)?,
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
        Ok(true)
    }

    /// Makes room for an entry, unless it is none: what has another prefix than the entry around it
    /// is of another vocabulary, and what stands where a URL belongs is the URL.
    fn begin_entry(&mut self, open: &mut OpenTag) -> Result<(), ListCut> {
        if self.keep != usize::MAX {
            self.list.faults.add(ListFault::Misplaced);
            open.element = Element::Other;
            return Ok(());
        }
        let around = self.open.iter().rposition(|open| open.element == Element::Entry);
        if let Some(at) = around {
            if self.open[at].prefixed != open.prefixed {
                open.element = Element::Other;
                return Ok(());
            }
            self.list.faults.add(ListFault::Unclosed);
            self.close_to(at)?;
        }
        if self.open.is_empty() {
            self.list.faults.add(ListFault::StrayEnd);
            self.open.push(self.root);
        }
        (self.has_link, self.guid) = (false, String::new());
        self.own.clear();
        Ok(())
    }

    /// Takes an end tag.
    fn end(&mut self, name: u64) -> Result<(), ListCut> {
        match self.open.iter().rposition(|open| open.name == name) {
            Some(at) => {
                for _ in at + 1..self.open.len() {
                    self.list.faults.add(ListFault::Unclosed);
                }
                self.close_to(at)
            }
            // After the root, nothing matters but entries.
            None if self.open.is_empty() => Ok(()),
            None => {
                self.list.faults.add(ListFault::StrayEnd);
                Ok(())
            }
        }
    }

    /// Closes elements until so many are open.
    fn close_to(&mut self, depth: usize) -> Result<(), ListCut> {
        while self.open.len() > depth {
            self.close()?;
        }
        Ok(())
    }

    /// Closes the last element.
    fn close(&mut self) -> Result<(), ListCut> {
        let depth = self.open.len();
        let Some(OpenTag { element, .. }) = self.open.pop() else { return Ok(()) };
        if depth == self.keep {
            self.keep = usize::MAX;
            let text = std::mem::take(&mut self.text);
            let is_half = std::mem::take(&mut self.half);
            // Half a URL is none.
            let text = if is_half { String::new() } else { text };
            if element == Element::Guid {
                self.guid = if is_address(&text) { text } else { String::new() };
            } else if element != Element::Link || is_half || !text.trim().is_empty() {
                self.has_link = true;
                push(&mut self.list, &text, self.config)?;
            }
        }
        if element == Element::Entry && !self.has_link {
            let mut text = std::mem::take(&mut self.guid);
            if text.is_empty() && is_address(&self.own) && !self.half {
                self.list.faults.add(ListFault::Misplaced);
                text = std::mem::take(&mut self.own);
            }
            push(&mut self.list, &text, self.config)?;
        }
        if element == Element::Entry {
            (self.half, self.has_link) = (false, true);
        }
        Ok(())
    }

    /// A link that is an attribute: the URL of an Atom entry, or a translation in a sitemap.
    fn link(&mut self, tag: &BytesStart<'_>, href: &str) -> Result<(), ListCut> {
        let alternate = attribute(tag, "rel").is_none_or(|rel| rel == "alternate");
        if !alternate {
            return Ok(());
        }
        if self.list.kind.is_feed() {
            self.has_link = true;
            return push(&mut self.list, href, self.config);
        }
        if href.is_empty() {
            self.list.bad += 1;
            return Ok(());
        }
        let room = self.alternates.len() < self.config.entries_max;
        if room && href.len() <= URL_BYTES_MAX && self.seen.insert(hash(href)) {
            self.alternates.push(href.to_owned());
        }
        Ok(())
    }

    fn keep_from_here(&mut self) {
        self.keep = self.open.len();
        self.half = false;
        self.text.clear();
    }

    /// Tells whether the text here belongs to an address: of an element that has one, or of an
    /// entry of a sitemap itself.
    fn keeps(&self) -> bool {
        let own = self.open.last().is_some_and(|open| open.element == Element::Entry);
        self.keep != usize::MAX || own && !self.list.kind.is_feed()
    }

    fn keep(&mut self, text: &str) {
        if !self.keeps() {
            return;
        }
        let to = if self.keep == usize::MAX { &mut self.own } else { &mut self.text };
        if to.len() <= URL_BYTES_MAX {
            to.push_str(text);
        }
    }

    fn finish(mut self, cut: Option<ListCut>) -> AddressList {
        // What follows the end of the root does not matter.
        self.list.cut = cut.filter(|cut| *cut != ListCut::Syntax || !self.open.is_empty());
        let named: HashSet<u64> = self.list.entries.iter().map(|entry| hash(entry)).collect();
        self.alternates.retain(|href| !named.contains(&hash(href)));
        self.list.entries.append(&mut self.alternates);
        self.list
    }
}

fn hash(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}

fn is_address(text: &str) -> bool {
    text.trim_start().starts_with("http")
}

/// What a reference means: a character by its number, or one of the names of XML and HTML.
fn resolved(name: &BytesRef<'_>) -> Option<String> {
    if let Ok(Some(c)) = name.resolve_char_ref() {
        return Some(c.to_string());
    }
    resolve_html5_entity(name).map(str::to_owned)
}

/// An attribute without its references. A bare `&` stands for itself; none if there is a name that
/// nobody knows.
fn unescaped(mut value: &str) -> Option<String> {
    let mut out = String::with_capacity(value.len());
    while let Some((before, rest)) = value.split_once('&') {
        out.push_str(before);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '#';
        let end =
            rest.find(|c| !is_name(c)).filter(|end| *end > 0 && rest[*end..].starts_with(';'));
        value = if let Some(end) = end {
            out.push_str(&resolved(&BytesRef::new(&rest[..end]))?);
            &rest[end + 1..]
        } else {
            out.push('&');
            rest
        };
    }
    out.push_str(value);
    Some(out)
}

/// The value of an attribute, by its name without prefix.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    // Names that stand there twice are the page's own affair.
    let mut all = tag.attributes();
    let found = all
        .with_checks(false)
        .flatten()
        .find(|attribute| attribute.key.local_name().as_ref() == name)?;
    // Half a URL is none.
    Some(unescaped(&found.value).unwrap_or_default())
}
