//! What a text is made of, as numbers: weighted words for the simhash, and a sketch of its
//! shingles that tells how much of one text is in another.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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
    let words = words(&text);
    let hashes = hashes(&words);
    let heavy = heaviest(&words, &hashes, config).into_iter();
    heavy.map(|(_, word, weight)| Feature { word: word.to_owned(), weight }).collect()
}

/// Signs a text: one pass of segmentation serves fingerprint and sketch.
#[must_use]
pub fn sign(text: &str, config: Config) -> Signature {
    let text = normalize(text);
    let words = words(&text);
    let hashes = hashes(&words);
    let heavy = heaviest(&words, &hashes, config).into_iter();
    Signature {
        hash: xxh3_128(text.as_bytes()),
        fingerprint: Fingerprint::of(heavy.map(|(hash, _, weight)| (hash, weight))),
        sketch: Sketch::of(&hashes),
        words: u32::try_from(words.len()).unwrap_or(u32::MAX),
    }
}

fn hashes(words: &[&str]) -> Vec<u64> {
    words.iter().map(|word| xxh3_64(word.as_bytes())).collect()
}

fn heaviest<'a>(words: &[&'a str], hashes: &[u64], config: Config) -> Vec<(u64, &'a str, f32)> {
    let mut counts: HashMap<u64, (u32, &'a str), Hashed> =
        HashMap::with_capacity_and_hasher(words.len() / 2, Hashed::default());
    for (word, hash) in words.iter().zip(hashes) {
        counts.entry(*hash).or_insert((0, word)).0 += 1;
    }
    let idf = Idf::built_in();
    let mut heavy: Vec<(u64, &str, f32)> = counts
        .into_iter()
        .map(|(hash, (count, word))| (hash, word, count as f32 * idf.of(word)))
        .filter(|(_, _, weight)| *weight > 0.0)
        .collect();
    let order =
        |a: &(u64, &str, f32), b: &(u64, &str, f32)| b.2.total_cmp(&a.2).then_with(|| a.1.cmp(b.1));
    if heavy.len() > config.words_max {
        heavy.select_nth_unstable_by(config.words_max, order);
        heavy.truncate(config.words_max);
    }
    heavy.sort_unstable_by(order);
    heavy
}

/// Keys that are hashes already need no further hashing.
type Hashed = BuildHasherDefault<Identity>;

#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
