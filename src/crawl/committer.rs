//! The committer: the thread that owns the only write transaction.
//!
//! A batch is one transaction: leases are filled, fingerprinted pages are judged, stored and
//! settled as they come, and the batch closes at `batch_pages_max` pages or after `batch_time_max`;
//! much earlier if somebody waits for the commit.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_channel::Sender;

use crate::base::clock::Timestamp;
use crate::corpus::boilerplate::{ErrorPages, HostBlocks, KnownBlocks};
use crate::corpus::clusters::{self, Place};
use crate::corpus::dedup::{self, Corpus as _, Looks};
use crate::corpus::documents::write_page;
use crate::corpus::index::Index;
use crate::frontier::{Frontier, Lease, Offer, Offered, Rank, Reason, Settlement, State, Visited};
use crate::store::{Batch, Store};
use crate::urls::PageUrl;

use super::archive::Writing;
use super::crew::{Errand, Home, Room};
use super::fingerprint::{ReadPage, Yield};
use super::no_pages;
use super::report::{Past, Report, Tally};
use super::told::NewDocument;
use super::visitor::Visit;
use super::{CommittedBatch, Context, CorpusChange, Error, Settings};

mod again;
mod beyond;
mod errors;
mod leases;
mod placing;
mod replay;
mod shortage;
mod start;

use again::{SeenPage, article_of, document_of};
use beyond::Risen;
use errors::{answer_of, is_front};
use leases::is_page;
pub(super) use replay::Replay;

/// Longest time for which the committer does not look whether it shall stop.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Longest time for which it does not look, with a transaction open, whether another one wants it.
const SHARE_LOOK: Duration = Duration::from_millis(2);

/// Longest time for which a batch stays open when a host whose first request waits for the commit,
/// who is told of new documents, or somebody else who wants to write would have to wait for it.
const AWAITED: Duration = Duration::from_millis(50);

/// For how long at most where others of this process ask for what is stored.
const SHARED: Duration = Duration::from_secs(1);

/// Owns the frontier and every write.
pub(super) struct Committer<'a> {
    store: &'a Store,
    frontier: Frontier,
    index: Arc<Mutex<Index>>,
    boilerplate: HostBlocks,
    error_pages: ErrorPages,
    settings: &'a Settings,
    /// Requests under way at a time.
    requests_max: usize,
    context: &'a Context,
    /// Bounds the requests of several crawls.
    room: Option<Arc<Room>>,
    errands: Sender<Errand>,
    home: Option<Arc<Home>>,
    done: Receiver<Visit<Yield>>,
    /// Of the open batch, what those beyond have to hear of it when it is on the disk.
    batch_beyond: CommittedBatch,
    /// The frontier was looked at: whether there is anything to do is known.
    has_looked: bool,
    /// New documents of the open batch, if somebody is told of them.
    fresh: Vec<NewDocument>,
    /// Leases that wait for the next commit.
    held: Vec<Errand>,
    in_flight: usize,
    pages_leased: u64,
    tally: Tally,
    /// Pages that are new, or may turn out to be when they are looked at again.
    promising: u64,
    /// When matches get their second look.
    looks: Looks,
    /// How far the look at the end of the run is.
    look: again::Look,
    /// Pages that could not be had before this run.
    errors_before: u64,
    /// When the first interrupt was seen.
    stopping: Option<Instant>,
    /// When the next request is due, as of the last look.
    next_due: Option<Timestamp>,
    /// The same of requests that are worth waiting for.
    worth_waiting: Option<Timestamp>,
    /// This machine lets no request go.
    shortage: Option<shortage::Shortage>,
    /// The files that get what is exchanged.
    writing: Option<Writing>,
}

/// When a run began.
#[derive(Clone, Copy)]
pub(super) struct Began {
    pub moment: Timestamp,
    pub clock: Instant,
}

/// Whether the run goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    On,
    Over,
}

/// What the committer works with.
pub(super) struct Parts<'a> {
    pub store: &'a Store,
    pub index: Arc<Mutex<Index>>,
    pub known: KnownBlocks,
    pub settings: &'a Settings,
    /// Requests under way at a time.
    pub requests_max: usize,
    /// Bounds the requests of several crawls.
    pub room: Option<Arc<Room>>,
    pub context: &'a Context,
    pub errands: Sender<Errand>,
    /// Where answers come back to.
    pub home: Option<Arc<Home>>,
    pub done: Receiver<Visit<Yield>>,
}

