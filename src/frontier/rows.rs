//! The rows of addresses, hosts and queued requests. The order of the fields in `encode` is the
//! stored order; docs/src/reference/store-format.md draws them.

use std::net::IpAddr;

use redb::{ReadableTable, Table};

use crate::base::clock::Timestamp;
use crate::store::{BadRow, Decoder, Encoder, Error};
use crate::urls::HostKey;

use super::{PageCut, Reason, Revisit};

/// Where an address stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It waits for its first visit, or for another try.
    Queued,
    /// Its page is stored: number of the document.
    Stored(u64),
    /// It redirects to this address.
    Redirect(String),
    /// It is not in the corpus, and why.
    Refused(Reason),
    /// It is not fetched, because by a rule it is the page at another address.
    Skipped {
        /// Number of the rule.
        rule: u64,
        /// The other address.
        of: String,
    },
    /// It is not fetched, because by a feed it is a copy of the page at another address.
    Known {
        /// Number of the feed.
        feed: u64,
        /// The other address, which is stored or waits for its first visit.
        of: String,
    },
}

/// What is known of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Where it stands.
    pub state: State,
    /// Number of its host; 0 while it was never queued.
    pub host: u32,
    /// Its place in the queue of its host.
    pub place: Place,
    /// Redirects that led to it.
    pub hops: u8,
    /// Tries that failed in a row.
    pub failures: u8,
    /// Distinct hosts that link to it.
    pub links: u64,
    /// Status of the last answer; 0 for none.
    pub status: u16,
    /// Why the last try failed, while another one is due.
    pub trouble: Option<Reason>,
    /// When it was first seen.
    pub discovered: Timestamp,
    /// When it was last visited; 0 for never.
    pub visited: Timestamp,
    /// It may not be visited again before this moment; 0 for no such moment.
    pub not_before: Timestamp,
    /// The page on which it was first seen; empty for a seed.
    pub referrer: String,
    /// Answers that said "busy"; they do not count as failed tries.
    pub busy: u8,
    /// Why only the start of its page was read, if that is so.
    pub cut: Option<PageCut>,
    /// Its further visits.
    pub revisit: Revisit,
    /// Links of its page that were beyond the limit, and not followed.
    pub links_beyond: u64,
}

/// Order in the queue of a host: the smaller place is served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Kind of request; see [`Rank`].
    pub rank: Rank,
    /// Links between a seed and the address.
    pub depth: u16,
    /// Order of arrival.
    pub sequence: u64,
}

/// What goes before what in the queue of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A robots.txt that another host redirects to.
    Robots = 0,
    /// The target of a redirect, or another try.
    Redirect = 1,
    /// A seed.
    Seed = 2,
    /// One of the first sitemaps of a host.
    Sitemap = 3,
    /// A link.
    Link = 4,
    /// A further sitemap: read when the addresses of those before it were visited.
    LateSitemap = 5,
    /// A link of a kind that has given nothing new for long.
    Slow = 6,
}

impl Rank {
    /// Returns what a page, or a sitemap, of this rank is asked for as.
    pub(super) fn purpose(self) -> Purpose {
        if self.is_sitemap() { Purpose::Sitemap } else { Purpose::Page }
    }

    pub(super) fn is_sitemap(self) -> bool {
        matches!(self, Self::Sitemap | Self::LateSitemap)
    }

    fn from_code(code: u8) -> Option<Self> {
        const ALL: [Rank; 7] = [
            Rank::Robots,
            Rank::Redirect,
            Rank::Seed,
            Rank::Sitemap,
            Rank::Link,
            Rank::LateSitemap,
            Rank::Slow,
        ];
        ALL.get(usize::from(code)).copied()
    }
}

