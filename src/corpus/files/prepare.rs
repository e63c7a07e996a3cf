//! What threads make of records: documents that passed the filters.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::text::quality::{Filters, Outcome};

use super::input::{Chunk, Document, DocumentReader, Fault, Kind, Made, Source, Sources};

/// What became of a record.
pub(crate) enum Fate<T> {
    /// It is a document.
    Document(T),
    /// It is none, because something is wrong with it.
    Rejected(Fault),
    /// It is a document that a filter keeps out.
    Filtered {
        /// Its identifier.
        id: String,
        /// Why.
        reason: Cow<'static, str>,
    },
    /// It is not meant to be a document.
    Skipped(Cow<'static, str>),
}

/// A chunk after the filters.
pub(crate) struct Prepared<T> {
    /// Number of its source.
    pub(crate) source: usize,
    /// Number of its first record, from 1.
    pub(crate) first: u64,
    /// Its bytes.
    pub(crate) bytes: u64,
    /// What became of its records.
    pub(crate) fates: Vec<Fate<T>>,
}

impl<T> Prepared<T> {
    /// The documents of the chunk.
    pub(crate) fn documents(&self) -> impl Iterator<Item = &T> {
        self.fates.iter().filter_map(|fate| match fate {
            Fate::Document(document) => Some(document),
            _ => None,
        })
    }
}

/// A document that passed the filters.
pub(crate) struct Passed<'c> {
    /// Where it was read.
    pub(crate) source: &'c Source,
    /// Number of its record, from 1.
    pub(crate) number: u64,
    /// The document.
    pub(crate) document: Document<'c>,
    /// Its text after the filters, if they changed it.
    pub(crate) changed: Option<String>,
    /// Pieces of personal data that were masked.
    pub(crate) masked: u64,
}

impl Passed<'_> {
    /// The text that is kept.
    pub(crate) fn text(&self) -> &str {
        self.changed.as_deref().unwrap_or(&self.document.text)
    }
}

/// Makes documents of records, asks the filters, and makes of each what `each` makes of it.
pub(crate) fn prepare<T>(
    sources: &Sources,
    reader: &DocumentReader<'_>,
    filters: &Filters,
    mut chunk: Chunk,
    each: impl Fn(&Passed<'_>) -> Result<T, Fault>,
) -> Prepared<T> {
    let items = std::mem::take(&mut chunk.items);
    let (source, first, bytes) = (chunk.source, chunk.first, chunk.bytes);
    let from = &sources.all()[source];
    let fates = items.into_iter().zip(first..).map(|(item, number)| {
        let document = match reader.read(&chunk, item) {
            Made::Document(document) => *document,
            Made::Fault(fault) => return Fate::Rejected(fault),
            Made::Skip(reason) => return Fate::Skipped(reason.into()),
        };
        let (changed, masked) = match filters.ask(&document.text) {
            Outcome::Kept(kept) => match kept.text {
                Cow::Borrowed(_) => (None, 0),
                Cow::Owned(text) => (Some(text), kept.masked),
            },
            Outcome::Filtered(reason) => {
                let id = document.id_or(number);
                return Fate::Filtered { id, reason: reason.as_str().into() };
            }
        };
        let passed = Passed { source: from, number, document, changed, masked };
        each(&passed).map_or_else(Fate::Rejected, Fate::Document)
    });
    Prepared { source, first, bytes, fates: fates.collect() }
}

/// How many records are no documents, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Reasons {
    /// Records that are wrong.
    #[serde(rename = "rejectedBy")]
    pub rejected: BTreeMap<String, u64>,
    /// Documents that a filter keeps out.
    #[serde(rename = "filteredBy")]
    pub filtered: BTreeMap<String, u64>,
    /// Records that are not meant to be documents.
    #[serde(rename = "skippedBy")]
    pub skipped: BTreeMap<String, u64>,
}

/// Counts one more of a name.
pub(crate) fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.to_owned(), 1)),
    }
}

/// A line of the list of records that are no documents.
#[derive(Serialize)]
pub(crate) struct RejectedLine<'a> {
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    reason: &'a str,
    error: &'a str,
}

/// A line of the list of documents that filters keep out.
#[derive(Serialize)]
pub(crate) struct FilteredLine<'a> {
    id: &'a str,
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    reason: &'a str,
}

/// The number of a record under the name that it has in its kind of file.
fn place(kind: Kind, number: u64) -> [Option<u64>; 3] {
    let is = |of: Kind| (kind == of).then_some(number);
    [is(Kind::Lines), is(Kind::Parquet), is(Kind::Warc)]
}

impl<'a> RejectedLine<'a> {
    pub(crate) fn of(source: &'a Source, number: u64, fault: &'a Fault) -> Self {
        let [line, row, record] = place(source.kind, number);
        let Fault { reason, detail: error, offset } = fault;
        Self { file: &source.name, line, row, record, offset: *offset, reason, error }
    }
}

impl<'a> FilteredLine<'a> {
    pub(crate) fn of(source: &'a Source, number: u64, id: &'a str, reason: &'a str) -> Self {
        let [line, row, record] = place(source.kind, number);
        Self { id, file: &source.name, line, row, record, reason }
    }
}
