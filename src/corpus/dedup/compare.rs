//! Why two articles are one document, or not: every key and measure of the pair.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::corpus::documents::read_body;
use crate::corpus::tables::{CONTENTS, COPIES};
use crate::store::{self, Snapshot, View as _};
use crate::text::features::{ArticleKeys, Fingerprinter, Input};
use crate::text::{normalize, words};

use super::stored::keys_at;
use crate::neardup::{self, ArticlePair, Config, Error, InputDocument};

/// A word that one text has more often, and how many times.
type Surplus = (String, u32);

/// Words of each side that are shown.
const WORDS_SHOWN: usize = 30;

/// A pair of articles, looked at in every way in which the judge looks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// They are one document.
    pub same: bool,
    /// What decides, in one sentence.
    pub reason: String,
    /// The normalised texts are equal.
    pub exact: bool,
    /// What they are to each other beside their texts, in words; empty if nothing is known.
    pub bond: &'static str,
    /// Keys by which the index finds one from the other.
    pub found_by: Vec<&'static str>,
    /// Bits between the fingerprints of the texts, 0 to 64.
    pub distance: u32,
    /// Bits between the fingerprints of the titles; none if one of them tells nothing.
    pub title_distance: Option<u32>,
    /// Longest sentences that both have.
    pub shared_sentences: usize,
    /// Bands of sketch slots that both have.
    pub shared_bands: usize,
    /// Shared shingles among those that either has, estimated from the sketches.
    pub similarity: f32,
    /// Shared shingles among those of the smaller text, estimated from the sketches.
    pub containment: f32,
    /// Size of the smaller text by that of the larger.
    pub size: f32,
    /// Similarity of everything that their pages show; none if that is not known of both.
    pub shown: Option<f32>,
    /// Words of each text.
    pub words: [u32; 2],
    /// Words that the first has more often, and how many times.
    pub only_first: Vec<Surplus>,
    /// Words that the second has more often, and how many times.
    pub only_second: Vec<Surplus>,
}

/// An article that is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Side<'a> {
    /// Its keys, and where it stands.
    pub keys: ArticleKeys,
    /// Its main text.
    pub text: Cow<'a, str>,
}

impl<'a> Side<'a> {
    /// Fingerprints an article.
    #[must_use]
    pub fn of(fingerprinter: &Fingerprinter, article: InputDocument<'a>) -> Self {
        let InputDocument { title, text, language, url, fields, .. } = article;
        let input = Input { title, text, language, url, fields };
        Self { keys: neardup::article_keys(fingerprinter, &input), text: text.into() }
    }

    /// Reads the copy of a document of a store at a URL; none if it is not there.
    ///
    /// `fingerprinter` must be the one of the store.
    pub fn stored(
        snapshot: &Snapshot,
        fingerprinter: &Fingerprinter,
        document: u64,
        address: &str,
    ) -> Result<Option<Self>, store::Error> {
        let Some(copy) = snapshot.get(COPIES, (document, address))? else { return Ok(None) };
        let Some(content) = snapshot.get(CONTENTS, copy.content)? else { return Ok(None) };
        let text = read_body(snapshot, copy.content)?.unwrap_or_default();
        // Its text may have come first under another title.
        let title = fingerprinter.article_keys(&copy.title, "", "").title;
        let keys = ArticleKeys { title, ..keys_at(content, address, &copy) };
        Ok(Some(Self { keys, text: text.into() }))
    }
}

/// Compares two articles as the judge does if the first is all that it knows.
///
/// In a corpus, what both have in common with further documents counts for nothing, so that the
/// judge may keep apart what alone is the same, and a copy of both may join what alone is not.
pub fn compare(
    config: &Config,
    first: InputDocument<'_>,
    second: InputDocument<'_>,
) -> Result<Comparison, Error> {
    let fingerprinter = Fingerprinter::new(config.features.clone())?;
    compare_sides(config, &Side::of(&fingerprinter, first), &Side::of(&fingerprinter, second))
}

/// Does the same with articles that are fingerprinted.
pub fn compare_sides(
    config: &Config,
    first: &Side<'_>,
    second: &Side<'_>,
) -> Result<Comparison, Error> {
    let (one, other) = (&first.keys, &second.keys);
    let pair = ArticlePair::new(config, one, other)?;
    let (only_first, only_second) = differing(&first.text, &second.text);
    let bands = |keys: &ArticleKeys| -> Vec<u64> {
        keys.text.sketch.bands(config.bands, config.band_rows).collect()
    };
    Ok(Comparison {
        same: pair.same,
        reason: pair.reason(),
        exact: pair.exact,
        bond: pair.bond_in_words(),
        found_by: pair.found_by.iter().map(|key| key.as_str()).collect(),
        distance: one.text.fingerprint.distance(other.text.fingerprint),
        title_distance: one.title.zip(other.title).map(|(one, other)| one.distance(other)),
        shared_sentences: shared(&one.text.sentences, &other.text.sentences),
        shared_bands: shared(&bands(one), &bands(other)),
        similarity: pair.likeness.similarity,
        containment: pair.likeness.containment,
        size: pair.likeness.size,
        shown: pair.shown,
        words: [one.text.words, other.text.words],
        only_first,
        only_second,
    })
}

fn shared<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    one.iter().filter(|key| other.contains(key)).count()
}

/// The words that one text has more often than the other, those that differ most first.
fn differing(first: &str, second: &str) -> (Vec<Surplus>, Vec<Surplus>) {
    let (first, second) = (normalize(first), normalize(second));
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for word in words(&first) {
        *counts.entry(word).or_default() += 1;
    }
    for word in words(&second) {
        *counts.entry(word).or_default() -= 1;
    }
    let side = |sign: i64| {
        let more = counts.iter().filter(|(_, count)| **count * sign > 0);
        let mut more: Vec<(String, u32)> =
            more.map(|(word, count)| ((*word).to_owned(), count.unsigned_abs() as u32)).collect();
        more.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        more.truncate(WORDS_SHOWN);
        more
    };
    (side(1), side(-1))
}
