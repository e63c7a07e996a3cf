//! Files of what is needed until a run ends, beside a store: no crash has to leave them whole, so
//! that what was written is read by one call of the system, and no tree is searched.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::positions::{read_exact_at, write_all_at};

use super::Error;

/// Bytes in memory that are not in the file yet, at most, but for those that came last.
pub(crate) const SCRATCH_NEWEST: usize = 256 << 10;

/// A file that grows. A clone has what was there when it was made, as long as none of that is
/// written anew.
#[derive(Debug, Clone)]
pub(crate) struct ScratchFile {
    file: Arc<File>,
    path: PathBuf,
    /// Bytes in the file.
    written: u64,
    /// Those behind them.
    newest: Vec<u8>,
}

impl ScratchFile {
    /// Begins a new file.
    pub(crate) fn create(path: PathBuf) -> Result<Self, Error> {
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|source| Error::Io { path: path.clone(), source })?;
        Ok(Self { file: Arc::new(file), path, written: 0, newest: Vec::new() })
    }

    /// Returns its length, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.written + self.newest.len() as u64
    }

    /// Adds what is read at once.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if !self.newest.is_empty() && self.newest.len() + bytes.len() > SCRATCH_NEWEST {
            self.write_newest()?;
        }
        self.newest.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes no memory any more: nothing is to come for now.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        self.write_newest()?;
        self.newest.shrink_to_fit();
        Ok(())
    }

    fn write_newest(&mut self) -> Result<(), Error> {
        let written = write_all_at(&self.file, &self.newest, self.written);
        written.map_err(|error| self.failed(error))?;
        self.written = self.len();
        self.newest.clear();
        Ok(())
    }

    /// Fills `bytes` with what begins at a byte.
    pub(crate) fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let end = at.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > self.len()) {
            return Err(self.failed(ErrorKind::UnexpectedEof.into()));
        }
        let below = self.written.saturating_sub(at).min(bytes.len() as u64) as usize;
        let (below, newest) = bytes.split_at_mut(below);
        if !below.is_empty() {
            read_exact_at(&self.file, below, at).map_err(|error| self.failed(error))?;
        }
        let from = at.saturating_sub(self.written) as usize;
        newest.copy_from_slice(&self.newest[from..][..newest.len()]);
        Ok(())
    }

    /// Writes it anew.
    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        match at.checked_sub(self.written) {
            Some(newest) => {
                self.newest[newest as usize..][..bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            None => write_all_at(&self.file, bytes, at).map_err(|error| self.failed(error)),
        }
    }

    /// Returns the bytes in memory that are not in the file yet.
    #[cfg(test)]
    pub(crate) fn newest_bytes(&self) -> usize {
        self.newest.len()
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Io { path: self.path.clone(), source }
    }
}
