//! The stored copies of robots.txt, and what they say of an address.

use std::io::Read as _;
use std::time::Duration;

use redb::ReadableTable;
use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::store::{BadRow, Decoder, Encoder, Error, Tables};
use crate::urls::PageUrl;
use crate::web::robots::AgentRules;

use super::rows::{Host, Place, Purpose, Rank, Request};
use super::{Frontier, Reason};

/// Redirects of a robots.txt that are followed. Source: RFC 9309, 2.3.1.2.
const ROBOTS_REDIRECTS_MAX: u8 = 5;

/// Least time for which a copy is used, whatever is set.
const ROBOTS_TTL_FLOOR: Duration = Duration::from_millis(100);

/// What a request for a robots.txt came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RobotsAnswer {
    /// The file, and for how long its server says that it is fresh. One that is longer than
    /// `robots_size_max` counts up to there.
    Rules(Vec<u8>, Option<Duration>),
    /// There is none (status 400 to 499 without 429), so that everything is allowed.
    None,
    /// It may be at another address.
    Redirect(PageUrl),
    /// It cannot be had, so that nothing is allowed until it can.
    Unreachable(Reason),
}

/// What holds for a host whose robots.txt was unreachable for very long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RobotsLost {
    /// The last good copy stays in force; without one, nothing is allowed.
    #[default]
    Keep,
    /// Everything is allowed until it can be had again.
    Allow,
}

/// What a host's robots.txt says of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may be fetched.
    Allowed,
    /// It must not be fetched.
    Disallowed,
    /// The host itself must not be contacted.
    Refused,
    /// The file has to be fetched first.
    Unknown,
}

/// The stored copy of a robots.txt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsCopy {
    /// Status of the last answer; 0 for none.
    pub status: u16,
    /// When the copy was fetched.
    pub fetched: Timestamp,
    /// When it must be fetched anew.
    pub expires: Timestamp,
    /// Tries in a row that did not reach it.
    pub failures: u8,
    /// The last good copy; empty if everything is allowed; none if there never was one.
    pub body: Option<Vec<u8>>,
    /// The file is longer: all but the last byte of the copy counts.
    pub cut: bool,
}

impl RobotsCopy {
    pub(super) fn encode(&self) -> Vec<u8> {
        let body = self.body.as_deref().unwrap_or_default();
        let packed = zstd::bulk::compress(body, 1).expect("compressing into memory cannot fail");
        Encoder::new(1)
            .number(self.status)
            .signed(self.fetched.0)
            .signed(self.expires.0)
            .number(self.failures)
            .number(if self.cut { 2 } else { u8::from(self.body.is_some()) })
            .number(body.len() as u64)
            .bytes(&packed)
            .finish()
    }

    fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::new("robots", 1, row)?;
        let mut copy = Self {
            status: row.narrow()?,
            fetched: Timestamp(row.signed()?),
            expires: Timestamp(row.signed()?),
            failures: row.narrow()?,
            body: None,
            cut: false,
        };
        let parts = row.number()?;
        let length: usize = row.narrow()?;
        // What a damaged row names as length is not asked for as memory.
        let mut body = Vec::new();
        let packed = row.bytes()?;
        zstd::Decoder::with_buffer(packed)
            .and_then(|decoder| {
                decoder.take((length as u64).saturating_add(1)).read_to_end(&mut body)
            })
            .map_err(|_| row.bad("its file cannot be decompressed"))?;
        if body.len() != length {
            return Err(row.bad("its file is cut short"));
        }
        copy.body = (parts > 0).then_some(body);
        copy.cut = parts > 1;
        Ok(copy)
    }

    /// Returns how many bytes of a file count that is longer.
    #[must_use]
    pub fn cut_after(&self) -> Option<usize> {
        self.body.as_ref().filter(|_| self.cut).map(|body| body.len().saturating_sub(1))
    }

    /// Reads the copy of a host.
    pub fn read(
        robots: &impl ReadableTable<u32, &'static [u8]>,
        host: u32,
    ) -> Result<Option<Self>, Error> {
        let row = robots.get(host)?;
        Ok(row.map(|row| Self::decode(row.value())).transpose()?)
    }
}

