//! The most similar texts: keywords name candidates, the cosine of their words decides.
//!
//! ```text
//! text -> words -> 20 keywords by TF-IDF -> 10 asked, 6 of them must match
//!      -> 150 candidates by BM25 -> cosine of the counts of words, whole or sentence by sentence
//!      -> if none is like the text: all 20 asked, 10 of them must match
//! ```
//!
//! The index lies in a folder of its own beside the store. It can be lost at any moment: the store
//! notes which documents have changed since it was brought up to date (`search_changes`).
//!
//! Source: 晉曉琳, 張樹武, 劉杰, 基于 Elasticsearch 的海量文本快速相似度检测 (the text on Elasticsearch,
//! TF-IDF and cosine).

mod ask;
mod files;
mod find;
mod folder;
mod follow;
mod matching;
mod memory;
mod row;
mod terms;
mod update;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tantivy::{Index, IndexReader, ReloadPolicy, TantivyError};

use crate::base::units::{Size, Time};
use crate::store;
use folder::{Fields, Payload};

pub use ask::{Hit, Keyword, SentenceHit, WordHit, answer, ask, at_once};
pub use find::{Candidate, Figures, Mode, Question, Round};
pub use follow::{Followed, NewVersion, ReadVersions};
pub use update::{Entry, PART_DOCUMENTS, Updated};

/// Best answers that are looked at if they are wanted in another order.
pub const ORDERED_MAX: usize = 200;

/// The order of answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// The best first.
    #[default]
    Best,
    /// Those of most copies first, of the best [`ORDERED_MAX`].
    Copies,
    /// Those of fewest copies first, of the same.
    Fewest,
}

impl Order {
    /// Every order, by its name.
    pub const ALL: [(&'static str, Self); 3] =
        [("best", Self::Best), ("copies", Self::Copies), ("fewest", Self::Fewest)];

    /// Returns how many answers have to be looked at for so many.
    #[must_use]
    pub fn looked_at(self, wanted: usize) -> usize {
        if self == Self::Best { wanted } else { wanted.max(ORDERED_MAX) }
    }

    /// Puts answers that are given with the best first into this order. Among equals, the best are
    /// first.
    pub fn arrange<T>(self, answers: &mut [T], copies: impl Fn(&T) -> u64) {
        match self {
            Self::Best => {}
            Self::Copies => answers.sort_by_key(|answer| std::cmp::Reverse(copies(answer))),
            Self::Fewest => answers.sort_by_key(copies),
        }
    }
}

/// How similar texts are found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Words of the largest TF-IDF that stand for a text.
    pub keywords: usize,
    /// The first of them that the index is asked for.
    pub asked: usize,
    /// How many of those that are asked a candidate must have. Of fewer, the same share.
    pub match_min: usize,
    /// Candidates for a text.
    pub candidates: usize,
    /// Candidates for a sentence.
    pub sentence_candidates: usize,
    /// Least cosine of an answer.
    pub cosine_min: f64,
    /// If no document has a cosine of this with a text, all its keywords are asked for, of which
    /// half must match; 0 for never.
    pub cosine_enough: f64,
    /// Memory for building the index, and as much again, 16 MiB at least, while it is merged.
    pub memory: Size,
    /// How long a service on a cluster waits for others that it asks for their parts of the index.
    pub peer_time: Time,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            keywords: 20,
            asked: 10,
            match_min: 6,
            candidates: 150,
            sentence_candidates: 200,
            cosine_min: 0.0,
            cosine_enough: 0.7,
            memory: Size::from_mib(64),
            peer_time: Time::from_secs(2),
        }
    }
}

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The folder of the index cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// The folder has files that are not those of an index.
    #[error("{} is no folder of an index, and not empty: name another one", .0.display())]
    Foreign(PathBuf),
    /// The folder has the index of something else.
    #[error(
        "{} has the index of another corpus, or of another part of it: name another folder, or \
         make it anew with --rebuild", .0.display()
    )]
    Other(PathBuf),
    /// Another process or thread writes the index.
    #[error("the index {} is being written by another process", .0.display())]
    InUse(PathBuf),
    /// The index is damaged.
    #[error("the index {} is damaged ({detail}): make it anew with --rebuild", path.display())]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The update was to stop ([`Search::stop`]).
    #[error("the update of the index was stopped")]
    Stopped,
    /// The documents cannot be read.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
}

