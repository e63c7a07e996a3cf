//! A date as a page gives it: with or without a time of day, with or without an offset.

use std::fmt;

use jiff::civil::{Date, Time};
use jiff::tz::Offset;

/// Oldest year of a page: there was no web before.
const YEAR_MIN: i16 = 1990;

/// A date, and the time of day and the offset from UTC where the page gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The date.
    pub date: Date,
    /// The time of day.
    pub time: Option<Time>,
    /// The offset from UTC of that time.
    pub offset: Option<Offset>,
}

impl Moment {
    /// Returns the day, if there is such a day and the web was there.
    pub(super) fn day(year: i32, month: i32, day: i32) -> Option<Self> {
        let year = i16::try_from(year).ok().filter(|year| (YEAR_MIN..2100).contains(year))?;
        let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
        let date = Date::new(year, month, day).ok()?;
        Some(Self { date, time: None, offset: None })
    }
}

impl fmt::Display for Moment {
    /// Writes ISO 8601, no more precise than the page was: `2024-03-05`, `2024-03-05T10:22:00`,
    /// `2024-03-05T10:22:00+08:00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.date.year(), self.date.month(), self.date.day())?;
        let Some(time) = self.time else { return Ok(()) };
        write!(f, "T{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())?;
        let Some(offset) = self.offset else { return Ok(()) };
        let minutes = offset.seconds() / 60;
        if minutes == 0 {
            return f.write_str("Z");
        }
        let sign = if minutes < 0 { '-' } else { '+' };
        write!(f, "{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
    }
}
