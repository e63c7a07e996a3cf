//! Which URLs the operator keeps out, and letting in what was kept out before.
//!
//! A URL that the filter keeps out is `excluded` or `not_included`, whether it is offered or
//! waits already. That ends as soon as the settings say otherwise: a run whose settings differ from
//! those of the run before looks at all such URLs once. What is stored stays as it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::corpus::boilerplate::is_probe;
use crate::store::{Batch, COUNTERS, Error, META, Update as _, View};
use crate::urls::{Filter, FilterConfig, FilterScope, KeptOut, PageUrl};

use super::again::unplan;
use super::lease::Waiting;
use super::offer::By;
use super::rows::{Address, QueuePlace, Rank, State};
use super::tables::ADDRESSES;
use super::{Frontier, Offer, Reason, events};

/// Row of `meta` that has what the last run went by, as JSON.
const ADMISSION: &str = "admission";

/// URLs that are looked at in one step.
const STEP: usize = 10_000;

/// What decides which URLs are let in that were kept out before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Admission {
    filter: FilterConfig,
    allow_private: bool,
    /// Hash of the scope.
    scope: u64,
    depth_max: u16,
}

impl Admission {
    fn stored(view: &impl View) -> Result<Option<Self>, Error> {
        let row = view.bytes(META, ADMISSION)?;
        // What cannot be read is not what a run goes by, and is written anew.
        Ok(row.and_then(|row| serde_json::from_slice(&row).ok()))
    }
}

/// Reads the filter of the last run; none if there was no run.
pub fn stored_filter(view: &impl View) -> Result<Option<Filter>, Error> {
    let stored = Admission::stored(view)?;
    Ok(stored.and_then(|stored| Filter::new(&stored.filter).ok()))
}

/// Which patterns hold for a URL; none for a seed, because who names it wants it, and for a
/// sitemap, which is no page. Where a seed redirects to is what was meant, and need match none that
/// includes.
#[must_use]
pub fn patterns_for(place: QueuePlace) -> Option<FilterScope> {
    match (place.rank, place.depth) {
        (Rank::Seed | Rank::Sitemap | Rank::LateSitemap, _) => None,
        (Rank::Redirect, 0) => Some(FilterScope::Excludes),
        _ => Some(FilterScope::All),
    }
}

impl Reason {
    /// The filter keeps the URL out.
    #[must_use]
    pub fn is_of_filter(self) -> bool {
        matches!(self, Self::Excluded | Self::NotIncluded)
    }
}

impl Frontier {
    /// Sets which URLs are kept out, and whether private ones may be contacted.
    #[must_use]
    pub fn with_filter(mut self, filter: Filter, allow_private: bool) -> Self {
        self.admission = Admission {
            filter: filter.config().clone(),
            allow_private,
            scope: self.scope.hash64(),
            depth_max: self.config.depth_max,
        };
        self.filter = filter;
        self
    }

    /// Returns how many URLs this run has kept out, by the pattern that did it.
    #[must_use]
    pub fn kept_out(&self) -> &BTreeMap<String, u64> {
        &self.kept_out
    }

    /// Tells why the filter keeps a URL out, if it does.
    pub(super) fn keeps_out(&self, url: &PageUrl, place: QueuePlace) -> Option<Reason> {
        let kept_out = self.filter.keeps_out(url, patterns_for(place)?)?;
        // Nobody has named the URL by which a host is probed.
        if is_probe(url) {
            return None;
        }
        Some(match kept_out {
            KeptOut::Excluded(..) => Reason::Excluded,
            KeptOut::NotIncluded(_) => Reason::NotIncluded,
        })
    }

    /// Counts a URL by the pattern that keeps it out.
    pub(super) fn count_kept_out(&mut self, url: &PageUrl, place: QueuePlace) {
        let kept_out = patterns_for(place).and_then(|asked| self.filter.keeps_out(url, asked));
        if let Some(name) = kept_out.map(|kept_out| kept_out.to_string()) {
            *self.kept_out.entry(name).or_default() += 1;
        }
    }

    /// Takes a URL out of the queue that the filter keeps out. A page that is stored stays so,
    /// and is not visited again meanwhile.
    pub(super) fn keep_out(
        &mut self,
        batch: &mut Batch,
        Waiting { host, place, url }: Waiting<'_>,
        reason: Reason,
    ) -> Result<(), Error> {
        self.unqueue(batch, host, place)?;
        let Some(mut address) = batch.get(ADDRESSES, url.as_str())? else {
            return Ok(());
        };
        self.count_kept_out(url, place);
        if address.state != State::Queued {
            return self.put_off(batch, url.as_str(), address);
        }
        address.state = State::Refused(reason);
        self.recount(Some(&State::Queued), &address.state);
        events::refused(url, &address.state);
        batch.put(ADDRESSES, url.as_str(), &address)?;
        self.release_copies(batch, url.as_str())
    }

