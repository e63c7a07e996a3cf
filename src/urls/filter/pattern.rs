//! One pattern of a filter: a glob or a regular expression.
//!
//! A glob is turned into a regular expression, so that all patterns of a filter are asked at once.
//! `?`, `[` and `]` stand for themselves in globs, because they stand for themselves in addresses:
//! `/list?f[0]=*` means what it looks like.

use std::fmt;
use std::str::FromStr;

use regex::bytes::RegexBuilder;
use serde::{Deserialize, Serialize};

/// Longest pattern, in bytes: as long as a URL may be.
const LENGTH_MAX: usize = 2_000;

/// Most bytes of one compiled pattern, so that `re:(a{1000}){1000}` is an error and no memory.
const SIZE_MAX: usize = 1 << 20;

/// A pattern of URLs, as it is written: `*/tag/*`, `re:/tag/[0-9]+$`.
///
/// Without a prefix, or after `glob:`, it is a glob, which matches the whole address: `*` is any
/// text, `{a,b}` one of these, `\` takes the meaning of the next character, all else is itself. A
/// glob without a scheme is for `http` and `https`; one that begins with `/`, for all hosts; a host
/// alone, for all of its URLs. After `re:` it is a regular expression, which matches anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    text: String,
    matcher: Matcher,
}

/// What a pattern is turned into.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Matcher {
    /// A regular expression that matches the same URLs, anywhere in them.
    pub regex: String,
    /// Texts that every URL has that is matched.
    pub needs: Vec<String>,
}

/// What is wrong with a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern `{text}` {why}")]
pub struct PatternError {
    text: String,
    why: String,
}

impl Pattern {
    /// Returns the pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn matcher(&self) -> &Matcher {
        &self.matcher
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let wrong = |why: String| PatternError { text: text.to_owned(), why };
        if text.len() > LENGTH_MAX {
            return Err(wrong(format!("is longer than {LENGTH_MAX} bytes")));
        }
        if text.contains(char::is_control) {
            return Err(wrong("has control characters".to_owned()));
        }
        let matcher = match text.strip_prefix("re:") {
            Some(regex) => expression(regex),
            None => glob(text.strip_prefix("glob:").unwrap_or(text)),
        };
        let matcher = matcher.map_err(|why| wrong(why.to_owned()))?;
        let built = RegexBuilder::new(&matcher.regex).unicode(false).size_limit(SIZE_MAX).build();
        built.map_err(|error| wrong(format!("is no regular expression: {}", reason(&error))))?;
        Ok(Self { text: text.to_owned(), matcher })
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text
    }
}

/// The last line of an error says what is wrong; those before it show where.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "it is too large when it is compiled".to_owned(),
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.trim_start_matches("error: ").to_owned()
        }
    }
}

fn expression(regex: &str) -> Result<Matcher, &'static str> {
    match regex {
        "" => Err("is empty"),
        regex if !regex.is_ascii() => Err("matches no URL: write the escapes that a URL \
                                           has, such as %C3%A9 for é"),
        regex => Ok(Matcher { regex: regex.to_owned(), ..Matcher::default() }),
    }
}

/// What `*` is in a path, in the name of a host, which it does not leave, and in a scheme.
const ANY: &str = ".*";
const ANY_OF_HOST: &str = "[^/]*";
const ANY_OF_SCHEME: &str = "[a-z]*";

/// Turns a glob into a regular expression. What stands for any text at either end is left out,
/// because the expression is looked for anywhere.
fn glob(glob: &str) -> Result<Matcher, &'static str> {
    if glob.is_empty() {
        return Err("is empty");
    }
    if glob.contains('#') {
        return Err("matches no URL: URLs are compared without what follows a #");
    }
    let is_scheme = |text: &str| text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'*');
    let mut made = Translation::default();
    match glob.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
        Some((scheme, rest)) => {
            made.regex.push('^');
            made.add(&scheme.to_ascii_lowercase(), ANY_OF_SCHEME)?;
            made.add("://", ANY_OF_SCHEME)?;
            made.add_with_host(rest)?;
        }
        None if glob.starts_with('*') => made.add(glob, ANY)?,
        None if glob.starts_with('/') => {
            made.regex.push_str("^https?://[^/]*");
            made.add(glob, ANY)?;
        }
        None => {
            let host = &glob[..glob.find(['/', '?']).unwrap_or(glob.len())];
            if !is_host(host) {
                return Err("is no URL: a glob begins with a scheme, a host, `/` or `*`, as \
                            `*word*` does, and a regular expression with `re:`");
            }
            made.regex.push_str("^https?://");
            made.add_with_host(glob)?;
        }
    }
    Ok(made.finish())
}

