//! Articles that are looked up before it is their turn, in the state of the last commit, by whoever
//! fingerprints them: the thread that stores them asks only for what has come since.

use std::sync::Mutex;

use crate::corpus::index::{Index, LookedAhead, OlderContents, lock};
use crate::neardup::Candidate;
use crate::store::{Batch, Error, Snapshot, Store};
use crate::text::features::ArticleKeys;

use super::lookup::{Keep, Lookup, ReadOf};

/// What the last commit has left, to be asked while others write.
#[derive(Debug)]
pub struct CommittedContents {
    view: Snapshot,
    contents: OlderContents,
}

impl CommittedContents {
    /// Takes the present state. To be called by a writer whose turn it is, with no batch open.
    pub fn of(store: &Store, index: &Mutex<Index>) -> Result<Self, Error> {
        let contents = lock(index).older();
        Ok(Self { view: store.snapshot()?, contents })
    }

    /// Looks up articles together, with several threads at most. None for those whose very texts
    /// are there: then it seldom matters what else is like them.
    pub fn look_up_new(
        &self,
        articles: &[&ArticleKeys],
        threads: usize,
    ) -> Result<Vec<Option<LookedAhead>>, Error> {
        let Self { view, contents } = self;
        let compare =
            |keys: &ArticleKeys, content| contents.glimpses().compare(view, keys, content);
        contents.look_up_new(view, articles, threads, compare)
    }

    /// Looks up articles together, with several threads: the more they are, the more of them find
    /// what they ask for in the same block. Returns what was found in the order of the hashes of
    /// their texts; nothing as long as there is nothing to be asked.
    pub fn look_up_all(
        &self,
        articles: &[&ArticleKeys],
        threads: usize,
    ) -> Result<Vec<LookedAhead>, Error> {
        let Self { view, contents } = self;
        if contents.is_empty() {
            return Ok(Vec::new());
        }
        let compare =
            |keys: &ArticleKeys, content| contents.glimpses().compare(view, keys, content);
        let mut found = contents.look_up(view, articles, threads, compare)?;
        found.sort_by_key(LookedAhead::hash);
        Ok(found)
    }
}

/// An index with what was found in it before for some articles.
#[derive(Debug)]
pub struct AskedAhead<'a> {
    /// The index.
    pub index: &'a Mutex<Index>,
    /// What was found, each part in the order of the hashes of the texts.
    pub found: [&'a [LookedAhead]; 2],
}

impl<'a> AskedAhead<'a> {
    /// What was found for texts of this hash.
    fn of(&self, hash: u128) -> impl Iterator<Item = &'a LookedAhead> {
        self.found.into_iter().flat_map(move |part| {
            let first = part.partition_point(|one| one.hash() < hash);
            part[first..].iter().take_while(move |one| one.hash() == hash)
        })
    }
}

impl Lookup<Batch> for AskedAhead<'_> {
    fn equal_texts(&self, batch: &Batch, hash: u128) -> Result<Vec<u64>, Error> {
        let mut ahead = self.of(hash);
        let found = ahead.find_map(|ahead| lock(self.index).equal_texts_after(ahead, hash));
        found.map_or_else(|| self.index.equal_texts(batch, hash), Ok)
    }

    fn candidates(&self, batch: &Batch, keys: &ArticleKeys) -> Result<Vec<Candidate>, Error> {
        let found = self.of(keys.text.hash).find_map(|ahead| {
            let found = lock(self.index).candidates_after(ahead, keys)?;
            Some((found, ahead))
        });
        let Some((mut found, ahead)) = found else { return self.index.candidates(batch, keys) };
        let read = ReadOf::of(&lock(self.index));
        read.sift(batch, keys, &mut found, |content| ahead.resemblance(content))?;
        Ok(found)
    }
}

impl Keep<Batch> for AskedAhead<'_> {
    fn insert(&self, batch: &mut Batch, content: u64, keys: &ArticleKeys) {
        self.index.insert(batch, content, keys);
    }

    fn forget(&self, content: u64) {
        self.index.forget(content);
    }
}
