//! The two ways to a store: a batch, whose writes are kept together or not at all, and a snapshot,
//! which is one state of it.

use std::collections::BTreeMap;
use std::fmt;

use redb::{Database, ReadTransaction, ReadableDatabase as _, WriteTransaction};
use self_cell::self_cell;

use super::file::begin_write;
use super::number::{SEQUENCE_MAX, sequence_of};
use super::raw::{Bytes, End, RawRows, Reading, Writing};
use super::tables::{ReadTables, Tables};
use super::{
    BadRow, COUNTERS, Error, META, Name, STORE_NUMBER, Table, Update as _, View as _, read_number,
    unique_number,
};

self_cell!(
    struct Open {
        owner: WriteTransaction,
        #[not_covariant]
        dependent: Tables,
    }
);

/// Writes that are kept together, or not at all. A read sees the writes before it. Dropped without
/// a commit, it leaves the store as it was.
pub struct Batch {
    open: Open,
    /// The state before it, held until the commit: so redb leaves the pages that it frees to the
    /// next one. Else it frees them behind the commit, by a second one that stays in its write
    /// buffer, and each read of a page that is in no cache looks through all of that for room.
    _held: ReadTransaction,
    /// What is appended to logs: one row for each.
    logs: BTreeMap<Name, Vec<u8>>,
    before: Vec<BeforeCommit>,
    after: Vec<Box<dyn FnOnce() + Send>>,
}

/// What is done at the end of a batch.
type BeforeCommit = Box<dyn FnOnce(&mut Batch) -> Result<(), Error> + Send>;

impl Batch {
    pub(super) fn begin(db: &Database) -> Result<Self, Error> {
        let open = Open::try_new(begin_write(db)?, |txn| Tables::open(txn))?;
        let held = db.begin_read()?;
        Ok(Self { open, _held: held, logs: BTreeMap::new(), before: Vec::new(), after: Vec::new() })
    }

    /// Has something done at the end of the batch, just before it is committed.
    pub fn before_commit(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), Error> + Send + 'static,
    ) {
        self.before.push(Box::new(work));
    }

    /// Has something done when the batch is on the disk, and not before.
    pub fn after_commit(&mut self, work: impl FnOnce() + Send + 'static) {
        self.after.push(Box::new(work));
    }

    /// Appends to a log: all that one batch appends is one row, which is written with the commit.
    /// No read of this batch sees it.
    pub fn append(&mut self, log: Table<u64, Vec<u8>>, bytes: &[u8]) {
        self.logs.entry(log.name()).or_default().extend_from_slice(bytes);
    }

    /// Keeps all writes: when this returns, no crash undoes them.
    pub fn commit(mut self) -> Result<(), Error> {
        for work in std::mem::take(&mut self.before) {
            work(&mut self)?;
        }
        for (name, row) in std::mem::take(&mut self.logs) {
            let log = Table::<u64, Vec<u8>>::new(name);
            let last = self.last(log)?.map(|last| last.key()).transpose()?;
            self.put(log, last.map_or(0, |last| last + 1), &row)?;
        }
        self.open.into_owner().commit()?;
        for work in self.after {
            work();
        }
        Ok(())
    }

    /// Takes the next number of the sequence `name`, starting at 1. Other stores give the same
    /// numbers.
    pub fn next_number(&mut self, name: &'static str) -> Result<u64, Error> {
        self.next_after(name, 0)
    }

    /// Takes the next number of the sequence `name`, with that of the store in front: no other
    /// store gives it.
    pub fn next_unique_number(&mut self, name: &'static str) -> Result<u64, Error> {
        let first = match self.bytes(META, name)? {
            Some(row) if sequence_of(read_number(&row)?) >= SEQUENCE_MAX => {
                return Err(Error::Full(name));
            }
            Some(_) => 0,
            None => self.first_number()?,
        };
        self.next_after(name, first)
    }

    /// Returns the number before the first one that the store gives.
    fn first_number(&self) -> Result<u64, Error> {
        let missing = BadRow { kind: "meta", detail: "the store has no number" };
        let row = self.bytes(META, STORE_NUMBER)?.ok_or(missing.clone())?;
        Ok(unique_number(read_number(&row)?, 0).ok_or(missing)?)
    }

    fn next_after(&mut self, name: &'static str, first: u64) -> Result<u64, Error> {
        let last = match self.bytes(META, name)? {
            // To start anew would give the same numbers a second time.
            Some(row) => read_number(&row)?,
            None => first,
        };
        self.put(META, name, &(last + 1).to_be_bytes().to_vec())?;
        Ok(last + 1)
    }

    /// Adds `by` to the counter `name`.
    pub fn count(&mut self, name: &str, by: u64) -> Result<(), Error> {
        let now = self.get(COUNTERS, name)?.unwrap_or(0);
        self.put(COUNTERS, name, &(now + by))
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("after", &self.after.len()).finish_non_exhaustive()
    }
}

