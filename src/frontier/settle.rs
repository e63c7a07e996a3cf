//! Settling a lease: what became of the visit, when the host may be contacted again, and when
//! the address.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::store::{Error, Tables};
use crate::urls::PageUrl;

use super::lists::named_sitemap;
use super::rows::{Address, Purpose, Rank, Request, State, queue_key};
use super::{Frontier, Lease, Offer, Reason, RobotsAnswer};

/// What became of a visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// The page is stored: number of the document.
    Stored(u64),
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
}

impl Settlement {
    /// The host gave no answer at all.
    fn is_silence(&self) -> bool {
        matches!(
            self,
            Self::Failed {
                reason: Reason::Dns | Reason::Connect | Reason::Tls | Reason::Timeout,
                ..
            }
        )
    }
}

/// A doubling back-off stops doubling here: 2^16 times any wait is beyond the longest block.
const DOUBLINGS_MAX: u32 = 16;

impl Frontier {
    /// Settles a lease. `finished` is the end of the answer, rounded up; `status` is 0 without one.
    pub fn settle(
        &mut self,
        tables: &mut Tables<'_>,
        lease: &Lease,
        (settlement, status): (Settlement, u16),
        finished: Timestamp,
    ) -> Result<(), Error> {
        self.release(tables, lease, &settlement, finished)?;
        if let Purpose::Robots { of, hops } = lease.purpose {
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
                Settlement::Stored(_) => RobotsAnswer::None,
            };
            self.settle_robots(tables, (of, hops), (answer, status), finished)?;
        } else {
            self.settle_page(tables, lease, (settlement, status), finished)?;
        }
        self.reschedule(tables, lease.host)
    }

    /// Frees the connection and sets the pace of the host.
    fn release(
        &mut self,
        tables: &mut Tables<'_>,
        lease: &Lease,
        settlement: &Settlement,
        finished: Timestamp,
    ) -> Result<(), Error> {
        let row = &self.hosts.get(tables, lease.host)?.row;
        let (crawl_delay, busy, failures) = (row.crawl_delay_ms, row.busy, row.failures);
        let delay = self.delay(crawl_delay);
        let block = match settlement {
            Settlement::Busy(asked) => Some(self.busy_wait(*asked, busy)),
            silence if silence.is_silence() => {
                let beyond = (failures + 1).checked_sub(self.config.host_failures_max);
                beyond.map(|n| self.doubled(self.config.busy_delay_ms, u32::from(n)))
            }
            _ => None,
        };
        let live = self.hosts.get(tables, lease.host)?;
        match lease.place {
            Some(place) => live.in_flight.retain(|other| *other != place),
            None => live.robots_in_flight = false,
        }
        let row = &mut live.row;
        if !delay.is_zero() {
            row.next_allowed = row.next_allowed.max(finished.after(delay));
        }
        if settlement.is_silence() {
            row.failures = row.failures.saturating_add(1);
            row.failed += 1;
        } else {
            row.failures = 0;
            row.answered += 1;
        }
        row.busy = match settlement {
            Settlement::Busy(_) => row.busy.saturating_add(1),
            _ => 0,
        };
        if let Some(block) = block {
            row.blocked_until = row.blocked_until.max(finished.after(block));
            row.trouble = Some(match settlement {
                Settlement::Failed { reason, .. } => *reason,
                _ => Reason::Busy,
            });
            live.hold = true;
        } else if row.trouble != Some(Reason::RobotsUnreachable) && row.failures == 0 {
            row.trouble = None;
        }
        live.dirty = true;
        Ok(())
    }

    fn settle_page(
        &mut self,
        tables: &mut Tables<'_>,
        lease: &Lease,
        (settlement, status): (Settlement, u16),
        finished: Timestamp,
    ) -> Result<(), Error> {
        let place = lease.place.expect("a page has a place in the queue");
        self.unqueue(tables, lease.host, place)?;
        let stored = Address::read(&tables.addresses, lease.url.as_str())?;
        let missing =
            crate::store::BadRow { kind: "address", detail: "a queue names one without row" };
        let mut address = stored.ok_or(missing)?;
        address.visited = finished;
        address.status = status;
        let was = address.state.clone();
        let settlement = named_sitemap(tables, lease, settlement)?;
        let target = match &settlement {
            Settlement::Redirect(target) => Some(target.clone()),
            _ => None,
        };
        if let Some(wait) = self.apply(&mut address, settlement) {
            address.not_before = finished.after(wait);
            address.place.sequence = tables.next_number("next_request")?;
            self.postpone(tables, lease, &address)?;
        }
        self.recount(Some(&was), &address.state);
        tables.addresses.insert(lease.url.as_str(), address.encode().as_slice())?;
        if let Some(target) = target {
            if lease.purpose == Purpose::Sitemap {
                return self.sitemap_moved(tables, (&lease.url, &target), address.hops, finished);
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
        Ok(())
    }

    /// Sets the state of an address. Returns the wait before another try, if there is to be one.
    fn apply(&self, address: &mut Address, settlement: Settlement) -> Option<Duration> {
        address.state = match settlement {
            Settlement::Stored(document) => State::Stored(document),
            Settlement::Redirect(target) => State::Redirect(target.as_str().to_owned()),
            Settlement::Refused(reason) | Settlement::Failed { reason, again: false } => {
                State::Refused(reason)
            }
            Settlement::Failed { reason, again: true } => {
                address.failures = address.failures.saturating_add(1);
                address.trouble = Some(reason);
                if address.failures <= self.config.retries_max {
                    let tries = u32::from(address.failures) - 1;
                    return Some(self.doubled(self.config.retry_delay_ms, tries));
                }
                State::Refused(reason)
            }
            Settlement::Busy(asked) => {
                address.failures = address.failures.saturating_add(1);
                address.trouble = Some(Reason::Busy);
                if address.failures <= self.config.busy_retries_max {
                    return Some(self.busy_wait(asked, u16::from(address.failures) - 1));
                }
                State::Refused(Reason::Busy)
            }
            Settlement::Robots(_) => State::Refused(Reason::NotAPage),
        };
        None
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

    fn busy_wait(&self, asked: Option<Duration>, before: u16) -> Duration {
        let longest = Duration::from_millis(self.config.block_ms_max);
        let own = self.doubled(self.config.busy_delay_ms, u32::from(before));
        asked.map_or(own, |asked| asked.min(longest))
    }

    /// Returns `millis` doubled `times` times, at most the longest block.
    pub(super) fn doubled(&self, millis: u64, times: u32) -> Duration {
        let wait = millis.saturating_mul(1 << times.min(DOUBLINGS_MAX));
        Duration::from_millis(wait.min(self.config.block_ms_max))
    }
}
