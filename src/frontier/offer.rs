//! Offering addresses: what is new and allowed is queued, what is known may move forward.

use crate::base::clock::Timestamp;
use crate::store::{Batch, Error, Update as _, View as _};
use crate::urls::PageUrl;

use super::again::unplan;
use super::lists::{is_sitemap_in_queue, want_as_page};
use super::rows::{Address, QueuePlace, Rank, Request, State};
use super::tables::{ADDRESSES, INLINKS, QUEUE};
use super::{Frontier, Reason, events};

/// A URL that was found.
#[derive(Debug, Clone)]
pub struct Offer<'a> {
    /// The URL.
    pub url: &'a PageUrl,
    /// Links between a seed and the URL.
    pub depth: u16,
    /// Kind of request.
    pub rank: Rank,
    /// Redirects that led to it.
    pub hops: u8,
    /// The page that links to it; none for a seed.
    pub from: Option<&'a PageUrl>,
    /// The link is marked nofollow.
    pub nofollow: bool,
}

impl Offer<'_> {
    /// The place that it asks for.
    pub(super) fn place(&self) -> QueuePlace {
        QueuePlace { rank: self.rank, depth: self.depth, sequence: 0 }
    }

    /// Bytes of the URL.
    pub(super) fn size(&self) -> u64 {
        self.url.as_str().len() as u64
    }
}

/// How a URL was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// By a link, a redirect or as a seed: the host that it is found on speaks for it.
    Link,
    /// As a feed that a page links to.
    Feed,
    /// As an entry of a sitemap or feed.
    Entry,
    /// As an entry of a sitemap that must not name it.
    Stranger,
}

/// What became of an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offered {
    /// It is in the queue, newly or in a better place.
    Queued,
    /// It was known.
    Known,
    /// It is known and stored, and more hosts link to it: document and number of hosts.
    MoreLinks {
        /// Number of the document.
        document: u64,
        /// Distinct hosts that link to the URL.
        links: u64,
    },
    /// It is turned away.
    Refused(Reason),
}

impl Frontier {
    /// Offers a URL. Costs nothing but a hash if the same host offered it lately.
    pub fn offer(
        &mut self,
        batch: &mut Batch,
        offer: &Offer<'_>,
        now: Timestamp,
    ) -> Result<Offered, Error> {
        if offer.rank == Rank::Seed {
            self.ask_name_again(batch, offer.url)?;
        }
        self.offer_by(batch, offer, By::Link, now)
    }

    /// Offers a URL that was found in another way than by a link.
    pub(super) fn offer_by(
        &mut self,
        batch: &mut Batch,
        offer: &Offer<'_>,
        by: By,
        now: Timestamp,
    ) -> Result<Offered, Error> {
        let from = offer.from.map(PageUrl::host_key).filter(|_| by == By::Link);
        let hash = offer.url.hash64();
        if let (Some(from), Rank::Link, false) = (&from, offer.rank, offer.nofollow) {
            let source = xxhash_rust::xxh3::xxh3_64(from.as_str().as_bytes());
            if self.seen.check_and_set(hash ^ source.rotate_left(17), offer.depth) {
                return Ok(Offered::Known);
            }
        }
        if self.is_elsewhere(offer.url) {
            return self.send(batch, offer, by);
        }
        let stranger = (by == By::Stranger).then_some(Reason::OffSite);
        let mut refused = self.turn_away(offer, now).or(stranger);
        let known = batch.get(ADDRESSES, offer.url.as_str())?;
        // What was let in before takes no room.
        let is_in = known.as_ref().is_some_and(|address| address.state.is_in());
        if refused.is_none() && !is_in {
            refused = self.keeps_out(offer.url, offer.place());
        }
        if refused.is_none() && !is_in {
            refused = self.over_budget(batch, offer, by)?;
        }
        let Some(mut address) = known else {
            let state = refused.map_or(State::Queued, State::Refused);
            let found = Address::found(now, offer.from.map_or("", PageUrl::as_str));
            let found = Address { state, place: offer.place(), hops: offer.hops, ..found };
            return self.add(batch, offer, by, found);
        };
        if let Some(reason) = refused.filter(|reason| reason.is_of_filter()) {
            self.note_kept_out(batch, offer, address, reason)?;
            return Ok(Offered::Known);
        }
        if refused.is_none() && by == By::Link && is_sitemap_in_queue(&address) {
            want_as_page(batch, offer)?;
        }
        let more_links = match &from {
            Some(from) if refused.is_none() && *from != offer.url.host_key() => {
                let from = self.hosts.number(batch, from)?;
                add_link(batch, hash, from, &mut address)?
            }
            _ => false,
        };
        if refused.is_none() && self.improve(batch, offer, &mut address)? {
            return Ok(Offered::Queued);
        }
        if !more_links {
            return Ok(Offered::Known);
        }
        batch.put(ADDRESSES, offer.url.as_str(), &address)?;
        match address.state {
            State::Stored(document) => Ok(Offered::MoreLinks { document, links: address.links }),
            _ => Ok(Offered::Known),
        }
    }

