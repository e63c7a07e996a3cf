//! A store of an older format, and the file of the present format that is written beside it.
//!
//! In: the folder. Out: both, to be read and written by whoever knows their rows, until the new
//! file takes the name of the old one. That is one step of the file system: a crash leaves the old
//! store or the new one, whole.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use redb::Database;

use crate::base::file_lock::LockFile;

use super::file::{beside, caught, check_magic, open_error, open_overlay, remove};
use super::{
    Error, FORMAT, META, OLDEST, STORE_NUMBER, Snapshot, Store, View as _, number, read_number,
    start, upgrade,
};

/// How a migration ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The old store, if it is kept.
    pub kept: Option<PathBuf>,
    /// Its bytes, kept or not.
    pub old_bytes: u64,
    /// Bytes of the new store.
    pub new_bytes: u64,
}

/// A migration under way. Dropped before its end, it leaves nothing but the old store.
#[derive(Debug)]
pub struct Migration {
    /// Nobody else can open the old store to write while this is held.
    old: Store,
    new: Store,
    partial: Partial,
    format: u64,
    number: u64,
    lock: LockFile,
}

/// The unfinished new file, which goes with its migration.
#[derive(Debug)]
pub(super) struct Partial(pub(super) PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        // It has its last name by now, or the next migration removes it.
        drop(remove(&self.0));
    }
}

/// Takes the right to put another file in the place of a store: of several processes one has it.
pub(super) fn lock(store: &Path) -> Result<LockFile, Error> {
    let path = beside(store, ".migrating");
    let taken = LockFile::take(&path).map_err(|source| Error::Io { path, source })?;
    taken.ok_or_else(|| Error::InUse(store.to_owned()))
}

impl Migration {
    /// Opens the store in `folder` to be read, and makes a new one beside it with a number of its
    /// own; none if the store has the present format. What an earlier migration left unfinished is
    /// removed.
    ///
    /// # Errors
    ///
    /// Names the file, which is left as it is: there is none, it is in use, damaged, of a newer
    /// format or of one that is too old; or the new one cannot be made.
    pub fn begin(folder: &Path, cache_bytes: usize) -> Result<Option<Self>, Error> {
        // One for each of both files.
        let cache_bytes = cache_bytes / 2;
        let path = folder.join("store.redb");
        let io = |source| Error::Io { path: path.clone(), source };
        if !path.try_exists().map_err(io)? {
            return Err(Error::Missing(folder.to_owned()));
        }
        let lock = lock(&path)?;
        let partial = Partial(path.with_extension("migrating"));
        remove(&partial.0)?;
        check_magic(&path)?;
        let old = Store::of(open_overlay(&path, cache_bytes)?.0, path, cache_bytes);
        let format = old.format()?;
        if format == FORMAT {
            return Ok(None);
        }
        if format < OLDEST {
            return Err(Error::OlderFormat { path: old.path.clone(), found: format });
        }
        caught(|| old.path.clone(), || prepare(&old, format))?;
        // A format that had numbers of stores keeps them, and with them those of its documents.
        let number = match old.snapshot()?.bytes(META, STORE_NUMBER)? {
            Some(row) => read_number(&row)?,
            None => number::draw(),
        };
        let new = create(&partial.0, cache_bytes, number)?;
        Ok(Some(Self { old, new, partial, format, number, lock }))
    }

    /// Returns the state of the old store, in the tables of the present format.
    pub fn old(&self) -> Result<Snapshot, Error> {
        self.old.snapshot()
    }

    /// Returns the store that is written.
    #[must_use]
    pub fn new_store(&mut self) -> &mut Store {
        &mut self.new
    }

    /// Returns the path of the store.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.old.path
    }

    /// Returns the format of the old store.
    #[must_use]
    pub fn format(&self) -> u64 {
        self.format
    }

    /// Returns the number of the new store.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Puts the new store in the place of the old one, which stays beside it if `keep` says so.
    pub fn finish(self, keep: bool) -> Result<Ending, Error> {
        let Self { old, new, partial, format, lock, .. } = self;
        drop(new);
        let path = old.path.clone();
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Io { path, source }
        };
        let size = |path: &Path| fs::metadata(path).map(|meta| meta.len()).map_err(io(path));
        let written = File::open(&partial.0).and_then(|file| file.sync_all());
        written.map_err(io(&partial.0))?;
        let (old_bytes, new_bytes) = (size(&path)?, size(&partial.0)?);
        let kept = if keep { Some(second_name(&path, format)?) } else { None };
        tracing::trace!("kept");
        fs::rename(&partial.0, &path).map_err(io(&path))?;
        tracing::trace!("renamed");
        sync_folder(&path).map_err(io(&path))?;
        // The old file can be read, and not written, until the new one has its name.
        drop((old, lock));
        Ok(Ending { kept, old_bytes, new_bytes })
    }
}

/// Gives an old store the tables of the present format, in memory: nothing is written to its file.
fn prepare(old: &Store, format: u64) -> Result<(), Error> {
    if format == OLDEST {
        upgrade::upgrade(&old.db())?;
    }
    upgrade::rename_patterns(&old.db())?;
    for table in upgrade::unknown_tables(&old.db())? {
        tracing::warn!(table, "this version does not know the table: it stays behind");
    }
    old.add_tables()
}

/// Makes the file of a new store.
pub(super) fn create(path: &Path, cache_bytes: usize, number: u64) -> Result<Store, Error> {
    let mut builder = Database::builder();
    let db = builder.set_cache_size(cache_bytes).create(path);
    let db = db.map_err(|error| open_error(path.to_owned(), error))?;
    start(&db, number)?;
    Ok(Store::of(db, path.to_owned(), cache_bytes))
}

/// Gives a file of an older format a second name beside its own, which tells its format; a copy
/// where a file can have but one name.
fn second_name(path: &Path, format: u64) -> Result<PathBuf, Error> {
    let mut number = 1;
    loop {
        let more = if number == 1 { String::new() } else { format!("-{number}") };
        let name = beside(path, &format!(".format-{format}{more}"));
        match fs::hard_link(path, &name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if is_same(path, &name) {
                    // An earlier migration came so far.
                    return Ok(name);
                }
                number += 1;
            }
            Err(_) => {
                let copied = copy(path, &name);
                return copied.map(|()| name.clone()).map_err(|source| {
                    drop(remove(&name));
                    Error::Io { path: name, source }
                });
            }
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

/// Tells whether two names are those of one file.
fn is_same(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let place = |path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
        matches!((place(one), place(other)), (Ok(one), Ok(other)) if one == other)
    }
    #[cfg(not(unix))]
    {
        let _ = (one, other);
        false
    }
}

/// Has the names in the folder of a file written to the disk.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        // A folder without a name is the present one.
        let here = folder.as_os_str().is_empty();
        File::open(if here { Path::new(".") } else { folder })?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
