//! Which fingerprints an article has.

/// Which fingerprint of a page it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Of the main text.
    Content,
    /// Of the title.
    Title,
}
