//! A reader of JSON-LD that forgives what pages get wrong: comments around it, control characters
//! and unescaped quotes in texts, trailing commas, a missing end. Fields that nobody asks for
//! are skipped without being stored. Bounded in depth, in values and in bytes.

use std::borrow::Cow;

/// Bytes of one block that are read.
const BYTES_MAX: usize = 512 << 10;

/// Levels that are read; deeper values are skipped.
const DEPTH_MAX: usize = 16;

/// Values that are kept of one block.
const VALUES_MAX: usize = 4_000;

/// Fields that are kept.
const KEPT: [&str; 28] = [
    "@graph",
    "@id",
    "@type",
    "alternateName",
    "articleSection",
    "author",
    "authors",
    "contentUrl",
    "copyrightHolder",
    "creator",
    "dateCreated",
    "dateModified",
    "datePublished",
    "description",
    "familyName",
    "givenName",
    "headline",
    "height",
    "image",
    "isPartOf",
    "keywords",
    "license",
    "mainEntity",
    "name",
    "publisher",
    "uploadDate",
    "url",
    "width",
];

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    List(Vec<Value<'a>>),
    Object(Vec<(&'static str, Value<'a>)>),
    /// `null`, or what was skipped.
    Nothing,
}

impl Value<'_> {
    /// Returns a field of an object.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields.iter().find(|(name, _)| *name == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Returns the text, of a list that of its first value.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            Self::List(values) => values.first().and_then(Self::text),
            _ => None,
        }
    }

    /// Returns the values of a list; any other value is a list of itself.
    pub(super) fn all(&self) -> &[Self] {
        match self {
            Self::List(values) => values,
            Self::Nothing => &[],
            other => std::slice::from_ref(other),
        }
    }
}

/// Reads a block. Never fails: what cannot be read is left out.
pub(super) fn read(text: &str) -> Value<'_> {
    let text = &text[..text.floor_char_boundary(BYTES_MAX)];
    let wrapped = text.find("<![CDATA[").map_or(0, |at| at + "<![CDATA[".len());
    let first = text.find('{').unwrap_or(text.len());
    // A mark of CDATA after the first brace is in a text.
    let from = if wrapped <= first { wrapped } else { 0 };
    let start = text[from..].find(['{', '[']).map_or(text.len(), |at| from + at);
    let mut reader = JsonReader { text, bytes: text.as_bytes(), at: start, values: 0 };
    reader.value(0)
}

struct JsonReader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    values: usize,
}

impl<'a> JsonReader<'a> {
    fn space(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !byte.is_ascii_whitespace() {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn value(&mut self, depth: usize) -> Value<'a> {
        self.values += 1;
        let Some(byte) = self.space() else { return Value::Nothing };
        if depth >= DEPTH_MAX || self.values > VALUES_MAX {
            self.skip();
            return Value::Nothing;
        }
        match byte {
            b'{' => self.object(depth),
            b'[' => self.list(depth),
            b'"' => Value::Text(self.string()),
            _ => {
                let start = self.at;
                self.skip();
                match self.text.get(start..self.at).unwrap_or_default().trim() {
                    "null" | "" => Value::Nothing,
                    scalar => Value::Text(Cow::Borrowed(scalar)),
                }
            }
        }
    }

    fn list(&mut self, depth: usize) -> Value<'a> {
        let mut values = Vec::new();
        self.at += 1;
        while let Some(byte) = self.space() {
            match byte {
                b']' | b'}' => {
                    self.at += 1;
                    break;
                }
                b',' => self.at += 1,
                _ => {
                    let before = self.at;
                    let value = self.value(depth + 1);
                    if value != Value::Nothing {
                        values.push(value);
                    }
                    self.at = self.at.max(before + 1);
                }
            }
        }
        Value::List(values)
    }

    fn object(&mut self, depth: usize) -> Value<'a> {
        let mut fields: Vec<(&'static str, Value<'a>)> = Vec::new();
        self.at += 1;
        while let Some(byte) = self.space() {
            match byte {
                b'}' | b']' => {
                    self.at += 1;
                    break;
                }
                b'"' => {
                    let key = self.string();
                    if self.space() != Some(b':') {
                        continue;
                    }
                    self.at += 1;
                    let kept = KEPT.binary_search(&&*key).ok().map(|at| KEPT[at]);
                    let kept = kept.filter(|key| fields.iter().all(|(name, _)| name != key));
                    match kept {
                        Some(key) => {
                            let value = self.value(depth + 1);
                            fields.push((key, value));
                        }
                        None => self.skip(),
                    }
                }
                _ => self.at += 1,
            }
        }
        Value::Object(fields)
    }

    /// Skips a value of any depth.
    fn skip(&mut self) {
        let mut depth = 0usize;
        while let Some(byte) = self.space() {
            match byte {
                b'"' => {
                    self.end_of_string();
                    if depth == 0 {
                        return;
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth <= 1 => {
                    // A closing mark that is not ours is left to whom it belongs.
                    self.at += depth;
                    return;
                }
                b'}' | b']' => depth -= 1,
                b',' if depth == 0 => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Moves past a string and returns where its content ends.
    fn end_of_string(&mut self) -> usize {
        self.at += 1;
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'"' if self.is_end() => {
                    self.at += 1;
                    return self.at - 1;
                }
                _ => self.at += 1,
            }
        }
        self.at = self.bytes.len();
        self.at
    }

    /// A quote ends a text if what follows can follow a text; else it was not escaped.
    fn is_end(&self) -> bool {
        let rest = &self.bytes[self.at + 1..];
        let next = rest.iter().take(64).find(|byte| !byte.is_ascii_whitespace());
        matches!(next, None | Some(b',' | b'}' | b']' | b':'))
    }

    fn string(&mut self) -> Cow<'a, str> {
        let start = self.at + 1;
        let end = self.end_of_string();
        let raw = self.text.get(start..end.max(start)).unwrap_or_default();
        if raw.contains('\\') { Cow::Owned(unescaped(raw)) } else { Cow::Borrowed(raw) }
    }
}

fn unescaped(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n' | 'r' | 't' | 'f' | 'b') => out.push(' '),
            Some('u') => {
                let Some(mut unit) = unit(&mut chars) else { continue };
                let mut rest = chars.clone();
                // A pair of surrogates is one character.
                if (0xD800..0xDC00).contains(&unit)
                    && rest.next() == Some('\\')
                    && rest.next() == Some('u')
                    && let Some(low) = self::unit(&mut rest)
                    && (0xDC00..0xE000).contains(&low)
                {
                    unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                    chars = rest;
                }
                out.extend(char::from_u32(unit));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

fn unit(chars: &mut std::str::Chars<'_>) -> Option<u32> {
    let digits: String = chars.clone().take(4).collect();
    let unit = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4)?;
    *chars = {
        let mut rest = chars.clone();
        rest.nth(3);
        rest
    };
    Some(unit)
}
