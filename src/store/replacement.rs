//! A file that is written beside a store, or where there is none yet, and gets its name when it is
//! whole.
//!
//! In: the folder. Out: an empty store to be filled, until it takes its name. That is one step of
//! the file system: a crash leaves what was there before, or the new store, whole.

use std::fs::{self, File};
use std::ops::Bound::Unbounded;
use std::path::{Path, PathBuf};

use crate::base::file_lock::LockFile;
use crate::base::system;

use super::file::{check_magic, open_overlay, remove};
use super::migration::{Partial, create, lock, sync_folder};
use super::raw::{Reading as _, Writing as _};
use super::{
    Batch, Error, FORMAT, META, Name, STORE_NUMBER, Snapshot, Store, View as _, number, read_number,
};

/// Bytes of keys and rows that are written in one commit.
const COMMIT_BYTES: usize = 16 << 20;

/// A new file under way. Dropped before its end, it leaves nothing but what was there.
#[derive(Debug)]
pub struct Replacement {
    /// Nobody else can open it to write while this is held.
    old: Option<Store>,
    new: Store,
    path: PathBuf,
    partial: Partial,
    lock: LockFile,
}

/// How a replacement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced {
    /// Bytes of the old file; 0 if there was none.
    pub old_bytes: u64,
    /// Bytes of the new one.
    pub new_bytes: u64,
    /// The new file has taken the name. If not, the old one is no larger and was left.
    pub done: bool,
}

impl Replacement {
    /// Opens the store in `folder` to be read, and makes an empty one of the same number beside it.
    /// What an earlier run left unfinished is removed.
    ///
    /// # Errors
    ///
    /// Names the file, which is left as it is.
    pub fn of(folder: &Path, cache_bytes: usize) -> Result<Self, Error> {
        let cache_bytes = cache_bytes / 2;
        let path = folder.join("store.redb");
        if !exists(&path)? {
            return Err(Error::Missing(folder.to_owned()));
        }
        let lock = lock(&path)?;
        check_magic(&path)?;
        remove(&path.with_extension("replacing"))?;
        check_room(&path, system::free(folder))?;
        let old = Store::of(open_overlay(&path, cache_bytes)?.0, path.clone(), cache_bytes);
        let found = old.format()?;
        if found < FORMAT {
            return Err(Error::OlderFormat { path, found });
        }
        old.add_tables()?;
        let number = number_of(&old)?;
        let (new, partial) = beside(&path, cache_bytes, number)?;
        Ok(Self { old: Some(old), new, path, partial, lock })
    }

    /// Makes an empty store where there is none, with a number that is chosen, or drawn.
    ///
    /// # Errors
    ///
    /// Names the file; [`Error::Exists`] if there is a store.
    pub fn anew(folder: &Path, cache_bytes: usize, number: Option<u64>) -> Result<Self, Error> {
        let path = folder.join("store.redb");
        fs::create_dir_all(folder)
            .map_err(|source| Error::Io { path: folder.to_owned(), source })?;
        let lock = lock(&path)?;
        if exists(&path)? {
            return Err(Error::Exists(folder.to_owned()));
        }
        let number = number.unwrap_or_else(number::draw);
        let (new, partial) = beside(&path, cache_bytes, number)?;
        Ok(Self { old: None, new, path, partial, lock })
    }

    /// Returns the state of the old store.
    pub fn old(&self) -> Result<Snapshot, Error> {
        let old = self.old.as_ref().ok_or_else(|| Error::Missing(self.path.clone()))?;
        old.snapshot()
    }

    /// Returns the store that is written.
    #[must_use]
    pub fn new_store(&mut self) -> &mut Store {
        &mut self.new
    }

    /// Copies every row of a state of another store. Returns the number of rows.
    pub fn copy(&mut self, from: &Snapshot) -> Result<u64, Error> {
        let mut writer = RowWriter::new(&self.new);
        for name in Name::ALL {
            // A leaf of the database that is full is cut in halves. Rows that come in their order
            // would leave each leaf half empty; so every second one comes first, and the others
            // fill the halves.
            for pass in [0, 1] {
                let rows = from.raw_range(*name, Unbounded, Unbounded)?;
                for row in rows.skip(pass).step_by(2) {
                    let (key, row) = row?;
                    writer.put(*name, &key, &row)?;
                }
            }
            tracing::trace!(table = name.as_str(), "copied");
        }
        let rows = writer.end()?;
        self.new.shrink()?;
        Ok(rows)
    }

    /// Gives the new file its name: in the place of the old one only if it is smaller.
    pub fn finish(self) -> Result<Replaced, Error> {
        let Self { old, new, path, partial, lock } = self;
        drop(new);
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Io { path, source }
        };
        let size = |path: &Path| fs::metadata(path).map(|meta| meta.len()).map_err(io(path));
        let written = File::open(&partial.0).and_then(|file| file.sync_all());
        written.map_err(io(&partial.0))?;
        let new_bytes = size(&partial.0)?;
        let old_bytes = if old.is_some() { size(&path)? } else { 0 };
        let done = old.is_none() || new_bytes < old_bytes;
        tracing::trace!("replacing");
        if done {
            fs::rename(&partial.0, &path).map_err(io(&path))?;
            tracing::trace!("replaced");
            sync_folder(&path).map_err(io(&path))?;
        }
        // The old file can be read, and not written, until the new one has its name.
        drop((old, lock));
        Ok(Replaced { old_bytes, new_bytes, done })
    }
}

fn exists(path: &Path) -> Result<bool, Error> {
    path.try_exists().map_err(|source| Error::Io { path: path.to_owned(), source })
}

/// A new file is never larger than the old one by more than what is left half empty.
fn check_room(path: &Path, free: Option<u64>) -> Result<(), Error> {
    let needed = fs::metadata(path).map(|meta| meta.len());
    let needed = needed.map_err(|source| Error::Io { path: path.to_owned(), source })?;
    match free {
        Some(free) if free < needed => Err(Error::NoRoom { path: path.to_owned(), needed, free }),
        _ => Ok(()),
    }
}

fn beside(path: &Path, cache_bytes: usize, number: u64) -> Result<(Store, Partial), Error> {
    let partial = Partial(path.with_extension("replacing"));
    remove(&partial.0)?;
    Ok((create(&partial.0, cache_bytes, number)?, partial))
}

fn number_of(store: &Store) -> Result<u64, Error> {
    let row = store.snapshot()?.bytes(META, STORE_NUMBER)?.map(|row| read_number(&row));
    Ok(row.transpose()?.unwrap_or_else(number::draw))
}

/// Writes rows as bytes, some in each commit.
pub(super) struct RowWriter<'a> {
    store: &'a Store,
    batch: Option<Batch>,
    bytes: usize,
    rows: u64,
}

impl<'a> RowWriter<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        Self { store, batch: None, bytes: 0, rows: 0 }
    }

    pub(super) fn put(&mut self, table: Name, key: &[u8], row: &[u8]) -> Result<(), Error> {
        let batch = match &mut self.batch {
            Some(batch) => batch,
            none => none.insert(self.store.begin()?),
        };
        batch.raw_put(table, key, row)?;
        self.rows += 1;
        self.bytes += key.len() + row.len();
        if self.bytes >= COMMIT_BYTES { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.bytes = 0;
        tracing::trace!("rewriting");
        self.batch.take().map_or(Ok(()), Batch::commit)
    }

    /// Returns the number of rows that were written.
    pub(super) fn end(mut self) -> Result<u64, Error> {
        self.commit()?;
        Ok(self.rows)
    }
}
