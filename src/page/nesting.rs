//! A rough copy of a parser's stack of open elements, which tells tags that go too far.
//!
//! Parsing HTML is quadratic in the depth of open elements, and in the formatting elements that are
//! never closed (each paragraph opens them anew).

use xxhash_rust::xxh3::xxh3_64;

/// Levels of open elements. Source: browsers flatten deeper trees at about the same depth.
const DEPTH_MAX: usize = 512;

/// Formatting elements that may be opened anew in one page, and that may wait for it at a time.
/// Beyond that, all formatting elements are left out, which changes no text.
const REOPENED_MAX: usize = 50_000;
const WAITING_MAX: usize = 256;

/// Tags `html` and `body` that keep their attributes: each adds them to those of the first.
const ROOTS_MAX: usize = 1024;

/// Copies of the same formatting element that a parser opens anew. Source: the "Noah's Ark clause".
const SAME_MAX: usize = 3;

/// What an element does to the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// Never open.
    Void,
    /// Its content is no markup.
    Raw,
    /// `html`, `head`, `body`: open once.
    Root,
    /// Opened anew after a block that ended within it.
    Formatting,
    /// Any other inline element.
    Inline,
    /// A block, which ends a paragraph.
    Block,
    /// `p`, and others whose end is implied by the next of their group.
    Implied(EndGroup),
    /// An element that end tags inside do not reach beyond.
    Scope,
    /// The same, but formatting elements do.
    Table,
    /// `svg`, `math`.
    Foreign,
    /// An element of SVG or `MathML` that holds HTML.
    Island,
}

/// Elements that end each other, and the elements beyond which they do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndGroup {
    Paragraph,
    Item,
    Term,
    Cell,
    Row,
    Rows,
    Option,
    Ruby,
}

/// What an element of a name in lower case does.
pub(super) fn kind(name: &[u8]) -> ElementKind {
    match name {
        b"area" | b"base" | b"basefont" | b"bgsound" | b"br" | b"col" | b"embed" | b"frame"
        | b"hr" | b"image" | b"img" | b"input" | b"keygen" | b"link" | b"meta" | b"param"
        | b"source" | b"track" | b"wbr" => ElementKind::Void,
        b"script" | b"style" | b"textarea" | b"title" | b"xmp" | b"iframe" | b"noembed"
        | b"noframes" | b"plaintext" => ElementKind::Raw,
        b"html" | b"head" | b"body" => ElementKind::Root,
        b"a" | b"b" | b"big" | b"code" | b"em" | b"font" | b"i" | b"nobr" | b"s" | b"small"
        | b"strike" | b"strong" | b"tt" | b"u" => ElementKind::Formatting,
        b"p" => ElementKind::Implied(EndGroup::Paragraph),
        b"li" => ElementKind::Implied(EndGroup::Item),
        b"dd" | b"dt" => ElementKind::Implied(EndGroup::Term),
        b"td" | b"th" | b"caption" => ElementKind::Implied(EndGroup::Cell),
        b"tr" => ElementKind::Implied(EndGroup::Row),
        b"tbody" | b"thead" | b"tfoot" | b"colgroup" => ElementKind::Implied(EndGroup::Rows),
        b"option" => ElementKind::Implied(EndGroup::Option),
        b"rb" | b"rt" | b"rp" | b"rtc" => ElementKind::Implied(EndGroup::Ruby),
        b"applet" | b"marquee" | b"object" | b"template" => ElementKind::Scope,
        b"table" => ElementKind::Table,
        b"svg" | b"math" => ElementKind::Foreign,
        b"foreignobject" | b"desc" | b"mi" | b"mo" | b"mn" | b"ms" | b"mtext"
        | b"annotation-xml" => ElementKind::Island,
        b"address" | b"article" | b"aside" | b"blockquote" | b"button" | b"center" | b"details"
        | b"dialog" | b"dir" | b"div" | b"dl" | b"fieldset" | b"figcaption" | b"figure"
        | b"footer" | b"form" | b"frameset" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6"
        | b"header" | b"hgroup" | b"listing" | b"main" | b"menu" | b"nav" | b"ol" | b"pre"
        | b"search" | b"section" | b"select" | b"summary" | b"ul" => ElementKind::Block,
        _ => ElementKind::Inline,
    }
}

