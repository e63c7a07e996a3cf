//! Files that a command writes: each is whole, and those of one command are one set.
//!
//! All are written under other names and brought to the disk. Only then do they get their names, in
//! one go, and a manifest with their lengths and checksums comes last; the one of the set before is
//! removed first. So a full disk or a kill leaves the files as they were; a kill between two of the
//! last steps leaves a folder without a manifest, and the next run makes it whole.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::file_lock::LockFile;
use super::remote::Location;
#[cfg(feature = "object-store")]
use super::remote::{Objects, Upload};

/// The file that lists the others, and is there only if they belong together.
pub(crate) const MANIFEST: &str = "manifest.json";

/// What is added to the name of a file until it is whole.
pub(crate) const PARTIAL: &str = ".partial";

/// Of several runs that write one folder, one has this file, with the addition.
pub(crate) const LOCK: &str = "lock";

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
    folder: Folder,
    whole: Vec<ManifestEntry>,
    /// What is removed in the end.
    partial: Vec<PathBuf>,
    /// Files that are whole stay under their other names if the set is not published.
    keep: bool,
    /// Files of the set before, which go if they are not part of this one.
    before: BTreeSet<String>,
}

/// Where a set is written.
#[derive(Debug)]
enum Folder {
    Local {
        path: PathBuf,
        /// No other run writes here while this is held.
        _lock: LockFile,
    },
    #[cfg(feature = "object-store")]
    Remote(Objects),
}

/// A file of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ManifestEntry {
    /// Its name in the folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// XXH3, 128 bits.
    pub xxh3: String,
}

/// What a manifest says: the files of a set, and what else is told of it.
#[derive(Debug, Serialize)]
struct Manifest<'a, T> {
    files: &'a [ManifestEntry],
    #[serde(flatten)]
    about: Option<&'a T>,
}

/// One file of a set. Writes are buffered.
pub(crate) struct Output {
    name: String,
    path: PathBuf,
    file: Destination,
    bytes: u64,
    hash: Xxh3,
}

enum Destination {
    File(BufWriter<File>),
    #[cfg(feature = "object-store")]
    Object(Box<Upload>),
}

