//! What a text is made of, as numbers: weighted words for the simhash, and a sketch of its
//! shingles that tells how much of one text is in another.

use std::collections::HashMap;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::simhash::Fingerprint;
use crate::sketch::Sketch;
use crate::text::{Idf, normalize, words};

/// Name of the feature extractor, stored with the index: fingerprints of different extractors
/// must not be mixed.
pub const EXTRACTOR: &str = "tfidf-words-1";

/// How a text is made into features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// Words of the largest weight that vote in the fingerprint; at least 1.
    pub words_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { words_max: 256 }
    }
}

/// One word with its weight in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// The word, in normal form.
    pub word: String,
    /// Term count times IDF; greater than zero.
    pub weight: f32,
}

/// Everything that the dedup stage needs to know of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// 128-bit hash of the normalised text.
    pub hash: u128,
    /// Simhash of the weighted words.
    pub fingerprint: Fingerprint,
    /// Sketch of the word shingles.
    pub sketch: Sketch,
    /// Words of the text, repeated ones counted each time.
    pub words: u32,
}

/// Returns the features of a text, heaviest first; equal weights in the order of the words.
///
/// The weight is the count of the word times its IDF, of which the `words_max` largest are kept.
/// (The share of the word in the text would give the same fingerprint.)
///
/// Source: the text on simhash engineering (TF-IDF, top N).
#[must_use]
pub fn weighted_words(text: &str, config: Config) -> Vec<Feature> {
    let text = normalize(text);
    let heavy = heaviest(&words(&text), config);
    heavy.into_iter().map(|(word, weight)| Feature { word: word.to_owned(), weight }).collect()
}

/// Signs a text: one pass of segmentation serves fingerprint and sketch.
#[must_use]
pub fn sign(text: &str, config: Config) -> Signature {
    let text = normalize(text);
    let words = words(&text);
    let features = heaviest(&words, config);
    let hashes = features.iter().map(|(word, weight)| (xxh3_64(word.as_bytes()), *weight));
    Signature {
        hash: xxh3_128(text.as_bytes()),
        fingerprint: Fingerprint::of(hashes),
        sketch: Sketch::of(&words),
        words: u32::try_from(words.len()).unwrap_or(u32::MAX),
    }
}

fn heaviest<'a>(words: &[&'a str], config: Config) -> Vec<(&'a str, f32)> {
    let mut counts: HashMap<&str, u32> = HashMap::with_capacity(words.len() / 2);
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    let idf = Idf::built_in();
    let mut heavy: Vec<(&str, f32)> = counts
        .into_iter()
        .map(|(word, count)| (word, count as f32 * idf.of(word)))
        .filter(|(_, weight)| *weight > 0.0)
        .collect();
    heavy.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    heavy.truncate(config.words_max);
    heavy
}
