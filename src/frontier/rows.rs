//! The rows of URLs, hosts and queued requests.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::base::clock::Timestamp;
use crate::store::{
    BadRow, Code, Codec, Coded, Decoder, Encoder, Error, Flag, MaybeNumber, Nested, Number,
    Renumber, Row, Signed, Text, Update, row,
};
use crate::urls::HostKey;

use super::tables::ADDRESSES;
use super::{PageCut, Reason, Revisit};

/// Where a URL stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It waits for its first visit, or for another try.
    Queued,
    /// Its page is stored: number of the document.
    Stored(u64),
    /// It redirects to this URL.
    Redirect(String),
    /// It is not in the corpus, and why.
    Refused(Reason),
    /// It is not fetched, because by a rule it is the page at another URL.
    Skipped {
        /// Number of the rule.
        rule: u64,
        /// The other URL.
        of: String,
    },
    /// It is not fetched, because by a feed it is a copy of the page at another URL.
    Known {
        /// Number of the feed.
        feed: u64,
        /// The other URL, which is stored or waits for its first visit.
        of: String,
    },
}

impl State {
    /// The page is stored.
    pub(super) fn is_stored(&self) -> bool {
        matches!(self, Self::Stored(_))
    }
}

row! {
    /// What is known of a URL.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Address: "address", 1 to 1 {
        /// Where it stands.
        pub state: State = StateCodec;
        /// Number of its host; 0 while it was never queued.
        pub host: u32 = Number;
        /// Its place in the queue of its host.
        pub place: QueuePlace = Nested;
        /// Redirects that led to it.
        pub hops: u8 = Number;
        /// Tries that failed in a row.
        pub failures: u8 = Number;
        /// Distinct hosts that link to it.
        pub links: u64 = Number;
        /// Status of the last answer; 0 for none.
        pub status: u16 = Number;
        /// Why the last try failed, while another one is due.
        pub trouble: Option<Reason> = Code;
        /// When it was first seen.
        pub discovered: Timestamp = Signed;
        /// When it was last visited; 0 for never.
        pub visited: Timestamp = Signed;
        /// It may not be visited again before this moment; 0 for no such moment.
        pub not_before: Timestamp = Signed;
        /// The page on which it was first seen; empty for a seed.
        pub referrer: String = Text;
        /// Answers that said "busy"; they do not count as failed tries.
        pub busy: u8 = Number;
        /// Why only the start of its page was read, if that is so.
        pub cut: Option<PageCut> = Code;
        /// Its further visits.
        pub revisit: Revisit = Nested;
        /// Links of its page that were beyond the limit, and not followed.
        pub links_beyond: u64 = Number;
    }
}

/// The number of the state, a number and a text that go with it.
struct StateCodec;

impl Codec<State> for StateCodec {
    const SHAPE: &'static str = "code, number, text";

    fn put(state: &State, row: Encoder) -> Encoder {
        let (code, number, text) = match state {
            State::Queued => (0_u8, 0, ""),
            State::Stored(document) => (1, *document, ""),
            State::Redirect(target) => (2, 0, target.as_str()),
            State::Refused(reason) => (3, reason.code(), ""),
            State::Skipped { rule, of } => (4, *rule, of.as_str()),
            State::Known { feed, of } => (5, *feed, of.as_str()),
        };
        row.number(code).number(number).text(text)
    }

    fn take(row: &mut Decoder<'_>) -> Result<State, BadRow> {
        let (code, number, text) = (row.number()?, row.number()?, row.text()?);
        Ok(match code {
            0 => State::Queued,
            1 => State::Stored(number),
            2 => State::Redirect(text.to_owned()),
            3 => State::Refused(
                Reason::from_code(number).ok_or_else(|| row.bad("its reason is unknown"))?,
            ),
            4 => State::Skipped { rule: number, of: text.to_owned() },
            5 => State::Known { feed: number, of: text.to_owned() },
            _ => return Err(row.bad("its state is unknown")),
        })
    }

    fn renumber(state: &mut State, numbers: &mut dyn Renumber) {
        if let State::Stored(document) = state {
            *document = numbers.document(*document);
        }
    }
}

row! {
    /// Order in the queue of a host: the smaller place is served first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub struct QueuePlace: part {
        /// Kind of request; see [`Rank`].
        pub rank: Rank = Code;
        /// Links between a seed and the URL.
        pub depth: u16 = Number;
        /// Order of arrival.
        pub sequence: u64 = Number;
    }
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
    /// A further sitemap: read when the URLs of those before it were visited.
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
}

impl Coded for Rank {
    fn code(self) -> u64 {
        self as u64
    }

    fn from_code(code: u64) -> Option<Self> {
        const ALL: [Rank; 7] = [
            Rank::Robots,
            Rank::Redirect,
            Rank::Seed,
            Rank::Sitemap,
            Rank::Link,
            Rank::LateSitemap,
            Rank::Slow,
        ];
        ALL.into_iter().find(|rank| rank.code() == code)
    }
}

