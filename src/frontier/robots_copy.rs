//! The stored copies of robots.txt, and what they say of a URL.

use std::io::Read as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::store::{
    BadRow, Batch, Codec, Decoder, Encoder, Error, Number, Signed, Update as _, View as _, row,
};
use crate::urls::PageUrl;
use crate::web::robots::AgentRules;

use super::rows::{Host, Purpose, QueuePlace, Rank, Request};
use super::tables::ROBOTS;
use super::{Frontier, Lease, Reason, Told};

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
    /// It may be at another URL.
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

/// What a host's robots.txt says of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RobotsStanding {
    /// It may be fetched.
    Allowed,
    /// It must not be fetched.
    Disallowed,
    /// The host itself must not be contacted.
    Refused,
    /// The file has to be fetched first.
    Unknown,
}

row! {
    /// The stored copy of a robots.txt.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RobotsCopy: "robots", 1 to 1 {
        /// Status of the last answer; 0 for none.
        pub status: u16 = Number;
        /// When the copy was fetched.
        pub fetched: Timestamp = Signed;
        /// When it must be fetched anew.
        pub expires: Timestamp = Signed;
        /// Tries in a row that did not reach it.
        pub failures: u8 = Number;
        /// The last good copy; none if there never was one.
        pub body: Option<RobotsBody> = Packed;
    }
}

/// A robots.txt as it was had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RobotsBody {
    bytes: Vec<u8>,
    /// The file is longer: all but the last byte counts.
    cut: bool,
}

impl RobotsBody {
    /// It has no rules: everything is allowed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns how many bytes of the file count, if it is longer.
    fn cut_after(&self) -> Option<usize> {
        self.cut.then(|| self.bytes.len().saturating_sub(1))
    }
}

/// 0 for none, 1 for a whole one, 2 for a cut one; its length; its bytes, compressed.
struct Packed;

impl Codec<Option<RobotsBody>> for Packed {
    const SHAPE: &'static str = "number (0 none, 1 whole, 2 cut), length, zstd";

    fn put(body: &Option<RobotsBody>, row: Encoder) -> Encoder {
        let parts = body.as_ref().map_or(0_u8, |body| if body.cut { 2 } else { 1 });
        let bytes = body.as_ref().map_or(&[][..], |body| &body.bytes);
        let packed = zstd::bulk::compress(bytes, 1).expect("compressing into memory cannot fail");
        row.number(parts).number(bytes.len() as u64).bytes(&packed)
    }

    fn take(row: &mut Decoder<'_>) -> Result<Option<RobotsBody>, BadRow> {
        let parts = row.number()?;
        let length: usize = row.narrow()?;
        // What a damaged row names as length is not asked for as memory.
        let mut bytes = Vec::new();
        zstd::Decoder::with_buffer(row.bytes()?)
            .and_then(|decoder| {
                decoder.take((length as u64).saturating_add(1)).read_to_end(&mut bytes)
            })
            .map_err(|_| row.bad("its file cannot be decompressed"))?;
        if bytes.len() != length {
            return Err(row.bad("its file is cut short"));
        }
        Ok((parts > 0).then_some(RobotsBody { bytes, cut: parts > 1 }))
    }
}

impl RobotsCopy {
    /// Returns how many bytes of a file count that is longer.
    #[must_use]
    pub fn cut_after(&self) -> Option<usize> {
        self.body.as_ref().and_then(RobotsBody::cut_after)
    }
}

impl Host {
    /// It is left alone because its robots.txt cannot be had, or not even its URL.
    fn lacks_robots(&self) -> bool {
        matches!(self.trouble, Some(Reason::RobotsUnreachable | Reason::Dns))
    }
}

impl Frontier {
    /// Tells what the robots.txt of `host` says of a path with its query.
    pub(super) fn standing(
        &mut self,
        batch: &Batch,
        host: u32,
        path_and_query: &str,
        now: Timestamp,
    ) -> Result<RobotsStanding, Error> {
        let live = self.hosts.get(batch, host)?;
        if live.row.trouble == Some(Reason::AddressRefused) {
            let copy = batch.get(ROBOTS, host)?;
            let refused = copy.is_some_and(|copy| now < copy.expires);
            return Ok(if refused { RobotsStanding::Refused } else { RobotsStanding::Unknown });
        }
        if live.rules.is_none() {
            let copy = batch.get(ROBOTS, host)?;
            if let Some(RobotsCopy { body: Some(body), expires, .. }) = &copy {
                let rules = self.config.read_robots(&body.bytes, body.cut_after());
                let rules = rules.for_agent(&self.config.agent);
                live.rules_bytes = rules.bytes();
                live.rules = Some((rules, *expires));
            }
        }
        Ok(match &live.rules {
            Some((rules, expires)) if now < *expires => {
                let allowed = rules.allowed(path_and_query);
                if allowed { RobotsStanding::Allowed } else { RobotsStanding::Disallowed }
            }
            _ => RobotsStanding::Unknown,
        })
    }

