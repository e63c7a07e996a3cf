//! The deduplicated corpus as files, with every dropped copy listed beside it.

mod csv;
mod duplicate_feed;
mod form;
mod jsonl;
mod skipped;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::base::clock::Timestamp;
use crate::base::outputs::{self, Outputs};
use crate::corpus::clusters::{self, Part, ranked};
use crate::corpus::documents::{Content, Copy, Document, copies_of, read_body};
use crate::corpus::tables::{CONTENTS, COPIES, DOCUMENTS};
use crate::store::{self, BadRow, Snapshot, Store, View as _};
use crate::web::robots::meta::Honour;

use form::{DocumentWriter, Mark};
use jsonl::JsonLines;

pub use csv::CSV;
pub use duplicate_feed::{
    Changes, FeedPlace, WriteError, changes, duplicates, write_duplicate_feed,
};
pub use form::{Config, FORMATS, Format};
pub use jsonl::JSONL;

/// The file of dropped copies.
const DUPLICATES: &str = "duplicates.jsonl";

/// The file of documents that were left out.
const WITHHELD: &str = "withheld.jsonl";

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

/// One document of the corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Identifier of the document.
    pub doc_id: String,
    /// URL of the canonical copy.
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
    /// URL of its canonical copy.
    pub url: String,
    /// What that page asks for; `gone` if no URL carries the document any more.
    pub reason: &'static str,
}

/// One copy that is not in the corpus, because another one is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// URL of the copy.
    pub url: String,
    /// Identifier of its document.
    pub doc_id: String,
    /// URL of the copy that was kept.
    pub canonical: String,
    /// By which key it was recognised; `first` if it was the first and lost to a better copy;
    /// `skipped_by_rule` or `skipped_by_feed` if it was not fetched, so that nothing else is
    /// known of it.
    pub reason: &'static str,
    /// Number of the rule by which it was not fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<u64>,
    /// Number of the duplicate feed by which it was not fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed: Option<u64>,
    /// Bits between its fingerprint and that of the copy that was kept.
    pub distance: u32,
    /// Estimated similarity of its text to that of the copy that was kept, 0 to 1.
    pub similarity: f64,
    /// Estimated similarity of its text to the one that made it a copy, 0 to 1: mostly that of the
    /// first copy.
    pub root_similarity: f64,
    /// Its popularity.
    pub popularity: u64,
    /// Its title.
    pub title: String,
    /// URL that its page names as canonical; empty for none or its own.
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
    /// URLs that were not fetched, because by a rule or a feed they are stored pages.
    pub skipped: u64,
    /// Documents that may turn out to be copies of others: their matches wait for a second look.
    pub unsettled: u64,
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
    #[error(transparent)]
    Output(#[from] outputs::Error),
}

impl Error {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Output(outputs::Error { path, source })
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
    let snapshot = store.snapshot()?;
    let settled = match unsettled {
        Unsettled::Apart => clusters::settled(&snapshot)?,
        Unsettled::Trusted => u64::MAX,
    };
    let mut corpus = Corpus::create(&snapshot, to, config, now)?;
    for entry in snapshot.rows(DOCUMENTS)? {
        let entry = entry?;
        let number = entry.key().map_err(store::Error::from)?;
        let document = entry.row().map_err(store::Error::from)?;
        let canonical = document.canonical.clone();
        for part in clusters::parts(&snapshot, number, document, settled)? {
            corpus.take(number, &canonical, part)?;
        }
    }
    corpus.finish()
}

/// The files of an export on their way.
struct Corpus<'a> {
    outputs: Outputs,
    snapshot: &'a Snapshot,
    honour: &'a Honour,
    now: Timestamp,
    kept: Box<dyn DocumentWriter>,
    dropped: JsonLines,
    withheld: JsonLines,
    shown: Shown,
    summary: Summary,
}

