//! URLs that are not fetched, because by a duplicate feed they are copies of a page that is
//! stored or waits to be.
//!
//! A feed never makes a URL be fetched. A copy is held back only while the page that stands
//! for it is stored or in a queue; as soon as that ends otherwise, the copy is let in again.

use std::ops::Bound;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::frontier::duplicate_feed::{DAY_MS, Known, Lost, Role};
use crate::store::{Batch, Error, Update as _, View as _};
use crate::urls::{HostKey, PageUrl};

use super::Frontier;
use super::lease::Waiting;
use super::rows::{Address, State};
use super::tables::{ADDRESSES, KNOWN_PAGES, KNOWN_SKIPPED, LEADS};

/// URLs that are let in again in one step.
const RELEASED_MAX: usize = 1_000;

/// Pages above a stored one that are looked at: a bound for rows that lead in a circle.
const LEADS_MAX: usize = 10_000;

/// What feeds say of a URL that is about to be fetched.
pub(super) enum KnownCopy {
    /// Nothing that counts.
    No,
    /// It is a copy of a page that was not found yet.
    Perhaps,
    /// It need not be fetched: number of the feed that says so, URL that stands for it.
    Of(u64, String),
}

/// The document of a URL, if it is stored and has not changed since the day of a duplicate.
fn document_since(address: &Address, day: u64) -> Option<u64> {
    let changed = (address.revisit.changed.0 / DAY_MS).unsigned_abs();
    match address.state {
        State::Stored(document) if address.revisit.changed.0 == 0 || changed < day => {
            Some(document)
        }
        _ => None,
    }
}

/// Notes a page by which one was found first that is stored, or may be so in another shard, and
/// those by which it was found itself: whoever leaves them out, because they are copies, may not
/// find that one.
pub(super) fn note_lead(batch: &mut Batch, page: &str) -> Result<(), Error> {
    let mut referrer = page.to_owned();
    for _ in 0..LEADS_MAX {
        let hash = xxh3_64(referrer.as_bytes());
        if referrer.is_empty() || batch.has(LEADS, hash)? {
            return Ok(());
        }
        batch.put(LEADS, hash, &())?;
        let Some(above) = batch.get(ADDRESSES, &referrer)? else { return Ok(()) };
        referrer = above.referrer;
    }
    Ok(())
}

impl Frontier {
    /// Sets the feeds that are in force, by their numbers in the store.
    pub fn with_known(mut self, batch: &mut Batch, feeds: &[u64]) -> Result<Self, Error> {
        self.known.flush(batch)?;
        self.known = Known::open(batch, self.config.duplicate_feeds.clone(), feeds)?;
        Ok(self)
    }

    /// Tells whether a URL is a copy by a feed, and whether the page that stands for it is
    /// stored or will be visited. Some copies are left for a visit, which tells whether the feed is
    /// right.
    pub(super) fn known_copy(
        &mut self,
        batch: &mut Batch,
        url: &PageUrl,
    ) -> Result<KnownCopy, Error> {
        let mut found = KnownCopy::No;
        for said in self.known.said_of(batch, url.as_str())? {
            let Role::Copy { of: canonical, day } = said.role else { continue };
            let host = url.host_key();
            if !Known::is_believed(batch, said.feed, host.as_str())? {
                continue;
            }
            let page = batch.get(KNOWN_PAGES, (canonical, None))?;
            let substitute = batch.get(KNOWN_PAGES, (canonical, Some(said.feed)))?;
            if page.is_none() && substitute.is_none() {
                found = KnownCopy::Perhaps;
            }
            for of in [page, substitute].into_iter().flatten() {
                let Some(known) = batch.get(ADDRESSES, &of)? else { continue };
                let is_first = known.state == State::Queued && !self.waiting_over;
                if of == url.as_str() || !is_first && document_since(&known, day).is_none() {
                    continue;
                }
                let explore = self.known.take_turn(batch, said.feed, host.as_str())?;
                return Ok(if explore { KnownCopy::No } else { KnownCopy::Of(said.feed, of) });
            }
        }
        Ok(found)
    }

    /// Takes a URL out of the queue and links it to the page of which it is a copy.
    pub(super) fn link_known(
        &mut self,
        batch: &mut Batch,
        Waiting { host, place, url }: Waiting<'_>,
        feed: u64,
        of: String,
    ) -> Result<(), Error> {
        self.unqueue(batch, host, place)?;
        if let Some(mut address) = batch.get(ADDRESSES, url.as_str())? {
            self.known.note_skipped(batch, feed, &of, url.as_str())?;
            let state = State::Known { feed, of };
            self.recount(Some(&address.state), &state);
            address.state = state;
            batch.put(ADDRESSES, url.as_str(), &address)?;
        }
        // It cannot stand for others.
        self.release_copies(batch, url.as_str())
    }

