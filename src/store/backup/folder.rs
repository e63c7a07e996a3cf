//! The folder of backups: `backup.json`, `chunks/ab/abcd....zst`,
//! `backups/2026-11-21T06-00-00Z.jsonl`; on this machine, or in object storage.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read as _, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::base::clock::Timestamp;
use crate::base::file_lock::FileLock;
use crate::base::outputs::write_whole;
use crate::base::remote::Location;
use crate::store::migration::sync_folder;
use crate::store::number;

use super::BackupError;
use super::list::ListReader;

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
    place: Location,
    seed: u64,
    /// Chunks that are there, if it is written to and each look would be a request.
    known: Option<HashSet<String>>,
    /// Of a folder of this machine that is written to.
    _lock: Option<FileLock>,
}

impl BackupFolder {
    /// Opens a folder to write backups of a store of this number into it, and makes it if it is not
    /// there.
    pub(super) fn open_or_create(place: &Location, own: u64) -> Result<Self, BackupError> {
        let (shown, mark_file) = (place.to_shown(), place.child(MARK));
        if let Some(path) = place.local() {
            fs::create_dir_all(path).map_err(BackupError::io(path))?;
        }
        let has_mark = || mark_file.exists().map_err(BackupError::io(&shown));
        if !has_mark()? {
            let ours = [LOCK, MARK, "backup.json.partial"];
            let names = place.names().map_err(BackupError::io(&shown))?;
            if names.iter().any(|name| !ours.contains(&name.as_str())) {
                return Err(BackupError::Foreign(shown));
            }
        }
        let lock = place.local().map(take_lock).transpose()?;
        if !has_mark()? {
            let backups_of = "uniqcrawl".to_owned();
            let mark = Mark { backups_of, store_number: own, seed: number::draw() << 20 ^ own };
            let text = serde_json::to_vec_pretty(&mark).unwrap_or_default();
            write_file(&mark_file, &text)?;
        }
        let mark = read_mark(place)?;
        if mark.store_number != own {
            let (folder, found) = (shown, mark.store_number);
            return Err(BackupError::OtherStore { folder, found, own });
        }
        for name in ["backups", "chunks"] {
            if let Some(folder) = place.child(name).local() {
                fs::create_dir_all(folder).map_err(BackupError::io(folder))?;
            }
        }
        let known = known_chunks(place).map_err(BackupError::io(&shown))?;
        Ok(Self { place: place.clone(), seed: mark.seed, known, _lock: lock })
    }

    /// Opens a folder to read what is in it.
    pub(super) fn open(place: &Location) -> Result<Self, BackupError> {
        let seed = read_mark(place)?.seed;
        Ok(Self { place: place.clone(), seed, known: None, _lock: None })
    }

    /// Returns the place of the list of a backup.
    pub(super) fn list(&self, name: &str) -> Location {
        self.place.child("backups").child(&format!("{name}.jsonl"))
    }

    /// Returns the names of all backups, the oldest first.
    pub(super) fn names(&self) -> Result<Vec<String>, BackupError> {
        let folder = self.place.child("backups");
        let names = folder.names().map_err(BackupError::io(&folder.to_shown()))?;
        let lists = names.iter().filter_map(|name| name.strip_suffix(".jsonl"));
        let mut lists: Vec<String> = lists.map(str::to_owned).collect();
        // Without the ending: `T-2.jsonl` comes before `T.jsonl`.
        lists.sort();
        Ok(lists)
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
        let newest = names.last().ok_or_else(|| BackupError::Empty(self.place.to_shown()))?;
        match name {
            None => Ok(newest.clone()),
            Some(name) if names.iter().any(|known| known == name) => Ok(name.to_owned()),
            Some(name) => Err(BackupError::Unknown {
                folder: self.place.to_shown(),
                name: name.to_owned(),
                known: names.join(", "),
            }),
        }
    }

    pub(super) fn chunk_place(&self, name: &str) -> Location {
        let start = name.get(..2).unwrap_or("00");
        self.place.child("chunks").child(start).child(&format!("{name}.zst"))
    }

    /// Tells whether a chunk is there that is about to be written.
    fn has(&self, name: &str) -> Result<bool, BackupError> {
        if let Some(known) = &self.known {
            return Ok(known.contains(name));
        }
        let place = self.chunk_place(name);
        place.exists().map_err(BackupError::io(&place.to_shown()))
    }

    fn name_of(&self, chunk: &[u8]) -> String {
        format!("{:032x}", xxh3_128_with_seed(chunk, self.seed))
    }

    /// Stores a chunk unless it is there. Returns its name, and the bytes that were written.
    pub(super) fn put(&mut self, chunk: &[u8]) -> Result<(String, u64), BackupError> {
        let name = self.name_of(chunk);
        if self.has(&name)? {
            return Ok((name, 0));
        }
        let place = self.chunk_place(&name);
        let shown = place.to_shown();
        if let Some(folder) = place.local().and_then(Path::parent) {
            fs::create_dir_all(folder).map_err(BackupError::io(folder))?;
        }
        let packed = zstd::bulk::compress(chunk, LEVEL).map_err(BackupError::io(&shown))?;
        write_file(&place, &packed)?;
        if let Some(known) = &mut self.known {
            known.insert(name.clone());
        }
        Ok((name, packed.len() as u64))
    }