impl Outputs {
    /// Begins a set in `folder`, which is made if it is not there, and which is not that of another
    /// run as long as this is there.
    pub(crate) fn begin(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::of(folder))?;
        let path = folder.join(format!("{LOCK}{PARTIAL}"));
        let lock = LockFile::take(&path).map_err(Error::of(&path))?.ok_or_else(|| {
            let way_out = "another run writes there: wait for its end, or name another folder";
            Error::of(folder)(std::io::Error::new(ErrorKind::ResourceBusy, way_out))
        })?;
        Ok(Self::new(Folder::Local { path: folder.to_owned(), _lock: lock }))
    }

    /// Does the same in a folder of this machine or of object storage.
    ///
    /// In object storage nothing can be renamed: files appear under their names as they are whole,
    /// the manifest of the set before is removed before the first one, and that of this set is
    /// written after the last one.
    pub(crate) fn begin_at(location: &Location) -> Result<Self, Error> {
        match location {
            Location::Local(folder) => Self::begin(folder),
            #[cfg(feature = "object-store")]
            Location::Remote(objects) => {
                let manifest = objects.child(MANIFEST);
                let path = PathBuf::from(manifest.to_string());
                manifest.remove().map_err(std::io::Error::from).map_err(Error::of(&path))?;
                Ok(Self::new(Folder::Remote(objects.clone())))
            }
        }
    }

    fn new(folder: Folder) -> Self {
        let (whole, partial, before) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { folder, whole, partial, keep: false, before }
    }

    /// Lets files that are whole stay under their other names if the set is not published, so that
    /// another run goes on with them.
    pub(crate) fn keep_whole(&mut self) {
        self.keep = true;
    }

    /// Names files of the set before. Those that are not part of this one are removed when it is
    /// published.
    pub(crate) fn replace(&mut self, before: impl IntoIterator<Item = String>) {
        self.before.extend(before);
    }

    /// Returns the path of a file when it is whole, for messages.
    fn path_of(&self, name: &str) -> PathBuf {
        match &self.folder {
            Folder::Local { path, .. } => path.join(name),
            #[cfg(feature = "object-store")]
            Folder::Remote(objects) => PathBuf::from(objects.child(name).to_string()),
        }
    }

    /// Returns the path of a file of this machine that is there until the end, and removed then.
    pub(crate) fn temporary(&mut self, name: &str) -> PathBuf {
        let path = self.folder(name);
        self.partial.push(path.clone());
        path
    }

    /// Returns the path of a folder of this machine that whoever makes it removes.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.path_of(&format!("{name}{PARTIAL}"))
    }

    /// Starts a file of the set.
    pub(crate) fn create(&mut self, name: &str) -> Result<Output, Error> {
        let path = self.path_of(name);
        let file = match &self.folder {
            Folder::Local { .. } => {
                let partial = self.temporary(name);
                let file = File::create(&partial).map_err(Error::of(&path))?;
                Destination::File(BufWriter::with_capacity(1 << 18, file))
            }
            #[cfg(feature = "object-store")]
            Folder::Remote(objects) => Destination::Object(Box::new(objects.child(name).write())),
        };
        Ok(Output { name: name.to_owned(), path, file, bytes: 0, hash: Xxh3::new() })
    }

    /// Takes a file that is whole, and brings it to the disk.
    pub(crate) fn add(&mut self, output: Output) -> Result<(), Error> {
        let Output { name, path, file, bytes, hash } = output;
        let done = match file {
            Destination::File(mut file) => file.flush().and_then(|()| file.get_ref().sync_all()),
            #[cfg(feature = "object-store")]
            Destination::Object(upload) => upload.finish().map_err(std::io::Error::from),
        };
        done.map_err(Error::of(&path))?;
        tracing::trace!(file = %path.display(), "written");
        let xxh3 = format!("{:032x}", hash.digest128());
        self.take(ManifestEntry { name, bytes, xxh3 });
        Ok(())
    }

    /// Takes a file that an earlier run has written whole, under its other name.
    pub(crate) fn take(&mut self, entry: ManifestEntry) {
        if self.keep {
            let path = self.folder(&entry.name);
            self.partial.retain(|partial| *partial != path);
        }
        self.whole.push(entry);
    }

    /// Returns the files that are whole.
    pub(crate) fn whole(&self) -> &[ManifestEntry] {
        &self.whole
    }

    /// Gives all files their names, and the set its manifest.
    pub(crate) fn publish(&mut self) -> Result<(), Error> {
        self.publish_with(None::<&()>)
    }

    /// Does the same; the manifest also says what `about` does, an object of JSON.
    pub(crate) fn publish_with(&mut self, about: Option<&impl Serialize>) -> Result<(), Error> {
        let mut manifest = self.create(MANIFEST)?;
        let path = manifest.path.clone();
        serde_json::to_writer_pretty(&mut manifest, &Manifest { files: &self.whole, about })
            .map_err(std::io::Error::from)
            .and_then(|()| manifest.write_all(b"\n"))
            .map_err(Error::of(&path))?;
        if let Some(folder) = self.local().map(Path::to_owned) {
            self.add(manifest)?;
            self.rename(&folder, &path)?;
            self.whole.clear();
            return Ok(());
        }
        self.remove_older()?;
        self.add(manifest)?;
        self.whole.clear();
        Ok(())
    }

    /// Returns the folder, if it is one of this machine.
    fn local(&self) -> Option<&Path> {
        match &self.folder {
            Folder::Local { path, .. } => Some(path),
            #[cfg(feature = "object-store")]
            Folder::Remote(_) => None,
        }
    }

    /// Gives the files of a folder of this machine their names.
    fn rename(&mut self, folder: &Path, manifest: &Path) -> Result<(), Error> {
        match fs::remove_file(manifest) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::of(manifest)(error));
            }
            _ => sync(folder)?,
        }
        self.remove_older()?;
        for ManifestEntry { name, .. } in &self.whole {
            let path = folder.join(name);
            let partial = folder.join(format!("{name}{PARTIAL}"));
            fs::rename(&partial, &path).map_err(Error::of(&path))?;
            tracing::trace!(file = %path.display(), "renamed");
        }
        sync(folder)
    }

    /// Removes files of the set before that are not part of this one.
    fn remove_older(&self) -> Result<(), Error> {
        let whole: HashSet<&str> = self.whole.iter().map(|entry| entry.name.as_str()).collect();
        for name in self.before.iter().filter(|name| !whole.contains(name.as_str())) {
            let path = self.path_of(name);
            let removed = match &self.folder {
                Folder::Local { .. } => fs::remove_file(&path),
                #[cfg(feature = "object-store")]
                Folder::Remote(objects) => objects.child(name).remove().map_err(Into::into),
            };
            match removed {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::of(&path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        for path in &self.partial {
            // Those that were published have another name.
            drop(fs::remove_file(path));
        }
        #[cfg(feature = "object-store")]
        if let Folder::Remote(objects) = &self.folder {
            // A set that was published has none.
            for entry in &self.whole {
                if let Err(error) = objects.child(&entry.name).remove() {
                    tracing::warn!(%error, "a file without a set is left");
                }
            }
        }
    }
}

impl Output {
    /// Returns the path of the file when it is whole.
    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes that were written.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = match &mut self.file {
            Destination::File(file) => file.write(bytes)?,
            #[cfg(feature = "object-store")]
            Destination::Object(upload) => upload.write(bytes)?,
        };
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.file {
            Destination::File(file) => file.flush(),
            #[cfg(feature = "object-store")]
            Destination::Object(upload) => upload.flush(),
        }
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
