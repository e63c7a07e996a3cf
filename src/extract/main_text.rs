//! The main text: candidates from the same arrays, and the choice between them.
//!
//! A: the subtree whose paragraphs score best, with siblings that look like it, as Readability
//! finds it. B: the subtree that names itself the main one. C: the whole body without what
//! surrounds the main text. A page that has text never yields none.

use super::blocks::{BLOCK, BOILERPLATE, Blocks, LINK, MAIN, NOT_TEXT, latin};
use super::render;
use super::tree::{Kind, Tree};

/// Levels above a paragraph that share in its score.
const LEVELS: usize = 5;

/// Least text of a paragraph that scores.
const PARAGRAPH_MIN: u32 = latin(25);

/// A candidate with less text than this is doubtful.
const TEXT_MIN: u32 = latin(250);

/// Returns the main text, one line a block.
pub(super) fn main_text(tree: &Tree<'_>, blocks: &Blocks) -> String {
    if tree.items.is_empty() {
        return String::new();
    }
    let root = body(tree);
    let dropped = dropped(tree, blocks, root);
    let kept = |index: usize| kept_chars(tree, blocks, &dropped, index);
    let whole = kept(root);
    let named = named_main(tree, blocks, &dropped, root);
    let scored = best_scored(tree, blocks, &dropped);
    let choice = match (named, scored) {
        // The page's own word is taken if it covers what the paragraphs say.
        (Some(named), Some(scored)) if contains(tree, named, scored) => Some(named),
        (Some(named), _) if kept(named) * 2 > whole && kept(named) >= TEXT_MIN => Some(named),
        (_, Some(scored)) => Some(scored),
        (named, None) => named,
    };
    let chosen = choice.map(|index| with_siblings(tree, blocks, &dropped, index));
    let text = match chosen {
        Some(parts) => {
            let covered: u32 = parts.iter().map(|part| kept(*part)).sum();
            // Much text elsewhere: a page of many small parts, such as a listing.
            if covered * 3 < whole || covered < TEXT_MIN && whole >= covered * 2 {
                render::render(tree, blocks, &dropped, &[root])
            } else {
                render::render(tree, blocks, &dropped, &parts)
            }
        }
        None => render::render(tree, blocks, &dropped, &[root]),
    };
    if text.is_empty() {
        // Everything was taken for boilerplate: then nothing was.
        return render::render(tree, blocks, &vec![false; tree.items.len()], &[root]);
    }
    text
}

fn body(tree: &Tree<'_>) -> usize {
    tree.items.iter().position(|item| item.name() == "body").unwrap_or(0)
}

fn contains(tree: &Tree<'_>, outer: usize, inner: usize) -> bool {
    outer <= inner && inner < tree.items[outer].end
}

/// Marks the subtrees that are no part of any main text. A subtree that holds most of the page is
/// never one of them, whatever its name.
fn dropped(tree: &Tree<'_>, blocks: &Blocks, root: usize) -> Vec<bool> {
    let whole = blocks.chars(tree, root).max(1);
    let mut dropped = vec![false; tree.items.len()];
    let mut index = root;
    while index < tree.items[root].end {
        let end = tree.items[index].end;
        if is_dropped(tree, blocks, index, whole) {
            dropped[index..end].fill(true);
            index = end;
        } else {
            index += 1;
        }
    }
    dropped
}

fn is_dropped(tree: &Tree<'_>, blocks: &Blocks, index: usize, whole: u32) -> bool {
    let flags = blocks.flags[index];
    if flags & NOT_TEXT != 0 {
        return true;
    }
    if matches!(tree.items[index].kind, Kind::Text(_))
        || flags & BLOCK == 0 && flags & BOILERPLATE == 0
    {
        return false;
    }
    let chars = blocks.chars(tree, index);
    let density = blocks.link_density(tree, index);
    if flags & BOILERPLATE != 0 {
        // A page may call its text `post-content ad-free`; prose speaks for itself.
        let prose = chars - blocks.link_chars(tree, index);
        return prose * 2 < whole || density > 0.5;
    }
    let name = tree.items[index].name();
    let is_list = matches!(name, "ul" | "ol" | "dl" | "table" | "div" | "section" | "p" | "td");
    is_list && density > 0.6 && chars * 3 < whole && blocks.commas(tree, index) * latin(80) < chars
}