impl Address {
    /// A URL that was found just now, on a page or in a list.
    pub(super) fn found(now: Timestamp, referrer: &str) -> Self {
        Self {
            state: State::Queued,
            host: 0,
            place: QueuePlace { rank: Rank::Link, depth: 0, sequence: 0 },
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

    /// Returns the document of its page, if that is stored.
    #[must_use]
    pub fn document(&self) -> Option<u64> {
        match self.state {
            State::Stored(document) => Some(document),
            _ => None,
        }
    }

    /// Notes that the page at a URL belongs to another document now, if it is stored: an
    /// URL that leads elsewhere by now, or is refused, may carry what was sent to the service.
    pub fn set_document(batch: &mut impl Update, url: &str, document: u64) -> Result<(), Error> {
        if let Some(mut address) = batch.get(ADDRESSES, url)?
            && matches!(address.state, State::Stored(_))
        {
            address.state = State::Stored(document);
            batch.put(ADDRESSES, url, &address)?;
        }
        Ok(())
    }
}

row! {
    /// What is known of a host: its pace survives a restart.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Host: "host", 1 to 2 {
        /// Scheme, host and port.
        pub key: String = Text;
        /// A request was sent to it, or may have been.
        pub contacted: bool = Flag;
        /// No request before this moment.
        pub next_allowed: Timestamp = Signed;
        /// The host asked to be backing off until this moment, or keeps failing; 0 for neither.
        pub blocked_until: Timestamp = Signed;
        /// Why it is blocked.
        pub trouble: Option<Reason> = Code;
        /// Delay that its robots.txt asks for, in milliseconds; 0 for none.
        pub crawl_delay_ms: u64 = Number;
        /// Answers that said "busy" since the host was last quiet for long enough.
        pub busy: u16 = Number;
        /// Requests in a row that failed.
        pub failures: u16 = Number;
        /// URLs in its queue, those in flight among them.
        pub queued: u64 = Number;
        /// Links to it that were ever let into its queue.
        pub admitted: u64 = Number;
        /// Requests that were answered.
        pub answered: u64 = Number;
        /// Requests that failed.
        pub failed: u64 = Number;
        /// Its robots.txt is asked for at another host.
        pub robots_elsewhere: bool = Flag;
        /// Its row in the schedule; 0 for none.
        pub scheduled: Timestamp = Signed;
        /// Patterns of its addresses that are counted.
        pub patterns: u64 = Number;
        /// The IP address that it shares a group with; none while it is not known.
        pub address: Option<IpAddr> = Octets;
        /// How long it lately took to answer, in milliseconds: rises at once, falls by halves.
        pub response_ms: u64 = Number;
        /// End of the last time for which it was left alone as busy.
        pub quiet_since: Timestamp = Signed;
        /// It asks for a longer delay than is usual, and is visited at that pace.
        pub slow_lane: bool = Flag;
        /// It keeps failing: one request at a time finds out whether it is back.
        pub breaker_open: bool = Flag;
        /// Sitemaps of it that were ever let in.
        pub sitemaps: u32 = Number;
        /// Feeds of it that were ever let in.
        pub feeds: u32 = Number;
        /// Bytes of the URLs in its queue; none if they were never added up.
        pub queued_bytes: Option<u64> = MaybeNumber, since 2;
        /// Bytes of the URLs that its pages named and that were turned away.
        pub refused_bytes: u64 = Number, since 2;
        /// URLs that were turned away without a row of their own, for want of room.
        pub unstored: u64 = Number, since 2;
    }
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
}

/// An IP address as 4 or 16 bytes; none as no byte.
struct Octets;

impl Codec<Option<IpAddr>> for Octets {
    const SHAPE: &'static str = "bytes: 0, 4 or 16";

    fn put(address: &Option<IpAddr>, row: Encoder) -> Encoder {
        match address {
            Some(IpAddr::V4(ip)) => row.bytes(&ip.octets()),
            Some(IpAddr::V6(ip)) => row.bytes(&ip.octets()),
            None => row.bytes(&[]),
        }
    }

    fn take(row: &mut Decoder<'_>) -> Result<Option<IpAddr>, BadRow> {
        let octets = row.bytes()?;
        if let Ok(octets) = <[u8; 4]>::try_from(octets) {
            return Ok(Some(octets.into()));
        }
        match <[u8; 16]>::try_from(octets) {
            Ok(octets) => Ok(Some(octets.into())),
            Err(_) if octets.is_empty() => Ok(None),
            Err(_) => Err(row.bad("its IP address is neither of 4 nor of 16 bytes")),
        }
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
    /// The URL.
    pub url: String,
}

impl Request {
    /// Bytes of its URL.
    pub(super) fn size(&self) -> u64 {
        self.url.len() as u64
    }
}

/// By hand, because its purpose stands before and behind the URL. Host numbers start at 1, so
/// that 0 stands for "no robots.txt".
impl Row for Request {
    fn encode(&self) -> Cow<'_, [u8]> {
        let (of, hops) = match self.purpose {
            // A look-up is in no queue.
            Purpose::Page | Purpose::Sitemap | Purpose::Lookup => (0, 0),
            Purpose::Robots { of, hops } => (of, hops),
        };
        let is_sitemap = self.purpose == Purpose::Sitemap;
        let row = Encoder::new(1).number(of).number(hops).text(&self.url).number(is_sitemap);
        Cow::Owned(row.finish())
    }

    fn decode(row: &[u8]) -> Result<Self, BadRow> {
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

    fn renumber(&mut self, _: &mut dyn Renumber) {}
}
