//! Which address may be visited now: offer, lease, settle.
//!
//! Every host has a queue on disk, ordered by rank, depth and arrival. A table orders the hosts by
//! the moment at which each may be contacted. An address stays in its queue until it is settled,
//! so that a crash leaves open leases simply due again; nothing is written to lease it.
//!
//! A visit is exactly one request. A redirect is settled by offering its target, so that every
//! hop passes scope, robots.txt, pace and the seen set like any other address.

mod hosts;
mod lease;
mod lists;
mod offer;
mod reason;
mod robots_copy;
mod rows;
mod seen;
mod settle;

use std::collections::BTreeMap;
use std::time::Duration;

use redb::{ReadableTable as _, ReadableTableMetadata as _};

use crate::clock::Timestamp;
use crate::discover;
use crate::store::{Error, Tables};
use crate::urls::{self, Scope};

pub use lease::Lease;
pub use lists::{List, Listed};
pub use offer::{Offer, Offered};
pub use reason::Reason;
pub use robots_copy::{RobotsAnswer, RobotsCopy, Standing};
pub use rows::{
    Address, Host, Place, Purpose, Rank, Request, State, split_queue_key, split_time_key,
};
pub use settle::Settlement;

use hosts::Hosts;
use seen::Seen;

/// Settings of the frontier. Durations are in milliseconds where their name says so.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// Least time between the end of an answer of a host and the next request to it.
    pub delay_ms: u64,
    /// Most requests to one host at a time.
    pub connections_per_host: usize,
    /// Most links between a seed and an address, inclusive; 65535 for no limit.
    pub depth_max: u16,
    /// Most addresses of one host that are let in, seeds and redirects not counted: where a trap
    /// without end ends. 0 for no limit.
    pub host_addresses_max: u64,
    /// Limits on the shape of addresses.
    pub shape: urls::Limits,
    /// Sitemaps and feeds.
    pub discover: discover::Config,
    /// Most redirects that may lead to an address.
    pub redirects_max: u8,
    /// Tries of an address after its first one failed.
    pub retries_max: u8,
    /// Wait before the first of these tries; doubles with each.
    pub retry_delay_ms: u64,
    /// Tries of an address whose server says that it is busy (429, 503).
    pub busy_retries_max: u8,
    /// Time for which a busy host that names none is left alone; doubles with each such answer.
    pub busy_delay_ms: u64,
    /// Longest time for which a host is left alone.
    pub block_ms_max: u64,
    /// Requests in a row without an answer after which a host is left alone.
    pub host_failures_max: u16,
    /// Time after which a copy of robots.txt is fetched anew. Source: RFC 9309, 2.4.
    pub robots_ttl_ms: u64,
    /// Wait before an unreachable robots.txt is tried again; doubles with each try.
    pub robots_retry_ms: u64,
    /// Product token that robots.txt files know us by.
    pub agent: String,
    /// Read robots.txt as Google's parser does where that differs from RFC 9309.
    pub google_extras: bool,
    /// Idle hosts kept in memory.
    pub hosts_in_memory_max: usize,
    /// Recently seen links kept in memory, 8 bytes each.
    pub seen_in_memory_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            delay_ms: 1_000,
            connections_per_host: 1,
            depth_max: u16::MAX,
            host_addresses_max: 1_000_000,
            shape: urls::Limits::default(),
            discover: discover::Config::default(),
            redirects_max: 10,
            retries_max: 3,
            retry_delay_ms: 30_000,
            busy_retries_max: 10,
            busy_delay_ms: 60_000,
            block_ms_max: 86_400_000,
            host_failures_max: 5,
            robots_ttl_ms: 86_400_000,
            robots_retry_ms: 300_000,
            agent: "uniqcrawl".to_owned(),
            google_extras: true,
            hosts_in_memory_max: 10_000,
            seen_in_memory_max: 1 << 20,
        }
    }
}

/// The frontier of one crawl. It lives on the thread that owns the write transaction.
#[derive(Debug)]
pub struct Frontier {
    config: Config,
    scope: Scope,
    hosts: Hosts,
    seen: Seen,
    /// Changes of counters since the last flush.
    tally: BTreeMap<String, i64>,
    /// No host that may have been contacted before is contacted again until its delay has passed
    /// since this moment, because a crash may have hidden the last request.
    opened: Timestamp,
    queued: u64,
}

impl Frontier {
    /// Takes up the frontier of a store, as a clean stop or a crash has left it.
    pub fn open(
        tables: &mut Tables<'_>,
        config: Config,
        scope: Scope,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let mut frontier = Self {
            hosts: Hosts::new(config.hosts_in_memory_max),
            seen: Seen::new(config.seen_in_memory_max),
            tally: BTreeMap::new(),
            opened: now,
            queued: tables.later.len()?,
            config,
            scope,
        };
        // Hosts that were in flight have no row in the schedule.
        let mut waiting = Vec::new();
        for row in tables.hosts.iter()? {
            let (number, row) = row?;
            let host = Host::decode(row.value())?;
            frontier.queued += host.queued;
            if host.queued > 0 {
                waiting.push(number.value());
            }
        }
        for number in waiting {
            frontier.reschedule(tables, number)?;
        }
        Ok(frontier)
    }

    /// Returns the number of addresses that wait for a visit, those in flight among them.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Writes what is still in memory. Call it before each commit.
    pub fn flush(&mut self, tables: &mut Tables<'_>) -> Result<(), Error> {
        self.hosts.flush(tables)?;
        for (name, change) in std::mem::take(&mut self.tally) {
            let now = tables.counters.get(name.as_str())?.map_or(0, |row| row.value());
            tables.counters.insert(name.as_str(), now.saturating_add_signed(change))?;
        }
        Ok(())
    }

    /// Returns the delay of a host: ours, or what its robots.txt asks for if that is longer.
    fn delay(&self, crawl_delay_ms: u64) -> Duration {
        Duration::from_millis(self.config.delay_ms.max(crawl_delay_ms))
    }

    /// Notes that the documents of some stored addresses are gone from the store.
    pub fn forget_expired(tables: &mut Tables<'_>, addresses: &[String]) -> Result<(), Error> {
        for url in addresses {
            let Some(mut address) = Address::read(&tables.addresses, url)? else { continue };
            let was = address.state.counter();
            address.state = State::Refused(Reason::Expired);
            tables.addresses.insert(url.as_str(), address.encode().as_slice())?;
            let left = tables.counters.get(was.as_str())?.map_or(0, |row| row.value());
            tables.counters.insert(was.as_str(), left.saturating_sub(1))?;
            tables.count(&address.state.counter(), 1)?;
        }
        Ok(())
    }

    /// Moves an address from one counter to another.
    fn recount(&mut self, from: Option<&State>, to: &State) {
        if let Some(from) = from {
            *self.tally.entry(from.counter()).or_default() -= 1;
        }
        *self.tally.entry(to.counter()).or_default() += 1;
    }
}

impl State {
    /// Returns the name of the counter of addresses in this state.
    #[must_use]
    pub fn counter(&self) -> String {
        match self {
            Self::Queued => "addresses.queued".to_owned(),
            Self::Stored(_) => "addresses.stored".to_owned(),
            Self::Redirect(_) => "addresses.redirect".to_owned(),
            Self::Refused(reason) => format!("addresses.refused.{reason}"),
        }
    }
}
