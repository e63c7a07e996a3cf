//! What a page itself asks of crawlers: `<meta name="robots">`, `X-Robots-Tag`, and the reservation
//! of text and data mining.

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;

/// Directives that take a value after a colon, so that the colon does not end an agent's name.
const WITH_VALUE: [&str; 4] =
    ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];

/// What a page asks for. Everything is allowed by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of the page")]
pub struct Directives {
    /// Do not store the page.
    pub noindex: bool,
    /// Do not follow its links.
    pub nofollow: bool,
    /// Do not show a stored copy.
    pub noarchive: bool,
    /// Do not show parts of its text.
    pub nosnippet: bool,
    /// Do not train models on it.
    pub noai: bool,
    /// Rights in text and data mining are reserved.
    pub tdm_reserved: bool,
    /// Not to be shown from this moment on.
    pub unavailable_after: Option<Timestamp>,
}

/// What a page allows to be done with its text once it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// Do not show a stored copy.
    pub noarchive: bool,
    /// Do not train models on it.
    pub noai: bool,
    /// Rights in text and data mining are reserved.
    pub tdm_reserved: bool,
    /// Not to be shown from this moment on.
    pub unavailable_after: Option<Timestamp>,
}

/// Which terms of pages are honoured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "one switch for each term")]
pub struct Honour {
    /// `noarchive`: the text stays out.
    pub noarchive: bool,
    /// `noai`: the page stays out.
    pub noai: bool,
    /// A reservation of text and data mining: the page stays out.
    pub tdm_reservation: bool,
    /// `unavailable_after`: the page stays out once the time has come.
    pub unavailable_after: bool,
}

impl Default for Honour {
    fn default() -> Self {
        Self { noarchive: true, noai: true, tdm_reservation: true, unavailable_after: true }
    }
}

impl Terms {
    /// Returns the word for the term because of which a page stays out at the moment `now`.
    #[must_use]
    pub fn forbids(&self, honour: &Honour, now: Timestamp) -> Option<&'static str> {
        let over = self.unavailable_after.is_some_and(|end| end <= now);
        match self {
            _ if over && honour.unavailable_after => Some("unavailable_after"),
            Self { tdm_reserved: true, .. } if honour.tdm_reservation => Some("tdm_reservation"),
            Self { noai: true, .. } if honour.noai => Some("noai"),
            _ => None,
        }
    }

    /// Tells whether the text stays out.
    #[must_use]
    pub(crate) fn hides_text(&self, honour: &Honour) -> bool {
        self.noarchive && honour.noarchive
    }

    /// Returns the terms as a page would write them; empty if there are none.
    #[must_use]
    pub fn in_words(&self) -> String {
        let end = self.unavailable_after.map(|end| format!("unavailable_after {end}"));
        let words = [
            self.noarchive.then(|| "noarchive".to_owned()),
            self.noai.then(|| "noai".to_owned()),
            self.tdm_reserved.then(|| "tdm-reservation".to_owned()),
            end,
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Directives {
    /// Reads a `<meta>` element. Names other than `robots` and `agent` are for others.
    #[must_use]
    pub fn from_meta(name: &str, content: &str, agent: &str) -> Self {
        let name = name.trim();
        if name.eq_ignore_ascii_case("tdm-reservation") {
            return Self::from_reservation(content);
        }
        if name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(agent) {
            Self::parse(content)
        } else {
            Self::default()
        }
    }

    /// Reads one `X-Robots-Tag` header, which may be for one agent only: `agent: noindex`.
    #[must_use]
    pub fn from_header(value: &str, agent: &str) -> Self {
        if let Some((name, rest)) = value.split_once(':') {
            let name = name.trim();
            let is_name = !name.contains(',')
                && !WITH_VALUE.iter().any(|known| name.eq_ignore_ascii_case(known));
            if is_name {
                return if name.eq_ignore_ascii_case(agent) {
                    Self::parse(rest)
                } else {
                    Self::default()
                };
            }
        }
        Self::parse(value)
    }

    /// Reads the value of `tdm-reservation`: 1 reserves the rights.
    ///
    /// Source: TDM Reservation Protocol, W3C community group report of 2024.
    #[must_use]
    pub fn from_reservation(value: &str) -> Self {
        Self { tdm_reserved: value.trim() == "1", ..Self::default() }
    }

    /// Returns what holds for the text of the page.
    #[must_use]
    pub fn terms(&self) -> Terms {
        let Self { noarchive, noai, tdm_reserved, unavailable_after, .. } = *self;
        Terms { noarchive, noai, tdm_reserved, unavailable_after }
    }

    /// Tells whether the page may not be stored at the moment `now`.
    #[must_use]
    pub fn forbids_storing(&self, now: Timestamp) -> bool {
        self.noindex || self.unavailable_after.is_some_and(|end| end <= now)
    }

    /// Returns what holds if both hold: the stricter of each.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        Self {
            noindex: self.noindex || other.noindex,
            nofollow: self.nofollow || other.nofollow,
            noarchive: self.noarchive || other.noarchive,
            nosnippet: self.nosnippet || other.nosnippet,
            noai: self.noai || other.noai,
            tdm_reserved: self.tdm_reserved || other.tdm_reserved,
            unavailable_after: match (self.unavailable_after, other.unavailable_after) {
                (Some(one), Some(another)) => Some(one.min(another)),
                (one, another) => one.or(another),
            },
        }
    }

    fn parse(content: &str) -> Self {
        let mut all = Self { unavailable_after: end(content), ..Self::default() };
        for word in content.split([',', ' ', '\t']).map(str::trim) {
            match word.to_ascii_lowercase().as_str() {
                "none" => (all.noindex, all.nofollow) = (true, true),
                "noai" => all.noai = true,
                "noindex" => all.noindex = true,
                "nofollow" => all.nofollow = true,
                "noarchive" | "nocache" => all.noarchive = true,
                "nosnippet" => all.nosnippet = true,
                _ => {}
            }
        }
        all
    }
}

/// Reads `unavailable_after: 25 Jun 2027 15:00:00 PST`, or a date as ISO 8601 writes it.
fn end(content: &str) -> Option<Timestamp> {
    const NAME: &str = "unavailable_after";
    let at = content.to_ascii_lowercase().find(NAME)?;
    let rest = content[at + NAME.len()..].trim_start().strip_prefix(':')?.trim();
    // Further directives may follow; a date may hold a comma itself.
    let ends = rest.match_indices(',').map(|(at, _)| at).chain(std::iter::once(rest.len()));
    ends.collect::<Vec<_>>().into_iter().rev().find_map(|end| date(rest[..end].trim()))
}

fn date(text: &str) -> Option<Timestamp> {
    let mail = jiff::fmt::rfc2822::DateTimeParser::new();
    // RFC 850 writes dashes between day, month and year.
    let blanks = text.replace('-', " ");
    let found = mail.parse_timestamp(text).or_else(|_| mail.parse_timestamp(&blanks));
    let found = found.or_else(|_| text.parse::<jiff::Timestamp>());
    let day = || {
        let day: jiff::civil::Date = text.get(..10)?.parse().ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(day.at(0, 0, 0, 0)).ok()
    };
    Some(Timestamp(found.ok().or_else(day)?.as_millisecond()))
}
