//! Where the bytes of an export go, and the compression on the way.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::base::outputs::Output;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// zstd level of files: the usual one of its command.
pub(super) const ZSTD_LEVEL: i32 = 3;

/// gzip level of files: the usual one of its command.
pub(super) const GZIP_LEVEL: u32 = 6;

impl Compression {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Gzip, Self::Zstd];

    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// Returns what is added to the name of a file.
    #[must_use]
    pub fn ending(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == text);
        found.ok_or_else(|| "must be zstd, gzip or none".to_owned())
    }
}

/// What bytes are written to in the end.
pub(super) enum Raw {
    /// A file of a set.
    File(Box<Output>),
    /// Somebody who reads on, such as standard output, and how much was written to him.
    Reader(Box<dyn Write + Send>, u64),
}

impl Raw {
    pub(super) fn to(reader: impl Write + Send + 'static) -> Self {
        Self::Reader(Box::new(reader), 0)
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::File(output) => output.bytes(),
            Self::Reader(_, bytes) => *bytes,
        }
    }
}

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(output) => output.write(bytes),
            Self::Reader(reader, count) => {
                let written = reader.write(bytes)?;
                *count += written as u64;
                Ok(written)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(output) => output.flush(),
            Self::Reader(reader, _) => reader.flush(),
        }
    }
}

/// A file on its way, behind its compression.
pub(super) struct Stream(Coder);

enum Coder {
    Plain(Raw),
    Gzip(Box<GzEncoder<Raw>>),
    Zstd(Box<zstd::Encoder<'static, Raw>>),
}

impl Stream {
    pub(super) fn new(raw: Raw, compression: Compression) -> io::Result<Self> {
        Ok(Self(match compression {
            Compression::None => Coder::Plain(raw),
            Compression::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                Coder::Gzip(Box::new(GzEncoder::new(raw, level)))
            }
            Compression::Zstd => {
                let mut coder = zstd::Encoder::new(raw, ZSTD_LEVEL)?;
                coder.include_checksum(true)?;
                Coder::Zstd(Box::new(coder))
            }
        }))
    }

    /// Returns the bytes that have come out.
    pub(super) fn bytes(&self) -> u64 {
        match &self.0 {
            Coder::Plain(raw) => raw.bytes(),
            Coder::Gzip(coder) => coder.get_ref().bytes(),
            Coder::Zstd(coder) => coder.get_ref().bytes(),
        }
    }

    /// Ends the compression.
    pub(super) fn end(self) -> io::Result<Raw> {
        let mut raw = match self.0 {
            Coder::Plain(raw) => raw,
            Coder::Gzip(coder) => coder.finish()?,
            Coder::Zstd(coder) => coder.finish()?,
        };
        raw.flush()?;
        Ok(raw)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Coder::Plain(raw) => raw.write(bytes),
            Coder::Gzip(coder) => coder.write(bytes),
            Coder::Zstd(coder) => coder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Coder::Plain(raw) => raw.flush(),
            Coder::Gzip(coder) => coder.flush(),
            Coder::Zstd(coder) => coder.flush(),
        }
    }
}
