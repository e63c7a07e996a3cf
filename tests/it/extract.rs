//! Reading pages: charsets, links, titles, main text, and input that means harm.

use encoding_rs::Encoding;
use proptest::prelude::*;
use uniqcrawl::base::units::Size;
use uniqcrawl::page::{
    BatchOutput, CharsetSource, Cut, Limits, Memory, Page, RawPage, batch_line, page,
};
use url::Url;

fn read(html: &str) -> Page {
    read_bytes(html.as_bytes(), None)
}

fn read_bytes(bytes: &[u8], content_type: Option<&str>) -> Page {
    let url = Url::parse("http://h/dir/page.html").unwrap();
    page(
        &RawPage { bytes, content_type, url: Some(&url), ..RawPage::default() },
        &Limits::default(),
    )
}

const CHINESE: &str = "国务院办公厅近日印发通知，要求各地区各部门认真贯彻落实，切实做好有关工作。";
const TRADITIONAL: &str = "臺灣的圖書館收藏了許多珍貴的歷史檔案，歡迎讀者前往參觀並查閱資料。";
const JAPANESE: &str = "東京の天気は晴れです。図書館では新しい本がたくさん読めるようになりました。";
const KOREAN: &str =
    "서울의 도서관에서는 새로운 책을 많이 읽을 수 있게 되었습니다. 날씨가 좋습니다.";
const RUSSIAN: &str =
    "В библиотеке города появилось много новых книг, которые можно читать бесплатно.";

/// Every way of declaring a charset gives the same text, without a replacement character.
#[track_caller]
fn charset(label: &str, name: &str, text: &str) {
    let encoding = Encoding::for_label(label.as_bytes()).unwrap();
    let document = |head: &str| {
        let html =
            format!("<html><head>{head}<title>t</title></head><body><p>{text}</p></body></html>");
        let (bytes, _, lost) = encoding.encode(&html);
        assert!(!lost, "{label} can hold the text");
        bytes.into_owned()
    };
    let header = format!("text/html; Charset=\"{label}\"");
    for (bytes, content_type, source) in [
        (document(""), Some(header.as_str()), CharsetSource::Header),
        (document(&format!("<meta charset={label}>")), None, CharsetSource::Declaration),
        (
            document(&format!(
                "<meta http-equiv=\"Content-Type\" content=\"text/html; charset={label}\">"
            )),
            Some("text/html"),
            CharsetSource::Declaration,
        ),
        // A header that cannot be true gives way.
        (
            document(&format!("<meta charset='{label}'>")),
            Some("text/html; charset=utf-8"),
            CharsetSource::Declaration,
        ),
        (document(""), None, CharsetSource::Detected),
    ] {
        let page = read_bytes(&bytes, content_type);
        assert_eq!(page.text, text, "{label} by {source:?}");
        assert_eq!(page.charset.replacements, 0, "{label} by {source:?}");
        assert_eq!(page.charset.source, source, "{label}");
        // Statistics may name a superset that gives the same text.
        if source != CharsetSource::Detected {
            assert_eq!(page.charset.name, name, "{label}");
        }
    }
}

#[test]
fn chinese_charsets_are_read_however_they_are_declared() {
    charset("gb2312", "GBK", &CHINESE.repeat(4));
    charset("gbk", "GBK", &CHINESE.repeat(4));
    charset("big5", "Big5", &TRADITIONAL.repeat(4));
}

#[test]
fn gb18030_characters_beyond_gbk_are_read() {
    let html = format!("<meta charset=gb18030><p>𠮷野家 {CHINESE}</p>");
    let page = read_bytes(&Encoding::for_label(b"gb18030").unwrap().encode(&html).0, None);
    assert!(page.text.starts_with("𠮷野家"), "{}", page.text);
    // Labelled as the smaller set, as half of the Chinese web is.
    let html = format!("<meta charset=gb2312><p>喆镕 {CHINESE}</p>");
    let page = read_bytes(&encoding_rs::GB18030.encode(&html).0, None);
    assert!(page.text.starts_with("喆镕"), "{}", page.text);
}

