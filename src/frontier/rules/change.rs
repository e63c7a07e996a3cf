//! What a rule changes in a URL.

use std::fmt;

use url::Url;

use crate::urls::{PageUrl, registrable_domain};

use super::language;

/// A change that leads from one URL to another one of the same page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UrlChange {
    /// Drop a query parameter, whatever its value.
    DropParameter(String),
    /// Drop a query parameter of this value: `name=value`.
    DropValue(String),
    /// Drop a folder of the path.
    DropFolder(String),
    /// Read a folder of the path as another one.
    SwapFolder(String, String),
    /// Drop the end of the path.
    DropSuffix(String),
    /// Read the scheme, host and port as others of the same registrable domain.
    Host(String, String),
}

/// Longest part of a URL that a rule may name, in bytes.
const PART_BYTES_MAX: usize = 64;

/// Shortest suffix that two paths must share before they differ in their ends only.
const STEM_BYTES_MIN: usize = 2;

impl UrlChange {
    /// Returns the URL that this makes of another one; none if there is nothing to change.
    #[must_use]
    pub fn apply(&self, url: &PageUrl) -> Option<PageUrl> {
        let mut changed = url.url().clone();
        match self {
            Self::DropParameter(name) => {
                drop_pairs(&mut changed, |pair| name_of(pair) == name)?;
            }
            Self::DropValue(value) => drop_pairs(&mut changed, |pair| pair == value)?,
            Self::DropFolder(folder) => {
                let path = url.url().path();
                let at = path.find(&format!("/{folder}/"))?;
                changed.set_path(&[&path[..at], &path[at + folder.len() + 1..]].concat());
            }
            Self::SwapFolder(from, to) => {
                let path = url.url().path();
                let at = path.find(&format!("/{from}/"))?;
                let rest = &path[at + from.len() + 1..];
                changed.set_path(&[&path[..=at], to, rest].concat());
            }
            Self::DropSuffix(suffix) => {
                let stem = url.url().path().strip_suffix(suffix.as_str())?;
                let stem = if stem.is_empty() { "/" } else { stem };
                changed.set_path(stem);
            }
            Self::Host(from, to) => {
                if url.host_key().as_str() != from {
                    return None;
                }
                changed = Url::parse(&format!("{to}{}", url.path_and_query())).ok()?;
            }
        }
        // Not every result is in normal form; a rule has no business there.
        PageUrl::parse(changed.as_str()).ok().filter(|changed| changed != url)
    }

    /// Returns the change of a single thing that makes `to` of `from`, if there is one.
    #[must_use]
    pub fn between(from: &PageUrl, to: &PageUrl) -> Vec<Self> {
        let mut found = Vec::new();
        let (one, other) = (from.url(), to.url());
        if from.host_key() != to.host_key() {
            let alike = from.path_and_query() == to.path_and_query();
            if alike && registrable_domain(from) == registrable_domain(to) {
                let (from, to) = (from.host_key(), to.host_key());
                found.push(Self::Host(from.as_str().to_owned(), to.as_str().to_owned()));
            }
            found.retain(|change| !change.is_of_languages());
            return found;
        }
        match (one.path() == other.path(), one.query() == other.query()) {
            (true, false) => found.extend(of_queries(one, other)),
            (false, true) => found.extend(of_paths(one.path(), other.path())),
            _ => {}
        }
        found.retain(|change| change.is_short() && !change.is_of_languages());
        found
    }

    /// Tells whether the change leads from one language to another one. Most pages of a language
    /// may wait for their translation and be copies; the others are articles of their own.
    fn is_of_languages(&self) -> bool {
        match self {
            Self::DropParameter(name) => language::is_parameter(name),
            Self::DropValue(pair) => language::is_parameter(name_of(pair)),
            Self::DropFolder(folder) => language::of(folder).is_some(),
            Self::DropSuffix(suffix) => language::names_one(suffix),
            Self::SwapFolder(from, to) => language::differ(language::of(from), language::of(to)),
            Self::Host(from, to) => language_of_host(from) != language_of_host(to),
        }
    }

    fn is_short(&self) -> bool {
        let fits = |part: &str| !part.is_empty() && part.len() <= PART_BYTES_MAX;
        match self {
            Self::DropParameter(part)
            | Self::DropValue(part)
            | Self::DropFolder(part)
            | Self::DropSuffix(part) => fits(part),
            Self::SwapFolder(from, to) => fits(from) && fits(to),
            Self::Host(..) => true,
        }
    }