impl<'a> Committer<'a> {
    /// Takes up the frontier of the store and offers the seeds.
    pub(super) fn start(parts: Parts<'a>, seeds: &[PageUrl], feeds: &[u64]) -> Result<Self, Error> {
        let Parts { store, index, known, settings, context, .. } = parts;
        let writing = Writing::start(store, settings, seeds, context.clock.now())?;
        let frontier = start::take_up(store, settings, context, seeds, feeds)?;
        Ok(Self {
            store,
            frontier,
            index,
            boilerplate: HostBlocks::new(known),
            error_pages: ErrorPages::default(),
            settings,
            requests_max: parts.requests_max,
            room: parts.room,
            context,
            errands: parts.errands,
            home: parts.home,
            done: parts.done,
            batch_beyond: CommittedBatch::default(),
            has_looked: false,
            fresh: Vec::new(),
            held: Vec::new(),
            in_flight: 0,
            pages_leased: 0,
            tally: Tally::default(),
            promising: 0,
            looks: Looks::default(),
            look: again::Look::default(),
            errors_before: 0,
            stopping: None,
            next_due: None,
            worth_waiting: None,
            shortage: None,
            writing,
        })
    }

    /// Works until the run is over, which began at `began`.
    pub(super) fn run(mut self, seeds: &[PageUrl], began: Began) -> Result<Report, Error> {
        let snapshot = self.store.snapshot()?;
        let before = Report::refused_counts(&snapshot)?;
        self.errors_before = Report::errors(&snapshot)?;
        drop(snapshot);
        self.look.begin(&self.store.snapshot()?)?;
        let turn = self.store.turn();
        self.show_committed()?;
        drop(turn);
        loop {
            let came = if self.is_shared() || self.is_one_of_many() { self.rest() } else { None };
            if self.batch(came)? == Course::Over {
                break;
            }
        }
        self.hide_committed();
        let has_ended = self.stopping.is_none();
        self.writing.take().map_or(Ok(()), |writing| writing.close(has_ended))?;
        if !self.is_shared() {
            dedup::settle(self.store, &self.index, &self.settings.dedup)?;
        }
        self.tally.revisits.due = self.frontier.due();
        self.tally.kept_out.clone_from(self.frontier.kept_out());
        self.tally.unstored = self.frontier.unstored();
        let past = Past { refused: before, started: began.moment, took: began.clock.elapsed() };
        let end = self.end();
        let mut report = Report::make(self.store, seeds, self.tally, past, self.next_due)?;
        report.no_pages = no_pages::why(&self.store.snapshot()?, &report, seeds, end)?;
        Ok(report)
    }

    /// Somebody else writes to the store, too.
    fn is_shared(&self) -> bool {
        self.context.index.is_some()
    }

    /// Waits, with no transaction open, until there is something to write. Returns the page that
    /// came, if one did.
    fn rest(&mut self) -> Option<Visit<Yield>> {
        loop {
            let asked = self.context.stop.asked() > 0 && self.stopping.is_none();
            let due = self.next_due.is_some_and(|due| due <= self.context.clock.now());
            if asked || self.is_over() || (due && self.has_room()) || self.has_news() {
                return None;
            }
            match self.next(self.wait(None)) {
                // What others have removed since is only free when nobody looks at it any more.
                Ok(None) => self.hide_committed(),
                Ok(done) => return done,
                Err(()) => return None,
            }
        }
    }

    /// One transaction; it begins with the page that `came`.
    fn batch(&mut self, mut came: Option<Visit<Yield>>) -> Result<Course, Error> {
        let turn = self.store.turn();
        let mut batch = dedup::begin(self.store, &self.index, &self.settings.dedup)?;
        let mut opened = (self.is_shared() || self.is_one_of_many()).then(Instant::now);
        let mut pages = 0;
        let mut course = loop {
            self.take_news(&mut batch)?;
            self.lease(&mut batch)?;
            if came.is_none() && self.is_over() {
                if self.stopping.is_none()
                    && !self.is_full()
                    && self.frontier.end_waiting(&mut batch)?
                {
                    continue;
                }
                break Course::Over;
            }
            let age = opened.map(|opened| opened.elapsed());
            let left = self.time_left(age.unwrap_or_default());
            if pages >= self.settings.limits.batch_pages_max || (age.is_some() && left.is_zero()) {
                break Course::On;
            }
            let wait = self.wait(age.map(|_| left));
            match came.take().map_or_else(|| self.next(wait), |done| Ok(Some(done))) {
                Ok(Some(done)) => {
                    opened.get_or_insert_with(Instant::now);
                    pages += 1;
                    self.record(&mut batch, done)?;
                }
                // Leases that are held back go out with a commit, as soon as nothing else comes;
                // and nobody who wants to write waits for pages that are not there.
                Ok(None) if !self.held.is_empty() || self.store.is_wanted() => break Course::On,
                Ok(None) if self.is_one_of_many() && self.in_flight == 0 => break Course::On,
                Ok(None) => {}
                Err(()) => break Course::Over,
            }
        };
        let synced = self.writing.as_mut().and_then(Writing::sync);
        self.look_on(&mut batch)?;
        if course == Course::Over && self.stopping.is_none() && !self.look_again(&mut batch)? {
            course = Course::On;
        }
        if course == Course::Over && self.in_flight == self.held.len() {
            self.frontier.close(&mut batch)?;
        }
        self.boilerplate.flush(&mut batch)?;
        self.frontier.flush(&mut batch)?;
        self.show_counts(&batch)?;
        if let Some(on_document) = &self.context.on_document {
            on_document.after(&mut batch, std::mem::take(&mut self.fresh));
        }
        if let Some(writing) = &mut self.writing {
            writing.note(&mut batch, synced)?;
        }
        self.settle_beyond(&mut batch)?;
        tracing::trace!(pages, "committing");
        batch.commit()?;
        self.show_committed()?;
        drop(turn);
        self.tell_beyond();
        tracing::trace!(pages, "committed");
        if let Some(writing) = &mut self.writing {
            writing.committed();
        }
        for errand in std::mem::take(&mut self.held) {
            if course == Course::On {
                self.send(errand);
            }
        }
        Ok(course)
    }

