//! Leasing due URLs, and noting what a further visit has shown.

use std::time::Duration;

use crate::base::clock::Timestamp;
use crate::corpus::tables::DOCUMENTS;
use crate::store::{Batch, Error, Update as _, View as _};
use crate::urls::PageUrl;

use super::revisit::{Fate, Recrawl, Told, Validators};
use super::rows::{Address, Request, State};
use super::tables::{ADDRESSES, REVISITS};
use super::{Frontier, Reason, Settlement};

/// Due URLs that are queued at a time.
const WAKE_MAX: usize = 32;

impl Frontier {
    /// Sets how URLs are visited again.
    #[must_use]
    pub fn with_recrawl(mut self, recrawl: Recrawl) -> Self {
        self.recrawl = recrawl;
        self
    }

    /// Returns how many URLs became due in this run.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Lets URLs be visited again in this run that have become due meanwhile: for one that goes
    /// on until it is stopped.
    pub fn go_on(&mut self, now: Timestamp) {
        self.due_until = self.due_until.max(now);
    }

    /// Puts URLs that were due when the run began into the queues of their hosts. What
    /// becomes due later is for the next run, or none would end, unless it [goes
    /// on](Self::go_on).
    pub(super) fn wake_due(&mut self, batch: &mut Batch) -> Result<(), Error> {
        if !self.recrawl.enabled {
            return Ok(());
        }
        for _ in 0..WAKE_MAX {
            let Some((due, url)) = first_due(batch)? else { return Ok(()) };
            if due > self.due_until {
                return Ok(());
            }
            batch.remove(REVISITS, (due, &url))?;
            let Some(mut address) = batch.get(ADDRESSES, &url)? else { continue };
            let rank = address.place.rank;
            let parsed = PageUrl::parse_stored(&url);
            let place = address.place;
            let is_wanted =
                |url: &PageUrl| self.scope.contains(url) && self.keeps_out(url, place).is_none();
            // A sitemap may lie anywhere.
            if parsed.is_none_or(|url| !rank.is_sitemap() && !is_wanted(&url)) {
                self.put_off(batch, &url, address)?;
                continue;
            }
            address.revisit.waits = true;
            (address.failures, address.busy) = (0, 0);
            address.place.sequence = batch.next_number("next_request")?;
            batch.put(ADDRESSES, url.as_str(), &address)?;
            self.due += 1;
            self.push(
                batch,
                address.host,
                address.place,
                &Request { purpose: rank.purpose(), url },
            )?;
        }
        Ok(())
    }

    /// Plans the next visit of a URL that is due, but not wanted in this run. Another one with
    /// other settings may want it.
    pub(super) fn put_off(
        &mut self,
        batch: &mut Batch,
        url: &str,
        mut address: Address,
    ) -> Result<(), Error> {
        let before = address.revisit.interval_ms;
        let wait = self.recrawl.interval(address.place.rank, before, false);
        plan(batch, url, &mut address, self.opened.after(Duration::from_millis(wait)))?;
        batch.put(ADDRESSES, url, &address)?;
        Ok(())
    }

    /// Lets a stored URL be due soon, because the copy that stood for its cluster is no more.
    pub fn hasten(&mut self, batch: &mut Batch, url: &str, now: Timestamp) -> Result<(), Error> {
        let Some(mut address) = batch.get(ADDRESSES, url)? else { return Ok(()) };
        let seen = &address.revisit;
        let (shortest, _) = self.recrawl.bounds(address.place.rank);
        let soon = now.after(Duration::from_millis(shortest));
        if seen.waits || seen.due.0 == 0 || seen.due <= soon {
            return Ok(());
        }
        batch.remove(REVISITS, (seen.due, url))?;
        plan(batch, url, &mut address, soon)?;
        batch.put(ADDRESSES, url, &address)?;
        Ok(())
    }

    /// Returns when the next URL of this run is due; none if none is.
    pub(super) fn next_revisit(&self, batch: &Batch) -> Result<Option<Timestamp>, Error> {
        if !self.recrawl.enabled {
            return Ok(None);
        }
        Ok(first_due(batch)?.map(|(due, _)| due).filter(|due| *due <= self.due_until))
    }

    /// Returns by what the server may say that the page has not changed; empty if it is to be
    /// asked for whole.
    pub(super) fn validators(&self, address: &Address, now: Timestamp) -> Validators {
        let seen = &address.revisit;
        let believed = self.recrawl.full_after == 0 || seen.unmodified < self.recrawl.full_after;
        if seen.waits && believed { seen.validators.sendable(now) } else { Validators::default() }
    }

