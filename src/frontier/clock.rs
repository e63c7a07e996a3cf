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

use redb::ReadableTable as _;

use crate::base::clock::Timestamp;
use crate::store::{Error, Tables};

use super::again::{revisit_key, split_revisit_key};
use super::lists::List;
use super::rows::{Address, Host, Request, split_queue_key, split_time_key, time_key};
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
    pub(super) fn flush_latest(&self, tables: &mut Tables<'_>) -> Result<(), Error> {
        tables.meta.insert(LATEST, self.latest.0.to_string().as_bytes())?;
        Ok(())
    }

    /// Finds out whether the clock was ahead when the store was written, and moves what waits. A
    /// store that does not tell is looked at as well.
    pub(super) fn follow_clock(&self, tables: &mut Tables<'_>) -> Result<(), Error> {
        let now = self.opened;
        let latest = tables.meta.get(LATEST)?.and_then(|row| {
            let millis: i64 = std::str::from_utf8(row.value()).ok()?.parse().ok()?;
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
        self.move_robots(tables, now)?;
        self.move_hosts(tables, now)?;
        self.move_later(tables, now)?;
        move_revisits(tables, now)?;
        move_lists(tables, now)
    }

    /// Copies of robots.txt: how old one is that seems to come from the future is not known.
    fn move_robots(&self, tables: &mut Tables<'_>, now: Timestamp) -> Result<(), Error> {
        let mut after = None;
        loop {
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let hosts = tables.robots.range((from, Bound::Unbounded))?.take(ROWS_MAX);
            let hosts = hosts.map(|row| Ok(row?.0.value())).collect::<Result<Vec<u32>, Error>>()?;
            let Some(last) = hosts.last() else { return Ok(()) };
            after = Some(*last);
            for host in hosts {
                let Some(mut copy) = RobotsCopy::read(&tables.robots, host)? else { continue };
                let wait = match copy.failures {
                    0 if copy.fetched > now => Duration::ZERO,
                    0 => continue,
                    _ => self.robots_retry_max(&copy),
                };
                let (fetched, expires) = (copy.fetched.min(now), copy.expires.min(now.after(wait)));
                if (fetched, expires) != (copy.fetched, copy.expires) {
                    (copy.fetched, copy.expires) = (fetched, expires);
                    tables.robots.insert(host, copy.encode().as_slice())?;
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

    fn move_hosts(&self, tables: &mut Tables<'_>, now: Timestamp) -> Result<(), Error> {
        let mut after = None;
        loop {
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let mut hosts = Vec::new();
            for row in tables.hosts.range((from, Bound::Unbounded))?.take(ROWS_MAX) {
                let (number, row) = row?;
                hosts.push((number.value(), Host::decode(row.value())?));
            }
            let Some((last, _)) = hosts.last() else { return Ok(()) };
            after = Some(*last);
            for (number, mut host) in hosts {
                let was = host.clone();
                let blocked = now.after(self.block_max(tables, number, &host)?);
                host.next_allowed = host.next_allowed.min(now.after(self.config.delay_max(&host)));
                host.blocked_until = host.blocked_until.min(blocked);
                host.quiet_since = host.quiet_since.min(blocked);
                if host != was {
                    tables.hosts.insert(number, host.encode().as_slice())?;
                }
            }
        }
    }

    /// The longest block that a host can be under.
    fn block_max(&self, tables: &Tables<'_>, number: u32, host: &Host) -> Result<Duration, Error> {
        if host.busy > 0 {
            // It may have named any time.
            return Ok(self.config.block_time_max.duration());
        }
        let failed = host.failures.checked_sub(self.config.host_failures_max).map(|beyond| {
            let wait = self.doubled(self.config.busy_delay.millis(), beyond.into());
            self.scattered_max(wait)
        });
        let copy = RobotsCopy::read(&tables.robots, number)?;
        let robots = copy.map(|copy| self.robots_retry_max(&copy));
        Ok(failed.max(robots).unwrap_or_default())
    }

    /// Addresses that wait for another try.
    fn move_later(&self, tables: &mut Tables<'_>, now: Timestamp) -> Result<(), Error> {
        let mut from = time_key(now, 0).to_vec();
        loop {
            let mut rows = Vec::new();
            for row in tables.later.range(from.as_slice()..)?.take(ROWS_MAX) {
                let (key, row) = row?;
                rows.push((key.value().to_vec(), row.value().to_vec()));
            }
            let Some((last, _)) = rows.last() else { return Ok(()) };
            from.clone_from(last);
            from.push(0);
            for (key, row) in rows {
                let url = Request::decode(&row)?.url;
                let Some(mut address) = Address::read(&tables.addresses, &url)? else { continue };
                let (due, _) = split_time_key(&key[..12])?;
                let (host, _) = split_queue_key(&key[8..])?;
                let tries = u32::from(address.failures.max(1) - 1);
                let wait = self.doubled(self.config.retry_delay.millis(), tries);
                let host = tables.hosts.get(host)?.map(|row| Host::decode(row.value()));
                let blocked = host.transpose()?.map_or(Timestamp(0), |host| host.blocked_until);
                let most = now.after(wait).max(blocked);
                if due > most {
                    address.not_before = most;
                    set_right(&mut address, now);
                    tables.addresses.insert(url.as_str(), address.encode().as_slice())?;
                    tables.later.remove(key.as_slice())?;
                    let moved = [&most.0.to_be_bytes(), &key[8..]].concat();
                    tables.later.insert(moved.as_slice(), row.as_slice())?;
                }
            }
        }
    }
}

/// Addresses that are to be visited again: each visit has set the moment of the next one.
fn move_revisits(tables: &mut Tables<'_>, now: Timestamp) -> Result<(), Error> {
    let mut from = now.0.max(0).to_be_bytes().to_vec();
    loop {
        let keys = tables.revisits.range(from.as_slice()..)?.take(ROWS_MAX);
        let keys = keys.map(|row| Ok(row?.0.value().to_vec()));
        let keys = keys.collect::<Result<Vec<Vec<u8>>, Error>>()?;
        let Some(last) = keys.last() else { return Ok(()) };
        from.clone_from(last);
        from.push(0);
        for key in keys {
            let (due, url) = split_revisit_key(&key)?;
            let Some(mut address) = Address::read(&tables.addresses, url)? else { continue };
            let wait = match address.visited {
                // Turned away before any visit.
                Timestamp(0) => Duration::from_millis(address.revisit.interval_ms),
                visited if visited > now => visited.until(due),
                _ => continue,
            };
            let most = due.min(now.after(wait));
            set_right(&mut address, now);
            address.revisit.due = most;
            tables.addresses.insert(url, address.encode().as_slice())?;
            tables.revisits.remove(key.as_slice())?;
            tables.revisits.insert(revisit_key(most, url).as_slice(), ())?;
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
fn move_lists(tables: &mut Tables<'_>, now: Timestamp) -> Result<(), Error> {
    let mut after = String::new();
    loop {
        let mut lists = Vec::new();
        let from = Bound::Excluded(after.as_str());
        for row in tables.lists.range::<&str>((from, Bound::Unbounded))?.take(ROWS_MAX) {
            let (url, row) = row?;
            lists.push((url.value().to_owned(), List::decode(row.value())?));
        }
        let Some((last, _)) = lists.last() else { return Ok(()) };
        after.clone_from(last);
        for (url, mut list) in lists {
            if list.read > now {
                list.read = now;
                tables.lists.insert(url.as_str(), list.encode().as_slice())?;
            }
        }
    }
}
