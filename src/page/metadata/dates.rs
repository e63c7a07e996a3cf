//! Dates in texts and in attributes, in the forms of many languages. A date that cannot be is
//! none; one that can be read in two ways says so.

use jiff::civil::Time;
use jiff::tz::Offset;

use super::moment::Moment;
use super::months::month;

/// Characters of a text that are looked at.
const CHARS_MAX: usize = 400;

/// Which of `03/04/2012` is the month, where the page does not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateOrder {
    DayFirst,
    MonthFirst,
    Unknown,
}

/// A date that was found in a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FoundDate {
    pub moment: Moment,
    /// The other reading of `03/04/2012`.
    pub other: Option<Moment>,
    /// Bytes of the text that it takes.
    pub start: usize,
    pub end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum DateToken<'a> {
    Number(i32, usize),
    Word(&'a str),
    Mark(char),
    Space,
}

/// A token and the bytes it takes.
type PlacedToken<'a> = (DateToken<'a>, usize, usize);

/// Returns the dates of a text, in its order; at most `count`.
pub(super) fn find(text: &str, order: DateOrder, count: usize) -> Vec<FoundDate> {
    let mut found = Vec::new();
    if !has_digit(text) {
        return found;
    }
    let tokens = tokens(text);
    let mut at = 0;
    while at < tokens.len() && found.len() < count {
        match date_at(&tokens, at, order) {
            Some((mut date, next)) => {
                let next = time_after(&tokens, next, &mut date.moment);
                if date.moment.time.is_none() {
                    time_before(&tokens, at, &mut date.moment);
                }
                date.end = tokens[next - 1].2;
                found.push(date);
                at = next;
            }
            None => at += 1,
        }
    }
    found
}

/// Reads the value of an attribute or a field: the first date in it, or digits only.
pub(super) fn value(text: &str, order: DateOrder) -> Option<FoundDate> {
    let text = text.trim();
    let compact = text.get(..8).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let follows = text.as_bytes().get(8).copied();
    if let Some(digits) = compact.filter(|_| matches!(follows, None | Some(b'T' | b' '))) {
        let number = |range: std::ops::Range<usize>| digits[range].parse::<i32>().ok();
        let moment = Moment::day(number(0..4)?, number(4..6)?, number(6..8)?)?;
        return Some(FoundDate { moment, other: None, start: 0, end: 8 });
    }
    let start = text.char_indices().nth(120).map_or(text, |(end, _)| &text[..end]);
    find(start, order, 1).into_iter().next()
}

fn has_digit(text: &str) -> bool {
    // Wide digits start with this byte.
    text.bytes().any(|byte| byte.is_ascii_digit() || byte == 0xEF)
}

fn is_wide_digit(c: char) -> bool {
    ('０'..='９').contains(&c)
}

fn digit(c: char) -> Option<i32> {
    let narrow = if is_wide_digit(c) { u32::from(c) - 0xFF10 } else { c.to_digit(10)? };
    i32::try_from(narrow).ok()
}

fn tokens(text: &str) -> Vec<PlacedToken<'_>> {
    let mut tokens: Vec<PlacedToken<'_>> = Vec::new();
    let mut chars = text.char_indices().take(CHARS_MAX).peekable();
    while let Some((start, c)) = chars.next() {
        let mut end = start + c.len_utf8();
        let token = if let Some(first) = digit(c) {
            let (mut number, mut digits) = (first, 1);
            while let Some((at, c)) = chars.peek().copied()
                && let Some(next) = digit(c)
            {
                number = number.saturating_mul(10).saturating_add(next);
                digits += 1;
                end = at + c.len_utf8();
                chars.next();
            }
            DateToken::Number(number, digits)
        } else if c.is_alphabetic() && !crate::text::is_han(c) {
            while let Some((at, c)) = chars.peek().copied()
                && c.is_alphabetic()
                && !crate::text::is_han(c)
            {
                end = at + c.len_utf8();
                chars.next();
            }
            DateToken::Word(&text[start..end])
        } else if c.is_whitespace() {
            if tokens.last().is_some_and(|last| last.0 == DateToken::Space) {
                continue;
            }
            DateToken::Space
        } else {
            DateToken::Mark(c)
        };
        tokens.push((token, start, end));
    }
    tokens
}

