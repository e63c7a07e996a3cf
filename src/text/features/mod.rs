//! What a text is made of, as numbers: weighted features for the simhash, a sketch of its shingles
//! that tells how much of one text is in another, and keys of its longest sentences.

mod config;
mod enums;
mod extractor;
mod fallback;
mod input;
mod kind_hashes;
pub mod lecture;
mod shingles;
mod standing;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::text::simhash::Fingerprint;
use crate::text::sketch::Sketch;
use crate::text::{HashCounts, Idf, Normal, Segmenter, Tokens, normalize_as};

use config::WEIGHT_MAX;
pub use config::{Config, Error};
use enums::Enums;
pub use enums::{EnumHash, Enumeration};
use extractor::Extraction;
pub use extractor::{Extractor, Feature, UnknownExtractor};
pub use fallback::{HanFallback, PAIRS_FROM, WORDS_UP_TO};
pub(crate) use input::ARTICLE_FIELDS;
pub use input::{ArticleField, Input};
pub use kind_hashes::KindHashes;
pub use shingles::SENTENCES;
use shingles::Shingles;
pub use standing::{Standing, site_of};

/// Everything that the dedup stage needs to know of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextKeys {
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
    pub sentences: Box<[u32]>,
    /// Hashes of kinds of keys that are made elsewhere.
    pub others: KindHashes,
}

/// A fingerprinted article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArticleKeys {
    /// What its text is made of.
    pub text: TextKeys,
    /// Fingerprint of the title; none if the title has too few words to tell anything.
    pub title: Option<Fingerprint>,
    /// Where it stands.
    pub standing: Standing,
}

/// Least words of a title that tells anything: one word names a kind of page, not an article.
const TITLE_WORDS_MIN: usize = 2;

/// Bytes of a text that are looked at beyond its exact hash.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// Fingerprints texts, all in the same way.
#[derive(Debug, Clone, Default)]
pub struct Fingerprinter {
    config: Config,
    idf: Arc<Idf>,
    segmenter: Segmenter,
    enums: Enums,
}

impl Fingerprinter {
    /// Prepares for texts of one configuration; reads the table of document frequencies and the
    /// dictionary, if it names them.
    pub fn new(config: Config) -> Result<Self, Error> {
        config.check()?;
        let enums = Enums::new(&config.enums, config.language_weight)?;
        if config.extractor == Extractor::Enum && enums.is_empty() {
            return Err(Error::NoEnums);
        }
        let idf = match config.idf_file.as_str() {
            "" => Idf::built_in(),
            path => Idf::read(path.as_ref())?,
        };
        let segmenter = match config.dictionary_file.as_str() {
            "" => Segmenter::default(),
            path => Segmenter::read(path.as_ref(), Normal { simplify: config.simplify })?,
        };
        Ok(Self { config, idf: Arc::new(idf), segmenter, enums })
    }

    /// Does the same for the articles of a store.
    ///
    /// # Errors
    ///
    /// Also if the settings declare a field that these do not have (`ARTICLE_FIELDS`).
    pub fn for_articles(config: Config) -> Result<Self, Error> {
        let fingerprinter = Self::new(config)?;
        let unknown = fingerprinter.fields().find(|field| !ARTICLE_FIELDS.contains(field));
        match unknown.map(str::to_owned) {
            Some(field) => Err(Error::NoField { field }),
            None => Ok(fingerprinter),
        }
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the names of the fields whose values vote.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.enums.fields()
    }

    /// Names everything that moves fingerprints: those of different names must not be mixed.
    #[must_use]
    pub fn name(&self) -> String {
        let Config { extractor, words_max, simplify, han_fallback, .. } = self.config;
        let mut name = match extractor {
            Extractor::WordShingles => format!("{extractor} of {}", self.config.shingle_words),
            Extractor::CharShingles => format!("{extractor} of {}", self.config.shingle_chars),
            Extractor::Levels => format!("{extractor} 1 to {}", self.config.levels),
            Extractor::LectureChars => format!("{extractor} of all characters"),
            _ => extractor.to_string(),
        };
        let _ = write!(name, ", top {words_max}");
        name += &self.enums.name();
        if !simplify {
            name += ", not simplified";
        }
        name += match han_fallback {
            HanFallback::Auto => "",
            HanFallback::Never => ", Chinese never by pairs",
            HanFallback::Always => ", Chinese always by pairs",
        };
        if let Some(digest) = self.segmenter.digest() {
            let _ = write!(name, ", dictionary {digest:016x}");
        }
        if let Some(digest) = self.idf.digest() {
            let _ = write!(name, ", idf {digest:016x}");
        }
        name + ", version 2"
    }

    fn normal(&self) -> Normal {
        Normal { simplify: self.config.simplify }
    }

