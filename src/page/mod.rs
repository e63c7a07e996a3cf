//! Bytes of a page in; title, main text, language, links and directives out, from one parse.
//!
//! The tree is walked once into flat arrays in document order: the end of each subtree and sums
//! over it are known, so that every question about a block is a subtraction. Pure: no I/O.

mod batch;
mod charset;
mod declared;
mod head;
mod links;
mod main_text;
mod memory;
mod metadata;
mod nesting;
mod plausible;
mod popularity;
mod reduce;
mod scan;
mod shown;
mod sniff;
mod tags;
mod tree;

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::BuildHasher;

use main_text::{LeftText, MainText};
use serde::{Deserialize, Serialize};
use url::Url;

pub use batch::{BatchOutput, BatchPage, batch_line, batch_page};
pub use charset::{Charset, CharsetSource, decode};
use links::Base;
pub use links::{Link, LinkText};
pub use main_text::{BlockVerdict, PageKind, TextReasons};
pub use memory::Memory;
pub(crate) use memory::MemoryPermit;
pub use metadata::{Alternate, Image, Metadata, Moment, Source, Stated};
pub use sniff::binary;

use crate::base::clock::Timestamp;
use crate::base::units::Size;
use crate::text::sketch::ShownSketch;

/// A page as it came.
#[derive(Debug, Clone, Copy, Default)]
pub struct RawPage<'a> {
    /// Its bytes, after `Content-Encoding`.
    pub bytes: &'a [u8],
    /// Its `Content-Type` header.
    pub content_type: Option<&'a str>,
    /// Its URL, which its links are relative to.
    pub url: Option<&'a Url>,
    /// When it was fetched: dates more than a day later are none.
    pub fetched: Option<Timestamp>,
}

/// Limits on one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Bytes that are read; the rest is cut.
    pub input_size_max: Size,
    /// Elements and texts that are read; the rest is cut.
    pub nodes_max: usize,
    /// Memory of the tree that the page becomes; the rest of the page is cut.
    pub tree_size_max: Size,
    /// Links that are kept.
    pub links_max: usize,
    /// Bytes of main text that are kept.
    pub text_size_max: Size,
    /// Leave out of the main text what is marked `data-nosnippet`.
    pub drop_nosnippet: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            input_size_max: Size::from_mib(8),
            nodes_max: 500_000,
            tree_size_max: Size::from_mib(128),
            links_max: 10_000,
            text_size_max: Size::from_mib(4),
            drop_nosnippet: false,
        }
    }
}

/// A limit at which a page was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It has more bytes than are read.
    Input,
    /// Its tree would be larger than it may be.
    Tree,
}

/// What a page holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Title, without the name of the site where that can be told; may be empty.
    pub title: String,
    /// What the page says of itself: authors, dates and the like.
    pub metadata: Metadata,
    /// Main text, one line a block; empty only if the page has no text.
    pub text: String,
    /// What the body is if it is no page but binary data, which has no text whatever its type says.
    pub binary: Option<&'static str>,
    /// What the page is.
    pub kind: PageKind,
    /// How much of the main text, and how little else, `text` is likely to be: the F1 to be
    /// expected, 0 to 1.
    pub quality: f32,
    /// Everything that the page shows; none for plain text.
    pub shown: Option<ShownSketch>,
    /// Language (ISO 639-1), if it can be told.
    pub language: Option<String>,
    /// Character encoding, and how it was found out.
    pub charset: Charset,
    /// Links, in the order of the page, each URL once.
    pub links: Vec<Link>,
    /// About how many more it has, which are beyond the limit.
    pub links_beyond: u64,
    /// URL that the page calls its canonical one.
    pub canonical: Option<String>,
    /// Directives for crawlers: name and content of the `<meta>` elements.
    pub meta_robots: Vec<(String, String)>,
    /// Times that the page was read, or another score that it shows of itself.
    pub popularity: Option<u64>,
    /// Why only the start of the page was read, if that is so.
    pub cut: Option<Cut>,
}

/// Reads a page. Never fails: a page without structure is plain text, one without text is empty.
///
/// Bounded: the input is cut at `input_size_max`, and elements nested deeper than 512 levels are
/// flattened as browsers do, because parsing is quadratic in the depth.
#[must_use]
pub fn page(input: &RawPage<'_>, limits: &Limits) -> Page {
    read(input, limits, &mut |_| (), |_| ()).0
}

