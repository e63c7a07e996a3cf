//! Blocks of an index that ends with a run, in files: a block is read by one call of the system,
//! and copied once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

use crate::neardup::segment::{BadBlock, BlockId, Posting, Written};
use crate::store::{Error, ScratchFile};

/// The blocks of all segments, a file for each.
#[derive(Debug)]
pub(super) struct BlockFiles {
    folder: PathBuf,
    segments: RwLock<HashMap<u32, SegmentFile>>,
}

#[derive(Debug)]
struct SegmentFile {
    file: ScratchFile,
    /// By table and level, in the order in which they are written: that of their first postings.
    places: HashMap<(u8, u8), Vec<Place>>,
}

/// Where a block is.
#[derive(Debug, Clone, Copy)]
struct Place {
    first: Posting,
    /// Its first byte, and in the last bits its length.
    at: u64,
}

/// Bits of the length of a block.
const LENGTH_BITS: u32 = 20;

impl BlockFiles {
    /// Has the files in a folder that goes with the run.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, segments: RwLock::default() }
    }

    /// Keeps blocks.
    pub(super) fn keep(&self, written: impl IntoIterator<Item = Written>) -> Result<(), Error> {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        for (id, bytes) in written {
            let segment = match segments.entry(id.segment) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let file = ScratchFile::create(self.path(id.segment))?;
                    new.insert(SegmentFile { file, places: HashMap::new() })
                }
            };
            let at = segment.file.len() << LENGTH_BITS | bytes.len() as u64;
            segment.file.push(&bytes)?;
            let places = segment.places.entry((id.table, id.level)).or_default();
            places.push(Place { first: id.first, at });
        }
        Ok(())
    }

    /// Takes no more memory for a segment than where its blocks are: none is to come.
    pub(super) fn end(&self, segment: u32) -> Result<(), Error> {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        let Some(segment) = segments.get_mut(&segment) else { return Ok(()) };
        segment.places.values_mut().for_each(Vec::shrink_to_fit);
        segment.file.end()
    }

    /// Reads a block into the first bytes of a buffer, which grows as it has to. Returns how long
    /// it is.
    pub(super) fn read(&self, id: BlockId, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let missing = BadBlock("is missing");
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let segment = segments.get(&id.segment).ok_or(missing)?;
        let places = segment.places.get(&(id.table, id.level)).ok_or(missing)?;
        let found = places.binary_search_by_key(&id.first, |place| place.first);
        let at = places[found.map_err(|_| missing)?].at;
        let length = (at & ((1 << LENGTH_BITS) - 1)) as usize;
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        segment.file.read(at >> LENGTH_BITS, &mut buffer[..length])?;
        Ok(length)
    }

    /// Removes the blocks of a segment.
    pub(super) fn remove(&self, segment: u32) {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        if segments.remove(&segment).is_some() {
            let path = self.path(segment);
            if let Err(error) = fs::remove_file(&path) {
                // It goes with its folder.
                tracing::debug!(path = %path.display(), %error, "the file cannot be removed");
            }
        }
    }

    /// Returns the memory of where the blocks are, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let places = segments.values().flat_map(|segment| segment.places.values());
        places.map(|places| places.capacity() * size_of::<Place>()).sum()
    }

    fn path(&self, segment: u32) -> PathBuf {
        self.folder.join(format!("segment-{segment}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(segment: u32, level: u8, key: u64) -> BlockId {
        BlockId { table: 64, segment, level, first: Posting { key, content: 3 } }
    }

    #[test]
    fn blocks_are_read_from_the_file_and_from_memory_until_their_segment_goes() {
        let folder = tempfile::tempdir().unwrap();
        let files = BlockFiles::new(folder.path().to_owned());
        let bytes = |key: u64| vec![key as u8; 900 + key as usize % 100];
        for segment in [1, 2] {
            let written = (0..1_000).map(|key| (id(segment, 0, key), bytes(key)));
            let above = (0..10).map(|key| (id(segment, 1, key * 100), bytes(key)));
            files.keep(written.chain(above)).unwrap();
        }
        let mut buffer = Vec::new();
        for key in [0, 1, 499, 998, 999] {
            let length = files.read(id(2, 0, key), &mut buffer).unwrap();
            assert_eq!(buffer[..length], bytes(key));
        }
        let length = files.read(id(1, 1, 900), &mut buffer).unwrap();
        assert_eq!(buffer[..length], bytes(9));
        assert!(files.bytes() >= 2_020 * 24);
        for segment in [1, 2] {
            files.end(segment).unwrap();
        }
        assert_eq!(files.bytes(), 2_020 * 24);
        let length = files.read(id(1, 1, 900), &mut buffer).unwrap();
        assert_eq!(buffer[..length], bytes(9));
        files.remove(1);
        for missing in [id(1, 0, 7), id(2, 0, 1_000), id(2, 2, 0)] {
            assert!(files.read(missing, &mut buffer).is_err());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        files.remove(1);
        // Another run in the same folder does not write into the files of this one.
        let other = BlockFiles::new(folder.path().to_owned());
        assert!(other.keep([(id(2, 0, 0), bytes(0))]).is_err());
    }
}
