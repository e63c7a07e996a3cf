//! Articles that are looked up together, by several threads, before it is their turn.
//!
//! All contents but the newest stay the same until the next commit, so that many articles can be
//! looked up among them while others are added; those that came since are asked when it is an
//! article's turn.

use std::convert::Infallible;
use std::sync::Arc;

use crate::base::threads::each_part;
use crate::neardup::segment::{Ask, Segment, SegmentPostings, exact_key};
use crate::neardup::{
    Asked, Candidate, Finder, FoundPostings, Key, LookUp, Nearby, Postings, Resemblance, Shortlist,
    Sieve,
};
use crate::store::{self, Store, View};
use crate::text::features::ArticleKeys;
use crate::text::simhash::Fingerprint;

use super::Index;
use super::blocks::{IndexCache, Source};
use super::glimpses::Glimpses;
use super::recent::{Frozen, InMemory};

/// Parts of a look-up for each thread.
const PARTS: usize = 16;

/// So many articles have more blocks read than a cache has room for.
const MANY: usize = 1_024;

/// All contents but the newest, as the last commit has left them, whatever is added meanwhile. A
/// commit waits until those that are being looked up have been.
pub struct OlderContents {
    /// Says what an article asks for.
    asks: Arc<Finder>,
    segments: Arc<[Segment]>,
    cache: Arc<IndexCache>,
    frozen: Vec<Arc<InMemory>>,
    /// How many such there are with those that came into the store.
    frozen_until: u64,
    glimpses: Glimpses,
}

/// What was found for an article before its turn.
#[derive(Debug)]
pub struct LookedAhead {
    /// Of the index that was asked, and of no other.
    asks: Arc<Finder>,
    hash: u128,
    fingerprint: Fingerprint,
    sentences: Box<[u32]>,
    title: Option<Fingerprint>,
    frozen_until: u64,
    /// How many contents were removed until then.
    forgotten: u64,
    /// Those with its very text.
    equal: Box<[u64]>,
    shortlist: Shortlist,
    /// Memory of all that was found, of which this is left.
    found_bytes: usize,
}

impl std::fmt::Debug for OlderContents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OlderContents")
            .field("segments", &self.segments.len())
            .finish_non_exhaustive()
    }
}

impl OlderContents {
    /// Returns what compares articles with them first.
    #[must_use]
    pub fn glimpses(&self) -> &Glimpses {
        &self.glimpses
    }

