//! Chosen segments as plain text: one line a block, cells of a row apart by tabs, words never
//! glued.

use super::segments::{Segment, Segments};
use crate::page::tags::Tag;
use crate::page::tree::Tree;
use crate::text::tidy_prefix;

/// Writes the segments that are kept, in document order.
pub(super) fn render(tree: &Tree<'_>, segments: &Segments, kept: &[bool]) -> String {
    let mut out = Out::default();
    let mut row = None;
    for (segment, _) in segments.all.iter().zip(kept).filter(|(_, kept)| **kept) {
        let this = row_of(tree, segment);
        if this.is_some() && this == row {
            out.cell();
        } else {
            out.line();
        }
        row = this;
        out.pre = is_pre(tree, segment.block);
        for (_, text) in segment.texts(tree) {
            out.text(text);
        }
    }
    out.finish()
}

/// Collapses white space within lines and drops empty lines.
pub(in crate::page) fn collapse_lines(text: &str) -> String {
    let mut out = Out::default();
    for line in text.lines() {
        out.text(line);
        out.line();
    }
    out.finish()
}

/// Collapses all white space, that between lines as well.
pub(super) fn collapse(text: &str) -> String {
    let mut out = Out::default();
    out.text(text);
    out.finish()
}

/// Levels above a block that are looked at for a row of a table or for preformatted text.
const LEVELS: usize = 6;

fn above(tree: &Tree<'_>, block: usize, is: impl Fn(Tag) -> bool) -> Option<usize> {
    let mut at = block;
    for _ in 0..LEVELS {
        if is(tree.items[at].tag) {
            return Some(at);
        }
        at = tree.items[at].parent;
    }
    None
}

/// The row whose cell a segment begins. Text below further blocks of a cell is no data: such
/// tables lay a page out.
pub(super) fn row_of(tree: &Tree<'_>, segment: &Segment) -> Option<usize> {
    let cell = &tree.items[segment.block];
    let begins = matches!(cell.tag, Tag::Td | Tag::Th) && !segment.after_break;
    Some(cell.parent).filter(|row| begins && tree.items[*row].tag == Tag::Tr)
}

fn is_pre(tree: &Tree<'_>, block: usize) -> bool {
    above(tree, block, |tag| tag == Tag::Pre).is_some()
}

/// Tells whether a character is always written as it stands: the usual letters and marks, Chinese
/// and others, and none of those that are left out or are white space.
fn is_plain(c: char) -> bool {
    matches!(c, '!'..='~' | '\u{3001}'..='\u{D7FF}')
}

/// Text under way: white space is written when something follows it.
#[derive(Default)]
struct Out {
    text: String,
    /// Something is on the present line.
    filled: bool,
    pending: Pending,
    /// In preformatted text.
    pre: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pending {
    #[default]
    Nothing,
    Blank,
    Cell,
    Line,
}

impl Out {
    fn text(&mut self, text: &str) {
        if !self.pre && text.is_ascii() && !text.contains('\0') {
            return self.ascii(text);
        }
        let mut rest = text;
        loop {
            // What is written as it stands is written at once.
            let plain = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
            if plain > 0 {
                self.space();
                self.text.push_str(&rest[..plain]);
            }
            let mut chars = rest[plain..].chars();
            let Some(c) = chars.next() else { return };
            rest = chars.as_str();
            match c {
                '\n' if self.pre => self.line(),
                c if self.pre && c.is_whitespace() && c != '\r' => {
                    // Indentation is part of code.
                    self.write(' ');
                }
                c if c.is_whitespace() => self.pending = self.pending.max(Pending::Blank),
                '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}' | '\u{00AD}' | '\0' => {}
                c => self.write(c),
            }
        }
    }

    /// The usual case: whole words at a time, and all words with single blanks between.
    fn ascii(&mut self, text: &str) {
        if text.starts_with(|c: char| c.is_ascii_whitespace()) {
            self.pending = self.pending.max(Pending::Blank);
        }
        let mut rest = text.trim_ascii_start();
        while !rest.is_empty() {
            let tidy = rest[..tidy_prefix(rest.as_bytes())].trim_ascii_end().len();
            let word = rest[tidy..].bytes().position(|byte| byte.is_ascii_whitespace());
            let (words, after) = rest.split_at(word.map_or(rest.len(), |word| tidy + word));
            self.space();
            self.text.push_str(words);
            self.pending = Pending::Blank;
            rest = after.trim_ascii_start();
        }
        // What follows the last word directly belongs to it.
        if self.filled && !text.ends_with(|c: char| c.is_ascii_whitespace()) && !text.is_empty() {
            self.pending = Pending::Nothing;
        }
    }

    fn write(&mut self, c: char) {
        self.space();
        self.text.push(c);
    }

    /// Writes the white space that is pending, because something follows it.
    fn space(&mut self) {
        match self.pending {
            _ if self.text.is_empty() => {}
            Pending::Line => self.text.push('\n'),
            Pending::Cell if self.filled => self.text.push('\t'),
            Pending::Blank if self.filled => self.text.push(' '),
            _ => {}
        }
        self.pending = Pending::Nothing;
        self.filled = true;
    }

    fn line(&mut self) {
        self.pending = Pending::Line;
        self.filled = false;
    }

    fn cell(&mut self) {
        if self.filled {
            self.pending = self.pending.max(Pending::Cell);
        }
    }

    fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn white_space_is_collapsed_however_words_are_written(
            ascii in "[a-c\\x01\\x1B \t\n\r]{0,60}",
            other in "é[a的。\u{A0} ]{0,20}",
        ) {
            let plain = |text: &str| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
            proptest::prop_assert_eq!(collapse(&ascii), plain(&ascii));
            proptest::prop_assert_eq!(collapse(&other), plain(&other.replace('\u{A0}', " ")));
        }
    }
}
