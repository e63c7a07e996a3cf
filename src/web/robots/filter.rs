//! Makes of the bytes of a file what the lexer can be trusted with: ASCII, line feeds, short lines.

use encoding_rs::{UTF_16BE, UTF_16LE};

use crate::urls::escaped;

use super::Options;

/// Bytes of a line that count; the rest of it is passed over.
///
/// Source: Google's parser, eight times the longest URL that a browser takes.
const LINE_BYTES_MAX: usize = 2083 * 8 - 1;

/// Keys that RFC 9309 and usage know, without Google's misspellings.
const KEYS: [&str; 5] = ["user-agent", "allow", "disallow", "sitemap", "crawl-delay"];

/// Returns the file in the form that the lexer gets. Lines keep their numbers.
pub(super) fn filtered(body: &[u8], options: Options) -> String {
    // The byte after the last one that is read tells whether a line ends there.
    let (body, is_cut) = body.get(..=options.bytes_max).map_or((body, false), |cut| (cut, true));
    let utf16 = match body {
        [0xFF, 0xFE, rest @ ..] if is_utf16(rest, 1) => Some((UTF_16LE, rest)),
        [0xFE, 0xFF, rest @ ..] if is_utf16(rest, 0) => Some((UTF_16BE, rest)),
        _ => None,
    };
    let utf16 = utf16.map(|(encoding, rest)| encoding.decode_without_bom_handling(rest).0);
    let body = utf16.as_deref().map_or(body, str::as_bytes);
    let body = skip_mark(if is_cut { whole_lines(body) } else { body });
    let mut text = String::with_capacity(body.len() + body.len() / 16);
    let mut rest = body;
    while !rest.is_empty() {
        let end = rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        push_line(&mut text, line, options);
        rest = match after {
            [b'\r', b'\n', after @ ..] | [_, after @ ..] => after,
            [] => after,
        };
    }
    text
}

/// Tells whether a mark of UTF-16 is true: rules and line ends are ASCII, of which each high byte
/// is zero there. In a plain file pairs of ASCII bytes stand in their place.
fn is_utf16(rest: &[u8], high: usize) -> bool {
    let count = |fits: fn(u8, u8) -> bool| {
        rest.chunks_exact(2).filter(|pair| fits(pair[high], pair[1 - high])).count()
    };
    let ascii = count(|high, low| high == 0 && low != 0);
    // Two of them are a rare character, or a common one of Chinese: a third of a text at most.
    let plain = count(|high, low| (1..0x80).contains(&high) && (1..0x80).contains(&low));
    ascii * 4 > plain
}

/// Skips a byte order mark, or the part of one.
fn skip_mark(body: &[u8]) -> &[u8] {
    if let [0xFF, 0xFE, rest @ ..] | [0xFE, 0xFF, rest @ ..] = body {
        return rest;
    }
    let marks = body.iter().zip([0xEF, 0xBB, 0xBF]).take_while(|(byte, mark)| **byte == *mark);
    &body[marks.count()..]
}

/// Leaves out what follows the last end of a line, so that half a pattern is never used.
fn whole_lines(body: &[u8]) -> &[u8] {
    let end = body.iter().rposition(|b| matches!(b, b'\n' | b'\r'));
    &body[..end.unwrap_or(0)]
}

fn push_line(text: &mut String, line: &[u8], options: Options) {
    let line = &line[..line.len().min(LINE_BYTES_MAX)];
    let line = line.split(|byte| matches!(byte, b'#' | 0)).next().unwrap_or_default();
    // The lexer takes a blank at the start for the one that may stand for a missing colon.
    let start = line.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != 0x0B);
    let line = &line[start.unwrap_or(line.len())..];
    if options.google_extras || has_known_key(line) {
        text.push_str(&escaped(line));
    }
    text.push('\n');
}

fn has_known_key(line: &[u8]) -> bool {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return false };
    let key = line[..colon].trim_ascii();
    KEYS.iter().any(|known| key.eq_ignore_ascii_case(known.as_bytes()))
}
