//! Keeps elements from being nested deeper than a parser can take.

use std::borrow::Cow;

/// Levels of open elements. Source: browsers flatten deeper trees at about the same depth.
const DEPTH_MAX: usize = 512;

/// Elements that are never open, or whose end is implied by the next of their kind: counting them
/// would see depth where there is none.
const UNCOUNTED: [&str; 30] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr", "p", "li", "dt", "dd", "tr", "td", "th", "tbody", "thead", "tfoot", "option",
    "optgroup", "colgroup", "html", "head", "body",
];

/// Elements whose content is no markup.
const RAW: [&str; 7] = ["script", "style", "textarea", "title", "xmp", "iframe", "noembed"];

/// Leaves out the start tags that would open an element beyond the limit, so that their content
/// belongs to the last element within it. Borrows a text that needs no change.
///
/// Cost: one pass over the tags. Parsing is quadratic in the depth: 100,000 levels take minutes.
pub(super) fn flattened(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut depth, mut copied, mut at) = (0usize, 0, 0);
    while let Some(found) = text[at..].find('<') {
        let tag = at + found;
        let rest = &text[tag + 1..];
        if rest.starts_with("!--") {
            at = rest.find("-->").map_or(text.len(), |end| tag + 1 + end);
            continue;
        }
        let (closing, name_at) = if rest.starts_with('/') { (true, 1) } else { (false, 0) };
        let name = name_of(&rest[name_at..]);
        at = tag + 1;
        if name.is_empty() || is_one_of(name, &UNCOUNTED) {
            continue;
        }
        if closing {
            depth = depth.saturating_sub(1);
            continue;
        }
        if is_one_of(name, &RAW) {
            at = raw_end(text, tag + 1 + name.len(), name);
            continue;
        }
        depth += 1;
        if depth > DEPTH_MAX {
            let end = rest.find('>').map_or(text.len(), |end| tag + 1 + end + 1);
            out.push_str(&text[copied..tag]);
            (copied, at) = (end, end);
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

fn name_of(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) { &text[..end] } else { "" }
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Where the content of a raw element that starts at `from` ends.
fn raw_end(text: &str, from: usize, name: &str) -> usize {
    let mut at = from;
    while let Some(found) = text[at..].find("</") {
        let end = at + found;
        if text[end + 2..].get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name)) {
            // Past the closing tag's name, so that it is not counted.
            return end + 2;
        }
        at = end + 2;
    }
    text.len()
}
