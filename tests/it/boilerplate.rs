//! What the pages of a host repeat: learned in a crawl, left out of texts, kept over a restart.

use std::collections::HashSet;

use uniqcrawl::config::Config;
use uniqcrawl::corpus::boilerplate::Counts;
use uniqcrawl::corpus::documents::{copies_of, read_body};
use uniqcrawl::corpus::tables::{BOILERPLATE, DOCUMENTS};
use uniqcrawl::localweb::Site;
use uniqcrawl::page::{self, Limits, RawPage};
use uniqcrawl::store::{Row as _, View as _};

use crate::support::{Crawled, Web, config, page, prose};

const PAGES: u64 = 40;

/// What every page repeats: a banner, terms of delivery, a legal text.
fn shared() -> [String; 3] {
    [prose(901, 24), prose(902, 30), prose(903, 18)]
}

/// A story in the middle of what its site repeats.
fn story(title: &str, text: &str) -> String {
    let [banner, terms, legal] = shared();
    format!(
        "<!DOCTYPE html><html><head><title>{title}</title></head><body><article><h1>{title}</h1>\
         <p>{banner}</p><p>{text}</p><h2>Delivery</h2><p>{terms}</p><p>{legal}</p></article>\
         </body></html>"
    )
}

fn own(number: u64) -> String {
    prose(number + 10, 90)
}

/// The front page, the stories, and further pages among the links.
fn site(first: &[(&str, String)], last: &[(&str, String)]) -> Site {
    let stories: Vec<String> = (0..PAGES).map(|number| format!("/story/{number}")).collect();
    let mut links: Vec<&str> = first.iter().map(|(path, _)| *path).collect();
    links.extend(stories.iter().map(String::as_str));
    links.extend(last.iter().map(|(path, _)| *path));
    let front = Site::new().html("/", page("Front", &prose(1, 60), &links));
    let site = stories.iter().zip(0..).fold(front, |site, (path, number)| {
        site.html(path, story(&format!("Story {number}"), &own(number)))
    });
    first.iter().chain(last).fold(site, |site, (path, html)| site.html(path, html.clone()))
}

/// Every page is counted before the one after the next is fetched.
fn stepwise() -> Config {
    let mut config = config();
    config.crawl.limits.batch_pages_max = 1;
    config
}

fn text(crawled: &Crawled, web: &Web, path: &str) -> String {
    let snapshot = crawled.store.snapshot().unwrap();
    let url = web.url(0, path).to_string();
    for entry in snapshot.rows(DOCUMENTS).unwrap() {
        let copies = copies_of(&snapshot, entry.unwrap().key().unwrap()).unwrap();
        if let Some((_, copy)) = copies.into_iter().find(|(address, _)| *address == url) {
            return read_body(&snapshot, copy.content).unwrap().unwrap();
        }
    }
    panic!("{url} is not stored");
}

fn story_text(crawled: &Crawled, web: &Web, number: u64) -> String {
    text(crawled, web, &format!("/story/{number}"))
}

/// How many of the shared blocks stand in a text.
fn repeats(text: &str) -> usize {
    shared().iter().filter(|block| text.contains(block.trim())).count()
}

#[test]
fn late_pages_are_stored_without_what_their_site_repeats() {
    let web = Web::one(site(&[], &[]));
    let crawled = Crawled::new();
    let report = crawled.run(&stepwise(), &web.seeds());
    for number in 0..4 {
        assert_eq!(repeats(&story_text(&crawled, &web, number)), 3, "story {number}");
    }
    for number in 20..PAGES {
        let text = story_text(&crawled, &web, number);
        assert_eq!(text, own(number).trim(), "story {number}");
    }
    let removed = report.boilerplate_removed;
    assert!(removed.pages >= 20 && removed.pages < PAGES, "{removed:?}");
    assert_eq!(removed.blocks, removed.pages * 4, "the heading goes with its section");
    let facts = crawled.explain(&web.url(0, "/story/39")).facts;
    assert!(facts.contains(&("boilerplate removed".to_owned(), "4 blocks".to_owned())));
    assert_eq!(crawled.clusters().len() as u64, PAGES + 1);
}

#[test]
fn a_setting_leaves_all_texts_whole() {
    let web = Web::one(site(&[], &[]));
    let crawled = Crawled::new();
    let mut config = stepwise();
    config.extract.boilerplate.learn_boilerplate = false;
    let report = crawled.run(&config, &web.seeds());
    assert_eq!(report.boilerplate_removed.blocks, 0);
    assert!((0..PAGES).all(|number| repeats(&story_text(&crawled, &web, number)) == 3));
}

#[test]
fn copies_of_an_early_page_join_it_whole() {
    let copy = story("The copied one", &prose(500, 90));
    let paths = ["/m/1", "/m/2", "/m/3", "/m/4", "/m/5", "/m/6"];
    let late: Vec<(&str, String)> = paths.iter().map(|path| (*path, copy.clone())).collect();
    let web = Web::one(site(&[("/m/0", copy)], &late));
    let crawled = Crawled::new();
    crawled.run(&stepwise(), &web.seeds());
    let first = web.url(0, "/m/0").to_string();
    let clusters = crawled.clusters();
    let copies = clusters.values().find(|copies| copies.contains(&first)).unwrap();
    assert_eq!(copies.len(), 7, "{copies:?}");
    for path in paths {
        assert_eq!(repeats(&text(&crawled, &web, path)), 3);
        let facts = crawled.explain(&web.url(0, path)).facts;
        assert!(facts.contains(&("found by".to_owned(), "exact_content".to_owned())));
    }
}

