//! Lists of addresses: sitemaps (index, set, plain text) and feeds (RSS, Atom, JSON), read as a
//! stream under limits. Pure: no I/O but from the body that is handed in.
//!
//! What was read before a limit counts, so that an endless list gives what it has. Faults are read
//! over and counted. Entities that a list declares are never expanded; half a URL is never
//! used.
//!
//! Source: <https://www.sitemaps.org/protocol.html>, RSS 2.0, RSS 1.0, RFC 4287,
//! <https://www.jsonfeed.org/version/1.1/>.

mod plain;
mod stream;
mod xml;

use std::cell::Cell;
use std::io::{BufRead as _, BufReader, Read};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::base::units::{Size, Time};
use crate::store::Coded;

/// Longest URL of an entry, in bytes.
const URL_BYTES_MAX: usize = 4_096;

/// Which lists of URLs are asked for, and how much of them is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Read the sitemaps that robots.txt names.
    pub sitemaps: bool,
    /// Ask for `/sitemap.xml` once at each host whose robots.txt names no sitemap.
    pub usual_place: bool,
    /// Read the feeds that pages link to.
    pub feeds: bool,
    /// Most bytes of a list, on the wire and unpacked; the rest is not read.
    pub size_max: Size,
    /// Most entries of a list; the rest is not read.
    pub entries_max: usize,
    /// Most indexes above a sitemap.
    pub index_depth_max: u8,
    /// Most sitemaps of one host.
    pub sitemaps_per_host_max: u32,
    /// Most feeds of one host.
    pub feeds_per_host_max: u32,
    /// Time after which a sitemap that is named again is read again; 0 for never.
    pub again_after: Time,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            sitemaps: true,
            usual_place: true,
            feeds: true,
            size_max: Size::from_mib(50),
            entries_max: 50_000,
            index_depth_max: 3,
            sitemaps_per_host_max: 5_000,
            feeds_per_host_max: 10,
            again_after: Time::from_secs(86_400),
        }
    }
}

/// What a list is. The codes are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ListKind {
    /// An index of sitemaps.
    Index = 1,
    /// A set of URLs.
    #[default]
    Set = 2,
    /// Plain text, one URL a line.
    Text = 3,
    /// RSS 2.0 and its elders, RSS 1.0.
    Rss = 4,
    /// Atom.
    Atom = 5,
    /// JSON Feed.
    Json = 6,
}

impl Coded for ListKind {
    fn code(self) -> u64 {
        self as u64
    }

    fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

impl ListKind {
    const ALL: [Self; 6] = [Self::Index, Self::Set, Self::Text, Self::Rss, Self::Atom, Self::Json];

    /// Tells a feed from a sitemap.
    #[must_use]
    pub fn is_feed(self) -> bool {
        matches!(self, Self::Rss | Self::Atom | Self::Json)
    }

    /// Returns the words for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Index => "index of sitemaps",
            Self::Set => "sitemap",
            Self::Text => "sitemap in plain text",
            Self::Rss => "RSS feed",
            Self::Atom => "Atom feed",
            Self::Json => "JSON feed",
        }
    }
}

/// Why a list was not read to its end. The codes are stored; 4 was in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ListCut {
    /// It has more bytes than the limit.
    Bytes = 1,
    /// It has more entries than the limit.
    Entries = 2,
    /// Its syntax is broken.
    Syntax = 3,
    /// Its compression is broken, or it breaks off.
    Broken = 5,
    /// It grows beyond measure when unpacked.
    Bomb = 6,
}

impl Coded for ListCut {
    fn code(self) -> u64 {
        self as u64
    }

    fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|cut| cut.code() == code)
    }
}

impl ListCut {
    const ALL: [Self; 5] = [Self::Bytes, Self::Entries, Self::Syntax, Self::Broken, Self::Bomb];

    /// Returns a sentence for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "it has more bytes than the limit",
            Self::Entries => "it has more entries than the limit",
            Self::Syntax => "its syntax is broken",
            Self::Broken => "it breaks off",
            Self::Bomb => "it grows beyond measure when unpacked",
        }
    }
}

/// A fault of a list, after which it is read on. The order is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListFault {
    /// An end tag of something that is not open.
    StrayEnd,
    /// An element without an end, or one that ends before it should.
    Unclosed,
    /// A URL beside the element that it belongs in.
    Misplaced,
    /// A URL with an entity that neither XML nor HTML has; the URL is not used.
    Entity,
    /// Markup of which nothing can be made, or beyond the depth that is told apart.
    Markup,
}

