//! What pages allow to be done with their text: honoured when it is stored, exported and shown.

use std::fs;

use serde_json::Value;
use uniqcrawl::base::clock::{Clock, Timestamp};
use uniqcrawl::corpus::export::{CSV, Config, JSONL, Target, export};
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::page::{Limits, RawPage, page as extract_page};
use uniqcrawl::web::robots::meta::Honour;

use crate::support::{Crawled, Web, config, page, prose};

fn with_meta(title: &str, seed: u64, name: &str, content: &str) -> String {
    let html = page(title, &prose(seed, 80), &[]);
    html.replace("<title>", &format!("<meta name=\"{name}\" content=\"{content}\"><title>"))
}

fn with_header(title: &str, seed: u64, name: &str, value: &str) -> Page {
    let html = page(title, &prose(seed, 80), &[]);
    Page::html(html).header(name, value)
}

fn web() -> Web {
    let links = [
        "/plain",
        "/noindex",
        "/none",
        "/ours",
        "/theirs",
        "/noarchive",
        "/noai",
        "/tdm",
        "/tdm-header",
        "/tag",
        "/over",
        "/later",
        "/twice",
        "/twice/also/here",
    ];
    let far = "unavailable_after: 1 Jan 2199 00:00:00 GMT";
    let site = Site::new()
        .html("/", page("Front", &prose(1, 80), &links))
        .html("/plain", page("Plain", &prose(2, 80), &[]))
        .html("/noindex", with_meta("No", 3, "robots", "noindex"))
        .html("/none", with_meta("None", 4, "ROBOTS", "NONE"))
        .html("/ours", with_meta("Ours", 5, "uniqcrawl", "noindex"))
        .html("/theirs", with_meta("Theirs", 6, "otherbot", "noindex, noarchive"))
        .html("/noarchive", with_meta("Archive", 7, "robots", "noarchive"))
        .html("/noai", with_meta("Training", 8, "robots", "noai, noimageai"))
        .html("/tdm", with_meta("Mining", 9, "tdm-reservation", "1"))
        .page("/tdm-header", with_header("Mining too", 10, "tdm-reservation", "1"))
        .page("/tag", with_header("Tag", 11, "X-Robots-Tag", "uniqcrawl: noarchive"))
        .html("/over", with_meta("Over", 12, "robots", "unavailable_after: 2001-01-01"))
        .html("/later", with_meta("Later", 13, "robots", far))
        .html("/twice", with_meta("Twice", 14, "robots", "noai"))
        .html("/twice/also/here", page("Twice", &prose(14, 80), &[]));
    Web::one(site)
}

/// The rows of a file of an export, each as path and one field.
fn rows(folder: &std::path::Path, file: &str, field: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut rows: Vec<_> = rows
        .map(|row| {
            let url = row["url"].as_str().unwrap();
            let path = url.splitn(4, '/').last().unwrap().to_owned();
            (path, row[field].as_str().unwrap().to_owned())
        })
        .collect();
    rows.sort();
    rows
}

