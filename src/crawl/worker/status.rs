//! What a worker tells of itself with its heartbeat, and what all of them tell together: small, and
//! gone by itself when the worker is.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::corpus::shared::SharedCrowd;
use crate::frontier::OUTBOX;
use crate::store::{self, View as _};

use super::super::Report;
use super::Common;
use super::shard::{Shard, lock};

/// Minutes of which the pages are told.
const MINUTES_MAX: usize = 10;

/// Time over which the pace is taken.
const PACE_MS: i64 = 60_000;

/// Letters of the name of a host that are told.
const HOST_MAX: usize = 64;

/// What a worker tells of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkerStatus {
    /// Its name among the workers.
    pub worker: String,
    /// The machine that it runs on; empty if it does not know.
    pub host: String,
    /// Its version.
    pub version: String,
    /// When it began, and when it told this.
    pub started: String,
    /// When it told this.
    pub told: String,
    /// It gives its shards back and ends.
    pub stopping: bool,
    /// Shards that it holds.
    pub shards: u64,
    /// Numbers.
    #[serde(flatten)]
    pub counts: WorkerCounts,
    /// Pages a second, over the last minute.
    pub per_second: f64,
    /// Pages of each of the last minutes, numbered since 1970.
    pub minutes: Vec<(i64, u64)>,
    /// URLs of its shards that were not stored, by reason, over all runs.
    pub refused: BTreeMap<String, i64>,
    /// When a batch of it was committed last; none if none was.
    pub last_commit: Option<String>,
}

/// What is counted of a worker since it began, and what waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkerCounts {
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
    /// Bytes of bodies on the wire.
    pub bytes: u64,
    /// URLs that wait.
    pub queued: u64,
    /// Requests under way.
    pub in_flight: u64,
    /// Links sent to other shards.
    pub links_out: u64,
    /// Links that came from other shards, and seeds.
    pub links_in: u64,
    /// Links that wait to be sent.
    pub links_waiting: u64,
}

impl WorkerCounts {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.pages += other.pages;
        self.new += other.new;
        self.duplicates += other.duplicates;
        self.failed += other.failed;
        self.bytes += other.bytes;
        self.queued += other.queued;
        self.in_flight += other.in_flight;
        self.links_out += other.links_out;
        self.links_in += other.links_in;
        self.links_waiting += other.links_waiting;
    }
}

/// A shard, for whoever looks on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardStatus {
    /// Its number.
    pub shard: usize,
    /// The worker that holds it; none if none does.
    pub holder: Option<String>,
    /// Since when, or when it was taken last; none if it never was.
    pub since: Option<String>,
    /// It has nothing to do.
    pub idle: bool,
    /// Links that others have found for it and that it has not taken in.
    pub links: u64,
}

/// What all workers do.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Crowd {
    /// What they do together.
    pub totals: CrowdTotals,
    /// The workers that are alive, in the order of their hosts.
    pub workers: Vec<WorkerStatus>,
    /// The shards, in the order of their numbers.
    pub shards: Vec<ShardStatus>,
}

/// What all workers that are alive do together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CrowdTotals {
    /// Workers.
    pub workers: u64,
    /// Shards, those that are held, and those that have nothing to do.
    pub shards: u64,
    /// Shards that are held.
    pub shards_held: u64,
    /// Shards that have nothing to do.
    pub shards_idle: u64,
    /// Links that wait in the streams of all shards.
    pub links_in_streams: u64,
    /// Numbers.
    #[serde(flatten)]
    pub counts: WorkerCounts,
    /// Pages a second, over the last minute.
    pub per_second: f64,
    /// Pages of each of the last minutes, numbered since 1970.
    pub minutes: Vec<(i64, u64)>,
    /// URLs of the shards that are held that were not stored, by reason.
    pub refused: BTreeMap<String, i64>,
}

impl Crowd {
    /// Reads what workers tell. One of a version that writes it in another way is left out.
    #[must_use]
    pub fn of(told: &SharedCrowd) -> Self {
        let mut workers: Vec<WorkerStatus> =
            told.told.iter().filter_map(|told| serde_json::from_str(told).ok()).collect();
        workers.sort_by(|one, other| {
            (&one.host, &one.started, &one.worker).cmp(&(
                &other.host,
                &other.started,
                &other.worker,
            ))
        });
        let when = |millis: u64| {
            (millis > 0).then(|| Timestamp(i64::try_from(millis).unwrap_or(i64::MAX)).to_string())
        };
        let shards = told.shards.iter().enumerate().map(|(shard, look)| ShardStatus {
            shard,
            holder: Some(look.state.holder.clone()).filter(|holder| !holder.is_empty()),
            since: when(look.since),
            idle: look.state.quiet,
            links: look.state.links,
        });
        let shards: Vec<ShardStatus> = shards.collect();
        Self { totals: CrowdTotals::of(&workers, &shards), workers, shards }
    }
}