impl Host {
    /// It is left alone because its robots.txt cannot be had, or not even its address.
    fn lacks_robots(&self) -> bool {
        matches!(self.trouble, Some(Reason::RobotsUnreachable | Reason::Dns))
    }
}

impl Frontier {
    /// Tells what the robots.txt of `host` says of a path with its query.
    pub(super) fn standing(
        &mut self,
        tables: &Tables<'_>,
        host: u32,
        path_and_query: &str,
        now: Timestamp,
    ) -> Result<Standing, Error> {
        let live = self.hosts.get(tables, host)?;
        if live.row.trouble == Some(Reason::AddressRefused) {
            let copy = RobotsCopy::read(&tables.robots, host)?;
            let refused = copy.is_some_and(|copy| now < copy.expires);
            return Ok(if refused { Standing::Refused } else { Standing::Unknown });
        }
        if live.rules.is_none() {
            let copy = RobotsCopy::read(&tables.robots, host)?;
            if let Some(RobotsCopy { body: Some(body), expires, .. }) = &copy {
                let cut_after = copy.as_ref().and_then(RobotsCopy::cut_after);
                let rules = self.config.read_robots(body, cut_after).for_agent(&self.config.agent);
                live.rules_bytes = rules.bytes();
                live.rules = Some((rules, *expires));
            }
        }
        Ok(match &live.rules {
            Some((rules, expires)) if now < *expires => {
                let allowed = rules.allowed(path_and_query);
                if allowed { Standing::Allowed } else { Standing::Disallowed }
            }
            _ => Standing::Unknown,
        })
    }

    /// Records the answer to a request for the robots.txt of `of`.
    pub(super) fn settle_robots(
        &mut self,
        tables: &mut Tables<'_>,
        (of, hops): (u32, u8),
        (answer, status): (RobotsAnswer, u16),
        now: Timestamp,
    ) -> Result<(), Error> {
        let live = self.hosts.get(tables, of)?;
        live.row.robots_elsewhere = false;
        live.dirty = true;
        live.hold = true;
        let (body, fresh) = match answer {
            RobotsAnswer::Rules(body, fresh) => (body, fresh),
            RobotsAnswer::None => (Vec::new(), None),
            // More hops than that mean "unavailable", which allows everything.
            RobotsAnswer::Redirect(_) if hops >= ROBOTS_REDIRECTS_MAX => (Vec::new(), None),
            RobotsAnswer::Redirect(target) => {
                live.row.robots_elsewhere = true;
                return self.ask_elsewhere(tables, (of, hops + 1), &target);
            }
            // Its own address is private: nothing is to be had there, now or later.
            RobotsAnswer::Unreachable(Reason::AddressRefused) if hops == 0 => {
                live.row.trouble = Some(Reason::AddressRefused);
                let expires = now.after(self.robots_ttl(None));
                let copy = RobotsCopy {
                    status,
                    fetched: now,
                    expires,
                    failures: 0,
                    body: None,
                    cut: false,
                };
                tables.robots.insert(of, copy.encode().as_slice())?;
                return self.reschedule(tables, of);
            }
            RobotsAnswer::Unreachable(reason) => {
                // Where the host itself is nowhere, its robots.txt is not what is missing.
                let nowhere = reason == Reason::Dns && hops == 0;
                let trouble = if nowhere { reason } else { Reason::RobotsUnreachable };
                self.unreachable(tables, of, (trouble, status), now)?;
                return self.reschedule(tables, of);
            }
        };
        let file = self.config.read_robots(&body, None);
        let rules: AgentRules = file.for_agent(&self.config.agent);
        let ttl = self.robots_ttl(fresh);
        let live = self.hosts.get(tables, of)?;
        let delay = rules.crawl_delay().map_or(0, |delay| delay.as_millis());
        live.row.crawl_delay_ms = u64::try_from(delay).unwrap_or(u64::MAX);
        live.row.slow_lane = live.row.crawl_delay_ms > self.config.slow_lane.millis();
        let delay = self.config.delay(&live.row);
        // A host that wants a request a week gets a page for each file, not only files.
        let expires = now.after(ttl.max(delay.saturating_mul(2)));
        if live.row.lacks_robots() {
            live.row.trouble = None;
            live.row.blocked_until = Timestamp(0);
            tracing::info!(host = %live.row.key, "robots.txt is reachable again");
        }
        if let Some(bytes) = file.cut() {
            let host = &live.row.key;
            tracing::warn!(%host, bytes, "robots.txt was cut: rules beyond do not hold");
        }
        live.rules_bytes = rules.bytes();
        live.rules = Some((rules, expires));
        let cut = file.cut().is_some();
        let copy = RobotsCopy { status, fetched: now, expires, failures: 0, body: Some(body), cut };
        tables.robots.insert(of, copy.encode().as_slice())?;
        // The pace that the file asks for holds from this very request on.
        let next = now.after(delay);
        let live = self.hosts.get(tables, of)?;
        if live.row.contacted {
            live.row.next_allowed = live.row.next_allowed.max(next);
        }
        self.reschedule(tables, of)?;
        self.offer_sitemaps(tables, of, file.sitemaps(), now)
    }

