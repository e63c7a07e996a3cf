//! What is read: JSON lines, Parquet, WARC, pages and texts, each told by its content; of files, of
//! folders with all below them, of standard input, and of object storage.
//!
//! In: names. Out: records in their order, in [`Chunk`]s that any thread makes documents of, and
//! for all that is no record a [`Fault`].

#[cfg(feature = "parquet")]
mod cells;
mod document;
mod fields;
mod lines;
mod open;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
mod record;
mod sources;
mod warc;

use std::borrow::Cow;
use std::ops::Range;

#[cfg(feature = "parquet")]
use arrow_array::RecordBatch;

use crate::warc::Record as WarcRecord;

pub(crate) use document::Made;
pub(crate) use document::{Document, DocumentReader};
pub use fields::FieldNames;
pub(crate) use fields::Fields;
pub(crate) use lines::LineRead;
pub use lines::Lines;
pub use record::{Record, values_of};
pub(crate) use sources::Named;
pub use sources::Position;
pub(crate) use sources::{Source, Sources};

/// Bytes of a document at most.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// Bytes of records that a thread takes at a time.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// Records that a thread takes at a time at most.
const CHUNK_RECORDS: usize = 256;

/// What a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A JSON object in each line.
    Lines,
    /// A table.
    Parquet,
    /// What was exchanged with servers, or texts made of it.
    Warc,
    /// A page in HTML.
    Page,
    /// A text.
    Text,
    /// Neither.
    Unknown,
}

/// Records of one source, in order.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Number of the source, from 0.
    pub source: usize,
    /// Number of the first record, from 1.
    pub first: u64,
    /// Bytes of the records, unpacked.
    pub bytes: u64,
    /// The records.
    pub items: Vec<Item>,
    /// Bytes of lines.
    buffer: Vec<u8>,
    /// Rows of a table.
    #[cfg(feature = "parquet")]
    rows: Option<RecordBatch>,
}

/// A record.
#[derive(Debug)]
pub(crate) enum Item {
    /// A line in the buffer of its chunk.
    Line(Range<usize>),
    /// A row of the rows of its chunk.
    Row(usize),
    /// A record of a WARC file.
    Warc(Box<WarcRecord>),
    /// A whole file.
    File(Vec<u8>),
    /// No record.
    Fault(Fault),
    /// A record that is no document by its kind.
    Skip(&'static str),
}

/// Why something is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The name by which it is counted.
    pub reason: Cow<'static, str>,
    /// What is wrong, in words.
    pub detail: String,
    /// Where it begins in the file, if records are found by that.
    pub offset: Option<u64>,
}

impl Fault {
    pub(crate) fn new(reason: &'static str, detail: impl Into<String>) -> Self {
        Self { reason: Cow::Borrowed(reason), detail: detail.into(), offset: None }
    }

    /// The source ends here, though it should not.
    fn damaged(detail: &str) -> Self {
        Self::new("damaged", format!("{detail}: what stands before it is used"))
    }
}

impl Chunk {
    fn new(source: usize, first: u64) -> Self {
        Self {
            source,
            first,
            bytes: 0,
            items: Vec::new(),
            buffer: Vec::new(),
            #[cfg(feature = "parquet")]
            rows: None,
        }
    }

    /// Returns the number of the last record; that before the first one if there is none.
    pub(crate) fn last(&self) -> u64 {
        self.first + self.items.len() as u64 - 1
    }

    fn is_full(&self) -> bool {
        self.bytes >= CHUNK_BYTES as u64 || self.items.len() >= CHUNK_RECORDS
    }

    fn push(&mut self, item: Item, bytes: usize) {
        self.bytes += bytes as u64;
        self.items.push(item);
    }

    fn push_line(&mut self, line: &[u8]) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(line);
        self.push(Item::Line(start..self.buffer.len()), line.len());
    }
}

/// Takes chunks as they are read. Returns false if no more are wanted.
pub(crate) type Take<'t> = dyn FnMut(Chunk) -> bool + 't;

/// How records are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputOptions {
    /// What fields are called.
    pub fields: FieldNames,
    /// Read what is not UTF-8 with replacement characters.
    pub repair_utf8: bool,
    /// Columns of tables that are read beside those of documents.
    pub columns: Columns,
}

/// Columns of tables that are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Columns {
    /// Those of documents.
    #[default]
    Needed,
    /// All.
    All,
}
