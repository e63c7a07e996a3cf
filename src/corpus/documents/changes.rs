//! The order in which documents change, for those who follow: see [`crate::corpus::changes`].
//!
//! The rows of `change_log` and `change_places` lead from a sequence to a document, and back: each
//! document stands at its last change. A document that ends leaves its identifier in `ended_log`,
//! in the same sequence; of those, the newest are kept.

use crate::corpus::tables::{CHANGE_LOG, CHANGE_PLACES, ENDED_LOG};
use crate::store::{Error, META, Transaction, Update as _, View as _, Wide, row};

use super::DocId;

/// Name in `meta` of the last change.
pub const NEXT_CHANGE: &str = "next_change";

/// Name in `meta` of the last change that was forgotten.
pub const CHANGES_FROM: &str = "changes_from";

/// Documents that have ended and are remembered.
const ENDED_MAX: u64 = 1_000_000;

row! {
    /// A document that has ended.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EndedDocument: "ended", 1 to 1 {
        /// Its identifier.
        pub id: DocId = Wide;
        /// Identifier of the document that it is part of since; 0 for none.
        pub into: DocId = Wide;
    }
}

/// Moves a document to the end of those that have changed.
pub fn note_changed(batch: &mut impl Transaction, number: u64) -> Result<(), Error> {
    let place = batch.next_number(NEXT_CHANGE)?;
    if let Some(was) = batch.replace(CHANGE_PLACES, number, &place)? {
        batch.remove(CHANGE_LOG, was)?;
    }
    batch.put(CHANGE_LOG, place, &number)
}

/// Notes that a document has ended, or is part of another one since.
pub(super) fn note_ended(
    batch: &mut impl Transaction,
    number: u64,
    id: DocId,
    into: Option<DocId>,
) -> Result<(), Error> {
    if let Some(was) = batch.take(CHANGE_PLACES, number)? {
        batch.remove(CHANGE_LOG, was)?;
    }
    let place = batch.next_number(NEXT_CHANGE)?;
    batch.put(ENDED_LOG, place, &EndedDocument { id, into: into.unwrap_or(DocId(0)) })?;
    if batch.len(ENDED_LOG)? > ENDED_MAX {
        let first = batch.first(ENDED_LOG)?.map(|first| first.key()).transpose()?;
        if let Some(first) = first {
            batch.remove(ENDED_LOG, first)?;
            batch.put(META, CHANGES_FROM, &first.to_be_bytes().to_vec())?;
        }
    }
    Ok(())
}
