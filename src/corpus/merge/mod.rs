//! Stores that become one: every copy of the others is placed in it as if it came now, at the
//! moment at which it came to them; what was one document in any of them stays one, and elections
//! are made anew.
//!
//! A new store begins as a copy of the first one, with its queues and hosts. Of the others the
//! corpus is taken: documents, copies, texts, and what senders know their articles by. Their URLs
//! that wait are counted and left.
//!
//! How far it has come is a row of `meta`, written with what it tells: a run that was killed goes
//! on where its last commit was, and ends like one that was not. It also tells how far the changes
//! of each store are here: what has not changed there since stays where later looks have left it.

mod document;
mod finish;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::clusters;
use super::dedup::{self, Looks, Placer};
use super::documents::{CHANGES_FROM, Sent};
use super::index::Index;
use super::tables::{CONTENTS, DOCUMENTS, REVIEWS, SENT};
use crate::base::clock::{Clock, Timestamp};
use crate::neardup;
use crate::store::{
    self, Batch, CHANGES_EPOCH, META, Replacement, STORE_NUMBER, Snapshot, Store, Update as _,
    View as _, number_above, unique_number,
};
use crate::urls::Normalize;

use document::{Source, SourceDocument, place_document};
pub use finish::{MergeSummary, MergedSource};

/// Name in `meta` of how far a merge has come.
const PROGRESS: &str = "merge";

/// Copies that are placed in one commit.
const COMMIT_COPIES: u64 = 1_000;

/// Bytes of texts that are placed in one commit.
const COMMIT_BYTES: u64 = 16 << 20;

/// Rows of articles that were sent that are taken over in one commit.
const COMMIT_SENT: usize = 4_096;

/// Memory of the page cache of a store that is read.
const SOURCE_CACHE_BYTES: usize = 32 << 20;

/// Why stores cannot become one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A store cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The index cannot be used.
    #[error(transparent)]
    Dedup(#[from] dedup::Error),
    /// A store is named twice.
    #[error("the store {} is named twice", .0.display())]
    Twice(PathBuf),
    /// There is nothing to merge.
    #[error("a new store needs two stores or more to be made of")]
    Alone,
    /// A setting that is fixed differs.
    #[error(
        "{} was made with {name} = {found}, {} with {own}: such stores cannot be one",
        folder.display(), into.display()
    )]
    Setting {
        /// The store that differs.
        folder: PathBuf,
        /// The store that they are to become.
        into: PathBuf,
        /// Name of the setting.
        name: String,
        /// What it was made with.
        found: String,
        /// What the other one was made with.
        own: String,
    },
    /// A copy of a store is not in the one that they became.
    #[error("{} has a copy at {url} that is not in {}", folder.display(), into.display())]
    Lost {
        /// The store that has it.
        folder: PathBuf,
        /// The store that lacks it.
        into: PathBuf,
        /// Its URL.
        url: String,
    },
}

impl From<store::BadRow> for MergeError {
    fn from(error: store::BadRow) -> Self {
        Self::Store(error.into())
    }
}

/// What becomes one, and where.
#[derive(Debug, Clone, Copy)]
pub struct MergeOrder<'a> {
    /// The stores. The first one is the base of a new store.
    pub sources: &'a [PathBuf],
    /// The store that they become: it is made if it is not there.
    pub into: &'a Path,
    /// Memory of the page cache of that store.
    pub cache_bytes: usize,
    /// How duplicates are found.
    pub config: &'a neardup::Config,
}

/// How far a merge has come.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Progress {
    /// Folder of the store of which this one began as a copy; empty for none.
    base: String,
    /// The last content before the first one that was placed.
    first: u64,
    /// Where to go on, by the folder of each store; empty when all is done.
    next: BTreeMap<String, Step>,
    /// Nothing was placed since the last look at all matches.
    settled: bool,
    /// How far the changes of each store are here, by its folder, as a cursor.
    #[serde(default)]
    taken: BTreeMap<String, String>,
    /// How far they will be when this merge ends.
    #[serde(default)]
    taking: BTreeMap<String, String>,
}

/// Where a store is gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Step {
    /// At this document.
    Documents(u64),
    /// At the articles that were sent.
    Sent,
    /// Nowhere: all of it is there.
    Done,
}

