//! The deduplicated corpus as files, with every dropped copy listed beside it.

mod skipped;
mod verdicts;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use redb::ReadableTable as _;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::clusters::ranked;
use crate::documents::{Copy, Document, copies_of, read_body, read_copy};
use crate::robots::meta::Honour;
use crate::store::{self, ReadTables, Store};

pub use verdicts::{Changes, Place, WriteError, changes, verdicts, write_verdicts};

/// Form of the exported documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values with a header line (RFC 4180).
    Csv,
}

impl Format {
    /// Returns the ending of file names.
    #[must_use]
    pub fn ending(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
        }
    }
}

/// One document of the corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Identifier of the document.
    pub doc_id: String,
    /// Address of the canonical copy.
    pub url: String,
    /// Title of the canonical copy.
    pub title: String,
    /// Main text of the canonical copy.
    pub text: String,
    /// Language (ISO 639-1), or empty.
    pub language: String,
    /// Authors of the canonical copy, joined by `, `, or empty.
    pub author: String,
    /// When the canonical copy says it was published (ISO 8601), or empty.
    pub published: String,
    /// When it says it was last changed, or empty.
    pub modified: String,
    /// Name of its site, or empty.
    pub site: String,
    /// Its description of itself, or empty.
    pub description: String,
    /// Category, as whoever sent the article names it, or empty.
    pub category: String,
    /// Images in it, as whoever sent it counted them.
    pub images: u64,
    /// Popularity of the canonical copy.
    pub popularity: u64,
    /// Copies, the canonical one among them.
    pub copies: u64,
    /// When the first copy came.
    pub first_seen: String,
    /// When the newest copy came.
    pub last_seen: String,
    /// Why the text was left out; empty if it was not.
    pub withheld: &'static str,
}

/// A document that is not in the corpus because its page does not allow it, or is gone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Withheld {
    /// Identifier of the document.
    pub doc_id: String,
    /// Address of its canonical copy.
    pub url: String,
    /// What that page asks for; `gone` if no address carries the document any more.
    pub reason: &'static str,
}

/// One copy that is not in the corpus, because another one is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// Address of the copy.
    pub url: String,
    /// Identifier of its document.
    pub doc_id: String,
    /// Address of the copy that was kept.
    pub canonical: String,
    /// By which key it was recognised; `first` if it was the first and lost to a better copy;
    /// `skipped_by_rule` or `skipped_by_feed` if it was not fetched, so that nothing else is
    /// known of it.
    pub reason: &'static str,
    /// Number of the rule by which it was not fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<u64>,
    /// Number of the feed of verdicts by which it was not fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed: Option<u64>,
    /// Bits between the fingerprints.
    pub distance: u8,
    /// Estimated similarity of the texts, 0 to 1.
    pub similarity: f64,
    /// Its popularity.
    pub popularity: u64,
    /// Its title.
    pub title: String,
    /// Address that its page names as canonical; empty for none or its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub declared_canonical: String,
    /// When it came.
    pub seen: String,
}

/// What an export wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Documents.
    pub documents: u64,
    /// Dropped copies, those that were not fetched among them.
    pub duplicates: u64,
    /// Addresses that were not fetched, because by a rule or a feed they are stored pages.
    pub skipped: u64,
    /// Documents that were left out, or whose text was, by reason.
    pub withheld: BTreeMap<&'static str, u64>,
    /// The file of documents.
    pub path: PathBuf,
    /// The file of dropped copies.
    pub duplicates_path: PathBuf,
    /// The file of documents that were left out.
    pub withheld_path: PathBuf,
}

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
}

