//! Metadata of pages: every source and form of dates, authors and titles; hostile input.

use proptest::prelude::*;
use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::base::units::Size;
use uniqcrawl::page::{BatchOutput, Limits, Memory, Metadata, RawPage, Source, batch_line, page};
use url::Url;

const ADDRESS: &str = "http://h/blog/a-long-story-about-bridges.html";

fn read_at(html: &str, address: &str) -> Metadata {
    let url = Url::parse(address).unwrap();
    let input = RawPage {
        bytes: html.as_bytes(),
        content_type: None,
        url: Some(&url),
        ..RawPage::default()
    };
    page(&input, &Limits::default()).metadata
}

fn read(html: &str) -> Metadata {
    read_at(html, ADDRESS)
}

fn published(metadata: &Metadata) -> Option<String> {
    metadata.published.as_ref().map(|date| date.value.to_string())
}

/// An English page with `head` in its head and `byline` between its heading and its text.
fn english(head: &str, byline: &str) -> String {
    let story = "The bridge over the harbour was opened on Monday, after years of work. ".repeat(4);
    format!(
        "<html lang=en><head><title>The bridge is open | Daily</title>{head}</head><body>\
         <div class=menu><a href=/>Home</a></div><article><h1>The bridge is open</h1>{byline}\
         <p>{story}</p><p>{story}</p></article></body></html>"
    )
}

fn in_language(language: &str, heading: &str, byline: &str, story: &str) -> Metadata {
    let story = story.repeat(6);
    read(&format!(
        "<html lang={language}><title>{heading}</title><body><h1>{heading}</h1>\
         <div>{byline}</div><div><p>{story}</p><p>{story}</p></div></body></html>"
    ))
}

const CHINESE: &str = "国务院办公厅近日印发通知，要求各地区各部门认真贯彻落实，切实做好有关工作。";

fn chinese(byline: &str, start: &str, end: &str) -> Metadata {
    let story = CHINESE.repeat(4);
    read(&format!(
        "<title>国务院印发通知要求做好工作_新闻网</title><body><div><a href=/>首页</a></div>\
         <h2>国务院印发通知要求做好工作</h2><div>{byline}</div>\
         <div><p>{start}{story}</p><p>{story}{end}</p></div><div>相关新闻</div></body>"
    ))
}

#[track_caller]
fn dated(metadata: &Metadata, date: &str, source: Source) {
    let found = metadata.published.as_ref().expect("a date");
    assert_eq!((found.value.to_string().as_str(), found.source), (date, source));
    assert!(found.confidence >= 0.5 && found.confidence <= 1.0);
}

#[track_caller]
fn written(metadata: &Metadata, authors: &str) {
    assert_eq!(metadata.byline(), authors, "{:?}", metadata.authors);
}

fn ld(json: &str) -> String {
    english(&format!("<script type='application/ld+json'>{json}</script>"), "")
}

#[test]
fn json_ld_is_read_in_all_its_shapes() {
    let article = r#"{"@type":"NewsArticle","headline":"The bridge is open",
        "datePublished":"2024-03-05T10:22:00+08:00","dateModified":"2024-03-06",
        "author":{"@type":"Person","name":"Jane Doe"},"publisher":{"name":"The Daily"}}"#;
    let graph = r#"{"@context":"https://schema.org","@graph":[{"@type":"WebSite","name":"The Daily"},
        {"@type":["Article"],"headline":"The bridge is open","author":{"@id":"jane"},
        "datePublished":"2024-03-05T10:22:00+08:00","dateModified":"2024-03-06"},
        {"@type":"Person","@id":"jane","name":"Jane Doe"}]}"#;
    let nested = format!(r#"{{"@type":"WebPage","name":"x","mainEntity":{article}}}"#);
    let broken =
        article.replace("\"author\"", "\"description\":\"a\n\tb \"quoted\" c\",\"author\"");
    for json in [
        article.to_owned(),
        format!("[{article}]"),
        graph.to_owned(),
        nested,
        format!("<!-- {article} -->"),
        format!("//<![CDATA[\n{article}\n//]]>"),
        article.replace("}}", ",},}"),
        broken,
        article[..article.len() - 2].to_owned(),
    ] {
        let metadata = read(&ld(&json));
        dated(&metadata, "2024-03-05T10:22:00+08:00", Source::JsonLd);
        written(&metadata, "Jane Doe");
        assert_eq!(metadata.modified.unwrap().value.to_string(), "2024-03-06", "{json}");
        assert!(metadata.site.is_some_and(|site| site == "The Daily"), "{json}");
    }
}

