//! The file of scheduled jobs, beside stores: how far each job has come, and its runs.
//!
//! In: rows of a job. Out: the same rows, the newest first. Like a store, the file gets its name
//! when it is whole, and one process has it open at a time.

use std::fs;
use std::path::Path;

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::file::{begin_write, check_magic, make, open_database};
use super::{Error, Row};

/// Job, sequence -> run.
const RUNS: TableDefinition<(&str, u64), &[u8]> = TableDefinition::new("runs");

/// Job -> how far it has come.
const PROGRESS: TableDefinition<&str, &[u8]> = TableDefinition::new("progress");

/// The open file.
#[derive(Debug)]
pub struct RunFile(Database);

impl RunFile {
    /// Opens the file, making it if it is not there.
    ///
    /// # Errors
    ///
    /// Names the file; [`Error::InUse`] if another process has it open.
    pub fn open_or_create(path: &Path, cache_bytes: usize) -> Result<Self, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        if !path.try_exists().map_err(io)? {
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                fs::create_dir_all(folder).map_err(io)?;
            }
            make(path, cache_bytes, add_tables)?;
        }
        check_magic(path)?;
        let db = open_database(path, cache_bytes)?;
        let txn = db.begin_read()?;
        // A version before this one made the file first and its tables afterwards.
        if txn.open_table(RUNS).is_err() || txn.open_table(PROGRESS).is_err() {
            add_tables(&db)?;
        }
        drop(txn);
        Ok(Self(db))
    }

    /// Returns how far a job has come; none if it is new.
    pub fn progress<P: Row>(&self, job: &str) -> Result<Option<P>, Error> {
        let row = self.0.begin_read()?.open_table(PROGRESS)?.get(job)?;
        Ok(row.map(|row| P::decode(row.value())).transpose()?)
    }

    /// Writes how far a job has come, together with new runs, and keeps its newest `runs_max`.
    /// Returns the numbers of the new ones.
    pub fn add<P: Row, R: Row>(
        &self,
        job: &str,
        progress: Option<&P>,
        runs: &[R],
        runs_max: usize,
    ) -> Result<Vec<u64>, Error> {
        let txn = begin_write(&self.0)?;
        let mut table = txn.open_table(RUNS)?;
        let last = table.range((job, 0)..=(job, u64::MAX))?.next_back().transpose()?;
        let first = last.map_or(1, |(key, _)| key.value().1 + 1);
        let numbers: Vec<u64> = (first..).take(runs.len()).collect();
        for (number, run) in numbers.iter().zip(runs) {
            table.insert((job, *number), &*run.encode())?;
        }
        let oldest = (first + runs.len() as u64).saturating_sub(runs_max as u64);
        table.retain_in((job, 0)..(job, oldest), |_, _| false)?;
        drop(table);
        if let Some(progress) = progress {
            txn.open_table(PROGRESS)?.insert(job, &*progress.encode())?;
        }
        txn.commit()?;
        Ok(numbers)
    }

    /// Replaces a run.
    pub fn replace<R: Row>(&self, job: &str, number: u64, run: &R) -> Result<(), Error> {
        let txn = begin_write(&self.0)?;
        txn.open_table(RUNS)?.insert((job, number), &*run.encode())?;
        Ok(txn.commit()?)
    }

    /// Returns the newest `limit` runs of a job with their numbers, the newest first.
    pub fn newest<R: Row>(&self, job: &str, limit: usize) -> Result<Vec<(u64, R)>, Error> {
        let table = self.0.begin_read()?.open_table(RUNS)?;
        let rows = table.range((job, 0)..=(job, u64::MAX))?.rev().take(limit);
        rows.map(|row| {
            let (key, row) = row?;
            Ok((key.value().1, R::decode(row.value())?))
        })
        .collect()
    }
}

fn add_tables(db: &Database) -> Result<(), Error> {
    let txn = begin_write(db)?;
    txn.open_table(RUNS)?;
    txn.open_table(PROGRESS)?;
    Ok(txn.commit()?)
}
