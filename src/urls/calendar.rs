//! Dates in addresses: a calendar that can be turned for ever is told by where it has got to.
//!
//! A calendar is walked month by month. It is enough to refuse the years after the last one that
//! anybody plans for, and numbers far beyond them need not be taken for years.

use super::PageUrl;

/// A month, counted from the year 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Month(i64);

impl Month {
    fn of(year: i64, month: i64) -> Option<Self> {
        (1..=12).contains(&month).then_some(Self(year * 12 + month - 1))
    }

    /// The month of a moment, in milliseconds since 1970.
    fn at(millis: i64) -> Option<Self> {
        let time = jiff::Timestamp::from_millisecond(millis).ok()?;
        let date = time.to_zoned(jiff::tz::TimeZone::UTC).date();
        Self::of(date.year().into(), date.month().into())
    }
}

/// How far calendars may be turned. 0 is no limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct CalendarRange {
    pub months_ahead_max: u32,
    pub years_back_max: u32,
}

/// Months up to which a number in a URL that says nothing of a calendar is taken for a year.
const UNSAID_MONTHS: i64 = 1_200;

/// Words of URLs that have calendars behind them, by their starts.
const CALENDARS: [&str; 8] =
    ["calend", "kalend", "agenda", "availab", "booking", "schedule", "datepicker", "tribe"];
/// Words that hint at events, which may well be a century old.
const EVENTS: [&str; 6] = ["event", "evenement", "termin", "veranstalt", "evento", "reserv"];
/// Words of links to the page before or after.
const TURNS: [&str; 3] = ["prev", "previous", "next"];

/// What a URL says about a calendar besides dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hint {
    None,
    Events,
    Calendar,
}

/// Tells whether a URL shows a month that is out of range at `now`, in milliseconds since
/// 1970.
pub(super) fn is_beyond(url: &PageUrl, range: CalendarRange, now: i64) -> bool {
    let text = url.path_and_query();
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let hint = hint_of(text);
    let mut dates = Vec::new();
    in_path(url.url().path(), hint, &mut dates);
    let offset = url.url().query().and_then(|query| in_query(query, hint, &mut dates));
    if dates.is_empty() && offset.is_none() {
        return false;
    }
    let Some(now) = Month::at(now) else { return false };
    let ahead = i64::from(range.months_ahead_max);
    let back = i64::from(range.years_back_max) * 12;
    let beyond = |months: i64| {
        let near = months <= UNSAID_MONTHS || hint != Hint::None;
        let past = hint == Hint::Calendar && back > 0 && months < -back;
        (ahead > 0 && months > ahead && near) || past
    };
    let turned = offset.is_some_and(|months| {
        (ahead > 0 && months > ahead.max(12)) || (back > 0 && months < -back.max(12))
    });
    turned || dates.into_iter().any(|date| beyond(date.0 - now.0))
}

fn hint_of(text: &str) -> Hint {
    let starts = |word: &str, list: &[&str]| {
        list.iter()
            .any(|start| word.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start)))
    };
    let hint = |word: &str| {
        let is = |other: &&str| word.eq_ignore_ascii_case(other);
        if starts(word, &CALENDARS) || word.eq_ignore_ascii_case("cal") || TURNS.iter().any(is) {
            Hint::Calendar
        } else if starts(word, &EVENTS) {
            Hint::Events
        } else {
            Hint::None
        }
    };
    text.split(|char: char| !char.is_ascii_alphabetic()).map(hint).max().unwrap_or(Hint::None)
}

