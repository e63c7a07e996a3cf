//! The text of a page cut at the borders of its blocks, with sums over every subtree.

use std::collections::HashMap;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::names;
use super::repeats::Plain;
use super::stats::{Stats, Sum, latin};
use crate::page::tags::Tag;
use crate::page::tree::{NodeKind, Tree};

/// Least weight of a segment that reads like prose.
const PROSE_MIN: u32 = latin(80);

/// Bits of what elements around a text say by their kind.
pub(super) const KINDS: [&str; 25] = [
    "nav",
    "footer",
    "header",
    "aside",
    "main",
    "article",
    "section",
    "form",
    "table",
    "li",
    "blockquote",
    "pre",
    "figure",
    "figcaption",
    "a",
    "button",
    "heading",
    "p",
    "dl",
    "details",
    "role_around",
    "role_main",
    "item_body",
    "hidden",
    "noscript",
];

/// A run of text without a block's border in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    /// First item of the run.
    pub first: usize,
    /// Item after its last.
    pub end: usize,
    /// The innermost block around it.
    pub block: usize,
    pub stats: Stats,
    /// Weight in links.
    pub link_weight: u32,
    /// Links that begin in it.
    pub links: u32,
    pub kinds: u32,
    /// A line break and no block's border stands before it.
    pub after_break: bool,
    /// Elements around it.
    pub depth: u8,
    /// Kind of its first character, see `mark`.
    pub first_mark: u8,
    /// Kind of its last character, see `mark`.
    pub last_mark: u8,
}

/// Kind of the character that a text begins or ends with.
fn mark(c: Option<char>) -> u8 {
    match c {
        None => 0,
        Some('.' | '。' | '!' | '！' | '?' | '？' | '…' | '।' | '؟') => 1,
        Some(',' | '，' | '、' | ';' | '；') => 2,
        Some(':' | '：') => 3,
        Some('"' | '”' | '“' | '」' | '\'' | '’' | '»' | '«') => 4,
        Some(')' | '）' | ']' | '】' | '(' | '（' | '[' | '【') => 5,
        Some(c) if c.is_numeric() => 6,
        Some('|' | '›' | '→' | '>' | '/' | '•' | '·' | '-' | '–' | '*' | '#' | '©') => 7,
        Some(c) if c.is_uppercase() => 8,
        Some(c) if c.is_lowercase() => 9,
        Some(c) if c.is_alphabetic() => 10,
        Some(_) => 11,
    }
}

impl Segment {
    /// Returns the texts of the segment, each with the number of its item.
    pub(super) fn texts<'t>(&self, tree: &Tree<'t>) -> impl Iterator<Item = (usize, &'t str)> {
        let (mut at, end) = (self.first, self.end);
        std::iter::from_fn(move || {
            while at < end {
                let item = &tree.items[at];
                let here = at;
                at = if item.tag.is_not_text() { item.end } else { at + 1 };
                if let NodeKind::Text(text) = item.kind {
                    return Some((here, text));
                }
            }
            None
        })
    }

    pub(super) fn sum(&self) -> Sum {
        let Stats { weight, commas, stops, words, .. } = self.stats;
        let is_prose = weight >= PROSE_MIN && self.link_weight * 4 < weight && commas + stops > 0;
        let prose = if is_prose { weight } else { 0 };
        Sum { weight, links: self.link_weight, commas, stops, words, prose }
    }
}

/// The segments of a page and what is known of each element.
#[derive(Debug)]
pub(super) struct Segments {
    pub all: Vec<Segment>,
    /// Segments before each item; one more at the end.
    pub before: Vec<u32>,
    /// Sums over the segments before each one; one more at the end.
    sums: Vec<Sum>,
    /// What the name of each element says.
    pub names: Vec<u32>,
    /// What the names of all elements around say, its own among them.
    pub names_around: Vec<u32>,
    /// What the kinds of all elements around say, its own among them.
    pub kinds: Vec<u32>,
    /// Hash of the kind and the class of each element.
    pub looks: Vec<u64>,
}

