//! A line of JSON as a document.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Fault;
use super::fields::{Field, Fields, Values};

/// Bytes of what is said of a bad line.
const DETAIL_BYTES_MAX: usize = 200;

/// A document as it stands in a line of JSON. Other fields are allowed and ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record<'a> {
    /// Identifier: a string or a number; without one, the number of the line.
    id: Id,
    /// Title.
    pub title: Cow<'a, str>,
    /// Address: pages of one host may share boilerplate.
    pub url: Cow<'a, str>,
    /// Main text.
    pub text: Cow<'a, str>,
    /// Language (ISO 639-1).
    pub language: Cow<'a, str>,
    /// When it was published, as it is written.
    pub date: Cow<'a, str>,
    /// The most popular copy is kept. In thousandths of the number that stands in the line.
    pub popularity: u64,
    /// The line says how popular it is.
    pub has_popularity: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(serde_json::Number),
    #[default]
    None,
}

/// A number in thousandths; what is below 0 is 0.
pub(super) fn thousandths(number: f64) -> u64 {
    #[expect(clippy::cast_sign_loss, reason = "clamped to zero and above")]
    let thousandths = (number.max(0.0) * 1000.0).round() as u64;
    thousandths
}

/// A text, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

/// Null is an empty text.
fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Cow<'de, str>, A::Error> {
    Ok(map.next_value::<Option<Borrowed<'de>>>()?.map_or(Cow::Borrowed(""), |text| text.0))
}

/// Any single value as it is written.
fn written(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

impl<'a> Record<'a> {
    /// Reads a line with the usual names of fields.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words.
    pub fn parse(line: &'a str) -> Result<Self, String> {
        Self::read(line, &Fields::usual()).map_err(|fault| fault.detail)
    }

    /// Reads a line.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn read(line: &'a str, fields: &Fields) -> Result<Self, Fault> {
        let mut json = serde_json::Deserializer::from_str(without_mark(line));
        let read = RecordFields(fields).deserialize(&mut json);
        let read = read.and_then(|record| json.end().map(|()| record));
        read.map_err(|error| {
            // The parser quotes what it did not expect, which may be a whole text.
            let detail = error.to_string();
            let reason = match error.classify() {
                serde_json::error::Category::Data if detail.starts_with("missing field") => {
                    "no_text"
                }
                serde_json::error::Category::Data => "bad_field",
                _ => "bad_json",
            };
            let end = detail.floor_char_boundary(DETAIL_BYTES_MAX);
            let is_short = end == detail.len();
            Fault::new(reason, if is_short { detail } else { format!("{} ...", &detail[..end]) })
        })
    }

    /// Returns its identifier; that of a document without one is the number of its line.
    #[must_use]
    pub fn id(&self, line: u64) -> String {
        self.own_id().unwrap_or_else(|| line.to_string())
    }

    /// Returns the same record with other texts.
    pub(super) fn map<'b>(self, mut with: impl FnMut(Cow<'a, str>) -> Cow<'b, str>) -> Record<'b> {
        let Self { id, title, url, text, language, date, popularity, has_popularity } = self;
        Record {
            id,
            title: with(title),
            url: with(url),
            text: with(text),
            language: with(language),
            date: with(date),
            popularity,
            has_popularity,
        }
    }

    /// Returns its identifier, if it has one.
    pub(super) fn own_id(&self) -> Option<String> {
        match &self.id {
            Id::Text(id) => Some(id.clone()),
            Id::Number(id) => Some(id.to_string()),
            Id::None => None,
        }
    }
}

/// A line without a mark of its encoding at its start.
fn without_mark(line: &str) -> &str {
    line.strip_prefix('\u{FEFF}').unwrap_or(line)
}

/// Reads the fields of a document.
struct RecordFields<'f>(&'f Fields);

impl<'de> DeserializeSeed<'de> for RecordFields<'_> {
    type Value = Record<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RecordFields<'_> {
    type Value = Record<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let fields = self.0;
        let mut record = Record::default();
        let (mut text_is_there, mut other_language) = (false, Cow::Borrowed(""));
        while let Some(Borrowed(key)) = map.next_key()? {
            let is = |name: &Option<String>| name.as_deref() == Some(&*key);
            if key == fields.text {
                if text_is_there {
                    return Err(A::Error::custom(format!("duplicate field `{key}`")));
                }
                record.text = text(&mut map)?;
                text_is_there = true;
            } else if is(&fields.title) {
                record.title = text(&mut map)?;
            } else if is(&fields.id) {
                record.id = map.next_value()?;
            } else if is(&fields.url) {
                record.url = text(&mut map)?;
            } else if is(&fields.languages[0]) {
                record.language = text(&mut map)?;
            } else if is(&fields.languages[1]) {
                other_language = text(&mut map)?;
            } else if is(&fields.date) {
                record.date = Cow::Owned(written(map.next_value()?));
            } else if is(&fields.popularity) {
                let number = map.next_value::<Option<f64>>()?;
                record.has_popularity = number.is_some();
                record.popularity = number.map_or(0, thousandths);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if !text_is_there {
            return Err(A::Error::custom(format!("missing field `{}`", fields.text)));
        }
        if record.language.is_empty() {
            record.language = other_language;
        }
        Ok(record)
    }
}