    /// Looks what a page that is stored for the first time says of the feeds that name it.
    pub fn weigh(&mut self, batch: &mut Batch, url: &PageUrl, document: u64) -> Result<(), Error> {
        for said in self.known.said_of(batch, url.as_str())? {
            let feed = said.feed;
            let (copy, same) = if let Role::Copy { of: canonical, day } = said.role {
                let stored = |of: Option<String>| -> Result<Option<u64>, Error> {
                    let Some(of) = of.filter(|of| of != url.as_str()) else { return Ok(None) };
                    let known = batch.get(ADDRESSES, &of)?;
                    Ok(known.and_then(|known| document_since(&known, day)))
                };
                let page = stored(batch.get(KNOWN_PAGES, (canonical, None))?)?;
                let other = match page {
                    None => stored(batch.get(KNOWN_PAGES, (canonical, Some(feed)))?)?,
                    page => page,
                };
                let Some(other) = other else {
                    Known::stand_in(batch, canonical, feed, url.as_str())?;
                    continue;
                };
                (url.as_str().to_owned(), other == document)
            } else {
                // A copy that came before it.
                let canonical = xxh3_128(url.as_str().as_bytes());
                let copy = batch.get(KNOWN_PAGES, (canonical, Some(feed)))?;
                let Some(copy) = copy.filter(|copy| copy != url.as_str()) else { continue };
                let known = batch.get(ADDRESSES, &copy)?;
                let Some(State::Stored(other)) = known.map(|known| known.state) else { continue };
                (copy, other == document)
            };
            let Some(host) = PageUrl::parse_stored(&copy).map(|copy| copy.host_key()) else {
                continue;
            };
            match self.known.note(batch, feed, host.as_str(), same)? {
                None => {}
                Some(Lost::Host) => self.release_feed(batch, feed, Some(&host))?,
                Some(Lost::Wholly) => self.release_feed(batch, feed, None)?,
            }
        }
        Ok(())
    }

    /// Lets the copies of a page in again that is not stored, or says something else than it did.
    pub(super) fn release_copies(&mut self, batch: &mut Batch, of: &str) -> Result<(), Error> {
        if !self.known.have_skipped() {
            return Ok(());
        }
        let page = xxh3_128(of.as_bytes());
        loop {
            let mut copies = Vec::new();
            for entry in batch.under(KNOWN_SKIPPED, page)?.take(RELEASED_MAX) {
                copies.push(entry?.key()?.1.to_owned());
            }
            if copies.is_empty() {
                return Ok(());
            }
            for copy in copies {
                self.known.release(batch, of, &copy)?;
                self.let_in_again(batch, &copy)?;
            }
        }
    }

    /// Lets copies in again that wait for the first visit of another page, now that nothing else is
    /// left to do in this run. Returns whether there were any.
    pub fn end_waiting(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        if self.waiting_over || !self.known.have_skipped() {
            return Ok(false);
        }
        self.waiting_over = true;
        self.release_all(batch, |batch, _, state| {
            let State::Known { of, .. } = state else { return Ok(false) };
            let page = batch.get(ADDRESSES, of)?;
            Ok(!matches!(page.map(|page| page.state), Some(State::Stored(_))))
        })
    }

    /// Lets copies in again that are held back by feeds that are not believed any more.
    pub(super) fn release_lost(&mut self, batch: &mut Batch) -> Result<(), Error> {
        for feed in self.known.to_release() {
            self.release_feed(batch, feed, None)?;
        }
        Ok(())
    }

    /// Lets in again what a feed holds back, of one host or of all.
    fn release_feed(
        &mut self,
        batch: &mut Batch,
        feed: u64,
        host: Option<&HostKey>,
    ) -> Result<(), Error> {
        self.release_all(batch, |_, url, state| {
            let of_feed = matches!(state, State::Known { feed: other, .. } if *other == feed);
            let of_host = || PageUrl::parse_stored(url).map(|url| url.host_key());
            Ok(of_feed && host.is_none_or(|host| of_host().as_ref() == Some(host)))
        })?;
        Ok(())
    }

    /// Lets in again what passes; returns whether that was any. All that is held back is looked at,
    /// a part of it at a time.
    fn release_all(
        &mut self,
        batch: &mut Batch,
        passes: impl Fn(&Batch, &str, &State) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let (mut after, mut any) = ((0, String::new()), false);
        loop {
            let (mut some, mut last) = (Vec::new(), None);
            let from = Bound::Excluded((after.0, after.1.as_str()));
            let rows = batch.range(KNOWN_SKIPPED, (from, Bound::Unbounded))?;
            for entry in rows.take(RELEASED_MAX) {
                let entry = entry?;
                let (page, url) = entry.key()?;
                let address = batch.get(ADDRESSES, url)?;
                if let Some(Address { state, .. }) = address
                    && passes(batch, url, &state)?
                {
                    some.push((state, url.to_owned()));
                }
                last = Some((page, url.to_owned()));
            }
            let Some(last) = last else { return Ok(any) };
            for (state, url) in some {
                let State::Known { of, .. } = state else { continue };
                self.known.release(batch, &of, &url)?;
                self.let_in_again(batch, &url)?;
                any = true;
            }
            after = last;
        }
    }
}