#[test]
fn one_article_under_many_addresses_does_not_erase_itself() {
    let copy = page("Alone", &format!("{}</p><p>{}", prose(7, 60), prose(8, 60)), &[]);
    let paths: Vec<String> = (0..20).map(|number| format!("/copy/{number}")).collect();
    let links: Vec<&str> = paths.iter().map(String::as_str).collect();
    let front = Site::new().html("/", page("Front", &prose(1, 60), &links));
    let web = Web::one(paths.iter().fold(front, |site, path| site.html(path, copy.clone())));
    let crawled = Crawled::new();
    let report = crawled.run(&stepwise(), &web.seeds());
    assert_eq!(report.boilerplate_removed.blocks, 0);
    assert_eq!(crawled.clusters().len(), 2);
}

#[test]
fn a_page_that_is_mostly_repeated_stays_whole() {
    let mostly = story("Terms", &prose(600, 40));
    let web = Web::one(site(&[], &[("/terms", mostly)]));
    let crawled = Crawled::new();
    crawled.run(&stepwise(), &web.seeds());
    assert_eq!(repeats(&story_text(&crawled, &web, PAGES - 1)), 0);
    assert_eq!(repeats(&text(&crawled, &web, "/terms")), 3);
}

#[test]
fn a_restart_goes_on_with_the_counts() {
    let web = Web::one(site(&[], &[]));
    let crawled = Crawled::new();
    let mut config = stepwise();
    config.crawl.limits.pages_max = 12;
    crawled.run(&config, &web.seeds());
    let stored = || {
        let snapshot = crawled.store.snapshot().unwrap();
        let rows = snapshot.rows(BOILERPLATE).unwrap();
        rows.map(|entry| entry.unwrap().row().unwrap()).collect::<Vec<_>>()
    };
    let before = stored();
    assert_eq!(before.len(), 1);
    assert_eq!(before[0].repeated().len(), 4);
    config.crawl.limits.pages_max = 0;
    let report = crawled.run(&config, &web.seeds());
    assert_eq!(report.boilerplate_removed.pages, report.pages, "all pages of the second run");
    assert_ne!(stored(), before);
}

#[test]
fn counts_keep_the_last_pages_and_a_bounded_number_of_blocks() {
    let mut counts = Counts::default();
    assert!(!counts.add(&[]), "a page without blocks tells nothing");
    assert!(counts.add(&[1, 2, 10]));
    assert!(!counts.add(&[1, 2, 10]), "a copy tells nothing");
    assert!((11..14).all(|own| counts.add(&[1, 2, own])));
    assert!(counts.repeated().is_empty(), "four pages are too few");
    assert!(counts.add(&[1, 2, 14]));
    assert_eq!(counts.repeated(), HashSet::from([1, 2]));
    assert_eq!(Counts::decode(&counts.encode()).unwrap(), counts);
    // Another layout takes over, whatever else stands on the pages.
    for own in 0..2_000_u64 {
        let blocks: Vec<u64> =
            [3].into_iter().chain((0..40).map(|n| 1_000 + own * 40 + n)).collect();
        assert!(counts.add(&blocks));
        assert!(counts.repeated().contains(&3) || own < 100);
    }
    assert_eq!(counts.repeated(), HashSet::from([3]));
    assert!(counts.encode().len() < 24 << 10);
    assert_eq!(Counts::decode(&counts.encode()).unwrap(), counts);
    let huge: Vec<u64> = (0..100_000).collect();
    for first in 0..10 {
        counts.add(&huge[first..]);
    }
    assert!(counts.encode().len() < 24 << 10);
}

#[test]
fn a_row_of_counts_that_cannot_be_is_refused() {
    let mut counts = Counts::default();
    counts.add(&[1, 2]);
    let row = counts.encode().into_owned();
    for cut in 0..row.len() {
        assert!(Counts::decode(&row[..cut]).is_err());
    }
    let mut more = row;
    more[1] = 0;
    assert!(Counts::decode(&more).is_err(), "a block on more pages than there are");
}

/// The text of a page without what is repeated in `others`.
fn without(html: &str, others: &str) -> String {
    let input = |html: &'static str| RawPage { bytes: html.as_bytes(), ..RawPage::default() };
    let leak = |html: &str| &*Box::leak(html.to_owned().into_boxed_str());
    let none = HashSet::new();
    let (_, blocks) = page::page_without(&input(leak(others)), &Limits::default(), &none);
    let known: std::collections::HashSet<u64> = blocks.keys.into_iter().collect();
    page::page_without(&input(leak(html)), &Limits::default(), &known).0.text
}

#[test]
fn titles_headings_and_labels_of_own_text_stay() {
    let make = |own: u64, value: &str, more: &str| {
        let [first, second, third, fourth] =
            [own, own + 1, own + 2, own + 3].map(|seed| prose(seed, 60));
        format!(
            "<title>The lamp on the hill</title><article><p>{first}</p>\
             <h2>The lamp on the hill</h2><p>{second}</p><table>\
             <tr><th>Height</th><td>{value}</td></tr><tr><th>Made</th><td>here</td></tr></table>\
             <p>{third}</p><h2>Use</h2><p>{fourth}</p><h2>Delivery</h2><p>{more}</p></article>"
        )
    };
    let shared = "Delivery takes  three days, and\n returns are <b>free</b> of charge for a month.";
    let again = "Delivery takes three days, and returns are free of charge for a month.";
    let text = without(&make(11, "70 cm", again), &make(21, "12 cm", shared));
    let own = [11, 12, 13, 14].map(|seed| prose(seed, 60).trim().to_owned());
    let [first, second, third, fourth] = own;
    let middle = format!("The lamp on the hill\n{second}\nHeight\t70 cm\n{third}\nUse");
    let expected = format!("{first}\n{middle}\n{fourth}");
    assert_eq!(text, expected);
}
