//! A worker: one of many processes that crawl one web together, by a cluster that they share.
//!
//! All hosts fall into shards by their registrable domains. A worker holds some of them, each by a
//! lease; each has a store with a frontier and a committer of its own, and all of them share the
//! visitors and fingerprinters of the process. What happens in the corpus of a shard is brought
//! into the one that all workers share before the transaction of the shard commits.

mod backups;
mod corpus;
mod crawl;
mod exchange;
mod holding;
mod leases;
mod place;
mod shard;
mod status;
mod turns;

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::clock::{Clock, Timestamp};
use crate::base::remote;
use crate::base::units::Time;
use crate::cluster::{self, Engine, SHARDS_MAX, TurnLimits, TurnOf};
use crate::corpus::shared::{self, SharedOptions};
use crate::frontier::duplicate_feed::WholeFeed;
use crate::urls::{PageUrl, ScopeKind};

use super::crew::{Crew, CrewPlan};
use super::{Context, Error, Live, Settings, Stop};
use backups::ShardBackups;
use corpus::{CorpusPlan, Handed};
use holding::Holding;
use shard::{Shard, lock};
use turns::Wish;

pub use status::{Crowd, CrowdTotals, ShardStatus, WorkerCounts, WorkerStatus};

/// Longest time for which a command of the corpus is tried again, before all of its batch is.
const CORPUS_PATIENCE: Duration = Duration::from_secs(10);

/// Leases after which a shard that has nothing to do looks whether a page is due for another visit.
const LOOKS_FOR_DUE: u32 = 4;

/// What all workers of a crawl have in common, but for its rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerConfig {
    /// Parts into which all registrable domains fall, at most 16,384. Fixed when the crawl is
    /// begun.
    pub shards: u32,
    /// Time for which a worker holds a shard without saying so again. A worker that dies is
    /// followed by others after it.
    pub lease: Time,
    /// Time for which pages wait to be stored while the cluster does not answer. Then the worker
    /// stops; they are visited again.
    pub wait_max: Time,
    /// Links that wait in the cluster for one shard at most. What is beyond waits where it was
    /// found.
    pub links_max: u64,
    /// Documents that are expected at least: room for so many is made as the first ones come, for
    /// others as they come. Fixed when the crawl is begun.
    pub documents: u64,
    /// Threads of a worker that bring pages into the corpus.
    pub corpus_threads: usize,
    /// Where shards are backed up: a folder, or `s3://`, `gs://`, `az://` or `file://`; empty for
    /// nowhere.
    pub backup: String,
    /// Time between two backups of a shard.
    pub backup_interval: Time,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            shards: 256,
            lease: Time::from_secs(15),
            wait_max: Time::from_secs(60),
            links_max: 100_000,
            documents: 10_000_000,
            corpus_threads: 2,
            backup: String::new(),
            backup_interval: Time::from_secs(300),
        }
    }
}

/// Where a worker works.
#[derive(Debug, Clone)]
pub struct WorkerPlan {
    /// The cluster.
    pub cluster: cluster::Settings,
    /// Folder of the stores of shards.
    pub folder: PathBuf,
    /// Folder of texts, which all workers see.
    pub texts: PathBuf,
    /// What all workers have in common.
    pub config: WorkerConfig,
    /// Memory of the page caches of all stores, in bytes.
    pub cache_bytes: usize,
    /// The name of this machine, for others; empty if it is not known.
    pub host: String,
    /// The worker ends when nothing is left to do for any worker.
    pub until_done: bool,
    /// The stores of shards that others had are gone for good: shards begin with empty ones.
    pub stores_lost: bool,
}

