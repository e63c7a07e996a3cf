//! What a page says of itself as a whole: URL, head, structured data.

use std::collections::HashSet;

use url::Url;

use super::render::{collapse_lines, render};
use super::repeats::Plain;
use super::segments::{Segments, hash};
use super::stats::Stats;
use crate::page::tags::Tag;
use crate::page::tree::{Bound, NodeKind, Tree, parse};
use crate::text::{EightBytes, is_alphanumeric};

/// Bytes of structured data that are looked at.
const DATA_BYTES_MAX: usize = 256 << 10;

/// Elements and texts of an article in structured data that are looked at.
const NODES_MAX: usize = 50_000;

/// Facts about a page, for the features of its segments.
#[derive(Debug, Default)]
pub(super) struct PageFacts {
    /// Words of the title.
    pub title: HashSet<u64, Plain>,
    /// Words of the description.
    pub description: HashSet<u64, Plain>,
    /// Pairs of words of the article in the structured data.
    pub article: HashSet<u64, Plain>,
    /// The words of the title and the description.
    pub known: WordFilter,
    /// Bits: see `HINTS`.
    pub hints: u32,
    /// The article in the structured data, as it stands there.
    article_text: String,
    /// The description.
    description_text: String,
}

/// Names of the bits of `hints`.
pub(super) const HINTS: [&str; 15] = [
    "data_article",
    "data_product",
    "data_forum",
    "data_list",
    "data_page",
    "og_article",
    "og_product",
    "og_website",
    "url_forum",
    "url_product",
    "url_docs",
    "url_list",
    "url_news",
    "generator_forum",
    "generator_docs",
];

impl PageFacts {
    pub(super) fn new(tree: &Tree<'_>, url: Option<&Url>) -> Self {
        let mut facts = Self::default();
        if let Some(url) = url {
            facts.read_address(url);
        }
        for (index, item) in tree.items.iter().enumerate() {
            match item.tag {
                Tag::Title if facts.title.is_empty() => {
                    facts.read_title(&tree.text_of(index, 300));
                }
                Tag::Meta => facts.read_meta(item),
                Tag::NotText if item.name() == "script" => {
                    let kind = item.attribute("type").unwrap_or_default();
                    if kind.eq_ignore_ascii_case("application/ld+json")
                        && let Some(NodeKind::Text(text)) =
                            tree.items.get(index + 1).map(|i| i.kind)
                    {
                        facts.read_data(text);
                    }
                }
                _ => {}
            }
        }
        facts
    }

    fn hint(&mut self, name: &str) {
        let at = HINTS.iter().position(|hint| *hint == name);
        self.hints |= 1 << at.expect("every hint has a name");
    }

