//! Which URLs a crawl may visit at all.

use std::collections::BTreeSet;

use url::Host;

use super::PageUrl;

/// How far a crawl may go from its seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopeKind {
    /// The hosts of the seeds, http and https alike.
    #[default]
    Host,
    /// The registrable domains of the seeds, with all their hosts.
    Domain,
    /// URLs below the folder of a seed.
    Prefix,
    /// Everything.
    Any,
}

/// The set of URLs that a crawl may visit.
#[derive(Debug, Clone)]
pub struct Scope {
    kind: ScopeKind,
    roots: BTreeSet<String>,
}

impl Scope {
    /// Makes the scope that `seeds` span. No seeds and any kind but `Any` allow nothing.
    pub fn new<'a>(kind: ScopeKind, seeds: impl IntoIterator<Item = &'a PageUrl>) -> Self {
        let root = |seed| match kind {
            ScopeKind::Host => host_name(seed),
            ScopeKind::Domain => registrable_domain(seed),
            ScopeKind::Prefix => folder(seed).to_owned(),
            ScopeKind::Any => String::new(),
        };
        Self { kind, roots: seeds.into_iter().map(root).collect() }
    }

    /// Tells whether `url` may be visited.
    #[must_use]
    pub fn contains(&self, url: &PageUrl) -> bool {
        match self.kind {
            ScopeKind::Any => true,
            ScopeKind::Host => self.roots.contains(&host_name(url)),
            ScopeKind::Domain => self.roots.contains(&registrable_domain(url)),
            // One look-up for each folder above the URL, however many seeds there are.
            ScopeKind::Prefix => {
                let text = strip_scheme(url.as_str());
                let path = &text[..text.find('?').unwrap_or(text.len())];
                path.match_indices('/').any(|(at, _)| self.roots.contains(&text[..=at]))
            }
        }
    }
}

impl Scope {
    /// Returns a hash that scopes which allow the same have in common.
    #[must_use]
    pub fn hash64(&self) -> u64 {
        let roots: Vec<&str> = self.roots.iter().map(String::as_str).collect();
        xxhash_rust::xxh3::xxh3_64(format!("{:?} {}", self.kind, roots.join(" ")).as_bytes())
    }

    /// Tells whether any URL of the host of `url` may be visited.
    #[must_use]
    pub(crate) fn has_host(&self, url: &PageUrl) -> bool {
        if self.kind != ScopeKind::Prefix {
            return self.contains(url);
        }
        let start = format!("{}/", host_name(url));
        self.roots.range(start.clone()..).next().is_some_and(|root| root.starts_with(&start))
    }
}

/// Returns the registrable domain of an address, such as `example.co.uk`; the host itself (with
/// its port) where there is none, as for IP addresses and single labels.
#[must_use]
pub(crate) fn registrable_domain(url: &PageUrl) -> String {
    match url.url().host() {
        Some(Host::Domain(name)) => domain_of(name).unwrap_or_else(|| host_name(url)),
        _ => host_name(url),
    }
}

/// Returns the registrable domain of a host name; none if the name has none.
pub(super) fn domain_of(name: &str) -> Option<String> {
    psl::domain_str(name).map(str::to_owned)
}

/// The host with its port, if that is not the one of the scheme.
fn host_name(url: &PageUrl) -> String {
    strip_scheme(&url.url()[..url::Position::BeforePath]).to_owned()
}

fn folder(url: &PageUrl) -> &str {
    let end = url.as_str().find('?').unwrap_or(url.as_str().len());
    let path = &url.as_str()[..end];
    let text = &path[..=path.rfind('/').expect("an http URL has a path")];
    strip_scheme(text)
}

fn strip_scheme(text: &str) -> &str {
    text.split_once("://").map_or(text, |(_, rest)| rest)
}
