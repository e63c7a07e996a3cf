//! Text before it is compared: normal form, sentences, words, and how much of it there is.

mod base64;
mod distinct;
mod idf;
mod normal;
mod segmenter;
mod tokens;
mod usual;
mod words;

pub use base64::decode_base64;
pub use distinct::Counts;
pub use idf::{BadIdf, DocumentFrequencies, Idf, Known, Rarity};
pub use normal::{Normal, normalize, normalize_as, simplified};
pub use segmenter::{BadDictionary, Segmenter};
pub use tokens::{Chinese, Token, Tokens};
pub use usual::USUAL_WORDS;
pub use words::{is_han, words};
