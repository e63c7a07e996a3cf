//! The corpus of many workers: documents in a cluster of servers, texts in files or
//! object storage.
//!
//! In: articles, from any number of workers at a time. Out: their places, as one worker with a file
//! would find them, but for the order in which they come.
//!
//! All that is said of one document is one row: its copies, its contents with their sketches, its
//! history. Most of it lies in a file, in a record; the cluster has where, and what has changed
//! since. The rules of `clusters` and the judge work on a `Unit`, which reads such rows as they are
//! asked for and writes those that have changed if nobody else has. Postings lead from keys to
//! documents; only the root of a document has those of near-duplicates.

mod bring;
mod change;
mod check;
mod checked;
mod commit;
mod keys;
mod numbers;
mod open;
mod place;
mod postings;
mod read;
mod rows;
#[cfg(feature = "search")]
mod search;
mod second;
mod source;
mod texts;
mod unit;
mod written;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::clock::{Clock, Timestamp};
use crate::base::remote::{self, Location};
use crate::cluster::{self, Buckets, Engine, Settings, Traffic};
use crate::corpus::documents::{Copy, DocId, Document, copies_of, read_body};
use crate::corpus::tables::DOCUMENTS;
use crate::neardup::{self, Config, Finder};
use crate::store::{self, View as _};

use change::Pace;
use keys::SharedKeys;
use numbers::Numbers;
use texts::Texts;
use unit::Unit;

pub use check::CheckProgress;
pub use checked::SharedChecked;
pub use open::fix_texts;
pub use place::SentArticle;
pub use read::{SharedCrowd, SharedStats, SharedView};
pub use rows::ShortDocument;
#[cfg(feature = "search")]
pub use search::SharedIndex;
pub use second::SharedLooked;
pub use source::SharedSource;
pub use texts::StoredPlaceOfText;

/// Time in which an article that was announced must be decided; others wait no longer for it.
const SPAN: Duration = Duration::from_secs(5);

/// Of the bands of a sketch by which one machine finds near-duplicates, one in so many is kept.
const BANDS_LESS: usize = 2;

/// The format of rows and keys.
const FORMAT: &str = "2";

/// The settings of the dedup stage, as they are used here.
fn own_config(config: &Config) -> Config {
    // Each band of a sketch costs a tenth of the memory of a document.
    Config { bands: config.bands.div_ceil(BANDS_LESS), ..config.clone() }
}

/// What stops the program at a corpus of many workers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The settings of the dedup stage cannot be.
    #[error(transparent)]
    Settings(#[from] neardup::Error),
    /// The cluster cannot be used.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// Others have written the same documents again and again.
    #[error("{} cannot be stored: others write the same documents all the time: run again",
        .0.as_deref().unwrap_or("a change"))]
    Busy(Option<String>),
    /// A row or a text cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// No corpus was begun under this prefix.
    #[error(
        "there is no corpus under the prefix `{0}` of this cluster: name another one behind the \
         nodes, or begin one with `crawl worker`, `crawl import` or `crawl store copy`"
    )]
    Missing(String),
    /// The place of the texts is none.
    #[error("the place of the texts of a cluster")]
    Texts(#[from] remote::Error),
    /// Nobody has said where the texts are.
    #[error("the place of the texts of `{0}` is not known: name it with --texts")]
    NoTexts(String),
    /// The texts are elsewhere: others could not read those of this process.
    #[error(
        "the texts of this crawl are in {place}, and {} is another folder: who reads there could \
         not read what is written here. --texts names a folder that all see, or s3://, gs:// or \
         az://. (A copy of that folder needs its file `place`.)",
        folder.display()
    )]
    OtherTexts {
        /// The folder of this process.
        folder: PathBuf,
        /// The machine and folder of the first one.
        place: String,
    },
}

impl From<Error> for store::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(error) => error,
            other => Self::Remote(Box::new(other)),
        }
    }
}

impl From<cluster::Error> for store::Error {
    fn from(error: cluster::Error) -> Self {
        Self::Remote(Box::new(error))
    }
}

/// How a corpus of many workers is kept.
#[derive(Debug, Clone, Copy)]
pub struct SharedOptions {
    /// Documents that are expected at least: what leads to so many is made room for as the first
    /// ones come, for others as they come.
    pub documents: u64,
    /// Time in which an article that was announced must be decided.
    pub span: Duration,
}

impl Default for SharedOptions {
    fn default() -> Self {
        Self { documents: 1, span: SPAN }
    }
}

