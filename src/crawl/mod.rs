//! The crawl itself: one straight line for a page.
//!
//! ```text
//! offer -> lease -> visit -> fingerprint -> look up -> judge -> join -> keep -> settle -> commit
//! \ committer  /  visitors  fingerprinters  looker   \-------------- committer ---------------/
//! ```
//!
//! Visitors are async tasks that hold nothing a crash may lose. Fingerprinters are threads that
//! turn answers into articles. The looker finds what is like them, some at a time. The committer is
//! the one thread that owns the write transaction: a page is stored with all its keys and links, or
//! not at all.

mod archive;
mod backups;
mod beyond;
mod committer;
mod crew;
mod fingerprint;
pub mod jobs;
mod lists;
mod looker;
mod memory;
mod no_pages;
mod rebuild;
mod report;
mod running;
mod told;
#[cfg_attr(
    not(feature = "object-store"),
    allow(dead_code, reason = "without object storage there is no other place for files")
)]
mod uploads;
mod visitor;
#[cfg(feature = "cluster")]
mod worker;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use serde::{Deserialize, Serialize};

use crate::base::clock::Clock;
use crate::base::remote;
use crate::base::system;
use crate::base::units::{Size, Time};
use crate::corpus::boilerplate;
use crate::corpus::dedup;
use crate::corpus::documents::KeepConfig;
use crate::corpus::index::{self, Index};
use crate::frontier;
use crate::frontier::duplicate_feed;
use crate::neardup;
use crate::page;
use crate::store::{self, Store};
use crate::urls::{Filter, FilterConfig, FilterError, Normalize, PageUrl, ScopeKind};
use crate::warc;
use crate::web::fetch::{self, Fetcher};

use crew::{Crew, CrewPlan, Part};

pub use backups::{BackupConfig, Backups, BackupsHandle, BackupsState};
pub use beyond::{Beyond, BeyondError, CommittedBatch, CorpusChange, HeldTurn, News, Turn};
pub use running::{Begun, Crawls, Running, Totals};

pub use archive::URN;
pub use no_pages::NoPages;
pub use rebuild::{RebuildError, RebuildProgress, Rebuilt, rebuild, stated_settings};
pub use report::{Boilerplate, HostLine, Report, Revisits, SeedFailure};
pub use told::{NewDocument, OnDocument};
pub use uploads::UploadError;
#[cfg(feature = "cluster")]
pub use worker::{
    Crowd, CrowdTotals, ShardStatus, WorkerConfig, WorkerCounts, WorkerError, WorkerPlan,
    WorkerReport, WorkerStatus, run as work,
};

/// Sitemaps that are in memory at a time: each may have 50 MB.
const SITEMAPS_AT_A_TIME: usize = 4;

/// Settings of a crawl: those of the modules it joins, and its own limits.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// How far to go from the seeds.
    pub scope: ScopeKind,
    /// Which URLs are kept out.
    pub filter: FilterConfig,
    /// Normal form of URLs.
    pub normalize: Normalize,
    /// Queues and pace.
    pub frontier: frontier::Config,
    /// Requests.
    pub fetch: fetch::Config,
    /// Credentials.
    pub auth: fetch::AuthConfig,
    /// Main text.
    pub extract: page::Limits,
    /// What repeats on the pages of a host.
    pub boilerplate: boilerplate::Config,
    /// Duplicates.
    pub dedup: neardup::Config,
    /// Further visits.
    pub recrawl: frontier::Recrawl,
    /// What is kept of pages beside their texts.
    pub keep: KeepConfig,
    /// Limits of the run.
    pub limits: RunLimits,
    /// What was exchanged, in files.
    pub warc: warc::Config,
    /// Memory that the parts of a service have: where none runs beside the crawl, the filters of
    /// the index have it.
    pub unserved: Size,
}

impl Settings {
    /// Makes the client of these settings, which also tells whether they can be.
    pub fn fetcher(&self) -> Result<Fetcher, fetch::Error> {
        Ok(Fetcher::new(self.fetch.clone())?.with_auth(fetch::Auth::read(&self.auth)?))
    }

