//! Makes of the bytes of a file what the lexer can be trusted with: ASCII, line feeds, short lines.

use encoding_rs::{UTF_16BE, UTF_16LE};

use crate::urls::escaped;

use super::Options;

/// Bytes that are read. Source: RFC 9309, 2.5 asks for at least 500 KiB.
const BYTES_MAX: usize = 500 << 10;

/// Bytes of a line that count; the rest of it is passed over.
///
/// Source: Google's parser, eight times the longest address that a browser takes.
const LINE_BYTES_MAX: usize = 2083 * 8 - 1;

/// Keys that RFC 9309 and usage know, without Google's misspellings.
const KEYS: [&str; 5] = ["user-agent", "allow", "disallow", "sitemap", "crawl-delay"];

/// Returns the file in the form that the lexer gets. Lines keep their numbers.
pub(super) fn filtered(body: &[u8], options: Options) -> String {
    let utf16 = match body {
        [0xFF, 0xFE, rest @ ..] => Some(UTF_16LE.decode_without_bom_handling(rest).0),
        [0xFE, 0xFF, rest @ ..] => Some(UTF_16BE.decode_without_bom_handling(rest).0),
        _ => None,
    };
    let body = utf16.as_deref().map_or(body, str::as_bytes);
    let body = cut(skip_bom(body));
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

/// Skips a byte order mark, or the part of one.
fn skip_bom(body: &[u8]) -> &[u8] {
    let marks = body.iter().zip([0xEF, 0xBB, 0xBF]).take_while(|(byte, mark)| **byte == *mark);
    &body[marks.count()..]
}

/// Cuts a long file at the end of a line, so that half a pattern is never used.
fn cut(body: &[u8]) -> &[u8] {
    let Some(start) = body.get(..BYTES_MAX) else { return body };
    let end = start.iter().rposition(|b| matches!(b, b'\n' | b'\r'));
    &start[..end.unwrap_or(0)]
}

fn push_line(text: &mut String, line: &[u8], options: Options) {
    let line = &line[..line.len().min(LINE_BYTES_MAX)];
    let line = line.split(|byte| matches!(byte, b'#' | 0)).next().unwrap_or_default();
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
