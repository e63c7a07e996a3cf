//! The crawls of this process: one for a store at a time, and how far each has come.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::clock::Timestamp;

use super::{Context, Live};

/// The list of the crawls that are under way. Clones are the same list.
#[derive(Debug, Clone, Default)]
pub struct Crawls(Arc<Mutex<All>>);

#[derive(Debug, Default)]
struct All {
    last: u64,
    running: Vec<Running>,
    ended: Totals,
    closed: bool,
}

/// A crawl that is under way.
#[derive(Debug, Clone)]
pub struct Running {
    /// Its number in this process, from 1.
    pub id: u64,
    /// The job that it is a run of, if it is one.
    pub job: Option<String>,
    /// Folder of its store.
    pub store: PathBuf,
    /// When it began.
    pub started: Timestamp,
    /// Its numbers, and how it is stopped.
    pub context: Context,
}

/// What crawls have done since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests sent.
    pub requests: u64,
    /// Pages read.
    pub pages: u64,
    /// New documents.
    pub new: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Bytes of bodies on the wire.
    pub bytes: u64,
}

impl Totals {
    /// Adds what a crawl has done so far.
    pub fn add(&mut self, live: &Live) {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        self.requests += read(&live.requests);
        self.pages += read(&live.pages);
        self.new += read(&live.new);
        self.duplicates += read(&live.duplicates);
        self.failed += read(&live.failed);
        self.bytes += read(&live.bytes);
    }
}

/// A place in the list; given back when it is dropped.
#[derive(Debug)]
pub struct Begun {
    crawls: Crawls,
    /// Number of the crawl.
    pub id: u64,
}

impl Crawls {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a crawl of `store` begins; none if one is under way, or no more may begin.
    #[must_use]
    pub fn begin(&self, job: Option<&str>, store: &Path, context: &Context) -> Option<Begun> {
        // One folder has many names.
        let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
        let mut all = self.lock();
        if all.closed || all.running.iter().any(|one| one.store == store) {
            return None;
        }
        all.last += 1;
        let (id, started) = (all.last, context.clock.now());
        let (job, context) = (job.map(str::to_owned), context.clone());
        all.running.push(Running { id, job, store, started, context });
        Some(Begun { crawls: self.clone(), id })
    }

    /// Returns the crawls that are under way, the oldest first.
    #[must_use]
    pub fn running(&self) -> Vec<Running> {
        self.lock().running.clone()
    }

    /// Returns what all crawls have done, those that have ended among them.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let all = self.lock();
        let mut totals = all.ended;
        all.running.iter().for_each(|one| totals.add(&one.context.live));
        totals
    }

    /// Lets no further crawl begin, and asks those under way to stop that are no runs of jobs:
    /// these are stopped by whoever began them.
    pub fn close(&self) {
        let mut all = self.lock();
        all.closed = true;
        for one in all.running.iter().filter(|one| one.job.is_none()) {
            let _times = one.context.stop.ask();
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut all = self.crawls.lock();
        let Some(at) = all.running.iter().position(|one| one.id == self.id) else { return };
        let one = all.running.remove(at);
        all.ended.add(&one.context.live);
    }
}
