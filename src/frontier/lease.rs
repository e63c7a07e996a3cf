//! Leasing: the next address whose host may be contacted now.

use redb::ReadableTable as _;

use crate::base::clock::Timestamp;
use crate::store::{Error, Tables};
use crate::urls::{HostKey, PageUrl};

use super::family::{self, Brake};
use super::groups::Keys;
use super::known::Copy;
use super::rows::{
    Address, Place, Purpose, Rank, Request, State, queue_key, split_queue_key, split_time_key,
};
use super::{Fate, Frontier, Reason, Standing, Validators, events};

/// The right to send one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Number of the host that will be contacted.
    pub host: u32,
    /// Place in the queue of that host; none for its own robots.txt.
    pub place: Option<Place>,
    /// What the request is for.
    pub purpose: Purpose,
    /// The address.
    pub url: PageUrl,
    /// Redirects that led to the address.
    pub hops: u8,
    /// By what the server may say that the page is as at the last visit; empty on the first one.
    pub validators: Validators,
    /// The request must not be sent before the next commit, or a crash could make us forget that
    /// the host was contacted, or what it asked for.
    pub after_commit: bool,
    /// Groups of the host that it counts in.
    pub(super) groups: Keys,
}

#[cfg(test)]
impl Lease {
    /// A lease that no frontier gave.
    pub(crate) fn of(url: PageUrl, purpose: Purpose) -> Self {
        let (host, place, hops, groups) = (0, None, 0, Keys::default());
        let validators = Validators::default();
        Self { host, place, purpose, url, hops, validators, after_commit: false, groups }
    }
}

/// What the head of a host's queue comes to.
enum Head {
    Lease(Lease),
    /// Nothing to visit here at the moment.
    Idle,
    /// The first address is refused and gone; look again.
    Again,
}

impl Frontier {
    /// Returns the next request that may be sent at `now`, if there is one.
    pub fn lease(
        &mut self,
        tables: &mut Tables<'_>,
        now: Timestamp,
    ) -> Result<Option<Lease>, Error> {
        self.wrote_at(now);
        self.wake(tables, now)?;
        self.wake_due(tables)?;
        while let Some(host) = self.candidate(tables, now)? {
            if let Some(lease) = self.look_up(tables, host)? {
                return Ok(Some(lease));
            }
            let groups = self.groups.of(&self.hosts.get(tables, host)?.row);
            if !self.groups.admit(host, groups, now) {
                self.hosts.schedule(tables, host, None)?;
                continue;
            }
            let head = loop {
                match self.head(tables, host, now)? {
                    Head::Again => {}
                    Head::Idle => break None,
                    Head::Lease(lease) => break Some(lease),
                }
            };
            if let Some(lease) = head {
                let lease = Lease { groups, ..lease };
                self.take(tables, &lease, now)?;
                return Ok(Some(lease));
            }
            self.hosts.schedule(tables, host, None)?;
        }
        Ok(None)
    }

    /// Returns a host that is due at `now`: the first of a group that has room again, or else the
    /// first of the schedule.
    fn candidate(&mut self, tables: &mut Tables<'_>, now: Timestamp) -> Result<Option<u32>, Error> {
        while let Some(host) = self.groups.next_ready(now) {
            match self.next_request(tables, host)? {
                Some(due) if due <= now => return Ok(Some(host)),
                due => self.hosts.schedule(tables, host, due)?,
            }
        }
        Ok(first_host(tables)?.filter(|(due, _)| *due <= now).map(|(_, host)| host))
    }

    /// Returns a lease for looking up the IP address of a host, if its group is not known.
    fn look_up(&mut self, tables: &mut Tables<'_>, host: u32) -> Result<Option<Lease>, Error> {
        let live = self.hosts.get(tables, host)?;
        let refused = live.row.trouble == Some(Reason::AddressRefused);
        if live.row.address.is_some() || refused || !self.groups.needs_address() {
            return Ok(None);
        }
        let url = HostKey::from_stored(&live.row.key).robots_url();
        // Nothing else is sent to the host meanwhile.
        live.robots_in_flight = true;
        self.reschedule(tables, host)?;
        let (place, purpose, groups) = (None, Purpose::Lookup, [None; 2]);
        let (validators, after_commit) = (Validators::default(), false);
        Ok(Some(Lease { host, place, purpose, url, hops: 0, validators, after_commit, groups }))
    }

