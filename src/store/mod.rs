//! The durable store: one redb file, its tables, its format number, and who may open it.
//!
//! In: rows, in a transaction. Out: the same rows after any crash.
//!
//! Keys are big-endian bytes, so that the order of the rows is the order of their numbers. Values
//! start with a version byte; the module that owns a row draws its fields.

mod backup;
mod batch;
mod codec;
mod damage;
mod file;
mod mend;
mod migration;
mod number;
mod overlay;
mod raw;
mod replacement;
mod row;
mod runs;
mod scratch;
mod table;
mod tables;
mod transaction;
mod turns;
mod upgrade;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use redb::{Database, ReadableDatabase};

use crate::base::clock::Clock;

pub use backup::{
    BackupError, BackupHead, BackupOrder, BackupSummary, backup, backups, restore, verify,
};
pub use batch::{Batch, Snapshot};
pub use codec::{BadRow, Decoder, Encoder};
pub use damage::damaged_tables;
pub use migration::{Ending, Migration};
pub use number::{
    ContentNumber, DocumentNumber, MaybeContentNumber, Renumber, number_above, sequence_of,
    unique_number,
};
pub use raw::{Bytes, End, RawRows, Reading, Writing};
pub use replacement::{Replaced, Replacement};
pub(crate) use row::row;
pub use row::{
    Blob, Code, Codec, Coded, Fixed, Flag, Format, List, MaybeNumber, Nested, Number, Part, Rest,
    Shape, Signed, Text, Wide,
};
pub use runs::RunFile;
pub(crate) use scratch::{SCRATCH_NEWEST, ScratchFile};
pub use table::{Entry, FixedKey, Key, Row, Rows, Table, TableRow, Update, View};
pub use tables::{CHANGES_EPOCH, COUNTERS, META, Name, STORE_NUMBER, read_number};
pub use transaction::Transaction;
pub use turns::Turn;

use file::{
    begin_write, caught, check_magic, close, make, open_database, open_error, open_overlay,
};
use mend::Health;
use tables::{Tables, in_file};
use turns::Turns;

/// Number of the format of all rows. A store of another number is refused; one of an older format
/// is brought to this one by `crawl migrate`.
pub const FORMAT: u64 = 8;

/// Names in [`META`] of when the store was made (ms since 1970, as text), and by which version of
/// the program.
pub const MADE: &str = "made";
/// See [`MADE`].
pub const MADE_BY: &str = "made_by";

/// The oldest format that can be brought to the present one.
const OLDEST: u64 = 5;

/// What the database says of a read or write that failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Failure(redb::Error);

