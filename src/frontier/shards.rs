//! Frontiers that are one of many: each has the hosts of its own registrable domains, and sends
//! what it finds of others to theirs.
//!
//! A link to a host of another shard is a row of the transaction of its page. Whoever carries such
//! rows may carry one twice: an offer that is made again changes nothing.

use xxhash_rust::xxh3::xxh3_64;

use crate::base::clock::Timestamp;
use crate::store::{
    Batch, Code, Coded, Error, Flag, META, Number, Text, Update as _, View as _, row,
};
use crate::urls::{HostKey, PageUrl};

use super::known::note_lead;
use super::lists::Naming;
use super::offer::By;
use super::rows::Rank;
use super::tables::OUTBOX;
use super::{Config, Frontier, Lease, Offer, Offered, Reason};

/// Row of `meta` that tells up to where links of others were offered.
const RECEIVED: &str = "links_received";

/// Row of `meta` that tells of which lease and batch the state of a store is.
const MARK: &str = "shard_state";

/// Counter of links to hosts of other shards that no shard wants, as far as that is known here.
const NOT_SENT: &str = "links.elsewhere_not_wanted";

/// Rows of one kind that are forgotten in one transaction.
const FORGOTTEN_MAX: usize = 10_000;

/// Which part of all hosts a frontier has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Its number, from 0.
    pub own: u32,
    /// How many there are.
    pub of: u32,
}

impl Share {
    /// Returns the shard of a URL: that of its registrable domain; of a host that has none, such as
    /// an IP address, that of the host, whatever its port.
    #[must_use]
    pub fn shard_of(self, url: &PageUrl) -> u32 {
        let name = url.registrable_domain_or_host();
        let shard = xxh3_64(name.as_bytes()) % u64::from(self.of.max(1));
        u32::try_from(shard).expect("less than a number of 32 bits")
    }

    /// Tells whether a URL is of this share.
    #[must_use]
    pub fn has(self, url: &PageUrl) -> bool {
        self.shard_of(url) == self.own
    }
}

/// As what a URL is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentAs {
    /// As a link, a redirect or a seed.
    Link = 0,
    /// As a feed that a page links to.
    Feed = 1,
    /// As an entry of a sitemap or feed.
    Entry = 2,
    /// As a sitemap.
    Sitemap = 3,
}

impl Coded for SentAs {
    fn code(self) -> u64 {
        self as u64
    }

    fn from_code(code: u64) -> Option<Self> {
        const ALL: [SentAs; 4] = [SentAs::Link, SentAs::Feed, SentAs::Entry, SentAs::Sitemap];
        ALL.into_iter().find(|kind| kind.code() == code)
    }
}

row! {
    /// A URL that was found in one shard and is of another one.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SentLink: "sent_link", 1 to 1 {
        /// The URL.
        pub url: String = Text;
        /// As what it is offered.
        pub kind: SentAs = Code;
        /// Links between a seed and the URL.
        pub depth: u16 = Number;
        /// Kind of request.
        pub rank: Rank = Code;
        /// Redirects that led to it.
        pub hops: u8 = Number;
        /// The page that links to it; empty for a seed.
        pub from: String = Text;
        /// The link is marked nofollow.
        pub nofollow: bool = Flag;
        /// Of a sitemap, indexes above it.
        pub level: u8 = Number;
        /// Of a sitemap, keys of the hosts whose robots.txt names it.
        pub hosts: Vec<String> = crate::store::List<Text>;
    }
}

impl SentLink {
    /// A seed.
    #[cfg(feature = "cluster")]
    #[must_use]
    pub fn seed(url: &PageUrl) -> Self {
        let offer = Offer { url, depth: 0, rank: Rank::Seed, hops: 0, from: None, nofollow: false };
        Self::of(&offer, SentAs::Link)
    }

    fn of(offer: &Offer<'_>, kind: SentAs) -> Self {
        Self {
            url: offer.url.as_str().to_owned(),
            kind,
            depth: offer.depth,
            rank: offer.rank,
            hops: offer.hops,
            from: offer.from.map_or_else(String::new, |from| from.as_str().to_owned()),
            nofollow: offer.nofollow,
            level: 0,
            hosts: Vec::new(),
        }
    }

