//! Times and sizes as people write them: `1h 30m`, `256 MiB`. Plain numbers have no meaning here.
//!
//! Times are read by jiff. Sizes are read here: the crates for them take plain numbers for bytes
//! and round what they print.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::fmt::friendly::SpanParser;
use jiff::{SpanRelativeTo, Unit};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A length of time in whole milliseconds, written `500ms`, `10s`, `1h 30m`, `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A number of bytes, written `4 KiB`, `256 MiB`, `2 GB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Size(u64);

/// Days have 24 hours here.
const TIME_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The unit that comes first is taken if it fits.
const SIZE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// What is wrong with a time or a size, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Time {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Makes a time of milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Makes a time of seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000))
    }

    /// Returns the milliseconds.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// Returns it as the standard library has it.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl Size {
    /// Makes a size of bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Makes a size of MiB.
    #[must_use]
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1 << 20))
    }

    /// Returns the bytes, no more than this machine can address.
    #[must_use]
    pub fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl From<Duration> for Time {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.pad("0s");
        }
        let (mut rest, mut parts) = (self.0, Vec::new());
        for (unit, millis) in TIME_UNITS {
            if rest >= millis {
                parts.push(format!("{}{unit}", rest / millis));
                rest %= millis;
            }
        }
        f.pad(&parts.join(" "))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, bytes): &&(&str, u64)| self.0 >= *bytes && self.0.is_multiple_of(*bytes);
        match SIZE_UNITS.iter().find(fits) {
            Some((unit, bytes)) => f.pad(&format!("{} {unit}", self.0 / bytes)),
            None => f.pad("0 B"),
        }
    }
}

/// `10` is 10 of what? 0 alone is the same in all units.
fn without_unit(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|number| number != 0.0)
}

fn no_unit(text: &str, units: &[&str]) -> Error {
    let ways: Vec<_> = units.iter().map(|unit| format!("\"{text}{unit}\"")).collect();
    Error(format!("`{text}` has no unit: write {}", ways.join(" or ")))
}

impl FromStr for Time {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text == "0" {
            return Ok(Self::ZERO);
        }
        if without_unit(text) {
            return Err(no_unit(text, &["ms", "s", "m", "h"]));
        }
        let days = SpanRelativeTo::days_are_24_hours();
        let millis = SpanParser::new().parse_span(text).ok().and_then(|span| {
            let exact = span.total((Unit::Nanosecond, days)).ok()?;
            let whole = exact >= 0.0 && exact % 1e6 == 0.0;
            let millis = span.to_duration(days).ok()?.as_millis();
            u64::try_from(millis).ok().filter(|_| whole)
        });
        let wrong = || {
            Error(format!(
                "`{text}` is no time: write numbers with ms, s, m, h or d, such as \"1h 30m\""
            ))
        };
        millis.map(Self).ok_or_else(wrong)
    }
}

impl FromStr for Size {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text == "0" {
            return Ok(Self(0));
        }
        if without_unit(text) {
            return Err(no_unit(text, &[" B", " KiB", " MiB"]));
        }
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()));
        let size = unit.and_then(|(_, bytes)| match number.parse::<u64>() {
            Ok(number) => number.checked_mul(*bytes),
            Err(_) => whole(number.parse::<f64>().ok()? * *bytes as f64),
        });
        let wrong = || {
            Error(format!(
                "`{text}` is no size: write a number with B, KiB, MiB or GiB, such as \"8 MiB\""
            ))
        };
        size.map(Self).ok_or_else(wrong)
    }
}

/// The number, if it is one that can be counted exactly.
#[expect(clippy::cast_sign_loss, reason = "what is below 0 is no size")]
fn whole(number: f64) -> Option<u64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    ((0.0..EXACT_MAX).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

/// Reads either from a text; a number has a hint of its own.
struct UnitVisitor<T>(std::marker::PhantomData<T>, &'static str);

impl<T: FromStr<Err = Error>> Visitor<'_> for UnitVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(UnitVisitor(std::marker::PhantomData, "a time such as \"10s\""))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(UnitVisitor(std::marker::PhantomData, "a size such as \"8 MiB\""))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_alike() {
        let same = [
            ("500ms", 500),
            ("1s", 1_000),
            ("1m 30s", 90_000),
            ("1h 30m", 5_400_000),
            ("20h", 72_000_000),
            ("30d", 2_592_000_000),
            ("1s 500ms", 1_500),
            ("0s", 0),
        ];
        for (text, millis) in same {
            assert_eq!(text.parse(), Ok(Time(millis)));
            assert_eq!(Time(millis).to_string(), text);
        }
        let other = [
            ("1h30m", 5_400_000),
            (" 1.5s ", 1_500),
            ("1.5h", 5_400_000),
            ("10 min", 600_000),
            ("2 hours", 7_200_000),
            ("36h", 129_600_000),
            ("1w", 604_800_000),
            ("0", 0),
            ("1000000us", 1_000),
        ];
        for (text, millis) in other {
            assert_eq!(text.parse(), Ok(Time(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_with_a_way_out() {
        for text in ["10", "1.5", "-3"] {
            let said = text.parse::<Time>().unwrap_err().to_string();
            assert!(said.contains("has no unit") && said.contains(&format!("{text}s")), "{said}");
        }
        for text in
            ["", "s", "ten s", "10 q", "-1s", "1s ago", "1mo", "1y", "1us", "10M", "99999999999d"]
        {
            let said = text.parse::<Time>().unwrap_err().to_string();
            assert!(said.contains("is no time") && said.contains("1h 30m"), "{said}");
        }
    }

    #[test]
    fn sizes_are_read_and_written_alike() {
        let same = [
            ("8 MiB", 8 << 20),
            ("1 GiB", 1 << 30),
            ("1025 KiB", 1025 << 10),
            ("2 MB", 2_000_000),
            ("2 kB", 2_000),
            ("17 B", 17),
            ("0 B", 0),
        ];
        for (text, bytes) in same {
            assert_eq!(text.parse(), Ok(Size(bytes)));
            assert_eq!(Size(bytes).to_string(), text);
        }
        let other = [("8MiB", 8 << 20), ("8mib", 8 << 20), ("1.5 GiB", 3 << 29), ("4 KB", 4_000)];
        for (text, bytes) in other {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_a_way_out() {
        let said = "256".parse::<Size>().unwrap_err().to_string();
        assert!(said.contains("has no unit") && said.contains("256 MiB"), "{said}");
        for text in ["", "MiB", "8 M", "-8 MiB", "0.3 B", "1..5 MiB", "99999999999 TiB", "8 MiB x"]
        {
            let said = text.parse::<Size>().unwrap_err().to_string();
            assert!(said.contains("is no size") && said.contains("8 MiB"), "{said}");
        }
    }
}
