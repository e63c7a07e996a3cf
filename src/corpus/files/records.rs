//! Records by their number from 0, in files that go when the run ends: no crash has to leave them
//! whole, so that one is read by one call of the system, and no tree is searched.

use std::marker::PhantomData;
use std::path::Path;

use crate::store::{self, Row, SCRATCH_NEWEST, ScratchFile};

/// Records of so many bytes. A clone has those that were there when it was made, as long as none of
/// them is written anew.
#[derive(Debug, Clone)]
pub(super) struct Records<const BYTES: usize>(ScratchFile);

impl<const BYTES: usize> Records<BYTES> {
    /// Begins an empty file in a folder.
    pub(super) fn create(folder: &Path, name: &str) -> Result<Self, store::Error> {
        ScratchFile::create(folder.join(name)).map(Self)
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> u64 {
        self.0.len() / BYTES as u64
    }

    /// Adds the next one.
    pub(super) fn push(&mut self, record: &[u8; BYTES]) -> Result<(), store::Error> {
        self.0.push(record)
    }

    /// Returns one that is there.
    pub(super) fn get(&self, number: u64) -> Result<[u8; BYTES], store::Error> {
        let mut record = [0; BYTES];
        self.0.read(number * BYTES as u64, &mut record)?;
        Ok(record)
    }

    /// Calls `each` with all of them, in their order.
    pub(super) fn for_each(&self, mut each: impl FnMut(&[u8; BYTES])) -> Result<(), store::Error> {
        let mut piece = vec![[0; BYTES]; SCRATCH_NEWEST / BYTES];
        let mut done = 0;
        while done < self.len() {
            piece.truncate((self.len() - done) as usize);
            self.0.read(done * BYTES as u64, piece.as_flattened_mut())?;
            piece.iter().for_each(&mut each);
            done += piece.len() as u64;
        }
        Ok(())
    }

    /// Writes one anew, or adds the next one.
    pub(super) fn put(&mut self, number: u64, record: &[u8; BYTES]) -> Result<(), store::Error> {
        if number == self.len() {
            return self.push(record);
        }
        self.0.write(number * BYTES as u64, record)
    }
}

/// Bytes of where a row begins, and of its length.
const PLACE_BYTES: usize = size_of::<u64>() + size_of::<u32>();

/// Rows of any length, in one file, and where each begins, in another. A clone has those that were
/// there when it was made.
#[derive(Debug)]
pub(super) struct Rows<R> {
    bytes: ScratchFile,
    places: Records<PLACE_BYTES>,
    of: PhantomData<R>,
}

impl<R: Row> Rows<R> {
    /// Begins empty files in a folder.
    pub(super) fn create(folder: &Path, name: &str) -> Result<Self, store::Error> {
        let places = Records::create(folder, &format!("{name}-places"))?;
        Ok(Self { bytes: ScratchFile::create(folder.join(name))?, places, of: PhantomData })
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> u64 {
        self.places.len()
    }

    /// Adds the next one.
    pub(super) fn push(&mut self, row: &R) -> Result<(), store::Error> {
        let bytes = row.encode();
        let mut place = [0; PLACE_BYTES];
        place[..8].copy_from_slice(&self.bytes.len().to_be_bytes());
        place[8..].copy_from_slice(&(bytes.len() as u32).to_be_bytes());
        self.bytes.push(&bytes)?;
        self.places.push(&place)
    }

    /// Returns one that is there.
    pub(super) fn get(&self, number: u64) -> Result<R, store::Error> {
        let place = self.places.get(number)?;
        let at = u64::from_be_bytes(std::array::from_fn(|byte| place[byte]));
        let length = u32::from_be_bytes(std::array::from_fn(|byte| place[8 + byte]));
        let mut bytes = vec![0; length as usize];
        self.bytes.read(at, &mut bytes)?;
        Ok(R::decode(&bytes)?)
    }
}

impl<R> Clone for Rows<R> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), places: self.places.clone(), of: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::files::StoredLine;

    #[test]
    fn records_of_the_file_and_of_memory_are_read_and_written_anew() {
        const BYTES: usize = 24;
        let record = |number: u64| -> [u8; BYTES] {
            std::array::from_fn(|at| number.to_be_bytes()[at % 8] ^ at as u8)
        };
        let folder = tempfile::tempdir().unwrap();
        let mut records = Records::create(folder.path(), "records").unwrap();
        let count = 2 * (SCRATCH_NEWEST / BYTES) as u64 + 10;
        (0..count).for_each(|number| records.put(number, &record(number)).unwrap());
        assert_eq!((records.len(), records.0.newest_bytes()), (count, 10 * BYTES));
        let before = records.clone();
        (0..count).for_each(|number| records.push(&record(number)).unwrap());
        let odd = [0, 1, count - 11, count - 10, count - 1];
        for number in odd {
            assert_eq!(before.get(number).unwrap(), record(number));
            assert_eq!(records.get(count + number).unwrap(), record(number));
        }
        for number in odd.map(|number| count + number) {
            records.put(number, &record(number + 7)).unwrap();
        }
        let mut all = Vec::new();
        records.for_each(|record| all.push(*record)).unwrap();
        assert_eq!(all.len() as u64, 2 * count);
        assert!(records.get(2 * count).is_err());
        for number in 0..2 * count {
            let is_odd = number >= count && odd.contains(&(number - count));
            let wanted = if is_odd { number + 7 } else { number % count };
            assert_eq!(records.get(number).unwrap(), record(wanted), "{number}");
            assert_eq!(all[number as usize], record(wanted), "{number}");
        }
    }

    #[test]
    fn rows_of_any_length_are_read_and_a_clone_has_those_that_were_there() {
        let folder = tempfile::tempdir().unwrap();
        let mut rows = Rows::<StoredLine>::create(folder.path(), "rows").unwrap();
        let row = |number: u64| StoredLine {
            file: 3,
            line: number,
            id: "x".repeat((number as usize * 37) % 900),
            content: number as u32,
            popularity: number << 40,
            site: number,
            edition: 1,
            form: 2,
            name: 3,
            title: 4,
            heading: 5,
        };
        let count = 1_500;
        (0..count).for_each(|number| rows.push(&row(number)).unwrap());
        let before = rows.clone();
        // One that is longer than what is kept in memory, and those behind it.
        let long = StoredLine { id: "long".repeat(SCRATCH_NEWEST), ..row(count) };
        rows.push(&long).unwrap();
        (0..count).for_each(|number| rows.push(&row(number)).unwrap());
        assert_eq!((before.len(), rows.len()), (count, 2 * count + 1));
        for number in [0, 1, count / 2, count - 1] {
            assert_eq!(before.get(number).unwrap(), row(number));
            assert_eq!(rows.get(number).unwrap(), row(number));
            assert_eq!(rows.get(count + 1 + number).unwrap(), row(number));
        }
        assert_eq!(rows.get(count).unwrap(), long);
    }
}
