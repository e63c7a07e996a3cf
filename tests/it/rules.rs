//! Rules learned from duplicates: what they save, and that they lose nothing.

use std::collections::BTreeSet;

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::config::Config;
use uniqcrawl::corpus::clusters;
use uniqcrawl::corpus::documents::DocId;
use uniqcrawl::corpus::export::{self, JSONL, Target, export};
use uniqcrawl::corpus::tables::{DOC_IDS, DOCUMENTS, UNSURE};
use uniqcrawl::frontier::rules::UrlRule;
use uniqcrawl::frontier::{Address, RULES, Reason, State};
use uniqcrawl::localweb::{Page, SeenRequest, Site};
use uniqcrawl::store::{META, Update as _, View as _};
use uniqcrawl::urls::PageUrl;
use uniqcrawl::web::robots::meta::Honour;

use crate::lab::Lab;
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

/// Settings without brakes by yield.
fn rules_only() -> Config {
    let mut config = config();
    config.frontier.yields.slow_after = 0;
    config.frontier.yields.stop_after = 0;
    config
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
    // The export lists each with its document and its rule.
    let listed = duplicates(&crawled, &Honour::default());
    let mut left: BTreeSet<String> =
        skipped.iter().map(|path| web.url(0, path).to_string()).collect();
    for row in listed.iter().filter(|row| row["reason"] == "skipped_by_rule") {
        let url = row["url"].as_str().unwrap();
        assert!(left.remove(url), "{url} was skipped, and is listed once");
        let article = url.split("?sid=").next().unwrap();
        let canonical = row["canonical"].as_str().unwrap();
        assert!(canonical.starts_with(&format!("{article}?sid=")), "{row}");
        let told = crawled.explain(&PageUrl::parse(url).unwrap());
        let id = ("docId".to_owned(), row["docId"].as_str().unwrap().to_owned());
        let rule = format!("{}: drop the parameter `sid`", row["rule"]);
        assert!(told.facts.contains(&id), "{told:?}");
        assert!(told.facts.contains(&("rule".to_owned(), rule)), "{told:?}");
        assert_eq!(crawled.explain(&PageUrl::parse(canonical).unwrap()).state, "stored");
    }
    assert_eq!(left, BTreeSet::new());
    let fetched = listed.iter().filter(|row| row.get("rule").is_none()).count() as u64;
    assert_eq!(fetched, articles - ARTICLES);
}

/// The list of duplicates of an export.
fn duplicates(crawled: &Crawled, honour: &Honour) -> Vec<serde_json::Value> {
    let folder = tempfile::tempdir().unwrap();
    let form = Target { format: &JSONL, folder: folder.path() };
    let config = export::Config { honour: honour.clone(), ..export::Config::default() };
    let summary = export(&crawled.store, form, &config, Timestamp(0)).unwrap();
    let text = std::fs::read_to_string(folder.path().join("duplicates.jsonl")).unwrap();
    let rows: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let by_rule = rows.iter().filter(|row| row["reason"] == "skipped_by_rule").count();
    assert_eq!((summary.duplicates, summary.skipped), (rows.len() as u64, by_rule as u64));
    rows
}

/// A site that names each article three times; of the first thirty no text may be shown, of the
/// others nothing.
fn site_with_terms() -> Site {
    let mut site = Site::new();
    let links: Vec<String> = (0..3)
        .flat_map(|sid| (0..60).map(move |article| format!("/a/{article}.html?sid={sid}")))
        .collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    site = site.html("/", page("Front", &prose(1, 80), &links));
    for (number, link) in (0_u64..).zip(&links) {
        let article = number % 60;
        let html = page(&format!("Article {article}"), &prose(100 + article, 80), &[]);
        let html = if article < 30 {
            html.replace("<head>", "<head><meta name=robots content=noarchive>")
        } else {
            html.replace("<head>", "<head><meta name=robots content=noai>")
        };
        site = site.html(link, html);
    }
    site
}

/// The number of the article of a row.
fn article_of(row: &serde_json::Value) -> u64 {
    let url = row["url"].as_str().unwrap();
    url.split("/a/").nth(1).unwrap().split('.').next().unwrap().parse().unwrap()
}

