//! Articles that come from outside the crawl, one at a time or many: each gets the identifier of
//! its document, and is stored in the same way as a page.
//!
//! Articles are fingerprinted by whoever brings them, on any thread. One thread owns the write
//! transaction: it takes all that have come, judges and joins each, commits, and only then answers,
//! so that an answer that was given is never lost. An article is known by its `nid`: sent again, it
//! gets the answer that it got before, without being fingerprinted, and without waiting for the
//! writer.
//!
//! Source: 汤建明, 寇小强, 海量网络文本去重系统 (the docId service).

#[cfg(feature = "cluster")]
mod shared;
mod submission;
mod writer;

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::base::clock::{Clock, Timestamp};
use crate::corpus::dedup;
use crate::corpus::documents::{DocId, nid_name};
use crate::corpus::index::Index;
use crate::corpus::tables::SENT;
use crate::neardup;
use crate::store::{self, Store, View as _};
use crate::text::features::Fingerprinter;
use crate::urls::{Normalize, PageUrl};

pub use crate::corpus::documents::{Found, Sent};
use submission::Ready;
pub use submission::{ArticleLimits, Bad, Prepared, Submission};

/// Requests that wait for the writer at most; more wait at the listener.
const WAITING_MAX: usize = 1_024;

/// For how long an article that came again is fresh, so that it is not written each time.
const FRESH: Duration = Duration::from_mins(1);

/// What became of an article.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    /// Its identifier, given or made of its URL.
    pub nid: String,
    /// The document that it is a copy of.
    pub doc_id: DocId,
    /// By what it was recognised.
    pub found: Found,
    /// It is the copy that the document is known by.
    pub canonical: bool,
    /// Bits between the fingerprints, if it was found by one.
    pub distance: u32,
    /// Estimated similarity to the text that it was joined to, 0 to 1.
    pub similarity: f32,
    /// When it came first.
    pub arrival: Timestamp,
}

/// Why nothing could be stored.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed: what.
    #[error("{0}")]
    Store(String),
    /// The writer has ended.
    #[error("the service is stopping")]
    Closed,
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Store(error.to_string())
    }
}

/// Articles that came together.
struct Delivery {
    articles: Vec<Prepared>,
    reply: tokio::sync::oneshot::Sender<Result<Vec<Receipt>, Error>>,
}

/// The listener for articles. Cheap to clone.
#[derive(Clone)]
pub struct Ingest {
    inbox: SyncSender<Delivery>,
    store: Arc<Store>,
    fingerprinter: Fingerprinter,
    normalize: Normalize,
    limits: ArticleLimits,
    clock: Clock,
}

/// What is known of an article that may have been sent.
#[derive(Debug, Clone)]
pub enum WriterStanding {
    /// No such article was sent.
    Unknown,
    /// Its document has been removed since.
    Removed,
    /// What it got, with the document of now.
    Known(Receipt),
}

/// Returns what is known of the article that was sent with this `nid`; or, if none was, of the one
/// that was sent without any from the URL that stands in its place.
pub fn standing(
    view: &store::Snapshot,
    nid: &str,
    rules: &Normalize,
) -> Result<WriterStanding, store::Error> {
    let address = PageUrl::parse_with(nid, rules).ok().map(|url| url.to_string());
    for name in [Some(nid_name(nid)), address].into_iter().flatten() {
        if let Some(sent) = view.get(SENT, &name)? {
            let found = writer::receipt(view, nid, &sent)?;
            return Ok(found
                .map_or(WriterStanding::Removed, |(receipt, _)| WriterStanding::Known(receipt)));
        }
    }
    Ok(WriterStanding::Unknown)
}

/// Starts the thread of a writer.
fn spawn(
    run: impl FnOnce(Receiver<Delivery>) + Send + 'static,
) -> Result<SyncSender<Delivery>, dedup::Error> {
    let (inbox, deliveries) = sync_channel(WAITING_MAX);
    let started = thread::Builder::new().name("ingest".to_owned()).spawn(move || run(deliveries));
    started.map_err(|source| {
        let path = std::path::PathBuf::from("ingest");
        dedup::Error::Store(store::Error::Io { path, source })
    })?;
    Ok(inbox)
}

/// What articles are read and judged by.
#[derive(Debug)]
pub struct IngestRules<'a> {
    /// The judge.
    pub dedup: &'a neardup::Config,
    /// The normal form of URLs.
    pub normalize: Normalize,
    /// Bounds of one article.
    pub limits: ArticleLimits,
}

