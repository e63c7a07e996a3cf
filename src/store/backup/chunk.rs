//! Chunks: rows of a table one after the other, cut where a hash of a key says so.
//!
//! Where a chunk ends depends on the row at its end alone, so that a row that is added changes the
//! chunk that it is in, and not those behind it.

use xxhash_rust::xxh3::xxh3_64;

use crate::store::{Decoder, Encoder, Error};

/// Least bytes of a chunk, unless it is the last of its table.
const BYTES_MIN: u64 = 64 << 10;

/// Bytes of a chunk as they are on average beyond the least ones.
const BYTES_USUAL: u64 = 192 << 10;

/// Bytes after which a chunk ends whatever its rows are.
const BYTES_MAX: u64 = 1 << 20;

/// Version of a chunk: its first byte.
const VERSION: u8 = 1;

/// Rows that become a chunk.
pub(super) struct ChunkMaker {
    rows: u64,
    bytes: u64,
    full: bool,
    encoder: Encoder,
}

/// A chunk.
pub(super) struct Chunk {
    pub rows: u64,
    pub bytes: Vec<u8>,
}

impl Default for ChunkMaker {
    fn default() -> Self {
        Self { rows: 0, bytes: 0, full: false, encoder: Encoder::new(VERSION) }
    }
}

impl ChunkMaker {
    /// Adds a row.
    pub(super) fn add(&mut self, key: &[u8], row: &[u8]) {
        let encoder = std::mem::replace(&mut self.encoder, Encoder::new(VERSION));
        self.encoder = encoder.bytes(key).bytes(row);
        let bytes = (key.len() + row.len()) as u64;
        self.rows += 1;
        self.bytes += bytes;
        // The longer a row, the likelier a chunk ends with it.
        let share = u64::MAX / BYTES_USUAL;
        let ends = xxh3_64(key) < share.saturating_mul(bytes.max(1));
        self.full = self.bytes >= BYTES_MAX || self.bytes >= BYTES_MIN && ends;
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub(super) fn finish(self) -> Chunk {
        Chunk { rows: self.rows, bytes: self.encoder.finish() }
    }
}

/// Calls `each` with the rows of a chunk. Returns their number; none if the chunk is not whole.
pub(super) fn read_rows(
    chunk: &[u8],
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
) -> Result<Option<u64>, Error> {
    let Ok(mut rest) = Decoder::new("chunk", VERSION, chunk) else { return Ok(None) };
    let mut rows = 0;
    while !rest.is_at_end() {
        let (Ok(key), Ok(row)) = (rest.bytes(), rest.bytes()) else { return Ok(None) };
        each(key, row)?;
        rows += 1;
    }
    Ok(Some(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(rows: impl Iterator<Item = u64>) -> Vec<(u64, Vec<u8>)> {
        let (mut chunks, mut maker) = (Vec::new(), ChunkMaker::default());
        for number in rows {
            maker.add(&number.to_be_bytes(), &[number as u8; 700]);
            if maker.is_full() {
                let Chunk { rows, bytes } = std::mem::take(&mut maker).finish();
                chunks.push((rows, bytes));
            }
        }
        chunks
    }

    #[test]
    fn a_row_that_is_added_changes_the_chunk_that_it_is_in_and_none_far_behind_it() {
        let before = cut(0..20_000);
        let after = cut((0..20_000).filter(|number| *number != 5_000));
        assert!(before.len() > 30, "{}", before.len());
        let new = after.iter().filter(|chunk| !before.contains(chunk)).count();
        assert!((1..4).contains(&new), "{new} of {}", after.len());
        let largest = before.iter().map(|(_, bytes)| bytes.len()).max().unwrap();
        assert!(largest < (BYTES_MAX + 2_000) as usize * 11 / 10, "{largest}");
    }

    #[test]
    fn rows_are_read_as_they_were_added_and_a_cut_is_noticed() {
        let mut maker = ChunkMaker::default();
        maker.add(b"a", b"");
        maker.add(b"", &[7; 300]);
        let chunk = maker.finish();
        let mut seen = Vec::new();
        let read = read_rows(&chunk.bytes, |key, row| {
            seen.push((key.to_vec(), row.to_vec()));
            Ok(())
        });
        assert_eq!((read.unwrap(), chunk.rows), (Some(2), 2));
        assert_eq!(seen, [(b"a".to_vec(), Vec::new()), (Vec::new(), vec![7; 300])]);
        let cut = &chunk.bytes[..chunk.bytes.len() - 1];
        assert_eq!(read_rows(cut, |_, _| Ok(())).unwrap(), None);
    }
}
