//! Settling a lease: what became of the visit, when the host may be contacted again, and when
//! the address.

use std::net::IpAddr;
use std::time::Duration;

use crate::base::clock::Timestamp;
use crate::store::{Error, Tables};
use crate::urls::PageUrl;

use super::known::note_lead;
use super::lists::named_sitemap;
use super::rows::{Address, Host, Purpose, Rank, Request, State, queue_key};
use super::{Fate, Frontier, Lease, Offer, Reason, RobotsAnswer, Settled, Told, events};

/// What became of a visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// The page is stored: number of the document.
    Stored(u64),
    /// The server says that it is as it was at the last visit.
    Unmodified,
    /// The page redirects.
    Redirect(PageUrl),
    /// There was an answer, and nothing to store.
    Refused(Reason),
    /// There was no answer, or one that may be better next time.
    Failed {
        /// What went wrong.
        reason: Reason,
        /// Trying again may help.
        again: bool,
    },
    /// The server is busy; it may say for how long.
    Busy(Option<Duration>),
    /// The answer to a request for a robots.txt.
    Robots(RobotsAnswer),
    /// The IP address of the host is known.
    LookedUp(IpAddr),
}

/// What is known of an answer, whatever became of the page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answered {
    /// Status; 0 without an answer.
    pub status: u16,
    /// Time that the request took.
    pub took: Duration,
    /// The IP address that the host shares a group with, as far as it is known.
    pub address: Option<IpAddr>,
    /// What was read is only the start of the page.
    pub cut: bool,
}

impl Settlement {
    /// The host gave no answer at all.
    fn is_silence(&self) -> bool {
        matches!(
            self,
            Self::Failed {
                reason: Reason::Dns
                    | Reason::Connect
                    | Reason::Proxy
                    | Reason::Tls
                    | Reason::Timeout,
                ..
            }
        )
    }

    /// The failure of a whole host looks like this; that of one address may.
    fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { again: true, .. })
            || matches!(
                self,
                Self::Robots(RobotsAnswer::Unreachable(Reason::HttpError | Reason::BadResponse))
            )
    }
}

/// A doubling back-off stops doubling here: 2^16 times any wait is beyond the longest block.
const DOUBLINGS_MAX: u32 = 16;

/// Waits that we choose ourselves differ by up to this part of them, so that hosts that failed
/// together are not asked together.
const SCATTER_PART: u64 = 10;

impl Frontier {
    /// Settles a lease. `finished` is the end of the answer, rounded up.
    pub fn settle(
        &mut self,
        tables: &mut Tables<'_>,
        lease: &Lease,
        (settlement, told): (Settlement, Told),
        finished: Timestamp,
    ) -> Result<Settled, Error> {
        let mut settled = Settled::default();
        if let Settlement::LookedUp(address) = settlement {
            let live = self.hosts.get(tables, lease.host)?;
            live.robots_in_flight = false;
            live.row.address = Some(address);
            live.dirty = true;
            self.reschedule(tables, lease.host)?;
            return Ok(settled);
        }
        self.groups.end(lease.groups, finished);
        self.last = self.last.max(finished);
        self.wrote_at(finished);
        self.observe(tables, lease, &told)?;
        self.release(tables, lease, &settlement, finished)?;
        // A host that cannot be found has no robots.txt either.
        let robots = match lease.purpose {
            Purpose::Robots { of, hops } => Some((of, hops)),
            Purpose::Lookup => Some((lease.host, 0)),
            Purpose::Page | Purpose::Sitemap => None,
        };
        if let Some((of, hops)) = robots {
            if let Some(place) = lease.place {
                self.unqueue(tables, lease.host, place)?;
            }
            let answer = match settlement {
                Settlement::Robots(answer) => answer,
                Settlement::Failed { reason, .. } | Settlement::Refused(reason) => {
                    RobotsAnswer::Unreachable(reason)
                }
                Settlement::Busy(_) => RobotsAnswer::Unreachable(Reason::Busy),
                Settlement::Redirect(target) => RobotsAnswer::Redirect(target),
                Settlement::Stored(_) | Settlement::Unmodified | Settlement::LookedUp(_) => {
                    RobotsAnswer::None
                }
            };
            self.settle_robots(tables, (of, hops), (answer, told.status), finished)?;
        } else {
            settled = self.settle_page(tables, lease, (settlement, told), finished)?;
        }
        self.reschedule(tables, lease.host)?;
        Ok(settled)
    }

    /// Takes back a lease whose request was not sent for want of something of our own: nothing is
    /// known of the host that was not known before.
    pub fn give_back(&mut self, tables: &mut Tables<'_>, lease: &Lease) -> Result<(), Error> {
        self.groups.end(lease.groups, Timestamp(0));
        let live = self.hosts.get(tables, lease.host)?;
        match lease.place {
            Some(place) => live.in_flight.retain(|other| *other != place),
            None => live.robots_in_flight = false,
        }
        self.reschedule(tables, lease.host)
    }

