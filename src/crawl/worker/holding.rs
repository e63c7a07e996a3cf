//! Which shards a worker holds: it takes those that are its own and free, and gives back those that
//! are the own ones of a worker that has joined.
//!
//! Whose own a shard is, all workers find out alike from the list of those who are alive: the one
//! whose hash with the shard is largest. So no worker is above others, and one that joins or leaves
//! moves no more than its own shards.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use crate::base::units::Size;
use crate::cluster::{Engine, LinksTo, ShardState, Taken, owners};
use crate::frontier::{SentLink, Share};
use crate::store::Row as _;
use crate::urls::PageUrl;

use super::super::crew::Crew;
use super::super::running::Totals;
use super::super::{BeyondError, Context, Error, Settings};
use super::crawl::ShardCrawl;
use super::leases::end_of;
use super::shard::{Shard, lock};
use super::{Common, WorkerError, WorkerPlan, WorkerReport};

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// Time between two looks whether all workers are done.
const LOOK_DONE: Duration = Duration::from_millis(300);

/// Least memory of the page cache of a store.
const CACHE_MIN: usize = 1 << 20;

/// Seeds that are sent together.
const SEEDS_TOGETHER: usize = 1_000;

/// A crawl of a shard that is over.
struct Ended {
    shard: Arc<Shard>,
    result: Result<(), Error>,
}

/// A look at which all shards were quiet.
#[derive(Debug, PartialEq, Eq)]
struct Quiet {
    /// What was begun last before it.
    term: String,
    states: Vec<ShardState>,
}

/// The shards of a worker.
pub(super) struct Holding<'a> {
    plan: &'a WorkerPlan,
    settings: &'a Settings,
    seeds: &'a [PageUrl],
    context: &'a Context,
    common: &'a Arc<Common>,
    report: WorkerReport,
    /// What shards have done that are over.
    past: Totals,
    /// The workers that were alive at the last look, and the shards that were this one's own.
    members: Vec<String>,
    own: BTreeSet<u32>,
    /// States at the last look, if all were quiet.
    quiet: Option<Quiet>,
    looked: Instant,
    /// It has seeds of its own.
    gives_seeds: bool,
    /// Nothing is left to do for any worker.
    is_done: bool,
}

/// What one look at the shards works with.
struct Step<'s, 'scope, 'env> {
    crew: &'scope Crew,
    engine: &'s mut Engine,
    unsent: &'s mut Vec<LinksTo>,
    ended: &'s Sender<Ended>,
    scope: &'scope Scope<'scope, 'env>,
}

impl<'a> Holding<'a> {
    pub(super) fn new(
        plan: &'a WorkerPlan,
        settings: &'a Settings,
        seeds: &'a [PageUrl],
        context: &'a Context,
        common: &'a Arc<Common>,
    ) -> Self {
        let report = WorkerReport { worker: common.worker.clone(), ..WorkerReport::default() };
        let (past, looked) = (Totals::default(), Instant::now());
        Self {
            plan,
            settings,
            seeds,
            context,
            common,
            report,
            past,
            members: Vec::new(),
            own: BTreeSet::new(),
            quiet: None,
            looked,
            gives_seeds: false,
            is_done: false,
        }
    }

    /// Holds shards until the end.
    pub(super) fn run(
        mut self,
        crew: &Crew,
        mut engine: Engine,
        own_seeds: &[PageUrl],
    ) -> Result<WorkerReport, WorkerError> {
        let _is_first = self.context.live.pace.set(self.settings.frontier.clone());
        let lease = self.common.config.lease.duration();
        engine.begin_term()?;
        self.gives_seeds = !own_seeds.is_empty();
        *lock(&self.common.members) = engine.beat(&self.common.worker, lease)?;
        let mut unsent = by_shard(own_seeds, self.common.config.shards);
        let result = thread::scope(|scope| {
            let (ended, endings) = channel();
            let mut result = Ok(());
            loop {
                if result.is_ok() {
                    let (engine, unsent, ended) = (&mut engine, &mut unsent, &ended);
                    result = self.step(Step { crew, engine, unsent, ended, scope });
                }
                // Who keeps the leases says when it has lasted too long.
                if let Err(WorkerError::Cluster(error)) = &result {
                    tracing::warn!(%error, "the cluster is asked again");
                    result = Ok(());
                }
                if let Err(error) = self.take_leave(&mut engine, &endings) {
                    result = result.and(Err(error));
                }
                let is_ending = result.is_err() || self.context.stop.asked() > 0 || self.is_done;
                if is_ending {
                    self.stop_all();
                    if lock(&self.common.shards).is_empty() {
                        return result;
                    }
                }
                self.show();
                thread::sleep(if is_ending { LOOK / 5 } else { LOOK });
            }
        });
        self.show();
        result?;
        let live = &self.context.live;
        self.report.requests = live.requests.load(Ordering::Relaxed);
        self.report.failed = live.failed.load(Ordering::Relaxed);
        self.report.pages = live.pages.load(Ordering::Relaxed);
        self.report.new = live.new.load(Ordering::Relaxed);
        self.report.duplicates = live.duplicates.load(Ordering::Relaxed);
        if let Some(backups) = &self.common.backups {
            self.report.backups = backups.made.load(Ordering::Relaxed);
            self.report.backups_failed = backups.failed.load(Ordering::Relaxed);
            self.report.restored = backups.restored.load(Ordering::Relaxed);
        }
        self.report.links_out = self.common.links_out.load(Ordering::Relaxed);
        self.report.links_in = self.common.links_in.load(Ordering::Relaxed);
        Ok(self.report)
    }

