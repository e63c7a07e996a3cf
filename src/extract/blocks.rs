//! Sums over every subtree, and what names and attributes tell of it.

use super::tree::{Kind, Tree};

/// Weight of one Latin character; a Chinese, Japanese or Korean one says about as much as 2.5.
const LATIN: u32 = 2;
/// Weight of one CJK character.
const CJK: u32 = 5;

/// Never part of the text.
pub(super) const NOT_TEXT: u8 = 1;
/// Navigation, footer, comments, advertisement and their kind.
pub(super) const BOILERPLATE: u8 = 2;
/// Names itself the main text.
pub(super) const MAIN: u8 = 4;
/// Starts and ends a line.
pub(super) const BLOCK: u8 = 8;
/// Inside a link.
pub(super) const LINK: u8 = 16;

/// Sums up to, and not with, each node; the sum over a subtree is a difference.
#[derive(Debug)]
pub(super) struct Blocks {
    pub flags: Vec<u8>,
    chars: Vec<u32>,
    link_chars: Vec<u32>,
    commas: Vec<u32>,
}

impl Blocks {
    pub(super) fn new(tree: &Tree<'_>) -> Self {
        let count = tree.items.len();
        let mut blocks = Self {
            flags: vec![0; count],
            chars: Vec::with_capacity(count + 1),
            link_chars: Vec::with_capacity(count + 1),
            commas: Vec::with_capacity(count + 1),
        };
        let (mut chars, mut links, mut commas) = (0, 0, 0);
        for (index, item) in tree.items.iter().enumerate() {
            blocks.chars.push(chars);
            blocks.link_chars.push(links);
            blocks.commas.push(commas);
            // What a parent is not, its children are not either.
            let inherited = blocks.flags[item.parent] & (NOT_TEXT | LINK);
            match item.kind {
                Kind::Element(_) => blocks.flags[index] = inherited | flags_of(tree, index),
                Kind::Text(text) => {
                    blocks.flags[index] = inherited;
                    if inherited & NOT_TEXT == 0 {
                        let (weight, marks) = weigh(text);
                        chars += weight;
                        commas += marks;
                        links += if inherited & LINK != 0 { weight } else { 0 };
                    }
                }
            }
        }
        blocks.chars.push(chars);
        blocks.link_chars.push(links);
        blocks.commas.push(commas);
        blocks
    }

    /// Weighted characters of a subtree.
    pub(super) fn chars(&self, tree: &Tree<'_>, index: usize) -> u32 {
        self.chars[tree.items[index].end] - self.chars[index]
    }

    /// Weighted characters of a subtree that are in links.
    pub(super) fn link_chars(&self, tree: &Tree<'_>, index: usize) -> u32 {
        self.link_chars[tree.items[index].end] - self.link_chars[index]
    }

    /// Commas and their kind in a subtree.
    pub(super) fn commas(&self, tree: &Tree<'_>, index: usize) -> u32 {
        self.commas[tree.items[index].end] - self.commas[index]
    }

    /// Share of the text of a subtree that is in links, 0 to 1.
    pub(super) fn link_density(&self, tree: &Tree<'_>, index: usize) -> f32 {
        self.link_chars(tree, index) as f32 / self.chars(tree, index).max(1) as f32
    }
}

/// Weight of a text without its white space, and its commas.
fn weigh(text: &str) -> (u32, u32) {
    let (mut weight, mut commas) = (0, 0);
    for c in text.chars() {
        match c {
            ',' | '，' | '。' | '、' | '；' | '：' | '！' | '？' => {
                commas += 1;
                weight += LATIN;
            }
            c if c.is_whitespace() => {}
            '\u{2E80}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' => {
                weight += CJK;
            }
            _ => weight += LATIN,
        }
    }
    (weight, commas)
}

/// Weighted characters that as many Latin ones have.
pub(super) const fn latin(chars: u32) -> u32 {
    chars * LATIN
}

