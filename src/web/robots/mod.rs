//! robots.txt: which URLs of a host may be fetched, how fast, and where its sitemaps are.
//!
//! The crate `robotstxt` serves as lexer of lines only. Its input goes through a filter that makes
//! it plain ASCII with short lines and known keys, because version 0.3.0 loses the first group to a
//! byte order mark, panics on long lines with multi-byte characters and lets unknown keys end a
//! group; groups and patterns are our own, because it matches some wildcards wrongly and needs
//! time of the fourth power for others.
//!
//! Source: RFC 9309.

mod batch;
mod filter;
pub mod meta;
mod pattern;

use std::time::Duration;

use robotstxt::{RobotsParseHandler, parse_robotstxt};

pub use batch::{BatchAnswer, BatchError, batch_line};
use pattern::PathPattern;

/// How to read where practice differs from RFC 9309.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Read as Google's parser does: usual misspellings of keys, a blank instead of the colon, and
    /// `index.html` for its folder.
    pub google_extras: bool,
    /// Bytes that are read; what is beyond them is cut, up to the end of a line.
    pub bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { google_extras: true, bytes_max: BYTES_MIN }
    }
}

/// Bytes of a file that every crawler must read. Source: RFC 9309, 2.5.
pub const BYTES_MIN: usize = 500 << 10;

/// The file, line by line.
#[derive(Debug, Clone, PartialEq)]
pub struct RobotsRules {
    lines: Vec<(u32, RobotsLine)>,
    sitemaps: Vec<String>,
    cut: Option<usize>,
    options: Options,
}

#[derive(Debug, Clone, PartialEq)]
enum RobotsLine {
    Agent(String),
    Allow(String),
    Disallow(String),
    CrawlDelay(Duration),
}

/// The rule that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsRule {
    /// Its line in the file, from 1.
    pub line: u32,
    /// The line in normal form, such as `Disallow: /private`.
    pub text: String,
}

/// The answer for one URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsVerdict {
    /// It may be fetched.
    pub allowed: bool,
    /// The rule that decided; none if no rule matches.
    pub rule: Option<RobotsRule>,
}

impl RobotsRules {
    /// Reads a file. Nothing in it is an error: what cannot be read is passed over.
    #[must_use]
    pub fn parse(body: &[u8], options: &Options) -> Self {
        let mut reader = LineCollector::default();
        parse_robotstxt(&filter::filtered(body, *options), &mut reader);
        let cut = (body.len() > options.bytes_max).then_some(options.bytes_max);
        Self { lines: reader.lines, sitemaps: reader.sitemaps, cut, options: *options }
    }

    /// Returns the bytes that were read of a file that is longer: what it says further down is not
    /// known.
    #[must_use]
    pub fn cut(&self) -> Option<usize> {
        self.cut
    }

    /// Returns the URLs of the sitemaps that the file names, in its order.
    #[must_use]
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    /// Returns what holds for a crawler with this product token, for paths in the normal form of
    /// a URL: escapes in upper case, what needs none as it is.
    ///
    /// All groups that name the token hold together; if there are none, all groups of `*`.
    /// Source: RFC 9309, 2.2.1.
    #[must_use]
    pub fn for_agent(&self, agent: &str) -> AgentRules {
        self.compile(agent, pattern::normal_form)
    }

    /// Tells whether `agent` may fetch `url`: a whole URL, or a path with its query.
    ///
    /// ```
    /// use uniqcrawl::web::robots::{Options, RobotsRules};
    ///
    /// let file = b"User-agent: *\nDisallow: /private\nAllow: /private/open\n";
    /// let rules = RobotsRules::parse(file, &Options::default());
    /// assert!(rules.verdict("uniqcrawl", "https://example.org/private/open/1").allowed);
    /// let verdict = rules.verdict("uniqcrawl", "https://example.org/private/1");
    /// assert_eq!(verdict.rule.map(|rule| rule.line), Some(2));
    /// ```
    #[must_use]
    pub fn verdict(&self, agent: &str, url: &str) -> RobotsVerdict {
        let path = pattern::path_of(url);
        if self.options.google_extras {
            self.compile(agent, str::to_owned).verdict(&path)
        } else {
            self.compile(agent, pattern::normal_form).verdict(&pattern::normal_form(&path))
        }
    }

    fn compile(&self, agent: &str, form: impl Fn(&str) -> String) -> AgentRules {
        // Google's parser takes the crawler's own name as it is, however odd.
        let agent = if self.options.google_extras { agent } else { product_token(agent) };
        let mut specific = AgentRules::default();
        let mut global = AgentRules::default();
        // Which groups the next rule belongs to; a rule closes the list of agents before it.
        let (mut is_specific, mut is_global, mut closed) = (false, false, false);
        let mut ever_specific = false;
        for (number, line) in &self.lines {
            let rules = if is_specific { &mut specific } else { &mut global };
            match line {
                RobotsLine::Agent(name) => {
                    if closed {
                        (is_specific, is_global, closed) = (false, false, false);
                    }
                    if is_everybody(name) {
                        is_global = true;
                    } else if product_token(name).eq_ignore_ascii_case(agent) {
                        (is_specific, ever_specific) = (true, true);
                    }
                }
                RobotsLine::Allow(_) | RobotsLine::Disallow(_) if !is_specific && !is_global => {}
                RobotsLine::Allow(path) => {
                    closed = true;
                    rules.add(&form(path), true, *number);
                    if let Some(folder) = folder_of_index(path).filter(|_| self.google()) {
                        rules.add(&form(&folder), true, *number);
                    }
                }
                RobotsLine::Disallow(path) => {
                    closed = true;
                    rules.add(&form(path), false, *number);
                }
                RobotsLine::CrawlDelay(delay) if is_specific || is_global => {
                    rules.delay = rules.delay.max(Some(*delay));
                }
                RobotsLine::CrawlDelay(_) => {}
            }
        }
        let mut rules = if ever_specific { specific } else { global };
        rules.sort();
        rules
    }

