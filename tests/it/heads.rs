//! Heads of answers that browsers and curl accept: odd header lines, names that are no content
//! codings, statuses other than 200.

use uniqcrawl::localweb::{Body, Page, Site};

use crate::servers;
use crate::support::{Crawled, Web, config, page, prose};

/// Crawls each page beside a front page. Returns state and reason of each, in order.
fn outcomes(pages: Vec<Page>) -> Vec<(String, Option<&'static str>)> {
    let links: Vec<String> = (0..pages.len()).map(|n| format!("/{n}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let mut site = Site::new().html("/", page("Front", &prose(1, 60), &links));
    for (link, page) in links.iter().zip(pages) {
        site = site.page(link, page);
    }
    let web = Web::one(site);
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.retries_max = 0;
    crawled.run(&config, &web.seeds());
    let found = links.iter().map(|link| crawled.explain(&web.url(0, link)));
    found.map(|found| (found.state.to_owned(), found.reason)).collect()
}

/// A whole answer with these header lines.
fn raw(lines: &str, text: &str) -> Page {
    let head = format!("{lines}Connection: close\r\nContent-Length: {}", text.len());
    Page::body(Body::Raw(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{text}").into_bytes()))
}

#[track_caller]
fn all_stored(pages: Vec<(&str, Page)>) {
    let (names, pages): (Vec<&str>, Vec<Page>) = pages.into_iter().unzip();
    let found: Vec<_> = names.into_iter().zip(outcomes(pages)).collect();
    let lost: Vec<_> = found.iter().filter(|(_, (state, _))| state != "stored").collect();
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
fn names_that_are_no_content_codings_are_read_over() {
    let names = [
        "UTF-8",
        "utf8",
        "ISO-8859-1",
        "none",
        "None",
        "8bit",
        "7bit",
        "binary",
        "identity",
        "Identity, UTF-8",
        "chunked",
        "aws-chunked",
        "text/html",
        "en",
        "pack200",
        "a b",
    ];
    let page = |(n, name): (usize, &&'static str)| {
        let text = page(&format!("Page {n}"), &prose(n as u64 + 2, 60), &[]);
        (*name, Page::html(text).header("Content-Encoding", name))
    };
    all_stored(names.iter().enumerate().map(page).collect());
}

#[test]
fn codings_in_several_lines_are_undone_like_those_in_one() {
    use std::io::Write as _;
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let packed = zstd::bulk::compress(&gzip(page("Two", &prose(2, 60), &[]).as_bytes()), 3);
    let two = Page::bytes("text/html", packed.unwrap());
    let named = gzip(page("Named", &prose(3, 60), &[]).as_bytes());
    let named = Page::bytes("text/html", named);
    all_stored(vec![
        ("two", two.header("Content-Encoding", "gzip").header("Content-Encoding", "zstd")),
        ("named", named.header("Content-Encoding", "UTF-8").header("Content-Encoding", "gzip")),
    ]);
}

#[test]
fn odd_header_lines_take_no_page_with_them() {
    let text = |n: u64| page(&format!("Page {n}"), &prose(n + 2, 60), &[]);
    let html = "Content-Type: text/html\r\n";
    let many = |lines: usize| (0..lines).map(|n| format!("X-{n}: {n}\r\n")).collect::<String>();
    let folded = format!("{html}X-Folded: one\r\n two\r\n\tthree\r\n");
    let lines = [
        ("a folded line", folded),
        ("a folded type", "Content-Type:\r\n text/html\r\n".to_owned()),
        ("a blank before the colon", "Content-Type : text/html\r\nX-Other\t: y\r\n".to_owned()),
        ("a blank in a name", format!("{html}Bad Name: x\r\n")),
        ("a name of other letters", format!("{html}X-Caf\u{e9}: x\r\n")),
        ("no name", format!("{html}: x\r\n")),
        ("no colon", format!("{html}this is no header\r\n")),
        ("a control byte in a value", format!("{html}X-Odd: a\u{1}b\r\n")),
        ("150 headers", format!("{html}{}", many(150))),
        ("3,000 headers", format!("{html}{}", many(3_000))),
    ];
    let pages = lines.iter().zip(0..).map(|((name, lines), n)| (*name, raw(lines, &text(n))));
    all_stored(pages.collect());
}

#[test]
fn a_long_head_is_read_over_http_2_as_over_http_1() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("ca.pem");
    let long = "x".repeat(40 << 10);
    let server =
        servers::tls_with("127.0.0.1", page("Two", &prose(2, 60), &[]), &authority, Some(long));
    let mut config = config();
    config.fetch.ca_file = authority.to_string_lossy().into_owned();
    let url = uniqcrawl::urls::PageUrl::parse(&format!("https://{}/", server.address)).unwrap();
    let crawled = Crawled::new();
    let report = crawled.run(&config, std::slice::from_ref(&url));
    assert_eq!((report.documents, crawled.explain(&url).state), (1, "stored"));
    assert!(server.log().iter().any(|line| line.starts_with("HTTP/2")), "{:?}", server.log());
}

#[test]
fn a_page_of_status_203_is_a_page_and_other_statuses_have_words_of_their_own() {
    let with = |status| Page { status, ..Page::html(page("Page", &prose(2, 60), &[])) };
    let statuses = [203, 200, 201, 202, 204, 205, 206, 207, 226, 300, 304, 305, 404];
    let found = outcomes(statuses.into_iter().map(with).collect());
    let found: Vec<_> = found.iter().map(|(state, reason)| (state.as_str(), *reason)).collect();
    let refused = |reason| ("refused", Some(reason));
    let expected = [
        ("stored", None),
        ("duplicate", Some("exact_content")),
        refused("other_status"),
        refused("not_ready"),
        refused("no_content"),
        refused("no_content"),
        refused("partial_content"),
        refused("other_status"),
        refused("other_status"),
        refused("other_status"),
        refused("other_status"),
        refused("other_status"),
        refused("http_error"),
    ];
    assert_eq!(found.len(), expected.len());
    for ((status, found), expected) in statuses.iter().zip(&found).zip(&expected) {
        // What a copy is found by is not the point here.
        let alike = found.0 == expected.0 && (found.0 == "duplicate" || found.1 == expected.1);
        assert!(alike, "{status}: {found:?}, expected {expected:?}");
    }
}
