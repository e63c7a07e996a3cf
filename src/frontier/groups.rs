//! Groups of hosts: those on one IP address, and those of one registrable domain. However many
//! hosts a server has, it is asked no faster than its group allows.
//!
//! A host that is due while its group is not free waits here, in order of arrival, and not in the
//! schedule. All of this is in memory: after a restart no group is free before its gap has passed
//! since the store was opened, so that no request before the restart can be too close.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use crate::clock::Timestamp;
use crate::urls::HostKey;

use super::Config;
use super::rows::Host;

/// Groups remembered while nothing of them is under way; then the free ones are forgotten.
const IDLE_MAX: usize = 10_000;

/// What the members of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Address,
    Domain,
}

/// A group: what its members have in common, and a hash of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct GroupKey(Kind, u64);

/// The groups of a host.
pub(super) type Keys = [Option<GroupKey>; 2];

#[derive(Debug, Clone, Copy)]
struct Limit {
    gap: Duration,
    connections: usize,
}

#[derive(Debug)]
struct Group {
    in_flight: usize,
    next_allowed: Timestamp,
    waiting: VecDeque<u32>,
}

/// All groups that something is known of.
#[derive(Debug)]
pub(super) struct Groups {
    address: Limit,
    domain: Limit,
    is_on: bool,
    /// No group is free before this moment and its gap.
    opened: Option<Timestamp>,
    groups: HashMap<GroupKey, Group>,
    /// Groups with waiting hosts and room for a request, by the moment at which it may be sent.
    ready: BTreeSet<(Timestamp, GroupKey)>,
    waiting: HashSet<u32>,
}

impl Groups {
    /// Makes groups that are free, or will be when their gap has passed since `opened`.
    pub(super) fn new(config: &Config, opened: Option<Timestamp>) -> Self {
        let limit = |gap: u64, connections: usize| Limit {
            gap: Duration::from_millis(gap.min(config.delay_ms)),
            connections: match connections {
                0 => usize::MAX,
                some => some.max(config.connections_per_host),
            },
        };
        Self {
            address: limit(config.address_delay_ms, config.connections_per_address),
            domain: limit(config.domain_delay_ms, config.connections_per_domain),
            is_on: config.delay_ms > 0,
            opened,
            groups: HashMap::new(),
            ready: BTreeSet::new(),
            waiting: HashSet::new(),
        }
    }

    /// Tells whether the IP address of a host has to be known before it is contacted.
    pub(super) fn needs_address(&self) -> bool {
        self.is_on && self.address.limits()
    }

    /// Returns the groups of a host.
    pub(super) fn of(&self, host: &Host) -> Keys {
        if !self.is_on {
            return [None; 2];
        }
        let hash = |name: String| xxh3_64(name.as_bytes());
        let address = host.address.filter(|_| self.address.limits());
        let domain = HostKey::from_stored(&host.key).domain().filter(|_| self.domain.limits());
        [
            address.map(|ip| GroupKey(Kind::Address, hash(ip.to_string()))),
            domain.map(|name| GroupKey(Kind::Domain, hash(name))),
        ]
    }

    /// Tells whether all groups have room at `now`. If not, the host waits for the first that
    /// has none.
    pub(super) fn admit(&mut self, host: u32, keys: Keys, now: Timestamp) -> bool {
        for key in keys.into_iter().flatten() {
            let connections = self.limit(key).connections;
            let group = self.group(key);
            if group.in_flight >= connections || group.next_allowed > now {
                group.waiting.push_back(host);
                self.waiting.insert(host);
                self.sort_in(key);
                return false;
            }
        }
        true
    }

    /// Tells whether a host waits for a group.
    pub(super) fn is_waiting(&self, host: u32) -> bool {
        self.waiting.contains(&host)
    }

    /// Takes the first host of a group that has room at `now` out of its line.
    pub(super) fn next_ready(&mut self, now: Timestamp) -> Option<u32> {
        let (due, key) = *self.ready.first()?;
        if due > now {
            return None;
        }
        self.ready.remove(&(due, key));
        let host = self.group(key).waiting.pop_front();
        self.sort_in(key);
        let host = host?;
        self.waiting.remove(&host);
        Some(host)
    }

    /// Returns when the next waiting host may be contacted; none if none waits for time to pass.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.ready.first().map(|(due, _)| *due)
    }

    /// Notes that a request is under way.
    pub(super) fn begin(&mut self, keys: Keys, now: Timestamp) {
        for key in keys.into_iter().flatten() {
            self.change(key, now, 1);
        }
    }

    /// Notes that a request is over.
    pub(super) fn end(&mut self, keys: Keys, finished: Timestamp) {
        for key in keys.into_iter().flatten() {
            self.change(key, finished, -1);
        }
        if self.groups.len() > IDLE_MAX {
            self.groups.retain(|_, group| {
                let is_free = group.in_flight == 0 && group.next_allowed <= finished;
                !is_free || !group.waiting.is_empty()
            });
        }
    }

    fn change(&mut self, key: GroupKey, now: Timestamp, requests: isize) {
        let next = now.after(self.limit(key).gap);
        let group = self.group(key);
        let before = group.next_allowed;
        group.in_flight = group.in_flight.saturating_add_signed(requests);
        group.next_allowed = before.max(next);
        self.ready.remove(&(before, key));
        self.sort_in(key);
    }

    /// Puts a group among those that have room and hosts for it.
    fn sort_in(&mut self, key: GroupKey) {
        let connections = self.limit(key).connections;
        let group = self.group(key);
        if !group.waiting.is_empty() && group.in_flight < connections {
            let due = group.next_allowed;
            self.ready.insert((due, key));
        }
    }

    fn limit(&self, GroupKey(kind, _): GroupKey) -> Limit {
        match kind {
            Kind::Address => self.address,
            Kind::Domain => self.domain,
        }
    }

    fn group(&mut self, key: GroupKey) -> &mut Group {
        let gap = self.limit(key).gap;
        let next_allowed = self.opened.map_or(Timestamp(0), |opened| opened.after(gap));
        self.groups.entry(key).or_insert_with(|| Group {
            in_flight: 0,
            next_allowed,
            waiting: VecDeque::new(),
        })
    }
}

impl Limit {
    fn limits(self) -> bool {
        !self.gap.is_zero() || self.connections < usize::MAX
    }
}
