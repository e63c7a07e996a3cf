//! The files of a folder, written by one thread, so that nobody waits for packing or for the disk.
//!
//! A file is called `NAME.open` while it is written. What was written is tied to the commits of a
//! store: [`Archive::sync`] brings it to the disk and tells how far it is, the store commits that
//! with its pages, and [`Archive::committed`] lets full files have their names, each with its
//! index. After a crash, [`recover`] cuts what no commit tells of.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};

use crate::base::clock::Clock;
use crate::page::MemoryPermit;

use super::capture::{PackedExchange, PackedRecord};
use super::cdx::{Sorter, index_file};
use super::draft::{Draft, FIELDS, fields, new_id};
use super::{Compression, Kind, StoredPayload};

/// What is added to the name of a file until it is whole.
const OPEN: &str = ".open";

/// What is added to the name of a part of an index.
const PART: &str = ".part";

/// Bytes that are written at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The file or folder.
    pub path: PathBuf,
    /// What the operating system says, or what is wrong.
    pub source: io::Error,
}

impl WriteError {
    pub(crate) fn of(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self { path: path.to_owned(), source }
    }

    fn because(path: &Path, detail: String) -> Self {
        Self { path: path.to_owned(), source: io::Error::other(detail) }
    }
}

/// How far the files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Number of the file.
    pub serial: u32,
    /// Bytes of it.
    pub offset: u64,
}

/// Where files are written, and how.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub folder: PathBuf,
    /// Tells the files of one store from those of others.
    pub id: String,
    /// Number of the first file.
    pub serial: u32,
    /// Bytes from which a file is full.
    pub size_max: u64,
    pub compression: Compression,
    /// What each file says of itself.
    pub info: Vec<(&'static str, String)>,
    /// What the first file has before the pages.
    pub resources: Vec<Resource>,
}

/// Something that a file has beside pages.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    pub name: &'static str,
    pub media: &'static str,
    pub text: String,
}

/// An exchange on its way to a file.
pub(crate) struct Kept {
    pub exchange: PackedExchange,
    /// The record that has the same payload.
    pub original: Option<StoredPayload>,
    /// What is said of the exchange.
    pub about: Vec<(&'static str, String)>,
    /// The memory that it takes.
    pub held: Option<MemoryPermit>,
}

enum Job {
    Keep(Box<Kept>),
    Sync(SyncSender<Result<Position, WriteError>>),
    Committed,
    Close(Option<Resource>, SyncSender<Result<(), WriteError>>),
}

/// Writes files until it is dropped.
#[derive(Debug)]
pub(crate) struct Archive {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    folder: PathBuf,
}

/// An answer of the thread that is on its way.
pub(crate) struct Awaited<T> {
    answer: Receiver<Result<T, WriteError>>,
    folder: PathBuf,
}

impl<T> Awaited<T> {
    /// Waits for it.
    pub(crate) fn wait(self) -> Result<T, WriteError> {
        let lost = || WriteError::because(&self.folder, "its thread has ended".to_owned());
        self.answer.recv().unwrap_or_else(|_| Err(lost()))
    }
}

impl Archive {
    /// Makes the folder and the first file.
    pub(crate) fn start(target: Target) -> Result<Self, WriteError> {
        let folder = target.folder.clone();
        let mut files = Files::begin(target)?;
        let (jobs, queue) = channel();
        let thread = thread::Builder::new()
            .name("warc".to_owned())
            .spawn(move || files.run(&queue))
            .map_err(WriteError::of(&folder))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), folder })
    }

    /// Writes an exchange, some time. What fails is told by the next [`Archive::sync`].
    pub(crate) fn keep(&self, kept: Kept) {
        self.ask(Job::Keep(Box::new(kept)));
    }

    /// Brings all that was kept to the disk. Returns how far the files are.
    pub(crate) fn sync(&self) -> Awaited<Position> {
        self.awaited(Job::Sync)
    }

    /// Notes that the store has committed what the last [`Archive::sync`] told.
    pub(crate) fn committed(&self) {
        self.ask(Job::Committed);
    }

    /// Gives all files their names; the last one ends with `end`.
    pub(crate) fn close(&self, end: Option<Resource>) -> Result<(), WriteError> {
        self.awaited(|answer| Job::Close(end, answer)).wait()
    }

    fn awaited<T>(&self, job: impl FnOnce(SyncSender<Result<T, WriteError>>) -> Job) -> Awaited<T> {
        let (answer, awaited) = sync_channel(1);
        self.ask(job(answer));
        Awaited { answer: awaited, folder: self.folder.clone() }
    }

    fn ask(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // A thread that has ended is told of by whoever waits for an answer.
            drop(jobs.send(job));
        }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// A file that is written.
