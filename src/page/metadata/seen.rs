//! One walk over the page: where everything stands that may say something about it.

use scraper::node::Element;

use super::super::tags::Tag;
use super::super::tree::{NodeKind, Tree};

/// Elements of one kind that are noted.
const NOTED_MAX: usize = 300;

/// Characters of a title that are kept.
pub(super) const TITLE_CHARS_MAX: usize = 500;

/// Bytes of a `<meta>` content that are read.
const CONTENT_BYTES_MAX: usize = 4_096;

/// What a page has to say, unread.
#[derive(Debug, Default)]
pub(super) struct RawMetadata<'a> {
    /// Text of `<title>`.
    pub title: String,
    /// Name and content of the `<meta>` elements.
    pub metas: Vec<(&'a str, &'a str)>,
    /// `<link>` elements.
    pub links: Vec<usize>,
    /// Blocks of JSON-LD.
    pub ld: Vec<&'a str>,
    pub h1: Vec<usize>,
    /// `<time>` elements, and others with a machine-readable date.
    pub times: Vec<usize>,
    /// Elements with an `itemprop` that is asked for.
    pub props: Vec<(usize, &'a str)>,
    pub images: Vec<usize>,
    /// Links with `rel=license`.
    pub licences: Vec<&'a str>,
    /// Where the body starts.
    pub body: usize,
}

impl<'a> RawMetadata<'a> {
    pub(super) fn read(tree: &Tree<'a>) -> Self {
        let mut seen = Self::default();
        for (index, item) in tree.items.iter().enumerate() {
            let NodeKind::Element(element) = item.kind else { continue };
            match item.tag {
                Tag::Title if seen.title.is_empty() && !is_in_svg(tree, index) => {
                    seen.title = tree.text_of(index, TITLE_CHARS_MAX);
                }
                Tag::H1 => note(&mut seen.h1, index),
                Tag::Body if seen.body == 0 => seen.body = index,
                Tag::Link => {
                    note(&mut seen.links, index);
                    continue;
                }
                Tag::Meta => seen.meta(element),
                Tag::Time => note(&mut seen.times, index),
                Tag::Img => note(&mut seen.images, index),
                Tag::NotText if element.name() == "script" => {
                    seen.script(tree, index);
                    continue;
                }
                _ => {}
            }
            seen.attributes(element, index);
        }
        seen
    }

    fn attributes(&mut self, element: &'a Element, index: usize) {
        for (name, value) in element.attrs() {
            match name {
                "itemprop" if self.props.len() < NOTED_MAX => {
                    self.props.extend(value.split_ascii_whitespace().map(|word| (index, word)));
                }
                "rel" if self.licences.len() < 8 && has_word(value, "license") => {
                    self.licences.extend(element.attr("href"));
                }
                _ => {}
            }
        }
    }

    fn meta(&mut self, element: &'a Element) {
        let (mut content, mut names) = ("", [""; 2]);
        for (name, value) in element.attrs() {
            match name {
                "content" => content = value,
                "name" | "property" | "itemprop" | "http-equiv" => {
                    if let Some(free) = names.iter_mut().find(|name| name.is_empty()) {
                        *free = value.trim();
                    }
                }
                _ => {}
            }
        }
        let content = content[..content.floor_char_boundary(CONTENT_BYTES_MAX)].trim();
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            if !content.is_empty() && self.metas.len() < NOTED_MAX {
                self.metas.push((name, content));
            }
        }
    }

    fn script(&mut self, tree: &Tree<'a>, index: usize) {
        let item = &tree.items[index];
        let kind = item.attribute("type").unwrap_or_default();
        if kind.len() > 100 || !kind.to_ascii_lowercase().contains("ld+json") {
            return;
        }
        if let Some(NodeKind::Text(text)) = tree.items.get(index + 1).map(|item| &item.kind)
            && self.ld.len() < 16
        {
            self.ld.push(text);
        }
    }

    /// Returns the contents of the `<meta>` elements of that name.
    pub(super) fn all_meta(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let named = self.metas.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name));
        named.map(|(_, content)| *content)
    }

    /// Returns the content of the first `<meta>` element that has any of the names.
    pub(super) fn meta_of(&self, names: &[&str]) -> Option<&'a str> {
        names.iter().find_map(|name| self.all_meta(name).next())
    }
}

fn note(list: &mut Vec<usize>, index: usize) {
    if list.len() < NOTED_MAX && list.last() != Some(&index) {
        list.push(index);
    }
}

fn is_in_svg(tree: &Tree<'_>, index: usize) -> bool {
    tree.items[tree.items[index].parent].name() == "svg"
}

/// Tells whether a list of words has one.
pub(super) fn has_word(value: &str, word: &str) -> bool {
    value.split_ascii_whitespace().any(|other| other.eq_ignore_ascii_case(word))
}
