//! A part of the page as plain text: one line a block, words never glued.

use super::blocks::{BLOCK, Blocks, NOT_TEXT};
use super::tree::{Kind, Tree};

/// Writes the text of `parts` (in document order), without what is dropped.
pub(super) fn render(
    tree: &Tree<'_>,
    blocks: &Blocks,
    dropped: &[bool],
    parts: &[usize],
) -> String {
    let mut out = Out::default();
    for part in parts {
        let mut open: Vec<(usize, bool)> = Vec::new();
        let mut index = *part;
        while index < tree.items[*part].end {
            while open.last().is_some_and(|(end, _)| *end <= index) {
                let (_, pre) = open.pop().expect("just looked at");
                out.leave(pre);
            }
            let item = &tree.items[index];
            if dropped[index] || blocks.flags[index] & NOT_TEXT != 0 {
                index = item.end.max(index + 1);
                continue;
            }
            match item.kind {
                Kind::Text(text) => out.text(text),
                Kind::Element(_) => match item.name() {
                    "br" | "hr" => out.line(),
                    "td" | "th" => out.cell(),
                    name if blocks.flags[index] & BLOCK != 0 => {
                        out.line();
                        let pre = name == "pre";
                        out.pre += usize::from(pre);
                        open.push((item.end, pre));
                    }
                    _ => {}
                },
            }
            index += 1;
        }
        while let Some((_, pre)) = open.pop() {
            out.leave(pre);
        }
        out.line();
    }
    out.finish()
}

/// Collapses white space within lines and drops empty lines.
pub(super) fn collapse_lines(text: &str) -> String {
    let mut out = Out::default();
    for line in text.lines() {
        out.text(line);
        out.line();
    }
    out.finish()
}

/// Text under way: white space is written when something follows it.
#[derive(Default)]
struct Out {
    text: String,
    /// Something is on the present line.
    filled: bool,
    pending: Pending,
    /// Open `pre` elements.
    pre: usize,
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
        if self.pre == 0 && text.is_ascii() && !text.contains('\0') {
            return self.ascii(text);
        }
        for c in text.chars() {
            match c {
                '\n' if self.pre > 0 => self.line(),
                c if self.pre > 0 && c.is_whitespace() && c != '\r' => {
                    // Indentation is part of code.
                    self.write(' ');
                }
                c if c.is_whitespace() => self.pending = self.pending.max(Pending::Blank),
                '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}' | '\u{00AD}' | '\0' => {}
                c => self.write(c),
            }
        }
    }

    /// The usual case: whole words at a time.
    fn ascii(&mut self, text: &str) {
        if text.starts_with(|c: char| c.is_ascii_whitespace()) {
            self.pending = self.pending.max(Pending::Blank);
        }
        for word in text.split_ascii_whitespace() {
            self.space();
            self.text.push_str(word);
            self.pending = Pending::Blank;
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

    fn leave(&mut self, pre: bool) {
        self.pre -= usize::from(pre);
        self.line();
    }

    fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }
}
