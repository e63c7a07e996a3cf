//! Bodies as they were before `Content-Encoding`, under limits that no bomb gets past.

use std::io::{self, Read};

use flate2::bufread::{GzDecoder, MultiGzDecoder};

use super::inflate::{Brotli, Inflate};
use crate::page::binary;

/// Codings that one body may have on top of each other.
const CODINGS_MAX: usize = 4;

/// First bytes of every gzip member. Source: RFC 1952, 2.3.1.
const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];

/// Largest window of a zstd frame, as a power of two. Source: RFC 9659 (8 MiB).
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Limits of decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodeLimits {
    /// Most bytes that come out; what is beyond is cut.
    pub bytes_max: usize,
    /// Most times that a body may grow.
    pub ratio_max: u32,
    /// A body may grow as much as it likes up to this size.
    pub ratio_grace_bytes: usize,
}

impl DecodeLimits {
    /// Returns how many bytes can come out of a body.
    #[must_use]
    pub(crate) fn most(&self, wire: usize) -> usize {
        self.allowed(wire).min(self.bytes_max)
    }

    fn allowed(&self, wire: usize) -> usize {
        wire.saturating_mul(self.ratio_max as usize).max(self.ratio_grace_bytes)
    }
}

/// A decoded body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// They are not all: the transfer or the limit cut them.
    pub truncated: bool,
}

/// Why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum DecodeError {
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
/// Names that are no coding, such as `UTF-8` and `8bit`, are read over, as browsers do it, if what
/// is there is text. gzip in gzip is undone once more: servers pack files that are packed already.
///
/// Memory: at most `bytes_max` bytes come out of each coding.
pub(crate) fn decode(
    raw: Vec<u8>,
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
    let wire = raw.len();
    let mut bytes = raw;
    let mut truncated = cut;
    let mut unknown = None;
    // The last coding in the list was applied last.
    for coding in codings.iter().rev() {
        match undo(&bytes, coding, wire, limits, truncated) {
            Err(DecodeError::Unsupported(name)) => unknown = Some(name),
            undone => (bytes, truncated) = undone?,
        }
    }
    if !codings.is_empty() && bytes.starts_with(&GZIP_MAGIC) {
        match undo(&bytes, "gzip", wire, limits, truncated) {
            Err(bomb @ DecodeError::Bomb { .. }) => return Err(bomb),
            // It only begins like gzip.
            Err(_) => {}
            Ok(undone) => (bytes, truncated) = undone,
        }
    }
    match unknown {
        Some(name) if binary(&bytes, None).is_some() => Err(DecodeError::Unsupported(name)),
        _ => Ok(Decoded { bytes, truncated }),
    }
}

/// Undoes the codings of a body as a stream, in little memory. At most `bytes_max` bytes come out
/// of each coding. What is not gzip though the header says so is taken as it is: servers say so
/// of files that they have unpacked, or never packed. Names that are no coding are read over.
///
/// # Errors
///
/// If there are too many codings.
pub(crate) fn reader<'a>(
    raw: &'a [u8],
    content_encoding: &str,
    bytes_max: u64,
) -> Result<Box<dyn Read + 'a>, DecodeError> {
    let names = content_encoding.split(',').map(|name| name.trim().to_ascii_lowercase());
    let codings: Vec<String> = names.filter(|name| is_coding(name)).collect();
    let Some(last) = codings.last() else { return Ok(Box::new(raw)) };
    if codings.len() > CODINGS_MAX {
        return Err(DecodeError::Unsupported(content_encoding.to_owned()));
    }
    let first: Box<dyn Read + 'a> = match last.as_str() {
        "gzip" | "x-gzip" if !raw.starts_with(&GZIP_MAGIC) => Box::new(raw),
        "gzip" | "x-gzip" => Box::new(MultiGzDecoder::new(raw)),
        "br" => Box::new(Brotli::new(raw)),
        "deflate" => Box::new(Inflate::new(raw, has_zlib_header(raw))),
        _ => Box::new(unzstd(raw).map_err(|_| DecodeError::Corrupt("zstd"))?),
    };
    codings.iter().rev().skip(1).try_fold(first, |inner, coding| {
        let inner = io::BufReader::new(inner.take(bytes_max.saturating_add(1)));
        let outer: Box<dyn Read + 'a> = match coding.as_str() {
            "gzip" | "x-gzip" => Box::new(MultiGzDecoder::new(inner)),
            "zstd" => Box::new(unzstd(inner).map_err(|_| DecodeError::Corrupt("zstd"))?),
            // No server packs so; what is no list is told when it is read.
            other => return Err(DecodeError::Unsupported(other.to_owned())),
        };
        Ok(outer)
    })
}