impl Address {
    /// An address that was found just now, on a page or in a list.
    pub(super) fn found(now: Timestamp, referrer: &str) -> Self {
        Self {
            state: State::Queued,
            host: 0,
            place: Place { rank: Rank::Link, depth: 0, sequence: 0 },
            hops: 0,
            failures: 0,
            links: 0,
            status: 0,
            trouble: None,
            discovered: now,
            visited: Timestamp(0),
            not_before: Timestamp(0),
            referrer: referrer.to_owned(),
            busy: 0,
            cut: None,
            revisit: Revisit::default(),
            links_beyond: 0,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let (state, number, text) = match &self.state {
            State::Queued => (0u8, 0, ""),
            State::Stored(document) => (1, *document, ""),
            State::Redirect(target) => (2, 0, target.as_str()),
            State::Refused(reason) => (3, *reason as u64, ""),
            State::Skipped { rule, of } => (4, *rule, of.as_str()),
            State::Known { feed, of } => (5, *feed, of.as_str()),
        };
        let row = Encoder::new(1)
            .number(state)
            .number(number)
            .text(text)
            .number(self.host)
            .number(self.place.rank as u64)
            .number(self.place.depth)
            .number(self.place.sequence)
            .number(self.hops)
            .number(self.failures)
            .number(self.links)
            .number(self.status)
            .number(self.trouble.map_or(0, |reason| reason as u64))
            .signed(self.discovered.0)
            .signed(self.visited.0)
            .signed(self.not_before.0)
            .text(&self.referrer)
            .number(self.busy)
            .number(self.cut.map_or(0, |cut| cut as u64));
        self.revisit.encode(row).number(self.links_beyond).finish()
    }

    /// Reads what is known of an address.
    pub fn read(
        addresses: &impl ReadableTable<&'static str, &'static [u8]>,
        url: &str,
    ) -> Result<Option<Self>, Error> {
        let row = addresses.get(url)?;
        Ok(row.map(|row| Self::decode(row.value())).transpose()?)
    }

    /// Notes that the page at an address belongs to another document now, if it is stored: an
    /// address that leads elsewhere by now, or is refused, may carry what was sent to the service.
    pub fn set_document(
        addresses: &mut Table<&'static str, &'static [u8]>,
        url: &str,
        document: u64,
    ) -> Result<(), Error> {
        if let Some(mut address) = Self::read(addresses, url)?
            && matches!(address.state, State::Stored(_))
        {
            address.state = State::Stored(document);
            addresses.insert(url, address.encode().as_slice())?;
        }
        Ok(())
    }

    /// Reads a row.
    pub fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::new("address", 1, row)?;
        let (state, number, text) = (row.number()?, row.number()?, row.text()?);
        let state = match state {
            0 => State::Queued,
            1 => State::Stored(number),
            2 => State::Redirect(text.to_owned()),
            3 => State::Refused(
                Reason::from_code(number).ok_or_else(|| row.bad("its reason is unknown"))?,
            ),
            4 => State::Skipped { rule: number, of: text.to_owned() },
            5 => State::Known { feed: number, of: text.to_owned() },
            _ => return Err(row.bad("its state is unknown")),
        };
        Ok(Self {
            state,
            host: row.narrow()?,
            place: Place {
                rank: Rank::from_code(row.narrow()?)
                    .ok_or_else(|| row.bad("its rank is unknown"))?,
                depth: row.narrow()?,
                sequence: row.number()?,
            },
            hops: row.narrow()?,
            failures: row.narrow()?,
            links: row.number()?,
            status: row.narrow()?,
            trouble: Reason::from_code(row.number()?),
            discovered: Timestamp(row.signed()?),
            visited: Timestamp(row.signed()?),
            not_before: Timestamp(row.signed()?),
            referrer: row.text()?.to_owned(),
            busy: row.narrow()?,
            cut: PageCut::from_code(row.number()?),
            revisit: Revisit::decode(&mut row)?,
            links_beyond: row.number()?,
        })
    }
}

