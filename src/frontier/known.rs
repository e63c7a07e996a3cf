//! Addresses that are not fetched, because by a feed of verdicts they are copies of a page that is
//! stored or waits to be.
//!
//! A feed never makes an address be fetched. A copy is held back only while the page that stands
//! for it is stored or in a queue; as soon as that ends otherwise, the copy is let in again.

use redb::ReadableTable as _;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::frontier::verdicts::{DAY_MS, Known, Lost, page_of, split_skipped_key};
use crate::store::{Error, Tables};
use crate::urls::{HostKey, PageUrl};

use super::Frontier;
use super::rows::{Address, Place, State};

/// Addresses that are let in again in one step.
const RELEASED_MAX: usize = 1_000;

/// Pages above a stored one that are looked at: a bound for rows that lead in a circle.
const LEADS_MAX: usize = 10_000;

/// What feeds say of an address that is about to be fetched.
pub(super) enum Copy {
    /// Nothing that counts.
    No,
    /// It is a copy of a page that was not found yet.
    Perhaps,
    /// It need not be fetched: number of the feed that says so, address that stands for it.
    Of(u64, String),
}

/// The document of an address, if it is stored and has not changed since the day of a verdict.
fn document_since(address: &Address, day: u64) -> Option<u64> {
    let changed = (address.revisit.changed.0 / DAY_MS).unsigned_abs();
    match address.state {
        State::Stored(document) if address.revisit.changed.0 == 0 || changed < day => {
            Some(document)
        }
        _ => None,
    }
}

/// Notes the pages by which a stored one was found first: whoever leaves them out, because they are
/// copies, may not find it.
pub(super) fn note_lead(tables: &mut Tables<'_>, found: &Address) -> Result<(), Error> {
    let mut referrer = found.referrer.clone();
    for _ in 0..LEADS_MAX {
        let hash = xxh3_64(referrer.as_bytes());
        if referrer.is_empty() || tables.leads.get(hash)?.is_some() {
            return Ok(());
        }
        tables.leads.insert(hash, ())?;
        let Some(above) = Address::read(&tables.addresses, &referrer)? else { return Ok(()) };
        referrer = above.referrer;
    }
    Ok(())
}

impl Frontier {
    /// Sets the feeds that are in force, by their numbers in the store.
    pub fn with_known(mut self, tables: &mut Tables<'_>, feeds: &[u64]) -> Result<Self, Error> {
        self.known.flush(tables)?;
        self.known = Known::open(tables, self.config.verdicts.clone(), feeds)?;
        Ok(self)
    }

    /// Tells whether an address is a copy by a feed, and whether the page that stands for it is
    /// stored or will be visited. Some copies are left for a visit, which tells whether the feed is
    /// right.
    pub(super) fn known_copy(
        &mut self,
        tables: &mut Tables<'_>,
        url: &PageUrl,
    ) -> Result<Copy, Error> {
        let mut found = Copy::No;
        for said in self.known.said_of(tables, url.as_str())? {
            let Some((canonical, day)) = said.copy_of else { continue };
            let host = url.host_key();
            if !self.known.is_believed(tables, said.feed, host.as_str())? {
                continue;
            }
            let page = page_of(&tables.known_pages, canonical, None)?;
            let substitute = page_of(&tables.known_pages, canonical, Some(said.feed))?;
            if page.is_none() && substitute.is_none() {
                found = Copy::Perhaps;
            }
            for of in [page, substitute].into_iter().flatten() {
                let Some(known) = Address::read(&tables.addresses, &of)? else { continue };
                let is_first = known.state == State::Queued && !self.waiting_over;
                if of == url.as_str() || !is_first && document_since(&known, day).is_none() {
                    continue;
                }
                let explore = self.known.take_turn(tables, said.feed, host.as_str())?;
                return Ok(if explore { Copy::No } else { Copy::Of(said.feed, of) });
            }
        }
        Ok(found)
    }

    /// Takes an address out of the queue and links it to the page of which it is a copy.
    pub(super) fn link_known(
        &mut self,
        tables: &mut Tables<'_>,
        (host, place): (u32, Place),
        url: &PageUrl,
        (feed, of): (u64, String),
    ) -> Result<(), Error> {
        self.unqueue(tables, host, place)?;
        if let Some(mut address) = Address::read(&tables.addresses, url.as_str())? {
            self.known.note_skipped(tables, feed, (&of, url.as_str()))?;
            let state = State::Known { feed, of };
            self.recount(Some(&address.state), &state);
            address.state = state;
            tables.addresses.insert(url.as_str(), address.encode().as_slice())?;
        }
        // It cannot stand for others.
        self.release_copies(tables, url.as_str())
    }

