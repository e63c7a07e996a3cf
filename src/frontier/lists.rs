//! Sitemaps and feeds: who names a sitemap, when it is asked for, whose URLs it may offer.
//!
//! Which sitemaps: those that the robots.txt of a host in scope names, wherever they lie; the
//! usual place `/sitemap.xml` if it names none; those that an index names, on the site of the
//! index or of a host whose robots.txt names it. Whose addresses: those of the site (registrable
//! domain) of the sitemap and of the hosts whose robots.txt names it or an index above it.

use std::collections::HashMap;

use crate::base::clock::Timestamp;
use crate::store::{
    self, BadRow, Batch, Code, Codec, Decoder, Encoder, Error, Flag, Number, Signed, Update as _,
    View as _, row,
};
use crate::urls::{HostKey, Normalize, PageUrl, registrable_domain};
use crate::web::discover::{Faults, ListCut, ListKind};

use super::again::unplan;
use super::offer::By;
use super::rows::{Address, Purpose, QueuePlace, Rank, Request, State};
use super::tables::{ADDRESSES, HOST_NUMBERS, LISTS, QUEUE};
use super::{Frontier, Lease, Offer, Offered, Reason, Settled, Settlement, Visited};

/// Sitemaps of a host that are read before its links are visited. Each further one is read when
/// nothing else of the host waits, so that a thousand sitemaps do not hold up the first page.
const FIRST_SITEMAPS: u32 = 8;

/// Hosts that are remembered as naming one sitemap.
const NAMING_HOSTS_MAX: usize = 64;

row! {
    /// What is known of a sitemap or feed.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct List: "list", 1 to 2 {
        /// What it is; none if it was not read yet, or is no list.
        pub kind: Option<ListKind> = Code;
        /// Indexes above it.
        pub level: u8 = Number;
        /// Numbers of the hosts whose robots.txt names it, or an index above it.
        pub hosts: Vec<u32> = store::List<Number>;
        /// When it was last read.
        pub read: Timestamp = Signed;
        /// Its entries.
        pub entries: u64 = Number;
        /// Entries that were put in a queue.
        pub queued: u64 = Number;
        /// Entries that were turned away, each with its reason.
        pub refused: u64 = Number;
        /// Those among them that it must not name.
        pub strangers: u64 = Number;
        /// Entries that are no URL.
        pub bad: u64 = Number;
        /// Why it was not read to its end.
        pub cut: Option<ListCut> = Code;
        /// A page links to it while it waits: depth of the link and 1; 0 for none.
        pub linked: u16 = Number;
        /// It was let into a queue.
        pub admitted: bool = Flag;
        /// Faults after which it was read on.
        pub faults: Faults = Each, since 2;
    }
}

/// A number for each kind of faults.
struct Each;

impl Codec<Faults> for Each {
    const SHAPE: &'static str = "numbers";

    fn put(faults: &Faults, row: Encoder) -> Encoder {
        faults.0.into_iter().fold(row, Encoder::number)
    }

    fn take(row: &mut Decoder<'_>) -> Result<Faults, BadRow> {
        let mut faults = Faults::default();
        for count in &mut faults.0 {
            *count = row.number()?;
        }
        Ok(faults)
    }
}

/// What was read of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What it is.
    pub kind: ListKind,
    /// What it names: sitemaps, if it is an index, else pages.
    pub entries: Vec<PageUrl>,
    /// Entries that are no URL.
    pub bad: u64,
    /// Faults after which it was read on.
    pub faults: Faults,
    /// Why it was not read to its end.
    pub cut: Option<ListCut>,
    /// It asks that its links are not followed.
    pub nofollow: bool,
}

/// Who names a sitemap.
pub(super) struct Naming<'a> {
    pub level: u8,
    pub hosts: &'a [u32],
    pub hops: u8,
    pub from: &'a PageUrl,
}

