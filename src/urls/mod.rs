//! Addresses: their normal form, the host they are polite to, the scope they must lie in.
//!
//! In: the text of a URL and the page that it stands on. Out: a [`PageUrl`]; past this module
//! no other type of URL exists than [`PageUrl`].

mod calendar;
mod edition;
mod escapes;
mod filter;
mod normal;
mod pattern;
mod scope;
mod sessions;
mod shape;
mod typed;

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use encoding_rs::{Encoding, UTF_8};
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

pub use edition::without_edition;
pub(crate) use edition::without_folder_numbers;
use escapes::encoded;
pub use escapes::escaped;
pub(crate) use filter::KeptOut;
pub use filter::{
    Filter, FilterConfig, FilterError, FilterScope, HostFilter, HostPattern, Pattern, PatternError,
};
pub use normal::Normalize;
pub use pattern::pattern;
pub(crate) use scope::registrable_domain;
pub use scope::{Scope, ScopeKind};
pub use shape::{OddShape, ShapeLimits};
pub use typed::Typed;

/// A normalised absolute http or https URL without fragment and user information.
///
/// Normal form: WHATWG parsing, then no fragment, no user name or password, then the rules of
/// [`Normalize`]. The normal form of a normal form is itself.
///
/// Source: <https://url.spec.whatwg.org/>; RFC 3986, 6.2.2.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageUrl(Url);

/// Why a text is no URL that can be crawled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Not an absolute URL.
    #[error("`{text}` is no URL: {source}")]
    Syntax {
        /// The text that was given.
        text: String,
        /// What the parser says.
        source: url::ParseError,
    },
    /// A URL of another kind, such as `mailto:`.
    #[error("`{0}` is neither http nor https")]
    Scheme(String),
    /// A single word, which people may have meant as anything.
    #[error("`{0}` is no URL: it has neither a scheme (https://) nor a dot")]
    Word(String),
}

impl PageUrl {
    /// Parses an absolute URL with the default rules.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Self::parse_with(text, &normal::USUAL)
    }

    /// Parses an absolute URL.
    pub fn parse_with(text: &str, rules: &Normalize) -> Result<Self, ParseError> {
        let url = Url::parse(text.trim())
            .map_err(|source| ParseError::Syntax { text: text.to_owned(), source })?;
        Self::from_url(url, rules)
    }

    /// Takes back a URL that [`PageUrl::as_str`] gave; none if it is no URL.
    #[must_use]
    pub fn parse_stored(text: &str) -> Option<Self> {
        Url::parse(text).ok().map(Self)
    }

    /// Brings a parsed URL into normal form.
    pub fn from_url(mut url: Url, rules: &Normalize) -> Result<Self, ParseError> {
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(ParseError::Scheme(url.into()));
        }
        rules.apply(&mut url)?;
        Ok(Self(url))
    }

    /// Parses `text` as it stands in a page at `self`: relative to it, or absolute.
    pub fn join(&self, text: &str, rules: &Normalize) -> Result<Self, ParseError> {
        let url = join(Some(&self.0), text, UTF_8)
            .map_err(|source| ParseError::Syntax { text: text.to_owned(), source })?;
        Self::from_url(url, rules)
    }

    /// Returns the URL as text: ASCII only.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the parsed URL.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// Returns the path with the query, which is what robots.txt rules match.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        &self.0[url::Position::BeforePath..]
    }

    /// Returns the unit of politeness that this URL belongs to.
    #[must_use]
    pub fn host_key(&self) -> HostKey {
        HostKey(self.0[..url::Position::BeforePath].to_owned())
    }

    /// Returns a 64-bit hash of the URL, the same on every machine.
    #[must_use]
    pub fn hash64(&self) -> u64 {
        xxh3_64(self.as_str().as_bytes())
    }

    /// Returns the registrable domain of the host; the host, without its port, if it has none.
    pub(crate) fn registrable_domain_or_host(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        match self.0.host() {
            Some(url::Host::Domain(name)) => scope::domain_of(name),
            _ => None,
        }
        .unwrap_or_else(|| host.to_owned())
    }
}

/// Parses `text` as it stands in a page at `base` that is written in `encoding`. So are queries;
/// all else of a URL is in UTF-8.
///
/// The standard passes over any number of slashes before the host of a web URL; the parser
/// below takes more than two for an empty host.
///
/// Source: <https://url.spec.whatwg.org/#special-authority-ignore-slashes-state>, `#query-state`.
pub fn join(
    base: Option<&Url>,
    text: &str,
    encoding: &'static Encoding,
) -> Result<Url, url::ParseError> {
    let in_encoding: &dyn Fn(&str) -> Cow<'_, [u8]> = &|query| encoded(query, encoding);
    let is_legacy = encoding.output_encoding() != UTF_8;
    let options = Url::options().base_url(base);
    let options = options.encoding_override(is_legacy.then_some(in_encoding));
    let text = text.trim_start_matches(|char: char| char <= ' ');
    let rest = text.trim_start_matches(['/', '\\', '\t', '\n', '\r']);
    let slashes = text[..text.len() - rest.len()].matches(['/', '\\']).count();
    if slashes > 2 && base.is_some_and(|base| matches!(base.scheme(), "http" | "https")) {
        return options.parse(&format!("//{rest}"));
    }
    options.parse(text)
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The unit of politeness: scheme, host and port, as `https://example.org` without a slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostKey(String);

impl HostKey {
    /// Takes back a key that [`HostKey::as_str`] gave.
    #[must_use]
    pub fn from_stored(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the registrable domain that the host belongs to; see `registrable_domain`.
    #[must_use]
    pub fn domain(&self) -> String {
        // A damaged store may have a key that is none.
        let page = PageUrl::parse_stored(&format!("{}/", self.0));
        page.map_or_else(|| self.0.clone(), |page| registrable_domain(&page))
    }

    /// Returns the IP address of a host that is named by it; none for a name.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match Url::parse(&self.0).ok()?.host()? {
            url::Host::Ipv4(ip) => Some(ip.into()),
            url::Host::Ipv6(ip) => Some(ip.to_canonical()),
            url::Host::Domain(_) => None,
        }
    }

    /// Returns the registrable domain of the host; none for IP addresses and names without one.
    #[must_use]
    pub(crate) fn registrable_domain(&self) -> Option<String> {
        match Url::parse(&self.0).ok()?.host()? {
            url::Host::Domain(name) => scope::domain_of(name),
            _ => None,
        }
    }

    /// Returns the URL of this host's robots.txt. Source: RFC 9309, 2.3.
    #[must_use]
    pub fn robots_url(&self) -> PageUrl {
        let url = Url::parse(&format!("{}/robots.txt", self.0));
        PageUrl(url.expect("a host key is the start of a URL"))
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
