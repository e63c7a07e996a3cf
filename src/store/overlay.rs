//! A file that is only read: what a database writes to it stays in memory.
//!
//! A database that was not closed has to be repaired before it can be read, and one of an older
//! format brought to the present one. Who only reads does both in memory, so that the file stays as
//! it is, on a disk that is full or must not be written to as well.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

use crate::base::file_lock::FileLock;

/// Bytes that are copied from the file when some of them are written.
const PAGE: usize = 4096;

/// Ends what an overlay takes in.
#[derive(Debug, Clone)]
pub(super) struct Freezer(Arc<AtomicBool>);

impl Freezer {
    /// Lets every further write fail.
    pub(super) fn freeze(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[derive(Debug)]
pub(super) struct Overlay {
    layer: Mutex<Layer>,
    frozen: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Layer {
    file: Option<FileLock>,
    /// Bytes of the file that still count.
    below: u64,
    length: u64,
    pages: HashMap<u64, Box<[u8; PAGE]>>,
}

impl Overlay {
    /// Opens a file that nobody writes to.
    pub(super) fn open(path: &Path) -> std::result::Result<Self, super::Error> {
        let io = |source| super::Error::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let file = FileLock::shared(file).map_err(io)?;
        let file = file.ok_or_else(|| super::Error::InUse(path.to_owned()))?;
        let layer = Layer { file: Some(file), below: length, length, pages: HashMap::new() };
        Ok(Self { layer: Mutex::new(layer), frozen: Arc::default() })
    }

    /// No file, and nothing over it.
    pub(super) fn nothing() -> Self {
        let layer = Layer { file: None, below: 0, length: 0, pages: HashMap::new() };
        Self { layer: Mutex::new(layer), frozen: Arc::default() }
    }

    pub(super) fn freezer(&self) -> Freezer {
        Freezer(self.frozen.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Layer> {
        self.layer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn may_write(&self) -> Result<()> {
        if self.frozen.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::ReadOnlyFilesystem, "the store can only be read"));
        }
        Ok(())
    }
}

impl Layer {
    /// Reads what the file has at a place, and zeros where it has nothing.
    fn read_below(&mut self, at: u64, out: &mut [u8]) -> Result<()> {
        let there = usize::try_from(self.below.saturating_sub(at)).unwrap_or(usize::MAX);
        let (there, beyond) = out.split_at_mut(there.min(out.len()));
        beyond.fill(0);
        match &mut self.file {
            Some(file) if !there.is_empty() => {
                let file = file.file();
                file.seek(SeekFrom::Start(at))?;
                file.read_exact(there)
            }
            _ => Ok(()),
        }
    }

    /// Calls `each` with every page of a range: its number, its first byte in the range, the bytes
    /// of it before that one, and how many are of the range.
    fn pages(at: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
        let mut done = 0;
        std::iter::from_fn(move || {
            if done == length {
                return None;
            }
            let here = at + done as u64;
            let before = (here % PAGE as u64) as usize;
            let count = (PAGE - before).min(length - done);
            done += count;
            Some((here / PAGE as u64, done - count, before, count))
        })
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> Result<u64> {
        Ok(self.lock().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut layer = self.lock();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > layer.length) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        layer.read_below(offset, out)?;
        for (page, first, before, count) in Layer::pages(offset, out.len()) {
            if let Some(page) = layer.pages.get(&page) {
                out[first..first + count].copy_from_slice(&page[before..before + count]);
            }
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.may_write()?;
        let mut layer = self.lock();
        if length < layer.length {
            let (whole, rest) = (length / PAGE as u64, (length % PAGE as u64) as usize);
            layer.pages.retain(|page, _| *page < whole || (*page == whole && rest > 0));
            if let Some(page) = layer.pages.get_mut(&whole) {
                page[rest..].fill(0);
            }
            layer.below = layer.below.min(length);
        }
        layer.length = length;
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        self.may_write()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.may_write()?;
        let mut layer = self.lock();
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > layer.length) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        for (number, first, before, count) in Layer::pages(offset, data.len()) {
            let mut page = if let Some(page) = layer.pages.remove(&number) {
                page
            } else {
                let mut page = Box::new([0; PAGE]);
                layer.read_below(number * PAGE as u64, page.as_mut_slice())?;
                page
            };
            page[before..before + count].copy_from_slice(&data[first..first + count]);
            layer.pages.insert(number, page);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_the_file_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut model: Vec<u8> = (0..20_000_u32).map(|number| (number % 251) as u8).collect();
        let whole = model.clone();
        std::fs::write(&path, &whole).unwrap();
        let overlay = Overlay::open(&path).unwrap();
        let mut random = 7_u64;
        for _ in 0..2_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (kind, value) = (random >> 60, (random >> 20) as usize);
            if kind == 0 {
                model.resize(1 + value % 40_000, 0);
                overlay.set_len(model.len() as u64).unwrap();
                continue;
            }
            let at = value % model.len();
            let count = (value / 7) % (model.len() - at).min(9_000);
            if kind < 8 {
                model[at..at + count].fill(kind as u8);
                overlay.write(at as u64, &vec![kind as u8; count]).unwrap();
            } else {
                let mut found = vec![9; count];
                overlay.read(at as u64, &mut found).unwrap();
                assert!(found == model[at..at + count], "{count} bytes at {at}");
            }
        }
        assert!(overlay.read(model.len() as u64, &mut [0]).is_err());
        overlay.freezer().freeze();
        assert!(overlay.write(0, b"x").is_err() && overlay.sync_data().is_err());
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }
}