    /// Looks what a page that is stored for the first time says of the feeds that name it.
    pub fn weigh(
        &mut self,
        tables: &mut Tables<'_>,
        (url, document): (&PageUrl, u64),
    ) -> Result<(), Error> {
        for said in self.known.said_of(tables, url.as_str())? {
            let feed = said.feed;
            let (copy, same) = if let Some((canonical, day)) = said.copy_of {
                let stored = |of: Option<String>| -> Result<Option<u64>, Error> {
                    let Some(of) = of.filter(|of| of != url.as_str()) else { return Ok(None) };
                    let known = Address::read(&tables.addresses, &of)?;
                    Ok(known.and_then(|known| document_since(&known, day)))
                };
                let page = stored(page_of(&tables.known_pages, canonical, None)?)?;
                let other = match page {
                    None => stored(page_of(&tables.known_pages, canonical, Some(feed))?)?,
                    page => page,
                };
                let Some(other) = other else {
                    self.known.stand_in(tables, (canonical, feed), url.as_str())?;
                    continue;
                };
                (url.as_str().to_owned(), other == document)
            } else {
                // A copy that came before it.
                let canonical = xxh3_128(url.as_str().as_bytes());
                let copy = page_of(&tables.known_pages, canonical, Some(feed))?;
                let Some(copy) = copy.filter(|copy| copy != url.as_str()) else { continue };
                let known = Address::read(&tables.addresses, &copy)?;
                let Some(State::Stored(other)) = known.map(|known| known.state) else { continue };
                (copy, other == document)
            };
            let Some(host) = PageUrl::parse_stored(&copy).map(|copy| copy.host_key()) else {
                continue;
            };
            match self.known.note(tables, (feed, host.as_str()), same)? {
                None => {}
                Some(Lost::Host) => self.release_feed(tables, feed, Some(&host))?,
                Some(Lost::Wholly) => self.release_feed(tables, feed, None)?,
            }
        }
        Ok(())
    }

    /// Lets the copies of a page in again that is not stored, or says something else than it did.
    pub(super) fn release_copies(
        &mut self,
        tables: &mut Tables<'_>,
        of: &str,
    ) -> Result<(), Error> {
        if !self.known.have_skipped() {
            return Ok(());
        }
        let first = xxh3_128(of.as_bytes()).to_be_bytes();
        loop {
            let mut copies = Vec::new();
            for row in tables.known_skipped.range(first.as_slice()..)?.take(RELEASED_MAX) {
                let (key, _) = row?;
                if !key.value().starts_with(&first) {
                    break;
                }
                copies.push(split_skipped_key(key.value())?.to_owned());
            }
            if copies.is_empty() {
                return Ok(());
            }
            for copy in copies {
                self.known.release(tables, (of, &copy))?;
                self.let_in_again(tables, &copy)?;
            }
        }
    }

    /// Lets copies in again that wait for the first visit of another page, now that nothing else is
    /// left to do in this run. Returns whether there were any.
    pub fn end_waiting(&mut self, tables: &mut Tables<'_>) -> Result<bool, Error> {
        if self.waiting_over || !self.known.have_skipped() {
            return Ok(false);
        }
        self.waiting_over = true;
        self.release_all(tables, |tables, _, state| {
            let State::Known { of, .. } = state else { return Ok(false) };
            let page = Address::read(&tables.addresses, of)?;
            Ok(!matches!(page.map(|page| page.state), Some(State::Stored(_))))
        })
    }

    /// Lets copies in again that are held back by feeds that are not believed any more.
    pub(super) fn release_lost(&mut self, tables: &mut Tables<'_>) -> Result<(), Error> {
        for feed in self.known.to_release() {
            self.release_feed(tables, feed, None)?;
        }
        Ok(())
    }

    /// Lets in again what a feed holds back, of one host or of all.
    fn release_feed(
        &mut self,
        tables: &mut Tables<'_>,
        feed: u64,
        host: Option<&HostKey>,
    ) -> Result<(), Error> {
        self.release_all(tables, |_, url, state| {
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
        tables: &mut Tables<'_>,
        passes: impl Fn(&Tables<'_>, &str, &State) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let (mut from, mut any) = (Vec::new(), false);
        loop {
            let (mut some, mut last) = (Vec::new(), None);
            for row in tables.known_skipped.range(from.as_slice()..)?.take(RELEASED_MAX) {
                let key = row?.0.value().to_owned();
                let url = split_skipped_key(&key)?.to_owned();
                let address = Address::read(&tables.addresses, &url)?;
                if let Some(Address { state, .. }) = address
                    && passes(tables, &url, &state)?
                {
                    some.push((state, url));
                }
                last = Some(key);
            }
            let Some(last) = last else { return Ok(any) };
            for (state, url) in some {
                let State::Known { of, .. } = state else { continue };
                self.known.release(tables, (&of, &url))?;
                self.let_in_again(tables, &url)?;
                any = true;
            }
            from = last;
            from.push(0);
        }
    }
}
