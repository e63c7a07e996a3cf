//! The links of a page.

use std::collections::{HashMap, HashSet};

use encoding_rs::Encoding;
use url::Url;

use crate::urls;

use super::head::HeadFacts;
use super::tree::{NodeKind, Tree, TreeNode};

/// Longest link that is looked at, in bytes.
const LINK_BYTES_MAX: usize = 4_096;

/// Relations of `<link>` elements that lead to pages, and not to parts of this one.
///
/// Source: HTML 4.01, 6.12, and the microformats wiki's registry of relations.
const PAGE_RELATIONS: [&str; 19] = [
    "canonical",
    "next",
    "prev",
    "previous",
    "up",
    "first",
    "last",
    "start",
    "index",
    "contents",
    "toc",
    "chapter",
    "section",
    "appendix",
    "glossary",
    "help",
    "search",
    "author",
    "copyright",
];

/// Types of feeds.
const FEED_TYPES: [&str; 4] =
    ["application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json"];

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where it leads: absolute, http or https, without fragment but for one that starts with `!`.
    pub url: Url,
    /// It is marked `rel=nofollow`.
    pub nofollow: bool,
    /// It leads to a feed of the site.
    pub feed: bool,
}

/// A link with what is written on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkText {
    /// Where it leads: absolute, http or https.
    pub url: Url,
    /// Its text, white space collapsed; that for those who do not see its image if it has no other.
    pub text: String,
    /// It is marked `rel=nofollow`.
    pub nofollow: bool,
}

/// Characters of the text of a link that are kept.
const TEXT_CHARS_MAX: usize = 300;

/// What the links of a page are relative to, and the encoding that their queries are in.
#[derive(Debug)]
pub(super) struct Base {
    url: Option<Url>,
    encoding: &'static Encoding,
}

impl Base {
    pub(super) fn of(head: &HeadFacts, page: Option<&Url>, encoding: &'static Encoding) -> Self {
        let page = Self { url: page.cloned(), encoding };
        let own = head.base.as_deref().and_then(|href| page.parse(href));
        // One that leads out of the web is passed over.
        let own = own.filter(|base| matches!(base.scheme(), "http" | "https"));
        Self { url: own.or(page.url), encoding }
    }

    /// Makes a URL of any kind absolute.
    pub(super) fn parse(&self, href: &str) -> Option<Url> {
        urls::join(self.url.as_ref(), href.trim(), self.encoding).ok()
    }

    /// Makes a link to another page absolute.
    pub(super) fn join(&self, href: &str) -> Option<String> {
        let mut url = self.resolve(href)?;
        url.set_fragment(None);
        Some(url.into())
    }

    fn resolve(&self, href: &str) -> Option<Url> {
        let href = href.trim();
        let same_page = href.starts_with('#') && !href.starts_with("#!");
        if href.is_empty() || same_page || href.len() > LINK_BYTES_MAX {
            return None;
        }
        let mut url = self.parse(href)?;
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        // A state of a page that scripts make; the rules of URLs say what becomes of it.
        if url.fragment().is_some_and(|fragment| !fragment.starts_with('!')) {
            url.set_fragment(None);
        }
        Some(url)
    }
}

/// Returns the links in the order of the page, each URL once, and how many there are beyond
/// `links_max`. A link that stands there both with and without nofollow is one without.
pub(super) fn links(tree: &Tree<'_>, base: &Base, links_max: usize) -> (Vec<Link>, u64) {
    let mut links: Vec<Link> = Vec::new();
    let mut beyond = 0;
    if links_max == 0 {
        return (links, beyond);
    }
    let mut seen: HashSet<(&str, bool)> = HashSet::new();
    for item in &tree.items {
        let Some(href) = target(item) else { continue };
        let nofollow = has_word(item, "rel", "nofollow");
        // Most repeated links are repeated to the letter.
        if !seen.insert((href, nofollow)) {
            continue;
        }
        if links.len() >= links_max {
            beyond += u64::from(may_lead(href));
            continue;
        }
        let Some(url) = base.resolve(href) else { continue };
        links.push(Link { url, nofollow, feed: item.name() == "link" && is_feed(item) });
    }
    let followed: HashSet<Url> =
        links.iter().filter(|link| !link.nofollow).map(|link| link.url.clone()).collect();
    let mut kept = HashSet::new();
    links.retain(|link| {
        (!link.nofollow || !followed.contains(&link.url)) && kept.insert(link.url.clone())
    });
    (links, beyond)
}

