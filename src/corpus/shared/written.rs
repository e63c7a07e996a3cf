//! What a transaction has written, as its own judge finds it. The cluster has it only later.

use std::collections::{BTreeSet, HashMap};

use crate::neardup::{Candidate, Config, Error, Finder};
use crate::text::features::ArticleKeys;

use super::keys::SharedKeys;

/// Keys of what was written.
#[derive(Default)]
pub(super) struct Written {
    /// Hash of a text -> contents that have it, or had.
    texts: HashMap<u128, BTreeSet<u64>>,
    /// Documents that have got their roots since they were asked for.
    rooted: BTreeSet<u64>,
    /// By the root of each document that has got it here; none if no document has.
    finder: Option<Finder>,
}

impl Written {
    /// Notes that a content has a text.
    pub(super) fn note_text(&mut self, hash: u128, content: u64) {
        self.texts.entry(hash).or_default().insert(content);
    }

    /// Returns the contents that have the text of a hash, or had.
    pub(super) fn contents(&self, hash: u128) -> Vec<u64> {
        self.texts.get(&hash).into_iter().flatten().copied().collect()
    }

    /// Notes that a document has another root.
    pub(super) fn note_rooted(&mut self, document: u64) {
        self.rooted.insert(document);
    }

    /// Returns the documents that have got their roots since this was asked last.
    pub(super) fn take_rooted(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.rooted)
    }

    /// Has a document found by the keys of its root.
    pub(super) fn add(
        &mut self,
        document: u64,
        root: &ArticleKeys,
        config: &Config,
    ) -> Result<(), Error> {
        let finder = match self.finder.take() {
            Some(finder) => finder,
            None => Finder::new(config)?,
        };
        self.finder.insert(finder).insert(document, root);
        Ok(())
    }

    /// Returns the documents that share a key with an article, with those that were `found` in the
    /// cluster; `empty` is a finder with the same settings.
    pub(super) fn candidates(
        &self,
        keys: &ArticleKeys,
        found: &SharedKeys,
        empty: &Finder,
    ) -> Result<Vec<Candidate>, crate::store::Error> {
        self.finder.as_ref().unwrap_or(empty).candidates_with(keys, found)
    }
}