impl Failure {
    /// Returns what the operating system says; none if it has no part in it.
    #[must_use]
    pub fn io(&self) -> Option<&std::io::Error> {
        match &self.0 {
            redb::Error::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// What stops the program at the store. Each names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no store in the folder.
    #[error("there is no store in {}", .0.display())]
    Missing(PathBuf),
    /// The folder or file cannot be made or read.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// There is a store already where one is to be made.
    #[error("there is a store in {}: name another folder", .0.display())]
    Exists(PathBuf),
    /// The disk has no room for a file beside the store.
    #[error(
        "{} needs up to {needed} bytes beside it, and its disk has {free} left: make room there \
         and run the same command again; the store is as it was", path.display()
    )]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Bytes that are needed at most.
        needed: u64,
        /// Bytes that are left.
        free: u64,
    },
    /// Another process has it open.
    #[error("the store {} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// Made by a newer version of this program.
    #[error("the store {} has format {found}, a newer one than {FORMAT}", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format number.
        found: u64,
    },
    /// Made by an older version of this program.
    #[error("the store {} has format {found}, {}", path.display(), way_out(path, *found))]
    OlderFormat {
        /// The file.
        path: PathBuf,
        /// Its format number.
        found: u64,
    },
    /// Not a store, cut short, or damaged.
    #[error("the store {} is damaged: {detail}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// It has made as many documents or contents as it can number.
    #[error("the store has no numbers left for {0}: crawl into another folder")]
    Full(&'static str),
    /// A setting that is fixed when a store is made differs.
    #[error("the store was made with {name} = {stored}, not {given}: name another store")]
    Setting {
        /// Name of the setting.
        name: String,
        /// What the store was made with.
        stored: String,
        /// What was given.
        given: String,
    },
    /// A read or write failed.
    #[error("the store failed: {0}")]
    Failed(#[source] Failure),
    /// A row cannot be read.
    #[error(transparent)]
    Row(#[from] BadRow),
    /// What holds rows in the place of a file failed.
    #[error(transparent)]
    Remote(Box<dyn std::error::Error + Send + Sync>),
}

macro_rules! from_redb {
    ($($name:ident),*) => {$(
        impl From<redb::$name> for Error {
            fn from(error: redb::$name) -> Self {
                Self::Failed(Failure(error.into()))
            }
        }
    )*};
}
from_redb!(StorageError, TableError, TransactionError, CommitError);

impl Error {
    /// Tells whether the data of the store makes no sense, rather than that it cannot be had.
    #[must_use]
    pub fn may_be_damage(&self) -> bool {
        match self {
            Self::Failed(Failure(error)) => !matches!(error, redb::Error::Io(_)),
            Self::Row(_) | Self::Corrupt { .. } => true,
            _ => false,
        }
    }
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    /// There is one until the store is dropped.
    db: RwLock<Option<Arc<Database>>>,
    path: PathBuf,
    cache_bytes: usize,
    turns: Turns,
    health: Health,
}

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// To write to it; it is made, with this number, if it is not there.
    Create(u64),
    /// To write to it.
    Write,
    /// To read it. Its file stays as it is: what must be written to read it, such as the repair
    /// after a crash, stays in memory.
    Read,
}

impl Store {
    /// Opens the store in `folder`, making folder and store if they are not there.
    ///
    /// `cache_bytes` bounds the memory of redb's page cache.
    ///
    /// # Errors
    ///
    /// Names the file. A file that is damaged, foreign or of another format is left as it is.
    pub fn open_or_create(folder: &Path, cache_bytes: usize) -> Result<Self, Error> {
        Self::open_or_create_as(folder, cache_bytes, number::draw())
    }

    /// Does the same; a store that is not there gets a number that is chosen, not drawn: tests know
    /// then what numbers it gives.
    pub fn open_or_create_as(
        folder: &Path,
        cache_bytes: usize,
        number: u64,
    ) -> Result<Self, Error> {
        fs::create_dir_all(folder)
            .map_err(|source| Error::Io { path: folder.to_owned(), source })?;
        Self::open_file(folder, cache_bytes, Mode::Create(number))
    }

    /// Opens the store in `folder`, which must be there.
    pub fn open(folder: &Path, cache_bytes: usize) -> Result<Self, Error> {
        Self::open_file(folder, cache_bytes, Mode::Write)
    }

    /// Opens the store in `folder` to read it only: nothing is ever written to its file, and others
    /// may read it at the same time.
    pub fn open_to_read(folder: &Path, cache_bytes: usize) -> Result<Self, Error> {
        Self::open_file(folder, cache_bytes, Mode::Read)
    }

    fn open_file(folder: &Path, cache_bytes: usize, mode: Mode) -> Result<Self, Error> {
        let path = folder.join("store.redb");
        let exists = path.try_exists().map_err(|e| Error::Io { path: path.clone(), source: e })?;
        match mode {
            Mode::Create(number) if !exists => make(&path, cache_bytes, |db| start(db, number))?,
            Mode::Write | Mode::Read if !exists => return Err(Error::Missing(folder.to_owned())),
            _ => {}
        }
        check_magic(&path)?;
        let db = match mode {
            Mode::Create(_) | Mode::Write => open_database(&path, cache_bytes)?,
            Mode::Read => open_overlay(&path, cache_bytes)?.0,
        };
        let store = Self::of(db, path, cache_bytes);
        let found = store.format()?;
        if found < FORMAT {
            return Err(Error::OlderFormat { path: store.path.clone(), found });
        }
        store.add_tables()?;
        Ok(store)
    }

    fn of(db: Database, path: PathBuf, cache_bytes: usize) -> Self {
        Self {
            db: RwLock::new(Some(Arc::new(db))),
            path,
            cache_bytes,
            turns: Turns::default(),
            health: Health::default(),
        }
    }

    #[must_use]
    fn db(&self) -> Arc<Database> {
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner).clone();
        db.expect("a store that is used is not dropped")
    }

    /// Returns the memory of redb's page cache, in bytes.
    #[must_use]
    pub fn cache_bytes(&self) -> usize {
        self.cache_bytes
    }

    /// Waits for its turn to write. To be held over the transaction by whoever writes again and
    /// again, so that no writer of this process starves another.
    pub fn turn(&self) -> Turn<'_> {
        self.turns.take()
    }

    /// Tells whether somebody waits for a turn.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.turns.wanted()
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets redb check every page of the file. Returns false if it had to be repaired.
    pub fn check_pages(&mut self) -> Result<bool, Error> {
        let db = self.db.get_mut().unwrap_or_else(PoisonError::into_inner);
        let db = db.as_mut().and_then(Arc::get_mut);
        let db = db.ok_or_else(|| Error::InUse(self.path.clone()))?;
        let path = || self.path.clone();
        caught(path, || db.check_integrity().map_err(|error| open_error(path(), error)))
    }

    /// Gives what is free at the end of the file back to the system, after moving pages there.
    fn shrink(&mut self) -> Result<(), Error> {
        let db = self.db.get_mut().unwrap_or_else(PoisonError::into_inner);
        let db = db.as_mut().and_then(Arc::get_mut);
        let db = db.ok_or_else(|| Error::InUse(self.path.clone()))?;
        db.compact().map(drop).map_err(|error| Error::Failed(Failure(error.into())))
    }

    /// Starts a batch of writes. Waits while another one is open.
    pub fn begin(&self) -> Result<Batch, Error> {
        Batch::begin(&self.db())
    }

    /// Returns the state of the store as it is now.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        Snapshot::open(&self.db())
    }

    /// Fixes the setting `name` of this store as `given`, or compares it with what was fixed.
    pub fn fix_setting(&self, name: &'static str, given: &str) -> Result<(), Error> {
        match self.setting(name)? {
            Some(stored) if stored == given => Ok(()),
            Some(stored) => {
                let (name, given) = (name.to_owned(), given.to_owned());
                Err(Error::Setting { name, stored, given })
            }
            None => {
                let mut batch = self.begin()?;
                batch.put(META, name, &given.as_bytes().to_vec())?;
                batch.commit()
            }
        }
    }

    /// Returns the setting `name` as it was fixed; none if it was not.
    pub fn setting(&self, name: &str) -> Result<Option<String>, Error> {
        let stored = self.snapshot()?.get(META, name)?;
        Ok(stored.map(|row| String::from_utf8_lossy(&row).into_owned()))
    }

    /// Makes the tables that the store is older than, so that readers never meet a missing one.
    fn add_tables(&self) -> Result<(), Error> {
        let snapshot = self.snapshot()?;
        let missing = |name: &Name| match snapshot.rows_of(*name) {
            Err(Error::Failed(Failure(redb::Error::TableDoesNotExist(_)))) => Some(Ok(())),
            Err(error) => Some(Err(error)),
            Ok(_) => None,
        };
        match Name::ALL.iter().find_map(missing) {
            None => return Ok(()),
            Some(Err(error)) => return Err(error),
            Some(Ok(())) => {}
        }
        let txn = begin_write(&self.db())?;
        drop(Tables::open(&txn)?);
        Ok(txn.commit()?)
    }

    /// Returns the number of the format, unless it is newer than the present one.
    fn format(&self) -> Result<u64, Error> {
        let txn = self.db().begin_read()?;
        let corrupt =
            |detail: &str| Error::Corrupt { path: self.path.clone(), detail: detail.to_owned() };
        let meta = match txn.open_table(in_file::<&str, &[u8]>("meta")) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Err(corrupt("it is no store")),
            meta => meta?,
        };
        let row = meta.get("format")?.ok_or_else(|| corrupt("it has no format number"))?;
        let bytes = row.value().try_into().map_err(|_| corrupt("its format number is odd"))?;
        let found = u64::from_be_bytes(bytes);
        if found > FORMAT {
            return Err(Error::NewerFormat { path: self.path.clone(), found });
        }
        Ok(found)
    }
}

/// Makes the tables of a new store of a number.
fn start(db: &Database, number: u64) -> Result<(), Error> {
    let txn = begin_write(db)?;
    let mut tables = Tables::open(&txn)?;
    for (name, value) in [("format", FORMAT), (STORE_NUMBER, number)] {
        tables.meta.insert(name, value.to_be_bytes().as_slice())?;
    }
    let made = Clock::System.now().0.to_string();
    for (name, value) in [(MADE, made.as_str()), (MADE_BY, env!("CARGO_PKG_VERSION"))] {
        tables.meta.insert(name, value.as_bytes())?;
    }
    drop(tables);
    Ok(txn.commit()?)
}

/// Says what to do with a store of an older format.
fn way_out(path: &Path, found: u64) -> String {
    if found < OLDEST {
        return format!("and only formats from {OLDEST} on can be used: crawl into another folder");
    }
    let folder = path.parent().unwrap_or(path).display();
    format!("this version needs format {FORMAT}: run `crawl migrate --store {folder}`")
}

impl Drop for Store {
    fn drop(&mut self) {
        let db = self.db.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if !close(db) {
            tracing::error!(store = %self.path.display(), "the store is damaged: it was left open");
        }
    }
}
