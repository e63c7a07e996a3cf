//! Leasing: the next URL whose host may be contacted now.

use crate::base::clock::Timestamp;
use crate::store::{Batch, Error, Update as _, View as _};
use crate::urls::{HostKey, PageUrl};

use super::again::plan;
use super::groups::Keys;
use super::known::KnownCopy;
use super::rows::{Purpose, QueuePlace, Rank, Request, State};
use super::tables::{ADDRESSES, LATER, QUEUE, SCHEDULE};
use super::url_pattern::{self, Brake};
use super::{Fate, Frontier, Reason, RobotsStanding, Validators, events};

/// The right to send one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Number of the host that will be contacted.
    pub host: u32,
    /// Place in the queue of that host; none for its own robots.txt.
    pub place: Option<QueuePlace>,
    /// What the request is for.
    pub purpose: Purpose,
    /// The URL.
    pub url: PageUrl,
    /// Redirects that led to the URL.
    pub hops: u8,
    /// By what the server may say that the page is as at the last visit; empty on the first one.
    pub validators: Validators,
    /// The request must not be sent before the next commit, or a crash could make us forget that
    /// the host was contacted, or what it asked for.
    pub after_commit: bool,
    /// Groups of the host that it counts in.
    pub(super) groups: Keys,
}

impl Lease {
    /// A lease that no frontier gave.
    pub(crate) fn of(url: PageUrl, purpose: Purpose) -> Self {
        let (host, place, hops, groups) = (0, None, 0, Keys::default());
        let validators = Validators::default();
        Self { host, place, purpose, url, hops, validators, after_commit: false, groups }
    }
}

/// A URL in the queue of a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting<'a> {
    pub host: u32,
    pub place: QueuePlace,
    pub url: &'a PageUrl,
}

/// What the head of a host's queue comes to.
enum QueueHead {
    Lease(Lease),
    /// Nothing to visit here at the moment.
    Idle,
    /// The first URL is refused and gone; look again.
    Again,
}

impl Frontier {
    /// Returns the next request that may be sent at `now`, if there is one.
    pub fn lease(&mut self, batch: &mut Batch, now: Timestamp) -> Result<Option<Lease>, Error> {
        self.wrote_at(now);
        self.wake(batch, now)?;
        self.wake_due(batch)?;
        while let Some(host) = self.candidate(batch, now)? {
            if let Some(lease) = self.look_up(batch, host)? {
                return Ok(Some(lease));
            }
            let groups = self.groups.of(&self.hosts.get(batch, host)?.row);
            if !self.groups.admit(host, groups, now) {
                self.hosts.schedule(batch, host, None)?;
                continue;
            }
            let head = loop {
                match self.head(batch, host, now)? {
                    QueueHead::Again => {}
                    QueueHead::Idle => break None,
                    QueueHead::Lease(lease) => break Some(lease),
                }
            };
            if let Some(lease) = head {
                let lease = Lease { groups, ..lease };
                self.take(batch, &lease, now)?;
                return Ok(Some(lease));
            }
            self.hosts.schedule(batch, host, None)?;
        }
        Ok(None)
    }

    /// Returns a host that is due at `now`: the first of a group that has room again, or else the
    /// first of the schedule.
    fn candidate(&mut self, batch: &mut Batch, now: Timestamp) -> Result<Option<u32>, Error> {
        while let Some(host) = self.groups.next_ready(now) {
            match self.next_request(batch, host)? {
                Some(due) if due <= now => return Ok(Some(host)),
                due => self.hosts.schedule(batch, host, due)?,
            }
        }
        Ok(first_host(batch)?.filter(|(due, _)| *due <= now).map(|(_, host)| host))
    }

    /// Returns a lease for looking up the IP address of a host, if its group is not known.
    fn look_up(&mut self, batch: &mut Batch, host: u32) -> Result<Option<Lease>, Error> {
        let live = self.hosts.get(batch, host)?;
        let refused = live.row.trouble == Some(Reason::AddressRefused);
        if live.row.address.is_some() || refused || !self.groups.needs_address() {
            return Ok(None);
        }
        let url = HostKey::from_stored(&live.row.key).robots_url();
        // Nothing else is sent to the host meanwhile.
        live.robots_in_flight = true;
        self.reschedule(batch, host)?;
        let (place, purpose, groups) = (None, Purpose::Lookup, [None; 2]);
        let (validators, after_commit) = (Validators::default(), false);
        Ok(Some(Lease { host, place, purpose, url, hops: 0, validators, after_commit, groups }))
    }