/// A place in the tokens that moves forward.
#[derive(Clone, Copy)]
struct Cursor<'t, 'a> {
    tokens: &'t [PlacedToken<'a>],
    at: usize,
}

impl<'a> Cursor<'_, 'a> {
    fn peek(&self) -> Option<DateToken<'a>> {
        self.tokens.get(self.at).map(|token| token.0)
    }

    fn space(&mut self) {
        while self.peek() == Some(DateToken::Space) {
            self.at += 1;
        }
    }

    /// A number of so many digits.
    fn number(&mut self, digits: std::ops::RangeInclusive<usize>) -> Option<i32> {
        match self.peek() {
            Some(DateToken::Number(number, length)) if digits.contains(&length) => {
                self.at += 1;
                Some(number)
            }
            _ => None,
        }
    }

    fn mark(&mut self, marks: &[char]) -> Option<char> {
        match self.peek() {
            Some(DateToken::Mark(mark)) if marks.contains(&mark) => {
                self.at += 1;
                Some(mark)
            }
            _ => None,
        }
    }

    fn word(&mut self, words: &[&str]) -> Option<&'a str> {
        match self.peek() {
            Some(DateToken::Word(word)) if words.iter().any(|w| w.eq_ignore_ascii_case(word)) => {
                self.at += 1;
                Some(word)
            }
            _ => None,
        }
    }

    fn month(&mut self) -> Option<i32> {
        match self.peek() {
            Some(DateToken::Word(word)) => {
                let month = month(word)?;
                self.at += 1;
                Some(i32::from(month))
            }
            _ => None,
        }
    }
}

