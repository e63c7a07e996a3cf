//! Backups of a store that is open: at intervals, and when they are asked for.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::clock::{Clock, Timestamp};
use crate::base::remote::Location;
use crate::base::units::Time;
use crate::store::{self, BackupError, BackupOrder, BackupSummary, Store};

/// Rest after a backup that failed, where that is shorter than the interval.
const RETRY: Duration = Duration::from_mins(1);

/// Where and how often a store is backed up while it is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackupConfig {
    /// Folder of the backups, or a URL of object storage; empty for none.
    pub folder: PathBuf,
    /// Time between two of them; 0 for those only that are asked for.
    pub every: Time,
    /// Backups that are kept; 0 for all.
    pub keep: usize,
}

impl Default for BackupConfig {
    fn default() -> Self {
        Self { folder: PathBuf::new(), every: Time::from_millis(0), keep: 7 }
    }
}

/// What has become of the backups of a process.
#[derive(Debug, Clone, Default)]
pub struct BackupsState {
    /// One is under way, or about to be.
    pub running: bool,
    /// How many have ended, in whatever way.
    pub made: u64,
    /// When the last one ended.
    pub ended: Option<Timestamp>,
    /// What it is made of, if it did not fail.
    pub last: Option<BackupSummary>,
    /// Why it failed.
    pub error: Option<String>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<BackupsState>,
    asked: Mutex<Asked>,
    told: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct Asked {
    backup: bool,
    quit: bool,
}

/// Asks for backups from any thread.
#[derive(Debug, Clone)]
pub struct BackupsHandle(Arc<Shared>);

/// The thread that makes backups; dropped, it ends one that is under way, which leaves those before
/// it as they were.
#[derive(Debug)]
pub struct Backups {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Backups {
    /// Starts the thread; none if no folder is set.
    pub fn start(store: &Arc<Store>, config: &BackupConfig) -> std::io::Result<Option<Self>> {
        if config.folder.as_os_str().is_empty() {
            return Ok(None);
        }
        let shared = Arc::new(Shared::default());
        let place = Location::parse(&config.folder.to_string_lossy())?;
        let work = BackupWork { store: store.clone(), config: config.clone(), place, shared };
        let shared = work.shared.clone();
        let thread = thread::Builder::new().name("backups".to_owned());
        let thread = thread.spawn(move || work.run())?;
        Ok(Some(Self { shared, thread: Some(thread) }))
    }

    /// Returns what asks it for backups.
    #[must_use]
    pub fn handle(&self) -> BackupsHandle {
        BackupsHandle(self.shared.clone())
    }
}

impl BackupsHandle {
    /// Has a backup made, unless one is under way. Returns what has become of them so far.
    #[must_use = "it tells how many there were before"]
    pub fn ask(&self) -> BackupsState {
        let mut state = lock(&self.0.state);
        if !state.running {
            state.running = true;
            lock(&self.0.asked).backup = true;
            self.0.told.notify_all();
        }
        state.clone()
    }

    /// Returns what has become of them so far.
    #[must_use]
    pub fn state(&self) -> BackupsState {
        lock(&self.0.state).clone()
    }
}

impl Drop for Backups {
    fn drop(&mut self) {
        lock(&self.shared.asked).quit = true;
        self.shared.told.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has been told.
            drop(thread.join());
        }
    }
}

struct BackupWork {
    store: Arc<Store>,
    config: BackupConfig,
    place: Location,
    shared: Arc<Shared>,
}

impl BackupWork {
    fn run(self) {
        let mut rest = self.first_rest();
        while self.wait(rest) {
            lock(&self.shared.state).running = true;
            let (folder, keep) = (&self.place, self.config.keep);
            let order = BackupOrder { folder, name: None, keep, now: Clock::System.now() };
            let done = store::backup(&self.store, order, || !lock(&self.shared.asked).quit);
            let failed = done.is_err();
            self.note(done);
            rest = self.every().map(|every| if failed { every.min(RETRY) } else { every });
        }
    }

    fn every(&self) -> Option<Duration> {
        Some(self.config.every.duration()).filter(|every| !every.is_zero())
    }

    /// What is left of the interval that began with the newest backup there is.
    fn first_rest(&self) -> Option<Duration> {
        let every = self.every()?;
        let all = store::backups(&self.place).unwrap_or_default();
        let newest = all.last().and_then(|(_, head)| head.made.parse::<jiff::Timestamp>().ok());
        let Some(newest) = newest else { return Some(Duration::ZERO) };
        let since = Clock::System.now().0.saturating_sub(newest.as_millisecond());
        Some(every.saturating_sub(Duration::from_millis(u64::try_from(since).unwrap_or(0))))
    }

    /// Waits until a backup is due or asked for. Returns false at the end.
    fn wait(&self, rest: Option<Duration>) -> bool {
        let asked = lock(&self.shared.asked);
        let idle = |asked: &mut Asked| !asked.quit && !asked.backup;
        let mut asked = if let Some(rest) = rest {
            let waited = self.shared.told.wait_timeout_while(asked, rest, idle);
            waited.unwrap_or_else(PoisonError::into_inner).0
        } else {
            let waited = self.shared.told.wait_while(asked, idle);
            waited.unwrap_or_else(PoisonError::into_inner)
        };
        asked.backup = false;
        !asked.quit
    }

    fn note(&self, done: Result<BackupSummary, BackupError>) {
        let mut state = lock(&self.shared.state);
        state.running = false;
        state.made += 1;
        state.ended = Some(Clock::System.now());
        match done {
            Ok(summary) => {
                tracing::info!(name = summary.name, documents = summary.documents, "backed up");
                (state.last, state.error) = (Some(summary), None);
            }
            Err(BackupError::Stopped) => {}
            Err(error) => {
                tracing::error!(%error, "the store could not be backed up");
                state.error = Some(error.to_string());
            }
        }
    }
}
