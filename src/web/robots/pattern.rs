//! Patterns of paths with `*` and `$`, matched in linear time.

use std::fmt::Write as _;

/// A compiled path pattern. `*` stands for any characters, `$` at the end for the end of the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPattern {
    text: String,
    /// The pattern ends in `$`.
    anchored: bool,
}

impl PathPattern {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), anchored: text.ends_with('$') }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Tells whether the pattern matches the start of `path`, or all of it if it ends in `$`.
    ///
    /// Each piece between stars is looked for once, after the end of the one before it. Taking the
    /// first place for each leaves most room for the others, so that no other choice can succeed
    /// where this one fails.
    pub(super) fn matches(&self, path: &str) -> bool {
        let text = if self.anchored { &self.text[..self.text.len() - 1] } else { &self.text };
        let Some((first, rest)) = text.split_once('*') else {
            return if self.anchored { path == text } else { path.starts_with(text) };
        };
        let Some(mut path) = path.strip_prefix(first) else { return false };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        for piece in middle.split('*').filter(|piece| !piece.is_empty()) {
            match path.find(piece) {
                Some(at) => path = &path[at + piece.len()..],
                None => return false,
            }
        }
        if self.anchored { path.ends_with(last) } else { path.contains(last) }
    }
}

/// Decodes escapes of unreserved characters and writes all others in upper case, so that pattern
/// and path are compared in one form. Source: RFC 9309, 2.2.2.
pub(super) fn normal_form(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(percent) = rest.find('%') {
        out.push_str(&rest[..percent]);
        let hex = rest.get(percent + 1..percent + 3);
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                out.push(char::from(byte));
            }
            Some(byte) => write!(out, "%{byte:02X}").expect("writing to a string cannot fail"),
            None => out.push('%'),
        }
        rest = &rest[percent + if byte.is_some() { 3 } else { 1 }..];
    }
    out.push_str(rest);
    out
}

/// Returns the path, parameters and query of a URL that may have scheme and host or not.
///
/// Source: the behaviour of Google's parser.
pub(super) fn path_of(url: &str) -> String {
    let start = if url.starts_with("//") { 2 } else { 0 };
    let find = |from: usize| url[from..].find(['/', '?', ';']).map(|at| from + at);
    let early = find(start);
    let scheme = url[start..].find("://").map(|at| start + at);
    let after = match (scheme, early) {
        (Some(scheme), Some(early)) if early < scheme => start,
        (Some(scheme), _) => scheme + 3,
        (None, _) => start,
    };
    let Some(path) = find(after) else { return "/".to_owned() };
    let end = match url[start..].find('#').map(|at| start + at) {
        Some(hash) if hash < path => return "/".to_owned(),
        Some(hash) => hash,
        None => url.len(),
    };
    let path = &url[path..end];
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}