    /// Tells the first setting that cannot be, before there is a store that nobody can use.
    pub fn check(&self) -> Result<(), Error> {
        self.dedup.check().map_err(dedup::Error::from)?;
        drop(self.fetcher()?);
        drop(Filter::new(&self.filter)?);
        for feed in &self.frontier.duplicate_feeds.known {
            drop(duplicate_feed::Reader::open(feed, &self.normalize)?);
        }
        Ok(())
    }
}

/// Limits of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLimits {
    /// Most pages that are visited in this run; 0 for no limit.
    pub pages_max: u64,
    /// Ask each host once for a page that it cannot have, and do not store pages like the answer.
    pub probe_error_page: bool,
    /// Do not store pages that ask not to be indexed.
    pub obey_noindex: bool,
    /// Most requests under way at a time.
    pub requests_max: usize,
    /// Threads that fingerprint pages; 0 for one per core.
    pub page_threads: usize,
    /// Memory of pages that are being read, and of what was read and is not stored yet.
    pub pages_size_max: Size,
    /// Pages in one commit at most.
    pub batch_pages_max: usize,
    /// Time for which a batch stays open at most, where nobody waits for its commit.
    pub batch_time_max: Time,
    /// The run ends when the next request is further away than this.
    pub idle_wait_max: Time,
    /// After the first interrupt, time that requests under way get to end.
    pub drain_time_max: Time,
}

impl RunLimits {
    /// Returns how many threads fingerprint pages.
    fn threads(&self) -> usize {
        match self.page_threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            some => some,
        }
    }
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            pages_max: 0,
            probe_error_page: true,
            obey_noindex: true,
            requests_max: 256,
            page_threads: 0,
            pages_size_max: Size::from_mib(128),
            batch_pages_max: 8_192,
            batch_time_max: Time::from_secs(5),
            idle_wait_max: Time::from_secs(600),
            drain_time_max: Time::from_secs(15),
        }
    }
}

