//! Character encodings: every encoding of the Web, declared truly, not at all, and falsely.

use encoding_rs::{EUC_JP, Encoding, GB18030, ISO_2022_JP, WINDOWS_1252};
use uniqcrawl::extract::{CharsetSource, Input, Limits, Page, page};

fn read(bytes: &[u8], content_type: Option<&str>) -> Page {
    page(&Input { bytes, content_type, url: None, ..Input::default() }, &Limits::default())
}

/// An encoding, and a text that somebody could have written in it.
const TEXTS: [(&str, &str); 21] = [
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
