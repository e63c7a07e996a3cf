//! Which URL may be visited now: offer, lease, settle.
//!
//! In: links, and what became of each visit. Out: leases, each the right to send one request; and
//! for every URL that gets none, a counted reason.
//!
//! Every host has a queue on disk, ordered by rank, depth and arrival. A table orders the hosts by
//! the moment at which each may be contacted. A URL stays in its queue until it is settled,
//! so that a crash leaves open leases simply due again; nothing is written to lease it.
//!
//! A visit is exactly one request. A redirect is settled by offering its target, so that every
//! hop passes scope, robots.txt, pace and the seen set like any other URL.

mod admission;
mod again;
mod asked;
mod budgets;
mod clock;
pub mod duplicate_feed;
mod events;
mod groups;
mod hosts;
mod known;
mod lease;
mod lists;
mod offer;
mod reason;
mod revisit;
mod robots_copy;
mod rows;
pub mod rules;
mod seen;
mod settle;
mod shards;
mod skip;
mod tables;
mod url_pattern;
mod waiting;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::base::clock::Timestamp;
use crate::base::units::{Size, Time};
use crate::store::{Batch, COUNTERS, Error, META, Update as _, View as _};
use crate::urls::{self, Filter, Scope};
use crate::web::{discover, robots};

use duplicate_feed::Known;
use rules::Rules;

pub use admission::{patterns_for, stored_filter};
pub use asked::Asked;
pub use budgets::pattern_hash;
pub use lease::Lease;
pub use lists::{List, Listed};
pub use offer::{Offer, Offered};
pub use reason::{PageCut, Reason};
pub use revisit::{Fate, Recrawl, Revisit, Settled, Told, Validators};
pub use robots_copy::{RobotsAnswer, RobotsBody, RobotsCopy, RobotsLost, RobotsStanding};
pub use rows::{Address, Host, Purpose, QueuePlace, Rank, Request, State};
pub use settle::{Settlement, Visited};
pub use shards::{LinksSent, Mark, SentAs, SentLink, Share};
#[cfg(feature = "cluster")]
pub use shards::{mark, received};
pub use tables::{
    ADDRESSES, DOMAINS, DUPLICATES, FEED_HOSTS, FEEDS, HOST_NUMBERS, HOSTS, INLINKS, KNOWN_PAGES,
    KNOWN_SKIPPED, LATER, LEADS, LISTS, OUTBOX, PATTERNS, QUEUE, REVISITS, ROBOTS, RULE_KEYS,
    RULES, SCHEDULE, SKIPPED, URL_PATTERNS,
};
pub use url_pattern::{UrlPattern, YieldConfig};

use admission::Admission;
use groups::Groups;
use hosts::Hosts;
use seen::Seen;
use shards::Sharing;