/// The blocks of the main text of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Hashes of their texts, each once and in order. Empty if the text is not made of blocks.
    pub keys: Vec<u64>,
    /// Blocks that were left out.
    pub left_out: u32,
    /// The text with them, if any were left out.
    pub whole: Option<String>,
}

/// Reads a page and leaves those blocks out of its text whose hashes are `repeated`.
///
/// The title, a heading or other short block before text that stays, and labels in a row of a
/// table stay. A page of which more than half is repeated stays whole.
#[must_use]
pub fn page_without(
    input: &RawPage<'_>,
    limits: &Limits,
    repeated: &HashSet<u64, impl BuildHasher>,
) -> (Page, Blocks) {
    page_in_stages(input, limits, repeated, &mut |_| ())
}

/// Does the same, and says when each stage has ended, by its name: for measuring them.
#[must_use]
pub fn page_in_stages(
    input: &RawPage<'_>,
    limits: &Limits,
    repeated: &HashSet<u64, impl BuildHasher>,
    ended: &mut impl FnMut(&'static str),
) -> (Page, Blocks) {
    let (mut page, found) = read(input, limits, ended, |read| read.judged.without(read, repeated));
    let (blocks, left) = found.unwrap_or_default();
    let blocks = leave_out(&mut page, blocks, left, limits);
    (page, blocks)
}

/// Gives a page the text that is left of it.
fn leave_out(
    page: &mut Page,
    mut blocks: Blocks,
    left: Option<LeftText>,
    limits: &Limits,
) -> Blocks {
    if let Some(LeftText { mut text, .. }) = left {
        cut(&mut text, limits.text_size_max.bytes());
        blocks.whole = Some(std::mem::replace(&mut page.text, text));
    }
    blocks
}

/// What is wanted of a page beside its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The same text in Markdown.
    pub markdown: bool,
    /// Its links with their texts.
    pub links: bool,
}

/// What a page has beside its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extras {
    /// Its text in Markdown; empty if it was not wanted.
    pub markdown: String,
    /// Its links with their texts, in the order of the page, each URL once; none if they were not
    /// wanted.
    pub links: Vec<LinkText>,
}

/// Reads a page without what is `repeated`, as [`page_without`] does, and what is wanted beside its
/// text. Markdown of a page that is plain text is that text.
#[must_use]
pub fn page_with_extras(
    input: &RawPage<'_>,
    limits: &Limits,
    repeated: &HashSet<u64, impl BuildHasher>,
    wanted: Wanted,
) -> (Page, Blocks, Extras) {
    let (mut page, found) = read(input, limits, &mut |_| (), |read| {
        let (blocks, left) = read.judged.without(read, repeated);
        let mut extras = Extras::default();
        if wanted.markdown {
            let kept = left.as_ref().map(|left| &left.kept[..]);
            extras.markdown = read.judged.markdown(read, kept);
        }
        if wanted.links {
            extras.links = links::texts(read.tree, read.base, limits.links_max);
        }
        (blocks, left, extras)
    });
    let is_plain = found.is_none();
    let (blocks, left, mut extras) = found.unwrap_or_default();
    let blocks = leave_out(&mut page, blocks, left, limits);
    if wanted.markdown && is_plain {
        extras.markdown.clone_from(&page.text);
    }
    cut(&mut extras.markdown, limits.text_size_max.bytes());
    (page, blocks, extras)
}

/// Reads a page whose text shall be Markdown: headings, lists, quotes, code, tables, links.
#[must_use]
pub fn page_as_markdown(input: &RawPage<'_>, limits: &Limits) -> Page {
    let (mut page, markdown) =
        read(input, limits, &mut |_| (), |read| read.judged.markdown(read, None));
    if let Some(markdown) = markdown {
        page.text = markdown;
        cut(&mut page.text, limits.text_size_max.bytes());
    }
    page
}

/// Reads a page and says of each block of it why it was kept or dropped.
#[must_use]
pub fn page_and_why(input: &RawPage<'_>, limits: &Limits) -> (Page, TextReasons) {
    let (page, why) = read(input, limits, &mut |_| (), |read| read.judged.why(read.tree));
    (page, why.unwrap_or_default())
}

/// A page that was parsed and judged.
struct ParsedPage<'a> {
    tree: &'a tree::Tree<'a>,
    judged: &'a MainText,
    base: &'a Base,
    title: Option<&'a str>,
}

