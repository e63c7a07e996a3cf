//! Politeness on loopback, from the server's log: groups of hosts, slow hosts, busy hosts, hosts
//! that fail, delays that robots.txt files ask for.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use uniqcrawl::clock::{Clock, Timestamp};
use uniqcrawl::config::Config;
use uniqcrawl::crawl::{self, Context, Report};
use uniqcrawl::frontier::Host;
use uniqcrawl::localweb::{Body, LocalWeb, Page, Request, Site};
use uniqcrawl::store::Store;
use uniqcrawl::urls::PageUrl;

use crate::support::{Crawled, Web, config, crawl as run_binary, page, prose};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn text(seed: u64) -> String {
    prose(seed, 60)
}

/// A front page with links to `/1` and following.
fn site(pages: u64) -> Site {
    let links: Vec<String> = (1..=pages).map(|n| format!("/{n}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    (1..=pages).fold(Site::new().html("/", page("Front", &text(0), &links)), |site, n| {
        site.html(&format!("/{n}"), page("P", &text(n), &[]))
    })
}

/// The front page of a name at the port of a host of the web.
fn named(web: &LocalWeb, name: &str, host: usize) -> PageUrl {
    let port = PageUrl::parse(&web.url(host)).unwrap().url().port().unwrap();
    PageUrl::parse(&format!("http://{name}:{port}/")).unwrap()
}

/// The shortest time between an answer and the next request, whatever the host.
fn gap(mut requests: Vec<Request>) -> Duration {
    requests.sort_by_key(|request| request.started);
    let pairs = requests.windows(2);
    pairs.map(|two| two[1].started.saturating_duration_since(two[0].finished)).min().unwrap()
}

fn of_name(requests: &[Request], name: &str) -> Vec<Request> {
    let is_of = |request: &&Request| request.header("host").is_some_and(|h| h.starts_with(name));
    requests.iter().filter(is_of).cloned().collect()
}

fn host_row(store: &Store, url: &PageUrl) -> Host {
    let tables = store.read().unwrap();
    let key = url.host_key();
    let number = tables.host_numbers.get(key.as_str()).unwrap().unwrap().value();
    Host::decode(tables.hosts.get(number).unwrap().unwrap().value()).unwrap()
}

/// Crawls what is due at this moment of the clock, and nothing else.
fn run_at(store: &Store, config: &Config, seeds: &[PageUrl], clock: &Clock) -> Report {
    let mut config = config.clone();
    config.crawl.limits.idle_wait_ms_max = 0;
    let context = Context { clock: clock.clone(), ..Context::default() };
    crawl::run(store, &config.settings(), seeds, &context).unwrap()
}

#[test]
fn hosts_of_one_address_take_turns() {
    let web = Web::one(site(2));
    let names = ["a.test", "b.test", "c.test", "d.test"];
    let mut config = config();
    config.frontier.delay_ms = 200;
    config.frontier.address_delay_ms = 60;
    config.fetch.resolve = names.iter().map(|name| format!("{name}=127.77.0.1")).collect();
    // The address itself is of the group too.
    let mut seeds: Vec<PageUrl> = names.iter().map(|name| named(&web.web, name, 0)).collect();
    seeds.extend(web.seeds());
    let crawled = Crawled::new();
    let report = crawled.run(&config, &seeds);
    let requests = web.web.requests();
    assert_eq!((report.pages, requests.len()), (15, 20));
    assert_eq!(web.web.most_at_once(0), 1);
    assert!(gap(requests.clone()) >= ms(60), "{:?}", gap(requests));
    for name in names {
        assert!(gap(of_name(&requests, name)) >= ms(200));
    }
    assert_eq!(host_row(&crawled.store, &seeds[0]).address, Some([127, 77, 0, 1].into()));
    // One after the other would take 20 delays of 200 ms; twenty gaps of 60 ms are 1.2 s.
    assert!(report.seconds < 3.5, "{} s", report.seconds);
}

#[test]
fn an_address_gets_as_many_requests_at_a_time_as_are_set() {
    let most = |connections: usize| {
        let slow = Page::html(page("Front", &text(1), &[])).after(ms(120));
        let web = Web::one(Site::new().page("/", slow.clone()).page("/robots.txt", slow));
        let names: Vec<String> = (0..5).map(|n| format!("h{n}.test")).collect();
        let mut config = config();
        config.frontier.delay_ms = 1;
        config.frontier.connections_per_address = connections;
        config.fetch.resolve = names.iter().map(|name| format!("{name}=127.77.0.1")).collect();
        let seeds: Vec<PageUrl> = names.iter().map(|name| named(&web.web, name, 0)).collect();
        Crawled::new().run(&config, &seeds);
        assert_eq!(web.web.requests().len(), 10);
        web.web.most_at_once(0)
    };
    assert_eq!((most(1), most(2)), (1, 2));
    assert!(most(0) > 2, "0 is no limit");
}