#[test]
fn other_charsets_are_read_however_they_are_declared() {
    charset("shift_jis", "Shift_JIS", &JAPANESE.repeat(4));
    charset("euc-jp", "EUC-JP", &JAPANESE.repeat(4));
    charset("euc-kr", "EUC-KR", &KOREAN.repeat(4));
    charset("windows-1251", "windows-1251", &RUSSIAN.repeat(4));
    charset("koi8-r", "KOI8-R", &RUSSIAN.repeat(4));
}

#[test]
fn marks_utf8_and_utf16_are_read() {
    let utf8 = read_bytes(format!("<p>{CHINESE}</p>").as_bytes(), Some("text/html; charset=gbk"));
    assert_eq!((utf8.text.as_str(), utf8.charset.source), (CHINESE, CharsetSource::Utf8));
    for (mark, le) in [(true, true), (true, false), (false, true), (false, false)] {
        let html = format!(
            "<html><head><title>t</title></head><body><p>plain words {CHINESE}</p></body></html>"
        );
        let html = if mark { format!("\u{FEFF}{html}") } else { html };
        let bytes: Vec<u8> = html
            .encode_utf16()
            .flat_map(|unit| if le { unit.to_le_bytes() } else { unit.to_be_bytes() })
            .collect();
        let page = read_bytes(&bytes, Some("text/html; charset=utf-16"));
        assert_eq!(page.text, format!("plain words {CHINESE}"), "mark {mark}, little {le}");
    }
    let jis = Encoding::for_label(b"iso-2022-jp").unwrap().encode(JAPANESE).0.into_owned();
    let page = read_bytes(&jis, Some("text/plain; charset=iso-2022-jp"));
    assert_eq!(page.text, JAPANESE);
}

#[test]
fn a_declaration_counts_far_down_and_not_in_a_comment() {
    let filler = format!("<script>{}</script>", "x".repeat(5_000));
    let html = format!("<!-- <meta charset=utf-8> -->{filler}<meta charset=gbk><p>{CHINESE}</p>");
    let page = read_bytes(&encoding_rs::GBK.encode(&html).0, None);
    assert_eq!(page.charset.source, CharsetSource::Declaration);
    assert!(page.text.contains(CHINESE));
}