    fn google(&self) -> bool {
        self.options.google_extras
    }
}

/// What holds for one crawler: cheap to ask many times.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentRules {
    /// Longest first; of equals, allowing ones first: the first that matches decides.
    /// Source: RFC 9309, 2.2.2.
    rules: Vec<Compiled>,
    delay: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
struct Compiled {
    pattern: PathPattern,
    allow: bool,
    line: u32,
}

impl AgentRules {
    /// Tells whether a path with its query may be fetched. `/robots.txt` always may.
    ///
    /// Cost: linear in the lengths of path and rules, whatever the wildcards.
    #[must_use]
    pub fn allowed(&self, path_and_query: &str) -> bool {
        path_and_query == "/robots.txt" || self.verdict(path_and_query).allowed
    }

    /// Tells whether a path with its query may be fetched, and by which rule.
    #[must_use]
    pub fn verdict(&self, path_and_query: &str) -> RobotsVerdict {
        let decisive = self.rules.iter().find(|rule| rule.pattern.matches(path_and_query));
        let rule = decisive.map(|rule| RobotsRule {
            line: rule.line,
            text: format!(
                "{}: {}",
                if rule.allow { "Allow" } else { "Disallow" },
                rule.pattern.text()
            ),
        });
        RobotsVerdict { allowed: decisive.is_none_or(|rule| rule.allow), rule }
    }

    /// Returns the time that the host asks to wait between requests; the longest if several are
    /// named, none if none is. Not part of RFC 9309.
    #[must_use]
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.delay
    }

    /// Returns about how much memory the rules take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rules.iter().map(|rule| size_of::<Compiled>() + rule.pattern.text().len()).sum()
    }

    fn add(&mut self, path: &str, allow: bool, line: u32) {
        // An empty path says nothing.
        if !path.is_empty() {
            self.rules.push(Compiled { pattern: PathPattern::new(path), allow, line });
        }
    }

    fn sort(&mut self) {
        let length = |rule: &Compiled| std::cmp::Reverse(rule.pattern.text().len());
        self.rules.sort_by_key(|rule| (length(rule), !rule.allow, rule.line));
    }
}

/// `*`, also with text after a blank.
fn is_everybody(name: &str) -> bool {
    name.strip_prefix('*')
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_whitespace()))
}

/// The leading letters, `_` and `-`. Source: RFC 9309, 2.2.1.
fn product_token(name: &str) -> &str {
    let end = name.find(|c: char| !(c.is_ascii_alphabetic() || c == '_' || c == '-'));
    &name[..end.unwrap_or(name.len())]
}

/// For `/a/index.html` the pattern `/a/$`.
fn folder_of_index(path: &str) -> Option<String> {
    let slash = path.rfind('/')?;
    path[slash..].starts_with("/index.htm").then(|| format!("{}$", &path[..=slash]))
}

/// Reads `Crawl-delay`: seconds, perhaps with a fraction and an `s`. Values that make no sense
/// are passed over; a number without measure is the longest time there is, not none.
fn crawl_delay(value: &str) -> Option<Duration> {
    let value = value.trim().trim_end_matches(['s', 'S']).trim_end();
    let is_number = value.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '+'));
    let seconds: f64 = value.parse().ok().filter(|_| is_number)?;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

#[derive(Default)]
struct LineCollector {
    lines: Vec<(u32, RobotsLine)>,
    sitemaps: Vec<String>,
}

impl RobotsParseHandler for LineCollector {
    fn handle_robots_start(&mut self) {}
    fn handle_robots_end(&mut self) {}

    fn handle_user_agent(&mut self, line: u32, value: &str) {
        self.lines.push((line, RobotsLine::Agent(value.to_owned())));
    }

    fn handle_allow(&mut self, line: u32, value: &str) {
        self.lines.push((line, RobotsLine::Allow(value.to_owned())));
    }

    fn handle_disallow(&mut self, line: u32, value: &str) {
        self.lines.push((line, RobotsLine::Disallow(value.to_owned())));
    }

    fn handle_sitemap(&mut self, _: u32, value: &str) {
        self.sitemaps.push(value.to_owned());
    }

    fn handle_unknown_action(&mut self, line: u32, action: &str, value: &str) {
        if action.eq_ignore_ascii_case("crawl-delay") {
            self.lines
                .extend(crawl_delay(value).map(|delay| (line, RobotsLine::CrawlDelay(delay))));
        }
    }
}
