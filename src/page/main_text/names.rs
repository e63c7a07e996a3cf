//! What class names and identifiers say of an element, as bits.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
/// Names of the bits, in their order.
pub(super) const MEANINGS: [&str; 24] = [
    "nav", "footer", "header", "side", "comment", "share", "related", "ad", "popup", "byline",
    "tags", "pager", "main", "body", "forum", "product", "title", "lead", "media", "card",
    "hidden", "code", "fold", "author",
];

macro_rules! bits {
    ($($name:ident = $at:literal),* $(,)?) => { $(const $name: u32 = 1 << $at;)* };
}

bits! {
    NAV = 0, FOOTER = 1, HEADER = 2, SIDE = 3, COMMENT = 4, SHARE = 5, RELATED = 6, AD = 7,
    POPUP = 8, BYLINE = 9, TAGS = 10, PAGER = 11, MAIN = 12, BODY = 13, FORUM = 14, PRODUCT = 15,
    TITLE = 16, LEAD = 17, MEDIA = 18, CARD = 19, HIDDEN = 20, CODE = 21, FOLD = 22, AUTHOR = 23,
}

/// The main text names itself.
pub(super) const SAYS_MAIN: u32 = MAIN | BODY;
/// Something around the main text names itself.
pub(super) const SAYS_BOILERPLATE: u32 =
    NAV | FOOTER | SIDE | COMMENT | SHARE | RELATED | AD | POPUP | PAGER;

/// Pieces that tell wherever they stand in a name: `commentlist`, `leftsidebar`.
const PIECES: [(&str, u32); 121] = [
    ("navi", NAV),
    ("navbar", NAV),
    ("menu", NAV),
    ("daohang", NAV),
    ("sitemap", NAV),
    ("topbar", NAV | HEADER),
    ("subnav", NAV),
    ("footer", FOOTER),
    ("dibu", FOOTER),
    ("copyright", FOOTER),
    ("banquan", FOOTER),
    ("disclaim", FOOTER),
    ("colophon", FOOTER),
    ("header", HEADER),
    ("masthead", HEADER),
    ("banner", HEADER | AD),
    ("sidebar", SIDE),
    ("aside", SIDE),
    ("widget", SIDE),
    ("comment", COMMENT),
    ("disqus", COMMENT),
    ("respond", COMMENT),
    ("pinglun", COMMENT),
    ("huifu", COMMENT | FORUM),
    ("share", SHARE),
    ("sharing", SHARE),
    ("social", SHARE),
    ("facebook", SHARE),
    ("twitter", SHARE),
    ("weibo", SHARE),
    ("jiathis", SHARE),
    ("addthis", SHARE),
    ("addtoany", SHARE),
    ("fenxiang", SHARE),
    ("related", RELATED),
    ("relate", RELATED),
    ("recommend", RELATED),
    ("similar", RELATED),
    ("trending", RELATED),
    ("popular", RELATED),
    ("mostread", RELATED),
    ("latest", RELATED),
    ("recent", RELATED),
    ("readmore", RELATED),
    ("readnext", RELATED),
    ("suggest", RELATED),
    ("xiangguan", RELATED),
    ("tuijian", RELATED),
    ("advert", AD),
    ("sponsor", AD),
    ("promo", AD),
    ("outbrain", AD),
    ("taboola", AD),
    ("guanggao", AD),
    ("adsense", AD),
    ("cookie", POPUP),
    ("consent", POPUP),
    ("gdpr", POPUP),
    ("modal", POPUP),
    ("popup", POPUP),
    ("overlay", POPUP),
    ("newsletter", POPUP),
    ("subscri", POPUP),
    ("paywall", POPUP),
    ("signup", POPUP),
    ("login", POPUP),
    ("register", POPUP),
    ("byline", BYLINE),
    ("publish", BYLINE),
    ("dateline", BYLINE),
    ("timestamp", BYLINE),
    ("laiyuan", BYLINE),
    ("posted", BYLINE),
    ("categor", TAGS),
    ("keyword", TAGS),
    ("pagination", PAGER),
    ("pager", PAGER),
    ("paging", PAGER),
    ("fenye", PAGER),
    ("breadcrumb", PAGER | NAV),
    ("crumb", PAGER | NAV),
    ("toolbar", PAGER),
    ("content", MAIN),
    ("article", MAIN),
    ("story", MAIN),
    ("entry", MAIN),
    ("zhengwen", BODY),
    ("neirong", MAIN),
    ("detail", MAIN),
    ("artibody", BODY),
    ("bodytext", BODY),
    ("trs_editor", BODY),
    ("endtext", BODY),
    ("richtext", BODY),
    ("wysiwyg", BODY),
    ("markdown", BODY),
    ("message", FORUM),
    ("thread", FORUM),
    ("forum", FORUM),
    ("answer", FORUM),
    ("question", FORUM),
    ("product", PRODUCT),
    ("price", PRODUCT),
    ("review", PRODUCT | COMMENT),
    ("rating", PRODUCT),
    ("headline", TITLE),
    ("title", TITLE),
    ("biaoti", TITLE),
    ("summary", LEAD),
    ("abstract", LEAD),
    ("excerpt", LEAD | CARD),
    ("descri", LEAD),
    ("standfirst", LEAD),
    ("caption", MEDIA),
    ("gallery", MEDIA),
    ("photo", MEDIA),
    ("slide", MEDIA),
    ("carousel", MEDIA | CARD),
    ("teaser", CARD | RELATED),
    ("hidden", HIDDEN),
    ("accordion", FOLD),
];

