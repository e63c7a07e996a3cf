//! The visible texts around the heading and at the end of the main text: the only ones in which
//! dates and names are looked for.

use super::super::tree::{NodeKind, Tree};
use super::place::Landmarks;
use super::seen::RawMetadata;

/// Texts before the heading.
const BEFORE: usize = 14;
/// Texts after the heading, and after the start of the main text.
const AFTER_HEADING: i32 = 45;
const AFTER_START: usize = 8;
/// Texts before and after the end of the main text.
const BEFORE_END: usize = 3;
const AFTER_END: usize = 24;
/// Nodes of the heading.
const HEADING_NODES_MAX: usize = 40;
/// Nodes between the heading and the last text that belongs to it.
const NODES_MAX: usize = 400;

/// A visible text.
#[derive(Debug, Clone, Copy)]
pub(super) struct VisibleText<'a> {
    pub index: usize,
    /// Without white space around it; never empty.
    pub text: &'a str,
    /// Texts between it and the heading; negative before it.
    pub distance: i32,
    /// It is in a link.
    pub linked: bool,
}

/// The visible texts that are looked at.
#[derive(Debug, Default)]
pub(super) struct Window<'a> {
    pub head: Vec<VisibleText<'a>>,
    pub tail: Vec<VisibleText<'a>>,
    /// Node after which no text of the head stands.
    pub until: usize,
    /// Node before which no text of the head stands.
    pub from: usize,
}

impl<'a> Window<'a> {
    pub(super) fn new(tree: &Tree<'a>, seen: &RawMetadata<'a>, place: &Landmarks) -> Self {
        let count = tree.items.len();
        let heading = place.heading.filter(|(_, like)| *like >= 0.3).map(|(index, _)| index);
        let start = place.start.filter(|start| heading.is_none_or(|heading| *start > heading));
        let anchor = heading.or(place.start).unwrap_or(seen.body);
        // A heading that is never closed holds the whole page.
        let anchor_end = tree.items.get(anchor).map_or(anchor, |item| item.end);
        let anchor_end = anchor_end.min(anchor + HEADING_NODES_MAX);
        let before = texts_before(tree, anchor, seen.body, BEFORE);
        let mut window = Self { from: before.last().copied().unwrap_or(anchor), ..Self::default() };
        let mut far = 0;
        for index in &before {
            far -= 1;
            window.head.extend(line(tree, *index, far));
        }
        window.head.reverse();
        window.head.extend((anchor..anchor_end).filter_map(|index| line(tree, index, 0)));
        let mut distance = 0;
        let mut into = 0;
        for index in anchor_end..count.min(anchor_end + NODES_MAX) {
            let Some(line) = line(tree, index, distance + 1) else { continue };
            distance += 1;
            into += usize::from(start.is_some_and(|start| index >= start));
            window.until = index;
            if into > AFTER_START || distance > AFTER_HEADING {
                break;
            }
            window.head.push(line);
        }
        window.until = window.until.max(anchor_end);
        if let Some(end) = place.end {
            let before = texts_before(tree, end, seen.body, BEFORE_END);
            let after = (end..count).filter(|index| line(tree, *index, 0).is_some());
            let all = before.into_iter().rev().chain(after.take(AFTER_END));
            window.tail = all.filter_map(|index| line(tree, index, 0)).collect();
        }
        window
    }
}

fn texts_before(tree: &Tree<'_>, anchor: usize, body: usize, count: usize) -> Vec<usize> {
    let from = body.max(anchor.saturating_sub(NODES_MAX / 4));
    let before = (from..anchor).rev().filter(|index| line(tree, *index, 0).is_some());
    before.take(count).collect()
}

fn line<'a>(tree: &Tree<'a>, index: usize, distance: i32) -> Option<VisibleText<'a>> {
    let item = &tree.items[index];
    let NodeKind::Text(text) = item.kind else { return None };
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{200B}');
    if text.is_empty() || is_no_text(tree.items[item.parent].name()) {
        return None;
    }
    let above = tree.items[item.parent].parent;
    let linked = [item.parent, above].iter().any(|index| tree.items[*index].name() == "a");
    Some(VisibleText { index, text, distance, linked })
}

fn is_no_text(name: &str) -> bool {
    matches!(name, "script" | "style" | "noscript" | "option" | "template" | "button" | "textarea")
}
