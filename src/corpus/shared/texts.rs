//! Texts and records of documents in files: each worker appends to segments of its own, and reads
//! those of all.
//!
//! ```text
//! texts/00c0ffee00c0ffee/0.texts     frames of zstd and records, one after the other
//!       \ worker /       \ segment
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quick_cache::sync::Cache;
use xxhash_rust::xxh3::xxh3_64;

use crate::store::{BadRow, Error, Fixed, Number, row};

/// Bytes of a segment before the next one is begun.
const SEGMENT_BYTES: u64 = 256 << 20;

/// Records that are kept in memory: those of documents that came lately are asked for again.
const RECORDS: usize = 16_384;

/// Files that are kept open to be read.
const OPEN_MAX: usize = 64;

row! {
    /// Where a text lies. Its version is none of a [`StoredBody`](crate::corpus::documents), in
    /// whose place it stands.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct StoredPlaceOfText: "place_of_text", 2 to 2 {
        /// Who wrote it.
        pub worker: u64 = Fixed;
        /// In which of its segments.
        pub segment: u32 = Number;
        /// Where it begins there.
        pub offset: u64 = Number;
        /// Its bytes, as they are stored.
        pub length: u32 = Number;
        /// Hash of these bytes.
        pub hash: u64 = Fixed;
    }
}

/// The files of texts.
pub(super) struct Texts {
    folder: PathBuf,
    worker: u64,
    segment: u32,
    /// The segment that is appended to, and its bytes.
    file: Option<(File, u64)>,
    /// Something was appended that may not be on the disk.
    is_dirty: bool,
    /// Worker, segment and offset -> a record, which never changes.
    records: Cache<(u64, u32, u64), Arc<[u8]>>,
    open: HashMap<(u64, u32), File>,
}

impl Texts {
    pub(super) fn new(folder: &Path, worker: u64) -> Self {
        Self {
            folder: folder.to_owned(),
            worker,
            segment: 0,
            file: None,
            is_dirty: false,
            records: Cache::new(RECORDS),
            open: HashMap::new(),
        }
    }

    /// The folder to which this worker writes.
    pub(super) fn own_folder(&self) -> PathBuf {
        self.folder.join(format!("{:016x}", self.worker))
    }

    fn path(&self, worker: u64, segment: u32) -> PathBuf {
        self.folder.join(format!("{worker:016x}")).join(format!("{segment}.texts"))
    }

    /// Appends a text, as it is stored.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<StoredPlaceOfText, Error> {
        if self.file.as_ref().is_some_and(|(_, length)| *length >= SEGMENT_BYTES) {
            self.sync()?;
            self.file = None;
            self.segment += 1;
        }
        let path = self.path(self.worker, self.segment);
        let failed = |source| Error::Io { path: path.clone(), source };
        if self.file.is_none() {
            fs::create_dir_all(path.parent().unwrap_or(&self.folder)).map_err(failed)?;
            let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
            let length = file.metadata().map_err(failed)?.len();
            self.file = Some((file, length));
        }
        let (file, length) = self.file.as_mut().expect("it was opened above");
        let offset = *length;
        if let Err(error) = file.write_all(bytes) {
            // How much of it was written is not known: the next text goes behind it.
            self.file = None;
            return Err(failed(error));
        }
        *length += bytes.len() as u64;
        self.is_dirty = true;
        let (worker, segment) = (self.worker, self.segment);
        let (length, hash) = (bytes.len() as u32, xxh3_64(bytes));
        Ok(StoredPlaceOfText { worker, segment, offset, length, hash })
    }

    /// Makes all that was appended outlive a crash of the machine.
    pub(super) fn sync(&mut self) -> Result<(), Error> {
        let path = self.path(self.worker, self.segment);
        if let Some((file, _)) = &self.file
            && self.is_dirty
        {
            file.sync_data().map_err(|source| Error::Io { path, source })?;
        }
        self.is_dirty = false;
        Ok(())
    }

    /// Appends the record of a document.
    pub(super) fn append_record(&mut self, record: Vec<u8>) -> Result<StoredPlaceOfText, Error> {
        let place = self.append(&record)?;
        self.records.insert((place.worker, place.segment, place.offset), record.into());
        Ok(place)
    }

    /// Reads the record of a document.
    pub(super) fn record(&mut self, place: &StoredPlaceOfText) -> Result<Arc<[u8]>, Error> {
        let key = (place.worker, place.segment, place.offset);
        if let Some(record) = self.records.get(&key) {
            return Ok(record);
        }
        let record: Arc<[u8]> = self.read(place)?.into();
        self.records.insert(key, Arc::clone(&record));
        Ok(record)
    }

    /// Reads a text, as it is stored.
    pub(super) fn read(&mut self, place: &StoredPlaceOfText) -> Result<Vec<u8>, Error> {
        let path = self.path(place.worker, place.segment);
        let bytes = self.read_from(place, &path).map_err(|source| Error::Io { path, source })?;
        if xxh3_64(&bytes) != place.hash {
            return Err(BadRow { kind: "body", detail: "its file holds something else" }.into());
        }
        Ok(bytes)
    }

    fn read_from(&mut self, place: &StoredPlaceOfText, path: &Path) -> io::Result<Vec<u8>> {
        if self.open.len() >= OPEN_MAX {
            self.open.clear();
        }
        let file = match self.open.entry((place.worker, place.segment)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(File::open(path)?),
        };
        file.seek(SeekFrom::Start(place.offset))?;
        let mut bytes = vec![0; place.length as usize];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_workers_are_read_and_damage_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (Texts::new(folder.path(), 1), Texts::new(folder.path(), 2));
        let places = [one.append(b"first").unwrap(), one.append(b"").unwrap()];
        let late = other.append(b"of another").unwrap();
        one.sync().unwrap();
        other.sync().unwrap();
        assert_eq!(other.read(&places[0]).unwrap(), b"first");
        assert_eq!(other.read(&places[1]).unwrap(), b"");
        assert_eq!(one.read(&late).unwrap(), b"of another");
        let record = one.append_record(b"record".to_vec()).unwrap();
        one.sync().unwrap();
        assert_eq!(*other.record(&record).unwrap(), *b"record");
        fs::write(folder.path().join("0000000000000001/0.texts"), b"furst").unwrap();
        assert!(one.read(&places[0]).unwrap_err().to_string().contains("something else"));
        fs::remove_file(folder.path().join("0000000000000001/0.texts")).unwrap();
        let mut fresh = Texts::new(folder.path(), 3);
        assert!(fresh.read(&places[0]).unwrap_err().to_string().contains("0.texts"));
    }
}
