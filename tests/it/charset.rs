//! Character encodings: every encoding of the Web, declared truly, not at all, and falsely.

use encoding_rs::{EUC_JP, Encoding, GB18030, ISO_2022_JP, WINDOWS_1252};
use uniqcrawl::localweb::{Page as Served, Site};
use uniqcrawl::page::{CharsetSource, Limits, Page, RawPage, page, page_as_markdown};
use url::Url;

use crate::support::{Crawled, Web, config, page as html, prose};

fn read(bytes: &[u8], content_type: Option<&str>) -> Page {
    page(&RawPage { bytes, content_type, url: None, ..RawPage::default() }, &Limits::default())
}

/// An encoding, and a text that somebody could have written in it.
pub(crate) const TEXTS: [(&str, &str); 21] = [
    (
        "gb18030",
        "昨天下午，市里的老图书馆重新开门，很多人带着孩子来看书，也有人只是想看看修好的房子。",
    ),
    (
        "big5",
        "昨天下午，市裡的老圖書館重新開門，很多人帶著孩子來看書，也有人只是想看看修好的房子。",
    ),
    (
        "shift_jis",
        "昨日の午後、町の古い図書館がまた開きました。子どもと一緒に本を読みに来た人も多かったです。",
    ),
    (
        "euc-jp",
        "昨日の午後、町の古い図書館がまた開きました。子どもと一緒に本を読みに来た人も多かったです。",
    ),
    (
        "iso-2022-jp",
        "昨日の午後、町の古い図書館がまた開きました。子どもと一緒に本を読みに来た人も多かったです。",
    ),
    (
        "euc-kr",
        "어제 오후 시내의 오래된 도서관이 다시 문을 열었고, 많은 사람이 아이와 함께 책을 보러 왔다.",
    ),
    (
        "windows-1251",
        "Вчера днём старая городская библиотека снова открылась, и многие пришли туда с детьми.",
    ),
    (
        "koi8-r",
        "Вчера днём старая городская библиотека снова открылась, и многие пришли туда с детьми.",
    ),
    (
        "iso-8859-5",
        "Вчера днём старая городская библиотека снова открылась, и многие пришли туда с детьми.",
    ),
    (
        "ibm866",
        "Вчера днём старая городская библиотека снова открылась, и многие пришли туда с детьми.",
    ),
    (
        "windows-1253",
        "Χθες το απόγευμα η παλιά βιβλιοθήκη της πόλης άνοιξε ξανά και πολλοί πήγαν με τα παιδιά.",
    ),
    (
        "iso-8859-7",
        "Χθες το απόγευμα η παλιά βιβλιοθήκη της πόλης άνοιξε ξανά και πολλοί πήγαν με τα παιδιά.",
    ),
    (
        "windows-1250",
        "W środę po południu znów otwarto starą bibliotekę, więc wiele osób przyszło coś poczytać dzieciom.",
    ),
    (
        "iso-8859-2",
        "W środę po południu znów otwarto starą bibliotekę, więc wiele osób przyszło coś poczytać dzieciom.",
    ),
    (
        "windows-1252",
        "Gestern öffnete die alte Bücherei wieder, und für die größeren Kinder gab es Führungen.",
    ),
    (
        "windows-1254",
        "Dün öğleden sonra şehirdeki eski kütüphane açıldı, çoğu kişi çocuklarıyla kitaba geldi.",
    ),
    (
        "windows-1256",
        "فتحت المكتبة القديمة في المدينة أبوابها بعد ظهر أمس وجاء كثير من الناس مع أطفالهم.",
    ),
    (
        "iso-8859-6",
        "فتحت المكتبة القديمة في المدينة أبوابها بعد ظهر أمس وجاء كثير من الناس مع أطفالهم.",
    ),
    (
        "windows-1255",
        "אתמול אחר הצהריים נפתחה שוב הספרייה הישנה של העיר ורבים באו עם הילדים לקרוא ספרים.",
    ),
    ("windows-874", "เมื่อวานตอนบ่ายห้องสมุดเก่าของเมืองเปิดอีกครั้งและมีคนจำนวนมากพาลูกมาอ่านหนังสือ"),
    (
        "windows-1257",
        "Vakar po pietų vėl atidaryta senoji miesto biblioteka, daug žmonių atėjo su vaikais į ją.",
    ),
];

