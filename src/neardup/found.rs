//! Articles that are looked up together, and what was found for each.

use std::convert::Infallible;
use std::sync::Arc;

use crate::text::features::ArticleKeys;

use super::finder::{Asked, Finder, Nearby, Postings, first_of, ranked};
use super::segment::{Answer, Ask, exact_key};
use super::{Candidate, Key};

/// The contents that were found by the keys of one article: those with its very text as well.
#[derive(Debug, Default)]
pub struct FoundPostings {
    /// In the order of keys and of what was asked, each once.
    by_key: Vec<FoundByKey>,
}

/// Distances and contents that were found by a key, at least one.
#[derive(Debug)]
struct FoundByKey {
    key: Key,
    asked: Asked,
    found: Arc<[(u32, u64)]>,
}

/// Articles whose keys are looked up from the smallest to the largest.
#[derive(Debug)]
pub struct LookUp {
    articles: usize,
    asks: Vec<Ask>,
    /// For whom the asks are, by their numbers.
    askers: Vec<Asker>,
}

/// A key of an article.
#[derive(Debug, Clone, Copy)]
struct Asker {
    article: usize,
    key: Key,
    asked: Asked,
}

impl LookUp {
    /// Looks up all by which contents are found from some articles; `finder` says what that is.
    #[must_use]
    pub fn of(finder: &Finder, articles: &[&ArticleKeys]) -> Self {
        let (mut asks, mut askers) = (Vec::new(), Vec::new());
        for (article, keys) in articles.iter().enumerate() {
            for (key, asked) in all_asked(finder, keys) {
                let number = askers.len() as u32;
                match asked {
                    Asked::Near(near) => asks.extend(Ask::near(near, number)),
                    Asked::Equal(hash) => asks.push(Ask::equal(key, hash, number)),
                }
                askers.push(Asker { article, key, asked });
            }
        }
        asks.sort_unstable();
        Self { articles: articles.len(), asks, askers }
    }

    /// Returns what is to be asked, in so many parts that take about as long. A part may have the
    /// same key as the next.
    #[must_use]
    pub fn parts(&self, count: usize) -> Vec<&[Ask]> {
        self.asks.chunks(self.asks.len().div_ceil(count).max(1)).collect()
    }

    /// Returns what was found for each article.
    pub fn found(&self, answers: impl IntoIterator<Item = Answer>) -> Vec<FoundPostings> {
        let mut all = Vec::new();
        all.resize_with(self.articles, FoundPostings::default);
        for Answer { number, found } in answers {
            let Asker { article, key, asked } = self.askers[number as usize];
            all[article].by_key.push(FoundByKey { key, asked, found });
        }
        all.iter_mut().for_each(FoundPostings::order);
        all
    }
}

impl FoundPostings {
    /// Returns the candidates, if there are no others.
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
        let similar = self.by_key.iter().filter(|one| one.key != Key::Exact);
        let hits = similar.flat_map(|one| one.found.iter().map(|(_, content)| (*content, one.key)));
        ranked(hits.collect())
    }

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
                let found = first_of(&mut found).collect();
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
                let mut both: Vec<(u32, u64)> =
                    one.found.iter().chain(&*next.found).copied().collect();
                one.found = first_of(&mut both).collect();
            }
            is_same
        });
    }

    /// Returns what was found by a key.
    fn by(&self, key: Key, asked: Asked) -> &[(u32, u64)] {
        let at = self.by_key.binary_search_by_key(&(key, asked), FoundByKey::place);
        at.map_or(&[], |at| &*self.by_key[at].found)
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
        these.flat_map(|one| &*one.found).for_each(|(distance, content)| each(*distance, *content));
        Ok(())
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), Infallible> {
        self.by(key, Asked::Equal(hash)).iter().for_each(|(_, content)| each(*content));
        Ok(())
    }
}
