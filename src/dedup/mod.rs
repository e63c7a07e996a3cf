//! The judge: is this article stored already, and where does it belong?
//!
//! Keys are asked in the order of the docId paper: exact content, title, content. (The address
//! is asked by the frontier, before anything is fetched.) Every candidate of a simhash must be
//! confirmed on the sketch of the root of its tree, so that an accident of 64 bits, or a title
//! such as "Home", never discards a page.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use redb::ReadableTable as _;

use crate::clusters::{Article, Joint, Place};
use crate::documents::{Content, Key, read_content, read_document};
use crate::features;
use crate::index::{Field, K_MAX, Match, Tables as Rotated};
use crate::store::{BadRow, Error, Tables};

/// How alike two texts must be to be one document.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// Largest Hamming distance of fingerprints, inclusive, 0 to 3.
    pub k: u32,
    /// Least estimated similarity (Jaccard of 2-word shingles) of texts that are one, 0 to 1.
    pub similarity_min: f32,
    /// Least words of a text that can be a near-duplicate. Shorter texts are duplicates only if
    /// they are equal: a few words in common prove nothing.
    pub words_min: u32,
    /// Ask for near titles as well.
    pub titles: bool,
    /// Most candidates of one field that are confirmed.
    pub candidates_max: usize,
    /// How texts become fingerprints.
    pub features: features::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            k: K_MAX,
            similarity_min: 0.5,
            words_min: 40,
            titles: true,
            candidates_max: 64,
            features: features::Config::default(),
        }
    }
}

/// Least words of a title that is asked for: one word names a kind of page, not an article.
const TITLE_WORDS_MIN: u32 = 2;

/// Signs an article: hash, fingerprints and sketch. Pure; the costly part of judging.
#[must_use]
pub fn sign(address: &str, title: &str, text: String, config: &Config) -> Article {
    let signature = features::sign(&text, config.features);
    let titled = features::sign(title, config.features);
    let title_tells = titled.words >= TITLE_WORDS_MIN && signature.words >= config.words_min;
    Article {
        address: address.to_owned(),
        title: title.to_owned(),
        text,
        language: String::new(),
        score: None,
        hash: signature.hash,
        fingerprint: signature.fingerprint,
        title_fingerprint: title_tells.then_some(titled.fingerprint),
        sketch: signature.sketch,
        words: signature.words,
    }
}

/// Finds the place of a signed article among the stored ones. Reads only.
pub fn judge(tables: &Tables<'_>, article: &Article, config: &Config) -> Result<Place, Error> {
    if article.words == 0 {
        return Ok(Place::New);
    }
    if let Some(content) = tables.exact.get(article.hash)?.map(|row| row.value()) {
        let document = must_read(tables, content)?.document;
        let joint =
            Joint { document, same: Some(content), key: Key::Exact, distance: 0, similarity: 1.0 };
        return Ok(Place::Tree(joint));
    }
    if article.words < config.words_min {
        return Ok(Place::New);
    }
    if let Some(title) = article.title_fingerprint.filter(|_| config.titles) {
        let found = Rotated::new(Field::Title).probe(&tables.near, title, config.k)?;
        if let Some(joint) = best_tree(tables, article, (Key::Title, found), config)? {
            return Ok(Place::Tree(joint));
        }
    }
    let found = Rotated::new(Field::Content).probe(&tables.near, article.fingerprint, config.k)?;
    let joint = best_tree(tables, article, (Key::Near, found), config)?;
    Ok(joint.map_or(Place::New, Place::Tree))
}

/// The tree that takes the article, by the conflict rules, among those whose roots confirm it.
fn best_tree(
    tables: &Tables<'_>,
    article: &Article,
    (key, found): (Key, Vec<Match>),
    config: &Config,
) -> Result<Option<Joint>, Error> {
    let mut trees = BTreeSet::new();
    let mut best = None;
    for candidate in found.into_iter().take(config.candidates_max) {
        let document = must_read(tables, candidate.content)?.document;
        if !trees.insert(document) {
            continue;
        }
        let missing = BadRow { kind: "document", detail: "a content names one that is missing" };
        let row = read_document(&tables.documents, document)?.ok_or(missing)?;
        let root = must_read(tables, row.root)?;
        let similarity = article.sketch.similarity(&root.sketch);
        if similarity < config.similarity_min || root.words < u64::from(config.words_min) {
            continue;
        }
        let order = (Reverse(row.copies), row.first_arrival, root.fingerprint);
        let distance = article.fingerprint.distance(root.fingerprint);
        let joint = Joint { document, same: None, key, distance, similarity };
        if best.as_ref().is_none_or(|(least, _)| order < *least) {
            best = Some((order, joint));
        }
    }
    Ok(best.map(|(_, joint)| joint))
}

fn must_read(tables: &Tables<'_>, content: u64) -> Result<Content, Error> {
    let missing = BadRow { kind: "content", detail: "the index names one that is missing" };
    Ok(read_content(&tables.contents, content)?.ok_or(missing)?)
}
