//! A run that reads no page says why, by host and reason: on the screen and in the report.

use uniqcrawl::base::clock::{Clock, Timestamp};
use uniqcrawl::base::units::Time;
use uniqcrawl::config::Config;
use uniqcrawl::crawl::{self, Context, NoPages, Report};
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::urls::PageUrl;

use crate::polite::site;
use crate::support::{Crawled, Web, config, crawl as run_binary};

/// What a run says, as `host number: reason, addresses` with the words.
fn said(web: &Web, report: &Report) -> Vec<(String, String)> {
    assert_eq!(report.pages, 0);
    let row = |why: &NoPages| {
        let host = (0..web.web.hosts()).find(|host| {
            let url = web.url(*host, "/");
            url.host_key().as_str() == why.host
        });
        let host = host.map_or(why.host.clone(), |host| host.to_string());
        (format!("{host}: {}, {}", why.reason, why.addresses), why.line())
    };
    report.no_pages.iter().map(row).collect()
}

#[track_caller]
fn check(site: Site, config: &Config, expected: &[&str], words: &str) {
    let web = Web::one(site);
    let report = Crawled::new().run(config, &web.seeds());
    let said = said(&web, &report);
    let codes: Vec<&str> = said.iter().map(|(code, _)| code.as_str()).collect();
    assert_eq!(codes, expected, "{report:?}");
    assert!(said[0].1.contains(words), "{said:?}");
    assert_eq!(report.why_no_pages().is_some(), !expected.is_empty());
}

#[test]
fn every_way_of_an_only_host_to_give_no_page_is_told() {
    let mut config = config();
    config.crawl.limits.idle_wait_max = Time::from_millis(200);
    config.frontier.robots_retry = Time::from_secs(600);
    config.frontier.retry_delay = Time::from_secs(600);
    let page = || site(1);
    check(page().robots("User-agent: *\nDisallow: /\n"), &config, &["0: robots_disallowed, 1"], "");
    let down = page().page("/robots.txt", Page::status(500));
    check(down, &config, &["0: robots_unreachable, 1"], "backing off until");
    let busy = page().page("/", Page::status(503).header("Retry-After", "3600"));
    check(busy, &config, &["0: busy, 1"], "backing off until");
    let failing = page().page("/", Page::status(500));
    check(failing, &config, &["0: http_error, 1"], "another try is due at");
    let missing = page().page("/", Page::status(404));
    check(missing, &config, &["0: http_error, 1"], ", as of 20");
    let slow = page().robots("User-agent: *\nCrawl-delay: 900\n");
    check(slow, &config, &["0: delay, 1"], "the next request may be sent at");
    let moved = page().page("/", Page::redirect(301, "/gone"));
    check(moved, &config, &["0: http_error, 1"], "");
    config.fetch.allow_private = false;
    check(page(), &config, &["0: address_refused, 1"], "private");
}

#[test]
fn hosts_are_told_apart_and_too_many_are_counted() {
    let web = Web::start(14, |_| {
        let closed = |_| site(1).robots("User-agent: *\nDisallow: /\n");
        let mut sites: Vec<Site> = (0..13).map(closed).collect();
        sites.push(site(1).page("/", Page::status(404)));
        sites
    });
    let report = Crawled::new().run(&config(), &web.seeds());
    let said = said(&web, &report);
    assert_eq!(said.len(), 10, "{said:?}");
    assert_eq!(said[9].0, ": more, 5");
    assert!(said[..9].iter().all(|(code, line)| code.ends_with(", 1") && line.contains("://")));
    assert!(report.why_no_pages().unwrap().ends_with("(and 9 more)"));
}

#[test]
fn a_second_run_says_that_all_was_visited_or_is_not_modified() {
    let site = Site::new().handler(|request| {
        let conditional = request.headers.iter().any(|(name, _)| name == "if-none-match");
        let html = crate::support::page("P", &crate::polite::text(1), &[]);
        let page = || Page::html(html).header("ETag", "\"1\"");
        let answer = || if conditional { Page::status(304) } else { page() };
        (request.target == "/").then(answer)
    });
    let web = Web::one(site);
    let (crawled, mut config) = (Crawled::new(), config());
    let clock = Clock::hand(Timestamp(1_800_000_000_000));
    let run = |config: &Config, seeds: &[PageUrl]| {
        let context = Context { clock: clock.clone(), ..Context::default() };
        crawl::run(&crawled.store, &config.settings(), seeds, &context).unwrap()
    };
    let first = run(&config, &web.seeds());
    assert_eq!((first.pages, first.no_pages, first.failed_seeds), (1, vec![], vec![]));
    let again = said(&web, &run(&config, &web.seeds()));
    assert_eq!(again[0].0, ": visited_before, 1");
    assert!(again[0].1.contains("every seed") && again[0].1.contains("--recrawl"), "{again:?}");
    config.recrawl.enabled = true;
    let early = said(&web, &run(&config, &web.seeds()));
    assert!(early[0].1.contains("the next is due for another visit at 2027-01-15"), "{early:?}");
    clock.advance(std::time::Duration::from_hours(2));
    let due = said(&web, &run(&config, &web.seeds()));
    assert_eq!(due[0].0, ": unmodified, 1");
    // Without seeds, and after a stop.
    assert_eq!(said(&web, &run(&config, &[]))[0].0, ": nothing_to_visit, 0");
    let context = Context { clock: clock.clone(), ..Context::default() };
    assert_eq!(context.stop.ask(), 1);
    let new = [web.url(0, "/new")];
    let stopped = crawl::run(&crawled.store, &config.settings(), &new, &context).unwrap();
    let stopped = said(&web, &stopped);
    assert_eq!([&stopped[0].0, &stopped[1].0], [": interrupted, 0", "0: waits, 1"]);
}

/// The binary ended with "0 pages", status 0 and no word.
#[test]
fn the_summary_and_the_report_say_it() {
    let (web, folder) = (Web::one(site(1)), tempfile::tempdir().unwrap());
    let seeds = folder.path().join("seeds.txt");
    std::fs::write(&seeds, web.seeds()[0].to_string()).unwrap();
    let run = |more: &[&str]| {
        let arguments =
            ["--seeds", "seeds.txt", "--store", "s", "--allow-private", "--delay", "0s"];
        let output = run_binary(&[&arguments, more].concat(), folder.path());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!run(&[]).contains("no page was read"));
    let shown = run(&[]);
    let line = "no page was read:\n  every seed was visited before: --recrawl visits pages again";
    assert!(shown.contains(line), "{shown}");
    let report: serde_json::Value = serde_json::from_str(&run(&["--json"])).unwrap();
    assert_eq!(report["no_pages"][0]["reason"], "visited_before");
    assert_eq!(report["no_pages"][0]["addresses"], 1);
}
