//! Error pages that are sent as pages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use uniqcrawl::config::Config;
use uniqcrawl::localweb::{Page, SeenRequest, Site};

use crate::lab::Lab;
use crate::support::{Crawled, Web, config, page, prose};

/// A site of ten articles with `links` to pages that it does not have.
fn site(links: u64) -> Site {
    let articles = (0..10).map(|article| format!("/article/{article}.html"));
    let lost = (0..links).map(|lost| format!("/lost/{lost}.html"));
    let paths: Vec<String> = articles.chain(lost).collect();
    let links: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut site = Site::new().html("/", page("Front", &prose(1, 80), &links));
    for article in 0..10 {
        let text = prose(100 + article, 80);
        let title = format!("Article {article}");
        site = site.html(&format!("/article/{article}.html"), page(&title, &text, &[]));
    }
    site
}

fn probing() -> Config {
    let mut config = config();
    config.crawl.limits.probe_error_page = true;
    config
}

/// The site has no such page.
fn is_lost(request: &SeenRequest) -> bool {
    request.target.starts_with("/lost/") || request.target.ends_with("-no-such-page")
}

fn probe(web: &Web, host: usize) -> String {
    let targets = web.web.targets(host);
    let mut probes = targets.keys().filter(|target| target.ends_with("-no-such-page"));
    let probe = probes.next().expect("the host is probed").clone();
    assert_eq!((probes.next(), targets[&probe]), (None, 1), "once");
    probe
}

#[test]
fn a_page_that_is_the_error_page_of_its_host_is_no_document() {
    // The page names the address, so that no two of them are the same.
    let apology = |target: &str| {
        let text = format!("Nothing is at {target}. {}", prose(7, 60));
        Page::html(page("Oops", &text, &[]))
    };
    let answer = move |request: &SeenRequest| is_lost(request).then(|| apology(&request.target));
    let web = Web::start(1, |_| vec![site(40).handler(answer)]);
    let crawled = Crawled::new();
    let report = crawled.run(&probing(), &web.seeds());
    let clusters = crawled.clusters();
    assert!(clusters.values().flatten().all(|url| !url.contains("/lost/")), "{clusters:?}");
    assert_eq!(clusters.len(), 11);
    assert_eq!((report.refused["soft_404"], report.refused["probe"]), (40, 1));
    let told = crawled.explain(&web.url(0, "/lost/3.html"));
    assert_eq!(told.reason, Some("soft_404"));
    let told = crawled.explain(&web.url(0, &probe(&web, 0)));
    assert_eq!(told.reason, Some("probe"));
    // Asked once for all: the store knows the answer.
    crawled.run(&probing(), &web.seeds());
    probe(&web, 0);
}

#[test]
fn a_host_that_answers_with_its_front_page_keeps_it_and_its_articles() {
    let front = page("Front", &prose(1, 80), &[]);
    let answer = move |request: &SeenRequest| is_lost(request).then(|| Page::html(front.clone()));
    let web = Web::start(1, |_| vec![site(0).handler(answer)]);
    let crawled = Crawled::new();
    crawled.run(&probing(), &[web.url(0, "/"), web.url(0, "/lost/1.html")]);
    assert_eq!(crawled.clusters().len(), 11);
    assert_eq!(crawled.explain(&web.url(0, "/")).state, "stored");
}

#[test]
fn a_host_that_tells_errors_by_their_status_loses_nothing() {
    let web = Web::start(1, |_| vec![site(5)]);
    let crawled = Crawled::new();
    let report = crawled.run(&probing(), &web.seeds());
    assert_eq!(crawled.clusters().len(), 11);
    assert_eq!((report.refused["http_error"], report.refused["probe"]), (5, 1));
    probe(&web, 0);
}

#[test]
fn no_host_is_probed_unless_that_is_set() {
    let web = Web::start(1, |_| vec![site(5)]);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    assert!(web.web.targets(0).keys().all(|target| !target.ends_with("-no-such-page")));
}

#[test]
fn an_error_page_is_never_canonical_however_many_link_to_it() {
    let apology = Page::html(page("Oops", &prose(7, 60), &[]));
    let answer = move |request: &SeenRequest| is_lost(request).then(|| apology.clone());
    let web = Web::start(4, |bases| {
        let lost = format!("{}/lost/1.html", bases[0]);
        let linking = |n: u64| Site::new().html("/", page("L", &prose(n, 80), &[&lost]));
        vec![site(3).handler(answer), linking(21), linking(22), linking(23)]
    });
    let crawled = Crawled::new();
    let report = crawled.run(&probing(), &web.seeds());
    assert_eq!(report.refused["soft_404"], 3);
    assert!(crawled.clusters().values().flatten().all(|url| !url.contains("/lost/")));
}