/// Reads a page, and what `more` makes of it unless it is plain text.
fn read<T>(
    input: &RawPage<'_>,
    limits: &Limits,
    ended: &mut impl FnMut(&'static str),
    more: impl FnOnce(&ParsedPage<'_>) -> T,
) -> (Page, Option<T>) {
    let bytes = &input.bytes[..input.bytes.len().min(limits.input_size_max.bytes())];
    let mut cut_at = (bytes.len() < input.bytes.len()).then_some(Cut::Input);
    let tld = input.url.and_then(Url::host_str).and_then(|host| host.rsplit('.').next());
    let (text, mut charset) = charset::decode(bytes, input.content_type, tld);
    let binary = sniff::binary_in(bytes, charset.name);
    ended("charset");
    if binary.is_some() {
        charset.quality = 0;
        return (Page { binary, ..plain("", charset, cut_at, limits) }, None);
    }
    if is_plain_text(input.content_type) {
        return (plain(&text, charset, cut_at, limits), None);
    }
    let parsed = parsed(text, limits, ended);
    let mut tree = tree::Tree::new(&parsed.html, limits.nodes_max);
    if limits.drop_nosnippet {
        tree.drop_nosnippet();
    }
    if parsed.cut || tree.truncated {
        cut_at = Some(Cut::Tree);
    }
    let head = head::HeadFacts::read(&tree);
    ended("flat tree");
    let judged = MainText::new(&tree, input.url, ended);
    let mut main = judged.text(&tree);
    cut(&mut main, limits.text_size_max.bytes());
    ended("text");
    let queries = charset::of_queries(&charset, bytes, input.content_type);
    let base = Base::of(&head, input.url, queries);
    let language = crate::text::language_of(&main, head.language.as_deref());
    ended("language");
    let metadata = metadata::read(
        &tree,
        &metadata::PageContext {
            url: input.url,
            base: &base,
            main: &main,
            language: language.as_deref(),
            declared: head.language.as_deref(),
            fetched: input.fetched,
        },
    );
    let title = metadata.title.as_ref().map(|title| title.value.as_str());
    ended("metadata");
    let more = more(&ParsedPage { tree: &tree, judged: &judged, base: &base, title });
    ended("blocks");
    let (links, links_beyond) = links::links(&tree, &base, limits.links_max);
    ended("links");
    let shown = Some(shown::of(&tree));
    ended("shown");
    let page = Page {
        title: metadata.title.as_ref().map(|title| title.value.clone()).unwrap_or_default(),
        metadata,
        language,
        popularity: popularity::of(&tree, &head),
        links,
        links_beyond,
        canonical: head.canonical.as_deref().and_then(|href| base.join(href)),
        meta_robots: head.robots,
        binary: None,
        kind: judged.kind,
        quality: judged.quality,
        text: main,
        shown,
        charset,
        cut: cut_at,
    };
    (page, Some(more))
}

/// Parses a page. The tree has what is left of its text.
fn parsed(
    text: Cow<'_, str>,
    limits: &Limits,
    ended: &mut impl FnMut(&'static str),
) -> tree::Parsed {
    let bound = tree::Bound { nodes_max: limits.nodes_max, size_max: limits.tree_size_max.bytes() };
    let reduced = reduce::reduced(&text);
    ended("reduce");
    let parsed = tree::parse_reduced(&reduced, bound);
    drop(reduced);
    drop(text);
    ended("parse");
    parsed
}

/// Returns the language of a text (ISO 639-1), if it can be told.
#[must_use]
pub(crate) fn language_of(text: &str) -> Option<String> {
    crate::text::language_of(text, None)
}

/// Returns the names of the features of a block, in the order of `BlockVerdict::features`.
#[must_use]
pub fn feature_names() -> Vec<String> {
    main_text::all_feature_names()
}

fn is_plain_text(content_type: Option<&str>) -> bool {
    let media = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    media.trim().eq_ignore_ascii_case("text/plain")
}

fn plain(text: &str, charset: Charset, cut_at: Option<Cut>, limits: &Limits) -> Page {
    let mut text = main_text::collapse_lines(text);
    cut(&mut text, limits.text_size_max.bytes());
    Page {
        title: text.lines().next().unwrap_or_default().chars().take(200).collect(),
        metadata: Metadata::default(),
        language: crate::text::language_of(&text, None),
        binary: None,
        kind: PageKind::default(),
        quality: 1.0,
        text,
        shown: None,
        charset,
        links: Vec::new(),
        links_beyond: 0,
        canonical: None,
        meta_robots: Vec::new(),
        popularity: None,
        cut: cut_at,
    }
}

fn cut(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
    }
}