#[test]
fn what_is_skipped_is_not_listed_where_its_document_is_withheld() {
    let web = Web::one(site_with_terms());
    let crawled = Crawled::new();
    crawled.run(&rules_only(), &web.seeds());
    let all = duplicates(&crawled, &Honour { noarchive: false, noai: false, ..Honour::default() });
    let skipped = |rows: &[serde_json::Value]| {
        rows.iter().filter(|row| row["reason"] == "skipped_by_rule").count()
    };
    assert!(skipped(&all) > 40, "{}", skipped(&all));
    let some = duplicates(&crawled, &Honour { noarchive: false, noai: true, ..Honour::default() });
    assert!(some.iter().all(|row| article_of(row) < 30));
    let expected = all.iter().filter(|row| article_of(row) < 30).count();
    assert_eq!(some.len(), expected);
}

#[test]
fn what_is_skipped_is_listed_with_the_unsettled_document_of_its_page() {
    let web = Web::one(site_with_terms());
    let crawled = Crawled::new();
    crawled.run(&rules_only(), &web.seeds());
    let honour = Honour { noarchive: false, noai: true, ..Honour::default() };
    let all = Honour { noai: false, ..honour };
    let skipped: Vec<serde_json::Value> = {
        let rows = duplicates(&crawled, &all).into_iter();
        rows.filter(|row| row["reason"] == "skipped_by_rule").collect()
    };
    let shown = skipped.iter().find(|row| article_of(row) < 30).unwrap();
    let hidden = skipped.iter().find(|row| article_of(row) >= 30).unwrap();
    // Their documents become part of that of the front page, and nothing is sure of that.
    let mut batch = crawled.store.begin().unwrap();
    let front = batch.first(DOCUMENTS).unwrap().unwrap().key().unwrap();
    for row in [shown, hidden] {
        let id: DocId = row["docId"].as_str().unwrap().parse().unwrap();
        let number = batch.get(DOC_IDS, id).unwrap().unwrap();
        let content = batch.get(DOCUMENTS, number).unwrap().unwrap().root;
        for url in clusters::merge(&mut batch, number, front, Timestamp(9)).unwrap() {
            Address::set_document(&mut batch, &url, front).unwrap();
        }
        batch.put(UNSURE, content, &String::new()).unwrap();
    }
    batch.remove(META, "settled").unwrap();
    batch.commit().unwrap();
    crawled.assert_clean();
    let listed = |honour: &Honour, of: &serde_json::Value| {
        let rows = duplicates(&crawled, honour).into_iter();
        rows.into_iter().find(|row| row["url"] == of["url"])
    };
    let row = listed(&all, shown).unwrap();
    assert_eq!(row["canonical"], shown["canonical"], "its own page, not the front page");
    assert_ne!(row["docId"], shown["docId"], "that leads to the front page");
    assert!(listed(&all, hidden).is_some() && listed(&honour, shown).is_some());
    assert_eq!(listed(&honour, hidden), None, "its document is withheld");
}

