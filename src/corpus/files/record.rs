//! One line of the input as a document.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::Value;

/// Bytes of what is said of a bad line.
const DETAIL_BYTES_MAX: usize = 200;

/// A document as it stands in a line of JSON. Other fields are allowed and ignored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Record<'a> {
    /// Identifier: a string or a number; without one, the number of the line.
    #[serde(default)]
    id: Id,
    /// Title.
    #[serde(default, borrow, deserialize_with = "text")]
    pub title: Cow<'a, str>,
    /// Address: pages of one host may share boilerplate.
    #[serde(default, borrow, deserialize_with = "text")]
    pub url: Cow<'a, str>,
    /// Main text.
    #[serde(borrow, deserialize_with = "text")]
    pub text: Cow<'a, str>,
    /// Language (ISO 639-1).
    #[serde(default, borrow, deserialize_with = "text")]
    pub language: Cow<'a, str>,
    /// Another name of it, as `crawl extract` has it.
    #[serde(default, borrow, deserialize_with = "text")]
    lang: Cow<'a, str>,
    /// The most popular copy is kept. In thousandths of the number that stands in the line.
    #[serde(default, deserialize_with = "thousandths")]
    pub popularity: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(serde_json::Number),
    #[default]
    None,
}

fn thousandths<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number = Option::<f64>::deserialize(from)?.unwrap_or_default();
    #[expect(clippy::cast_sign_loss, reason = "clamped to zero and above")]
    let thousandths = (number.max(0.0) * 1000.0).round() as u64;
    Ok(thousandths)
}

/// Null is an empty text.
fn text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Cow<'de, str>, D::Error> {
    #[derive(Deserialize)]
    struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Borrowed<'de>>::deserialize(from)?.map_or(Cow::Borrowed(""), |text| text.0))
}

impl<'a> Record<'a> {
    /// Reads a line.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words.
    pub fn parse(line: &'a str) -> Result<Self, String> {
        let line = line.strip_prefix('\u{FEFF}').unwrap_or(line);
        let read: Result<Self, _> = serde_json::from_str(line);
        let mut record = read.map_err(|error| {
            // The parser quotes what it did not expect, which may be a whole text.
            let detail = error.to_string();
            let end = detail.floor_char_boundary(DETAIL_BYTES_MAX);
            if end < detail.len() { format!("{} ...", &detail[..end]) } else { detail }
        })?;
        if record.language.is_empty() {
            record.language = std::mem::take(&mut record.lang);
        }
        Ok(record)
    }

    /// Returns its identifier; that of a document without one is the number of its line.
    #[must_use]
    pub fn id(&self, line: u64) -> String {
        match &self.id {
            Id::Text(id) => id.clone(),
            Id::Number(id) => id.to_string(),
            Id::None => line.to_string(),
        }
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
    let line = line.strip_prefix('\u{FEFF}').unwrap_or(line);
    let mut json = serde_json::Deserializer::from_str(line);
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
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let Some(at) = self.0.iter().position(|name| *name == key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            values[at] = match map.next_value()? {
                Value::String(text) => text,
                Value::Number(number) => number.to_string(),
                Value::Bool(truth) => truth.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
            };
        }
        Ok(values)
    }
}
