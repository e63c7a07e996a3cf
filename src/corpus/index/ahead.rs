//! Articles that are looked up together, by several threads, before it is their turn.
//!
//! All contents that are there stay the same until the next commit, so that many articles can be
//! looked up at a time; those that came since are asked when it is an article's turn.

use std::convert::Infallible;

use crate::base::threads::each_part;
use crate::neardup::segment::exact_key;
use crate::neardup::{Candidate, Finder, FoundPostings, Key, LookUp, Nearby, Postings, Shortlist};
use crate::store::{self, Snapshot, Store, View};
use crate::text::features::ArticleKeys;
use crate::text::simhash::Fingerprint;

use super::Index;
use super::recent::Frozen;

/// Parts of a look-up for each thread.
const PARTS: usize = 16;

/// What was found for an article before its turn.
#[derive(Debug)]
pub struct LookedAhead {
    hash: u128,
    title: Option<Fingerprint>,
    /// How many contents were removed until then.
    forgotten: usize,
    /// Those with its very text.
    equal: Box<[u64]>,
    shortlist: Shortlist,
    /// Memory of all that was found, of which this is left.
    found_bytes: usize,
}

impl Index {
    /// Looks up articles; contents that come until it is their turn have greater numbers than all
    /// that are there. `resembles` tells whether an article has more in common with a content than
    /// keys that others have by chance.
    pub fn look_ahead(
        &self,
        store: &Store,
        articles: &[&ArticleKeys],
        threads: usize,
        resembles: impl Fn(&ArticleKeys, u64) -> Result<bool, store::Error> + Sync,
    ) -> Result<Vec<LookedAhead>, store::Error> {
        let Self { frozen, tail, .. } = self;
        let finder = &tail.finder;
        self.found_by_threads(store, articles, threads, |keys, found| {
            let (all, mut equal) = (All { found: &found, frozen, newest: finder }, Vec::new());
            let exact = exact_key(keys.text.hash);
            let Ok(()) = all.equal(Key::Exact, exact, &mut |content| equal.push(content));
            let resembles = |content| resembles(keys, content);
            Ok(LookedAhead {
                hash: keys.text.hash,
                title: keys.title,
                forgotten: finder.forgotten(),
                equal: equal.into(),
                shortlist: Shortlist::of(finder, tail.last, keys, &all, resembles)?,
                found_bytes: found.memory(),
            })
        })
    }

    /// Returns the same as [`Index::candidates`] for an article that was looked up since the last
    /// commit, without those that the judge does not read: it gives up behind some that share keys
    /// with it by chance. None if it was not that article, or contents were removed since.
    #[must_use]
    pub fn candidates_after(
        &self,
        ahead: &LookedAhead,
        keys: &ArticleKeys,
    ) -> Option<Vec<Candidate>> {
        let finder = &self.tail.finder;
        let is_it = ahead.hash == keys.text.hash && ahead.title == keys.title;
        let is_true = is_it && ahead.forgotten == finder.forgotten();
        is_true.then(|| ahead.shortlist.candidates(finder, keys))
    }

    /// Returns the same as [`Index::equal_texts`] for an article that was looked up since the last
    /// commit; none if it has another hash.
    #[must_use]
    pub fn equal_texts_after(&self, ahead: &LookedAhead, hash: u128) -> Option<Vec<u64>> {
        (ahead.hash == hash).then(|| self.tail.with_newest(exact_key(hash), ahead.equal.to_vec()))
    }

    /// Makes something of what [`Index::candidates`] is for each of some articles.
    pub fn candidates_of<T: Send>(
        &self,
        store: &Store,
        articles: &[&ArticleKeys],
        threads: usize,
        make: impl Fn(&ArticleKeys, Vec<Candidate>) -> Result<T, store::Error> + Sync,
    ) -> Result<Vec<T>, store::Error> {
        self.found_by_threads(store, articles, threads, |keys, mut found| {
            self.add_frozen(keys, &mut found);
            let Ok(found) = self.tail.finder.candidates_with(keys, &found);
            make(keys, found)
        })
    }
}

