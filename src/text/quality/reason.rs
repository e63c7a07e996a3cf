//! Why a text is filtered.

/// Why a text is filtered. Those of published rules have the names that datatrove gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// It has no text.
    Empty,
    /// It is in a language that was not asked for.
    Language,
    /// Its language is less certain than asked for.
    UnsureLanguage,
    /// Too much of it is in other languages.
    LanguageShare,
    /// It has too few characters.
    TooShort,
    /// It has too many characters.
    TooLong,
    /// It has too few words.
    TooFewWords,
    /// It has too many words.
    TooManyWords,
    /// It has too many words of the list.
    BlockedWords,
    /// Too many of its paragraphs stood there before.
    RepeatedParagraphs,
    /// They have too many of its characters.
    RepeatedParagraphChars,
    /// Too many of its lines stood there before.
    RepeatedLines,
    /// They have too many of its characters.
    RepeatedLineChars,
    /// The most frequent run of so many words has too many of its characters.
    FrequentRun(u8),
    /// Repeated runs of so many words have too many of its characters.
    RepeatedRuns(u8),
    /// Gopher: too few words.
    GopherShort,
    /// Gopher: too many words.
    GopherLong,
    /// Gopher: words are too short on average.
    GopherShortWords,
    /// Gopher: words are too long on average.
    GopherLongWords,
    /// Gopher: too many `#`.
    GopherHashes,
    /// Gopher: too many ellipses.
    GopherEllipses,
    /// Gopher: too many lines begin with a bullet.
    GopherBullets,
    /// Gopher: too many lines end in an ellipsis.
    GopherEndEllipses,
    /// Gopher: too few words have a letter.
    GopherFewLetters,
    /// Gopher: too few of the most usual words.
    GopherFewUsualWords,
    /// C4: `lorem ipsum`.
    C4LoremIpsum,
    /// C4: a curly bracket.
    C4CurlyBracket,
    /// C4: too few sentences.
    C4FewSentences,
    /// FineWeb: too few lines end as sentences do.
    FinewebFewWholeLines,
    /// FineWeb: too many lines are short.
    FinewebShortLines,
    /// FineWeb: too many characters in lines that stood there before.
    FinewebRepeatedLines,
    /// FineWeb: too many line breaks for its words.
    FinewebLineBreaks,
}

impl Reason {
    /// Returns the name by which it is counted.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Language => "language",
            Self::UnsureLanguage => "unsure_language",
            Self::LanguageShare => "language_share",
            Self::TooShort => "too_short",
            Self::TooLong => "too_long",
            Self::TooFewWords => "too_few_words",
            Self::TooManyWords => "too_many_words",
            Self::BlockedWords => "blocked_words",
            Self::RepeatedParagraphs => "dup_para_frac",
            Self::RepeatedParagraphChars => "dup_para_char_frac",
            Self::RepeatedLines => "dup_line_frac",
            Self::RepeatedLineChars => "dup_line_char_frac",
            Self::FrequentRun(2) => "top_2_gram",
            Self::FrequentRun(3) => "top_3_gram",
            Self::FrequentRun(4) => "top_4_gram",
            Self::FrequentRun(_) => "top_n_gram",
            Self::RepeatedRuns(5) => "duplicated_5_n_grams",
            Self::RepeatedRuns(6) => "duplicated_6_n_grams",
            Self::RepeatedRuns(7) => "duplicated_7_n_grams",
            Self::RepeatedRuns(8) => "duplicated_8_n_grams",
            Self::RepeatedRuns(9) => "duplicated_9_n_grams",
            Self::RepeatedRuns(10) => "duplicated_10_n_grams",
            Self::RepeatedRuns(_) => "duplicated_n_grams",
            Self::GopherShort => "gopher_short_doc",
            Self::GopherLong => "gopher_long_doc",
            Self::GopherShortWords => "gopher_below_avg_threshold",
            Self::GopherLongWords => "gopher_above_avg_threshold",
            Self::GopherHashes => "gopher_too_many_hashes",
            Self::GopherEllipses => "gopher_too_many_ellipsis",
            Self::GopherBullets => "gopher_too_many_bullets",
            Self::GopherEndEllipses => "gopher_too_many_end_ellipsis",
            Self::GopherFewLetters => "gopher_below_alpha_threshold",
            Self::GopherFewUsualWords => "gopher_enough_stop_words",
            Self::C4LoremIpsum => "lorem_ipsum",
            Self::C4CurlyBracket => "curly_bracket",
            Self::C4FewSentences => "too_few_sentences",
            Self::FinewebFewWholeLines => "line_punct_ratio",
            Self::FinewebShortLines => "short_line_ratio",
            Self::FinewebRepeatedLines => "char_dup_ratio",
            Self::FinewebLineBreaks => "list_ratio",
        }
    }
}
