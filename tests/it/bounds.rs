//! Pages that would make a parser slow, and pages that are none: an answer in bounded time.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use proptest::prelude::*;
use uniqcrawl::base::clock::thread_time;
use uniqcrawl::page::{Limits, Page, RawPage, page};

/// Seconds of its processor that one page may take in a build without optimisation. A quadratic
/// parse of the same pages takes minutes.
const SECONDS_MAX: u64 = 20;

#[track_caller]
fn read(bytes: &[u8]) -> Page {
    let started = thread_time();
    let found = page(
        &RawPage { bytes, content_type: None, url: None, ..RawPage::default() },
        &Limits::default(),
    );
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
    let took = thread_time().saturating_sub(started);
    assert!(took < Duration::from_secs(SECONDS_MAX), "{start}: {took:?}");
    found
}

#[test]
fn nesting_without_end_is_flattened_and_its_text_kept() {
    for tag in ["div", "b", "table", "font", "blockquote", "span", "ul", "p", "li", "h1"] {
        let text = read(format!("{}the words", format!("<{tag}>").repeat(100_000)).as_bytes()).text;
        assert_eq!(text, "the words", "{tag}");
    }
    for tags in [
        "a",
        "select",
        "svg",
        "math",
        "rt",
        "td",
        "tr",
        "x-y",
        "template",
        "object",
        "button",
        "optgroup",
        "table><tr><td",
        "svg><g",
        "svg><desc",
        "math><mi",
        "svg><tr",
        "ul><li",
        "p><b",
        "i><table",
        "font><div",
        "ol><li",
        "optgroup><option",
        "rb><rt",
        "ruby><rt",
        "dl><dd",
    ] {
        let open = format!("<{tags}>").repeat(15_000);
        let close: String = tags.split("><").map(|name| format!("</{name}>")).collect();
        read(format!("{open}words{}<p>after", close.repeat(15_000)).as_bytes());
    }
}

#[test]
fn elements_that_cross_each_other_do_not_multiply() {
    for pattern in [
        "<a><b>",
        "<b></p>",
        "<a href=@><p>",
        "<b><p></b>",
        "<p><b c=@>x",
        "<b><i><u></b>x",
        "<b c=@></p>",
        "<font color=@><p>x</p>",
        "</p>",
        "<table><tr><td><b>",
        "<table>x",
        "<table><b>x",
        "<b><table><a>",
        "<i></b><p>",
        "<nobr>x",
        "<b class=@><div></b>",
        "<p><a><b><i></p>x",
        "<td><b>x</td>",
        "<select><b>",
        "<svg><p>",
        "<svg></p>",
        "<button><a>",
        "<form><div></form>",
        "<body a@=1>",
        "<html b@=1>",
        "</a></b></i>x",
        "<b></x>",
        "<div></x>",
        "<math><annotation-xml encoding=text/html><div>",
        "<div><table><td></div>",
        "<span><div></span>",
        "<table><td><b c=@>x</table><p>y",
        "<table><colgroup><b c=@><em>",
        "<dt><li>",
        "<p><hr a=@><x-y>",
        "<svg><font><g>",
    ] {
        let mut html = String::new();
        for n in 0..15_000 {
            html.push_str(&pattern.replace('@', &n.to_string()));
        }
        read(format!("{html}end").as_bytes());
    }
    // So many elements are opened anew that none are; the text and the links stay.
    let mut html = String::new();
    for n in 0..2_000 {
        write!(html, "<p><b id={n}><a href='http://h/{n}'>{n}</a>, she said, a word of it.</p>")
            .unwrap();
    }
    let found = read(html.as_bytes());
    assert!(found.text.contains("0, she said") && found.text.contains("1999, she said"));
    assert_eq!(found.links.len(), 2_000);
}

