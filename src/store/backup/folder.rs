//! The folder of backups: `backup.json`, `chunks/ab/abcd....zst`,
//! `backups/2026-11-21T06-00-00Z.jsonl`.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::base::clock::Timestamp;
use crate::base::outputs::write_whole;
use crate::store::migration::sync_folder;
use crate::store::number;

use super::BackupError;
use super::list::{ListEnd, ListReader};

/// The file that says what the folder is.
const MARK: &str = "backup.json";

/// Held by the process that writes.
const LOCK: &str = "backup.lock";

/// zstd level of chunks.
const LEVEL: i32 = 3;

/// What [`MARK`] says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mark {
    backups_of: String,
    store_number: u64,
    /// Begins every hash: nobody who writes pages knows it, so that nobody can make two chunks of
    /// one name.
    seed: u64,
}

/// An open folder of backups.
pub(super) struct BackupFolder {
    path: PathBuf,
    seed: u64,
    /// Of a folder that is written to.
    _lock: Option<File>,
}

impl BackupFolder {
    /// Opens a folder to write backups of a store of this number into it, and makes it if it is not
    /// there.
    pub(super) fn open_or_create(path: &Path, own: u64) -> Result<Self, BackupError> {
        fs::create_dir_all(path).map_err(BackupError::io(path))?;
        if !path.join(MARK).try_exists().map_err(BackupError::io(path))? {
            let ours = [LOCK, MARK, "backup.json.partial"];
            let mut files = fs::read_dir(path).map_err(BackupError::io(path))?;
            let is_foreign = |entry: std::io::Result<fs::DirEntry>| {
                entry.is_ok_and(|entry| !ours.iter().any(|name| entry.file_name() == *name))
            };
            if files.any(is_foreign) {
                return Err(BackupError::Foreign(path.to_owned()));
            }
        }
        let lock = take_lock(path)?;
        if !path.join(MARK).try_exists().map_err(BackupError::io(path))? {
            let backups_of = "uniqcrawl".to_owned();
            let mark = Mark { backups_of, store_number: own, seed: number::draw() << 20 ^ own };
            let text = serde_json::to_vec_pretty(&mark).unwrap_or_default();
            write_file(&path.join(MARK), &text)?;
        }
        let mark = read_mark(path)?;
        if mark.store_number != own {
            let (folder, found) = (path.to_owned(), mark.store_number);
            return Err(BackupError::OtherStore { folder, found, own });
        }
        for name in ["backups", "chunks"] {
            let folder = path.join(name);
            fs::create_dir_all(&folder).map_err(BackupError::io(&folder))?;
        }
        Ok(Self { path: path.to_owned(), seed: mark.seed, _lock: Some(lock) })
    }

    /// Opens a folder to read what is in it.
    pub(super) fn open(path: &Path) -> Result<Self, BackupError> {
        let seed = read_mark(path)?.seed;
        Ok(Self { path: path.to_owned(), seed, _lock: None })
    }

    /// Returns the path of the list of a backup.
    pub(super) fn list(&self, name: &str) -> PathBuf {
        self.path.join("backups").join(format!("{name}.jsonl"))
    }

