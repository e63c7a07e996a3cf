//! Leaves out of a page what nobody reads, and what would be more than a parser can take.
//!
//! The tags are gone over once before the parse. Scripts, styles, comments and most attributes are
//! about half of a page and nobody asks for them. Tags that go too far are left out as well; their
//! text stays.

use std::borrow::Cow;
use std::ops::Range;

use super::nesting::{ElementKind, Stack, TagAction, kind};
use super::scan::{RawTag, Tags};

/// More formatting elements are opened anew than a page may.
struct TooMuch;

/// Leaves out the tags that would make the parser slow, and what nobody reads: the content of
/// scripts and styles, of comments, and most attributes. Borrows a text that needs no change.
pub(super) fn reduced(text: &str) -> Cow<'_, str> {
    Reducer::new(text, false)
        .run()
        .or_else(|_| Reducer::new(text, true).run())
        .unwrap_or(Cow::Borrowed(text))
}

struct Reducer<'a> {
    text: &'a str,
    stack: Stack,
    out: String,
    copied: usize,
}

impl<'a> Reducer<'a> {
    fn new(text: &'a str, plain: bool) -> Self {
        Self { text, stack: Stack::new(plain), out: String::new(), copied: 0 }
    }

    fn run(mut self) -> Result<Cow<'a, str>, TooMuch> {
        let mut tags = Tags::new(self.text);
        let mut end = 0;
        while let Some(tag) = tags.next(self.stack.takes_cdata()) {
            if tag.start > end {
                self.stack.reopen();
            }
            end = tag.end;
            let is_comment = |range: &Range<usize>| range.start < tag.start;
            let (comments, attributes) =
                tags.unread.split_at(tags.unread.partition_point(is_comment));
            self.cut_all(comments);
            let mut buffer = [0; 16];
            let name = lower(tag.name, &mut buffer);
            let kind = kind(name);
            let whole = &self.text[tag.start..tag.end];
            let fate = if !tag.closing {
                self.stack.start(name, kind, whole, tag.self_closing)
            } else if self.stack.end(name, kind) {
                TagAction::Keep
            } else {
                TagAction::LeaveOut
            };
            match fate {
                TagAction::LeaveOut => self.cut(tag.start, tag.end),
                TagAction::Bare => self.cut(tag.start + 1 + tag.name.len(), tag.end - 1),
                TagAction::Keep | TagAction::Raw => {
                    self.cut_attributes(name, kind, &tag, attributes);
                }
            }
            if fate == TagAction::Raw {
                let content = tags.skip_raw(tag.name);
                let is_unread = name == b"style" || name == b"script" && !is_data(whole);
                if let Some(content) = content.filter(|_| is_unread) {
                    self.cut(content.start, content.end);
                }
            }
            if self.stack.is_too_much() {
                return Err(TooMuch);
            }
        }
        self.cut_all(&tags.unread);
        if self.copied == 0 {
            return Ok(Cow::Borrowed(self.text));
        }
        self.out.push_str(&self.text[self.copied..]);
        Ok(Cow::Owned(self.out))
    }

    fn cut(&mut self, from: usize, to: usize) {
        if self.copied == 0 {
            self.out.reserve(self.text.len());
        }
        self.out.push_str(&self.text[self.copied..from]);
        self.copied = to;
    }

    fn cut_all(&mut self, ranges: &[Range<usize>]) {
        for range in ranges {
            self.cut(range.start, range.end);
        }
    }

    /// Leaves out the attributes of a tag that nobody reads, and those that are too many.
    /// Formatting elements keep all, because a parser compares them; links are never compared.
    fn cut_attributes(
        &mut self,
        name: &[u8],
        kind: ElementKind,
        tag: &RawTag<'_>,
        unread: &[Range<usize>],
    ) {
        let end = tag.cut.unwrap_or(tag.end);
        if kind != ElementKind::Formatting || name == b"a" {
            self.cut_all(&unread[..unread.partition_point(|range| range.start < end)]);
        }
        if tag.cut.is_some() {
            self.cut(end, tag.end - 1);
        }
    }
}

/// Tells whether a script is structured data: its type may be written with a character reference.
fn is_data(tag: &str) -> bool {
    let tag = tag.to_ascii_lowercase();
    tag.match_indices("ld").any(|(at, _)| {
        let rest = &tag[at + 2..];
        let plus =
            ["+", "&#43;", "&#x2b;", "&plus;"].iter().find_map(|plus| rest.strip_prefix(plus));
        plus.is_some_and(|rest| rest.starts_with("json"))
    })
}

