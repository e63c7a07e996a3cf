//! What votes in a fingerprint, and with which weight.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_64;

use crate::text::{Chinese, Idf, InDictionary, Segmenter, Tokens, is_han};

use super::fallback::DictionaryCoverage;
use super::{Config, HanFallback, lecture, with_counts, word_hash};

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
    /// The values of the fields that the settings declare, and nothing of the text.
    Enum,
}

impl Extractor {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Tfidf,
        Self::LogTfidf,
        Self::Levels,
        Self::WordShingles,
        Self::CharShingles,
        Self::LongestSentence,
        Self::LectureChars,
        Self::Enum,
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
            Self::Enum => "enum",
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

impl Feature {
    /// Heavier ones first; equal weights in the order of the hashes.
    pub(super) fn heavier(&self, other: &Self) -> Ordering {
        other.weight.total_cmp(&self.weight).then(self.hash.cmp(&other.hash))
    }
}

/// A feature that still lies in its text.
#[derive(Clone, Copy)]
pub(super) struct FeatureRef<'a> {
    text: &'a str,
    pub(super) hash: u64,
    pub(super) weight: f32,
}

impl FeatureRef<'_> {
    fn heavier(&self, other: &Self) -> Ordering {
        other.weight.total_cmp(&self.weight).then(self.hash.cmp(&other.hash))
    }
}

impl From<FeatureRef<'_>> for Feature {
    fn from(found: FeatureRef<'_>) -> Self {
        Self { text: found.text.to_owned(), hash: found.hash, weight: found.weight }
    }
}

/// What stands in a text, with its hash.
type HashedTerms<'a> = Vec<(&'a str, u64)>;

/// What stands in a text, repeated or not: each has a hash.
trait Terms<'a> {
    fn count(&self) -> usize;
    fn hash(&self, at: usize) -> u64;
    fn text(&self, at: usize) -> &'a str;
}

impl<'a> Terms<'a> for HashedTerms<'a> {
    fn count(&self) -> usize {
        self.len()
    }

    fn hash(&self, at: usize) -> u64 {
        self[at].1
    }

    fn text(&self, at: usize) -> &'a str {
        self[at].0
    }
}

/// The words of a text of which each token is one: most need not be looked at.
impl<'a> Terms<'a> for &Tokens<'a> {
    fn count(&self) -> usize {
        self.all.len()
    }

    fn hash(&self, at: usize) -> u64 {
        self.all[at].hash
    }

    fn text(&self, at: usize) -> &'a str {
        self.text_of(&self.all[at])
    }
}

/// How texts are made into features, and what that needs.
#[derive(Clone, Copy)]
pub(super) struct Extraction<'s> {
    pub config: &'s Config,
    pub idf: &'s Idf,
    pub segmenter: &'s Segmenter,
}

