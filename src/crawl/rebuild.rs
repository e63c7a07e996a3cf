//! A store made anew from WARC files: what was exchanged goes the way of a page once more.
//!
//! Files of this program say what a crawl knew when it read a page (its seeds and settings, the
//! rank of each URL, what was left out of its text, where its commits were), so that the documents
//! are the same. Files of others have pages alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::base::clock::Clock;
use crate::corpus::boilerplate::KnownBlocks;
use crate::corpus::dedup;
use crate::corpus::index::Index;
use crate::corpus::tables::{COPIES, DOCUMENTS};
use crate::frontier::ADDRESSES;
use crate::store::{self, Batch, META, Store, Update as _, View as _};
use crate::text::features::Fingerprinter;
use crate::urls::ScopeKind;
use crate::warc::{self, Entry, Reader};

use super::archive::SETTINGS;
use super::committer::{Committer, Parts, Replay};
use super::fingerprint::With;
use super::{Context, Error, Settings, fix_rules, memory};

mod source;

use source::name_of;
pub(super) use source::{Replayed, Run, Source, Step};

/// Row of `meta` that tells how far the store is made, as JSON.
const REBUILD: &str = "rebuild";

/// Records at the start of a file among which the settings of its crawl are looked for.
const SETTINGS_WITHIN: usize = 16;

/// Why a store cannot be made anew.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RebuildError {
    /// The store has something else.
    #[error(
        "the store has URLs or documents already, and not from these files: choose a new folder"
    )]
    Used,
    /// It was made before.
    #[error("the store was made from WARC files already, and is whole: choose a new folder")]
    Done,
    /// No record of any file can be used.
    #[error("no page can be read from these files")]
    Nothing,
    /// A file cannot be read.
    #[error("{0}")]
    File(String),
    /// The way of a page failed.
    #[error(transparent)]
    Crawl(#[from] Error),
}

impl From<store::Error> for RebuildError {
    fn from(error: store::Error) -> Self {
        Self::Crawl(error.into())
    }
}

impl From<dedup::Error> for RebuildError {
    fn from(error: dedup::Error) -> Self {
        Self::Crawl(error.into())
    }
}

impl From<warc::Error> for RebuildError {
    fn from(error: warc::Error) -> Self {
        Self::File(error.to_string())
    }
}

/// How far it has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RebuildProgress {
    /// Exchanges that went the way of a page, over all runs of the command.
    pub visits: u64,
    /// Bytes of the files that were read, packed.
    pub read: u64,
    /// Bytes of all files.
    pub of: u64,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rebuilt {
    /// Exchanges that went the way of a page.
    pub visits: u64,
    /// Those that did not, by reason.
    pub unused: BTreeMap<String, u64>,
    /// Parts of files that are no record, by what is wrong with them.
    pub faults: BTreeMap<String, u64>,
    /// Documents in the store.
    pub documents: u64,
    /// Copies of documents in the store, canonical ones among them.
    pub copies: u64,
}

/// A place in the files.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Place {
    file: String,
    offset: u64,
    inside: u64,
}

/// How far a store is made.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Where the seeds of the present run stand; none if it has none.
    run: Option<Place>,
    /// The last visit that was recorded.
    pub at: Place,
    last_commit: Option<u64>,
    pub visits: u64,
    counts: Counts,
    /// Visits that were not recorded, by reason.
    unused: BTreeMap<String, u64>,
    done: bool,
}

/// What was found in the files that is no visit.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    unused: BTreeMap<String, u64>,
    faults: BTreeMap<String, u64>,
}

impl Progress {
    fn read(store: &Store) -> Result<Option<Self>, store::Error> {
        let Some(row) = store.snapshot()?.get(META, REBUILD)? else { return Ok(None) };
        let bad = store::BadRow { kind: "meta", detail: "how far the store is rebuilt" };
        Ok(Some(serde_json::from_slice(&row).map_err(|_| bad)?))
    }

    pub(super) fn write(&self, batch: &mut Batch) -> Result<(), store::Error> {
        let json = serde_json::to_vec(self).expect("it has a form in JSON");
        batch.put(META, REBUILD, &json)
    }

    /// Writes it in a transaction of its own.
    fn commit(&self, store: &Store) -> Result<(), store::Error> {
        let _turn = store.turn();
        let mut batch = store.begin()?;
        self.write(&mut batch)?;
        batch.commit()
    }

    /// Counts a visit that is not recorded.
    pub(super) fn unused(&mut self, reason: &str) {
        *self.unused.entry(reason.to_owned()).or_default() += 1;
    }

    pub(super) fn note(&mut self, counts: &Counts) {
        self.counts.clone_from(counts);
    }

    /// Tells whether the crawl made a commit before a visit.
    pub(super) fn is_other_commit(&mut self, commit: u64) -> bool {
        self.last_commit.replace(commit).is_some_and(|before| before != commit)
    }
}

/// Returns the settings of the crawl that wrote a file, as they stand in a file of settings; none
/// if it does not say.
pub fn stated_settings(file: &Path) -> Result<Option<String>, RebuildError> {
    let mut reader = Reader::open(file)?;
    for _ in 0..SETTINGS_WITHIN {
        match reader.next()? {
            Some(Entry::Record(record)) if record.target() == Some(SETTINGS) => {
                return Ok(Some(String::from_utf8_lossy(&record.block).into_owned()));
            }
            Some(_) => {}
            None => break,
        }
    }
    Ok(None)
}