    /// Puts requests that waited long enough into the queues of their hosts.
    fn wake(&mut self, batch: &mut Batch, now: Timestamp) -> Result<(), Error> {
        loop {
            let Some(first) = batch.first(LATER)? else { return Ok(()) };
            let (due, (host, place)) = first.key()?;
            if due > now {
                return Ok(());
            }
            let request = first.row()?;
            drop(first);
            batch.remove(LATER, (due, (host, place)))?;
            self.queued -= 1;
            if let Some(mut address) = batch.get(ADDRESSES, &request.url)? {
                address.not_before = Timestamp(0);
                batch.put(ADDRESSES, &request.url, &address)?;
            }
            self.push(batch, host, place, &request)?;
        }
    }

    /// Looks at the first request of a host that is not in flight.
    fn head(&mut self, batch: &mut Batch, host: u32, now: Timestamp) -> Result<QueueHead, Error> {
        let Some((place, request)) = self.first_request(batch, host)? else {
            return Ok(QueueHead::Idle);
        };
        let live = self.hosts.get(batch, host)?;
        let hold = live.hold || !live.row.contacted;
        let lease = |url, place, purpose, hops| {
            let validators = Validators::default();
            let (after_commit, groups) = (hold, [None; 2]);
            QueueHead::Lease(Lease {
                host,
                place,
                purpose,
                url,
                hops,
                validators,
                after_commit,
                groups,
            })
        };
        let elsewhere = live.row.robots_elsewhere;
        let key = HostKey::from_stored(&live.row.key);
        if let Purpose::Robots { .. } = request.purpose {
            return Ok(lease(stored_url(&request.url)?, Some(place), request.purpose, 0));
        }
        if elsewhere {
            return Ok(QueueHead::Idle);
        }
        let url = stored_url(&request.url)?;
        if request.purpose == Purpose::Page
            && let Some(reason) = self.keeps_out(&url, place)
        {
            self.keep_out(batch, Waiting { host, place, url: &url }, reason)?;
            return Ok(QueueHead::Again);
        }
        let waiting = Waiting { host, place, url: &url };
        match self.standing(batch, host, url.path_and_query(), now)? {
            RobotsStanding::Unknown => {
                let live = self.hosts.get(batch, host)?;
                if live.robots_in_flight || !live.in_flight.is_empty() {
                    // Pages in flight keep the host busy; their end looks here again.
                    return Ok(QueueHead::Idle);
                }
                Ok(lease(key.robots_url(), None, Purpose::Robots { of: host, hops: 0 }, 0))
            }
            RobotsStanding::Disallowed => {
                self.drop_refused(batch, waiting, Reason::RobotsDisallowed, now)?;
                Ok(QueueHead::Again)
            }
            RobotsStanding::Refused => {
                self.drop_refused(batch, waiting, Reason::AddressRefused, now)?;
                Ok(QueueHead::Again)
            }
            RobotsStanding::Allowed => {
                let address = batch.get(ADDRESSES, url.as_str())?;
                // What is stored is visited again for what it says now.
                let is_first =
                    address.as_ref().is_some_and(|address| address.state == State::Queued);
                let is_page = request.purpose == Purpose::Page;
                if is_first && is_page && self.is_held_back(batch, waiting)? {
                    return Ok(QueueHead::Again);
                }
                let hops = address.as_ref().map_or(0, |address| address.hops);
                let mut head = lease(url, Some(place), request.purpose, hops);
                if let (QueueHead::Lease(lease), Some(address)) = (&mut head, &address) {
                    lease.validators = self.validators(address, now);
                }
                Ok(head)
            }
        }
    }

    /// Takes the first URL of a queue out if it is a known page by a rule or by a feed, or if
    /// its kind has given nothing new for long.
    fn is_held_back(&mut self, batch: &mut Batch, waiting: Waiting<'_>) -> Result<bool, Error> {
        let (url, rank) = (waiting.url, waiting.place.rank);
        if let Some(pair) = self.known_page(batch, url)? {
            self.link_unfetched(batch, waiting, pair)?;
            return Ok(true);
        }
        // Who names a seed wants that page.
        if rank != Rank::Seed {
            match self.known_copy(batch, url)? {
                KnownCopy::Of(feed, of) => {
                    self.link_known(batch, waiting, feed, of)?;
                    return Ok(true);
                }
                // Once it waits until all else of its host is done: the page may be found.
                KnownCopy::Perhaps if rank < Rank::Slow => {
                    self.hold_back(batch, waiting, Brake::Slow)?;
                    return Ok(true);
                }
                KnownCopy::Perhaps | KnownCopy::No => {}
            }
        }
        match self.brake(batch, url, rank)? {
            Brake::Go => return Ok(false),
            Brake::Explore => {
                url_pattern::explore(batch, url)?;
                return Ok(false);
            }
            brake => self.hold_back(batch, waiting, brake)?,
        }
        Ok(true)
    }

