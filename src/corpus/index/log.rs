//! The log of the index: contents that came and went, a row for each commit, until they are in
//! segments of the store. Their keys are made anew from their rows.
//!
//! Bytes of an entry: 1 if the content went, else 0; its number.

use crate::corpus::tables::INDEX_LOG;
use crate::store::{BadRow, Error, Transaction, View};

/// Bytes of an entry.
const ENTRY: usize = 9;

/// A content that came, or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Its number.
    pub content: u64,
    /// It went.
    pub gone: bool,
}

/// Notes a change.
pub fn note(batch: &mut impl Transaction, change: Change) {
    let mut entry = [0; ENTRY];
    entry[0] = u8::from(change.gone);
    entry[1..].copy_from_slice(&change.content.to_be_bytes());
    batch.append(INDEX_LOG, &entry);
}

/// Returns all changes, in the order in which they came.
pub fn changes(view: &impl View) -> Result<Vec<Change>, Error> {
    let rows = view.rows(INDEX_LOG)?.map(|row| Ok(read(row?.bytes())?));
    Ok(rows.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
}

/// Reads a row.
pub(super) fn read(row: &[u8]) -> Result<Vec<Change>, BadRow> {
    let (entries, rest) = row.as_chunks::<ENTRY>();
    if !rest.is_empty() || entries.iter().any(|entry| entry[0] > 1) {
        return Err(BadRow { kind: "index_log", detail: "an entry makes no sense" });
    }
    let change = |entry: &[u8; ENTRY]| Change {
        content: u64::from_be_bytes(std::array::from_fn(|byte| entry[1 + byte])),
        gone: entry[0] == 1,
    };
    Ok(entries.iter().map(change).collect())
}
