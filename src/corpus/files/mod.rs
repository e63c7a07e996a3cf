//! Duplicates in files of documents: JSON lines, Parquet, WARC, pages and texts in, the kept ones
//! and the list of the others out.
//!
//! ```text
//! read -> filter, fingerprint (all cores) -> judge (in the order of the input) -> write
//! ```
//!
//! The input is read twice, first to judge, then to copy the kept lines as they stand. What must be
//! remembered between lies in files and a store beside the output, which go when the run ends.
//! Memory does not grow with the input, but for four bytes for each text whose match is unsure, and
//! 24 for each block and filter of the index, of which a hundred documents have some five (while
//! segments become one, those of both). The result does not depend on the number of threads, nor on
//! the memory.

mod glimpses;
pub(crate) mod input;
mod journal;
mod kept;
mod looker;
pub(crate) mod pipeline;
pub(crate) mod prepare;
mod records;
mod rows;
mod run;
pub(crate) mod spool;
mod storage;
pub(crate) mod together;
mod work;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::base::{outputs, remote};
use crate::text::quality;
use crate::{neardup, store};

pub use input::{Columns, FieldNames, InputOptions, Lines, Position, Record, values_of};
pub use prepare::Reasons;
pub use rows::{StoredCandidate, StoredCandidates, StoredLine};
pub use run::run;

/// What a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// Threads that fingerprint; 0 is one for each core.
    pub threads: usize,
    /// Memory to take, in bytes.
    pub memory: usize,
}

impl Default for Resources {
    fn default() -> Self {
        Self { threads: 0, memory: 512 << 20 }
    }
}

/// In what form documents are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeptFormat {
    /// Lines of JSON: `kept.jsonl`.
    #[default]
    Lines,
    /// The rows of tables: `kept.parquet`.
    Parquet,
}

/// How a run reads and writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// What it may take.
    pub resources: Resources,
    /// How documents are read.
    pub input: InputOptions,
    /// Which are kept out, and how texts are changed.
    pub filters: quality::Config,
    /// In what form they are kept.
    pub format: KeptFormat,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Documents that were judged.
    pub documents: u64,
    /// Duplicates among them.
    pub duplicates: u64,
    /// Bytes that were read.
    pub position: Position,
}

/// What a run found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DedupReport {
    /// Lines that are documents.
    pub documents: u64,
    /// Documents that are kept: one of each cluster.
    pub kept: u64,
    /// Duplicates, by the key that found them.
    pub duplicates: BTreeMap<&'static str, u64>,
    /// Clusters of two documents or more.
    pub clusters: u64,
    /// Documents of the largest cluster.
    pub largest_cluster: u64,
    /// Clusters whose canonical document is not their first, but a more popular one.
    pub takeovers: u64,
    /// Texts that moved to another cluster or became one of their own when more of their kind were
    /// known, and clusters that became part of another one.
    pub moved: u64,
    /// Documents without any text; each is kept.
    pub empty: u64,
    /// Documents whose identifier another one has already; they are told apart by their lines.
    pub equal_ids: u64,
    /// Records that are no document: see `rejected.jsonl`.
    pub rejected: u64,
    /// Documents that filters keep out: see `filtered.jsonl`.
    pub filtered: u64,
    /// Records that are no document, by reason.
    #[serde(flatten)]
    pub reasons: Reasons,
    /// Pieces of personal data that were masked.
    pub masked: u64,
    /// Documents that were not UTF-8 and were read with replacement characters.
    pub repaired: u64,
    /// Bytes of the input, unpacked.
    pub bytes: u64,
    /// Name of the features; fingerprints of other names must not be compared with these.
    pub features: String,
    /// Memory of the index in bytes.
    pub index_bytes: u64,
    /// Time of the whole run in seconds.
    pub seconds: f64,
    /// Documents a second.
    pub documents_per_second: f64,
}

/// Why a run could not end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// A source cannot be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// What the operating system or the server says.
        source: std::io::Error,
    },
    /// A line cannot be read.
    #[error("{}, line {line}: {detail}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong.
        detail: String,
    },
    /// It is not known which field is which.
    #[error("{file}: {detail}; it has: {names}. Name the field with --{option}-field")]
    Field {
        /// The file.
        file: String,
        /// What is wrong.
        detail: String,
        /// The fields that are there.
        names: String,
        /// What is looked for.
        option: &'static str,
    },
    /// A file is one list of documents.
    #[error("{0} is one JSON list: write one document a line, as `jq -c '.[]' {0}` does")]
    List(String),
    /// Nothing of the input is a document.
    #[error("nothing can be used: {rejected} records are no documents. The first: {first}")]
    Nothing {
        /// How many records there are.
        rejected: u64,
        /// What is wrong with the first.
        first: String,
    },
    /// Documents cannot be kept in the form that was asked for.
    #[error("--format parquet is for Parquet files with the same columns: {detail}")]
    Format {
        /// Why not.
        detail: String,
    },
    /// A table cannot be written.
    #[error("cannot write the table: {0}")]
    Write(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Object storage cannot be used.
    #[error(transparent)]
    Remote(#[from] remote::Error),
    /// The list of words of a filter cannot be read.
    #[error(transparent)]
    Filter(#[from] quality::BadWordList),
    /// Two of the inputs can be read only once.
    #[error("{} is the second input that can be read only once", .0.display())]
    TwoPipes(PathBuf),
    /// An input would be overwritten by the output.
    #[error("{} is an input and would be overwritten: choose another --out", .0.display())]
    Overwrites(PathBuf),
    /// The input was changed between the two times it was read.
    #[error("{} was changed while it was read", .0.display())]
    Changed(PathBuf),
    /// More documents than can be numbered.
    #[error("more than {} documents: split the input", u32::MAX - 1)]
    TooMany,
    /// What is remembered of the documents cannot be written or read.
    #[error(transparent)]
    Work(#[from] store::Error),
    /// A file of the output cannot be written.
    #[error(transparent)]
    Output(#[from] outputs::Error),
    /// The settings cannot be.
    #[error(transparent)]
    Dedup(#[from] neardup::Error),
}

impl Error {
    pub(crate) fn remote(error: remote::Error) -> Self {
        Self::Remote(error)
    }

    /// Tells whether the same run may succeed another time, with nothing changed but the machine.
    fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Io { .. }
                | Self::Read { .. }
                | Self::Write(_)
                | Self::Work(_)
                | Self::Output(_)
                | Self::Remote(_)
        )
    }

    pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}