/// Writes `documents.jsonl` (or `.csv`), `duplicates.jsonl` and `withheld.jsonl` into `folder`.
///
/// Of each document the best copy is written whose page allows it at the moment `now`, as far as
/// `honour` asks for that; without its text if no page allows that, and not at all if none allows
/// anything. Documents stand in the order of their numbers. Each file is written under another
/// name and renamed when it is whole, so that a file of that name is never half a corpus.
pub fn export(
    store: &Store,
    (format, folder): (Format, &Path),
    honour: &Honour,
    now: Timestamp,
) -> Result<Summary, Error> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    };
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    let tables = store.read()?;
    let mut summary = Summary {
        documents: 0,
        duplicates: 0,
        skipped: 0,
        withheld: BTreeMap::new(),
        path: folder.join(format!("documents.{}", format.ending())),
        duplicates_path: folder.join("duplicates.jsonl"),
        withheld_path: folder.join("withheld.jsonl"),
    };
    let create = |path: &Path, format| Writer::create(path, format).map_err(io(path));
    let mut kept = create(&summary.path, format)?;
    let mut dropped = create(&summary.duplicates_path, Format::Jsonl)?;
    let mut withheld = create(&summary.withheld_path, Format::Jsonl)?;
    // Documents of which another copy is shown than the canonical one, or none.
    let mut shown: Shown = HashMap::new();
    for row in tables.documents.iter().map_err(store::Error::from)? {
        let (number, row) = row.map_err(store::Error::from)?;
        let mut document = Document::decode(row.value()).map_err(store::Error::from)?;
        let copies = copies_of(&tables.copies, number.value())?;
        if document.gone.0 != 0 {
            let (doc_id, url) = (document.id.to_string(), document.canonical);
            let row = Withheld { doc_id, url, reason: "gone" };
            withheld.write(&row).map_err(io(&summary.withheld_path))?;
            *summary.withheld.entry("gone").or_default() += 1;
            shown.insert(number.value(), None);
            continue;
        }
        let hidden = match allowed(&document, &copies, honour, now) {
            Allowed::Nothing(reason) => {
                let (doc_id, url) = (document.id.to_string(), document.canonical);
                let row = Withheld { doc_id, url, reason };
                withheld.write(&row).map_err(io(&summary.withheld_path))?;
                *summary.withheld.entry(reason).or_default() += 1;
                shown.insert(number.value(), None);
                continue;
            }
            Allowed::Copy { address, copy, hidden } => {
                stand_for(&mut document, address, copy);
                shown.insert(number.value(), Some(address.to_owned()));
                hidden
            }
            Allowed::Canonical => false,
        };
        let mut row = row_of(&tables, &document)?;
        if hidden {
            (row.text, row.withheld) = (String::new(), "noarchive");
            *summary.withheld.entry(row.withheld).or_default() += 1;
        }
        kept.write(&row).map_err(io(&summary.path))?;
        summary.documents += 1;
        tracing::trace!(url = document.canonical, "exported");
        for lost in dropped_of(&tables, number.value(), &document)? {
            dropped.write(&lost).map_err(io(&summary.duplicates_path))?;
            summary.duplicates += 1;
        }
    }
    for skipped in skipped::all(&tables, &shown)? {
        dropped.write(&skipped?).map_err(io(&summary.duplicates_path))?;
        summary.duplicates += 1;
        summary.skipped += 1;
    }
    kept.finish().map_err(io(&summary.path))?;
    dropped.finish().map_err(io(&summary.duplicates_path))?;
    withheld.finish().map_err(io(&summary.withheld_path))?;
    Ok(summary)
}

/// The address that is shown of a document, none if it is left out; those that are not named here
/// show their canonical copy.
type Shown = HashMap<u64, Option<String>>;

/// What the pages of a document allow.
enum Allowed<'a> {
    /// Its canonical copy stands as it is.
    Canonical,
    /// This copy, perhaps without its text.
    Copy { address: &'a str, copy: &'a Copy, hidden: bool },
    /// Nothing, for this reason.
    Nothing(&'static str),
}

fn allowed<'a>(
    document: &Document,
    copies: &'a [(String, Copy)],
    honour: &Honour,
    now: Timestamp,
) -> Allowed<'a> {
    let forbids = |copy: &Copy| copy.terms.forbids(honour, now);
    let hides = |copy: &Copy| copy.terms.hides_text(honour);
    let canonical = copies.iter().find(|(address, _)| *address == document.canonical);
    if canonical.is_none_or(|(_, copy)| forbids(copy).is_none() && !hides(copy)) {
        return Allowed::Canonical;
    }
    let free = ranked(copies).filter(|(_, _, copy)| forbids(copy).is_none());
    let best = free
        .min_by(|(one, _, a), (other, _, b)| hides(a).cmp(&hides(b)).then_with(|| one.cmp(other)));
    match (best, canonical) {
        (Some((_, address, copy)), _) => Allowed::Copy { address, copy, hidden: hides(copy) },
        (None, Some((_, copy))) => Allowed::Nothing(forbids(copy).unwrap_or("noarchive")),
        (None, None) => Allowed::Canonical,
    }
}

