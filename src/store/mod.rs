//! The durable store: one redb file, its tables, its format number, and who may open it.
//!
//! In: rows, in a transaction. Out: the same rows after any crash.
//!
//! Keys are big-endian bytes, so that the order of the rows is the order of their numbers. Values
//! start with a version byte; the module that owns a row draws its fields.

mod codec;
mod damage;
mod file;
mod mend;
mod overlay;
mod tables;
mod turns;
mod upgrade;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

pub use codec::{BadRow, Decoder, Encoder};
pub use damage::damaged_tables;
pub use file::open_small;
pub use tables::{ReadTables, Tables, read_number};
pub use turns::Turn;

use file::{caught, check_magic, close, make, open_database, open_error, open_overlay};
use mend::Health;
use turns::Turns;

/// Number of the format of all rows. A store of a higher number is refused; one of format 5 is
/// brought to this one when it is opened.
pub const FORMAT: u64 = 6;

/// Small facts about the store: `format`, `features`, `urls`, `next_*` numbers.
pub const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
/// Host key -> host number.
pub const HOST_NUMBERS: TableDefinition<&str, u32> = TableDefinition::new("host_numbers");
/// Registrable domain -> number of its hosts (`frontier`).
pub const DOMAINS: TableDefinition<&str, u64> = TableDefinition::new("domains");
/// Host number, hash of a pattern -> links of that pattern that were let in (`frontier`).
pub const PATTERNS: TableDefinition<&[u8], u64> = TableDefinition::new("patterns");
/// Host number -> host row (`frontier`).
pub const HOSTS: TableDefinition<u32, &[u8]> = TableDefinition::new("hosts");
/// Host number -> robots.txt copy (`frontier`).
pub const ROBOTS: TableDefinition<u32, &[u8]> = TableDefinition::new("robots");
/// Address -> address row (`frontier`).
pub const ADDRESSES: TableDefinition<&str, &[u8]> = TableDefinition::new("addresses");
/// Host number, rank, depth, sequence -> queued request (`frontier`).
pub const QUEUE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("queue");
/// Address -> what a sitemap or feed came to (`frontier`).
pub const LISTS: TableDefinition<&str, &[u8]> = TableDefinition::new("lists");
/// Due time, host number: hosts with a queue (`frontier`).
pub const SCHEDULE: TableDefinition<&[u8], ()> = TableDefinition::new("schedule");
/// Due time, sequence -> request that waits before it is queued (`frontier`).
pub const LATER: TableDefinition<&[u8], &[u8]> = TableDefinition::new("later");
/// Due time, address: addresses that were visited and are to be again (`frontier`).
pub const REVISITS: TableDefinition<&[u8], ()> = TableDefinition::new("revisits");
/// Hash of an address, number of a linking host: links between hosts (`frontier`).
pub const INLINKS: TableDefinition<&[u8], ()> = TableDefinition::new("inlinks");
/// Document number -> document row (`documents`).
pub const DOCUMENTS: TableDefinition<u64, &[u8]> = TableDefinition::new("documents");
/// Document identifier -> document number (`documents`).
pub const DOC_IDS: TableDefinition<u128, u64> = TableDefinition::new("doc_ids");
/// Document number, address -> copy row (`documents`).
pub const COPIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("copies");
/// Content number -> content row: the nodes of the parent forest (`documents`).
pub const CONTENTS: TableDefinition<u64, &[u8]> = TableDefinition::new("contents");
/// Content number -> compressed text (`documents`).
pub const BODIES: TableDefinition<u64, &[u8]> = TableDefinition::new("bodies");
/// Hash of a normalised text -> content number (`index`).
pub const EXACT: TableDefinition<u128, u64> = TableDefinition::new("exact");
/// Table number, prefix -> packed entries: the rotated tables (`index`).
pub const NEAR: TableDefinition<&[u8], &[u8]> = TableDefinition::new("near");
/// Sequence -> fingerprints of one commit that are not in the rotated tables yet (`index`).
pub const NEAR_LOG: TableDefinition<u64, &[u8]> = TableDefinition::new("near_log");
/// Hash of a normalised text, number of a further content that has it -> (): pages of one site that
/// are no copies of each other (`clusters`).
pub const TWINS: TableDefinition<(u128, u64), ()> = TableDefinition::new("twins");
/// Content number -> address of its first copy: contents whose joints deserve a second look
/// (`clusters`).
pub const UNSURE: TableDefinition<u64, &str> = TableDefinition::new("unsure_copies");
/// Document number -> (): documents whose canonical copy has another text than before, to be
/// compared with others by it (`clusters`).
pub const REVIEWS: TableDefinition<u64, ()> = TableDefinition::new("reviews");
/// Document number, sequence -> change of the canonical copy (`clusters`).
pub const HISTORY: TableDefinition<&[u8], &[u8]> = TableDefinition::new("history");
/// Identifier that a sender gave -> what became of the article (`intake`).
pub const SENT: TableDefinition<&str, &[u8]> = TableDefinition::new("sent");
/// Address of an article that was sent -> its content (`intake`).
pub const SENT_URLS: TableDefinition<&str, u64> = TableDefinition::new("sent_urls");
/// Host number -> how often its blocks of text were seen (`boilerplate`).
pub const BOILERPLATE: TableDefinition<u32, &[u8]> = TableDefinition::new("boilerplate");
/// Number of a rule -> rule of duplicate addresses with its evidence (`rules`).
pub const RULES: TableDefinition<u64, &[u8]> = TableDefinition::new("rules");
/// Number of a rule, hash of what it makes of an address -> the first such address (`rules`).
pub const RULE_KEYS: TableDefinition<&[u8], &str> = TableDefinition::new("rule_keys");
/// Number of a rule, or hash of a kind of addresses, address -> (): addresses that are not visited
/// because of it (`rules`, `frontier`).
pub const SKIPPED: TableDefinition<&[u8], ()> = TableDefinition::new("skipped");
/// Hash of a kind of addresses -> what it has given (`frontier`).
pub const FAMILIES: TableDefinition<u64, &[u8]> = TableDefinition::new("families");
/// Host number -> what it answers for pages that it does not have (`crawl`).
pub const ERROR_PAGES: TableDefinition<u32, &[u8]> = TableDefinition::new("error_pages");
/// Document number -> hash of what similarity search shows of it, 0 if nothing: documents that have
/// changed since its index was brought up to date (`documents`).
pub const SEARCH_CHANGES: TableDefinition<u64, u64> = TableDefinition::new("search_changes");
/// Copies, document number -> (): documents of two copies and more (`documents`).
pub const RANKING: TableDefinition<&[u8], ()> = TableDefinition::new("ranking");
/// Hour -> what came in it (`documents`).
pub const ARRIVALS: TableDefinition<u64, &[u8]> = TableDefinition::new("arrivals");
/// Hour, document number -> copies that joined the document in it (`documents`).
pub const GROWTH: TableDefinition<&[u8], u64> = TableDefinition::new("growth");
/// Number of a feed of verdicts that was taken in -> the feed with its evidence (`verdicts`).
pub const FEEDS: TableDefinition<u64, &[u8]> = TableDefinition::new("feeds");
/// Number of a feed, host key -> what the feed has been worth for the host (`verdicts`).
pub const FEED_HOSTS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("feed_hosts");
/// Hash of an address, number of a feed -> what the feed says of it (`verdicts`).
pub const VERDICTS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("verdicts");
/// Hash of a canonical address of a feed -> the address, as it is known here (`verdicts`).
pub const KNOWN_PAGES: TableDefinition<&[u8], &str> = TableDefinition::new("known_pages");
/// Hash of an address, another one that is not fetched because it is a copy of it -> number of the
/// feed that says so (`verdicts`).
pub const KNOWN_SKIPPED: TableDefinition<&[u8], u64> = TableDefinition::new("known_skipped");
/// Hash of an address -> (): pages by which stored pages were found first (`frontier`).
pub const LEADS: TableDefinition<u64, ()> = TableDefinition::new("leads");
/// Sequence -> document of several copies whose copies changed then for the last time
/// (`documents`).
pub const VERDICT_LOG: TableDefinition<u64, u64> = TableDefinition::new("verdict_log");
/// Document number -> its sequence in that log (`documents`).
pub const VERDICT_PLACES: TableDefinition<u64, u64> = TableDefinition::new("verdict_places");
/// Name of a reason -> how often (`crawl`).
pub const COUNTERS: TableDefinition<&str, u64> = TableDefinition::new("counters");

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
    #[error(
        "the store {} has format {found}, and only formats from {} on can be opened: crawl into \
         another folder",
        path.display(),
        upgrade::OLDEST
    )]
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
    Redb(#[from] redb::Error),
    /// A row cannot be read.
    #[error(transparent)]
    Row(#[from] BadRow),
}

macro_rules! from_redb {
    ($($name:ident),*) => {$(
        impl From<redb::$name> for Error {
            fn from(error: redb::$name) -> Self {
                Self::Redb(error.into())
            }
        }
    )*};
}
from_redb!(StorageError, TableError, TransactionError, CommitError);

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
    /// To write to it; it is made if it is not there.
    Create,
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
    /// Names the file. A file that is damaged, foreign, of a newer format or of one older than 5 is
    /// left as it is.
    pub fn open_or_create(folder: &Path, cache_bytes: usize) -> Result<Self, Error> {
        fs::create_dir_all(folder)
            .map_err(|source| Error::Io { path: folder.to_owned(), source })?;
        Self::open_file(folder, cache_bytes, Mode::Create)
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
        if !exists && mode != Mode::Create {
            return Err(Error::Missing(folder.to_owned()));
        }
        if !exists {
            make(&path, cache_bytes, |db| {
                let txn = db.begin_write()?;
                Tables::open(&txn)?.meta.insert("format", FORMAT.to_be_bytes().as_slice())?;
                Ok(txn.commit()?)
            })?;
        }
        check_magic(&path)?;
        let db = match mode {
            Mode::Create | Mode::Write => open_database(&path, cache_bytes)?,
            Mode::Read => open_overlay(&path, cache_bytes)?.0,
        };
        let store = Self {
            db: RwLock::new(Some(Arc::new(db))),
            path,
            cache_bytes,
            turns: Turns::default(),
            health: Health::default(),
        };
        if store.check_format()? < FORMAT {
            upgrade::upgrade(&store.db())?;
            if mode != Mode::Read {
                tracing::info!(store = %store.path.display(), "brought to format {FORMAT}");
            }
        }
        store.add_tables()?;
        Ok(store)
    }

    /// Returns the database for transactions.
    #[must_use]
    pub fn db(&self) -> Arc<Database> {
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner).clone();
        db.expect("a store that is used is not dropped")
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

    /// Starts to read one state of the store.
    pub fn read(&self) -> Result<ReadTables, Error> {
        ReadTables::open(&self.db().begin_read()?)
    }

    /// Fixes the setting `name` of this store as `given`, or compares it with what was fixed.
    pub fn fix_setting(&self, name: &'static str, given: &str) -> Result<(), Error> {
        let txn = self.db().begin_write()?;
        {
            let mut meta = txn.open_table(META)?;
            let stored = meta.get(name)?.map(|v| String::from_utf8_lossy(v.value()).into_owned());
            match stored {
                Some(stored) if stored == given => return Ok(()),
                Some(stored) => {
                    let (name, given) = (name.to_owned(), given.to_owned());
                    return Err(Error::Setting { name, stored, given });
                }
                None => meta.insert(name, given.as_bytes())?,
            };
        }
        txn.commit()?;
        Ok(())
    }

    /// Returns the setting `name` as it was fixed; none if it was not.
    pub fn setting(&self, name: &str) -> Result<Option<String>, Error> {
        let stored = self.read()?.meta.get(name)?;
        Ok(stored.map(|row| String::from_utf8_lossy(row.value()).into_owned()))
    }

    /// Makes the tables that the store is older than, so that readers never meet a missing one.
    fn add_tables(&self) -> Result<(), Error> {
        match self.read() {
            Err(Error::Redb(redb::Error::TableDoesNotExist(_))) => {}
            read => return read.map(drop),
        }
        let txn = self.db().begin_write()?;
        drop(Tables::open(&txn)?);
        Ok(txn.commit()?)
    }

    /// Returns the number of the format, if such a store can be opened.
    fn check_format(&self) -> Result<u64, Error> {
        let txn = self.db().begin_read()?;
        let corrupt =
            |detail: &str| Error::Corrupt { path: self.path.clone(), detail: detail.to_owned() };
        let meta = match txn.open_table(META) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Err(corrupt("it is no store")),
            meta => meta?,
        };
        let row = meta.get("format")?.ok_or_else(|| corrupt("it has no format number"))?;
        let bytes = row.value().try_into().map_err(|_| corrupt("its format number is odd"))?;
        let found = u64::from_be_bytes(bytes);
        if found < upgrade::OLDEST {
            return Err(Error::OlderFormat { path: self.path.clone(), found });
        }
        if found > FORMAT {
            return Err(Error::NewerFormat { path: self.path.clone(), found });
        }
        Ok(found)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let db = self.db.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if !close(db) {
            tracing::error!(store = %self.path.display(), "the store is damaged: it was left open");
        }
    }
}