fn flags_of(tree: &Tree<'_>, index: usize) -> u8 {
    let item = &tree.items[index];
    let name = item.name();
    let mut flags = match name {
        "script" | "style" | "template" | "noscript" | "head" | "svg" | "math" | "iframe"
        | "object" | "embed" | "button" | "select" | "textarea" | "input" | "audio" | "video"
        | "canvas" | "dialog" | "datalist" => return NOT_TEXT,
        "nav" | "footer" | "aside" | "menu" => BLOCK | BOILERPLATE,
        "main" | "article" => BLOCK | MAIN,
        "a" => LINK,
        "address" | "blockquote" | "body" | "center" | "dd" | "details" | "div" | "dl" | "dt"
        | "fieldset" | "figcaption" | "figure" | "form" | "h1" | "h2" | "h3" | "h4" | "h5"
        | "h6" | "header" | "hr" | "li" | "ol" | "p" | "pre" | "section" | "summary" | "table"
        | "tbody" | "tfoot" | "thead" | "tr" | "ul" | "html" | "caption" | "td" | "th" => BLOCK,
        _ => 0,
    };
    let nosnippet = || tree.drops_nosnippet && item.attribute("data-nosnippet").is_some();
    if is_hidden(item) || nosnippet() {
        return NOT_TEXT;
    }
    match item.attribute("role").unwrap_or_default() {
        "navigation" | "banner" | "contentinfo" | "complementary" | "search" | "dialog"
        | "menu" | "menubar" | "tablist" | "toolbar" => flags |= BOILERPLATE,
        "main" | "article" => flags |= MAIN,
        _ => {}
    }
    if item.attribute("itemprop") == Some("articleBody") {
        flags |= MAIN;
    }
    // The body of a page carries the names of everything on it.
    if !matches!(name, "html" | "body") && flags & LINK == 0 {
        for value in [item.attribute("class"), item.attribute("id")].into_iter().flatten() {
            flags |= name_flags(value);
        }
    }
    flags
}

fn is_hidden(item: &super::tree::Item<'_>) -> bool {
    item.attribute("hidden").is_some()
        || item.attribute("aria-hidden") == Some("true")
        || item.attribute("style").is_some_and(|style| {
            let style = style.replace(' ', "").to_ascii_lowercase();
            style.contains("display:none") || style.contains("visibility:hidden")
        })
}

/// Words in class names and identifiers of what surrounds the main text, pinyin among them.
const BOILERPLATE_WORDS: [&str; 62] = [
    "nav",
    "navbar",
    "navigation",
    "navi",
    "menu",
    "footer",
    "foot",
    "sidebar",
    "side",
    "sidenav",
    "breadcrumb",
    "breadcrumbs",
    "crumb",
    "crumbs",
    "comment",
    "comments",
    "cmt",
    "share",
    "sharing",
    "social",
    "related",
    "recommend",
    "recommended",
    "promo",
    "sponsor",
    "advert",
    "advertisement",
    "ad",
    "ads",
    "banner",
    "cookie",
    "cookies",
    "consent",
    "popup",
    "modal",
    "newsletter",
    "subscribe",
    "subscription",
    "pagination",
    "pager",
    "toolbar",
    "widget",
    "copyright",
    "toc",
    "skip",
    "login",
    "signup",
    "masthead",
    "topbar",
    "daohang",
    "pinglun",
    "xiangguan",
    "tuijian",
    "banquan",
    "guanggao",
    "dibu",
    "sphinxsidebar",
    "navheader",
    "navfooter",
    "headerlink",
    "outbrain",
    "taboola",
];

/// Words in class names and identifiers of the main text.
const MAIN_WORDS: [&str; 16] = [
    "article",
    "content",
    "main",
    "post",
    "entry",
    "story",
    "articlebody",
    "zhengwen",
    "neirong",
    "artibody",
    "mainbody",
    "maincontent",
    "text",
    "editor",
    "document",
    "body",
];

fn name_flags(value: &str) -> u8 {
    let mut flags = 0;
    for word in value.split(|c: char| !c.is_ascii_alphanumeric()) {
        for part in camel_parts(word) {
            let is = |words: &[&str]| words.iter().any(|known| part.eq_ignore_ascii_case(known));
            if is(&BOILERPLATE_WORDS) {
                flags |= BOILERPLATE;
            } else if is(&MAIN_WORDS) {
                flags |= MAIN;
            }
        }
    }
    // `article-comments` is about the comments, `main-nav` about the navigation.
    if flags & BOILERPLATE != 0 { BOILERPLATE } else { flags }
}

/// `articleBody` has the parts `article` and `Body`, and is a word itself.
fn camel_parts(word: &str) -> impl Iterator<Item = &str> {
    let borders: Vec<usize> = word
        .char_indices()
        .zip(word.chars().skip(1))
        .filter(|((_, a), b)| a.is_ascii_lowercase() && b.is_ascii_uppercase())
        .map(|((at, _), _)| at + 1)
        .collect();
    let starts = std::iter::once(0).chain(borders.clone());
    let ends = borders.clone().into_iter().chain(std::iter::once(word.len()));
    let whole = (!borders.is_empty()).then_some(word);
    let parts: Vec<&str> = starts.zip(ends).map(|(start, end)| &word[start..end]).collect();
    whole.into_iter().chain(parts)
}
