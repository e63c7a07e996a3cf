//! Files of documents into a store: each becomes a copy of a document, as an article that is sent
//! to the service does.
//!
//! ```text
//! read -> filter, fingerprint, look up (all cores) -> judge, join, keep -> note how far -> commit
//! ```
//!
//! Documents come in rounds of some thousand, each of which is a transaction: those of the next
//! one are looked up together while those of this one are stored.
//!
//! How far each input was read stands in the same transaction as its documents, so that a run that
//! was killed goes on where it was, and nothing comes twice. Batches end at the same records and
//! second looks come at the same documents whether a run was killed or not: the store is the same.
//! (Where an input cannot be read on, a batch ends there.)

mod lists;
mod progress;
#[cfg(feature = "cluster")]
mod shared;
mod take;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde::Serialize;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::base::clock::Clock;
use crate::base::units::Size;
use crate::corpus::clusters::Article;
use crate::corpus::dedup;
use crate::corpus::documents::Facts;
use crate::corpus::files::input::{Chunk, Columns, DocumentReader, Fault, InputOptions, Sources};
use crate::corpus::files::pipeline::{Shares, ordered, threads};
use crate::corpus::files::prepare::{Passed, Prepared, prepare};
use crate::corpus::files::spool::named;
use crate::corpus::files::{self, Position, Reasons};
use crate::corpus::index::{self, Index};
use crate::neardup;
use crate::store::{self, Store};
use crate::text::features::{ArticleField, Fingerprinter, Input};
use crate::text::language_of;
use crate::text::quality::{self, Filters};
use crate::urls::{Normalize, PageUrl};
use crate::web::robots::meta::Terms;

#[cfg(feature = "cluster")]
pub use shared::import_shared;
use take::Importer;

/// Where standard input is kept until the end of a run.
const INPUT: &str = "import-input.partial";

/// What the address of a document begins with that has no URL.
const URN: &str = "urn:uniqcrawl:";

/// Bytes of a URL or an identifier at most.
const NAME_BYTES_MAX: usize = 2_048;

/// Chunks that were fingerprinted and wait for the next round, all threads together: those of one.
const MADE: usize = 8;

/// Where documents go.
#[derive(Debug, Clone, Copy)]
pub struct Target<'t> {
    /// The store.
    pub store: &'t Store,
    /// Its folder, in which the lists of what is no document lie as well.
    pub folder: &'t Path,
    /// The time.
    pub clock: &'t Clock,
}

/// What is imported, and how.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportOptions {
    /// Threads that read; 0 is one for each core.
    pub threads: usize,
    /// How documents are read.
    pub input: InputOptions,
    /// Which are kept out, and how texts are changed.
    pub filters: quality::Config,
    /// The judge.
    pub dedup: neardup::Config,
    /// The normal form of URLs.
    pub urls: Normalize,
    /// Memory that nobody else takes: the filters of the index have it.
    pub unserved: Size,
}

/// What became of the records of an import, over all its runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImportReport {
    /// Files that were read.
    pub inputs: u64,
    /// Of these, files that an earlier run had read to their end.
    pub inputs_before: u64,
    /// Documents that came in as copies.
    pub documents: u64,
    /// Of these, new documents of the store.
    pub new: u64,
    /// The others, by the key that found them.
    pub duplicates: BTreeMap<String, u64>,
    /// Documents whose URL the store has already.
    pub known: u64,
    /// Documents with an identifier that another one has; each is kept.
    pub equal_ids: u64,
    /// Documents whose URL is no web address; they are kept under another name.
    pub bad_urls: u64,
    /// Records that are no document: see `import-rejected.jsonl`.
    pub rejected: u64,
    /// Documents that filters keep out: see `import-filtered.jsonl`.
    pub filtered: u64,
    /// Records that are no document, by reason.
    #[serde(flatten)]
    pub reasons: Reasons,
    /// Pieces of personal data that were masked.
    pub masked: u64,
    /// Documents that were read with replacement characters.
    pub repaired: u64,
    /// Bytes that were read, unpacked.
    pub bytes: u64,
    /// Documents that this run has read.
    pub came: u64,
    /// Time of this run in seconds.
    pub seconds: f64,
    /// Documents a second of this run.
    pub documents_per_second: f64,
}

/// How far an import has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportProgress {
    /// Documents that came in, in this run.
    pub documents: u64,
    /// New ones among them.
    pub new: u64,
    /// Bytes that were read.
    pub position: Position,
}

