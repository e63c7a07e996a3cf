//! Articles come into a corpus of many workers: announced, looked for, settled.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::cluster::Posting;
use crate::corpus::clusters::{Article, Joined, Left, Place};
use crate::corpus::dedup::{Corpus, Judged, Placed, Placer, Popularity};
use crate::corpus::tables::{CONTENTS, COPIES, DOCUMENTS};
use crate::store::{self, BadRow, View as _};

use super::commit::{Outcome, makes};
use super::keys::SharedKeys;
use super::unit::Unit;
use super::{Error, SharedCorpus};

/// Wait for an article of another worker, and before what somebody else has written is read again.
const WAIT: Duration = Duration::from_millis(2);
const WAIT_MAX: Duration = Duration::from_millis(200);

/// The rules, on documents of the cluster.
pub(super) type SharedPlacer<'a, 'u> = Placer<'a, Unit<'u>, SharedKeys>;

/// An article that was announced.
pub(super) struct Announced {
    pub number: u64,
    /// They are there.
    pub postings: BTreeSet<Posting>,
}

/// Times that a change is tried while others write the same, or are waited for.
const TRIES_MAX: u32 = 1_000;

impl SharedCorpus {
    /// Does something by the rules and writes it, again and again until nobody else has written the
    /// same meanwhile. An article that may become a document is announced first.
    pub(super) fn change<R>(
        &self,
        article: Option<&Article>,
        mut work: impl FnMut(&mut SharedPlacer<'_, '_>) -> Result<R, store::Error>,
    ) -> Result<R, Error> {
        let mut announced: Option<Announced> = None;
        let mut wait = WAIT;
        for _ in 0..TRIES_MAX {
            let keys = SharedKeys::default();
            if let Some(article) = article {
                let known = announced.take();
                announced = Some(self.announce(article, known, &keys)?);
            }
            let number = announced.as_ref().map(|announced| announced.number);
            let mut unit = Unit::new(self, number);
            let (config, now) = (&self.config, self.now());
            let done = work(&mut Placer { batch: &mut unit, index: &keys, config, now })?;
            let outcome = if unit.waits() {
                Outcome::Conflict
            } else {
                let plan = self.plan(&unit)?;
                let outcome = self.carry_out(&plan, announced.as_ref())?;
                if outcome == Outcome::Written {
                    self.add_counts(&unit)?;
                    if let Some(announced) = &announced
                        && !makes(&plan, announced.number)
                    {
                        self.withdraw(announced)?;
                    }
                    return Ok(done);
                }
                outcome
            };
            if outcome == Outcome::Late
                && let Some(announced) = announced.take()
            {
                self.withdraw(&announced)?;
            }
            if outcome != Outcome::Marked {
                self.rest(wait);
                wait = (wait * 2).min(WAIT_MAX);
            }
        }
        Err(Error::Busy(article.map(|article| article.address.clone())))
    }

    /// Waits a little, not as long as others who wait for the same.
    fn rest(&self, wait: Duration) {
        let own = self.worker.rotate_left(self.changes.get() as u32) % 64;
        sleep(wait + wait * own as u32 / 64);
    }

    /// Announces an article, and then asks by all its keys who else was: in this order, so that of
    /// two who race at least one sees the other.
    fn announce(
        &self,
        article: &Article,
        known: Option<Announced>,
        keys: &SharedKeys,
    ) -> Result<Announced, Error> {
        let mut announced = known;
        let begun = Instant::now();
        if let Some(known) = &announced {
            let pending = self.engine.borrow_mut().renew(&[known.number], self.span)?;
            if pending != [true] {
                self.withdraw(known)?;
                announced = None;
            }
        }
        let announced = match announced {
            Some(known) => known,
            None => {
                let engine = &mut *self.engine.borrow_mut();
                let number = self.numbers.borrow_mut().next(engine)?;
                engine.announce(&[number], self.span)?;
                let postings = self.postings_of_article(article, number);
                Announced { number, postings }
            }
        };
        tracing::trace!(number = announced.number, "announced");
        let postings: Vec<Posting> = announced.postings.iter().copied().collect();
        let found = self.engine.borrow_mut().post(&self.buckets, &postings)?;
        postings.iter().zip(found).for_each(|(posting, found)| keys.add(posting, found));
        keys.ask(self, &self.asked(&article.keys))?;
        tracing::trace!(number = announced.number, ms = begun.elapsed().as_millis(), "looked");
        Ok(announced)
    }

