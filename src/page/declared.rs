//! The character encoding that a header or the start of a page declares.

use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use memchr::memmem;

/// Bytes in which a declaration is looked for. Crawled pages often have it past the 1,024 bytes
/// in which browsers look.
const DECLARATION_BYTES: usize = 16 << 10;

/// Elements whose content is no markup: what a script writes is no declaration of this page.
const RAW: [&str; 6] = ["script", "style", "textarea", "title", "xmp", "noembed"];

/// The encoding that a `Content-Type` header names.
pub(super) fn by_header(content_type: &str) -> Option<&'static Encoding> {
    known(parameter(content_type)?)
}

/// The encoding that the start of a page names: `<?xml encoding=`, or a `<meta>`.
///
/// Source: <https://html.spec.whatwg.org/#prescan-a-byte-stream-to-determine-its-encoding>, but
/// further down the page, and not within scripts.
pub(super) fn by_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(DECLARATION_BYTES)];
    let small = start.to_ascii_lowercase();
    let has = |word: &[u8]| memmem::find(&small, word).is_some();
    if !has(b"charset") && !has(b"<?xml") {
        return None;
    }
    // Every declaration is ASCII; one byte a character keeps the positions.
    let text = WINDOWS_1252.decode_without_bom_handling(start).0;
    let lower = text.to_ascii_lowercase();
    by_xml(&lower).or_else(|| by_meta(&lower)).map(|encoding| {
        // A declaration that can be read as ASCII is not in UTF-16; browsers read UTF-8 then.
        if encoding == UTF_16BE || encoding == UTF_16LE { UTF_8 } else { encoding }
    })
}

/// An encoding by its label. Those that browsers refuse (HZ, ISO-2022-KR) would read as nothing.
fn known(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label(label.trim().as_bytes()).filter(|encoding| *encoding != REPLACEMENT)
}

/// The value of `charset=` in a header or a `content` attribute, quotes taken off.
fn parameter(value: &str) -> Option<&str> {
    let lower = value.to_ascii_lowercase();
    for (at, word) in lower.match_indices("charset") {
        let rest = value[at + word.len()..].trim_start();
        let Some(rest) = rest.strip_prefix('=').map(str::trim_start) else { continue };
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let rest = rest.trim_start_matches(['"', '\'']);
        let end = rest.find(|c: char| match quote {
            Some(quote) => c == quote,
            None => c.is_ascii_whitespace() || matches!(c, ';' | ',' | '"' | '\''),
        });
        return Some(&rest[..end.unwrap_or(rest.len())]);
    }
    None
}

fn by_xml(lower: &str) -> Option<&'static Encoding> {
    let rest = lower.trim_start().strip_prefix("<?xml")?;
    let line = &rest[..rest.find('>')?];
    let value = line.split("encoding").nth(1)?.trim_start().strip_prefix('=')?.trim_start();
    let value = value.strip_prefix(['"', '\''])?;
    known(value.split(['"', '\'']).next()?)
}

fn by_meta(lower: &str) -> Option<&'static Encoding> {
    let mut rest = lower;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let name = &rest[..end];
        if name.is_empty() {
            continue;
        }
        let attributes;
        (attributes, rest) = self::attributes(&rest[end..]);
        if name == "meta" {
            if let Some(encoding) = of_meta(&attributes) {
                return Some(encoding);
            }
        } else if RAW.contains(&name) {
            let close = rest.match_indices("</").find(|(at, _)| rest[at + 2..].starts_with(name));
            rest = close.map_or("", |(at, _)| &rest[at + 2..]);
        }
    }
    None
}

/// `charset`, or `content` if the element stands for a `Content-Type` header.
fn of_meta(attributes: &[(&str, &str)]) -> Option<&'static Encoding> {
    let value = |name: &str| attributes.iter().find(|(other, _)| *other == name).map(|(_, v)| *v);
    if let Some(encoding) = value("charset").and_then(known) {
        return Some(encoding);
    }
    let content = value("content")?;
    // `name` for `http-equiv` is a common mistake, and means nothing else.
    let is_type = |name: &str| value(name).is_some_and(|it| it.trim() == "content-type");
    if is_type("http-equiv") || is_type("name") { known(parameter(content)?) } else { None }
}

/// Reads attributes up to the end of the tag, and returns what comes after it.
fn attributes(text: &str) -> (Vec<(&str, &str)>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            return (found, rest);
        }
        if let Some(after) = rest.strip_prefix('>') {
            return (found, after);
        }
        let is_end = |c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>' | '=');
        // A name may begin with an equals sign.
        let mut end = rest.char_indices().skip(1).filter(|(_, c)| is_end(*c));
        let end = end.next().map_or(rest.len(), |(at, _)| at);
        let name = &rest[..end];
        rest = rest[end..].trim_start();
        let mut value = "";
        if let Some(after) = rest.strip_prefix('=') {
            rest = after.trim_start();
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            if let Some(quote) = quote {
                (value, rest) = rest[1..].split_once(quote).unwrap_or((&rest[1..], ""));
            } else {
                let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '>');
                (value, rest) = rest.split_at(end.unwrap_or(rest.len()));
            }
        }
        found.push((name, value));
    }
}
