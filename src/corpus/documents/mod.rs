//! What is kept of an article and of each of its copies.
//!
//! A *document* is one article with all its copies, known by its [`DocId`]. A *copy* is one
//! address that carries it. A *content* is one distinct text: the node of the parent forest.

mod bodies;
mod facts;
mod history;
mod rows;
mod sent;
mod tallies;

use std::fmt;
use std::str::FromStr;

use redb::{ReadableTable, Table};
use xxhash_rust::xxh3::xxh3_128;

use crate::base::clock::Timestamp;
use crate::store::{Error, Tables};

pub use bodies::{read_body, write_body};
pub use facts::Facts;
pub use history::{Change, changes_of, forget_changes, note_change};
pub use rows::{Content, Copy, Document};
pub use sent::{Found, Sent, sent_content};
pub use tallies::{
    Arrivals, GROWTH_KEPT, HOUR, Place, by_copies, growth_since, note_arrival, split_ranking_key,
    take_back_arrival,
};

/// Identifier of a document: 128 bits, shown as two hexadecimal halves.
///
/// ```
/// use uniqcrawl::corpus::documents::DocId;
///
/// let id: DocId = "cdd71f57317390e7-ad7b2a053b6e4176".parse()?;
/// assert_eq!(id.to_string(), "cdd71f57317390e7-ad7b2a053b6e4176");
/// # Ok::<(), uniqcrawl::corpus::documents::BadDocId>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocId(pub u128);

/// A text that is no document identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no docId: it has two halves of 16 hexadecimal digits with `-` between them")]
pub struct BadDocId(pub String);

impl DocId {
    /// Derives the identifier from the first copy of a document, so that a replay gives the same.
    ///
    /// Source: 汤建明, 寇小强, 海量网络文本去重系统 (docId from url, title and content).
    #[must_use]
    pub fn of(address: &str, title: &str, content_hash: u128) -> Self {
        let mut bytes = Vec::with_capacity(address.len() + title.len() + 18);
        bytes.extend_from_slice(address.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(title.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(&content_hash.to_be_bytes());
        Self(xxh3_128(&bytes))
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:016x}", (self.0 >> 64) as u64, self.0 as u64)
    }
}

impl FromStr for DocId {
    type Err = BadDocId;

    fn from_str(text: &str) -> Result<Self, BadDocId> {
        let bad = || BadDocId(text.to_owned());
        let (high, low) = text.split_once('-').ok_or_else(bad)?;
        if high.len() != 16 || low.len() != 16 {
            return Err(bad());
        }
        let half = |half| u64::from_str_radix(half, 16).map_err(|_| bad());
        Ok(Self(u128::from(half(high)?) << 64 | u128::from(half(low)?)))
    }
}

/// Reads the document with the given number.
pub fn read_document(
    documents: &impl ReadableTable<u64, &'static [u8]>,
    number: u64,
) -> Result<Option<Document>, Error> {
    let row = documents.get(number)?;
    Ok(row.map(|row| Document::decode(row.value())).transpose()?)
}

/// Writes the document with the given number, and its place in the order of copies. If search shows
/// something else of it than before, that is noted in the same transaction.
pub fn write_document(
    tables: &mut Tables<'_>,
    number: u64,
    document: &Document,
) -> Result<(), Error> {
    let was = {
        let row = tables.documents.insert(number, document.encode().as_slice())?;
        row.map(|row| Document::decode(row.value())).transpose()?
    };
    let shown = document.shown();
    if was.as_ref().map(Document::shown) != Some(shown) {
        tables.search_changes.insert(number, shown)?;
    }
    if document.copies > 1 || was.as_ref().is_some_and(|was| was.copies > 1) {
        tallies::note_verdicts(tables, number)?;
    }
    tallies::place(tables, number, was.map_or(0, |was| was.copies), document.copies)
}

/// Notes that a copy of the document with the given number came again.
pub fn note_again(tables: &mut Tables<'_>, number: u64, now: Timestamp) -> Result<(), Error> {
    if let Some(document) = read_document(&tables.documents, number)?
        && document.last_arrival < now
    {
        // Neither the search nor the order of copies or verdicts knows this moment.
        let document = Document { last_arrival: now, ..document };
        tables.documents.insert(number, document.encode().as_slice())?;
    }
    Ok(())
}

/// Removes the document with the given number, and its place in the order of copies, and notes
/// that for the search.
pub fn remove_document(tables: &mut Tables<'_>, number: u64) -> Result<(), Error> {
    let was = {
        let row = tables.documents.remove(number)?;
        row.map(|row| Document::decode(row.value())).transpose()?
    };
    tables.search_changes.insert(number, 0)?;
    if let Some(place) = tables.verdict_places.remove(number)?.map(|place| place.value()) {
        tables.verdict_log.remove(place)?;
    }
    tallies::place(tables, number, was.map_or(0, |was| was.copies), 0)
}

/// Reads the content with the given number.
pub fn read_content(
    contents: &impl ReadableTable<u64, &'static [u8]>,
    number: u64,
) -> Result<Option<Content>, Error> {
    let row = contents.get(number)?;
    Ok(row.map(|row| Content::decode(row.value())).transpose()?)
}

/// Writes the content with the given number.
pub fn write_content(
    contents: &mut Table<u64, &'static [u8]>,
    number: u64,
    content: &Content,
) -> Result<(), Error> {
    contents.insert(number, content.encode().as_slice())?;
    Ok(())
}

/// Reads the copy of `document` at `address`.
pub fn read_copy(
    copies: &impl ReadableTable<&'static [u8], &'static [u8]>,
    document: u64,
    address: &str,
) -> Result<Option<Copy>, Error> {
    let row = copies.get(copy_key(document, address).as_slice())?;
    Ok(row.map(|row| Copy::decode(row.value())).transpose()?)
}

/// Writes the copy of `document` at `address`.
pub fn write_copy(
    copies: &mut Table<&'static [u8], &'static [u8]>,
    document: u64,
    address: &str,
    copy: &Copy,
) -> Result<(), Error> {
    copies.insert(copy_key(document, address).as_slice(), copy.encode().as_slice())?;
    Ok(())
}

/// Returns all copies of a document with their addresses, in the order of the addresses.
pub fn copies_of(
    copies: &impl ReadableTable<&'static [u8], &'static [u8]>,
    document: u64,
) -> Result<Vec<(String, Copy)>, Error> {
    let (first, last) = (document.to_be_bytes(), (document + 1).to_be_bytes());
    let mut found = Vec::new();
    for row in copies.range(first.as_slice()..last.as_slice())? {
        let (key, value) = row?;
        let address = String::from_utf8_lossy(&key.value()[8..]).into_owned();
        found.push((address, Copy::decode(value.value())?));
    }
    Ok(found)
}

pub(crate) fn copy_key(document: u64, address: &str) -> Vec<u8> {
    let mut key = document.to_be_bytes().to_vec();
    key.extend_from_slice(address.as_bytes());
    key
}