impl Frontier {
    /// Offers the sitemaps that the robots.txt of a host names, or the usual place.
    pub(super) fn offer_sitemaps(
        &mut self,
        batch: &mut Batch,
        of: u32,
        named: &[String],
        now: Timestamp,
    ) -> Result<(), Error> {
        let key = HostKey::from_stored(&self.hosts.get(batch, of)?.row.key);
        let robots = key.robots_url();
        let config = &self.config.discover;
        // Without depth, no entry would be let in.
        if !config.sitemaps || self.config.depth_max == 0 || !self.scope.has_host(&robots) {
            return Ok(());
        }
        let (usual, most) = (config.usual_place, config.sitemaps_per_host_max as usize);
        if named.is_empty() && usual {
            let naming = Naming { level: 0, hosts: &[], hops: 0, from: &robots };
            if let Ok(url) = robots.join("/sitemap.xml", Normalize::none()) {
                self.offer_sitemap(batch, &url, &naming, now)?;
            }
        }
        for text in named.iter().take(most) {
            let Ok(url) = robots.join(text.trim(), Normalize::none()) else { continue };
            let naming = Naming { level: 0, hosts: &[of], hops: 0, from: &robots };
            self.offer_sitemap(batch, &url, &naming, now)?;
        }
        Ok(())
    }

    /// Offers a URL as a sitemap. What waits as a page stays one, unless its name says that
    /// it is a file: a page that turns out to be a list is read as one all the same.
    pub(super) fn offer_sitemap(
        &mut self,
        batch: &mut Batch,
        url: &PageUrl,
        naming: &Naming<'_>,
        now: Timestamp,
    ) -> Result<(), Error> {
        if self.is_elsewhere(url) {
            return self.send_sitemap(batch, url, naming);
        }
        let known = batch.get(LISTS, url.as_str())?;
        let first = known.is_none();
        let mut list = known.unwrap_or(List { level: naming.level, ..List::default() });
        list.level = list.level.min(naming.level);
        let before = list.hosts.len();
        for host in naming.hosts {
            if !list.hosts.contains(host) && list.hosts.len() < NAMING_HOSTS_MAX {
                list.hosts.push(*host);
            }
        }
        let more_hosts = list.hosts.len() > before;
        let again = self.config.discover.again_after.duration();
        let is_old = !again.is_zero() && now >= list.read.after(again);
        let (mut address, was) = match batch.get(ADDRESSES, url.as_str())? {
            Some(mut address) => {
                let wanted = match &address.state {
                    State::Queued => {
                        !is_sitemap_in_queue(&address)
                            && is_file(url)
                            && self.take_out(batch, &address)?
                    }
                    State::Refused(Reason::Sitemap) => is_old || more_hosts && list.strangers > 0,
                    // A place that nobody named is asked for once.
                    State::Refused(Reason::NoSitemap) => more_hosts,
                    State::Refused(reason) if *reason != Reason::NotASitemap => {
                        first || reason.before_visit()
                    }
                    State::Redirect(_) => first,
                    State::Refused(_)
                    | State::Stored(_)
                    | State::Skipped { .. }
                    | State::Known { .. } => false,
                };
                if !wanted || address.revisit.waits {
                    return batch.put(LISTS, url.as_str(), &list);
                }
                unplan(batch, url.as_str(), &mut address)?;
                let was = address.state.clone();
                (address, Some(was))
            }
            None => (Address::found(now, naming.from.as_str()), None),
        };
        address.hops = naming.hops;
        let host = self.hosts.number(batch, &url.host_key())?;
        let refused = self.turn_sitemap_away(url, &list, naming);
        let sitemaps = self.hosts.get(batch, host)?.row.sitemaps;
        let full = !list.admitted && sitemaps >= self.config.discover.sitemaps_per_host_max;
        let refused = refused.or(full.then_some(Reason::SitemapLimit));
        address.state = refused.map_or(State::Queued, State::Refused);
        self.recount(was.as_ref(), &address.state);
        if refused.is_none() {
            let live = self.hosts.get(batch, host)?;
            live.row.sitemaps += u32::from(!list.admitted);
            list.admitted = true;
            let early = live.row.sitemaps <= FIRST_SITEMAPS;
            let rank = if early { Rank::Sitemap } else { Rank::LateSitemap };
            let sequence = batch.next_number("next_request")?;
            address.host = host;
            address.place = QueuePlace { rank, depth: u16::from(list.level), sequence };
            (address.failures, address.trouble) = (0, None);
            let request = Request { purpose: Purpose::Sitemap, url: url.as_str().to_owned() };
            self.push(batch, host, address.place, &request)?;
        }
        batch.put(ADDRESSES, url.as_str(), &address)?;
        batch.put(LISTS, url.as_str(), &list)
    }