#[test]
fn what_an_error_page_links_to_is_not_followed() {
    let asked = std::sync::atomic::AtomicU64::new(0);
    let answer = move |request: &SeenRequest| {
        is_lost(request).then(|| {
            let next = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1_000;
            let links = [format!("/lost/{next}.html"), format!("/lost/{next}x.html")];
            let links: Vec<&str> = links.iter().map(String::as_str).collect();
            Page::html(page("Oops", &prose(7, 60), &links))
        })
    };
    let web = Web::start(1, |_| vec![site(5).handler(answer)]);
    let mut config = probing();
    config.frontier.host_addresses_max = 500;
    let crawled = Crawled::new();
    let report = crawled.run(&config, &web.seeds());
    // The pages that were read before the probe came back may have been followed one step.
    let lost = report.refused["soft_404"] + report.refused.get("host_budget").unwrap_or(&0);
    assert!(lost < 40, "{:?}", report.refused);
    assert_eq!(crawled.clusters().len(), 11);
}

/// An error page that names the address.
fn apology(request: &SeenRequest) -> Page {
    let text = format!("Nothing is at {}. {}", request.target, prose(7, 60));
    Page::html(page("Oops", &text, &[]))
}

#[test]
fn pages_that_were_stored_before_the_error_page_was_known_are_taken_out_again() {
    let answer = |request: &SeenRequest| is_lost(request).then(|| apology(request));
    let web = Web::start(2, |_| {
        // On another host the words are an article, of which the lost pages seem to be copies.
        let text = format!("Nothing is at /lost/77.html. {}", prose(7, 60));
        let story = page("The story of a page that nobody could find", &text, &[]);
        let other = Site::new().html("/", page("Other", &prose(2, 80), &["/a/story.html"]));
        vec![site(40).handler(answer), other.html("/a/story.html", story)]
    });
    let crawled = Crawled::new();
    let mut config = config();
    // Without a probe, half of the lost pages are stored.
    config.crawl.limits.pages_max = 35;
    crawled.run(&config, &web.seeds());
    let lost = |clusters: &BTreeMap<String, BTreeSet<String>>| {
        clusters.values().flatten().filter(|url| url.contains("/lost/")).count()
    };
    let before = crawled.clusters();
    assert!(lost(&before) > 15, "{before:?}");
    assert!(
        before.keys().any(|canonical| canonical.contains("/lost/")),
        "they stand for a cluster"
    );
    let mut config = probing();
    config.frontier.connections_per_host = 4;
    let report = crawled.run(&config, &web.seeds());
    let after = crawled.clusters();
    assert_eq!(lost(&after), 0, "{after:?}");
    assert_eq!((after.len(), report.documents), (13, 13));
    let story = after.get(web.url(1, "/a/story.html").as_str()).expect("it stands for itself");
    assert_eq!(story.len(), 1);
    assert_eq!(report.refused["soft_404"], 40);
    let told = crawled.explain(&web.url(0, "/lost/3.html"));
    assert_eq!(told.reason, Some("soft_404"));
    probe(&web, 0);
    // The texts are forgotten, so that nothing is found to be a copy of them.
    let report = crawled.run(&config, &[web.url(0, "/lost/99.html")]);
    assert_eq!((report.documents, report.refused["soft_404"]), (13, 1));
}

#[test]
fn pages_in_flight_while_the_probe_is_answered_end_as_errors_too() {
    let answer = |request: &SeenRequest| {
        let slow = if request.target.starts_with("/lost/") { 0 } else { 150 };
        is_lost(request).then(|| apology(request).after(Duration::from_millis(slow)))
    };
    let web = Web::start(1, |_| vec![site(40).handler(answer)]);
    let crawled = Crawled::new();
    let mut config = probing();
    config.frontier.connections_per_host = 8;
    let report = crawled.run(&config, &web.seeds());
    let clusters = crawled.clusters();
    assert_eq!((clusters.len(), report.documents), (11, 11), "{clusters:?}");
    assert_eq!(report.refused["soft_404"], 40);
    assert!(report.new > 11, "some were stored first: {}", report.new);
}

