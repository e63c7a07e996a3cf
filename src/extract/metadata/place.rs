//! Where the heading stands, and where the main text starts and ends.

use super::super::tree::{Kind, Tree};
use super::seen::{Seen, TITLE_CHARS_MAX};
use crate::text::is_han;

/// Headings that are compared with the title.
const HEADINGS_MAX: usize = 20;

/// Places in the tree that the visible facts stand around.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The heading of the page, and how sure that is, 0 to 1.
    pub heading: Option<(usize, f32)>,
    /// First text of the main text.
    pub start: Option<usize>,
    /// Last text of the main text.
    pub end: Option<usize>,
}

impl Place {
    pub(super) fn find(tree: &Tree<'_>, seen: &Seen<'_>, titles: &[&str], main: &str) -> Self {
        let (start, end) = ends(tree, seen.body, main);
        let heading = heading(tree, seen, titles);
        Self { heading, start, end }
    }
}

/// Words of a text, in lower case; a Chinese character is a word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for c in text.chars().take(TITLE_CHARS_MAX) {
        if is_han(c) {
            words.push(c.to_string());
            open = false;
        } else if c.is_alphanumeric() {
            if !open {
                words.push(String::new());
            }
            open = true;
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        } else if !matches!(c, '\'' | '’') {
            open = false;
        }
    }
    words
}

/// Share of the words of the shorter text that the other one has, less if it is much shorter.
pub(super) fn likeness(one: &str, other: &str) -> f32 {
    let (one, other) = (words(one), words(other));
    let (short, long) = if one.len() <= other.len() { (&one, &other) } else { (&other, &one) };
    if short.is_empty() {
        return 0.0;
    }
    let shared = short.iter().filter(|word| long.contains(word)).count() as f32;
    let of_short = shared / short.len() as f32;
    let of_long = shared / long.len() as f32;
    of_short * (0.7 + 0.3 * of_long)
}

/// The `<h1>` that is most like the titles; without one that is, the text that stands in the title.
fn heading(tree: &Tree<'_>, seen: &Seen<'_>, titles: &[&str]) -> Option<(usize, f32)> {
    let mut best: Option<(usize, f32)> = None;
    for index in seen.h1.iter().copied().take(HEADINGS_MAX) {
        let text = tree.text_of(index, TITLE_CHARS_MAX);
        let like = titles.iter().map(|title| likeness(&text, title)).fold(0.0, f32::max);
        if best.is_none_or(|(_, most)| like > most) && !text.is_empty() {
            best = Some((index, like));
        }
    }
    if let Some(best) = best.filter(|(_, like)| *like >= 0.5) {
        return Some(best);
    }
    let quoted = titles.iter().find_map(|title| quoted(tree, seen, title));
    quoted.map(|index| (index, 0.6)).or(best)
}

/// The text outside links with which the title starts.
fn quoted(tree: &Tree<'_>, seen: &Seen<'_>, title: &str) -> Option<usize> {
    let mut linked = None;
    for (index, item) in tree.items.iter().enumerate().skip(seen.body + 1) {
        let Kind::Text(text) = item.kind else { continue };
        let text = text.trim();
        if text.len() < 12 || !title.starts_with(text) || text.len() * 3 < title.len() {
            continue;
        }
        match tree.items[item.parent].name() {
            "script" | "style" | "noscript" | "option" => {}
            "a" => linked = linked.or(Some(index)),
            _ => return Some(index),
        }
    }
    linked
}

/// Characters by which a line of the main text is found again.
const KEY_CHARS: usize = 14;

/// The first and the last text of the main text.
fn ends(tree: &Tree<'_>, body: usize, main: &str) -> (Option<usize>, Option<usize>) {
    let solid = |text: &str| -> Vec<char> {
        text.chars().filter(|c| !c.is_whitespace()).take(KEY_CHARS).collect()
    };
    let lines = || main.lines().filter(|line| line.len() >= 30);
    let first: Vec<Vec<char>> = lines().take(3).map(solid).collect();
    let last: Vec<Vec<char>> = lines().rev().take(3).map(solid).collect();
    let (mut start, mut end) = (None, None);
    for (index, item) in tree.items.iter().enumerate().skip(body) {
        let Kind::Text(text) = item.kind else { continue };
        let mut chars = text.chars().filter(|c| !c.is_whitespace());
        let Some(head) = chars.next() else { continue };
        let is = |key: &Vec<char>| {
            key.first() == Some(&head)
                && key[1..].iter().zip(chars.clone()).all(|(one, other)| *one == other)
                && text.len() >= 12
        };
        if start.is_none() && first.iter().any(is) {
            start = Some(index);
        }
        if last.iter().any(is) {
            end = Some(index);
        }
    }
    (start, end)
}