    /// Notes how a host answers: where, and how quickly.
    fn observe(
        &mut self,
        tables: &mut Tables<'_>,
        lease: &Lease,
        told: &Told,
    ) -> Result<(), Error> {
        let live = self.hosts.get(tables, lease.host)?;
        live.row.address = told.address.or(live.row.address);
        if lease.purpose != Purpose::Lookup {
            let took = u64::try_from(told.took.as_millis()).unwrap_or(u64::MAX);
            live.row.response_ms = took.max(live.row.response_ms.midpoint(took));
        }
        live.dirty = true;
        Ok(())
    }

    /// Frees the connection and sets the pace of the host.
    fn release(
        &mut self,
        tables: &mut Tables<'_>,
        lease: &Lease,
        settlement: &Settlement,
        finished: Timestamp,
    ) -> Result<(), Error> {
        let host = self.hosts.get(tables, lease.host)?.row.clone();
        let mut busy = host.busy;
        if host.quiet_since.until(finished) >= self.forgiven() {
            busy = 0;
        }
        let failures = if settlement.is_failure() { host.failures.saturating_add(1) } else { 0 };
        let block = match settlement {
            Settlement::Busy(asked) => {
                Some(self.busy_wait(*asked, (lease.host, &host), busy, finished))
            }
            _ if failures > 0 => {
                failures.checked_sub(self.config.host_failures_max).map(|beyond| {
                    let wait = self.doubled(self.config.busy_delay.millis(), u32::from(beyond));
                    self.scattered(wait, (lease.host, finished))
                })
            }
            _ => None,
        };
        let delay = self.config.delay(&host);
        let live = self.hosts.get(tables, lease.host)?;
        match lease.place {
            Some(place) => live.in_flight.retain(|other| *other != place),
            None => live.robots_in_flight = false,
        }
        let row = &mut live.row;
        let before = (row.trouble, row.blocked_until);
        if !delay.is_zero() && lease.purpose != Purpose::Lookup {
            row.next_allowed = row.next_allowed.max(finished.after(delay));
        }
        if settlement.is_silence() {
            row.failed += 1;
        } else {
            row.answered += 1;
        }
        row.breaker_open = failures > 0 && failures >= self.config.host_failures_max;
        (row.failures, row.busy) = (failures, busy);
        if let Some(block) = block {
            row.blocked_until = row.blocked_until.max(finished.after(block));
            row.trouble = Some(match settlement {
                Settlement::Failed { reason, .. }
                | Settlement::Robots(RobotsAnswer::Unreachable(reason)) => *reason,
                _ => Reason::Busy,
            });
            if let Settlement::Busy(_) = settlement {
                row.busy = busy.saturating_add(1);
                row.quiet_since = row.blocked_until;
            }
            live.hold = true;
        } else if row.trouble != Some(Reason::RobotsUnreachable) && row.failures == 0 {
            row.trouble = None;
        }
        live.dirty = true;
        events::host(&live.row, before);
        Ok(())
    }

    fn settle_page(
        &mut self,
        tables: &mut Tables<'_>,
        lease: &Lease,
        (settlement, told): (Settlement, Told),
        finished: Timestamp,
    ) -> Result<Settled, Error> {
        let place = lease.place.expect("a page has a place in the queue");
        self.unqueue(tables, lease.host, place)?;
        let stored = Address::read(&tables.addresses, lease.url.as_str())?;
        let missing =
            crate::store::BadRow { kind: "address", detail: "a queue names one without row" };
        let mut address = stored.ok_or(missing)?;
        address.visited = finished;
        address.status = told.status;
        if let Some(beyond) = told.links_beyond {
            self.count_beyond(&mut address, beyond);
        }
        let was = address.state.clone();
        let settlement = named_sitemap(tables, lease, settlement)?;
        let is_kept =
            matches!(was, State::Stored(_)) && !matches!(settlement, Settlement::Stored(_));
        if !is_kept {
            // What is stored was cut or not, whatever a further visit was answered.
            address.cut = told.cut;
        }
        let target = match &settlement {
            Settlement::Redirect(target) => Some(target.clone()),
            _ => None,
        };
        let mut settled = Settled::default();
        let host = &self.hosts.get(tables, lease.host)?.row;
        let (blocked_until, failures) = (host.blocked_until, host.failures);
        if let Some(wait) = self.another_try(&mut address, &settlement, failures) {
            address.not_before = finished.after(wait).max(blocked_until);
            address.place.sequence = tables.next_number("next_request")?;
            self.postpone(tables, lease, &address)?;
        } else {
            let news = (settlement, told);
            settled = self.note_visit(tables, (lease, &was), &mut address, news)?;
            if settled.left.is_some() {
                self.note_left(tables)?;
            }
        }
        self.recount(Some(&was), &address.state);
        events::refused(&lease.url, &address.state);
        tables.addresses.insert(lease.url.as_str(), address.encode().as_slice())?;
        match (&was, &address.state) {
            (State::Stored(_), State::Stored(_)) if settled.fate != Some(Fate::Changed) => {}
            (State::Stored(_), State::Stored(_)) => {
                self.release_copies(tables, lease.url.as_str())?;
            }
            (_, State::Stored(_)) => note_lead(tables, &address)?,
            (_, State::Queued) => {}
            _ => self.release_copies(tables, lease.url.as_str())?,
        }
        if let Some(target) = target {
            if lease.purpose == Purpose::Sitemap {
                self.sitemap_moved(tables, (&lease.url, &target), address.hops, finished)?;
                return Ok(settled);
            }
            let offer = Offer {
                url: &target,
                depth: address.place.depth,
                rank: Rank::Redirect,
                hops: address.hops.saturating_add(1),
                from: Some(&lease.url),
                nofollow: false,
            };
            self.offer(tables, &offer, finished)?;
        }
        if matches!(address.state, State::Refused(Reason::NotASitemap | Reason::NoSitemap)) {
            self.offer_as_page(tables, &lease.url, finished)?;
        }
        Ok(settled)
    }