    fn read_address(&mut self, url: &Url) {
        let path = url.path().to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| path.contains(word));
        let found = [
            (
                "url_forum",
                has(&[
                    "forum",
                    "thread",
                    "topic",
                    "bbs",
                    "question",
                    "community",
                    "discuss",
                    "/t/",
                    "/comments/",
                    "tieba",
                    "viewtopic",
                ]),
            ),
            (
                "url_product",
                has(&[
                    "product", "/item", "/shop", "/dp/", "/p/", "store", "/buy", "goods", "catalog",
                ]),
            ),
            (
                "url_docs",
                has(&[
                    "docs",
                    "/doc/",
                    "manual",
                    "reference",
                    "/wiki/",
                    "/guide",
                    "/api",
                    "documentation",
                    "/help",
                    "tutorial",
                    "learn",
                ]),
            ),
            (
                "url_list",
                has(&[
                    "category",
                    "/tag/",
                    "/tags/",
                    "archive",
                    "collections",
                    "/list",
                    "/search",
                    "index.",
                    "/topics",
                    "directory",
                ]),
            ),
            ("url_news", has(&["news", "article", "blog", "/story", "/post", "/20"])),
        ];
        for (name, there) in found {
            if there {
                self.hint(name);
            }
        }
    }

    fn read_title(&mut self, text: &str) {
        let Self { title, known, .. } = self;
        learn(text, title, known);
    }

    fn read_meta(&mut self, item: &crate::page::tree::TreeNode<'_>) {
        let Some(content) = item.attribute("content") else { return };
        let name = item.attribute("property").or_else(|| item.attribute("name"));
        let name = name.unwrap_or_default();
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("description") || is("og:description") {
            let end = content.floor_char_boundary(2_000);
            let Self { description, known, .. } = self;
            learn(&content[..end], description, known);
            if content.len() > self.description_text.len() {
                content[..end].clone_into(&mut self.description_text);
            }
        } else if is("og:title") {
            self.read_title(&content[..content.floor_char_boundary(500)]);
        } else if is("og:type") {
            match content.trim() {
                "article" | "blog" | "news" => self.hint("og_article"),
                kind if kind.contains("product") => self.hint("og_product"),
                "website" => self.hint("og_website"),
                _ => {}
            }
        } else if is("generator") {
            let lower = content.to_ascii_lowercase();
            let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
            if has(&["discourse", "vbulletin", "phpbb", "discuz", "xenforo", "smf", "mybb"]) {
                self.hint("generator_forum");
            } else if has(&["docusaurus", "sphinx", "mkdocs", "hugo", "gitbook", "vitepress"]) {
                self.hint("generator_docs");
            }
        }
    }

    /// Returns the text of a page of which only `weight` can be seen without scripts: the article
    /// in the structured data if it has three times as much, the description if there is nothing.
    pub(super) fn text_elsewhere(&self, weight: u32) -> Option<String> {
        let quoted = format!("\"{}\"", self.article_text);
        let article: String = serde_json::from_str(&quoted).unwrap_or_default();
        let mut stats = Stats::default();
        stats.add(&article);
        if stats.weight > weight * 3 {
            return Some(plain_of(&article));
        }
        let text = collapse_lines(&self.description_text);
        Some(text).filter(|text| weight == 0 && !text.is_empty())
    }

    fn read_data(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(DATA_BYTES_MAX)];
        for (at, _) in text.match_indices("\"@type\"") {
            let Some(value) = text[at + 7..].split('"').nth(1) else { continue };
            match value {
                "Product" | "Offer" | "ProductGroup" => self.hint("data_product"),
                "DiscussionForumPosting" | "QAPage" | "Question" | "Comment" => {
                    self.hint("data_forum");
                }
                "ItemList" | "CollectionPage" | "OfferCatalog" => self.hint("data_list"),
                "WebPage" | "Organization" | "LocalBusiness" | "Service" => {
                    self.hint("data_page");
                }
                value if value.ends_with("Article") || value.ends_with("Posting") => {
                    self.hint("data_article");
                }
                _ => {}
            }
        }
        if let Some(body) = article_body(text) {
            body.clone_into(&mut self.article_text);
            let all: Vec<u64> = words(body).collect();
            self.article.extend(all.windows(2).map(|pair| pair_key(pair[0], pair[1])));
        }
    }
}

/// Adds the words of a text.
fn learn(text: &str, words: &mut HashSet<u64, Plain>, known: &mut WordFilter) {
    let mut lower = String::new();
    for word in text_words(text) {
        let word = word.lowered(&mut lower);
        known.add(word);
        words.insert(hash(word));
    }
}

/// The string after `"articleBody":`, with its escapes: words are what counts.
fn article_body(text: &str) -> Option<&str> {
    let at = text.find("\"articleBody\"")?;
    let rest = text[at + 13..].trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let mut escaped = false;
    let end = rest.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// Structured data may hold markup: its text, one line a block.
fn plain_of(text: &str) -> String {
    if !text.contains('<') {
        return collapse_lines(text);
    }
    let html = parse(text, Bound { nodes_max: NODES_MAX, ..Bound::NONE }).html;
    let tree = Tree::new(&html, NODES_MAX);
    let segments = Segments::new(&tree);
    render(&tree, &segments, &vec![true; segments.all.len()])
}

/// Names a pair of words.
pub(super) const fn pair_key(a: u64, b: u64) -> u64 {
    a.rotate_left(17) ^ b
}

/// A word as it stands in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextWord<'a> {
    text: &'a str,
    kind: WordKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordKind {
    /// ASCII.
    Plain,
    /// A CJK character, which has no case.
    Single,
    Other,
}

/// The words of a text; a CJK character is a word.
pub(super) fn text_words(text: &str) -> impl Iterator<Item = TextWord<'_>> {
    let is_cjk = |c: char| ('\u{2E80}'..='\u{9FFF}').contains(&c);
    let mut rest = text;
    std::iter::from_fn(move || {
        let bytes = rest.as_bytes();
        let start = bytes.iter().position(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)?;
        // Most words are short, and end in the eight bytes that are looked at together.
        let length = EightBytes::at(bytes, start).map(EightBytes::letters);
        let end = if let Some(length) = length.filter(|length| *length < EightBytes::COUNT) {
            start + length
        } else {
            let end = bytes[start..].iter().position(|byte| !byte.is_ascii_alphanumeric());
            end.map_or(bytes.len(), |end| start + end)
        };
        let (word, kind) = if bytes.get(end).is_none_or(u8::is_ascii) {
            (start..end, WordKind::Plain)
        } else {
            let start = start + rest[start..].find(is_alphanumeric)?;
            let first = rest[start..].chars().next()?;
            if is_cjk(first) {
                (start..start + first.len_utf8(), WordKind::Single)
            } else {
                let ends = |c: char| !is_alphanumeric(c) || is_cjk(c);
                let end = rest[start..].find(ends).map_or(rest.len(), |end| start + end);
                (start..end, WordKind::Other)
            }
        };
        let found = &rest[word.clone()];
        rest = &rest[word.end..];
        Some(TextWord { text: found, kind })
    })
}

