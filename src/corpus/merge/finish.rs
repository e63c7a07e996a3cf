//! What a merge has come to: every copy of every store is found again, and what became part of
//! what.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::document::{Source, carried};
use super::{MergeError, MergeOrder};
use crate::corpus::tables::{COPIES, DOC_IDS, DOCUMENTS};
use crate::frontier::{ADDRESSES, State};
use crate::store::{META, STORE_NUMBER, Snapshot, Store, View as _, read_number};

/// What stores have become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MergeSummary {
    /// Number of the store that they are.
    pub store_number: u64,
    /// Its documents.
    pub documents: u64,
    /// Its copies.
    pub copies: u64,
    /// What each of them has brought.
    pub sources: Vec<MergedSource>,
}

/// What a store has brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MergedSource {
    /// Its folder.
    pub folder: PathBuf,
    /// Its number.
    pub store_number: u64,
    /// It is what the new store began as.
    pub base: bool,
    /// Its documents.
    pub documents: u64,
    /// Those of them that are part of another document now.
    pub became_part: u64,
    /// Those that no URL carried any more, and that were left.
    pub gone: u64,
    /// Its copies.
    pub copies: u64,
    /// URLs that waited in its queue, and were left; the queue of the base is kept.
    pub waiting: u64,
}

/// Finds every copy of every store again.
pub(super) fn verify(
    store: &Store,
    sources: &[Source],
    order: &MergeOrder<'_>,
    base: &str,
) -> Result<MergeSummary, MergeError> {
    let snapshot = store.snapshot()?;
    let mut told = Vec::new();
    for source in sources {
        let mut copies = 0;
        for entry in source.snapshot.rows(COPIES)? {
            let entry = entry?;
            let (number, url) = entry.key()?;
            copies += 1;
            // Those of a base stand where they stood, if nothing has moved them.
            let is_there = snapshot.has(COPIES, (number, url))?
                || in_document_of(&snapshot, source, number, url)?
                || carried(&snapshot, url)?.is_some();
            if !is_there {
                return Err(MergeError::Lost {
                    folder: source.folder.clone(),
                    into: order.into.to_owned(),
                    url: url.to_owned(),
                });
            }
        }
        let (mut became_part, mut gone) = (0, 0);
        each_document(&snapshot, source, |is_gone, _, into| {
            gone += u64::from(is_gone);
            became_part += u64::from(into.is_some());
            Ok(())
        })?
        .map_err(|_| crate::store::BadRow { kind: "document", detail: "it cannot be told" })?;
        let is_base = source.key == base;
        told.push(MergedSource {
            folder: source.folder.clone(),
            store_number: source.number,
            base: is_base,
            documents: source.documents,
            became_part,
            gone,
            copies,
            waiting: if is_base { 0 } else { waiting(&source.snapshot)? },
        });
    }
    let number = snapshot.bytes(META, STORE_NUMBER)?.map(|row| read_number(&row)).transpose()?;
    Ok(MergeSummary {
        store_number: number.unwrap_or(0),
        documents: snapshot.len(DOCUMENTS)?,
        copies: snapshot.len(COPIES)?,
        sources: told,
    })
}

/// Tells whether a copy is in the document that its own one has become.
fn in_document_of(
    snapshot: &Snapshot,
    source: &Source,
    number: u64,
    url: &str,
) -> Result<bool, MergeError> {
    let Some(document) = source.snapshot.get(DOCUMENTS, number)? else { return Ok(false) };
    let Some(now) = snapshot.get(DOC_IDS, document.id)? else { return Ok(false) };
    Ok(snapshot.has(COPIES, (now, url))?)
}

/// Calls `each` with every document of a store: whether it was gone, its identifier, and that of
/// the document that it is part of now, if that has another one.
fn each_document(
    snapshot: &Snapshot,
    source: &Source,
    mut each: impl FnMut(bool, &str, Option<&str>) -> io::Result<()>,
) -> Result<io::Result<()>, MergeError> {
    for entry in source.snapshot.rows(DOCUMENTS)? {
        let document = entry?.row()?;
        let now = snapshot.get(DOC_IDS, document.id)?;
        let now = now.map(|number| snapshot.get(DOCUMENTS, number)).transpose()?.flatten();
        let into = now.filter(|now| now.id != document.id).map(|now| now.id.to_string());
        let gone = document.gone.0 != 0;
        if let Err(error) = each(gone, &document.id.to_string(), into.as_deref()) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

pub(super) fn became_part(
    sources: &[Source],
    order: &MergeOrder<'_>,
    mut each: impl FnMut(&Path, &str, &str) -> io::Result<()>,
) -> Result<io::Result<()>, MergeError> {
    let store = Store::open_to_read(order.into, super::SOURCE_CACHE_BYTES)?;
    let snapshot = store.snapshot()?;
    for source in sources {
        let told = each_document(&snapshot, source, |_, id, into| match into {
            Some(into) => each(&source.folder, id, into),
            None => Ok(()),
        })?;
        if told.is_err() {
            return Ok(told);
        }
    }
    Ok(Ok(()))
}

fn waiting(snapshot: &Snapshot) -> Result<u64, MergeError> {
    let mut waiting = 0;
    for entry in snapshot.rows(ADDRESSES)? {
        waiting += u64::from(entry?.row()?.state == State::Queued);
    }
    Ok(waiting)
}