    /// Tells whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.frozen.is_empty()
    }

    /// Looks up articles, in a state of the store in which these contents are there. `compare`
    /// tells how like an article a content looks; none if that is not there.
    pub fn look_up(
        &self,
        view: &(impl View + Sync),
        articles: &[&ArticleKeys],
        threads: usize,
        compare: impl Fn(&ArticleKeys, u64) -> Result<Option<Resemblance>, store::Error> + Sync,
    ) -> Result<Vec<LookedAhead>, store::Error> {
        self.found_by_threads(view, articles, threads, |keys, found| {
            self.looked_up(keys, &found, |content| compare(keys, content))
        })
    }

    /// Does the same with those whose very texts are not there: of the others it seldom matters
    /// what else is like them, and nothing is returned for them.
    pub fn look_up_new(
        &self,
        view: &(impl View + Sync),
        articles: &[&ArticleKeys],
        threads: usize,
        compare: impl Fn(&ArticleKeys, u64) -> Result<Option<Resemblance>, store::Error> + Sync,
    ) -> Result<Vec<Option<LookedAhead>>, store::Error> {
        if self.is_empty() || articles.is_empty() {
            return Ok(articles.iter().map(|_| None).collect());
        }
        let is_known = self.are_known(view, articles)?;
        let pairs = articles.iter().zip(&is_known);
        let new: Vec<&ArticleKeys> =
            pairs.filter(|(_, is_known)| !**is_known).map(|(keys, _)| *keys).collect();
        let mut found = self.look_up(view, &new, threads, compare)?.into_iter();
        Ok(is_known.iter().map(|is_known| if *is_known { None } else { found.next() }).collect())
    }

    /// Tells for each article whether its very text may be in a segment.
    fn are_known(
        &self,
        view: &impl View,
        articles: &[&ArticleKeys],
    ) -> Result<Vec<bool>, store::Error> {
        let ask = |(number, keys): (u32, &&ArticleKeys)| {
            Ask::equal(Key::Exact, exact_key(keys.text.hash), number)
        };
        let mut asks: Vec<Ask> = (0..).zip(articles).map(ask).collect();
        asks.sort_unstable();
        let blocks = &Source::new(view, &self.cache, true);
        let postings = SegmentPostings { segments: &self.segments, blocks };
        let mut are_known = vec![false; articles.len()];
        postings.find(&asks, &mut |answer| are_known[answer.ask.number as usize] = true)?;
        Ok(are_known)
    }

    /// Makes what is kept of what was found in segments, and of what is not there.
    fn looked_up(
        &self,
        keys: &ArticleKeys,
        found: &FoundPostings,
        compare: impl FnMut(u64) -> Result<Option<Resemblance>, store::Error>,
    ) -> Result<LookedAhead, store::Error> {
        let (all, mut equal) = (All { found, older: self }, Vec::new());
        let exact = exact_key(keys.text.hash);
        let Ok(()) = all.equal(Key::Exact, exact, &mut |content| equal.push(content));
        Ok(LookedAhead {
            asks: Arc::clone(&self.asks),
            hash: keys.text.hash,
            fingerprint: keys.text.fingerprint,
            sentences: keys.text.sentences.clone(),
            title: keys.title,
            frozen_until: self.frozen_until,
            forgotten: self.glimpses.forgotten(),
            equal: equal.into(),
            shortlist: Shortlist::of(&self.asks, keys, &all, compare)?,
            found_bytes: found.memory(),
        })
    }

    /// Looks up articles in segments, with several threads, and makes something of what was found
    /// for each. Of many articles so many blocks are read that none is kept for another time.
    fn found_by_threads<T: Send>(
        &self,
        view: &(impl View + Sync),
        articles: &[&ArticleKeys],
        threads: usize,
        each: impl Fn(&ArticleKeys, FoundPostings) -> Result<T, store::Error> + Sync,
    ) -> Result<Vec<T>, store::Error> {
        let look_up = LookUp::of(&self.asks, articles, threads);
        let parts = look_up.parts(PARTS * threads);
        let keeps = articles.len() < MANY;
        let answers = each_part(parts.iter(), threads, |asks| {
            let (blocks, mut answers) = (&Source::new(view, &self.cache, keeps), Vec::new());
            let postings = SegmentPostings { segments: &self.segments, blocks };
            postings.find(&asks.in_order(), &mut |answer| answers.push(answer))?;
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
}

impl Index {
    /// Returns what compares articles with contents first.
    #[must_use]
    pub fn glimpses(&self) -> Glimpses {
        self.glimpses.clone()
    }

    /// Returns what tells which candidates of an article are read.
    #[must_use]
    pub fn sieve(&self) -> Sieve {
        self.asks.sieve()
    }

    /// Returns all contents but the newest, to be asked while others are added.
    #[must_use]
    pub fn older(&self) -> OlderContents {
        OlderContents {
            asks: Arc::clone(&self.asks),
            segments: Arc::clone(&self.asked),
            cache: Arc::clone(&self.cache),
            frozen: self.frozen.iter().map(|frozen| Arc::clone(&frozen.contents)).collect(),
            frozen_until: self.frozen_before + self.frozen.len() as u64,
            glimpses: self.glimpses.clone(),
        }
    }

    /// Returns the same as [`Index::candidates`] for an article that was looked up among older
    /// contents, without those that the judge does not read: it gives up behind some that share
    /// keys with it by chance. None if it was not that article, another index was asked, contents
    /// were removed since, or what was new then has come into the store.
    #[must_use]
    pub fn candidates_after(
        &self,
        ahead: &LookedAhead,
        keys: &ArticleKeys,
    ) -> Option<Vec<Candidate>> {
        let is_true = ahead.is_of(keys) && self.knows_newer(ahead);
        let found = || {
            ahead.shortlist.candidates(
                &self.tail.contents.finder,
                &self.newest(ahead.frozen_until),
                keys,
            )
        };
        is_true.then(found)
    }

    /// Returns the same as [`Index::equal_texts`] for an article that was looked up among older
    /// contents; none if it has another hash, or for one of the other reasons.
    #[must_use]
    pub fn equal_texts_after(&self, ahead: &LookedAhead, hash: u128) -> Option<Vec<u64>> {
        if ahead.hash != hash || !self.knows_newer(ahead) {
            return None;
        }
        let (key, mut found) = (exact_key(hash), ahead.equal.to_vec());
        let newest = self.newest(ahead.frozen_until);
        let Ok(()) = newest.equal(Key::Exact, key, &mut |content| found.push(content));
        Some(self.tail.oldest(found))
    }

    /// Tells whether all that was not looked up is in memory, and nothing else.
    fn knows_newer(&self, ahead: &LookedAhead) -> bool {
        let is_of_this = Arc::ptr_eq(&ahead.asks, &self.asks);
        let nothing_went = ahead.forgotten == self.glimpses.forgotten();
        let first = self.frozen_before.max(self.frozen_twice);
        is_of_this && nothing_went && ahead.frozen_until >= first
    }

    /// Returns the newest contents, and those before them that are on their way into the store, but
    /// for so many.
    pub(super) fn newest(&self, but: u64) -> Newest<'_> {
        let but = (but.saturating_sub(self.frozen_before) as usize).min(self.frozen.len());
        Newest { frozen: &self.frozen[but..], tail: &self.tail.contents }
    }

    /// Makes something of what [`Index::candidates`] is for each of some articles.
    pub fn candidates_of<T: Send>(
        &self,
        store: &Store,
        articles: &[&ArticleKeys],
        threads: usize,
        make: impl Fn(&ArticleKeys, Vec<Candidate>) -> Result<T, store::Error> + Sync,
    ) -> Result<Vec<T>, store::Error> {
        self.older().found_by_threads(&store.snapshot()?, articles, threads, |keys, mut found| {
            self.add_frozen(keys, &mut found);
            let Ok(found) = self.tail.contents.finder.candidates_with(keys, &found);
            make(keys, found)
        })
    }
}

impl LookedAhead {
    /// Returns the hash of the text of the article.
    #[must_use]
    pub fn hash(&self) -> u128 {
        self.hash
    }

    /// Tells whether an article asks for all that was asked for. One with the same text need not:
    /// its lines may end elsewhere, and so its sentences, or other fields count in its fingerprint.
    fn is_of(&self, keys: &ArticleKeys) -> bool {
        let text = &keys.text;
        self.hash == text.hash
            && self.fingerprint == text.fingerprint
            && self.sentences == text.sentences
            && self.title == keys.title
    }

    /// Returns the contents that the judge likely reads.
    pub fn likely(&self) -> impl Iterator<Item = u64> {
        self.shortlist.likely()
    }

    /// Returns how like the article a content looks; none if they were not compared.
    #[must_use]
    pub fn resemblance(&self, content: u64) -> Option<Resemblance> {
        self.shortlist.resemblance(content)
    }

    /// Returns the memory that it takes and that looking it up took, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let lists = size_of_val(&*self.equal) + size_of_val(&*self.sentences);
        size_of::<Self>() + lists + self.shortlist.memory() + self.found_bytes
    }
}

