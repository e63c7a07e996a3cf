//! Opening: what a file is, and the bytes that are packed in it.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::remote::{self, Location, ReadSeek};

use super::Kind;

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// Bytes by which it is told what a file is.
const START_BYTES: usize = 64 << 10;

/// First bytes of a gzip file. Source: RFC 1952, 2.3.1.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// First bytes of a zstd frame. Source: RFC 8878, 3.1.1.
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// First bytes of a Parquet file.
const PARQUET: &[u8] = b"PAR1";

/// First bytes of a page in HTML, in small letters.
const PAGES: [&[u8]; 7] =
    [b"<!doctype html", b"<html", b"<head", b"<body", b"<!--", b"<?xml", b"<meta"];

/// A file whose bytes are counted as they are read.
pub(super) struct Counted {
    inner: Box<dyn ReadSeek>,
    read: Arc<AtomicU64>,
}

impl Counted {
    pub(super) fn open(location: &Location, read: Arc<AtomicU64>) -> io::Result<Self> {
        Ok(Self { inner: location.open()?, read })
    }
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

/// Undoes gzip and zstd, told by the first bytes, also of several members or frames.
pub(super) fn unpacked(file: impl Read + Send + 'static) -> io::Result<Box<dyn BufRead + Send>> {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let start = reader.fill_buf()?;
    Ok(if start.starts_with(&GZIP) {
        let decoder = flate2::bufread::MultiGzDecoder::new(reader);
        Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
    } else if start.starts_with(&ZSTD) {
        let decoder = zstd::Decoder::with_buffer(reader)?;
        Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
    } else {
        Box::new(reader)
    })
}

/// Tells whether it is what is packed that is at fault, and not the machine or a server.
pub(super) fn is_damage(error: &io::Error) -> bool {
    let is_remote =
        error.get_ref().and_then(|inner| inner.downcast_ref::<remote::Error>()).is_some();
    error.raw_os_error().is_none() && !is_remote
}

/// The first bytes of a file, packed and unpacked.
pub(super) struct Start {
    raw: Vec<u8>,
    unpacked: Vec<u8>,
}

impl Start {
    pub(super) fn read(location: &Location) -> io::Result<Self> {
        let mut raw = Vec::new();
        location.open()?.take(START_BYTES as u64).read_to_end(&mut raw)?;
        let mut start = Self { unpacked: Vec::new(), raw };
        let is_packed = start.raw.starts_with(&GZIP) || start.raw.starts_with(&ZSTD);
        if !is_packed {
            start.unpacked.clone_from(&start.raw);
            return Ok(start);
        }
        let mut reader = unpacked(location.open()?)?.take(START_BYTES as u64);
        match reader.read_to_end(&mut start.unpacked) {
            Err(error) if !is_damage(&error) => Err(error),
            // What is there tells what it is.
            _ => Ok(start),
        }
    }

    /// Tells what the file is; its name counts where its content does not tell.
    pub(super) fn kind(&self, name: &str) -> Kind {
        if self.raw.starts_with(PARQUET) {
            return Kind::Parquet;
        }
        let text = self.unpacked.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.unpacked);
        let text = text.trim_ascii_start();
        if text.starts_with(b"WARC/") {
            return Kind::Warc;
        }
        if text.starts_with(b"{") {
            return Kind::Lines;
        }
        let small = text[..text.len().min(32)].to_ascii_lowercase();
        if PAGES.iter().any(|start| small.starts_with(start)) {
            return Kind::Page;
        }
        let name = name.to_ascii_lowercase();
        let packed = [".gz", ".zst"].into_iter().find_map(|end| name.strip_suffix(end));
        let ending = packed.unwrap_or(&name).rsplit(['.', '/']).next().unwrap_or_default();
        match ending {
            "html" | "htm" | "xhtml" => Kind::Page,
            "txt" | "text" | "md" | "markdown" => Kind::Text,
            "jsonl" | "ndjson" | "json" => Kind::Lines,
            "warc" | "wet" => Kind::Warc,
            "parquet" | "pq" => Kind::Parquet,
            _ => Kind::Unknown,
        }
    }

    /// Tells whether it is one list of documents, and not a document a line.
    pub(super) fn is_list(&self) -> bool {
        let text = self.unpacked.trim_ascii_start();
        text.strip_prefix(b"[").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"{"))
    }
}

/// Tells whether a name in a folder is one that programs leave there, and not one of a document.
pub(super) fn is_own(name: &str) -> bool {
    name.starts_with('.') || name.starts_with('_') && !name.contains('.')
}
