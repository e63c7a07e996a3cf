//! Reading a feed: what is damaged, cut short or of another kind is told with its line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::urls::{Normalize, PageUrl};

use super::Error;
use super::feed::{Addresses, FeedEnd, FeedLine, Header, KIND, OLD_KIND, VERSION};
use super::known::DAY_MS;

/// Bytes of a line at most.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// First bytes of a gzip file. Source: RFC 1952, 2.3.1.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// First bytes of a zstd frame. Source: RFC 8878, 3.1.1.
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// A duplicate as it is kept: hashes of URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedItem {
    /// Hash of the URL.
    pub url: u128,
    /// Hash of the URL of the canonical copy.
    pub canonical: u128,
    /// Identifier of the document.
    pub doc_id: u128,
    /// Day on which the publisher last visited the copy, since 1970.
    pub day: u64,
}

/// Reads a feed.
pub struct Reader {
    path: PathBuf,
    input: Box<dyn BufRead>,
    sum: Xxh3,
    /// Lines that were read.
    line: u64,
    bytes: Vec<u8>,
    duplicates: u64,
    /// The first line.
    pub header: Header,
    /// The last line, when it was read.
    pub end: Option<FeedEnd>,
}

impl Reader {
    /// Opens a feed, plain or packed, whose URLs have the normal form of `rules`.
    pub fn open(path: &Path, rules: &Normalize) -> Result<Self, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        if !file.metadata().map_err(io)?.is_file() {
            // It is read twice: before a crawl begins, it is known to be whole.
            return Err(io(io::Error::other("it is no regular file")));
        }
        let mut plain = BufReader::new(file);
        let start = plain.fill_buf().map_err(io)?;
        let input: Box<dyn BufRead> = if start.starts_with(&GZIP) {
            Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(plain)))
        } else if start.starts_with(&ZSTD) {
            Box::new(BufReader::new(zstd::Decoder::with_buffer(plain).map_err(io)?))
        } else {
            Box::new(plain)
        };
        let header = Header::new(
            "",
            crate::base::clock::Timestamp(0),
            Addresses::Plain,
            Normalize::default(),
        );
        let (path, sum, bytes) = (path.to_owned(), Xxh3::new(), Vec::new());
        let mut reader =
            Self { path, input, sum, line: 0, bytes, duplicates: 0, header, end: None };
        reader.header = reader.head()?;
        if let Some((name, theirs, ours)) = reader.header.rules.difference(rules) {
            return Err(Error::Rules { path: reader.path, name, theirs, ours });
        }
        Ok(reader)
    }

    /// Returns the number of duplicates that were read.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Returns the checksum of all lines but the last one, as that tells it; 0 before it was read.
    #[must_use]
    pub fn sum(&self) -> u128 {
        let end = self.end.as_ref();
        end.and_then(|end| u128::from_str_radix(&end.xxh3, 16).ok()).unwrap_or_default()
    }

    fn bad(&self, detail: impl Into<String>) -> Error {
        Error::Line { path: self.path.clone(), line: self.line.max(1), detail: detail.into() }
    }

    /// Reads a line. Returns false at the end of the file.
    fn read(&mut self) -> Result<bool, Error> {
        self.bytes.clear();
        let mut limited = (&mut self.input).take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut self.bytes);
        self.line += 1;
        match read {
            Ok(0) => Ok(false),
            Ok(_) if self.bytes.ends_with(b"\n") => Ok(true),
            Ok(_) if self.bytes.len() as u64 == LINE_BYTES_MAX => {
                Err(self.bad(format!("the line has more than {LINE_BYTES_MAX} bytes")))
            }
            Ok(_) => Err(self.bad("the feed is cut short: the line has no end")),
            Err(error) => Err(self.bad(format!("the feed cannot be read on: {error}"))),
        }
    }

    fn head(&mut self) -> Result<Header, Error> {
        const NO_FEED: &str = "this is no duplicate feed";
        // A line without an end is no cut feed unless it begins like one.
        let whole = self.read();
        let value: Option<Value> = serde_json::from_slice(&self.bytes).ok();
        let is_feed = |value: &Value| [KIND, OLD_KIND].iter().any(|kind| value["feed"] == *kind);
        let Some(value) = value.filter(is_feed) else { return Err(self.bad(NO_FEED)) };
        whole?;
        if value["version"] != VERSION {
            let found = &value["version"];
            return Err(self.bad(format!("the feed has version {found}; {VERSION} can be read")));
        }
        let header = serde_json::from_value(value);
        let header = header.map_err(|error| self.bad(format!("the header is bad: {error}")))?;
        self.sum.update(&self.bytes);
        Ok(header)
    }

    /// Reads the next duplicate; none after the last line, if all of them are as they were written.
    pub fn next_item(&mut self) -> Result<Option<FeedItem>, Error> {
        self.next_item_of(None)
    }

    /// Reads the next duplicate whose URL passes; of a hashed feed, any.
    pub fn next_item_of(
        &mut self,
        passes: Option<&dyn Fn(&PageUrl) -> bool>,
    ) -> Result<Option<FeedItem>, Error> {
        loop {
            if !self.read()? {
                return Err(self.bad("the feed is cut short: its last line is missing"));
            }
            if self.bytes.starts_with(b"{\"end\"") {
                return self.finish().map(|()| None);
            }
            self.sum.update(&self.bytes);
            self.duplicates += 1;
            match item(&self.bytes, self.header.addresses, passes) {
                Ok(None) => {}
                Ok(item) => return Ok(item),
                Err(detail) => return Err(self.bad(detail)),
            }
        }
    }

    fn finish(&mut self) -> Result<(), Error> {
        let end: FeedEnd = serde_json::from_slice(&self.bytes)
            .map_err(|error| self.bad(format!("the last line is bad: {error}")))?;
        if end.duplicates != self.duplicates {
            let (told, found) = (end.duplicates, self.duplicates);
            return Err(self.bad(format!("the feed has {found} duplicates, not {told}")));
        }
        if end.xxh3 != format!("{:032x}", self.sum.digest128()) {
            return Err(self.bad("the feed was altered: its checksum differs"));
        }
        self.end = Some(end);
        if self.read()? {
            return Err(self.bad("there is more after the last line of the feed"));
        }
        Ok(())
    }
}