/// What was found for an article in segments, and all older contents that are not there.
struct All<'a> {
    found: &'a FoundPostings,
    older: &'a OlderContents,
}

impl Postings for All<'_> {
    type Error = Infallible;

    fn prefetch(&self, asked: &[(Key, Asked)]) {
        self.older.frozen.iter().for_each(|frozen| frozen.prefetch(asked));
    }

    fn near(&self, asked: Nearby, each: &mut dyn FnMut(u32, u64)) -> Result<(), Infallible> {
        self.found.near(asked, each)?;
        self.older.frozen.iter().try_for_each(|frozen| frozen.near(asked, each))
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), Infallible> {
        self.found.equal(key, hash, each)?;
        self.older.frozen.iter().try_for_each(|frozen| frozen.equal(key, hash, each))
    }
}

/// Contents in memory.
pub(super) struct Newest<'a> {
    frozen: &'a [Frozen],
    tail: &'a InMemory,
}

impl Postings for Newest<'_> {
    type Error = Infallible;

    fn prefetch(&self, asked: &[(Key, Asked)]) {
        self.frozen.iter().for_each(|frozen| frozen.contents.prefetch(asked));
        self.tail.prefetch(asked);
    }

    fn near(&self, asked: Nearby, each: &mut dyn FnMut(u32, u64)) -> Result<(), Infallible> {
        self.frozen.iter().try_for_each(|frozen| frozen.contents.near(asked, each))?;
        self.tail.near(asked, each)
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), Infallible> {
        self.frozen.iter().try_for_each(|frozen| frozen.contents.equal(key, hash, each))?;
        self.tail.equal(key, hash, each)
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
        let look_up = LookUp::of(&self.asks, articles, 1);
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

    fn add_frozen(&self, keys: &ArticleKeys, found: &mut FoundPostings) {
        for frozen in &self.frozen {
            let Ok(()) = found.add(&self.asks, keys, &*frozen.contents);
        }
    }
}

/// Returns how many of a list are a part, of which each thread takes some.
fn part_size(list: usize, threads: usize) -> usize {
    list.div_ceil(PARTS * threads).max(1)
}

fn joined<T>(parts: Vec<Result<Vec<T>, store::Error>>) -> Result<Vec<T>, store::Error> {
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(parts.into_iter().flatten().collect())
}
