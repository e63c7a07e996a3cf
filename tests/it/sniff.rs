//! Binary data that is sent as text, and text that looks a little like binary data.

use std::io::Write as _;

use encoding_rs::Encoding;
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::page::{Limits, RawPage, binary, page};

use crate::charset::TEXTS;
use crate::support::{Crawled, Web, config, crawl, page as html, prose};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Bytes in which every value is as likely as any other.
fn random(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Files as they are, or as near to that as matters.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let with = |start: &[u8], seed| [start, &random(seed, 3_000)].concat();
    let program = std::fs::read(env!("CARGO_BIN_EXE_crawl")).unwrap();
    let pdf = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n".repeat(40);
    let name = b"notes.txt".iter().copied().chain(std::iter::repeat_n(0, 91));
    let tar = name.chain(*b"0000644\0").chain(prose(7, 300).bytes()).collect();
    let sound: Vec<u8> = (0..2_000i16).flat_map(|n| (n % 50 - 25).to_le_bytes()).collect();
    vec![
        ("pdf of ASCII", pdf),
        ("pdf", with(b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n", 1)),
        ("zip", with(b"PK\x03\x04\x14\0\0\0\x08\0", 2)),
        ("gzip", gzip(prose(3, 2_000).as_bytes())),
        ("jpeg", with(b"\xFF\xD8\xFF\xE0\0\x10JFIF\0\x01", 4)),
        ("png", with(b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR", 5)),
        ("gif", with(b"GIF89a\x10\0\x10\0", 6)),
        ("font", with(b"wOF2\0\x01\0\0", 7)),
        ("elf", program[..200_000].to_vec()),
        ("office", with(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1\0\0", 8)),
        ("tar of text", tar),
        ("pairs of bytes", sound),
        ("random", random(9, 4_000)),
        ("short random", random(10, 120)),
        ("random after the mark of UTF-16", with(b"\xFF\xFE", 11)),
        ("text before random", [prose(8, 400).into_bytes(), random(12, 4_000)].concat()),
    ]
}

#[test]
fn binary_data_is_no_article_whatever_its_type_says() {
    let types = ["text/html", "text/plain", "", "text/html; charset=utf-8", "text/xml"];
    let (mut site, mut links) = (Site::new(), Vec::new());
    for (name, bytes) in files() {
        for (n, content_type) in types.iter().enumerate() {
            let link = format!("/{}/{n}", name.replace(' ', "-"));
            site = site.page(&link, Page::bytes(content_type, bytes.clone()));
            links.push(link);
        }
    }
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let site = site.html("/", html("Front", &prose(1, 60), &links));
    let web = Web::one(site);
    let crawled = Crawled::new();
    let report = crawled.run(&config(), &web.seeds());
    let found = links.iter().map(|link| (*link, crawled.explain(&web.url(0, link))));
    let texts: Vec<_> = found
        .filter(|(_, found)| (found.state, found.reason) != ("refused", Some("binary")))
        .map(|(link, found)| (link, found.state, found.reason))
        .collect();
    assert!(texts.is_empty(), "{} of {} gave text: {texts:#?}", texts.len(), links.len());
    assert_eq!(report.documents, 1);
}

#[test]
fn texts_of_every_charset_are_no_binary_data() {
    let types = [None, Some("text/html"), Some("text/plain"), Some("text/plain; charset=utf-8")];
    for (label, text) in TEXTS {
        let encoding = Encoding::for_label(label.as_bytes()).unwrap();
        let bare = encoding.encode(text).0.into_owned();
        let marked = encoding.encode(&format!("<p>{text}</p>\r\n\x0C")).0.into_owned();
        let long = bare.repeat(100);
        for bytes in [&bare, &marked, &long] {
            for content_type in types {
                assert_eq!(binary(bytes, content_type), None, "{label}, {content_type:?}");
            }
        }
    }
    let wide = |text: &str, little: bool, mark: bool| -> Vec<u8> {
        let units = mark.then_some(0xFEFF).into_iter().chain(text.encode_utf16());
        let bytes = |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
        units.flat_map(bytes).collect()
    };
    for (_, text) in TEXTS {
        for (little, mark) in [(false, true), (true, true), (false, false), (true, false)] {
            let html = format!("<html><body><p title=\"x\">{text}</p></body></html>");
            assert_eq!(binary(&wide(&html, little, mark), Some("text/html")), None, "{text}");
            let label = if little { "utf-16le" } else { "utf-16be" };
            let declared = format!("text/plain; charset={label}");
            let plain = wide(&format!("{text}\r\n"), little, mark);
            assert_eq!(binary(&plain, Some(&declared)), None, "{text}");
            if mark {
                assert_eq!(binary(&plain, None), None, "{text}");
            }
        }
    }
}

#[test]
fn a_stray_control_byte_makes_no_text_binary() {
    let text = prose(1, 200);
    let stray = |bytes: &[u8]| {
        let mut text = text.clone().into_bytes();
        text.splice(40..40, bytes.iter().copied());
        text
    };
    for bytes in [&b"\0"[..], b"\x08", b"\x0B\x1F", b"\x1B[1m", b"\x0C", b"\x1A"] {
        for content_type in [None, Some("text/plain"), Some("text/html")] {
            assert_eq!(binary(&stray(bytes), content_type), None, "{bytes:?}");
        }
    }
    // A page that says by its first bytes that it is one may have more of them.
    let page = html("Page", &text.replace("ba", "\0"), &[]).into_bytes();
    assert!(page.split(|byte| *byte == 0).count() > 4);
    assert_eq!(binary(&page, Some("text/html")), None);
    for start in ["BMW and others", "GIF89a is a format", "ID3 tags", "II*, MM", "PK", "MZ", "RIFF"]
    {
        assert_eq!(binary(format!("{start} {text}").as_bytes(), Some("text/plain")), None);
    }
    assert_eq!(binary(b"", None), None);
    assert_eq!(binary(b"\0", None), None);
}

#[test]
fn gzip_in_gzip_is_unpacked_once_more_under_the_same_limits() {
    let text = html("Twice", &prose(2, 60), &[]);
    let once = gzip(text.as_bytes());
    let (twice, thrice) = (gzip(&once), gzip(&gzip(&once)));
    let bomb = gzip(&gzip(&vec![b'a'; 64 << 20]));
    let packed = |bytes: &[u8]| Page::bytes("text/html", bytes).header("Content-Encoding", "gzip");
    let inner = zstd::bulk::compress(&once, 3).unwrap();
    let site = Site::new()
        .html("/", html("Front", &prose(1, 60), &["/two", "/three", "/bomb", "/other", "/bare"]))
        .page("/two", packed(&twice))
        .page("/three", packed(&thrice))
        .page("/bomb", packed(&bomb))
        .page("/other", Page::bytes("text/html", inner).header("Content-Encoding", "zstd"))
        .page("/bare", Page::bytes("text/html", once));
    let web = Web::one(site);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    let reason = |path: &str| crawled.explain(&web.url(0, path)).reason;
    assert_eq!(crawled.explain(&web.url(0, "/two")).state, "stored");
    assert_eq!(crawled.explain(&web.url(0, "/other")).state, "duplicate");
    assert_eq!(reason("/three"), Some("binary"));
    assert_eq!(reason("/bomb"), Some("decompression_bomb"));
    assert_eq!(reason("/bare"), Some("binary"));
}

#[test]
fn the_quality_of_a_charset_tells_random_bytes_from_text() {
    let quality = |bytes: &[u8]| {
        let input = RawPage { bytes, content_type: Some("text/html"), ..RawPage::default() };
        let page = page(&input, &Limits::default());
        (page.charset.quality, page.text)
    };
    for seed in 1..40 {
        let (quality, text) = quality(&random(seed, 2_000));
        assert!(quality == 0 && text.is_empty(), "{quality}, {text}");
    }
    for (label, text) in TEXTS {
        let bytes = Encoding::for_label(label.as_bytes()).unwrap().encode(text).0.into_owned();
        assert_eq!(quality(&bytes.repeat(3)).0, 1000, "{label}");
    }
}

#[test]
fn the_command_names_what_a_file_is_if_it_is_no_page() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.html"), b"%PDF-1.4\n%\xE2\xE3\xCF\xD3\n").unwrap();
    let told = crawl(&["extract", "x.html"], folder.path());
    let said = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(2), "{said}");
    assert!(said.contains("x.html is a PDF document"), "{said}");
    let told = crawl(&["extract", "--json", "x.html"], folder.path());
    let json: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((&json["binary"], &json["text"]), (&"a PDF document".into(), &"".into()));
}