    /// Puts requests that waited long enough into the queues of their hosts.
    ///
    /// Key of `later`: due time (8 bytes), then the queue key (15 bytes), which starts with the
    /// host.
    fn wake(&mut self, tables: &mut Tables<'_>, now: Timestamp) -> Result<(), Error> {
        loop {
            let first = match tables.later.first()? {
                Some((key, value)) => (key.value().to_vec(), Request::decode(value.value())?),
                None => return Ok(()),
            };
            let (key, request) = first;
            if split_time_key(&key[..12])?.0 > now {
                return Ok(());
            }
            let (host, place) = split_queue_key(&key[8..])?;
            tables.later.remove(key.as_slice())?;
            self.queued -= 1;
            if let Some(mut address) = Address::read(&tables.addresses, &request.url)? {
                address.not_before = Timestamp(0);
                tables.addresses.insert(request.url.as_str(), address.encode().as_slice())?;
            }
            self.push(tables, host, place, &request)?;
        }
    }

    /// Looks at the first request of a host that is not in flight.
    fn head(&mut self, tables: &mut Tables<'_>, host: u32, now: Timestamp) -> Result<Head, Error> {
        let Some((place, request)) = self.first_request(tables, host)? else {
            return Ok(Head::Idle);
        };
        let live = self.hosts.get(tables, host)?;
        let hold = live.hold || !live.row.contacted;
        let lease = |url, place, purpose, hops| {
            let validators = Validators::default();
            let (after_commit, groups) = (hold, [None; 2]);
            Head::Lease(Lease { host, place, purpose, url, hops, validators, after_commit, groups })
        };
        let elsewhere = live.row.robots_elsewhere;
        let key = HostKey::from_stored(&live.row.key);
        if let Purpose::Robots { .. } = request.purpose {
            return Ok(lease(stored_url(&request.url)?, Some(place), request.purpose, 0));
        }
        if elsewhere {
            return Ok(Head::Idle);
        }
        let url = stored_url(&request.url)?;
        if request.purpose == Purpose::Page
            && let Some(reason) = self.keeps_out(&url, place)
        {
            self.keep_out(tables, (host, place), (&url, reason))?;
            return Ok(Head::Again);
        }
        match self.standing(tables, host, url.path_and_query(), now)? {
            Standing::Unknown => {
                let live = self.hosts.get(tables, host)?;
                if live.robots_in_flight || !live.in_flight.is_empty() {
                    // Pages in flight keep the host busy; their end looks here again.
                    return Ok(Head::Idle);
                }
                Ok(lease(key.robots_url(), None, Purpose::Robots { of: host, hops: 0 }, 0))
            }
            Standing::Disallowed => {
                self.drop_refused(tables, (host, place), &url, (Reason::RobotsDisallowed, now))?;
                Ok(Head::Again)
            }
            Standing::Refused => {
                self.drop_refused(tables, (host, place), &url, (Reason::AddressRefused, now))?;
                Ok(Head::Again)
            }
            Standing::Allowed => {
                let address = Address::read(&tables.addresses, url.as_str())?;
                // What is stored is visited again for what it says now.
                let is_first =
                    address.as_ref().is_some_and(|address| address.state == State::Queued);
                let is_page = request.purpose == Purpose::Page;
                if is_first && is_page && self.is_held_back(tables, (host, place), &url)? {
                    return Ok(Head::Again);
                }
                let hops = address.as_ref().map_or(0, |address| address.hops);
                let mut head = lease(url, Some(place), request.purpose, hops);
                if let (Head::Lease(lease), Some(address)) = (&mut head, &address) {
                    lease.validators = self.validators(address, now);
                }
                Ok(head)
            }
        }
    }

    /// Takes the first address of a queue out if it is a known page by a rule or by a feed, or if
    /// its kind has given nothing new for long.
    fn is_held_back(
        &mut self,
        tables: &mut Tables<'_>,
        (host, place): (u32, Place),
        url: &PageUrl,
    ) -> Result<bool, Error> {
        if let Some(pair) = self.known_page(tables, url)? {
            self.link_unfetched(tables, (host, place), url, pair)?;
            return Ok(true);
        }
        // Who names a seed wants that page.
        if place.rank != Rank::Seed {
            match self.known_copy(tables, url)? {
                Copy::Of(feed, of) => {
                    self.link_known(tables, (host, place), url, (feed, of))?;
                    return Ok(true);
                }
                // Once it waits until all else of its host is done: the page may be found.
                Copy::Perhaps if place.rank < Rank::Slow => {
                    self.hold_back(tables, (host, place), url, false)?;
                    return Ok(true);
                }
                Copy::Perhaps | Copy::No => {}
            }
        }
        match self.brake(tables, url, place.rank)? {
            Brake::Go => return Ok(false),
            Brake::Explore => {
                family::explore(tables, url)?;
                return Ok(false);
            }
            brake => self.hold_back(tables, (host, place), url, brake == Brake::Stop)?,
        }
        Ok(true)
    }

