//! When a job is due: a cron line in a time zone, or an interval from a first moment on.

use std::fmt;
use std::time::Duration;

use croner::parser::{CronParser, Seconds, Year};
use croner::{Cron, Direction};
use jiff::Zoned;
use jiff::tz::TimeZone;

use crate::base::clock::Timestamp;

/// Shortest interval between two runs.
const EVERY_MIN: Duration = Duration::from_secs(1);

/// When a job is due.
#[derive(Debug, Clone)]
pub enum Schedule {
    /// At the wall-clock times of a cron line.
    Cron {
        /// The line: minute, hour, day of month, month, day of week.
        line: Box<Cron>,
        /// Where that clock hangs.
        zone: TimeZone,
    },
    /// This long after the last planned moment, however long the run took.
    Every(Duration),
}

impl Schedule {
    /// Reads a cron line of five fields, or a nickname such as `@daily`.
    ///
    /// # Errors
    ///
    /// Says in words what is wrong with it; a line that never comes is an error too.
    pub fn cron(line: &str, zone: TimeZone) -> Result<Self, String> {
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed);
        let cron = parser.build().parse(line).map_err(|error| format!("`{line}`: {error}"))?;
        let schedule = Self::Cron { line: Box::new(cron), zone };
        // The 30th of February passes the parser.
        if schedule.next_after(Timestamp(0), Timestamp(0)).is_none() {
            return Err(format!("`{line}` never comes"));
        }
        Ok(schedule)
    }

    /// Makes an interval.
    ///
    /// # Errors
    ///
    /// If it is shorter than a second.
    pub fn every(interval: Duration) -> Result<Self, String> {
        if interval < EVERY_MIN {
            return Err(format!("an interval must be {EVERY_MIN:?} or longer"));
        }
        Ok(Self::Every(interval))
    }

    /// Finds a time zone of the IANA database.
    ///
    /// # Errors
    ///
    /// If there is none of that name.
    pub fn zone(name: &str) -> Result<TimeZone, String> {
        TimeZone::get(name).map_err(|_| format!("`{name}` is no time zone, such as Europe/Berlin"))
    }

    /// Returns the first moment after `moment` at which the job is due; none if it never is again.
    /// Intervals are counted from `anchor`, which is their first moment.
    ///
    /// A wall-clock time that is left out when summer time begins comes right after the gap; one
    /// that comes twice when it ends counts once. Lines with `*` or a step in the minute or hour
    /// follow the hours that really pass.
    #[must_use]
    pub fn next_after(&self, moment: Timestamp, anchor: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron { line, zone } => find(line, zone, moment, Direction::Forward),
            Self::Every(interval) => {
                let step = millis(*interval);
                if moment < anchor {
                    return Some(anchor);
                }
                let steps = moment.0.saturating_sub(anchor.0) / step + 1;
                Some(Timestamp(anchor.0.saturating_add(steps.saturating_mul(step))))
            }
        }
    }

    /// Returns the last moment that is not after `moment`; none if there was none.
    #[must_use]
    pub fn last_until(&self, moment: Timestamp, anchor: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron { line, zone } => {
                // Cron counts in seconds: from the end of the one that `moment` is in.
                let end = Timestamp(moment.0.saturating_add(1_000));
                find(line, zone, end, Direction::Backward)
            }
            Self::Every(interval) => {
                let steps = moment.0.checked_sub(anchor.0)?.div_euclid(millis(*interval));
                (steps >= 0).then(|| Timestamp(anchor.0 + steps * millis(*interval)))
            }
        }
    }

    /// Writes a moment as the clock of this schedule shows it, with its offset and zone.
    #[must_use]
    pub fn show(&self, moment: Timestamp) -> String {
        let zone = match self {
            Self::Cron { zone, .. } => zone.clone(),
            Self::Every(_) => TimeZone::UTC,
        };
        match zoned(moment, &zone) {
            Some(time) => time.strftime("%a %Y-%m-%d %H:%M:%S %:z %Q").to_string(),
            None => moment.to_string(),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron { line, zone } => {
                write!(f, "{} {}", line.as_str(), zone.iana_name().unwrap_or("UTC"))
            }
            Self::Every(interval) => {
                write!(f, "every {}", words(*interval))
            }
        }
    }
}

