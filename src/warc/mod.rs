//! WARC files: what was exchanged with servers, as archives and other crawlers keep it.
//!
//! Reading: in come the bytes of a file, in little memory, out one record after the other, and for
//! all that is no record a fault with its place. Writing: in come exchanges, out files, each with
//! its index. Source: ISO 28500:2017 (WARC 1.1).

mod archive;
mod capture;
mod cdx;
mod draft;
mod http;
mod payloads;
mod raw;
mod reader;
mod surt;
mod unpacked;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;

use crate::base::clock::Timestamp;
use crate::base::units::Size;

pub use archive::WriteError;
pub(crate) use archive::{Archive, Awaited, Kept, Position, Resource, Target, recover};
pub(crate) use capture::{Captured, PackedExchange};
pub use draft::Compression;
pub(crate) use draft::{Digest, Draft, FIELDS, date, fields, named_id, new_id};
pub(crate) use http::{HttpMessage, Payload};
pub(crate) use payloads::payload_key;
pub use payloads::{PAYLOADS, StoredPayload};
pub(crate) use reader::Reader;

/// Bytes of a block that are held in memory, if nothing else is set: a page is far smaller.
pub(crate) const BLOCK_BYTES_MAX: usize = 64 << 20;

/// Settings of the files that a crawl writes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// Folder that gets what was exchanged, as WARC files; empty for none. In object storage
    /// (`s3://bucket/folder`) files come when they are whole, and wait beside the store before.
    pub folder: String,
    /// Size from which a file is full, and the next one begins.
    pub file_size_max: Size,
    /// How each record is packed.
    pub compress: Compression,
    /// Memory of records that wait to be written.
    pub records_size_max: Size,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            folder: String::new(),
            file_size_max: Size::from_mib(1 << 10),
            compress: Compression::default(),
            records_size_max: Size::from_mib(32),
        }
    }
}

/// What a record is. Source: WARC 1.1, 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// What the file is.
    Warcinfo,
    /// What a server answered.
    Response,
    /// Something that was had without HTTP.
    Resource,
    /// What was asked.
    Request,
    /// What is said of another record.
    Metadata,
    /// An answer that is the same as another one.
    Revisit,
    /// Another form of another record, such as its text (WET).
    Conversion,
    /// The rest of a record that was cut.
    Continuation,
    /// Of a kind that the standard does not know.
    Other,
}

impl Kind {
    const NAMES: [(&'static str, Self); 8] = [
        ("warcinfo", Self::Warcinfo),
        ("response", Self::Response),
        ("resource", Self::Resource),
        ("request", Self::Request),
        ("metadata", Self::Metadata),
        ("revisit", Self::Revisit),
        ("conversion", Self::Conversion),
        ("continuation", Self::Continuation),
    ];

    fn from_name(name: &str) -> Self {
        let known = Self::NAMES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.map_or(Self::Other, |(_, kind)| kind)
    }

    /// Returns the name that it has in a file.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        let known = Self::NAMES.into_iter().find(|(_, kind)| *kind == self);
        known.map_or("other", |(name, _)| name)
    }
}

/// Where something stands in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Spot {
    /// The byte of the file; in a packed one, that at which its part begins that is packed by
    /// itself.
    pub offset: u64,
    /// The byte of what is in that part.
    pub inside: u64,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inside {
            0 => write!(f, "byte {}", self.offset),
            inside => write!(f, "byte {}, unpacked byte {inside}", self.offset),
        }
    }
}

/// The header lines of a record, or of an HTTP message in one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// Returns the first value of a header, whatever the case of its name.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.iter();
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns all values of a header.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// Takes a line in. One that begins with white space goes on with the one before; one without
    /// a colon says nothing.
    fn add(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        if line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            if let Some((_, value)) = self.0.last_mut() {
                value.push(' ');
                value.push_str(text.trim());
            }
        } else if let Some((name, value)) = text.split_once(':') {
            self.0.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// Where it begins.
    pub spot: Spot,
    /// What it is.
    pub kind: Kind,
    /// Its header lines.
    pub headers: Headers,
    /// What it has, as it is in the file.
    pub block: Vec<u8>,
}

