//! The file of a store: made whole or not at all, and opened.

use std::any::Any;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Builder, Database, DatabaseError, TransactionError, WriteTransaction};

use crate::base::system::is_read_at_random;

use super::Error;
use super::overlay::{Freezer, Overlay};

/// First bytes of every redb file. Source: redb, `docs/design.md`.
const MAGIC: [u8; 9] = [b'r', b'e', b'd', b'b', 0x1A, 0x0A, 0xA9, 0x0D, 0x0A];

/// Makes a file with what `fill` writes. It gets its name when it is whole: neither a crash nor a
/// full disk leaves half of it behind. Of processes that make it at the same time, one does, and
/// the others wait and find it made.
pub(super) fn make(
    path: &Path,
    cache_bytes: usize,
    fill: impl FnOnce(&Database) -> Result<(), Error>,
) -> Result<(), Error> {
    let making = beside(path, ".making");
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    };
    let lock = File::create(&making).map_err(io(&making))?;
    match lock.lock() {
        // Where files cannot be locked, one process has to do.
        Err(error) if error.kind() != ErrorKind::Unsupported => return Err(io(&making)(error)),
        _ => {}
    }
    if path.try_exists().map_err(io(path))? {
        return Ok(());
    }
    let partial = path.with_extension("partial");
    let made = remove(&partial).and_then(|()| {
        let mut builder = Database::builder();
        let db = builder.set_cache_size(cache_bytes).create(&partial);
        let db = db.map_err(|error| open_error(partial.clone(), error))?;
        fill(&db)?;
        drop(db);
        File::open(&partial).and_then(|file| file.sync_all()).map_err(io(&partial))?;
        fs::rename(&partial, path).map_err(io(path))
    });
    if made.is_ok() {
        // Who still waits for the lock finds the file made.
        remove(&making)?;
    } else {
        drop(remove(&partial));
    }
    made
}

/// Returns `path` with `ending` added to its name.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(Error::Io { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Opens the file, which is one of redb and not empty.
pub(super) fn open_database(path: &Path, cache_bytes: usize) -> Result<Database, Error> {
    open_by(path, cache_bytes, |builder| {
        let file = File::options().read(true).write(true).open(path);
        let file = file.map_err(|error| DatabaseError::Storage(error.into()))?;
        is_read_at_random(&file);
        builder.create_file(file)
    })
}

/// Begins to write. With each commit goes what is needed to open the file behind a crash: two bits
/// for each of its pages, once more brought to the disk. Else redb reads the whole file then, some
/// four minutes for one of 17 GB.
pub(super) fn begin_write(db: &Database) -> Result<WriteTransaction, TransactionError> {
    let mut txn = db.begin_write()?;
    txn.set_quick_repair(true);
    Ok(txn)
}

/// Opens the file in such a way that nothing is ever written to it.
pub(super) fn open_overlay(path: &Path, cache_bytes: usize) -> Result<(Database, Freezer), Error> {
    let overlay = Overlay::open(path)?;
    let freezer = overlay.freezer();
    let db = open_by(path, cache_bytes, |builder| builder.create_with_backend(overlay))?;
    Ok((db, freezer))
}

/// Returns a database without any table, into which nothing can be written.
pub(super) fn open_nothing() -> Result<Database, Error> {
    let overlay = Overlay::nothing();
    let freezer = overlay.freezer();
    let path = Path::new("nothing");
    let db = open_by(path, 0, |builder| builder.create_with_backend(overlay))?;
    freezer.freeze();
    Ok(db)
}

fn open_by(
    path: &Path,
    cache_bytes: usize,
    open: impl FnOnce(&Builder) -> Result<Database, DatabaseError>,
) -> Result<Database, Error> {
    caught(
        || path.to_owned(),
        || {
            let mut builder = Database::builder();
            open(builder.set_cache_size(cache_bytes))
                .map_err(|error| open_error(path.to_owned(), error))
        },
    )
}

/// Does what redb does by asserting that the file is sound, so that a damaged one still ends in an
/// error that names it.
pub(super) fn caught<T>(
    path: impl FnOnce() -> PathBuf,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| {
        Err(Error::Corrupt { path: path(), detail: panic_text(panic.as_ref()) })
    })
}

/// Drops a database, which writes to it and so may meet a damage as well. Returns whether it was
/// closed.
pub(super) fn close<T>(db: T) -> bool {
    catch_unwind(AssertUnwindSafe(|| drop(db))).is_ok()
}

pub(super) fn check_magic(path: &Path) -> Result<(), Error> {
    let mut start = [0u8; 9];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    match read {
        Ok(()) if start == MAGIC => Ok(()),
        Err(source) if source.kind() != ErrorKind::UnexpectedEof => {
            Err(Error::Io { path: path.to_owned(), source })
        }
        _ => Err(Error::Corrupt {
            path: path.to_owned(),
            detail: "it does not start like a redb file".to_owned(),
        }),
    }
}

pub(super) fn open_error(path: PathBuf, error: DatabaseError) -> Error {
    match error {
        DatabaseError::DatabaseAlreadyOpen => Error::InUse(path),
        DatabaseError::Storage(redb::StorageError::Io(source))
            if !matches!(source.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidData) =>
        {
            Error::Io { path, source }
        }
        other => Error::Corrupt { path, detail: other.to_string() },
    }
}

pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it cannot be read".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::store::{COUNTERS, Store, Update as _};

    #[test]
    fn a_file_behind_a_kill_is_opened_without_being_read() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(folder.path(), 1 << 20).unwrap();
        let killed = folder.path().join("killed.redb");
        for part in 0..5_u32 {
            let mut batch = store.begin().unwrap();
            let rows = (part * 1_000..(part + 1) * 1_000).map(|row| format!("{row:0500}"));
            rows.for_each(|row| batch.put(COUNTERS, &*row, &7).unwrap());
            batch.commit().unwrap();
            // As a kill leaves it: nothing was closed.
            fs::copy(store.path(), &killed).unwrap();
            let is_repaired = Arc::new(AtomicBool::new(false));
            let noted = Arc::clone(&is_repaired);
            let mut builder = Database::builder();
            builder.set_repair_callback(move |_| noted.store(true, Ordering::SeqCst));
            drop(builder.open(&killed).unwrap());
            assert!(!is_repaired.load(Ordering::SeqCst), "part {part}");
        }
    }

    #[test]
    fn a_database_that_cannot_be_closed_is_no_panic() {
        struct Damaged;
        impl Drop for Damaged {
            fn drop(&mut self) {
                panic!("the pages make no sense");
            }
        }
        assert!(!close(Damaged) && close(()));
    }
}
