//! Articles that are looked up together, and what was found for each.

use std::borrow::Cow;
use std::convert::Infallible;

use crate::base::threads::each_part;
use crate::text::features::ArticleKeys;

use super::Key;
use super::finder::{Asked, Finder, Nearby, Postings};
use super::segment::{Answer, Ask, Found, exact_key};

/// The contents that were found by the keys of one article: those with its very text as well.
#[derive(Debug, Default)]
pub struct FoundPostings {
    /// In the order of keys and of what was asked, each once.
    by_key: Vec<FoundByKey>,
}

/// What was found by a key.
#[derive(Debug)]
struct FoundByKey {
    key: Key,
    asked: Asked,
    found: Found,
}

/// Articles whose keys are looked up from the smallest to the largest.
#[derive(Debug)]
pub struct LookUp {
    articles: usize,
    /// Those of some articles each, in order.
    asks: Vec<Vec<Ask>>,
}

impl LookUp {
    /// Looks up all by which contents are found from some articles; `finder` says what that is, and
    /// so many threads ask it.
    #[must_use]
    pub fn of(finder: &Finder, articles: &[&ArticleKeys], threads: usize) -> Self {
        let size = articles.len().div_ceil(threads).max(1);
        let asks = each_part(articles.chunks(size).enumerate(), threads, |(part, some)| {
            let first = (part * size) as u32;
            asks_of(finder, some, first)
        });
        Self { articles: articles.len(), asks }
    }

    /// Returns what is to be asked, in so many parts that take about as long, or fewer.
    #[must_use]
    pub fn parts(&self, count: usize) -> Vec<Asks<'_>> {
        let longest = self.asks.iter().map(Vec::as_slice).max_by_key(|asks| asks.len());
        let longest = longest.unwrap_or_default();
        let mut rest: Vec<&[Ask]> = self.asks.iter().map(Vec::as_slice).collect();
        let mut part = |end: Option<&Ask>| {
            let taken = rest.iter_mut().map(|rest| {
                let before = end.map_or(rest.len(), |end| rest.partition_point(|ask| ask < end));
                let (taken, others) = rest.split_at(before);
                *rest = others;
                taken
            });
            Asks(taken.collect())
        };
        let size = longest.len().div_ceil(count).max(1);
        let mut parts: Vec<Asks<'_>> =
            longest.iter().step_by(size).skip(1).map(|end| part(Some(end))).collect();
        parts.push(part(None));
        parts
    }

    /// Returns what was found for each article.
    pub fn found(&self, answers: impl IntoIterator<Item = Answer>) -> Vec<FoundPostings> {
        let mut all = Vec::new();
        all.resize_with(self.articles, FoundPostings::default);
        for Answer { ask, found } in answers {
            let found = FoundByKey { key: ask.kind, asked: ask.asked(), found };
            all[ask.number as usize].by_key.push(found);
        }
        all.iter_mut().for_each(FoundPostings::order);
        all
    }
}

/// A part of what is asked, of some articles each in order.
#[derive(Debug)]
pub struct Asks<'a>(Vec<&'a [Ask]>);

impl Asks<'_> {
    /// Returns all of it in order.
    #[must_use]
    pub fn in_order(&self) -> Cow<'_, [Ask]> {
        match &*self.0 {
            [one] => Cow::Borrowed(one),
            parts => {
                let mut all = parts.concat();
                // What was in order is merged.
                all.sort();
                Cow::Owned(all)
            }
        }
    }
}

/// Returns what some articles ask for, in order; the first has a number.
fn asks_of(finder: &Finder, articles: &[&ArticleKeys], first: u32) -> Vec<Ask> {
    let mut asks = Vec::new();
    for (number, keys) in (first..).zip(articles) {
        for (key, asked) in all_asked(finder, keys) {
            match asked {
                Asked::Near(near) => asks.extend(Ask::near(key, near, number)),
                Asked::Equal(hash) => asks.push(Ask::equal(key, hash, number)),
            }
        }
    }
    asks.sort_unstable();
    asks
}

impl FoundPostings {
    /// Adds what is found for the article in other postings.
    pub fn add<P: Postings>(
        &mut self,
        finder: &Finder,
        keys: &ArticleKeys,
        postings: &P,
    ) -> Result<(), P::Error> {
        let (mut found, mut added): (Vec<(u32, u64)>, bool) = (Vec::new(), false);
        for (key, asked) in all_asked(finder, keys) {
            match asked {
                Asked::Near(near) => {
                    postings
                        .near(near, &mut |distance, content| found.push((distance, content)))?;
                }
                Asked::Equal(hash) => {
                    postings.equal(key, hash, &mut |content| found.push((0, content)))?;
                }
            }
            if !found.is_empty() {
                let found = Found::of(asked, &mut found);
                self.by_key.push(FoundByKey { key, asked, found });
                added = true;
            }
        }
        if added {
            self.order();
        }
        Ok(())
    }

    /// Brings what was found into order, and what was found by one key at several places together.
    fn order(&mut self) {
        self.by_key.sort_by_key(FoundByKey::place);
        self.by_key.dedup_by(|next, one| {
            let is_same = next.place() == one.place();
            if is_same {
                let mut both: Vec<(u32, u64)> = one.found.each().chain(next.found.each()).collect();
                one.found = Found::of(one.asked, &mut both);
            }
            is_same
        });
    }

    /// Returns what was found by a key.
    fn by(&self, key: Key, asked: Asked) -> Option<&Found> {
        let at = self.by_key.binary_search_by_key(&(key, asked), FoundByKey::place).ok()?;
        Some(&self.by_key[at].found)
    }

    /// Returns the memory that it takes, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let lists: usize = self.by_key.iter().map(|one| one.found.memory()).sum();
        lists + self.by_key.capacity() * size_of::<FoundByKey>()
    }
}

impl FoundByKey {
    fn place(&self) -> (Key, Asked) {
        (self.key, self.asked)
    }
}

/// Everything by which contents are found from an article, and its whole text.
fn all_asked(finder: &Finder, keys: &ArticleKeys) -> Vec<(Key, Asked)> {
    let mut all = finder.asked(keys);
    all.push((Key::Exact, Asked::Equal(exact_key(keys.text.hash))));
    all
}

impl Postings for FoundPostings {
    type Error = Infallible;

    fn near(&self, asked: Nearby, each: &mut dyn FnMut(u32, u64)) -> Result<(), Infallible> {
        // Two keys may ask for the same fingerprints.
        let these = self.by_key.iter().filter(|one| one.asked == Asked::Near(asked));
        these
            .flat_map(|one| one.found.each())
            .for_each(|(distance, content)| each(distance, content));
        Ok(())
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), Infallible> {
        let found = self.by(key, Asked::Equal(hash)).into_iter().flat_map(Found::each);
        found.for_each(|(_, content)| each(content));
        Ok(())
    }
}
