//! The rules that make one URL of its many forms, after those of the WHATWG URL standard.
//!
//! URLs are asked for in their normal form, so that a rule is on by default only where hardly
//! any site gives another page for it.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use url::Url;

use super::escapes::normal_escapes;
use super::{ParseError, sessions};

/// Which of our own rules are applied after those of the WHATWG URL standard.
///
/// Three things are no rule but part of what a [`super::PageUrl`] is: it has no user name or
/// password, and no fragment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the settings")]
pub struct Normalize {
    /// Decode escapes of unreserved characters (`%7E`), write others in upper case (`%2F`).
    pub normal_escapes: bool,
    /// Drop dots at the end of the host name.
    pub drop_host_dot: bool,
    /// Drop a `?` that nothing follows.
    pub drop_empty_query: bool,
    /// Drop parameters without name and value: `&&`, and `&` at either end of a query.
    pub drop_empty_parameters: bool,
    /// Take `&amp;` in a query for `&`: it was escaped once too often.
    pub unescape_ampersands: bool,
    /// Drop the parameters of `tracking_parameters`.
    pub drop_tracking_parameters: bool,
    /// Parameters that only tell where a visitor came from; `*` at the end stands for any rest.
    pub tracking_parameters: Vec<String>,
    /// Drop session identifiers from queries and paths.
    pub drop_session_ids: bool,
    /// Parameters of queries and path segments that are sessions whatever their value.
    pub session_parameters: Vec<String>,
    /// The same, if the value looks like a hash.
    pub hashed_session_parameters: Vec<String>,
    /// Drop the name of a default document at the end of the path. Off: a server need not answer
    /// its folder with it.
    pub drop_default_documents: bool,
    /// Names of default documents.
    pub default_documents: Vec<String>,
    /// Order parameters by name; those of one name keep their order. Off: rules of robots.txt that
    /// name a parameter, such as `/*?sort=`, would not match any more.
    pub sort_parameters: bool,
    /// Make one slash of several in a path. Off: object stores tell them apart.
    pub merge_slashes: bool,
    /// Drop `www.` at the start of the host name. Off: many hosts have no URL without it.
    pub drop_www: bool,
    /// Ask for https where the URL says http without a port. Off: not every host has it.
    pub upgrade_http: bool,
    /// Turn `#!state` into the parameter `_escaped_fragment_`. Off: few servers answer it still.
    pub escape_hashbang: bool,
}

/// Source: the documentation of Google Analytics, Google Ads, Meta, Microsoft Advertising, Yandex,
/// X, `TikTok`, Mailchimp, `HubSpot`, Marketo, Matomo and Alibaba; names that sites use for content
/// are left out on purpose.
const TRACKING: [&str; 27] = [
    "utm_*",
    "gclid",
    "gclsrc",
    "dclid",
    "gbraid",
    "wbraid",
    "_ga",
    "_gl",
    "srsltid",
    "fbclid",
    "igshid",
    "msclkid",
    "yclid",
    "ysclid",
    "_openstat",
    "twclid",
    "ttclid",
    "mc_cid",
    "mc_eid",
    "_hsenc",
    "_hsmi",
    "hsctatracking",
    "mkt_tok",
    "mtm_*",
    "pk_campaign",
    "pk_kwd",
    "spm",
];

const DEFAULT_DOCUMENTS: [&str; 10] = [
    "index.html",
    "index.htm",
    "index.shtml",
    "index.php",
    "index.jsp",
    "index.asp",
    "index.aspx",
    "default.htm",
    "default.asp",
    "default.aspx",
];

impl Default for Normalize {
    fn default() -> Self {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            normal_escapes: true,
            drop_host_dot: true,
            drop_empty_query: true,
            drop_empty_parameters: true,
            unescape_ampersands: true,
            drop_tracking_parameters: true,
            tracking_parameters: list(&TRACKING),
            drop_session_ids: true,
            session_parameters: list(&sessions::NAMES),
            hashed_session_parameters: list(&sessions::HASHED_NAMES),
            drop_default_documents: false,
            default_documents: list(&DEFAULT_DOCUMENTS),
            sort_parameters: false,
            merge_slashes: false,
            drop_www: false,
            upgrade_http: false,
            escape_hashbang: false,
        }
    }
}

