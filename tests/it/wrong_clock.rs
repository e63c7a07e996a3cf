//! Clocks that are wrong: ahead in one run and right in the next, or set while a crawl runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use uniqcrawl::base::clock::{Clock, Timestamp};
use uniqcrawl::base::units::Time;
use uniqcrawl::config::Config;
use uniqcrawl::crawl::{self, Context, Report};
use uniqcrawl::frontier::{LISTS, ROBOTS};
use uniqcrawl::localweb::{Body, Page, Site};
use uniqcrawl::store::{META, Update as _, View as _};
use uniqcrawl::urls::PageUrl;

use crate::polite::{host_row, site};
use crate::support::{Crawled, Web, config, page, prose};

const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;

/// Crawls with a clock that is off by so many milliseconds.
#[track_caller]
fn run_off(crawled: &Crawled, config: &Config, seeds: &[PageUrl], off: i64) -> Report {
    let context = Context { clock: Clock::off(off), ..Context::default() };
    let report = crawl::run(&crawled.store, &config.settings(), seeds, &context).unwrap();
    crawled.assert_clean();
    report
}

/// As the moment is now on a clock that is right.
fn now() -> Timestamp {
    Clock::System.now()
}

/// A run with a clock a day ahead had put the next request to each host off until tomorrow: the
/// next run, with a clock set right, ended at once with 0 pages.
#[test]
fn hosts_are_visited_after_a_run_with_a_clock_that_was_a_day_ahead() {
    let web = Web::one(site(6));
    let (crawled, mut config) = (Crawled::new(), config());
    config.frontier.delay = Time::from_millis(120);
    config.crawl.limits.pages_max = 2;
    assert_eq!(run_off(&crawled, &config, &web.seeds(), DAY_MS).pages, 2);
    config.crawl.limits.pages_max = 0;
    let report = run_off(&crawled, &config, &web.seeds(), 0);
    assert_eq!((report.pages, report.queued, &report.next_due), (5, 0, &None));
    web.assert_gaps(0, Duration::from_millis(120));
    // How old a robots.txt from the future is, nobody knows.
    assert_eq!(web.asked("/robots.txt"), 2);
    // Clocks that agree read it once.
    run_off(&crawled, &config, &web.seeds(), 0);
    assert_eq!(web.asked("/robots.txt"), 2);
}

/// The same after a crash: what was committed tells.
#[test]
fn a_day_ahead_is_found_out_after_a_crash_and_in_a_store_that_does_not_tell() {
    for row in [None, Some("last_contact"), Some("latest")] {
        let web = Web::one(site(4));
        let (crawled, mut config) = (Crawled::new(), config());
        config.frontier.delay = Time::from_millis(20);
        config.crawl.limits.pages_max = 2;
        run_off(&crawled, &config, &web.seeds(), DAY_MS);
        if let Some(row) = row {
            let mut batch = crawled.store.begin().unwrap();
            assert!(batch.remove(META, row).unwrap());
            batch.commit().unwrap();
        }
        config.crawl.limits.pages_max = 0;
        let report = run_off(&crawled, &config, &web.seeds(), 0);
        assert_eq!((report.pages, report.queued), (3, 0), "{row:?}");
    }
}

/// Tries that wait, hosts that are down and a robots.txt that cannot be had wait as long as they
/// would if it had happened just now, and no less.
#[test]
fn what_failed_while_the_clock_was_ahead_waits_for_its_own_time() {
    let failing = |target: &'static str| {
        let tries = AtomicUsize::new(0);
        site(2).handler(move |request| {
            let first = request.target == target && tries.fetch_add(1, Ordering::SeqCst) == 0;
            first.then(|| Page::status(500))
        })
    };
    let down = || {
        let tries = AtomicUsize::new(0);
        site(2).handler(move |request| {
            let early = request.target != "/robots.txt" && tries.fetch_add(1, Ordering::SeqCst) < 2;
            early.then(|| Page::body(Body::Close))
        })
    };
    let web = Web::start(3, |_| vec![failing("/1"), failing("/robots.txt"), down()]);
    let (crawled, mut config) = (Crawled::new(), config());
    let wait = Duration::from_millis(1_500);
    config.frontier.retry_delay = Time::from_millis(1_500);
    config.frontier.robots_retry = Time::from_millis(1_700);
    config.frontier.busy_delay = Time::from_millis(1_700);
    config.frontier.host_failures_max = 2;
    config.crawl.limits.idle_wait_max = Time::from_millis(500);
    let first = run_off(&crawled, &config, &web.seeds(), DAY_MS);
    assert!(first.queued > 0, "{first:?}");
    config.crawl.limits.idle_wait_max = Time::from_millis(60_000);
    let began = Instant::now();
    let report = run_off(&crawled, &config, &web.seeds(), 0);
    assert_eq!((report.queued, report.failed_seeds.len()), (0, 0), "{report:?}");
    for (host, target) in [(0, "/1"), (1, "/robots.txt"), (2, "/")] {
        let all = web.web.requests_of(host);
        let all: Vec<_> = all.iter().filter(|request| request.target == target).collect();
        let last = all.last().unwrap().started;
        assert!(all.len() > 1 && last >= began + wait, "host {host}: {:?}", last - began);
    }
}

