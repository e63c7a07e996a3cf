//! The deduplicated corpus as files or as a stream, with every dropped copy listed beside it.
//!
//! ```text
//! walk -> lines of lists -> files of a set, in a format    (`crawl export`, jobs)
//!                        -> one list, in a format          (`--out -`, `GET /v1/export`)
//!                        -> all lists, in lines of JSON    -> files of a set (`--from`)
//! ```

mod card;
mod csv;
mod duplicate_feed;
mod expression;
mod field;
mod files;
mod form;
mod jsonl;
mod markdown;
mod names;
#[cfg(feature = "parquet")]
mod parquet;
mod rows;
mod skipped;
mod source;
mod stream;
mod tally;
mod time;
mod value;
mod walk;
mod warc;
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::base::clock::Timestamp;
use crate::base::outputs;
use crate::base::remote::{self, Location};
use crate::base::units::Size;
use crate::store::{self, META, STORE_NUMBER, Snapshot, Store, View as _, read_number};
use crate::text::quality;

use files::Files;
use walk::Walk;
use wire::{AllLists, OneList};

pub use csv::CSV;
pub use duplicate_feed::{
    Changes, FeedPlace, WriteError, changes, duplicates, write_duplicate_feed,
};
pub use expression::{Expression, ExpressionError};
pub use field::{FIELDS, Field, Fields};
pub use form::{Config, FORMATS, Format, Packing};
pub use jsonl::JSONL;
pub use markdown::MARKDOWN;
#[cfg(feature = "parquet")]
pub use parquet::PARQUET;
pub use rows::{Dropped, Row, dropped_of, row_of, show};
pub use source::{ExportPart, PARTS_MAX, Source, StoreSource, StoredDocument};
pub use stream::Compression;
pub use tally::Tally;
pub use value::{Column, Columns, KeysValue, Kind, Record, Value};
pub use walk::List;

/// Name and version of this program, as files and streams tell it.
const PROGRAM: &str = concat!("uniqcrawl ", env!("CARGO_PKG_VERSION"));

/// What becomes of copies whose match waits for its second look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsettled {
    /// They are documents of their own, and marked.
    Apart,
    /// They are copies like others.
    Trusted,
}

/// Where an export is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// Output format.
    pub format: &'static Format,
    /// Folder of the files.
    pub folder: &'a Path,
}

/// How much a file of documents holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardSize {
    /// So many documents.
    Documents(u64),
    /// So many bytes: it ends with the first document with which it has them, about.
    Bytes(u64),
}

impl FromStr for ShardSize {
    type Err = String;

    /// Reads a number of documents, `10000`, or a size, `256 MiB`.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(documents) = text.trim().parse() {
            let none = || "a shard has at least one document".to_owned();
            return (documents > 0).then_some(Self::Documents(documents)).ok_or_else(none);
        }
        let size: Size = text.parse().map_err(|_| {
            "write a number of documents, such as 10000, or a size, such as `256 MiB`".to_owned()
        })?;
        Ok(Self::Bytes(size.bytes() as u64))
    }
}

impl fmt::Display for ShardSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Documents(documents) => write!(f, "{documents} documents"),
            Self::Bytes(bytes) => Size::from_bytes(*bytes).fmt(f),
        }
    }
}

/// What is exported, and how.
#[derive(Debug, Clone)]
pub struct ExportPlan {
    /// Output format.
    pub format: &'static Format,
    /// What is told of each document.
    pub fields: Fields,
    /// Which documents; all without it.
    pub filter: Option<Expression>,
    /// Which part of the documents; all without it.
    pub part: Option<ExportPart>,
    /// Which texts are kept out, and how texts are changed; all are off by default.
    pub filters: quality::Config,
    /// How much a file holds; all without it.
    pub shard: Option<ShardSize>,
    /// Compression; without it, what is usual for the format.
    pub compression: Option<Compression>,
    /// What becomes of copies whose match waits for its second look.
    pub unsettled: Unsettled,
    /// Which terms of pages are honoured, and how cells are written.
    pub config: Config,
}