/// Makes `document` show the best copy whose page allows it at the moment `now`. Returns whether
/// the text must stay hidden; or the reason, if nothing of it may be shown.
pub fn show(
    tables: &ReadTables,
    (number, document): (u64, &mut Document),
    honour: &Honour,
    now: Timestamp,
) -> Result<Result<bool, &'static str>, store::Error> {
    if document.gone.0 != 0 {
        return Ok(Err("gone"));
    }
    let canonical = read_copy(&tables.copies, number, &document.canonical)?;
    let free = |copy: &Copy| copy.terms.forbids(honour, now).is_none();
    if canonical.is_none_or(|copy| free(&copy) && !copy.terms.hides_text(honour)) {
        return Ok(Ok(false));
    }
    let copies = copies_of(&tables.copies, number)?;
    Ok(match allowed(document, &copies, honour, now) {
        Allowed::Canonical => Ok(false),
        Allowed::Nothing(reason) => Err(reason),
        Allowed::Copy { address, copy, hidden } => {
            stand_for(document, address, copy);
            Ok(hidden)
        }
    })
}

/// Makes another copy the one that is shown.
fn stand_for(document: &mut Document, address: &str, copy: &Copy) {
    address.clone_into(&mut document.canonical);
    document.content = copy.content;
    document.title.clone_from(&copy.title);
    document.language.clone_from(&copy.language);
    document.popularity = copy.popularity;
    document.facts.clone_from(&copy.facts);
}

/// Returns a document as it is exported.
pub fn row_of(tables: &ReadTables, document: &Document) -> Result<Row, store::Error> {
    let facts = document.facts.clone();
    Ok(Row {
        doc_id: document.id.to_string(),
        url: document.canonical.clone(),
        title: document.title.clone(),
        text: read_body(&tables.bodies, document.content)?.unwrap_or_default(),
        language: document.language.clone(),
        author: facts.author,
        published: facts.published,
        modified: facts.modified,
        site: facts.site,
        description: facts.description,
        category: facts.category,
        images: facts.images,
        popularity: document.popularity,
        copies: document.copies,
        first_seen: Timestamp::to_string(&document.first_arrival),
        last_seen: Timestamp::to_string(&document.last_arrival),
        withheld: "",
    })
}

/// Returns the copies of a document that are not canonical, in the order of their addresses.
pub fn dropped_of(
    tables: &ReadTables,
    number: u64,
    document: &Document,
) -> Result<Vec<Dropped>, store::Error> {
    let copies = copies_of(&tables.copies, number)?.into_iter();
    let lost = copies.filter(|(address, _)| *address != document.canonical);
    Ok(lost
        .map(|(address, copy)| Dropped {
            url: address,
            doc_id: document.id.to_string(),
            canonical: document.canonical.clone(),
            reason: copy.key.as_str(),
            rule: None,
            feed: None,
            distance: copy.distance,
            similarity: f64::from(copy.similarity) / 1000.0,
            popularity: copy.popularity,
            title: copy.title,
            declared_canonical: copy.declared,
            seen: copy.arrival.to_string(),
        })
        .collect())
}

/// A file that gets its name when it is whole.
struct Writer {
    path: PathBuf,
    partial: PathBuf,
    out: Sink,
}

enum Sink {
    Jsonl(BufWriter<File>),
    Csv(Box<csv::Writer<File>>),
}

impl Writer {
    fn create(path: &Path, format: Format) -> std::io::Result<Self> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial)?;
        let out = match format {
            Format::Jsonl => Sink::Jsonl(BufWriter::new(file)),
            Format::Csv => Sink::Csv(Box::new(csv::Writer::from_writer(file))),
        };
        Ok(Self { path: path.to_owned(), partial, out })
    }

    fn write(&mut self, row: &impl Serialize) -> std::io::Result<()> {
        match &mut self.out {
            Sink::Jsonl(out) => {
                serde_json::to_writer(&mut *out, row)?;
                out.write_all(b"\n")
            }
            Sink::Csv(out) => out.serialize(row).map_err(std::io::Error::other),
        }
    }

    fn finish(self) -> std::io::Result<()> {
        let file = match self.out {
            Sink::Jsonl(out) => out.into_inner()?,
            Sink::Csv(out) => out.into_inner().map_err(csv::IntoInnerError::into_error)?,
        };
        file.sync_all()?;
        tracing::trace!(file = %self.path.display(), "written");
        std::fs::rename(&self.partial, &self.path)?;
        tracing::trace!(file = %self.path.display(), "renamed");
        Ok(())
    }
}