/// Returns the links that a reader can follow, at most `links_max` of them, each URL once, with the
/// first text that it has.
pub(super) fn texts(tree: &Tree<'_>, base: &Base, links_max: usize) -> Vec<LinkText> {
    let mut found: Vec<LinkText> = Vec::new();
    let mut places: HashMap<Url, usize> = HashMap::new();
    for (at, item) in tree.items.iter().enumerate() {
        if !matches!(item.name(), "a" | "area") {
            continue;
        }
        let Some(url) = item.attribute("href").and_then(|href| base.resolve(href)) else {
            continue;
        };
        let nofollow = has_word(item, "rel", "nofollow");
        match places.get(&url) {
            Some(place) => {
                let known = &mut found[*place];
                known.nofollow &= nofollow;
                if known.text.is_empty() {
                    known.text = text_of(tree, at);
                }
            }
            None if found.len() < links_max => {
                places.insert(url.clone(), found.len());
                found.push(LinkText { url, text: text_of(tree, at), nofollow });
            }
            None => {}
        }
    }
    found
}

/// What is written on a link.
fn text_of(tree: &Tree<'_>, at: usize) -> String {
    let item = &tree.items[at];
    let inside = &tree.items[at + 1..item.end];
    let mut text = String::new();
    for inner in inside {
        if let NodeKind::Text(part) = inner.kind {
            text.push_str(part);
        }
        if text.len() > 8 * TEXT_CHARS_MAX {
            break;
        }
    }
    if text.trim().is_empty() {
        let named = std::iter::once(item).chain(inside).find_map(|item| item.attribute("alt"));
        named.unwrap_or_default().clone_into(&mut text);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(TEXT_CHARS_MAX).collect()
}

/// Tells whether a link leads to a page, as far as that can be seen without making it absolute:
/// what is beyond the limit is counted, and must not cost what the limit saves.
fn may_lead(href: &str) -> bool {
    let href = href.trim();
    let same_page = href.starts_with('#') && !href.starts_with("#!");
    let scheme = href.split_once(':').map_or("", |(scheme, _)| scheme);
    let named = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    !href.is_empty() && !same_page && href.len() <= LINK_BYTES_MAX && (web || !named)
}

fn target<'a>(item: &TreeNode<'a>) -> Option<&'a str> {
    match item.name() {
        "a" | "area" => item.attribute("href"),
        "frame" | "iframe" => item.attribute("src"),
        "link"
            if PAGE_RELATIONS.iter().any(|word| has_word(item, "rel", word))
                || is_translation(item)
                || is_feed(item) =>
        {
            item.attribute("href")
        }
        "meta" => refresh(item),
        _ => None,
    }
}

/// The page in another language.
fn is_translation(item: &TreeNode<'_>) -> bool {
    has_word(item, "rel", "alternate") && item.attribute("hreflang").is_some() && !is_feed(item)
}

/// A feed: `<link rel="alternate" type="application/rss+xml">` and its kind.
fn is_feed(item: &TreeNode<'_>) -> bool {
    let media = item.attribute("type").unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    (has_word(item, "rel", "alternate") || has_word(item, "rel", "feed"))
        && FEED_TYPES.iter().any(|known| media.eq_ignore_ascii_case(known))
}

/// The target of `<meta http-equiv="refresh" content="0; url=...">`: a time, then a separator,
/// then the URL, with or without `url=` and quotes.
///
/// Source: HTML, "shared declarative refresh steps".
fn refresh<'a>(item: &TreeNode<'a>) -> Option<&'a str> {
    let equiv = item.attribute("http-equiv")?;
    if !equiv.trim().eq_ignore_ascii_case("refresh") {
        return None;
    }
    let content = item.attribute("content")?.trim_start();
    let rest = content.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_separator = |c: char| c.is_ascii_whitespace() || matches!(c, ';' | ',');
    if !rest.starts_with(is_separator) {
        return None;
    }
    let rest = rest.trim_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start();
    let has_url = rest.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("url"));
    let named = has_url.then(|| rest[3..].trim_start().strip_prefix('=')).flatten();
    let address = named.unwrap_or(rest).trim_start();
    let address = match address.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        Some(quote) => address[1..].split(quote).next().unwrap_or_default(),
        None => address,
    };
    Some(address.trim())
}

fn has_word(item: &TreeNode<'_>, attribute: &str, word: &str) -> bool {
    let value = item.attribute(attribute).unwrap_or_default();
    value.split_ascii_whitespace().any(|other| other.eq_ignore_ascii_case(word))
}
