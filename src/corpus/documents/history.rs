//! Which copy of a document was canonical, and until when.

use crate::base::clock::Timestamp;
use crate::corpus::tables::HISTORY;
use crate::store::{Error, Signed, Text, Transaction, Update as _, View, row};

row! {
    /// A change of the canonical copy.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CanonicalChange: "history", 1 to 1 {
        /// When it changed.
        pub time: Timestamp = Signed;
        /// URL of the copy that was canonical.
        pub from: String = Text;
        /// URL of the copy that is canonical since.
        pub to: String = Text;
    }
}

/// Adds a change to the history of a document.
pub fn note_change(
    batch: &mut impl Transaction,
    document: u64,
    change: &CanonicalChange,
) -> Result<(), Error> {
    let next = match batch.under(HISTORY, document)?.next_back().transpose()? {
        Some(newest) => newest.key()?.1 + 1,
        None => 0,
    };
    batch.put(HISTORY, (document, next), change)
}

/// Removes all changes of a document and returns them, oldest first.
pub fn forget_changes(
    batch: &mut impl Transaction,
    document: u64,
) -> Result<Vec<CanonicalChange>, Error> {
    let changes = changes_of(batch, document)?;
    batch.clear(HISTORY, (document, 0)..=(document, u64::MAX))?;
    Ok(changes)
}

/// Returns all changes of a document, oldest first.
pub fn changes_of(view: &impl View, document: u64) -> Result<Vec<CanonicalChange>, Error> {
    view.under(HISTORY, document)?.map(|entry| Ok(entry?.row()?)).collect()
}