fn owned(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn pages_that_ask_for_it_stay_out_of_the_corpus_or_their_text_does() {
    let web = web();
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    for path in ["/noindex", "/none", "/ours", "/over"] {
        assert_eq!(crawled.explain(&web.url(0, path)).reason, Some("noindex"), "{path}");
    }
    let asks = |path: &str| {
        let facts = crawled.explain(&web.url(0, path)).facts;
        facts.into_iter().find(|(name, _)| name == "asks for").map(|(_, value)| value)
    };
    assert_eq!(asks("/plain"), None);
    assert_eq!(asks("/theirs"), None);
    assert_eq!(asks("/tag").as_deref(), Some("noarchive"));
    assert_eq!(asks("/noai").as_deref(), Some("noai"));
    assert_eq!(asks("/tdm-header").as_deref(), Some("tdm-reservation"));
    assert_eq!(asks("/later").as_deref(), Some("unavailable_after 2199-01-01T00:00:00Z"));

    let folder = tempfile::tempdir().unwrap();
    let now = Clock::System.now();
    let export = |format, honour: Honour| {
        let to = folder.path().join("out");
        let config = Config { honour, ..Config::default() };
        export(&crawled.store, Target { format, folder: &to }, &config, now).unwrap()
    };
    let summary = export(&JSONL, Honour::default());
    assert_eq!((summary.documents, summary.duplicates), (7, 1));
    let counts: Vec<_> = summary.withheld.into_iter().collect();
    let named = [("noai", 1), ("noarchive", 2), ("tdm_reservation", 2)];
    assert_eq!(counts, named.map(|(reason, count)| (reason.to_owned(), count)));
    let out = folder.path().join("out");
    let kept = [
        ("", ""),
        ("later", ""),
        ("noarchive", "noarchive"),
        ("plain", ""),
        ("tag", "noarchive"),
        ("theirs", ""),
        ("twice/also/here", ""),
    ];
    assert_eq!(rows(&out, "documents.jsonl", "withheld"), owned(&kept));
    for (path, text) in rows(&out, "documents.jsonl", "text") {
        assert_eq!(text.is_empty(), matches!(path.as_str(), "noarchive" | "tag"), "{path}");
    }
    let left = [("noai", "noai"), ("tdm", "tdm_reservation"), ("tdm-header", "tdm_reservation")];
    assert_eq!(rows(&out, "withheld.jsonl", "reason"), owned(&left));
    // The copy that does not allow it is listed as a copy of the one that does.
    let dropped = rows(&out, "duplicates.jsonl", "canonical");
    assert!(dropped.len() == 1 && dropped[0].0 == "twice", "{dropped:?}");
    assert!(dropped[0].1.ends_with("/twice/also/here"), "{dropped:?}");

    let off =
        Honour { noarchive: false, noai: false, tdm_reservation: false, unavailable_after: false };
    assert!(export(&JSONL, off).withheld.is_empty());
    let all = rows(&out, "documents.jsonl", "text");
    assert_eq!(all.len(), 10);
    assert!(all.iter().all(|(_, text)| !text.is_empty()));
    assert_eq!(rows(&out, "withheld.jsonl", "reason"), []);
    export(&CSV, Honour::default());
    assert!(fs::read_to_string(out.join("documents.csv")).unwrap().contains(",noarchive,false,\n"));
    // The time comes while the page is in the store.
    let far = Timestamp(i64::MAX);
    let summary = uniqcrawl::corpus::export::export(
        &crawled.store,
        Target { format: &JSONL, folder: &out },
        &Config::default(),
        far,
    );
    assert_eq!(summary.unwrap().withheld["unavailable_after"], 1);
}

#[test]
fn noindex_can_be_switched_off() {
    let web = web();
    let crawled = Crawled::new();
    let mut config = config();
    config.crawl.limits.obey_noindex = false;
    crawled.run(&config, &web.seeds());
    assert_eq!(crawled.explain(&web.url(0, "/noindex")).state, "stored");
}

#[test]
fn what_is_no_snippet_is_text_unless_a_setting_says_otherwise() {
    let html = "<p>The bridge was opened.</p><div data-nosnippet><p>It <a href='http://h/x'>cost</a> \
        much.</p></div><p>People <span data-nosnippet=''>slowly </span>walked.</p>";
    let read = |drop_nosnippet| {
        let limits = Limits { drop_nosnippet, ..Limits::default() };
        let input = RawPage { bytes: html.as_bytes(), content_type: None, ..RawPage::default() };
        extract_page(&input, &limits)
    };
    assert_eq!(read(false).text, "The bridge was opened.\nIt cost much.\nPeople slowly walked.");
    let found = read(true);
    assert_eq!(found.text, "The bridge was opened.\nPeople walked.");
    assert_eq!(found.links.len(), 1);
}
