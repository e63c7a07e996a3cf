//! Changes of the index of fingerprints.

use crate::text::simhash::Fingerprint;

/// Which fingerprint of a page it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Of the main text.
    Content,
    /// Of the title.
    Title,
}

/// One change of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Which fingerprint.
    pub field: Field,
    /// The fingerprint.
    pub fingerprint: Fingerprint,
    /// Number of its content.
    pub content: u64,
    /// It is removed, not added.
    pub removed: bool,
}
