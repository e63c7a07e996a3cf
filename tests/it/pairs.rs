//! Two articles compared are what the judge makes of them, in words that say why.

use std::fs;

use proptest::prelude::*;
use serde_json::Value;
use uniqcrawl::corpus::dedup::{Comparison, compare};
use uniqcrawl::corpus::tables::DOCUMENTS;
use uniqcrawl::localweb::Site;
use uniqcrawl::neardup::{Config, Deduplicator, InputDocument, Preset, Verdict};
use uniqcrawl::store::{Store, View as _};

use crate::support::{Web, check_clean, config, crawl, page, prose};

/// Compares two articles, and asserts that the judge says the same of them.
#[track_caller]
fn check(config: &Config, one: InputDocument<'_>, other: InputDocument<'_>) -> Comparison {
    let found = compare(config, one, other).unwrap();
    let mut dedup = Deduplicator::new(config.clone()).unwrap();
    dedup.judge(one);
    let judged = dedup.judge(other) != Verdict::New;
    assert_eq!(found.same, judged, "{one:?} {other:?}: {found:?}");
    found
}

/// Addresses of the second article; that of the first is `http://site.test/docs/4/page-1.html`.
const ADDRESSES: [&str; 6] = [
    "http://site.test/docs/4/other.html",
    "http://site.test/docs/5/page-1.html",
    "http://site.test/docs/4/page-1.html",
    "http://site.test/rt5/page-1.html",
    "http://other.test/page.html",
    "",
];

const TITLES: [&str; 5] =
    ["A bridge for the harbour", "4.6. A bridge for the harbour", "The tides of May", "Home", ""];

