//! The files of an index: rows of documents are read, all other files are mapped.
//!
//! Rows are nine tenths of an index. Mapped, they would all be in memory while segments are merged,
//! and more and more of them as searches go on.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, OwnedBytes, WatchCallback,
    WatchHandle, WritePtr,
};
use tempfile::TempDir;

use crate::base::positions::read_exact_at;

/// How names of files with rows end.
const ROWS: &str = "store";

/// The folder of an index.
#[derive(Debug, Clone)]
pub(super) struct Files {
    mapped: MmapDirectory,
    path: PathBuf,
    /// Removed with the last user of the files.
    _temporary: Option<Arc<TempDir>>,
}

impl Files {
    /// Uses a folder that is there.
    pub(super) fn open(path: &Path) -> tantivy::Result<Self> {
        let mapped = MmapDirectory::open(path)?;
        Ok(Self { mapped, path: path.to_owned(), _temporary: None })
    }

    /// Makes a folder that is removed with the last user of its files.
    pub(super) fn temporary() -> tantivy::Result<Self> {
        let folder = TempDir::new()?;
        let files = Self::open(folder.path())?;
        Ok(Self { _temporary: Some(Arc::new(folder)), ..files })
    }
}

/// A file that is read piece by piece.
#[derive(Debug)]
struct ReadFile {
    file: File,
    bytes: usize,
}

impl ReadFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        Ok(Self { file, bytes })
    }
}

impl HasLen for ReadFile {
    fn len(&self) -> usize {
        self.bytes
    }
}

impl FileHandle for ReadFile {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        let mut bytes = vec![0; range.len()];
        read_exact_at(&self.file, &mut bytes, range.start as u64)?;
        Ok(OwnedBytes::new(bytes))
    }
}

impl Directory for Files {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        if path.extension().is_none_or(|extension| extension != ROWS) {
            return self.mapped.get_file_handle(path);
        }
        match ReadFile::open(&self.path.join(path)) {
            Ok(file) => Ok(Arc::new(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(OpenReadError::FileDoesNotExist(path.to_owned()))
            }
            Err(error) => Err(OpenReadError::wrap_io_error(error, path.to_owned())),
        }
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.mapped.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.mapped.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.mapped.open_write(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.mapped.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.mapped.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.mapped.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.mapped.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.mapped.watch(callback)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use tantivy::schema::{BytesOptions, INDEXED, Schema};
    use tantivy::{DocAddress, Index, IndexSettings, IndexWriter, TantivyDocument};

    use super::*;

    #[test]
    fn rows_are_read_and_not_mapped() {
        let mut schema = Schema::builder();
        let number = schema.add_u64_field("number", INDEXED);
        let row = schema.add_bytes_field("row", BytesOptions::default().set_stored());
        let files = Files::temporary().unwrap();
        let folder = files.path.canonicalize().unwrap();
        let index = Index::create(files, schema.build(), IndexSettings::default()).unwrap();
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15 << 20).unwrap();
        let mut document = TantivyDocument::new();
        document.add_u64(number, 1);
        document.add_bytes(row, b"a row");
        writer.add_document(document).unwrap();
        writer.commit().unwrap();
        let searcher = index.reader().unwrap().searcher();
        let stored: TantivyDocument = searcher.doc(DocAddress::new(0, 0)).unwrap();
        assert_eq!(stored.len(), 1);
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let own = maps.lines().filter(|line| line.contains(folder.to_str().unwrap()));
        let (rows, others): (Vec<_>, Vec<_>) = own.partition(|line| line.ends_with(ROWS));
        assert!(!others.is_empty(), "nothing is mapped");
        assert_eq!(rows, Vec::<&str>::new());
    }
}