/// What a worker has done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WorkerReport {
    /// Its name among the workers.
    pub worker: String,
    /// Times that it took a shard.
    pub shards_taken: u64,
    /// Times that the lease of a shard ended before it was given back.
    pub shards_lost: u64,
    /// Requests sent.
    pub requests: u64,
    /// Pages read.
    pub pages: u64,
    /// Documents that were new in their shard.
    pub new: u64,
    /// Duplicates in their shard.
    pub duplicates: u64,
    /// Requests that got no answer.
    pub failed: u64,
    /// Backups of shards that were made.
    pub backups: u64,
    /// Backups that failed, and are tried again.
    pub backups_failed: u64,
    /// Shards that were restored from a backup.
    pub restored: u64,
    /// Links sent to other shards.
    pub links_out: u64,
    /// Links that came from other shards, and seeds.
    pub links_in: u64,
}

/// Why a worker could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// A setting cannot be.
    #[error("a worker cannot have {0}")]
    Setting(&'static str),
    /// The cluster cannot be used.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The corpus that all workers share cannot be used.
    #[error(transparent)]
    Corpus(#[from] shared::Error),
    /// A shard cannot be crawled.
    #[error("shard {shard} in {}: {source}", folder.display())]
    Shard {
        /// The shard.
        shard: u32,
        /// Folder of its store.
        folder: PathBuf,
        /// Why.
        source: Box<Error>,
    },
    /// The folder of the stores of shards cannot be used.
    #[error("{}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The stores of shards are elsewhere, and a shard that comes from there would begin anew.
    #[error(
        "the stores of the shards of this crawl are in {place}, and {} is another folder{}: URLs \
         that wait there would be lost. Give all workers one folder on a volume that they see \
         (--folder), or each of them, from the first one on, --backup TO. If these stores are gone \
         for good, --stores-lost begins shards with empty ones",
        folder.display(), if *is_backed_up { " without --backup" } else { "" }
    )]
    Stores {
        /// The folder of this worker.
        folder: PathBuf,
        /// The machine and folder of the first one.
        place: String,
        /// Other workers back shards up.
        is_backed_up: bool,
    },
    /// The stores of shards are not where they were.
    #[error(
        "the stores of the shards of this crawl were in {place} and are gone: URLs that waited \
         there would be lost. Put them back; or, if they are gone for good, --stores-lost begins \
         shards with empty ones. With --backup TO they would be restored"
    )]
    StoresGone {
        /// The machine and folder in which they were.
        place: String,
    },
    /// The place of backups is none.
    #[error("`cluster.backup`: {0}")]
    Backup(#[from] remote::Error),
    /// The crawl cannot be.
    #[error(transparent)]
    Crawl(#[from] Error),
    /// It cannot go on.
    #[error(
        "worker {worker} stops: {detail}. What was not committed is visited again: start it anew"
    )]
    Stopped {
        /// The worker.
        worker: String,
        /// Why.
        detail: String,
    },
}

/// What the threads of a worker share.
pub(super) struct Common {
    worker: String,
    clock: Clock,
    config: WorkerConfig,
    limits: TurnLimits,
    /// The shards that are held, by their numbers.
    shards: Mutex<BTreeMap<u32, Arc<Shard>>>,
    /// Workers that are alive.
    members: Mutex<Vec<String>>,
    backups: Option<ShardBackups>,
    /// Each shard takes in what they say of its own URLs.
    feeds: Vec<WholeFeed>,
    hands: Vec<SyncSender<Handed>>,
    wishes: Sender<Wish>,
    tokens: AtomicU64,
    /// Turns of requests that are under way, by their tokens.
    turns: Mutex<HashMap<u64, TurnOf>>,
    /// The machine that it runs on.
    host: String,
    started: Timestamp,
    stop: Stop,
    /// What all shards have done.
    live: Arc<Live>,
    /// What becomes due for another visit is noticed while its shard is held, after so long.
    goes_on: bool,
    look_for_due: Duration,
    /// When a batch was committed last; 0 for never.
    last_commit: AtomicI64,
    links_out: AtomicU64,
    links_in: AtomicU64,
    /// Why it cannot go on.
    failure: Mutex<Option<String>>,
    is_over: AtomicBool,
    /// Wakes those who rest when it is over.
    ended: (Mutex<()>, Condvar),
}

impl std::fmt::Debug for Common {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Common").field("worker", &self.worker).finish_non_exhaustive()
    }
}

