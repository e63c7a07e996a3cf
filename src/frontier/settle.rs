//! Settling a lease: what became of the visit, when the host may be contacted again, and when
//! the URL.

use std::net::IpAddr;
use std::time::Duration;

use crate::base::clock::Timestamp;
use crate::store::{BadRow, Batch, Error, Update as _, View as _};
use crate::urls::PageUrl;

use super::again::plan;
use super::known::note_lead;
use super::lists::named_sitemap;
use super::rows::{Address, Host, Purpose, Rank, Request, State};
use super::tables::{ADDRESSES, LATER};
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

/// A visit that is over.
#[derive(Debug)]
pub struct Visited<'a> {
    /// Its lease.
    pub lease: &'a Lease,
    /// The row of its URL; none for a request that is of no URL of its own.
    pub address: Option<Address>,
    /// What the answer tells beside its page.
    pub told: Told,
}

impl<'a> Visited<'a> {
    /// Reads the row of the URL that was visited.
    pub fn read(batch: &Batch, lease: &'a Lease, told: Told) -> Result<Self, Error> {
        let address = match lease.purpose {
            Purpose::Page | Purpose::Sitemap => batch.get(ADDRESSES, lease.url.as_str())?,
            Purpose::Robots { .. } | Purpose::Lookup => None,
        };
        Ok(Self { lease, address, told })
    }
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

