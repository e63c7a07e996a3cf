//! How often a page was read, where it says so.

use super::head::HeadFacts;
use super::tree::{NodeKind, Tree};

/// Words before a number that tell how often a page was read.
const LABELS: [&str; 12] = [
    "阅读",
    "浏览",
    "点击",
    "閱讀",
    "瀏覽",
    "點擊",
    "views",
    "reads",
    "visits",
    "hits",
    "pv",
    "view count",
];

/// Texts longer than this are prose, not a counter.
const COUNTER_CHARS_MAX: usize = 60;

/// Returns the count that the head, or a short visible text, gives.
pub(super) fn of(tree: &Tree<'_>, head: &HeadFacts) -> Option<u64> {
    head.popularity.or_else(|| {
        tree.items.iter().find_map(|item| match item.kind {
            NodeKind::Element(_) => None,
            NodeKind::Text(text) => counter(text),
        })
    })
}

/// Reads `阅读(1234)`, `浏览：1,234次`, `1234 views`, `views: 1234`.
fn counter(text: &str) -> Option<u64> {
    if text.len() > COUNTER_CHARS_MAX * 4 || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let text = text.trim();
    let ascii = text.is_ascii();
    let has_word = !ascii || text.bytes().any(|byte| byte.is_ascii_alphabetic());
    if !has_word || text.chars().count() > COUNTER_CHARS_MAX {
        return None;
    }
    let text = text.to_lowercase();
    LABELS.iter().filter(|label| !ascii || label.is_ascii()).find_map(|label| {
        let at = text.find(label)?;
        let (before, after) = (&text[..at], &text[at + label.len()..]);
        let is_word = label.is_ascii()
            && (after.starts_with(|c: char| c.is_ascii_alphabetic())
                || before.ends_with(|c: char| c.is_ascii_alphabetic()));
        if is_word { None } else { leading(after).or_else(|| trailing(before)) }
    })
}

/// The number right after a label: only marks may stand between.
fn leading(text: &str) -> Option<u64> {
    let skipped = text.trim_start_matches(|c: char| {
        matches!(c, ':' | '：' | '(' | '（' | '[' | '量' | '数' | '數' | '次') || c.is_whitespace()
    });
    let end = skipped.find(|c: char| !(c.is_ascii_digit() || c == ',')).unwrap_or(skipped.len());
    skipped[..end].replace(',', "").parse().ok()
}

/// The number right before a label.
fn trailing(text: &str) -> Option<u64> {
    let text = text.trim_end();
    let start = text.rfind(|c: char| !(c.is_ascii_digit() || c == ','));
    let start = start.map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    text[start..].replace(',', "").parse().ok()
}