    fn first_request(
        &mut self,
        tables: &Tables<'_>,
        host: u32,
    ) -> Result<Option<(Place, Request)>, Error> {
        let in_flight = &self.hosts.get(tables, host)?.in_flight;
        let (first, last) = (host.to_be_bytes(), (host + 1).to_be_bytes());
        for row in tables.queue.range(first.as_slice()..last.as_slice())? {
            let (key, value) = row?;
            let (_, place) = split_queue_key(key.value())?;
            if !in_flight.contains(&place) {
                return Ok(Some((place, Request::decode(value.value())?)));
            }
        }
        Ok(None)
    }

    /// Marks a request as in flight and puts its host back in the schedule, if that may be sent
    /// another one at the same time.
    fn take(
        &mut self,
        tables: &mut Tables<'_>,
        lease: &Lease,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.groups.begin(lease.groups, now);
        let live = self.hosts.get(tables, lease.host)?;
        let next = now.after(self.config.delay(&live.row));
        match lease.place {
            Some(place) => live.in_flight.push(place),
            None => live.robots_in_flight = true,
        }
        live.dirty |= !live.row.contacted;
        live.hold |= !live.row.contacted;
        live.row.contacted = true;
        live.row.next_allowed = live.row.next_allowed.max(next);
        self.reschedule(tables, lease.host)
    }

    /// Puts a host in the schedule at the moment of its next request, or takes it out if it has
    /// nothing to do or enough in flight, or waits for its group.
    pub(super) fn reschedule(&mut self, tables: &mut Tables<'_>, host: u32) -> Result<(), Error> {
        let due =
            if self.groups.is_waiting(host) { None } else { self.next_request(tables, host)? };
        self.hosts.schedule(tables, host, due)
    }

    /// Returns when a host may get its next request, its groups aside; none if it has nothing to
    /// do or enough in flight.
    fn next_request(&mut self, tables: &Tables<'_>, host: u32) -> Result<Option<Timestamp>, Error> {
        let live = self.hosts.get(tables, host)?;
        // One request finds out whether a host is back.
        let connections =
            if live.row.breaker_open { 1 } else { self.config.connections_per_host.max(1) };
        let in_flight = live.in_flight.len();
        let idle = live.row.queued <= in_flight as u64;
        if idle || in_flight >= connections || live.robots_in_flight {
            return Ok(None);
        }
        if live.row.robots_elsewhere {
            let head = self.first_request(tables, host)?;
            if head.is_none_or(|(place, _)| place.rank != Rank::Robots) {
                return Ok(None);
            }
        }
        let row = &self.hosts.get(tables, host)?.row;
        let (contacted, due) = (row.contacted, row.next_allowed.max(row.blocked_until));
        if !contacted {
            return Ok(Some(due));
        }
        // A request before the last stop may not have been recorded.
        Ok(Some(due.max(self.hidden_until.after(self.config.delay(row)))))
    }

    fn drop_refused(
        &mut self,
        tables: &mut Tables<'_>,
        (host, place): (u32, Place),
        url: &PageUrl,
        (reason, now): (Reason, Timestamp),
    ) -> Result<(), Error> {
        self.unqueue(tables, host, place)?;
        if let Some(mut address) = Address::read(&tables.addresses, url.as_str())? {
            if matches!(address.state, State::Stored(_)) {
                // What was read while it was allowed stays.
                address.trouble = Some(reason);
            } else {
                let state = State::Refused(reason);
                self.recount(Some(&address.state), &state);
                address.state = state;
                events::refused(url, &address.state);
            }
            self.plan_next(tables, (url.as_str(), &mut address), Fate::Failed, now)?;
            tables.addresses.insert(url.as_str(), address.encode().as_slice())?;
            if !matches!(address.state, State::Stored(_)) {
                self.release_copies(tables, url.as_str())?;
            }
        }
        Ok(())
    }

    /// Takes a request out of the queue of its host.
    pub(super) fn unqueue(
        &mut self,
        tables: &mut Tables<'_>,
        host: u32,
        place: Place,
    ) -> Result<(), Error> {
        let was = tables.queue.remove(queue_key(host, place).as_slice())?;
        let was = was.map(|row| Request::decode(row.value())).transpose()?;
        if let Some(request) = was {
            let live = self.hosts.get(tables, host)?;
            live.row.queued -= 1;
            let bytes = live.row.queued_bytes;
            live.row.queued_bytes = bytes.map(|bytes| bytes.saturating_sub(request.size()));
            live.dirty = true;
            self.queued -= 1;
        }
        Ok(())
    }
}

pub(super) fn first_host(tables: &Tables<'_>) -> Result<Option<(Timestamp, u32)>, Error> {
    let first = tables.schedule.first()?;
    Ok(first.map(|(key, _)| split_time_key(key.value())).transpose()?)
}

/// Reads an address that was stored in normal form.
fn stored_url(text: &str) -> Result<PageUrl, Error> {
    let bad = crate::store::BadRow { kind: "request", detail: "its address cannot be parsed" };
    Ok(PageUrl::parse_stored(text).ok_or(bad)?)
}