/// Elements that end SVG and `MathML`. Source: the rules for parsing tokens in foreign content.
fn breaks_out(name: &[u8], tag: &str) -> bool {
    match name {
        b"b" | b"big" | b"blockquote" | b"body" | b"br" | b"center" | b"code" | b"dd" | b"div"
        | b"dl" | b"dt" | b"em" | b"embed" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6"
        | b"head" | b"hr" | b"i" | b"img" | b"li" | b"listing" | b"menu" | b"meta" | b"nobr"
        | b"ol" | b"p" | b"pre" | b"ruby" | b"s" | b"small" | b"span" | b"strong" | b"strike"
        | b"sub" | b"sup" | b"table" | b"tt" | b"u" | b"ul" | b"var" => true,
        b"font" => {
            let tag = tag.to_ascii_lowercase();
            [" color", " face", " size"].iter().any(|attribute| tag.contains(attribute))
        }
        _ => false,
    }
}

/// An open element.
#[derive(Debug, Clone, Copy)]
struct OpenElement {
    /// Hash of its name.
    name: u64,
    /// Hash of its tag.
    tag: u64,
    kind: ElementKind,
    /// It was left out.
    left_out: bool,
    /// A formatting element that is opened anew if a block ends it.
    active: bool,
}

/// What becomes of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagAction {
    Keep,
    /// It is kept, and no markup follows until its end tag.
    Raw,
    /// It is kept without its attributes.
    Bare,
    LeaveOut,
}

/// The open elements.
#[derive(Debug, Default)]
pub(super) struct Stack {
    /// Leave out all formatting elements but links.
    plain: bool,
    open: Vec<OpenElement>,
    /// Formatting elements that wait to be opened anew; none where a cell or the like began.
    waiting: Vec<Option<OpenElement>>,
    /// Those that are none.
    marks: usize,
    /// Open elements that were not left out.
    depth: usize,
    /// Open `svg` and `math`, and islands of HTML in them.
    foreign: usize,
    islands: usize,
    roots: usize,
    /// Open tables.
    tables: usize,
    reopened: usize,
}

impl Stack {
    /// `plain`: leave out all formatting elements but links.
    pub(super) fn new(plain: bool) -> Self {
        Self { plain, ..Self::default() }
    }

    /// More formatting elements are opened anew than a page may.
    pub(super) fn is_too_much(&self) -> bool {
        let waiting = self.waiting.len() - self.marks;
        !self.plain && (self.reopened > REOPENED_MAX || waiting > WAITING_MAX)
    }

    fn is_foreign(&self) -> bool {
        self.foreign > self.islands
    }

    /// The innermost open element is one of SVG or `MathML`.
    pub(super) fn takes_cdata(&self) -> bool {
        self.is_foreign() || self.open.last().is_some_and(|last| last.kind == ElementKind::Island)
    }

    /// Begins an element: its name in lower case, its tag as it is written, which may be
    /// `self_closing`.
    pub(super) fn start(
        &mut self,
        name: &[u8],
        kind: ElementKind,
        tag: &str,
        self_closing: bool,
    ) -> TagAction {
        let is_kept = if self.is_foreign() && !breaks_out(name, tag) {
            // The title of a drawing holds HTML.
            let kind = if name == b"title" { ElementKind::Island } else { kind };
            self_closing || self.push(id(name), 0, kind)
        } else {
            while self.is_foreign() && self.pop() {}
            match kind {
                ElementKind::Raw => return TagAction::Raw,
                ElementKind::Root => {
                    self.roots += 1;
                    return if self.roots > ROOTS_MAX { TagAction::Bare } else { TagAction::Keep };
                }
                ElementKind::Foreign => {
                    self.reopen();
                    self_closing || self.push(id(name), 0, kind)
                }
                _ => self.start_html(name, kind, tag),
            }
        };
        if is_kept { TagAction::Keep } else { TagAction::LeaveOut }
    }