/// Makes stores one. `tell` hears how many documents of how many have been placed.
///
/// # Errors
///
/// What was placed before an error stays. The same order goes on from there.
pub fn merge(
    order: MergeOrder<'_>,
    mut tell: impl FnMut(u64, u64),
) -> Result<MergeSummary, MergeError> {
    let sources = open_all(&order)?;
    if !order.into.join("store.redb").exists() {
        begin_with(&sources, &order)?;
    }
    let store = Store::open(order.into, order.cache_bytes)?;
    for source in &sources {
        fits(&store, source, order.into)?;
    }
    let index = Arc::new(Mutex::new(Index::open(&store, order.config)?));
    let work = Work { store: &store, index, config: order.config };
    let mut progress = read_progress(&store.snapshot()?)?;
    let of: u64 = sources.iter().map(|source| source.documents).sum();
    let mut placed = 0;
    for source in &sources {
        let before = placed;
        if source.key != progress.base {
            work.take_over(source, &mut progress, |documents| tell(before + documents, of))?;
        }
        placed += source.documents;
        tell(placed, of);
    }
    let base = progress.base.clone();
    work.settle(&progress)?;
    drop(work);
    let summary = finish::verify(&store, &sources, &order, &base)?;
    drop(store);
    Ok(summary)
}

/// Calls `each` with the identifier of every document of the named stores that became part of
/// another one, its store, and the identifier of that one.
pub fn became_part(
    order: MergeOrder<'_>,
    each: impl FnMut(&Path, &str, &str) -> std::io::Result<()>,
) -> Result<std::io::Result<()>, MergeError> {
    finish::became_part(&open_all(&order)?, &order, each)
}

fn open_all(order: &MergeOrder<'_>) -> Result<Vec<Source>, MergeError> {
    let mut sources: Vec<Source> = Vec::new();
    let into = order.into.canonicalize().ok();
    for folder in order.sources {
        let path = folder.canonicalize().ok();
        let same = |other: &Source| other.folder.canonicalize().ok() == path;
        if path.is_some() && (path == into || sources.iter().any(same)) {
            return Err(MergeError::Twice(folder.clone()));
        }
        let store = Store::open_to_read(folder, SOURCE_CACHE_BYTES)?;
        sources.push(Source::new(folder, store)?);
    }
    Ok(sources)
}

/// Makes the new store as a copy of the first one, with a number of its own above those of all
/// others: what comes later has larger numbers.
fn begin_with(sources: &[Source], order: &MergeOrder<'_>) -> Result<(), MergeError> {
    let [base, _, ..] = sources else { return Err(MergeError::Alone) };
    let last = base.snapshot.last(CONTENTS)?.map(|row| row.key()).transpose()?;
    let last = last.map_or(0, |last| last >> 40).max(base.number);
    let number = number_above(last).ok_or(store::Error::Full("store_number"))?;
    let mut work = Replacement::anew(order.into, order.cache_bytes, Some(number))?;
    work.copy(&base.snapshot)?;
    let store = work.new_store();
    let mut batch = store.begin()?;
    let first = unique_number(number, 0).unwrap_or_default().to_be_bytes().to_vec();
    batch.put(META, STORE_NUMBER, &number.to_be_bytes().to_vec())?;
    batch.put(META, "next_document", &first)?;
    batch.put(META, "next_content", &first)?;
    batch.put(META, CHANGES_EPOCH, &number.to_be_bytes().to_vec())?;
    batch.remove(META, CHANGES_FROM)?;
    let taking = BTreeMap::from([(base.key.clone(), base.changes.to_string())]);
    let base = Progress { base: base.key.clone(), taking, ..Progress::default() };
    write_progress(&mut batch, &base)?;
    batch.commit()?;
    work.finish()?;
    Ok(())
}

/// Compares the settings that are fixed.
fn fits(store: &Store, source: &Source, into: &Path) -> Result<(), MergeError> {
    let setting = |name: &str, found: String, own: String| MergeError::Setting {
        folder: source.folder.clone(),
        into: into.to_owned(),
        name: name.to_owned(),
        found,
        own,
    };
    if let Some(found) = &source.features {
        match store.setting("features")? {
            Some(own) if own != *found => return Err(setting("features", found.clone(), own)),
            Some(_) => {}
            None => store.fix_setting("features", found)?,
        }
    }
    if let Some(found) = &source.urls {
        match store.setting("urls")? {
            Some(own) if own != *found => {
                let rules = Normalize::from_stored(found).zip(Normalize::from_stored(&own));
                let differs = rules.and_then(|(found, own)| found.difference(&own));
                if let Some((name, found, own)) = differs {
                    return Err(setting(&format!("urls.{name}"), found, own));
                }
            }
            Some(_) => {}
            None => store.fix_setting("urls", found)?,
        }
    }
    Ok(())
}

fn read_progress(snapshot: &Snapshot) -> Result<Progress, MergeError> {
    let Some(row) = snapshot.get(META, PROGRESS)? else { return Ok(Progress::default()) };
    let bad = |_| store::BadRow { kind: "meta", detail: "how far a merge is cannot be read" };
    Ok(serde_json::from_slice(&row).map_err(bad)?)
}

/// Tells whether a store is one that stores are to become, and has not all of them yet.
///
/// # Errors
///
/// If the store cannot be read.
pub fn is_unfinished(snapshot: &Snapshot) -> Result<bool, MergeError> {
    Ok(snapshot.has(META, PROGRESS)? && !read_progress(snapshot)?.settled)
}