    /// Returns the names of all backups, the oldest first.
    pub(super) fn names(&self) -> Result<Vec<String>, BackupError> {
        let folder = self.path.join("backups");
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder).map_err(BackupError::io(&folder))? {
            let name = entry.map_err(BackupError::io(&folder))?.file_name();
            let name = name.to_string_lossy();
            names.extend(name.strip_suffix(".jsonl").map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// Returns a name for a backup of this moment.
    pub(super) fn free_name(&self, now: Timestamp) -> Result<String, BackupError> {
        let moment = now.to_string().replace(':', "-");
        let known = self.names()?;
        let mut names = (1..).map(|number| match number {
            1 => moment.clone(),
            number => format!("{moment}-{number}"),
        });
        Ok(names.find(|name| !known.contains(name)).unwrap_or(moment))
    }

    /// Returns the name of the newest backup, or the one that is asked for if it is there.
    pub(super) fn find(&self, name: Option<&str>) -> Result<String, BackupError> {
        let names = self.names()?;
        let newest = names.last().ok_or_else(|| BackupError::Empty(self.path.clone()))?;
        match name {
            None => Ok(newest.clone()),
            Some(name) if names.iter().any(|known| known == name) => Ok(name.to_owned()),
            Some(name) => Err(BackupError::Unknown {
                folder: self.path.clone(),
                name: name.to_owned(),
                known: names.join(", "),
            }),
        }
    }

    pub(super) fn chunk_path(&self, name: &str) -> PathBuf {
        let start = name.get(..2).unwrap_or("00");
        self.path.join("chunks").join(start).join(format!("{name}.zst"))
    }

    fn name_of(&self, chunk: &[u8]) -> String {
        format!("{:032x}", xxh3_128_with_seed(chunk, self.seed))
    }

    /// Stores a chunk unless it is there. Returns its name, and the bytes that were written.
    pub(super) fn put(&self, chunk: &[u8]) -> Result<(String, u64), BackupError> {
        let name = self.name_of(chunk);
        let path = self.chunk_path(&name);
        if path.try_exists().map_err(BackupError::io(&path))? {
            return Ok((name, 0));
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(BackupError::io(folder))?;
        }
        let packed = zstd::bulk::compress(chunk, LEVEL).map_err(BackupError::io(&path))?;
        write_file(&path, &packed)?;
        Ok((name, packed.len() as u64))
    }

    /// Reads a chunk of so many bytes.
    pub(super) fn get(&self, name: &str, bytes: u64) -> Result<Vec<u8>, BackupError> {
        let path = self.chunk_path(name);
        let packed = fs::read(&path).map_err(BackupError::io(&path))?;
        let most = usize::try_from(bytes).unwrap_or(usize::MAX);
        // More than any chunk has, or than so few bytes can become, is not asked for.
        let fits = most <= packed.len().saturating_mul(1 << 16);
        let whole = fits.then(|| zstd::bulk::decompress(&packed, most).ok()).flatten();
        let whole = whole.filter(|whole| whole.len() == most && self.name_of(whole) == name);
        whole.ok_or_else(|| BackupError::damaged(&path, "its checksum is another one"))
    }

    /// Has the names of all chunks written to the disk.
    pub(super) fn sync(&self) -> Result<(), BackupError> {
        let chunks = self.path.join("chunks");
        for entry in fs::read_dir(&chunks).map_err(BackupError::io(&chunks))? {
            let folder = entry.map_err(BackupError::io(&chunks))?.path();
            sync_folder(&folder.join("names")).map_err(BackupError::io(&folder))?;
        }
        sync_folder(&chunks.join("names")).map_err(BackupError::io(&chunks))
    }

    /// Writes the list of a backup: it is there when it is whole.
    pub(super) fn write_list(
        &self,
        name: &str,
        write: impl FnOnce(File) -> Result<(File, ListEnd), BackupError>,
    ) -> Result<ListEnd, BackupError> {
        let path = self.list(name);
        let end = write_whole(&path, write)?;
        sync_folder(&path).map_err(BackupError::io(&path))?;
        Ok(end)
    }

    /// Removes all but the newest `keep` backups, unless that is 0, and the chunks that no backup
    /// has. Returns how many backups went.
    pub(super) fn prune(&self, keep: usize) -> Result<u64, BackupError> {
        let names = self.names()?;
        if keep == 0 || names.len() <= keep {
            return Ok(0);
        }
        let (old, kept) = names.split_at(names.len() - keep);
        let mut used = HashSet::new();
        for name in kept {
            let mut list = ListReader::open(&self.list(name))?;
            while let Some(line) = list.next()? {
                used.insert(u128::from_str_radix(&line.chunk, 16).unwrap_or(0));
            }
        }
        for name in old {
            let path = self.list(name);
            fs::remove_file(&path).map_err(BackupError::io(&path))?;
            tracing::trace!("unlisted");
        }
        sync_folder(&self.list("names")).map_err(BackupError::io(&self.path))?;
        let chunks = self.path.join("chunks");
        for folder in fs::read_dir(&chunks).map_err(BackupError::io(&chunks))? {
            let folder = folder.map_err(BackupError::io(&chunks))?.path();
            for entry in fs::read_dir(&folder).map_err(BackupError::io(&folder))? {
                let path = entry.map_err(BackupError::io(&folder))?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let hash = name.strip_suffix(".zst");
                let hash = hash.and_then(|hash| u128::from_str_radix(hash, 16).ok());
                // What has no such name was left by a backup that broke off.
                if hash.is_none_or(|hash| !used.contains(&hash)) {
                    fs::remove_file(&path).map_err(BackupError::io(&path))?;
                }
            }
        }
        Ok(old.len() as u64)
    }
}

fn read_mark(path: &Path) -> Result<Mark, BackupError> {
    let file = path.join(MARK);
    match fs::read(&file) {
        Ok(text) => {
            let bad = |error: serde_json::Error| BackupError::damaged(&file, error.to_string());
            serde_json::from_slice(&text).map_err(bad)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(BackupError::Empty(path.to_owned()))
        }
        Err(error) => Err(BackupError::io(&file)(error)),
    }
}

fn take_lock(path: &Path) -> Result<File, BackupError> {
    let file = path.join(LOCK);
    let lock = File::create(&file).map_err(BackupError::io(&file))?;
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => Err(BackupError::Busy(path.to_owned())),
        // Where files cannot be locked, one process has to do.
        Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => {
            Err(BackupError::io(&file)(error))
        }
        _ => Ok(lock),
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), BackupError> {
    write_whole(path, |mut file| {
        std::io::Write::write_all(&mut file, bytes).map_err(BackupError::io(path))?;
        Ok((file, ()))
    })
}