    fn first_request(
        &mut self,
        batch: &Batch,
        host: u32,
    ) -> Result<Option<(QueuePlace, Request)>, Error> {
        let in_flight = &self.hosts.get(batch, host)?.in_flight;
        for entry in batch.under(QUEUE, host)? {
            let entry = entry?;
            let (_, place) = entry.key()?;
            if !in_flight.contains(&place) {
                return Ok(Some((place, entry.row()?)));
            }
        }
        Ok(None)
    }

    /// Marks a request as in flight and puts its host back in the schedule, if that may be sent
    /// another one at the same time.
    pub(super) fn take(
        &mut self,
        batch: &mut Batch,
        lease: &Lease,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.groups.begin(lease.groups, now);
        let live = self.hosts.get(batch, lease.host)?;
        let next = now.after(self.config.delay(&live.row));
        match lease.place {
            Some(place) => live.in_flight.push(place),
            None => live.robots_in_flight = true,
        }
        live.dirty |= !live.row.contacted;
        live.hold |= !live.row.contacted;
        live.row.contacted = true;
        live.row.next_allowed = live.row.next_allowed.max(next);
        self.reschedule(batch, lease.host)
    }

    /// Puts a host in the schedule at the moment of its next request, or takes it out if it has
    /// nothing to do or enough in flight, or waits for its group.
    pub(super) fn reschedule(&mut self, batch: &mut Batch, host: u32) -> Result<(), Error> {
        let due = if self.groups.is_waiting(host) { None } else { self.next_request(batch, host)? };
        self.hosts.schedule(batch, host, due)
    }

    /// Returns when a host may get its next request, its groups aside; none if it has nothing to
    /// do or enough in flight.
    fn next_request(&mut self, batch: &Batch, host: u32) -> Result<Option<Timestamp>, Error> {
        let live = self.hosts.get(batch, host)?;
        // One request finds out whether a host is back.
        let connections =
            if live.row.breaker_open { 1 } else { self.config.connections_per_host.max(1) };
        let in_flight = live.in_flight.len();
        let idle = live.row.queued <= in_flight as u64;
        if idle || in_flight >= connections || live.robots_in_flight {
            return Ok(None);
        }
        if live.row.robots_elsewhere {
            let head = self.first_request(batch, host)?;
            if head.is_none_or(|(place, _)| place.rank != Rank::Robots) {
                return Ok(None);
            }
        }
        let row = &self.hosts.get(batch, host)?.row;
        let (contacted, due) = (row.contacted, row.next_allowed.max(row.blocked_until));
        if !contacted {
            // Somebody else may have, whose rows are not here.
            let taken = self.taken.map(|taken| taken.after(self.config.delay(row)));
            return Ok(Some(taken.map_or(due, |taken| due.max(taken))));
        }
        // A request before the last stop may not have been recorded.
        Ok(Some(due.max(self.hidden_until.after(self.config.delay(row)))))
    }

    fn drop_refused(
        &mut self,
        batch: &mut Batch,
        waiting: Waiting<'_>,
        reason: Reason,
        now: Timestamp,
    ) -> Result<(), Error> {
        let url = waiting.url;
        self.unqueue(batch, waiting.host, waiting.place)?;
        if let Some(mut address) = batch.get(ADDRESSES, url.as_str())? {
            if matches!(address.state, State::Stored(_)) {
                // What was read while it was allowed stays.
                address.trouble = Some(reason);
            } else {
                let state = State::Refused(reason);
                self.recount(Some(&address.state), &state);
                address.state = state;
                events::refused(url, &address.state);
            }
            let wait = self.next_wait(batch, url.as_str(), &mut address, Fate::Failed)?;
            plan(batch, url.as_str(), &mut address, now.after(wait))?;
            batch.put(ADDRESSES, url.as_str(), &address)?;
            if !matches!(address.state, State::Stored(_)) {
                self.release_copies(batch, url.as_str())?;
            }
        }
        Ok(())
    }

    /// Takes a request out of the queue of its host.
    pub(super) fn unqueue(
        &mut self,
        batch: &mut Batch,
        host: u32,
        place: QueuePlace,
    ) -> Result<(), Error> {
        if let Some(request) = batch.take(QUEUE, (host, place))? {
            let live = self.hosts.get(batch, host)?;
            live.row.queued -= 1;
            let bytes = live.row.queued_bytes;
            live.row.queued_bytes = bytes.map(|bytes| bytes.saturating_sub(request.size()));
            live.dirty = true;
            self.queued -= 1;
        }
        Ok(())
    }
}

pub(super) fn first_host(batch: &Batch) -> Result<Option<(Timestamp, u32)>, Error> {
    let first = batch.first(SCHEDULE)?;
    Ok(first.map(|entry| entry.key()).transpose()?)
}

/// Reads a URL that was stored in normal form.
fn stored_url(text: &str) -> Result<PageUrl, Error> {
    let bad = crate::store::BadRow { kind: "request", detail: "its URL cannot be parsed" };
    Ok(PageUrl::parse_stored(text).ok_or(bad)?)
}