    /// Notes what a visit has shown.
    pub(super) fn note_visit(
        &self,
        address: &mut Address,
        settlement: Settlement,
        told: Told,
    ) -> Fate {
        let (was, again) = (address.state.clone(), address.revisit.waits);
        let miss = again && was.is_stored() && is_miss(&settlement, told.status);
        let failed = again && is_failure(&settlement, told.status);
        let gone = matches!(told.status, 404 | 410);
        let misses = if gone || miss { address.revisit.misses.saturating_add(1) } else { 0 };
        let final_miss = misses >= self.recrawl.gone_after.max(1);
        if !failed {
            address.revisit.misses = misses;
            address.revisit.visits += 1;
            address.trouble = None;
        }
        let fate = match settlement {
            Settlement::Unmodified => {
                address.revisit.unmodified = address.revisit.unmodified.saturating_add(1);
                address.revisit.validators.update(told.validators);
                Fate::Unmodified
            }
            other if failed => {
                address.trouble = reason_of(&other);
                Fate::Failed
            }
            _ if miss && !final_miss => Fate::Missing,
            other => {
                address.revisit.unmodified = 0;
                // Those of an error page say nothing of the page.
                let read = matches!(told.status, 200 | 203);
                address.revisit.validators =
                    if read { told.validators } else { Validators::default() };
                address.state = match (state_of(other), gone && again && final_miss) {
                    (_, true) => State::Refused(Reason::Gone),
                    (state, false) => state,
                };
                let same = !told.changed && same_kind(&was, &address.state);
                match (same, &address.state) {
                    (false, State::Refused(Reason::Gone)) => Fate::Gone,
                    (true, _) => Fate::Unchanged,
                    (false, _) => Fate::Changed,
                }
            }
        };
        if again && fate.is_change() {
            address.revisit.changes += 1;
            address.revisit.changed = address.visited;
        }
        fate
    }

    /// Sets the interval of a URL by what its visit has shown, and returns for how long it is
    /// left alone.
    pub(super) fn next_wait(
        &self,
        batch: &Batch,
        url: &str,
        address: &mut Address,
        fate: Fate,
    ) -> Result<Duration, Error> {
        let rank = address.place.rank;
        let (shortest, longest) = self.recrawl.bounds(rank);
        let before = address.revisit.interval_ms;
        let wait = match (fate, &address.state) {
            // An error is told from a page that is gone by asking again soon.
            (Fate::Missing, _) => shortest,
            (_, State::Refused(reason)) if reason.is_lasting() || address.revisit.misses > 0 => {
                address.revisit.interval_ms = longest;
                longest
            }
            _ => {
                let interval = self.recrawl.interval(rank, before, fate.is_change());
                address.revisit.interval_ms = interval;
                match address.state {
                    State::Stored(document) if is_lesser(batch, document, url)? => {
                        self.recrawl.of_copy(rank, interval)
                    }
                    _ => interval,
                }
            }
        };
        Ok(Duration::from_millis(wait))
    }
}

/// Takes a URL out of those that are due some time.
pub(super) fn unplan(batch: &mut Batch, url: &str, address: &mut Address) -> Result<(), Error> {
    batch.remove(REVISITS, (address.revisit.due, url))?;
    address.revisit.due = Timestamp(0);
    Ok(())
}

/// Writes when a URL is due; it must not have a row yet.
pub(super) fn plan(
    batch: &mut Batch,
    url: &str,
    address: &mut Address,
    due: Timestamp,
) -> Result<(), Error> {
    address.revisit.waits = false;
    address.revisit.due = Timestamp(due.0.max(1));
    batch.put(REVISITS, (address.revisit.due, url), &())
}

/// Tells whether another copy of the document stands for it.
fn is_lesser(batch: &Batch, document: u64, url: &str) -> Result<bool, Error> {
    Ok(batch.get(DOCUMENTS, document)?.is_some_and(|row| row.canonical != url))
}

/// A page was expected and there is none; that may be an error of the server.
fn is_miss(settlement: &Settlement, status: u16) -> bool {
    match settlement {
        Settlement::Refused(Reason::HttpError) => matches!(status, 404 | 410),
        Settlement::Refused(
            Reason::NotAPage
            | Reason::Binary
            | Reason::NoContent
            | Reason::NoText
            | Reason::SoftNotFound,
        )
        | Settlement::Redirect(_) => true,
        _ => false,
    }
}

/// The answer, if there was one, says nothing of the page.
fn is_failure(settlement: &Settlement, status: u16) -> bool {
    match settlement {
        Settlement::Refused(Reason::HttpError) => !matches!(status, 404 | 410),
        Settlement::Refused(reason) => matches!(
            reason,
            Reason::BadEncoding
                | Reason::Bomb
                | Reason::Unreadable
                | Reason::BadRedirect
                | Reason::NotReady
                | Reason::PartialContent
                | Reason::OtherStatus
        ),
        Settlement::Failed { .. } | Settlement::Busy(_) => true,
        _ => false,
    }
}

fn reason_of(settlement: &Settlement) -> Option<Reason> {
    match settlement {
        Settlement::Refused(reason) | Settlement::Failed { reason, .. } => Some(*reason),
        Settlement::Busy(_) => Some(Reason::Busy),
        _ => None,
    }
}

/// The state of a URL whose visit has come to this.
fn state_of(settlement: Settlement) -> State {
    match settlement {
        Settlement::Stored(document) => State::Stored(document),
        Settlement::Redirect(target) => State::Redirect(target.as_str().to_owned()),
        Settlement::Refused(reason) | Settlement::Failed { reason, .. } => State::Refused(reason),
        Settlement::Busy(_) => State::Refused(Reason::Busy),
        Settlement::Robots(_) | Settlement::Unmodified | Settlement::LookedUp(_) => {
            State::Refused(Reason::NotAPage)
        }
    }
}

/// Whether two states show the same, as far as a change of the text is not concerned.
fn same_kind(was: &State, is: &State) -> bool {
    match (was, is) {
        (State::Stored(_), State::Stored(_)) => true,
        (was, is) => was == is,
    }
}

fn first_due(batch: &Batch) -> Result<Option<(Timestamp, String)>, Error> {
    let Some(first) = batch.first(REVISITS)? else { return Ok(None) };
    let (due, url) = first.key()?;
    Ok(Some((due, url.to_owned())))
}