impl LookedAhead {
    /// Returns the contents that the judge likely reads.
    pub fn likely(&self) -> impl Iterator<Item = u64> {
        self.shortlist.likely()
    }

    /// Returns the contents with which the article was found to have no more in common than chance
    /// has it, in order.
    #[must_use]
    pub fn chance(&self) -> &[u64] {
        self.shortlist.chance()
    }

    /// Returns the memory that it takes and that looking it up took, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.equal) + self.shortlist.memory() + self.found_bytes
    }
}

/// What was found for an article in segments, and all contents that are not there.
struct All<'a> {
    found: &'a FoundPostings,
    frozen: &'a [Frozen],
    newest: &'a Finder,
}

impl Postings for All<'_> {
    type Error = Infallible;

    fn near(&self, asked: Nearby, each: &mut dyn FnMut(u32, u64)) -> Result<(), Infallible> {
        self.found.near(asked, each)?;
        self.frozen.iter().try_for_each(|frozen| frozen.near(asked, each))?;
        self.newest.near(asked, each)
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), Infallible> {
        self.found.equal(key, hash, each)?;
        self.frozen.iter().try_for_each(|frozen| frozen.equal(key, hash, each))?;
        self.newest.equal(key, hash, each)
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
        let look_up = LookUp::of(&self.tail.finder, articles, 1);
        let mut answers = Vec::new();
        for asks in look_up.parts(1) {
            let blocks = &self.source(view, true);
            self.postings(blocks).find(&asks.in_order(), &mut |answer| answers.push(answer))?;
        }
        let mut all = look_up.found(answers);
        for (keys, found) in articles.iter().zip(&mut all) {
            self.add_frozen(keys, found);
        }
        Ok(all)
    }

    /// Looks up articles in segments, with several threads, and makes something of what was found
    /// for each. So many blocks are read that none is kept for another time.
    fn found_by_threads<T: Send>(
        &self,
        store: &Store,
        articles: &[&ArticleKeys],
        threads: usize,
        each: impl Fn(&ArticleKeys, FoundPostings) -> Result<T, store::Error> + Sync,
    ) -> Result<Vec<T>, store::Error> {
        let look_up = LookUp::of(&self.tail.finder, articles, threads);
        let parts = look_up.parts(PARTS * threads);
        let answers = each_part(parts.iter(), threads, |asks| {
            let (view, mut answers) = (store.snapshot()?, Vec::new());
            let blocks = &self.source(&view, false);
            self.postings(blocks).find(&asks.in_order(), &mut |answer| answers.push(answer))?;
            Ok::<_, store::Error>(answers)
        });
        let answers = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut all = look_up.found(answers.into_iter().flatten());
        let size = part_size(articles.len(), threads);
        let parts = articles.chunks(size).zip(all.chunks_mut(size));
        let made = each_part(parts, threads, |(articles, all)| {
            let pairs = articles.iter().zip(all);
            let pairs = pairs.map(|(keys, found)| each(keys, std::mem::take(found)));
            pairs.collect::<Result<Vec<T>, store::Error>>()
        });
        joined(made)
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
    let found = each_part(list.chunks(part_size(list.len(), threads)), threads, |part| {
        let view = store.snapshot()?;
        part.iter().map(|one| ask(&view, one)).collect::<Result<Vec<F>, store::Error>>()
    });
    joined(found)
}

/// Returns how many of a list are a part, of which each thread takes some.
fn part_size(list: usize, threads: usize) -> usize {
    list.div_ceil(PARTS * threads).max(1)
}

fn joined<T>(parts: Vec<Result<Vec<T>, store::Error>>) -> Result<Vec<T>, store::Error> {
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(parts.into_iter().flatten().collect())
}