/// Finds `/2031/05/`, `/2031/05/17`, `/2031-05`, `/2031-05-17`; where a calendar is named also
/// `/2031/`, `/2031/5`, `/203105` and `/20310517`.
fn in_path(path: &str, hint: Hint, dates: &mut Vec<Month>) {
    let segments: Vec<&str> = path.split('/').collect();
    for (at, segment) in segments.iter().enumerate() {
        if let Some(year) = digits(segment, 4) {
            let next = segments.get(at + 1).copied().unwrap_or_default();
            let after = segments.get(at + 2).copied().unwrap_or_default();
            match small(next).and_then(|month| Month::of(year, month)) {
                // Unsaid, a number may be anything: a day, or a zero before the month, make a date.
                Some(month) if hint != Hint::None || next.starts_with('0') || is_day(after) => {
                    dates.push(month);
                }
                None if hint == Hint::Calendar => dates.extend(Month::of(year, 1)),
                _ => {}
            }
        } else {
            dates.extend(dashed(segment, hint));
            if hint == Hint::Calendar {
                dates.extend(compact(segment));
            }
        }
    }
}

/// Finds the same in values, years and months with parameters of their own, and times. Returns
/// the number of months from the present one, if the query has that.
fn in_query(query: &str, hint: Hint, dates: &mut Vec<Month>) -> Option<i64> {
    let (mut year, mut month, mut offset) = (None, None, None);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let name = name.to_ascii_lowercase();
        let value = value.split(['T', '+']).next().unwrap_or(value);
        dates.extend(dashed(value, hint));
        let of_day = ["date", "day", "month", "week", "ym"].iter().any(|word| name.contains(word));
        if of_day || hint == Hint::Calendar {
            dates.extend(compact(value));
        }
        if name.contains("year") || matches!(name.as_str(), "jahr" | "annee" | "anno") {
            year = digits(value, 4).map(|year| (year, true)).or(year);
        } else if matches!(name.as_str(), "y" | "yr") {
            year = year.or(digits(value, 4).map(|year| (year, hint == Hint::Calendar)));
        } else if name.contains("month") || matches!(name.as_str(), "m" | "mo" | "monat" | "mois") {
            month = small(value).filter(|month| (1..=12).contains(month)).or(month);
            if name.contains("month") && month.is_none() && value.len() <= 5 {
                offset =
                    value.parse::<i64>().ok().filter(|n| digits(value, 4).is_none() && *n != 0);
            }
        } else if hint == Hint::Calendar && (9..=10).contains(&value.len()) {
            let seconds = value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse());
            let millis = seconds.and_then(Result::ok).map(|seconds: i64| seconds * 1_000);
            dates.extend(millis.and_then(Month::at));
        }
    }
    match (year, month) {
        (Some((year, _)), Some(month)) => dates.extend(Month::of(year, month)),
        (Some((year, true)), None) => dates.extend(Month::of(year, 1)),
        _ => {}
    }
    offset
}

/// Reads `2031-05-17` and `2031-05`; the latter with a month of two digits that cannot be a number
/// of something else, or where a calendar is named.
fn dashed(text: &str, hint: Hint) -> Option<Month> {
    let mut parts = text.split('-');
    let year = digits(parts.next()?, 4)?;
    let next = parts.next()?;
    let month = Month::of(year, small(next)?)?;
    let sure = match parts.next() {
        Some(day) => is_day(day),
        None => next.starts_with('0') || hint != Hint::None,
    };
    (sure && parts.next().is_none()).then_some(month)
}

/// Reads `20310517` and `203105`.
fn compact(text: &str) -> Option<Month> {
    let day = if text.len() == 8 { text.get(6..)? } else { "01" };
    if !matches!(text.len(), 6 | 8) || !is_day(day) {
        return None;
    }
    Month::of(digits(text.get(..4)?, 4)?, digits(text.get(4..6)?, 2)?)
}

fn is_day(text: &str) -> bool {
    small(text).is_some_and(|day| (1..=31).contains(&day))
}

fn small(text: &str) -> Option<i64> {
    digits(text, 1).or_else(|| digits(text, 2))
}

fn digits(text: &str, length: usize) -> Option<i64> {
    let all = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    if all { text.parse().ok() } else { None }
}