/// A corpus that many workers share.
pub struct SharedCorpus {
    engine: RefCell<Engine>,
    buckets: Buckets,
    config: Config,
    /// Says what keys an article has; it holds none.
    finder: Finder,
    texts: RefCell<Texts>,
    numbers: RefCell<Numbers>,
    /// Drawn anew whenever it is opened: no two workers have the same.
    worker: u64,
    changes: Cell<u64>,
    counts: RefCell<HashMap<String, u64>>,
    /// The cluster does not know all of them.
    has_counted: Cell<bool>,
    span: Duration,
    pace: Cell<Pace>,
    clock: Clock,
}

/// A document with its copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedDocument {
    /// Its number.
    pub number: u64,
    /// The document.
    pub document: Document,
    /// Its copies, in the order of their URLs.
    pub copies: Vec<(String, Copy)>,
}

impl std::fmt::Debug for SharedCorpus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedCorpus").field("worker", &self.worker).finish_non_exhaustive()
    }
}

impl SharedCorpus {
    /// Opens the corpus in a cluster; it is begun if it is not there. Texts that it brings go into
    /// a folder of its own below `texts`, which all workers see, also one in object storage.
    ///
    /// # Errors
    ///
    /// Names the node that cannot be used, or the setting with which the corpus was begun.
    pub fn open(
        settings: &Settings,
        texts: &Path,
        config: &Config,
        options: SharedOptions,
    ) -> Result<Self, Error> {
        let texts = open::location(texts)?;
        let config = own_config(config);
        let mut engine = Engine::connect(settings)?;
        engine.fix("format", FORMAT)?;
        engine.fix("keys", &config.index_name())?;
        Self::on(engine, &texts, config, options)
    }

    /// Has the corpus of an engine whose settings fit. `config` is [`own_config`].
    fn on(
        engine: Engine,
        texts: &Location,
        config: Config,
        options: SharedOptions,
    ) -> Result<Self, Error> {
        let finder = Finder::new(&config)?;
        let worker = numbers::draw();
        Ok(Self {
            engine: RefCell::new(engine),
            buckets: Buckets { documents: options.documents, is_wide: config.k > 3 },
            config,
            finder,
            texts: RefCell::new(Texts::new(texts, worker)),
            numbers: RefCell::new(Numbers::default()),
            worker,
            changes: Cell::new(0),
            counts: RefCell::new(HashMap::new()),
            has_counted: Cell::new(false),
            span: options.span,
            pace: Cell::new(Pace::new(options.span)),
            clock: Clock::System,
        })
    }

    /// Has it take the time from a clock. Deadlines are those of the nodes, whatever it says.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Returns what went to the cluster and came back.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.engine.borrow().traffic()
    }

    /// Returns a document; none if it is not there, or pending.
    pub fn document(&self, number: u64) -> Result<Option<SharedDocument>, Error> {
        let unit = Unit::new(self, None);
        let Some(document) = unit.get(DOCUMENTS, number)? else { return Ok(None) };
        let copies = copies_of(&unit, number)?;
        Ok(Some(SharedDocument { number, document, copies }))
    }

    /// Returns the number of the document of an identifier, also of one that became part of it.
    pub fn find(&self, id: DocId) -> Result<Option<u64>, Error> {
        Ok(Unit::new(self, None).get(crate::corpus::tables::DOC_IDS, id)?)
    }

    /// Returns the number of the document that has a copy at a URL.
    pub fn find_url(&self, url: &str) -> Result<Option<u64>, Error> {
        let unit = Unit::new(self, None);
        Ok(SharedKeys::default().document_at(&unit, url)?)
    }

    /// Returns the text of a content of a document.
    pub fn text(&self, document: u64, content: u64) -> Result<Option<String>, Error> {
        let unit = Unit::new(self, None);
        unit.load(&[document])?;
        Ok(read_body(&unit, content)?)
    }

    /// Calls `each` with every document. What comes or goes meanwhile may be missing.
    pub fn each_document(
        &self,
        each: &mut dyn FnMut(SharedDocument) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let last = self.engine.borrow_mut().last_hash()?;
        for hash in 0..=last {
            let numbers = self.engine.borrow_mut().documents_in(hash)?;
            for numbers in numbers.chunks(64) {
                let unit = Unit::new(self, None);
                unit.load(numbers)?;
                for number in numbers.iter().copied() {
                    let Some(document) = unit.get(DOCUMENTS, number)? else { continue };
                    let copies = copies_of(&unit, number)?;
                    each(SharedDocument { number, document, copies })?;
                }
            }
        }
        Ok(())
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