    /// Returns the URL; none if it is none, which only a damaged row has.
    #[must_use]
    pub fn page(&self) -> Option<PageUrl> {
        PageUrl::parse_stored(&self.url)
    }
}

/// Links to a shard that have arrived there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinksSent {
    /// The shard.
    pub shard: u32,
    /// The sequence of the last of them.
    pub until: u64,
}

/// What a frontier has that is one of many.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    share: Option<Share>,
    /// The open batch has links to others.
    has_sent: bool,
}

impl Lease {
    /// Returns the hash of the IP address whose turn must be waited for; none if nothing is known
    /// of it, or it has no limits.
    #[must_use]
    pub fn address(&self) -> Option<u64> {
        super::groups::address_of(self.groups)
    }
}

impl Frontier {
    /// Takes up the frontier of a store whose hosts somebody else may have contacted meanwhile:
    /// none is contacted before its delay has passed, whether it is known here or not.
    pub fn take_over(
        batch: &mut Batch,
        config: Config,
        scope: crate::urls::Scope,
        now: Timestamp,
    ) -> Result<Self, Error> {
        Self::open_at(batch, config, scope, super::Opening { now, taken: true })
    }

    /// Sets which part of all hosts it has.
    #[must_use]
    pub fn with_share(mut self, share: Option<Share>) -> Self {
        self.sharing.share = share;
        self
    }

    /// Tells whether a URL is of another shard.
    pub(super) fn is_elsewhere(&self, url: &PageUrl) -> bool {
        self.sharing.share.is_some_and(|share| !share.has(url))
    }

    /// Sends a URL to its shard. Nobody knows here what becomes of it.
    pub(super) fn send(
        &mut self,
        batch: &mut Batch,
        offer: &Offer<'_>,
        by: By,
    ) -> Result<Offered, Error> {
        let kind = match by {
            By::Link => SentAs::Link,
            By::Feed => SentAs::Feed,
            By::Entry => SentAs::Entry,
            By::Stranger => return Ok(Offered::Refused(Reason::OffSite)),
        };
        // With a scope of some hosts, most links of others lead out of it.
        if !self.scope.contains(offer.url) {
            *self.tally.entry(NOT_SENT.to_owned()).or_default() += 1;
            return Ok(Offered::Refused(Reason::OutOfScope));
        }
        // Links that count were looked for by the hosts that they come from.
        let counts = kind == SentAs::Link && offer.rank == Rank::Link && !offer.nofollow;
        let salt = (kind.code() + 1) << 56 | u64::from(offer.nofollow) << 55;
        let mut is_known = || self.seen.check_and_set(offer.url.hash64() ^ salt, offer.depth);
        if offer.rank == Rank::Link && !counts && is_known() {
            return Ok(Offered::Known);
        }
        self.put_out(batch, offer.url, &SentLink::of(offer, kind))?;
        Ok(Offered::Known)
    }

    /// Sends a sitemap to its shard.
    pub(super) fn send_sitemap(
        &mut self,
        batch: &mut Batch,
        url: &PageUrl,
        naming: &Naming<'_>,
    ) -> Result<(), Error> {
        let salt = 0x5 << 56 | u64::from(naming.level);
        if self.seen.check_and_set(url.hash64() ^ salt, 0) {
            return Ok(());
        }
        let mut hosts = Vec::new();
        for host in naming.hosts {
            hosts.push(self.hosts.row(batch, *host)?.key);
        }
        let offer = Offer {
            url,
            depth: u16::from(naming.level),
            rank: Rank::Sitemap,
            hops: naming.hops,
            from: Some(naming.from),
            nofollow: false,
        };
        let sent = SentLink { level: naming.level, hosts, ..SentLink::of(&offer, SentAs::Sitemap) };
        self.put_out(batch, url, &sent)
    }

    fn put_out(&mut self, batch: &mut Batch, url: &PageUrl, sent: &SentLink) -> Result<(), Error> {
        let Some(share) = self.sharing.share else { return Ok(()) };
        let sequence = batch.next_number("next_sent")?;
        self.sharing.has_sent = true;
        // What becomes of the link is known there alone.
        note_lead(batch, &sent.from)?;
        batch.put(OUTBOX, (share.shard_of(url), sequence), sent)
    }