    fn turn_sitemap_away(&self, url: &PageUrl, list: &List, naming: &Naming<'_>) -> Option<Reason> {
        if url.as_str().len() > self.config.shape.url_length_max {
            return Some(Reason::UrlTooLong);
        }
        if naming.hops > self.config.redirects_max {
            return Some(Reason::TooManyRedirects);
        }
        (list.level > self.config.discover.index_depth_max).then_some(Reason::SitemapDepth)
    }

    /// Takes a page that is not in flight out of its queue. Returns whether it was there.
    fn take_out(&mut self, batch: &mut Batch, address: &Address) -> Result<bool, Error> {
        let (host, place) = (address.host, address.place);
        let waits = batch.has(QUEUE, (host, place))?;
        if !waits || self.hosts.get(batch, host)?.in_flight.contains(&place) {
            return Ok(false);
        }
        self.unqueue(batch, host, place)?;
        Ok(true)
    }

    /// Offers the target of a sitemap that redirects.
    pub(super) fn sitemap_moved(
        &mut self,
        batch: &mut Batch,
        from: &PageUrl,
        target: &Offer<'_>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let list = batch.get(LISTS, from.as_str())?.unwrap_or_default();
        let (level, hosts) = (list.level, &list.hosts);
        let naming = Naming { level, hosts, hops: target.hops, from };
        self.offer_sitemap(batch, target.url, &naming, now)
    }

    /// Offers a URL that waited as a sitemap, is none, and is linked to as a page.
    pub(super) fn offer_as_page(
        &mut self,
        batch: &mut Batch,
        url: &PageUrl,
        now: Timestamp,
    ) -> Result<(), Error> {
        let linked = batch.get(LISTS, url.as_str())?.map_or(0, |list| list.linked);
        if let Some(depth) = linked.checked_sub(1) {
            let rank = if depth == 0 { Rank::Seed } else { Rank::Link };
            let offer = Offer { url, depth, rank, hops: 0, from: None, nofollow: false };
            self.offer_by(batch, &offer, By::Entry, now)?;
        }
        Ok(())
    }

    /// Offers a feed that a page links to.
    pub fn offer_feed(
        &mut self,
        batch: &mut Batch,
        offer: &Offer<'_>,
        now: Timestamp,
    ) -> Result<(), Error> {
        if self.config.discover.feeds {
            self.offer_by(batch, offer, By::Feed, now)?;
        }
        Ok(())
    }

    /// Settles a lease whose answer is a list, and offers what it names.
    pub fn settle_list(
        &mut self,
        batch: &mut Batch,
        mut visited: Visited<'_>,
        found: &Listed,
    ) -> Result<Settled, Error> {
        let lease = visited.lease;
        let is_feed = found.kind.is_feed();
        let reason = if is_feed { Reason::Feed } else { Reason::Sitemap };
        let mut list = batch.get(LISTS, lease.url.as_str())?.unwrap_or_default();
        visited.told.changed = list.kind.is_some() && names_new(batch, &found.entries)?;
        let finished = visited.told.finished;
        let settled = self.settle(batch, visited, Settlement::Refused(reason))?;
        list.kind = Some(found.kind);
        list.read = finished;
        list.entries = found.entries.len() as u64;
        (list.bad, list.faults, list.cut) = (found.bad, found.faults, found.cut);
        (list.queued, list.refused, list.strangers) = (0, 0, 0);
        // Before its entries: it may name itself.
        batch.put(LISTS, lease.url.as_str(), &list)?;
        let config = &self.config.discover;
        if if is_feed { config.feeds } else { config.sitemaps } {
            self.offer_entries(batch, lease, found, &mut list)?;
            batch.put(LISTS, lease.url.as_str(), &list)?;
        }
        Ok(settled)
    }