/// Words that tell only when they stand alone: `ad` is in `header`, `top` in `topic`.
#[rustfmt::skip]
fn word(word: &str) -> u32 {
    match word {
        "nav" | "channel" | "site" => NAV,
        "foot" | "bottom" | "legal" | "notice" => FOOTER,
        "top" | "logo" | "hero" => HEADER,
        "side" | "rail" | "left" | "right" | "secondary" | "complementary" => SIDE,
        "cmt" | "comments" => COMMENT,
        "reply" | "replies" | "discussion" | "post" | "posts" | "topic" | "viewtopic" => FORUM,
        "follow" | "like" | "likes" | "rss" | "email" | "wechat" | "weixin" | "qrcode" => SHARE,
        "more" | "also" | "hot" | "rank" | "ranking" | "top10" | "upnext" | "next" | "links"
        | "external" => RELATED,
        "ad" | "ads" | "adv" | "dfp" | "gpt" | "gg" => AD,
        "alert" | "toast" | "dialog" | "form" | "search" | "subscribe" | "cta" => POPUP,
        "author" | "bio" | "avatar" | "profile" | "user" | "contributor" | "authors" => AUTHOR,
        "meta" | "date" | "time" | "info" | "source" | "credit" | "editor" | "editors" => BYLINE,
        "tag" | "tags" | "label" | "labels" | "topics" => TAGS,
        "page" | "pages" | "prev" | "skip" | "tools" | "print" | "toc" | "btn" | "button"
        | "prevnext" | "jump" => PAGER,
        "main" | "text" | "body" | "primary" | "col" | "cnt" | "con" => MAIN,
        "prose" | "articlebody" | "entrycontent" | "postcontent" | "postbody" | "storybody"
        | "maincontent" | "mainbody" | "cooked" | "artical" | "rte" => BODY,
        "cart" | "buy" | "sku" | "shop" | "spec" | "specs" | "feature" | "features" => PRODUCT,
        "heading" | "subtitle" | "h1" | "h2" => TITLE,
        "lead" | "intro" | "dek" | "lede" | "deck" => LEAD,
        "figure" | "image" | "img" | "video" | "media" | "player" | "images" => MEDIA,
        "card" | "cards" | "grid" | "tile" | "list" | "item" | "items" | "feed" | "results"
        | "row" | "listing" | "product-list" => CARD,
        "hide" | "sr" | "screen" | "visually" | "collapse" | "noprint" | "offscreen" => HIDDEN,
        "code" | "highlight" | "syntax" | "snippet" => CODE,
        "faq" | "tab" | "tabs" | "panel" | "toggle" => FOLD,
        _ => 0,
    }
}

/// Longest value that is looked at, in bytes.
const BYTES_MAX: usize = 400;

/// Reads what a class or an identifier says.
pub(super) fn meanings(value: &str) -> u32 {
    let value = value.get(..value.floor_char_boundary(BYTES_MAX)).unwrap_or_default();
    let mut lower = [0u8; BYTES_MAX];
    let lower = &mut lower[..value.len()];
    lower.copy_from_slice(value.as_bytes());
    lower.make_ascii_lowercase();
    let Ok(lower) = std::str::from_utf8(lower) else { return 0 };
    let found = pieces().find_overlapping_iter(lower).map(|found| PIECES[found.pattern()].1);
    let mut bits = found.fold(0, |bits, more| bits | more);
    let mut start = 0;
    let bytes = value.as_bytes();
    for at in 0..=bytes.len() {
        let ends = at == bytes.len() || !bytes[at].is_ascii_alphanumeric();
        let humps = at > start
            && at < bytes.len()
            && bytes[at].is_ascii_uppercase()
            && bytes[at - 1].is_ascii_lowercase();
        if ends || humps {
            if let Some(part) = lower.get(start..at).filter(|part| part.len() > 1) {
                bits |= word(part.trim_end_matches(|c: char| c.is_ascii_digit()));
            }
            start = if ends { at + 1 } else { at };
        }
    }
    bits
}

fn pieces() -> &'static AhoCorasick {
    static PIECES_SEARCH: LazyLock<AhoCorasick> = LazyLock::new(|| {
        let mut search = AhoCorasick::builder();
        search
            .kind(Some(AhoCorasickKind::DFA))
            .build(PIECES.map(|(piece, _)| piece))
            .expect("the pieces are few and short")
    });
    &PIECES_SEARCH
}