/// A text of some words, of which every `step`th is another one.
fn edited(words: usize, step: usize) -> String {
    let text = prose(1, words);
    let words = text.split(' ').enumerate();
    let edit = |(at, word): (usize, &str)| {
        if at % step == step - 1 { format!("edit{at}") } else { word.to_owned() }
    };
    words.map(edit).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_kind_of_pair_is_what_the_judge_says() {
    let mut found = [0, 0];
    for words in [8, 30, 120] {
        let text = prose(1, words);
        let long = format!("{text} {}", prose(2, words));
        let others = [
            text.to_uppercase(),
            edited(words, 40),
            edited(words, 6),
            long,
            prose(3, words),
            String::new(),
        ];
        for (address, title, title_of_other) in ADDRESSES
            .iter()
            .flat_map(|a| TITLES.iter().map(move |t| (a, t)))
            .flat_map(|(a, t)| TITLES.iter().map(move |o| (a, t, o)))
        {
            for other in &others {
                let url = "http://site.test/docs/4/page-1.html";
                let one = InputDocument { title, text: &text, url, ..InputDocument::default() };
                let other = InputDocument {
                    title: title_of_other,
                    text: other,
                    url: address,
                    ..InputDocument::default()
                };
                found[usize::from(check(&Config::default(), one, other).same)] += 1;
            }
        }
    }
    assert!(found.iter().all(|count| *count > 300), "{found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_pair_is_what_the_judge_says(
        words in prop::sample::select(vec![10usize, 20, 45, 60, 150]),
        step in 2usize..50,
        more in 0usize..200,
        titles in (0usize..5, 0usize..5),
        addresses in (0usize..6, 0usize..6),
        preset in 0usize..4,
    ) {
        let text = prose(1, words);
        let other = format!("{} {}", edited(words, step), prose(9, more));
        let document = |text, title: usize, address: usize| {
            InputDocument { text, title: TITLES[title], url: ADDRESSES[address], ..InputDocument::default() }
        };
        let (one, other) =
            (document(&text, titles.0, addresses.0), document(&other, titles.1, addresses.1));
        let config = Preset::ALL[preset].config();
        let there = check(&config, one, other);
        let back = check(&config, other, one);
        prop_assert_eq!((there.same, there.reason), (back.same, back.reason));
    }
}

#[test]
fn the_reason_says_why() {
    let text = prose(1, 120);
    let near = edited(120, 30);
    let (short, config) = (prose(1, 30), Config::default());
    let one_site = ["http://site.test/a", "http://site.test/b"];
    let titles = ["A bridge for the harbour", "The tides of May"];
    let pair = |urls: [&'static str; 2], titles: [&'static str; 2], texts: [&str; 2]| {
        let document = |at: usize| (titles[at], texts[at], urls[at]);
        let ((title, text, url), (other_title, other_text, other_url)) = (document(0), document(1));
        let one = InputDocument { title, text, url, ..InputDocument::default() };
        let other = InputDocument {
            title: other_title,
            text: other_text,
            url: other_url,
            ..InputDocument::default()
        };
        let Comparison { same, reason, .. } = check(&config, one, other);
        (same, reason)
    };
    let differently =
        "pages that their site calls differently are one only if their texts are equal";
    let (same, reason) = pair(one_site, titles, [&text, &near]);
    assert!(!same && reason.starts_with(differently), "{reason}");
    let (same, reason) = pair(one_site, titles, [&text, &text]);
    assert_eq!((same, reason.as_str()), (true, "the normalised texts are equal"));
    let (same, reason) = pair(one_site, titles, [&short, &short]);
    let wanted = "the normalised texts are equal, but these are pages that their site calls \
                  differently, and one has 30 words of 50 that prove it";
    assert_eq!((same, reason.as_str()), (false, wanted));
    let (same, reason) = pair(one_site, ["", ""], [&short, &edited(30, 30)]);
    let wanted =
        "pages of one site that may be called the same, and one has 30 words of 50 that prove it";
    assert_eq!((same, reason.as_str()), (false, wanted));
    let (same, reason) = pair(one_site, [titles[0], titles[0]], [&text, &near]);
    assert!(same && reason.ends_with("pages that their site calls the same: enough"), "{reason}");
    let two_sites = ["http://site.test/a", "http://other.test/b"];
    let (same, reason) = pair(two_sites, [titles[0], titles[0]], [&text, &near]);
    assert!(same && reason.ends_with("pages of different sites, titles alike: enough"), "{reason}");
    let (same, reason) = pair(two_sites, titles, [&text, &prose(3, 120)]);
    assert_eq!((same, reason.as_str()), (false, "no key of the index leads from one to the other"));
    let (same, reason) = pair(two_sites, titles, [&prose(1, 10), &edited(10, 5)]);
    assert_eq!((same, reason.as_str()), (false, "one has 10 words: fewer than 16 must be equal"));
    let (same, reason) = pair(["", ""], ["", ""], [&text, &near]);
    assert!(same && reason.ends_with("at size 0.99: enough"), "{reason}");
}

#[test]
fn addresses_and_fields_of_lines_are_compared_too() {
    let folder = tempfile::tempdir().unwrap();
    let text = prose(1, 120);
    let near = edited(120, 30);
    let line = |id: &str, url: &str, title: &str, text: &str, category: &str| serde_json::json!({ "id": id, "url": url, "title": title, "text": text, "category": category });
    let lines = [
        line("a", "http://site.test/a", "A bridge for the harbour", &text, "sea"),
        line("b", "http://site.test/b", "The tides of May", &near, "sea"),
        line("c", "http://other.test/c", "The tides of May", &near, "land"),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(folder.path().join("in.jsonl"), lines.join("\n")).unwrap();
    let compared = |other: &str, more: &[&str]| {
        let arguments = [&["compare", "a", other, "--jsonl", "in.jsonl", "--json"], more].concat();
        let output = crawl(&arguments, folder.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let (of_site, of_other) = (compared("b", &[]), compared("c", &[]));
    assert_eq!((&of_site["same"], &of_other["same"]), (&false.into(), &true.into()));
    assert_eq!(of_site["bond"], "pages that their site calls differently");
    // A field that votes moves the fingerprint.
    let settings = "[[dedup.features.enums]]\nfield = \"category\"\n\
                    values = [\"sea\", \"land\"]\nweight = 500.0\n";
    fs::write(folder.path().join("crawl.toml"), settings).unwrap();
    let voted = compared("c", &["--config", "crawl.toml"]);
    assert_ne!(voted["distance"], of_other["distance"]);
}

#[test]
fn copies_of_a_store_are_compared_as_it_has_judged_them() {
    let text = prose(1, 120);
    let near = edited(120, 30);
    let links = ["/bridge", "/tides", "/again"];
    let site = Site::new()
        .html("/", page("Front page", &prose(50, 80), &links))
        .html("/bridge", page("A bridge for the harbour", &text, &[]))
        .html("/tides", page("The tides of May", &near, &[]))
        .html("/again", page("A bridge for the harbour", &edited(120, 25), &[]));
    let web = Web::one(site);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(&folder.path().join("store"), 16 << 20).unwrap();
    let report = uniqcrawl::crawl::run(
        &store,
        &config().settings(),
        &web.seeds(),
        &uniqcrawl::crawl::Context::default(),
    );
    assert_eq!(report.unwrap().pages, 4);
    check_clean(&store);
    let ids: Vec<(String, String)> = {
        let snapshot = store.snapshot().unwrap();
        let rows = snapshot.rows(DOCUMENTS).unwrap();
        rows.map(|entry| entry.unwrap().row().unwrap())
            .map(|row| (row.canonical, row.id.to_string()))
            .collect()
    };
    drop(store);
    let run = |one: &str, other: &str, json: bool| {
        let mut arguments = vec!["compare", "--store", "store", one, other];
        arguments.extend(json.then_some("--json"));
        let output = crawl(&arguments, folder.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let url = |path: &str| web.url(0, path).to_string();
    let (bridge, tides) = (url("/bridge"), url("/tides"));
    let said = run(&bridge, &tides, false);
    assert!(said.starts_with("two documents\n"), "{said}");
    let differently =
        "pages that their site calls differently are one only if their texts are equal";
    assert!(
        said.contains(differently) && said.contains("in the store they are two documents, "),
        "{said}"
    );
    assert!(said.contains("similarity of all they show"), "{said}");

    let found: Value = serde_json::from_str(&run(&bridge, &url("/again"), true)).unwrap();
    assert_eq!((&found["pair"]["same"], &found["store"]["same"]), (&true.into(), &true.into()));
    assert_eq!(found["pair"]["bond"], "pages that their site calls the same");
    assert_eq!(found["store"]["urls"], serde_json::json!([bridge, url("/again")]));
    // By identifier, the canonical copies are compared.
    let of_tides = &ids.iter().find(|(url, _)| *url == tides).unwrap().1;
    let (canonical, of_bridge) =
        ids.iter().find(|(_, id)| *id == found["store"]["docIds"][0]).unwrap();
    let by_id: Value = serde_json::from_str(&run(of_bridge, of_tides, true)).unwrap();
    assert_eq!(by_id["store"]["urls"], serde_json::json!([canonical, tides]));
    assert_eq!(by_id["store"]["docIds"], serde_json::json!([of_bridge, of_tides]));

    for (one, wanted) in [("http://nowhere.test/", "no document"), ("what", "neither a docId")] {
        let output = crawl(&["compare", "--store", "store", one, &tides], folder.path());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wanted), "{said}");
    }
}