impl ExportPlan {
    /// Returns the plan of an export of everything that is usual, in a format.
    #[must_use]
    pub fn usual(format: &'static Format, config: &Config) -> Self {
        Self {
            format,
            fields: Fields::usual(format),
            filter: None,
            part: None,
            filters: quality::Config::default(),
            shard: None,
            compression: None,
            unsettled: Unsettled::Apart,
            config: config.clone(),
        }
    }

    /// Tells whether a document is of the part that is exported.
    pub(super) fn takes(&self, number: u64) -> bool {
        self.part.is_none_or(|part| part.takes(number))
    }

    /// Returns it in words, for the manifest and for comparing.
    fn settings(&self) -> Json {
        let mut settings = json!({
            "format": self.format.name,
            "fields": self.fields.names(),
            "where": self.filter.as_ref().map(ToString::to_string),
            "shardSize": self.shard.map(|shard| shard.to_string()),
            "compression": self.format.compression(self.compression).as_str(),
            "trustUnsettled": self.unsettled == Unsettled::Trusted,
            "export": self.config,
        });
        if let Some(part) = self.part {
            settings["part"] = part.to_string().into();
        }
        if self.filters != quality::Config::default() {
            settings["filters"] = json!(self.filters);
        }
        settings
    }
}

/// Which store, and which state of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreState {
    /// Its number.
    pub number: Option<u64>,
    /// Bytes of its file.
    pub bytes: u64,
    /// When its file was last changed, in milliseconds since 1970.
    pub changed: i64,
}

impl StoreState {
    fn of(store: &Store, snapshot: &Snapshot) -> Result<Self, store::Error> {
        let number =
            snapshot.bytes(META, STORE_NUMBER)?.map(|row| read_number(&row)).transpose()?;
        let meta = std::fs::metadata(store.path()).ok();
        let since = |meta: &std::fs::Metadata| {
            let since = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            i64::try_from(since.as_millis()).ok()
        };
        let changed = meta.as_ref().and_then(since);
        Ok(Self {
            number,
            bytes: meta.map_or(0, |meta| meta.len()),
            changed: changed.unwrap_or_default(),
        })
    }
}

/// What an export wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Documents.
    pub documents: u64,
    /// Dropped copies, those that were not fetched among them.
    pub duplicates: u64,
    /// URLs that were not fetched, because by a rule or a feed they are stored pages.
    pub skipped: u64,
    /// Documents that may turn out to be copies of others: their matches wait for a second look.
    pub unsettled: u64,
    /// Documents that the filter did not take.
    pub filtered: u64,
    /// Documents that filters of texts keep out, by reason.
    pub filtered_by: BTreeMap<String, u64>,
    /// Pieces of personal data that were masked.
    pub masked: u64,
    /// Documents that were left out, or whose text was, by reason.
    pub withheld: BTreeMap<String, u64>,
    /// Documents without a value of a field, because it was not kept, by field.
    pub missing: BTreeMap<String, u64>,
    /// Dates that are no dates, and so are empty where dates have a type of their own.
    pub unread_dates: u64,
    /// The files of the set.
    pub files: Vec<String>,
    /// The file of documents; with a star if there are several.
    pub path: PathBuf,
    /// The file of dropped copies.
    pub duplicates_path: PathBuf,
    /// The file of documents that were left out.
    pub withheld_path: PathBuf,
}