    /// Returns whether the tag is kept.
    fn start_html(&mut self, name: &[u8], kind: ElementKind, tag: &str) -> bool {
        let hashed = id(name);
        match kind {
            ElementKind::Raw | ElementKind::Root | ElementKind::Foreign => true,
            ElementKind::Void => {
                match name {
                    b"hr" => self.imply(EndGroup::Paragraph),
                    b"br" | b"embed" | b"image" | b"img" | b"input" | b"keygen" | b"wbr" => {
                        self.reopen();
                    }
                    _ => {}
                }
                true
            }
            ElementKind::Formatting if self.plain && name != b"a" => false,
            ElementKind::Formatting => {
                if matches!(name, b"a" | b"nobr") {
                    self.end_formatting(hashed);
                }
                self.reopen();
                let whole = hash(tag.as_bytes());
                self.forget_same(whole);
                self.push(hashed, whole, kind)
            }
            ElementKind::Inline | ElementKind::Island => {
                self.reopen();
                self.push(hashed, 0, kind)
            }
            // Without a table, nobody opens its parts.
            ElementKind::Implied(EndGroup::Cell | EndGroup::Row | EndGroup::Rows)
                if self.tables == 0 =>
            {
                true
            }
            ElementKind::Implied(group) => {
                match group {
                    EndGroup::Item | EndGroup::Term => self.imply(EndGroup::Paragraph),
                    EndGroup::Option | EndGroup::Ruby => self.reopen(),
                    EndGroup::Row | EndGroup::Rows => self.imply(EndGroup::Cell),
                    _ => {}
                }
                if group != EndGroup::Ruby || self.is_open(hash(b"ruby")) {
                    self.imply(group);
                }
                self.push(hashed, 0, kind)
            }
            ElementKind::Scope | ElementKind::Table | ElementKind::Block => {
                if kind == ElementKind::Table {
                    self.end_table(hashed);
                }
                self.imply(EndGroup::Paragraph);
                self.push(hashed, 0, kind)
            }
        }
    }

    /// Returns whether the end tag is kept.
    pub(super) fn end(&mut self, name: &[u8], kind: ElementKind) -> bool {
        let name = id(name);
        if kind == ElementKind::Formatting && !self.is_foreign() {
            return !(self.plain && name != hash(b"a")) && self.end_formatting(name);
        }
        let left_out = self.open.last().is_some_and(|last| last.left_out);
        let Some(at) = self.find(name, kind) else { return !left_out };
        let left_out = self.open[at].left_out;
        if name == hash(b"form") {
            // Only the form itself ends, not what was opened in it.
            self.remove(at);
        } else {
            while self.open.len() > at && self.pop() {}
        }
        !left_out
    }

    /// The open element that an end tag means.
    fn find(&self, name: u64, kind: ElementKind) -> Option<usize> {
        let in_table =
            matches!(kind, ElementKind::Implied(EndGroup::Cell | EndGroup::Row | EndGroup::Rows));
        for (at, open) in self.open.iter().enumerate().rev().take(DEPTH_MAX) {
            if open.name == name {
                return Some(at);
            }
            let is_cell = open.kind == ElementKind::Implied(EndGroup::Cell);
            let stops = match kind {
                _ if self.is_foreign() => open.kind == ElementKind::Island,
                _ if in_table => matches!(open.kind, ElementKind::Scope | ElementKind::Table),
                ElementKind::Scope | ElementKind::Table => false,
                ElementKind::Inline | ElementKind::Island => {
                    !matches!(open.kind, ElementKind::Inline | ElementKind::Formatting)
                }
                _ => {
                    is_cell
                        || matches!(
                            open.kind,
                            ElementKind::Scope | ElementKind::Table | ElementKind::Island
                        )
                }
            };
            if stops {
                return None;
            }
        }
        None
    }

    /// Ends an open element whose end the next of its group implies.
    fn imply(&mut self, group: EndGroup) {
        for (at, open) in self.open.iter().enumerate().rev().take(DEPTH_MAX) {
            let in_table = matches!(group, EndGroup::Cell | EndGroup::Row | EndGroup::Rows);
            match open.kind {
                ElementKind::Implied(other) if other == group => {
                    while self.open.len() > at && self.pop() {}
                    return;
                }
                ElementKind::Scope
                | ElementKind::Table
                | ElementKind::Island
                | ElementKind::Foreign => return,
                // Only an option that was opened last ends.
                _ if group == EndGroup::Option => return,
                ElementKind::Implied(EndGroup::Cell) if group == EndGroup::Paragraph => return,
                // An item of a list in a term of another one is no next item.
                ElementKind::Implied(EndGroup::Paragraph) => {}
                ElementKind::Implied(_) if matches!(group, EndGroup::Item | EndGroup::Term) => {
                    return;
                }
                ElementKind::Formatting | ElementKind::Inline if group == EndGroup::Ruby => return,
                ElementKind::Block if !in_table && group != EndGroup::Paragraph => return,
                _ => {}
            }
        }
    }

