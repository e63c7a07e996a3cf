//! Dates as pages and people write them: each is a span of time.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span as JiffSpan, ToSpan as _};

use crate::base::clock::Timestamp;

/// A year, a month, a day, or a moment. Without an offset it is one of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// Its first millisecond.
    pub from: Timestamp,
    /// The first millisecond after it.
    pub until: Timestamp,
}

/// How a moment stands to a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Within,
    Before,
    NotAfter,
    After,
    NotBefore,
}

impl Span {
    /// Reads `2026`, `2026-11`, `2026-11-21`, `2026-11-21T06:00:00`, with an offset or without.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let civil = match text.len() {
            4 => Self::days(&format!("{text}-01-01"), 1.year()),
            7 => Self::days(&format!("{text}-01"), 1.month()),
            8 | 10 => Self::days(text, 1.day()),
            _ => None,
        };
        if civil.is_some() {
            return civil;
        }
        let moment: Option<jiff::Timestamp> = text.parse().ok();
        let moment = moment.or_else(|| {
            let civil: DateTime = text.parse().ok()?;
            Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
        })?;
        let from = moment.as_millisecond();
        // A moment is written in seconds.
        let whole = from.rem_euclid(1000) == 0;
        Some(Self { from: Timestamp(from), until: Timestamp(from + if whole { 1000 } else { 1 }) })
    }

    fn days(first: &str, length: JiffSpan) -> Option<Self> {
        let first: Date = first.parse().ok()?;
        let start = |date: Date| {
            let zoned = date.to_zoned(TimeZone::UTC).ok()?;
            Some(Timestamp(zoned.timestamp().as_millisecond()))
        };
        Some(Self { from: start(first)?, until: start(first.checked_add(length).ok()?)? })
    }

    /// Tells whether a moment stands so to it.
    pub(super) fn compare(&self, order: Order, time: Timestamp) -> bool {
        match order {
            Order::Within => self.from <= time && time < self.until,
            Order::Before => time < self.from,
            Order::NotAfter => time < self.until,
            Order::After => time >= self.until,
            Order::NotBefore => time >= self.from,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_a_span_and_what_is_none_is_told() {
        for (text, from, hours) in [
            ("2026", "2026-01-01T00:00:00Z", 365 * 24),
            ("2026-11", "2026-11-01T00:00:00Z", 30 * 24),
            ("2026-11-21", "2026-11-21T00:00:00Z", 24),
            ("20261121", "2026-11-21T00:00:00Z", 24),
        ] {
            let span = Span::read(text).unwrap();
            assert_eq!(span.from.to_string(), from, "{text}");
            assert_eq!(span.until.0 - span.from.0, hours * 3_600_000, "{text}");
        }
        for text in ["2026-11-21T08:00:00+08:00", "2026-11-21T00:00:00", "2026-11-21T00:00:00Z"] {
            let span = Span::read(text).unwrap();
            assert_eq!(span.from.to_string(), "2026-11-21T00:00:00Z", "{text}");
            assert_eq!(span.until.0 - span.from.0, 1000, "{text}");
        }
        for text in ["", "soon", "2026-13", "2026-02-30", "yesterday", "12345678901234"] {
            assert_eq!(Span::read(text), None, "{text}");
        }
    }
}
