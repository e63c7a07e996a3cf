//! The rule of the texts on simhash, and nothing else: documents are the trees of a parent forest
//! over fingerprints. The preset `seeds` runs on it.

use std::collections::HashMap;

use super::Key;
use crate::base::clock::Timestamp;
use crate::neardup::forest::Forest;
use crate::text::features::TextKeys;
use crate::text::simhash::Fingerprint;

use super::memory;
use super::{Attachment, Config, Error, Judgement, Likeness};

/// A parent forest, and the tree that each of its roots has here.
pub(super) struct Classes {
    forest: Forest,
    trees: HashMap<Fingerprint, u32>,
    words_min: u32,
}

impl Classes {
    /// Makes an empty one, if fingerprints are all that is asked for.
    pub(super) fn of(config: &Config) -> Result<Option<Self>, Error> {
        let alone = Key::asked(config).all(|(key, _)| key == Key::Near);
        if config.rule.confirm || !alone {
            return Ok(None);
        }
        let forest = Forest::new(config.layout, config.k)?;
        let (trees, words_min) = (HashMap::new(), config.rule.words_min.max(1));
        Ok(Some(Self { forest, trees, words_min }))
    }

    /// Adds a text, which is document number `number`, and tells where it belongs.
    pub(super) fn place(
        &mut self,
        text: &TextKeys,
        number: u32,
        known: &memory::MemoryTrees,
    ) -> Judgement {
        if text.words < self.words_min {
            return Judgement::default();
        }
        let root = self.forest.insert(text.fingerprint, Timestamp(i64::from(number)));
        let Some(tree) = self.trees.get(&root).copied() else {
            self.trees.insert(root, known.trees.len() as u32);
            return Judgement::default();
        };
        let its = &known.nodes[known.trees[tree as usize].root as usize].keys.text;
        let similarity = text.sketch.similarity(&its.sketch);
        let matched = Attachment {
            document: u64::from(tree),
            key: Key::Near,
            distance: text.fingerprint.distance(root),
            likeness: Likeness::of(similarity, text.shingles, its.shingles),
            sure: true,
            evicts: Vec::new(),
        };
        Judgement { matched: Some(matched), ..Judgement::default() }
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