/// Returns the duplicate of a line; none if its URL does not pass.
fn item(
    bytes: &[u8],
    addresses: Addresses,
    passes: Option<&dyn Fn(&PageUrl) -> bool>,
) -> Result<Option<FeedItem>, String> {
    let line: FeedLine<'_> = serde_json::from_slice(bytes)
        .map_err(|error| format!("the line is no duplicate: {error}"))?;
    if let (Some(passes), Addresses::Plain) = (passes, addresses)
        && PageUrl::parse_stored(&line.url).is_some_and(|url| !passes(&url))
    {
        return Ok(None);
    }
    let hash = |text: &str| match addresses {
        Addresses::Plain if text.starts_with("http://") || text.starts_with("https://") => {
            Ok(xxh3_128(text.as_bytes()))
        }
        Addresses::Hashed if text.len() == 32 => {
            u128::from_str_radix(text, 16).map_err(|_| format!("`{text}` is no hash"))
        }
        Addresses::Plain => Err(format!("`{text}` is no web URL")),
        Addresses::Hashed => Err(format!("`{text}` is no hash of 32 digits")),
    };
    let id = |text: &str| {
        let (high, low) = text.split_once('-').filter(|_| text.len() == 33)?;
        let half = |half: &str| u64::from_str_radix(half, 16).ok().filter(|_| half.len() == 16);
        Some(u128::from(half(high)?) << 64 | u128::from(half(low)?))
    };
    let date: Result<jiff::Timestamp, _> = format!("{}T00:00:00Z", line.date).parse();
    let date = date.map_err(|_| format!("`{}` is no date", line.date))?;
    Ok(Some(FeedItem {
        url: hash(&line.url)?,
        canonical: hash(&line.canonical)?,
        doc_id: id(&line.doc_id).ok_or_else(|| format!("`{}` is no docId", line.doc_id))?,
        day: (date.as_millisecond().max(0) / DAY_MS).unsigned_abs(),
    }))
}
