//! Sitemaps and feeds: who names a sitemap, when it is asked for, whose addresses it may offer.
//!
//! Which sitemaps: those that the robots.txt of a host in scope names, wherever they lie; the
//! usual place `/sitemap.xml` if it names none; those that an index names, on the site of the
//! index or of a host whose robots.txt names it. Whose addresses: those of the site (registrable
//! domain) of the sitemap and of the hosts whose robots.txt names it or an index above it.

use std::collections::HashMap;

use redb::ReadableTable;

use crate::base::clock::Timestamp;
use crate::store::{BadRow, Decoder, Encoder, Error, Tables};
use crate::urls::{HostKey, Normalize, PageUrl, registrable_domain};
use crate::web::discover::{Cut, Faults, Kind};

use super::again::unplan;
use super::offer::By;
use super::rows::{Address, Place, Purpose, Rank, Request, State, queue_key};
use super::{Frontier, Lease, Offer, Offered, Reason, Settled, Settlement, Told};

/// Sitemaps of a host that are read before its links are visited. Each further one is read when
/// nothing else of the host waits, so that a thousand sitemaps do not hold up the first page.
const FIRST_SITEMAPS: u32 = 8;

/// Hosts that are remembered as naming one sitemap.
const NAMING_HOSTS_MAX: usize = 64;

/// What is known of a sitemap or feed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// What it is; none if it was not read yet, or is no list.
    pub kind: Option<Kind>,
    /// Indexes above it.
    pub level: u8,
    /// Numbers of the hosts whose robots.txt names it, or an index above it.
    pub hosts: Vec<u32>,
    /// When it was last read.
    pub read: Timestamp,
    /// Its entries.
    pub entries: u64,
    /// Entries that were put in a queue.
    pub queued: u64,
    /// Entries that were turned away, each with its reason.
    pub refused: u64,
    /// Those among them that it must not name.
    pub strangers: u64,
    /// Entries that are no address.
    pub bad: u64,
    /// Faults after which it was read on.
    pub faults: Faults,
    /// Why it was not read to its end.
    pub cut: Option<Cut>,
    /// A page links to it while it waits: depth of the link and 1; 0 for none.
    pub linked: u16,
    /// It was let into a queue.
    pub admitted: bool,
}

/// What was read of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What it is.
    pub kind: Kind,
    /// What it names: sitemaps, if it is an index, else pages.
    pub entries: Vec<PageUrl>,
    /// Entries that are no address.
    pub bad: u64,
    /// Faults after which it was read on.
    pub faults: Faults,
    /// Why it was not read to its end.
    pub cut: Option<Cut>,
    /// It asks that its links are not followed.
    pub nofollow: bool,
}

/// Who names a sitemap.
struct Naming<'a> {
    level: u8,
    hosts: &'a [u32],
    hops: u8,
    from: &'a PageUrl,
}

impl List {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut row = Encoder::new(2)
            .number(self.kind.map_or(0, |kind| kind as u64))
            .number(self.level)
            .number(self.hosts.len() as u64);
        for host in &self.hosts {
            row = row.number(*host);
        }
        row = row
            .signed(self.read.0)
            .number(self.entries)
            .number(self.queued)
            .number(self.refused)
            .number(self.strangers)
            .number(self.bad)
            .number(self.cut.map_or(0, |cut| cut as u64))
            .number(self.linked)
            .number(self.admitted);
        self.faults.0.into_iter().fold(row, Encoder::number).finish()
    }

    /// Reads a row. Those of version 1 have no faults.
    pub fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::of("list", 1..=2, row)?;
        let (kind, level) = (Kind::from_code(row.number()?), row.narrow()?);
        let hosts: usize = row.narrow()?;
        if hosts > NAMING_HOSTS_MAX {
            return Err(row.bad("too many hosts name it"));
        }
        let mut list = Self {
            kind,
            level,
            hosts: (0..hosts).map(|_| row.narrow()).collect::<Result<_, _>>()?,
            read: Timestamp(row.signed()?),
            entries: row.number()?,
            queued: row.number()?,
            refused: row.number()?,
            strangers: row.number()?,
            bad: row.number()?,
            cut: Cut::from_code(row.number()?),
            linked: row.narrow()?,
            admitted: row.number()? != 0,
            faults: Faults::default(),
        };
        if row.version() >= 2 {
            for count in &mut list.faults.0 {
                *count = row.number()?;
            }
        }
        Ok(list)
    }

    /// Reads what is known of a list.
    pub fn read(
        lists: &impl ReadableTable<&'static str, &'static [u8]>,
        url: &str,
    ) -> Result<Option<Self>, Error> {
        let row = lists.get(url)?;
        Ok(row.map(|row| Self::decode(row.value())).transpose()?)
    }

    fn write(&self, tables: &mut Tables<'_>, url: &PageUrl) -> Result<(), Error> {
        tables.lists.insert(url.as_str(), self.encode().as_slice())?;
        Ok(())
    }
}

