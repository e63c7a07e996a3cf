//! Chosen segments as Markdown (`CommonMark` with tables): headings, lists, quotes, code, links.

use super::segments::{Segment, Segments};
use crate::page::links::Base;
use crate::page::tags::Tag;
use crate::page::tree::Tree;

/// Levels of lists and quotes that are written.
const NESTING_MAX: usize = 8;

/// Writes the segments that are kept, in document order. Links are relative to `base`.
pub(super) fn render(tree: &Tree<'_>, segments: &Segments, kept: &[bool], base: &Base) -> String {
    let mut writer = MarkdownWriter::new(tree, base);
    for (segment, _) in segments.all.iter().zip(kept).filter(|(_, kept)| **kept) {
        writer.segment(segment);
    }
    writer.leave_table();
    writer.leave_code();
    writer.out.truncate(writer.out.trim_end().len());
    writer.out
}

/// Where a segment stands.
#[derive(Debug, Default, PartialEq, Eq)]
struct SegmentPlace {
    heading: Option<u8>,
    pre: Option<usize>,
    /// The row whose cell the segment begins.
    row: Option<usize>,
    quotes: usize,
    /// List items around it, the outermost first.
    items: Vec<usize>,
}

struct MarkdownWriter<'a, 'b> {
    tree: &'a Tree<'b>,
    base: &'a Base,
    out: String,
    /// The preformatted element that is open.
    code: Option<usize>,
    /// List items that have their mark already.
    marked: Vec<usize>,
    /// The last line is of a list.
    in_list: bool,
    table: TableRows,
}

/// Rows that are gathered until it is known whether they make a table.
#[derive(Default)]
struct TableRows {
    element: Option<usize>,
    row: Option<usize>,
    rows: Vec<Vec<String>>,
}

impl<'a, 'b> MarkdownWriter<'a, 'b> {
    fn new(tree: &'a Tree<'b>, base: &'a Base) -> Self {
        Self {
            tree,
            base,
            out: String::new(),
            code: None,
            marked: Vec::new(),
            in_list: false,
            table: TableRows::default(),
        }
    }

    fn place(&self, segment: &Segment) -> SegmentPlace {
        let mut place = SegmentPlace::default();
        let mut at = segment.block;
        loop {
            let item = &self.tree.items[at];
            match item.tag {
                Tag::Pre if place.pre.is_none() => place.pre = Some(at),
                Tag::Blockquote => place.quotes += 1,
                Tag::Li if place.items.len() < NESTING_MAX => place.items.push(at),
                tag if place.heading.is_none() => place.heading = tag.heading(),
                _ => {}
            }
            if item.parent == at {
                break;
            }
            at = item.parent;
        }
        place.items.reverse();
        place.quotes = place.quotes.min(NESTING_MAX);
        let cell = &self.tree.items[segment.block];
        let is_cell = matches!(cell.tag, Tag::Td | Tag::Th) && !segment.after_break;
        place.row = Some(cell.parent).filter(|row| is_cell && self.tree.items[*row].tag == Tag::Tr);
        place
    }

    fn segment(&mut self, segment: &Segment) {
        let place = self.place(segment);
        if place.pre.is_none() || place.pre != self.code {
            self.leave_code();
        }
        if let Some(row) = place.row {
            return self.cell(segment, row);
        }
        self.leave_table();
        if let Some(pre) = place.pre {
            if self.code != Some(pre) {
                self.gap(false);
                self.out.push_str("```\n");
                self.code = Some(pre);
            }
            for (_, text) in segment.texts(self.tree) {
                self.out.push_str(text.trim_matches('\n'));
            }
            self.out.push('\n');
            return;
        }
        let text = Inline::of(self.tree, segment, self.base);
        let is_new = place.items.last().is_some_and(|item| !self.marked.contains(item));
        self.gap(is_new && self.in_list || segment.after_break && !self.out.is_empty());
        self.in_list = !place.items.is_empty();
        self.prefix(&place, is_new);
        if let Some(level) = place.heading {
            self.out.push_str(&"#".repeat(usize::from(level)));
            self.out.push(' ');
        }
        self.out.push_str(&text);
        self.out.push('\n');
    }

    /// Separates blocks: by an empty line unless they belong close together.
    fn gap(&mut self, close: bool) {
        if !self.out.is_empty() && !close {
            self.out.push('\n');
        }
    }

    fn prefix(&mut self, place: &SegmentPlace, is_new: bool) {
        self.out.push_str(&"> ".repeat(place.quotes));
        let Some((last, outer)) = place.items.split_last() else { return };
        for item in outer {
            self.out.push_str(if self.number(*item).is_some() { "   " } else { "  " });
        }
        match (self.number(*last), is_new) {
            (Some(number), true) => {
                self.out.push_str(&number.to_string());
                self.out.push_str(". ");
            }
            (None, true) => self.out.push_str("- "),
            (Some(_), false) => self.out.push_str("   "),
            (None, false) => self.out.push_str("  "),
        }
        if is_new {
            self.marked.push(*last);
        }
    }