/// What is shown of documents of which that is not simply the canonical copy.
#[derive(Debug, Default)]
struct Shown {
    /// The URL that is shown of a document, none if it is left out; those that are not named
    /// here show their canonical copy.
    documents: HashMap<u64, Option<String>>,
    /// Unsettled copies: identifier of their document and the URL that is shown of it, none if
    /// it is left out.
    unsettled: HashMap<String, Option<(String, String)>>,
}

impl<'a> Corpus<'a> {
    fn create(
        snapshot: &'a Snapshot,
        to: Target<'_>,
        config: &'a Config,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let Target { format, folder } = to;
        let summary = Summary {
            documents: 0,
            duplicates: 0,
            skipped: 0,
            unsettled: 0,
            withheld: BTreeMap::new(),
            path: folder.join(format.file),
            duplicates_path: folder.join(DUPLICATES),
            withheld_path: folder.join(WITHHELD),
        };
        let mut outputs = Outputs::begin(folder)?;
        let begun = (format.begin)(outputs.create(format.file)?, config);
        let kept = begun.map_err(Error::io(&summary.path))?;
        let dropped = JsonLines(outputs.create(DUPLICATES)?);
        let withheld = JsonLines(outputs.create(WITHHELD)?);
        let (honour, shown) = (&config.honour, Shown::default());
        Ok(Self { outputs, snapshot, honour, now, kept, dropped, withheld, shown, summary })
    }

    /// Writes a document, or what is withheld of it. `canonical` is its canonical copy in the
    /// store.
    fn take(&mut self, number: u64, canonical: &str, part: Part) -> Result<(), Error> {
        let Part { mut document, copies, unsettled_with } = part;
        let hidden = match allowed(&document, &copies, self.honour, self.now) {
            Allowed::Canonical => Ok(false),
            Allowed::Nothing(reason) => Err(reason),
            Allowed::Copy { address, copy, hidden } => {
                stand_for(&mut document, address, copy);
                Ok(hidden)
            }
        };
        let shown = hidden.is_ok().then(|| document.canonical.clone());
        if unsettled_with.is_some() {
            let shown = shown.map(|address| (document.id.to_string(), address));
            let addresses = copies.iter().map(|(address, _)| (address.clone(), shown.clone()));
            self.shown.unsettled.extend(addresses);
        } else if shown.as_deref() != Some(canonical) {
            self.shown.documents.insert(number, shown);
        }
        let hidden = match hidden {
            Ok(hidden) => hidden,
            Err(reason) => return self.withhold(&document, reason),
        };
        let mut row = row_of(self.snapshot, &document)?;
        if hidden {
            (row.text, row.withheld) = (String::new(), "noarchive");
            *self.summary.withheld.entry(row.withheld).or_default() += 1;
        }
        let mark = unsettled_with.map_or_else(Mark::default, |with| Mark {
            unsettled: true,
            unsettled_with: with.to_string(),
        });
        let path = &self.summary.path;
        self.kept.write(&row, &mark).map_err(Error::io(path))?;
        self.summary.documents += 1;
        self.summary.unsettled += u64::from(mark.unsettled);
        tracing::trace!(url = document.canonical, "exported");
        for lost in dropped(self.snapshot, &document, copies)? {
            let path = &self.summary.duplicates_path;
            self.dropped.write(&lost).map_err(Error::io(path))?;
            self.summary.duplicates += 1;
        }
        Ok(())
    }

    fn withhold(&mut self, document: &Document, reason: &'static str) -> Result<(), Error> {
        let (doc_id, url) = (document.id.to_string(), document.canonical.clone());
        let path = &self.summary.withheld_path;
        self.withheld.write(&Withheld { doc_id, url, reason }).map_err(Error::io(path))?;
        *self.summary.withheld.entry(reason).or_default() += 1;
        Ok(())
    }

