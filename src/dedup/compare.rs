//! Why two articles are one document, or not: every key and measure of the pair.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::features::{Input, Signed, Signer};
use crate::text::{normalize, words};

use super::site::Names;
use super::{Bond, Config, Document, Error, Finder, Likeness};

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
    /// Keys by which the index finds one from the other.
    pub found_by: Vec<&'static str>,
    /// Bits between the fingerprints of the texts, 0 to 64.
    pub distance: u32,
    /// Bits between the fingerprints of the titles; none if one of them tells nothing.
    pub title_distance: Option<u32>,
    /// Longest sentences that both have.
    pub shared_sentences: usize,
    /// Runs of sketch slots that both have.
    pub shared_bands: usize,
    /// Shared shingles among those that either has, estimated from the sketches.
    pub similarity: f32,
    /// Shared shingles among those of the smaller text, estimated from the sketches.
    pub containment: f32,
    /// Size of the smaller text by that of the larger.
    pub size: f32,
    /// Words of each text.
    pub words: [u32; 2],
    /// Words that the first has more often, and how many times.
    pub only_first: Vec<Surplus>,
    /// Words that the second has more often, and how many times.
    pub only_second: Vec<Surplus>,
}

/// Compares two articles by themselves. In a corpus, what both have in common with further
/// documents counts for nothing, so that the judge may keep apart what stands alone as the same.
pub fn compare(
    config: &Config,
    first: Document<'_>,
    second: Document<'_>,
) -> Result<Comparison, Error> {
    let signer = Signer::new(config.features.clone())?;
    let sign = |one: Document<'_>| {
        let Document { title, text, language, url, fields, .. } = one;
        signer.sign_input(&Input { title, text, language, url, fields })
    };
    let (one, other) = (sign(first), sign(second));
    let mut finder = Finder::new(config)?;
    finder.insert(0, &one);
    let found_by = finder.keys_of(0, &other);
    let similarity = one.text.sketch.similarity(&other.text.sketch);
    let likeness = Likeness::of(similarity, one.text.shingles, other.text.shingles);
    let distance = one.text.fingerprint.distance(other.text.fingerprint);
    let exact = one.text.hash == other.text.hash && one.text.words > 0;
    let keys: Vec<&'static str> = found_by.iter().map(|key| key.as_str()).collect();
    let (same, reason) = decide(config, (&one, &other), &keys, likeness);
    let (only_first, only_second) = differing(first.text, second.text);
    let bands = |signed: &Signed| -> Vec<u32> {
        signed.text.sketch.bands(config.bands, config.band_rows).collect()
    };
    Ok(Comparison {
        same: same || exact,
        reason: if exact { "the normalised texts are equal".to_owned() } else { reason },
        exact,
        found_by: keys,
        distance,
        title_distance: one.title.zip(other.title).map(|(one, other)| one.distance(other)),
        shared_sentences: shared(&one.text.sentences, &other.text.sentences),
        shared_bands: shared(&bands(&one), &bands(&other)),
        similarity,
        containment: likeness.containment,
        size: likeness.size,
        words: [one.text.words, other.text.words],
        only_first,
        only_second,
    })
}

fn decide(
    config: &Config,
    (one, other): (&Signed, &Signed),
    keys: &[&'static str],
    likeness: Likeness,
) -> (bool, String) {
    let rule = &config.rule;
    let short = one.text.words.min(other.text.words);
    if short < rule.words_min {
        let least = rule.words_min;
        return (false, format!("one has {short} words: fewer than {least} must be equal"));
    }
    if keys.is_empty() {
        return (false, "no key of the index leads from one to the other".to_owned());
    }
    if !rule.confirm {
        return (true, format!("found by {}, and nothing must confirm it", keys.join(", ")));
    }
    let titled = keys.contains(&crate::documents::Key::Title.as_str());
    let bond = match (one.standing.site, other.standing.site) {
        (0, _) | (_, 0) => Bond::Unknown { titled },
        (one, other) if one != other => Bond::Abroad { titled },
        _ => Names::of(one).bond(&one.standing, &other.standing, likeness.similarity),
    };
    let same = rule.same(likeness, bond);
    let Likeness { similarity, containment, size } = likeness;
    let verdict = if same { "enough" } else { "not enough" };
    let also = match bond {
        Bond::Kin => ", pages that their site calls the same",
        Bond::Issue => ", editions of one page",
        Bond::Edition => ", likely editions of one page",
        Bond::Unclear => ", pages of one site that may be the same",
        Bond::Apart => ", pages that their site calls differently",
        _ if titled => ", titles alike",
        _ => "",
    };
    let measures =
        format!("similarity {similarity:.3}, containment {containment:.3} at size {size:.2}{also}");
    (same, format!("{measures}: {verdict}"))
}

fn shared(one: &[u32], other: &[u32]) -> usize {
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
