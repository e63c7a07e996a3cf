//! What is kept of an article and of each of its copies.
//!
//! A *document* is one article with all its copies, known by its [`DocId`]. A *copy* is one
//! URL that carries it. A *content* is one distinct text: the node of the parent forest.

mod bodies;
mod changes;
mod codecs;
mod facts;
mod history;
mod pages;
mod rows;
mod sent;
mod tallies;
mod whole;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_128;

use crate::base::clock::Timestamp;
use crate::corpus::tables::{COPIES, DOCUMENTS, SEARCH_CHANGES, VERDICT_LOG, VERDICT_PLACES};
use crate::store::{BadRow, Error, Key, Transaction, Update as _, View};

pub use bodies::{Piece, StoredBody, needs_body, read_body, remove_body, write_body};
pub use changes::{CHANGES_FROM, EndedDocument, NEXT_CHANGE, note_changed};
pub use facts::Facts;
pub use history::{CanonicalChange, changes_of, forget_changes, note_change};
pub use pages::{
    Keep, KeepConfig, KeptHeaders, KeptImage, KeptLink, KeptPage, PageDetails, read_page,
    remove_page, write_page,
};
pub use rows::{Content, Copy, Document};
pub use sent::{Found, Sent, nid_name, sent_content};
pub use tallies::{
    Arrivals, CopiesPlace, GROWTH_KEPT, HOUR, by_copies, growth_since, note_arrival,
    take_back_arrival,
};
pub use whole::{Checksum, WholeContent, WholeDocument};

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

impl Key for DocId {
    type Ref<'a> = Self;

    fn encode(key: Self::Ref<'_>) -> Cow<'_, [u8]> {
        u128::encode(key.0)
    }

    fn decode(bytes: &[u8]) -> Result<Self::Ref<'_>, BadRow> {
        u128::decode(bytes).map(Self)
    }
}

/// Writes the document with the given number, and its place in the order of copies. If search shows
/// something else of it than before, that is noted in the same transaction.
pub fn write_document(
    batch: &mut impl Transaction,
    number: u64,
    document: &Document,
) -> Result<(), Error> {
    let was = batch.replace(DOCUMENTS, number, document)?;
    let shown = document.shown();
    if was.as_ref().map(Document::shown) != Some(shown) {
        batch.put(SEARCH_CHANGES, number, &shown)?;
    }
    if was.as_ref() != Some(document) {
        changes::note_changed(batch, number)?;
    }
    if document.copies > 1 || was.as_ref().is_some_and(|was| was.copies > 1) {
        tallies::note_duplicate_feed(batch, number)?;
    }
    tallies::place(batch, number, was.map_or(0, |was| was.copies), document.copies)
}

/// Notes that a copy of the document with the given number came again.
pub fn note_again(batch: &mut impl Transaction, number: u64, now: Timestamp) -> Result<(), Error> {
    if let Some(document) = batch.get(DOCUMENTS, number)?
        && document.last_arrival < now
    {
        // Neither the search nor the order of copies or duplicates knows this moment.
        batch.put(DOCUMENTS, number, &Document { last_arrival: now, ..document })?;
    }
    Ok(())
}

/// Removes the document with the given number, and its place in the order of copies, and notes
/// that for the search and for those who follow. `into` is the document that it is part of now.
pub fn remove_document(
    batch: &mut impl Transaction,
    number: u64,
    into: Option<DocId>,
) -> Result<(), Error> {
    let was = batch.take(DOCUMENTS, number)?;
    if let Some(was) = &was {
        changes::note_ended(batch, number, was.id, into)?;
    }
    batch.put(SEARCH_CHANGES, number, &0)?;
    if let Some(place) = batch.take(VERDICT_PLACES, number)? {
        batch.remove(VERDICT_LOG, place)?;
    }
    tallies::place(batch, number, was.map_or(0, |was| was.copies), 0)
}

/// Returns all copies of a document with their URLs, in the order of the URLs.
pub fn copies_of(view: &impl View, document: u64) -> Result<Vec<(String, Copy)>, Error> {
    let mut found = Vec::new();
    for entry in view.under(COPIES, document)? {
        let entry = entry?;
        let (_, address) = entry.key()?;
        found.push((address.to_owned(), entry.row()?));
    }
    Ok(found)
}
