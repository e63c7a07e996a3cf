//! Which URLs a crawl keeps out: patterns that exclude some, or include no others.

mod pattern;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::{Deserialize, Serialize};

use super::PageUrl;

use pattern::Matcher;
pub use pattern::{Pattern, PatternError};

/// Most bytes of all compiled patterns of one list.
const SIZE_MAX: usize = 64 << 20;

/// Memory of the automaton that is built while URLs are matched.
const CACHE_BYTES: usize = 32 << 20;

/// Shortest text by which it is worth to choose the patterns that are asked.
const NEEDED_MIN: usize = 3;

/// The patterns as they stand in settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilterConfig {
    /// If there is any, a URL must match one of them.
    pub include: Vec<Pattern>,
    /// No URL may match any of them.
    pub exclude: Vec<Pattern>,
    /// Patterns of some hosts.
    pub host: Vec<HostFilter>,
}

/// Patterns of one host, or of all hosts below a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFilter {
    /// The host.
    pub host: HostPattern,
    /// If there is any, a URL of the host must match one of them, and need match none of the
    /// general ones.
    #[serde(default)]
    pub include: Vec<Pattern>,
    /// No URL of the host may match any of them, nor of the general ones.
    #[serde(default)]
    pub exclude: Vec<Pattern>,
}

/// A host, with its port if that is not the one of the scheme: `example.org`, `localhost:8080`; or
/// that host and all below it: `*.example.org`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern {
    text: String,
    /// The name in the form that URLs have, without what stands for all below.
    name: String,
    below: bool,
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let url = url::Url::parse(&format!("http://{name}/")).ok();
        let url = url.filter(|url| url.path() == "/" && !name.contains(['@', '/', '*', '?', '#']));
        let url = url.ok_or_else(|| {
            format!("`{text}` is no host, such as example.org, localhost:8080 or *.example.org")
        })?;
        let name = url[url::Position::BeforeHost..url::Position::BeforePath].to_owned();
        Ok(Self { text: text.to_owned(), name, below })
    }
}

impl TryFrom<String> for HostPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<HostPattern> for String {
    fn from(host: HostPattern) -> Self {
        host.text
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a filter cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {count} {list} patterns are too large together")]
pub struct FilterError {
    list: &'static str,
    count: usize,
}

/// Which patterns hold for a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterScope {
    /// All: somebody links to it.
    All,
    /// Only those that exclude.
    Excludes,
}

/// Why a URL is kept out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptOut<'a> {
    /// This pattern excludes it; of this host, if it is one of a host.
    Excluded(&'a Pattern, Option<&'a HostPattern>),
    /// None of the patterns that include matches it; those of this host, if it has some.
    NotIncluded(Option<&'a HostPattern>),
}

impl fmt::Display for KeptOut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Excluded(_, host) | Self::NotIncluded(host)) = self;
        match self {
            Self::Excluded(pattern, _) => write!(f, "excluded by {pattern}")?,
            Self::NotIncluded(_) => f.write_str("matched by no include")?,
        }
        host.map_or(Ok(()), |host| write!(f, " of {host}"))
    }
}

/// Patterns that are asked at once.
///
/// A set of patterns with a `*` inside has so many states that asking a thousand of them takes a
/// hundred times as long as asking a hundred. So most of them are asked only about URLs with a
/// text that they need, and all these texts are looked for at once. Of several such texts of a
/// pattern, the one that fewest patterns share is taken.
#[derive(Debug, Clone, Default)]
struct PatternSet {
    patterns: Vec<Pattern>,
    /// Finds the texts that patterns need; none if none needs any.
    texts: Option<AhoCorasick>,
    /// The patterns that need a text, in the order of the texts.
    needy: Vec<(usize, Regex)>,
    /// The others.
    set: RegexSet,
    set_numbers: Vec<usize>,
}

impl PatternSet {
    fn new(list: &'static str, patterns: &[Pattern]) -> Result<Self, FilterError> {
        let too_large = || FilterError { list, count: patterns.len() };
        let mut shared: HashMap<&str, usize> = HashMap::new();
        for text in patterns.iter().flat_map(|pattern| &pattern.matcher().needs) {
            *shared.entry(text).or_default() += 1;
        }
        let (mut needy, mut texts, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (number, pattern) in patterns.iter().enumerate() {
            let Matcher { regex, needs } = pattern.matcher();
            let long = needs.iter().filter(|text| text.len() >= NEEDED_MIN);
            match long.min_by_key(|text| (shared[text.as_str()], Reverse(text.len()))) {
                Some(text) => {
                    let regex = RegexBuilder::new(regex).unicode(false).build();
                    needy.push((number, regex.map_err(|_| too_large())?));
                    texts.push(text);
                }
                None => others.push((number, regex)),
            }
        }
        let set = RegexSetBuilder::new(others.iter().map(|(_, regex)| regex))
            .unicode(false)
            .size_limit(SIZE_MAX)
            .dfa_size_limit(CACHE_BYTES)
            .build()
            .map_err(|_| too_large())?;
        let texts = (!texts.is_empty()).then(|| AhoCorasick::new(texts)).transpose();
        Ok(Self {
            patterns: patterns.to_vec(),
            texts: texts.map_err(|_| too_large())?,
            needy,
            set,
            set_numbers: others.into_iter().map(|(number, _)| number).collect(),
        })
    }

    fn matches(&self, url: &PageUrl) -> bool {
        let text = url.as_str().as_bytes();
        self.needy_matches(text).next().is_some() || self.set.is_match(text)
    }

    /// Returns the first pattern that matches.
    fn first(&self, url: &PageUrl) -> Option<&Pattern> {
        let text = url.as_str().as_bytes();
        let needy = self.needy_matches(text).min();
        // To know that one matches takes less than to know which.
        let other = self.set.is_match(text).then(|| self.set.matches(text).iter().next());
        let other = other.flatten().map(|number| self.set_numbers[number]);
        needy.into_iter().chain(other).min().map(|first| &self.patterns[first])
    }

    /// The numbers of the patterns that match and need a text.
    fn needy_matches<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let found = self.texts.iter().flat_map(move |texts| texts.find_overlapping_iter(text));
        let asked = found.map(|found| &self.needy[found.pattern().as_usize()]);
        asked.filter(|(_, regex)| regex.is_match(text)).map(|(number, _)| *number)
    }
}

