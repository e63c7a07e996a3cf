//! Records of one length, by their number from 0, in a file that goes when the run ends: no crash
//! has to leave it whole, so that one is read by one call of the system, and no tree is searched.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::positions::{read_exact_at, write_all_at};
use crate::store;

/// Bytes in memory that are not in the file yet, at most.
const NEWEST_BYTES: usize = 256 << 10;

/// Records of so many bytes. A clone has those that were there when it was made, as long as none of
/// them is written anew.
#[derive(Debug, Clone)]
pub(super) struct Records<const BYTES: usize> {
    file: Arc<File>,
    path: PathBuf,
    /// Records in the file.
    written: u64,
    /// Those behind them.
    newest: Vec<u8>,
}

impl<const BYTES: usize> Records<BYTES> {
    /// Begins an empty file in a folder.
    pub(super) fn create(folder: &Path, name: &str) -> Result<Self, store::Error> {
        let path = folder.join(name);
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(|source| store::Error::Io { path: path.clone(), source })?;
        Ok(Self { file: Arc::new(file), path, written: 0, newest: Vec::new() })
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> u64 {
        self.written + (self.newest.len() / BYTES) as u64
    }

    /// Adds the next one.
    pub(super) fn push(&mut self, record: &[u8; BYTES]) -> Result<(), store::Error> {
        self.newest.extend_from_slice(record);
        if self.newest.len() + BYTES > NEWEST_BYTES {
            let at = self.written * BYTES as u64;
            write_all_at(&self.file, &self.newest, at).map_err(|error| self.failed(error))?;
            self.written = self.len();
            self.newest.clear();
        }
        Ok(())
    }

    /// Returns one that is there.
    pub(super) fn get(&self, number: u64) -> Result<[u8; BYTES], store::Error> {
        let mut record = [0; BYTES];
        if let Some(newest) = number.checked_sub(self.written) {
            record.copy_from_slice(&self.newest[newest as usize * BYTES..][..BYTES]);
        } else {
            let at = number * BYTES as u64;
            read_exact_at(&self.file, &mut record, at).map_err(|error| self.failed(error))?;
        }
        Ok(record)
    }

    /// Writes one anew, or adds the next one.
    pub(super) fn put(&mut self, number: u64, record: &[u8; BYTES]) -> Result<(), store::Error> {
        if number == self.len() {
            return self.push(record);
        }
        match number.checked_sub(self.written) {
            Some(newest) => {
                self.newest[newest as usize * BYTES..][..BYTES].copy_from_slice(record);
                Ok(())
            }
            None => write_all_at(&self.file, record, number * BYTES as u64)
                .map_err(|error| self.failed(error)),
        }
    }

    fn failed(&self, source: io::Error) -> store::Error {
        store::Error::Io { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_the_file_and_of_memory_are_read_and_written_anew() {
        const BYTES: usize = 24;
        let record = |number: u64| -> [u8; BYTES] {
            std::array::from_fn(|at| number.to_be_bytes()[at % 8] ^ at as u8)
        };
        let folder = tempfile::tempdir().unwrap();
        let mut records = Records::create(folder.path(), "records").unwrap();
        let count = 2 * (NEWEST_BYTES / BYTES) as u64 + 10;
        (0..count).for_each(|number| records.put(number, &record(number)).unwrap());
        assert_eq!((records.len(), records.newest.len()), (count, 10 * BYTES));
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
        for number in 0..2 * count {
            let is_odd = number >= count && odd.contains(&(number - count));
            let wanted = if is_odd { number + 7 } else { number % count };
            assert_eq!(records.get(number).unwrap(), record(wanted), "{number}");
        }
    }
}
