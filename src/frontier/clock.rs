//! A clock that was ahead and has been set right: the moments that it left in the store.
//!
//! A crawl that ran while the clock was a day ahead has written that its hosts may be contacted
//! tomorrow, and the next one would find nothing to do. `latest` in `meta` is the latest moment at
//! which a crawl wrote anything. If it lies ahead when a frontier is opened, every row is looked
//! at once: a moment until which something waits becomes what the wait that it stands for can make
//! of the present moment, and one of something that has been becomes the present moment. So
//! everything waits for as long as it would if it had happened just now, and no host is asked
//! earlier than by a clock that was right all the time. Which of two clocks was wrong cannot be
//! known: one that was behind is treated as the present one, and what it wrote is past by then.
//!
//! When documents came and were seen last stays as it was noted: they are as new as can be, until
//! the time comes that the clock was ahead of.

use std::ops::Bound;
use std::time::Duration;

use crate::base::clock::Timestamp;
use crate::store::{Batch, Error, META, Update as _, View as _};

use super::rows::{Address, Host, QueuePlace, Rank};
use super::tables::{ADDRESSES, HOSTS, LATER, LISTS, REVISITS, ROBOTS};
use super::{Config, Frontier, RobotsCopy};

/// Row of `meta` that tells the latest moment at which a crawl wrote anything.
const LATEST: &str = "latest";

/// A clock that was set by less has silenced nobody.
const STEP_MIN: Duration = Duration::from_mins(1);

/// Rows that are looked at in one step.
const ROWS_MAX: usize = 1_000;

impl Config {
    /// The longest delay that can have set the next request to a host.
    fn delay_max(&self, host: &Host) -> Duration {
        let slow = self.delay.millis().saturating_mul(self.slowdown_max.max(1).into());
        Duration::from_millis(slow.max(host.crawl_delay_ms))
    }
}

impl Frontier {
    /// Notes that something is written that has this moment.
    pub(super) fn wrote_at(&mut self, now: Timestamp) {
        self.latest = self.latest.max(now);
    }

    /// Writes the latest moment at which this frontier wrote anything.
    pub(super) fn flush_latest(&self, batch: &mut Batch) -> Result<(), Error> {
        batch.put(META, LATEST, &self.latest.0.to_string().into_bytes())
    }

    /// Finds out whether the clock was ahead when the store was written, and moves what waits. A
    /// store that does not tell is looked at as well.
    pub(super) fn follow_clock(&self, batch: &mut Batch) -> Result<(), Error> {
        let now = self.opened;
        let latest = batch.bytes(META, LATEST)?.and_then(|row| {
            let millis: i64 = std::str::from_utf8(&row).ok()?.parse().ok()?;
            Some(Timestamp(millis))
        });
        if latest.is_some_and(|latest| latest <= now.after(STEP_MIN)) {
            return Ok(());
        }
        if let Some(latest) = latest {
            tracing::warn!(
                %now, %latest,
                "the clock was ahead when the store was written last: what waits, waits from now on"
            );
        }
        self.move_robots(batch, now)?;
        self.move_hosts(batch, now)?;
        self.move_later(batch, now)?;
        move_revisits(batch, now)?;
        move_lists(batch, now)
    }

    /// Copies of robots.txt: how old one is that seems to come from the future is not known.
    fn move_robots(&self, batch: &mut Batch, now: Timestamp) -> Result<(), Error> {
        let mut after = None;
        loop {
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let hosts = batch.range(ROBOTS, (from, Bound::Unbounded))?.take(ROWS_MAX);
            let hosts = hosts.map(|entry| Ok(entry?.key()?));
            let hosts = hosts.collect::<Result<Vec<u32>, Error>>()?;
            let Some(last) = hosts.last() else { return Ok(()) };
            after = Some(*last);
            for host in hosts {
                let Some(mut copy) = batch.get(ROBOTS, host)? else { continue };
                let wait = match copy.failures {
                    0 if copy.fetched > now => Duration::ZERO,
                    0 => continue,
                    _ => self.robots_retry_max(&copy),
                };
                let (fetched, expires) = (copy.fetched.min(now), copy.expires.min(now.after(wait)));
                if (fetched, expires) != (copy.fetched, copy.expires) {
                    (copy.fetched, copy.expires) = (fetched, expires);
                    batch.put(ROBOTS, host, &copy)?;
                }
            }
        }
    }

    /// The longest wait that can follow the last try of a robots.txt that was not had.
    fn robots_retry_max(&self, copy: &RobotsCopy) -> Duration {
        match copy.failures.checked_sub(1) {
            Some(before) => {
                let wait = self.doubled(self.config.robots_retry.millis(), before.into());
                self.scattered_max(wait)
            }
            None => Duration::ZERO,
        }
    }