/// Settings of the frontier.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// Least time between the end of an answer of a host and the next request to it.
    pub delay: Time,
    /// Most requests to one host at a time.
    pub connections_per_host: usize,
    /// Least time between the end of an answer and the next request within all hosts of one IP
    /// address. No more than `delay` counts, so that a delay of 0 frees hosts of your own.
    pub address_delay: Time,
    /// Most requests to all hosts of one IP address at a time; 0 for no limit.
    pub connections_per_address: usize,
    /// As `address_delay`, within all hosts of one registrable domain.
    pub domain_delay: Time,
    /// Most requests to all hosts of one registrable domain at a time; 0 for no limit.
    pub connections_per_domain: usize,
    /// Times that a host took to answer for which it is left alone afterwards, if that is longer
    /// than `delay`; 0 for no such rule.
    pub response_factor: u32,
    /// Most times that `delay` grows for a slow host.
    pub slowdown_max: u32,
    /// A host whose robots.txt asks for a longer delay is in the slow lane: it gets what it asks
    /// for, and `explain` and `stats` say so.
    pub slow_lane: Time,
    /// Most links between a seed and a URL, inclusive; 65535 for no limit.
    pub depth_max: u16,
    /// Most URLs of one host that are let in, seeds and redirects not counted: where a trap
    /// without end ends. 0 for no limit.
    pub host_addresses_max: u64,
    /// Most bytes of the URLs of one host that wait, and of those that its pages name and that
    /// are turned away. What is beyond is counted, and has no row. 0 for no limit.
    pub host_size_max: Size,
    /// Most links of one pattern (see [`urls::pattern()`]) of one host that are let in. 0 for no
    /// limit.
    pub pattern_addresses_max: u64,
    /// Most patterns of one host that are counted at a time. The rarer half makes room for new ones
    /// and is forgotten: such a pattern starts from 0 when it comes again.
    pub patterns_per_host_max: u64,
    /// Most hosts of one registrable domain that links and redirects can add: with wildcard DNS, a
    /// domain has as many as somebody cares to invent. 0 for no limit.
    pub hosts_per_domain_max: u64,
    /// Limits on the shape of URLs.
    pub shape: urls::ShapeLimits,
    /// Sitemaps and feeds.
    pub discover: discover::Config,
    /// Most redirects that may lead to a URL.
    pub redirects_max: u8,
    /// Tries of a URL after its first one failed.
    pub retries_max: u8,
    /// Wait before the first of these tries; doubles with each.
    pub retry_delay: Time,
    /// Tries of a URL whose server says that it is busy (429, 503); not those of
    /// `retries_max`.
    pub busy_retries_max: u8,
    /// Time for which a busy host that names none, or one that keeps failing, is left alone;
    /// doubles with each such answer, and differs by up to a tenth from host to host.
    pub busy_delay: Time,
    /// Time without such an answer after which this wait starts anew.
    pub busy_forgiven: Time,
    /// Longest time for which a host is left alone.
    pub block_time_max: Time,
    /// Failed requests in a row after which a host is left alone. Its queue is kept, and one
    /// request at a time finds out whether it is back.
    pub host_failures_max: u16,
    /// Time after which a copy of robots.txt is fetched anew. Source: RFC 9309, 2.4.
    pub robots_ttl: Time,
    /// The same at least, whatever its server says of its age.
    pub robots_ttl_min: Time,
    /// Wait before an unreachable robots.txt is tried again; doubles with each try.
    pub robots_retry: Time,
    /// Time since a robots.txt was last had, or first was not, after which `robots_lost` holds.
    /// Source: RFC 9309, 2.3.1.4, which names 30 days.
    pub robots_unreachable_max: Time,
    /// What holds then.
    pub robots_lost: RobotsLost,
    /// Bytes of a robots.txt that count; what a longer one says beyond them is not known.
    #[serde(deserialize_with = "robots_size")]
    pub robots_size_max: Size,
    /// Memory of the rules of robots.txt files; what is beyond it is read again.
    pub robots_in_memory: Size,
    /// Product token that robots.txt files know us by.
    pub agent: String,
    /// Read robots.txt as Google's parser does where that differs from RFC 9309.
    pub google_extras: bool,
    /// Idle hosts kept in memory.
    pub hosts_in_memory_max: usize,
    /// Recently seen links kept in memory, 8 bytes each.
    pub seen_in_memory_max: usize,
    /// When kinds of URLs that give nothing new are slowed and stopped.
    pub yields: YieldConfig,
    /// Rules of duplicate URLs.
    pub rules: rules::Config,
    /// Duplicates that others have published.
    pub duplicate_feeds: duplicate_feed::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            delay: Time::from_secs(1),
            connections_per_host: 1,
            address_delay: Time::from_millis(250),
            connections_per_address: 1,
            domain_delay: Time::from_millis(250),
            connections_per_domain: 1,
            response_factor: 3,
            slowdown_max: 10,
            slow_lane: Time::from_secs(60),
            depth_max: u16::MAX,
            host_addresses_max: 1_000_000,
            host_size_max: Size::from_mib(128),
            pattern_addresses_max: 500_000,
            patterns_per_host_max: 4_096,
            hosts_per_domain_max: 10_000,
            shape: urls::ShapeLimits::default(),
            discover: discover::Config::default(),
            redirects_max: 10,
            retries_max: 3,
            retry_delay: Time::from_secs(30),
            busy_retries_max: 10,
            busy_delay: Time::from_secs(60),
            busy_forgiven: Time::from_secs(1_800),
            block_time_max: Time::from_secs(86_400),
            host_failures_max: 5,
            robots_ttl: Time::from_secs(86_400),
            robots_ttl_min: Time::from_secs(3_600),
            robots_retry: Time::from_secs(300),
            robots_unreachable_max: Time::from_millis(30 * 86_400_000),
            robots_lost: RobotsLost::default(),
            robots_size_max: Size::from_bytes(robots::BYTES_MIN as u64),
            robots_in_memory: Size::from_mib(32),
            agent: "uniqcrawl".to_owned(),
            google_extras: true,
            hosts_in_memory_max: 10_000,
            seen_in_memory_max: 1 << 20,
            yields: YieldConfig::default(),
            rules: rules::Config::default(),
            duplicate_feeds: duplicate_feed::Config::default(),
        }
    }
}

impl Config {
    /// Reads a robots.txt; of one that was cut before, no more than counted then.
    fn read_robots(&self, body: &[u8], cut_after: Option<usize>) -> robots::RobotsRules {
        let bytes_max = self.robots_size_max.bytes();
        let bytes_max = cut_after.map_or(bytes_max, |bytes| bytes.min(bytes_max));
        let options = robots::Options { google_extras: self.google_extras, bytes_max };
        robots::RobotsRules::parse(body, &options)
    }