/// The patterns of one section.
#[derive(Debug, Clone, Default)]
struct PatternSets {
    include: PatternSet,
    exclude: PatternSet,
}

impl PatternSets {
    fn new(include: &[Pattern], exclude: &[Pattern]) -> Result<Self, FilterError> {
        let (include, exclude) =
            (PatternSet::new("include", include)?, PatternSet::new("exclude", exclude)?);
        Ok(Self { include, exclude })
    }
}

/// A filter that is ready for use. Each URL costs few passes over its text, however many
/// patterns there are.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    config: FilterConfig,
    general: PatternSets,
    hosts: Vec<(HostPattern, PatternSets)>,
    /// Numbers of `hosts`, by their names.
    by_name: HashMap<String, Vec<usize>>,
}

impl Filter {
    /// Makes a filter of its settings.
    pub fn new(config: &FilterConfig) -> Result<Self, FilterError> {
        let mut filter = Self {
            config: config.clone(),
            general: PatternSets::new(&config.include, &config.exclude)?,
            ..Self::default()
        };
        for HostFilter { host, include, exclude } in &config.host {
            filter.by_name.entry(host.name.clone()).or_default().push(filter.hosts.len());
            filter.hosts.push((host.clone(), PatternSets::new(include, exclude)?));
        }
        Ok(filter)
    }

    /// Returns the settings that it was made of.
    #[must_use]
    pub fn config(&self) -> &FilterConfig {
        &self.config
    }

    /// Returns the patterns that include; those of the sections of a host, if one is given.
    pub(crate) fn includes_of<'a>(
        &'a self,
        host: Option<&'a HostPattern>,
    ) -> impl Iterator<Item = &'a Pattern> {
        let general = host.is_none().then_some(&self.config.include);
        let sections = self.config.host.iter().filter(move |of| Some(&of.host) == host);
        general.into_iter().chain(sections.map(|of| &of.include)).flatten()
    }

    /// Tells why a URL is kept out, if it is: a pattern that excludes wins over one that
    /// includes, and where a host has patterns that include, they stand for the general ones.
    #[must_use]
    pub(crate) fn keeps_out(&self, url: &PageUrl, asked: FilterScope) -> Option<KeptOut<'_>> {
        if let Some(pattern) = self.general.exclude.first(url) {
            return Some(KeptOut::Excluded(pattern, None));
        }
        let hosts = self.of_host(url);
        for (host, lists) in &hosts {
            if let Some(pattern) = lists.exclude.first(url) {
                return Some(KeptOut::Excluded(pattern, Some(host)));
            }
        }
        if asked == FilterScope::Excludes {
            return None;
        }
        let of_hosts = hosts.into_iter().filter(|(_, lists)| !lists.include.patterns.is_empty());
        let mut includes: Vec<_> =
            of_hosts.map(|(host, lists)| (Some(host), &lists.include)).collect();
        if includes.is_empty() && !self.general.include.patterns.is_empty() {
            includes.push((None, &self.general.include));
        }
        let (host, _) = includes.first()?;
        let is_included = includes.iter().any(|(_, include)| include.matches(url));
        (!is_included).then_some(KeptOut::NotIncluded(*host))
    }

    /// The sections of the host of a URL, in their order.
    fn of_host(&self, url: &PageUrl) -> Vec<(&HostPattern, &PatternSets)> {
        if self.hosts.is_empty() {
            return Vec::new();
        }
        let name = &url.url()[url::Position::BeforeHost..url::Position::BeforePath];
        let mut numbers: Vec<usize> = Vec::new();
        let mut rest = Some(name);
        while let Some(name_here) = rest {
            let found = self.by_name.get(name_here).into_iter().flatten().copied();
            numbers.extend(found.filter(|at| name_here == name || self.hosts[*at].0.below));
            rest = name_here.split_once('.').map(|(_, above)| above);
        }
        numbers.sort_unstable();
        numbers.into_iter().map(|at| (&self.hosts[at].0, &self.hosts[at].1)).collect()
    }
}

#[cfg(test)]
mod tests;
