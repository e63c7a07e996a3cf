//! Verdicts of a store, to be published: which addresses are copies of which document.
//!
//! Published are crawled copies of documents that may be shown, with their text. Left out are pages
//! by which stored pages were found first: who does not fetch them may miss those. What is left
//! leads from the seeds to every stored page on ways that no verdict closes.

use xxhash_rust::xxh3::xxh3_64;

use crate::clock::Timestamp;
use crate::documents::{copies_of, read_document};
use crate::frontier::{Address, State};
use crate::robots::meta::Honour;
use crate::store::{Error, ReadTables};
use crate::verdicts::Verdict;

use super::show;

/// When a crawled address was last visited, if it carries the document.
fn visited(tables: &ReadTables, url: &str, number: u64) -> Result<Option<Timestamp>, Error> {
    let address = Address::read(&tables.addresses, url)?;
    Ok(address
        .filter(|address| address.state == State::Stored(number))
        .map(|address| address.visited))
}

/// Returns the verdicts on the copies of a document, in the order of their addresses.
pub fn verdicts(
    tables: &ReadTables,
    number: u64,
    honour: &Honour,
    now: Timestamp,
) -> Result<Vec<Verdict>, Error> {
    let mut found = Vec::new();
    let Some(mut document) = read_document(&tables.documents, number)? else { return Ok(found) };
    let shown = document.copies > 1
        && show(tables, (number, &mut document), honour, now)? == Ok(false)
        && visited(tables, &document.canonical, number)?.is_some();
    if !shown {
        return Ok(found);
    }
    let doc_id = document.id.to_string();
    for (url, copy) in copies_of(&tables.copies, number)? {
        let free = copy.terms.forbids(honour, now).is_none() && !copy.terms.hides_text(honour);
        let leads = || tables.leads.get(xxh3_64(url.as_bytes())).map(|row| row.is_some());
        if url == document.canonical || !free || leads()? {
            continue;
        }
        if let Some(visited) = visited(tables, &url, number)? {
            let (doc_id, canonical) = (doc_id.clone(), document.canonical.clone());
            found.push(Verdict { url, doc_id, canonical, visited });
        }
    }
    Ok(found)
}

/// A part of the verdicts, in the order in which they changed.
#[derive(Debug, Default)]
pub struct Changes {
    /// The verdicts.
    pub verdicts: Vec<Verdict>,
    /// Where they go on: a place in the order of changes, and copies of the document at the next
    /// place that are told already.
    pub next: (u64, u64),
    /// There are more now.
    pub more: bool,
}

/// Documents that one part looks at.
const LOOKED_AT_MAX: usize = 5_000;

/// Returns verdicts after a place: at most `most`. A document whose copies change goes to the end,
/// with all of its verdicts, so that who goes on from a place misses nothing.
pub fn changes(
    tables: &ReadTables,
    (after, told): (u64, u64),
    most: usize,
    (honour, now): (&Honour, Timestamp),
) -> Result<Changes, Error> {
    let mut part = Changes { next: (after, told), ..Changes::default() };
    for (looked_at, row) in tables.verdict_log.range(after.saturating_add(1)..)?.enumerate() {
        let (place, number) = row?;
        let place = place.value();
        if looked_at == LOOKED_AT_MAX || part.verdicts.len() == most {
            part.more = true;
            break;
        }
        let all = verdicts(tables, number.value(), honour, now)?;
        // What was told of another document says nothing of this one.
        let is_next = looked_at == 0 && told >> 32 == place & u64::from(u32::MAX);
        let from = if is_next { (told & u64::from(u32::MAX)) as usize } else { 0 };
        let room = most - part.verdicts.len();
        let rest = all.len().saturating_sub(from);
        part.verdicts.extend(all.into_iter().skip(from).take(room));
        if rest > room {
            let told = (place & u64::from(u32::MAX)) << 32 | (from + room) as u64;
            part.next = (part.next.0, told);
            part.more = true;
            break;
        }
        part.next = (place, 0);
    }
    Ok(part)
}
