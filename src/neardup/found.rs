//! Articles that are looked up together, and what was found for each.

use std::convert::Infallible;
use std::sync::Arc;

use crate::text::features::ArticleKeys;

use super::Key;
use super::finder::{Asked, Finder, Nearby, Postings, first_of, ranked};
use super::judge::looked_up;
use super::segment::{Answer, Ask, exact_key};

/// The contents that were found by the keys of one article: those with its very text as well.
#[derive(Debug, Default)]
pub struct FoundPostings(Vec<FoundByKey>);

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
            all[article].0.push(FoundByKey { key, asked, found });
        }
        all
    }
}

impl FoundPostings {
    /// Returns the contents whose texts are likely looked up, if there are no others.
    #[must_use]
    pub fn likely(&self) -> Vec<u64> {
        let similar = self.0.iter().filter(|one| one.key != Key::Exact);
        let hits = similar.flat_map(|one| one.found.iter().map(|(_, content)| (*content, one.key)));
        looked_up(&ranked(hits.collect())).map(|candidate| candidate.content).collect()
    }

    /// Adds what is found for the article in other postings.
    pub fn add<P: Postings>(
        &mut self,
        finder: &Finder,
        keys: &ArticleKeys,
        postings: &P,
    ) -> Result<(), P::Error> {
        let mut found: Vec<(u32, u64)> = Vec::new();
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
                self.0.push(FoundByKey { key, asked, found: first_of(&mut found).collect() });
            }
        }
        Ok(())
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
        let these = self.0.iter().filter(|one| one.asked == Asked::Near(asked));
        these.flat_map(|one| &*one.found).for_each(|(distance, content)| each(*distance, *content));
        Ok(())
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), Infallible> {
        let these = self.0.iter().filter(|one| one.key == key && one.asked == Asked::Equal(hash));
        these.flat_map(|one| &*one.found).for_each(|(_, content)| each(*content));
        Ok(())
    }
}
