//! Cutting Chinese into words: by jieba's dictionary, and by one of the operator's own.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use jieba_rs::Jieba;
use xxhash_rust::xxh3::xxh3_64;

use super::{Normal, is_han, normalize_as};

/// Largest file of a dictionary, in bytes: some three million words.
const FILE_BYTES_MAX: usize = 64 << 20;

/// Largest frequency of a word: no word of jieba's dictionary has a hundredth of it, and a few
/// thousand of them do not overflow the sum.
const FREQUENCY_MAX: u64 = 1_000_000_000;

/// jieba with its built-in dictionary: 5 MB, loaded at the first Chinese text.
pub(super) static BUILT_IN: LazyLock<Jieba> = LazyLock::new(Jieba::new);

/// Cuts Chinese into words. Clones share their dictionary.
#[derive(Debug, Clone, Default)]
pub struct Segmenter(Option<Arc<Extended>>);

/// The built-in dictionary with words of the operator.
#[derive(Debug)]
struct Extended {
    jieba: Jieba,
    /// Hashes of the operator's words.
    added: HashSet<u64>,
    digest: u64,
}

/// A dictionary that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadDictionary {
    /// It cannot be read.
    #[error("cannot read the dictionary {}: {source}", path.display())]
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
    /// The file is too large.
    #[error("{} has {bytes} bytes, more than the {FILE_BYTES_MAX} of a dictionary", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: usize,
    },
}

impl Segmenter {
    /// Reads words that are added to the built-in dictionary: UTF-8, one line a word, with its
    /// frequency and its tag if they are known (`word [frequency] [tag]`, as jieba has it). A word
    /// without frequency gets the least one with which it is cut as one; the frequency 0 removes a
    /// word. Tags are read and not used. Empty lines are skipped.
    ///
    /// The words are brought into the normal form of the texts. Only runs of Chinese are cut, so
    /// that a word with other characters has no effect. Takes about 100 ms for the built-in
    /// dictionary, which is then in memory a second time.
    ///
    /// # Errors
    ///
    /// Names the file, and the line that is at fault.
    pub fn read(path: &Path, normal: Normal) -> Result<Self, BadDictionary> {
        let bytes =
            fs::read(path).map_err(|source| BadDictionary::Io { path: path.to_owned(), source })?;
        if bytes.len() > FILE_BYTES_MAX {
            return Err(BadDictionary::TooLarge { path: path.to_owned(), bytes: bytes.len() });
        }
        let mut jieba = Jieba::new();
        let mut added = HashSet::new();
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let bad = |detail| BadDictionary::Line { path: path.to_owned(), line: at + 1, detail };
            let line = std::str::from_utf8(line).map_err(|_| bad("it is not UTF-8"))?;
            let line = if at == 0 { line.trim_start_matches('\u{FEFF}') } else { line };
            let Some(entry) = DictionaryLine::parse(line).map_err(bad)? else { continue };
            let word = normalize_as(entry.word, normal);
            if word.chars().all(is_han) {
                jieba.add_word(&word, entry.frequency, None);
                added.insert(xxh3_64(word.as_bytes()));
            }
        }
        Ok(Self(Some(Arc::new(Extended { jieba, added, digest: xxh3_64(&bytes) }))))
    }

    /// Returns the digest of the file of added words; none if there is none.
    #[must_use]
    pub(crate) fn digest(&self) -> Option<u64> {
        self.0.as_ref().map(|extended| extended.digest)
    }

    /// Tells whether the word with this [`xxh3_64`] is one of the added ones.
    #[must_use]
    pub(crate) fn has_added(&self, hash: u64) -> bool {
        self.0.as_ref().is_some_and(|extended| extended.added.contains(&hash))
    }

    /// Calls `each` with the words of a run of Chinese, in order.
    pub(super) fn cut<'a>(&self, run: &'a str, mut each: impl FnMut(&'a str)) {
        let jieba = self.0.as_ref().map_or_else(|| &*BUILT_IN, |extended| &extended.jieba);
        for token in jieba.cut(run, true) {
            each(token.word);
        }
    }
}

/// A line of a dictionary.
struct DictionaryLine<'a> {
    word: &'a str,
    frequency: Option<usize>,
}

impl<'a> DictionaryLine<'a> {
    /// Reads a line; none if there is nothing in it.
    fn parse(line: &'a str) -> Result<Option<Self>, &'static str> {
        let mut parts = line.split_whitespace();
        let Some(word) = parts.next() else { return Ok(None) };
        let (second, tag) = (parts.next(), parts.next());
        if parts.next().is_some() {
            return Err("it has more than a word, its frequency and its tag");
        }
        let frequency = match second {
            // A tag may follow the word right away.
            Some(given) if tag.is_none() && given.bytes().all(|b| b.is_ascii_alphabetic()) => None,
            Some(given) => {
                let number = given.parse().ok().filter(|number: &u64| *number <= FREQUENCY_MAX);
                let number =
                    number.ok_or("its frequency is no whole number up to 1,000,000,000")?;
                Some(usize::try_from(number).expect("a billion fits"))
            }
            None => None,
        };
        Ok(Some(Self { word, frequency }))
    }
}
