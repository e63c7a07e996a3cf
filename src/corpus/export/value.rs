//! What stands in an export: columns with their kinds, and records with a value in each.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value as Json;

use crate::base::clock::Timestamp;
use crate::corpus::documents::{KeptHeaders, KeptImage, KeptLink};

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// Several texts.
    Texts,
    /// A whole number from 0 on.
    Count,
    /// A number.
    Number,
    /// Yes or no.
    Flag,
    /// A date as a page gives it: ISO 8601, with or without a time of day.
    Date,
    /// A moment of this machine, in whole seconds.
    Time,
    /// Links with their texts.
    Links,
    /// Images.
    Images,
    /// Headers of an answer.
    Headers,
    /// Keys by which copies are found.
    Keys,
}

impl Kind {
    /// Returns its name in the documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Texts => "list of texts",
            Self::Count => "whole number",
            Self::Number => "number",
            Self::Flag => "true or false",
            Self::Date => "date",
            Self::Time => "moment",
            Self::Links => "list of `url`, `text`, `nofollow`",
            Self::Images => "list of `url`, `alt`, `width`, `height`",
            Self::Headers => "`contentType`, `lastModified`, `etag`, `contentLanguage`",
            Self::Keys => "`hash`, `title`, `words`, `sentences`, `sketch`",
        }
    }
}

/// A column of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name in every format.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// In JSON, it is left out where there is nothing to say.
    pub sparse: bool,
}

/// The columns of a file, in their order.
pub type Columns = Arc<[Column]>;

/// Keys of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct KeysValue {
    /// Hash of the normalised text: 32 hexadecimal digits.
    pub hash: String,
    /// Fingerprint of its title, 16 hexadecimal digits; empty if the title tells nothing.
    pub title: String,
    /// Words that were counted.
    pub words: u64,
    /// Hashes of its longest sentences.
    pub sentences: Vec<u64>,
    /// Sketch of the text: two hexadecimal digits for each slot.
    pub sketch: String,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// It is not known.
    #[default]
    None,
    /// A text, or a date.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// A whole number.
    Count(u64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A moment.
    Time(Timestamp),
    /// Links.
    Links(Vec<KeptLink>),
    /// Images.
    Images(Vec<KeptImage>),
    /// Headers.
    Headers(Box<KeptHeaders>),
    /// Keys.
    Keys(Box<KeysValue>),
}

impl Value {
    /// Tells whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::None | Self::Flag(false) => true,
            Self::Text(text) => text.is_empty(),
            Self::Texts(list) => list.is_empty(),
            _ => false,
        }
    }

    /// Returns the text of a text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Reads a value of a column from JSON; none if it is of another kind.
    pub(super) fn read(kind: Kind, json: Json) -> Option<Self> {
        if json.is_null() {
            return Some(Self::None);
        }
        let value = match kind {
            Kind::Text | Kind::Date => Self::Text(json.as_str()?.to_owned()),
            Kind::Texts => Self::Texts(serde_json::from_value(json).ok()?),
            Kind::Count => Self::Count(json.as_u64()?),
            Kind::Number => Self::Number(json.as_f64()?),
            Kind::Flag => Self::Flag(json.as_bool()?),
            Kind::Time => {
                let time: jiff::Timestamp = json.as_str()?.parse().ok()?;
                Self::Time(Timestamp(time.as_millisecond()))
            }
            Kind::Links => Self::Links(serde_json::from_value(json).ok()?),
            Kind::Images => Self::Images(serde_json::from_value(json).ok()?),
            Kind::Headers => Self::Headers(serde_json::from_value(json).ok()?),
            Kind::Keys => Self::Keys(serde_json::from_value(json).ok()?),
        };
        Some(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Option<u64>> for Value {
    fn from(count: Option<u64>) -> Self {
        count.map_or(Self::None, Self::Count)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => to.serialize_none(),
            Self::Text(text) => text.serialize(to),
            Self::Texts(list) => list.serialize(to),
            Self::Count(count) => count.serialize(to),
            Self::Number(number) => number.serialize(to),
            Self::Flag(flag) => flag.serialize(to),
            Self::Time(time) => to.collect_str(time),
            Self::Links(list) => list.serialize(to),
            Self::Images(list) => list.serialize(to),
            Self::Headers(headers) => headers.serialize(to),
            Self::Keys(keys) => keys.serialize(to),
        }
    }
}

/// A line of an export: a value for each column.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub(super) columns: Columns,
    pub(super) values: Vec<Value>,
}

impl Record {
    /// Returns its columns with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Column, &Value)> {
        self.columns.iter().zip(&self.values)
    }

    /// Returns the value of a column; none if there is no such column.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find(|(column, _)| column.name == name).map(|(_, value)| value)
    }

    /// Returns a text, which is empty if there is none.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.get(name).and_then(Value::as_text).unwrap_or_default()
    }

    /// Reads a record of these columns from an object of JSON. What is sparse may be missing.
    pub(super) fn read(columns: &Columns, json: Json) -> Option<Self> {
        let Json::Object(mut object) = json else { return None };
        let values = columns.iter().map(|column| match object.remove(column.name) {
            Some(json) => Value::read(column.kind, json),
            None => column.sparse.then(|| match column.kind {
                Kind::Flag => Value::Flag(false),
                Kind::Text => Value::Text(String::new()),
                _ => Value::None,
            }),
        });
        Some(Self { columns: columns.clone(), values: values.collect::<Option<_>>()? })
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut object = to.serialize_map(None)?;
        for (column, value) in self.iter() {
            if !column.sparse || !value.is_empty() {
                object.serialize_entry(column.name, value)?;
            }
        }
        object.end()
    }
}