/// Tells whether what a glob begins with can only be meant as a host.
fn is_host(text: &str) -> bool {
    let port = text.rsplit_once(':').map(|(_, port)| port);
    text.contains('.')
        || text.starts_with('[')
        || text.eq_ignore_ascii_case("localhost")
        || port.is_some_and(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

/// The form of a host name that URLs have.
fn host_name(text: &str) -> Result<String, &'static str> {
    let lower = text.to_lowercase();
    if lower.is_ascii() {
        return Ok(lower);
    }
    let is_whole = !lower.contains(['*', '{', '\\', '%']);
    let host = url::Host::parse(&lower).ok().filter(|_| is_whole);
    let host = host.map(|host| host.to_string());
    host.ok_or("has a part of a name that is not ASCII: write it as URLs do, with xn--")
}

/// A glob on its way to a regular expression.
#[derive(Debug, Default)]
struct Translation {
    regex: String,
    /// The text since the last `*` or bracket, and those before it.
    run: String,
    runs: Vec<String>,
}

impl Translation {
    /// Adds a glob that begins with a host. A host alone stands for all of its URLs.
    fn add_with_host(&mut self, glob: &str) -> Result<(), &'static str> {
        let (host, path) = glob.split_at(glob.find(['/', '?']).unwrap_or(glob.len()));
        self.add(&host_name(host)?, ANY_OF_HOST)?;
        if !path.starts_with('/') {
            self.literal('/');
        }
        self.add(if path.is_empty() { "*" } else { path }, ANY)
    }

    fn add(&mut self, glob: &str, any: &str) -> Result<(), &'static str> {
        let mut open = 0;
        let mut chars = glob.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '*' => {
                    while chars.next_if_eq(&'*').is_some() {}
                    self.special(any, open);
                }
                '{' => {
                    self.special("(?:", open);
                    open += 1;
                }
                ',' if open > 0 => self.special("|", open),
                '}' if open > 0 => {
                    self.special(")", open);
                    open -= 1;
                }
                '\\' => self.literal(chars.next().ok_or("ends with a `\\`")?),
                '%' => {
                    self.literal('%');
                    // The normal form has escapes in upper case.
                    for _ in 0..2 {
                        if let Some(digit) = chars.next_if(char::is_ascii_hexdigit) {
                            self.literal(digit.to_ascii_uppercase());
                        }
                    }
                }
                c => self.literal(c),
            }
        }
        if open > 0 { Err("has a `{` without its `}`") } else { Ok(()) }
    }

    /// Adds what is no text of the URL; `open` brackets are around it.
    fn special(&mut self, regex: &str, open: usize) {
        self.end_run(open);
        self.regex.push_str(regex);
    }

    /// Ends a text. One inside brackets is one of several.
    fn end_run(&mut self, open: usize) {
        let run = std::mem::take(&mut self.run);
        if open == 0 && !run.is_empty() {
            self.runs.push(run);
        }
    }

    /// Adds a character of the URL; one that no URL has as its escapes.
    fn literal(&mut self, c: char) {
        let mut bytes = [0; 4];
        let text = c.encode_utf8(&mut bytes);
        if c.is_ascii_graphic() {
            self.regex.push_str(&regex::escape(text));
            self.run.push(c);
            return;
        }
        for byte in text.bytes() {
            let escape = format!("%{byte:02X}");
            self.regex.push_str(&escape);
            self.run.push_str(&escape);
        }
    }

    fn finish(mut self) -> Matcher {
        self.end_run(0);
        let regex = self.regex + "$";
        let regex = regex.strip_suffix(".*$").unwrap_or(&regex);
        let regex = match regex.strip_prefix(ANY) {
            Some(rest) => rest.to_owned(),
            None if regex.starts_with('^') => regex.to_owned(),
            None => format!("^{regex}"),
        };
        Matcher { regex, needs: self.runs }
    }
}
