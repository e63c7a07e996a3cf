//! Backups of the stores of shards, in a folder or in object storage.
//!
//! `TO/NNNN/LEASE/` is a folder of backups of its own for each lease of a shard, so that a worker
//! that has lost a shard writes beside what those after it have written, and removes nothing of
//! it. The newest state is that of the largest lease, and in it that of the last name, which is
//! the number of the batch. A store tells by itself of which lease and batch it is.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::base::clock::Clock;
use crate::base::remote::{self, Location};
use crate::corpus::rewrite;
use crate::frontier::{Mark, mark, received};
use crate::store::{self, BackupError, BackupOrder, Store};

use super::super::Beyond as _;
use super::shard::{Shard, lock};
use super::{Common, WorkerConfig};

/// Backups of each lease that are kept.
const KEPT: usize = 2;

/// Parts of the interval over which the first backups of shards are spread.
const SPREAD: u32 = 16;

/// Rest after a backup that failed, where that is shorter than the interval.
const RETRY: Duration = Duration::from_secs(10);

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Where and how often the shards of a worker are backed up, and what became of it.
#[derive(Debug)]
pub(super) struct ShardBackups {
    to: Location,
    every: Duration,
    is_failing: AtomicBool,
    pub made: AtomicU64,
    pub failed: AtomicU64,
    pub restored: AtomicU64,
}

/// The newest backup of a shard.
struct Newest {
    mark: Mark,
    place: Location,
    name: String,
}

impl ShardBackups {
    /// Where the settings say that shards are backed up; none if they say nothing.
    pub(super) fn of(config: &WorkerConfig) -> Result<Option<Self>, remote::Error> {
        if config.backup.is_empty() {
            return Ok(None);
        }
        let (to, every) = (Location::parse(&config.backup)?, config.backup_interval.duration());
        Ok(Some(Self::new(to, every)))
    }

    fn new(to: Location, every: Duration) -> Self {
        let [made, failed, restored] = [(); 3].map(|()| AtomicU64::new(0));
        Self { to, every, is_failing: AtomicBool::new(false), made, failed, restored }
    }

    /// The last backup has failed.
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::SeqCst)
    }

    fn folder(&self, shard: u32) -> Location {
        self.to.child(&format!("{shard:04}"))
    }

    fn newest(&self, shard: u32) -> io::Result<Option<Newest>> {
        let folder = self.folder(shard);
        for lease in folder.names()?.iter().rev() {
            let Ok(fence) = lease.parse() else { continue };
            let place = folder.child(lease);
            let lists = place.child("backups").names()?;
            let names = lists.iter().rev().filter_map(|list| list.strip_suffix(".jsonl"));
            for name in names {
                if let Ok(batch) = name.parse() {
                    let (mark, name) = (Mark { fence, batch }, name.to_owned());
                    return Ok(Some(Newest { mark, place, name }));
                }
            }
        }
        Ok(None)
    }

    /// Backs a shard up, unless nothing has changed. Returns whether that is done.
    pub(super) fn back_up(&self, shard: &Shard, store: &Store, goes_on: impl Fn() -> bool) -> bool {
        let _one_at_a_time = lock(&shard.backing_up);
        let goes_on = || goes_on() && shard.is_held();
        let error = match self.try_back_up(shard, store, goes_on) {
            Ok(()) if self.is_failing.swap(false, Ordering::SeqCst) => {
                tracing::warn!(to = %self.to, "shards are backed up again");
                return true;
            }
            Ok(()) => return true,
            Err(BackupError::Stopped) => return false,
            Err(error) => error,
        };
        self.failed.fetch_add(1, Ordering::Relaxed);
        let shard = shard.number();
        if self.is_failing.swap(true, Ordering::SeqCst) {
            tracing::debug!(shard, %error, "not backed up");
        } else {
            tracing::warn!(
                shard,
                %error,
                "shards cannot be backed up: the crawl goes on, and it is tried again"
            );
        }
        false
    }

    fn try_back_up(
        &self,
        shard: &Shard,
        store: &Store,
        goes_on: impl Fn() -> bool,
    ) -> Result<(), BackupError> {
        // What is backed up is this state or a later one.
        let snapshot = store.snapshot()?;
        let covered = received(&snapshot)?;
        let Some(mark) = mark(&snapshot)?.filter(|mark| mark.fence == shard.lease.fence) else {
            return Ok(());
        };
        drop(snapshot);
        if shard.backed_up().is_some_and(|(done, _)| done == mark) {
            return Ok(());
        }
        let folder = &self.folder(shard.number()).child(&format!("{:020}", mark.fence));
        let name = format!("{:020}", mark.batch);
        let now = Clock::System.now();
        let order = BackupOrder { folder, name: Some(&name), keep: KEPT, now };
        let _summary = store::backup(store, order, &goes_on)?;
        shard.note_backed_up(mark, covered);
        self.made.fetch_add(1, Ordering::Relaxed);
        tracing::info!(shard = shard.number(), batch = mark.batch, "backed up");
        let all = self.folder(shard.number());
        let io = |source| BackupError::Io { path: all.to_shown(), source };
        for lease in all.names().map_err(io)? {
            let is_older = lease.parse::<u64>().is_ok_and(|fence| fence < mark.fence);
            if is_older && goes_on() {
                all.child(&lease).remove_folder().map_err(io)?;
            }
        }
        Ok(())
    }

    /// Tells whether there is a newer state of a shard than that of a store.
    pub(super) fn has_newer(&self, shard: u32, store: &Store) -> Result<bool, BackupError> {
        let of_store = mark(&store.snapshot()?)?;
        let io = |source| BackupError::Io { path: self.to.to_shown(), source };
        let newest = self.newest(shard).map_err(io)?;
        Ok(newest.is_some_and(|newest| Some(newest.mark) > of_store))
    }

    /// Puts the newest backup of a shard in the place of a store that is closed.
    pub(super) fn restore(
        &self,
        shard: u32,
        folder: &Path,
        cache_bytes: usize,
    ) -> Result<(), BackupError> {
        let io = |source| BackupError::Io { path: folder.to_owned(), source };
        let newest = self.newest(shard).map_err(io)?;
        let Some(Newest { mark, place, name }) = newest else { return Ok(()) };
        let beside = folder.with_extension("restored");
        if beside.try_exists().map_err(io)? {
            fs::remove_dir_all(&beside).map_err(io)?;
        }
        let summary = rewrite::restore(&place, Some(&name), &beside, cache_bytes)?;
        fs::remove_dir_all(folder).map_err(io)?;
        fs::rename(&beside, folder).map_err(io)?;
        self.restored.fetch_add(1, Ordering::Relaxed);
        let (rows, lease) = (summary.rows, mark.fence);
        tracing::warn!(shard, lease, batch = mark.batch, rows, "restored from its backup");
        Ok(())
    }
}

