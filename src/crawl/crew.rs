//! What the crawls of a process share: visitors, fingerprinters and a looker. Each crawl has a
//! store and a committer of its own, to which the answers to its requests come back.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Instant;

use async_channel::Sender;

use crate::corpus::boilerplate::KnownBlocks;
use crate::corpus::dedup::{self, CommittedContents};
use crate::corpus::index::{Index, LookedAhead};
use crate::frontier::Lease;
use crate::store::Store;
use crate::text::features::{ArticleKeys, Fingerprinter};
use crate::urls::{HostKey, PageUrl};

use super::committer::{Began, Committer, Parts};
use super::fingerprint::{self, Yield};
use super::visitor::{Visit, Visitor};
use super::{Context, Error, OpenFiles, Report, SITEMAPS_AT_A_TIME, Settings, looker, memory};

/// Visitors, fingerprinters and a looker at work.
pub(super) struct Crew {
    errands: Sender<Errand>,
    /// Requests under way at a time, of all crawls.
    requests: usize,
    /// Answers of one crawl that wait for its committer.
    answers: usize,
    /// Bounds the requests of all crawls, where there are several.
    room: Option<Arc<Room>>,
    seeds: Arc<HashSet<HostKey>>,
}

/// What one crawl has of its own.
pub(super) struct Part<'a> {
    pub store: &'a Store,
    pub index: Arc<Mutex<Index>>,
    pub settings: &'a Settings,
    pub context: &'a Context,
    pub seeds: &'a [PageUrl],
    pub feeds: &'a [u64],
}

/// A lease on its way to a visitor.
#[derive(Debug)]
pub(super) struct Errand {
    pub lease: Lease,
    pub way: Way,
}

/// Where the answer goes back to. Without it, nobody waits.
#[derive(Debug, Default)]
pub(super) struct Way {
    pub home: Option<Arc<Home>>,
    pub _place: Option<Place>,
}

/// A crawl, as those see it who work for it.
#[derive(Debug)]
pub(super) struct Home {
    pub done: SyncSender<Visit<Yield>>,
    pub known: KnownBlocks,
    /// What is stored, as the last commit has left it.
    pub committed: Committed,
    pub context: Context,
    /// Hosts of the seeds: that one of them cannot be had is told at once.
    pub seeds: Arc<HashSet<HostKey>>,
}

/// What a store has, as the last commit has left it, for those who look up pages before it is their
/// turn.
#[derive(Debug, Default)]
pub(super) struct Committed(RwLock<Option<Arc<CommittedContents>>>);

impl Committed {
    /// Has another state asked from here on; none ends the looking.
    pub(super) fn set(&self, state: Option<CommittedContents>) {
        let state = state.map(Arc::new);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Looks up articles together. What cannot be told of all of them is asked again when it is
    /// the turn of each.
    pub(super) fn look_up(
        &self,
        articles: &[&ArticleKeys],
        threads: usize,
    ) -> Vec<Option<LookedAhead>> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let found = state.map(|state| state.look_up_new(articles, threads)).transpose();
        let found = found.unwrap_or_else(|error| {
            tracing::debug!(%error, "pages are looked up when it is their turn");
            None
        });
        found.unwrap_or_default()
    }
}

impl Home {
    /// Hands a visit to the committer.
    pub(super) fn deliver(&self, visit: Visit<Yield>) {
        if self.done.send(visit).is_err() {
            tracing::debug!("a crawl has ended before its answers came");
        }
    }
}

/// Places for requests, of which each crawl gets no more than its part.
#[derive(Debug)]
pub(super) struct Room {
    left: AtomicUsize,
    each: AtomicUsize,
}

/// A place for a request; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<Room>);

impl Room {
    fn new(all: usize) -> Self {
        Self { left: AtomicUsize::new(all), each: AtomicUsize::new(all) }
    }

    /// Returns how many places one crawl may have, if there are any left.
    pub(super) fn each(&self) -> usize {
        match self.left.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.each.load(Ordering::Relaxed),
        }
    }

    /// Takes a place.
    pub(super) fn take(self: &Arc<Self>) -> Option<Place> {
        let take = |left: usize| left.checked_sub(1);
        let taken = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        taken.is_ok().then(|| Place(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.left.fetch_add(1, Ordering::AcqRel);
    }
}

/// How a crew is made.
pub(super) struct CrewPlan<'a> {
    pub settings: &'a Settings,
    pub context: &'a Context,
    pub seeds: &'a [PageUrl],
    /// Several crawls share it.
    pub is_shared: bool,
}

