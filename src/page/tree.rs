//! The parsed page as flat arrays in document order.

use ego_tree::iter::Edge;
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, QualName, parse_document};
use memchr::memchr_iter;
use scraper::{Html, HtmlTreeSink, Node, node::Element};

use super::reduce::reduced;
use super::tags::{Tag, is_read};

/// Nodes for which room is made beforehand.
const NODES_RESERVED_MAX: usize = 1 << 15;

/// Bytes that the parser is given at a time: the tree is measured in between.
const STEP: usize = 16 << 10;

/// Bytes of a node itself: its value and five links.
pub(super) const NODE_BYTES: usize = size_of::<Node>() + 5 * size_of::<usize>();

/// Bytes of an attribute without its value.
pub(super) const ATTRIBUTE_BYTES: usize = size_of::<(QualName, StrTendril)>();

/// Bytes that an allocation takes besides its content, about.
pub(super) const ALLOCATION_BYTES: usize = 16;

/// How large a tree may get. What was built counts, whether it is part of the page or not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    /// Elements, texts and comments.
    pub nodes_max: usize,
    /// Bytes of nodes, attributes and texts.
    pub size_max: usize,
}

impl Bound {
    /// No bound, for texts that are short.
    pub(super) const NONE: Self = Self { nodes_max: usize::MAX, size_max: usize::MAX };
}

/// A page that was parsed.
pub(super) struct Parsed {
    pub html: Html,
    /// The tree has reached its bound before the end of the page.
    pub cut: bool,
}

/// Parses a page as a browser without scripts does: what stands in `noscript` is for us. Ends
/// where the tree has reached its bound.
pub(super) fn parse(text: &str, bound: Bound) -> Parsed {
    parse_reduced(&reduced(text), bound)
}

/// Parses a page from which is left out what nobody reads.
pub(super) fn parse_reduced(text: &str, bound: Bound) -> Parsed {
    parse_whole(text, bound, STEP)
}

/// Parses a page with all that is in it, however long that takes, `step` bytes at a time.
pub(super) fn parse_whole(text: &str, bound: Bound, step: usize) -> Parsed {
    let tree_builder =
        TreeBuilderOpts { scripting_enabled: false, drop_doctype: true, ..Default::default() };
    let options = ParseOpts { tree_builder, ..Default::default() };
    let mut html = Html::new_document();
    // About half of the tags begin an element, and as many texts stand between them.
    let nodes = memchr_iter(b'<', text.as_bytes()).count();
    let nodes = nodes.min(NODES_RESERVED_MAX).min(bound.nodes_max);
    html.tree = ego_tree::Tree::with_capacity(Node::Document, nodes);
    let mut parser = parse_document(HtmlTreeSink::new(html), options);
    let (mut nodes, mut size, mut at) = (0, 0, 0);
    while at < text.len() && nodes < bound.nodes_max && size < bound.size_max {
        let end = text.ceil_char_boundary(at.saturating_add(step).min(text.len()));
        parser.process(StrTendril::from_slice(&text[at..end]));
        let sink = parser.tokenizer.sink.sink.0.borrow();
        let values = sink.tree.values();
        let new = values.len() - nodes;
        nodes = values.len();
        // Texts are part of what was read.
        size += end - at + values.rev().take(new).map(bytes_of).sum::<usize>();
        at = end;
    }
    Parsed { html: parser.finish(), cut: at < text.len() }
}

/// Bytes of a node without its text.
fn bytes_of(node: &Node) -> usize {
    let Node::Element(element) = node else { return NODE_BYTES };
    let own = element.attrs.capacity() * ATTRIBUTE_BYTES;
    let values = element.attrs().map(|(_, value)| value.len() + ALLOCATION_BYTES);
    NODE_BYTES + own + values.sum::<usize>()
}

/// A node: an element or a text.
#[derive(Debug)]
pub(super) struct TreeNode<'a> {
    /// What it is.
    pub kind: NodeKind<'a>,
    /// Its name as a number; `Other` for a text.
    pub tag: Tag,
    /// Index of the element around it; its own at the root.
    pub parent: usize,
    /// Index past its last descendant.
    pub end: usize,
}