impl Record {
    /// Returns the URL that it is of; none if it names none.
    #[must_use]
    pub(crate) fn target(&self) -> Option<&str> {
        let target = self.headers.get("WARC-Target-URI")?;
        // Some writers took the brackets of the grammar of version 1.0 for a part of it.
        let bare = target.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
        Some(bare.unwrap_or(target)).filter(|target| !target.is_empty())
    }

    /// Returns its identifier, without brackets.
    #[must_use]
    pub(crate) fn id(&self) -> &str {
        bare_id(self.headers.get("WARC-Record-ID").unwrap_or_default())
    }

    /// Returns when it was had; none if that cannot be read.
    #[must_use]
    pub(crate) fn date(&self) -> Option<Timestamp> {
        let date: jiff::Timestamp = self.headers.get("WARC-Date")?.parse().ok()?;
        Some(Timestamp(date.as_millisecond()))
    }

    /// Tells why only a part of the block was kept, if that is so.
    #[must_use]
    pub(crate) fn truncated(&self) -> Option<&str> {
        self.headers.get("WARC-Truncated").filter(|reason| !reason.is_empty())
    }
}

/// An identifier without the brackets around it.
pub(crate) fn bare_id(id: &str) -> &str {
    id.trim_start_matches('<').trim_end_matches('>')
}

/// What a reader finds next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A record.
    Record(Record),
    /// Something that is none, or not as it says.
    Fault(Fault),
}

/// Something that is no record, and where. What follows is read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where it begins.
    pub spot: Spot,
    /// What it is.
    pub kind: FaultKind,
    /// The URL of the record, if that was read.
    pub target: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.spot, self.kind)?;
        self.target.as_ref().map_or(Ok(()), |target| write!(f, " ({target})"))
    }
}

/// What is wrong with a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// Bytes between records that belong to none.
    Stray {
        /// How many.
        bytes: u64,
    },
    /// The header of a record has no end, or none within a bearable length.
    OpenHeader,
    /// The record does not say how long its block is, or says no number.
    NoLength,
    /// The block is not as long as the record says. It is read as long as it is.
    WrongLength {
        /// Its length in the header.
        stated: u64,
        /// Its length.
        found: u64,
    },
    /// The file ends within the record.
    CutShort {
        /// Bytes of its block that are not there; 0 if that is not known.
        missing: u64,
    },
    /// The block is longer than the limit, and was passed over.
    TooLarge {
        /// Its length.
        bytes: u64,
    },
    /// What is packed there cannot be unpacked.
    Corrupt,
}

impl FaultKind {
    /// Returns the name by which it is counted.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stray { .. } => "stray_bytes",
            Self::OpenHeader => "open_header",
            Self::NoLength => "no_length",
            Self::WrongLength { .. } => "wrong_length",
            Self::CutShort { .. } => "cut_short",
            Self::TooLarge { .. } => "too_large",
            Self::Corrupt => "corrupt",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stray { bytes } => write!(f, "{bytes} bytes are no record"),
            Self::OpenHeader => {
                let most = reader::HEADER_BYTES_MAX >> 10;
                write!(f, "the header of the record has no end within {most} KiB")
            }
            Self::NoLength => f.write_str("the record has no valid Content-Length"),
            Self::WrongLength { stated, found } => {
                write!(f, "the block has {found} bytes, not {stated}")
            }
            Self::CutShort { missing: 0 } => f.write_str("the file ends within the record"),
            Self::CutShort { missing } => {
                write!(f, "the file ends within the record: {missing} bytes are missing")
            }
            Self::TooLarge { bytes } => write!(f, "the block of {bytes} bytes is too large"),
            Self::Corrupt => f.write_str("what is packed cannot be unpacked"),
        }
    }
}

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// The operating system fails.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// It has no record at all.
    #[error("{} is no WARC file: {hint}", path.display())]
    NotWarc {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        hint: &'static str,
    },
}