/// What is known of a host: its pace survives a restart.
#[expect(clippy::struct_excessive_bools, reason = "independent facts of the host")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Scheme, host and port.
    pub key: String,
    /// A request was sent to it, or may have been.
    pub contacted: bool,
    /// No request before this moment.
    pub next_allowed: Timestamp,
    /// The host asked to be left alone until this moment, or keeps failing; 0 for neither.
    pub blocked_until: Timestamp,
    /// Why it is blocked.
    pub trouble: Option<Reason>,
    /// Delay that its robots.txt asks for, in milliseconds; 0 for none.
    pub crawl_delay_ms: u64,
    /// Answers that said "busy" since the host was last quiet for long enough.
    pub busy: u16,
    /// Requests in a row that failed.
    pub failures: u16,
    /// Addresses in its queue, those in flight among them.
    pub queued: u64,
    /// Links to it that were ever let into its queue.
    pub admitted: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Its robots.txt is asked for at another host.
    pub robots_elsewhere: bool,
    /// Its row in the schedule; 0 for none.
    pub scheduled: Timestamp,
    /// Patterns of its addresses that are counted.
    pub patterns: u64,
    /// The IP address that it shares a group with; none while it is not known.
    pub address: Option<IpAddr>,
    /// How long it lately took to answer, in milliseconds: rises at once, falls by halves.
    pub response_ms: u64,
    /// End of the last time for which it was left alone as busy.
    pub quiet_since: Timestamp,
    /// It asks for a longer delay than is usual, and is visited at that pace.
    pub slow_lane: bool,
    /// It keeps failing: one request at a time finds out whether it is back.
    pub breaker_open: bool,
    /// Sitemaps of it that were ever let in.
    pub sitemaps: u32,
    /// Feeds of it that were ever let in.
    pub feeds: u32,
    /// Bytes of the addresses in its queue; none if they were never added up.
    pub queued_bytes: Option<u64>,
    /// Bytes of the addresses that its pages named and that were turned away.
    pub refused_bytes: u64,
    /// Addresses that were turned away without a row of their own, for want of room.
    pub unstored: u64,
}

impl Host {
    pub(super) fn new(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            contacted: false,
            next_allowed: Timestamp(0),
            blocked_until: Timestamp(0),
            trouble: None,
            crawl_delay_ms: 0,
            busy: 0,
            failures: 0,
            queued: 0,
            admitted: 0,
            answered: 0,
            failed: 0,
            robots_elsewhere: false,
            scheduled: Timestamp(0),
            patterns: 0,
            address: HostKey::from_stored(key).ip(),
            response_ms: 0,
            quiet_since: Timestamp(0),
            slow_lane: false,
            breaker_open: false,
            sitemaps: 0,
            feeds: 0,
            queued_bytes: Some(0),
            refused_bytes: 0,
            unstored: 0,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        Encoder::new(2)
            .text(&self.key)
            .number(self.contacted)
            .signed(self.next_allowed.0)
            .signed(self.blocked_until.0)
            .number(self.trouble.map_or(0, |reason| reason as u64))
            .number(self.crawl_delay_ms)
            .number(self.busy)
            .number(self.failures)
            .number(self.queued)
            .number(self.admitted)
            .number(self.answered)
            .number(self.failed)
            .number(self.robots_elsewhere)
            .signed(self.scheduled.0)
            .number(self.patterns)
            .bytes(&octets(self.address))
            .number(self.response_ms)
            .signed(self.quiet_since.0)
            .number(self.slow_lane)
            .number(self.breaker_open)
            .number(self.sitemaps)
            .number(self.feeds)
            .number(self.queued_bytes.map_or(0, |bytes| bytes + 1))
            .number(self.refused_bytes)
            .number(self.unstored)
            .finish()
    }

    /// Reads a row. Those of version 1 do not tell how much room addresses take.
    pub fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::of("host", 1..=2, row)?;
        let mut host = Self {
            key: row.text()?.to_owned(),
            contacted: row.number()? != 0,
            next_allowed: Timestamp(row.signed()?),
            blocked_until: Timestamp(row.signed()?),
            trouble: Reason::from_code(row.number()?),
            crawl_delay_ms: row.number()?,
            busy: row.narrow()?,
            failures: row.narrow()?,
            queued: row.number()?,
            admitted: row.number()?,
            answered: row.number()?,
            failed: row.number()?,
            robots_elsewhere: row.number()? != 0,
            scheduled: Timestamp(row.signed()?),
            patterns: row.number()?,
            address: address_of(row.bytes()?).map_err(|detail| row.bad(detail))?,
            response_ms: row.number()?,
            quiet_since: Timestamp(row.signed()?),
            slow_lane: row.number()? != 0,
            breaker_open: row.number()? != 0,
            sitemaps: row.narrow()?,
            feeds: row.narrow()?,
            queued_bytes: None,
            refused_bytes: 0,
            unstored: 0,
        };
        if row.version() >= 2 {
            host.queued_bytes = row.number()?.checked_sub(1);
            (host.refused_bytes, host.unstored) = (row.number()?, row.number()?);
        }
        Ok(host)
    }
}