    /// The failure of a whole host looks like this; that of one URL may.
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
    /// Settles a lease. Nothing that came of the page may have changed the row of its URL since it
    /// was read, but for the document that has the page.
    pub fn settle(
        &mut self,
        batch: &mut Batch,
        visited: Visited<'_>,
        settlement: Settlement,
    ) -> Result<Settled, Error> {
        let Visited { lease, address, told } = visited;
        let mut settled = Settled::default();
        if let Settlement::LookedUp(address) = settlement {
            let live = self.hosts.get(batch, lease.host)?;
            live.robots_in_flight = false;
            live.row.address = Some(address);
            live.dirty = true;
            self.reschedule(batch, lease.host)?;
            return Ok(settled);
        }
        let finished = told.finished;
        self.groups.end(lease.groups, finished);
        self.last = self.last.max(finished);
        self.wrote_at(finished);
        self.observe(batch, lease, &told)?;
        self.release(batch, lease, &settlement, finished)?;
        if matches!(lease.purpose, Purpose::Page | Purpose::Sitemap) {
            settled = self.settle_page(batch, Visited { lease, address, told }, settlement)?;
        } else {
            if let Some(place) = lease.place {
                self.unqueue(batch, lease.host, place)?;
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
            self.settle_robots(batch, lease, answer, &told)?;
        }
        self.reschedule(batch, lease.host)?;
        Ok(settled)
    }

    /// Takes back a lease whose request was not sent for want of something of our own: nothing is
    /// known of the host that was not known before.
    pub fn give_back(&mut self, batch: &mut Batch, lease: &Lease) -> Result<(), Error> {
        self.groups.end(lease.groups, Timestamp(0));
        let live = self.hosts.get(batch, lease.host)?;
        match lease.place {
            Some(place) => live.in_flight.retain(|other| *other != place),
            None => live.robots_in_flight = false,
        }
        self.reschedule(batch, lease.host)
    }

    /// Notes how a host answers: where, and how quickly.
    fn observe(&mut self, batch: &mut Batch, lease: &Lease, told: &Told) -> Result<(), Error> {
        let live = self.hosts.get(batch, lease.host)?;
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
        batch: &mut Batch,
        lease: &Lease,
        settlement: &Settlement,
        finished: Timestamp,
    ) -> Result<(), Error> {
        let host = self.hosts.get(batch, lease.host)?.row.clone();
        let mut busy = host.busy;
        if host.quiet_since.until(finished) >= self.forgiven() {
            busy = 0;
        }
        let failures = if settlement.is_failure() { host.failures.saturating_add(1) } else { 0 };
        let block = match settlement {
            Settlement::Busy(None) => {
                let wait = self.doubled(self.config.busy_delay.millis(), u32::from(busy));
                Some(self.scattered(wait, lease.host, finished))
            }
            Settlement::Busy(Some(asked)) => Some(self.busy_wait(*asked, &host, busy)),
            _ if failures > 0 => {
                failures.checked_sub(self.config.host_failures_max).map(|beyond| {
                    let wait = self.doubled(self.config.busy_delay.millis(), u32::from(beyond));
                    self.scattered(wait, lease.host, finished)
                })
            }
            _ => None,
        };
        let delay = self.config.delay(&host);
        let live = self.hosts.get(batch, lease.host)?;
        match lease.place {
            Some(place) => live.in_flight.retain(|other| *other != place),
            None => live.robots_in_flight = false,
        }
        let row = &mut live.row;
        let (trouble, blocked_until) = (row.trouble, row.blocked_until);
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
        events::host(&live.row, trouble, blocked_until);
        Ok(())
    }

    fn settle_page(
        &mut self,
        batch: &mut Batch,
        visited: Visited<'_>,
        settlement: Settlement,
    ) -> Result<Settled, Error> {
        let Visited { lease, address, told } = visited;
        let missing = BadRow { kind: "address", detail: "a queue names one without row" };
        let mut address = address.ok_or(missing)?;
        let place = lease.place.expect("a page has a place in the queue");
        self.unqueue(batch, lease.host, place)?;
        let url = lease.url.as_str();
        debug_assert!(
            batch.get(ADDRESSES, url)?.is_some_and(|stored| is_as_read(stored, &address)),
            "the row of {url} was changed while its page was stored"
        );
        let finished = told.finished;
        address.visited = finished;
        address.status = told.status;
        if let Some(beyond) = told.links_beyond {
            self.count_beyond(&mut address, beyond);
        }
        let (was, before) = (address.state.clone(), address.document());
        let settlement = named_sitemap(batch, lease, settlement)?;
        if !was.is_stored() || matches!(settlement, Settlement::Stored(_)) {
            // What is stored was cut or not, whatever a further visit was answered.
            address.cut = told.cut;
        }
        let target = match &settlement {
            Settlement::Redirect(target) => Some(target.clone()),
            _ => None,
        };
        let mut settled = Settled::default();
        let host = &self.hosts.get(batch, lease.host)?.row;
        let (blocked_until, failures) = (host.blocked_until, host.failures);
        if let Some(wait) = self.another_try(&mut address, &settlement, failures) {
            address.not_before = finished.after(wait).max(blocked_until);
            address.place.sequence = batch.next_number("next_request")?;
            self.postpone(batch, lease, &address)?;
        } else {
            let again = address.revisit.waits;
            let fate = self.note_visit(&mut address, settlement, told);
            let wait = self.next_wait(batch, url, &mut address, fate)?;
            plan(batch, url, &mut address, finished.after(wait))?;
            settled.fate = again.then_some(fate);
            settled.left = before.filter(|_| !address.state.is_stored());
            if settled.left.is_some() {
                self.note_left(batch)?;
            }
        }
        self.recount(Some(&was), &address.state);
        events::refused(&lease.url, &address.state);
        batch.put(ADDRESSES, url, &address)?;
        match (&was, &address.state) {
            (State::Stored(_), State::Stored(_)) if settled.fate != Some(Fate::Changed) => {}
            (State::Stored(_), State::Stored(_)) => self.release_copies(batch, url)?,
            (_, State::Stored(_)) => note_lead(batch, &address.referrer)?,
            (_, State::Queued) => {}
            _ => self.release_copies(batch, url)?,
        }
        if let Some(target) = target {
            let (depth, hops) = (address.place.depth, address.hops.saturating_add(1));
            let (rank, from) = (Rank::Redirect, Some(&lease.url));
            let offer = Offer { url: &target, depth, rank, hops, from, nofollow: false };
            if lease.purpose == Purpose::Sitemap {
                self.sitemap_moved(batch, &lease.url, &offer, finished)?;
                return Ok(settled);
            }
            self.offer(batch, &offer, finished)?;
        }
        if matches!(address.state, State::Refused(Reason::NotASitemap | Reason::NoSitemap)) {
            self.offer_as_page(batch, &lease.url, finished)?;
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

    /// Lets a URL wait outside the queue, so that others of its host go before it.
    fn postpone(
        &mut self,
        batch: &mut Batch,
        lease: &Lease,
        address: &Address,
    ) -> Result<(), Error> {
        let key = (address.not_before, (lease.host, address.place));
        let request = Request { purpose: lease.purpose, url: lease.url.as_str().to_owned() };
        batch.put(LATER, key, &request)?;
        self.queued += 1;
        Ok(())
    }

    /// Returns for how long a busy host is left alone that asks for a time: as long as it asks, and
    /// no less than its delay, doubled with each such answer up to the wait for one that does not
    /// ask, lest one that asks for no time is asked again and again.
    fn busy_wait(&self, asked: Duration, host: &Host, before: u16) -> Duration {
        let delay = self.config.delay(host);
        let own = self.config.busy_delay.duration().max(delay);
        let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let least = self.doubled(delay, u32::from(before)).min(own);
        asked.max(least).min(self.config.block_time_max.duration())
    }

    /// Tells whether a host is down as a whole, by its failures in a row. One that stays so until
    /// it is asked but once in the longest block counts for its URLs again, or those that
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
    pub(super) fn scattered(&self, wait: Duration, host: u32, now: Timestamp) -> Duration {
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

/// The stored row of a URL is as it was read, but for the document that has its page.
fn is_as_read(mut stored: Address, read: &Address) -> bool {
    if stored.state.is_stored() && read.state.is_stored() {
        stored.state = read.state.clone();
    }
    stored == *read
}