struct OpenFile {
    serial: u32,
    /// Its name when it is whole.
    name: String,
    path: PathBuf,
    file: BufWriter<File>,
    offset: u64,
    sorter: Sorter,
    exchanges: u64,
}

/// What the thread works on.
struct Files {
    target: Target,
    present: OpenFile,
    /// Full files that no commit tells of yet.
    full: Vec<OpenFile>,
    failed: Option<WriteError>,
}

impl Files {
    fn begin(target: Target) -> Result<Self, WriteError> {
        fs::create_dir_all(&target.folder).map_err(WriteError::of(&target.folder))?;
        let mut present = OpenFile::create(&target, target.serial)?;
        for resource in &target.resources {
            present.write_resource(resource, target.compression)?;
        }
        Ok(Self { target, present, full: Vec::new(), failed: None })
    }

    fn run(&mut self, queue: &Receiver<Job>) {
        while let Ok(job) = queue.recv() {
            match job {
                Job::Keep(kept) => self.attempt(|files| files.write(*kept)),
                Job::Committed => self.attempt(Self::publish),
                Job::Sync(answer) => {
                    let synced = self.failed.take().map_or_else(|| self.sync(), Err);
                    drop(answer.send(synced));
                }
                Job::Close(end, answer) => {
                    let failed = self.failed.take();
                    let closed = failed.map_or_else(|| self.close(end.as_ref()), Err);
                    drop(answer.send(closed));
                    return;
                }
            }
        }
    }

    /// Does something unless something before has failed, which stays to be told.
    fn attempt(&mut self, work: impl FnOnce(&mut Self) -> Result<(), WriteError>) {
        if self.failed.is_none()
            && let Err(error) = work(self)
        {
            self.failed = Some(error);
        }
    }

    fn write(&mut self, kept: Kept) -> Result<(), WriteError> {
        if self.present.offset >= self.target.size_max && self.present.exchanges > 0 {
            let next = OpenFile::create(&self.target, self.present.serial + 1)?;
            let mut full = std::mem::replace(&mut self.present, next);
            full.sync()?;
            self.full.push(full);
        }
        let Kept { exchange, original, about, held } = kept;
        let records = exchange.into_records(original.as_ref(), &about);
        let records = records.map_err(WriteError::of(&self.present.path))?;
        records.iter().try_for_each(|record| self.present.write(record))?;
        self.present.exchanges += 1;
        tracing::trace!("archived");
        drop(held);
        Ok(())
    }

    fn sync(&mut self) -> Result<Position, WriteError> {
        self.present.sync()?;
        Ok(Position { serial: self.present.serial, offset: self.present.offset })
    }

    fn publish(&mut self) -> Result<(), WriteError> {
        self.full.drain(..).try_for_each(OpenFile::publish)
    }

    fn close(&mut self, end: Option<&Resource>) -> Result<(), WriteError> {
        self.publish()?;
        if let Some(end) = end {
            self.present.write_resource(end, self.target.compression)?;
        }
        self.present.sync()?;
        let sorter = Sorter::new(&self.present.index_path());
        let present = &mut self.present;
        let sorter = std::mem::replace(&mut present.sorter, sorter);
        named(&present.path, &present.name, (present.exchanges > 0).then_some(sorter))
    }
}

impl OpenFile {
    fn create(target: &Target, serial: u32) -> Result<Self, WriteError> {
        let name = format!("{}{serial:05}.{}", prefix(&target.id), target.compression.ending());
        let path = target.folder.join(format!("{name}{OPEN}"));
        if target.folder.join(&name).exists() {
            let detail = "it is there already, and no commit of the store tells of it".to_owned();
            return Err(WriteError::because(&target.folder.join(&name), detail));
        }
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = BufWriter::with_capacity(BUFFER_BYTES, file.map_err(WriteError::of(&path))?);
        sync_folder(&target.folder)?;
        let sorter = Sorter::new(&index_path(&path, &name));
        let mut made = Self { serial, name, path, file, offset: 0, sorter, exchanges: 0 };
        made.write_info(target)?;
        Ok(made)
    }

    fn write_info(&mut self, target: &Target) -> Result<(), WriteError> {
        let packed = new_id().and_then(|id| {
            let draft = Draft {
                kind: Kind::Warcinfo,
                id: &id,
                date: Clock::System.now(),
                target: None,
                content_type: FIELDS,
                headers: vec![("WARC-Filename", self.name.clone())],
                block: &[&fields(&target.info)],
            };
            draft.pack(target.compression)
        });
        let bytes = packed.map_err(WriteError::of(&self.path))?;
        self.write(&PackedRecord { bytes, line: None })
    }