    /// Takes back what was announced of an article that did not become a document.
    fn withdraw(&self, announced: &Announced) -> Result<(), Error> {
        let Announced { number, postings, .. } = announced;
        let engine = &mut *self.engine.borrow_mut();
        engine.unpost(&self.buckets, &postings.iter().copied().collect::<Vec<_>>())?;
        engine.withdraw(&[*number])?;
        tracing::trace!(number, "withdrawn");
        Ok(())
    }

    /// What was said when an article came that comes a second time: whoever sent it did not hear.
    fn placed_before(
        unit: &Unit<'_>,
        document: u64,
        article: &Article,
    ) -> Result<Option<Placed>, store::Error> {
        let Some(copy) = unit.get(COPIES, (document, &article.address))? else { return Ok(None) };
        let content = unit.get(CONTENTS, copy.content)?;
        if content.is_none_or(|content| content.hash != article.keys.text.hash) {
            return Ok(None);
        }
        let missing = BadRow { kind: "document", detail: "a copy names one that is missing" };
        let row = unit.get(DOCUMENTS, document)?.ok_or(missing)?;
        let canonical = row.canonical == article.address;
        let joined = Joined { document, id: row.id, canonical, content: None };
        let judged = Judged {
            place: Place::New,
            also: Vec::new(),
            perhaps: Vec::new(),
            evicts: Vec::new(),
            refused: false,
            repeats: false,
        };
        Ok(Some(Placed { judged, joined, document, merged: 0 }))
    }
}

/// Finds the document that has a copy at a URL: the one that is named, unless the copy has moved.
fn at(
    placer: &SharedPlacer<'_, '_>,
    document: Option<u64>,
    url: &str,
) -> Result<Option<u64>, store::Error> {
    if let Some(document) = document
        && placer.batch.has(COPIES, (document, url))?
    {
        return Ok(Some(document));
    }
    placer.index.document_at(placer.batch, url)
}

impl Corpus for SharedCorpus {
    type Error = Error;

    fn place(&mut self, article: &Article, links: u64) -> Result<Placed, Error> {
        self.change(Some(article), |placer| {
            let Some(document) = at(placer, None, &article.address)? else {
                return placer.place(article, links);
            };
            match Self::placed_before(placer.batch, document, article)? {
                Some(placed) => Ok(placed),
                None => Ok(placer.revise(document, article, links)?.0),
            }
        })
    }

    fn revise(
        &mut self,
        document: u64,
        article: &Article,
        links: u64,
    ) -> Result<(Placed, Left), Error> {
        self.change(Some(article), |placer| match at(placer, Some(document), &article.address)? {
            Some(document) => placer.revise(document, article, links),
            None => Ok((placer.place(article, links)?, Left::default())),
        })
    }

    fn leave(&mut self, document: u64, url: &str) -> Result<Left, Error> {
        self.change(None, |placer| match at(placer, Some(document), url)? {
            Some(document) => placer.leave(document, url),
            None => Ok(Left::default()),
        })
    }

    fn retract(&mut self, document: u64, url: &str) -> Result<Left, Error> {
        self.change(None, |placer| match at(placer, Some(document), url)? {
            Some(document) => placer.retract(document, url),
            None => Ok(Left::default()),
        })
    }

    fn set_popularity(
        &mut self,
        document: u64,
        url: &str,
        popularity: Popularity,
    ) -> Result<bool, Error> {
        self.change(None, |placer| match at(placer, Some(document), url)? {
            Some(document) => placer.set_popularity(document, url, popularity),
            None => Ok(false),
        })
    }
}
