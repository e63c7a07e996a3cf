//! The rule of the texts on simhash, and nothing else: documents are the trees of a parent forest
//! over fingerprints. The preset `seeds` runs on it.

use std::collections::HashMap;

use super::Key;
use crate::base::clock::Timestamp;
use crate::neardup::forest::Forest;
use crate::text::features::TextKeys;
use crate::text::simhash::Fingerprint;

use super::storage::Storage;
use super::{Attachment, Config, Error, Judgement, Likeness};

/// A parent forest, and the tree that each of its roots has here.
pub(super) struct Classes {
    forest: Forest,
    trees: HashMap<Fingerprint, u32>,
    words_min: u32,
}

/// Tells whether fingerprints are all that is asked for.
pub(super) fn are_enough(config: &Config) -> bool {
    !config.rule.confirm && Key::asked(config).all(|(key, _)| key == Key::Near)
}

impl Classes {
    /// Makes an empty one, if fingerprints are all that is asked for.
    pub(super) fn of(config: &Config) -> Result<Option<Self>, Error> {
        if !are_enough(config) {
            return Ok(None);
        }
        let forest = Forest::new(config.layout, config.k)?;
        let (trees, words_min) = (HashMap::new(), config.rule.words_min.max(1));
        Ok(Some(Self { forest, trees, words_min }))
    }

    /// Adds a text, which is document number `number`, and tells where it belongs; if nowhere, it
    /// becomes the tree `next`.
    pub(super) fn place<S: Storage>(
        &mut self,
        text: &TextKeys,
        number: u32,
        next: u32,
        known: &S,
    ) -> Result<Judgement, S::Error> {
        if text.words < self.words_min {
            return Ok(Judgement::default());
        }
        let root = self.forest.insert(text.fingerprint, Timestamp(i64::from(number)));
        let Some(tree) = self.trees.get(&root).copied() else {
            self.trees.insert(root, next);
            return Ok(Judgement::default());
        };
        let its = &known.text(known.tree(tree)?.root)?.keys.text;
        let similarity = text.sketch.similarity(&its.sketch);
        let matched = Attachment {
            document: u64::from(tree),
            key: Key::Near,
            distance: text.fingerprint.distance(root),
            likeness: Likeness::of(similarity, text.shingles, its.shingles),
            sure: true,
            evicts: Vec::new(),
        };
        Ok(Judgement { matched: Some(matched), ..Judgement::default() })
    }

    /// Counts one more document with a known fingerprint.
    pub(super) fn count(&mut self, text: &TextKeys, number: u32) {
        if text.words >= self.words_min {
            self.forest.insert(text.fingerprint, Timestamp(i64::from(number)));
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.forest.index_bytes()
    }
}