fn lower<'b>(name: &str, buffer: &'b mut [u8; 16]) -> &'b [u8] {
    let length = name.len().min(buffer.len());
    let short = &mut buffer[..length];
    short.copy_from_slice(&name.as_bytes()[..length]);
    short.make_ascii_lowercase();
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use scraper::Node;
    use scraper::node::Element;

    use super::*;
    use crate::page::tags::is_read;
    use crate::page::tree::{Bound, parse_whole};

    #[test]
    fn what_nobody_reads_is_left_out() {
        let cases = [
            ("<a data-x='1>2' HREF=/y onclick=f(1) class=c>t</a>", "<a  HREF=/y  class=c>t</a>"),
            ("<p/data-x=1/href=y data-y>", "<p/data-x=1/href=y >"),
            ("a<!-- b <p> -->c<!---->d<!-->e", "a<!---->c<!---->d<!-->e"),
            ("<script>a<b</script><style>c</style >d", "<script></script><style></style >d"),
            (
                "<script type='application/LD+json'>{}</script>",
                "<script type='application/LD+json'>{}</script>",
            ),
            (
                "<script type=application/ld&#x2B;json>{}</script>",
                "<script type=application/ld&#x2B;json>{}</script>",
            ),
            ("<b data-x=1>t</b>", "<b data-x=1>t</b>"),
            ("<i style='color:red'>t</i><p style='color:red'>", "<i style='color:red'>t</i><p >"),
            ("<p style='display:none'>t", "<p style='display:none'>t"),
            ("<svg><style>a</style></svg>", "<svg><style>a</style></svg>"),
            ("<script>never ends", "<script>never ends"),
            ("<img src=data:,x>", "<img src=data:,x>"),
            ("a<!-- never ends", "a<!-- never ends"),
        ];
        for (text, left) in cases {
            assert_eq!(reduced(text), left, "{text}");
        }
        let image = format!("<img src='data:image/png;base64,{}' alt=x>", "A".repeat(2000));
        assert_eq!(reduced(&image), "<img  alt=x>");
    }

    /// Elements and texts of a page that is parsed as a whole, without what is left out on purpose.
    fn seen(text: &str) -> Vec<String> {
        seen_in_steps(text, usize::MAX)
    }

    fn seen_in_steps(text: &str, step: usize) -> Vec<String> {
        let html = parse_whole(text, Bound::NONE, step).html;
        let mut seen = Vec::new();
        for node in html.tree.root().descendants() {
            match node.value() {
                Node::Element(element) => {
                    let read = element
                        .attrs()
                        .filter(|(name, value)| is_read(name.as_bytes(), value.as_bytes()));
                    let depth = node.ancestors().count();
                    seen.push(format!("{depth} {} {:?}", element.name(), read.collect::<Vec<_>>()));
                }
                Node::Text(text) => {
                    let around = node.parent().and_then(|parent| parent.value().as_element());
                    let around = around.map(Element::name).unwrap_or_default();
                    if !matches!(around, "script" | "style") {
                        seen.push(text.to_string());
                    }
                }
                _ => {}
            }
        }
        seen
    }

    proptest! {
        /// However broken the markup is, a parser makes the same of what is left of it, in however
        /// small pieces it comes. (Of SVG
        /// and `MathML` whose elements do not match, an attribute may be lost in a text.)
        #[test]
        fn a_reduced_page_is_the_same_page(
            parts in prop::collection::vec(prop::sample::select(vec![
                "<div data-a=b class='c d'>", "</div>", "<p onclick=\"x > y\" id=i>", "</p>",
                "<a href=x target=_blank", " data-q", "='1'", ">", "/>", "\"", "'", "</a>",
                "<b>", "<b data-x=1>", "</b>", "<script>", "<script type='text/x' data-y>",
                "<script type=application/ld+json>", "</script>", "<style media=x>", "</style >",
                "<!--", "-->", "--!>", "<!-", "->", "<!doctype html>", "<![CDATA[", "]]>",
                "<svg viewBox='0 0 1 1'><path d='M0 0'/><style>s</style></svg>",
                "<title>", "</title>",
                "<textarea name=t cols=3>", "</textarea>", "<table border=1>",
                "<tr><td width=3 style='a:b'>",
                "</table>", "<select>", "<option selected>", "</select>", "<li data-i>", "<ul>",
                "</ul>", "words", " ", "é汉", "&amp;", "<noscript>", "</noscript>", "<br data-x/>",
                "<img src=data:,x alt>", "<math><mi>x</mi></math>", "=", "<template>",
            ]), 0..40),
        ) {
            let page = parts.concat();
            prop_assert_eq!(seen(&page), seen(&reduced(&page)), "{:?}", reduced(&page));
            for step in [1, 5] {
                prop_assert_eq!(seen(&page), seen_in_steps(&page, step));
            }
        }
    }
}