#[test]
fn hosts_of_one_registrable_domain_take_turns_and_others_do_not() {
    let web = Web::start(3, |_| vec![site(3), site(3), site(3)]);
    let names = ["x.example.co.uk", "y.example.co.uk", "other.co.uk"];
    let mut config = config();
    config.frontier.delay_ms = 100;
    config.frontier.domain_delay_ms = 80;
    let named_at = names.iter().zip(1..);
    config.fetch.resolve = named_at.map(|(name, n)| format!("{name}=127.77.0.{n}")).collect();
    let seeds: Vec<PageUrl> = (0..3).map(|host| named(&web.web, names[host], host)).collect();
    Crawled::new().run(&config, &seeds);
    let (all, one) = (web.web.requests(), |host: usize| web.web.requests_of(host));
    assert_eq!(all.len(), 15);
    let domain = [one(0), one(1)].concat();
    assert!(gap(domain.clone()) >= ms(80), "{:?}", gap(domain));
    assert!(gap(all) < ms(80), "a domain under the same public suffix is another one");
}

#[test]
fn hosts_with_the_same_set_of_addresses_are_one_group() {
    let web = Web::one(site(1));
    let mut config = config();
    (config.frontier.delay_ms, config.frontier.address_delay_ms) = (100, 100);
    config.fetch.resolve =
        vec!["a.test=127.77.0.1,127.77.9.9".into(), "b.test=127.77.9.9,127.77.0.1".into()];
    let seeds = [named(&web.web, "a.test", 0), named(&web.web, "b.test", 0)];
    let crawled = Crawled::new();
    crawled.run(&config, &seeds);
    assert_eq!(web.web.requests().len(), 6);
    assert!(gap(web.web.requests()) >= ms(100));
    let addresses = seeds.map(|seed| host_row(&crawled.store, &seed).address);
    assert_eq!(addresses, [Some([127, 77, 0, 1].into()); 2]);
}

#[test]
fn hosts_of_one_ipv6_address_take_turns() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let start = LocalWeb::start_at("[::1]:0".parse().unwrap(), site(1));
    // A machine without IPv6 has no such hosts.
    let Ok(web) = runtime.block_on(start) else { return };
    let mut config = config();
    (config.frontier.delay_ms, config.frontier.address_delay_ms) = (80, 80);
    config.fetch.resolve = vec!["a.test=::1".into(), "b.test=::1".into()];
    let port = web.url(0).trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    let seeds = ["a.test", "b.test", "[::1]"]
        .map(|name| PageUrl::parse(&format!("http://{name}:{port}/")).unwrap());
    Crawled::new().run(&config, &seeds);
    assert_eq!(web.requests().len(), 9);
    assert!(gap(web.requests()) >= ms(80));
}

