//! Backups of a store: a folder of chunks that are named by what is in them, and one list of chunks
//! for each backup.
//!
//! In: one state of a store, whatever is written to it meanwhile. Out: the rows of all its tables.
//! Chunks end where a hash of a key says so: what has not changed since the last backup is in the
//! same chunks, which are there already. The list comes last: a backup that breaks off leaves those
//! before it as they were.
//!
//! Memory: one chunk, and 16 bytes for each chunk where old backups are removed.

mod chunk;
mod folder;
mod list;

use std::ops::Bound::Unbounded;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::base::clock::Timestamp;
use crate::base::remote::Location;

use super::raw::Reading as _;
use super::replacement::RowWriter;
use super::{
    CHANGES_EPOCH, Error, META, Name, Replacement, STORE_NUMBER, Store, Update as _, View as _,
    number, read_number,
};

use chunk::{ChunkMaker, read_rows};
use folder::{BackupFolder, write_at};
use list::{ListLine, ListReader, ListWriter};

pub use list::BackupHead;

/// Why a backup cannot be made, looked at or put back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] Error),
    /// A file of the backup cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// The folder has files that are not of a backup.
    #[error("{} has files that are no backups: name an empty folder, or a new one", .0.display())]
    Foreign(PathBuf),
    /// The folder is of another store.
    #[error(
        "the backups in {} are of store {found}, not of {own}: name another folder",
        folder.display()
    )]
    OtherStore {
        /// The folder.
        folder: PathBuf,
        /// Number of the store that is backed up there.
        found: u64,
        /// Number of the store that was named.
        own: u64,
    },
    /// Another process writes a backup into the folder.
    #[error("another backup into {} is under way", .0.display())]
    Busy(PathBuf),
    /// There is no such backup.
    #[error("{} has no backup {name}: it has {known}", folder.display())]
    Unknown {
        /// The folder.
        folder: PathBuf,
        /// Its name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The folder has no backup at all.
    #[error("there is no backup in {}", .0.display())]
    Empty(PathBuf),
    /// A file of a backup is not what it should be.
    #[error("{} is damaged: {detail}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// It was told to stop.
    #[error("the backup was stopped before its end")]
    Stopped,
}

impl BackupError {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    fn damaged(path: &Path, detail: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), detail: detail.into() }
    }
}

impl From<crate::base::outputs::Error> for BackupError {
    fn from(error: crate::base::outputs::Error) -> Self {
        Self::Io { path: error.path, source: error.source }
    }
}

/// What a backup is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupSummary {
    /// Its name: when it was made.
    pub name: String,
    /// Rows of all tables.
    pub rows: u64,
    /// Documents.
    pub documents: u64,
    /// Chunks.
    pub chunks: u64,
    /// Bytes of all rows.
    pub bytes: u64,
    /// Chunks that were not there before.
    pub new_chunks: u64,
    /// Bytes that were written to the folder, packed.
    pub written_bytes: u64,
    /// Older backups that were removed.
    pub removed: u64,
}

/// How a backup is made.
#[derive(Debug, Clone, Copy)]
pub struct BackupOrder<'a> {
    /// Where it is written.
    pub folder: &'a Location,
    /// Its name; that of the moment if there is none. The newest one has the last name.
    pub name: Option<&'a str>,
    /// Backups that are kept, the newest; 0 for all.
    pub keep: usize,
    /// When it is made.
    pub now: Timestamp,
}