    /// Number of the kind, and the texts that go with it, as they are stored.
    pub(super) fn parts(&self) -> (u8, &str, &str) {
        match self {
            Self::DropParameter(name) => (0, name, ""),
            Self::DropValue(value) => (1, value, ""),
            Self::DropFolder(folder) => (2, folder, ""),
            Self::SwapFolder(from, to) => (3, from, to),
            Self::DropSuffix(suffix) => (4, suffix, ""),
            Self::Host(from, to) => (5, from, to),
        }
    }

    pub(super) fn from_parts(kind: u8, one: &str, other: &str) -> Option<Self> {
        let (one, other) = (one.to_owned(), other.to_owned());
        Some(match kind {
            0 => Self::DropParameter(one),
            1 => Self::DropValue(one),
            2 => Self::DropFolder(one),
            3 => Self::SwapFolder(one, other),
            4 => Self::DropSuffix(one),
            5 => Self::Host(one, other),
            _ => return None,
        })
    }
}

impl fmt::Display for UrlChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropParameter(name) => write!(f, "drop the parameter `{name}`"),
            Self::DropValue(value) => write!(f, "drop `{value}`"),
            Self::DropFolder(folder) => write!(f, "drop the folder `{folder}`"),
            Self::SwapFolder(from, to) => write!(f, "read the folder `{from}` as `{to}`"),
            Self::DropSuffix(suffix) => write!(f, "drop `{suffix}` at the end"),
            Self::Host(from, to) => write!(f, "read {from} as {to}"),
        }
    }
}

fn name_of(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(name, _)| name)
}

/// Returns the language that the first label of a host names.
fn language_of_host(key: &str) -> Option<&str> {
    let (_, name) = key.split_once("://")?;
    language::of(name.split('.').next()?)
}

/// Returns the language that a parameter names, if its value is that of one.
fn value_of(pair: &str) -> Option<&str> {
    pair.split_once('=').and_then(|(_, value)| language::of(value))
}

/// Drops the pairs of a query that are meant; none if there is none.
fn drop_pairs(url: &mut Url, is_meant: impl Fn(&str) -> bool) -> Option<()> {
    let query = url.query()?;
    let kept: Vec<&str> = query.split('&').filter(|pair| !is_meant(pair)).collect();
    if kept.len() == query.split('&').count() {
        return None;
    }
    let kept = kept.join("&");
    url.set_query(Some(kept.as_str()).filter(|kept| !kept.is_empty()));
    Some(())
}

fn of_queries(from: &Url, to: &Url) -> Vec<UrlChange> {
    let pairs = |url: &Url| -> Vec<String> {
        url.query().into_iter().flat_map(|query| query.split('&')).map(str::to_owned).collect()
    };
    let (one, other) = (pairs(from), pairs(to));
    let only: Vec<&String> = one.iter().filter(|pair| !other.contains(pair)).collect();
    let missing: Vec<&String> = other.iter().filter(|pair| !one.contains(pair)).collect();
    match (only.as_slice(), missing.as_slice()) {
        ([pair], []) => {
            vec![
                UrlChange::DropParameter(name_of(pair).to_owned()),
                UrlChange::DropValue((*pair).clone()),
            ]
        }
        ([pair], [same]) if name_of(pair) == name_of(same) => {
            if language::differ(value_of(pair), value_of(same)) {
                return Vec::new();
            }
            vec![UrlChange::DropParameter(name_of(pair).to_owned())]
        }
        _ => Vec::new(),
    }
}

