//! The history of runs: a small file, and a lock for each job.
//!
//! The file is open only while a row is read or written, so that `crawl jobs list` works beside a
//! scheduler. Locks end with their process, which is how a run that goes on is told from one that
//! was killed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::base::file_lock::FileLock;
use crate::store::{self, RunFile};

use super::Error;
use super::plan::JobProgress;
use super::row::{Outcome, Run};

/// Memory of the file's page cache.
const CACHE_BYTES: usize = 1 << 20;

/// Time for which another user of the file is waited for.
const BUSY_MAX: Duration = Duration::from_secs(10);

/// Wait between two tries to open the file.
const BUSY_STEP: Duration = Duration::from_millis(5);

/// Tries to take the lock of a run, that far apart.
const LOCK_TRIES: u32 = 20;

/// Rows of a job that are looked through for runs whose process died.
const CUT_LOOK: usize = 100;

/// Held while a run is under way, or while a scheduler runs.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "it is held, not used")] FileLock);

/// The history of all jobs.
#[derive(Debug, Clone)]
pub struct History {
    path: PathBuf,
    rows_max: usize,
}

impl History {
    /// Names the file; it is made when a row is written. At most `rows_max` rows are kept of each
    /// job, at least one.
    #[must_use]
    pub fn new(path: &Path, rows_max: usize) -> Self {
        Self { path: path.to_owned(), rows_max: rows_max.max(1) }
    }

    /// Takes the lock of a job; none while another process or thread runs it.
    ///
    /// # Errors
    ///
    /// If the lock file cannot be made.
    pub fn lock(&self, job: &str) -> Result<Option<Lock>, Error> {
        self.lock_beside(&format!("{job}.lock"))
    }

    /// Like [`History::lock`], for a run that begins: it waits a little for a lock that is about to
    /// be free. [`History::shown`] has it for a moment.
    pub fn lock_soon(&self, job: &str) -> Result<Option<Lock>, Error> {
        for _ in 0..LOCK_TRIES {
            if let Some(lock) = self.lock(job)? {
                return Ok(Some(lock));
            }
            thread::sleep(BUSY_STEP);
        }
        self.lock(job)
    }

    /// Takes the lock of the scheduler.
    ///
    /// # Errors
    ///
    /// If another scheduler has it.
    pub fn lock_all(&self) -> Result<Lock, Error> {
        let mut path = self.path.clone().into_os_string();
        path.push(".lock");
        lock_file(Path::new(&path))?.ok_or_else(|| Error::Second(self.path.clone()))
    }

    fn lock_beside(&self, name: &str) -> Result<Option<Lock>, Error> {
        let mut folder = self.path.clone().into_os_string();
        folder.push(".locks");
        lock_file(&PathBuf::from(folder).join(name))
    }

    /// Returns how far a job has come; none if it is new.
    pub fn progress(&self, job: &str) -> Result<Option<JobProgress>, Error> {
        Ok(self.open()?.map(|file| file.progress(job)).transpose()?.flatten())
    }

    /// Writes how far a job has come, together with new rows. Returns the numbers of the rows.
    pub fn add(
        &self,
        job: &str,
        progress: Option<&JobProgress>,
        runs: &[Run],
    ) -> Result<Vec<u64>, Error> {
        Ok(self.open_or_make()?.add(job, progress, runs, self.rows_max)?)
    }

    /// Replaces a row.
    pub fn replace(&self, job: &str, number: u64, run: &Run) -> Result<(), Error> {
        Ok(self.open_or_make()?.replace(job, number, run)?)
    }

    /// Returns the newest `limit` rows of a job with their numbers, the newest first.
    pub fn newest(&self, job: &str, limit: usize) -> Result<Vec<(u64, Run)>, Error> {
        Ok(self.open()?.map(|file| file.newest(job, limit)).transpose()?.unwrap_or_default())
    }

    /// Like [`History::newest`], but a run whose process died is shown as interrupted.
    pub fn shown(&self, job: &str, limit: usize) -> Result<Vec<(u64, Run)>, Error> {
        let mut rows = self.newest(job, limit)?;
        if rows.iter().any(|(_, run)| run.outcome == Outcome::Running)
            && let Some(lock) = self.lock(job)?
        {
            drop(lock);
            // It may have ended between the two looks.
            rows = self.newest(job, limit)?;
            for (_, run) in &mut rows {
                cut(run);
            }
        }
        Ok(rows)
    }

    /// Notes that the runs of a job whose process died were interrupted. To be called by whoever
    /// holds the lock of the job. Returns the newest row if it is a run that was cut off, and how
    /// many runs in a row were, for the same moment.
    pub fn note_cut(&self, job: &str, _held: &Lock) -> Result<Option<(Run, usize)>, Error> {
        let mut rows = self.newest(job, CUT_LOOK)?;
        for (number, run) in &mut rows {
            if run.outcome == Outcome::Running {
                cut(run);
                self.replace(job, *number, run)?;
            }
        }
        let runs: Vec<Run> =
            rows.into_iter().map(|(_, run)| run).filter(|run| !run.outcome.is_no_run()).collect();
        let Some(newest) = runs.first().filter(|run| run.outcome.is_cut()).cloned() else {
            return Ok(None);
        };
        let same = |run: &&Run| run.outcome.is_cut() && run.planned == newest.planned;
        let tries = runs.iter().take_while(same).count();
        Ok(Some((newest, tries)))
    }

    fn open_or_make(&self) -> Result<RunFile, Error> {
        let started = Instant::now();
        loop {
            match RunFile::open_or_create(&self.path, CACHE_BYTES) {
                Err(store::Error::InUse(_)) if started.elapsed() < BUSY_MAX => {
                    thread::sleep(BUSY_STEP);
                }
                opened => return Ok(opened?),
            }
        }
    }

    /// Opens the file if it is there.
    fn open(&self) -> Result<Option<RunFile>, Error> {
        if self.path.exists() { self.open_or_make().map(Some) } else { Ok(None) }
    }
}

fn cut(run: &mut Run) {
    if run.outcome == Outcome::Running {
        run.outcome = Outcome::Interrupted;
        "the process died".clone_into(&mut run.reason);
    }
}

fn lock_file(path: &Path) -> Result<Option<Lock>, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(io)?;
    }
    Ok(File::create(path).and_then(FileLock::exclusive).map_err(io)?.map(Lock))
}