    /// Records the answer to a request for a robots.txt.
    pub(super) fn settle_robots(
        &mut self,
        batch: &mut Batch,
        lease: &Lease,
        answer: RobotsAnswer,
        told: &Told,
    ) -> Result<(), Error> {
        let (of, hops) = match lease.purpose {
            Purpose::Robots { of, hops } => (of, hops),
            // A host that cannot be found has no robots.txt either.
            _ => (lease.host, 0),
        };
        let (status, now) = (told.status, told.finished);
        let elsewhere = matches!(&answer, RobotsAnswer::Redirect(url) if self.is_elsewhere(url));
        let live = self.hosts.get(batch, of)?;
        live.row.robots_elsewhere = false;
        live.dirty = true;
        live.hold = true;
        let (body, fresh) = match answer {
            // Whose pace it has to keep is not known here: no answer for now, and no licence.
            RobotsAnswer::Redirect(_) if elsewhere => {
                self.unreachable(batch, of, Reason::RobotsUnreachable, told)?;
                return self.reschedule(batch, of);
            }
            RobotsAnswer::Rules(body, fresh) => (body, fresh),
            RobotsAnswer::None => (Vec::new(), None),
            // More hops than that mean "unavailable", which allows everything.
            RobotsAnswer::Redirect(_) if hops >= ROBOTS_REDIRECTS_MAX => (Vec::new(), None),
            RobotsAnswer::Redirect(target) => {
                live.row.robots_elsewhere = true;
                return self.ask_elsewhere(batch, of, hops + 1, &target);
            }
            // Its own URL is private: nothing is to be had there, now or later.
            RobotsAnswer::Unreachable(Reason::AddressRefused) if hops == 0 => {
                live.row.trouble = Some(Reason::AddressRefused);
                let expires = now.after(self.robots_ttl(None));
                let copy = RobotsCopy { status, fetched: now, expires, failures: 0, body: None };
                batch.put(ROBOTS, of, &copy)?;
                return self.reschedule(batch, of);
            }
            RobotsAnswer::Unreachable(reason) => {
                // Where the host itself is nowhere, its robots.txt is not what is missing.
                let nowhere = reason == Reason::Dns && hops == 0;
                let trouble = if nowhere { reason } else { Reason::RobotsUnreachable };
                self.unreachable(batch, of, trouble, told)?;
                return self.reschedule(batch, of);
            }
        };
        let file = self.config.read_robots(&body, None);
        let rules: AgentRules = file.for_agent(&self.config.agent);
        let ttl = self.robots_ttl(fresh);
        let live = self.hosts.get(batch, of)?;
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
        let body = Some(RobotsBody { bytes: body, cut: file.cut().is_some() });
        let copy = RobotsCopy { status, fetched: now, expires, failures: 0, body };
        batch.put(ROBOTS, of, &copy)?;
        // The pace that the file asks for holds from this very request on.
        let next = now.after(delay);
        let live = self.hosts.get(batch, of)?;
        if live.row.contacted {
            live.row.next_allowed = live.row.next_allowed.max(next);
        }
        self.reschedule(batch, of)?;
        self.offer_sitemaps(batch, of, file.sitemaps(), now)
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
        batch: &mut Batch,
        of: u32,
        hops: u8,
        target: &PageUrl,
    ) -> Result<(), Error> {
        let host = self.hosts.number(batch, &target.host_key())?;
        let sequence = batch.next_number("next_request")?;
        let place = QueuePlace { rank: Rank::Robots, depth: 0, sequence };
        let purpose = Purpose::Robots { of, hops };
        self.reschedule(batch, of)?;
        self.push(batch, host, place, &Request { purpose, url: target.as_str().to_owned() })
    }

    /// Keeps the last good copy in force, or leaves the host alone; either way until the next try.
    fn unreachable(
        &mut self,
        batch: &mut Batch,
        of: u32,
        trouble: Reason,
        told: &Told,
    ) -> Result<(), Error> {
        let (status, now) = (told.status, told.finished);
        let never = RobotsCopy { status, fetched: now, expires: now, failures: 0, body: None };
        let mut copy = batch.get(ROBOTS, of)?.unwrap_or(never);
        let wait = self.doubled(self.config.robots_retry.millis(), u32::from(copy.failures));
        let wait = self.scattered(wait, of, now);
        copy.status = status;
        copy.failures = copy.failures.saturating_add(1);
        copy.expires = now.after(wait);
        let longest = self.config.robots_unreachable_max.duration();
        let lost = copy.fetched.until(now) >= longest;
        let live = self.hosts.get(batch, of)?;
        tracing::info!(host = %live.row.key, again = %copy.expires, "robots.txt is unreachable");
        if lost && self.config.robots_lost == RobotsLost::Allow {
            copy.body = Some(RobotsBody::default());
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
        batch.put(ROBOTS, of, &copy)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Row as _;

    #[test]
    fn a_copy_is_stored_with_whether_it_is_all_of_the_file() {
        let bytes = b"User-agent: *\nDisallow: /\n".to_vec();
        let whole = RobotsBody { bytes: bytes.clone(), cut: false };
        let cut = RobotsBody { bytes, cut: true };
        for (body, parts) in [(None, 0_u64), (Some(whole), 1), (Some(cut), 2)] {
            let packed = body.as_ref().map_or(&[][..], |body| &body.bytes);
            let packed = zstd::bulk::compress(packed, 1).unwrap();
            let length = body.as_ref().map_or(0, |body| body.bytes.len() as u64);
            let (fetched, expires) = (Timestamp(3), Timestamp(4));
            let copy = RobotsCopy { status: 200, fetched, expires, failures: 5, body };
            let row = Encoder::new(1).number(200_u64).keys(3).keys(4).number(5_u64);
            let row = row.number(parts).number(length).bytes(&packed).finish();
            assert_eq!(copy.encode().as_ref(), row);
            assert_eq!(RobotsCopy::decode(&row), Ok(copy));
        }
    }
}