impl Reading for Batch {
    fn raw_get(&self, table: Name, key: &[u8]) -> Result<Option<Bytes<'_>>, Error> {
        self.open.with_dependent(|_, tables| tables.raw(table).raw_get(key))
    }

    fn raw_range(&self, table: Name, from: End<'_>, to: End<'_>) -> Result<RawRows<'_>, Error> {
        self.open.with_dependent(|_, tables| tables.raw(table).raw_range(from, to))
    }

    fn rows_of(&self, table: Name) -> Result<u64, Error> {
        self.open.with_dependent(|_, tables| tables.raw(table).raw_len())
    }
}

impl Writing for Batch {
    fn raw_put(&mut self, table: Name, key: &[u8], row: &[u8]) -> Result<Option<Bytes<'_>>, Error> {
        self.open.with_dependent_mut(|_, tables| tables.raw_mut(table).raw_put(key, row))
    }

    fn raw_remove(&mut self, table: Name, key: &[u8]) -> Result<Option<Bytes<'_>>, Error> {
        self.open.with_dependent_mut(|_, tables| tables.raw_mut(table).raw_remove(key))
    }

    fn raw_clear(&mut self, table: Name, from: End<'_>, to: End<'_>) -> Result<(), Error> {
        self.open.with_dependent_mut(|_, tables| tables.raw_mut(table).raw_clear(from, to))
    }
}

/// One state of the store, whatever is written since.
pub struct Snapshot(ReadTables);

impl Snapshot {
    pub(super) fn open(db: &Database) -> Result<Self, Error> {
        Ok(Self(ReadTables::new(db.begin_read()?)))
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

impl Reading for Snapshot {
    fn raw_get(&self, table: Name, key: &[u8]) -> Result<Option<Bytes<'_>>, Error> {
        self.0.raw(table)?.raw_get(key)
    }

    fn raw_range(&self, table: Name, from: End<'_>, to: End<'_>) -> Result<RawRows<'_>, Error> {
        self.0.raw(table)?.raw_range(from, to)
    }

    fn rows_of(&self, table: Name) -> Result<u64, Error> {
        self.0.raw(table)?.raw_len()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use redb::StorageBackend;
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::store::Store;

    /// A file in memory that counts what is written to it.
    #[derive(Debug)]
    struct Counting {
        file: InMemoryBackend,
        written: Arc<AtomicU32>,
    }

    impl StorageBackend for Counting {
        fn len(&self) -> io::Result<u64> {
            self.file.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.file.read(offset, out)
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.file.set_len(len)
        }

        fn sync_data(&self) -> io::Result<()> {
            self.file.sync_data()
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.written.fetch_add(1, Ordering::SeqCst);
            self.file.write(offset, data)
        }
    }

    #[test]
    fn what_is_read_behind_a_commit_writes_nothing() {
        let written = Arc::new(AtomicU32::new(0));
        let backend = Counting { file: InMemoryBackend::new(), written: written.clone() };
        let mut builder = Database::builder();
        // Fewer pages than are read.
        let db = builder.set_cache_size(64 << 10).create_with_backend(backend).unwrap();
        let name = |row: u32| format!("{row:09}");
        // The second time, pages of the first are freed.
        for times in 1..=3 {
            let mut batch = Batch::begin(&db).unwrap();
            (0..20_000).for_each(|row| batch.put(COUNTERS, &*name(row), &times).unwrap());
            batch.commit().unwrap();
            let before = written.load(Ordering::SeqCst);
            let view = Snapshot::open(&db).unwrap();
            for row in 0..20_000 {
                assert_eq!(view.get(COUNTERS, &*name(row)).unwrap(), Some(times));
            }
            assert_eq!(written.load(Ordering::SeqCst), before, "nothing was left to be written");
        }
    }

    #[test]
    fn what_follows_a_commit_is_done_after_it_and_not_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open_or_create(folder.path(), 1 << 20).unwrap());
        let seen = Arc::new(AtomicU32::new(0));
        let begin = || {
            let (store_after, seen) = (store.clone(), seen.clone());
            let mut batch = store.begin().unwrap();
            batch.count("visits", 7).unwrap();
            batch.after_commit(move || {
                let visits = store_after.snapshot().unwrap().get(COUNTERS, "visits").unwrap();
                seen.fetch_add(visits.unwrap_or(0) as u32, Ordering::SeqCst);
            });
            batch
        };
        let batch = begin();
        assert_eq!(batch.get(COUNTERS, "visits").unwrap(), Some(7), "it sees its own writes");
        let before = store.snapshot().unwrap();
        drop(batch);
        assert_eq!(
            (seen.load(Ordering::SeqCst), before.get(COUNTERS, "visits").unwrap()),
            (0, None)
        );
        begin().commit().unwrap();
        assert_eq!(seen.load(Ordering::SeqCst), 7, "what it wrote can be read by then");
        // A state stays as it was, also in tables that are first asked now.
        assert_eq!(before.get(COUNTERS, "visits").unwrap(), None);
    }
}