/// Why a crawl could not go on. A bad page or site is never among the reasons.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// There is no HTTP client.
    #[error(transparent)]
    Fetch(#[from] fetch::Error),
    /// The settings of the dedup stage cannot be.
    #[error(transparent)]
    Dedup(#[from] dedup::Error),
    /// A duplicate feed cannot be used.
    #[error(transparent)]
    DuplicateFeed(#[from] duplicate_feed::Error),
    /// The filter cannot be made.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A WARC file cannot be written.
    #[error(transparent)]
    Warc(#[from] warc::WriteError),
    /// The URL of a place for WARC files is none.
    #[error(transparent)]
    Remote(#[from] remote::Error),
    /// WARC files could not be sent to their place.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// A WARC file cannot be read.
    #[error("{0}")]
    WarcFile(String),
    /// It is one of many, and cannot go on beside the others.
    #[error(transparent)]
    Beyond(#[from] BeyondError),
    /// The async runtime or a thread cannot start.
    #[error("cannot start threads: {0}")]
    Threads(#[from] std::io::Error),
}

/// What of the open files of this process a crawl uses.
struct OpenFiles {
    /// Requests under way at a time: each may have two connections while it chooses one.
    requests: usize,
    /// Idle connections.
    idle: usize,
}

impl OpenFiles {
    fn of(settings: &Settings) -> Self {
        let (requests, idle) =
            (settings.limits.requests_max.max(1), settings.fetch.idle_connections_max);
        let Some(room) = system::raise_open_files() else { return Self { requests, idle } };
        let third = (room / 3).max(1);
        if third < requests {
            tracing::warn!(
                requests_max = third,
                "fewer requests at a time than set: open files are limited (ulimit -n)"
            );
        }
        Self { requests: requests.min(third), idle: idle.min(third) }
    }

    fn fetcher(&self, settings: &Settings) -> Result<Fetcher, fetch::Error> {
        let fetch = fetch::Config { idle_connections_max: self.idle, ..settings.fetch.clone() };
        Ok(Fetcher::new(fetch)?.with_auth(fetch::Auth::read(&settings.auth)?))
    }
}

/// Name under which a store keeps the rules of the normal form.
const RULES: &str = "urls";

/// Asks a running crawl to stop; shared with whoever may ask.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Asks once more: first to let requests end and commit, then to commit at once.
    /// Returns how often it was asked.
    #[must_use]
    pub fn ask(&self) -> u8 {
        self.0.fetch_add(1, Ordering::SeqCst).saturating_add(1)
    }

    /// Returns how often it was asked.
    #[must_use]
    pub fn asked(&self) -> u8 {
        self.0.load(Ordering::SeqCst)
    }
}

/// What a running crawl has done so far, for a progress line.
#[derive(Debug, Default)]
pub struct Live {
    /// Requests sent.
    pub requests: AtomicU64,
    /// Pages read.
    pub pages: AtomicU64,
    /// New documents.
    pub new: AtomicU64,
    /// Duplicates.
    pub duplicates: AtomicU64,
    /// Bytes of bodies on the wire.
    pub bytes: AtomicU64,
    /// queued URLs.
    pub queued: AtomicU64,
    /// Requests under way.
    pub in_flight: AtomicU64,
    /// Requests that got no answer.
    pub failed: AtomicU64,
    /// It waits, because this machine lets no request go.
    pub short: AtomicBool,
    /// Pages that could not be had, as the reasons of the store count them.
    pub errors: AtomicU64,
    /// Shards that a worker holds.
    pub shards: AtomicU64,
    /// Links that a worker has sent to other shards.
    pub links_out: AtomicU64,
    /// Links that have come from other shards.
    pub links_in: AtomicU64,
    /// Its pace, once it has begun.
    pub pace: OnceLock<frontier::Config>,
}

/// What surrounds a run: its clock, its stop, and where it shows what it does.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The time when the run begins; from then on it goes its own way, whatever that is set to.
    pub clock: Clock,
    /// Asked to end the run early.
    pub stop: Stop,
    /// Numbers for a progress line.
    pub live: Arc<Live>,
    /// The index of the store, if others of this process write to the store as well; without it,
    /// the crawl reads one of its own.
    pub index: Option<Arc<Mutex<Index>>>,
    /// Who is told of new documents.
    pub on_document: Option<OnDocument>,
    /// What lies beyond the store, if the crawl is one of many.
    pub beyond: Option<Arc<dyn Beyond>>,
}

/// Crawls from `seeds` until the frontier is quiet or a limit is met. On a store that has been
/// used, it goes on where that stopped.
///
/// # Errors
///
/// Only if the store fails or nothing can be started; what was committed stays.
pub fn run(
    store: &Store,
    settings: &Settings,
    seeds: &[PageUrl],
    context: &Context,
) -> Result<Report, Error> {
    fix_rules(store, &settings.normalize)?;
    let context = &Context { clock: context.clock.steady(), ..context.clone() };
    let _is_first = context.live.pace.set(settings.frontier.clone());
    let plan = CrewPlan { settings, context, seeds, is_shared: false };
    Crew::with(&plan, |crew| {
        let named = &settings.frontier.duplicate_feeds.known;
        let feeds = &duplicate_feed::import_all(store, named, &settings.normalize)?;
        let index = if let Some(index) = &context.index {
            index.clone()
        } else {
            let sizes = index::Sizes::with_more_for_filters(settings.unserved);
            Arc::new(Mutex::new(Index::open_with(store, &settings.dedup, sizes)?))
        };
        crew.crawl(Part { store, index, settings, context, seeds, feeds })
    })
}

/// Fixes the rules of the normal form in a new store, or compares them with those it was made with:
/// under other rules, known URLs would be new ones and be fetched again.
pub fn fix_rules(store: &Store, given: &Normalize) -> Result<(), store::Error> {
    let Some(stored) = stored_rules(store)? else {
        return store.fix_setting(RULES, &given.to_stored());
    };
    match given.difference(&stored) {
        None => Ok(()),
        Some((name, given, stored)) => {
            Err(store::Error::Setting { name: format!("{RULES}.{name}"), stored, given })
        }
    }
}

/// Returns the rules of the normal form that a store was made with; none if nothing was crawled
/// into it.
pub fn stored_rules(store: &Store) -> Result<Option<Normalize>, store::Error> {
    let Some(text) = store.setting(RULES)? else { return Ok(None) };
    let bad = store::BadRow { kind: "meta", detail: "the rules of URLs cannot be read" };
    Ok(Some(Normalize::from_stored(&text).ok_or(bad)?))
}
