//! When a URL that was visited is to be visited again, by what its server can tell that
//! nothing has changed, and what a further visit can show.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::base::units::Time;
use crate::store::{Flag, Nested, Number, Signed, Text, row};

use super::PageCut;
use super::rows::Rank;

/// Least interval whatever is set: a URL that was just visited is never due at once.
const INTERVAL_FLOOR_MS: u64 = 1_000;

/// Bytes of a validator that is kept; a longer one is as good as none.
const VALIDATOR_BYTES_MAX: usize = 256;

/// Settings of further visits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recrawl {
    /// Visit URLs again that are due. When they are is noted in any case.
    pub enabled: bool,
    /// Shortest time between two visits; at least one second.
    pub interval_min: Time,
    /// Time between the first visit of a page and the second one. Seeds and sitemaps begin with the
    /// shortest.
    pub interval_first: Time,
    /// Longest time between two visits.
    pub interval_max: Time,
    /// The same for seeds and sitemaps, on which new pages are found.
    pub seed_interval_max: Time,
    /// The interval is multiplied by this after a change, 0 to 1.
    pub shorten: f64,
    /// The interval is multiplied by this after a visit without change, 1 or more.
    pub lengthen: f64,
    /// Copies that are not canonical wait so many times longer, 1 or more.
    pub copy_factor: f64,
    /// Answers "not modified" in a row after which the page is asked for whole, because servers
    /// lie; 0 for never.
    pub full_after: u16,
    /// Visits in a row that find no page any more after which a stored one is given up.
    pub gone_after: u8,
    /// Similarity (share of common shingles, 0 to 1) from which a text is not changed.
    pub unchanged_min: f32,
}

impl Default for Recrawl {
    fn default() -> Self {
        Self {
            enabled: false,
            interval_min: Time::from_secs(3_600),
            interval_first: Time::from_secs(72_000),
            interval_max: Time::from_secs(2_592_000),
            seed_interval_max: Time::from_secs(86_400),
            shorten: 0.5,
            lengthen: 1.5,
            copy_factor: 3.0,
            full_after: 10,
            gone_after: 2,
            unchanged_min: 0.9,
        }
    }
}

impl Recrawl {
    /// Returns the shortest and the longest interval of a URL of this rank.
    #[must_use]
    pub fn bounds(&self, rank: Rank) -> (u64, u64) {
        let longest = match rank {
            Rank::Seed | Rank::Sitemap | Rank::LateSitemap => {
                self.seed_interval_max.millis().min(self.interval_max.millis())
            }
            _ => self.interval_max.millis(),
        };
        let shortest = self.interval_min.millis().max(INTERVAL_FLOOR_MS);
        (shortest, longest.max(shortest))
    }

    /// Returns the interval after a visit that found a change or none; `before` is 0 for the
    /// first visit. It is always within the bounds.
    #[must_use]
    pub fn interval(&self, rank: Rank, before: u64, changed: bool) -> u64 {
        let (shortest, longest) = self.bounds(rank);
        let next = match (before, rank) {
            (0, Rank::Seed | Rank::Sitemap | Rank::LateSitemap) => shortest,
            (0, _) => self.interval_first.millis(),
            (before, _) if changed => times(before, self.shorten.min(1.0)),
            (before, _) => times(before, self.lengthen.max(1.0)),
        };
        next.clamp(shortest, longest)
    }

    /// Returns the wait of a copy that is not canonical, of which another one tells enough.
    #[must_use]
    pub fn of_copy(&self, rank: Rank, interval: u64) -> u64 {
        let (shortest, longest) = self.bounds(rank);
        times(interval, self.copy_factor.max(1.0)).clamp(shortest, longest)
    }
}

/// A product that ends at the ends of the range, whatever the factor is.
fn times(interval: u64, factor: f64) -> u64 {
    #[expect(clippy::cast_sign_loss, reason = "what is below zero becomes zero")]
    let product = (interval as f64 * factor) as u64;
    product
}