impl TextWord<'_> {
    /// Returns it in lower case, written to `lower` if that is something else.
    fn lowered<'b>(&'b self, lower: &'b mut String) -> &'b str {
        let has_capital = || self.text.bytes().any(|byte| byte.is_ascii_uppercase());
        match self.kind {
            WordKind::Single => self.text,
            WordKind::Plain if !has_capital() => self.text,
            WordKind::Plain => {
                lower.clear();
                lower.push_str(self.text);
                lower.make_ascii_lowercase();
                lower
            }
            WordKind::Other => {
                *lower = self.text.to_lowercase();
                lower
            }
        }
    }

    /// Returns the hash of the word in lower case.
    pub(super) fn hash(&self, lower: &mut String) -> u64 {
        hash(self.lowered(lower))
    }
}

/// Which words may be among some: most others are told apart without a hash.
#[derive(Debug, Default)]
pub(super) struct WordFilter([u64; 16]);

impl WordFilter {
    /// Adds a word in lower case.
    fn add(&mut self, word: &str) {
        let bit = Self::bit(word);
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    /// Returns false if the word is certainly none of those that were added.
    pub(super) fn may_have(&self, word: &TextWord<'_>) -> bool {
        let bit = Self::bit(word.text);
        // The lower case of others may have other bytes.
        word.kind == WordKind::Other || self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Capitals have the bit of small letters.
    fn bit(word: &str) -> usize {
        let bytes = word.as_bytes();
        let at = |at: usize| u32::from(bytes.get(at).copied().unwrap_or_default() | 0x20);
        let (middle, last) = (at(bytes.len() / 2), at(bytes.len().saturating_sub(1)));
        let all = at(0) ^ middle << 8 ^ last << 16 ^ (bytes.len() as u32) << 24;
        (all.wrapping_mul(0x9E37_79B1) >> 22) as usize
    }
}

/// Hashes of the words of a text in lower case; a CJK character is a word.
fn words(text: &str) -> impl Iterator<Item = u64> + '_ {
    let mut lower = String::new();
    text_words(text).map(move |word| word.hash(&mut lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a text by the plain definition: where a word of ASCII ends before a character
    /// that is none, both are looked at as Unicode has them.
    const TEXTS: &str = "[a-cA-C09 ,.'éÉ的，ßK。\\u{3000}]{0,80}";

    proptest::proptest! {
        #[test]
        fn no_word_of_a_title_is_passed_over(title in TEXTS, text in TEXTS) {
            let mut facts = PageFacts::default();
            facts.read_title(&title);
            let mut lower = String::new();
            for word in text_words(&text) {
                let is_known = facts.title.contains(&word.hash(&mut lower));
                proptest::prop_assert!(facts.known.may_have(&word) || !is_known, "{:?}", word);
            }
        }

        #[test]
        fn words_are_runs_of_letters_and_single_characters(text in TEXTS) {
            let words: String = text_words(&text).map(|word| word.text).collect();
            let letters: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
            proptest::prop_assert_eq!(words, letters);
            for word in text_words(&text) {
                let single = word.text.chars().any(|c| ('\u{2E80}'..='\u{9FFF}').contains(&c));
                proptest::prop_assert!(!single || word.text.chars().count() == 1, "{:?}", word);
            }
        }
    }
}
