//! Judging one article among those that are known.

use std::borrow::Cow;
use std::cmp::Reverse;

use crate::clock::Timestamp;
use crate::documents::Key;
use crate::features::Signed;
use crate::simhash::Fingerprint;
use crate::sketch::{SLOTS, Sketch};

use super::{Bond, Candidate, Config, Likeness, Sites};

/// Similarity from which a tree counts when it is asked what is commonplace: far above chance.
const RELATED: f32 = 0.08;

/// What a tree shares with another tree tells against it if it is at least this share of what it
/// shares with the article.
const COMMONPLACE_SHARE_MIN: f32 = 0.4;

/// Candidates that are looked up for each tree that may be compared.
const CONTENTS_PER_TREE: usize = 4;

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
    /// Hash of the site of the root, 0 if that is not known.
    pub site: u64,
    /// Distinct shingles of the root.
    pub shingles: u32,
    /// Copies of the document.
    pub copies: u64,
    /// When the first of them came.
    pub first_arrival: Timestamp,
}

/// How an article would hang on a tree, as the judge sees it.
///
/// What is stored of it is [`clusters::Joint`](crate::clusters::Joint), which an equal text has as
/// well, without the judge being asked.
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
/// A tree that is as alike to other trees as to the article shares with it only what all of them
/// share: boilerplate of a site, or a quotation. That is left out before the rule is asked, unless
/// the texts are as good as equal ([`Rule::sure_min`](super::Rule::sure_min)). All that the article
/// shares with the document `wary` is taken for boilerplate.
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
    // Many contents of one tree must not cost as much as many trees.
    for candidate in candidates.iter().take(config.candidates_max.saturating_mul(CONTENTS_PER_TREE))
    {
        if related.len() >= config.candidates_max {
            break;
        }
        let root = trees.root_of(candidate.content)?;
        let known = related.iter_mut().find(|other| other.root.document == root.document);
        if let Some(known) = known {
            known.candidate.titled |= candidate.titled;
            known.candidate.key = known.candidate.key.min(candidate.key);
        } else {
            let similarity = signed.text.sketch.similarity(&root.sketch);
            related.push(Related { root, candidate: *candidate, similarity });
        }
    }
    let joints = related.iter().filter_map(|tree| {
        let joint = tree.joint(signed, (&related, wary), config)?;
        let alike = if config.rule.confirm { joint.likeness.similarity } else { 0.0 };
        let root = &tree.root;
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

/// A tree that may take the article.
struct Related<'a> {
    root: Root<'a>,
    candidate: Candidate,
    /// Similarity of the whole texts.
    similarity: f32,
}

impl Related<'_> {
    fn joint(
        &self,
        signed: &Signed,
        (related, wary): (&[Self], Option<u64>),
        config: &Config,
    ) -> Option<Joint> {
        let (text, rule) = (&signed.text, &config.rule);
        let whole = Likeness::of(self.similarity, text.shingles, self.root.shingles);
        let sites = Sites::of(signed.site, self.root.site);
        let bond = Bond { titled: self.candidate.titled, sites };
        let sure = !rule.confirm || rule.sure(self.similarity, bond);
        // What is left out makes texts less alike, never more.
        if rule.confirm && !rule.same(whole, bond) {
            return None;
        }
        let mut likeness = whole;
        if !sure {
            let own = self.own_slots(&text.sketch, (related, wary), bond);
            likeness = self.without_commonplaces(signed, &own);
            if !rule.same(likeness, bond) && !rule.copied(self.similarity, bond) {
                return None;
            }
        }
        Some(Joint {
            document: self.root.document,
            key: self.candidate.key,
            distance: text.fingerprint.distance(self.root.fingerprint),
            likeness,
            sure,
        })
    }

    /// Marks the slots of the article that are its own: no other tree has them that is nearly as
    /// alike to this one as the article is.
    ///
    /// Pages of different sites that resemble each other are likely copies: there, what the root
    /// alone has is what tells. Where it is as another tree is, an edited copy differs from both.
    fn own_slots(
        &self,
        sketch: &Sketch,
        (related, wary): (&[Self], Option<u64>),
        bond: Bond,
    ) -> [bool; SLOTS] {
        let least = (COMMONPLACE_SHARE_MIN * self.similarity).max(RELATED);
        let two_sites = bond.sites == Sites::Two;
        let mut own = [true; SLOTS];
        for tree in related.iter().filter(|tree| tree.similarity >= RELATED) {
            let itself = tree.root.document == self.root.document;
            let counts = if itself {
                wary == Some(tree.root.document)
            } else {
                tree.root.sketch.similarity(&self.root.sketch) >= least
            };
            if counts {
                let its = tree.root.sketch.0.iter();
                let pairs = sketch.0.iter().zip(self.root.sketch.0.iter());
                for ((own, its), (mine, root)) in own.iter_mut().zip(its).zip(pairs) {
                    *own &= its != mine && (itself || !two_sites || its != root);
                }
            }
        }
        own
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