impl Summary {
    fn new(location: &Location, plan: &ExportPlan, counts: &Tally, files: Vec<String>) -> Self {
        let own = plan.format.file_ending(plan.format.compression(plan.compression));
        let beside = match plan.format.packing {
            Packing::Around => JSONL.file_ending(plan.format.compression(plan.compression)),
            Packing::Inside(_) => JSONL.file_ending(Compression::None),
        };
        let path = |list: List, ending: &str| {
            let number = if plan.shard.is_some() { "-*" } else { "" };
            let name = format!("{}{number}.{ending}", list.as_str());
            match location {
                Location::Local(folder) => folder.join(name),
                #[cfg(feature = "object-store")]
                Location::Remote(objects) => PathBuf::from(objects.child(&name).to_string()),
            }
        };
        let dates = plan.format.is_typed;
        Self {
            documents: counts.documents,
            duplicates: counts.duplicates,
            skipped: counts.skipped,
            unsettled: counts.unsettled,
            filtered: counts.filtered,
            filtered_by: counts.filtered_by.clone(),
            masked: counts.masked,
            withheld: counts.withheld.clone(),
            missing: counts.missing.clone(),
            unread_dates: if dates { counts.unread_dates } else { 0 },
            files,
            path: path(List::Documents, &own),
            duplicates_path: path(List::Duplicates, &beside),
            withheld_path: path(List::Withheld, &beside),
        }
    }
}

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] outputs::Error),
    /// A folder in object storage cannot be read.
    #[error(transparent)]
    Remote(remote::Error),
    /// A stream cannot be written, or read.
    #[error("the stream of the export ended: {0}")]
    Stream(#[source] std::io::Error),
    /// What came is no export.
    #[error("what came is not a whole export: {0}; nothing was written")]
    BadStream(&'static str),
    /// The folder has files that no export has written.
    #[error("{folder} has files that are not of an export: {names}. Name a folder of its own")]
    Foreign {
        /// The folder.
        folder: String,
        /// The files.
        names: String,
    },
    /// A field is not in the store.
    #[error(
        "`{0}` was kept of no page of this store: it is part of pages that are crawled with \
         --keep, or `keep` in [corpus]"
    )]
    NotKept(&'static str),
    /// Lines go out of texts, and would stay in their Markdown.
    #[error(
        "the rules of c4 take lines out of texts, and cannot out of their Markdown: leave \
         `markdown` out with --fields"
    )]
    MarkdownLines,
    /// The list of words of a filter cannot be read.
    #[error(transparent)]
    Filter(#[from] quality::BadWordList),
}

impl Error {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Output(outputs::Error { path, source })
    }

    /// Tells whether what was asked for is at fault.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Foreign { .. } | Self::NotKept(_) | Self::MarkdownLines | Self::Filter(_) => true,
            Self::Remote(error) => error.is_usage,
            _ => false,
        }
    }
}

/// Writes the file of documents of a format, `duplicates.jsonl` and `withheld.jsonl` into a folder.
///
/// Of each document the best copy is written whose page allows it at the moment `now`, as far as
/// `config` asks for that; without its text if no page allows that, and not at all if none allows
/// anything. Documents stand in the order of their numbers. The files are one set with a manifest:
/// see [`crate::base::outputs`].
///
/// Before a crawl has ended, what was taken for a copy may turn out to be none. Copies whose match
/// waits for its second look are written as documents of their own, with the identifier that they
/// would have, and marked: nothing is lost by an export that comes early.
pub fn export(
    store: &Store,
    to: Target<'_>,
    config: &Config,
    now: Timestamp,
) -> Result<Summary, Error> {
    export_with(store, to, config, now, Unsettled::Apart)
}

/// Does the same, with a choice of what becomes of unsettled copies.
pub fn export_with(
    store: &Store,
    to: Target<'_>,
    config: &Config,
    now: Timestamp,
    unsettled: Unsettled,
) -> Result<Summary, Error> {
    let plan = ExportPlan { unsettled, ..ExportPlan::usual(to.format, config) };
    export_to(store, &Location::Local(to.folder.to_owned()), &plan, now)
}

/// Writes the files of a plan into a folder of this machine or of object storage.
///
/// With shards, what is whole stays when the process is killed, and the same call goes on behind it
/// if the store has not changed: the files are those of a run that was not killed.
///
/// # Errors
///
/// A folder with files of others, a field that was never kept, and what store and disk say.
pub fn export_to(
    store: &Store,
    location: &Location,
    plan: &ExportPlan,
    now: Timestamp,
) -> Result<Summary, Error> {
    export_of(&StoreSource::open(store)?, location, plan, now)
}

