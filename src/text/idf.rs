//! How rare words are: inverse document frequencies, built in or trained from a corpus.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jieba_rs::{KeywordExtract, KeywordExtractConfig, TfIdf};
use xxhash_rust::xxh3::xxh3_64;

use super::segmenter::BUILT_IN;
use super::usual::is_usual;
use super::{Chinese, Normal, Segmenter, Tokens, is_han, normalize_as};

/// Words remembered by each thread with their IDF; then the memory starts anew.
const CACHE_MAX: usize = 400_000;

/// First line of a file of document frequencies: what it is, then the number of documents.
const HEADER: &str = "uniqcrawl idf 1 documents";

/// Inverse document frequencies.
///
/// The built-in table is jieba's: its median for unknown words, and zero for stop words. A trained
/// one counts in how many documents of a corpus a word stands.
///
/// Source: jieba's `idf.txt`; the median rule is that of the text on simhash engineering.
#[derive(Debug, Default)]
pub struct Idf(Option<Trained>);

#[derive(Debug)]
struct Trained {
    by_hash: HashMap<u64, f32>,
    median: f32,
    digest: u64,
}

/// A file of document frequencies that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadIdf {
    /// It cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// A line is not what it should be.
    #[error("{}, line {line}: {detail}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        detail: &'static str,
    },
}

/// Median of the built-in table: what a word has that it does not know.
const MEDIAN_IDF: f32 = 11.954_767;

/// jieba's table, loaded at the first Chinese word: a crawl of other scripts never needs it.
static TABLE: LazyLock<TfIdf> = LazyLock::new(|| {
    let config = KeywordExtractConfig::builder().min_keyword_length(1).use_hmm(false).build();
    let mut table = TfIdf::default();
    *table.config_mut() = config;
    table
});

thread_local! {
    /// The IDF is not a number where only the dictionary was asked.
    static CACHE: RefCell<HashMap<u64, Rarity, BuildHasherDefault<IdentityHasher>>> =
        RefCell::default();
}

/// How rare a word is, and whether it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rarity {
    /// Its inverse document frequency: 0 for a usual word.
    pub idf: f32,
    /// What the dictionary knows of it.
    pub(crate) known: InDictionary,
}

/// What the built-in dictionary knows of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InDictionary {
    /// It is not Chinese.
    Foreign,
    /// It is Chinese, and in the dictionary.
    Yes,
    /// It is Chinese, and not in the dictionary.
    No,
}

/// Keys that are hashes already need no further hashing.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
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

impl Idf {
    /// Returns the built-in table.
    #[must_use]
    pub fn built_in() -> Self {
        Self(None)
    }

    /// Reads a table that was made by [`DocumentFrequencies`].
    pub fn read(path: &Path) -> Result<Self, BadIdf> {
        let text = fs::read_to_string(path)
            .map_err(|source| BadIdf::Io { path: path.to_owned(), source })?;
        let bad = |line, detail| BadIdf::Line { path: path.to_owned(), line, detail };
        let mut lines = text.lines().enumerate();
        let head = lines.next().and_then(|(_, line)| line.strip_prefix(HEADER));
        let documents: f64 = head
            .and_then(|count| count.trim().parse().ok())
            .ok_or_else(|| bad(1, "this is no table of document frequencies"))?;
        let mut by_hash = HashMap::new();
        for (at, line) in lines {
            let (word, count) =
                line.split_once('\t').ok_or_else(|| bad(at + 1, "there is no tab in it"))?;
            let count: f64 = count.parse().map_err(|_| bad(at + 1, "its count is no number"))?;
            by_hash
                .insert(xxh3_64(word.as_bytes()), (documents / (1.0 + count)).ln().max(0.0) as f32);
        }
        let mut all: Vec<f32> = by_hash.values().copied().collect();
        all.sort_unstable_by(f32::total_cmp);
        let median = all.get(all.len() / 2).copied().unwrap_or(MEDIAN_IDF);
        Ok(Self(Some(Trained { by_hash, median, digest: xxh3_64(text.as_bytes()) })))
    }

    /// Returns the digest of a trained table; none for the built-in one.
    #[must_use]
    pub(crate) fn digest(&self) -> Option<u64> {
        self.0.as_ref().map(|trained| trained.digest)
    }

    /// Returns the IDF of a word that the table does not have: its median.
    #[must_use]
    pub fn median(&self) -> f32 {
        self.0.as_ref().map_or(MEDIAN_IDF, |trained| trained.median)
    }

    /// Returns the IDF of a normalised word: the table's median if it does not have the word,
    /// 0 if it is a usual word of its language. The built-in table is of Chinese words: all others
    /// have the median.
    ///
    /// `hash` is the [`xxh3_64`] of the word.
    #[must_use]
    pub fn of(&self, word: &str, hash: u64) -> f32 {
        self.rarity(word, hash).idf
    }

