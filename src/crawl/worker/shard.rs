//! A shard that a worker holds, as its committer and visitors see it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::base::clock::Timestamp;
use crate::cluster::{ShardLease, TurnOf};
use crate::frontier::{LinksSent, Mark, SentLink, Share};
use crate::store::Store;

use super::super::{
    Beyond, BeyondError, CommittedBatch, CorpusChange, HeldTurn, Live, News, Stop, Turn,
};
use super::Common;
use super::corpus::Handed;
use super::turns::{self, Wish};

/// Links that are offered in one transaction at most.
const OFFERED_MAX: usize = 2_000;

/// Time for which links that have arrived stay in the store before a transaction of its own
/// forgets them.
const FORGET_AFTER: Duration = Duration::from_secs(1);

/// Longest time for which a wait does not look whether the lease has ended.
const LOOK: Duration = Duration::from_millis(20);

/// How long a shard is held.
#[derive(Debug)]
pub(super) struct Hold {
    /// By the clock of this worker.
    until: AtomicI64,
    /// It is over for good.
    lost: AtomicBool,
}

impl Hold {
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    pub(super) fn goes_on(&self, now: Timestamp) -> bool {
        !self.is_lost() && now.0 < self.until.load(Ordering::SeqCst)
    }
}

/// A shard that is held.
#[derive(Debug)]
pub(super) struct Shard {
    pub lease: ShardLease,
    was_held: bool,
    common: Arc<Common>,
    hold: Arc<Hold>,
    quiet: AtomicBool,
    /// The store has links for others that nobody has looked at yet.
    pub has_links: AtomicBool,
    /// The last look at its links has left none.
    pub links_are_out: AtomicBool,
    links: Mutex<Links>,
    /// More hosts link to these copies.
    risen: Mutex<BTreeMap<String, u64>>,
    /// Its store, once it is open.
    pub store: Mutex<Option<Arc<Store>>>,
    /// Batches of this lease.
    batches: AtomicU64,
    /// Held by whoever backs it up.
    pub backing_up: Mutex<()>,
    /// The state that the last backup has at least, and up to where links were offered in it.
    backed_up: Mutex<Option<(Mark, String)>>,
    /// Links wait for a backup, and for nothing else.
    wants_backup: AtomicBool,
    pub stop: Stop,
    pub live: Arc<Live>,
}

/// Links on their way in and out.
#[derive(Debug)]
struct Links {
    /// What has come and was not offered yet.
    inbox: VecDeque<SentLink>,
    /// Where the last of them stands.
    last: Option<String>,
    /// Where the last one stands that is offered and on the disk.
    committed: Option<String>,
    /// Links that have arrived and are still in the store: the last sequence of each shard.
    sent: BTreeMap<u32, u64>,
    sent_since: Option<Instant>,
    /// When the committer has looked last, which also finds what is due for another visit.
    looked: Instant,
}

impl Default for Links {
    fn default() -> Self {
        Self {
            inbox: VecDeque::new(),
            last: None,
            committed: None,
            sent: BTreeMap::new(),
            sent_since: None,
            looked: Instant::now(),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    pub(super) fn new(
        lease: ShardLease,
        was_held: bool,
        until: Timestamp,
        common: &Arc<Common>,
    ) -> Self {
        Self {
            lease,
            was_held,
            common: Arc::clone(common),
            hold: Arc::new(Hold { until: AtomicI64::new(until.0), lost: AtomicBool::new(false) }),
            quiet: AtomicBool::new(false),
            has_links: AtomicBool::new(true),
            links_are_out: AtomicBool::new(false),
            links: Mutex::default(),
            risen: Mutex::default(),
            store: Mutex::default(),
            batches: AtomicU64::new(0),
            backing_up: Mutex::default(),
            backed_up: Mutex::default(),
            wants_backup: AtomicBool::new(false),
            stop: Stop::default(),
            live: Arc::default(),
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.lease.shard
    }

    /// Its lease goes on until then.
    pub(super) fn hold_until(&self, until: Timestamp) {
        self.hold.until.fetch_max(until.0, Ordering::SeqCst);
    }

    /// Its lease is over for good.
    pub(super) fn lose(&self) {
        self.hold.lost.store(true, Ordering::SeqCst);
    }

    /// The committer has nothing to do. To be asked before [`Shard::is_taken_in`].
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::SeqCst)
    }

    /// All links that came are offered and on the disk.
    pub(super) fn is_taken_in(&self) -> bool {
        let links = lock(&self.links);
        links.inbox.is_empty() && links.last == links.committed
    }

    /// There is room for further links.
    pub(super) fn wants_links(&self) -> bool {
        lock(&self.links).inbox.is_empty()
    }

    /// Links have come; the last of them stands at `last`.
    pub(super) fn take_in(&self, came: Vec<SentLink>, last: String) {
        let mut links = lock(&self.links);
        links.inbox.extend(came);
        links.last = Some(last);
    }

    /// Returns where the last link stands that is offered and on the disk.
    pub(super) fn committed_links(&self) -> Option<String> {
        lock(&self.links).committed.clone()
    }

    pub(super) fn backed_up(&self) -> Option<(Mark, String)> {
        lock(&self.backed_up).clone()
    }

    pub(super) fn note_backed_up(&self, mark: Mark, covered: String) {
        self.wants_backup.store(false, Ordering::SeqCst);
        *lock(&self.backed_up) = Some((mark, covered));
    }

    pub(super) fn wants_backup(&self) -> bool {
        self.wants_backup.load(Ordering::SeqCst)
    }

    /// Returns up to where links may leave the stream when all up to `read` were read: those that
    /// are on the disk, and in the last backup where there are backups. What has nothing to do
    /// does not wait for a place that fails: all that came was visited.
    pub(super) fn done_links(&self, read: &str) -> Option<String> {
        let Some(backups) = &self.common.backups else { return self.committed_links() };
        // In this order, see there.
        let is_idle = self.is_quiet() && self.is_taken_in();
        let covered = self.backed_up().map(|(_, covered)| covered);
        if is_idle && covered.as_deref() != Some(read) {
            if backups.is_failing() {
                return Some(read.to_owned());
            }
            self.wants_backup.store(true, Ordering::SeqCst);
        }
        covered
    }

    /// Links have arrived at their shard.
    pub(super) fn arrived(&self, sent: LinksSent) {
        let mut links = lock(&self.links);
        links.sent.insert(sent.shard, sent.until);
        links.sent_since.get_or_insert_with(Instant::now);
    }

    /// No links wait in its store.
    pub(super) fn has_no_links(&self) -> bool {
        !self.has_links.load(Ordering::SeqCst) && self.links_are_out.load(Ordering::SeqCst)
    }

    fn lost_error(&self) -> BeyondError {
        BeyondError::Lost(self.number())
    }

    fn hand(&self, change: CorpusChange) {
        let hold = Arc::clone(&self.hold);
        self.common.hand(self.number(), Handed::Change { change, hold });
    }

    /// Waits for the corpus to have stored all before this.
    fn settle_corpus(&self) -> Result<(), BeyondError> {
        for (url, links) in std::mem::take(&mut *lock(&self.risen)) {
            self.hand(CorpusChange::Links { url, links });
        }
        let (done, settled) = channel();
        self.common.hand(self.number(), Handed::Settle(done));
        loop {
            let failed = |detail| BeyondError::Failed { shard: self.number(), detail };
            match settled.recv_timeout(LOOK) {
                Ok(result) => return result.map_err(failed),
                Err(RecvTimeoutError::Timeout) if self.is_lost() => return Err(self.lost_error()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failed("nobody takes them any more".to_owned()));
                }
            }
        }
    }
}

