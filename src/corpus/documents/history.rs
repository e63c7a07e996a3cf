//! Which copy of a document was canonical, and until when.
//!
//! Row of `history`: key: document number (8 bytes), sequence (8 bytes), both big-endian; value:
//! version 1, time, address before, address after.

use redb::{ReadableTable, Table};

use crate::base::clock::Timestamp;
use crate::store::{Decoder, Encoder, Error};

/// A change of the canonical copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// When it changed.
    pub time: Timestamp,
    /// Address of the copy that was canonical.
    pub from: String,
    /// Address of the copy that is canonical since.
    pub to: String,
}

/// Adds a change to the history of a document.
pub fn note_change(
    history: &mut Table<&'static [u8], &'static [u8]>,
    document: u64,
    change: &Change,
) -> Result<(), Error> {
    let (first, last) = (key(document, 0), key(document, u64::MAX));
    let newest = history.range(first.as_slice()..=last.as_slice())?.next_back().transpose()?;
    let newest = newest.and_then(|(key, _)| key.value().last_chunk().copied());
    let next = newest.map_or(0, |sequence| u64::from_be_bytes(sequence) + 1);
    let row = Encoder::new(1).signed(change.time.0).text(&change.from).text(&change.to).finish();
    history.insert(key(document, next).as_slice(), row.as_slice())?;
    Ok(())
}

/// Removes all changes of a document and returns them, oldest first.
pub fn forget_changes(
    history: &mut Table<&'static [u8], &'static [u8]>,
    document: u64,
) -> Result<Vec<Change>, Error> {
    let changes = changes_of(history, document)?;
    let (first, last) = (key(document, 0), key(document, u64::MAX));
    history.retain_in(first.as_slice()..=last.as_slice(), |_, _| false)?;
    Ok(changes)
}

/// Returns all changes of a document, oldest first.
pub fn changes_of(
    history: &impl ReadableTable<&'static [u8], &'static [u8]>,
    document: u64,
) -> Result<Vec<Change>, Error> {
    let (first, last) = (key(document, 0), key(document, u64::MAX));
    let mut changes = Vec::new();
    for row in history.range(first.as_slice()..=last.as_slice())? {
        let row = row?.1;
        let mut row = Decoder::new("history", 1, row.value())?;
        let time = Timestamp(row.signed()?);
        changes.push(Change { time, from: row.text()?.to_owned(), to: row.text()?.to_owned() });
    }
    Ok(changes)
}

fn key(document: u64, sequence: u64) -> [u8; 16] {
    (u128::from(document) << 64 | u128::from(sequence)).to_be_bytes()
}
