//! What votes in a fingerprint, and with which weight.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_64;

use crate::text::{Idf, Tokens, is_han};

use super::{Config, lecture, with_counts, word_hash};

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

impl Found<'_> {
    /// Heavier ones first; equal weights in the order of the hashes.
    pub(super) fn heavier(&self, other: &Self) -> Ordering {
        other.weight.total_cmp(&self.weight).then(self.hash.cmp(&other.hash))
    }
}

impl From<Found<'_>> for Feature {
    fn from(found: Found<'_>) -> Self {
        Self { text: found.text.to_owned(), hash: found.hash, weight: found.weight }
    }
}

/// Returns the heaviest features of a normalised text, in no particular order.
pub(super) fn features<'a>(tokens: &Tokens<'a>, config: &Config, idf: &Idf) -> Vec<Found<'a>> {
    let text = tokens.text;
    let times_idf = |word: &str, hash: u64, count: u32| count as f32 * idf.of(word, hash);
    match config.extractor {
        Extractor::Tfidf => weigh(&segmented(tokens), config, times_idf),
        Extractor::LogTfidf => weigh(&segmented(tokens), config, |word, hash, count| {
            (1.0 + (count as f32).ln()) * idf.of(word, hash)
        }),
        Extractor::Levels => {
            weigh(&segmented(tokens), config, |_, _, count| count.min(config.levels) as f32)
        }
        Extractor::WordShingles => {
            let words: Vec<&str> = segmented(tokens).into_iter().map(|(word, _)| word).collect();
            let length = config.shingle_words.min(words.len()).max(1);
            let runs = words.windows(length).map(|run| hashed(between(text, run)));
            weigh(&runs.collect::<Vec<_>>(), config, |_, _, _| 1.0)
        }
        Extractor::CharShingles => {
            weigh(&char_shingles(text, config.shingle_chars), config, |_, _, count| count as f32)
        }
        Extractor::LongestSentence => {
            let stretches = tokens.sentences().map(|sentence| tokens.stretch(sentence));
            let longest = stretches.max_by_key(|stretch| stretch.chars().count());
            let longest = Tokens::of(longest.unwrap_or_default());
            weigh(&segmented(&longest), config, times_idf)
        }
        Extractor::LectureChars => {
            let pairs = pairs(text).into_iter().map(|word| (word, lecture::string_hash(word)));
            weigh(&pairs.collect::<Vec<_>>(), config, |_, _, count| count as f32)
        }
    }
}

fn segmented<'a>(tokens: &Tokens<'a>) -> Vec<(&'a str, u64)> {
    let mut words = Vec::with_capacity(tokens.all.len());
    tokens.words(|word, hash| words.push((word, hash)));
    words
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
    features: &[(&'a str, u64)],
    config: &Config,
    weight: impl Fn(&str, u64, u32) -> f32,
) -> Vec<Found<'a>> {
    let mut heavy: Vec<Found<'a>> = with_counts(features.len(), |counts| {
        for (place, (_, hash)) in features.iter().enumerate() {
            counts.add(*hash, place as u32);
        }
        let found = counts.iter().map(|(hash, count, place)| {
            let text = features[place as usize].0;
            Found { text, hash, weight: weight(text, hash, count) }
        });
        found.filter(|found| found.weight > 0.0).collect()
    });
    if heavy.len() > config.words_max {
        heavy.select_nth_unstable_by(config.words_max, Found::heavier);
        heavy.truncate(config.words_max);
    }
    heavy
}
