//! Error pages that are sent as pages.

use uniqcrawl::config::Config;
use uniqcrawl::localweb::{Page, Request, Site};

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
fn is_lost(request: &Request) -> bool {
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
    let answer = move |request: &Request| is_lost(request).then(|| apology(&request.target));
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
    let answer = move |request: &Request| is_lost(request).then(|| Page::html(front.clone()));
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
fn lost_pages_that_lead_to_the_front_page_are_no_copies_of_it() {
    for status in [301, 302] {
        let answer = move |request: &Request| is_lost(request).then(|| Page::redirect(status, "/"));
        let web = Web::start(1, |_| vec![site(8).handler(answer)]);
        let crawled = Crawled::new();
        let report = crawled.run(&probing(), &web.seeds());
        assert_eq!((report.redirects, report.refused["probe"], web.asked("/")), (8, 1, 1));
        let clusters = crawled.clusters();
        assert_eq!(clusters.len(), 11);
        assert_eq!(clusters[web.url(0, "/").as_str()].len(), 1, "it is canonical, and alone");
        assert_eq!(crawled.explain(&web.url(0, "/lost/3.html")).state, "redirect");
        probe(&web, 0);
    }
}

#[test]
fn an_error_page_is_never_canonical_however_many_link_to_it() {
    let apology = Page::html(page("Oops", &prose(7, 60), &[]));
    let answer = move |request: &Request| is_lost(request).then(|| apology.clone());
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
    let answer = move |request: &Request| {
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
