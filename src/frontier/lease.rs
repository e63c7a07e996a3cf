//! Leasing: the next address whose host may be contacted now.

use redb::ReadableTable as _;

use crate::clock::Timestamp;
use crate::store::{Error, Tables};
use crate::urls::{HostKey, PageUrl};

use super::rows::{
    Address, Place, Purpose, Rank, Request, State, queue_key, split_queue_key, split_time_key,
};
use super::{Frontier, Reason, Standing};

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
    /// The request must not be sent before the next commit, or a crash could make us forget that
    /// the host was contacted, or what it asked for.
    pub after_commit: bool,
}

/// What the head of a host's queue comes to.
enum Head {
    Lease(Lease),
    /// Nothing to visit here at the moment.
    Idle,
    /// The first address is disallowed and gone; look again.
    Again,
}

impl Frontier {
    /// Returns the next request that may be sent at `now`, if there is one.
    pub fn lease(
        &mut self,
        tables: &mut Tables<'_>,
        now: Timestamp,
    ) -> Result<Option<Lease>, Error> {
        self.wake(tables, now)?;
        loop {
            let Some((due, host)) = first_host(tables)? else { return Ok(None) };
            if due > now {
                return Ok(None);
            }
            match self.head(tables, host, now)? {
                Head::Lease(lease) => {
                    self.take(tables, &lease, now)?;
                    return Ok(Some(lease));
                }
                Head::Idle => self.hosts.schedule(tables, host, None)?,
                Head::Again => {}
            }
        }
    }

    /// Returns when the next request may be sent; none if nothing waits.
    pub fn next_due(&self, tables: &Tables<'_>) -> Result<Option<Timestamp>, Error> {
        let later = match tables.later.first()? {
            Some((key, _)) => Some(split_time_key(&key.value()[..12])?.0),
            None => None,
        };
        let host = first_host(tables)?.map(|(due, _)| due);
        Ok(later.into_iter().chain(host).min())
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
            Head::Lease(Lease { host, place, purpose, url, hops, after_commit: hold })
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
                self.drop_disallowed(tables, (host, place), &url)?;
                Ok(Head::Again)
            }
            Standing::Allowed => {
                let address = Address::read(&tables.addresses, url.as_str())?;
                let hops = address.map_or(0, |address| address.hops);
                Ok(lease(url, Some(place), request.purpose, hops))
            }
        }
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
        let crawl_delay = self.hosts.get(tables, lease.host)?.row.crawl_delay_ms;
        let next = now.after(self.delay(crawl_delay));
        let live = self.hosts.get(tables, lease.host)?;
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
    /// nothing to do or enough in flight.
    pub(super) fn reschedule(&mut self, tables: &mut Tables<'_>, host: u32) -> Result<(), Error> {
        let connections = self.config.connections_per_host.max(1);
        let opened = self.opened;
        let live = self.hosts.get(tables, host)?;
        let in_flight = live.in_flight.len();
        let idle = live.row.queued <= in_flight as u64;
        if idle || in_flight >= connections || live.robots_in_flight {
            return self.hosts.schedule(tables, host, None);
        }
        let (contacted, crawl_delay) = (live.row.contacted, live.row.crawl_delay_ms);
        let mut due = live.row.next_allowed.max(live.row.blocked_until);
        if live.row.robots_elsewhere {
            let head = self.first_request(tables, host)?;
            if head.is_none_or(|(place, _)| place.rank != Rank::Robots) {
                return self.hosts.schedule(tables, host, None);
            }
        }
        if contacted {
            // A request before the last stop may not have been recorded.
            due = due.max(opened.after(self.delay(crawl_delay)));
        }
        self.hosts.schedule(tables, host, Some(due))
    }

    fn drop_disallowed(
        &mut self,
        tables: &mut Tables<'_>,
        (host, place): (u32, Place),
        url: &PageUrl,
    ) -> Result<(), Error> {
        self.unqueue(tables, host, place)?;
        if let Some(mut address) = Address::read(&tables.addresses, url.as_str())? {
            let state = State::Refused(Reason::RobotsDisallowed);
            self.recount(Some(&address.state), &state);
            address.state = state;
            tables.addresses.insert(url.as_str(), address.encode().as_slice())?;
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
        if tables.queue.remove(queue_key(host, place).as_slice())?.is_some() {
            let live = self.hosts.get(tables, host)?;
            live.row.queued -= 1;
            live.dirty = true;
            self.queued -= 1;
        }
        Ok(())
    }
}

fn first_host(tables: &Tables<'_>) -> Result<Option<(Timestamp, u32)>, Error> {
    let first = tables.schedule.first()?;
    Ok(first.map(|(key, _)| split_time_key(key.value())).transpose()?)
}

/// Reads an address that was stored in normal form.
fn stored_url(text: &str) -> Result<PageUrl, Error> {
    let bad = crate::store::BadRow { kind: "request", detail: "its address cannot be parsed" };
    Ok(PageUrl::parse_stored(text).ok_or(bad)?)
}
