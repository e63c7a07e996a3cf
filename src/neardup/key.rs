//! The kinds of keys.

/// By which key a copy was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The first copy of its document.
    First,
    /// The normalised main text is the same.
    Exact,
    /// The title is near, and the texts confirm it.
    Title,
    /// The main text is near, and the texts confirm it.
    Near,
    /// They share one of their longest sentences, and the texts confirm it.
    Sentence,
    /// They share runs of their sketches, and the texts confirm it.
    Shingles,
    /// Its document was merged into this one.
    Merged,
}

impl Key {
    /// Takes back a stored code.
    #[must_use]
    pub fn from_code(code: u64) -> Option<Self> {
        const ALL: [Key; 7] = [
            Key::First,
            Key::Exact,
            Key::Title,
            Key::Near,
            Key::Sentence,
            Key::Shingles,
            Key::Merged,
        ];
        usize::try_from(code).ok().and_then(|at| ALL.get(at)).copied()
    }

    /// Returns the word for it in output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Exact => "exact_content",
            Self::Title => "near_title",
            Self::Near => "near_content",
            Self::Sentence => "long_sentence",
            Self::Shingles => "shingles",
            Self::Merged => "merged",
        }
    }
}