/// Encodings that servers and templates name by mistake.
const LIES: [&str; 8] = [
    "iso-8859-1",
    "utf-8",
    "gb2312",
    "big5",
    "shift_jis",
    "euc-kr",
    "windows-1251",
    "windows-1256",
];

/// Reads `text` in the encoding `label`, with these declarations.
fn round(text: &str, label: &str, header: Option<&str>, meta: Option<&str>) -> Page {
    let meta = meta.map_or(String::new(), |meta| format!("<meta charset=\"{meta}\">"));
    let text = text.repeat(2);
    let html = format!("<html><head>{meta}</head><body><p>{text}</p></body></html>");
    let (bytes, _, lost) = Encoding::for_label(label.as_bytes()).unwrap().encode(&html);
    assert!(!lost, "{label} holds its text");
    let header = header.map(|header| format!("text/html; charset={header}"));
    read(&bytes, header.as_deref())
}

/// Encodings that a text of these letters cannot be told from.
fn is_alike(label: &str, lie: &str) -> bool {
    let name = |label: &str| Encoding::for_label(label.as_bytes()).unwrap().name();
    // Letters of one language for letters of another: so few of them are no evidence.
    let letters = label == "windows-1257" && lie == "iso-8859-1";
    letters || name(label) == name(lie) || label == "gb18030" && lie == "gb2312"
}

#[test]
fn a_true_declaration_is_believed() {
    for (label, text) in TEXTS {
        let name = Encoding::for_label(label.as_bytes()).unwrap().name();
        for (header, meta) in [(Some(label), None), (None, Some(label)), (Some(label), Some(label))]
        {
            let page = round(text, label, header, meta);
            assert_eq!(page.text, text.repeat(2), "{label}, {header:?}, {meta:?}");
            assert_eq!((page.charset.name, page.charset.overruled), (name, None), "{label}");
        }
    }
}

#[test]
fn a_text_without_a_declaration_is_told_by_its_bytes() {
    for (label, text) in TEXTS {
        let page = round(text, label, None, None);
        assert_eq!(page.text, text.repeat(2), "{label} as {}", page.charset.name);
        assert_eq!(page.charset.source, CharsetSource::Detected, "{label}");
    }
}

#[test]
fn a_false_declaration_is_overruled_wherever_it_stands() {
    for (label, text) in TEXTS {
        for lie in LIES.into_iter().filter(|lie| !is_alike(label, lie)) {
            for (header, meta) in [
                (Some(lie), None),
                (None, Some(lie)),
                (Some(lie), Some(lie)),
                (Some(lie), Some(label)),
                (Some(label), Some(lie)),
            ] {
                let page = round(text, label, header, meta);
                let told = format!("{label}, {header:?}, {meta:?}, as {}", page.charset.name);
                assert_eq!(page.text, text.repeat(2), "{told}");
                assert_eq!(page.charset.replacements, 0, "{told}");
            }
        }
    }
    let (label, text) = TEXTS[0];
    let page = round(text, label, Some("big5"), None);
    assert_eq!(page.charset.overruled, Some("Big5"));
}

#[test]
fn few_characters_are_no_evidence_against_a_declaration() {
    for (label, text) in [
        ("windows-1252", "a café"),
        ("windows-1250", "the word źródło"),
        ("windows-1251", "see да"),
        ("koi8-r", "see нет"),
        ("big5", "in 台北"),
        ("gbk", "in 北京"),
        ("shift_jis", "in 東京"),
        ("euc-kr", "in 서울"),
    ] {
        assert_eq!(round(text, label, Some(label), None).text, text.repeat(2), "{label}");
        assert_eq!(round(text, label, None, Some(label)).text, text.repeat(2), "{label}");
    }
}