/// Returns the values of some fields of a line, in the order of their names. A number or a truth is
/// what is written there; a field that is not there, null, a list or an object is empty.
///
/// Reads the line a second time, unless there are no names. A line that is no object has no fields.
#[must_use]
pub fn values_of(line: &str, names: &[&str]) -> Vec<String> {
    let none = || vec![String::new(); names.len()];
    if names.is_empty() {
        return none();
    }
    let mut json = serde_json::Deserializer::from_str(without_mark(line));
    json.deserialize_map(WantedFields(names)).unwrap_or_else(|_| none())
}

/// Fields that are read; the rest is passed over.
struct WantedFields<'n>(&'n [&'n str]);

impl<'de> Visitor<'de> for WantedFields<'_> {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = vec![String::new(); self.0.len()];
        while let Some(Borrowed(key)) = map.next_key()? {
            let Some(at) = self.0.iter().position(|name| *name == key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            values[at] = written(map.next_value()?);
        }
        Ok(values)
    }
}

/// The fields of some lines, in the order of their names, as far as lines are objects.
pub(super) fn fields_of<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<Field> {
    /// Lines with a text, the characters of all, and what is there instead.
    #[derive(Default)]
    struct Seen {
        texts: usize,
        chars: usize,
        other: Option<(Values, &'static str)>,
    }
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    for line in lines {
        let Ok(Value::Object(object)) = serde_json::from_str(without_mark(line)) else { continue };
        for (name, value) in object {
            let field = seen.entry(name).or_default();
            match value {
                Value::String(text) => {
                    field.texts += 1;
                    field.chars += text.chars().count();
                }
                Value::Null => {}
                Value::Number(_) => field.other = Some((Values::Plain, "a number")),
                Value::Bool(_) => field.other = Some((Values::Plain, "true or false")),
                Value::Array(_) => field.other = Some((Values::Nested, "a list")),
                Value::Object(_) => field.other = Some((Values::Nested, "an object")),
            }
        }
    }
    let fields = seen.into_iter().map(|(name, Seen { texts, chars, other })| {
        let (values, kind) = if texts > 0 {
            (Values::Text, "text")
        } else {
            other.unwrap_or((Values::Plain, "null"))
        };
        let mean_chars = chars as f64 / texts.max(1) as f64;
        Field { name, values, kind: kind.to_owned(), mean_chars }
    });
    fields.collect()
}

/// Replaces the value of a field of a line; the rest stays as it stands.
pub(super) fn with_text(line: &str, name: &str, text: &str) -> String {
    let text = serde_json::to_string(text).expect("a text has a form in JSON");
    match value_span(line, name) {
        Some(at) => [&line[..at.start], &text, &line[at.end..]].concat(),
        None => line.to_owned(),
    }
}

/// Finds the value of a field of a line that is an object.
fn value_span(line: &str, name: &str) -> Option<Range<usize>> {
    let bytes = line.as_bytes();
    let blank =
        |at: usize| at + bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let mut at = line.find('{')? + 1;
    loop {
        at = blank(at);
        let end = string_end(bytes, at)?;
        let key: String = serde_json::from_str(&line[at..end]).ok()?;
        at = blank(end);
        at = blank(at + 1);
        let end = value_end(bytes, at)?;
        if key == name {
            return Some(at..end);
        }
        at = blank(end);
        if bytes.get(at) != Some(&b',') {
            return None;
        }
        at += 1;
    }
}

fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    if bytes.get(start) != Some(&b'"') {
        return None;
    }
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string_end(bytes, at)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            b'{' | b'[' => (at, depth) = (at + 1, depth + 1),
            b'}' | b']' | b',' if depth == 0 => return Some(at),
            b'}' | b']' => {
                (at, depth) = (at + 1, depth - 1);
                if depth == 0 {
                    return Some(at);
                }
            }
            byte if depth == 0 && byte.is_ascii_whitespace() => return Some(at),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_and_the_rest_of_a_line_stays() {
        let line = r#"{ "a":[1,{"text":"no"}], "n" : -1.5e3 , "\u0074ext" : "o\"ld", "z":null}"#;
        let expected =
            r#"{ "a":[1,{"text":"no"}], "n" : -1.5e3 , "\u0074ext" : "a \"new\"\none", "z":null}"#;
        assert_eq!(with_text(line, "text", "a \"new\"\none"), expected);
        assert_eq!(with_text(line, "none", "x"), line);
    }

    #[test]
    fn what_is_wrong_with_a_line_has_a_name() {
        let reason = |line| Record::read(line, &Fields::usual()).unwrap_err().reason;
        assert_eq!(reason("{\"id\":1}"), "no_text");
        assert_eq!(reason("{\"text\":5}"), "bad_field");
        assert_eq!(reason("{\"text\":\"a\",\"title\":[]}"), "bad_field");
        assert_eq!(reason("[1]"), "bad_field");
        assert_eq!(reason("{\"text\":\"a\"} x"), "bad_json");
        assert_eq!(reason("{\"text\":\"a"), "bad_json");
        assert!(Record::parse("\u{FEFF}{\"text\":null}").is_ok());
    }
}
