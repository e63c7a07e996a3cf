//! Pages and servers that mean harm: each is a recorded outcome, and the crawl goes on.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use uniqcrawl::base::units::{Size, Time};
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
    // On a busy machine the good page may be late, too: once.
    config.frontier.retries_max = 1;
    config.fetch.first_byte_timeout = Time::from_millis(4_000);
    config.fetch.stall_timeout = Time::from_millis(3_000);
    config.fetch.total_timeout = Time::from_millis(7_000);
    change(&mut config);
    crawled.run(&config, &web.seeds());
    assert_eq!(crawled.explain(&web.url(0, "/good")).state, "stored", "the crawl goes on");
    let found = crawled.explain(&web.url(0, "/hostile"));
    (found.state.to_owned(), found.reason)
}

/// Crawls a hostile page with room for `bytes` of a body. Returns its state, and whether it is
/// marked as cut.
fn cut(hostile: Page, bytes: usize) -> (String, bool) {
    let web = Web::one(Site::new().page("/", hostile));
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.retries_max = 0;
    config.fetch.body_size_max = Size::from_bytes(bytes as u64);
    config.fetch.total_timeout = Time::from_millis(20_000);
    crawled.run(&config, &web.seeds());
    let found = crawled.explain(&web.url(0, "/"));
    (found.state.to_owned(), found.facts.iter().any(|(name, _)| name == "truncated"))
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
    // A coding that nobody asked for, and not only a name.
    let packed = (0..60).flat_map(|n| [0x1F, n, 0x9D, 0]).collect();
    assert_eq!(refused(encoded("pack200", packed)), Some("bad_encoding"));
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
fn a_head_counts_at_once_though_its_body_does_not_arrive() {
    let drip = || Body::Drip { bytes: vec![b'a'; 1_000], every: Duration::from_millis(100) };
    let slow = move |status: u16| Page { status, ..Page::body(drip()) };
    let image = || slow(200).header("Content-Type", "image/png");
    for (page, reason) in
        [(slow(404), "http_error"), (slow(302), "bad_redirect"), (image(), "not_a_page")]
    {
        assert_eq!(refused(page), Some(reason));
    }
    let tries = AtomicUsize::new(0);
    let busy = Site::new().html("/", page("Front", &prose(1, 60), &[])).handler(move |request| {
        let first = request.target == "/" && tries.fetch_add(1, Ordering::SeqCst) == 0;
        first.then(|| slow(503).header("Retry-After", "1"))
    });
    let web = Web::one(busy);
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.retries_max = 0;
    config.fetch.total_timeout = Time::from_millis(8_000);
    crawled.run(&config, &web.seeds());
    let found = crawled.explain(&web.seeds()[0]);
    assert_eq!((found.state, web.asked("/")), ("stored", 2), "busy is no failure");
    assert!(found.facts.contains(&("busy answers".to_owned(), "1".to_owned())));
    let asked = web.web.requests_of(0).into_iter().filter(|request| request.target == "/");
    let asked: Vec<Instant> = asked.map(|request| request.started).collect();
    assert!(asked[1] - asked[0] >= Duration::from_secs(1), "it asked for a second of rest");
}

#[test]
fn slow_answers_are_read_on_one_side_of_each_limit_of_time() {
    // No head for 4 s, no byte for 3 s, and 7 s in all are too long.
    let late = |ms| Page::html(page("Late", &prose(3, 60), &[])).after(Duration::from_millis(ms));
    assert_eq!(outcome(late(200), |_| {}).0, "stored");
    assert_eq!(refused(late(6_500)), Some("timeout"));
    let drip = |bytes: &[u8], every| {
        let every = Duration::from_millis(every);
        html(Body::Drip { bytes: bytes.to_vec(), every })
    };
    assert_eq!(outcome(drip(b"a word", 60), |_| {}).0, "stored");
    assert_eq!(refused(drip(b"ab", 5_000)), Some("timeout"));
    assert_eq!(refused(drip(&[b'a'; 100], 100)), Some("timeout"));
}

#[test]
fn answers_of_http_1_0_are_read() {
    let text = page("Old", &prose(4, 60), &[]);
    let answer = format!("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n{text}");
    assert_eq!(outcome(Page::body(Body::Raw(answer.into_bytes())), |_| {}).0, "stored");
}

#[test]
fn an_endless_body_is_cut_at_the_limit_and_kept() {
    let endless = Body::Endless(format!("<p>{}</p>\n", prose(9, 200)).into_bytes());
    let started = Instant::now();
    let (state, _) = outcome(html(endless), |config| {
        config.fetch.body_size_max = Size::from_bytes(200_000);
        config.fetch.total_timeout = Time::from_millis(20_000);
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
    let flood: String = (0..5_001).map(|n| format!("X-{n}: {n}\r\n")).collect();
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

/// 64 MiB of the letter `a` after the start of a page.
const BROTLI_BOMB: &str = "cbffff3f00a47d78c2e026218cbc56486a49c8f4b0eafd9f6ef8ffff078004401c1680eefd1fffffff\
    00900088c302d0bdffe3ffff1f001200715800baf77ffcffff034002200e0b40f7fe8fffff7f004800\
    c46101e8defff1ffff0f000980382c00ddfb3ffeffff012001108705a07bff170e0000240042880002";

#[test]
fn bombs_of_every_coding_are_refused_and_pages_that_shrink_well_are_not() {
    let brotli: Vec<u8> = (0..BROTLI_BOMB.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&BROTLI_BOMB[at..at + 2], 16).unwrap())
        .collect();
    let deflate = |bytes: &[u8]| {
        let level = flate2::Compression::best();
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 3).unwrap();
    let zeros = vec![b'a'; 64 << 20];
    for (coding, bomb) in [("br", brotli), ("zstd", zstd(&zeros)), ("deflate", deflate(&zeros))] {
        assert!(bomb.len() < 70_000, "{coding}");
        assert_eq!(refused(encoded(coding, bomb)), Some("decompression_bomb"), "{coding}");
    }
    let small = page("Small", &"word word ".repeat(50_000), &[]).into_bytes();
    for (coding, bytes) in [("zstd", zstd(&small)), ("deflate", deflate(&small))] {
        assert!(bytes.len() * 200 < small.len(), "{coding}");
        assert_eq!(outcome(encoded(coding, bytes), |_| {}).0, "stored", "{coding}");
    }
}

#[test]
fn a_body_is_cut_at_the_limit_and_marked_and_one_of_that_length_is_whole() {
    let stored = |cut: bool| ("stored".to_owned(), cut);
    let text = page("Long", &prose(4, 2_000), &[]);
    let whole = Page::html(text.clone());
    assert_eq!(cut(whole.clone(), text.len()), stored(false));
    assert_eq!(cut(whole, text.len() - 1), stored(true));
    // Ten gigabytes that are only promised.
    let much = Body::Lying { declared: 10 << 30, bytes: text.clone().into_bytes() };
    assert_eq!(cut(html(much), text.len() / 2), stored(true));
    let line = format!("<p>{}</p>\n", prose(9, 200));
    assert_eq!(cut(html(Body::Endless(line.clone().into_bytes())), 100_000), stored(true));
    let chunk = format!("{:x}\r\n{line}\r\n", line.len());
    let chunked = html(Body::Endless(chunk.into_bytes())).header("Transfer-Encoding", "chunked");
    assert_eq!(cut(chunked, 100_000), stored(true));
}

#[test]
fn a_length_that_is_too_small_ends_the_page_there() {
    let text = page("Short", &prose(4, 60), &[]);
    let mut bytes = text.clone().into_bytes();
    bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad");
    let lying = Body::Lying { declared: text.len(), bytes };
    assert_eq!(cut(html(lying), 1 << 20), ("stored".to_owned(), false));
}

#[test]
fn chunks_that_break_off_or_are_none_are_bad_responses() {
    let chunked = |body: &str| {
        let head = "Content-Type: text/html\r\nConnection: close\r\nTransfer-Encoding: chunked";
        Page::body(Body::Raw(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}").into_bytes()))
    };
    let text = page("Chunks", &prose(4, 60), &[]);
    let whole = format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
    assert_eq!(outcome(chunked(&whole), |_| {}).0, "stored");
    let huge = "ffffffffffffffffff\r\nabc\r\n0\r\n\r\n";
    let cut_short = &whole[..whole.len() - 5];
    for broken in [cut_short, "5\r\nabc", "zz\r\nabc\r\n0\r\n\r\n", "", "-1\r\n", huge] {
        assert_eq!(refused(chunked(broken)), Some("bad_response"), "{broken:.20}");
    }
}

#[test]
fn an_answer_without_a_head_is_a_bad_response() {
    // HTTP/0.9 knows nothing but the body.
    let text = page("Old", &prose(4, 60), &[]).into_bytes();
    assert_eq!(refused(Page::body(Body::Raw(text))), Some("bad_response"));
}

#[test]
fn a_flood_of_headers_is_refused_by_number_and_by_bytes() {
    let text = page("Headers", &prose(4, 60), &[]);
    let flooded = |lines: usize, bytes: usize| {
        let lines: String =
            (0..lines).map(|n| format!("X-{n}: {}\r\n", "y".repeat(bytes))).collect();
        let head = format!("Connection: close\r\nContent-Length: {}", text.len());
        let answer = format!("HTTP/1.1 200 OK\r\n{lines}{head}\r\n\r\n{text}");
        Page::body(Body::Raw(answer.into_bytes()))
    };
    // 5,000 lines, and some 400 KiB, twice that if they come in one read.
    assert_eq!(outcome(flooded(4_998, 10), |_| {}).0, "stored");
    assert_eq!(refused(flooded(4_999, 10)), Some("bad_response"));
    assert_eq!(outcome(flooded(1, 300_000), |_| {}).0, "stored");
    assert_eq!(refused(flooded(1, 2_000_000)), Some("bad_response"));
    assert_eq!(refused(flooded(90, 20_000)), Some("bad_response"));
}

#[test]
fn a_robots_txt_that_means_harm_allows_nothing_and_holds_nobody_up() {
    let drip = Body::Drip { bytes: vec![b'#'; 1000], every: Duration::from_millis(100) };
    let bomb = gzip(&vec![b'#'; 64 << 20]);
    for robots in [Page::body(drip), encoded("gzip", bomb), Page::body(Body::Hang)] {
        let site = Site::new().page("/robots.txt", robots).html("/", page("F", &prose(1, 60), &[]));
        let web = Web::one(site);
        let mut config = config();
        config.fetch.first_byte_timeout = Time::from_millis(300);
        config.fetch.total_timeout = Time::from_millis(500);
        config.crawl.limits.idle_wait_max = Time::from_millis(0);
        let report = Crawled::new().run(&config, &web.seeds());
        assert_eq!((report.pages, report.failed_seeds.len(), web.asked("/")), (0, 1, 0));
    }
    // One without end is read up to 500 KiB, and its rules hold.
    let endless = Body::Endless(b"User-agent: *\nDisallow: /no\n".repeat(100));
    let site = Site::new()
        .page("/robots.txt", Page::body(endless))
        .html("/", page("F", &prose(1, 60), &["/no"]))
        .html("/no", page("No", &prose(2, 60), &[]));
    let web = Web::one(site);
    let report = Crawled::new().run(&config(), &web.seeds());
    assert_eq!((report.pages, web.asked("/no")), (1, 0));
}