    /// Returns the same with what the dictionary knows of the word: both are asked for at once,
    /// because what was found last time is remembered.
    #[must_use]
    pub(crate) fn rarity(&self, word: &str, hash: u64) -> Rarity {
        let chinese = !word.is_ascii() && word.chars().any(is_han);
        if is_usual(hash) {
            return Rarity {
                idf: 0.0,
                known: if chinese { InDictionary::Yes } else { InDictionary::Foreign },
            };
        }
        let built_in = if chinese {
            remembered(word, hash)
        } else {
            Rarity { idf: MEDIAN_IDF, known: InDictionary::Foreign }
        };
        let Some(trained) = &self.0 else { return built_in };
        let idf = trained.by_hash.get(&hash).copied().unwrap_or(trained.median);
        Rarity { idf, ..built_in }
    }
}

impl InDictionary {
    /// Asks the built-in dictionary for a normalised word, given with its [`xxh3_64`].
    #[must_use]
    pub(crate) fn of(word: &str, hash: u64) -> Self {
        if word.is_ascii() || !word.chars().any(is_han) {
            return Self::Foreign;
        }
        if let Some(rarity) = recalled(hash) {
            return rarity.known;
        }
        let known = asked(word);
        remember(hash, Rarity { idf: f32::NAN, known });
        known
    }
}

fn asked(word: &str) -> InDictionary {
    if BUILT_IN.has_word(word) { InDictionary::Yes } else { InDictionary::No }
}

/// What the built-in table and dictionary say of a Chinese word.
fn remembered(word: &str, hash: u64) -> Rarity {
    if let Some(rarity) = recalled(hash).filter(|rarity| !rarity.idf.is_nan()) {
        return rarity;
    }
    let rarity = Rarity { idf: sole_weight(word).unwrap_or(MEDIAN_IDF), known: asked(word) };
    remember(hash, rarity);
    rarity
}

fn recalled(hash: u64) -> Option<Rarity> {
    CACHE.with_borrow(|cache| cache.get(&hash).copied())
}

fn remember(hash: u64, rarity: Rarity) {
    CACHE.with_borrow_mut(|cache| {
        if cache.len() >= CACHE_MAX {
            cache.clear();
        }
        cache.insert(hash, rarity);
    });
}

/// In how many documents of a corpus each word stands.
#[derive(Debug, Default)]
pub struct DocumentFrequencies {
    segmenter: Segmenter,
    normal: Normal,
    documents: u64,
    words: HashMap<String, u32>,
}

impl DocumentFrequencies {
    /// Begins with no documents, whose Chinese will be cut by this segmenter.
    #[must_use]
    pub fn new(segmenter: Segmenter, normal: Normal) -> Self {
        Self { segmenter, normal, ..Self::default() }
    }

    /// Counts the words of one document, each once.
    pub fn add(&mut self, text: &str) {
        let text = normalize_as(text, self.normal);
        let mut words = Vec::with_capacity(text.len() / 6);
        let chinese = Chinese::Words(&self.segmenter);
        Tokens::of(&text).words_by(chinese, |word, _| words.push(word));
        words.sort_unstable();
        words.dedup();
        self.documents += 1;
        for word in words {
            match self.words.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(self.words.insert(word.to_owned(), 1)),
            }
        }
    }

    /// Returns the number of documents and of distinct words.
    #[must_use]
    pub fn counts(&self) -> (u64, usize) {
        (self.documents, self.words.len())
    }

    /// Returns the table, commonest word first: a header with the number of documents, then one
    /// line a word with a tab and the number of documents that have it. Words of fewer than
    /// `count_min` documents are left out.
    #[must_use]
    pub fn table(&self, count_min: u32) -> String {
        let mut rows: Vec<(&str, u32)> = self
            .words
            .iter()
            .map(|(word, count)| (word.as_str(), *count))
            .filter(|(_, count)| *count >= count_min)
            .collect();
        rows.sort_unstable_by_key(|(word, count)| (std::cmp::Reverse(*count), *word));
        let mut text = format!("{HEADER} {}\n", self.documents);
        for (word, count) in rows {
            let _ = writeln!(text, "{word}\t{count}");
        }
        text
    }
}

/// The table can only be asked for the keywords of a text. A text of one word has a term
/// frequency of 1, so that the weight of its only keyword is that word's IDF.
fn sole_weight(word: &str) -> Option<f32> {
    match TABLE.extract_keywords(&BUILT_IN, word, 2, Vec::new()).as_slice() {
        [only] if only.keyword == word => Some(only.weight as f32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_that_of_the_table() {
        // A word that no table has weighs the median.
        let unknown = sole_weight("zzqx").unwrap();
        assert!((unknown - MEDIAN_IDF).abs() < 1e-5, "{unknown}");
    }

    #[test]
    fn rare_words_weigh_more_than_usual_ones() {
        let of = |word: &str| Idf::built_in().of(word, xxh3_64(word.as_bytes()));
        assert!(of("去重") >= of("系统") && of("系统") > of("的"));
        assert!((of("unheard") - MEDIAN_IDF).abs() < f32::EPSILON);
        assert!(of("the").abs() < f32::EPSILON);
    }
}
