//! Politeness on loopback, from the server's log: slow hosts, busy hosts, hosts that fail, delays
//! that robots.txt files ask for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use uniqcrawl::base::clock::{Clock, Timestamp};
use uniqcrawl::base::units::Time;
use uniqcrawl::config::Config;
use uniqcrawl::crawl::{self, Context, Report};
use uniqcrawl::frontier::{HOST_NUMBERS, HOSTS, Host};
use uniqcrawl::localweb::{Body, Page, Site};
use uniqcrawl::store::{COUNTERS, Store, View as _};
use uniqcrawl::urls::PageUrl;

use crate::support::{Crawled, Web, config, crawl as run_binary, page, prose};

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn text(seed: u64) -> String {
    prose(seed, 60)
}

/// A front page with links to `/1` and following.
pub(crate) fn site(pages: u64) -> Site {
    let links: Vec<String> = (1..=pages).map(|n| format!("/{n}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    (1..=pages).fold(Site::new().html("/", page("Front", &text(0), &links)), |site, n| {
        site.html(&format!("/{n}"), page("P", &text(n), &[]))
    })
}

pub(crate) fn host_row(store: &Store, url: &PageUrl) -> Host {
    let snapshot = store.snapshot().unwrap();
    let key = url.host_key();
    let number = snapshot.get(HOST_NUMBERS, key.as_str()).unwrap().unwrap();
    snapshot.get(HOSTS, number).unwrap().unwrap()
}

/// Crawls what is due at this moment of the clock, and nothing else.
fn run_at(store: &Store, config: &Config, seeds: &[PageUrl], clock: &Clock) -> Report {
    let mut config = config.clone();
    config.crawl.limits.idle_wait_max = Time::from_millis(0);
    let context = Context { clock: clock.clone(), ..Context::default() };
    crawl::run(store, &config.settings(), seeds, &context).unwrap()
}

#[test]
fn a_slow_host_gets_more_rest() {
    let slow = || {
        let answer = |n: u64| Page::html(page("P", &text(n), &["/1", "/2"])).after(ms(150));
        Site::new()
            .page("/robots.txt", Page::status(404).after(ms(150)))
            .page("/", answer(0))
            .page("/1", answer(1))
            .page("/2", answer(2))
    };
    let least = |change: &dyn Fn(&mut Config)| {
        let web = Web::one(slow());
        let crawled = Crawled::new();
        let mut config = config();
        config.frontier.delay = Time::from_millis(30);
        config.frontier.slowdown_max = 100;
        config.crawl.limits.pages_max = 1;
        change(&mut config);
        crawled.run(&config, &web.seeds());
        // What was learned holds after a restart.
        config.crawl.limits.pages_max = 0;
        crawled.run(&config, &web.seeds());
        assert_eq!(web.web.requests().len(), 4);
        assert!(host_row(&crawled.store, &web.seeds()[0]).response_ms >= 150);
        web.web.least_gap(0).unwrap()
    };
    let usual = least(&|config| config.frontier.response_factor = 3);
    assert!(usual >= ms(450), "{usual:?}");
    let capped = least(&|config| config.frontier.slowdown_max = 2);
    assert!(capped >= ms(60) && capped < ms(450), "{capped:?}");
    let off = least(&|config| config.frontier.response_factor = 0);
    assert!(off >= ms(30) && off < ms(450), "{off:?}");
}

#[test]
fn a_host_that_is_slow_once_recovers_by_halves() {
    let web = Web::one(
        Site::new()
            .page("/", Page::html(page("Front", &text(0), &["/1", "/2"])).after(ms(2_000)))
            .html("/1", page("P", &text(1), &[]))
            .html("/2", page("P", &text(2), &[])),
    );
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.delay = Time::from_millis(1);
    crawled.run(&config, &web.seeds());
    let now = host_row(&crawled.store, &web.seeds()[0]).response_ms;
    assert!((500..1_500).contains(&now), "{now} ms");
}

/// A date in one of the three forms, some seconds from now.
fn date(format: &str, seconds: i64) -> String {
    let now = Clock::System.now().0 / 1_000 + seconds;
    jiff::Timestamp::from_second(now).unwrap().strftime(format).to_string()
}

