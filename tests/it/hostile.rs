//! Pages and servers that mean harm: each is a recorded outcome, and the crawl goes on.

use std::io::Write as _;
use std::time::{Duration, Instant};

use uniqcrawl::config::Config;
use uniqcrawl::localweb::{Body, Page, Site};

use crate::support::{Crawled, Web, config, page, prose};

/// Crawls a hostile page beside a good one. Returns the state and reason of the hostile one.
#[track_caller]
fn outcome(hostile: Page, change: impl FnOnce(&mut Config)) -> (String, Option<&'static str>) {
    let site = Site::new()
        .html("/", page("Front", &prose(1, 60), &["/hostile", "/good"]))
        .html("/good", page("Good", &prose(2, 60), &[]))
        .page("/hostile", hostile);
    let web = Web::one(site);
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.retries_max = 0;
    config.fetch.first_byte_timeout_ms = 500;
    config.fetch.stall_timeout_ms = 400;
    config.fetch.total_timeout_ms = 1_000;
    change(&mut config);
    crawled.run(&config, &web.seeds());
    assert_eq!(crawled.explain(&web.url(0, "/good")).state, "stored", "the crawl goes on");
    let found = crawled.explain(&web.url(0, "/hostile"));
    (found.state.to_owned(), found.reason)
}

fn refused(hostile: Page) -> Option<&'static str> {
    let (state, reason) = outcome(hostile, |_| {});
    assert_eq!(state, "refused");
    reason
}

fn html(body: Body) -> Page {
    Page::body(body).header("Content-Type", "text/html")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn encoded(coding: &str, bytes: Vec<u8>) -> Page {
    Page::bytes("text/html", bytes).header("Content-Encoding", coding)
}

#[test]
fn a_gzip_bomb_is_not_unpacked() {
    let bomb = gzip(&vec![b'a'; 64 << 20]);
    assert!(bomb.len() < 70_000);
    assert_eq!(refused(encoded("gzip", bomb)), Some("decompression_bomb"));
    // A page that shrinks as much, but is no larger than pages are, is read.
    let small = page("Small", &"word word ".repeat(50_000), &[]);
    let (state, _) = outcome(encoded("gzip", gzip(small.as_bytes())), |_| {});
    assert_eq!(state, "stored");
}

#[test]
fn a_coding_that_is_not_what_it_says_is_refused() {
    let plain = page("Plain", &prose(3, 60), &[]).into_bytes();
    assert_eq!(refused(encoded("gzip", plain.clone())), Some("bad_encoding"));
    assert_eq!(refused(encoded("br", plain.clone())), Some("bad_encoding"));
    assert_eq!(refused(encoded("zstd", plain.clone())), Some("bad_encoding"));
    assert_eq!(refused(encoded("pack200", plain)), Some("bad_encoding"));
}

#[test]
fn every_coding_that_is_asked_for_is_read() {
    let plain = page("Plain", &prose(3, 60), &[]).into_bytes();
    let deflate = {
        let level = flate2::Compression::default();
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
        encoder.write_all(&plain).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = zstd::bulk::compress(&plain, 3).unwrap();
    let twice = gzip(&zstd);
    for (coding, bytes) in [
        ("gzip", gzip(&plain)),
        ("deflate", deflate),
        ("zstd", zstd),
        ("zstd, gzip", twice),
        ("identity", plain.clone()),
    ] {
        assert_eq!(outcome(encoded(coding, bytes), |_| {}).0, "stored", "{coding}");
    }
}

#[test]
fn bodies_that_do_not_end_in_time_are_given_up() {
    let drip = Body::Drip { bytes: vec![b'a'; 1000], every: Duration::from_millis(100) };
    assert_eq!(refused(html(drip)), Some("timeout"));
    assert_eq!(refused(Page::body(Body::Hang)), Some("timeout"));
    let stalls = Body::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabc".to_vec());
    assert_eq!(refused(Page::body(stalls)), Some("bad_response"));
}

#[test]
fn an_endless_body_is_cut_at_the_limit_and_kept() {
    let endless = Body::Endless(format!("<p>{}</p>\n", prose(9, 200)).into_bytes());
    let started = Instant::now();
    let (state, _) = outcome(html(endless), |config| {
        config.fetch.body_bytes_max = 200_000;
        config.fetch.total_timeout_ms = 20_000;
    });
    assert_eq!(state, "stored");
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[test]
fn broken_answers_are_told_apart() {
    assert_eq!(refused(Page::body(Body::Close)), Some("bad_response"));
    assert_eq!(
        refused(html(Body::Lying { declared: 5_000, bytes: b"<p>cut".to_vec() })),
        Some("bad_response")
    );
    let flood: String = (0..5_000).map(|n| format!("X-{n}: {n}\r\n")).collect();
    let flood = format!("HTTP/1.1 200 OK\r\n{flood}\r\n<p>x");
    assert_eq!(refused(Page::body(Body::Raw(flood.into_bytes()))), Some("bad_response"));
    assert_eq!(refused(Page::body(Body::Raw(b"not http at all".to_vec()))), Some("bad_response"));
    assert_eq!(refused(Page::bytes("image/png", *b"png")), Some("not_a_page"));
    assert_eq!(refused(Page::html("<html><body></body></html>")), Some("no_text"));
}

#[test]
fn odd_markup_is_read_in_bounded_time() {
    let started = Instant::now();
    let deep = format!("{}{}", "<div>".repeat(100_000), prose(5, 60));
    let attribute = format!("<p title=\"{}\">{}</p>", "a".repeat(1 << 20), prose(6, 60));
    let nul = format!("<p>{}\0{}</p>", prose(7, 60), prose(8, 5));
    let mut invalid = b"<p>".to_vec();
    invalid.extend_from_slice(prose(9, 60).as_bytes());
    invalid.extend_from_slice(&[0xFF, 0xFE, 0xC3, 0x28, 0x80]);
    for hostile in [deep.into_bytes(), attribute.into_bytes(), nul.into_bytes(), invalid] {
        let (state, reason) = outcome(Page::bytes("text/html", hostile), |_| {});
        assert_eq!((state.as_str(), reason), ("stored", None));
    }
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
}
