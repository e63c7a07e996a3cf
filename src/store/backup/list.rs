//! The list of a backup: its head, a line for each chunk, and a last line with their numbers and a
//! checksum of all lines before it. Lines are JSON.

use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::base::remote::{Location, ReadSeek};
use crate::store::Name;

use super::BackupError;
use super::chunk::Chunk;

/// The version of the form of lists.
const VERSION: u32 = 1;

/// What a backup is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupHead {
    /// When it was made.
    pub made: String,
    /// Version of the program that made it.
    pub program: String,
    /// Format of the store.
    pub format: u64,
    /// Number of the store.
    pub store_number: u64,
    /// Documents.
    pub documents: u64,
    /// Copies.
    pub copies: u64,
    /// URLs.
    pub urls: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct FirstLine {
    backup: u32,
    #[serde(flatten)]
    head: BackupHead,
}

/// A chunk of a backup.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ListLine {
    pub table: String,
    pub chunk: String,
    pub rows: u64,
    pub bytes: u64,
}

/// The end of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListEnd {
    pub chunks: u64,
    pub rows: u64,
    pub bytes: u64,
    pub xxh3: String,
}

pub(super) struct ListWriter<'a> {
    file: BufWriter<&'a mut dyn Write>,
    hash: Xxh3,
    end: ListEnd,
}

impl<'a> ListWriter<'a> {
    pub(super) fn new(file: &'a mut dyn Write, head: &BackupHead) -> Result<Self, BackupError> {
        let (hash, end) = (Xxh3::new(), ListEnd::default());
        let mut writer = Self { file: BufWriter::new(file), hash, end };
        writer.line(&FirstLine { backup: VERSION, head: head.clone() })?;
        Ok(writer)
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), BackupError> {
        let io = |source| BackupError::Io { path: PathBuf::from("the list"), source };
        let mut text = serde_json::to_vec(line).map_err(|error| io(error.into()))?;
        text.push(b'\n');
        self.hash.update(&text);
        self.file.write_all(&text).map_err(io)
    }

    pub(super) fn chunk(
        &mut self,
        table: Name,
        chunk: String,
        whole: &Chunk,
    ) -> Result<(), BackupError> {
        let (rows, bytes) = (whole.rows, whole.bytes.len() as u64);
        self.end.chunks += 1;
        self.end.rows += rows;
        self.end.bytes += bytes;
        self.line(&ListLine { table: table.as_str().to_owned(), chunk, rows, bytes })
    }

    pub(super) fn finish(mut self) -> Result<ListEnd, BackupError> {
        let xxh3 = format!("{:032x}", self.hash.digest128());
        let end = ListEnd { xxh3, ..self.end.clone() };
        self.line(&end)?;
        let io = |source| BackupError::Io { path: PathBuf::from("the list"), source };
        self.file.flush().map_err(io)?;
        Ok(end)
    }
}

pub(super) struct ListReader {
    path: PathBuf,
    file: BufReader<Box<dyn ReadSeek>>,
    hash: Xxh3,
    seen: ListEnd,
    pub head: BackupHead,
}

impl ListReader {
    pub(super) fn open(place: &Location) -> Result<Self, BackupError> {
        let path = &place.to_shown();
        let file = place.open().map_err(BackupError::io(path))?;
        let mut file = BufReader::new(file);
        let mut line = String::new();
        file.read_line(&mut line).map_err(BackupError::io(path))?;
        let bad = || BackupError::damaged(path, "it does not begin like the list of a backup");
        let first: FirstLine = serde_json::from_str(&line).map_err(|_| bad())?;
        if first.backup != VERSION {
            let detail = format!("its version is {}, not {VERSION}", first.backup);
            return Err(BackupError::damaged(path, detail));
        }
        let mut hash = Xxh3::new();
        hash.update(line.as_bytes());
        let (path, seen) = (path.to_owned(), ListEnd::default());
        Ok(Self { path, file, hash, seen, head: first.head })
    }

    /// Returns the next chunk; none behind the last one, if the list is whole.
    pub(super) fn next(&mut self) -> Result<Option<ListLine>, BackupError> {
        let mut line = String::new();
        self.file.read_line(&mut line).map_err(BackupError::io(&self.path))?;
        if let Ok(chunk) = serde_json::from_str::<ListLine>(&line) {
            self.hash.update(line.as_bytes());
            self.seen.chunks += 1;
            self.seen.rows += chunk.rows;
            self.seen.bytes += chunk.bytes;
            return Ok(Some(chunk));
        }
        let xxh3 = format!("{:032x}", self.hash.digest128());
        let seen = ListEnd { xxh3, ..self.seen.clone() };
        match serde_json::from_str::<ListEnd>(&line) {
            Ok(end) if end == seen => Ok(None),
            Ok(_) => Err(BackupError::damaged(&self.path, "its checksum is another one")),
            Err(_) => Err(BackupError::damaged(&self.path, "it is cut short")),
        }
    }
}
