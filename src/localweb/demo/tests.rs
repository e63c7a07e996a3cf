//! The demo web beside what it says of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use encoding_rs::GBK;

use super::super::{Body, Page, SeenRequest, Site};
use super::{HOSTS, sites, truth};

fn demo() -> Vec<Site> {
    let bases: Vec<String> = (0..HOSTS).map(|host| format!("http://127.77.0.{host}:1")).collect();
    sites(&bases)
}

fn answer(site: &Site, target: &str) -> Page {
    let now = Instant::now();
    let (method, target, headers) = ("GET".to_owned(), target.to_owned(), Vec::new());
    let request = SeenRequest { host: 0, method, target, headers, started: now, finished: now };
    site.answer(&request).into_owned()
}

fn bytes(page: &Page) -> Vec<u8> {
    match &page.body {
        Body::Bytes(bytes) => bytes.clone(),
        other => panic!("the demo has no such answer: {other:?}"),
    }
}

/// The words of an article; for Chinese, its characters.
fn words(site: &Site, target: &str) -> Vec<String> {
    let page = answer(site, target);
    assert_eq!(page.status, 200, "{target}");
    let bytes = bytes(&page);
    let gbk = String::from_utf8_lossy(&bytes).contains("charset=\"gb2312\"");
    let html =
        if gbk { GBK.decode(&bytes).0.into_owned() } else { String::from_utf8(bytes).unwrap() };
    let (_, text) = html.split_once("</h1>").unwrap();
    let (text, _) = text.split_once("</article>").unwrap();
    let text = text.replace("<p>", " ").replace("</p>", " ");
    if html.contains("lang=\"zh\"") {
        text.chars().filter(|char| char.is_alphanumeric()).map(String::from).collect()
    } else {
        text.split_whitespace().map(str::to_owned).collect()
    }
}

/// All runs of four words, which two texts that only share a vocabulary do not have in common.
fn runs(words: &[String]) -> BTreeSet<&[String]> {
    words.windows(4).collect()
}

/// The share of the runs of the smaller text that both have.
fn shared(one: &[String], other: &[String]) -> f64 {
    let (one, other) = (runs(one), runs(other));
    one.intersection(&other).count() as f64 / one.len().min(other.len()) as f64
}

/// Host, path and words of all pages with an article that may be fetched, in order.
fn articles(sites: &[Site]) -> BTreeMap<(usize, String), Vec<String>> {
    let mut articles = BTreeMap::new();
    for (host, site) in sites.iter().enumerate() {
        for target in site.targets().filter(|target| !target.starts_with("/private/")) {
            let page = answer(site, target);
            if String::from_utf8_lossy(&bytes(&page)).contains("<article>") {
                articles.insert((host, target.to_owned()), words(site, target));
            }
        }
    }
    articles
}

#[test]
fn the_truth_names_every_article_and_every_copy() {
    let articles = articles(&demo());
    let truth = truth();
    let copies: BTreeMap<_, _> = truth.copies.into_iter().collect();
    let mut distinct: Vec<(&(usize, String), &[String])> = Vec::new();
    for (place, words) in &articles {
        if let Some(original) = copies.get(place) {
            let same = shared(words, &articles[original]);
            assert!(same > 0.75, "{place:?} shares {same} with {original:?}");
        } else {
            distinct.push((place, words));
        }
    }
    assert_eq!(copies.keys().filter(|place| !articles.contains_key(place)).count(), 0);
    assert_eq!(distinct.len() as u64, truth.articles);
    for (at, (place, words)) in distinct.iter().enumerate() {
        assert!(words.len() >= 80, "{place:?} has {} words", words.len());
        for (other_place, other) in &distinct[at + 1..] {
            // Pages of the manual share a notice of 60 words.
            let same = shared(words, other);
            assert!(same < 0.45, "{place:?} shares {same} with {other_place:?}");
        }
    }
}

#[test]
fn the_mirror_has_the_very_bytes_and_edited_copies_have_few_other_words() {
    let sites = demo();
    let articles = articles(&sites);
    for ((copy, path), original) in truth().copies {
        if copy == 2 {
            let (mirror, news) = (answer(&sites[2], &path), answer(&sites[1], &original.1));
            assert_eq!(bytes(&mirror), bytes(&news), "{path}");
        }
        if copy == 3 {
            let words = &articles[&(copy, path.clone())];
            let known: BTreeSet<&String> = articles[&original].iter().collect();
            let other = words.iter().filter(|word| !known.contains(word)).count();
            let share = other as f64 / words.len() as f64;
            // The time stamp and the advertisement are among them.
            assert!((0.02..0.10).contains(&share), "{path}: {share}");
        }
    }
}

#[test]
fn the_demo_is_the_same_each_time() {
    let (one, other) = (demo(), demo());
    for (one, other) in one.iter().zip(&other) {
        let targets: BTreeSet<&str> = one.targets().collect();
        assert_eq!(targets, other.targets().collect());
        for target in targets {
            assert_eq!(bytes(&answer(one, target)), bytes(&answer(other, target)), "{target}");
        }
    }
}

#[test]
fn the_trap_has_no_end() {
    let trap = &demo()[7];
    for target in ["/month/1", "/month/123456789", "/deep/", "/deep/deep/deep/deep/"] {
        assert_eq!(answer(trap, target).status, 200, "{target}");
    }
    assert_eq!(answer(trap, "/month/never").status, 404);
}