/// Tells whether a name is that of a coding that we can undo.
fn is_coding(name: &str) -> bool {
    matches!(name, "gzip" | "x-gzip" | "br" | "deflate" | "zstd")
}

fn unzstd<R: io::BufRead>(raw: R) -> io::Result<zstd::stream::read::Decoder<'static, R>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(raw)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    Ok(decoder)
}

/// Undoes one coding of a body that had `wire` bytes before all of them.
fn undo(
    raw: &[u8],
    coding: &str,
    wire: usize,
    limits: &DecodeLimits,
    cut: bool,
) -> Result<(Vec<u8>, bool), DecodeError> {
    let name = coding.to_ascii_lowercase();
    let mut bytes = Vec::new();
    let mut grow = |reader: &mut dyn Read| read_limited(reader, wire, limits, &mut bytes);
    let end = match name.as_str() {
        "gzip" | "x-gzip" => gunzip(raw, &mut grow)?,
        "br" => grow(&mut Brotli::new(raw))?,
        "zstd" => grow(&mut unzstd(raw).map_err(|_| DecodeError::Corrupt("zstd"))?)?,
        "deflate" => grow(&mut Inflate::new(raw, has_zlib_header(raw)))?,
        _ => return Err(DecodeError::Unsupported(coding.to_owned())),
    };
    match end {
        ReadEnd::Whole => Ok((bytes, cut)),
        ReadEnd::Limit => Ok((bytes, true)),
        // What was cut must break; so may garbage after a whole body, which servers do send.
        ReadEnd::Broken if cut || !bytes.is_empty() => Ok((bytes, true)),
        ReadEnd::Broken => Err(DecodeError::Corrupt(static_name(&name))),
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

/// Reads one member after the other; what follows the last one is padding.
fn gunzip(
    mut raw: &[u8],
    grow: &mut impl FnMut(&mut dyn Read) -> Result<ReadEnd, DecodeError>,
) -> Result<ReadEnd, DecodeError> {
    loop {
        let mut member = GzDecoder::new(raw);
        let end = grow(&mut member)?;
        raw = member.into_inner();
        if end != ReadEnd::Whole || !raw.starts_with(&GZIP_MAGIC) {
            return Ok(end);
        }
    }
}

/// Servers disagree whether `deflate` has the zlib header: method 8, a window of at most 32 KiB, a
/// check modulo 31. Source: RFC 1950, 2.2.
fn has_zlib_header(raw: &[u8]) -> bool {
    let [method, flags, ..] = *raw else { return false };
    let check = u16::from_be_bytes([method, flags]);
    method & 0x0F == 8 && method >> 4 <= 7 && check.is_multiple_of(31)
}

/// How reading ended.
#[derive(PartialEq, Eq)]
enum ReadEnd {
    Whole,
    Limit,
    Broken,
}

/// Appends what `reader` gives to `bytes`, until an end or a limit.
fn read_limited(
    reader: &mut dyn Read,
    wire: usize,
    limits: &DecodeLimits,
    bytes: &mut Vec<u8>,
) -> Result<ReadEnd, DecodeError> {
    let allowed = limits.allowed(wire);
    let mut chunk = vec![0; 16 << 10];
    loop {
        let read = match reader.read(&mut chunk) {
            Ok(0) => return Ok(ReadEnd::Whole),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Ok(ReadEnd::Broken),
        };
        if bytes.len() + read > allowed {
            return Err(DecodeError::Bomb { ratio_max: limits.ratio_max });
        }
        let room = limits.bytes_max - bytes.len();
        bytes.extend_from_slice(&chunk[..read.min(room)]);
        if read > room {
            return Ok(ReadEnd::Limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const LIMITS: DecodeLimits =
        DecodeLimits { bytes_max: 1 << 20, ratio_max: 100, ratio_grace_bytes: 1 << 20 };

    macro_rules! packed {
        ($encoder:ident, $text:expr) => {{
            let mut encoder = $encoder::new(Vec::new(), Compression::default());
            encoder.write_all($text).unwrap();
            encoder.finish().unwrap()
        }};
    }

    fn text() -> Vec<u8> {
        (0..2_000).flat_map(|n: u32| (n * n).to_string().into_bytes()).collect()
    }

    #[track_caller]
    fn check(raw: &[u8], coding: &str, bytes: &[u8], truncated: bool) {
        let decoded = decode(raw.to_vec(), coding, &LIMITS, false).unwrap();
        assert_eq!(decoded.truncated, truncated, "{coding}");
        assert!(decoded.bytes == bytes, "{coding}: {} bytes", decoded.bytes.len());
    }

    #[test]
    fn codings_are_undone_from_the_last_to_the_first() {
        let packed = packed!(ZlibEncoder, &packed!(GzEncoder, &text()));
        check(&packed, "gzip, deflate", &text(), false);
        check(&packed, " GZIP,identity,, Deflate ", &text(), false);
        let four = (0..4).fold(b"four".to_vec(), |raw, _| packed!(GzEncoder, &raw));
        check(&four, "gzip,gzip,gzip,gzip", b"four", false);
        let error = decode(four.clone(), "gzip,gzip,gzip,gzip,gzip", &LIMITS, false).unwrap_err();
        assert!(matches!(error, DecodeError::Unsupported(_)), "{error}");
        check(b"plain", "UTF-8", b"plain", false);
        check(&packed!(GzEncoder, b"plain"), "gzip, none", b"plain", false);
        let packed = b"\x1F\x9D\x90a\x04\x08\x01\x02";
        let error = decode(packed.to_vec(), "compress", &LIMITS, false).unwrap_err();
        assert_eq!(error, DecodeError::Unsupported("compress".to_owned()));
    }

    #[test]
    fn what_is_beyond_the_limit_is_cut_and_what_grows_beyond_measure_is_refused() {
        let raw = packed!(GzEncoder, &text());
        let exact = DecodeLimits { bytes_max: text().len(), ..LIMITS };
        assert!(!decode(raw.clone(), "gzip", &exact, false).unwrap().truncated);
        let small = DecodeLimits { bytes_max: text().len() - 1, ..LIMITS };
        let cut = decode(raw.clone(), "gzip", &small, false).unwrap();
        assert!(cut.truncated && cut.bytes == text()[..small.bytes_max]);
        let zeros = packed!(GzEncoder, &vec![0; 3 << 20]);
        let bomb = DecodeLimits { bytes_max: 8 << 20, ..LIMITS };
        let error = decode(zeros.clone(), "gzip", &bomb, false).unwrap_err();
        assert_eq!(error, DecodeError::Bomb { ratio_max: 100 });
        let grace = DecodeLimits { ratio_grace_bytes: 3 << 20, ..bomb };
        assert!(decode(zeros.clone(), "gzip", &grace, false).is_ok());
        assert!(decode(b"plain".to_vec(), "", &LIMITS, true).unwrap().truncated);
    }

    #[test]
    fn a_zstd_window_is_at_most_eight_mebibytes() {
        let frame = |log: u32| {
            let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
            encoder.include_contentsize(false).unwrap();
            encoder.window_log(log).unwrap();
            encoder.write_all(&text()).unwrap();
            encoder.finish().unwrap()
        };
        check(&frame(23), "zstd", &text(), false);
        let error = decode(frame(24), "zstd", &LIMITS, false).unwrap_err();
        assert_eq!(error, DecodeError::Corrupt("zstd"));
    }

    #[test]
    fn a_header_of_zlib_is_told_by_all_its_parts() {
        assert!(has_zlib_header(&[0x78, 0x9C]) && has_zlib_header(&[0x78, 0x01]));
        for raw in [&[0x78, 0x9D][..], &[0x77, 0x85], &[0x88, 0x1C], &[0x78], &[]] {
            assert!(!has_zlib_header(raw), "{raw:?}");
        }
    }

    #[test]
    fn deflate_is_read_with_and_without_the_header_of_zlib() {
        check(&packed!(ZlibEncoder, &text()), "deflate", &text(), false);
        check(&packed!(DeflateEncoder, &text()), "deflate", &text(), false);
        check(b"", "deflate", b"", false);
    }

    #[test]
    fn a_body_that_breaks_off_is_kept_and_marked() {
        for (coding, raw) in [
            ("deflate", packed!(ZlibEncoder, &text())),
            ("deflate", packed!(DeflateEncoder, &text())),
            ("gzip", packed!(GzEncoder, &text())),
            ("zstd", zstd::bulk::compress(&text().repeat(30), 3).unwrap()),
            ("br", b"\x0b\x02\x80hello\x03".to_vec()),
        ] {
            let broken = decode(raw[..raw.len() - 3].to_vec(), coding, &LIMITS, false).unwrap();
            assert!(broken.truncated, "{coding}");
        }
    }

    #[test]
    fn members_of_gzip_follow_each_other_and_padding_is_no_damage() {
        let mut raw = packed!(GzEncoder, b"one ");
        raw.extend(packed!(GzEncoder, b"two"));
        check(&raw, "gzip", b"one two", false);
        raw.extend([0; 100]);
        check(&raw, "gzip", b"one two", false);
    }

    #[test]
    fn brotli_windows_are_those_of_the_standard() {
        check(b"\x0b\x02\x80hello\x03", "br", b"hello", false);
        // An empty stream with a window of 1 GiB.
        let large = [0x11, 0x1E | 0xC0];
        assert_eq!(
            decode(large.to_vec(), "br", &LIMITS, false),
            Err(DecodeError::Corrupt("brotli"))
        );
    }
}
