//! How a text is made into features, and which settings cannot be.

use super::{ARTICLE_FIELDS, Enumeration, Extractor, HanFallback};

/// Largest weight of an enumeration.
pub(super) const WEIGHT_MAX: f32 = 1e6;

/// How a text is made into features.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// What votes in the fingerprint.
    pub extractor: Extractor,
    /// Features of the largest weight that vote; at least 1.
    pub words_max: usize,
    /// Words of a word shingle, at least 1.
    pub shingle_words: usize,
    /// Characters of a character shingle, at least 1.
    pub shingle_chars: usize,
    /// Levels of weight of the extractor `levels`, at least 1.
    pub levels: u32,
    /// Weight of the language as one more feature; 0 leaves it out. It is an enumeration that is
    /// built in.
    pub language_weight: f32,
    /// Traditional Chinese characters count as their simplified forms.
    pub simplify: bool,
    /// Whether pairs of characters stand for words in Chinese that the dictionary does not serve.
    pub han_fallback: HanFallback,
    /// File of words that are added to the dictionary by which Chinese is cut; empty for none.
    pub dictionary_file: String,
    /// File with document frequencies made by `crawl idf`; empty for the built-in table.
    pub idf_file: String,
    /// Fields whose values vote beside the words, or alone with the extractor `enum`.
    pub enums: Vec<Enumeration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            extractor: Extractor::default(),
            words_max: 256,
            shingle_words: 3,
            shingle_chars: 4,
            levels: 5,
            language_weight: 0.0,
            simplify: true,
            han_fallback: HanFallback::default(),
            dictionary_file: String::new(),
            idf_file: String::new(),
            enums: Vec::new(),
        }
    }
}

/// A setting of the features that cannot be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number must be larger.
    #[error("{name} is {value}: it must be at least 1")]
    TooSmall {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: usize,
    },
    /// The weight of the language is no weight.
    #[error("language_weight is {0}: it must be a number from 0 to 1,000,000")]
    Weight(f32),
    /// An enumeration cannot be.
    #[error("enums, field `{field}`: {detail}")]
    Enum {
        /// Name of the field.
        field: String,
        /// What is wrong.
        detail: String,
    },
    /// The extractor has nothing to work on.
    #[error("the extractor `enum` needs a field in `enums` with a weight above 0")]
    NoEnums,
    /// The articles that are fingerprinted have no such field.
    #[error("enums, field `{field}`: articles have only {}", ARTICLE_FIELDS.join(", "))]
    NoField {
        /// Name of the field.
        field: String,
    },
    /// The table of document frequencies cannot be read.
    #[error(transparent)]
    Idf(#[from] crate::text::BadIdf),
    /// The dictionary cannot be read.
    #[error(transparent)]
    Dictionary(#[from] crate::text::BadDictionary),
}

impl Config {
    /// Returns the first number that cannot be.
    pub(super) fn check(&self) -> Result<(), Error> {
        for (name, value) in [
            ("words_max", self.words_max),
            ("shingle_words", self.shingle_words),
            ("shingle_chars", self.shingle_chars),
            ("levels", self.levels as usize),
        ] {
            if value == 0 {
                return Err(Error::TooSmall { name, value });
            }
        }
        if !(0.0..=WEIGHT_MAX).contains(&self.language_weight) {
            return Err(Error::Weight(self.language_weight));
        }
        Ok(())
    }
}
