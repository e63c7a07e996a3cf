//! Articles that are looked up together, by several threads, before it is their turn.
//!
//! The newest contents are in memory and change with each article that is stored. All others are
//! the same until the next commit, so that many articles can be looked up there at a time; what the
//! newest ones have is added when it is an article's turn.

use std::panic::resume_unwind;
use std::thread;

use crate::neardup::segment::{Ask, exact_key};
use crate::neardup::{Candidate, FoundPostings, Key, LookUp, Postings as _};
use crate::store::{self, Snapshot, Store, View};
use crate::text::features::ArticleKeys;
use crate::text::simhash::Fingerprint;

use super::Index;

/// Parts of a look-up for each thread.
const PARTS: usize = 16;

/// What was found for an article among all contents but the newest.
#[derive(Debug)]
pub struct LookedAhead {
    hash: u128,
    title: Option<Fingerprint>,
    found: FoundPostings,
}

impl Index {
    /// Looks up articles among all contents but the newest, as the last commit has left them.
    pub fn look_ahead(
        &self,
        store: &Store,
        articles: &[&ArticleKeys],
        threads: usize,
    ) -> Result<Vec<LookedAhead>, store::Error> {
        let found = self.found_by_threads(store, articles, threads)?;
        let of = |(keys, found): (&&ArticleKeys, FoundPostings)| LookedAhead {
            hash: keys.text.hash,
            title: keys.title,
            found,
        };
        Ok(articles.iter().zip(found).map(of).collect())
    }

    /// Returns the same as [`Index::candidates`] for an article that was looked up since the last
    /// commit; none if it was not that one.
    #[must_use]
    pub fn candidates_after(
        &self,
        ahead: &LookedAhead,
        keys: &ArticleKeys,
    ) -> Option<Vec<Candidate>> {
        let is_it = ahead.hash == keys.text.hash && ahead.title == keys.title;
        is_it.then(|| {
            let Ok(found) = self.tail.finder.candidates_with(keys, &ahead.found);
            found
        })
    }

    /// Returns the same as [`Index::equal_texts`] for an article that was looked up since the last
    /// commit; none if it has another hash.
    #[must_use]
    pub fn equal_texts_after(&self, ahead: &LookedAhead, hash: u128) -> Option<Vec<u64>> {
        (ahead.hash == hash).then(|| {
            let (key, mut found) = (exact_key(hash), Vec::new());
            let Ok(()) = ahead.found.equal(Key::Exact, key, &mut |content| found.push(content));
            self.tail.with_newest(key, found)
        })
    }

    /// Returns the same as [`Index::candidates`] for each of some articles.
    pub fn candidates_of(
        &self,
        store: &Store,
        articles: &[&ArticleKeys],
        threads: usize,
    ) -> Result<Vec<Vec<Candidate>>, store::Error> {
        let found = self.found_by_threads(store, articles, threads)?;
        let of = |(keys, found): (&&ArticleKeys, FoundPostings)| {
            let Ok(found) = self.tail.finder.candidates_with(keys, &found);
            found
        };
        Ok(articles.iter().zip(found).map(of).collect())
    }
}

impl LookedAhead {
    /// Returns its candidates among these contents, those for which most speaks first.
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
        self.found.candidates()
    }

    /// Returns the memory that it takes, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.found.memory()
    }
}

/// Looking up articles among all contents but the newest.
impl Index {
    /// Does so with what asks already.
    pub(super) fn found(
        &self,
        view: &impl View,
        articles: &[&ArticleKeys],
    ) -> Result<Vec<FoundPostings>, store::Error> {
        let look_up = LookUp::of(&self.tail.finder, articles);
        let mut answers = Vec::new();
        for asks in look_up.parts(1) {
            let blocks = &self.source(view, true);
            self.postings(blocks).find(asks, &mut |answer| answers.push(answer))?;
        }
        let mut all = look_up.found(answers);
        for (keys, found) in articles.iter().zip(&mut all) {
            self.add_frozen(keys, found);
        }
        Ok(all)
    }

    /// Does so with several threads. So many blocks are read that none is kept for another time.
    fn found_by_threads(
        &self,
        store: &Store,
        articles: &[&ArticleKeys],
        threads: usize,
    ) -> Result<Vec<FoundPostings>, store::Error> {
        let look_up = LookUp::of(&self.tail.finder, articles);
        // Parts of one table take longer than those of another.
        let parts = look_up.parts(PARTS * threads);
        let dealt = (0..threads).flat_map(|own| parts.iter().skip(own).step_by(threads));
        let dealt: Vec<&[Ask]> = dealt.copied().collect();
        let answers = each_of(&dealt, store, threads, |view, asks| {
            let mut answers = Vec::new();
            let blocks = &self.source(view, false);
            self.postings(blocks).find(asks, &mut |answer| answers.push(answer))?;
            Ok(answers)
        })?;
        let mut all = look_up.found(answers.into_iter().flatten());
        let size = articles.len().div_ceil(threads).max(1);
        thread::scope(|scope| {
            for (articles, all) in articles.chunks(size).zip(all.chunks_mut(size)) {
                let pairs = articles.iter().zip(all);
                scope.spawn(|| pairs.for_each(|(keys, found)| self.add_frozen(keys, found)));
            }
        });
        Ok(all)
    }

    fn add_frozen(&self, keys: &ArticleKeys, found: &mut FoundPostings) {
        for frozen in &self.frozen {
            let Ok(()) = found.add(&self.tail.finder, keys, frozen);
        }
    }
}

/// Asks for each of a list in the state of the last commit, with several threads.
pub fn each_of<T: Sync, F: Send>(
    list: &[T],
    store: &Store,
    threads: usize,
    ask: impl Fn(&Snapshot, &T) -> Result<F, store::Error> + Sync,
) -> Result<Vec<F>, store::Error> {
    let part = |part: &[T]| {
        let view = store.snapshot()?;
        part.iter().map(|one| ask(&view, one)).collect::<Result<Vec<F>, store::Error>>()
    };
    let part = &part;
    let size = list.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = list.chunks(size).map(|some| scope.spawn(move || part(some))).collect();
        let mut found = Vec::with_capacity(list.len());
        for part in parts {
            found.append(&mut part.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok(found)
    })
}