    /// Returns the wait before another try, if there is to be one.
    ///
    /// A busy host and one that is down are no fault of the address: such tries do not count as its
    /// own.
    fn another_try(
        &self,
        address: &mut Address,
        settlement: &Settlement,
        host_failures: u16,
    ) -> Option<Duration> {
        match settlement {
            Settlement::Failed { reason, again: true } => {
                address.trouble = Some(*reason);
                if settlement.is_silence() && self.is_down(host_failures) {
                    return Some(Duration::ZERO);
                }
                address.failures = address.failures.saturating_add(1);
                let tries = u32::from(address.failures) - 1;
                (address.failures <= self.config.retries_max)
                    .then(|| self.doubled(self.config.retry_delay.millis(), tries))
            }
            Settlement::Busy(_) => {
                address.trouble = Some(Reason::Busy);
                address.busy = address.busy.saturating_add(1);
                (address.busy <= self.config.busy_retries_max).then_some(Duration::ZERO)
            }
            _ => None,
        }
    }

    /// Lets an address wait outside the queue, so that others of its host go before it.
    fn postpone(
        &mut self,
        tables: &mut Tables<'_>,
        lease: &Lease,
        address: &Address,
    ) -> Result<(), Error> {
        let mut key = address.not_before.0.max(0).to_be_bytes().to_vec();
        key.extend_from_slice(&queue_key(lease.host, address.place));
        let request = Request { purpose: lease.purpose, url: lease.url.as_str().to_owned() };
        tables.later.insert(key.as_slice(), request.encode().as_slice())?;
        self.queued += 1;
        Ok(())
    }

    /// Returns for how long a busy host is left alone: as long as it asks, and no less than its
    /// delay, doubled with each such answer up to the wait for one that does not ask, lest one that
    /// asks for no time is asked again and again.
    fn busy_wait(
        &self,
        asked: Option<Duration>,
        (number, host): (u32, &Host),
        before: u16,
        now: Timestamp,
    ) -> Duration {
        let Some(asked) = asked else {
            let wait = self.doubled(self.config.busy_delay.millis(), u32::from(before));
            return self.scattered(wait, (number, now));
        };
        let delay = self.config.delay(host);
        let own = self.config.busy_delay.duration().max(delay);
        let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let least = self.doubled(delay, u32::from(before)).min(own);
        asked.max(least).min(self.config.block_time_max.duration())
    }

    /// Tells whether a host is down as a whole, by its failures in a row. One that stays so until
    /// it is asked but once in the longest block counts for its addresses again, or those that
    /// alone are left and never answer would wait for ever.
    fn is_down(&self, failures: u16) -> bool {
        let Some(beyond) = failures.checked_sub(self.config.host_failures_max) else {
            return false;
        };
        let wait = self.doubled(self.config.busy_delay.millis(), u32::from(beyond));
        beyond > 0 && wait < self.config.block_time_max.duration()
    }

    fn forgiven(&self) -> Duration {
        self.config.busy_forgiven.duration()
    }

    /// Returns `millis` doubled `times` times, at most the longest block.
    pub(super) fn doubled(&self, millis: u64, times: u32) -> Duration {
        let wait = millis.saturating_mul(1 << times.min(DOUBLINGS_MAX));
        Duration::from_millis(wait.min(self.config.block_time_max.millis()))
    }

    /// Returns a wait that is up to a tenth shorter or longer, by chance that host and time decide.
    pub(super) fn scattered(&self, wait: Duration, (host, now): (u32, Timestamp)) -> Duration {
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let span = millis / SCATTER_PART;
        let chance = xxhash_rust::xxh3::xxh3_64_with_seed(&now.0.to_be_bytes(), host.into());
        let millis = (millis - span).saturating_add(chance % (2 * span + 1));
        Duration::from_millis(millis.min(self.config.block_time_max.millis()))
    }

    /// Returns the longest wait that [`Frontier::scattered`] can make of one.
    pub(super) fn scattered_max(&self, wait: Duration) -> Duration {
        let most = wait.saturating_add(wait / SCATTER_PART as u32);
        most.min(self.config.block_time_max.duration())
    }
}