impl Ingest {
    /// Starts the writer on a store. `index` has the keys of its contents, and is shared with
    /// every other writer of the store in this process; `normalize` are the rules of URLs that
    /// the store was made with, or what was crawled would not be known again. The writer ends with
    /// the last clone of this.
    ///
    /// # Errors
    ///
    /// If the settings of the features cannot be, or no thread can start.
    pub fn start(
        store: Arc<Store>,
        index: Arc<Mutex<Index>>,
        rules: IngestRules<'_>,
        clock: Clock,
    ) -> Result<Self, dedup::Error> {
        let IngestRules { dedup: config, normalize, limits } = rules;
        let fingerprinter =
            Fingerprinter::for_articles(config.features.clone()).map_err(neardup::Error::from)?;
        let (config, used) = (config.clone(), clock.clone());
        let writer = writer::Writer { store: store.clone(), index, config, clock: used };
        let inbox = spawn(move |deliveries| writer.run(&deliveries))?;
        Ok(Self { inbox, store, fingerprinter, normalize, limits, clock })
    }

    /// Starts the writer on the corpus of a cluster. `store` is one without any article, in which
    /// nothing is known.
    #[cfg(feature = "cluster")]
    pub fn start_shared(
        corpus: crate::corpus::shared::SharedCorpus,
        store: Arc<Store>,
        rules: IngestRules<'_>,
        clock: Clock,
    ) -> Result<Self, dedup::Error> {
        let IngestRules { dedup: config, normalize, limits } = rules;
        let fingerprinter =
            Fingerprinter::for_articles(config.features.clone()).map_err(neardup::Error::from)?;
        let writer = shared::SharedWriter { corpus, clock: clock.clone() };
        let inbox = spawn(move |deliveries| writer.run(&deliveries))?;
        Ok(Self { inbox, store, fingerprinter, normalize, limits, clock })
    }

    /// Checks an article, and fingerprints it if it is not known. It takes a while: a millisecond
    /// for a long text.
    pub fn prepare(&self, submission: Submission) -> Result<Prepared, Bad> {
        let checked = submission.check(&self.normalize, &self.limits)?;
        Ok(Prepared(match self.known(&checked.nid, &checked.name) {
            Some((receipt, last)) => {
                let stale = last.until(self.clock.now()) > FRESH;
                Ready::Known { receipt, stale }
            }
            None => Ready::Unknown(Box::new(checked.prepare(&self.fingerprinter))),
        }))
    }

    /// Returns the receipt of an article that is committed. What cannot be read is for the writer.
    fn known(&self, nid: &str, name: &str) -> Option<(Receipt, Timestamp)> {
        let read = || {
            let snapshot = self.store.snapshot()?;
            match snapshot.get(SENT, name)? {
                Some(sent) => writer::receipt(&snapshot, nid, &sent),
                None => Ok(None),
            }
        };
        let (receipt, last) = read().ok().flatten()?;
        Some((Receipt { found: Found::Nid, ..receipt }, last))
    }

    /// Stores articles and returns what became of each, in order, when that is committed.
    pub async fn deliver(&self, articles: Vec<Prepared>) -> Result<Vec<Receipt>, Error> {
        let known = articles.iter().map(|article| match &article.0 {
            Ready::Known { receipt, .. } => Some(receipt.clone()),
            Ready::Unknown(_) => None,
        });
        let known: Option<Vec<Receipt>> = known.collect();
        let stale = |article: &Prepared| matches!(article.0, Ready::Known { stale: true, .. });
        if let Some(receipts) = &known
            && !articles.iter().any(stale)
        {
            return Ok(receipts.clone());
        }
        let (reply, answer) = tokio::sync::oneshot::channel();
        let inbox = self.inbox.clone();
        let delivery = Delivery { articles, reply };
        if let Some(receipts) = known {
            // That they came again is noted meanwhile.
            if let Err(TrySendError::Full(delivery)) = inbox.try_send(delivery) {
                drop(tokio::task::spawn_blocking(move || inbox.send(delivery)));
            }
            return Ok(receipts);
        }
        if let Err(full) = inbox.try_send(delivery) {
            match full {
                TrySendError::Disconnected(_) => return Err(Error::Closed),
                TrySendError::Full(delivery) => {
                    let sent = tokio::task::spawn_blocking(move || inbox.send(delivery));
                    sent.await.map_err(|_| Error::Closed)?.map_err(|_| Error::Closed)?;
                }
            }
        }
        answer.await.map_err(|_| Error::Closed)?
    }
}