#[test]
fn damaged_bytes_do_not_hide_an_encoding() {
    let text = TEXTS[0].1;
    let html = format!("<html><body>{}</body></html>", format!("<p>{text}</p>\n").repeat(20));
    let mut bytes = GB18030.encode(&html).0.into_owned();
    // Half a character is missing, twice.
    bytes.remove(901);
    bytes.remove(333);
    for header in [None, Some("text/html; charset=gbk"), Some("text/html; charset=iso-8859-1")] {
        let page = read(&bytes, header);
        assert_eq!(page.charset.name, "GBK", "{header:?}");
        assert!(page.text.matches("老图书馆").count() >= 17, "{header:?}: {}", page.text);
    }
    let page = read(b"<p>caf\xE9</p><p>\x81\x8D\xC3</p>", Some("text/html; charset=shift_jis"));
    assert!(page.charset.quality <= 1000);
    let broken = read(b"\xEF\xBB\xBF<p>\xE4\xB8\xAD\xE6\x96\x87\xE5\xAD\xFF\xE4\xB8\xAD</p>", None);
    assert_eq!(broken.charset.replacements, 2);
    assert_eq!(broken.charset.quality, 600);
}

#[test]
fn only_what_declares_the_page_is_a_declaration() {
    let text = "Gestern öffnete die Bücherei wieder.";
    for decoy in [
        "<script charset=gbk src=x></script>",
        "<script>document.write('<meta charset=big5>'); document.charset = 'big5'</script>",
        "<!-- <meta charset=euc-kr> -->",
        "<style>/* <meta charset=koi8-r> */</style>",
        "<meta name=keywords content='charset=shift_jis, encodings'>",
        "<meta name=description content=\"how a <meta charset=gbk> works\">",
        "<metadata charset=big5></metadata>",
        "<link rel=stylesheet charset=euc-jp href=x>",
        "<a title='>' charset=gbk href=x></a>",
        "<meta charset=hz-gb-2312><meta charset=nonsense>",
    ] {
        for (declaration, name) in [
            ("<meta charset=iso-8859-1>", "windows-1252"),
            (
                "<META content='text/html; Charset = windows-1250' HTTP-EQUIV=Content-Type />",
                "windows-1250",
            ),
            ("<meta foo=\"a > b\" charset='iso-8859-15'>", "ISO-8859-15"),
        ] {
            let html = format!("<html><head>{decoy}{declaration}</head><p>{text}</p>");
            let page = read(&WINDOWS_1252.encode(&html).0, None);
            let charset = page.charset;
            assert_eq!(
                (charset.name, charset.source),
                (name, CharsetSource::Declaration),
                "{decoy}"
            );
            assert!(page.text.ends_with(text), "{decoy}: {}", page.text);
        }
    }
    let xml = format!("<?xml version='1.0' encoding='EUC-JP'?><p>{}</p>", TEXTS[3].1);
    let page = read(&EUC_JP.encode(&xml).0, None);
    assert_eq!((page.charset.name, page.charset.source), ("EUC-JP", CharsetSource::Declaration));
}

#[test]
fn labels_that_browsers_refuse_do_not_empty_a_page() {
    for label in
        ["hz-gb-2312", "iso-2022-kr", "replacement", "x-user-defined", "utf-16", "nonsense"]
    {
        let header = format!("text/html; charset={label}");
        let html = format!("<meta charset={label}><p>{}</p>", TEXTS[0].1);
        let page = read(&GB18030.encode(&html).0, Some(&header));
        assert_eq!(page.text, TEXTS[0].1, "{label}");
    }
}