fn kept_chars(tree: &Tree<'_>, blocks: &Blocks, dropped: &[bool], index: usize) -> u32 {
    let mut chars = 0;
    let mut at = index;
    while at < tree.items[index].end {
        if dropped[at] {
            at = tree.items[at].end;
            continue;
        }
        if matches!(tree.items[at].kind, Kind::Text(_)) {
            chars += blocks.chars(tree, at);
        }
        at += 1;
    }
    chars
}

/// The subtree that names itself the main one and has most text outside links.
fn named_main(tree: &Tree<'_>, blocks: &Blocks, dropped: &[bool], root: usize) -> Option<usize> {
    let mut best: Option<(u32, usize)> = None;
    let inside = tree.items.iter().enumerate().take(tree.items[root].end).skip(root + 1);
    for (index, item) in inside {
        let strong = matches!(item.name(), "main" | "article")
            || matches!(item.attribute("role"), Some("main" | "article"))
            || item.attribute("itemprop") == Some("articleBody");
        if blocks.flags[index] & MAIN == 0 || dropped[index] || !strong {
            continue;
        }
        let prose = blocks.chars(tree, index) - blocks.link_chars(tree, index);
        // An inner one of nearly the same size is the closer fit.
        if prose >= TEXT_MIN && best.is_none_or(|(most, _)| prose * 10 >= most * 9) {
            best = Some((prose.max(best.map_or(0, |(most, _)| most)), index));
        }
    }
    best.map(|(_, index)| index)
}

/// The element whose paragraphs score best.
///
/// Source: the scoring of Readability: 1, commas and length of each paragraph, shared with the
/// elements above it, less the share of links.
fn best_scored(tree: &Tree<'_>, blocks: &Blocks, dropped: &[bool]) -> Option<usize> {
    let mut scores: Vec<f32> = vec![0.0; tree.items.len()];
    for (index, item) in tree.items.iter().enumerate() {
        if dropped[index] || !is_paragraph(tree, blocks, index) {
            continue;
        }
        let chars = blocks.chars(tree, index);
        if chars < PARAGRAPH_MIN {
            continue;
        }
        let length = (chars as f32 / latin(100) as f32).min(3.0);
        let prose = 1.0 - blocks.link_density(tree, index);
        let score = (1.0 + blocks.commas(tree, index) as f32 + length) * prose;
        let mut above = item.parent;
        for level in 0..LEVELS {
            let share = match level {
                0 => 1.0,
                1 => 0.5,
                level => 1.0 / (3.0 * level as f32),
            };
            scores[above] += score * share;
            let next = tree.items[above].parent;
            if next == above {
                break;
            }
            above = next;
        }
    }
    let weighted =
        scores.iter().enumerate().filter(|(_, score)| **score > 0.0).map(|(index, score)| {
            let named = if blocks.flags[index] & MAIN != 0 { 1.25 } else { 1.0 };
            (index, score * named * (1.0 - blocks.link_density(tree, index)))
        });
    weighted.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index)
}

/// A block of text: an element that holds running text and no further block.
fn is_paragraph(tree: &Tree<'_>, blocks: &Blocks, index: usize) -> bool {
    match tree.items[index].name() {
        "p" | "pre" | "blockquote" => true,
        "div" | "td" | "section" | "article" | "li" | "dd" => {
            let inner = index + 1..tree.items[index].end;
            !inner.into_iter().any(|inner| blocks.flags[inner] & (BLOCK | LINK) == BLOCK)
        }
        _ => false,
    }
}

/// The chosen subtree and those of its siblings that look like parts of the same text.
fn with_siblings(tree: &Tree<'_>, blocks: &Blocks, dropped: &[bool], chosen: usize) -> Vec<usize> {
    let parent = tree.items[chosen].parent;
    if parent == chosen || tree.items[chosen].name() == "body" {
        return vec![chosen];
    }
    let own = kept_chars(tree, blocks, dropped, chosen);
    let mut parts = Vec::new();
    let mut child = parent + 1;
    while child < tree.items[parent].end {
        let chars = blocks.chars(tree, child);
        let is_heading = matches!(tree.items[child].name(), "h1" | "h2" | "h3");
        let is_prose = chars >= latin(80).max(own / 20)
            && blocks.link_density(tree, child) < 0.25
            && blocks.commas(tree, child) > 0;
        let joins = is_heading || is_prose;
        if child == chosen || !dropped[child] && joins && blocks.flags[child] & BOILERPLATE == 0 {
            parts.push(child);
        }
        child = tree.items[child].end;
    }
    parts
}