    /// Tells whether links to others have come since the last call.
    pub fn has_sent(&mut self) -> bool {
        std::mem::take(&mut self.sharing.has_sent)
    }

    /// Forgets links that have arrived, or the first of them if they are many.
    pub fn forget_sent(&mut self, batch: &mut Batch, sent: LinksSent) -> Result<(), Error> {
        let mut keys = Vec::new();
        let range = (sent.shard, 0)..=(sent.shard, sent.until);
        for entry in batch.range(OUTBOX, range)?.take(FORGOTTEN_MAX) {
            keys.push(entry?.key()?);
        }
        for key in keys {
            batch.remove(OUTBOX, key)?;
        }
        Ok(())
    }

    /// Offers a URL that another shard has found.
    pub fn receive(
        &mut self,
        batch: &mut Batch,
        link: &SentLink,
        now: Timestamp,
    ) -> Result<Offered, Error> {
        let Some(url) = link.page().filter(|url| !self.is_elsewhere(url)) else {
            tracing::warn!(url = link.url, "a link came that is not of this shard");
            return Ok(Offered::Known);
        };
        let from = PageUrl::parse_stored(&link.from);
        let offer = Offer {
            url: &url,
            depth: link.depth,
            rank: link.rank,
            hops: link.hops,
            from: from.as_ref(),
            nofollow: link.nofollow,
        };
        match link.kind {
            SentAs::Link => self.offer(batch, &offer, now),
            SentAs::Entry => self.offer_by(batch, &offer, By::Entry, now),
            SentAs::Feed => {
                self.offer_feed(batch, &offer, now)?;
                Ok(Offered::Known)
            }
            SentAs::Sitemap => {
                let mut hosts = Vec::new();
                for key in &link.hosts {
                    hosts.push(self.hosts.number(batch, &HostKey::from_stored(key))?);
                }
                let from = from.as_ref().unwrap_or(&url);
                let naming = Naming { level: link.level, hosts: &hosts, hops: link.hops, from };
                self.offer_sitemap(batch, &url, &naming, now)?;
                Ok(Offered::Known)
            }
        }
    }

    /// Notes up to where the links of others were offered.
    pub fn note_received(&self, batch: &mut Batch, last: &str) -> Result<(), Error> {
        batch.put(META, RECEIVED, &last.as_bytes().to_vec())
    }

    /// Takes back a lease whose request was not sent because its IP address may not be contacted
    /// before `until`. Nothing is known of the host that was not known before.
    pub fn give_back_until(
        &mut self,
        batch: &mut Batch,
        lease: &Lease,
        until: Timestamp,
    ) -> Result<(), Error> {
        self.groups.hold(lease.groups, until);
        self.give_back(batch, lease)
    }
}

/// Of which lease of its shard a state of a store is, and of which batch in it. A later state has a
/// larger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Number of the lease.
    pub fence: u64,
    /// Number of the batch, from 1.
    pub batch: u64,
}

impl Mark {
    /// Notes it in the store.
    pub fn note(self, batch: &mut Batch) -> Result<(), Error> {
        batch.put(META, MARK, &format!("{} {}", self.fence, self.batch).into_bytes())
    }
}

/// Returns the mark of a state; none if no worker has written to it.
#[cfg(feature = "cluster")]
pub fn mark(view: &crate::store::Snapshot) -> Result<Option<Mark>, Error> {
    let Some(row) = view.get(META, MARK)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&row);
    let numbers = text.split_once(' ').and_then(|(fence, batch)| {
        Some(Mark { fence: fence.parse().ok()?, batch: batch.parse().ok()? })
    });
    Ok(numbers)
}

/// Returns up to where the links of others were offered; the start if none were.
#[cfg(feature = "cluster")]
pub fn received(view: &crate::store::Snapshot) -> Result<String, Error> {
    let row = view.get(META, RECEIVED)?;
    Ok(row.map_or_else(|| "0".to_owned(), |row| String::from_utf8_lossy(&row).into_owned()))
}