#[track_caller]
fn links(html: &str, expected: &[&str]) {
    let found = read(html).links;
    let found: Vec<String> = found
        .iter()
        .map(|l| format!("{}{}", l.url, if l.nofollow { " nofollow" } else { "" }))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn links_are_absolute_once_each_and_only_of_the_web() {
    links(
        "<a href='a'>1</a><a href='/b#x'>2</a><a href='/b#y'>3</a><a href='#top'>4</a><a>5</a>\
         <a href='mailto:x@y'>6</a><a href='javascript:f()'>7</a><a href='//other/c'>8</a>\
         <area href='d'><iframe src='e'></iframe><link rel='next' href='f'><a href=' g\n'>9</a>",
        &[
            "http://h/dir/a",
            "http://h/b",
            "http://other/c",
            "http://h/dir/d",
            "http://h/dir/e",
            "http://h/dir/f",
            "http://h/dir/g",
        ],
    );
}

#[test]
fn the_base_and_the_refresh_of_a_page_count() {
    links("<base href='/root/'><base href='/second/'><a href='a'>x</a>", &["http://h/root/a"]);
    links("<meta http-equiv=refresh content=\"0; URL='/next'\">", &["http://h/next"]);
}

#[test]
fn nofollow_counts_unless_the_same_link_is_there_without_it() {
    links("<a rel='ugc NoFollow' href='/a'>x</a>", &["http://h/a nofollow"]);
    links("<a rel=nofollow href='/a'>x</a><a href='/a'>y</a>", &["http://h/a"]);
}

#[test]
fn canonical_robots_and_counts_are_read() {
    let page = read(
        "<link rel=canonical href='/c'><meta name=robots content='noindex,follow'>\
         <meta name=description content='all about it'><meta name=uniqcrawl content=nofollow>\
         <meta name=views content='1,234'><p>x</p>",
    );
    assert_eq!(page.canonical.as_deref(), Some("http://h/c"));
    assert!(page.meta_robots.contains(&("robots".into(), "noindex,follow".into())));
    assert!(page.meta_robots.contains(&("uniqcrawl".into(), "nofollow".into())));
    assert_eq!(page.popularity, Some(1234));
    for (text, count) in [
        ("阅读：<span>88</span>", None),
        ("<span>阅读(1234)</span>", Some(1234)),
        ("点击数：56 次", Some(56)),
        ("<b>2,345 views</b>", Some(2345)),
        ("<p>He reviews 12 books</p>", None),
    ] {
        assert_eq!(read(&format!("<div>{text}</div>")).popularity, count, "{text}");
    }
}

#[test]
fn the_title_loses_the_name_of_the_site() {
    let title = |html: &str| read(html).title;
    assert_eq!(title("<title>A long way home | The Site</title><p>x</p>"), "A long way home");
    assert_eq!(title("<title>国务院印发通知_新闻网</title><p>x</p>"), "国务院印发通知");
    assert_eq!(title("<title>Site: The story</title><h1>The story</h1>"), "The story");
    assert_eq!(title("<title>t</title><meta property='og:title' content='From og'>"), "From og");
    assert_eq!(title("<h1>Only <b>heading</b></h1>"), "Only heading");
    assert_eq!(title("<svg><title>icon</title></svg><p>x</p>"), "");
}

#[test]
fn boilerplate_is_left_out_and_the_text_kept() {
    let story =
        "The bridge over the harbour was opened on Monday, after three years of work. ".repeat(6);
    let html = format!(
        "<body><header><a href=/>Site</a></header><nav><ul><li><a href=/a>News</a></li></ul></nav>\
         <div class='sidebar'><h3>Most read</h3><ul><li><a href=/x>A story of something else</a></li></ul></div>\
         <div id='content'><h1>Bridge opens</h1><p>{story}</p><p>{story}</p></div>\
         <div class='comments'><p>I like bridges, they are great, I walk there often.</p></div>\
         <footer>Copyright 2026, all rights reserved, imprint</footer></body>"
    );
    let text = read(&html).text;
    assert!(text.contains("Bridge opens") && text.contains("three years of work"));
    for other in ["Most read", "News", "I like bridges", "Copyright"] {
        assert!(!text.contains(other), "{other} in {text}");
    }
}

#[test]
fn a_page_with_text_never_yields_none() {
    for html in [
        "<nav>only navigation here</nav>",
        "<footer>Imprint</footer>",
        "plain words",
        "<body class='sidebar'><p>text</p></body>",
        "<form><p>all in a form</p></form>",
        "<table><tr><td>cell</td></tr></table>",
        "<a href=/>just a link</a>",
    ] {
        assert!(!read(html).text.is_empty(), "{html}");
    }
    assert_eq!(read("<script>var x = 1;</script><style>p{}</style>").text, "");
}

#[test]
fn words_of_adjacent_blocks_are_never_glued() {
    let text = read(
        "<div><h2>Head</h2><p>One</p><p>Two<br>Three</p><ul><li>a</li><li>b</li></ul>\
        <table><tr><td>x</td><td>y</td></tr></table></div>",
    )
    .text;
    assert_eq!(text, "Head\nOne\nTwo\nThree\na\nb\nx\ty");
    assert_eq!(read("<p>中<b>文</b><i>字</i> a<b>b</b></p>").text, "中文字 ab");
    assert_eq!(read("<p>a\u{A0}\u{3000} b\u{200B}c</p>").text, "a bc");
    assert_eq!(read("<pre>fn a() {\n    b\n}</pre>").text, "fn a() {\n    b\n}");
}

#[test]
fn languages_are_told_by_script_statistics_and_declaration() {
    let language = |html: &str| read(html).language;
    let of = |text: &str| language(&format!("<p>{text}</p>"));
    assert_eq!(of(CHINESE).as_deref(), Some("zh"));
    assert_eq!(of(JAPANESE).as_deref(), Some("ja"));
    assert_eq!(of(KOREAN).as_deref(), Some("ko"));
    assert_eq!(of(&RUSSIAN.repeat(2)).as_deref(), Some("ru"));
    let english = "The library of the town has many new books, and people read them every day.";
    assert_eq!(of(english).as_deref(), Some("en"));
    assert_eq!(language("<html lang='de-AT'><p>kurz</p>").as_deref(), Some("de"));
    assert_eq!(of("1 2 3"), None);
}

#[test]
fn plain_text_is_not_read_as_markup() {
    let page = read_bytes(b"Title <b>\n\n\n  second   line \n", Some("text/plain"));
    assert_eq!(page.text, "Title <b>\nsecond line");
    assert!(page.links.is_empty());
}

#[test]
fn limits_cut_and_say_so() {
    let limits =
        Limits { input_size_max: Size::from_bytes(100), links_max: 2, ..Limits::default() };
    let html = format!("<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a>{}", "é".repeat(200));
    let url = Url::parse("http://h/").unwrap();
    let input = RawPage {
        bytes: html.as_bytes(),
        content_type: None,
        url: Some(&url),
        ..RawPage::default()
    };
    let cut = page(&input, &limits);
    assert!(cut.cut == Some(Cut::Input) && cut.links.len() == 2);
    assert_eq!((cut.links_beyond, page(&input, &Limits::default()).links_beyond), (1, 0));
    assert!(page(&input, &Limits::default()).cut.is_none());
    let nodes = Limits { nodes_max: 5, ..Limits::default() };
    assert_eq!(page(&input, &nodes).cut, Some(Cut::Tree));
}

#[test]
fn a_batch_keeps_ids_and_names_bad_lines() {
    let answer = |line: &str| {
        serde_json::from_str::<serde_json::Value>(&batch_line(
            line,
            BatchOutput::Text,
            &Memory::new(Size::from_mib(64)),
        ))
        .unwrap()
    };
    let good = answer(r#"{"id":7,"url":"http://h/","html":"<title>T</title><p>Text</p>"}"#);
    assert_eq!(
        (&good["id"], &good["title"], &good["text"]),
        (&7.into(), &"T".into(), &"Text".into())
    );
    assert_eq!(answer(r#"{"id":"b","html_base64":"PHA+eDwvcD4="}"#)["text"], "x");
    assert_eq!(answer(r#"{"id":"b","html_b64":"PHA+eDwvcD4="}"#)["text"], "x");
    assert!(answer(r#"{"id":"c"}"#)["error"].is_string());
    assert!(answer("nonsense")["error"].is_string());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        read_bytes(&bytes, None);
    }

    #[test]
    fn broken_markup_is_read_without_a_panic(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "<div>", "</div>", "<p>", "<table>", "<tr>", "<td>", "</table>", "<a href='x'>",
                "<pre>", "</pre>", "<script>", "</script>", "<!--", "-->", "<svg>", "<title>",
                "text, with commas, and words. ", "文字，", "<", ">", "&amp;", "<b><i></b>",
                "<template>", "<frameset>", "<body class='nav'>", "<article>", "\0", "<select>",
            ]),
            0..80,
        )
    ) {
        let page = read(&parts.concat());
        prop_assert!(page.text.len() <= parts.concat().len() * 4 + 16);
    }
}
