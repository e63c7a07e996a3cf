//! Which leases are handed out, and when there are none any more.

use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::corpus::boilerplate::is_probe;
use crate::frontier::{Lease, Purpose};
use crate::store::Batch;

use super::super::Error;
use super::super::crew::{Errand, Room, Way};
use super::super::no_pages::RunEnd;
use super::Committer;

impl Committer<'_> {
    /// Hands out leases while there is room for requests and anything is due.
    pub(super) fn lease(&mut self, batch: &mut Batch) -> Result<(), Error> {
        if self.context.stop.asked() > 0 {
            self.stopping.get_or_insert_with(Instant::now);
            return Ok(());
        }
        let now = self.context.clock.now();
        while self.has_room() && self.rests().is_none() {
            let place = self.room.as_ref().map(Room::take);
            if place.as_ref().is_some_and(Option::is_none) {
                break;
            }
            let Some(lease) = self.frontier.lease(batch, now)? else { break };
            tracing::trace!(url = %lease.url, "leased");
            if self.settings.boilerplate.learn_boilerplate {
                self.boilerplate.load(batch, lease.host)?;
            }
            self.in_flight += 1;
            self.pages_leased += u64::from(is_page(&lease));
            let is_held = lease.after_commit;
            let way = Way { home: self.home.clone(), _place: place.flatten() };
            let errand = Errand { lease, way };
            if is_held {
                self.held.push(errand);
            } else {
                self.send(errand);
            }
        }
        self.next_due = self.frontier.next_due(batch)?;
        self.worth_waiting = match self.next_due {
            Some(due) if self.in_flight == 0 && due > now => {
                self.frontier.next_worth_waiting(batch)?
            }
            due => due,
        };
        if let Some(rest) = self.rests() {
            for due in [&mut self.next_due, &mut self.worth_waiting] {
                *due = due.map(|due| due.max(now.after(rest)));
            }
        }
        self.context.live.in_flight.store(self.in_flight as u64, Ordering::Relaxed);
        Ok(())
    }

    /// One more request may be sent.
    pub(super) fn has_room(&self) -> bool {
        let limits = &self.settings.limits;
        let most = self.room.as_ref().map_or(usize::MAX, |room| room.each());
        self.in_flight < self.requests_max.min(most)
            && (limits.pages_max == 0 || self.pages_leased < limits.pages_max)
    }

    pub(super) fn send(&self, errand: Errand) {
        // There is room for every lease in flight; a closed channel means that the run is over.
        if self.errands.try_send(errand).is_err() {
            tracing::debug!("no visitor is left to take a lease");
        }
    }

    pub(super) fn is_over(&self) -> bool {
        if let Some(since) = self.stopping {
            let drain = self.settings.limits.drain_time_max.duration();
            return self.in_flight == self.held.len()
                || since.elapsed() >= drain
                || self.context.stop.asked() > 1;
        }
        if self.context.beyond.is_some() {
            return self.is_lost();
        }
        if self.in_flight > 0 {
            return false;
        }
        let now = self.context.clock.now();
        let longest = self.settings.limits.idle_wait_max.duration();
        self.is_full()
            || self.is_starved()
            || self.worth_waiting.is_none_or(|due| now.until(due) > longest)
    }

    /// How the run ends.
    pub(super) fn end(&self) -> RunEnd {
        RunEnd {
            now: self.context.clock.now(),
            stopped: self.context.stop.asked() > 0,
            starved: self.is_starved(),
            recrawl: self.settings.recrawl.enabled,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        let pages_max = self.settings.limits.pages_max;
        pages_max > 0 && self.pages_leased >= pages_max
    }
}

/// The request counts as a page.
pub(super) fn is_page(lease: &Lease) -> bool {
    lease.purpose == Purpose::Page && !is_probe(&lease.url)
}
