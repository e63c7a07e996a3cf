//! Threads that bring what has happened in the corpora of the shards into the one that all workers
//! share: in the order in which it happened in a shard, many articles at a time.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::cluster;
use crate::corpus::dedup::{Corpus as _, Popularity};
use crate::corpus::shared::{Error, SentArticle, SharedCorpus, SharedOptions};
use crate::neardup;

use super::super::CorpusChange;
use super::Common;
use super::shard::Hold;

/// Changes that wait for one thread.
const WAITING_MAX: usize = 256;

/// Articles that are placed together.
const TOGETHER: usize = 128;

/// Wait before the cluster is asked again that did not answer.
const RETRY: Duration = Duration::from_millis(500);

/// Time between two looks whether a lease goes on.
const LOOK: Duration = Duration::from_millis(20);

/// Time between two looks at matches that were less than certain.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The number of no document: a copy is looked for by its URL.
const NO_DOCUMENT: u64 = 0;

/// What a thread is handed.
pub(super) enum Handed {
    /// Something has happened in a shard.
    Change {
        /// What.
        change: CorpusChange,
        /// How long the shard is held.
        hold: Arc<Hold>,
    },
    /// Who wants to know when all before it is stored, or why it cannot be.
    Settle(Sender<Result<(), String>>),
}

/// How the corpus is opened.
#[derive(Debug, Clone)]
pub(super) struct CorpusPlan {
    pub cluster: cluster::Settings,
    pub texts: PathBuf,
    pub dedup: neardup::Config,
    pub options: SharedOptions,
}

impl CorpusPlan {
    pub(super) fn open(&self) -> Result<SharedCorpus, Error> {
        let (texts, documents) = (Some(self.texts.as_path()), Some(self.options.documents));
        SharedCorpus::open_or_begin(&self.cluster, texts, &self.dedup, documents)
    }
}

/// Returns a queue of changes.
pub(super) fn queue() -> (SyncSender<Handed>, Receiver<Handed>) {
    sync_channel(WAITING_MAX)
}

/// Works until the worker is over and nothing waits any more.
pub(super) fn run(plan: &CorpusPlan, queue: &Receiver<Handed>, common: &Common) {
    let mut hand = Hand { plan, common, corpus: None, failed: None };
    let mut looked = Instant::now();
    loop {
        match queue.recv_timeout(Duration::from_millis(200)) {
            Ok(first) => {
                let more = queue.try_iter().take(TOGETHER - 1);
                hand.work(std::iter::once(first).chain(more).collect());
            }
            Err(RecvTimeoutError::Timeout) if common.is_over() => break,
            Err(RecvTimeoutError::Timeout) if looked.elapsed() > LOOK_EVERY => {
                hand.look_again();
                looked = Instant::now();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    hand.look_again();
}

struct Hand<'a> {
    plan: &'a CorpusPlan,
    common: &'a Common,
    /// None after a failure.
    corpus: Option<SharedCorpus>,
    /// Why nothing is stored any more.
    failed: Option<String>,
}

impl Hand<'_> {
    fn work(&mut self, handed: Vec<Handed>) {
        let (mut run, mut urls) = (Vec::new(), HashSet::new());
        for one in handed {
            match one {
                Handed::Change { hold, .. } if !self.is_held(&hold) => {
                    // It was not committed: whoever has the shard now visits the page itself.
                    tracing::debug!("a change of a shard that is lost is left out");
                }
                Handed::Change { change: CorpusChange::Place { article, links }, .. } => {
                    // Twice the same page: one after the other.
                    if !urls.insert(article.address.clone()) {
                        self.place(&std::mem::take(&mut run));
                        urls = HashSet::from([article.address.clone()]);
                    }
                    run.push((article, links));
                }
                Handed::Change { change, .. } => {
                    self.place(&std::mem::take(&mut run));
                    urls.clear();
                    self.change(&change);
                }
                Handed::Settle(done) => {
                    self.place(&std::mem::take(&mut run));
                    urls.clear();
                    // Who does not wait any more has lost its lease.
                    let _ = done.send(self.failed.clone().map_or(Ok(()), Err));
                }
            }
        }
        self.place(&run);
    }

    /// Tells whether a shard is held; waits while nobody knows whether its lease goes on.
    fn is_held(&self, hold: &Hold) -> bool {
        while !hold.goes_on(self.common.clock.now()) {
            if hold.is_lost() || self.common.has_failed() || self.common.is_over() {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    fn place(&mut self, run: &[(Box<crate::corpus::clusters::Article>, u64)]) {
        if run.is_empty() {
            return;
        }
        let sent: Vec<SentArticle<'_>> =
            run.iter().map(|(article, links)| SentArticle { article, links: *links }).collect();
        self.patiently(|corpus| corpus.place_all(&sent).map(drop));
    }

    fn change(&mut self, change: &CorpusChange) {
        self.patiently(|corpus| match change {
            CorpusChange::Place { article, links } => corpus.place(article, *links).map(drop),
            CorpusChange::Leave(url) => corpus.leave(NO_DOCUMENT, url).map(drop),
            CorpusChange::Retract(url) => corpus.retract(NO_DOCUMENT, url).map(drop),
            CorpusChange::Links { url, links } => {
                let links = Popularity::Links(*links);
                corpus.set_popularity(NO_DOCUMENT, url, links).map(drop)
            }
        });
    }

    fn look_again(&mut self) {
        if self.failed.is_none() {
            self.patiently(|corpus| corpus.look_again().map(drop));
        }
    }

    /// Does something again and again while the cluster may come back.
    fn patiently(&mut self, mut work: impl FnMut(&mut SharedCorpus) -> Result<(), Error>) {
        if self.failed.is_some() {
            return;
        }
        let begun = Instant::now();
        loop {
            let corpus = match self.corpus.take() {
                Some(corpus) => Ok(corpus),
                None => self.plan.open(),
            };
            let done = corpus.and_then(|mut corpus| {
                work(&mut corpus)?;
                Ok(corpus)
            });
            let error = match done {
                Ok(corpus) => {
                    self.corpus = Some(corpus);
                    return;
                }
                Err(error) => error,
            };
            if begun.elapsed() > self.common.config.wait_max.duration() {
                self.common.fail(error.to_string());
                self.failed = Some(error.to_string());
                return;
            }
            tracing::warn!(%error, "pages wait until they can be stored");
            std::thread::sleep(RETRY);
        }
    }
}