impl Common {
    /// Notes why the worker cannot go on.
    fn fail(&self, why: String) {
        lock(&self.failure).get_or_insert(why);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _held = lock(&self.ended.0);
        self.ended.1.notify_all();
    }

    /// Waits, unless it is over.
    fn rest(&self, time: Duration) {
        let held = lock(&self.ended.0);
        if !self.is_over() {
            let waited = self.ended.1.wait_timeout(held, time);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn has_failed(&self) -> bool {
        lock(&self.failure).is_some()
    }

    /// A token that no other turn has.
    fn token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }

    fn hand(&self, shard: u32, handed: Handed) {
        let hand = &self.hands[shard as usize % self.hands.len()];
        if hand.send(handed).is_err() {
            tracing::debug!("the threads of the corpus have ended");
        }
    }

    fn wish(&self, wish: Wish) {
        if self.wishes.send(wish).is_err() {
            tracing::debug!("the thread of turns has ended");
        }
    }
}

/// Tells which setting a worker cannot have.
fn check(plan: &WorkerPlan, settings: &Settings) -> Result<(), WorkerError> {
    let WorkerConfig { shards, lease, .. } = plan.config;
    let faults = [
        (settings.limits.pages_max > 0, "a limit of pages (`crawl.pages_max`)"),
        (!settings.warc.folder.is_empty(), "WARC files (`warc.folder`)"),
        (shards == 0 || shards > SHARDS_MAX, "no shards, or more than 16,384 (`cluster.shards`)"),
        (
            plan.config.backup_interval < Time::from_millis(100),
            "an interval of less than 100 ms (`cluster.backup_interval`)",
        ),
        (lease < Time::from_millis(500), "leases of less than 500 ms (`cluster.lease`)"),
    ];
    match faults.into_iter().find(|(is_fault, _)| *is_fault) {
        Some((_, what)) => Err(WorkerError::Setting(what)),
        None => Ok(settings.check()?),
    }
}

/// Fixes what all workers of a crawl must have in common, or compares it.
fn fix(engine: &mut Engine, plan: &WorkerPlan, settings: &Settings) -> Result<(), WorkerError> {
    engine.fix("shards", &plan.config.shards.to_string())?;
    engine.fix("urls", &settings.normalize.to_stored())?;
    let scope = serde_json::to_string(&settings.scope).unwrap_or_default();
    engine.fix("scope", scope.trim_matches('"'))?;
    Ok(())
}

/// Returns the seeds of all workers, which the scope needs; waits for them if there are none yet.
fn all_seeds(
    engine: &mut Engine,
    settings: &Settings,
    own: &[PageUrl],
    context: &Context,
) -> Result<Vec<PageUrl>, WorkerError> {
    if settings.scope == ScopeKind::Any {
        return Ok(own.to_vec());
    }
    let texts: Vec<String> = own.iter().map(|seed| seed.as_str().to_owned()).collect();
    engine.add_seeds(&texts)?;
    let mut has_told = false;
    while engine.seeds_len()? == 0 && context.stop.asked() == 0 {
        if !has_told {
            tracing::warn!("no worker has given seeds yet: this one waits for them");
            has_told = true;
        }
        thread::sleep(Duration::from_millis(200));
    }
    let seeds = engine.seeds()?;
    Ok(seeds.iter().filter_map(|seed| PageUrl::parse_stored(seed)).collect())
}

/// Reads the duplicate feeds that are known.
fn feeds(settings: &Settings) -> Result<Vec<WholeFeed>, Error> {
    Ok(WholeFeed::all(&settings.frontier.duplicate_feeds.known, &settings.normalize)?)
}

fn limits(settings: &Settings, quick: &cluster::Settings, config: &WorkerConfig) -> TurnLimits {
    let frontier = &settings.frontier;
    TurnLimits {
        // It is kept before the leases are. One that was not known then is younger than the wait
        // for its answer: it outlasts these leases all the same.
        span: config.lease.duration() + quick.timeout,
        gap: frontier.address_delay.min(frontier.delay).duration(),
        most: match frontier.connections_per_address {
            0 => usize::MAX >> 1,
            some => some.max(frontier.connections_per_host),
        },
    }
}

/// Works until it is asked to stop, or nothing is left to do.
///
/// # Errors
///
/// If the cluster, the corpus or a store cannot be used. What was committed stays; what was not is
/// visited again, by whoever takes the shard.
pub fn run(
    plan: &WorkerPlan,
    settings: &Settings,
    seeds: &[PageUrl],
    context: &Context,
) -> Result<WorkerReport, WorkerError> {
    check(plan, settings)?;
    let feeds = feeds(settings)?;
    let context = &Context { clock: context.clock.steady(), ..context.clone() };
    // Threads of their own tell soon that the cluster does not answer, and try again.
    let patience = plan.config.lease.duration() / 3;
    let timeout = plan.cluster.timeout.min(patience.max(Duration::from_secs(1)));
    let quick = cluster::Settings { timeout, patience, ..plan.cluster.clone() };
    let mut engine = Engine::connect(&quick)?;
    fix(&mut engine, plan, settings)?;
    let corpus = CorpusPlan {
        cluster: cluster::Settings { patience: CORPUS_PATIENCE, ..plan.cluster.clone() },
        texts: plan.texts.clone(),
        dedup: settings.dedup.clone(),
        options: SharedOptions { documents: plan.config.documents, ..SharedOptions::default() },
    };
    // Whatever is wrong is told before anything is asked for.
    drop(corpus.open()?);
    place::fix(&mut engine, plan)?;
    let known_seeds = all_seeds(&mut engine, settings, seeds, context)?;
    let queues: Vec<_> = (0..plan.config.corpus_threads.max(1)).map(|_| corpus::queue()).collect();
    let (wishes, for_turns) = channel();
    // Keyed by the random numbers of the system.
    let drawn = RandomState::new().build_hasher().finish();
    let (hands, queues): (Vec<_>, Vec<_>) = queues.into_iter().unzip();
    let common = Arc::new(Common {
        worker: format!("{drawn:016x}"),
        clock: context.clock.clone(),
        config: plan.config.clone(),
        limits: limits(settings, &quick, &plan.config),
        shards: Mutex::default(),
        members: Mutex::default(),
        backups: ShardBackups::of(&plan.config)?,
        feeds,
        hands,
        wishes,
        tokens: AtomicU64::new(drawn << 24),
        turns: Mutex::default(),
        host: plan.host.clone(),
        started: context.clock.now(),
        stop: context.stop.clone(),
        live: Arc::clone(&context.live),
        goes_on: settings.recrawl.enabled && !plan.until_done,
        look_for_due: plan.config.lease.duration() * LOOKS_FOR_DUE,
        last_commit: AtomicI64::new(0),
        links_out: AtomicU64::new(0),
        links_in: AtomicU64::new(0),
        failure: Mutex::default(),
        is_over: AtomicBool::new(false),
        ended: Default::default(),
    });
    let crew = CrewPlan { settings, context, seeds: &known_seeds, is_shared: true };
    thread::scope(|scope| {
        let (quick, corpus) = (&quick, &corpus);
        for queue in queues {
            let common = Arc::clone(&common);
            scope.spawn(move || corpus::run(corpus, &queue, &common));
        }
        let own = [(); 4].map(|()| Arc::clone(&common));
        let [of_leases, of_links, of_turns, of_backups] = own;
        scope.spawn(move || backups::run(&of_backups));
        scope.spawn(move || leases::run(quick, &of_leases));
        scope.spawn(move || exchange::run(quick, &of_links));
        scope.spawn(move || turns::run(quick, &for_turns, &of_turns));
        let mut done = Ok(WorkerReport::default());
        let made = Crew::with(&crew, |crew| {
            let holding = Holding::new(plan, settings, &known_seeds, context, &common);
            done = holding.run(crew, engine, seeds);
            Ok(())
        });
        common.end();
        made?;
        done
    })
}
