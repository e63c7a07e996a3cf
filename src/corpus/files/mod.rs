//! Duplicates in files of documents: JSON lines in, the kept ones and the list of the others out.
//!
//! ```text
//! read -> fingerprint (all cores) -> judge (in the order of the input) -> write
//! ```
//!
//! The input is read twice, first to judge, then to copy the kept lines as they stand. What must be
//! remembered between lies in a store beside the output, which goes when the run ends: memory does
//! not grow with the input, but for four bytes for each text whose match is unsure. The result does
//! not depend on the number of threads, nor on the memory.

mod lines;
mod record;
mod rows;
mod run;
mod storage;
mod work;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::base::outputs;
use crate::{neardup, store};

pub use lines::Lines;
pub use record::{Record, values_of};
pub use rows::{StoredCandidate, StoredCandidates, StoredLine, StoredPlace, StoredTree};
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
    /// Documents that were taken for duplicates until more of their kind were known.
    pub moved: u64,
    /// Documents without any text; each is kept.
    pub empty: u64,
    /// Documents whose identifier another one has already; they are told apart by their lines.
    pub equal_ids: u64,
    /// Lines that are no document: see `rejected.jsonl`.
    pub rejected: u64,
    /// Lines that were not UTF-8 and were read with replacement characters.
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
    /// A line is longer than any document may be.
    #[error("{}, line {line}: longer than {} MiB", path.display(), lines::LINE_BYTES_MAX >> 20)]
    LongLine {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
    },
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
    fn io(path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}