#[test]
fn without_rules_every_address_is_fetched() {
    let web = Web::start(1, |_| vec![site(SESSIONS)]);
    let crawled = Crawled::new();
    let mut config = rules_only();
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
    crawled.run(&rules_only(), &web.seeds());
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

#[test]
fn a_rule_that_ceases_to_hold_is_found_out_whatever_the_addresses_are() {
    const FEW: usize = 140;
    let path = |number: u64, list: u64| format!("/a/{number}.html?sid={list}");
    let web = Web::start(1, |bases| {
        // None of these would be chosen if chance, such as a hash, chose one in thirty.
        let unchosen = |number: &u64| {
            let url = format!("{}{}", bases[0], path(*number, 1));
            !PageUrl::parse(&url).unwrap().hash64().is_multiple_of(30)
        };
        let numbers: Vec<u64> = (0..).filter(unchosen).take(FEW).collect();
        let mut site = Site::new();
        site = site.html("/", page("Front", &prose(1, 80), &["/list/0.html", "/list/1.html"]));
        for list in 0..2 {
            let links: Vec<String> = numbers.iter().map(|number| path(*number, list)).collect();
            let links: Vec<&str> = links.iter().map(String::as_str).collect();
            let list_path = format!("/list/{list}.html");
            site = site.html(&list_path, page("List", &prose(50 + list, 80), &links));
            for (at, number) in numbers.iter().enumerate() {
                // The last fifty differ.
                let seed = if at < FEW - 50 { 1000 + number } else { 1000 * (list + 2) + number };
                let text = page(&format!("Article {seed}"), &prose(seed, 80), &[]);
                site = site.html(&path(*number, list), text);
            }
        }
        vec![site]
    });
    let crawled = Crawled::new();
    crawled.run(&rules_only(), &web.seeds());
    assert_eq!(crawled.clusters().len(), FEW + 50 + 3);
    let snapshot = crawled.store.snapshot().unwrap();
    let rules = snapshot.rows(RULES).unwrap();
    let rules: Vec<UrlRule> = rules.map(|entry| entry.unwrap().row().unwrap()).collect();
    assert!(rules.iter().any(|rule| rule.demotions == 1), "it was active: {rules:?}");
}

/// A site of 100 articles and 500 copies of ten texts; from `new_from` on the copies are articles.
fn copies(new_from: u64) -> Site {
    let paths: Vec<String> = (0..500)
        .map(|copy| format!("/copy/{copy}.html"))
        .chain((0..100).map(|article| format!("/article/{article}.html")))
        .collect();
    let links: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut site = Site::new().html("/", page("Front", &prose(1, 80), &links));
    for copy in 0..500 {
        let seed = if copy < new_from { 100 + copy % 10 } else { 10_000 + copy };
        let title = format!("Copy {seed}");
        site = site.html(&format!("/copy/{copy}.html"), page(&title, &prose(seed, 80), &[]));
    }
    for article in 0..100 {
        let title = format!("Article {article}");
        let text = prose(3000 + article, 80);
        site = site.html(&format!("/article/{article}.html"), page(&title, &text, &[]));
    }
    site
}

fn braked() -> Config {
    let mut config = config();
    config.frontier.yields.stop_after = 200;
    config
}

fn stored(crawled: &Crawled, web: &Web, folder: &str, numbers: std::ops::Range<u64>) -> u64 {
    let is_stored = |number: &u64| {
        let url = web.url(0, &format!("/{folder}/{number}.html"));
        matches!(crawled.address(&url).expect("it is known").state, State::Stored(_))
    };
    numbers.filter(is_stored).count() as u64
}

#[test]
fn a_kind_of_address_that_gives_nothing_new_is_slowed_and_stopped() {
    let web = Web::start(1, |_| vec![copies(500)]);
    let crawled = Crawled::new();
    let report = crawled.run(&braked(), &web.seeds());
    assert_eq!(stored(&crawled, &web, "article", 0..100), 100);
    let fetched = stored(&crawled, &web, "copy", 0..500);
    assert!((210..240).contains(&fetched), "{fetched}");
    assert_eq!(report.refused["no_yield"], 500 - fetched.cast_signed());
    let first = |state: fn(&State) -> bool| {
        let url = |copy: u64| web.url(0, &format!("/copy/{copy}.html"));
        let found = (0..500).map(url).find(|url| state(&crawled.address(url).unwrap().state));
        found.expect("there is one")
    };
    let told = crawled.explain(&first(|state| *state == State::Refused(Reason::NoYield)));
    assert_eq!(told.reason, Some("no_yield"));
    assert!(told.facts.iter().any(|(_, fact)| fact.contains("/copy/0.html: 10 new of")));
    // Once it is slowed, everything else on the host goes first.
    let log = web.web.requests_of(0);
    let last_article = log.iter().rposition(|line| line.target.starts_with("/article/")).unwrap();
    let copies = log[..last_article].iter().filter(|line| line.target.starts_with("/copy/"));
    assert!(copies.count() < 80);
}

#[test]
fn one_new_document_lets_all_of_its_kind_in_again() {
    let web = Web::start(1, |_| vec![copies(300)]);
    let crawled = Crawled::new();
    crawled.run(&braked(), &web.seeds());
    assert_eq!(stored(&crawled, &web, "copy", 300..500), 200);
}

#[test]
fn without_brakes_every_copy_is_fetched() {
    let web = Web::start(1, |_| vec![copies(500)]);
    let crawled = Crawled::new();
    crawled.run(&rules_only(), &web.seeds());
    assert_eq!(stored(&crawled, &web, "copy", 0..500), 500);
}

#[test]
fn short_pages_that_say_the_same_but_for_numbers_are_nothing_new() {
    // Days of a calendar without end: each names the next, and each is a document of its own.
    let day = |number: u64| {
        let text = format!("Events of day {number}. There are none, {number} times none.");
        let next = format!("/day/{}", number + 1);
        page(&format!("Day {number}"), &text, &[&next])
    };
    let answer = move |request: &SeenRequest| {
        let number = request.target.strip_prefix("/day/")?.parse().ok()?;
        Some(Page::html(day(number)))
    };
    let links: Vec<String> = (0..300).map(|number| format!("/event/{number}")).collect();
    let mut links: Vec<&str> = links.iter().map(String::as_str).collect();
    links.push("/day/1");
    let mut site = Site::new().html("/", page("Front", &prose(1, 80), &links)).handler(answer);
    for number in 0..300 {
        // Articles of a shop: only numbers differ, but the texts are long enough to be compared.
        let sizes = (1..40).map(|size| format!("size {}", (number + 1) * 7_919 * size % 9_973));
        let text = sizes.collect::<Vec<_>>().join(", ");
        site = site.html(&format!("/event/{number}"), page(&format!("Event {number}"), &text, &[]));
    }
    let web = Web::start(1, |_| vec![site]);
    let mut config = braked();
    config.frontier.yields.alike_stop_after = 210;
    // Where it ends if nothing stops it.
    config.frontier.host_addresses_max = 900;
    let crawled = Crawled::new();
    let report = crawled.run(&config, &web.seeds());
    let targets = web.web.targets(0);
    let asked = |folder: &str| targets.keys().filter(|path| path.starts_with(folder)).count();
    assert_eq!((asked("/event/"), report.refused["no_yield"]), (300, 1));
    assert!((211..225).contains(&asked("/day/")), "{}", asked("/day/"));
}

#[test]
fn an_article_is_fetched_under_a_skipped_address_when_its_stored_one_is_gone() {
    let lab = Lab::new(1);
    let path = |article: u64, sid: u64| format!("/a/{article}.html?sid={sid}");
    let paths: Vec<String> =
        (0..3).flat_map(|sid| (0..60).map(move |article| path(article, sid))).collect();
    let links: Vec<&str> = paths.iter().map(String::as_str).collect();
    lab.html(0, "/", page("Front", &prose(1, 80), &links));
    for article in 0..60 {
        let html = page(&format!("Article {article}"), &prose(100 + article, 80), &[]);
        for sid in 0..3 {
            lab.html(0, &path(article, sid), html.clone());
        }
    }
    lab.run();
    let state = |article: u64, sid: u64| lab.address(0, &path(article, sid)).state;
    let is_skipped = |article: u64, sid: u64| matches!(state(article, sid), State::Skipped { .. });
    // An article of which one address is stored and two are skipped.
    let alone = |article: &u64| is_skipped(*article, 1) && is_skipped(*article, 2);
    let article = (0..60).find(alone).expect("some are skipped twice");
    let id = lab.document(0, &path(article, 0)).id;
    // Its session is over.
    lab.remove(0, &path(article, 0));
    lab.much_later();
    lab.much_later();
    assert_eq!(lab.crawled.explain(&lab.url(0, &path(article, 0))).reason, Some("gone"));
    lab.next_day();
    let State::Stored(_) = state(article, 1) else { panic!("{:?}", state(article, 1)) };
    let document = lab.document(0, &path(article, 1));
    assert_eq!((document.id, document.gone.0), (id, 0), "it is the document that it was");
    let other = (0..60).rfind(alone).expect("others stay skipped");
    assert_ne!(other, article);
}

#[test]
fn pages_that_boilerplate_makes_alike_at_first_are_not_braked() {
    let terms = prose(9, 150);
    let paths: Vec<String> = (0..200).map(|sku| format!("/p/{sku}.html")).collect();
    let links: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut site = Site::new().html("/", page("Shop", &prose(1, 80), &links));
    for sku in 0..200_u64 {
        let number = |part: u64| (sku + 1) * 7_919 * part % 9_973;
        let sizes: Vec<String> = (1..5).map(|part| format!("size {}", number(part))).collect();
        let text = sizes.join(", ");
        let html = page(&format!("SKU-{}", number(5)), &format!("{text}</p><p>{terms}"), &[]);
        site = site.html(&paths[sku as usize], html);
    }
    let web = Web::start(1, |_| vec![site]);
    let mut config = config();
    config.frontier.yields.slow_after = 20;
    config.frontier.yields.stop_after = 60;
    let crawled = Crawled::new();
    let report = crawled.run(&config, &web.seeds());
    assert_eq!(report.refused.get("no_yield"), None);
    assert_eq!(web.web.targets(0).keys().filter(|path| path.starts_with("/p/")).count(), 200);
}