/// The default rules, made once.
pub(super) static USUAL: LazyLock<Normalize> = LazyLock::new(Normalize::default);

/// No rule at all: what the standard makes of a URL.
static NONE: LazyLock<Normalize> = LazyLock::new(|| Normalize {
    normal_escapes: false,
    drop_host_dot: false,
    drop_empty_query: false,
    drop_empty_parameters: false,
    unescape_ampersands: false,
    drop_tracking_parameters: false,
    drop_session_ids: false,
    ..Normalize::default()
});

/// A rule may make a place for another one, as a session behind a dot does. Each takes something
/// away, so that a few rounds settle every URL.
const ROUNDS_MAX: usize = 16;

impl Normalize {
    /// Returns the rules of which none is on.
    #[must_use]
    pub fn none() -> &'static Self {
        &NONE
    }

    /// Returns the rules as they are kept in a store.
    #[must_use]
    pub fn to_stored(&self) -> String {
        serde_json::to_string(self).expect("the rules have a form in JSON")
    }

    /// Takes back what [`Normalize::to_stored`] gave. A rule that it does not name is as by
    /// default.
    #[must_use]
    pub fn from_stored(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the first rule that differs: its name, its value here and there.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<(String, String, String)> {
        let fields = |rules: &Self| match serde_json::to_value(rules) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let theirs = fields(other);
        let differs = |(name, _): &(String, serde_json::Value)| theirs.get(name);
        let mine = fields(self).into_iter();
        let mut pairs = mine.filter_map(|pair| differs(&pair).map(|it| (pair.clone(), it.clone())));
        let found = pairs.find(|((_, mine), theirs)| mine != theirs);
        found.map(|((name, mine), theirs)| (name, mine.to_string(), theirs.to_string()))
    }

    /// Brings an http or https URL into normal form.
    pub(super) fn apply(&self, url: &mut Url) -> Result<(), ParseError> {
        self.take_fragment(url);
        if !url.username().is_empty() || url.password().is_some() {
            // Neither call can fail on an http URL with a host.
            let _ = (url.set_username(""), url.set_password(None));
        }
        for _ in 0..ROUNDS_MAX {
            let host = self.change_host(url)?;
            let path = self.change_path(url);
            let query = self.change_query(url);
            if !(host || path || query) {
                break;
            }
        }
        Ok(())
    }

    fn take_fragment(&self, url: &mut Url) {
        let state = url.fragment().and_then(|fragment| fragment.strip_prefix('!'));
        if let Some(state) = state.filter(|_| self.escape_hashbang) {
            let mut query = url.query().unwrap_or_default().to_owned();
            if !query.is_empty() {
                query.push('&');
            }
            query.push_str("_escaped_fragment_=");
            for char in state.chars() {
                match char {
                    '#' => query.push_str("%23"),
                    '%' => query.push_str("%25"),
                    '&' => query.push_str("%26"),
                    '+' => query.push_str("%2B"),
                    other => query.push(other),
                }
            }
            url.set_query(Some(&query));
        }
        url.set_fragment(None);
    }

    /// Applies the rules of scheme and host. Returns whether something has changed.
    fn change_host(&self, url: &mut Url) -> Result<bool, ParseError> {
        let mut changed = false;
        if self.upgrade_http && url.scheme() == "http" && url.port().is_none() {
            changed = url.set_scheme("https").is_ok();
        }
        let Some(host) = url.host_str() else { return Ok(changed) };
        let mut new = host;
        if self.drop_host_dot {
            new = new.trim_end_matches('.');
        }
        if self.drop_www
            && let Some(rest) = new.strip_prefix("www.")
            && psl::domain_str(rest).is_some()
        {
            new = rest;
        }
        if new.len() == host.len() {
            return Ok(changed);
        }
        let new = new.to_owned();
        match url.set_host(Some(&new)) {
            Ok(()) => Ok(true),
            Err(source) => Err(ParseError::Syntax { text: url.as_str().to_owned(), source }),
        }
    }

    fn change_path(&self, url: &mut Url) -> bool {
        let before = url.path();
        let mut path = None;
        if self.normal_escapes && before.contains('%') {
            path = Some(normal_escapes(before));
        }
        let now = path.as_deref().unwrap_or(before);
        if self.drop_session_ids
            && (now.contains(';') || now.contains("(S(") || now.contains(")S("))
        {
            path = Some(self.without_sessions(now));
        }
        let now = path.as_deref().unwrap_or(before);
        if self.merge_slashes && now.contains("//") {
            path = Some(merged_slashes(now));
        }
        let now = path.as_deref().unwrap_or(before);
        if self.drop_default_documents
            && let Some((folder, name)) = now.rsplit_once('/')
            && sessions::is_listed(&self.default_documents, name)
        {
            path = Some(format!("{folder}/"));
        }
        match path.filter(|path| path != before) {
            Some(path) => {
                let before = before.to_owned();
                url.set_path(&path);
                url.path() != before
            }
            None => false,
        }
    }

    fn without_sessions(&self, path: &str) -> String {
        let mut out = String::with_capacity(path.len());
        let last = path.split('/').count() - 1;
        for (number, segment) in path.split('/').enumerate() {
            if sessions::is_asp_segment(segment) && number > 0 {
                if number == last {
                    out.push('/');
                }
                continue;
            }
            if number > 0 {
                out.push('/');
            }
            let (names, hashed) = (&self.session_parameters, &self.hashed_session_parameters);
            match sessions::without_parameters(segment, names, hashed) {
                Some(rest) => out.push_str(&rest),
                None => out.push_str(segment),
            }
        }
        out
    }

    fn change_query(&self, url: &mut Url) -> bool {
        let Some(before) = url.query() else { return false };
        if before.is_empty() {
            if self.drop_empty_query {
                url.set_query(None);
            }
            return self.drop_empty_query;
        }
        let escaped = (self.normal_escapes && before.contains('%')).then(|| normal_escapes(before));
        let query = escaped.as_deref().unwrap_or(before);
        let mut pairs: Vec<&str> = query.split('&').map(|pair| self.unescaped(pair)).collect();
        pairs.retain(|pair| !self.is_dropped(pair));
        if self.sort_parameters && pairs.iter().all(|pair| pair.contains('=')) {
            pairs.sort_by_key(|pair| pair.split('=').next());
        }
        let after = pairs.join("&");
        if after == before {
            return false;
        }
        url.set_query(if after.is_empty() { None } else { Some(&after) });
        true
    }

    /// The piece after `&` without the rest of `&amp;`.
    fn unescaped<'a>(&self, mut pair: &'a str) -> &'a str {
        let rest = |pair: &'a str, mark: &str| {
            let is_mark = pair.get(..mark.len())?.eq_ignore_ascii_case(mark);
            is_mark.then(|| &pair[mark.len()..])
        };
        if self.unescape_ampersands {
            while let Some(after) = rest(pair, "amp;").or_else(|| rest(pair, "amp%3B")) {
                pair = after;
            }
        }
        pair
    }

    fn is_dropped(&self, pair: &str) -> bool {
        if pair.is_empty() {
            return self.drop_empty_parameters;
        }
        let name = pair.split('=').next().unwrap_or(pair);
        let (names, hashed) = (&self.session_parameters, &self.hashed_session_parameters);
        (self.drop_tracking_parameters && sessions::is_listed(&self.tracking_parameters, name))
            || (self.drop_session_ids && sessions::is_session(pair, names, hashed))
    }
}

fn merged_slashes(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for char in path.chars() {
        if char != '/' || !out.ends_with('/') {
            out.push(char);
        }
    }
    out
}