    /// Takes and gives back shards, and looks whether all is done.
    fn step<'scope>(&mut self, step: Step<'_, 'scope, '_>) -> Result<(), WorkerError>
    where
        'a: 'scope,
    {
        let Step { crew, engine, unsent, ended, scope } = step;
        self.may_go_on()?;
        if self.context.stop.asked() > 0 || self.is_done {
            return Ok(());
        }
        send_seeds(engine, unsent, self.common.config.links_max)?;
        let own = self.own();
        let held: Vec<Arc<Shard>> = lock(&self.common.shards).values().cloned().collect();
        for shard in held.iter().filter(|shard| !own.contains(&shard.number())) {
            if shard.stop.asked() == 0 {
                tracing::info!(shard = shard.number(), "given back to another worker");
                let _times = shard.stop.ask();
            }
        }
        let is_held = |number: &u32| held.iter().any(|shard| shard.number() == *number);
        let free: Vec<u32> = own.iter().copied().filter(|number| !is_held(number)).collect();
        for number in free {
            if let Some(shard) = self.take(engine, number)? {
                let crawl = ShardCrawl {
                    shard: Arc::clone(&shard),
                    backups: self.common.backups.as_ref(),
                    feeds: &self.common.feeds,
                    folder: self.folder(number),
                    settings: self.settings_of(own.len()),
                    cache_bytes: (self.plan.cache_bytes / own.len().max(1)).max(CACHE_MIN),
                    seeds: self.seeds,
                    clock: self.context,
                };
                let ended = ended.clone();
                let name = format!("shard-{number}");
                let started = thread::Builder::new().name(name).spawn_scoped(scope, move || {
                    let result = crawl.run(crew);
                    // Who would hear it has failed.
                    let _ = ended.send(Ended { shard, result });
                });
                if let Err(error) = started {
                    lock(&self.common.shards).remove(&number);
                    return Err(Error::from(error).into());
                }
            }
        }
        crew.divide(lock(&self.common.shards).len());
        if self.plan.until_done && unsent.is_empty() && self.looked.elapsed() > LOOK_DONE {
            self.looked = Instant::now();
            self.look_done(engine)?;
        }
        Ok(())
    }

    /// Fails once a thread of this worker has noted why it cannot go on.
    fn may_go_on(&self) -> Result<(), WorkerError> {
        let Some(detail) = lock(&self.common.failure).clone() else { return Ok(()) };
        Err(WorkerError::Stopped { worker: self.common.worker.clone(), detail })
    }

    /// The shards that are this worker's own, as long as the workers stay the same.
    fn own(&mut self) -> BTreeSet<u32> {
        let mut members = lock(&self.common.members).clone();
        // Also one that is late to tell that it is alive has its part.
        if !members.contains(&self.common.worker) {
            members.push(self.common.worker.clone());
        }
        if members != self.members {
            let at = members.iter().position(|member| *member == self.common.worker);
            let owners = (0..).zip(owners(&members, self.common.config.shards));
            self.own = owners.filter(|(_, owner)| *owner == at).map(|(shard, _)| shard).collect();
            self.members = members;
        }
        self.own.clone()
    }

    /// Takes a shard, if it is free.
    fn take(
        &mut self,
        engine: &mut Engine,
        number: u32,
    ) -> Result<Option<Arc<Shard>>, WorkerError> {
        let lease = self.common.config.lease.duration();
        let asked = self.common.clock.now();
        match engine.take_shard(number, &self.common.worker, lease)? {
            Taken::HeldBy(other) => {
                tracing::debug!(shard = number, worker = other, "another worker has it");
                Ok(None)
            }
            Taken::Got { lease: taken, was_held } => {
                let until = end_of(asked, lease);
                let shard = Arc::new(Shard::new(taken, was_held, until, self.common));
                lock(&self.common.shards).insert(number, Arc::clone(&shard));
                self.report.shards_taken += 1;
                tracing::info!(shard = number, fence = taken.fence, "taken");
                Ok(Some(shard))
            }
        }
    }

    fn folder(&self, number: u32) -> PathBuf {
        self.plan.folder.join("shards").join(format!("{number:03}"))
    }

    /// The settings of one of so many shards: each has its part of what is in memory.
    fn settings_of(&self, shards: usize) -> Settings {
        let mut settings = self.settings.clone();
        let shards = shards.max(1);
        let frontier = &mut settings.frontier;
        frontier.hosts_in_memory_max = (frontier.hosts_in_memory_max / shards).max(256);
        frontier.seen_in_memory_max = (frontier.seen_in_memory_max / shards).max(4_096);
        let robots = frontier.robots_in_memory.bytes() / shards;
        frontier.robots_in_memory = Size::from_bytes(robots.max(1 << 16) as u64);
        settings
    }

    /// Gives back the leases of crawls that are over.
    fn take_leave(
        &mut self,
        engine: &mut Engine,
        endings: &Receiver<Ended>,
    ) -> Result<(), WorkerError> {
        let mut result = Ok(());
        for Ended { shard, result: ended } in endings.try_iter() {
            let number = shard.number();
            self.past.add(&shard.live);
            lock(&self.common.shards).remove(&number);
            match ended {
                Err(Error::Beyond(BeyondError::Lost(_))) => {
                    self.report.shards_lost += 1;
                    tracing::warn!(shard = number, "its lease has ended: it is taken anew");
                    continue;
                }
                // Its shards hear of it, and may end, before the next look does.
                Err(Error::Beyond(BeyondError::Failed { .. })) if self.common.has_failed() => {
                    result = result.and(self.may_go_on());
                }
                Err(source) => {
                    let (folder, source) = (self.folder(number), Box::new(source));
                    result = result.and(Err(WorkerError::Shard { shard: number, folder, source }));
                }
                Ok(()) => tracing::info!(shard = number, "closed"),
            }
            if let Err(error) = engine.release_shard(shard.lease, &self.common.worker) {
                tracing::warn!(%error, shard = number, "its lease ends by itself");
            }
        }
        result
    }

    fn stop_all(&self) {
        let wanted = self.context.stop.asked().max(1);
        for shard in lock(&self.common.shards).values() {
            if shard.stop.asked() < wanted {
                let _times = shard.stop.ask();
            }
        }
    }

    /// Looks whether nothing is left to do: all shards are quiet and no links wait, twice, with
    /// nothing told in between.
    fn look_done(&mut self, engine: &mut Engine) -> Result<(), WorkerError> {
        if !engine.is_begun()? {
            // It is noted again where a primary was lost with the note.
            return if self.gives_seeds { Ok(engine.note_begun()?) } else { Ok(()) };
        }
        let term = engine.term()?;
        if engine.is_done(&term)? {
            self.is_done = true;
            return Ok(());
        }
        let mut states = engine.shard_states(self.common.config.shards)?;
        let all_quiet = states.iter().all(|state| state.quiet && state.links == 0);
        // Who holds it says nothing of what is to be done.
        for state in &mut states {
            state.holder.clear();
        }
        let now = Quiet { term, states };
        if all_quiet && self.quiet.as_ref() == Some(&now) {
            engine.note_done(&now.term, self.common.config.lease.duration() * 4)?;
            self.is_done = true;
        }
        self.quiet = all_quiet.then_some(now);
        Ok(())
    }

    /// Shows what all shards have done.
    fn show(&self) {
        let (mut all, mut queued, mut in_flight, mut errors) = (self.past, 0, 0, 0);
        for shard in lock(&self.common.shards).values() {
            all.add(&shard.live);
            queued += shard.live.queued.load(Ordering::Relaxed);
            in_flight += shard.live.in_flight.load(Ordering::Relaxed);
            errors += shard.live.errors.load(Ordering::Relaxed);
        }
        let live = &self.context.live;
        live.pages.store(all.pages, Ordering::Relaxed);
        live.new.store(all.new, Ordering::Relaxed);
        live.duplicates.store(all.duplicates, Ordering::Relaxed);
        live.queued.store(queued, Ordering::Relaxed);
        live.in_flight.store(in_flight, Ordering::Relaxed);
        live.errors.store(errors, Ordering::Relaxed);
        live.shards.store(lock(&self.common.shards).len() as u64, Ordering::Relaxed);
        live.links_out.store(self.common.links_out.load(Ordering::Relaxed), Ordering::Relaxed);
        live.links_in.store(self.common.links_in.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Seeds, each for its shard.
fn by_shard(seeds: &[PageUrl], shards: u32) -> Vec<LinksTo> {
    let all_shards = Share { own: 0, of: shards };
    let mut all: Vec<LinksTo> = Vec::new();
    let mut open: Vec<Option<usize>> = vec![None; shards as usize];
    for seed in seeds {
        let shard = all_shards.shard_of(seed);
        let at = &mut open[shard as usize];
        let place = *at.get_or_insert_with(|| {
            all.push(LinksTo { shard, links: Vec::new() });
            all.len() - 1
        });
        all[place].links.push(SentLink::seed(seed).encode().into_owned());
        if all[place].links.len() == SEEDS_TOGETHER {
            *at = None;
        }
    }
    all
}

/// Sends seeds whose shards have room for them.
fn send_seeds(
    engine: &mut Engine,
    unsent: &mut Vec<LinksTo>,
    links_max: u64,
) -> Result<(), WorkerError> {
    if unsent.is_empty() {
        return Ok(());
    }
    let some: Vec<LinksTo> = unsent.iter().take(SEEDS_TOGETHER).cloned().collect();
    let mut sent = engine.send_links(&some, links_max)?.into_iter();
    unsent.retain(|_| !sent.next().unwrap_or(false));
    if unsent.is_empty() {
        engine.note_begun()?;
    }
    Ok(())
}
