//! Element names as numbers, and what each says of the text in it.

/// What an element is, as far as the text of a page is concerned.
///
/// The order is part of the learned model, to which a tag is its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rustfmt::skip]
pub(super) enum Tag {
    /// A text, or an element of no meaning here.
    Other,
    A, Address, Area, Article, Aside, Base, Blockquote, Body, Br, Button, Caption, Center, Code,
    Dd, Details, Dialog, Div, Dl, Dt, Em, Fieldset, Figcaption, Figure, Font, Footer, Form, Frame,
    H1, H2, H3, H4, H5, H6, Header, Hr, Html, Iframe, Img, Label, Li, Link, Main, Menu, Meta,
    Nav, Noscript, Ol, P, Pre, Section, Span, Strong, Summary, Table, Tbody, Td, Tfoot, Th, Thead,
    Time, Title, Tr, Ul,
    /// Never part of the text: scripts, styles, form fields, foreign content.
    NotText,
}

impl Tag {
    /// Reads the name of an element, which the parser has put in lower case.
    #[rustfmt::skip]
    pub(super) fn of(name: &str) -> Self {
        match name {
            "a" => Self::A, "address" => Self::Address, "area" => Self::Area,
            "article" => Self::Article, "aside" => Self::Aside, "base" => Self::Base,
            "blockquote" => Self::Blockquote, "body" => Self::Body, "br" => Self::Br,
            "button" => Self::Button, "caption" => Self::Caption, "center" => Self::Center,
            "code" | "kbd" | "samp" | "tt" => Self::Code, "dd" => Self::Dd,
            "details" => Self::Details, "dialog" => Self::Dialog, "div" => Self::Div,
            "dl" => Self::Dl, "dt" => Self::Dt, "em" | "i" => Self::Em,
            "fieldset" => Self::Fieldset, "figcaption" => Self::Figcaption,
            "figure" => Self::Figure, "font" => Self::Font, "footer" => Self::Footer,
            "form" => Self::Form, "frame" => Self::Frame, "h1" => Self::H1, "h2" => Self::H2,
            "h3" => Self::H3, "h4" => Self::H4, "h5" => Self::H5, "h6" => Self::H6,
            "header" | "hgroup" => Self::Header, "hr" => Self::Hr, "html" => Self::Html,
            "iframe" => Self::Iframe, "img" | "image" => Self::Img, "label" => Self::Label,
            "li" => Self::Li, "link" => Self::Link, "main" => Self::Main, "menu" => Self::Menu,
            "meta" => Self::Meta, "nav" => Self::Nav,
            "noscript" => Self::Noscript, "ol" => Self::Ol, "p" => Self::P,
            "pre" | "listing" | "xmp" | "plaintext" => Self::Pre, "section" => Self::Section,
            "span" => Self::Span, "strong" | "b" => Self::Strong, "summary" => Self::Summary,
            "table" => Self::Table, "tbody" => Self::Tbody, "td" => Self::Td,
            "tfoot" => Self::Tfoot, "th" => Self::Th, "thead" => Self::Thead,
            "time" => Self::Time, "title" => Self::Title, "tr" => Self::Tr, "ul" => Self::Ul,
            "script" | "style" | "template" | "head" | "svg" | "math" | "object"
            | "embed" | "select" | "textarea" | "input" | "audio" | "video" | "canvas"
            | "datalist" | "noframes" | "map" | "applet" | "meter" | "progress" => Self::NotText,
            _ => Self::Other,
        }
    }

    /// Starts and ends a line.
    #[rustfmt::skip]
    pub(super) const fn is_block(self) -> bool {
        matches!(
            self,
            Self::Address | Self::Article | Self::Aside | Self::Blockquote | Self::Body
                | Self::Br | Self::Button | Self::Caption | Self::Center | Self::Dd
                | Self::Details | Self::Dialog | Self::Div | Self::Dl | Self::Dt | Self::Fieldset
                | Self::Figcaption | Self::Figure | Self::Footer | Self::Form | Self::H1
                | Self::H2 | Self::H3 | Self::H4 | Self::H5 | Self::H6 | Self::Header | Self::Hr
                | Self::Html | Self::Li | Self::Main | Self::Menu | Self::Nav | Self::Ol
                | Self::Noscript | Self::P | Self::Pre | Self::Section | Self::Summary | Self::Table
                | Self::Tbody | Self::Td | Self::Tfoot | Self::Th | Self::Thead | Self::Tr
                | Self::Ul
        )
    }

    /// A heading's level, 1 to 6.
    pub(super) const fn heading(self) -> Option<u8> {
        match self {
            Self::H1 => Some(1),
            Self::H2 => Some(2),
            Self::H3 => Some(3),
            Self::H4 => Some(4),
            Self::H5 => Some(5),
            Self::H6 => Some(6),
            _ => None,
        }
    }

    /// Its text is not running text of the page.
    pub(super) const fn is_not_text(self) -> bool {
        matches!(self, Self::NotText | Self::Iframe | Self::Title)
    }
}

/// Bytes of an address in itself, such as an image, beyond which it is not kept.
const DATA_BYTES_MAX: usize = 1 << 10;

/// Tells whether an attribute is asked for by anybody here, or changes what a parser makes of a
/// page. Attributes that are not are left out before the parse: two of three bytes of all tags.
pub(super) fn is_read(name: &[u8], value: &[u8]) -> bool {
    let mut buffer = [0; 16];
    let Some(lower) = buffer.get_mut(..name.len()) else { return false };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    match &*lower {
        b"alt" | b"aria-hidden" | b"class" | b"content" | b"data-lazy-src" | b"data-nosnippet"
        | b"data-original" | b"data-src" | b"datetime" | b"encoding" | b"height" | b"hidden"
        | b"href" | b"hreflang" | b"http-equiv" | b"id" | b"itemprop" | b"lang" | b"name"
        | b"property" | b"rel" | b"role" | b"start" | b"title" | b"type" | b"width" => true,
        b"src" => value.len() < DATA_BYTES_MAX || !value.starts_with(b"data:"),
        b"style" => {
            let has = |word: &[u8]| value.windows(word.len()).any(|part| part == word);
            has(b"none") || has(b"hidden")
        }
        _ => false,
    }
}
