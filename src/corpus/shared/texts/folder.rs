//! Segments in a folder that all workers see.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::store::Error;

use super::{At, Segments, StoredPlaceOfText, name_of};

/// Bytes of a segment before the next one is begun.
const SEGMENT_BYTES: u64 = 256 << 20;

/// Files that are kept open to be read.
const OPEN_MAX: usize = 64;

pub(super) struct Folder {
    path: PathBuf,
    worker: u64,
    segment: u32,
    /// The segment that is appended to, and its bytes.
    file: Option<(File, u64)>,
    /// Something was appended that may not be on the disk.
    is_dirty: bool,
    open: HashMap<(u64, u32), File>,
}

impl Folder {
    pub(super) fn new(folder: &Path, worker: u64) -> Self {
        Self {
            path: folder.to_owned(),
            worker,
            segment: 0,
            file: None,
            is_dirty: false,
            open: HashMap::new(),
        }
    }

    fn segment_path(&self, worker: u64, segment: u32) -> PathBuf {
        self.path.join(name_of(worker, segment))
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

impl Segments for Folder {
    fn append(&mut self, bytes: &[u8]) -> Result<At, Error> {
        if self.file.as_ref().is_some_and(|(_, length)| *length >= SEGMENT_BYTES) {
            self.sync()?;
            self.file = None;
            self.segment += 1;
        }
        let path = self.segment_path(self.worker, self.segment);
        let failed = |source| Error::Io { path: path.clone(), source };
        if self.file.is_none() {
            fs::create_dir_all(path.parent().unwrap_or(&self.path)).map_err(failed)?;
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
        Ok(At { segment: self.segment, offset })
    }

    fn sync(&mut self) -> Result<(), Error> {
        let path = self.segment_path(self.worker, self.segment);
        if let Some((file, _)) = &self.file
            && self.is_dirty
        {
            file.sync_data().map_err(|source| Error::Io { path, source })?;
        }
        self.is_dirty = false;
        Ok(())
    }

    fn fetch(&mut self, _places: &[StoredPlaceOfText]) -> Result<(), Error> {
        Ok(())
    }

    fn read(&mut self, place: &StoredPlaceOfText) -> Result<Vec<u8>, Error> {
        let path = self.segment_path(place.worker, place.segment);
        self.read_from(place, &path).map_err(|source| Error::Io { path, source })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Texts;
    use super::*;
    use crate::base::remote::Location;

    #[test]
    fn texts_of_all_workers_are_read_and_damage_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let place = Location::Local(folder.path().to_owned());
        let (mut one, mut other) = (Texts::new(&place, 1), Texts::new(&place, 2));
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
        let mut fresh = Texts::new(&place, 3);
        assert!(fresh.read(&places[0]).unwrap_err().to_string().contains("0.texts"));
    }
}
