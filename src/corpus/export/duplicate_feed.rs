//! Duplicates of a store, to be published: which URLs are copies of which document.
//!
//! Published are crawled copies of documents that may be shown, with their text. Left out are pages
//! by which stored pages were found first: who does not fetch them may miss those. What is left
//! leads from the seeds to every stored page on ways that no duplicate closes.

use std::io::Write;

use xxhash_rust::xxh3::xxh3_64;

use crate::base::clock::Timestamp;
use crate::corpus::documents::copies_of;
use crate::corpus::tables::{DOCUMENTS, VERDICT_LOG};
use crate::frontier::duplicate_feed::{Duplicate, FeedWriter, Header};
use crate::frontier::{ADDRESSES, LEADS, State};
use crate::store::{Error, Snapshot, View as _};
use crate::web::robots::meta::Honour;

use super::show;

/// When a crawled URL was last visited, if it carries the document.
fn visited(snapshot: &Snapshot, url: &str, number: u64) -> Result<Option<Timestamp>, Error> {
    let address = snapshot.get(ADDRESSES, url)?;
    Ok(address
        .filter(|address| address.state == State::Stored(number))
        .map(|address| address.visited))
}

/// Returns the duplicates on the copies of a document, in the order of their URLs.
pub fn duplicates(
    snapshot: &Snapshot,
    number: u64,
    honour: &Honour,
    now: Timestamp,
) -> Result<Vec<Duplicate>, Error> {
    let mut found = Vec::new();
    let Some(mut document) = snapshot.get(DOCUMENTS, number)? else { return Ok(found) };
    let shown = document.copies > 1
        && show(snapshot, number, &mut document, honour, now)? == Ok(false)
        && visited(snapshot, &document.canonical, number)?.is_some();
    if !shown {
        return Ok(found);
    }
    let doc_id = document.id.to_string();
    for (url, copy) in copies_of(snapshot, number)? {
        let free = copy.terms.forbids(honour, now).is_none() && !copy.terms.hides_text(honour);
        let leads = || snapshot.has(LEADS, xxh3_64(url.as_bytes()));
        if url == document.canonical || !free || leads()? {
            continue;
        }
        if let Some(visited) = visited(snapshot, &url, number)? {
            let (doc_id, canonical) = (doc_id.clone(), document.canonical.clone());
            found.push(Duplicate { url, doc_id, canonical, visited });
        }
    }
    Ok(found)
}

/// Writes all duplicates of a store, in the order of their documents. Returns what was written to,
/// and the number of duplicates.
pub fn write_duplicate_feed<W: Write>(
    snapshot: &Snapshot,
    out: W,
    header: &Header,
    honour: &Honour,
    now: Timestamp,
) -> Result<(W, u64), WriteError> {
    let mut feed = FeedWriter::new(out, header)?;
    for entry in snapshot.rows(DOCUMENTS)? {
        let number = entry?.key().map_err(Error::from)?;
        for duplicate in duplicates(snapshot, number, honour, now)? {
            feed.duplicate(&duplicate)?;
        }
    }
    Ok(feed.finish(None)?)
}

/// Why a feed cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] Error),
    /// The feed cannot be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A place in the order in which duplicates change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedPlace {
    /// Last place of which everything is told.
    pub after: u64,
    /// Place after it of which only a part is told; 0 for none.
    pub partly: u64,
    /// Last URL of that part.
    pub told: String,
}

/// A part of the duplicates, in the order in which they changed.
#[derive(Debug, Default)]
pub struct Changes {
    /// The duplicates.
    pub duplicates: Vec<Duplicate>,
    /// Where they go on.
    pub next: FeedPlace,
    /// There are more now.
    pub more: bool,
}

/// Documents that one part looks at.
const LOOKED_AT_MAX: usize = 5_000;

/// Returns duplicates after a place: at most `most`. A document whose copies change goes to the
/// end, with all of its duplicates, so that who goes on from a place misses nothing.
pub fn changes(
    snapshot: &Snapshot,
    from: &FeedPlace,
    most: usize,
    honour: &Honour,
    now: Timestamp,
) -> Result<Changes, Error> {
    let log = snapshot.range(VERDICT_LOG, from.after.saturating_add(1)..)?;
    let mut part = Changes { next: from.clone(), ..Changes::default() };
    for (looked_at, entry) in log.enumerate() {
        let entry = entry?;
        let place = entry.key()?;
        if looked_at == LOOKED_AT_MAX || part.duplicates.len() == most {
            part.more = true;
            break;
        }
        let mut all = duplicates(snapshot, entry.row()?, honour, now)?;
        if from.partly == place {
            all.retain(|duplicate| duplicate.url > from.told);
        }
        let room = most - part.duplicates.len();
        let beyond = all.len() > room;
        part.duplicates.extend(all.into_iter().take(room));
        if beyond {
            let told = part.duplicates.last().map_or_else(String::new, |last| last.url.clone());
            part.next = FeedPlace { after: part.next.after, partly: place, told };
            part.more = true;
            break;
        }
        part.next = FeedPlace { after: place, ..FeedPlace::default() };
    }
    Ok(part)
}
