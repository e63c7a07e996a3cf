//! Texts and records of documents outside of the cluster: each worker writes segments of its own,
//! and reads those of all. They are files of a folder that all workers see, or objects on a server.
//!
//! ```text
//! texts/00c0ffee00c0ffee/0.texts     frames of zstd and records, one after the other
//!       \ worker /       \ segment
//! ```

mod folder;
#[cfg(feature = "object-store")]
mod objects;

use std::sync::Arc;

use quick_cache::sync::Cache;
use xxhash_rust::xxh3::xxh3_64;

use crate::base::remote::Location;
use crate::store::{BadRow, Error, Fixed, Number, row};

use folder::Folder;

/// Records that are kept in memory: those of documents that came lately are asked for again.
const RECORDS: usize = 16_384;

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

/// Where something was appended: in which segment of this worker, and at which place there.
struct At {
    segment: u32,
    offset: u64,
}

/// Where segments lie.
trait Segments: Send {
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]) -> Result<At, Error>;

    /// Makes all that was appended outlive a crash of the machine, and seen by all.
    fn sync(&mut self) -> Result<(), Error>;

    /// Gets what is read next, as far as one look for all is faster than one for each.
    fn fetch(&mut self, places: &[StoredPlaceOfText]) -> Result<(), Error>;

    /// Reads the bytes of a place.
    fn read(&mut self, place: &StoredPlaceOfText) -> Result<Vec<u8>, Error>;
}

/// Name of a segment below the place of all texts.
fn name_of(worker: u64, segment: u32) -> String {
    format!("{worker:016x}/{segment}.texts")
}

/// The texts of all workers.
pub(super) struct Texts {
    location: Location,
    worker: u64,
    segments: Box<dyn Segments>,
    /// Worker, segment and offset -> a record, which never changes.
    records: Cache<(u64, u32, u64), Arc<[u8]>>,
}

impl Texts {
    pub(super) fn new(location: &Location, worker: u64) -> Self {
        let segments: Box<dyn Segments> = match location {
            Location::Local(path) => Box::new(Folder::new(path, worker)),
            #[cfg(feature = "object-store")]
            Location::Remote(to) => Box::new(objects::SegmentObjects::new(to, worker)),
        };
        Self { location: location.clone(), worker, segments, records: Cache::new(RECORDS) }
    }

    /// The place of all texts.
    pub(super) fn location(&self) -> &Location {
        &self.location
    }

    /// Appends a text, as it is stored.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<StoredPlaceOfText, Error> {
        let At { segment, offset } = self.segments.append(bytes)?;
        let (length, hash) = (bytes.len() as u32, xxh3_64(bytes));
        Ok(StoredPlaceOfText { worker: self.worker, segment, offset, length, hash })
    }

    /// Makes all that was appended outlive a crash of the machine. Before, nobody must be told
    /// where it lies.
    pub(super) fn sync(&mut self) -> Result<(), Error> {
        self.segments.sync()
    }

    /// Appends the record of a document.
    pub(super) fn append_record(&mut self, record: Vec<u8>) -> Result<StoredPlaceOfText, Error> {
        let place = self.append(&record)?;
        self.records.insert(key(&place), record.into());
        Ok(place)
    }

    /// Gets records that are read next.
    pub(super) fn fetch_records(&mut self, places: &[StoredPlaceOfText]) -> Result<(), Error> {
        let is_unknown = |place: &&StoredPlaceOfText| self.records.peek(&key(place)).is_none();
        let unknown: Vec<_> = places.iter().filter(is_unknown).copied().collect();
        self.segments.fetch(&unknown)
    }

    /// Reads the record of a document.
    pub(super) fn record(&mut self, place: &StoredPlaceOfText) -> Result<Arc<[u8]>, Error> {
        if let Some(record) = self.records.get(&key(place)) {
            return Ok(record);
        }
        let record: Arc<[u8]> = self.read(place)?.into();
        self.records.insert(key(place), Arc::clone(&record));
        Ok(record)
    }

    /// Reads a text, as it is stored.
    pub(super) fn read(&mut self, place: &StoredPlaceOfText) -> Result<Vec<u8>, Error> {
        let bytes = self.segments.read(place)?;
        if xxh3_64(&bytes) != place.hash {
            return Err(BadRow { kind: "body", detail: "its file holds something else" }.into());
        }
        Ok(bytes)
    }
}

fn key(place: &StoredPlaceOfText) -> (u64, u32, u64) {
    (place.worker, place.segment, place.offset)
}
