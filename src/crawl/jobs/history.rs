//! The history of runs: a small redb file, and a lock for each job.
//!
//! The file is open only while a row is read or written, so that `crawl jobs list` works beside a
//! scheduler. Locks are those of the operating system: they end with their process, which is how
//! a run that goes on is told from one that was killed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use crate::store;

use super::Error;
use super::plan::Progress;
use super::row::{Outcome, Run};

/// Job, sequence -> run.
const RUNS: TableDefinition<(&str, u64), &[u8]> = TableDefinition::new("runs");
/// Job -> how far it has come.
const PROGRESS: TableDefinition<&str, &[u8]> = TableDefinition::new("progress");

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
pub struct Lock(#[allow(dead_code, reason = "it is held, not used")] File);

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
    /// be free. A process that is being started holds all locks of the one that starts it, until it
    /// runs a program of its own.
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
    pub fn progress(&self, job: &str) -> Result<Option<Progress>, Error> {
        let read = |db: &Database| -> Result<Option<Progress>, store::Error> {
            let table = db.begin_read()?.open_table(PROGRESS)?;
            let row = table.get(job)?;
            Ok(row.map(|row| Progress::decode(row.value())).transpose()?)
        };
        match self.open()? {
            Some(db) => Ok(read(&db)?),
            None => Ok(None),
        }
    }

    /// Writes how far a job has come, together with new rows. Returns the numbers of the rows.
    pub fn add(
        &self,
        job: &str,
        progress: Option<&Progress>,
        runs: &[Run],
    ) -> Result<Vec<u64>, Error> {
        let db = self.open_or_make()?;
        Ok(insert(&db, (job, progress, runs), self.rows_max)?)
    }

    /// Replaces a row.
    pub fn replace(&self, job: &str, number: u64, run: &Run) -> Result<(), Error> {
        let write = |db: &Database| -> Result<(), store::Error> {
            let txn = db.begin_write()?;
            txn.open_table(RUNS)?.insert((job, number), run.encode().as_slice())?;
            txn.commit()?;
            Ok(())
        };
        Ok(write(&self.open_or_make()?)?)
    }

    /// Returns the newest `limit` rows of a job with their numbers, the newest first.
    pub fn newest(&self, job: &str, limit: usize) -> Result<Vec<(u64, Run)>, Error> {
        let read = |db: &Database| -> Result<Vec<(u64, Run)>, store::Error> {
            let table = db.begin_read()?.open_table(RUNS)?;
            let rows = table.range((job, 0)..=(job, u64::MAX))?.rev().take(limit);
            rows.map(|row| {
                let (key, row) = row?;
                Ok((key.value().1, Run::decode(row.value())?))
            })
            .collect()
        };
        match self.open()? {
            Some(db) => Ok(read(&db)?),
            None => Ok(Vec::new()),
        }
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

    fn open_or_make(&self) -> Result<Database, Error> {
        let started = Instant::now();
        loop {
            match store::open_small(&self.path, CACHE_BYTES) {
                Err(store::Error::InUse(_)) if started.elapsed() < BUSY_MAX => {
                    thread::sleep(BUSY_STEP);
                }
                opened => return Ok(opened?),
            }
        }
    }

    /// Opens the file if it is there.
    fn open(&self) -> Result<Option<Database>, Error> {
        if !self.path.exists() {
            return Ok(None);
        }
        let db = self.open_or_make()?;
        complete(&db)?;
        Ok(Some(db))
    }
}

/// Makes the tables, if a process died between making the file and writing its first row.
fn complete(db: &Database) -> Result<(), store::Error> {
    let txn = db.begin_read()?;
    if txn.open_table(RUNS).is_ok() && txn.open_table(PROGRESS).is_ok() {
        return Ok(());
    }
    drop(txn);
    let txn = db.begin_write()?;
    txn.open_table(RUNS)?;
    txn.open_table(PROGRESS)?;
    txn.commit()?;
    Ok(())
}

fn insert(
    db: &Database,
    (job, progress, runs): (&str, Option<&Progress>, &[Run]),
    rows_max: usize,
) -> Result<Vec<u64>, store::Error> {
    let txn = db.begin_write()?;
    let mut numbers = Vec::new();
    {
        let mut table = txn.open_table(RUNS)?;
        let last = table.range((job, 0)..=(job, u64::MAX))?.next_back().transpose()?;
        let mut next = last.map_or(1, |(key, _)| key.value().1 + 1);
        for run in runs {
            table.insert((job, next), run.encode().as_slice())?;
            numbers.push(next);
            next += 1;
        }
        let oldest = next.saturating_sub(rows_max as u64);
        table.retain_in((job, 0)..(job, oldest), |_, _| false)?;
        let mut table = txn.open_table(PROGRESS)?;
        if let Some(progress) = progress {
            table.insert(job, progress.encode().as_slice())?;
        }
    }
    txn.commit()?;
    Ok(numbers)
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
    let mut open = OpenOptions::new();
    let file = open.create(true).truncate(false).write(true).open(path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Lock(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}
