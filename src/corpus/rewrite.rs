//! Stores that are written anew: compacted, or put back from a backup. The new file is checked as a
//! whole before it has its name.
//!
//! Memory: the cache, one commit, and what a check takes.

use std::path::Path;

use serde::Serialize;

use super::check;
use super::tables::DOCUMENTS;
use crate::base::remote::Location;
use crate::store::{
    BackupError, BackupSummary, Error, Name, Reading as _, Replacement, Snapshot, Store, View as _,
    restore as read_backup,
};

/// Faults of the new store that are told.
const FAULTS_TOLD: usize = 5;

/// What a compaction has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    /// Documents.
    pub documents: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes of the old file.
    pub old_bytes: u64,
    /// Bytes of the new one.
    pub new_bytes: u64,
    /// The new file is in the place of the old one. If not, it would be no smaller.
    pub replaced: bool,
}

/// Writes a store anew beside itself, without what is empty in its file, and puts it in its place.
///
/// # Errors
///
/// Whatever it is, the store is as it was.
pub fn compact(folder: &Path, cache_bytes: usize) -> Result<Compacted, Error> {
    let mut work = Replacement::of(folder, cache_bytes)?;
    let old = work.old()?;
    let rows = work.copy(&old)?;
    verify_copy(&old, work.new_store())?;
    let documents = verify(work.new_store())?;
    drop(old);
    tracing::trace!("verified");
    let ended = work.finish()?;
    let (old_bytes, new_bytes, replaced) = (ended.old_bytes, ended.new_bytes, ended.done);
    Ok(Compacted { documents, rows, old_bytes, new_bytes, replaced })
}

/// Puts a backup, the newest one unless it is named, into a folder without a store.
///
/// # Errors
///
/// Whatever it is, there is still no store.
pub fn restore(
    folder: &Location,
    name: Option<&str>,
    to: &Path,
    cache_bytes: usize,
) -> Result<BackupSummary, BackupError> {
    let (mut work, summary) = read_backup(folder, name, to, cache_bytes)?;
    verify(work.new_store())?;
    tracing::trace!("verified");
    work.finish()?;
    Ok(summary)
}

/// Looks whether a new store has all rows of another one.
fn verify_copy(old: &Snapshot, new: &Store) -> Result<(), Error> {
    let snapshot = new.snapshot()?;
    for name in Name::ALL {
        let (before, after) = (old.rows_of(*name)?, snapshot.rows_of(*name)?);
        if before != after {
            let table = name.as_str();
            let detail = format!("table {table} has {before} rows, copied were {after}");
            return Err(Error::Corrupt { path: new.path().to_owned(), detail });
        }
    }
    Ok(())
}

/// Looks whether every page of a new store can be read again, and whether its rows agree. Returns
/// the number of its documents.
pub(super) fn verify(new: &mut Store) -> Result<u64, Error> {
    let path = new.path().to_owned();
    let corrupt = |detail| Error::Corrupt { path: path.clone(), detail };
    if !new.check_pages()? {
        return Err(corrupt("what was written of it cannot be read again".to_owned()));
    }
    let snapshot = new.snapshot()?;
    let findings = check::check(&snapshot)?;
    if findings.faults > 0 {
        let told = findings.listed.iter().take(FAULTS_TOLD).cloned().collect::<Vec<_>>();
        return Err(corrupt(format!("{} faults: {}", findings.faults, told.join("; "))));
    }
    snapshot.len(DOCUMENTS)
}