    fn move_hosts(&self, batch: &mut Batch, now: Timestamp) -> Result<(), Error> {
        let mut after = None;
        loop {
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let mut hosts = Vec::new();
            for entry in batch.range(HOSTS, (from, Bound::Unbounded))?.take(ROWS_MAX) {
                let entry = entry?;
                hosts.push((entry.key()?, entry.row()?));
            }
            let Some((last, _)) = hosts.last() else { return Ok(()) };
            after = Some(*last);
            for (number, mut host) in hosts {
                let was = host.clone();
                let blocked = now.after(self.block_max(batch, number, &host)?);
                host.next_allowed = host.next_allowed.min(now.after(self.config.delay_max(&host)));
                host.blocked_until = host.blocked_until.min(blocked);
                host.quiet_since = host.quiet_since.min(blocked);
                if host != was {
                    batch.put(HOSTS, number, &host)?;
                }
            }
        }
    }

    /// The longest block that a host can be under.
    fn block_max(&self, batch: &Batch, number: u32, host: &Host) -> Result<Duration, Error> {
        if host.busy > 0 {
            // It may have named any time.
            return Ok(self.config.block_time_max.duration());
        }
        let failed = host.failures.checked_sub(self.config.host_failures_max).map(|beyond| {
            let wait = self.doubled(self.config.busy_delay.millis(), beyond.into());
            self.scattered_max(wait)
        });
        let copy = batch.get(ROBOTS, number)?;
        let robots = copy.map(|copy| self.robots_retry_max(&copy));
        Ok(failed.max(robots).unwrap_or_default())
    }

    /// Addresses that wait for another try.
    fn move_later(&self, batch: &mut Batch, now: Timestamp) -> Result<(), Error> {
        let first = QueuePlace { rank: Rank::Robots, depth: 0, sequence: 0 };
        let mut from = Bound::Included((now, (0, first)));
        loop {
            let mut rows = Vec::new();
            for entry in batch.range(LATER, (from, Bound::Unbounded))?.take(ROWS_MAX) {
                let entry = entry?;
                rows.push((entry.key()?, entry.row()?));
            }
            let Some((last, _)) = rows.last() else { return Ok(()) };
            from = Bound::Excluded(*last);
            for ((due, at), request) in rows {
                let url = &request.url;
                let Some(mut address) = batch.get(ADDRESSES, url)? else { continue };
                let tries = u32::from(address.failures.max(1) - 1);
                let wait = self.doubled(self.config.retry_delay.millis(), tries);
                let host = batch.get(HOSTS, at.0)?;
                let blocked = host.map_or(Timestamp(0), |host| host.blocked_until);
                let most = now.after(wait).max(blocked);
                if due > most {
                    address.not_before = most;
                    set_right(&mut address, now);
                    batch.put(ADDRESSES, url, &address)?;
                    batch.remove(LATER, (due, at))?;
                    batch.put(LATER, (most, at), &request)?;
                }
            }
        }
    }
}

/// Addresses that are to be visited again: each visit has set the moment of the next one.
fn move_revisits(batch: &mut Batch, now: Timestamp) -> Result<(), Error> {
    let mut after = (now, String::new());
    loop {
        let mut keys = Vec::new();
        let from = Bound::Excluded((after.0, after.1.as_str()));
        for entry in batch.range(REVISITS, (from, Bound::Unbounded))?.take(ROWS_MAX) {
            let entry = entry?;
            let (due, url) = entry.key()?;
            keys.push((due, url.to_owned()));
        }
        let Some(last) = keys.last() else { return Ok(()) };
        after.clone_from(last);
        for (due, url) in &keys {
            let due = *due;
            let Some(mut address) = batch.get(ADDRESSES, url)? else { continue };
            let wait = match address.visited {
                // Turned away before any visit.
                Timestamp(0) => Duration::from_millis(address.revisit.interval_ms),
                visited if visited > now => visited.until(due),
                _ => continue,
            };
            let most = due.min(now.after(wait));
            set_right(&mut address, now);
            address.revisit.due = most;
            batch.put(ADDRESSES, url, &address)?;
            batch.remove(REVISITS, (due, url))?;
            batch.put(REVISITS, (most, url), &())?;
        }
    }
}

/// What has been of an address has not been later than now.
fn set_right(address: &mut Address, now: Timestamp) {
    address.discovered = address.discovered.min(now);
    address.visited = address.visited.min(now);
    address.revisit.changed = address.revisit.changed.min(now);
}

/// Sitemaps and feeds.
fn move_lists(batch: &mut Batch, now: Timestamp) -> Result<(), Error> {
    let mut after = String::new();
    loop {
        let mut lists = Vec::new();
        let from = Bound::Excluded(after.as_str());
        for entry in batch.range(LISTS, (from, Bound::Unbounded))?.take(ROWS_MAX) {
            let entry = entry?;
            lists.push((entry.key()?.to_owned(), entry.row()?));
        }
        let Some((last, _)) = lists.last() else { return Ok(()) };
        after.clone_from(last);
        for (url, mut list) in lists {
            if list.read > now {
                list.read = now;
                batch.put(LISTS, url.as_str(), &list)?;
            }
        }
    }
}
