//! Binary data told from text, whatever the type of a body says.
//!
//! Source: <https://mimesniff.spec.whatwg.org/> for the signatures, the binary data bytes and how
//! much of a body is looked at. Unlike there, a few such bytes make no text binary: pages have
//! stray ones. Measured: see docs/src/internals.md.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

use super::charset;

/// Bytes that the standard calls the resource header.
const HEADER_BYTES: usize = 1_445;

/// Bytes in which binary ones are counted.
const COUNTED_BYTES: usize = 256 << 10;

/// Of so many bytes of a text, at most one is a binary data byte; and two in all are nothing yet.
const TEXT_BYTES_PER_BINARY: usize = 100;
const STRAY_MAX: usize = 1;

/// The same for what begins like markup.
const MARKUP_BYTES_PER_BINARY: usize = 20;

/// Of so many characters of a text in UTF-16, at most one is none that anybody writes.
const WIDE_CHARS_PER_ODD: usize = 50;

/// Bytes at a place.
type MagicBytes = (usize, &'static [u8]);

/// How files of one kind begin.
type FileSignature = (&'static [MagicBytes], &'static str);

/// Those in which no text is, though they may begin with lines of ASCII.
const DOCUMENTS: &[FileSignature] =
    &[(&[(0, b"%PDF-")], "a PDF document"), (&[(0, b"%!PS-Adobe-")], "a PostScript document")];

/// Those that are told so if there is a binary data byte too: a text may begin like some.
const SIGNATURES: &[FileSignature] = &[
    (&[(0, b"\x00\x00\x01\x00")], "an icon"),
    (&[(0, b"\x00\x00\x02\x00")], "a cursor"),
    (&[(0, b"BM"), (6, b"\0\0\0\0")], "a BMP image"),
    (&[(0, b"GIF87a")], "a GIF image"),
    (&[(0, b"GIF89a")], "a GIF image"),
    (&[(0, b"RIFF"), (8, b"WEBPVP")], "a WebP image"),
    (&[(0, b"\x89PNG\r\n\x1A\n")], "a PNG image"),
    (&[(0, b"\xFF\xD8\xFF")], "a JPEG image"),
    (&[(0, b"II*\0")], "a TIFF image"),
    (&[(0, b"MM\0*")], "a TIFF image"),
    (&[(0, b"\0\0\0\x0CJXL ")], "a JPEG XL image"),
    (&[(0, b"FORM"), (8, b"AIFF")], "AIFF audio"),
    (&[(0, b"ID3")], "MP3 audio"),
    (&[(0, b"OggS\0")], "Ogg audio or video"),
    (&[(0, b"MThd\0\0\0\x06")], "MIDI audio"),
    (&[(0, b"RIFF"), (8, b"AVI ")], "AVI video"),
    (&[(0, b"RIFF"), (8, b"WAVE")], "WAVE audio"),
    (&[(0, b"fLaC\0")], "FLAC audio"),
    (&[(0, b".snd\0")], "AU audio"),
    (&[(0, b"\0\0\0"), (4, b"ftyp")], "MP4 video or an AVIF image"),
    (&[(0, b"\x1A\x45\xDF\xA3")], "WebM video"),
    (&[(0, b"FLV\x01")], "Flash video"),
    (&[(0, b"\0\x01\0\0")], "a font"),
    (&[(0, b"OTTO\0")], "a font"),
    (&[(0, b"ttcf\0")], "a font"),
    (&[(0, b"wOFF")], "a font"),
    (&[(0, b"wOF2")], "a font"),
    (&[(0, b"\x1F\x8B\x08")], "a gzip archive"),
    (&[(0, b"PK\x03\x04")], "a ZIP archive"),
    (&[(0, b"PK\x05\x06")], "a ZIP archive"),
    (&[(0, b"Rar!\x1A\x07")], "a RAR archive"),
    (&[(0, b"7z\xBC\xAF\x27\x1C")], "a 7z archive"),
    (&[(0, b"\xFD7zXZ\0")], "an xz archive"),
    (&[(0, b"BZh"), (4, b"1AY&SY")], "a bzip2 archive"),
    (&[(0, b"\x28\xB5\x2F\xFD")], "a zstd archive"),
    (&[(0, b"\x1F\x9D")], "a compressed file"),
    (&[(257, b"ustar")], "a tar archive"),
    (&[(0, b"!<arch>\n")], "an ar archive"),
    (&[(0, b"\x7FELF")], "a program"),
    (&[(0, b"MZ"), (3, b"\0")], "a program"),
    (&[(0, b"\xCA\xFE\xBA\xBE")], "a program"),
    (&[(0, b"\0asm")], "a program"),
    (&[(0, b"SQLite format 3\0")], "a database"),
    (&[(0, b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")], "an Office document"),
];

/// Returns what a body is if it is no text; none if it is, or is empty.
#[must_use]
pub fn binary(bytes: &[u8], content_type: Option<&str>) -> Option<&'static str> {
    binary_in(bytes, charset::decode(bytes, content_type, None).1.name)
}

/// Does the same for a body whose character encoding is known.
pub(super) fn binary_in(bytes: &[u8], charset: &str) -> Option<&'static str> {
    if let Some(name) = named(DOCUMENTS, bytes.trim_ascii_start()) {
        return Some(name);
    }
    // Zeros are no sign of binary data there.
    if let Some(wide) = [UTF_16BE, UTF_16LE].into_iter().find(|wide| wide.name() == charset) {
        return is_odd(wide, bytes).then_some("binary data");
    }
    let bytes = &bytes[..bytes.len().min(COUNTED_BYTES)];
    let header = &bytes[..bytes.len().min(HEADER_BYTES)];
    let in_header = count(header);
    let in_all = in_header + count(&bytes[header.len()..]);
    if in_header > 0
        && let Some(name) = named(SIGNATURES, bytes)
    {
        return Some(name);
    }
    let too_many = |found: usize, of: usize, per: usize| found > STRAY_MAX && found * per > of;
    let is_binary = if begins_like_markup(bytes) {
        too_many(in_all, bytes.len(), MARKUP_BYTES_PER_BINARY)
    } else {
        too_many(in_header, header.len(), TEXT_BYTES_PER_BINARY)
            || too_many(in_all, bytes.len(), TEXT_BYTES_PER_BINARY)
    };
    is_binary.then_some("binary data")
}

fn named(signatures: &[FileSignature], bytes: &[u8]) -> Option<&'static str> {
    let has = |mark: &MagicBytes| bytes.get(mark.0..).is_some_and(|rest| rest.starts_with(mark.1));
    signatures.iter().find(|(marks, _)| marks.iter().all(has)).map(|(_, name)| *name)
}

/// Binary data bytes are control codes that are neither white space nor the escape by which
/// ISO-2022-JP changes its sets.
pub(super) fn count(bytes: &[u8]) -> usize {
    let is_binary = |byte: &u8| matches!(byte, 0..=8 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F);
    // Counts of a byte each, so that the compiler makes vector code of it.
    let parts = bytes.chunks(usize::from(u8::MAX));
    let counts = parts.map(|part| part.iter().map(|byte| u8::from(is_binary(byte))).sum::<u8>());
    counts.map(usize::from).sum()
}

fn begins_like_markup(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii_start();
    matches!(bytes, [b'<', next, ..] if next.is_ascii_alphabetic() || matches!(next, b'!' | b'?'))
}

/// Tells whether too many characters are none that anybody writes.
fn is_odd(encoding: &'static Encoding, bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(2 * HEADER_BYTES)];
    let mut text = String::with_capacity(bytes.len() * 2);
    // A character that the cut has halved is no fault.
    let mut decoder = encoding.new_decoder_with_bom_removal();
    let _ = decoder.decode_to_string(bytes, &mut text, false);
    let is_odd = |c: &char| {
        let control = c.is_control() && !c.is_ascii_whitespace() && *c != '\u{85}';
        let code = u32::from(*c);
        let nothing = code & 0xFFFE == 0xFFFE || matches!(code, 0xFDD0..=0xFDEF);
        control || nothing || matches!(*c, '\u{FFFD}' | '\u{E000}'..='\u{F8FF}')
    };
    let (all, odd) = (text.chars().count(), text.chars().filter(is_odd).count());
    odd > STRAY_MAX && odd * WIDE_CHARS_PER_ODD > all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_codes_are_counted_however_many_there_are() {
        let all: Vec<u8> = (0..=255).cycle().take(256 * 40).collect();
        // All below 0x20 but for tab, line feed, form feed, carriage return and escape.
        assert_eq!(count(&all), 27 * 40);
        assert_eq!((count(&[1; 1000]), count(&[b'\n'; 1000]), count(b"")), (1000, 0, 0));
    }
}