#[test]
fn utf16_is_read_with_and_without_a_mark_whatever_is_declared() {
    for text in ["plain words only", TEXTS[0].1] {
        let html = format!("<html><head><title>t</title></head><body><p>{text}</p></body></html>");
        for header in [None, Some("text/html; charset=utf-8"), Some("text/html; charset=gbk")] {
            let le: Vec<u8> = html.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(read(&le, header).text, text);
            let be: Vec<u8> = html.encode_utf16().flat_map(u16::to_be_bytes).collect();
            assert_eq!(read(&be, header).text, text);
            let marked: Vec<u8> = [0xFF, 0xFE].into_iter().chain(le).collect();
            assert_eq!(read(&marked, header).charset.source, CharsetSource::Bom);
        }
    }
    // Hardly a zero among the bytes: only the header can tell.
    let text = TEXTS[0].1.repeat(3);
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(read(&bytes, Some("text/plain; charset=utf-16le")).text, text);
}

#[test]
fn hong_kong_characters_and_escapes_are_read() {
    let html = "<meta charset=big5-hkscs><p>我哋嘅圖書館好多書，佢哋成日嚟睇。</p>";
    let hkscs = Encoding::for_label(b"big5-hkscs").unwrap();
    let page = read(&hkscs.encode(html).0, None);
    assert_eq!(page.text, "我哋嘅圖書館好多書，佢哋成日嚟睇。");
    // An angle bracket may be half of a character.
    let html = format!("<html><body><p>{}</p></body></html>", "次の春は静かです。");
    let page = read(&ISO_2022_JP.encode(&html).0, Some("text/html; charset=iso-8859-1"));
    assert_eq!(page.text, "次の春は静かです。");
}

/// A page in an encoding that its head declares, cut to what can be written in it.
fn in_charset(label: &str, text: &str, head: &str, body: &str) -> Vec<u8> {
    let html = format!(
        "<html><head><meta charset={label}><title>{text}</title>{head}</head><body><article>\
         <h1>{text}</h1><p>{text}</p><p>{text} {text}</p></article>{body}</body></html>"
    );
    Encoding::for_label(label.as_bytes()).unwrap().encode(&html).0.into_owned()
}

fn at(bytes: &[u8], address: &str) -> Page {
    let url = Url::parse(address).unwrap();
    page(&RawPage { bytes, url: Some(&url), ..RawPage::default() }, &Limits::default())
}

#[test]
fn queries_of_links_are_written_in_the_encoding_of_their_page() {
    // A word of that language, and its bytes as browsers send them.
    for (label, word, query) in [
        ("gb2312", "新闻", "%D0%C2%CE%C5"),
        ("gb18030", "𠀀", "%952%826"),
        ("big5", "新聞", "%B7s%BBD"),
        ("shift_jis", "表", "%95\\"),
        ("euc-jp", "日本", "%C6%FC%CB%DC"),
        ("iso-2022-jp", "日本", "%1B$BF|K\\%1B(B"),
        ("euc-kr", "한국", "%C7%D1%B1%B9"),
        ("windows-1251", "мир", "%EC%E8%F0"),
        ("koi8-r", "мир", "%CD%C9%D2"),
        ("utf-8", "мир", "%D0%BC%D0%B8%D1%80"),
    ] {
        let known = TEXTS.iter().find(|(known, _)| *known == label);
        let known = known.or_else(|| TEXTS.iter().find(|(known, _)| *known == "gb18030"));
        let text = if label == "utf-8" {
            "Мир и война, том первый"
        } else {
            known.unwrap().1
        };
        let links = format!(
            "<a href='a?b={word}&c=%D0%bc#{word}'>a</a><a href='/{word}?'>b</a>\
             <a href='a?d=&#128512;'>c</a>"
        );
        let found = at(&in_charset(label, text, "", &links), "http://h/d/");
        let path = String::from_utf8_lossy(word.as_bytes());
        let path = Url::parse(&format!("http://h/{path}?")).unwrap();
        let smiley = match label {
            "gb18030" => "%949%FC6".to_owned(),
            "utf-8" => "%F0%9F%98%80".to_owned(),
            _ => "%26%23128512%3B".to_owned(),
        };
        let links: Vec<&str> = found.links.iter().map(|link| link.url.as_str()).collect();
        let wanted = [
            format!("http://h/d/a?b={query}&c=%D0%bc"),
            path.to_string(),
            format!("http://h/d/a?d={smiley}"),
        ];
        assert_eq!(links, wanted, "{label}, read as {}", found.charset.name);
    }
}

