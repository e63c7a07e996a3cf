//! Files that a command writes: each is whole, and those of one command are one set.
//!
//! All are written under other names and brought to the disk. Only then do they get their names, in
//! one go, and a manifest with their lengths and checksums comes last; the one of the set before is
//! removed first. So a full disk or a kill leaves the files as they were; a kill between two of the
//! last steps leaves a folder without a manifest, and the next run makes it whole.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

/// The file that lists the others, and is there only if they belong together.
pub(crate) const MANIFEST: &str = "manifest.json";

/// What is added to the name of a file until it is whole.
const PARTIAL: &str = ".partial";

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// What the operating system says.
    pub source: std::io::Error,
}

impl Error {
    fn of(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path, source }
    }
}

/// A set of files on its way. What is not published is removed.
#[derive(Debug)]
pub(crate) struct Outputs {
    folder: PathBuf,
    whole: Vec<ManifestEntry>,
    /// What is removed in the end.
    partial: Vec<PathBuf>,
}

/// A file of a manifest.
#[derive(Debug, Serialize)]
struct ManifestEntry {
    name: &'static str,
    bytes: u64,
    /// XXH3, 128 bits.
    xxh3: String,
}

#[derive(Debug, Serialize)]
struct Manifest<'a> {
    files: &'a [ManifestEntry],
}

/// One file of a set. Writes are buffered.
pub(crate) struct Output {
    name: &'static str,
    path: PathBuf,
    partial: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
    hash: Xxh3,
}

impl Outputs {
    /// Begins a set in `folder`, which is made if it is not there.
    pub(crate) fn begin(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::of(folder))?;
        Ok(Self { folder: folder.to_owned(), whole: Vec::new(), partial: Vec::new() })
    }

    /// Returns the path of a file that is there until the end, and removed then.
    pub(crate) fn temporary(&mut self, name: &str) -> PathBuf {
        let path = self.folder.join(format!("{name}{PARTIAL}"));
        self.partial.push(path.clone());
        path
    }

    /// Returns the path of a folder that whoever makes it removes.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{PARTIAL}"))
    }

    /// Starts a file of the set.
    pub(crate) fn create(&mut self, name: &'static str) -> Result<Output, Error> {
        let (path, partial) = (self.folder.join(name), self.temporary(name));
        let file = File::create(&partial).map_err(Error::of(&path))?;
        let file = BufWriter::with_capacity(1 << 18, file);
        Ok(Output { name, path, partial, file, bytes: 0, hash: Xxh3::new() })
    }

    /// Takes a file that is whole, and brings it to the disk.
    pub(crate) fn add(&mut self, mut output: Output) -> Result<(), Error> {
        let synced = output.file.flush().and_then(|()| output.file.get_ref().sync_all());
        synced.map_err(Error::of(&output.path))?;
        tracing::trace!(file = %output.path.display(), "written");
        let xxh3 = format!("{:032x}", output.hash.digest128());
        self.whole.push(ManifestEntry { name: output.name, bytes: output.bytes, xxh3 });
        Ok(())
    }

    /// Gives all files their names, and the set its manifest.
    pub(crate) fn publish(mut self) -> Result<(), Error> {
        let mut manifest = self.create(MANIFEST)?;
        let path = manifest.path.clone();
        serde_json::to_writer_pretty(&mut manifest, &Manifest { files: &self.whole })
            .map_err(std::io::Error::from)
            .and_then(|()| manifest.write_all(b"\n"))
            .map_err(Error::of(&path))?;
        self.add(manifest)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::of(&path)(error));
            }
            _ => sync(&self.folder)?,
        }
        for ManifestEntry { name, .. } in &self.whole {
            let path = self.folder.join(name);
            let partial = self.folder.join(format!("{name}{PARTIAL}"));
            fs::rename(&partial, &path).map_err(Error::of(&path))?;
            tracing::trace!(file = %path.display(), "renamed");
        }
        sync(&self.folder)
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        for path in &self.partial {
            // Those that were published have another name.
            drop(fs::remove_file(path));
        }
    }
}

impl Output {
    /// Returns the path of the file when it is whole.
    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("partial", &self.partial).finish_non_exhaustive()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Writes one file by itself: it is as it was, or whole.
///
/// # Errors
///
/// That of `write`, or names the file.
pub fn write_whole<T, E: From<Error>>(
    path: &Path,
    write: impl FnOnce(File) -> Result<(File, T), E>,
) -> Result<T, E> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(PARTIAL);
    let partial = PathBuf::from(partial);
    let written = File::create(&partial).map_err(|error| Error::of(path)(error).into());
    let written = written.and_then(write).and_then(|(file, told)| {
        let named = file.sync_all().and_then(|()| fs::rename(&partial, path));
        named.map_err(|error| E::from(Error::of(path)(error)))?;
        Ok(told)
    });
    if written.is_err() {
        drop(fs::remove_file(&partial));
    }
    written
}

/// Brings the names in a folder to the disk, where folders are files.
fn sync(folder: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        return synced.map_err(Error::of(folder));
    }
    Ok(())
}