    /// Tells why an offer is turned away, if it is.
    pub(super) fn turn_away(&self, offer: &Offer<'_>, now: Timestamp) -> Option<Reason> {
        if !self.scope.contains(offer.url) {
            return Some(Reason::OutOfScope);
        }
        let odd = self.config.shape.odd_shape(offer.url, now.0);
        if let Some(odd) = odd.filter(|odd| offer.rank == Rank::Link || !odd.is_of_links()) {
            return Some(Reason::from(odd));
        }
        if self.config.depth_max < offer.depth {
            return Some(Reason::TooDeep);
        }
        if offer.hops > self.config.redirects_max {
            return Some(Reason::TooManyRedirects);
        }
        offer.nofollow.then_some(Reason::Nofollow)
    }

    /// Takes a URL in that is new.
    fn add(
        &mut self,
        batch: &mut Batch,
        offer: &Offer<'_>,
        by: By,
        mut address: Address,
    ) -> Result<Offered, Error> {
        let refused = match address.state {
            State::Refused(reason) => Some(reason),
            _ => None,
        };
        if refused.is_some() && !self.has_room_to_refuse(batch, offer)? {
            events::refused(offer.url, &State::Refused(Reason::HostSize));
            return Ok(Offered::Refused(Reason::HostSize));
        }
        self.recount(None, &address.state);
        self.known.note_page(batch, offer.url.as_str())?;
        events::refused(offer.url, &address.state);
        if let Some(reason) = refused {
            if reason.is_of_filter() {
                self.count_kept_out(offer.url, address.place);
            }
            batch.put(ADDRESSES, offer.url.as_str(), &address)?;
            return Ok(Offered::Refused(reason));
        }
        let host_key = offer.url.host_key();
        if by == By::Feed {
            let host = self.hosts.number(batch, &host_key)?;
            self.hosts.get(batch, host)?.row.feeds += 1;
        }
        let from = offer.from.map(PageUrl::host_key).filter(|_| by == By::Link);
        if let Some(from) = from.filter(|from| *from != host_key) {
            let from = self.hosts.number(batch, &from)?;
            add_link(batch, offer.url.hash64(), from, &mut address)?;
        }
        self.enqueue(batch, offer.url, &mut address)?;
        self.count_link(batch, offer.url, &address)?;
        Ok(Offered::Queued)
    }

    /// Moves a known URL forward if the offer is better, or lets it in after all.
    fn improve(
        &mut self,
        batch: &mut Batch,
        offer: &Offer<'_>,
        address: &mut Address,
    ) -> Result<bool, Error> {
        let had_room = address.host != 0
            && matches!(address.state, State::Refused(reason) if reason.is_of_filter());
        let is_new = !address.state.is_in() && !had_room;
        let better = (offer.rank, offer.depth) < (address.place.rank, address.place.depth);
        match address.state {
            // It waits for another visit as a sitemap.
            State::Refused(_) if address.revisit.waits => return Ok(false),
            State::Refused(reason) if reason.before_visit() => {
                unplan(batch, offer.url.as_str(), address)?;
                let was = std::mem::replace(&mut address.state, State::Queued);
                self.recount(Some(&was), &State::Queued);
            }
            State::Queued if is_sitemap_in_queue(address) => return Ok(false),
            State::Queued if better && address.not_before.0 == 0 => {
                if self.hosts.get(batch, address.host)?.in_flight.contains(&address.place) {
                    return Ok(false);
                }
                self.unqueue(batch, address.host, address.place)?;
            }
            _ => return Ok(false),
        }
        address.place = offer.place();
        address.hops = offer.hops;
        self.enqueue(batch, offer.url, address)?;
        if is_new {
            self.count_link(batch, offer.url, address)?;
        }
        Ok(true)
    }

    /// Puts a URL at the end of its rank and depth in the queue of its host.
    pub(super) fn enqueue(
        &mut self,
        batch: &mut Batch,
        url: &PageUrl,
        address: &mut Address,
    ) -> Result<(), Error> {
        address.host = self.hosts.number(batch, &url.host_key())?;
        address.place.sequence = batch.next_number("next_request")?;
        batch.put(ADDRESSES, url.as_str(), address)?;
        let purpose = address.place.rank.purpose();
        let request = Request { purpose, url: url.as_str().to_owned() };
        self.push(batch, address.host, address.place, &request)
    }

    /// Puts a request in the queue of a host and the host in the schedule.
    pub(super) fn push(
        &mut self,
        batch: &mut Batch,
        host: u32,
        place: QueuePlace,
        request: &Request,
    ) -> Result<(), Error> {
        batch.put(QUEUE, (host, place), request)?;
        let live = self.hosts.get(batch, host)?;
        live.row.queued += 1;
        live.row.queued_bytes = live.row.queued_bytes.map(|bytes| bytes + request.size());
        live.dirty = true;
        self.queued += 1;
        self.reschedule(batch, host)
    }
}

/// Counts a linking host once. Returns whether it is new.
fn add_link(batch: &mut Batch, hash: u64, from: u32, address: &mut Address) -> Result<bool, Error> {
    let new = batch.replace(INLINKS, (hash, from), &())?.is_none();
    address.links += u64::from(new);
    Ok(new)
}