impl Frontier {
    /// Offers the sitemaps that the robots.txt of a host names, or the usual place.
    pub(super) fn offer_sitemaps(
        &mut self,
        tables: &mut Tables<'_>,
        of: u32,
        named: &[String],
        now: Timestamp,
    ) -> Result<(), Error> {
        let key = HostKey::from_stored(&self.hosts.get(tables, of)?.row.key);
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
                self.offer_sitemap(tables, &url, &naming, now)?;
            }
        }
        for text in named.iter().take(most) {
            let Ok(url) = robots.join(text.trim(), Normalize::none()) else { continue };
            let naming = Naming { level: 0, hosts: &[of], hops: 0, from: &robots };
            self.offer_sitemap(tables, &url, &naming, now)?;
        }
        Ok(())
    }

    /// Offers an address as a sitemap. What waits as a page stays one, unless its name says that
    /// it is a file: a page that turns out to be a list is read as one all the same.
    fn offer_sitemap(
        &mut self,
        tables: &mut Tables<'_>,
        url: &PageUrl,
        naming: &Naming<'_>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let known = List::read(&tables.lists, url.as_str())?;
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
        let (mut address, was) = match Address::read(&tables.addresses, url.as_str())? {
            Some(mut address) => {
                let wanted = match &address.state {
                    State::Queued => {
                        !is_sitemap_in_queue(&address)
                            && is_file(url)
                            && self.take_out(tables, &address)?
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
                    return list.write(tables, url);
                }
                unplan(tables, url.as_str(), &mut address)?;
                let was = address.state.clone();
                (address, Some(was))
            }
            None => (Address::found(now, naming.from.as_str()), None),
        };
        address.hops = naming.hops;
        let host = self.hosts.number(tables, &url.host_key())?;
        let refused = self.turn_sitemap_away(url, &list, naming);
        let sitemaps = self.hosts.get(tables, host)?.row.sitemaps;
        let full = !list.admitted && sitemaps >= self.config.discover.sitemaps_per_host_max;
        let refused = refused.or(full.then_some(Reason::SitemapLimit));
        address.state = refused.map_or(State::Queued, State::Refused);
        self.recount(was.as_ref(), &address.state);
        if refused.is_none() {
            let live = self.hosts.get(tables, host)?;
            live.row.sitemaps += u32::from(!list.admitted);
            list.admitted = true;
            let early = live.row.sitemaps <= FIRST_SITEMAPS;
            let rank = if early { Rank::Sitemap } else { Rank::LateSitemap };
            let sequence = tables.next_number("next_request")?;
            address.host = host;
            address.place = Place { rank, depth: u16::from(list.level), sequence };
            (address.failures, address.trouble) = (0, None);
            let request = Request { purpose: Purpose::Sitemap, url: url.as_str().to_owned() };
            self.push(tables, host, address.place, &request)?;
        }
        tables.addresses.insert(url.as_str(), address.encode().as_slice())?;
        list.write(tables, url)
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
    fn take_out(&mut self, tables: &mut Tables<'_>, address: &Address) -> Result<bool, Error> {
        let (host, place) = (address.host, address.place);
        let waits = tables.queue.get(queue_key(host, place).as_slice())?.is_some();
        if !waits || self.hosts.get(tables, host)?.in_flight.contains(&place) {
            return Ok(false);
        }
        self.unqueue(tables, host, place)?;
        Ok(true)
    }

    /// Offers the target of a sitemap that redirects.
    pub(super) fn sitemap_moved(
        &mut self,
        tables: &mut Tables<'_>,
        (from, target): (&PageUrl, &PageUrl),
        hops: u8,
        now: Timestamp,
    ) -> Result<(), Error> {
        let list = List::read(&tables.lists, from.as_str())?.unwrap_or_default();
        let (level, hosts) = (list.level, &list.hosts);
        let naming = Naming { level, hosts, hops: hops.saturating_add(1), from };
        self.offer_sitemap(tables, target, &naming, now)
    }

    /// Offers an address that waited as a sitemap, is none, and is linked to as a page.
    pub(super) fn offer_as_page(
        &mut self,
        tables: &mut Tables<'_>,
        url: &PageUrl,
        now: Timestamp,
    ) -> Result<(), Error> {
        let linked = List::read(&tables.lists, url.as_str())?.map_or(0, |list| list.linked);
        if let Some(depth) = linked.checked_sub(1) {
            let rank = if depth == 0 { Rank::Seed } else { Rank::Link };
            let offer = Offer { url, depth, rank, hops: 0, from: None, nofollow: false };
            self.offer_by(tables, &offer, By::Entry, now)?;
        }
        Ok(())
    }

    /// Offers a feed that a page links to.
    pub fn offer_feed(
        &mut self,
        tables: &mut Tables<'_>,
        offer: &Offer<'_>,
        now: Timestamp,
    ) -> Result<(), Error> {
        if self.config.discover.feeds {
            self.offer_by(tables, offer, By::Feed, now)?;
        }
        Ok(())
    }

    /// Settles a lease whose answer is a list, and offers what it names.
    pub fn settle_list(
        &mut self,
        tables: &mut Tables<'_>,
        lease: &Lease,
        (found, mut told): (&Listed, Told),
        finished: Timestamp,
    ) -> Result<Settled, Error> {
        let is_feed = found.kind.is_feed();
        let reason = if is_feed { Reason::Feed } else { Reason::Sitemap };
        let mut list = List::read(&tables.lists, lease.url.as_str())?.unwrap_or_default();
        told.changed = list.kind.is_some() && names_new(tables, &found.entries)?;
        let settled = self.settle(tables, lease, (Settlement::Refused(reason), told), finished)?;
        list.kind = Some(found.kind);
        list.read = finished;
        list.entries = found.entries.len() as u64;
        (list.bad, list.faults, list.cut) = (found.bad, found.faults, found.cut);
        (list.queued, list.refused, list.strangers) = (0, 0, 0);
        // Before its entries: it may name itself.
        list.write(tables, &lease.url)?;
        let config = &self.config.discover;
        if if is_feed { config.feeds } else { config.sitemaps } {
            let depth = lease.place.map_or(1, |place| place.depth.max(1));
            let depth = if is_feed { depth } else { 1 };
            self.offer_entries(tables, (&lease.url, found, depth), &mut list, finished)?;
            list.write(tables, &lease.url)?;
        }
        Ok(settled)
    }

    fn offer_entries(
        &mut self,
        tables: &mut Tables<'_>,
        (from, found, depth): (&PageUrl, &Listed, u16),
        list: &mut List,
        now: Timestamp,
    ) -> Result<(), Error> {
        let site = registrable_domain(from);
        let mut hosts: HashMap<HostKey, bool> = HashMap::new();
        for url in &found.entries {
            let key = url.host_key();
            let may = if let Some(may) = hosts.get(&key) {
                *may
            } else {
                let number = tables.host_numbers.get(key.as_str())?.map(|row| row.value());
                let named = number.is_some_and(|number| list.hosts.contains(&number));
                let may = named || found.kind.is_feed() || registrable_domain(url) == site;
                hosts.insert(key, may);
                may
            };
            list.strangers += u64::from(!may);
            if found.kind == Kind::Index && may {
                let level = list.level.saturating_add(1);
                let naming = Naming { level, hosts: &list.hosts, hops: 0, from };
                self.offer_sitemap(tables, url, &naming, now)?;
                continue;
            }
            let by = if may { By::Entry } else { By::Stranger };
            let nofollow = found.nofollow;
            let offer = Offer { url, depth, rank: Rank::Link, hops: 0, from: Some(from), nofollow };
            match self.offer_by(tables, &offer, by, now)? {
                Offered::Queued => list.queued += 1,
                Offered::Refused(_) => list.refused += 1,
                Offered::Known | Offered::MoreLinks { .. } => {}
            }
        }
        Ok(())
    }
}

/// Tells whether one of these addresses was never seen.
fn names_new(tables: &Tables<'_>, entries: &[PageUrl]) -> Result<bool, Error> {
    for url in entries {
        if tables.addresses.get(url.as_str())?.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tells whether an address waits as a sitemap.
pub(super) fn is_sitemap_in_queue(address: &Address) -> bool {
    address.state == State::Queued && address.place.rank.is_sitemap()
}

/// Notes that a page links to what waits as a sitemap: if it is none, it is a page.
pub(super) fn want_as_page(tables: &mut Tables<'_>, offer: &Offer<'_>) -> Result<(), Error> {
    if let Some(mut list) = List::read(&tables.lists, offer.url.as_str())? {
        let depth = offer.depth.saturating_add(1);
        list.linked = if list.linked == 0 { depth } else { list.linked.min(depth) };
        list.write(tables, offer.url)?;
    }
    Ok(())
}

/// Gives the right reason to a sitemap that there is not.
pub(super) fn named_sitemap(
    tables: &Tables<'_>,
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
    let list = List::read(&tables.lists, lease.url.as_str())?.unwrap_or_default();
    let nobody = list.hosts.is_empty() && list.level == 0;
    Ok(if nobody { Settlement::Refused(Reason::NoSitemap) } else { settlement })
}

/// Tells whether an address looks like that of a file of a list, and not of a page.
fn is_file(url: &PageUrl) -> bool {
    let path = url.url().path().to_ascii_lowercase();
    [".xml", ".gz", ".txt"].iter().any(|ending| path.ends_with(ending))
}