impl Extraction<'_> {
    /// Returns the heaviest features of a normalised text, in no particular order.
    pub(super) fn features<'a>(self, tokens: &Tokens<'a>) -> Vec<FeatureRef<'a>> {
        let (text, config) = (tokens.text, self.config);
        match config.extractor {
            Extractor::LongestSentence => {
                let stretches = tokens.sentences().map(|sentence| tokens.stretch(sentence));
                let longest = stretches.max_by_key(|stretch| stretch.chars().count());
                self.of_words(&Tokens::of(longest.unwrap_or_default()))
            }
            Extractor::CharShingles => {
                let runs = char_shingles(text, config.shingle_chars);
                weigh(&runs, config, |_, _, count| count as f32)
            }
            Extractor::LectureChars => {
                let pairs = pairs(text).into_iter().map(|word| (word, lecture::string_hash(word)));
                weigh(&pairs.collect::<Vec<_>>(), config, |_, _, count| count as f32)
            }
            Extractor::Enum => Vec::new(),
            _ => self.of_words(tokens),
        }
    }

    /// Returns the number of words of a text, repeated ones counted each time.
    pub(super) fn words(self, tokens: &Tokens<'_>) -> usize {
        let mut words = 0;
        let chinese = match self.config.han_fallback {
            HanFallback::Always => Chinese::Pairs,
            HanFallback::Auto | HanFallback::Never => Chinese::Words(self.segmenter),
        };
        tokens.words_by(chinese, |_, _| words += 1);
        words
    }

    /// Features of words, or of pairs of Chinese characters, or of both.
    fn of_words<'a>(self, tokens: &Tokens<'a>) -> Vec<FeatureRef<'a>> {
        if self.config.han_fallback == HanFallback::Always {
            return self.by_pairs(tokens);
        }
        let (words, served) = self.by_words(tokens);
        let share = match self.config.han_fallback {
            HanFallback::Never => 0.0,
            _ => served.pairs(),
        };
        if share <= 0.0 {
            return words;
        }
        let scaled = |all: Vec<FeatureRef<'a>>, by: f32| {
            all.into_iter().map(move |found| FeatureRef { weight: found.weight * by, ..found })
        };
        let pairs = scaled(self.by_pairs(tokens), share);
        if share >= 1.0 {
            return pairs.collect();
        }
        joined(scaled(words, 1.0 - share).chain(pairs).collect(), self.config.words_max)
    }

    /// Features of words, and how much of the Chinese the dictionary serves.
    fn by_words<'a>(self, tokens: &Tokens<'a>) -> (Vec<FeatureRef<'a>>, DictionaryCoverage) {
        if tokens.all.iter().all(|token| !token.single) {
            return self.by_terms(tokens.text, &tokens);
        }
        let mut words = Vec::with_capacity(tokens.all.len());
        tokens.words_by(Chinese::Words(self.segmenter), |word, hash| words.push((word, hash)));
        self.by_terms(tokens.text, &words)
    }

    /// Does the same with the words of the text.
    fn by_terms<'a>(
        self,
        text: &'a str,
        words: &impl Terms<'a>,
    ) -> (Vec<FeatureRef<'a>>, DictionaryCoverage) {
        let mut served = DictionaryCoverage::default();
        let mut serve = |word: &str, hash: u64, count: u32, known: InDictionary| {
            let added = known == InDictionary::No && self.segmenter.has_added(hash);
            served.add(word, if added { InDictionary::Yes } else { known }, count);
        };
        // Nobody is asked for what does not matter.
        let auto = self.config.han_fallback == HanFallback::Auto;
        let found = match self.config.extractor {
            Extractor::WordShingles => {
                if auto {
                    tally(words, |place, hash, count| {
                        let word = words.text(place);
                        serve(word, hash, count, InDictionary::of(word, hash));
                    });
                }
                self.shingles(text, (0..words.count()).map(|at| words.text(at)), word_hash)
            }
            Extractor::Levels => weigh(words, self.config, |word, hash, count| {
                if auto {
                    serve(word, hash, count, InDictionary::of(word, hash));
                }
                self.weight(1.0, count)
            }),
            _ => weigh(words, self.config, |word, hash, count| {
                let rarity = self.idf.rarity(word, hash);
                serve(word, hash, count, rarity.known);
                self.weight(rarity.idf, count)
            }),
        };
        (found, served)
    }

    /// Features of pairs of Chinese characters, and of the words of other scripts. Each pair is as
    /// rare as a word that no table has.
    fn by_pairs<'a>(self, tokens: &Tokens<'a>) -> Vec<FeatureRef<'a>> {
        let mut all = Vec::with_capacity(tokens.all.len());
        tokens.words_by(Chinese::Pairs, |word, hash| {
            all.push((word, if is_chinese(word) { lecture::string_hash(word) } else { hash }));
        });
        if self.config.extractor == Extractor::WordShingles {
            let hash = |run: &str| {
                let chinese = run.chars().all(is_han);
                if chinese { lecture::string_hash(run) } else { word_hash(run) }
            };
            return self.shingles(tokens.text, all.into_iter().map(|(word, _)| word), hash);
        }
        let median = self.idf.median();
        weigh(&all, self.config, |word, hash, count| {
            let idf = if is_chinese(word) { median } else { self.idf.of(word, hash) };
            self.weight(idf, count)
        })
    }

    /// The weight of a word by its rarity and its count.
    fn weight(self, idf: f32, count: u32) -> f32 {
        match self.config.extractor {
            Extractor::LogTfidf => (1.0 + (count as f32).ln()) * idf,
            Extractor::Levels => count.min(self.config.levels) as f32,
            _ => count as f32 * idf,
        }
    }

    /// Runs of words, as they stand in the text.
    fn shingles<'a>(
        self,
        text: &'a str,
        words: impl Iterator<Item = &'a str>,
        hash: impl Fn(&str) -> u64,
    ) -> Vec<FeatureRef<'a>> {
        let words: Vec<&str> = words.collect();
        let length = self.config.shingle_words.min(words.len()).max(1);
        let runs = words.windows(length).map(|run| between(text, run));
        let runs: HashedTerms<'_> = runs.map(|run| (run, hash(run))).collect();
        weigh(&runs, self.config, |_, _, _| 1.0)
    }
}

/// Tells whether a word, or a pair of characters, is Chinese: no word is so in part.
fn is_chinese(word: &str) -> bool {
    word.chars().next().is_some_and(is_han)
}

/// Adds up what stands in it twice, and keeps the heaviest.
fn joined(mut all: Vec<FeatureRef<'_>>, most: usize) -> Vec<FeatureRef<'_>> {
    all.sort_unstable_by_key(|found| found.hash);
    all.dedup_by(|next, kept| {
        let same = next.hash == kept.hash;
        kept.weight += if same { next.weight } else { 0.0 };
        same
    });
    all.sort_unstable_by(FeatureRef::heavier);
    all.truncate(most);
    all
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

/// A feature while the heaviest are chosen. The weight is above zero, so that its bits are in the
/// order of its values.
struct Chosen {
    weight: u32,
    place: u32,
    hash: u64,
}

/// Counts the features, weighs each of them once and keeps the heaviest.
fn weigh<'a>(
    features: &impl Terms<'a>,
    config: &Config,
    mut weight: impl FnMut(&str, u64, u32) -> f32,
) -> Vec<FeatureRef<'a>> {
    let mut heavy = Vec::with_capacity(features.count());
    tally(features, |place, hash, count| {
        let weight = weight(features.text(place), hash, count);
        if weight > 0.0 {
            heavy.push(Chosen { weight: weight.to_bits(), place: place as u32, hash });
        }
    });
    if heavy.len() > config.words_max {
        // The order of `FeatureRef::heavier`.
        let order = |one: &Chosen, other: &Chosen| {
            other.weight.cmp(&one.weight).then(one.hash.cmp(&other.hash))
        };
        heavy.select_nth_unstable_by(config.words_max, order);
        heavy.truncate(config.words_max);
    }
    let feature = |chosen: &Chosen| FeatureRef {
        text: features.text(chosen.place as usize),
        hash: chosen.hash,
        weight: f32::from_bits(chosen.weight),
    };
    heavy.iter().map(feature).collect()
}

/// Calls `each` with the first place of each distinct feature, its hash and its count.
fn tally<'a>(features: &impl Terms<'a>, mut each: impl FnMut(usize, u64, u32)) {
    with_counts(features.count(), |counts| {
        for place in 0..features.count() {
            counts.add(features.hash(place), place as u32);
        }
        for (hash, count, place) in counts.iter() {
            each(place as usize, hash, count);
        }
    });
}
