//! Groups of hosts on loopback, from the server's log: one IP address, one registrable domain.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use uniqcrawl::base::units::Time;
use uniqcrawl::localweb::{LocalWeb, Page, SeenRequest, Site};
use uniqcrawl::urls::PageUrl;

use crate::polite::{host_row, ms, site, text};
use crate::support::{Crawled, Web, config, page};

/// The front page of a name at the port of a host of the web.
fn named(web: &LocalWeb, name: &str, host: usize) -> PageUrl {
    let port = PageUrl::parse(&web.url(host)).unwrap().url().port().unwrap();
    PageUrl::parse(&format!("http://{name}:{port}/")).unwrap()
}

/// The shortest time between an answer and the next request, whatever the host.
fn gap(mut requests: Vec<SeenRequest>) -> Duration {
    requests.sort_by_key(|request| request.started);
    let pairs = requests.windows(2);
    pairs.map(|two| two[1].started.saturating_duration_since(two[0].finished)).min().unwrap()
}

fn of_name(requests: &[SeenRequest], name: &str) -> Vec<SeenRequest> {
    let is_of =
        |request: &&SeenRequest| request.header("host").is_some_and(|h| h.starts_with(name));
    requests.iter().filter(is_of).cloned().collect()
}

#[test]
fn hosts_of_one_address_take_turns() {
    let web = Web::one(site(2));
    let names = ["a.test", "b.test", "c.test", "d.test"];
    let mut config = config();
    config.frontier.delay = Time::from_millis(200);
    config.frontier.address_delay = Time::from_millis(60);
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
        config.frontier.delay = Time::from_millis(1);
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
    config.frontier.delay = Time::from_millis(100);
    config.frontier.domain_delay = Time::from_millis(80);
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
    (config.frontier.delay, config.frontier.address_delay) =
        (Time::from_millis(100), Time::from_millis(100));
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
fn a_host_with_many_addresses_is_one_host() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let first = runtime.block_on(LocalWeb::start_at("127.78.0.1:0".parse().unwrap(), site(3)));
    let first = first.unwrap();
    let port = PageUrl::parse(&first.url(0)).unwrap().url().port().unwrap();
    let second = format!("127.78.0.2:{port}").parse().unwrap();
    let second = runtime.block_on(LocalWeb::start_at(second, site(3))).unwrap();
    // A connection goes to the first address that answers: each name prefers another one, and none
    // of `c.test` is the first.
    let mut config = config();
    config.frontier.delay = Time::from_millis(60);
    // The pace of a host does not hang on groups.
    (config.frontier.address_delay, config.frontier.connections_per_address) = (Time::ZERO, 0);
    (config.frontier.domain_delay, config.frontier.connections_per_domain) = (Time::ZERO, 0);
    config.fetch.resolve = vec![
        "a.test=127.78.0.1,127.78.0.2".into(),
        "b.test=127.78.0.2,127.78.0.1".into(),
        "c.test=127.78.0.3,127.78.0.2,127.78.0.1".into(),
    ];
    let seeds = ["a.test", "b.test", "c.test"].map(|name| named(&first, name, 0));
    Crawled::new().run(&config, &seeds);
    assert!(!first.requests().is_empty() && !second.requests().is_empty());
    let all = [first.requests(), second.requests()].concat();
    for name in ["a.test", "b.test", "c.test"] {
        let of = of_name(&all, name);
        assert_eq!(of.len(), 5, "{name}");
        assert!(gap(of.clone()) >= ms(60), "{name}: {:?}", gap(of));
    }
}

#[test]
fn hosts_of_one_ipv6_address_take_turns() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let start = LocalWeb::start_at("[::1]:0".parse().unwrap(), site(1));
    // A machine without IPv6 has no such hosts.
    let Ok(web) = runtime.block_on(start) else { return };
    let mut config = config();
    (config.frontier.delay, config.frontier.address_delay) =
        (Time::from_millis(80), Time::from_millis(80));
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
        "[frontier]\ndelay = \"900ms\"\naddress_delay = \"900ms\"\n[fetch]\nresolve = [{}]\n",
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
    config.frontier.delay = Time::from_millis(1);
    config.crawl.limits.idle_wait_max = Time::from_millis(0);
    config.fetch.resolve = vec!["a.test=127.77.0.1".into(), "m.test=169.254.169.254".into()];
    let seeds = [named(&web.web, "a.test", 0), named(&web.web, "m.test", 0)];
    assert_eq!(Crawled::new().run(&config, &seeds[1..]).failed_seeds.len(), 1);
    config.fetch.allow_private = false;
    assert_eq!(Crawled::new().run(&config, &seeds).failed_seeds.len(), 2);
    assert_eq!(web.web.requests().len(), 0);
}