#[test]
fn no_group_is_contacted_inside_its_gap_after_a_kill() {
    let web = Web::one(site(1));
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..4).map(|n| format!("h{n}.test")).collect();
    let seeds: Vec<String> =
        names.iter().map(|name| named(&web.web, name, 0).to_string()).collect();
    let resolve: Vec<String> = names.iter().map(|name| format!("\"{name}=127.77.0.1\"")).collect();
    let settings = format!(
        "[frontier]\ndelay_ms = 900\naddress_delay_ms = 900\n[fetch]\nresolve = [{}]\n",
        resolve.join(",")
    );
    std::fs::write(folder.path().join("seeds.txt"), seeds.join("\n")).unwrap();
    std::fs::write(folder.path().join("c.toml"), settings).unwrap();
    // Each life sends one request, and is killed as soon as the server has it. The next one goes
    // to a host that was never asked: only its group holds it back.
    for life in 1..=3 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["--seeds", "seeds.txt", "--allow-private", "--config", "c.toml", "--quiet"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while web.web.requests().len() < life && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(ms(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let requests = web.web.requests();
    let asked: BTreeSet<&str> = requests.iter().filter_map(|r| r.header("host")).collect();
    assert!(requests.len() >= 3 && asked.len() >= 2, "{asked:?}");
    assert!(gap(requests.clone()) >= ms(900), "{:?}", gap(requests));
}

#[test]
fn a_name_with_forbidden_addresses_is_never_contacted() {
    let web = Web::one(site(1));
    let mut config = config();
    config.frontier.delay_ms = 1;
    config.crawl.limits.idle_wait_ms_max = 0;
    config.fetch.resolve = vec!["a.test=127.77.0.1".into(), "m.test=169.254.169.254".into()];
    let seeds = [named(&web.web, "a.test", 0), named(&web.web, "m.test", 0)];
    assert_eq!(Crawled::new().run(&config, &seeds[1..]).failed_seeds.len(), 1);
    config.fetch.allow_private = false;
    assert_eq!(Crawled::new().run(&config, &seeds).failed_seeds.len(), 2);
    assert_eq!(web.web.requests().len(), 0);
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
        config.frontier.delay_ms = 30;
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
            .page("/", Page::html(page("Front", &text(0), &["/1", "/2"])).after(ms(200)))
            .html("/1", page("P", &text(1), &[]))
            .html("/2", page("P", &text(2), &[])),
    );
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.delay_ms = 1;
    crawled.run(&config, &web.seeds());
    let now = host_row(&crawled.store, &web.seeds()[0]).response_ms;
    assert!((50..150).contains(&now), "{now} ms");
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
    config.frontier.delay_ms = 50;
    config.frontier.busy_delay_ms = 300;
    config.frontier.block_ms_max = 2_500;
    config.frontier.retries_max = 0;
    config.crawl.limits.idle_wait_ms_max = 4_000;
    let report = crawled.run(&config, &web.seeds());
    assert_eq!(report.pages, forms.len() as u64 * 4, "no address is lost, each is tried again");
    for host in 0..web.web.hosts() {
        let (name, _, least) = forms[host % forms.len()];
        let requests = web.web.requests_of(host);
        let busy = if host < forms.len() { 1 } else { 0 };
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
    config.frontier.delay_ms = 0;
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
    let refused = crawled.store.read().unwrap().counters.get("addresses.refused.busy").unwrap();
    assert!(refused.is_none());
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
    config.frontier.delay_ms = 20;
    config.frontier.busy_retries_max = 4;
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
    config.fetch.first_byte_timeout_ms = 60;
    config.frontier.connections_per_host = 3;
    config.frontier.host_failures_max = 3;
    config.frontier.retries_max = 1;
    config.frontier.retry_delay_ms = 1_000;
    config.frontier.busy_delay_ms = 60_000;
    config.crawl.limits.pages_max = 1;
    run_at(&store, &config, &web.seeds(), &clock);
    config.crawl.limits.pages_max = 0;
    down.store(true, Ordering::SeqCst);
    web.web.forget();
    run_at(&store, &config, &web.seeds(), &clock);
    let row = host_row(&store, &url);
    assert!(row.breaker_open && web.web.requests().len() <= 5, "{row:?}");
    let queued = |store: &Store| {
        let read = store.read().unwrap();
        read.counters.get("addresses.queued").unwrap().map_or(0, |row| row.value())
    };
    assert_eq!(queued(&store), 8, "the queue is kept");
    let mut usual = 60_000;
    for _ in 0..4 {
        let before = clock.now().until(host_row(&store, &url).blocked_until);
        assert!(before >= ms(usual - usual / 10), "{before:?} for {usual}");
        web.web.forget();
        clock.advance(before - ms(1));
        run_at(&store, &config, &web.seeds(), &clock);
        assert_eq!(web.web.requests().len(), 0, "nothing is sent before the time");
        clock.advance(ms(1));
        run_at(&store, &config, &web.seeds(), &clock);
        assert_eq!(web.web.requests().len(), 1, "one request tests the host");
        usual *= 2;
    }
    assert_eq!(queued(&store), 8);
    let facts = uniqcrawl::explain::explain(&store.read().unwrap(), &url).unwrap().facts;
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
    assert_eq!(store.read().unwrap().counters.get("addresses.stored").unwrap().unwrap().value(), 9);
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
    config.frontier.delay_ms = 50;
    config.frontier.slow_lane_ms = 350;
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
    config.frontier.delay_ms = 100;
    let run = || {
        run_at(&crawled.store, &config, &web.seeds(), &clock);
        web.web.requests().len()
    };
    assert_eq!(run(), 1);
    let mut pages = 0;
    for number in 2..9 {
        clock.advance(delay - ms(1));
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
    let names = |from: &str| {
        let web = Web::one(site(1));
        let mut config = config();
        config.fetch.contact = "https://example.org/bot".to_owned();
        config.fetch.from = from.to_owned();
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
    assert_eq!(names(""), None);
    assert_eq!(names("bot@example.org").as_deref(), Some("bot@example.org"));
}
