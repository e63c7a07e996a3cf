//! The thread that stores what is sent in a cluster, beside those of any number of other processes.
//!
//! An article is known by its URL, or by its name if it has none: sent again, by whomever, it is
//! stored once. Answers are given when the cluster has it.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::base::clock::Clock;
use crate::corpus::clusters::Place;
use crate::corpus::dedup::{Corpus as _, Placed, Popularity};
use crate::corpus::shared::{self, SentArticle, SharedCorpus};
use crate::corpus::tables::{COPIES, DOCUMENTS};
use crate::store::{BadRow, View as _};

use super::submission::{Fingerprinted, Ready};
use super::{Delivery, Error, Found, Receipt};

/// Articles that are placed together: few round trips for all.
const TOGETHER: usize = 64;

/// Rest after which unsure matches are looked at again, if anything has come.
const REST: Duration = Duration::from_secs(2);

/// What became of an article.
struct Stored<'a> {
    document: Option<u64>,
    /// How it was placed, unless its URL was known.
    placed: Option<&'a Placed>,
}

/// Owns a connection to the cluster.
pub(super) struct SharedWriter {
    pub corpus: SharedCorpus,
    pub clock: Clock,
}

impl SharedWriter {
    /// Stores what comes until nobody can send any more.
    pub(super) fn run(mut self, deliveries: &Receiver<Delivery>) {
        let mut is_due = false;
        loop {
            let mut all = match deliveries.recv_timeout(REST) {
                Ok(first) => vec![first],
                Err(RecvTimeoutError::Timeout) => {
                    if is_due && let Err(error) = self.corpus.look_again() {
                        tracing::warn!(%error, "unsure matches are looked at later");
                    }
                    is_due = false;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut articles = all[0].articles.len();
            while articles < TOGETHER
                && let Ok(next) = deliveries.try_recv()
            {
                articles += next.articles.len();
                all.push(next);
            }
            is_due = true;
            self.answer(all);
        }
    }

    /// Stores deliveries, and answers each.
    fn answer(&mut self, all: Vec<Delivery>) {
        let fingerprinted = |delivery: &Delivery| {
            let articles = delivery.articles.iter().filter_map(|article| match &article.0 {
                Ready::Unknown(article) => Some((**article).clone()),
                // Nothing is known beforehand: the cluster is asked.
                Ready::Known { .. } => None,
            });
            articles.collect::<Vec<Fingerprinted>>()
        };
        let articles: Vec<Fingerprinted> = all.iter().flat_map(fingerprinted).collect();
        let mut receipts = Vec::new();
        let mut failed = None;
        for together in articles.chunks(TOGETHER) {
            match self.store(together) {
                Ok(told) => receipts.extend(told),
                Err(error) => {
                    tracing::error!(%error, "articles could not be stored");
                    failed = Some(Error::Store(error.to_string()));
                    break;
                }
            }
        }
        let mut receipts = receipts.into_iter();
        for Delivery { articles, reply } in all {
            let own: Vec<Receipt> = receipts.by_ref().take(articles.len()).collect();
            let answer = match &failed {
                Some(error) if own.len() < articles.len() => Err(error.clone()),
                _ => Ok(own),
            };
            // Who asked may be gone; what was sent is stored all the same.
            let _gone = reply.send(answer);
        }
    }

    /// Stores some articles. Returns what became of each.
    fn store(&mut self, all: &[Fingerprinted]) -> Result<Vec<Receipt>, shared::Error> {
        let urls: Vec<&str> = all.iter().map(|one| one.article.address.as_str()).collect();
        let known = self.corpus.find_urls(&urls)?;
        // Of several with one URL the first one is placed.
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        let mut new: Vec<usize> = Vec::new();
        for (at, url) in urls.iter().enumerate() {
            if known[at].is_none() && !first.contains_key(url) {
                first.insert(url, new.len());
                new.push(at);
            }
        }
        let sent: Vec<SentArticle<'_>> =
            new.iter().map(|at| SentArticle { article: &all[*at].article, links: 0 }).collect();
        let placed = self.corpus.place_all(&sent)?;
        let mut told = Vec::new();
        for (at, one) in all.iter().enumerate() {
            let place = first.get(urls[at]).copied();
            let own = place.filter(|place| new[*place] == at).map(|place| &placed[place]);
            let document = known[at].or_else(|| place.map(|place| placed[place].document));
            if let (None, Some(score)) = (own, one.article.score) {
                let document = document.unwrap_or_default();
                self.corpus.set_popularity(document, urls[at], Popularity::Score(score))?;
            }
            told.push(Stored { document, placed: own });
        }
        self.receipts(all, &told)
    }

    fn receipts(
        &self,
        all: &[Fingerprinted],
        told: &[Stored<'_>],
    ) -> Result<Vec<Receipt>, shared::Error> {
        let documents: Vec<u64> = told.iter().filter_map(|one| one.document).collect();
        let view = self.corpus.view(&documents)?;
        let mut receipts = Vec::new();
        for (one, Stored { document, placed }) in all.iter().zip(told) {
            let url = one.article.address.as_str();
            let is_there = |number: &u64| view.has(COPIES, (*number, url)).unwrap_or(false);
            let number = match document.filter(is_there) {
                Some(number) => number,
                // Somebody else has moved it meanwhile.
                None => self.corpus.find_url(url)?.ok_or_else(missing)?,
            };
            let row = view.get(DOCUMENTS, number)?.ok_or_else(missing)?;
            let (found, distance, similarity) = match placed.map(|placed| &placed.judged.place) {
                None => (Found::Url, 0, 1.0),
                Some(Place::New) => (Found::New, 0, 1.0),
                Some(Place::Tree(m)) => (Found::Key(m.key), m.distance, m.similarity),
            };
            receipts.push(Receipt {
                nid: one.nid.clone(),
                doc_id: row.id,
                found,
                canonical: row.canonical == url,
                distance,
                similarity,
                arrival: self.clock.now(),
            });
        }
        Ok(receipts)
    }
}

fn missing() -> shared::Error {
    let row = BadRow { kind: "document", detail: "what was stored is elsewhere now" };
    shared::Error::Store(row.into())
}