fn of_paths(from: &str, to: &str) -> Vec<UrlChange> {
    let (one, other): (Vec<&str>, Vec<&str>) = (from.split('/').collect(), to.split('/').collect());
    // The last part is the page, the ones before it are folders.
    let folders = |parts: &[&str]| parts.len().saturating_sub(1);
    let mut found = Vec::new();
    if one.len() == other.len() {
        let different: Vec<usize> = (0..one.len()).filter(|at| one[*at] != other[*at]).collect();
        if let [at] = different[..]
            && at < folders(&one)
            && !is_counted(one[at])
            && !is_counted(other[at])
        {
            found.push(UrlChange::SwapFolder(one[at].to_owned(), other[at].to_owned()));
        }
    } else if one.len() == other.len() + 1 {
        let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
        let is_dropped = one[same + 1..] == other[same..];
        if is_dropped && same < folders(&one) && !is_counted(one[same]) {
            found.push(UrlChange::DropFolder(one[same].to_owned()));
        }
    }
    let stem = to.trim_end_matches('/');
    if let Some(suffix) = from.strip_prefix(stem)
        && suffix.len() > to.len() - stem.len()
        && (stem.len() >= STEM_BYTES_MIN || suffix.starts_with('/'))
        && !is_counted(suffix.trim_start_matches('/'))
    {
        // With the slash: `/a/` is not `/a`, and only a rule says that they are one.
        let whole = from.strip_prefix(to).filter(|rest| !rest.is_empty());
        found.push(UrlChange::DropSuffix(whole.unwrap_or(suffix).to_owned()));
    }
    found
}

/// Numbers, dates and hashes name one page each: what holds of one holds of no other.
fn is_counted(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    !part.is_empty() && digits * 2 >= part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> PageUrl {
        PageUrl::parse(text).expect("a URL")
    }

    #[test]
    fn the_change_between_two_addresses_makes_one_of_the_other() {
        let cases = [
            ("http://a.org/p?id=1&sid=9", "http://a.org/p?id=1", "drop the parameter `sid`"),
            ("http://a.org/p?sid=9", "http://a.org/p", "drop `sid=9`"),
            ("http://a.org/print/x.html", "http://a.org/x.html", "drop the folder `print`"),
            ("http://a.org/en-us/x", "http://a.org/en/x", "read the folder `en-us` as `en`"),
            ("http://a.org/a/index.html", "http://a.org/a/", "drop `index.html` at the end"),
            ("http://a.org/a/amp", "http://a.org/a", "drop `/amp` at the end"),
            ("http://a.org/a/", "http://a.org/a", "drop `/` at the end"),
            ("http://www.a.org/a?b", "http://a.org/a?b", "read http://www.a.org as http://a.org"),
            ("http://a.org/a", "https://a.org/a", "read http://a.org as https://a.org"),
        ];
        for (from, to, told) in cases {
            let found = UrlChange::between(&url(from), &url(to));
            let told = found.iter().find(|change| change.to_string() == told);
            let change = told.unwrap_or_else(|| panic!("{from} -> {to}: {found:?}"));
            assert_eq!(change.apply(&url(from)), Some(url(to)), "{from} by {change}");
            assert_eq!(change.apply(&url(to)), None, "{to} by {change}");
            let (kind, one, other) = change.parts();
            assert_eq!(UrlChange::from_parts(kind, one, other).as_ref(), Some(change));
        }
    }

    #[test]
    fn what_differs_in_more_than_one_thing_or_in_a_number_is_no_rule() {
        for (from, to) in [
            ("http://a.org/2023/x", "http://a.org/2024/x"),
            ("http://a.org/p?id=1&sid=9", "http://a.org/q?id=1"),
            ("http://a.org/p?a=1&b=2", "http://a.org/p"),
            ("http://a.org/x/y", "http://a.org/z/w"),
            ("http://a.org/x1.html", "http://a.org/x2.html"),
            ("http://a.org/a", "http://b.org/a"),
            ("http://a.org/12345", "http://a.org/"),
            // Languages.
            ("http://a.org/zh_CN/x", "http://a.org/en/x"),
            ("http://a.org/de/x", "http://a.org/x"),
            ("http://a.org/x?lang=de", "http://a.org/x"),
            ("http://a.org/x?v=de", "http://a.org/x?v=fr"),
            ("http://a.org/x.de.html", "http://a.org/x"),
            ("http://de.a.org/x", "http://a.org/x"),
        ] {
            assert_eq!(UrlChange::between(&url(from), &url(to)), [], "{from} -> {to}");
        }
    }

    #[test]
    fn values_of_one_parameter_propose_to_drop_it() {
        let (one, other) = (url("http://a.org/p?sid=1&x=2"), url("http://a.org/p?sid=3&x=2"));
        let found = UrlChange::between(&one, &other);
        assert_eq!(found, [UrlChange::DropParameter("sid".to_owned())]);
        assert_eq!(found[0].apply(&one), found[0].apply(&other));
    }
}