    /// Reads a chunk of so many bytes.
    pub(super) fn get(&self, name: &str, bytes: u64) -> Result<Vec<u8>, BackupError> {
        let place = self.chunk_place(name);
        let path = place.to_shown();
        let packed = read_all(&place).map_err(BackupError::io(&path))?;
        let most = usize::try_from(bytes).unwrap_or(usize::MAX);
        // More than any chunk has, or than so few bytes can become, is not asked for.
        let fits = most <= packed.len().saturating_mul(1 << 16);
        let whole = fits.then(|| zstd::bulk::decompress(&packed, most).ok()).flatten();
        let whole = whole.filter(|whole| whole.len() == most && self.name_of(whole) == name);
        whole.ok_or_else(|| BackupError::damaged(&path, "its checksum is another one"))
    }

    /// Has the names of all chunks written to the disk.
    pub(super) fn sync(&self) -> Result<(), BackupError> {
        let place = self.place.child("chunks");
        let Some(chunks) = place.local() else { return Ok(()) };
        for name in place.names().map_err(BackupError::io(chunks))? {
            let folder = chunks.join(name);
            sync_folder(&folder.join("names")).map_err(BackupError::io(&folder))?;
        }
        sync_folder(&chunks.join("names")).map_err(BackupError::io(chunks))
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
            let list = self.list(name);
            list.remove_file().map_err(BackupError::io(&list.to_shown()))?;
            tracing::trace!("unlisted");
        }
        if let Some(list) = self.list("names").local() {
            sync_folder(list).map_err(BackupError::io(list))?;
        }
        let chunks = self.place.child("chunks");
        for start in chunks.names().map_err(BackupError::io(&chunks.to_shown()))? {
            let folder = chunks.child(&start);
            for name in folder.names().map_err(BackupError::io(&folder.to_shown()))? {
                let hash = name.strip_suffix(".zst");
                let hash = hash.and_then(|hash| u128::from_str_radix(hash, 16).ok());
                // What has no such name was left by a backup that broke off.
                if hash.is_none_or(|hash| !used.contains(&hash)) {
                    let chunk = folder.child(&name);
                    chunk.remove_file().map_err(BackupError::io(&chunk.to_shown()))?;
                }
            }
        }
        Ok(old.len() as u64)
    }
}

/// The chunks in object storage; none for a folder, where a look costs nothing.
fn known_chunks(place: &Location) -> std::io::Result<Option<HashSet<String>>> {
    if place.local().is_some() {
        return Ok(None);
    }
    let (chunks, mut known) = (place.child("chunks"), HashSet::new());
    for name in chunks.names_below()? {
        let name = name.rsplit('/').next().unwrap_or_default();
        known.extend(name.strip_suffix(".zst").map(str::to_owned));
    }
    Ok(Some(known))
}

fn read_all(place: &Location) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    place.open()?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_mark(place: &Location) -> Result<Mark, BackupError> {
    let file = place.child(MARK);
    let shown = file.to_shown();
    if !file.exists().map_err(BackupError::io(&shown))? {
        return Err(BackupError::Empty(place.to_shown()));
    }
    let text = read_all(&file).map_err(BackupError::io(&shown))?;
    let bad = |error: serde_json::Error| BackupError::damaged(&shown, error.to_string());
    serde_json::from_slice(&text).map_err(bad)
}

fn take_lock(folder: &Path) -> Result<FileLock, BackupError> {
    let path = folder.join(LOCK);
    let taken = File::create(&path).and_then(FileLock::exclusive).map_err(BackupError::io(&path));
    taken?.ok_or_else(|| BackupError::Busy(folder.to_owned()))
}

fn write_file(place: &Location, bytes: &[u8]) -> Result<(), BackupError> {
    write_at(place, |file| file.write_all(bytes).map_err(BackupError::io(&place.to_shown())))
}

/// Writes a file that is there when it is whole.
pub(super) fn write_at<T>(
    place: &Location,
    write: impl FnOnce(&mut dyn Write) -> Result<T, BackupError>,
) -> Result<T, BackupError> {
    match place {
        Location::Local(path) => {
            let done = write_whole(path, |mut file| {
                Ok::<_, BackupError>({
                    let done = write(&mut file)?;
                    (file, done)
                })
            })?;
            sync_folder(path).map_err(BackupError::io(path))?;
            Ok(done)
        }
        #[cfg(feature = "object-store")]
        Location::Remote(objects) => {
            let mut upload = objects.write();
            let done = write(&mut upload)?;
            let sent = upload.finish().map_err(std::io::Error::from);
            sent.map_err(BackupError::io(&place.to_shown()))?;
            Ok(done)
        }
    }
}