/// An IP address as 4 or 16 bytes; none as no byte.
fn octets(address: Option<IpAddr>) -> Vec<u8> {
    match address {
        Some(IpAddr::V4(ip)) => ip.octets().to_vec(),
        Some(IpAddr::V6(ip)) => ip.octets().to_vec(),
        None => Vec::new(),
    }
}

fn address_of(octets: &[u8]) -> Result<Option<IpAddr>, &'static str> {
    if let Ok(octets) = <[u8; 4]>::try_from(octets) {
        return Ok(Some(octets.into()));
    }
    match <[u8; 16]>::try_from(octets) {
        Ok(octets) => Ok(Some(octets.into())),
        Err(_) if octets.is_empty() => Ok(None),
        Err(_) => Err("its IP address is neither of 4 nor of 16 bytes"),
    }
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// No request: the IP address of the host is looked up, so that its group is known.
    Lookup,
    /// A page.
    Page,
    /// A sitemap.
    Sitemap,
    /// The robots.txt of the host with this number, after this many redirects.
    Robots {
        /// Number of the host whose rules are wanted.
        of: u32,
        /// Redirects that led here.
        hops: u8,
    },
}

/// A request in the queue of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What it is for.
    pub purpose: Purpose,
    /// The address.
    pub url: String,
}

impl Request {
    /// Bytes of its address.
    pub(super) fn size(&self) -> u64 {
        self.url.len() as u64
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let (of, hops) = match self.purpose {
            // A look-up is in no queue.
            Purpose::Page | Purpose::Sitemap | Purpose::Lookup => (0, 0),
            Purpose::Robots { of, hops } => (of, hops),
        };
        let is_sitemap = self.purpose == Purpose::Sitemap;
        Encoder::new(1).number(of).number(hops).text(&self.url).number(is_sitemap).finish()
    }

    /// Reads a row. Host numbers start at 1, so that 0 stands for "no robots.txt".
    pub fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::new("request", 1, row)?;
        let (of, hops) = (row.narrow()?, row.narrow()?);
        let url = row.text()?.to_owned();
        let purpose = match (of, row.number()?) {
            (0, 0) => Purpose::Page,
            (0, 1) => Purpose::Sitemap,
            (0, _) => return Err(row.bad("its purpose is unknown")),
            _ => Purpose::Robots { of, hops },
        };
        Ok(Self { purpose, url })
    }
}

/// Key of a queued request: host, rank, depth, sequence, all big-endian: 15 bytes.
pub(super) fn queue_key(host: u32, place: Place) -> [u8; 15] {
    let mut key = [0; 15];
    key[..4].copy_from_slice(&host.to_be_bytes());
    key[4] = place.rank as u8;
    key[5..7].copy_from_slice(&place.depth.to_be_bytes());
    key[7..].copy_from_slice(&place.sequence.to_be_bytes());
    key
}

/// Takes a queue key apart: number of the host, place in its queue.
pub fn split_queue_key(key: &[u8]) -> Result<(u32, Place), BadRow> {
    let bad = |detail| BadRow { kind: "queue key", detail };
    let key: [u8; 15] = key.try_into().map_err(|_| bad("it has not 15 bytes"))?;
    let [h0, h1, h2, h3, rank, d0, d1, sequence @ ..] = key;
    let place = Place {
        rank: Rank::from_code(rank).ok_or_else(|| bad("its rank is unknown"))?,
        depth: u16::from_be_bytes([d0, d1]),
        sequence: u64::from_be_bytes(sequence),
    };
    Ok((u32::from_be_bytes([h0, h1, h2, h3]), place))
}

/// Key of a row that is ordered by time: milliseconds, then a host number. Times are not below 0.
pub(super) fn time_key(time: Timestamp, host: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&time.0.max(0).to_be_bytes());
    key[8..].copy_from_slice(&host.to_be_bytes());
    key
}

/// Takes a time key apart: the moment, number of the host.
pub fn split_time_key(key: &[u8]) -> Result<(Timestamp, u32), BadRow> {
    let bad = BadRow { kind: "time key", detail: "it has not 12 bytes" };
    let key: [u8; 12] = key.try_into().map_err(|_| bad)?;
    let [t0, t1, t2, t3, t4, t5, t6, t7, host @ ..] = key;
    let time = i64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
    Ok((Timestamp(time), u32::from_be_bytes(host)))
}
