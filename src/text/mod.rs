//! What is told of a text: its normal form, sentences and words; from these features with weights,
//! and from those fingerprints and sketches.
//!
//! In: text. Out: words, weights ([`Idf`]), a [`features::ArticleKeys`] article. Pure, but for the
//! dictionaries that settings name, which are read once.

pub mod features;
pub mod quality;
pub mod simhash;
pub mod sketch;

mod distinct;
mod idf;
mod language;
mod normal;
mod segmenter;
mod tokens;
mod usual;
mod word_hash;
mod words;

pub(crate) use distinct::HashCounts;
pub(crate) use idf::InDictionary;
pub use idf::{BadIdf, DocumentFrequencies, Idf, Rarity};
pub(crate) use language::{guess_language, language_of};
pub(crate) use normal::tidy_prefix;
pub use normal::{Normal, normalize, normalize_as, simplified};
pub use segmenter::{BadDictionary, Segmenter};
pub use tokens::{Chinese, Token, Tokens};
pub(crate) use usual::USUAL_WORDS;
pub(crate) use word_hash::EightBytes;
pub use words::words;
pub(crate) use words::{is_alphanumeric, is_han};