/// Writes a backup of the present state of a store, as long as `goes_on` says so. Others may write
/// to the store meanwhile.
pub fn backup(
    store: &Store,
    order: BackupOrder<'_>,
    mut goes_on: impl FnMut() -> bool,
) -> Result<BackupSummary, BackupError> {
    let snapshot = store.snapshot()?;
    let number = snapshot.bytes(META, STORE_NUMBER)?.map(|row| read_number(&row)).transpose();
    let number = number.map_err(Error::from)?.unwrap_or(0);
    let mut folder = BackupFolder::open_or_create(order.folder, number)?;
    let name =
        order.name.map_or_else(|| folder.free_name(order.now), |name| Ok(name.to_owned()))?;
    let head = BackupHead {
        made: order.now.to_string(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        format: super::FORMAT,
        store_number: number,
        documents: snapshot.rows_of(Name::Documents)?,
        copies: snapshot.rows_of(Name::Copies)?,
        urls: snapshot.rows_of(Name::Addresses)?,
    };
    let (mut new_chunks, mut written_bytes) = (0, 0);
    let list = folder.list(&name);
    let written = write_at(&list, |file| {
        let mut list = ListWriter::new(file, &head)?;
        for table in Name::ALL {
            let mut chunk = ChunkMaker::default();
            let mut rows = snapshot.raw_range(*table, Unbounded, Unbounded)?;
            loop {
                let row = rows.next().transpose()?;
                let is_end = row.is_none();
                if let Some((key, row)) = row {
                    chunk.add(&key, &row);
                }
                if chunk.is_full() || is_end && !chunk.is_empty() {
                    let whole = std::mem::take(&mut chunk).finish();
                    let (hash, packed) = folder.put(&whole.bytes)?;
                    new_chunks += u64::from(packed > 0);
                    written_bytes += packed;
                    list.chunk(*table, hash, &whole)?;
                    tracing::trace!("chunk");
                    if !goes_on() {
                        return Err(BackupError::Stopped);
                    }
                }
                if is_end {
                    break;
                }
            }
        }
        folder.sync()?;
        list.finish()
    })?;
    tracing::trace!("listed");
    let removed = folder.prune(order.keep)?;
    let (chunks, rows, bytes) = (written.chunks, written.rows, written.bytes);
    let documents = head.documents;
    Ok(BackupSummary { name, rows, documents, chunks, bytes, new_chunks, written_bytes, removed })
}

/// Returns the backups of a folder, the oldest first, each with its name.
pub fn backups(folder: &Location) -> Result<Vec<(String, BackupHead)>, BackupError> {
    let folder = BackupFolder::open(folder)?;
    let names = folder.names()?.into_iter();
    names.map(|name| Ok((name.clone(), ListReader::open(&folder.list(&name))?.head))).collect()
}

/// Reads a backup, the newest one unless it is named, and calls `each` with every row. Each chunk
/// is compared with its name, and their number with the end of the list.
fn read(
    folder: &BackupFolder,
    name: Option<&str>,
    mut each: impl FnMut(Name, &[u8], &[u8]) -> Result<(), Error>,
) -> Result<BackupSummary, BackupError> {
    let name = folder.find(name)?;
    let place = folder.list(&name);
    let path = place.to_shown();
    let mut list = ListReader::open(&place)?;
    let documents = list.head.documents;
    let (mut chunks, mut rows, mut bytes) = (0, 0, 0);
    while let Some(line) = list.next()? {
        let ListLine { table, chunk, .. } = &line;
        let table = Name::ALL.iter().find(|known| known.as_str() == table);
        let table = *table.ok_or_else(|| {
            BackupError::damaged(
                &path,
                format!("this version does not know a table `{}`", line.table),
            )
        })?;
        let there = folder.chunk_place(chunk);
        if !there.exists().map_err(BackupError::io(&there.to_shown()))? {
            return Err(BackupError::damaged(&path, format!("its chunk {chunk} is missing")));
        }
        let whole = folder.get(chunk, line.bytes)?;
        let found = read_rows(&whole, |key, row| each(table, key, row))?;
        if found != Some(line.rows) {
            return Err(BackupError::damaged(&there.to_shown(), "its rows are not whole"));
        }
        (chunks, rows, bytes) = (chunks + 1, rows + line.rows, bytes + line.bytes);
    }
    let (new_chunks, written_bytes, removed) = (0, 0, 0);
    Ok(BackupSummary { name, rows, documents, chunks, bytes, new_chunks, written_bytes, removed })
}

/// Reads every chunk of a backup, the newest one unless it is named, and compares it with its
/// checksum.
pub fn verify(folder: &Location, name: Option<&str>) -> Result<BackupSummary, BackupError> {
    read(&BackupFolder::open(folder)?, name, |_, _, _| Ok(()))
}

/// Writes the rows of a backup, the newest one unless it is named, into a store where there is none
/// yet. It has its name when the replacement that is returned is finished.
pub fn restore(
    folder: &Location,
    name: Option<&str>,
    to: &Path,
    cache_bytes: usize,
) -> Result<(Replacement, BackupSummary), BackupError> {
    let folder = BackupFolder::open(folder)?;
    let mut place = Replacement::anew(to, cache_bytes, None)?;
    let mut writer = RowWriter::new(place.new_store());
    let summary = read(&folder, name, |table, key, row| writer.put(table, key, row))?;
    let rows = writer.end()?;
    let list = folder.list(&summary.name).to_shown();
    if rows != summary.rows {
        let detail = format!("{rows} rows were written of {}", summary.rows);
        return Err(BackupError::damaged(&list, detail));
    }
    let found = place.new_store().format()?;
    if found < super::FORMAT {
        let path = list;
        return Err(Error::OlderFormat { path, found }.into());
    }
    // Who follows changes must not take those of the time after the backup for those that are lost.
    let mut batch = place.new_store().begin()?;
    batch.put(META, CHANGES_EPOCH, &number::draw().to_be_bytes().to_vec())?;
    batch.commit()?;
    Ok((place, summary))
}