/// A host that named a time itself may not be asked before that has passed by any clock.
#[test]
fn a_block_of_a_busy_host_is_at_most_the_longest_one() {
    let busy = || {
        site(1).handler(|request| {
            let page = request.target == "/1";
            page.then(|| Page::status(503).header("Retry-After", "3600"))
        })
    };
    let web = Web::one(busy());
    let (crawled, mut config) = (Crawled::new(), config());
    config.frontier.block_time_max = Time::from_secs(7_200);
    run_off(&crawled, &config, &web.seeds(), 30 * DAY_MS);
    assert!(host_row(&crawled.store, &web.seeds()[0]).blocked_until > now().after(days(29)));
    let requests = web.web.requests().len();
    let report = run_off(&crawled, &config, &web.seeds(), 0);
    assert_eq!((report.pages, web.web.requests().len()), (0, requests));
    let host = host_row(&crawled.store, &web.seeds()[0]);
    let left = now().until(host.blocked_until);
    assert!(left > Duration::from_mins(100) && left <= Duration::from_hours(2), "{left:?}");
    assert!(host.quiet_since <= host.blocked_until);
    assert_eq!(crawled.address(&web.url(0, "/1")).unwrap().not_before, host.blocked_until);
}

fn days(days: u64) -> Duration {
    Duration::from_hours(24 * days)
}

/// Pages, sitemaps and robots.txt files that a clock ahead has dated.
#[test]
fn what_is_read_again_is_read_after_its_own_time() {
    let site = |hosts: &[String]| {
        let root = hosts[0].trim_end_matches('/');
        let sitemap = format!("<urlset><url><loc>{root}/1</loc></url></urlset>");
        vec![
            site(2)
                .robots(&format!("Sitemap: {root}/map.xml\n"))
                .page("/map.xml", Page::html(sitemap).header("Content-Type", "text/xml")),
        ]
    };
    let web = Web::start(1, site);
    let (crawled, mut config) = (Crawled::new(), config());
    config.recrawl.enabled = true;
    let seed = web.seeds()[0].clone();
    run_off(&crawled, &config, &web.seeds(), 40 * DAY_MS);
    let ahead = crawled.address(&seed).unwrap();
    let wait = ahead.visited.until(ahead.revisit.due);
    assert!(ahead.visited > now().after(days(39)) && wait == Duration::from_hours(1));

    run_off(&crawled, &config, &web.seeds(), 0);
    let right = crawled.address(&seed).unwrap();
    assert!(right.visited <= now() && right.discovered <= now(), "{right:?}");
    assert!(right.revisit.due <= right.visited.after(wait), "{right:?}");
    assert!(right.revisit.due > now().after(wait).before(Duration::from_mins(5)), "{right:?}");
    let snapshot = crawled.store.snapshot().unwrap();
    let map = web.url(0, "/map.xml");
    assert!(snapshot.get(LISTS, map.as_str()).unwrap().unwrap().read <= now());
    for entry in snapshot.rows(ROBOTS).unwrap() {
        let copy = entry.unwrap().row().unwrap();
        assert!(copy.fetched <= now(), "{copy:?}");
    }
    drop(snapshot);
    web.web.forget();
    let report = run_off(&crawled, &config, &web.seeds(), 2 * HOUR_MS);
    assert_eq!((report.revisits.due, web.asked("/"), web.asked("/map.xml")), (2, 1, 1));
}

/// A crawl in the middle of which the clock of the machine is set.
#[track_caller]
fn set_during_a_crawl(to: i64) {
    let clock = Clock::off(0);
    let wall = clock.clone();
    let pages = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&pages);
    let web = Web::one(site(6).handler(move |request| {
        let page = request.target != "/robots.txt";
        if page && seen.fetch_add(1, Ordering::SeqCst) == 2 {
            wall.set_off(to);
        }
        None
    }));
    let (crawled, mut config) = (Crawled::new(), config());
    config.frontier.delay = Time::from_millis(150);
    let context = Context { clock, ..Context::default() };
    let began = Instant::now();
    let seeds = web.seeds();
    let report = crawl::run(&crawled.store, &config.settings(), &seeds, &context).unwrap();
    crawled.assert_clean();
    assert_eq!((report.pages, report.queued), (7, 0), "{to}: it neither ends early nor waits");
    assert!(began.elapsed() < Duration::from_mins(10), "{:?}", began.elapsed());
    web.assert_gaps(0, Duration::from_millis(150));
    let last = crawled.address(&web.url(0, "/6")).unwrap().visited;
    assert!(last <= now() && last > now().before(Duration::from_mins(10)), "{last}");
}

/// The next request to the host was an hour away, which is longer than a run waits: it ended.
#[test]
fn a_clock_that_is_set_back_an_hour_ends_no_crawl() {
    set_during_a_crawl(-HOUR_MS);
}

/// All waits were over at once.
#[test]
fn a_clock_that_is_set_forward_makes_no_crawl_impolite() {
    set_during_a_crawl(HOUR_MS);
}

/// A host that says "busy until noon" means its own clock.
#[test]
fn a_date_until_which_a_host_is_busy_is_one_of_its_clock() {
    let date = |seconds: i64| {
        let time = jiff::Timestamp::from_second(now().0 / 1_000 + seconds).unwrap();
        time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    };
    for off in [DAY_MS, -DAY_MS, 0] {
        let tries = AtomicUsize::new(0);
        let web = Web::one(Site::new().html("/", page("P", &prose(1, 80), &[])).handler(
            move |request| {
                let first = request.target == "/" && tries.fetch_add(1, Ordering::SeqCst) == 0;
                let busy = || {
                    let page = Page::status(503).header("Date", &date(0));
                    page.header("Retry-After", &date(2))
                };
                first.then(busy)
            },
        ));
        let (crawled, mut config) = (Crawled::new(), config());
        config.crawl.limits.idle_wait_max = Time::from_secs(60);
        assert_eq!(run_off(&crawled, &config, &web.seeds(), off).pages, 1, "{off}");
        let all = web.web.requests_of(0);
        let wait = all[2].started.duration_since(all[1].finished);
        assert!(wait >= Duration::from_millis(1_900), "{off}: {wait:?}");
    }
}