    fn show_counts(&self, batch: &Batch) -> Result<(), Error> {
        self.context.live.queued.store(self.frontier.queued(), Ordering::Relaxed);
        let errors = Report::errors(batch)?.saturating_sub(self.errors_before);
        self.context.live.errors.store(errors, Ordering::Relaxed);
        Ok(())
    }

    /// Returns for how long a batch of this age may stay open.
    fn time_left(&self, age: Duration) -> Duration {
        let longest = self.settings.limits.batch_time_max.duration();
        let is_awaited = !self.held.is_empty() || !self.fresh.is_empty() || self.store.is_wanted();
        let longest = match is_awaited {
            true => longest.min(AWAITED),
            false if self.is_shared() || self.is_one_of_many() => longest.min(SHARED),
            false => longest,
        };
        longest.saturating_sub(age)
    }

    /// Waits for a fingerprinted page. `Ok(None)` if none came in time; `Err` if none can come any
    /// more.
    fn next(&self, wait: Duration) -> Result<Option<Visit<Yield>>, ()> {
        match self.done.try_recv() {
            Ok(done) => return Ok(Some(done)),
            Err(TryRecvError::Disconnected) => return Err(()),
            Err(TryRecvError::Empty) if !self.held.is_empty() => return Ok(None),
            Err(TryRecvError::Empty) => {}
        }
        match self.done.recv_timeout(wait) {
            Ok(done) => Ok(Some(done)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(()),
        }
    }

    fn wait(&self, batch: Option<Duration>) -> Duration {
        let now = self.context.clock.now();
        // Of many, one that has its part of the requests under way waits for an answer.
        let due = self.next_due.filter(|_| !self.is_one_of_many() || self.has_room());
        let due = due.map(|due| now.until(due).max(Duration::from_millis(1)));
        let share = (self.is_shared() && batch.is_some()).then_some(SHARE_LOOK);
        [batch, due, share].into_iter().flatten().fold(LOOK_UP, Duration::min)
    }

    fn record(&mut self, batch: &mut Batch, visit: Visit<Yield>) -> Result<(), Error> {
        self.in_flight -= 1;
        let Visit { lease, outcome, told, mut held, .. } = visit;
        if let Yield::Later(wait) = &outcome {
            return self.not_our_turn(batch, &lease, *wait);
        }
        if let Yield::Unsent(want) = &outcome {
            return self.unsent(batch, &lease, is_page(&lease), want);
        }
        self.sent();
        let finished = told.finished;
        let yielded = self.probed(batch, &lease, outcome, finished)?;
        // The row of its URL is read here, and written when the visit is settled.
        let mut visited = Visited::read(batch, &lease, told)?;
        if let Some(writing) = &mut self.writing {
            writing.keep(batch, &visited, held.packed.take())?;
        }
        // Whether a page that was read for the first time is a new document.
        let mut first_read = None;
        let settlement = match yielded {
            Yield::Settled(settlement) => {
                self.tally.settled(&settlement);
                settlement
            }
            Yield::Unsent(_) | Yield::Later(_) => return Ok(()),
            Yield::List(list) => {
                self.tally.requests += 1;
                let settled = self.frontier.settle_list(batch, visited, &list)?;
                return self.part(batch, lease.url.as_str(), settled, finished);
            }
            Yield::Page(page) => {
                let seen = SeenPage::of(&visited);
                let is_first = seen.state == State::Queued;
                let before = self.promising;
                let (settlement, changed) = self.keep(batch, &page, &seen)?;
                if let (Settlement::Stored(_), Some(kept)) = (&settlement, &page.kept) {
                    write_page(batch, &page.article.address, kept)?;
                }
                first_read = is_first.then_some((self.promising > before, page.said));
                // What an error page links to leads to more of them, or is known.
                let is_error = settlement == Settlement::Refused(Reason::SoftNotFound);
                let new = !is_error && self.follow(batch, &lease, &page, finished)?;
                visited.told.changed = changed || new;
                settlement
            }
        };
        let document = match settlement {
            Settlement::Stored(document) => Some(document),
            _ => None,
        };
        tracing::trace!(url = %lease.url, "kept");
        let settled = self.frontier.settle(batch, visited, settlement)?;
        tracing::trace!(url = %lease.url, "settled");
        if let Some((is_new, said)) = first_read {
            self.frontier.count_yield(batch, &lease.url, is_new, said)?;
            if let Some(document) = document {
                self.probe(batch, &lease, finished)?;
                let copies = clusters::neighbours(batch, document, lease.url.as_str())?;
                self.frontier.learn(batch, &lease.url, document, &copies)?;
                self.frontier.weigh(batch, &lease.url, document)?;
            }
        }
        self.part(batch, lease.url.as_str(), settled, finished)
    }

    /// Judges a page and stores it at its place. Returns what became of it, and whether it says
    /// something else than at its last visit.
    fn keep(
        &mut self,
        batch: &mut Batch,
        page: &ReadPage,
        seen: &SeenPage,
    ) -> Result<(Settlement, bool), Error> {
        let SeenPage { host, links, ref state, now } = *seen;
        let live = &self.context.live;
        live.pages.fetch_add(1, Ordering::Relaxed);
        self.tally.pages += 1;
        self.tally.links_beyond += page.links_beyond;
        self.tally.cut(page.cut);
        let whole = page.whole.as_deref().unwrap_or(&page.article);
        let is_error = !is_front(&whole.address)
            && self.error_pages.is_error(batch, host, &answer_of(whole))?;
        // A page that is read again is no further page that has these blocks.
        if self.settings.boilerplate.learn_boilerplate && *state == State::Queued {
            self.boilerplate.count(batch, host, &page.blocks)?;
        }
        let refused = match page {
            _ if is_error => Some(Reason::SoftNotFound),
            ReadPage { noindex: true, .. } => Some(Reason::Noindex),
            ReadPage { article, .. } if article.keys.text.words == 0 => Some(Reason::NoText),
            // Its time is over; only its links are still wanted.
            _ if *state == State::Refused(Reason::Expired) => Some(Reason::Expired),
            _ => None,
        };
        if let Some(reason) = refused {
            return Ok((Settlement::Refused(reason), false));
        }
        if let Some(document) = document_of(batch, state, &page.article.address)? {
            return self.keep_again(batch, document, page, seen);
        }
        let article = article_of(batch, &self.index, page)?;
        self.tally.left_out(article);
        let index = &self.asked(page);
        let placed = self.placer_of(batch, index, now).place(article, links)?;
        self.hand_over(|| CorpusChange::Place { article: Box::new(article.clone()), links });
        if placed.judged.place == Place::New {
            self.tell_of(&placed, article, links);
        }
        Ok((self.placed(&placed), true))
    }

    /// Offers the links of a page. Returns whether any of them is new.
    fn follow(
        &mut self,
        batch: &mut Batch,
        lease: &Lease,
        page: &ReadPage,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let (from, mut new) = (&lease.url, false);
        let depth = lease.place.map_or(0, |place| place.depth).saturating_add(1);
        let mut risen = BTreeMap::new();
        for (url, nofollow) in &page.links {
            let offer = Offer {
                url,
                depth,
                rank: Rank::Link,
                hops: 0,
                from: Some(from),
                nofollow: *nofollow,
            };
            match self.frontier.offer(batch, &offer, now)? {
                Offered::MoreLinks { document, links } => {
                    risen.insert(url, (document, links));
                }
                Offered::Queued => new = true,
                Offered::Known | Offered::Refused(_) => {}
            }
        }
        for (url, nofollow) in &page.feeds {
            let (rank, from, nofollow) = (Rank::Link, Some(from), *nofollow);
            let offer = Offer { url, depth, rank, hops: 0, from, nofollow };
            self.frontier.offer_feed(batch, &offer, now)?;
        }
        for (url, (document, links)) in risen {
            self.rise(batch, Risen { document, url, links }, now)?;
        }
        Ok(new)
    }
}