#[test]
fn every_kind_of_link_is_written_in_the_encoding_of_its_page() {
    let text = TEXTS[0].1;
    let head = "<base href='http://h/base?基'><link rel=canonical href='?u=新'>\
        <link rel=next href='?n=新'><meta http-equiv=refresh content='9; url=?r=新'>\
        <link rel=alternate hreflang=en href='?e=新'><meta property=og:image content='/i?新'>\
        <link rel=license href='?l=新'>";
    let body = "<iframe src='?f=新'></iframe><map><area href='///h?s=新'></map><a href=''>x</a>";
    let bytes = in_charset("gbk", text, head, body);
    let found = at(&bytes, "http://h/");
    let links: Vec<&str> = found.links.iter().map(|link| link.url.as_str()).collect();
    let base = |name: &str| format!("http://h/base?{name}=%D0%C2");
    let wanted =
        [base("u"), base("n"), base("r"), base("e"), base("f"), "http://h/?s=%D0%C2".into()];
    assert_eq!(links, wanted);
    assert_eq!(found.canonical, Some(base("u")));
    let said = &found.metadata;
    assert_eq!((&said.alternates[0].url, &said.licence), (&base("e"), &Some(base("l"))));
    assert_eq!(said.images[0].url, "http://h/i?%D0%C2");
    let linked = in_charset("gbk", &format!("<a href='?m=新'>{text}</a>"), "", "");
    let url = Url::parse("http://h/").unwrap();
    let input = RawPage { bytes: &linked, url: Some(&url), ..RawPage::default() };
    let markdown = page_as_markdown(&input, &Limits::default()).text;
    assert!(markdown.contains("](http://h/?m=%D0%C2)"), "{markdown}");
    // Characters by number need no byte beyond ASCII: what is declared tells how they are sent.
    let ascii = b"<meta charset=gb2312><p>News</p><a href='?a=&#26032;&#38395;'>a</a>";
    assert_eq!(at(ascii, "http://h/").links[0].url.as_str(), "http://h/?a=%D0%C2%CE%C5");
    let undeclared = b"<p>News</p><a href='?a=&#26032;'>a</a>";
    assert_eq!(at(undeclared, "http://h/").links[0].url.as_str(), "http://h/?a=%E6%96%B0");
}

#[test]
fn an_old_site_is_asked_for_the_addresses_that_it_has() {
    let text = TEXTS[0].1;
    let link = "<a href='list.asp?class=新闻'>新闻</a>";
    let sent =
        |label: &str, body: &str| Served::bytes("text/html", in_charset(label, text, "", body));
    let list = |seed: u64| html("List", &prose(seed, 60), &[]);
    let (old, new) = ("/list.asp?class=%D0%C2%CE%C5", "/list.asp?class=%E6%96%B0%E9%97%BB");
    let site = Site::new()
        .page("/", sent("gb2312", &format!("{link}<a href='/new'>new</a>")))
        .page("/new", sent("utf-8", link))
        .html(old, list(2))
        .html(new, list(3));
    let web = Web::one(site);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    assert_eq!((web.asked(old), web.asked(new)), (1, 1), "two addresses, by their bytes");
    for path in [old, new] {
        assert_eq!(crawled.explain(&web.url(0, path)).state, "stored");
    }
}
