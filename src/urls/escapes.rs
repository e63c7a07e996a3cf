//! Percent-escapes in their normal form.

use std::borrow::Cow;
use std::fmt::Write as _;

use encoding_rs::{EncoderResult, Encoding};

/// Escapes bytes beyond ASCII as they are, whatever encoding they are in.
///
/// ```
/// assert_eq!(uniqcrawl::urls::escaped(b"/caf\xE9%20x"), "/caf%E9%20x");
/// ```
#[must_use]
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            0x80.. => write!(out, "%{byte:02X}").expect("writing to a string cannot fail"),
            _ => out.push(char::from(*byte)),
        }
    }
    out
}

/// Writes a query in an encoding. A character that the encoding does not have becomes its number,
/// as in `&#9731;`, and that is escaped, so that it is no separator.
///
/// Source: <https://url.spec.whatwg.org/#string-percent-encode-after-encoding>.
pub(super) fn encoded<'a>(text: &'a str, encoding: &'static Encoding) -> Cow<'a, [u8]> {
    let (bytes, _, has_others) = encoding.encode(text);
    if !has_others {
        return bytes;
    }
    let mut encoder = encoding.new_encoder();
    let (mut out, mut rest) = (Vec::new(), text);
    loop {
        let room = encoder.max_buffer_length_from_utf8_without_replacement(rest.len());
        out.reserve(room.unwrap_or_default());
        let (result, read) =
            encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut out, true);
        rest = &rest[read..];
        match result {
            EncoderResult::Unmappable(other) => {
                out.extend_from_slice(format!("%26%23{}%3B", u32::from(other)).as_bytes());
            }
            EncoderResult::OutputFull => {}
            EncoderResult::InputEmpty => return Cow::Owned(out),
        }
    }
}

/// Decodes percent-escapes of unreserved characters and writes all others in upper case.
///
/// An escape stays where its character would complete another one, as in `%%37E`: decoding that
/// would make a URL of another meaning, and not the same again the next time.
///
/// Source: RFC 3986, 6.2.2.1 and 6.2.2.2.
pub(super) fn normal_escapes(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    // End of the last `%` in `out` that starts no escape.
    let mut bare = None;
    let mut at = 0;
    while at < bytes.len() {
        let escape = if bytes[at] == b'%' { escaped_byte(&bytes[at + 1..]) } else { None };
        match escape {
            Some(byte) if is_unreserved(byte) && bare.is_none_or(|end| out.len() >= end + 2) => {
                out.push(char::from(byte));
                at += 3;
            }
            Some(byte) => {
                write!(out, "%{byte:02X}").expect("writing to a string cannot fail");
                at += 3;
            }
            None => {
                let rest = &text[at..];
                let next = rest.chars().next().expect("`at` is a boundary before the end");
                out.push(next);
                at += next.len_utf8();
                if next == '%' {
                    bare = Some(out.len());
                }
            }
        }
    }
    out
}

/// Returns how often a text was escaped over and over at its worst place: 1 for `%25`, 2 for
/// `%2525`, and so on; the same for `amp;amp;`.
pub(super) fn nesting(text: &str) -> usize {
    let run = |rest: &str, piece: &str| {
        let pieces = rest.as_bytes().chunks_exact(piece.len());
        pieces.take_while(|part| part.eq_ignore_ascii_case(piece.as_bytes())).count()
    };
    let percent = text.match_indices('%').map(|(at, _)| run(&text[at + 1..], "25"));
    let mut deepest = percent.max().unwrap_or(0);
    for piece in ["amp;", "amp%3B"] {
        let marks = text.match_indices('&').map(|(at, _)| run(&text[at + 1..], piece));
        deepest = deepest.max(marks.max().unwrap_or(0));
    }
    deepest
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn escaped_byte(after_percent: &[u8]) -> Option<u8> {
    let high = char::from(*after_percent.first()?).to_digit(16)?;
    let low = char::from(*after_percent.get(1)?).to_digit(16)?;
    u8::try_from(high * 16 + low).ok()
}
