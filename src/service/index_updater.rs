//! The index of the search, kept in step with the store while the service runs.
//!
//! One thread opens the index, makes it if there is none, and brings it up to date at intervals.
//! Whoever asks gets the index as it was committed last, and never waits for that thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use crate::corpus::search::{Config, Error, PART_DOCUMENTS, Search};
use crate::store::Store;

/// By how much the thread gives way to those that answer. Threads that it starts do so as well.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// The index, as soon as there is one.
type SharedSearch = Arc<RwLock<Option<Arc<Search>>>>;

/// Holds the index and the thread that writes it.
pub(super) struct IndexUpdater {
    /// The index that is being written; it may not be filled yet.
    open: SharedSearch,
    /// The index that may be asked.
    ready: SharedSearch,
    /// Its end ends the thread.
    _stop: Sender<()>,
}

impl IndexUpdater {
    /// Starts the thread.
    pub(super) fn start(store: Arc<Store>, config: &Config, interval: Duration) -> Self {
        let (stop, told) = channel();
        let (open, ready) = (SharedSearch::default(), SharedSearch::default());
        let work = UpdateWork {
            store,
            config: config.clone(),
            open: open.clone(),
            ready: ready.clone(),
            damaged: false,
            complaint: String::new(),
        };
        let spawned = thread::Builder::new()
            .name("search-index".to_owned())
            .spawn(move || work.run(&told, interval));
        if let Err(error) = spawned {
            tracing::error!(%error, "the index of the search is not kept");
        }
        Self { open, ready, _stop: stop }
    }

    /// Returns the index, if it was ever filled.
    pub(super) fn index(&self) -> Option<Arc<Search>> {
        read(&self.ready)
    }
}

impl Drop for IndexUpdater {
    fn drop(&mut self) {
        if let Some(search) = read(&self.open) {
            search.stop();
        }
    }
}

fn read(shared: &SharedSearch) -> Option<Arc<Search>> {
    shared.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn write(shared: &SharedSearch, search: Option<Arc<Search>>) {
    *shared.write().unwrap_or_else(PoisonError::into_inner) = search;
}

struct UpdateWork {
    store: Arc<Store>,
    config: Config,
    open: SharedSearch,
    ready: SharedSearch,
    /// The index failed, and has to be made anew.
    damaged: bool,
    /// What was logged last: the same is not said twice.
    complaint: String,
}

impl UpdateWork {
    fn run(mut self, told: &Receiver<()>, interval: Duration) {
        give_way();
        loop {
            let done = catch_unwind(AssertUnwindSafe(|| self.bring()));
            match done {
                Ok(Ok(more)) => {
                    self.complaint.clear();
                    if more && told.try_recv() == Err(TryRecvError::Empty) {
                        continue;
                    }
                }
                Ok(Err(Error::Stopped)) => return,
                Ok(Err(error)) => {
                    self.store.suspect();
                    self.damaged |= matches!(error, Error::Damaged { .. });
                    self.complain(&error.to_string());
                }
                Err(_) => {
                    self.damaged = true;
                    self.complain("the engine panicked");
                }
            }
            if self.damaged {
                write(&self.ready, None);
                write(&self.open, None);
            }
            if told.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    fn complain(&mut self, error: &str) {
        if self.complaint != error {
            tracing::warn!(error, "the index of the search is not up to date");
            error.clone_into(&mut self.complaint);
        }
    }

    /// Indexes some of what has changed, and tells whether there is more.
    fn bring(&mut self) -> Result<bool, Error> {
        let search = self.index()?;
        let updated = if self.damaged {
            search.rebuild(&self.store)?
        } else {
            search.update_part(&self.store, PART_DOCUMENTS)?
        };
        self.damaged = false;
        if read(&self.ready).is_none() {
            write(&self.ready, Some(search));
        }
        Ok(updated.more)
    }

    /// The index, opened once. What was committed before answers at once.
    fn index(&self) -> Result<Arc<Search>, Error> {
        if let Some(search) = read(&self.open) {
            return Ok(search);
        }
        let folder = self.store.path().parent().unwrap_or(self.store.path());
        let search = Arc::new(Search::open(folder, &self.config)?);
        if let Some(reason) = search.made_anew() {
            tracing::warn!(reason, "the index of the search could not be used and is made anew");
        }
        write(&self.open, Some(search.clone()));
        if search.is_filled() && !self.damaged {
            write(&self.ready, Some(search.clone()));
        }
        Ok(search)
    }
}

/// Lets other threads have the processor before this one. Only Linux does so for one thread.
pub(super) fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "the index of the search is written at the usual priority");
    }
}