impl CrowdTotals {
    fn of(workers: &[WorkerStatus], shards: &[ShardStatus]) -> Self {
        let count = |is: fn(&&ShardStatus) -> bool| shards.iter().filter(is).count() as u64;
        let mut all = Self {
            workers: workers.len() as u64,
            shards: shards.len() as u64,
            shards_held: count(|shard| shard.holder.is_some()),
            shards_idle: count(|shard| shard.idle),
            links_in_streams: shards.iter().map(|shard| shard.links).sum(),
            ..Self::default()
        };
        let mut minutes: BTreeMap<i64, u64> = BTreeMap::new();
        for worker in workers {
            all.counts.add(&worker.counts);
            all.per_second += worker.per_second;
            for (minute, pages) in &worker.minutes {
                *minutes.entry(*minute).or_default() += pages;
            }
            for (reason, count) in &worker.refused {
                *all.refused.entry(reason.clone()).or_default() += count;
            }
        }
        all.minutes = minutes.into_iter().collect();
        let first = all.minutes.len().saturating_sub(MINUTES_MAX);
        all.minutes.drain(..first);
        all
    }
}

/// How fast a worker was lately.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When pages were counted, and how many there were.
    looks: VecDeque<(Timestamp, u64)>,
    minutes: VecDeque<(i64, u64)>,
}

impl Pace {
    fn note(&mut self, now: Timestamp, pages: u64) {
        let before = self.looks.back().map_or(0, |(_, pages)| *pages);
        let (minute, new) = (now.0.div_euclid(60_000), pages.saturating_sub(before));
        match self.minutes.back_mut() {
            Some((last, count)) if *last == minute => *count += new,
            _ => self.minutes.push_back((minute, new)),
        }
        while self.minutes.len() > MINUTES_MAX {
            self.minutes.pop_front();
        }
        self.looks.push_back((now, pages));
        while self.looks.len() > 2 && self.looks[1].0.0 <= now.0 - PACE_MS {
            self.looks.pop_front();
        }
    }

    fn per_second(&self) -> f64 {
        let (Some(first), Some(last)) = (self.looks.front(), self.looks.back()) else { return 0.0 };
        let ms = (last.0.0 - first.0.0).max(1).unsigned_abs();
        let pages = last.1.saturating_sub(first.1);
        if self.looks.len() < 2 { 0.0 } else { (pages * 100_000 / ms) as f64 / 100.0 }
    }
}

/// Writes what a worker tells of itself at this moment.
pub(super) fn write(common: &Common, pace: &mut Pace) -> Result<String, store::Error> {
    let now = common.clock.now();
    let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
    let live = &common.live;
    pace.note(now, read(&live.pages));
    let shards: Vec<Arc<Shard>> = lock(&common.shards).values().cloned().collect();
    let (mut refused, mut links_waiting) = (BTreeMap::new(), 0);
    for shard in &shards {
        let Some(store) = lock(&shard.store).clone() else { continue };
        let snapshot = store.snapshot()?;
        links_waiting += snapshot.len(OUTBOX)?;
        for (reason, count) in Report::refused_counts(&snapshot)? {
            *refused.entry(reason).or_default() += count;
        }
    }
    let committed = common.last_commit.load(Ordering::Relaxed);
    let status = WorkerStatus {
        worker: common.worker.clone(),
        host: common.host.chars().take(HOST_MAX).collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: common.started.to_string(),
        told: now.to_string(),
        stopping: common.stop.asked() > 0,
        shards: shards.len() as u64,
        counts: WorkerCounts {
            requests: read(&live.requests),
            pages: read(&live.pages),
            new: read(&live.new),
            duplicates: read(&live.duplicates),
            failed: read(&live.failed),
            bytes: read(&live.bytes),
            queued: read(&live.queued),
            in_flight: read(&live.in_flight),
            links_out: read(&common.links_out),
            links_in: read(&common.links_in),
            links_waiting,
        },
        per_second: pace.per_second(),
        minutes: pace.minutes.iter().copied().collect(),
        refused,
        last_commit: (committed > 0).then(|| Timestamp(committed).to_string()),
    };
    Ok(serde_json::to_string(&status).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_the_last_minute_and_ten_minutes_are_told() {
        let mut pace = Pace::default();
        assert!(pace.per_second() == 0.0);
        for second in 0..1_200_i64 {
            // Ten pages a second, and none in the last half minute.
            pace.note(Timestamp(second * 1_000), 10 * second.min(1_170).unsigned_abs());
        }
        assert!((pace.per_second() - 5.0).abs() < 0.2, "{}", pace.per_second());
        assert_eq!(pace.minutes.len(), MINUTES_MAX);
        assert_eq!(pace.minutes.front(), Some(&(10, 600)));
        assert_eq!(pace.minutes.back(), Some(&(19, 310)));
    }
}
