//! Bodies as they were before `Content-Encoding`, under limits that no bomb gets past.

use std::io::{self, Read};

use brotli_decompressor::Decompressor as Brotli;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Codings that one body may have on top of each other.
const CODINGS_MAX: usize = 4;

/// Bytes of the input buffer of the brotli decoder.
const BROTLI_BUFFER: usize = 4096;

/// Largest window of a zstd frame, as a power of two. Source: RFC 9659 (8 MiB).
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Limits of decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Most bytes that come out; what is beyond is cut.
    pub bytes_max: usize,
    /// Most times that a body may grow.
    pub ratio_max: u32,
    /// A body may grow as much as it likes up to this size.
    pub ratio_grace_bytes: usize,
}

/// A decoded body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// They are not all: the transfer or the limit cut them.
    pub truncated: bool,
}

/// Why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A coding that we did not ask for.
    #[error("the content coding `{0}` is not known")]
    Unsupported(String),
    /// The bytes are not in the coding that the header names.
    #[error("the body is not {0}")]
    Corrupt(&'static str),
    /// It grows beyond measure.
    #[error("the body grows more than {ratio_max} times")]
    Bomb {
        /// The limit that it broke.
        ratio_max: u32,
    },
}

/// Undoes the codings of a body. `cut` tells that the transfer was cut, so that what is there is
/// decoded and the missing end is no error.
///
/// Memory: at most `bytes_max` bytes come out of each coding.
pub fn decode(
    raw: &[u8],
    content_encoding: &str,
    limits: &DecodeLimits,
    cut: bool,
) -> Result<Decoded, DecodeError> {
    let codings: Vec<&str> = content_encoding
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"))
        .collect();
    if codings.len() > CODINGS_MAX {
        return Err(DecodeError::Unsupported(content_encoding.to_owned()));
    }
    let mut bytes = raw.to_vec();
    let mut truncated = cut;
    // The last coding in the list was applied last.
    for coding in codings.iter().rev() {
        (bytes, truncated) = undo(&bytes, coding, limits, truncated)?;
    }
    Ok(Decoded { bytes, truncated })
}

fn undo(
    raw: &[u8],
    coding: &str,
    limits: &DecodeLimits,
    cut: bool,
) -> Result<(Vec<u8>, bool), DecodeError> {
    let name = coding.to_ascii_lowercase();
    let grown = |reader: &mut dyn Read| read_limited(reader, raw.len(), limits);
    let (bytes, end) = match name.as_str() {
        "gzip" | "x-gzip" => grown(&mut MultiGzDecoder::new(raw))?,
        "br" => grown(&mut Brotli::new(raw, BROTLI_BUFFER))?,
        "zstd" => {
            let decoder = zstd::stream::read::Decoder::with_buffer(raw).and_then(|mut decoder| {
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Ok(decoder)
            });
            grown(&mut decoder.map_err(|_| DecodeError::Corrupt("zstd"))?)?
        }
        // Servers disagree whether `deflate` has the zlib header.
        "deflate" => match grown(&mut ZlibDecoder::new(raw))? {
            (bytes, End::Broken) if bytes.is_empty() => grown(&mut DeflateDecoder::new(raw))?,
            whole => whole,
        },
        _ => return Err(DecodeError::Unsupported(coding.to_owned())),
    };
    match end {
        End::Whole => Ok((bytes, cut)),
        End::Limit => Ok((bytes, true)),
        // What was cut must break; so may garbage after a whole body, which servers do send.
        End::Broken if cut || !bytes.is_empty() => Ok((bytes, true)),
        End::Broken => Err(DecodeError::Corrupt(static_name(&name))),
    }
}

fn static_name(name: &str) -> &'static str {
    match name {
        "br" => "brotli",
        "zstd" => "zstd",
        "deflate" => "deflate",
        _ => "gzip",
    }
}

/// How reading ended.
enum End {
    Whole,
    Limit,
    Broken,
}

fn read_limited(
    reader: &mut dyn Read,
    raw: usize,
    limits: &DecodeLimits,
) -> Result<(Vec<u8>, End), DecodeError> {
    let allowed = raw.saturating_mul(limits.ratio_max as usize).max(limits.ratio_grace_bytes);
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 16 << 10];
    loop {
        let read = match reader.read(&mut chunk) {
            Ok(0) => return Ok((bytes, End::Whole)),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Ok((bytes, End::Broken)),
        };
        if bytes.len() + read > allowed {
            return Err(DecodeError::Bomb { ratio_max: limits.ratio_max });
        }
        let room = limits.bytes_max - bytes.len();
        bytes.extend_from_slice(&chunk[..read.min(room)]);
        if read > room {
            return Ok((bytes, End::Limit));
        }
    }
}