    /// Returns the delay of a host: ours, that of a slow host, or what its robots.txt asks for;
    /// whichever is longest.
    #[must_use]
    pub fn delay(&self, host: &Host) -> Duration {
        let slow = host.response_ms.saturating_mul(self.response_factor.into());
        let slow = slow.min(self.delay.millis().saturating_mul(self.slowdown_max.into()));
        Duration::from_millis(self.delay.millis().max(slow).max(host.crawl_delay_ms))
    }
}

fn robots_size<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
    let size = <Size as serde::Deserialize>::deserialize(deserializer)?;
    if size.bytes() < robots::BYTES_MIN {
        let why = format!("`{size}` is too small: RFC 9309 asks for at least 500 KiB");
        return Err(serde::de::Error::custom(why));
    }
    Ok(size)
}

/// Counter of links that stand on pages beyond the limit, as of the last visit of each page.
pub const LINKS_BEYOND: &str = "links.beyond_limit";

/// Counter of links that were turned away without a row, because the URLs of a host take as
/// much room as the limit allows.
pub const UNSTORED: &str = "links.unstored";

/// Row of `meta` that tells when any host was last contacted, if every answer is recorded.
const CLOSED: &str = "last_contact";

/// Row of `meta` that keeps, over a clean stop, until when a crash before it hid requests.
const HIDDEN: &str = "hidden_until";

/// When a frontier is opened, and after whom.
#[derive(Debug, Clone, Copy)]
struct Opening {
    now: Timestamp,
    /// Somebody else had its hosts before.
    taken: bool,
}

/// The frontier of one crawl. It lives on the thread that owns the write transaction.
#[derive(Debug)]
pub struct Frontier {
    config: Config,
    scope: Scope,
    hosts: Hosts,
    groups: Groups,
    seen: Seen,
    rules: Rules,
    known: Known,
    /// No known copy waits for the first visit of its canonical page any more in this run.
    waiting_over: bool,
    /// Changes of counters since the last flush.
    tally: BTreeMap<String, i64>,
    sharing: Sharing,
    opened: Timestamp,
    /// URLs are visited again that are due by then.
    due_until: Timestamp,
    /// Somebody else may have contacted any host until this moment, known here or not.
    taken: Option<Timestamp>,
    /// Requests may have been sent until this moment that no row tells of, because a crash hid
    /// them: no host is contacted until its delay has passed since; 0 if there was none.
    hidden_until: Timestamp,
    /// When any host was last contacted, as far as it is known.
    last: Timestamp,
    /// The latest moment of which anything was written.
    latest: Timestamp,
    queued: u64,
    /// Links that were turned away without a row in this run.
    unstored: u64,
    recrawl: Recrawl,
    /// URLs that were due for another visit and were queued.
    due: u64,
    filter: Filter,
    admission: Admission,
    /// URLs that this run has kept out, by the pattern that did it.
    kept_out: BTreeMap<String, u64>,
}

impl Frontier {
    /// Takes up the frontier of a store, as a clean stop or a crash has left it.
    pub fn open(
        batch: &mut Batch,
        config: Config,
        scope: Scope,
        now: Timestamp,
    ) -> Result<Self, Error> {
        Self::open_at(batch, config, scope, Opening { now, taken: false })
    }

    fn open_at(
        batch: &mut Batch,
        config: Config,
        scope: Scope,
        Opening { now, taken }: Opening,
    ) -> Result<Self, Error> {
        let mut past = |name| -> Result<Option<Timestamp>, Error> {
            Ok(batch.take(META, name)?.and_then(|row| {
                let millis: i64 = std::str::from_utf8(&row).ok()?.parse().ok()?;
                (millis <= now.0).then_some(Timestamp(millis))
            }))
        };
        let (closed, hidden) = (past(CLOSED)?, past(HIDDEN)?);
        let mut frontier = Self {
            hosts: Hosts::new(config.hosts_in_memory_max, config.robots_in_memory.bytes()),
            groups: Groups::new(&config, None),
            seen: Seen::new(config.seen_in_memory_max),
            rules: Rules::open(batch, config.rules.clone())?,
            known: Known::open(batch, config.duplicate_feeds.clone(), &[])?,
            waiting_over: false,
            tally: BTreeMap::new(),
            opened: now,
            due_until: now,
            sharing: Sharing::default(),
            taken: taken.then_some(now),
            hidden_until: match closed {
                Some(_) if !taken => hidden.unwrap_or_default(),
                _ => now,
            },
            last: closed.filter(|_| !taken).unwrap_or(now),
            latest: now,
            queued: batch.len(LATER)?,
            unstored: 0,
            recrawl: Recrawl::default(),
            due: 0,
            filter: Filter::default(),
            admission: Admission::default(),
            kept_out: BTreeMap::new(),
            config,
            scope,
        };
        frontier.follow_clock(batch)?;
        // Hosts that were in flight have no row in the schedule.
        let (mut waiting, mut contacted) = (Vec::new(), false);
        for entry in batch.rows(HOSTS)? {
            let entry = entry?;
            let host = entry.row()?;
            frontier.queued += host.queued;
            contacted |= host.contacted;
            if host.queued > 0 {
                waiting.push(entry.key()?);
            }
        }
        let last = (contacted || taken).then_some(frontier.last);
        frontier.groups = Groups::new(&frontier.config, last);
        for number in waiting {
            frontier.reschedule(batch, number)?;
        }
        frontier.reopen(batch)?;
        frontier.reopen_left(batch)?;
        frontier.release_lost(batch)?;
        Ok(frontier)
    }

