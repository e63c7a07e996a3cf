//! The lines of a feed, and how they are written.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::base::clock::Timestamp;
use crate::urls::Normalize;

use super::known::DAY_MS;

/// First word of a header.
pub(super) const KIND: &str = "uniqcrawl duplicate feed";

/// The same in feeds of the version before, which are still read.
pub(super) const OLD_KIND: &str = "uniqcrawl verdicts";

/// Number of the form that is written and read.
pub(super) const VERSION: u64 = 1;

/// How URLs stand in a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Addresses {
    /// As they are.
    Plain,
    /// As XXH3 hashes of 128 bits, so that only who knows a URL can look it up.
    Hashed,
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// What it is.
    pub feed: String,
    /// Number of its form.
    pub version: u64,
    /// Who publishes it.
    pub publisher: String,
    /// When it was made.
    pub made: String,
    /// How URLs stand in it.
    pub addresses: Addresses,
    /// Rules of the normal form of its URLs.
    pub rules: Normalize,
}

impl Header {
    /// A header of the present form.
    #[must_use]
    pub fn new(publisher: &str, made: Timestamp, addresses: Addresses, rules: Normalize) -> Self {
        let (feed, publisher, made) = (KIND.to_owned(), publisher.to_owned(), made.to_string());
        Self { feed, version: VERSION, publisher, made, addresses, rules }
    }
}

/// One copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// Its URL.
    pub url: String,
    /// Identifier of its document.
    pub doc_id: String,
    /// URL of the canonical copy.
    pub canonical: String,
    /// When the publisher last visited it.
    pub visited: Timestamp,
}

/// A duplicate as it stands in a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FeedLine<'a> {
    #[serde(borrow)]
    pub url: Cow<'a, str>,
    #[serde(borrow)]
    pub doc_id: Cow<'a, str>,
    #[serde(borrow)]
    pub canonical: Cow<'a, str>,
    #[serde(borrow)]
    pub date: Cow<'a, str>,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedEnd {
    /// That it is the last one.
    pub end: bool,
    /// Lines between the first and the last one.
    #[serde(alias = "verdicts")]
    pub duplicates: u64,
    /// XXH3 of 128 bits over all lines before it, with their ends.
    pub xxh3: String,
    /// Where the feed goes on, if it is read in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// There is more now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<bool>,
}

/// Writes a feed, line by line.
pub struct FeedWriter<W> {
    out: W,
    sum: Xxh3,
    duplicates: u64,
    addresses: Addresses,
}

impl<W: Write> FeedWriter<W> {
    /// Begins a feed.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        let (sum, addresses) = (Xxh3::new(), header.addresses);
        let mut feed = Self { out, sum, duplicates: 0, addresses };
        feed.line(header)?;
        Ok(feed)
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.sum.update(&bytes);
        self.out.write_all(&bytes)
    }

    /// Writes one duplicate.
    pub fn duplicate(&mut self, duplicate: &Duplicate) -> io::Result<()> {
        let named = |address: &str| match self.addresses {
            Addresses::Plain => address.to_owned(),
            Addresses::Hashed => format!("{:032x}", xxh3_128(address.as_bytes())),
        };
        let day = Timestamp(duplicate.visited.0 / DAY_MS * DAY_MS).to_string();
        let date = day.split('T').next().unwrap_or_default();
        let line = FeedLine {
            url: named(&duplicate.url).into(),
            doc_id: duplicate.doc_id.as_str().into(),
            canonical: named(&duplicate.canonical).into(),
            date: date.into(),
        };
        self.duplicates += 1;
        self.line(&line)
    }

    /// Ends the feed. `next` tells where it goes on, and whether there is more now.
    pub fn finish(mut self, next: Option<(String, bool)>) -> io::Result<(W, u64)> {
        let (next, more) = next.unzip();
        let xxh3 = format!("{:032x}", self.sum.digest128());
        let end = FeedEnd { end: true, duplicates: self.duplicates, xxh3, next, more };
        self.line(&end)?;
        self.out.flush()?;
        Ok((self.out, self.duplicates))
    }
}
