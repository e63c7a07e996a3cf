//! What votes in a fingerprint, and with which weight.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_64;

use crate::text::{Idf, is_han, sentences, words};

use super::{Config, lecture, word_hash};

/// Which features of a text vote in its fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extractor {
    /// Words by count times IDF. Source: the text on simhash engineering.
    #[default]
    Tfidf,
    /// Words by (1 + ln count) times IDF: a word that is repeated often does not rule the rest.
    LogTfidf,
    /// Words by level: weight 1 for a word that stands once, up to the highest level. Source: the
    /// docId paper.
    Levels,
    /// Runs of words, each with weight 1.
    WordShingles,
    /// Runs of characters, blanks and punctuation left out, each with its count. No segmentation.
    CharShingles,
    /// Words of the longest sentence by count times IDF. Source: the text on near-duplicates of a
    /// public-opinion platform.
    LongestSentence,
    /// Chinese pairs of characters and other words, by the lecture's string hash and their count.
    /// No dictionary.
    LectureChars,
}

impl Extractor {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Tfidf,
        Self::LogTfidf,
        Self::Levels,
        Self::WordShingles,
        Self::CharShingles,
        Self::LongestSentence,
        Self::LectureChars,
    ];
}

impl fmt::Display for Extractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tfidf => "tfidf",
            Self::LogTfidf => "log-tfidf",
            Self::Levels => "levels",
            Self::WordShingles => "word-shingles",
            Self::CharShingles => "char-shingles",
            Self::LongestSentence => "longest-sentence",
            Self::LectureChars => "lecture-chars",
        })
    }
}

/// No extractor has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no feature extractor is called `{0}`")]
pub struct UnknownExtractor(pub String);

impl FromStr for Extractor {
    type Err = UnknownExtractor;

    fn from_str(name: &str) -> Result<Self, UnknownExtractor> {
        let found = Self::ALL.into_iter().find(|extractor| extractor.to_string() == name);
        found.ok_or_else(|| UnknownExtractor(name.to_owned()))
    }
}

/// One feature of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// The word or run, in normal form.
    pub text: String,
    /// Its hash, whose bits vote.
    pub hash: u64,
    /// Its weight, greater than zero.
    pub weight: f32,
}

/// A feature that still lies in its text.
pub(super) struct Found<'a> {
    text: &'a str,
    pub(super) hash: u64,
    pub(super) weight: f32,
}

impl From<Found<'_>> for Feature {
    fn from(found: Found<'_>) -> Self {
        Self { text: found.text.to_owned(), hash: found.hash, weight: found.weight }
    }
}

/// Returns the heaviest features of a normalised text, heaviest first.
pub(super) fn features<'a>(text: &'a str, config: &Config, idf: &Idf) -> Vec<Found<'a>> {
    let times_idf = |word: &str, count: u32| count as f32 * idf.of(word);
    match config.extractor {
        Extractor::Tfidf => weigh(words(text).into_iter().map(hashed), config, times_idf),
        Extractor::LogTfidf => weigh(words(text).into_iter().map(hashed), config, |word, count| {
            (1.0 + (count as f32).ln()) * idf.of(word)
        }),
        Extractor::Levels => weigh(words(text).into_iter().map(hashed), config, |_, count| {
            count.min(config.levels) as f32
        }),
        Extractor::WordShingles => {
            let words = words(text);
            let length = config.shingle_words.min(words.len());
            let runs = words.windows(length.max(1)).map(|run| hashed(between(text, run)));
            weigh(runs, config, |_, _| 1.0)
        }
        Extractor::CharShingles => {
            let runs = char_shingles(text, config.shingle_chars);
            weigh(runs.into_iter(), config, |_, count| count as f32)
        }
        Extractor::LongestSentence => {
            let longest = sentences(text).max_by_key(|sentence| sentence.chars().count());
            let words = words(longest.unwrap_or_default());
            weigh(words.into_iter().map(hashed), config, times_idf)
        }
        Extractor::LectureChars => {
            let hashed = |word| (word, lecture::string_hash(word));
            weigh(pairs(text).into_iter().map(hashed), config, |_, count| count as f32)
        }
    }
}

fn hashed(word: &str) -> (&str, u64) {
    (word, word_hash(word))
}

/// The stretch of `text` from the first of some of its words to the last.
fn between<'a>(text: &'a str, words: &[&'a str]) -> &'a str {
    let at = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    let (first, last) = (words[0], words[words.len() - 1]);
    &text[at(first)..at(last) + last.len()]
}

/// Runs of `length` letters and digits; what stands between them is left out of the hash.
fn char_shingles(text: &str, length: usize) -> Vec<(&str, u64)> {
    let letters: Vec<(usize, char)> =
        text.char_indices().filter(|(_, c)| c.is_alphanumeric()).collect();
    let length = length.min(letters.len()).max(1);
    let mut bytes = Vec::with_capacity(4 * length);
    let runs = letters.windows(length).map(|run| {
        bytes.clear();
        for (_, c) in run {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        let (first, (last, c)) = (run[0].0, run[length - 1]);
        (&text[first..last + c.len_utf8()], xxh3_64(&bytes))
    });
    runs.collect()
}

/// Pairs of neighbouring Chinese characters, and all other words as they are.
fn pairs(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let han = is_han(first);
            let end = rest.find(|c| is_han(c) != han).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            if han {
                let starts: Vec<usize> = part.char_indices().map(|(at, _)| at).collect();
                let end = |at: usize| starts.get(at + 2).copied().unwrap_or(part.len());
                let count = starts.len().saturating_sub(1).max(1);
                found.extend((0..count).map(|at| &part[starts[at]..end(at)]));
            } else {
                found.push(part);
            }
            rest = after;
        }
    }
    found
}

/// Counts the features, weighs each of them once and keeps the heaviest.
fn weigh<'a>(
    features: impl Iterator<Item = (&'a str, u64)>,
    config: &Config,
    weight: impl Fn(&str, u32) -> f32,
) -> Vec<Found<'a>> {
    let mut counts: HashMap<u64, (u32, &'a str), Hashed> =
        HashMap::with_capacity_and_hasher(features.size_hint().0 / 2, Hashed::default());
    for (text, hash) in features {
        counts.entry(hash).or_insert((0, text)).0 += 1;
    }
    let mut heavy: Vec<Found<'a>> = counts
        .into_iter()
        .map(|(hash, (count, text))| Found { text, hash, weight: weight(text, count) })
        .filter(|found| found.weight > 0.0)
        .collect();
    let order =
        |a: &Found<'_>, b: &Found<'_>| b.weight.total_cmp(&a.weight).then(a.hash.cmp(&b.hash));
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