    /// Offers what a list names that was read just now.
    fn offer_entries(
        &mut self,
        batch: &mut Batch,
        lease: &Lease,
        found: &Listed,
        list: &mut List,
    ) -> Result<(), Error> {
        let (from, now) = (&lease.url, list.read);
        let depth = lease.place.filter(|_| found.kind.is_feed());
        let depth = depth.map_or(1, |place| place.depth.max(1));
        let site = registrable_domain(from);
        let mut hosts: HashMap<HostKey, bool> = HashMap::new();
        for url in &found.entries {
            let key = url.host_key();
            let may = if let Some(may) = hosts.get(&key) {
                *may
            } else {
                let number = batch.get(HOST_NUMBERS, key.as_str())?;
                let named = number.is_some_and(|number| list.hosts.contains(&number));
                let may = named || found.kind.is_feed() || registrable_domain(url) == site;
                hosts.insert(key, may);
                may
            };
            list.strangers += u64::from(!may);
            if found.kind == ListKind::Index && may {
                let level = list.level.saturating_add(1);
                let naming = Naming { level, hosts: &list.hosts, hops: 0, from };
                self.offer_sitemap(batch, url, &naming, now)?;
                continue;
            }
            let by = if may { By::Entry } else { By::Stranger };
            let nofollow = found.nofollow;
            let offer = Offer { url, depth, rank: Rank::Link, hops: 0, from: Some(from), nofollow };
            match self.offer_by(batch, &offer, by, now)? {
                Offered::Queued => list.queued += 1,
                Offered::Refused(_) => list.refused += 1,
                Offered::Known | Offered::MoreLinks { .. } => {}
            }
        }
        Ok(())
    }
}

/// Tells whether one of these URLs was never seen.
fn names_new(batch: &Batch, entries: &[PageUrl]) -> Result<bool, Error> {
    for url in entries {
        if !batch.has(ADDRESSES, url.as_str())? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tells whether a URL waits as a sitemap.
pub(super) fn is_sitemap_in_queue(address: &Address) -> bool {
    address.state == State::Queued && address.place.rank.is_sitemap()
}

/// Notes that a page links to what waits as a sitemap: if it is none, it is a page.
pub(super) fn want_as_page(batch: &mut Batch, offer: &Offer<'_>) -> Result<(), Error> {
    if let Some(mut list) = batch.get(LISTS, offer.url.as_str())? {
        let depth = offer.depth.saturating_add(1);
        list.linked = if list.linked == 0 { depth } else { list.linked.min(depth) };
        batch.put(LISTS, offer.url.as_str(), &list)?;
    }
    Ok(())
}

/// Gives the right reason to a sitemap that there is not.
pub(super) fn named_sitemap(
    batch: &Batch,
    lease: &Lease,
    settlement: Settlement,
) -> Result<Settlement, Error> {
    use Reason::{BadRedirect, HttpError, NotAPage, NotASitemap, OtherStatus};
    let none = matches!(
        settlement,
        Settlement::Refused(HttpError | NotAPage | NotASitemap | BadRedirect | OtherStatus)
    );
    if lease.purpose != Purpose::Sitemap || !none {
        return Ok(settlement);
    }
    let list = batch.get(LISTS, lease.url.as_str())?.unwrap_or_default();
    let nobody = list.hosts.is_empty() && list.level == 0;
    Ok(if nobody { Settlement::Refused(Reason::NoSitemap) } else { settlement })
}

/// Tells whether a URL looks like that of a file of a list, and not of a page.
fn is_file(url: &PageUrl) -> bool {
    let path = url.url().path().to_ascii_lowercase();
    [".xml", ".gz", ".txt"].iter().any(|ending| path.ends_with(ending))
}