/// What a node is.
#[derive(Debug, Clone, Copy)]
pub(super) enum NodeKind<'a> {
    /// An element.
    Element(&'a Element),
    /// A text.
    Text(&'a str),
}

impl<'a> TreeNode<'a> {
    /// Returns the name of an element, and an empty one for a text.
    pub(super) fn name(&self) -> &'a str {
        match self.kind {
            NodeKind::Element(element) => element.name(),
            NodeKind::Text(_) => "",
        }
    }

    /// Returns the attributes of an element.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let element = match self.kind {
            NodeKind::Element(element) => Some(element),
            NodeKind::Text(_) => None,
        };
        element.into_iter().flat_map(|element| element.attrs())
    }

    /// Returns an attribute of an element.
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        debug_assert!(is_read(name.as_bytes(), b"none"), "{name} is left out before the parse");
        match self.kind {
            NodeKind::Element(element) => element.attr(name),
            NodeKind::Text(_) => None,
        }
    }
}

/// All nodes in document order.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    pub items: Vec<TreeNode<'a>>,
    /// There were more nodes than the limit.
    pub truncated: bool,
}

impl<'a> Tree<'a> {
    pub(super) fn new(html: &'a Html, nodes_max: usize) -> Self {
        let count = html.tree.values().len().min(nodes_max);
        let mut items: Vec<TreeNode<'a>> = Vec::with_capacity(count);
        let mut open: Vec<usize> = Vec::new();
        let mut truncated = false;
        for edge in html.tree.root().traverse() {
            match edge {
                Edge::Open(node) => {
                    let kind = match node.value() {
                        Node::Element(element) => NodeKind::Element(element),
                        Node::Text(text) => NodeKind::Text(text),
                        _ => continue,
                    };
                    if items.len() >= nodes_max {
                        truncated = true;
                        break;
                    }
                    let index = items.len();
                    let parent = open.last().copied().unwrap_or(index);
                    if matches!(kind, NodeKind::Element(_)) {
                        open.push(index);
                    }
                    let tag = match kind {
                        NodeKind::Element(element) => Tag::of(element.name()),
                        NodeKind::Text(_) => Tag::Other,
                    };
                    items.push(TreeNode { kind, tag, parent, end: index + 1 });
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
            if let NodeKind::Text(text) = item.kind {
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

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Bytes that the tree of a page of 2 MiB counts, and whether it was cut.
    fn built(piece: &str, bound: Bound) -> (usize, usize, bool) {
        let parsed = parse(&piece.repeat(2 * MIB / piece.len()), bound);
        let values = parsed.html.tree.values();
        (values.len(), values.map(bytes_of).sum(), parsed.cut)
    }

    #[test]
    fn a_tree_stops_growing_at_its_bound() {
        let pieces = [
            "<tr><td>a<td>b<td>c",
            "<table><tr><td>a",
            "<p>",
            "</p>",
            "<!---->",
            "<a href=x class=y>z</a>",
            "<b a b c d e f g h i j k l m n o p>",
            "<html a=1 b=2>",
            "<svg><g></svg>",
            "<template>x</template>",
        ];
        for piece in pieces {
            let nodes = Bound { nodes_max: 10_000, ..Bound::NONE };
            let (count, _, cut) = built(piece, nodes);
            // A step may go beyond it.
            assert!(cut || count < 10_000, "{piece}: {count}");
            assert!(count <= 10_000 + 2 * STEP, "{piece}: {count}");
            let size = Bound { size_max: MIB, ..Bound::NONE };
            let (_, bytes, cut) = built(piece, size);
            assert!(cut || bytes < MIB, "{piece}: {bytes}");
            assert!(bytes <= MIB + 2 * STEP * NODE_BYTES, "{piece}: {bytes}");
        }
        assert!(!built("word ", Bound::NONE).2);
    }
}