    /// Notes that no request is under way and none will be sent before the store is opened anew.
    pub fn close(&self, batch: &mut Batch) -> Result<(), Error> {
        batch.put(META, CLOSED, &self.last.0.to_string().into_bytes())?;
        // A run that was short does not make up for a crash before it.
        batch.put(META, HIDDEN, &self.hidden_until.0.to_string().into_bytes())
    }

    /// Returns the number of queued URLs for a visit, those in flight among them.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Returns the number of links that were turned away without a row in this run.
    #[must_use]
    pub fn unstored(&self) -> u64 {
        self.unstored
    }

    /// Writes what is still in memory. Call it before each commit.
    pub fn flush(&mut self, batch: &mut Batch) -> Result<(), Error> {
        self.hosts.flush(batch)?;
        self.rules.flush(batch)?;
        self.known.flush(batch)?;
        self.flush_latest(batch)?;
        for (name, change) in std::mem::take(&mut self.tally) {
            let now = batch.get(COUNTERS, &name)?.unwrap_or(0);
            batch.put(COUNTERS, &name, &now.saturating_add_signed(change))?;
        }
        Ok(())
    }

    /// Notes that the documents of some stored URLs are gone from the store.
    pub fn forget_expired(batch: &mut Batch, addresses: &[String]) -> Result<(), Error> {
        for url in addresses {
            let Some(mut address) = batch.get(ADDRESSES, url)? else { continue };
            // What was sent under a URL says nothing of its page.
            if !matches!(address.state, State::Stored(_)) {
                continue;
            }
            let was = address.state.counter();
            address.state = State::Refused(Reason::Expired);
            batch.put(ADDRESSES, url.as_str(), &address)?;
            let left = batch.get(COUNTERS, &was)?.unwrap_or(0);
            batch.put(COUNTERS, &was, &left.saturating_sub(1))?;
            batch.count(&address.state.counter(), 1)?;
        }
        Ok(())
    }

    /// Notes that what was stored or followed at a URL was no page of it.
    pub fn take_back(&mut self, batch: &mut Batch, url: &str, reason: Reason) -> Result<(), Error> {
        let Some(mut address) = batch.get(ADDRESSES, url)? else { return Ok(()) };
        let was = std::mem::replace(&mut address.state, State::Refused(reason));
        self.recount(Some(&was), &address.state);
        self.note_left(batch)?;
        batch.put(ADDRESSES, url, &address)?;
        self.release_copies(batch, url)
    }

    /// Notes how many links of a page are beyond the limit.
    fn count_beyond(&mut self, address: &mut Address, beyond: u64) {
        if beyond != address.links_beyond {
            let change = beyond.cast_signed().saturating_sub(address.links_beyond.cast_signed());
            *self.tally.entry(LINKS_BEYOND.to_owned()).or_default() += change;
            address.links_beyond = beyond;
        }
    }

    /// Moves a URL from one counter to another.
    fn recount(&mut self, from: Option<&State>, to: &State) {
        if let Some(from) = from {
            *self.tally.entry(from.counter()).or_default() -= 1;
        }
        *self.tally.entry(to.counter()).or_default() += 1;
    }
}

impl State {
    /// Returns the name of the counter of URLs in this state.
    #[must_use]
    pub fn counter(&self) -> String {
        match self {
            Self::Queued => "addresses.queued".to_owned(),
            Self::Stored(_) => "addresses.stored".to_owned(),
            Self::Redirect(_) => "addresses.redirect".to_owned(),
            Self::Skipped { .. } => "addresses.skipped_by_rule".to_owned(),
            Self::Known { .. } => "addresses.skipped_by_feed".to_owned(),
            Self::Refused(reason) => format!("addresses.refused.{reason}"),
        }
    }
}