/// Checks a host that sends what it does not have to `target`, after a crawl that began with some
/// of it.
#[track_caller]
fn assert_sent(site: Site, target: &'static str, documents: usize) -> (Web, Crawled) {
    let answer = move |request: &SeenRequest| is_lost(request).then(|| Page::redirect(301, target));
    let web = Web::start(1, |_| vec![site.handler(answer)]);
    let crawled = Crawled::new();
    // Two are asked for before any page is stored, the others after the probe.
    let seeds = ["/lost/0.html", "/lost/1.html", "/"].map(|path| web.url(0, path));
    let report = crawled.run(&probing(), &seeds);
    let clusters = crawled.clusters();
    assert_eq!(clusters.len(), documents, "{clusters:?}");
    assert_eq!((report.refused["soft_404"], report.refused["probe"]), (20, 1));
    for lost in 0..20 {
        let told = crawled.explain(&web.url(0, &format!("/lost/{lost}.html")));
        assert_eq!((told.state, told.reason), ("refused", Some("soft_404")), "{lost}: {told:?}");
        assert!(told.facts.iter().all(|(name, _)| name != "alias of docId"), "{told:?}");
    }
    (web, crawled)
}

#[test]
fn addresses_that_lead_to_the_front_page_as_any_other_does_are_no_aliases() {
    let (web, crawled) = assert_sent(site(20), "/", 11);
    assert_eq!(crawled.explain(&web.url(0, "/")).state, "stored");
}

#[test]
fn addresses_that_lead_to_one_error_address_are_no_aliases_of_it() {
    // What stands there cannot be told from a page, and is one at most.
    let site = site(20).html("/oops.html", page("Oops", &prose(7, 60), &[]));
    assert_sent(site, "/oops.html", 12);
}

#[test]
fn a_front_page_that_is_elsewhere_is_found_though_errors_lead_there_too() {
    let paths: Vec<String> = (0..20).map(|lost| format!("/lost/{lost}.html")).collect();
    let links: Vec<&str> = paths.iter().map(String::as_str).collect();
    let home = page("Home", &prose(1, 80), &links);
    let site = Site::new().page("/", Page::redirect(301, "/home")).html("/home", home);
    let (web, crawled) = assert_sent(site, "/home", 1);
    assert_eq!(crawled.explain(&web.url(0, "/home")).state, "stored");
    let told = crawled.explain(&web.url(0, "/"));
    assert!(told.facts.iter().any(|(name, _)| name == "alias of docId"), "{told:?}");
}

#[test]
fn redirects_of_their_own_stay_aliases() {
    let answer = |request: &SeenRequest| is_lost(request).then(|| Page::redirect(302, "/"));
    let web = Web::start(1, |_| {
        let moved = Page::redirect(301, "/article/3.html");
        let site = site(3).page("/moved.html", moved);
        vec![site.html("/list", page("List", &prose(5, 80), &["/moved.html"])).handler(answer)]
    });
    let crawled = Crawled::new();
    crawled.run(&probing(), &[web.url(0, "/"), web.url(0, "/list")]);
    let told = crawled.explain(&web.url(0, "/moved.html"));
    assert!(told.facts.iter().any(|(name, _)| name == "alias of docId"), "{told:?}");
    assert_eq!(crawled.explain(&web.url(0, "/lost/2.html")).reason, Some("soft_404"));
}

#[test]
fn a_stored_page_that_turns_into_an_error_page_is_gone_at_the_second_visit() {
    let mut lab = Lab::new(1);
    lab.config.crawl.limits.probe_error_page = true;
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a"]));
    lab.html(0, "/a", page("A", &prose(2, 80), &[]));
    lab.run();
    let mut probes = lab.web.web.targets(0).into_keys();
    let probe = probes.find(|target| target.ends_with("-no-such-page")).expect("it is probed");
    // The host told errors by their status; another one sends them to its front page.
    let mut batch = lab.crawled.store.begin().unwrap();
    let mut known = uniqcrawl::corpus::boilerplate::ErrorPages::default();
    let host = lab.address(0, &probe).host;
    known.learn_target(&mut batch, host, &lab.url(0, "/")).unwrap();
    batch.commit().unwrap();
    lab.put(0, "/a", Page::redirect(302, "/"));
    lab.much_later();
    assert_eq!(lab.document(0, "/a").copies, 1, "it may be an error");
    lab.much_later();
    assert_eq!(lab.crawled.explain(&lab.url(0, "/a")).reason, Some("soft_404"));
}
