//! What the dedup stage asks for contents that share a key with an article, wherever the keys lie.

use std::sync::Mutex;

use crate::corpus::index::{Index, lock};
use crate::neardup::Candidate;
use crate::store::{Batch, Error, View};
use crate::text::features::ArticleKeys;

/// Finds contents by their keys. `V` is where their rows are.
pub trait Lookup<V> {
    /// Returns the contents whose whole texts may have a hash, older ones first; of very many some.
    /// Some of them may be gone, or have another hash.
    fn equal_texts(&self, view: &V, hash: u128) -> Result<Vec<u64>, Error>;

    /// Returns the contents that share a key with an article, those for which most speaks first,
    /// then older ones. Some of them may be gone.
    fn candidates(&self, view: &V, keys: &ArticleKeys) -> Result<Vec<Candidate>, Error>;
}

/// Keeps the keys of contents as they come and go.
pub trait Keep<V>: Lookup<V> {
    /// Has a content found by its keys.
    fn insert(&self, view: &mut V, content: u64, keys: &ArticleKeys);

    /// Names a content no more that is removed.
    fn forget(&self, content: u64);
}

impl<V: View> Lookup<V> for Index {
    fn equal_texts(&self, view: &V, hash: u128) -> Result<Vec<u64>, Error> {
        self.equal_texts(view, hash)
    }

    fn candidates(&self, view: &V, keys: &ArticleKeys) -> Result<Vec<Candidate>, Error> {
        self.candidates(view, keys)
    }
}

/// Locked for one question or content at a time: who only asks for keys waits neither for all nor
/// for the disk.
impl<V: View> Lookup<V> for Mutex<Index> {
    fn equal_texts(&self, view: &V, hash: u128) -> Result<Vec<u64>, Error> {
        lock(self).equal_texts(view, hash)
    }

    fn candidates(&self, view: &V, keys: &ArticleKeys) -> Result<Vec<Candidate>, Error> {
        lock(self).candidates(view, keys)
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