/// An open index. Any number of threads may ask it at a time, also while it is brought up to date.
pub struct Search {
    index: Index,
    fields: Fields,
    reader: IndexReader,
    config: Config,
    folder: PathBuf,
    made_anew: Option<String>,
    writing: Mutex<()>,
    /// Number of the document with which the next part of an update begins.
    next: AtomicU64,
    stopping: AtomicBool,
}

impl std::fmt::Debug for Search {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Search").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Search {
    /// Opens the index of the store in `store`. One that is missing, damaged or of another version
    /// begins empty; [`Search::update`] fills it.
    pub fn open(store: &Path, config: &Config) -> Result<Self, Error> {
        Self::open_folder(&store.join(folder::NAME), true, config)
    }

    /// Opens the index of a store that another process has, and changes nothing; none if it cannot
    /// be used.
    pub fn open_as_is(store: &Path, config: &Config) -> Result<Option<Self>, Error> {
        let path = store.join(folder::NAME);
        let Ok((index, fields)) = folder::open_made(&path) else { return Ok(None) };
        Self::new(index, fields, path, None, config).map(Some)
    }

    /// Opens an index that belongs to no store: in `folder`, or in a temporary one.
    pub fn open_at(folder: Option<&Path>, config: &Config) -> Result<Self, Error> {
        let Some(folder) = folder else {
            let (index, fields) = folder::temporary()?;
            return Self::new(index, fields, PathBuf::from("(temporary)"), None, config);
        };
        Self::open_folder(folder, false, config)
    }

    fn open_folder(path: &Path, ours: bool, config: &Config) -> Result<Self, Error> {
        let folder::Opened { index, fields, made_anew } = folder::open(path, ours)?;
        Self::new(index, fields, path.to_owned(), made_anew, config)
    }

    fn new(
        index: Index,
        fields: Fields,
        folder: PathBuf,
        made_anew: Option<String>,
        config: &Config,
    ) -> Result<Self, Error> {
        let made = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into();
        let reader = made.map_err(|error| damaged(&folder, error))?;
        let config = config.clone();
        let (writing, next, stopping) = Default::default();
        Ok(Self { index, fields, reader, config, folder, made_anew, writing, next, stopping })
    }

    /// Ends the update that is under way, and every later one, with [`Error::Stopped`]. What was
    /// committed stays.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    fn check_stop(&self) -> Result<(), Error> {
        if self.stopping.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Tells why the index that was there could not be used, if there was one.
    #[must_use]
    pub fn made_anew(&self) -> Option<&str> {
        self.made_anew.as_deref()
    }

    /// Returns the number of documents in the index.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.reader.searcher().num_docs()
    }

    /// Tells whether it was ever filled.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        matches!(self.payload(), Ok(Some(_)))
    }

    fn payload(&self) -> Result<Option<Payload>, Error> {
        let metas = self.index.load_metas().map_err(|error| self.damaged(error))?;
        Ok(metas.payload.and_then(|payload| serde_json::from_str(&payload).ok()))
    }

    fn damaged(&self, error: TantivyError) -> Error {
        damaged(&self.folder, error)
    }
}

fn damaged(folder: &Path, error: TantivyError) -> Error {
    let path = folder.to_owned();
    match error {
        TantivyError::LockFailure(..) => Error::InUse(path),
        TantivyError::IoError(source) if source.kind() != std::io::ErrorKind::InvalidData => {
            Error::Io { path, source: std::io::Error::new(source.kind(), source) }
        }
        error => Error::Damaged { path, detail: error.to_string() },
    }
}
