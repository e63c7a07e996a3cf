//! What the dedup stage asks for contents that share a key with an article, wherever the keys lie.

use std::sync::Mutex;

use crate::corpus::index::{Glimpses, Index, lock};
use crate::neardup::{Candidate, Resemblance, Sieve, sift};
use crate::store::{Batch, Error, View};
use crate::text::features::ArticleKeys;

/// Finds contents by their keys. `V` is where their rows are.
pub trait Lookup<V> {
    /// Returns the contents whose whole texts may have a hash, older ones first; of very many some.
    /// Some of them may be gone, or have another hash.
    fn equal_texts(&self, view: &V, hash: u128) -> Result<Vec<u64>, Error>;

    /// Returns the contents that share a key with an article, those for which most speaks first,
    /// then older ones, without those that the judge does not read. Some of them may be gone.
    fn candidates(&self, view: &V, keys: &ArticleKeys) -> Result<Vec<Candidate>, Error>;
}

/// Keeps the keys of contents as they come and go.
pub trait Keep<V>: Lookup<V> {
    /// Has a content found by its keys.
    fn insert(&self, view: &mut V, content: u64, keys: &ArticleKeys);

    /// Names a content no more that is removed.
    fn forget(&self, content: u64);
}

/// Which of the candidates that an index has for an article are read.
pub(super) struct ReadOf {
    sieve: Sieve,
    glimpses: Glimpses,
}

impl ReadOf {
    pub(super) fn of(index: &Index) -> Self {
        Self { sieve: index.sieve(), glimpses: index.glimpses() }
    }

    /// Leaves of candidates those that the judge reads. `known` tells how like the article a
    /// content looks, if they were compared before.
    pub(super) fn sift(
        &self,
        view: &impl View,
        keys: &ArticleKeys,
        candidates: &mut Vec<Candidate>,
        known: impl Fn(u64) -> Option<Resemblance>,
    ) -> Result<(), Error> {
        sift(candidates, self.sieve, |content| match known(content) {
            Some(resemblance) => Ok(Some(resemblance)),
            None => self.glimpses.compare(view, keys, content),
        })
    }
}

impl<V: View> Lookup<V> for Index {
    fn equal_texts(&self, view: &V, hash: u128) -> Result<Vec<u64>, Error> {
        self.equal_texts(view, hash)
    }

    fn candidates(&self, view: &V, keys: &ArticleKeys) -> Result<Vec<Candidate>, Error> {
        let mut found = self.candidates(view, keys)?;
        ReadOf::of(self).sift(view, keys, &mut found, |_| None)?;
        Ok(found)
    }
}

/// Locked for one question or content at a time: who only asks for keys waits neither for all nor
/// for the disk.
impl<V: View> Lookup<V> for Mutex<Index> {
    fn equal_texts(&self, view: &V, hash: u128) -> Result<Vec<u64>, Error> {
        lock(self).equal_texts(view, hash)
    }

    fn candidates(&self, view: &V, keys: &ArticleKeys) -> Result<Vec<Candidate>, Error> {
        let (mut found, read) = {
            let index = lock(self);
            (index.candidates(view, keys)?, ReadOf::of(&index))
        };
        read.sift(view, keys, &mut found, |_| None)?;
        Ok(found)
    }
}

impl Keep<Batch> for Mutex<Index> {
    fn insert(&self, batch: &mut Batch, content: u64, keys: &ArticleKeys) {
        lock(self).insert(batch, content, keys);
    }

    fn forget(&self, content: u64) {
        lock(self).forget(content);
    }
}