fn date_at(tokens: &[PlacedToken<'_>], at: usize, order: DateOrder) -> Option<(FoundDate, usize)> {
    let start = Cursor { tokens, at };
    let before = at.checked_sub(1).map(|before| tokens[before].0);
    let read = match tokens[at].0 {
        // `1.2.2012-03-04` and `v10.2024.1.2` are no dates.
        DateToken::Number(..) if matches!(before, Some(DateToken::Mark('.' | '-' | '/' | ':'))) => {
            let far = at.checked_sub(2).map(|before| tokens[before].0);
            if matches!(far, Some(DateToken::Number(..))) {
                return None;
            }
            number_first(start, order)
        }
        DateToken::Number(..) => number_first(start, order),
        DateToken::Word(_) => month_first(start).map(|(moment, end)| (moment, None, end)),
        _ => None,
    };
    let (moment, other, end) = read?;
    let found = FoundDate { moment, other, start: tokens[at].1, end: tokens[end - 1].2 };
    Some((found, end))
}

type ReadDate = (Moment, Option<Moment>, usize);

fn number_first(cursor: Cursor<'_, '_>, order: DateOrder) -> Option<ReadDate> {
    match cursor.peek() {
        Some(DateToken::Number(_, 4)) => {
            year_first(cursor).map(|(moment, end)| (moment, None, end))
        }
        Some(DateToken::Number(_, 1 | 2)) => day_word(cursor)
            .map(|(moment, end)| (moment, None, end))
            .or_else(|| three_numbers(cursor, order)),
        _ => None,
    }
}

/// `2024-03-05`, `2024/3/5`, `2024.03.05`, `2024. 3. 5.`, `2024年3月5日`, `2024년 3월 5일`,
/// `2024 March 5`.
fn year_first(mut cursor: Cursor<'_, '_>) -> Option<(Moment, usize)> {
    let year = cursor.number(4..=4)?;
    let mut spaced = cursor;
    spaced.space();
    let next = spaced.mark(&['-', '/', '.', '年', '－', '／', '‐', '–']);
    let korean = next.is_none().then(|| spaced.word(&["년"])).flatten();
    if next.is_none() && korean.is_none() {
        spaced.space();
        let month = spaced.month()?;
        spaced.space();
        let day = spaced.number(1..=2)?;
        return Some((Moment::day(year, month, day)?, spaced.at));
    }
    cursor = spaced;
    cursor.space();
    if let Some(month) = cursor.month() {
        cursor.mark(&['-', '/', '.']);
        cursor.space();
        let day = cursor.number(1..=2)?;
        return Some((Moment::day(year, month, day)?, cursor.at));
    }
    let month = cursor.number(1..=2)?;
    cursor.space();
    match next {
        Some('年') => drop(cursor.mark(&['月'])?),
        Some(mark) => drop(cursor.mark(&[mark, '-', '/', '.'])?),
        None => drop(cursor.word(&["월"])?),
    }
    cursor.space();
    let day = cursor.number(1..=2)?;
    let mut after = cursor;
    after.space();
    match next {
        Some('年') if after.mark(&['日', '号', '號']).is_some() => cursor = after,
        None if after.word(&["일"]).is_some() => cursor = after,
        _ => {}
    }
    Some((Moment::day(year, month, day)?, cursor.at))
}

/// `5 March 2024`, `5. März 2024`, `5 de marzo de 2024`, `5 марта 2024 г.`, `05-Mar-2024`.
fn day_word(mut cursor: Cursor<'_, '_>) -> Option<(Moment, usize)> {
    let day = cursor.number(1..=2)?;
    cursor.word(&["st", "nd", "rd", "th", "er", "o"]);
    cursor.mark(&['.', 'º', '°', '-', '/', '–']);
    cursor.space();
    cursor.word(&["de", "of"]);
    cursor.space();
    let month = cursor.month()?;
    cursor.mark(&['.', '-', '/', '–']);
    cursor.mark(&[',']);
    cursor.space();
    cursor.word(&["de", "del", "of"]);
    cursor.mark(&['\'', '’']);
    cursor.space();
    let year = cursor.number(4..=4)?;
    Some((Moment::day(year, month, day)?, cursor.at))
}

/// `March 5, 2024`, `Mar. 5th 2024`.
fn month_first(mut cursor: Cursor<'_, '_>) -> Option<(Moment, usize)> {
    let month = cursor.month()?;
    cursor.mark(&['.', '-']);
    cursor.space();
    let day = cursor.number(1..=2)?;
    cursor.word(&["st", "nd", "rd", "th"]);
    cursor.mark(&[',', '.', '-']);
    cursor.space();
    cursor.mark(&[',']);
    cursor.space();
    let year = cursor.number(4..=4)?;
    Some((Moment::day(year, month, day)?, cursor.at))
}

/// `05.03.2024`, `5/3/2024`, `03-05-2024`.
fn three_numbers(mut cursor: Cursor<'_, '_>, order: DateOrder) -> Option<ReadDate> {
    let first = cursor.number(1..=2)?;
    let mark = cursor.mark(&['.', '/', '-'])?;
    cursor.space();
    let second = cursor.number(1..=2)?;
    cursor.mark(&[mark])?;
    cursor.space();
    let year = cursor.number(4..=4)?;
    let day_first = Moment::day(year, second, first);
    let month_first = Moment::day(year, first, second);
    // Dots are the habit of languages that put the day first.
    let order = if mark == '.' { DateOrder::DayFirst } else { order };
    let (moment, other) = match (day_first, month_first) {
        (Some(one), Some(two)) if one == two => (one, None),
        (Some(day), Some(month)) => match order {
            DateOrder::DayFirst => (day, None),
            DateOrder::MonthFirst => (month, None),
            DateOrder::Unknown => (month, Some(day)),
        },
        (Some(only), None) | (None, Some(only)) => (only, None),
        (None, None) => return None,
    };
    Some((moment, other, cursor.at))
}

/// Reads the time of day that may follow a date, and returns the place after it.
fn time_after(tokens: &[PlacedToken<'_>], end: usize, moment: &mut Moment) -> usize {
    let mut cursor = Cursor { tokens, at: end };
    let mut shift = 0;
    // A few words may stand between: `at`, `um`, a weekday, `HKT`.
    for _ in 0..4 {
        cursor.space();
        match cursor.peek() {
            Some(DateToken::Word(word)) if word.chars().count() <= 6 => cursor.at += 1,
            Some(DateToken::Mark(',' | '.' | '|' | '-' | '–' | '•' | '·' | '日' | '(' | ')')) =>
            {
                cursor.at += 1;
            }
            Some(DateToken::Mark('上' | '早')) => cursor.at += 2,
            Some(DateToken::Mark('下' | '晚')) => {
                shift = 12;
                cursor.at += 2;
            }
            _ => break,
        }
    }
    match clock(&mut cursor, shift) {
        Some(time) => {
            moment.time = Some(time);
            moment.offset = offset(&mut cursor);
            cursor.at.min(tokens.len())
        }
        None => end,
    }
}

/// Reads a time of day that stands right before a date: `18:07 2012-01-16`.
fn time_before(tokens: &[PlacedToken<'_>], at: usize, moment: &mut Moment) {
    for length in [6, 4] {
        let Some(start) = at.checked_sub(length) else { continue };
        let mut cursor = Cursor { tokens, at: start };
        if let Some(time) = clock(&mut cursor, 0) {
            cursor.space();
            if cursor.at == at {
                moment.time = Some(time);
                return;
            }
        }
    }
}

/// `10:22`, `10:22:05.123`, `10:22 pm`, `10时22分`.
fn clock(cursor: &mut Cursor<'_, '_>, shift: i32) -> Option<Time> {
    let mut hour = cursor.number(1..=2)?;
    let mark = cursor.mark(&[':', '：', '时', '時', '点', '點'])?;
    let minute = cursor.number(1..=2)?;
    let mut second = 0;
    let mut after = *cursor;
    if after.mark(&[':', '：']).is_some()
        && let Some(number) = after.number(2..=2)
    {
        second = number;
        *cursor = after;
        let mut fraction = after;
        if fraction.mark(&['.', ',']).is_some() && fraction.number(1..=9).is_some() {
            *cursor = fraction;
        }
    } else if !matches!(mark, ':' | '：') {
        cursor.mark(&['分']);
    }
    let mut after = *cursor;
    after.space();
    let half = after.word(&["am", "pm"]);
    let half = half.or_else(|| {
        let half = after.word(&["a", "p"])?;
        after.mark(&['.'])?;
        after.word(&["m"])?;
        Some(half)
    });
    if let Some(half) = half {
        let afternoon = half.starts_with(['p', 'P']);
        hour = hour % 12 + if afternoon { 12 } else { 0 };
        *cursor = after;
    } else if shift > 0 && hour < 12 {
        hour += shift;
    }
    let part = |number: i32| i8::try_from(number).ok();
    Time::new(part(hour)?, part(minute)?, part(second)?, 0).ok()
}

/// `Z`, `GMT`, `+08:00`, `+0800`.
fn offset(cursor: &mut Cursor<'_, '_>) -> Option<Offset> {
    let mut after = *cursor;
    after.space();
    if after.word(&["z", "gmt", "utc"]).is_some() {
        *cursor = after;
        let signed = matches!(after.peek(), Some(DateToken::Mark('+' | '-')));
        if !signed {
            return Some(Offset::UTC);
        }
    }
    let sign = if after.mark(&['+', '-', '−'])? == '+' { 1 } else { -1 };
    offset_number(cursor, after, sign)
}

fn offset_number<'t, 'a>(
    cursor: &mut Cursor<'t, 'a>,
    mut after: Cursor<'t, 'a>,
    sign: i32,
) -> Option<Offset> {
    let (hours, minutes) = match after.peek()? {
        DateToken::Number(number, 4) => {
            after.at += 1;
            (number / 100, number % 100)
        }
        DateToken::Number(hours, 1 | 2) => {
            after.at += 1;
            let mut rest = after;
            match rest.mark(&[':']).and_then(|_| rest.number(2..=2)) {
                Some(minutes) => {
                    after = rest;
                    (hours, minutes)
                }
                None => (hours, 0),
            }
        }
        _ => return None,
    };
    if hours > 14 || minutes > 59 {
        return None;
    }
    *cursor = after;
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}
