//! Groups of hosts: those on one IP address, and those of one registrable domain. However many
//! hosts a server has, it is asked no faster than its group allows.
//!
//! A host that is due while its group is not free waits here, in order of arrival, and not in the
//! schedule. All of this is in memory: after a restart no group is free before its gap has passed
//! since the last run ended, or, after a crash, since the store was opened.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use crate::base::clock::Timestamp;
use crate::base::units::Time;
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

/// Returns the hash of the IP address among the groups of a host.
pub(super) fn address_of(keys: Keys) -> Option<u64> {
    keys.into_iter().flatten().find(|key| key.0 == Kind::Address).map(|key| key.1)
}

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
    /// Any group may have been contacted until this moment.
    last: Option<Timestamp>,
    known: HashMap<GroupKey, Group>,
    /// Groups with waiting hosts and room for a request, by the moment at which it may be sent.
    ready: BTreeSet<(Timestamp, GroupKey)>,
    waiting: HashSet<u32>,
}

impl Groups {
    /// Makes groups that are free, or will be when their gap has passed since `last`.
    pub(super) fn new(config: &Config, last: Option<Timestamp>) -> Self {
        let limit = |gap: Time, connections: usize| Limit {
            gap: gap.min(config.delay).duration(),
            connections: match connections {
                0 => usize::MAX,
                some => some.max(config.connections_per_host),
            },
        };
        Self {
            address: limit(config.address_delay, config.connections_per_address),
            domain: limit(config.domain_delay, config.connections_per_domain),
            is_on: config.delay > Time::ZERO,
            last,
            known: HashMap::new(),
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
        let domain =
            HostKey::from_stored(&host.key).registrable_domain().filter(|_| self.domain.limits());
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
        if self.known.len() > IDLE_MAX {
            self.known.retain(|_, group| {
                let is_free = group.in_flight == 0 && group.next_allowed <= finished;
                !is_free || !group.waiting.is_empty()
            });
        }
    }

    /// Notes that an IP address may not be contacted before a moment.
    pub(super) fn hold(&mut self, keys: Keys, until: Timestamp) {
        for key in keys.into_iter().flatten().filter(|key| key.0 == Kind::Address) {
            let group = self.group(key);
            let before = group.next_allowed;
            group.next_allowed = before.max(until);
            self.ready.remove(&(before, key));
            self.sort_in(key);
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
        let next_allowed = self.last.map_or(Timestamp(0), |last| last.after(gap));
        self.known.entry(key).or_insert_with(|| Group {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(last: Option<Timestamp>) -> (Groups, Keys) {
        let config = Config {
            address_delay: Time::from_millis(50),
            connections_per_address: 2,
            ..Config::default()
        };
        let groups = Groups::new(&config, last);
        let keys = groups.of(&Host::new("http://127.0.0.1:8080"));
        assert!(keys[0].is_some() && keys[1].is_none(), "an IP address has no domain");
        (groups, keys)
    }

    #[test]
    fn hosts_wait_in_order_and_nothing_is_ready_before_its_time() {
        let (mut groups, keys) = groups(None);
        let at = |millis: i64| Timestamp(1_000 + millis);
        assert!(groups.admit(1, keys, at(0)));
        groups.begin(keys, at(0));
        for host in [2, 3, 4] {
            assert!(!groups.admit(host, keys, at(0)) && groups.is_waiting(host));
        }
        assert_eq!((groups.next_due(), groups.next_ready(at(49))), (Some(at(50)), None));
        assert_eq!(groups.next_ready(at(50)), Some(2));
        assert!(groups.admit(2, keys, at(50)) && !groups.is_waiting(2));
        groups.begin(keys, at(50));
        // Two are under way: time alone frees nothing.
        assert_eq!((groups.next_due(), groups.next_ready(at(9_999))), (None, None));
        groups.end(keys, at(80));
        assert_eq!(groups.next_due(), Some(at(130)));
        // One that has nothing to do after all leaves its place to the next.
        assert_eq!(groups.next_ready(at(130)), Some(3));
        assert_eq!(groups.next_ready(at(130)), Some(4));
        assert_eq!((groups.next_due(), groups.next_ready(at(130))), (None, None));
    }

    #[test]
    fn a_group_rests_after_what_came_before_the_restart() {
        let (mut groups, keys) = groups(Some(Timestamp(1_000)));
        assert!(!groups.admit(1, keys, Timestamp(1_049)));
        assert_eq!(groups.next_ready(Timestamp(1_050)), Some(1));
    }

    #[test]
    fn names_are_of_the_groups_of_their_address_and_domain() {
        let (groups, keys) = groups(None);
        let of = |key: &str, address: Option<[u8; 4]>| {
            let address = address.map(Into::into);
            groups.of(&Host { address, ..Host::new(key) })
        };
        let a = of("https://a.example.co.uk", Some([127, 0, 0, 1]));
        let b = of("http://b.example.co.uk:81", Some([127, 0, 0, 2]));
        assert_eq!((a[0], a[1]), (keys[0], b[1]));
        assert_ne!(a[0], b[0]);
        assert_ne!(a[1], of("https://other.co.uk", None)[1]);
        assert_eq!(of("https://localhost", None), [None; 2]);
        let free = Groups::new(&Config { delay: Time::from_millis(0), ..Config::default() }, None);
        assert_eq!(free.of(&Host::new("http://127.0.0.1")), [None; 2], "hosts of your own");
    }
}