    fn extract(&self) -> Extraction<'_> {
        Extraction { config: &self.config, idf: &self.idf, segmenter: &self.segmenter }
    }

    /// Returns the features of a text without fields, heaviest first; equal weights in the order
    /// of the hashes.
    #[must_use]
    pub fn features(&self, text: &str) -> Vec<Feature> {
        self.features_of(&Input { text, ..Input::default() })
    }

    /// Returns those of the text and of the fields of an article, in the same order.
    #[must_use]
    pub fn features_of(&self, input: &Input<'_>) -> Vec<Feature> {
        let text = normalize_as(input.text, self.normal());
        let found = self.extract().features(&Tokens::of(&text));
        let mut all: Vec<Feature> = found.into_iter().map(Feature::from).collect();
        all.extend(self.enums.features(|field| input.value_of(field)));
        all.sort_unstable_by(Feature::heavier);
        all
    }

    /// Fingerprints a text in a language (ISO 639-1, or empty).
    #[must_use]
    pub fn text_keys(&self, text: &str, language: &str) -> TextKeys {
        self.text_keys_of(&Input { text, language, ..Input::default() })
    }

    /// Fingerprints the text of an article, with its fields.
    #[must_use]
    pub fn text_keys_of(&self, input: &Input<'_>) -> TextKeys {
        self.text_keys_with(input, |_| KindHashes::default(), &mut |_| ())
    }

    fn text_keys_with(
        &self,
        input: &Input<'_>,
        others: impl FnOnce(&str) -> KindHashes,
        ended: &mut impl FnMut(&'static str),
    ) -> TextKeys {
        let text = normalize_as(input.text, self.normal());
        ended("normal form");
        let tokens = Tokens::of(&text[..text.floor_char_boundary(TEXT_BYTES_MAX)]);
        ended("tokens");
        let words = self.votes(&tokens);
        ended("words");
        let fingerprint =
            Fingerprint::of(words.chain(self.enums.votes(|field| input.value_of(field))));
        ended("simhash");
        let shingles = Shingles::of(&tokens);
        ended("shingles and sentences");
        let sketch = Sketch::of(shingles.hashes);
        ended("sketch");
        TextKeys {
            others: others(&text),
            hash: hash(text),
            fingerprint,
            sketch,
            shingles: shingles.distinct,
            words: shingles.words,
            sentences: shingles.sentences,
        }
    }

    /// Fingerprints an article of which only this is known. Its site is not.
    #[must_use]
    pub fn article_keys(&self, title: &str, text: &str, language: &str) -> ArticleKeys {
        self.article_keys_of(&Input { title, text, language, ..Input::default() })
    }

    /// Fingerprints an article: its text, with its fields, and its title.
    ///
    /// Fields have no vote in the fingerprint of the title, which has too few words to outvote
    /// them; with the extractor `enum` a title has no fingerprint.
    #[must_use]
    pub fn article_keys_of(&self, input: &Input<'_>) -> ArticleKeys {
        self.article_keys_with(input, |_| KindHashes::default(), &mut |_| ())
    }

    /// Does the same, with hashes that `others` makes of the normalised text, and says when each
    /// stage has ended, by its name: for measuring them.
    #[must_use]
    pub fn article_keys_with(
        &self,
        input: &Input<'_>,
        others: impl FnOnce(&str) -> KindHashes,
        ended: &mut impl FnMut(&'static str),
    ) -> ArticleKeys {
        let title = normalize_as(input.title, self.normal());
        let tokens = Tokens::of(&title);
        let told = self.config.extractor != Extractor::Enum
            && self.extract().words(&tokens) >= TITLE_WORDS_MIN;
        let title = told.then(|| Fingerprint::of(self.votes(&tokens)));
        let standing = Standing::of(input.url, input.title, "");
        ended("title and standing");
        ArticleKeys { text: self.text_keys_with(input, others, ended), title, standing }
    }

    fn votes(&self, tokens: &Tokens<'_>) -> impl Iterator<Item = (u64, f32)> {
        let features = self.extract().features(tokens);
        features.into_iter().map(|feature| (feature.hash, feature.weight))
    }
}

/// Returns the sketch of a text.
#[must_use]
pub fn sketch_of(text: &str, simplify: bool) -> Sketch {
    let text = normalize_as(text, Normal { simplify });
    let tokens = Tokens::of(&text[..text.floor_char_boundary(TEXT_BYTES_MAX)]);
    Sketch::of(Shingles::of(&tokens).hashes)
}

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
    static COUNTS: RefCell<HashCounts> = RefCell::new(HashCounts::with_capacity(0));
}

/// Lends a table for at most `most` distinct hashes whose memory is used again and again.
fn with_counts<T>(most: usize, work: impl FnOnce(&mut HashCounts) -> T) -> T {
    COUNTS.with_borrow_mut(|counts| {
        counts.clear(most);
        work(counts)
    })
}
