//! Parameters of a URL, read strictly: what is not understood is refused, not guessed.

use crate::base::clock::Timestamp;
use crate::base::units::Time;
use std::time::Duration;

use super::problem::Problem;

/// The parameters of a request, each once.
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    /// Reads a query of which every parameter is one of `known`.
    pub(super) fn parse(query: Option<&str>, known: &[&str]) -> Result<Self, Problem> {
        let mut all: Vec<(String, String)> = Vec::new();
        for (name, value) in pairs(query.unwrap_or_default()) {
            let name = unescape(name)?;
            if !known.contains(&name.as_str()) {
                let known = known.join(", ");
                let detail = match known.as_str() {
                    "" => format!("`{name}` is no parameter: there are none"),
                    known => format!("`{name}` is no parameter: there are {known}"),
                };
                return Err(Problem::bad("unknown_parameter", detail));
            }
            if all.iter().any(|(other, _)| *other == name) {
                return Err(bad(&name, "it is given twice"));
            }
            all.push((name, unescape(value)?));
        }
        Ok(Self(all))
    }

    /// Returns a parameter as it stands.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Returns a number from 1 to `most`.
    pub(super) fn number(&self, name: &str, usual: usize, most: usize) -> Result<usize, Problem> {
        let Some(text) = self.text(name) else { return Ok(usual) };
        let number = text.parse().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| bad(name, &format!("it is a number from 1 to {most}")))
    }

    /// Returns a moment.
    pub(super) fn time(&self, name: &str) -> Result<Option<Timestamp>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let day = || format!("{text}T00:00:00Z").parse();
        let time: Result<jiff::Timestamp, _> = text.parse().or_else(|_| day());
        match time {
            Ok(time) => Ok(Some(Timestamp(time.as_millisecond()))),
            Err(_) => Err(bad(name, "it is a day or a moment: 2026-11-21, 2026-11-21T06:00:00Z")),
        }
    }

    /// Returns a length of time, from an hour to `most`.
    pub(super) fn length(
        &self,
        name: &str,
        usual: Duration,
        most: Duration,
    ) -> Result<Duration, Problem> {
        let Some(text) = self.text(name) else { return Ok(usual) };
        let fits = |time: &Duration| *time >= Duration::from_hours(1) && *time <= most;
        let time = text.parse().ok().map(Time::duration).filter(fits);
        let hours = most.as_secs() / 3600;
        let wrong = || bad(name, &format!("it is a time from 1h to {hours}h, such as 6h or 2d"));
        time.ok_or_else(wrong)
    }

    /// Returns one of some words, the first of which is the usual one.
    pub(super) fn word(&self, name: &str, words: &[&'static str]) -> Result<&'static str, Problem> {
        let Some(text) = self.text(name) else { return Ok(words[0]) };
        let found = words.iter().find(|word| **word == text).copied();
        found.ok_or_else(|| bad(name, &format!("it is one of {}", words.join(", "))))
    }
}

fn bad(name: &str, detail: &str) -> Problem {
    Problem::bad("bad_parameter", format!("`{name}`: {detail}"))
}

/// Takes a query or a form apart, as it is written.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    parts.map(|part| part.split_once('=').unwrap_or((part, "")))
}

/// Decodes a segment of a path, in which `+` stands for itself.
pub(super) fn segment(text: &str) -> Result<String, Problem> {
    unescape(&text.replace('+', "%2B"))
}

/// Decodes `+` and `%XX`.
///
/// # Errors
///
/// A `%` without two hexadecimal digits, and bytes that are not UTF-8.
pub(super) fn unescape(text: &str) -> Result<String, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digit =
                    |at: usize| rest.get(at).and_then(|byte| char::from(*byte).to_digit(16));
                let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                    let detail = "a % is not followed by two hexadecimal digits; write % as %25";
                    return Err(Problem::bad("bad_escape", detail));
                };
                bytes.push((high * 16 + low) as u8);
                rest = &rest[2..];
            }
            other => bytes.push(*other),
        }
    }
    let wrong = |_| Problem::bad("bad_utf8", "what the escapes stand for is not UTF-8");
    String::from_utf8(bytes).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_strictly() {
        fn parse(query: &str) -> Result<Params, Problem> {
            Params::parse(Some(query), &["q", "limit", "since", "window"])
        }
        let params = parse("q=a+b%2Bc%E4%B8%AD&limit=7&since=2026-11-21&window=2d").unwrap();
        assert_eq!(params.text("q"), Some("a b+c中"));
        assert_eq!(params.number("limit", 5, 10), Ok(7));
        assert_eq!(params.number("none", 5, 10), Ok(5));
        assert!(params.number("limit", 5, 6).is_err());
        assert_eq!(params.time("since").unwrap().unwrap().to_string(), "2026-11-21T00:00:00Z");
        let day = Duration::from_hours(24);
        assert_eq!(params.length("window", day, day * 2), Ok(day * 2));
        assert!(params.length("window", day, day).is_err());
        for short in ["59m", "0", "7200", "h", "-2h"] {
            assert!(parse(&format!("window={short}")).unwrap().length("window", day, day).is_err());
        }
        for (query, code) in [
            ("q=%", "bad_escape"),
            ("q=%4", "bad_escape"),
            ("q=%zz", "bad_escape"),
            ("q=%+1", "bad_escape"),
            ("q=%FF", "bad_utf8"),
            ("q=1&q=2", "bad_parameter"),
            ("p=1", "unknown_parameter"),
        ] {
            assert_eq!(parse(query).err().unwrap().code, code, "{query}");
        }
        assert!(parse("since=yesterday").unwrap().time("since").is_err());
        assert_eq!(parse("&q&").unwrap().text("q"), Some(""));
        assert!(parse("limit").unwrap().number("limit", 5, 10).is_err());
    }
}