fn write_progress(batch: &mut Batch, progress: &Progress) -> Result<(), store::Error> {
    let row = serde_json::to_vec(progress).expect("numbers have a form in JSON");
    batch.put(META, PROGRESS, &row)
}

/// What a merge works with.
struct Work<'a> {
    store: &'a Store,
    index: Arc<Mutex<Index>>,
    config: &'a neardup::Config,
}

impl Work<'_> {
    fn placer<'a>(&'a self, batch: &'a mut Batch, now: Timestamp) -> Placer<'a> {
        Placer { batch, index: &self.index, config: self.config, now }
    }

    fn begin(&self) -> Result<Batch, MergeError> {
        Ok(dedup::begin(self.store, &self.index, self.config)?)
    }

    /// Places what a store has, from where it was left.
    fn take_over(
        &self,
        source: &Source,
        progress: &mut Progress,
        mut tell: impl FnMut(u64),
    ) -> Result<(), MergeError> {
        let mut step = progress.next.get(&source.key).copied();
        if step.is_none() {
            progress.taking.insert(source.key.clone(), source.changes.to_string());
        }
        let taken = progress.taken.get(&source.key).and_then(|cursor| cursor.parse().ok());
        if step != Some(Step::Done) {
            if progress.settled || progress.next.is_empty() {
                // Matches of what was there before have had their looks.
                progress.first = clusters::newest(&self.store.snapshot()?)?;
            }
            progress.settled = false;
        }
        let mut placed = 0;
        while !matches!(step, Some(Step::Sent | Step::Done)) {
            let from = match step {
                Some(Step::Documents(number)) => number,
                _ => 0,
            };
            let mut batch = self.begin()?;
            let (mut copies, mut bytes, mut next) = (0, 0, Step::Sent);
            for entry in source.snapshot.range(DOCUMENTS, from..)? {
                let entry = entry?;
                let number = entry.key()?;
                if copies >= COMMIT_COPIES || bytes >= COMMIT_BYTES {
                    next = Step::Documents(number);
                    break;
                }
                let row = entry.row()?;
                let stood = source.has_stood(number, taken)?;
                let document = SourceDocument { number, row, stood };
                let done = place_document(self, &mut batch, source, &document)?;
                copies += done.copies.max(1);
                bytes += done.bytes;
                placed += 1;
            }
            Looks::default().step(&mut self.placer(&mut batch, source.latest))?;
            progress.next.insert(source.key.clone(), next);
            write_progress(&mut batch, progress)?;
            tracing::trace!("merging");
            batch.commit()?;
            tracing::trace!("merged part");
            tell(placed);
            step = Some(next);
        }
        if step == Some(Step::Sent) {
            self.take_sent(source)?;
            let mut batch = self.begin()?;
            progress.next.insert(source.key.clone(), Step::Done);
            write_progress(&mut batch, progress)?;
            batch.commit()?;
        }
        Ok(())
    }

    /// Takes over by what senders know their articles. What is there is left as it is.
    fn take_sent(&self, source: &Source) -> Result<(), MergeError> {
        let mut rows = source.snapshot.rows(SENT)?.peekable();
        while rows.peek().is_some() {
            let mut batch = self.begin()?;
            for entry in rows.by_ref().take(COMMIT_SENT) {
                let entry = entry?;
                let (name, sent) = (entry.key()?, entry.row()?);
                if batch.has(SENT, name)? {
                    continue;
                }
                // Its document may have ended there.
                if let Some((_, content)) = document::carried(&batch, &sent.copy)? {
                    batch.put(SENT, name, &Sent { content, ..sent })?;
                }
            }
            batch.commit()?;
        }
        Ok(())
    }

    /// Looks at all matches that were less than certain, until none moves, and puts the index into
    /// the store.
    fn settle(&self, progress: &Progress) -> Result<(), MergeError> {
        if !progress.settled {
            let mut batch = self.begin()?;
            let until = clusters::newest(&batch)?;
            let mut placer = self.placer(&mut batch, Clock::System.now());
            for pass in 0..neardup::LOOKS_MAX {
                let range = dedup::Range { after: progress.first, until, apart: pass == 0 };
                let mut looked = placer.look(range, || true)?.0;
                while placer.batch.len(REVIEWS)? > 0 {
                    looked.merged += placer.review()?;
                }
                if looked == dedup::Looked::default() {
                    break;
                }
            }
            // The same order brings later what has come to its stores since.
            let mut taken = progress.taken.clone();
            taken.extend(progress.taking.clone());
            write_progress(&mut batch, &Progress { settled: true, taken, ..Progress::default() })?;
            tracing::trace!("settling");
            batch.commit()?;
            tracing::trace!("settled");
        }
        Ok(dedup::settle(self.store, &self.index, self.config)?)
    }
}