    /// Returns how long a copy may be used: as its server says, within our bounds.
    fn robots_ttl(&self, fresh: Option<Duration>) -> Duration {
        let most = self.config.robots_ttl.duration();
        let least = self.config.robots_ttl_min.duration();
        // A copy that is never fresh would be asked for without end.
        fresh.map_or(most, |fresh| fresh.max(least).min(most)).max(ROBOTS_TTL_FLOOR)
    }

    fn ask_elsewhere(
        &mut self,
        tables: &mut Tables<'_>,
        (of, hops): (u32, u8),
        target: &PageUrl,
    ) -> Result<(), Error> {
        let host = self.hosts.number(tables, &target.host_key())?;
        let sequence = tables.next_number("next_request")?;
        let place = Place { rank: Rank::Robots, depth: 0, sequence };
        let purpose = Purpose::Robots { of, hops };
        self.reschedule(tables, of)?;
        self.push(tables, host, place, &Request { purpose, url: target.as_str().to_owned() })
    }

    /// Keeps the last good copy in force, or leaves the host alone; either way until the next try.
    fn unreachable(
        &mut self,
        tables: &mut Tables<'_>,
        of: u32,
        (trouble, status): (Reason, u16),
        now: Timestamp,
    ) -> Result<(), Error> {
        let never = || RobotsCopy {
            status,
            fetched: now,
            expires: now,
            failures: 0,
            body: None,
            cut: false,
        };
        let mut copy = RobotsCopy::read(&tables.robots, of)?.unwrap_or_else(never);
        let wait = self.doubled(self.config.robots_retry.millis(), u32::from(copy.failures));
        let wait = self.scattered(wait, (of, now));
        copy.status = status;
        copy.failures = copy.failures.saturating_add(1);
        copy.expires = now.after(wait);
        let longest = self.config.robots_unreachable_max.duration();
        let lost = copy.fetched.until(now) >= longest;
        let live = self.hosts.get(tables, of)?;
        tracing::info!(host = %live.row.key, again = %copy.expires, "robots.txt is unreachable");
        if lost && self.config.robots_lost == RobotsLost::Allow {
            (copy.body, copy.cut) = (Some(Vec::new()), false);
            (live.rules, live.rules_bytes) = (None, 0);
            if live.row.lacks_robots() {
                live.row.trouble = None;
                live.row.blocked_until = Timestamp(0);
            }
        }
        if copy.body.is_none() {
            live.row.blocked_until = live.row.blocked_until.max(copy.expires);
            live.row.trouble = Some(trouble);
        } else if let Some((_, expires)) = &mut live.rules {
            *expires = copy.expires;
        }
        tables.robots.insert(of, copy.encode().as_slice())?;
        Ok(())
    }
}
