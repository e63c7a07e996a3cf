//! What a check of a corpus of many workers has found.

use serde::Serialize;

/// Findings that are listed in words; the others are counted.
const LISTED_MAX: usize = 100;

/// What a check of a corpus of many workers found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedChecked {
    /// Documents that were looked at.
    pub documents: u64,
    /// Copies that were looked at.
    pub copies: u64,
    /// Postings that were looked at.
    pub postings: u64,
    /// Postings that lead to no document: a worker died between posting and settling, or the
    /// document was lost. A look-up of the same key costs a step more.
    pub dead_postings: u64,
    /// Documents that are not found by all of their keys: copies that came since may have become
    /// documents of their own.
    pub unfound: u64,
    /// Keys that these lack.
    pub missing_keys: u64,
    /// Articles that were announced and are past their deadline.
    pub late: u64,
    /// Documents that are locked by a change that nobody ends.
    pub locked: u64,
    /// Changes that nobody ends.
    pub changes: u64,
    /// Documents whose canonical copy has changed and that are not noted for a second look. Those
    /// with unsure matches are noted by every repair.
    pub unnoted: u64,
    /// Documents that count their copies wrongly, or texts that do.
    pub miscounted: u64,
    /// Copies without a text, or without a document.
    pub orphans: u64,
    /// Documents whose rows cannot be read: a file is missing or damaged. Never mended, so that a
    /// folder that is away for a while costs nothing.
    pub unreadable: u64,
    /// Findings that were mended.
    pub mended: u64,
    /// The first hundred findings, in words.
    pub listed: Vec<String>,
}

impl SharedChecked {
    /// Returns how much was found in all.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.by_kind().iter().map(|(_, count)| count).sum()
    }

    /// Returns how much of each kind was found, with words for it.
    #[must_use]
    pub fn by_kind(&self) -> [(&'static str, u64); 9] {
        [
            ("postings that lead nowhere", self.dead_postings),
            ("documents that lack keys", self.unfound),
            ("announced articles past their deadline", self.late),
            ("documents that stay locked", self.locked),
            ("changes that nobody ends", self.changes),
            ("documents not noted for their second look", self.unnoted),
            ("documents that count wrongly", self.miscounted),
            ("copies without text or document", self.orphans),
            ("documents that cannot be read", self.unreadable),
        ]
    }

    pub(super) fn list(&mut self, text: impl FnOnce() -> String) {
        if self.listed.len() < LISTED_MAX {
            self.listed.push(text());
        }
    }
}