/// Makes a store anew from what was exchanged, or goes on where it was interrupted. `tell` hears
/// now and then how far it has come.
///
/// # Errors
///
/// If a file cannot be read, or the store cannot be written. What was committed stays.
pub fn rebuild(
    store: &Store,
    settings: &Settings,
    files: &[PathBuf],
    tell: &dyn Fn(RebuildProgress),
) -> Result<Rebuilt, RebuildError> {
    let resumed = Progress::read(store)?;
    let snapshot = store.snapshot()?;
    match &resumed {
        Some(Progress { done: true, .. }) => return Err(RebuildError::Done),
        None if snapshot.len(ADDRESSES)? + snapshot.len(DOCUMENTS)? > 0 => {
            return Err(RebuildError::Used);
        }
        _ => {}
    }
    drop(snapshot);
    fix_rules(store, &settings.normalize)?;
    let mut progress = resumed.unwrap_or_default();
    // From here on, the store is one that is made of files.
    progress.commit(store)?;
    let mut source = Source::new(files, settings, &progress);
    let mut step = match progress.run.clone() {
        Some(place) => Step::Run(run_at(files, &place, settings)?),
        None => source.next()?,
    };
    let parts = Common::new(store, settings, tell)?;
    loop {
        let run = match step {
            Step::End => break,
            Step::RunEnd => {
                step = source.next()?;
                continue;
            }
            Step::Run(run) => run,
            // A file of somebody else: its pages are all that was wanted.
            Step::Visit(visit) => {
                let date = visit.date;
                source.put_back(Step::Visit(visit));
                Run { seeds: Vec::new(), date, place: None }
            }
        };
        step = parts.replay(&run, &mut source, &mut progress)?;
    }
    let Common { index, .. } = &parts;
    dedup::settle(store, index, &settings.dedup)?;
    progress.note(source.counts());
    if progress.visits == 0 {
        return Err(RebuildError::Nothing);
    }
    progress.done = true;
    progress.commit(store)?;
    let snapshot = store.snapshot()?;
    let mut unused = progress.unused;
    for (reason, count) in progress.counts.unused {
        *unused.entry(reason).or_default() += count;
    }
    Ok(Rebuilt {
        visits: progress.visits,
        unused,
        faults: progress.counts.faults,
        documents: snapshot.len(DOCUMENTS)?,
        copies: snapshot.len(COPIES)?,
    })
}

/// Reads the seeds of a run again.
fn run_at(files: &[PathBuf], place: &Place, settings: &Settings) -> Result<Run, RebuildError> {
    let lost = || RebuildError::File(format!("{} is not among the files any more", place.file));
    let at = files.iter().position(|file| name_of(file) == place.file).ok_or_else(lost)?;
    let mut source = Source::new(&files[at..=at], settings, &Progress::default());
    loop {
        match source.next()? {
            Step::Run(run) if run.place.as_ref() == Some(place) => return Ok(run),
            Step::End => return Err(lost()),
            _ => {}
        }
    }
}

/// What all runs of a store have in common.
struct Common<'a> {
    store: &'a Store,
    settings: &'a Settings,
    fingerprinter: Fingerprinter,
    index: Arc<Mutex<Index>>,
    memory: memory::Shared,
    threads: usize,
    tell: &'a dyn Fn(RebuildProgress),
}

impl<'a> Common<'a> {
    fn new(
        store: &'a Store,
        settings: &'a Settings,
        tell: &'a dyn Fn(RebuildProgress),
    ) -> Result<Self, RebuildError> {
        let fingerprinter = Fingerprinter::for_articles(settings.dedup.features.clone())
            .map_err(|error| Error::from(dedup::Error::Settings(error.into())))?;
        Ok(Self {
            store,
            settings,
            fingerprinter,
            index: Arc::new(Mutex::new(Index::open(store, &settings.dedup)?)),
            memory: memory::Shared::new(settings),
            threads: settings.limits.threads(),
            tell,
        })
    }

    /// Records the visits of one run. Returns the step that comes after it.
    fn replay(
        &self,
        run: &Run,
        source: &mut Source,
        progress: &mut Progress,
    ) -> Result<Step, Error> {
        let mut settings = self.settings.clone();
        settings.warc.folder.clear();
        if run.place.is_none() {
            settings.scope = ScopeKind::Any;
        }
        if progress.run != run.place {
            progress.last_commit = None;
        }
        progress.run.clone_from(&run.place);
        let context = Context { clock: Clock::hand(run.date), ..Context::default() };
        let known = KnownBlocks::default();
        // Nothing is asked for, and nothing comes but from the files.
        let (errands, _handed) = async_channel::bounded(1);
        let (_done, news) = sync_channel(1);
        let parts = Parts {
            store: self.store,
            index: Arc::clone(&self.index),
            known: known.clone(),
            settings: &settings,
            requests_max: 1,
            room: None,
            context: &context,
            errands,
            home: None,
            done: news,
        };
        let mut committer = Committer::start(parts, &run.seeds, &[])?;
        committer.begin_replay()?;
        let with = With {
            settings: &settings,
            fingerprinter: &self.fingerprinter,
            known: &known,
            memory: &self.memory,
        };
        let replay = Replay { with, threads: self.threads, tell: self.tell };
        let end = committer.replay(source, &replay, progress)?;
        if matches!(end, Step::RunEnd | Step::End) {
            committer.end_replay(progress)?;
        }
        Ok(end)
    }
}