    /// A table that begins in a table, and not in a cell of it, ends it.
    fn end_table(&mut self, table: u64) {
        let holds = |open: &OpenElement| {
            use ElementKind::{Implied, Island, Scope, Table};
            matches!(open.kind, Implied(EndGroup::Cell) | Scope | Table | Island)
        };
        let mut open = self.open.iter().enumerate().rev().take(DEPTH_MAX);
        let Some((at, open)) = open.find(|(_, open)| holds(open)) else { return };
        if open.name == table {
            while self.open.len() > at && self.pop() {}
        }
    }

    fn push(&mut self, name: u64, tag: u64, kind: ElementKind) -> bool {
        let left_out = self.depth >= DEPTH_MAX;
        self.depth += usize::from(!left_out);
        match kind {
            ElementKind::Foreign => self.foreign += 1,
            ElementKind::Island if self.is_foreign() => self.islands += 1,
            ElementKind::Table => self.tables += 1,
            _ => {}
        }
        let kind = if kind == ElementKind::Island && self.foreign == 0 {
            ElementKind::Inline
        } else {
            kind
        };
        if marks(kind) {
            self.waiting.push(None);
            self.marks += 1;
        }
        let active = kind == ElementKind::Formatting && !left_out;
        self.open.push(OpenElement { name, tag, kind, left_out, active });
        !left_out
    }

    fn pop(&mut self) -> bool {
        if let Some(open) = self.open.pop() {
            self.close(open);
            if open.active {
                self.waiting.push(Some(open));
            }
            return true;
        }
        false
    }

    fn remove(&mut self, at: usize) {
        let open = self.open.remove(at);
        self.close(open);
    }

    fn close(&mut self, open: OpenElement) {
        self.depth -= usize::from(!open.left_out);
        match open.kind {
            ElementKind::Foreign => self.foreign = self.foreign.saturating_sub(1),
            ElementKind::Island => self.islands = self.islands.saturating_sub(1),
            ElementKind::Table => self.tables = self.tables.saturating_sub(1),
            _ => {}
        }
        if marks(open.kind) {
            while self.waiting.pop().is_some_and(|last| last.is_some()) {}
            self.marks = self.marks.saturating_sub(1);
        }
    }

    fn is_open(&self, name: u64) -> bool {
        self.open.iter().rev().take(DEPTH_MAX).any(|open| open.name == name)
    }

    /// Opens the formatting elements anew that blocks have ended: before a text, for one.
    pub(super) fn reopen(&mut self) {
        let from = self.waiting.iter().rposition(Option::is_none).map_or(0, |at| at + 1);
        if from == self.waiting.len() || self.is_foreign() {
            return;
        }
        self.reopened += self.waiting.len() - from;
        for open in self.waiting.split_off(from).into_iter().flatten() {
            self.push(open.name, open.tag, open.kind);
        }
    }

    /// Ends a formatting element; the blocks in it go on. Returns whether the tag is kept.
    fn end_formatting(&mut self, name: u64) -> bool {
        let open = self.open.iter().enumerate().rev().take(DEPTH_MAX);
        let mut open = open.take_while(|(_, open)| !marks(open.kind));
        if let Some((at, found)) = open.find(|(_, open)| open.name == name) {
            let left_out = found.left_out;
            // The elements within are made anew around what they hold.
            self.reopened += (self.open.len() - at - 1).min(8);
            self.remove(at);
            return !left_out;
        }
        let waits = |open: &Option<OpenElement>| open.is_some_and(|open| open.name == name);
        if let Some(at) = self.waiting.iter().rposition(waits) {
            self.waiting.remove(at);
        }
        true
    }

    /// Keeps the oldest of several equal formatting elements from being opened anew.
    fn forget_same(&mut self, tag: u64) {
        let open = self.open.iter().enumerate().rev().take(DEPTH_MAX);
        let open = open.take_while(|(_, open)| !marks(open.kind));
        let same: Vec<usize> =
            open.filter(|(_, open)| open.active && open.tag == tag).map(|(at, _)| at).collect();
        if let Some(oldest) = same.get(SAME_MAX - 1) {
            self.open[*oldest].active = false;
        }
    }
}

/// Formatting elements do not go beyond it.
fn marks(kind: ElementKind) -> bool {
    matches!(kind, ElementKind::Scope | ElementKind::Implied(EndGroup::Cell))
}

/// Stands for a name. An end tag of one level of heading ends another one too.
fn id(name: &[u8]) -> u64 {
    match name {
        b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => hash(b"h1"),
        name => hash(name),
    }
}

fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}
