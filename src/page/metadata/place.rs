//! Where the heading stands, and where the main text starts and ends.

use super::super::tree::{NodeKind, Tree};
use super::seen::{RawMetadata, TITLE_CHARS_MAX};
use crate::text::is_han;

/// Headings that are compared with the title.
const HEADINGS_MAX: usize = 20;

/// Places in the tree that the visible facts stand around.
#[derive(Debug, Clone, Copy)]
pub(super) struct Landmarks {
    /// The heading of the page, and how sure that is, 0 to 1; below 0 it is that of the site.
    pub heading: Option<(usize, f32)>,
    /// First text of the main text.
    pub start: Option<usize>,
    /// Last text of the main text.
    pub end: Option<usize>,
}

impl Landmarks {
    pub(super) fn find(
        tree: &Tree<'_>,
        seen: &RawMetadata<'_>,
        titles: &[&str],
        main: &str,
    ) -> Self {
        let (start, end) = ends(tree, seen.body, main);
        let heading = heading(tree, seen, titles, start);
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
    of_words(&words(one), &words(other))
}

fn of_words(one: &[String], other: &[String]) -> f32 {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if short.is_empty() {
        return 0.0;
    }
    let shared = short.iter().filter(|word| long.contains(word)).count() as f32;
    let of_short = shared / short.len() as f32;
    let of_long = shared / long.len() as f32;
    of_short * (0.7 + 0.3 * of_long)
}

/// The `<h1>` that is most like the titles; without one that is, the text that stands in the title.
fn heading(
    tree: &Tree<'_>,
    seen: &RawMetadata<'_>,
    titles: &[&str],
    start: Option<usize>,
) -> Option<(usize, f32)> {
    let told: Vec<Vec<String>> = titles.iter().map(|title| words(title)).collect();
    let mut best: Option<(usize, f32)> = None;
    for index in seen.h1.iter().copied().take(HEADINGS_MAX) {
        let text = tree.text_of(index, TITLE_CHARS_MAX);
        let own = words(&text);
        let like = told.iter().map(|title| of_words(&own, title)).fold(0.0, f32::max);
        // A logo: what the title ends with, after its own words.
        let like = if is_end_of(&text, &seen.title) { -1.0 } else { like };
        if best.is_none_or(|(_, most)| like > most) && !text.is_empty() {
            best = Some((index, like));
        }
    }
    if let Some(best) = best.filter(|(_, like)| *like >= 0.5) {
        return Some(best);
    }
    let quoted = titles.iter().find_map(|title| quoted(tree, seen, title, start));
    quoted.map(|index| (index, 0.6)).or(best)
}

/// Tells whether a heading is only the last part of a title, which names the site.
fn is_end_of(text: &str, title: &str) -> bool {
    let Some(rest) = title.trim().strip_suffix(text) else { return false };
    let rest = rest.trim_end();
    let own = rest.trim_end_matches(['|', '-', '–', '—', '_', '·', '»', '•', '｜']);
    own.len() < rest.len() && own.trim().chars().count() >= 5
}

/// The text outside links that is a large part of the title: the last one before the main text,
/// else the first one.
fn quoted(
    tree: &Tree<'_>,
    seen: &RawMetadata<'_>,
    title: &str,
    start: Option<usize>,
) -> Option<usize> {
    let (mut before, mut after, mut linked) = (None, None, None);
    for (index, item) in tree.items.iter().enumerate().skip(seen.body + 1) {
        let NodeKind::Text(text) = item.kind else { continue };
        if text.len() < 12 || text.len() * 3 < title.len() {
            continue;
        }
        let text = text.trim();
        // At its start the title has its own words; elsewhere most of it must be there.
        let most = text.len() * 5 >= title.len() * 3;
        let part = if most { title.contains(text) } else { title.starts_with(text) };
        if text.len() < 12 || text.len() * 3 < title.len() || !part {
            continue;
        }
        match tree.items[item.parent].name() {
            "script" | "style" | "noscript" | "option" | "title" => {}
            "a" => linked = linked.or(Some(index)),
            _ if start.is_none_or(|start| index <= start) => before = Some(index),
            _ => after = after.or(Some(index)),
        }
    }
    before.or(after).or(linked)
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
    let heads: Vec<char> =
        first.iter().chain(&last).filter_map(|key| key.first().copied()).collect();
    let (mut start, mut linked, mut end) = (None, None, None);
    for (index, item) in tree.items.iter().enumerate().skip(body) {
        let NodeKind::Text(text) = item.kind else { continue };
        if text.len() < 12 {
            continue;
        }
        let mut chars = text.chars().filter(|c| !c.is_whitespace());
        let Some(head) = chars.next().filter(|head| heads.contains(head)) else { continue };
        let is = |key: &Vec<char>| {
            key.first() == Some(&head)
                && key[1..].iter().zip(chars.clone()).all(|(one, other)| *one == other)
        };
        if !first.iter().chain(&last).any(is) {
            continue;
        }
        match tree.items[item.parent].name() {
            "title" | "script" | "style" => continue,
            // Teasers of the same text stand in links.
            "a" if linked.is_none() && first.iter().any(is) => linked = Some(index),
            "a" => {}
            _ if start.is_none() && first.iter().any(is) => start = Some(index),
            _ => {}
        }
        if last.iter().any(is) {
            end = Some(index);
        }
    }
    (start.or(linked), end)
}