/// Backs shards up, one after the other, until the worker is over.
pub(super) fn run(common: &Common) {
    let Some(backups) = &common.backups else { return };
    // When each lease was backed up last, and when it is to be again.
    let mut plans: HashMap<u64, (Instant, Instant)> = HashMap::new();
    let soon = (backups.every / 10).min(RETRY);
    while !common.is_over() {
        let shards: Vec<Arc<Shard>> = lock(&common.shards).values().cloned().collect();
        plans.retain(|fence, _| shards.iter().any(|shard| shard.lease.fence == *fence));
        for shard in shards {
            let Some(store) = lock(&shard.store).clone() else { continue };
            let now = Instant::now();
            let first = backups.every * (shard.number() % SPREAD) / SPREAD;
            let plan = plans.entry(shard.lease.fence).or_insert((now, now + first));
            if now < plan.1 && !(shard.wants_backup() && now >= plan.0 + soon) {
                continue;
            }
            let goes_on = || !common.is_over() && shard.stop.asked() == 0;
            let done = backups.back_up(&shard, &store, goes_on);
            let rest = if done { backups.every } else { backups.every.min(RETRY) };
            let now = Instant::now();
            *plan = (now, now + rest);
        }
        common.rest(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_writes_that_has_lost_its_lease_is_not_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let to = Location::Local(folder.path().to_owned());
        let backups = ShardBackups::new(to, Duration::from_secs(1));
        assert!(backups.newest(7).unwrap().is_none());
        let write = |fence: u64, batch: u64| {
            let lists = folder.path().join(format!("0007/{fence:020}/backups"));
            fs::create_dir_all(&lists).unwrap();
            fs::write(lists.join(format!("{batch:020}.jsonl")), "").unwrap();
        };
        let newest = || backups.newest(7).unwrap().map(|newest| newest.mark);
        write(90, 12);
        write(90, 9);
        assert_eq!(newest(), Some(Mark { fence: 90, batch: 12 }));
        write(100, 1);
        write(90, 500);
        assert_eq!(newest(), Some(Mark { fence: 100, batch: 1 }));
        // A lease that has begun and has no whole backup yet has none.
        fs::create_dir_all(folder.path().join(format!("0007/{:020}/chunks", 110))).unwrap();
        assert_eq!(newest(), Some(Mark { fence: 100, batch: 1 }));
    }
}