#[test]
fn retry_after_is_understood_in_all_its_forms() {
    type Form = (&'static str, fn() -> Option<String>, Duration);
    let imf = "%a, %d %b %Y %H:%M:%S GMT";
    assert!(date(imf, 0).ends_with("GMT"));
    let forms: [Form; 9] = [
        ("seconds", || Some("1".into()), ms(1_000)),
        ("IMF-fixdate", || Some(date("%a, %d %b %Y %H:%M:%S GMT", 3)), ms(1_500)),
        ("RFC 850", || Some(date("%A, %d-%b-%y %H:%M:%S GMT", 3)), ms(1_500)),
        ("asctime", || Some(date("%a %b %e %H:%M:%S %Y", 3)), ms(1_500)),
        ("past", || Some(date("%a, %d %b %Y %H:%M:%S GMT", -3_000)), ms(50)),
        ("zero", || Some("0".into()), ms(50)),
        ("garbage", || Some("in a while".into()), ms(270)),
        ("none", || None, ms(270)),
        ("above the cap", || Some("86400".into()), ms(2_500)),
    ];
    let web = Web::start(forms.len() * 2, |_| {
        // The front page of the first half is busy at first, the robots.txt of the other half.
        (0..forms.len() * 2)
            .map(|host| {
                let (_, value, _) = forms[host % forms.len()];
                let target = if host < forms.len() { "/" } else { "/robots.txt" };
                let tries = AtomicUsize::new(0);
                site(1).handler(move |request| {
                    let first =
                        request.target == target && tries.fetch_add(1, Ordering::SeqCst) == 0;
                    let page = Page::status(if host % 2 == 0 { 429 } else { 503 });
                    let page = value().into_iter().fold(page, |p, v| p.header("Retry-After", &v));
                    first.then_some(page)
                })
            })
            .collect()
    });
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.delay = Time::from_millis(50);
    config.frontier.busy_delay = Time::from_millis(300);
    config.frontier.block_time_max = Time::from_millis(2_500);
    config.frontier.retries_max = 0;
    config.crawl.limits.idle_wait_max = Time::from_millis(4_000);
    let report = crawled.run(&config, &web.seeds());
    assert_eq!(report.pages, forms.len() as u64 * 4, "no address is lost, each is tried again");
    for host in 0..web.web.hosts() {
        let (name, _, least) = forms[host % forms.len()];
        let requests = web.web.requests_of(host);
        let busy = usize::from(host < forms.len());
        // The whole host waits, whatever is asked of it next.
        let wait = requests[busy + 1].started.duration_since(requests[busy].finished);
        assert!(wait >= least, "{name} (host {host}): {wait:?}");
        let most = if least < ms(1_000) { ms(1_000) } else { ms(3_600) };
        assert!(wait < most, "{name} (host {host}): {wait:?}");
    }
}

#[test]
fn a_busy_host_without_header_is_asked_less_and_less_and_forgiven_when_it_is_quiet() {
    let busy = Arc::new(AtomicBool::new(true));
    let flag = busy.clone();
    let web = Web::one(site(60).handler(move |request| {
        let page = request.target != "/robots.txt" && flag.load(Ordering::SeqCst);
        page.then(|| Page::status(503))
    }));
    let (crawled, clock) = (Crawled::new(), Clock::hand(Timestamp(1_800_000_000_000)));
    let mut config = Config::default();
    config.fetch.allow_private = true;
    config.frontier.delay = Time::from_millis(0);
    config.frontier.busy_retries_max = 100;
    config.crawl.limits.pages_max = 1;
    let wait = || {
        run_at(&crawled.store, &config, &web.seeds(), &clock);
        let row = host_row(&crawled.store, &web.seeds()[0]);
        let wait = clock.now().until(row.blocked_until);
        clock.advance(wait);
        wait.as_millis() as u64
    };
    let (mut usual, mut even) = (60_000, 0);
    for _ in 0..14 {
        let found = wait();
        let least = usual - usual / 10;
        let most = (usual + usual / 10).min(86_400_000);
        assert!((least..=most).contains(&found), "{found} for {usual}");
        even += u32::from(found == usual);
        usual = (usual * 2).min(86_400_000);
    }
    assert!(even < 5, "waits are scattered");
    // Quiet for less than half an hour: nothing is forgiven, though pages were answered.
    busy.store(false, Ordering::SeqCst);
    assert_eq!(wait(), 0);
    clock.advance(Duration::from_mins(29));
    busy.store(true, Ordering::SeqCst);
    assert!(wait() > 70_000_000);
    busy.store(false, Ordering::SeqCst);
    assert_eq!(wait(), 0);
    clock.advance(Duration::from_mins(31));
    busy.store(true, Ordering::SeqCst);
    let found = wait();
    assert!((54_000..=66_000).contains(&found), "{found}");
    let refused =
        crawled.store.snapshot().unwrap().get(COUNTERS, "addresses.refused.busy").unwrap();
    assert!(refused.is_none());
}

#[test]
fn a_busy_answer_holds_back_its_whole_host_over_a_restart_and_no_other_host() {
    let web = Web::start(2, |_| {
        let busy = |host: u64| {
            let tries = AtomicUsize::new(0);
            site(4).handler(move |request| {
                let is_busy = host == 0 && request.target == "/1";
                let first = is_busy && tries.fetch_add(1, Ordering::SeqCst) == 0;
                first.then(|| Page::status(429).header("Retry-After", "3600"))
            })
        };
        vec![busy(0), busy(1)]
    });
    let (crawled, clock) = (Crawled::new(), Clock::hand(Timestamp(1_800_000_000_000)));
    let mut config = config();
    config.frontier.retries_max = 0;
    let run = || {
        web.web.forget();
        run_at(&crawled.store, &config, &web.seeds(), &clock);
        let asked = web.web.requests_of(0).into_iter().map(|request| request.target);
        (asked.collect::<Vec<_>>(), web.web.requests_of(1).len())
    };
    assert_eq!(run(), (["/robots.txt", "/", "/1"].map(str::to_owned).to_vec(), 6));
    // Each run opens the frontier anew.
    clock.advance(Duration::from_hours(1).saturating_sub(ms(1)));
    assert_eq!(run(), (vec![], 0));
    clock.advance(ms(1));
    // The address that met it has lost none of its tries, and goes after those that wait longer.
    assert_eq!(run(), (["/2", "/3", "/4", "/1"].map(str::to_owned).to_vec(), 0));
    assert_eq!(crawled.explain(&web.url(0, "/1")).state, "stored");
}

#[test]
fn busy_answers_and_failures_are_counted_apart() {
    let tries = AtomicUsize::new(0);
    // Busy three times, then an error, then well: with one try after a failure it is stored.
    let site = Site::new().html("/", page("Front", &text(1), &[])).handler(move |request| {
        let number = if request.target == "/" { tries.fetch_add(1, Ordering::SeqCst) } else { 9 };
        match number {
            0..3 => Some(Page::status(429)),
            3 => Some(Page::status(500)),
            _ => None,
        }
    });
    let web = Web::one(site);
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.retries_max = 1;
    crawled.run(&config, &web.seeds());
    assert_eq!(web.asked("/"), 5);
    let found = crawled.explain(&web.seeds()[0]);
    assert_eq!(found.state, "stored");
    assert!(found.facts.contains(&("busy answers".to_owned(), "3".to_owned())));
    // One that asks for no time is not asked for ever, and less and less.
    let web = Web::one(Site::new().handler(|request| {
        let page = request.target == "/";
        page.then(|| Page::status(429).header("Retry-After", "0"))
    }));
    config.frontier.delay = Time::from_millis(20);
    config.frontier.busy_retries_max = 4;
    config.frontier.busy_delay = Time::from_millis(300);
    let crawled = Crawled::new();
    crawled.run(&config, &web.seeds());
    assert_eq!(crawled.explain(&web.seeds()[0]).reason, Some("busy"));
    let asked = web.web.requests_of(0);
    assert_eq!(asked.len(), 6);
    for (at, least) in [(1, 20), (2, 40), (3, 80), (4, 160)] {
        let wait = asked[at + 1].started.duration_since(asked[at].finished);
        assert!(wait >= ms(least), "{at}: {wait:?}");
    }
}

#[test]
fn a_host_that_is_down_keeps_its_queue_and_is_tested_by_one_request_at_a_time() {
    let down = Arc::new(AtomicBool::new(false));
    let flag = down.clone();
    let web = Web::one(site(8).handler(move |_| {
        let down = flag.load(Ordering::SeqCst);
        down.then(|| Page::body(Body::Hang))
    }));
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(folder.path(), 16 << 20).unwrap();
    let (url, clock) = (web.seeds()[0].clone(), Clock::hand(Timestamp(1_800_000_000_000)));
    let mut config = config();
    config.fetch.first_byte_timeout = Time::from_millis(500);
    config.frontier.connections_per_host = 3;
    config.frontier.host_failures_max = 3;
    config.frontier.retries_max = 1;
    config.frontier.retry_delay = Time::from_millis(1_000);
    config.frontier.busy_delay = Time::from_millis(60_000);
    config.crawl.limits.pages_max = 1;
    run_at(&store, &config, &web.seeds(), &clock);
    config.crawl.limits.pages_max = 0;
    down.store(true, Ordering::SeqCst);
    web.web.forget();
    run_at(&store, &config, &web.seeds(), &clock);
    let row = host_row(&store, &url);
    assert!(row.breaker_open && web.web.requests().len() <= 5, "{row:?}");
    let queued = |store: &Store| {
        store.snapshot().unwrap().get(COUNTERS, "addresses.queued").unwrap().unwrap_or(0)
    };
    assert_eq!(queued(&store), 8, "the queue is kept");
    let mut usual = 60_000;
    for _ in 0..4 {
        let before = clock.now().until(host_row(&store, &url).blocked_until);
        assert!(before >= ms(usual - usual / 10), "{before:?} for {usual}");
        web.web.forget();
        clock.advance(before.saturating_sub(ms(1)));
        run_at(&store, &config, &web.seeds(), &clock);
        assert_eq!(web.web.requests().len(), 0, "nothing is sent before the time");
        clock.advance(ms(1));
        run_at(&store, &config, &web.seeds(), &clock);
        assert_eq!(web.web.requests().len(), 1, "one request tests the host");
        usual *= 2;
    }
    assert_eq!(queued(&store), 8);
    let facts =
        uniqcrawl::corpus::explain::explain(&store.snapshot().unwrap(), &url).unwrap().facts;
    let breaker = facts.iter().find(|(name, _)| name == "host circuit breaker");
    assert!(breaker.unwrap().1.starts_with("open after "), "{facts:?}");
    drop(store);
    let stats = run_binary(&["stats", "--store", "."], folder.path()).stdout;
    let stats = String::from_utf8(stats).unwrap();
    assert!(stats.contains("hosts with an open circuit breaker"), "{stats}");
    let store = Store::open(folder.path(), 16 << 20).unwrap();
    down.store(false, Ordering::SeqCst);
    clock.advance(Duration::from_hours(2));
    run_at(&store, &config, &web.seeds(), &clock);
    assert_eq!((queued(&store), host_row(&store, &url).breaker_open), (0, false));
    assert_eq!(store.snapshot().unwrap().get(COUNTERS, "addresses.stored").unwrap().unwrap(), 9);
}

#[test]
fn crawl_delays_of_all_forms_are_kept() {
    let forms = [
        ("Crawl-delay: 0.3", 300),
        ("Crawl-delay: 0", 50),
        ("Crawl-delay: -7", 50),
        ("Crawl-delay: soon", 50),
        ("Crawl-delay: 0.4s", 400),
        ("Crawl-delay: 0.1\nCrawl-delay: 0.4\nCrawl-delay: 0.2", 400),
        ("User-agent: uniqcrawl\nCrawl-delay: 0.2", 200),
        ("Crawl-delay: 99999999999999999999999", u64::MAX),
        ("Crawl-delay: 86400", u64::MAX),
    ];
    let robots = |(form, _): &(&str, u64)| site(2).robots(&format!("User-agent: *\n{form}\n"));
    let web = Web::start(forms.len(), |_| forms.iter().map(robots).collect());
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.delay = Time::from_millis(50);
    config.frontier.slow_lane = Time::from_millis(350);
    crawled.run(&config, &web.seeds());
    for (host, (form, least)) in forms.into_iter().enumerate() {
        let row = host_row(&crawled.store, &web.seeds()[host]);
        assert_eq!(row.slow_lane, least > 350, "{form}");
        if least == u64::MAX {
            assert_eq!(web.web.requests_of(host).len(), 1, "{form}");
            assert_eq!(row.queued, 1, "{form}");
            continue;
        }
        assert_eq!(web.web.requests_of(host).len(), 4, "{form}");
        let gap = web.web.least_gap(host).unwrap();
        assert!(gap >= ms(least), "{form}: {gap:?}");
        assert!(least > 50 || gap < ms(300), "{form}: {gap:?}");
    }
    let facts = crawled.explain(&web.seeds()[4]).facts;
    let lane = facts.iter().any(|(_, value)| value == "400 ms: it is in the slow lane");
    assert!(lane, "{facts:?}");
}

#[test]
fn a_host_in_the_slow_lane_gets_its_pages_over_many_runs_and_never_one_too_soon() {
    // Longer than a robots.txt is good for: the file must not take the place of every page.
    let delay = Duration::from_hours(30);
    let web = Web::one(site(3).robots("User-agent: *\nCrawl-delay: 108000\n"));
    let (crawled, clock) = (Crawled::new(), Clock::hand(Timestamp(1_800_000_000_000)));
    let mut config = config();
    config.frontier.delay = Time::from_millis(100);
    let run = || {
        run_at(&crawled.store, &config, &web.seeds(), &clock);
        web.web.requests().len()
    };
    assert_eq!(run(), 1);
    let mut pages = 0;
    for number in 2..9 {
        clock.advance(delay.saturating_sub(ms(1)));
        assert_eq!(run(), number - 1);
        clock.advance(ms(1));
        assert_eq!(run(), number);
        pages = web.web.requests().iter().filter(|r| r.target != "/robots.txt").count();
        if pages == 4 {
            break;
        }
    }
    assert_eq!(pages, 4);
}

#[test]
fn the_operator_is_named_in_every_request() {
    let names = |headers: &[&str]| {
        let web = Web::one(site(1));
        let mut config = config();
        config.fetch.contact = "https://example.org/bot".to_owned();
        config.fetch.headers = headers.iter().map(|&line| line.to_owned()).collect();
        Crawled::new().run(&config, &web.seeds());
        let requests = web.web.requests();
        assert_eq!(requests.len(), 3);
        for request in &requests {
            let agent = request.header("user-agent").unwrap();
            let token = format!("{}/", config.frontier.agent);
            assert!(agent.starts_with(&token) && agent.contains("+https://example.org/bot"));
        }
        requests[0].header("from").map(str::to_owned)
    };
    assert_eq!(names(&[]), None);
    assert_eq!(names(&["From: bot@example.org"]).as_deref(), Some("bot@example.org"));
}

#[test]
fn everything_that_is_polite_is_on_by_default() {
    let config = Config::default();
    let frontier = &config.frontier;
    assert!(frontier.delay >= Time::from_secs(1) && frontier.connections_per_host == 1);
    assert!(frontier.address_delay > Time::ZERO && frontier.domain_delay > Time::ZERO);
    assert!(frontier.response_factor > 0 && config.crawl.limits.obey_noindex);
    assert!(!config.fetch.allow_private && config.fetch.contact.starts_with("https://"));
    // robots.txt is asked for, and cannot be switched off.
    let web = Web::one(site(1).robots("User-agent: *\nDisallow: /1\n"));
    let mut config = config;
    config.fetch.allow_private = true;
    config.frontier.delay = Time::from_millis(0);
    config.crawl.limits.probe_error_page = false;
    Crawled::new().run(&config, &web.seeds());
    assert_eq!((web.asked("/robots.txt"), web.asked("/"), web.asked("/1")), (1, 1, 0));
}