impl Segments {
    pub(super) fn new(tree: &Tree<'_>) -> Self {
        let count = tree.items.len();
        let mut segments = Self {
            all: Vec::new(),
            before: Vec::with_capacity(count + 1),
            sums: Vec::new(),
            names: vec![0; count],
            names_around: vec![0; count],
            kinds: vec![0; count],
            looks: vec![0; count],
        };
        segments.describe(tree);
        segments.cut(tree);
        let mut sum = Sum::default();
        segments.sums.push(sum);
        for segment in &segments.all {
            sum = sum.plus(segment.sum());
            segments.sums.push(sum);
        }
        segments
    }

    fn describe(&mut self, tree: &Tree<'_>) {
        let mut known: HashMap<u64, u32, Plain> = HashMap::default();
        let mut read = |value: &str| {
            let key = hash(value);
            (*known.entry(key).or_insert_with(|| names::meanings(value)), key)
        };
        for (index, item) in tree.items.iter().enumerate() {
            let parent = item.parent;
            let around = if parent == index {
                (0, 0)
            } else {
                (self.names_around[parent], self.kinds[parent])
            };
            let (mut meaning, mut look, mut kinds) = (0, item.tag as u64 + 1, 0);
            if let NodeKind::Element(_) = item.kind {
                kinds = kind_of(item.tag);
                // The body of a page carries the names of everything on it.
                let has_names = !matches!(item.tag, Tag::Html | Tag::Body | Tag::NotText);
                for (name, value) in item.attributes() {
                    match name {
                        "class" if has_names => {
                            let (more, key) = read(value);
                            meaning |= more;
                            look = look.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ key;
                        }
                        "id" if has_names => meaning |= read(value).0,
                        _ => kinds |= kind_by(name, value),
                    }
                }
                self.names[index] = meaning;
                self.looks[index] = look;
            }
            self.names_around[index] = around.0 | meaning;
            self.kinds[index] = around.1 | kinds;
        }
    }

    fn cut(&mut self, tree: &Tree<'_>) {
        let mut cutter = Cutter { open: vec![(0, tree.items.len())], ..Cutter::default() };
        let mut skip = 0;
        for (index, item) in tree.items.iter().enumerate() {
            while cutter.open.len() > 1 && cutter.open.last().is_some_and(|(_, end)| *end <= index)
            {
                cutter.finish(&mut self.all);
                cutter.open.pop();
            }
            // Segments that end later begin before: they count for the items after them.
            self.before.push((self.all.len() + usize::from(cutter.present.is_some())) as u32);
            if index < skip {
                continue;
            }
            match item.kind {
                NodeKind::Text(text) => cutter.text(index, text, self.kinds[index]),
                NodeKind::Element(_) if item.tag.is_not_text() => skip = item.end,
                NodeKind::Element(_) => {
                    if item.tag.is_block() {
                        cutter.finish(&mut self.all);
                        cutter.after_break = item.tag == Tag::Br;
                        *self.before.last_mut().expect("pushed above") = self.all.len() as u32;
                        if item.end > index + 1 {
                            cutter.open.push((index, item.end));
                        }
                    } else if item.tag == Tag::A {
                        cutter.links += 1;
                    }
                }
            }
        }
        cutter.finish(&mut self.all);
        self.before.push(self.all.len() as u32);
    }

    /// Nothing around a segment says that it is not part of the text, and it is not all links.
    pub(super) fn is_plain(&self, segment: &Segment) -> bool {
        segment.kinds & KIND_AROUND == 0
            && self.names_around[segment.first] & names::SAYS_BOILERPLATE == 0
            && segment.link_weight * 2 <= segment.stats.weight
    }

    /// Numbers of the segments of a block.
    pub(super) fn range(&self, tree: &Tree<'_>, index: usize) -> Range<usize> {
        self.before[index] as usize..self.before[tree.items[index].end] as usize
    }

    /// Sums over some segments.
    pub(super) fn sum(&self, Range { start, end }: Range<usize>) -> Sum {
        self.sums[end.max(start)].minus(self.sums[start])
    }

    /// Sums over a block.
    pub(super) fn sum_of(&self, tree: &Tree<'_>, index: usize) -> Sum {
        self.sum(self.range(tree, index))
    }
}

/// A segment under way.
#[derive(Default)]
struct Cutter {
    /// Open blocks and their ends.
    open: Vec<(usize, usize)>,
    present: Option<Segment>,
    links: u32,
    after_break: bool,
}

