//! The parsed page as flat arrays in document order.

use ego_tree::iter::Edge;
use html5ever::tendril::TendrilSink as _;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, parse_document};
use memchr::memchr_iter;
use scraper::{Html, HtmlTreeSink, Node, node::Element};

use super::reduce::reduced;
use super::tags::{Tag, is_read};

/// Nodes for which room is made beforehand.
const NODES_RESERVED_MAX: usize = 1 << 15;

/// Parses a page as a browser without scripts does: what stands in `noscript` is for us.
pub(super) fn parse(text: &str) -> Html {
    parse_whole(&reduced(text))
}

/// Parses a page with all that is in it, however long that takes.
pub(super) fn parse_whole(text: &str) -> Html {
    let tree_builder =
        TreeBuilderOpts { scripting_enabled: false, drop_doctype: true, ..Default::default() };
    let options = ParseOpts { tree_builder, ..Default::default() };
    let mut html = Html::new_document();
    // About half of the tags begin an element, and as many texts stand between them.
    let nodes = memchr_iter(b'<', text.as_bytes()).count().min(NODES_RESERVED_MAX);
    html.tree = ego_tree::Tree::with_capacity(Node::Document, nodes);
    parse_document(HtmlTreeSink::new(html), options).one(text)
}

/// A node: an element or a text.
#[derive(Debug)]
pub(super) struct Item<'a> {
    /// What it is.
    pub kind: Kind<'a>,
    /// Its name as a number; `Other` for a text.
    pub tag: Tag,
    /// Index of the element around it; its own at the root.
    pub parent: usize,
    /// Index past its last descendant.
    pub end: usize,
}

/// What a node is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'a> {
    /// An element.
    Element(&'a Element),
    /// A text.
    Text(&'a str),
}

impl<'a> Item<'a> {
    /// Returns the name of an element, and an empty one for a text.
    pub(super) fn name(&self) -> &'a str {
        match self.kind {
            Kind::Element(element) => element.name(),
            Kind::Text(_) => "",
        }
    }

    /// Returns the attributes of an element.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let element = match self.kind {
            Kind::Element(element) => Some(element),
            Kind::Text(_) => None,
        };
        element.into_iter().flat_map(|element| element.attrs())
    }

    /// Returns an attribute of an element.
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        debug_assert!(is_read(name.as_bytes(), b"none"), "{name} is left out before the parse");
        match self.kind {
            Kind::Element(element) => element.attr(name),
            Kind::Text(_) => None,
        }
    }
}

/// All nodes in document order.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    pub items: Vec<Item<'a>>,
    /// There were more nodes than the limit.
    pub truncated: bool,
}

impl<'a> Tree<'a> {
    pub(super) fn new(html: &'a Html, nodes_max: usize) -> Self {
        let count = html.tree.values().len().min(nodes_max);
        let mut items: Vec<Item<'a>> = Vec::with_capacity(count);
        let mut open: Vec<usize> = Vec::new();
        let mut truncated = false;
        for edge in html.tree.root().traverse() {
            match edge {
                Edge::Open(node) => {
                    let kind = match node.value() {
                        Node::Element(element) => Kind::Element(element),
                        Node::Text(text) => Kind::Text(text),
                        _ => continue,
                    };
                    if items.len() >= nodes_max {
                        truncated = true;
                        break;
                    }
                    let index = items.len();
                    let parent = open.last().copied().unwrap_or(index);
                    if matches!(kind, Kind::Element(_)) {
                        open.push(index);
                    }
                    let tag = match kind {
                        Kind::Element(element) => Tag::of(element.name()),
                        Kind::Text(_) => Tag::Other,
                    };
                    items.push(Item { kind, tag, parent, end: index + 1 });
                }
                Edge::Close(node) if node.value().is_element() => {
                    let index = open.pop().expect("every element that closes was opened");
                    items[index].end = items.len();
                }
                Edge::Close(_) => {}
            }
        }
        for index in open {
            items[index].end = items.len();
        }
        Self { items, truncated }
    }

    /// Takes elements that are marked `data-nosnippet` for no text.
    pub(super) fn drop_nosnippet(&mut self) {
        for item in &mut self.items {
            if item.attribute("data-nosnippet").is_some() {
                item.tag = Tag::NotText;
            }
        }
    }

    /// `inner` is `outer` or below it.
    pub(super) fn holds(&self, outer: usize, inner: usize) -> bool {
        outer <= inner && inner < self.items[outer].end
    }

    /// Returns the text below a node with white space collapsed, at most `chars_max` characters.
    pub(super) fn text_of(&self, index: usize, chars_max: usize) -> String {
        let mut out = String::new();
        for item in &self.items[index..self.items[index].end] {
            if let Kind::Text(text) = item.kind {
                for word in text.split_whitespace() {
                    if !out.is_empty() {
                        out.push(' ');
                    }
                    out.push_str(word);
                }
                if out.chars().count() > chars_max {
                    return out.chars().take(chars_max).collect();
                }
            }
        }
        out
    }
}