#[test]
fn of_several_articles_the_one_of_the_heading_counts() {
    let metadata = read(&ld(r#"[
        {"@type":"Article","headline":"Another story","datePublished":"2020-01-01","author":"No One"},
        {"@type":"Article","headline":"The bridge is open","datePublished":"2024-03-05",
         "author":["Jane Doe",{"givenName":"J\u00f6rg","familyName":"Roe"}]}]"#));
    dated(&metadata, "2024-03-05", Source::JsonLd);
    written(&metadata, "Jane Doe, Jörg Roe");
}

#[test]
fn the_date_of_a_mere_page_is_not_told_unless_something_confirms_it() {
    let json = r#"{"@type":"WebPage","datePublished":"2019-02-03"}"#;
    let head = format!("<script type='application/ld+json'>{json}</script>");
    let plain = read_at(&english(&head, ""), "http://h/services");
    assert_eq!(plain.published, None);
    let shown = read_at(&english(&head, "<p>3 February 2019</p>"), "http://h/services");
    dated(&shown, "2019-02-03", Source::JsonLd);
}

#[test]
fn meta_elements_give_dates_authors_and_the_rest() {
    let metadata = read(&english(
        "<meta property='article:published_time' content='2024-03-05T08:00:00Z'>\
         <meta property='article:modified_time' content='2024-03-07T09:30:00-05:00'>\
         <meta name=author content='By Jane Doe'><meta property='og:site_name' content='The Daily'>\
         <meta name=description content='All &amp;amp; more'><meta name=keywords content='a, b,a'>\
         <link rel=license href='https://creativecommons.org/licenses/by/4.0/'>\
         <link rel=alternate hreflang=de href='/de'><link rel=alternate hreflang='x y' href='/x'>\
         <meta property='og:image' content='/main.jpg'><meta property='og:image:width' content=640>",
        "<img src='/second.png' alt='A bridge' width=300 height=200><img src=/dot.gif width=1>",
    ));
    dated(&metadata, "2024-03-05T08:00:00Z", Source::Meta);
    assert_eq!(metadata.modified.as_ref().unwrap().value.to_string(), "2024-03-07T09:30:00-05:00");
    written(&metadata, "Jane Doe");
    assert_eq!(metadata.site.as_deref(), Some("The Daily"));
    assert_eq!(metadata.description.as_deref(), Some("All & more"));
    assert_eq!(metadata.keywords, ["a", "b"]);
    let licence = "https://creativecommons.org/licenses/by/4.0/";
    assert_eq!(metadata.licence.as_deref(), Some(licence));
    assert_eq!(metadata.alternates.len(), 1);
    assert_eq!(metadata.alternates[0].url, "http://h/de");
    let images: Vec<&str> = metadata.images.iter().map(|image| image.url.as_str()).collect();
    assert_eq!(images, ["http://h/main.jpg", "http://h/second.png"]);
    assert_eq!(metadata.images[0].width, Some(640));
    assert_eq!(metadata.images[1].alt.as_deref(), Some("A bridge"));
}

#[test]
fn names_of_meta_elements_differ() {
    for (name, value) in [
        ("DC.date.issued", "2024-03-05"),
        ("pubdate", "20240305"),
        ("publishdate", " 2024-03-05 "),
        ("citation_publication_date", "2024/03/05"),
        ("parsely-pub-date", "2024-03-05"),
        ("date", "Tue, 05 Mar 2024"),
    ] {
        let metadata = read(&english(&format!("<meta name='{name}' content='{value}'>"), ""));
        dated(&metadata, "2024-03-05", Source::Meta);
    }
    let authors = "<meta name=citation_author content='Doe, Jane'><meta name=citation_author content='Roe, J.'>";
    written(&read(&english(authors, "")), "Doe, Jane, Roe, J.");
}

#[test]
fn time_elements_microdata_and_addresses_give_dates() {
    let time = "<time datetime='2024-03-05T10:00'>today</time>";
    dated(&read(&english("", time)), "2024-03-05T10:00:00", Source::Time);
    let prop = "<span itemprop=datePublished content='2024-03-05'>5.3.</span>\
                <span itemprop=author><b itemprop=name>Jane Doe</b></span>";
    dated(&read(&english("", prop)), "2024-03-05", Source::Microdata);
    written(&read(&english("", prop)), "Jane Doe");
    for path in [
        "2024/03/05/x",
        "2024/3/5/x",
        "2024-03-05/x",
        "20240305/1.htm",
        "2024-03/05/c_1.htm",
        "202403/05/x",
        "2024/0305/x",
    ] {
        let metadata = read_at(&english("", ""), &format!("http://h/n/{path}"));
        dated(&metadata, "2024-03-05", Source::Url);
    }
    for path in ["2024/13/05/x", "1985/03/05/x", "12024030512/x", "2024/03/x"] {
        assert_eq!(read_at(&english("", ""), &format!("http://h/n/{path}")).published, None);
    }
}

#[test]
fn visible_dates_are_read_in_many_forms() {
    for (text, date) in [
        ("March 5, 2024", "2024-03-05"),
        ("Published: Mar. 5th, 2024 at 10:22 pm", "2024-03-05T22:22:00"),
        ("5 March 2024", "2024-03-05"),
        ("Posted on 2024-03-05 10:22:05", "2024-03-05T10:22:05"),
        ("Tuesday, 05 Mar 2024 10:22 GMT", "2024-03-05T10:22:00Z"),
        ("25/03/2024", "2024-03-25"),
        ("2024/3/5", "2024-03-05"),
        ("05-Mar-2024", "2024-03-05"),
    ] {
        dated(&read(&english("", &format!("<p>{text}</p>"))), date, Source::Text);
    }
}

#[test]
fn dates_are_read_in_other_languages() {
    let german =
        "Die neue Brücke über den Hafen wurde nach drei Jahren eröffnet und ist gesperrt. ";
    let russian =
        "В библиотеке города появилось много новых книг, которые можно читать бесплатно. ";
    let french =
        "Le pont du port a été ouvert après trois ans de travaux dans la ville et les rues. ";
    let japanese = "東京の天気は晴れです。図書館では新しい本がたくさん読めるようになりました。";
    let korean = "서울의 도서관에서는 새로운 책을 많이 읽을 수 있게 되었습니다. 날씨가 좋습니다. ";
    for (language, byline, story, date) in [
        ("de", "Veröffentlicht am 05.03.2024 um 10:22 Uhr", german, "2024-03-05T10:22:00"),
        ("de", "5. März 2024", german, "2024-03-05"),
        ("fr", "Publié le 1er mars 2024 à 10:22", french, "2024-03-01T10:22:00"),
        (
            "es",
            "5 de marzo de 2024",
            "La biblioteca de la ciudad tiene muchos libros. ",
            "2024-03-05",
        ),
        (
            "pl",
            "5 marca 2024",
            "Biblioteka miejska ma wiele nowych książek dla dzieci. ",
            "2024-03-05",
        ),
        ("ru", "5 марта 2024 г., 10:22", russian, "2024-03-05T10:22:00"),
        ("el", "5 Μαρτίου 2024", "Η βιβλιοθήκη της πόλης έχει πολλά νέα βιβλία. ", "2024-03-05"),
        ("ja", "2024年3月5日 10時22分", japanese, "2024-03-05T10:22:00"),
        ("ko", "입력 2024. 3. 5. 10:22", korean, "2024-03-05T10:22:00"),
        ("ko", "2024년 3월 5일", korean, "2024-03-05"),
    ] {
        let metadata = in_language(language, "Heading of the page", byline, story);
        dated(&metadata, date, Source::Text);
    }
}

#[test]
fn a_date_that_can_be_read_in_two_ways_needs_evidence() {
    let html = |language: &str| {
        english("", "<p>03/04/2012</p>").replace("lang=en", &format!("lang={language}"))
    };
    assert_eq!(read(&html("en")).published, None);
    dated(&read(&html("en-US")), "2012-03-04", Source::Text);
    dated(&read(&html("en-GB")), "2012-04-03", Source::Text);
    dated(
        &read_at(&html("en"), "http://h.co.uk/blog/story-of-a-bridge"),
        "2012-04-03",
        Source::Text,
    );
    let both = english("<meta name=pubdate content='2012-04-03'>", "<p>03/04/2012</p>");
    dated(&read(&both), "2012-04-03", Source::Meta);
    let same = english("", "<p>04/04/2012</p>");
    dated(&read(&same), "2012-04-04", Source::Text);
}

#[test]
fn dates_of_other_things_are_not_told() {
    for text in [
        "Joined: March 5, 2024",
        "© 2024-03-05 The Daily",
        "Deadline: 5 March 2024",
        "yesterday",
        "2 hours ago",
        "2024",
        "March 2024",
        "9999-99-99",
        "2024-13-01",
        "2023-02-29",
        "1812-03-05",
        "Version 10.2024.1.2",
        "+49 2012 03 04",
    ] {
        let metadata = read(&english("", &format!("<p>{text}</p>")));
        assert_eq!(metadata.published, None, "{text}");
    }
    let prose = "<p>The work, which had been begun by others long before, was started on March 5, \
                 2004 and it went on and on, as such work does, for many a year after that day.</p>";
    assert_eq!(read(&english("", prose)).published, None);
}

#[test]
fn a_change_is_not_a_publication() {
    let changed = read(&english("", "<p>Last updated: March 5, 2024</p>"));
    assert_eq!(published(&changed), None);
    assert_eq!(changed.modified.as_ref().unwrap().value.to_string(), "2024-03-05");
    assert_eq!(changed.date().unwrap().value.to_string(), "2024-03-05");
    let both = "<p>Published: March 5, 2024 | Updated: March 7, 2024</p>";
    let both = read(&english("", both));
    dated(&both, "2024-03-05", Source::Text);
    assert_eq!(both.modified.unwrap().value.to_string(), "2024-03-07");
    let before = "<p>Published: March 5, 2024</p><p>Updated: March 2, 2023</p>";
    assert_eq!(read(&english("", before)).modified, None);
}

#[test]
fn nothing_is_younger_than_the_moment_it_was_fetched() {
    let html = english("<meta name=pubdate content='2024-03-05'>", "");
    let url = Url::parse(ADDRESS).unwrap();
    let input = RawPage {
        bytes: html.as_bytes(),
        content_type: None,
        url: Some(&url),
        ..RawPage::default()
    };
    let at = |time: &str| {
        let time: jiff::Timestamp = time.parse().unwrap();
        let fetched = Some(Timestamp(time.as_millisecond()));
        published(&page(&RawPage { fetched, ..input }, &Limits::default()).metadata)
    };
    assert_eq!(at("2024-03-04T12:00:00Z").as_deref(), Some("2024-03-05"));
    assert_eq!(at("2024-03-03T12:00:00Z"), None);
}

#[test]
fn bylines_are_read_where_a_reader_sees_them() {
    for byline in [
        "<p>By Jane Doe</p>",
        "<p>By</p><p><a href='/x'>Jane Doe</a></p>",
        "<p>Written by <b>Jane Doe</b> on March 5, 2024</p>",
        "<p class='post__byline'>Jane Doe | March 5, 2024</p>",
        "<a rel=author href='/jane'>Jane Doe</a>",
        "<a href='/authors/jane-doe'>Jane Doe</a>",
        "<p class=author-name>Mar 5 Written By Jane Doe</p>",
    ] {
        written(&read(&english("", byline)), "Jane Doe");
    }
    written(
        &read(&english("", "<p>By</p><a>Jane Doe</a> and <a>John Roe</a>")),
        "Jane Doe, John Roe",
    );
    for none in [
        "<p>By all means</p>",
        "<p class=author>admin</p>",
        "<p class=author>Sign in</p>",
        "<meta name=author content='https://h/jane'>",
        "<p>By the river there is a house.</p>",
    ] {
        assert_eq!(read(&english("", none)).authors, None, "{none}");
    }
}

#[test]
fn chinese_dates_are_read() {
    for (byline, date) in [
        ("发布时间：2005-7-1 09:00", "2005-07-01T09:00:00"),
        ("2024年3月5日 10:22　来源：新华网", "2024-03-05T10:22:00"),
        ("2024年3月5日10:22来源：新华网", "2024-03-05T10:22:00"),
        ("http://www.h.cn 2012-01-12 18:51", "2012-01-12T18:51:00"),
        ("来源：新华网 2012/1/17 17:23:10 红网", "2012-01-17T17:23:10"),
        ("日期：2012.01.12", "2012-01-12"),
        ("２０１２年１月１２日", "2012-01-12"),
        ("2012年 01月17日 下午 3:05", "2012-01-17T15:05:00"),
        ("北京新浪網 (2012-01-17 03:10)", "2012-01-17T03:10:00"),
        ("时间:2012-01-17&nbsp;19:58:16　点击:3", "2012-01-17T19:58:16"),
    ] {
        dated(&chinese(byline, "", ""), date, Source::Text);
    }
}

#[test]
fn chinese_bylines_are_read() {
    for (byline, start, end, author) in [
        ("来源：新华网 作者：张三 责任编辑：李四", "", "", "张三"),
        ("2011-12-08 作者：记者 武彩霞 来源：经济参考网", "", "", "武彩霞"),
        ("编辑：<b>张麒麟</b>", "", "", "张麒麟"),
        ("作者： 责任编辑：易清", "", "", "易清"),
        ("文/李小明", "", "", "李小明"),
        ("", "本报讯（记者樊亮）", "", "樊亮"),
        ("", "新华网北京1月12日电（记者 樊亮 张明超）", "", "樊亮, 张明超"),
        ("", "本報記者 陳 凌 攝影報導。", "", "陳凌"),
        ("", "【台灣醒報記者潘姿羽台北報導】", "", "潘姿羽"),
        ("記者孫慶璋／嘉義報導", "", "", "孫慶璋"),
        ("", "南方日报讯 (记者/钟啸 通讯员/王海军)", "", "钟啸, 王海军"),
        ("", "", "（张慧玲）", "张慧玲"),
        ("", "", "（李军伟 编译）", "李军伟"),
        ("", "", "</p><p>责任编辑：欧阳明", "欧阳明"),
        ("", "", "</p><p>作者：王攀（责编：李四）", "王攀"),
    ] {
        written(&chinese(byline, start, end), author);
    }
    for (byline, start) in [
        ("作者：本站", ""),
        ("作者：", ""),
        ("责任编辑：NF075", ""),
        ("来源：新华网", "记者日前从国务院获悉，"),
        ("", "记者从有关部门了解到，"),
        ("作者：佚名", ""),
    ] {
        assert_eq!(chinese(byline, start, "").authors, None, "{byline}{start}");
    }
}

#[test]
fn titles_lose_sites_and_logos() {
    let title = |html: &str| read(html).title.map(|title| title.value).unwrap_or_default();
    let page = "<title>A long way home | The Site</title><body><h1>The Site</h1><p>x</p>";
    assert_eq!(title(page), "A long way home");
    let page = "<title>武广高铁客流高峰将取消刷身份证-沈阳网-新闻中心</title><p>x</p>";
    assert_eq!(title(page), "武广高铁客流高峰将取消刷身份证");
    let page =
        "<meta property='og:site_name' content='Acme'><title>t</title><h1>Good news | Acme</h1>";
    assert_eq!(title(page), "Good news");
    let two = "<title>Second heading – Acme</title><h1>Welcome</h1><h1>Second heading</h1>";
    assert_eq!(title(two), "Second heading");
}

#[test]
fn hostile_pages_are_read_quickly_and_within_bounds() {
    let deep = format!("{}{}", r#"{"author":["#.repeat(10_000), "]}".repeat(10_000));
    let open = "[".repeat(100_000);
    let strings = format!("{{\"@type\":\"Article\",\"name\":\"{}", "\\\"".repeat(50_000));
    let quotes = format!("{{\"@type\":\"Article\",\"name\":\"{}\"}}", "\" ".repeat(50_000));
    let keys = format!("{{{}}}", "\"author\":{\"name\":\"x\"},".repeat(20_000));
    for json in [deep, open, strings, quotes, keys] {
        read(&ld(&json));
    }
    let long = read(&format!(
        "<title>{}</title><h1>{}</h1>",
        "word ".repeat(200_000),
        "x".repeat(1 << 20)
    ));
    assert!(long.title.is_some_and(|title| title.value.chars().count() <= 500));
    let digits = "2024-03-05 ".repeat(100_000);
    read(&format!("<h1>t</h1><p>{digits}</p><time datetime='{digits}'></time>"));
    let named = format!("<meta name=author content='{}'>", "Jane Doe, ".repeat(10_000));
    assert!(read(&english(&named, "")).byline().chars().count() < 2_000);
    read(&"<time datetime=x><h1 class=author itemprop=author>By".repeat(2_000));
    read(&format!("<p>{}</p>", "作者：记者（".repeat(20_000)));
    for date in
        ["9999-99-99", "0000-00-00", "99999999999999999999-1-1", "2024-02-30T99:99:99+99:99"]
    {
        let metadata = read(&english(&format!("<meta name=pubdate content='{date}'>"), ""));
        assert_eq!(metadata.published, None, "{date}");
    }
}

#[test]
fn a_batch_answers_with_the_metadata() {
    let html = english(
        "<meta name=author content='Jane Doe'><meta name=pubdate content='2024-03-05'>",
        "",
    );
    let line = |fetched: &str| {
        let line = serde_json::json!({"id": 1, "url": ADDRESS, "html": html, "fetched": fetched});
        serde_json::from_str::<serde_json::Value>(&batch_line(
            &line.to_string(),
            BatchOutput::Text,
            &Memory::new(Size::from_mib(512)),
        ))
        .unwrap()
    };
    let answer = line("2024-03-06T00:00:00Z");
    assert_eq!(answer["author"], "Jane Doe");
    assert_eq!(answer["date"], "2024-03-05");
    assert_eq!(answer["lang"], "en");
    assert!(answer["modified"].is_null() && answer.get("language").is_none());
    assert!(line("2023-03-06T00:00:00Z")["date"].is_null());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn no_input_panics(
        parts in prop::collection::vec(
            prop_oneof![
                "\\PC{0,12}",
                "[0-9年月日:./ -]{1,16}",
                prop::sample::select(vec![
                    "<script type='application/ld+json'>", "</script>", "{\"@type\":\"Article\",",
                    "\"datePublished\":\"2024-", "\"author\":[", "\\u", "\\ud83d\\ude00", "\"", "}",
                    "]", "<h1>", "</h1>", "<title>", "</title>", "<time datetime='", "'>",
                    "<meta name=author content='", "<p class=byline>By ", "作者：", "记者", "（",
                    "）", "责任编辑：", "报道", "2024年3月5日", "March 5, 2024", "<a rel=author>",
                    "<span itemprop=author>", "<p>", "</p>", " 10:22 pm +0", "&#x", "&amp;", "|", " - ",
                ]).prop_map(str::to_owned),
            ],
            0..40,
        )
    ) {
        let metadata = read(&parts.concat());
        for stated in [&metadata.published, &metadata.modified].into_iter().flatten() {
            prop_assert!((1990..2100).contains(&stated.value.date.year()));
        }
    }
}