impl Cutter {
    fn text(&mut self, index: usize, text: &str, kinds: u32) {
        let mut stats = self.present.map(|segment| segment.stats).unwrap_or_default();
        let before = stats.weight;
        stats.add(text);
        if stats.weight == 0 {
            return;
        }
        let block = self.open.last().map_or(0, |(block, _)| *block);
        let after_break = self.after_break;
        let present = self.present.get_or_insert(Segment {
            first: index,
            end: index,
            block,
            stats,
            link_weight: 0,
            links: 0,
            kinds: 0,
            after_break,
            depth: self.open.len().min(255) as u8,
            first_mark: mark(text.trim_start().chars().next()),
            last_mark: 0,
        });
        present.stats = stats;
        present.last_mark = mark(text.trim_end().chars().next_back());
        present.end = index + 1;
        present.kinds |= kinds;
        if kinds & KIND_A != 0 {
            present.link_weight += stats.weight - before;
        }
        self.after_break = false;
    }

    fn finish(&mut self, all: &mut Vec<Segment>) {
        if let Some(mut segment) = self.present.take() {
            segment.links = self.links;
            all.push(segment);
        }
        self.links = 0;
        self.after_break = false;
    }
}

/// Navigation, footer, aside, form, and the roles that say the same.
const KIND_AROUND: u32 = 1 | 1 << 1 | 1 << 3 | 1 << 7 | KIND_ROLE_AROUND | KIND_HIDDEN;
const KIND_A: u32 = 1 << 14;
const KIND_ROLE_AROUND: u32 = 1 << 20;
const KIND_ROLE_MAIN: u32 = 1 << 21;
const KIND_ITEM_BODY: u32 = 1 << 22;
const KIND_HIDDEN: u32 = 1 << 23;

/// What an element says by its name.
fn kind_of(tag: Tag) -> u32 {
    match tag {
        Tag::Nav | Tag::Menu => 1,
        Tag::Footer => 1 << 1,
        Tag::Header => 1 << 2,
        Tag::Aside => 1 << 3,
        Tag::Main => 1 << 4,
        Tag::Article => 1 << 5,
        Tag::Section => 1 << 6,
        Tag::Form | Tag::Fieldset | Tag::Label => 1 << 7,
        Tag::Table => 1 << 8,
        Tag::Li => 1 << 9,
        Tag::Blockquote => 1 << 10,
        Tag::Pre | Tag::Code => 1 << 11,
        Tag::Figure => 1 << 12,
        Tag::Figcaption | Tag::Caption => 1 << 13,
        Tag::A => KIND_A,
        Tag::Button => 1 << 15,
        Tag::P => 1 << 17,
        Tag::Dl => 1 << 18,
        Tag::Details | Tag::Summary => 1 << 19,
        Tag::Dialog => KIND_ROLE_AROUND,
        Tag::Noscript => 1 << 24,
        tag if tag.heading().is_some() => 1 << 16,
        _ => 0,
    }
}

/// What an element says by an attribute.
fn kind_by(name: &str, value: &str) -> u32 {
    match name {
        "role" => match value {
            "navigation" | "banner" | "contentinfo" | "complementary" | "search" | "dialog"
            | "menu" | "menubar" | "tablist" | "toolbar" | "alert" => KIND_ROLE_AROUND,
            "main" | "article" => KIND_ROLE_MAIN,
            "button" => 1 << 15,
            "heading" => 1 << 16,
            _ => 0,
        },
        "itemprop" if matches!(value, "articleBody" | "text" | "description") => KIND_ITEM_BODY,
        "hidden" => KIND_HIDDEN,
        "aria-hidden" if value == "true" => KIND_HIDDEN,
        "style" if hides(value) => KIND_HIDDEN,
        _ => 0,
    }
}

/// A style that says `display: none` or `visibility: hidden`.
fn hides(style: &str) -> bool {
    let value_of = |name: &str, value: &str| {
        style.match_indices(name).any(|(at, _)| {
            let rest = style[at + name.len()..].trim_start();
            rest.strip_prefix(':').is_some_and(|rest| rest.trim_start().starts_with(value))
        })
    };
    value_of("display", "none") || value_of("visibility", "hidden")
}

/// Names a text within a page.
pub(super) fn hash(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}
