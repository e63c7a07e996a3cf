//! What a text is made of, as numbers: weighted features for the simhash, a sketch of its shingles
//! that tells how much of one text is in another, and keys of its longest sentences.

mod extractor;
pub mod lecture;
mod shingles;
mod standing;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::simhash::Fingerprint;
use crate::sketch::Sketch;
use crate::text::{Counts, Idf, Normal, Tokens, normalize_as};

pub use extractor::{Extractor, Feature, UnknownExtractor};
pub use standing::{Standing, site_of};
use shingles::Shingles;

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
    /// Weight of the language as one more feature; 0 leaves it out.
    pub language_weight: f32,
    /// Traditional Chinese characters count as their simplified forms.
    pub simplify: bool,
    /// File with document frequencies made by `crawl idf`; empty for the built-in table.
    pub idf_file: String,
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
            idf_file: String::new(),
        }
    }
}

/// Everything that the dedup stage needs to know of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// 128-bit hash of the normalised text.
    pub hash: u128,
    /// Simhash of the weighted features.
    pub fingerprint: Fingerprint,
    /// Sketch of the shingles.
    pub sketch: Sketch,
    /// Distinct shingles, within a hundredth.
    pub shingles: u32,
    /// Words of the text, repeated ones counted each time; three Chinese characters count as two.
    pub words: u32,
    /// Keys of the longest sentences, longest first.
    pub sentences: Vec<u32>,
}

/// A signed article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// What its text is made of.
    pub text: Signature,
    /// Fingerprint of the title; none if the title has too few words to tell anything.
    pub title: Option<Fingerprint>,
    /// Where it stands.
    pub standing: Standing,
}

/// Least words of a title that tells anything: one word names a kind of page, not an article.
const TITLE_WORDS_MIN: usize = 2;

/// Bytes of a text that are looked at beyond its exact hash.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// Signs texts, all in the same way.
#[derive(Debug, Clone, Default)]
pub struct Signer {
    config: Config,
    idf: Arc<Idf>,
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
    /// The table of document frequencies cannot be read.
    #[error(transparent)]
    Idf(#[from] crate::text::BadIdf),
}

impl Signer {
    /// Prepares for texts of one configuration; reads the table of document frequencies, if it
    /// names one.
    pub fn new(config: Config) -> Result<Self, Error> {
        for (name, value) in [
            ("words_max", config.words_max),
            ("shingle_words", config.shingle_words),
            ("shingle_chars", config.shingle_chars),
            ("levels", config.levels as usize),
        ] {
            if value == 0 {
                return Err(Error::TooSmall { name, value });
            }
        }
        if !(0.0..=1e6).contains(&config.language_weight) {
            return Err(Error::Weight(config.language_weight));
        }
        let idf = match config.idf_file.as_str() {
            "" => Idf::built_in(),
            path => Idf::read(path.as_ref())?,
        };
        Ok(Self { config, idf: Arc::new(idf) })
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Names everything that moves fingerprints: those of different names must not be mixed.
    #[must_use]
    pub fn name(&self) -> String {
        let Config { extractor, words_max, language_weight, simplify, .. } = self.config;
        let detail = match extractor {
            Extractor::WordShingles => format!(" of {}", self.config.shingle_words),
            Extractor::CharShingles => format!(" of {}", self.config.shingle_chars),
            Extractor::Levels => format!(" 1 to {}", self.config.levels),
            _ => String::new(),
        };
        let mut name = format!("{extractor}{detail}, top {words_max}");
        if language_weight > 0.0 {
            let _ = write!(name, ", language x {language_weight}");
        }
        if !simplify {
            name += ", not simplified";
        }
        if let Some(digest) = self.idf.digest() {
            let _ = write!(name, ", idf {digest:016x}");
        }
        name + ", version 2"
    }

    fn normal(&self) -> Normal {
        Normal { simplify: self.config.simplify }
    }

    /// Returns the features of a text, heaviest first; equal weights in the order of the hashes.
    #[must_use]
    pub fn features(&self, text: &str) -> Vec<Feature> {
        let text = normalize_as(text, self.normal());
        let mut found = extractor::features(&Tokens::of(&text), &self.config, &self.idf);
        found.sort_unstable_by(extractor::Found::heavier);
        found.into_iter().map(Feature::from).collect()
    }

    /// Signs a text in a language (ISO 639-1, or empty).
    #[must_use]
    pub fn sign(&self, text: &str, language: &str) -> Signature {
        let text = normalize_as(text, self.normal());
        let tokens = Tokens::of(&text[..text.floor_char_boundary(TEXT_BYTES_MAX)]);
        let fingerprint = self.fingerprint(&tokens, language);
        let shingles = Shingles::of(&tokens);
        Signature {
            hash: hash(text),
            fingerprint,
            sketch: Sketch::of(shingles.hashes),
            shingles: shingles.distinct,
            words: shingles.words,
            sentences: shingles.sentences,
        }
    }

    /// Signs an article: its text and its title. Where it stands is left open.
    #[must_use]
    pub fn sign_article(&self, title: &str, text: &str, language: &str) -> Signed {
        let title = normalize_as(title, self.normal());
        let tokens = Tokens::of(&title);
        let mut words = 0;
        tokens.words(|_, _| words += 1);
        let title = (words >= TITLE_WORDS_MIN).then(|| self.fingerprint(&tokens, ""));
        Signed { text: self.sign(text, language), title, standing: Standing::default() }
    }

    fn fingerprint(&self, tokens: &Tokens<'_>, language: &str) -> Fingerprint {
        let features = extractor::features(tokens, &self.config, &self.idf);
        let mut weighted: Vec<(u64, f32)> =
            features.iter().map(|feature| (feature.hash, feature.weight)).collect();
        if self.config.language_weight > 0.0 {
            let ordinal = LANGUAGES.iter().position(|known| *known == language);
            let ordinal = ordinal.map_or(0, |at| at as u32 + 1);
            let hash = lecture::enum_hash(ordinal, LANGUAGES.len() as u32 + 1);
            weighted.push((hash, self.config.language_weight));
        }
        Fingerprint::of(weighted)
    }
}

/// The languages that the enumeration feature tells apart; all others are its value 0.
const LANGUAGES: [&str; 15] =
    ["en", "zh", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "ja", "ko", "ar", "tr", "vi"];

fn hash(mut normalised: String) -> u128 {
    // Where the lines of a text break does not matter.
    if normalised.contains('\n') {
        normalised = normalised.replace('\n', " ");
    }
    xxh3_128(normalised.as_bytes())
}

fn word_hash(word: &str) -> u64 {
    xxh3_64(word.as_bytes())
}

thread_local! {
    static COUNTS: RefCell<Counts> = RefCell::new(Counts::with_capacity(0));
}

/// Lends a table for at most `most` distinct hashes whose memory is used again and again.
fn with_counts<T>(most: usize, work: impl FnOnce(&mut Counts) -> T) -> T {
    COUNTS.with_borrow_mut(|counts| {
        counts.clear(most);
        work(counts)
    })
}
