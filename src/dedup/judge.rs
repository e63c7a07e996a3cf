//! Judging one article among those that are known.

use std::borrow::Cow;
use std::cmp::Reverse;

use crate::clock::Timestamp;
use crate::documents::Key;
use crate::features::Signed;
use crate::simhash::Fingerprint;
use crate::sketch::{SLOTS, Sketch};

use super::{Candidate, Config, Likeness};

/// Similarity from which a tree counts when it is asked which slots are commonplace: far above
/// chance, far below a copy.
const RELATED: f32 = 0.08;

/// Slots that must be left when the commonplace ones are out.
const OWN_SLOTS_MIN: usize = 24;

/// The trees that are known: whatever holds them, in memory or in a store.
pub trait Trees {
    /// What can go wrong when one is looked up.
    type Error;

    /// Returns the root of the tree of a content.
    fn root_of(&self, content: u32) -> Result<Root<'_>, Self::Error>;
}

/// What the judge must know of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Root<'a> {
    /// Number of its document.
    pub document: u64,
    /// Fingerprint of the text of the root.
    pub fingerprint: Fingerprint,
    /// Sketch of the text of the root.
    pub sketch: Cow<'a, Sketch>,
    /// Distinct shingles of the root.
    pub shingles: u32,
    /// Copies of the document.
    pub copies: u64,
    /// When the first of them came.
    pub first_arrival: Timestamp,
}

/// How an article hangs on its tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Joint {
    /// Number of the document.
    pub document: u64,
    /// By which key it was found.
    pub key: Key,
    /// Bits between its fingerprint and that of the root.
    pub distance: u32,
    /// How alike it is to the root, commonplaces left out.
    pub likeness: Likeness,
    /// It would be the same whatever else is known. Other joints deserve a second look when more
    /// documents of their kind are known.
    pub sure: bool,
}

/// Returns the tree that takes an article, among those of the `candidates` whose roots confirm it;
/// none if it is a document of its own.
///
/// What the article has in common with several trees is no evidence for any of them: it is
/// boilerplate of a site, or a quotation. Only a tree that is as good as equal
/// ([`Rule::sure_min`](super::Rule::sure_min)) takes it all the same.
///
/// What it has in common with the document `wary` is taken for such, too.
///
/// Where several trees would take it, the most alike does; if they are about as alike (the same
/// tenth), the one with most copies, then the oldest, then the one with the smaller root
/// fingerprint.
pub fn judge<T: Trees>(
    trees: &T,
    candidates: &[Candidate],
    (signed, wary): (&Signed, Option<u64>),
    config: &Config,
) -> Result<Option<Joint>, T::Error> {
    let mut related: Vec<Related<'_>> = Vec::new();
    for candidate in candidates {
        if related.len() >= config.candidates_max {
            break;
        }
        let root = trees.root_of(candidate.content)?;
        if related.iter().all(|other| other.root.document != root.document) {
            let similarity = signed.text.sketch.similarity(&root.sketch);
            related.push(Related { root, candidate: *candidate, similarity });
        }
    }
    let own = own_slots(&related, &signed.text.sketch, wary);
    let joints = related.iter().filter_map(|related| {
        let joint = related.joint(signed, &own, config)?;
        let alike = if config.rule.confirm { joint.likeness.similarity } else { 0.0 };
        let root = &related.root;
        let order = (Reverse(tenth(alike)), Reverse(root.copies), root.first_arrival);
        Some(((order, root.fingerprint), joint))
    });
    Ok(joints.min_by_key(|(order, _)| *order).map(|(_, joint)| joint))
}

/// The tenth of a similarity, 0 to 9.
fn tenth(similarity: f32) -> u32 {
    #[expect(clippy::cast_sign_loss, reason = "a share is not below zero")]
    let tenth = (similarity * 10.0).min(9.0) as u32;
    tenth
}

/// Marks the slots of a sketch that at most one of the related trees has too; the tree of which to
/// be wary counts twice.
fn own_slots(related: &[Related<'_>], sketch: &Sketch, wary: Option<u64>) -> [bool; SLOTS] {
    let mut holders = [0u8; SLOTS];
    for tree in related.iter().filter(|tree| tree.similarity >= RELATED) {
        let weight = 1 + u8::from(Some(tree.root.document) == wary);
        for (at, holders) in holders.iter_mut().enumerate() {
            let same = u8::from(tree.root.sketch.0[at] == sketch.0[at]);
            *holders = holders.saturating_add(same * weight);
        }
    }
    holders.map(|holders| holders <= 1)
}

/// A tree that may take the article.
struct Related<'a> {
    root: Root<'a>,
    candidate: Candidate,
    /// Similarity of the whole texts.
    similarity: f32,
}

impl Related<'_> {
    fn joint(&self, signed: &Signed, own: &[bool; SLOTS], config: &Config) -> Option<Joint> {
        let (text, rule) = (&signed.text, &config.rule);
        let (mine, its) = (text.shingles, self.root.shingles);
        let whole = Likeness::of(self.similarity, mine, its);
        let sure = !rule.confirm || self.similarity >= rule.sure_min;
        let likeness = if sure { whole } else { self.without_commonplaces(signed, own) };
        if !sure && !rule.same(likeness, self.candidate.titled) {
            return None;
        }
        Some(Joint {
            document: self.root.document,
            key: self.candidate.key,
            distance: text.fingerprint.distance(self.root.fingerprint),
            likeness,
            sure,
        })
    }

    fn without_commonplaces(&self, signed: &Signed, own: &[bool; SLOTS]) -> Likeness {
        let text = &signed.text;
        let count = own.iter().filter(|own| **own).count();
        if count == SLOTS {
            return Likeness::of(self.similarity, text.shingles, self.root.shingles);
        }
        if count < OWN_SLOTS_MIN {
            return Likeness::of(0.0, text.shingles, self.root.shingles);
        }
        let similarity = text.sketch.similarity_in(&self.root.sketch, own);
        let common = text.shingles as f32 * (SLOTS - count) as f32 / SLOTS as f32;
        #[expect(clippy::cast_sign_loss, reason = "a count of shingles is not below zero")]
        let rest = |shingles: u32| (shingles as f32 - common).max(1.0) as u32;
        Likeness::of(similarity, rest(text.shingles), rest(self.root.shingles))
    }
}