row! {
    /// By what a server can tell that a page has not changed: as it sent it, or empty.
    ///
    /// Source: RFC 9110, 8.8.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct Validators: part {
        /// `ETag`, weak or strong.
        pub etag: String = Text;
        /// `Last-Modified`.
        pub last_modified: String = Text;
    }
}

impl Validators {
    /// Keeps what may stand in a header and is not too long.
    #[must_use]
    pub fn new(etag: Option<&str>, last_modified: Option<&str>) -> Self {
        let kept = |value: Option<&str>| {
            let value = value.map_or("", str::trim);
            let fine = value.len() <= VALIDATOR_BYTES_MAX
                && value.bytes().all(|byte| (0x20..0x7F).contains(&byte));
            if fine { value.to_owned() } else { String::new() }
        };
        Self { etag: kept(etag), last_modified: kept(last_modified) }
    }

    /// Tells whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.etag.is_empty() && self.last_modified.is_empty()
    }

    /// Returns what may be sent at `now`: a date in the future, or none at all, proves nothing.
    pub(super) fn sendable(&self, now: Timestamp) -> Self {
        let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(&self.last_modified);
        let past = date.is_ok_and(|date| date.as_millisecond() <= now.0);
        let last_modified = if past { self.last_modified.clone() } else { String::new() };
        Self { etag: self.etag.clone(), last_modified }
    }

    /// Takes over what a newer answer says, and keeps what it says nothing of.
    pub(super) fn update(&mut self, newer: Self) {
        if !newer.etag.is_empty() {
            self.etag = newer.etag;
        }
        if !newer.last_modified.is_empty() {
            self.last_modified = newer.last_modified;
        }
    }
}

row! {
    /// The part of a URL row that is about further visits.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct Revisit: part {
        /// Of the last whole answer.
        pub validators: Validators = Nested;
        /// When it is due again; 0 for never.
        pub due: Timestamp = Signed;
        /// Present interval in milliseconds; 0 before the first visit has ended.
        pub interval_ms: u64 = Number;
        /// Visits that were answered.
        pub visits: u64 = Number;
        /// Visits that found something else than the one before.
        pub changes: u64 = Number;
        /// When the last of them was; 0 for never.
        pub changed: Timestamp = Signed;
        /// Answers "not modified" in a row.
        pub unmodified: u16 = Number;
        /// Visits in a row that found no page any more.
        pub misses: u8 = Number;
        /// It is in a queue for another visit.
        pub waits: bool = Flag;
    }
}

/// What a visit told beside its settlement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// End of the answer, rounded up.
    pub finished: Timestamp,
    /// Status of the answer; 0 without one.
    pub status: u16,
    /// How long it took to come.
    pub took: Duration,
    /// IP address of the host, as far as it is known.
    pub address: Option<IpAddr>,
    /// Why only the start of the page was read, if that is so.
    pub cut: Option<PageCut>,
    /// Of the answer.
    pub validators: Validators,
    /// Links of the page beyond the limit; none if no page was read.
    pub links_beyond: Option<u64>,
    /// The page says something else than at the last visit, or links to new URLs.
    pub changed: bool,
}

impl Told {
    /// An answer of which only the status counts.
    #[must_use]
    pub fn status(status: u16, finished: Timestamp) -> Self {
        Self { finished, status, ..Self::default() }
    }
}

/// What a further visit has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The server says that it is not modified.
    Unmodified,
    /// It was read and says the same, or nearly the same.
    Unchanged,
    /// It says something else.
    Changed,
    /// There is no page any more, but that may be an error.
    Missing,
    /// There is no page any more, for good.
    Gone,
    /// There was no answer that tells anything.
    Failed,
}

impl Fate {
    /// The page has changed, or is no more.
    pub(super) fn is_change(self) -> bool {
        matches!(self, Self::Changed | Self::Gone)
    }
}

/// What settling has come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settled {
    /// If the URL was visited before.
    pub fate: Option<Fate>,
    /// Document of which the URL carries no copy any more.
    pub left: Option<u64>,
}