    fn write_resource(
        &mut self,
        resource: &Resource,
        compression: Compression,
    ) -> Result<(), WriteError> {
        let packed = new_id().and_then(|id| {
            let draft = Draft {
                kind: Kind::Resource,
                id: &id,
                date: Clock::System.now(),
                target: Some(resource.name),
                content_type: resource.media,
                headers: Vec::new(),
                block: &[resource.text.as_bytes()],
            };
            draft.pack(compression)
        });
        let bytes = packed.map_err(WriteError::of(&self.path))?;
        self.write(&PackedRecord { bytes, line: None })
    }

    fn write(&mut self, record: &PackedRecord) -> Result<(), WriteError> {
        let cannot = WriteError::of(&self.path);
        self.file.write_all(&record.bytes).map_err(&cannot)?;
        let length = record.bytes.len() as u64;
        if let Some(line) = &record.line {
            let line = line.line(&self.name, self.offset, length);
            self.sorter.add(line).map_err(&cannot)?;
        }
        self.offset += length;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), WriteError> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_data());
        synced.map_err(WriteError::of(&self.path))
    }

    fn index_path(&self) -> PathBuf {
        index_path(&self.path, &self.name)
    }

    fn publish(self) -> Result<(), WriteError> {
        named(&self.path, &self.name, (self.exchanges > 0).then_some(self.sorter))
    }
}

/// Gives a file its name, when its index is written; one without an index has no page, and goes.
fn named(path: &Path, name: &str, sorter: Option<Sorter>) -> Result<(), WriteError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    match sorter {
        Some(sorter) => {
            sorter.finish().map_err(WriteError::of(&index_path(path, name)))?;
            tracing::trace!("indexed");
            fs::rename(path, folder.join(name)).map_err(WriteError::of(path))?;
        }
        None => fs::remove_file(path).map_err(WriteError::of(path))?,
    }
    sync_folder(folder)
}

/// What the names of the files of one store begin with.
fn prefix(id: &str) -> String {
    format!("crawl-{id}-")
}

fn index_path(path: &Path, name: &str) -> PathBuf {
    let stem = name.split(".warc").next().unwrap_or(name);
    path.with_file_name(format!("{stem}.cdxj"))
}

fn sync_folder(folder: &Path) -> Result<(), WriteError> {
    // Only Unix lets a folder be opened.
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(WriteError::of(folder))?;
    }
    Ok(())
}

/// Brings the files that a crash has left open to what was committed, and gives them their names.
/// What no commit tells of is cut off, or removed.
pub(crate) fn recover(folder: &Path, id: &str, committed: Position) -> Result<(), WriteError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(WriteError::of(folder))?,
    };
    for entry in entries {
        let path = entry.map_err(WriteError::of(folder))?.path();
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(rest) = file_name.strip_prefix(&prefix(id)) else { continue };
        if rest.strip_suffix(PART).is_some() {
            fs::remove_file(&path).map_err(WriteError::of(&path))?;
            continue;
        }
        let Some(name) = file_name.strip_suffix(OPEN) else { continue };
        let digits = rest.split('.').next().unwrap_or_default();
        let Ok(serial) = digits.parse::<u32>() else { continue };
        if serial > committed.serial || (serial == committed.serial && committed.offset == 0) {
            fs::remove_file(&path).map_err(WriteError::of(&path))?;
            continue;
        }
        if serial == committed.serial {
            cut(&path, committed.offset)?;
        }
        let mut sorter = Sorter::new(&index_path(&path, name));
        let records = index_file(&path, name, &mut sorter)
            .map_err(|error| WriteError::because(&path, error.to_string()))?;
        tracing::info!(file = name, records, "a file that was left open is whole again");
        named(&path, name, sorter.has_lines().then_some(sorter))?;
    }
    Ok(())
}

/// Cuts a file to what was committed.
fn cut(path: &Path, length: u64) -> Result<(), WriteError> {
    let cannot = WriteError::of(path);
    let file = OpenOptions::new().write(true).open(path).map_err(&cannot)?;
    let found = file.metadata().map_err(&cannot)?.len();
    if found < length {
        let detail = format!("it has {found} bytes, and {length} were committed with the store");
        return Err(WriteError::because(path, detail));
    }
    file.set_len(length).and_then(|()| file.sync_all()).map_err(&cannot)
}