/// Does the same, wherever the documents lie.
pub fn export_of(
    source: &dyn Source,
    location: &Location,
    plan: &ExportPlan,
    now: Timestamp,
) -> Result<Summary, Error> {
    let state = source.state()?;
    // What cannot be done is told before anything is touched.
    let mut walk = Walk::new(source, plan, now)?;
    let mut files = Files::begin(location, plan, &state, Some(now))?;
    walk.now = files.now;
    walk.run(files.after, &mut files)?;
    files.finish(&walk.tally)
}

/// Writes one list of an export, in the format of a plan, to somebody who reads on.
pub fn stream(
    store: &Store,
    list: List,
    plan: &ExportPlan,
    now: Timestamp,
    to: impl Write + Send + 'static,
) -> Result<Tally, Error> {
    stream_of(&StoreSource::open(store)?, list, plan, now, to)
}

/// Does the same, wherever the documents lie.
pub fn stream_of(
    source: &dyn Source,
    list: List,
    plan: &ExportPlan,
    now: Timestamp,
    to: impl Write + Send + 'static,
) -> Result<Tally, Error> {
    let mut walk = Walk::new(source, plan, now)?;
    let mut sink = OneList::begin(plan, list, to)?;
    walk.run(None, &mut sink)?;
    sink.end()?;
    Ok(walk.tally)
}

/// Writes all lists of an export in lines of JSON, of which [`export_from`] makes files.
pub fn stream_all(
    store: &Store,
    plan: &ExportPlan,
    now: Timestamp,
    to: impl Write + Send + 'static,
) -> Result<Tally, Error> {
    stream_all_of(&StoreSource::open(store)?, plan, now, to)
}

/// Does the same, wherever the documents lie.
pub fn stream_all_of(
    source: &dyn Source,
    plan: &ExportPlan,
    now: Timestamp,
    to: impl Write + Send + 'static,
) -> Result<Tally, Error> {
    let state = source.state()?;
    let mut walk = Walk::new(source, plan, now)?;
    let mut sink = AllLists::begin(plan, &state, to)?;
    walk.run(None, &mut sink)?;
    sink.end(&walk.tally)?;
    Ok(walk.tally)
}

/// Tells what stops a plan before anything of it is written.
pub fn check_plan(store: &Store, plan: &ExportPlan) -> Result<(), Error> {
    check_plan_of(&StoreSource::open(store)?, plan)
}

/// Does the same, wherever the documents lie.
pub fn check_plan_of(source: &dyn Source, plan: &ExportPlan) -> Result<(), Error> {
    Walk::new(source, plan, Timestamp(0)).map(drop)
}

/// Writes the files of a plan from a stream of all lists, which must have its fields.
///
/// # Errors
///
/// A stream that breaks off leaves no file under its name.
pub fn export_from(
    from: &mut impl BufRead,
    location: &Location,
    plan: &ExportPlan,
) -> Result<Summary, Error> {
    let head = wire::read_head(from)?;
    if head.fields != plan.fields.names() {
        return Err(Error::BadStream("it has other fields than were asked for"));
    }
    let mut files = Files::begin(location, plan, &head.store, None)?;
    let tally = wire::read(plan, from, &mut files)?;
    files.finish(&tally)
}

/// Writes one list of a plan from a stream of all lists to somebody who reads on.
pub fn pass_on(
    from: &mut impl BufRead,
    list: List,
    plan: &ExportPlan,
    to: impl Write + Send + 'static,
) -> Result<Tally, Error> {
    let head = wire::read_head(from)?;
    if head.fields != plan.fields.names() {
        return Err(Error::BadStream("it has other fields than were asked for"));
    }
    let mut sink = OneList::begin(plan, list, to)?;
    let tally = wire::read(plan, from, &mut sink)?;
    sink.end()?;
    Ok(tally)
}