impl Beyond for Shard {
    fn share(&self) -> Share {
        Share { own: self.number(), of: self.common.config.shards }
    }

    fn goes_on(&self) -> bool {
        self.common.goes_on
    }

    fn was_held(&self) -> bool {
        self.was_held
    }

    fn is_held(&self) -> bool {
        self.hold.goes_on(self.common.clock.now())
    }

    fn is_lost(&self) -> bool {
        self.hold.is_lost()
    }

    fn turn(&self, address: u64) -> Turn<'_> {
        Box::pin(async move {
            let turn = TurnOf { address, token: self.common.token(), shard: self.number() };
            let (got, answer) = tokio::sync::oneshot::channel();
            self.common.wish(Wish::Take(turn, got));
            let held = answer.await.unwrap_or(Err(turns::UNKNOWN))?;
            Ok(Box::new(held) as HeldTurn)
        })
    }

    fn hand_over(&self, change: CorpusChange) {
        match change {
            // The last number counts, and none before the page is there.
            CorpusChange::Links { url, links } => {
                lock(&self.risen).insert(url, links);
            }
            change => self.hand(change),
        }
    }

    fn settle(&self) -> Result<(), BeyondError> {
        if self.is_lost() {
            return Err(self.lost_error());
        }
        self.settle_corpus()?;
        // A lease that was not renewed in time may go on, or be lost; which, the cluster says,
        // unless it has been away for too long.
        while !self.is_held() {
            if self.is_lost() || self.common.has_failed() || self.common.is_over() {
                return Err(self.lost_error());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn mark(&self) -> Mark {
        let batch = self.batches.fetch_add(1, Ordering::SeqCst) + 1;
        Mark { fence: self.lease.fence, batch }
    }

    fn has_news(&self) -> bool {
        let links = lock(&self.links);
        let is_old = |since: Instant| since.elapsed() > FORGET_AFTER;
        let looks = self.common.goes_on && links.looked.elapsed() > self.common.look_for_due;
        looks || !links.inbox.is_empty() || links.sent_since.is_some_and(is_old)
    }

    fn news(&self) -> News {
        let mut links = lock(&self.links);
        links.looked = Instant::now();
        let sent = std::mem::take(&mut links.sent).into_iter();
        let sent = sent.map(|(shard, until)| LinksSent { shard, until }).collect();
        links.sent_since = None;
        // Those that stay are offered in the next batch: where the last one stands, they tell.
        let whole = links.inbox.len() <= OFFERED_MAX;
        let count = links.inbox.len().min(OFFERED_MAX);
        let came: Vec<SentLink> = links.inbox.drain(..count).collect();
        self.common.links_in.fetch_add(came.len() as u64, Ordering::Relaxed);
        let last = links.last.clone().filter(|_| whole && links.last != links.committed);
        News { links: came, last, sent }
    }

    fn committed(&self, batch: CommittedBatch) {
        self.common.last_commit.store(self.common.clock.now().0, Ordering::Relaxed);
        if batch.has_links {
            self.has_links.store(true, Ordering::SeqCst);
        }
        if let Some(last) = batch.last {
            lock(&self.links).committed = Some(last);
        }
    }

    fn set_quiet(&self, quiet: bool) {
        self.quiet.store(quiet, Ordering::SeqCst);
    }
}
