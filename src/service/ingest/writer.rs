//! The thread that stores what is sent.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::base::clock::{Clock, Timestamp};
use crate::corpus::dedup::{self, Corpus as _, Looks, Placer, Popularity, known_content, sent_as};
use crate::corpus::documents::note_again;
use crate::corpus::index::Index;
use crate::corpus::tables::{CONTENTS, DOC_IDS, DOCUMENTS, SENT, SENT_URLS};
use crate::neardup::Config;
use crate::store::{self, Batch, Store, Update as _, View};

use super::submission::{Fingerprinted, Ready};
use super::{Delivery, Error, Found, Receipt, Sent};

/// How often a store that cannot be written is tried again.
const MEND_TIME: Duration = Duration::from_secs(1);

/// Articles in one commit at most.
const BATCH_MAX: usize = 4_096;

/// The same while a crawl writes to the store: as many as a batch of the crawl has pages.
const SHARED_MAX: usize = 256;

/// Owns the store's write transactions while it has something to store.
pub(super) struct Writer {
    pub store: Arc<Store>,
    pub index: Arc<Mutex<Index>>,
    pub config: Config,
    pub clock: Clock,
}

impl Writer {
    /// Stores what comes until nobody can send any more.
    pub(super) fn run(self, deliveries: &Receiver<Delivery>) {
        let mut looks = Looks::default();
        // Nothing waits for a second look when nothing has come since the last one; what the last
        // process has left may.
        let mut settled = false;
        loop {
            let mut all = Vec::new();
            let wait = looks.wait();
            match deliveries.recv_timeout(wait.min(MEND_TIME)) {
                Ok(first) => all.push(first),
                Err(RecvTimeoutError::Timeout) if self.store.is_failed() => {
                    let _turn = self.store.turn();
                    // It was told when it failed, and is told when it is mended.
                    drop(self.store.mend());
                    continue;
                }
                Err(RecvTimeoutError::Timeout) if wait > MEND_TIME => continue,
                Err(RecvTimeoutError::Timeout) if settled => {
                    looks = Looks::default();
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.settle(),
            }
            settled = all.is_empty();
            // A crawl of the same store writes as well: each judges by what the other has stored.
            let turn = self.store.turn();
            let mut articles = all.iter().map(|delivery| delivery.articles.len()).sum::<usize>();
            while articles < self.batch_max()
                && let Ok(next) = deliveries.try_recv()
            {
                articles += next.articles.len();
                all.push(next);
            }
            let result = self.try_commit(&all, &mut looks);
            drop(turn);
            let mut receipts = result.as_ref().map(|receipts| receipts.iter().cloned());
            for Delivery { articles, reply } in all {
                let answer = match &mut receipts {
                    Ok(receipts) => Ok(receipts.take(articles.len()).collect()),
                    Err(error) => Err((*error).clone()),
                };
                // Who asked may be gone; what was sent is stored all the same.
                let _gone = reply.send(answer);
            }
        }
    }

    /// Leaves an index of which nothing has to be made again when the store is opened.
    fn settle(&self) {
        let settled = catch_unwind(AssertUnwindSafe(|| {
            dedup::settle(&self.store, &self.index, &self.config)
        }));
        if let Ok(Err(error)) = settled {
            tracing::warn!(%error, "the index stays in its log");
        }
    }

    /// Stores what was delivered, in a store that is mended if it had failed.
    fn try_commit(&self, all: &[Delivery], looks: &mut Looks) -> Result<Vec<Receipt>, Error> {
        self.store.mend()?;
        // Where a store is damaged, redb asserts; others may still be stored.
        let done = catch_unwind(AssertUnwindSafe(|| self.commit(all, looks)));
        let done = done.unwrap_or_else(|_| Err(Error::Store("the store is damaged".to_owned())));
        done.inspect_err(|error| {
            tracing::error!(%error, "articles could not be stored");
            self.store.suspect();
        })
    }

    /// Whoever else wants to write does not wait for long.
    fn batch_max(&self) -> usize {
        if self.store.is_wanted() { SHARED_MAX } else { BATCH_MAX }
    }

    fn placer<'a>(&'a self, batch: &'a mut Batch, now: Timestamp) -> Placer<'a> {
        Placer { batch, index: &self.index, config: &self.config, now }
    }

    /// Stores what was delivered, and looks at the matches whose second look is due.
    fn commit(&self, all: &[Delivery], looks: &mut Looks) -> Result<Vec<Receipt>, Error> {
        let mut batch = dedup::begin(&self.store, &self.index, &self.config)
            .map_err(|error| Error::Store(error.to_string()))?;
        let now = self.clock.now();
        let mut receipts = Vec::new();
        for article in all.iter().flat_map(|delivery| &delivery.articles) {
            receipts.push(match &article.0 {
                Ready::Known { receipt, .. } => {
                    renew(&mut batch, receipt, now)?;
                    receipt.clone()
                }
                Ready::Unknown(article) => self.keep(&mut batch, article, now)?,
            });
        }
        looks.step(&mut self.placer(&mut batch, now))?;
        batch.commit()?;
        Ok(receipts)
    }

    /// The way of an article: is it known by its `nid`, by its URL, by its title or content?
    fn keep(
        &self,
        batch: &mut Batch,
        sent: &Fingerprinted,
        now: Timestamp,
    ) -> Result<Receipt, store::Error> {
        let Fingerprinted { nid, name, url, article } = sent;
        if let Some(sent) = batch.get(SENT, name)?
            && let Some((receipt, _)) = receipt(batch, nid, &sent)?
        {
            renew(batch, &receipt, now)?;
            return Ok(Receipt { found: Found::Nid, ..receipt });
        }
        let known = if url.is_empty() { None } else { known_content(batch, url)? };
        if let Some((content, document)) = known {
            if let Some(score) = article.score {
                let score = Popularity::Score(score);
                self.placer(batch, now).set_popularity(document, url, score)?;
            }
            note_again(batch, document, now)?;
            let sent = Sent {
                content,
                copy: url.clone(),
                found: Found::Url,
                distance: 0,
                similarity: 1000,
                arrival: now,
            };
            return write(batch, nid, name, &sent);
        }
        let placed = self.placer(batch, now).place(article, 0)?;
        let sent = sent_as(article, &placed, now);
        if !url.is_empty() {
            batch.put(SENT_URLS, url, &sent.content)?;
        }
        write(batch, nid, name, &sent)
    }
}

fn write(batch: &mut Batch, nid: &str, name: &str, sent: &Sent) -> Result<Receipt, store::Error> {
    batch.put(SENT, name, sent)?;
    let missing = store::BadRow { kind: "sent", detail: "its content is missing" };
    Ok(receipt(batch, nid, sent)?.ok_or(missing)?.0)
}

/// Notes that an article came again, which keeps its document from being expired.
fn renew(batch: &mut Batch, receipt: &Receipt, now: Timestamp) -> Result<(), store::Error> {
    let document = batch.get(DOC_IDS, receipt.doc_id)?;
    document.map_or(Ok(()), |document| note_again(batch, document, now))
}

/// Makes the receipt of an article that was sent, with the moment of the newest copy of its
/// document; none if that has been removed since.
pub(super) fn receipt(
    view: &impl View,
    nid: &str,
    sent: &Sent,
) -> Result<Option<(Receipt, Timestamp)>, store::Error> {
    let Some(content) = view.get(CONTENTS, sent.content)? else { return Ok(None) };
    let Some(document) = view.get(DOCUMENTS, content.document)? else {
        return Ok(None);
    };
    let receipt = Receipt {
        nid: nid.to_owned(),
        doc_id: document.id,
        found: sent.found,
        canonical: document.canonical == sent.copy,
        distance: u32::from(sent.distance),
        similarity: f32::from(sent.similarity) / 1000.0,
        arrival: sent.arrival,
    };
    Ok(Some((receipt, document.last_arrival)))
}
