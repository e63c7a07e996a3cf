//! The tags of a text of markup, one after another, without a tree.
//!
//! Source: the tokenizer of <https://html.spec.whatwg.org/#tokenization>, as far as it tells what
//! is a tag and what is comment, attribute or raw text.

use std::ops::Range;

use memchr::memchr;
use memchr::memmem::Finder;

use super::tags::is_read;

/// Attributes of one tag that are kept: a parser compares each with all before it.
const ATTRIBUTES_MAX: usize = 256;

/// A start or end tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawTag<'a> {
    /// Where its `<` is.
    pub start: usize,
    /// Where the text behind its `>` begins.
    pub end: usize,
    /// Its name as it is written.
    pub name: &'a str,
    /// It is an end tag.
    pub closing: bool,
    /// It ends in `/>`.
    pub self_closing: bool,
    /// Where the attributes end that are kept, if there are more.
    pub cut: Option<usize>,
}

/// Reads tags.
#[derive(Debug)]
pub(super) struct Tags<'a> {
    text: &'a str,
    at: usize,
    /// Comments between the last two tags, without their marks, and attributes of the last one,
    /// that nobody reads; in order.
    pub unread: Vec<Range<usize>>,
}

impl<'a> Tags<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, unread: Vec::new() }
    }

    /// Returns the next tag; none at the end, or if the text ends within a tag. `foreign` tells
    /// whether that is in SVG or `MathML`, where `CDATA` sections are.
    pub(super) fn next(&mut self, foreign: bool) -> Option<RawTag<'a>> {
        let bytes = self.text.as_bytes();
        self.unread.clear();
        loop {
            let start = self.at + memchr(b'<', &bytes[self.at..])?;
            let rest = &self.text[start + 1..];
            let closing = rest.starts_with('/');
            let name_at = start + 1 + usize::from(closing);
            self.at = match bytes.get(name_at) {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    let tag = self.tag(start, name_at, closing)?;
                    self.at = tag.end;
                    return Some(tag);
                }
                Some(_) if closing => self.behind(name_at, ">"),
                Some(b'!') if rest.starts_with("!--") => self.comment(start + 4),
                Some(b'!') if foreign && rest.starts_with("![CDATA[") => {
                    self.behind(start + 9, "]]>")
                }
                Some(b'!' | b'?') => self.behind(start + 1, ">"),
                _ => start + 1,
            };
        }
    }

    /// Goes over the content of a raw element, up to its end tag, which is gone over too. Returns
    /// where the content is, if it ends.
    pub(super) fn skip_raw(&mut self, name: &str) -> Option<Range<usize>> {
        if name.eq_ignore_ascii_case("plaintext") {
            self.at = self.text.len();
            return None;
        }
        let script = name.eq_ignore_ascii_case("script");
        let bytes = self.text.as_bytes();
        let is = |at: usize, word: &[u8]| {
            bytes.get(at..at + word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word))
                && bytes
                    .get(at + word.len())
                    .is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'))
        };
        // A script that stands in a comment of a script may hold a script of its own.
        let (mut escaped, mut doubly) = (false, false);
        let mut at = self.at;
        while let Some(found) = memchr(b'<', &bytes[at..]) {
            if escaped && self.text[at..at + found].contains("-->") {
                (escaped, doubly) = (false, false);
            }
            at += found;
            if bytes[at..].starts_with(b"</") && is(at + 2, name.as_bytes()) {
                if !doubly {
                    let content = self.at..at;
                    self.at = self.tag(at, at + 2, true).map_or(bytes.len(), |tag| tag.end);
                    return Some(content);
                }
                doubly = false;
            } else if script && bytes[at..].starts_with(b"<!--") {
                // The dashes may be those of the end as well.
                escaped = true;
            } else if escaped && is(at + 1, b"script") {
                doubly = true;
            }
            at += 1;
        }
        self.at = bytes.len();
        None
    }

    /// Where the text behind the first `end` from `from` on begins.
    fn behind(&self, from: usize, end: &str) -> usize {
        let found = self.text.get(from..).and_then(|rest| rest.find(end));
        found.map_or(self.text.len(), |found| from + found + end.len())
    }

    /// Where the text behind a comment begins whose content starts at `from`.
    fn comment(&mut self, from: usize) -> usize {
        let rest = &self.text[from..];
        for empty in [">", "->"] {
            if rest.starts_with(empty) {
                return from + empty.len();
            }
        }
        let dashes = Finder::new("--");
        let mut at = from;
        while let Some(found) = dashes.find(&self.text.as_bytes()[at..]) {
            let end = &self.text[at + found + 2..];
            if end.starts_with('>') || end.starts_with("!>") {
                self.unread.push(from..at + found);
                return at + found + 2 + end.find('>').unwrap_or(0) + 1;
            }
            at += found + 1;
        }
        self.text.len()
    }

    fn tag(&mut self, start: usize, name_at: usize, closing: bool) -> Option<RawTag<'a>> {
        let bytes = self.text.as_bytes();
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
        let mut at = name_at + bytes[name_at..].iter().position(is_end)?;
        let name = &self.text[name_at..at];
        let (mut attributes, mut cut, mut slash) = (0, None, false);
        loop {
            match bytes.get(at)? {
                b'>' => {
                    let end = at + 1;
                    return Some(RawTag { start, end, name, closing, self_closing: slash, cut });
                }
                b'/' => slash = true,
                byte if byte.is_ascii_whitespace() => {}
                _ => {
                    if attributes == ATTRIBUTES_MAX && cut.is_none() {
                        cut = Some(at);
                    }
                    attributes += 1;
                    slash = false;
                    let (end, read) = attribute(bytes, at)?;
                    // Without what follows it, a slash may end the tag.
                    if !read && bytes[at - 1] != b'/' {
                        self.unread.push(at..end);
                    }
                    at = end;
                    continue;
                }
            }
            at += 1;
        }
    }
}

/// Where the text behind an attribute begins that starts at `at`, and whether anybody reads it.
fn attribute(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let ends_name = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'=');
    // A name may begin with an equals sign.
    let end = at + 1 + bytes[at + 1..].iter().position(ends_name)?;
    let name = &bytes[at..end];
    let blanks = |at: usize| bytes[at..].iter().position(|byte| !byte.is_ascii_whitespace());
    let value = end + blanks(end)?;
    if bytes[value] != b'=' {
        return Some((end, is_read(name, b"")));
    }
    let value = value + 1;
    let value = value + blanks(value)?;
    let (from, to, end) = match bytes[value] {
        quote @ (b'"' | b'\'') => {
            let to = value + 1 + memchr(quote, &bytes[value + 1..])?;
            (value + 1, to, to + 1)
        }
        b'>' => (value, value, value),
        _ => {
            let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'>';
            let to = value + bytes[value..].iter().position(ends)?;
            (value, to, to)
        }
    };
    Some((end, is_read(name, &bytes[from..to])))
}
