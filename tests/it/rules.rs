//! Rules learned from duplicates: what they save, and that they lose nothing.

use std::collections::BTreeSet;

use uniqcrawl::frontier::State;
use uniqcrawl::localweb::Site;

use crate::support::{Crawled, Web, config, page, prose};

/// Articles of the site.
const ARTICLES: u64 = 200;

/// Sessions under which every article can be had.
const SESSIONS: u64 = 4;

/// A site that names each article several times, by a session, and whose `part` is no session.
/// From the list number `lying_from` on, the session tells articles apart.
fn site(lying_from: u64) -> Site {
    let mut site = Site::new();
    let lists: Vec<String> = (0..SESSIONS).map(|list| format!("/list/{list}.html")).collect();
    let links: Vec<&str> = lists.iter().map(String::as_str).collect();
    site = site.html("/", page("Front", &prose(1, 80), &links));
    for (list, path) in (0..SESSIONS).zip(&lists) {
        let links: Vec<String> = (0..ARTICLES)
            .map(|article| format!("/a/{article}.html?sid={list}"))
            .chain((0..ARTICLES).map(|article| format!("/p.html?part={article}")))
            .collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        site = site.html(path, page("List", &prose(50 + list, 80), &links));
        for article in 0..ARTICLES {
            let seed = if list < lying_from { 1000 + article } else { 9000 + article };
            let path = format!("/a/{article}.html?sid={list}");
            site = site.html(&path, page(&format!("Article {seed}"), &prose(seed, 80), &[]));
        }
    }
    for part in 0..ARTICLES {
        let text = prose(5000 + part, 80);
        let path = format!("/p.html?part={part}");
        site = site.html(&path, page(&format!("Part {part}"), &text, &[]));
    }
    site
}

#[test]
fn a_session_is_learned_and_its_addresses_are_linked_unfetched() {
    let web = Web::start(1, |_| vec![site(SESSIONS)]);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    let fetched = web.web.targets(0);
    let articles = fetched.keys().filter(|target| target.starts_with("/a/")).count() as u64;
    assert!(articles < ARTICLES * 2, "{articles} of {} were fetched", ARTICLES * SESSIONS);
    // Some of the rest are fetched all the same, to find out whether the rule still holds.
    assert!(articles > ARTICLES + 10, "{articles}");
    let clusters = crawled.clusters();
    let distinct = 2 * ARTICLES + SESSIONS + 1;
    assert_eq!(clusters.len() as u64, distinct, "no article is lost or taken for another one");
    // Every address that was not fetched is linked to the stored page of its article.
    let mut skipped = BTreeSet::new();
    for list in 0..SESSIONS {
        for article in 0..ARTICLES {
            let path = format!("/a/{article}.html?sid={list}");
            let address = crawled.address(&web.url(0, &path)).expect("it is known");
            match address.state {
                State::Stored(_) => assert!(fetched.contains_key(&path), "{path}"),
                State::Skipped { of, .. } => {
                    assert!(!fetched.contains_key(&path), "{path}");
                    assert!(of.contains(&format!("/a/{article}.html?sid=")), "{path}: {of}");
                    skipped.insert(path);
                }
                state => panic!("{path}: {state:?}"),
            }
        }
    }
    assert_eq!(skipped.len() as u64 + articles, ARTICLES * SESSIONS);
    let told = crawled.explain(&web.url(0, skipped.first().expect("some are skipped")));
    assert_eq!((told.state, told.reason), ("skipped", Some("skipped_by_rule")));
    assert!(told.facts.iter().any(|(name, _)| name == "docId"), "{told:?}");
    assert!(told.facts.iter().any(|(_, value)| value.contains("drop the parameter `sid`")));
}

#[test]
fn without_rules_every_address_is_fetched() {
    let web = Web::start(1, |_| vec![site(SESSIONS)]);
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.rules.learn_rules = false;
    crawled.run(&config, &web.seeds());
    let fetched = web.web.targets(0);
    let articles = fetched.keys().filter(|target| target.starts_with("/a/")).count() as u64;
    assert_eq!(articles, ARTICLES * SESSIONS);
}

#[test]
fn a_rule_that_ceases_to_hold_loses_no_article() {
    let web = Web::start(1, |_| vec![site(2)]);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    let clusters = crawled.clusters();
    assert_eq!(clusters.len() as u64, 3 * ARTICLES + SESSIONS + 1);
    for article in 0..ARTICLES {
        for list in 2..SESSIONS {
            let url = web.url(0, &format!("/a/{article}.html?sid={list}"));
            let state = crawled.address(&url).expect("it is known").state;
            assert!(matches!(state, State::Stored(_)), "{url}: {state:?}");
        }
    }
}