    /// Notes that nothing but the filter keeps a known URL out by now, so that it is let in
    /// when the filter lets it, with the best place that it was offered.
    pub(super) fn note_kept_out(
        &mut self,
        batch: &mut Batch,
        offer: &Offer<'_>,
        mut address: Address,
        reason: Reason,
    ) -> Result<(), Error> {
        let State::Refused(was) = address.state else { return Ok(()) };
        let better = (offer.rank, offer.depth) < (address.place.rank, address.place.depth);
        // What was asked for as a sitemap has other ways to be a page.
        let is_new = !was.is_of_filter() && !was.is_no_sitemap();
        let is_nearer = was.is_of_filter() && better;
        if !is_new && !is_nearer {
            return Ok(());
        }
        (address.place, address.hops) = (offer.place(), offer.hops);
        address.state = State::Refused(reason);
        self.recount(Some(&State::Refused(was)), &address.state);
        if is_new {
            self.count_kept_out(offer.url, offer.place());
        }
        batch.put(ADDRESSES, offer.url.as_str(), &address)?;
        Ok(())
    }

    /// Looks once at the URLs that were kept out, if this run goes by other settings than the
    /// last one, and lets in those that are kept out no more. Begins at the URL `from`, and
    /// returns where to go on; none when all is done.
    pub fn readmit(
        &mut self,
        batch: &mut Batch,
        from: &str,
        now: Timestamp,
    ) -> Result<Option<String>, Error> {
        let stored = Admission::stored(batch)?;
        if stored.as_ref() == Some(&self.admission) {
            return Ok(None);
        }
        let mut reasons = vec![Reason::Excluded, Reason::NotIncluded];
        reasons.extend(self.admission.allow_private.then_some(Reason::AddressRefused));
        let mut last = None;
        if has_any(batch, &reasons)? {
            let mut found = Vec::new();
            for entry in batch.range(ADDRESSES, from..)?.take(STEP) {
                let entry = entry?;
                let (url, address) = (entry.key()?, entry.row()?);
                if reasons.iter().any(|reason| address.state == State::Refused(*reason)) {
                    found.push((url.to_owned(), address));
                }
                last = Some(url.to_owned());
            }
            for (url, address) in found {
                if let Some(url) = PageUrl::parse_stored(&url) {
                    self.look_at_refusal(batch, &url, address, now)?;
                }
            }
        }
        if last.is_none() {
            let json = serde_json::to_vec(&self.admission).expect("settings have a form in JSON");
            batch.put(META, ADMISSION, &json)?;
        }
        // The next URL in order.
        Ok(last.map(|last| last + "\0"))
    }

    fn look_at_refusal(
        &mut self,
        batch: &mut Batch,
        url: &PageUrl,
        mut address: Address,
        now: Timestamp,
    ) -> Result<(), Error> {
        let was = address.state.clone();
        if address.revisit.waits {
            return Ok(());
        }
        // What was in a queue has had its share of the budgets of its host.
        let had_room = address.host != 0;
        let QueuePlace { rank, depth, .. } = address.place;
        let offer = Offer { url, depth, rank, hops: address.hops, from: None, nofollow: false };
        let mut refused = self.keeps_out(url, address.place);
        if refused.is_none() {
            // Another run with other seeds may want it. A sitemap may lie anywhere.
            if !rank.is_sitemap() && self.turn_away(&offer, now).is_some() {
                return Ok(());
            }
            if !had_room {
                refused = self.over_budget(batch, &offer, By::Entry)?;
            }
        }
        let was_private = was == State::Refused(Reason::AddressRefused);
        if let Some(reason) = refused {
            if was_private {
                return Ok(());
            }
            address.state = State::Refused(reason);
            self.recount(Some(&was), &address.state);
            batch.put(ADDRESSES, url.as_str(), &address)?;
            return Ok(());
        }
        tracing::debug!(%url, "let in again");
        if was_private {
            let live = self.hosts.get(batch, address.host)?;
            live.row.trouble = live.row.trouble.filter(|why| *why != Reason::AddressRefused);
            live.dirty = true;
        }
        unplan(batch, url.as_str(), &mut address)?;
        address.state = State::Queued;
        (address.failures, address.busy, address.trouble) = (0, 0, None);
        self.recount(Some(&was), &address.state);
        self.enqueue(batch, url, &mut address)?;
        if !had_room {
            self.count_link(batch, url, &address)?;
        }
        Ok(())
    }
}

fn has_any(batch: &Batch, reasons: &[Reason]) -> Result<bool, Error> {
    for reason in reasons {
        let counter = State::Refused(*reason).counter();
        if batch.get(COUNTERS, &counter)?.is_some_and(|count| count > 0) {
            return Ok(true);
        }
    }
    Ok(false)
}
