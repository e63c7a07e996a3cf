//! From bytes to text: which character encoding, and how we know.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes in which a declaration is looked for. Crawled pages often have it past the 1,024 bytes
/// in which browsers look.
const DECLARATION_BYTES: usize = 16 << 10;

/// Bytes on which the statistics are made.
const DETECTION_BYTES: usize = 256 << 10;

/// A declared encoding is believed if fewer characters than one in this many cannot be decoded.
const BELIEVED: usize = 1000;

/// How an encoding was found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharsetSource {
    /// A byte order mark.
    Bom,
    /// The bytes are valid UTF-8, which no other text of any length is by chance.
    Utf8,
    /// The HTTP header.
    Header,
    /// A declaration in the page.
    Declaration,
    /// Statistics of the bytes.
    Detected,
}

/// An encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charset {
    /// Its name in the WHATWG encoding standard.
    pub name: &'static str,
    /// How it was found out.
    pub source: CharsetSource,
    /// Characters that could not be decoded.
    pub replacements: usize,
}

/// Decodes a page: byte order mark, valid UTF-8, header, declaration, statistics.
///
/// UTF-8 goes before the header, which browsers do not do: servers send a default header with
/// pages in UTF-8, and never the other way round. `tld` helps the statistics.
///
/// Source: <https://encoding.spec.whatwg.org/>; labels such as `gb2312` mean what they mean there.
#[must_use]
pub fn decode<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
    tld: Option<&str>,
) -> (Cow<'a, str>, Charset) {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return finish(encoding, &bytes[mark..], CharsetSource::Bom);
    }
    let is_ascii = bytes.is_ascii();
    // ISO-2022-JP is ASCII to the eye: only its escapes tell.
    if is_ascii && !bytes.contains(&0x1B) || !is_ascii && is_utf8(bytes) {
        return finish(UTF_8, bytes, CharsetSource::Utf8);
    }
    let header = content_type.and_then(charset_parameter).and_then(label);
    let declared = declaration(&bytes[..bytes.len().min(DECLARATION_BYTES)]);
    let candidates = [(header, CharsetSource::Header), (declared, CharsetSource::Declaration)];
    for (encoding, source) in candidates {
        // A page that declares UTF-8 and is not would have been valid above.
        let Some(encoding) = encoding.filter(|encoding| *encoding != UTF_8) else { continue };
        let (text, charset) = finish(encoding, bytes, source);
        if charset.replacements * BELIEVED <= bytes.len() {
            return (text, charset);
        }
    }
    let encoding = utf16(bytes).unwrap_or_else(|| detect(bytes, tld));
    finish(encoding, bytes, CharsetSource::Detected)
}

/// Valid UTF-8, but for a character cut in half at the end.
fn is_utf8(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() || mostly_utf8(bytes),
    }
}

/// A page in UTF-8 with a few broken bytes, as truncated quotes in listings leave them: at least
/// a hundred good characters for each broken one.
fn mostly_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    good > bad * 100
}

/// UTF-16 without a mark: in every text of markup, every other byte is zero.
fn utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = &bytes[..bytes.len().min(512)];
    let zeros =
        |first: usize| sample.iter().skip(first).step_by(2).filter(|byte| **byte == 0).count() * 5;
    let enough = sample.len() / 2 * 2;
    match (zeros(0), zeros(1)) {
        (even, odd) if even > enough && odd * 4 < even => Some(UTF_16BE),
        (even, odd) if odd > enough && even * 4 < odd => Some(UTF_16LE),
        _ => None,
    }
}

fn detect(bytes: &[u8], tld: Option<&str>) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    let sample = &bytes[..bytes.len().min(DETECTION_BYTES)];
    detector.feed(sample, sample.len() == bytes.len());
    let tld = tld.filter(|tld| tld.bytes().all(|byte| byte.is_ascii_lowercase()));
    let tld = tld.filter(|tld| !tld.is_empty()).map(str::as_bytes);
    detector.guess(tld, Utf8Detection::Allow)
}

fn finish<'a>(
    encoding: &'static Encoding,
    bytes: &'a [u8],
    source: CharsetSource,
) -> (Cow<'a, str>, Charset) {
    let (text, broken) = encoding.decode_without_bom_handling(bytes);
    let replacements = if broken { text.matches('\u{FFFD}').count() } else { 0 };
    (text, Charset { name: encoding.name(), source, replacements })
}

fn label(text: &str) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label(text.trim().as_bytes())?;
    // A page whose declaration we can read as ASCII is not in UTF-16; browsers read UTF-8 then.
    (encoding != UTF_16BE && encoding != UTF_16LE).then_some(encoding)
}

/// The value of `charset=` in a header or a `content` attribute, quotes taken off.
fn charset_parameter(value: &str) -> Option<&str> {
    let lower = value.to_ascii_lowercase();
    let at = lower.find("charset")?;
    let rest = value[at + "charset".len()..].trim_start();
    let rest = rest.strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let rest = rest.trim_start_matches(['"', '\'']);
    let end = rest.find(|c: char| match quote {
        Some(quote) => c == quote,
        None => c.is_ascii_whitespace() || matches!(c, ';' | ',' | '"' | '\'' | '>' | '/'),
    });
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// The encoding that the start of a page declares: `<?xml encoding=`, or `charset` in a `<meta>`.
fn declaration(start: &[u8]) -> Option<&'static Encoding> {
    // Every declaration is ASCII; one byte a character keeps the positions.
    let text = WINDOWS_1252.decode_without_bom_handling(start).0;
    let lower = text.to_ascii_lowercase();
    let xml = lower.trim_start().starts_with("<?xml").then(|| {
        let line = lower.split("?>").next().unwrap_or_default();
        let value = line.split("encoding").nth(1)?.trim_start().strip_prefix('=')?.trim_start();
        let value = value.trim_start_matches(['"', '\'']);
        label(value.split(['"', '\'']).next()?)
    });
    xml.flatten().or_else(|| meta(&lower))
}

fn meta(lower: &str) -> Option<&'static Encoding> {
    let mut rest = lower;
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        if rest.starts_with("<!--") {
            rest = rest.find("-->").map_or("", |end| &rest[end + 3..]);
        } else if rest.starts_with("<meta") {
            let end = rest.find('>').unwrap_or(rest.len());
            if let Some(encoding) = charset_parameter(&rest[..end]).and_then(label) {
                return Some(encoding);
            }
            rest = &rest[end..];
        } else {
            rest = &rest[1..];
        }
    }
    // ISO-2022-JP cannot be recognised by statistics once it is declared in a script only.
    lower.contains("charset=iso-2022-jp").then_some(ISO_2022_JP)
}
