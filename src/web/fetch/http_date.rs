//! Dates in headers, and `Retry-After`, which has one or a number of seconds.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::base::clock::Timestamp;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// A year of two digits is at most this far ahead. Source: RFC 9110, 5.6.7.
const YEARS_AHEAD_MAX: i16 = 50;

/// Reads `Retry-After`: for how long from `now` on to wait. A date that has passed is no wait;
/// none for what is neither a number nor a date. Source: RFC 9110, 10.2.3.
#[must_use]
pub(crate) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number without measure is a very long time.
        return Some(value.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    http_date(value, now).map(|date| now.until(date))
}

/// Reads a date in any of the three forms that servers use, and as mail has it.
/// Source: RFC 9110, 5.6.7.
#[must_use]
pub(crate) fn http_date(text: &str, now: Timestamp) -> Option<Timestamp> {
    let parts: Vec<&str> = text
        .split([' ', ',', '-', ':'])
        .filter(|part| !part.is_empty() && !part.eq_ignore_ascii_case("gmt"))
        .collect();
    let numbers = |parts: [&str; 5]| -> Option<[i16; 5]> {
        let mut numbers = [0; 5];
        for (number, part) in numbers.iter_mut().zip(parts) {
            *number = part.parse().ok()?;
        }
        Some(numbers)
    };
    // `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`; then the form of the C
    // library, `Sun Nov  6 08:49:37 1994`.
    let (month, rest, year_digits) = match *parts.as_slice() {
        [_, day, month, year, hour, minute, second] if month_of(month).is_some() => {
            (month, [year, day, hour, minute, second], year.len())
        }
        [_, month, day, hour, minute, second, year] => {
            (month, [year, day, hour, minute, second], year.len())
        }
        _ => return mail_date(text),
    };
    let (Some(month), Some([mut year, day, hour, minute, second])) =
        (month_of(month), numbers(rest))
    else {
        return mail_date(text);
    };
    if year_digits == 2 {
        let present = jiff::Timestamp::from_millisecond(now.0).ok()?;
        let present = present.to_zoned(TimeZone::UTC).year();
        // The last such year that is not too far ahead.
        let last = present + YEARS_AHEAD_MAX;
        year = last - (last - year).rem_euclid(100);
    }
    let [day, hour, minute] = [day, hour, minute].map(|number| i8::try_from(number).unwrap_or(-1));
    // A leap second is told as the one before it.
    let second = i8::try_from(second.min(59)).unwrap_or(-1);
    let date = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    let date = date.to_zoned(TimeZone::UTC).ok()?;
    Some(Timestamp(date.timestamp().as_millisecond()))
}

/// A date with another zone than GMT, which servers also send.
fn mail_date(text: &str) -> Option<Timestamp> {
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
    Some(Timestamp(date.as_millisecond()))
}

fn month_of(name: &str) -> Option<i8> {
    let at = MONTHS.iter().position(|month| name.eq_ignore_ascii_case(month))?;
    i8::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1994-11-06T08:49:37Z.
    const DATE: i64 = 784_111_777_000;

    #[track_caller]
    fn check(value: &str, seconds: Option<u64>) {
        let wait = retry_after(value, Timestamp(DATE - 90_000));
        assert_eq!(wait, seconds.map(Duration::from_secs), "{value}");
    }

    #[test]
    fn every_form_of_a_date_is_read() {
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            " sun, 6 nov 1994 08:49:37 gmt ",
            "Sun, 06 Nov 1994 09:49:37 +0100",
        ] {
            check(date, Some(90));
        }
        check("Sun, 06 Nov 1994 08:48:07 GMT", Some(0));
        check("Sun, 06 Nov 1993 08:49:37 GMT", Some(0));
    }

    #[test]
    fn a_year_of_two_digits_is_no_more_than_fifty_years_ahead() {
        let date = |text: &str| http_date(text, Timestamp(DATE)).unwrap().to_string();
        assert_eq!(date("Friday, 01-Jan-44 00:00:00 GMT"), "2044-01-01T00:00:00Z");
        assert_eq!(date("Monday, 01-Jan-45 00:00:00 GMT"), "1945-01-01T00:00:00Z");
    }

    #[test]
    fn seconds_are_read_and_garbage_is_not() {
        check("0", Some(0));
        check(" 120 ", Some(120));
        assert_eq!(retry_after(&"9".repeat(30), Timestamp(0)), Some(Duration::MAX));
        for garbage in
            ["", "soon", "-5", "1.5", "Sun, 31 Feb 1994 08:49:37 GMT", "a b c d e f g", "Sun Nov"]
        {
            check(garbage, None);
        }
        check("Sun, 06 Foo 1994 08:49:37 GMT", None);
        check("Sun, 06 Nov 1994 25:49:37 GMT", None);
        check("Sun, 06 Nov 1994 08:49:60 GMT", Some(112));
    }
}