    /// The number of an item of an ordered list.
    fn number(&self, item: usize) -> Option<usize> {
        let list = self.tree.items[item].parent;
        if self.tree.items[list].tag != Tag::Ol {
            return None;
        }
        let start = self.tree.items[list].attribute("start").and_then(|start| start.parse().ok());
        let before = self.tree.items[list + 1..item]
            .iter()
            .filter(|other| other.tag == Tag::Li && other.parent == list);
        Some(start.unwrap_or(1) + before.count())
    }

    fn cell(&mut self, segment: &Segment, row: usize) {
        let mut element = self.tree.items[row].parent;
        if self.tree.items[element].tag != Tag::Table {
            element = self.tree.items[element].parent;
        }
        if self.table.element != Some(element) {
            self.leave_table();
            self.table.element = Some(element);
        }
        if self.table.row != Some(row) {
            self.table.row = Some(row);
            self.table.rows.push(Vec::new());
        }
        let text = Inline::of(self.tree, segment, self.base).replace('|', "\\|");
        if let Some(cells) = self.table.rows.last_mut() {
            cells.push(text);
        }
    }

    /// Writes the rows as a table if they have columns, else as paragraphs.
    fn leave_table(&mut self) {
        let TableRows { rows, .. } = std::mem::take(&mut self.table);
        let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
        if columns == 0 {
            return;
        }
        self.in_list = false;
        if columns == 1 {
            for text in rows.into_iter().flatten() {
                self.gap(false);
                self.out.push_str(&text);
                self.out.push('\n');
            }
            return;
        }
        self.gap(false);
        for (number, row) in rows.iter().enumerate() {
            for column in 0..columns {
                self.out.push_str("| ");
                self.out.push_str(row.get(column).map_or("", String::as_str));
                self.out.push(' ');
            }
            self.out.push_str("|\n");
            if number == 0 {
                self.out.push_str(&"| --- ".repeat(columns));
                self.out.push_str("|\n");
            }
        }
    }

    fn leave_code(&mut self) {
        if self.code.take().is_some() {
            self.out.push_str("```\n");
            self.in_list = false;
        }
    }
}

/// One line of text with its emphasis, code and links.
struct Inline<'a, 'b> {
    tree: &'a Tree<'b>,
    base: &'a Base,
    out: String,
    /// Inline elements that are open, the outermost first.
    open: Vec<usize>,
    blank: bool,
}

impl<'a, 'b> Inline<'a, 'b> {
    fn of(tree: &'a Tree<'b>, segment: &Segment, base: &'a Base) -> String {
        let mut inline = Self { tree, base, out: String::new(), open: Vec::new(), blank: false };
        for (at, text) in segment.texts(tree) {
            inline.text(text, at, segment.block);
        }
        inline.blank = false;
        inline.shift(&[]);
        inline.out
    }

    fn text(&mut self, text: &str, at: usize, block: usize) {
        let mut around = Vec::new();
        let mut above = self.tree.items[at].parent;
        while above > block {
            if !self.mark(above, true).is_empty() {
                around.push(above);
            }
            above = self.tree.items[above].parent;
        }
        around.reverse();
        self.blank |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            self.shift(&around);
            let in_code = around.iter().any(|element| self.tree.items[*element].tag == Tag::Code);
            self.word(word, in_code);
            self.blank = true;
        }
        if !text.trim().is_empty() && !text.ends_with(char::is_whitespace) {
            self.blank = false;
        }
    }

    /// Closes and opens elements between the last word and the next one.
    fn shift(&mut self, around: &[usize]) {
        let same = self.open.iter().zip(around).take_while(|(a, b)| a == b).count();
        while self.open.len() > same {
            let closing = self.open.pop().expect("longer than what stays");
            let mark = self.mark(closing, false);
            self.out.push_str(&mark);
        }
        if self.blank && !self.out.is_empty() {
            self.out.push(' ');
        }
        self.blank = false;
        for element in &around[same..] {
            let mark = self.mark(*element, true);
            self.out.push_str(&mark);
            self.open.push(*element);
        }
    }

    fn mark(&self, element: usize, opens: bool) -> String {
        let item = &self.tree.items[element];
        match item.tag {
            Tag::Strong => "**".to_owned(),
            Tag::Em => "*".to_owned(),
            Tag::Code => "`".to_owned(),
            Tag::A => match self.target(item.attribute("href")) {
                Some(_) if opens => "[".to_owned(),
                Some(url) => format!("]({url})"),
                None => String::new(),
            },
            _ => String::new(),
        }
    }

    fn target(&self, href: Option<&str>) -> Option<String> {
        let url = self.base.parse(href?)?;
        matches!(url.scheme(), "http" | "https" | "mailto").then(|| url.to_string())
    }

    fn word(&mut self, word: &str, in_code: bool) {
        if in_code {
            self.out.push_str(word);
            return;
        }
        // What would begin a block at the start of a line.
        let begins = self.out.is_empty() && matches!(word, "-" | "+" | "=" | ">")
            || self.out.is_empty() && word.starts_with('#');
        if begins {
            self.out.push('\\');
        }
        for c in word.chars() {
            match c {
                '\\' | '`' | '*' | '[' | ']' | '<' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}' | '\u{00AD}' | '\0' => {}
                c => self.out.push(c),
            }
        }
    }
}