/// Why an import could not end. What it has committed stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input or a list cannot be read or written.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// The judge cannot work on the store.
    #[error(transparent)]
    Dedup(#[from] dedup::Error),
    /// The store fails.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The corpus of a cluster fails.
    #[cfg(feature = "cluster")]
    #[error(transparent)]
    Shared(#[from] super::shared::Error),
}

/// A document on its way into the store.
struct Incoming {
    article: Article,
    /// Its own identifier, if it has one.
    id: Option<String>,
    bad_url: bool,
    masked: u64,
    repaired: bool,
}

/// Takes the documents of `inputs` (`-` is standard input) into a store, beside which
/// `import-rejected.jsonl` and `import-filtered.jsonl` list what is no document. `progress` is told
/// now and then how far it has come.
///
/// # Errors
///
/// If a file, a setting or the store is at fault, or nothing can be used.
pub fn import(
    target: Target<'_>,
    inputs: &[PathBuf],
    options: &ImportOptions,
    progress: &mut dyn FnMut(&ImportProgress),
) -> Result<ImportReport, Error> {
    let began = Instant::now();
    let filters = Filters::new(options.filters.clone()).map_err(files::Error::from)?;
    let fingerprinter = Fingerprinter::for_articles(options.dedup.features.clone());
    let fingerprinter =
        fingerprinter.map_err(|error| dedup::Error::Settings(neardup::Error::from(error)))?;
    let Target { store, folder, .. } = target;
    let copy = Copied(folder.join(INPUT));
    let named = named(inputs, &copy.0)?;
    let input = InputOptions { columns: Columns::Needed, ..options.input.clone() };
    let sources = Sources::open(&named, input, vec!["category".to_owned()])?;
    let sizes = index::Sizes::with_more_for_filters(options.unserved);
    let index = Arc::new(Mutex::new(Index::open_with(store, &options.dedup, sizes)?));
    let mut importer = Importer::open(target, &sources, options, Arc::clone(&index))?;
    let reader = DocumentReader::new(&sources, vec!["category"]);
    let done = importer.records();
    let work = |chunk: Chunk| {
        if chunk.last() <= done[chunk.source] {
            let (source, first, bytes) = (chunk.source, chunk.first, chunk.bytes);
            return Prepared { source, first, bytes, fates: Vec::new() };
        }
        prepare(&sources, &reader, &filters, chunk, |passed| {
            incoming(passed, &fingerprinter, &options.urls)
        })
    };
    let first = importer.first();
    if first < sources.all().len() {
        let shares = Shares::of(threads(options.threads));
        let shares = Shares { made: shares.made.max(MADE / shares.threads), ..shares };
        ordered(&sources, first, shares, work, |chunks| importer.take(chunks, progress))?;
    }
    let mut report = importer.end()?;
    dedup::settle_after(store, &index, &options.dedup, report.came)?;
    report.seconds = began.elapsed().as_secs_f64();
    report.documents_per_second = report.came as f64 / report.seconds.max(1e-9);
    Ok(report)
}

/// Returns the names of the files that an import has begun with and not read to their end.
///
/// # Errors
///
/// If the store cannot be read.
pub fn unfinished(snapshot: &store::Snapshot) -> Result<Vec<String>, store::Error> {
    progress::unfinished(snapshot)
}

/// A file that goes when this does.
struct Copied(PathBuf);

impl Drop for Copied {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Makes the article that the store takes.
fn incoming(
    passed: &Passed<'_>,
    fingerprinter: &Fingerprinter,
    rules: &Normalize,
) -> Result<Incoming, Fault> {
    let document = &passed.document;
    let title = document.title.trim();
    let text = match passed.text() {
        // A title alone is an article too: a headline.
        text if text.trim().is_empty() => title,
        text => text,
    };
    if text.is_empty() {
        return Err(Fault::new("empty", "it has neither a title nor a text"));
    }
    let given = document.url.trim();
    let url = PageUrl::parse_with(given, rules).ok().map(|url| url.to_string());
    let url = url.filter(|url| url.len() <= NAME_BYTES_MAX);
    let bad_url = url.is_none() && !given.is_empty();
    let address = url.clone().unwrap_or_else(|| name_of(passed));
    let language = match &*document.language {
        "" => language_of(text, None).unwrap_or_default(),
        given => given.to_owned(),
    };
    let category = document.values.first().map_or("", String::as_str);
    let fields = [ArticleField { name: "category", value: category }];
    let keys = neardup::article_keys(
        fingerprinter,
        &Input {
            title,
            text,
            language: &language,
            url: url.as_deref().unwrap_or_default(),
            fields: &fields,
        },
    );
    let facts = Facts {
        published: document.date.to_string(),
        category: category.to_owned(),
        ..Facts::default()
    };
    Ok(Incoming {
        article: Article {
            address,
            title: title.to_owned(),
            text: text.to_owned(),
            language,
            facts,
            left_out: 0,
            score: document.popularity.map(|thousandths| (thousandths + 500) / 1000),
            terms: Terms::default(),
            declared: String::new(),
            keys,
        },
        id: document.id.clone().filter(|id| !id.is_empty() && id.len() <= NAME_BYTES_MAX),
        bad_url,
        masked: passed.masked,
        repaired: document.repaired,
    })
}

/// The address of a document without a URL: a hash of the name of its file, of its identifier, or
/// of its number where it has none, and of what it says.
fn name_of(passed: &Passed<'_>) -> String {
    let Passed { source, number, document, .. } = passed;
    let mut hash = Xxh3::new();
    let parts = [&source.id, &document.id_or(*number), &*document.title, &*document.text];
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    format!("{URN}{:032x}", hash.digest128())
}

/// A number for how an import reads: another one reads the same file anew.
fn digest_of(options: &ImportOptions) -> u128 {
    let ImportOptions { input, filters, .. } = options;
    xxh3_128(format!("{input:?} {filters:?}").as_bytes())
}