#[test]
fn tags_and_text_without_measure_are_read() {
    let attributes: String = (0..100_000).fold(String::new(), |mut all, n| {
        write!(all, " a{n}=1").unwrap();
        all
    });
    assert_eq!(read(format!("<div{attributes}>text</div>").as_bytes()).text, "text");
    let long = "a".repeat(10 << 20);
    read(format!("<p>before<div title=\"{long}\">text</div>").as_bytes());
    read(format!("<p>before<div title={long}").as_bytes());
    assert_eq!(
        read(format!("<p>on<!--{}-->ly", "<b> -- ".repeat(700_000)).as_bytes()).text,
        "only"
    );
    assert_eq!(read(format!("<p>on<!--{}", "<b>".repeat(1_700_000)).as_bytes()).text, "on");
    let script = "<script>var a = '<div><div>';</script>".repeat(100_000);
    assert_eq!(read(format!("{script}<p>words").as_bytes()).text, "words");
    for raw in ["script", "style", "textarea", "title", "plaintext", "xmp", "noscript", "iframe"] {
        read(format!("<p>before<{raw}>{}", "x <b> </".repeat(100_000)).as_bytes());
    }
    for odd in ["<", "</", "<?", "<!-", "&", "&not", "<!---->", "<!DOCTYPE ", "\0", "<br>"] {
        read(odd.repeat((512 << 10) / odd.len()).as_bytes());
    }
    let large = read("<p>words and words</p>\n".repeat((50 << 20) / 23).as_bytes());
    assert!(large.cut.is_some() && large.text.len() <= 4 << 20);
}

#[test]
fn what_is_no_page_is_read_as_what_it_is() {
    let frames = "<frameset><frame src=a><frame src=b></frameset><noframes><p>words</noframes>";
    for (bytes, text) in [
        (&b""[..], ""),
        (b"only words", "only words"),
        (b"<title>t</title>words", "words"),
        (b"{\"a\": [1, 2]}", "{\"a\": [1, 2]}"),
        (b"a\0b", "ab"),
    ] {
        assert_eq!(read(bytes).text, text);
    }
    read(frames.as_bytes());
    let rss = "<?xml version=\"1.0\"?><rss><item><title>News</title><description>\
        <![CDATA[<p>words</p>]]></description></item></rss>";
    read(rss.repeat(2_000).as_bytes());
    read("<svg><g><text>words</text></g></svg>".repeat(20_000).as_bytes());
    read(&"{\"a\":".repeat(400_000).into_bytes());
    for magic in [&b"\x89PNG\r\n\x1a\n"[..], b"%PDF-1.4\n", b"\xFF\xFE", b"\x1B$B", b"PK\x03\x04"] {
        let mut state = 7_u32;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        let bytes: Vec<u8> = magic.iter().copied().chain(noise.take(1 << 20)).collect();
        read(&bytes);
    }
}

/// What stands in comments, attributes and scripts is no tag, and changes nothing.
#[test]
fn tags_that_are_none_are_not_counted() {
    let decoys = [
        "<!-- <div> -->",
        "<!--> --><!-- <div> --!>",
        "<div title='<div><div>' data-x=\"a > b <p>\"></div>",
        "<script>'<div><div>'; <!-- <script> '</script>' --></script>",
        "<style>a > b { content: '<div>' }</style>",
        "<textarea><div></textarea>",
        "<svg><![CDATA[<div><g>]]><path/><g/></svg>",
        "<img><br><input><p><p><li><td>",
        "<table><tr><td>x<td>y<tr><th>z<tbody><tr><td>w</table>",
        "<select><option>a<option>b</select>",
    ];
    for decoy in decoys {
        // More than a page may be deep.
        for count in [3, 1_500] {
            let story = "They walked along the river, and nobody spoke a word of it. ".repeat(8);
            let decoys = decoy.repeat(count);
            let html = format!("<body>{decoys}<div><div><p>{story}the end.</p></div></div>");
            assert!(read(html.as_bytes()).text.contains("the end."), "{count} times {decoy}");
        }
    }
}

