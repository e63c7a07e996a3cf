//! A store that could not be written, and is opened again when it can.
//!
//! After a failed write, redb refuses everything until the file is opened anew, for it no longer
//! knows what is on the disk. While there is no room, the store can still be read.

use std::fs::{self, File};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use redb::Database;

use super::file::{close, open_database, open_nothing, open_overlay};
use super::{Error, Store};

/// Bytes that must find room beside the store before it is said to be ready.
const ROOM: usize = 1 << 20;

/// For how long a look whether there is room is believed.
const ROOM_TIME: Duration = Duration::from_secs(5);

/// How long others may hold the database while it is to be opened anew.
const HELD_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Health {
    failed: AtomicBool,
    failures: AtomicU64,
    mended: AtomicU64,
    /// What has failed was replaced by what can only be read.
    readable: AtomicBool,
    /// When there was room last.
    room: Mutex<Option<Instant>>,
}

impl Store {
    /// Tells whether a write has failed and the store was not opened anew since.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.health.failed.load(Ordering::SeqCst)
    }

    /// Returns how often it could not be written, and how often it was opened anew after that.
    #[must_use]
    pub fn failures(&self) -> (u64, u64) {
        let Health { failures, mended, .. } = &self.health;
        (failures.load(Ordering::Relaxed), mended.load(Ordering::Relaxed))
    }

    /// To be called when something went wrong with the store: notes if it cannot be written any
    /// more. The caller has no transaction open.
    pub fn suspect(&self) {
        if !self.is_failed() && self.db().begin_write().is_err() {
            self.health.failed.store(true, Ordering::SeqCst);
            self.health.failures.fetch_add(1, Ordering::Relaxed);
            tracing::error!(store = %self.path.display(), "the store cannot be written");
        }
    }

    /// Tells why nothing can be written: a write has failed, or there is no room beside the store.
    pub fn check_writable(&self) -> Result<(), Error> {
        if self.is_failed() {
            let source = std::io::Error::other("the last write failed");
            return Err(Error::Io { path: self.path.clone(), source });
        }
        let mut room = self.health.room.lock().unwrap_or_else(PoisonError::into_inner);
        if room.is_some_and(|seen| seen.elapsed() < ROOM_TIME) {
            return Ok(());
        }
        *room = None;
        self.find_room()?;
        *room = Some(Instant::now());
        Ok(())
    }

    /// Writes and removes a file beside the store.
    fn find_room(&self) -> Result<(), Error> {
        let path = self.path.with_extension("room");
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&vec![0; ROOM])?;
            file.sync_all()
        });
        let removed = fs::remove_file(&path);
        written.and(removed).map_err(|source| Error::Io { path, source })
    }

    /// Opens a store anew that could not be written; until that succeeds, it can be read. The
    /// caller has its turn to write, and no transaction.
    ///
    /// # Errors
    ///
    /// Why it still cannot be written.
    pub fn mend(&self) -> Result<(), Error> {
        if !self.is_failed() {
            return Ok(());
        }
        let opened = self.find_room().and_then(|()| self.replace(Self::writable));
        if let Err(error) = opened {
            if !self.health.readable.load(Ordering::SeqCst) {
                // What is not in memory could not be read either.
                self.replace(Self::readable)?;
                self.health.readable.store(true, Ordering::SeqCst);
            }
            return Err(error);
        }
        self.health.readable.store(false, Ordering::SeqCst);
        self.health.failed.store(false, Ordering::SeqCst);
        self.health.mended.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(store = %self.path.display(), "the store can be written again");
        Ok(())
    }

    /// Puts another database in the place of the one that failed, which has to be closed first.
    fn replace(&self, open: impl FnOnce(&Self) -> Result<Database, Error>) -> Result<(), Error> {
        let mut db = self.db.write().unwrap_or_else(PoisonError::into_inner);
        let Some(mut old) = db.replace(Arc::new(open_nothing()?)) else { return Ok(()) };
        let began = Instant::now();
        // Whoever has it only begins a transaction.
        let old = loop {
            match Arc::try_unwrap(old) {
                Ok(old) => break old,
                Err(held) if began.elapsed() > HELD_MAX => {
                    *db = Some(held);
                    return Err(Error::InUse(self.path.clone()));
                }
                Err(held) => old = held,
            }
            thread::sleep(Duration::from_millis(1));
        };
        self.health.readable.store(false, Ordering::SeqCst);
        close(old);
        *db = Some(Arc::new(open(self)?));
        Ok(())
    }

    fn writable(&self) -> Result<Database, Error> {
        open_database(&self.path, self.cache_bytes)
    }

    fn readable(&self) -> Result<Database, Error> {
        let (db, freezer) = open_overlay(&self.path, self.cache_bytes)?;
        freezer.freeze();
        Ok(db)
    }
}