    /// Adds what was not fetched, and gives the files their names.
    fn finish(mut self) -> Result<Summary, Error> {
        for skipped in skipped::all(self.snapshot, &self.shown)? {
            let path = &self.summary.duplicates_path;
            self.dropped.write(&skipped?).map_err(Error::io(path))?;
            self.summary.duplicates += 1;
            self.summary.skipped += 1;
        }
        let kept = self.kept.end().map_err(Error::io(&self.summary.path))?;
        for file in [kept, self.dropped.0, self.withheld.0] {
            self.outputs.add(file)?;
        }
        self.outputs.publish()?;
        Ok(self.summary)
    }
}

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
    if document.gone.0 != 0 {
        return Allowed::Nothing("gone");
    }
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
    snapshot: &Snapshot,
    number: u64,
    document: &mut Document,
    honour: &Honour,
    now: Timestamp,
) -> Result<Result<bool, &'static str>, store::Error> {
    if document.gone.0 != 0 {
        return Ok(Err("gone"));
    }
    let canonical = snapshot.get(COPIES, (number, &document.canonical))?;
    let free = |copy: &Copy| copy.terms.forbids(honour, now).is_none();
    if canonical.is_none_or(|copy| free(&copy) && !copy.terms.hides_text(honour)) {
        return Ok(Ok(false));
    }
    let copies = copies_of(snapshot, number)?;
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
pub fn row_of(snapshot: &Snapshot, document: &Document) -> Result<Row, store::Error> {
    let facts = document.facts.clone();
    Ok(Row {
        doc_id: document.id.to_string(),
        url: document.canonical.clone(),
        title: document.title.clone(),
        text: read_body(snapshot, document.content)?.unwrap_or_default(),
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

/// Returns the copies of a document that are not canonical, in the order of their URLs.
pub fn dropped_of(
    snapshot: &Snapshot,
    number: u64,
    document: &Document,
) -> Result<Vec<Dropped>, store::Error> {
    dropped(snapshot, document, copies_of(snapshot, number)?)
}

/// Returns those of some copies that are not canonical. Reads each of their texts' keys once.
fn dropped(
    snapshot: &Snapshot,
    document: &Document,
    mut copies: Vec<(String, Copy)>,
) -> Result<Vec<Dropped>, store::Error> {
    copies.retain(|(address, _)| *address != document.canonical);
    let mut likeness =
        LikenessTo { snapshot, content: document.content, text: None, known: HashMap::new() };
    let mut lost = Vec::new();
    for (address, copy) in copies {
        let (similarity, distance) = likeness.of(copy.content)?;
        lost.push(Dropped {
            url: address,
            doc_id: document.id.to_string(),
            canonical: document.canonical.clone(),
            reason: copy.key.as_str(),
            rule: None,
            feed: None,
            distance,
            similarity,
            root_similarity: f64::from(copy.similarity) / 1000.0,
            popularity: copy.popularity,
            title: copy.title,
            declared_canonical: copy.declared,
            seen: copy.arrival.to_string(),
        });
    }
    Ok(lost)
}

/// How alike texts are to one of them.
struct LikenessTo<'a> {
    snapshot: &'a Snapshot,
    content: u64,
    /// Its keys, when the first other text was asked for.
    text: Option<Content>,
    known: HashMap<u64, (f64, u32)>,
}

impl LikenessTo<'_> {
    /// Returns the similarity of a text in thousandths, and the bits between the fingerprints.
    fn of(&mut self, content: u64) -> Result<(f64, u32), store::Error> {
        if content == self.content {
            return Ok((1.0, 0));
        }
        if let Some(known) = self.known.get(&content) {
            return Ok(*known);
        }
        let missing = BadRow { kind: "content", detail: "a copy carries one that is missing" };
        let read = |content| -> Result<Content, store::Error> {
            Ok(self.snapshot.get(CONTENTS, content)?.ok_or_else(|| missing.clone())?)
        };
        let other = read(content)?;
        let text = match &mut self.text {
            Some(text) => text,
            none => none.insert(read(self.content)?),
        };
        let similarity = f64::from(text.sketch.similarity(&other.sketch));
        let likeness =
            ((similarity * 1000.0).round() / 1000.0, text.fingerprint.distance(other.fingerprint));
        self.known.insert(content, likeness);
        Ok(likeness)
    }
}