impl Crew {
    /// Starts a crew, has `work` use it, and ends it.
    pub(super) fn with<R>(
        plan: &CrewPlan<'_>,
        work: impl FnOnce(&Self) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let CrewPlan { settings, context, seeds, is_shared } = *plan;
        let files = OpenFiles::of(settings);
        let fetcher = files.fetcher(settings)?;
        let fingerprinter = Fingerprinter::for_articles(settings.dedup.features.clone())
            .map_err(|error| dedup::Error::Settings(error.into()))?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let (threads, requests) = (settings.limits.threads(), files.requests);
        let memory = memory::Shared::new(settings);
        let (errands, handed) = async_channel::bounded(requests);
        let (visits, visited) = async_channel::bounded(threads * 8);
        let (read, looked_up) = sync_channel(looker::TOGETHER);
        let sitemaps = Arc::new(tokio::sync::Semaphore::new(SITEMAPS_AT_A_TIME));
        for _ in 0..requests {
            let visitor = Visitor {
                fetcher: fetcher.clone(),
                context: context.clone(),
                errands: handed.clone(),
                visits: visits.clone(),
                robots_bytes_max: settings.frontier.robots_size_max.bytes().saturating_add(1),
                sitemap_bytes_max: settings.frontier.discover.size_max.bytes(),
                sitemaps: Arc::clone(&sitemaps),
                keeps: !settings.warc.folder.is_empty(),
            };
            runtime.spawn(visitor.run());
        }
        drop((handed, visits));
        let crew = Self {
            errands,
            requests,
            // Of many crawls, none keeps those waiting who work for the others.
            answers: if is_shared { requests } else { looker::TOGETHER },
            room: is_shared.then(|| Arc::new(Room::new(requests))),
            seeds: Arc::new(seeds.iter().map(PageUrl::host_key).collect()),
        };
        thread::scope(|scope| {
            for number in 0..threads {
                let (visited, read) = (visited.clone(), read.clone());
                let with = fingerprint::Common {
                    settings,
                    fingerprinter: &fingerprinter,
                    memory: &memory,
                };
                thread::Builder::new()
                    .name(format!("fingerprinter-{number}"))
                    .spawn_scoped(scope, move || fingerprint::run(&visited, &read, with))?;
            }
            drop((visited, read));
            thread::Builder::new()
                .name("looker".to_owned())
                .spawn_scoped(scope, move || looker::run(&looked_up, threads))?;
            let done = work(&crew);
            drop(crew);
            // Requests that are still under way are dropped; their leases are due again next time.
            runtime.shutdown_background();
            done
        })
    }

    /// Has so many crawls share the places for requests. Each may have twice its part, because some
    /// have little to do.
    #[cfg(feature = "cluster")]
    pub(super) fn divide(&self, crawls: usize) {
        if let Some(room) = &self.room {
            let each = (2 * self.requests).div_ceil(crawls.max(1)).clamp(1, self.requests.max(1));
            room.each.store(each, Ordering::Relaxed);
        }
    }

    /// Crawls until that crawl is over.
    pub(super) fn crawl(&self, part: Part<'_>) -> Result<Report, Error> {
        let Part { store, index, settings, context, seeds, feeds } = part;
        let (done, news) = sync_channel(self.answers);
        let known = KnownBlocks::default();
        let home = Home {
            done,
            known: known.clone(),
            committed: Committed::default(),
            context: context.clone(),
            seeds: Arc::clone(&self.seeds),
        };
        let parts = Parts {
            store,
            index,
            known,
            settings,
            requests_max: self.requests,
            room: self.room.clone(),
            context,
            errands: self.errands.clone(),
            home: Some(Arc::new(home)),
            done: news,
        };
        let began = Began { moment: context.clock.now(), clock: Instant::now() };
        let committer = Committer::start(parts, seeds, feeds)?;
        // Of many crawls, none knows what has become of all seeds.
        committer.run(if context.beyond.is_some() { &[] } else { seeds }, began)
    }
}