impl ListFault {
    /// All of them, in their order.
    pub const ALL: [Self; 5] =
        [Self::StrayEnd, Self::Unclosed, Self::Misplaced, Self::Entity, Self::Markup];

    /// Returns the words for several of them.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StrayEnd => "end tags of what is not open",
            Self::Unclosed => "elements without an end",
            Self::Misplaced => "URLs in the wrong place",
            Self::Entity => "unknown entities",
            Self::Markup => "pieces of broken markup",
        }
    }
}

/// How many faults of each kind a list has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults(pub [u64; ListFault::ALL.len()]);

impl Faults {
    fn add(&mut self, fault: ListFault) {
        self.0[fault as usize] += 1;
    }

    /// Returns the kinds that there are, and how many of each.
    pub fn counts(&self) -> impl Iterator<Item = (ListFault, u64)> {
        ListFault::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

/// What a list names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressList {
    /// What it is.
    pub kind: ListKind,
    /// URLs as they stand there: of sitemaps for an index, else of pages.
    pub entries: Vec<String>,
    /// Entries that have no URL, or one that is too long.
    pub bad: u64,
    /// Faults after which it was read on.
    pub faults: Faults,
    /// Why it was not read to its end.
    pub cut: Option<ListCut>,
}

/// Why a body is no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAList {
    /// It is something else, or nothing.
    Other,
    /// It grows beyond measure when unpacked.
    Bomb,
}

/// Reads a list from a body of `wire` bytes. gzip is told by its first bytes, whatever the headers
/// and the URL say; so is what the list is.
///
/// # Errors
///
/// If the body is no list. A list that is broken is one as far as it goes, but for one that
/// unpacks to more than `ratio_max` times its size.
pub fn read(
    body: impl Read,
    wire: usize,
    config: &Config,
    ratio_max: u32,
) -> Result<AddressList, NotAList> {
    let end = Rc::new(Cell::new(None));
    let mut reader = BufReader::new(stream::open(body, wire, config, ratio_max, &end));
    let list = match first_byte(&mut reader) {
        Some(b'<') => xml::read(reader, config),
        Some(b'{') => plain::json(reader, config),
        Some(_) => plain::text(reader, config),
        None => None,
    };
    match (list, end.get()) {
        (_, Some(ListCut::Bomb)) => Err(NotAList::Bomb),
        (None, _) => Err(NotAList::Other),
        // Where the stream ends early, the syntax is broken for that reason only. What follows the
        // end of a root does not matter.
        (Some(list), Some(cut))
            if list.cut == Some(ListCut::Syntax) || list.kind == ListKind::Text =>
        {
            Ok(AddressList {
                cut: list.cut.filter(|own| *own == ListCut::Entries).or(Some(cut)),
                ..list
            })
        }
        (Some(list), _) => Ok(list),
    }
}

/// Tells whether a body that came as a page may be a list: by its type, or how it begins.
#[must_use]
pub fn may_be_list(content_type: Option<&str>, body: &[u8]) -> bool {
    const STARTS: [&[u8]; 6] =
        [b"<?xml", b"<rss", b"<feed", b"<rdf:rdf", b"<urlset", b"<sitemapindex"];
    if is_feed_type(content_type) {
        return true;
    }
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body).trim_ascii_start();
    STARTS
        .iter()
        .any(|start| body.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)))
}

/// Tells whether a `Content-Type` is that of a feed.
#[must_use]
pub(crate) fn is_feed_type(content_type: Option<&str>) -> bool {
    const TYPES: [&str; 4] = [
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
        "application/feed+json",
    ];
    let media = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    TYPES.iter().any(|known| media.eq_ignore_ascii_case(known))
}

/// Returns the first byte that is no white space, and skips what is before it.
fn first_byte(reader: &mut BufReader<impl Read>) -> Option<u8> {
    loop {
        let buffer = reader.fill_buf().ok()?;
        if buffer.is_empty() {
            return None;
        }
        let blank = buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let found = buffer.get(blank).copied();
        reader.consume(blank);
        if found.is_some() {
            return found;
        }
    }
}

/// Adds a URL as it stands in a list. Returns whether there is room for more.
fn push(list: &mut AddressList, text: &str, config: &Config) -> Result<(), ListCut> {
    let text = text.trim();
    if text.is_empty() || text.len() > URL_BYTES_MAX {
        list.bad += 1;
        return Ok(());
    }
    if list.entries.len() >= config.entries_max {
        return Err(ListCut::Entries);
    }
    list.entries.push(text.to_owned());
    Ok(())
}