/// Writes an interval in the largest unit that divides it.
fn words(interval: Duration) -> String {
    let millis = interval.as_millis();
    for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        if millis.is_multiple_of(size) {
            return format!("{}{unit}", millis / size);
        }
    }
    format!("{millis}ms")
}

fn millis(interval: Duration) -> i64 {
    i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1)
}

fn zoned(moment: Timestamp, zone: &TimeZone) -> Option<Zoned> {
    jiff::Timestamp::from_millisecond(moment.0).ok().map(|time| time.to_zoned(zone.clone()))
}

/// The nearest match that lies strictly on one side of the second of `moment`.
fn find(cron: &Cron, zone: &TimeZone, moment: Timestamp, side: Direction) -> Option<Timestamp> {
    let from = zoned(Timestamp(moment.0 - moment.0.rem_euclid(1_000)), zone)?;
    let found = match side {
        Direction::Forward => cron.find_next_occurrence(&from, false),
        Direction::Backward => cron.find_previous_occurrence(&from, false),
    };
    found.ok().map(|time| Timestamp(time.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    #[track_caller]
    fn check(line: &str, zone: &str, from: &str, comes: &[&str]) {
        let schedule = Schedule::cron(line, Schedule::zone(zone).unwrap()).unwrap();
        let mut moment = at(from);
        let mut found = Vec::new();
        for _ in comes {
            let next = schedule.next_after(moment, Timestamp(0)).unwrap();
            assert_eq!(schedule.last_until(next, Timestamp(0)), Some(next), "backwards too");
            let before = Timestamp(next.0 - 1);
            assert!(schedule.last_until(before, Timestamp(0)) < Some(next));
            found.push(next.to_string());
            moment = next;
        }
        assert_eq!(found, comes, "{line} {zone}");
    }

    #[test]
    fn a_time_that_is_left_out_comes_after_the_gap_and_one_that_comes_twice_counts_once() {
        // On 2026-03-29 the clock in Berlin goes from 02:00 to 03:00, at 01:00 UTC.
        check(
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T00:00:00Z",
            &["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
        );
        // On 2026-10-25 it goes back from 03:00 to 02:00, at 01:00 UTC.
        check(
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T00:00:00Z",
            &["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        );
        // The southern half of the world turns the other way.
        check(
            "0 9 * * 1-5",
            "Australia/Sydney",
            "2026-10-01T23:30:00Z",
            &["2026-10-04T22:00:00Z", "2026-10-05T22:00:00Z"],
        );
    }

    #[test]
    fn hourly_lines_follow_the_hours_that_pass() {
        check(
            "0 * * * *",
            "Europe/Berlin",
            "2026-10-24T23:30:00Z",
            &["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"],
        );
        check(
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:20:00Z",
            &["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"],
        );
    }

    #[test]
    fn intervals_are_counted_from_their_first_moment() {
        let schedule = Schedule::every(Duration::from_hours(6)).unwrap();
        let anchor = at("2026-01-01T00:05:00Z");
        let next = |moment: &str| schedule.next_after(at(moment), anchor).unwrap().to_string();
        assert_eq!(next("2025-12-31T00:00:00Z"), "2026-01-01T00:05:00Z");
        assert_eq!(next("2026-01-01T00:05:00Z"), "2026-01-01T06:05:00Z");
        assert_eq!(next("2026-01-01T06:04:59Z"), "2026-01-01T06:05:00Z");
        let last = |moment: &str| schedule.last_until(at(moment), anchor);
        assert_eq!(last("2026-01-01T00:04:59Z"), None);
        assert_eq!(last("2026-01-01T06:04:59Z"), Some(anchor));
        assert_eq!(last("2026-01-01T06:05:00Z"), Some(at("2026-01-01T06:05:00Z")));
        assert_eq!(schedule.to_string(), "every 6h");
    }

    #[test]
    fn bad_lines_are_told_and_never_taken() {
        for line in ["", "* * * *", "61 * * * *", "0 0 30 2 *", "0 0 * * * *", "a b c d e"] {
            assert!(Schedule::cron(line, TimeZone::UTC).is_err(), "{line}");
        }
        assert!(Schedule::zone("Europe/Nowhere").is_err());
        assert!(Schedule::every(Duration::from_millis(999)).is_err());
        assert!(Schedule::every(Duration::from_secs(1)).is_ok());
        assert!(Schedule::cron("@daily", TimeZone::UTC).is_ok());
    }
}