const PAGE: &str = "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>A long walk</title>\
    <meta name=robots content='nofollow'><script>var x = '<div>'; if (1 < 2) { y(); }</script>\
    <style>p > b { color: red }</style></head><body class='home'><!-- top --><nav><ul><li>\
    <a href='/a'>One</a><li><a href=\"/b?c=d&amp;e\">Two</a></ul></nav><main><h1>A long walk</h1>\
    <p>We went up the hill, <b>slowly</b>, and <i>nobody <b>spoke</i> much</b>.</p><table><tr><td>\
    12<td>34</table><svg><title>hill</title><path d='M0 0'/></svg><pre>a &lt; b\n  c</pre>\
    <blockquote><p>夕方には雨が降りました。</p></blockquote><select><option>a<option>b</select>\
    </main><footer>&copy; the walkers</footer></body></html>";

/// One change of a page: kind, place, length and another place, in thousandths of the page.
type Change = (u8, u16, u16, u16);

fn changed(bytes: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (kind, at, length, other) in changes {
        let place = |thousandth: u16| bytes.len() * usize::from(thousandth) / 1_000;
        let (from, other) = (place(*at), place(*other));
        let to = (from + usize::from(*length)).min(bytes.len());
        match kind {
            0 if from < bytes.len() => bytes[from] ^= (*length % 255 + 1) as u8,
            1 => drop(bytes.drain(from..to)),
            2 => {
                let piece = bytes[from..to].to_vec();
                bytes.splice(other..other, piece);
            }
            3 => {
                let piece = bytes[from..to].repeat(50);
                bytes.splice(other..other, piece);
            }
            _ => bytes.truncate(from.max(1)),
        }
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec((0..5_u8, 0..1_000_u16, 0..200_u16, 0..1_000_u16), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn a_damaged_page_is_read_in_bounded_time(changes in changes(), header in 0..4_usize) {
        let bytes = changed(PAGE.as_bytes(), &changes);
        let headers =
            [None, Some("text/html; charset=gbk"), Some("text/html; charset=utf-16"), Some("x")];
        let input = RawPage { bytes: &bytes, content_type: headers[header], url: None, ..RawPage::default() };
        let started = thread_time();
        let page = page(&input, &Limits::default());
        prop_assert!(thread_time().saturating_sub(started) < Duration::from_secs(SECONDS_MAX));
        prop_assert!(page.text.len() <= bytes.len() * 6 + 64);
    }
}

/// Changes pages of the shared data, if the environment names its folder: `UNIQCRAWL_SHARED` and
/// the number of pages to make in `UNIQCRAWL_MUTANTS`.
#[test]
fn damaged_pages_of_the_shared_data_are_read() {
    let Some(shared) = std::env::var_os("UNIQCRAWL_SHARED").map(PathBuf::from) else {
        eprintln!("UNIQCRAWL_SHARED is not set: no pages are damaged");
        return;
    };
    let wanted =
        std::env::var("UNIQCRAWL_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let mut state = 11_u64;
    let mut next = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut made, mut slowest) = (0_u32, (Duration::ZERO, String::new()));
    'all: loop {
        for file in ["aeb", "daniel", "trafilatura", "wcxb_dev"] {
            let file = shared.join(format!("data/extraction/dev/{file}.jsonl.xz"));
            let mut xz = Command::new("xz");
            xz.arg("-dc").arg(&file).stdout(std::process::Stdio::piped());
            let mut child = xz.spawn().unwrap();
            for line in BufReader::new(child.stdout.take().unwrap()).lines() {
                let record: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
                let Some(html) = record["html"].as_str().filter(|_| made < wanted) else {
                    continue;
                };
                for _ in 0..3 {
                    let count = 1 + next(12);
                    let mut number = |below| next(below) as u16;
                    let changes: Vec<Change> = (0..count)
                        .map(|_| (number(5) as u8, number(1000), number(60_000), number(1000)))
                        .collect();
                    let bytes = changed(html.as_bytes(), &changes);
                    let started = thread_time();
                    read(&bytes);
                    made += 1;
                    let took = thread_time().saturating_sub(started);
                    if took > slowest.0 {
                        slowest = (took, format!("{} {changes:?}", record["id"]));
                    }
                }
            }
            child.wait().unwrap();
            if made >= wanted {
                break 'all;
            }
        }
    }
    eprintln!("{made} damaged pages; the slowest took {:?}: {}", slowest.0, slowest.1);
}
