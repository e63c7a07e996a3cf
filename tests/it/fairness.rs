//! Queues of hosts: an address is queued once and in its best place; no host starves another.

use std::time::Duration;

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::base::units::Time;
use uniqcrawl::frontier::{
    Config, Frontier, Lease, Offer, Offered, Purpose, Rank, RobotsAnswer, Settlement, Told, Visited,
};
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::store::{Batch, Store};
use uniqcrawl::urls::{PageUrl, Scope, ScopeKind};

use crate::support::{Crawled, Web, config, crawl, page, prose};

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

/// Works on the frontier of a new store, and commits.
fn work<T>(job: impl FnOnce(&mut Frontier, &mut Batch) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(folder.path(), 1 << 24).unwrap();
    let mut batch = store.begin().unwrap();
    let scope = Scope::new(ScopeKind::Any, &[]);
    let settings = Config { delay: Time::from_millis(0), ..Config::default() };
    let mut frontier = Frontier::open(&mut batch, settings, scope, NOW).unwrap();
    let done = job(&mut frontier, &mut batch);
    frontier.flush(&mut batch).unwrap();
    batch.commit().unwrap();
    done
}

fn offer(
    frontier: &mut Frontier,
    batch: &mut Batch,
    (target, from): (&str, &str),
    (rank, depth): (Rank, u16),
) -> Offered {
    let (target, from) = (url(target), url(from));
    let offer = Offer { url: &target, depth, rank, hops: 0, from: Some(&from), nofollow: false };
    frontier.offer(batch, &offer, NOW).unwrap()
}

/// The next page of the only host, whose robots.txt allows everything.
fn next(frontier: &mut Frontier, batch: &mut Batch) -> Option<Lease> {
    loop {
        let lease = frontier.lease(batch, NOW).unwrap()?;
        if lease.purpose == Purpose::Page {
            return Some(lease);
        }
        let none = Settlement::Robots(RobotsAnswer::None);
        let visited = Visited::read(batch, &lease, Told::status(404, NOW)).unwrap();
        frontier.settle(batch, visited, none).unwrap();
    }
}

#[test]
fn an_address_of_two_parents_is_queued_once_and_the_better_place_wins() {
    work(|frontier, snapshot| {
        let (a, b) = ("http://h/a", "http://h/b");
        let mut offer = |pair, place| offer(frontier, snapshot, pair, place);
        assert_eq!(offer((a, "http://p/1"), (Rank::Link, 5)), Offered::Queued);
        assert_eq!(offer((b, "http://p/1"), (Rank::Link, 3)), Offered::Queued);
        // Worse and equal offers of another parent change nothing.
        assert_eq!(offer((a, "http://q/1"), (Rank::Link, 5)), Offered::Known);
        assert_eq!(offer((a, "http://q/2"), (Rank::Link, 9)), Offered::Known);
        // A better one moves it before the other, by depth and then by rank.
        assert_eq!(offer((a, "http://q/3"), (Rank::Link, 2)), Offered::Queued);
        assert_eq!(offer((b, "http://q/4"), (Rank::Seed, 7)), Offered::Queued);
        assert_eq!(offer((b, "http://q/4"), (Rank::Link, 1)), Offered::Known);
        assert_eq!(frontier.queued(), 2);
        let order: Vec<Option<String>> = (0..3)
            .map(|_| {
                let lease = next(frontier, snapshot)?;
                let told = Told::status(200, NOW);
                let visited = Visited::read(snapshot, &lease, told).unwrap();
                frontier.settle(snapshot, visited, Settlement::Stored(1)).unwrap();
                Some(lease.url.to_string())
            })
            .collect();
        assert_eq!(order, [Some(b.to_owned()), Some(a.to_owned()), None]);
        assert_eq!(frontier.queued(), 0);
    });
}

#[test]
fn an_address_in_flight_is_not_queued_again() {
    work(|frontier, snapshot| {
        let link = ("http://h/a", "http://p/1");
        offer(frontier, snapshot, link, (Rank::Link, 5));
        let lease = next(frontier, snapshot).unwrap();
        let again = offer(frontier, snapshot, ("http://h/a", "http://q/1"), (Rank::Seed, 0));
        assert_eq!((again, frontier.queued()), (Offered::Known, 1));
        assert_eq!(next(frontier, snapshot), None);
        let visited = Visited::read(snapshot, &lease, Told::status(200, NOW)).unwrap();
        frontier.settle(snapshot, visited, Settlement::Stored(1)).unwrap();
        assert_eq!((next(frontier, snapshot), frontier.queued()), (None, 0));
    });
}

#[test]
fn pages_that_link_to_each_other_are_each_asked_for_once() {
    let links: Vec<String> = (0..20).map(|n| format!("/p/{n}?")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let site = (0..20).fold(Site::new().html("/", page("F", &prose(1, 60), &links)), |site, n| {
        site.html(&format!("/p/{n}"), page("P", &prose(n + 10, 60), &links))
    });
    let web = Web::one(site);
    let mut config = config();
    config.frontier.connections_per_host = 8;
    config.frontier.seen_in_memory_max = 1;
    Crawled::new().run(&config, &web.seeds());
    assert_eq!(web.web.requests().len(), 22);
    assert!(web.web.targets(0).values().all(|times| *times == 1));
}

#[test]
fn requests_under_way_are_bounded_over_all_hosts() {
    let most = |requests_max: usize| {
        let slow = Duration::from_millis(200);
        let page = |n: u64| Page::html(page("Front", &prose(n, 60), &[])).after(slow);
        let web = Web::start(8, |_| (0..8).map(|n| Site::new().page("/", page(n))).collect());
        let mut config = config();
        config.crawl.limits.requests_max = requests_max;
        config.crawl.limits.page_threads = 1;
        assert_eq!(Crawled::new().run(&config, &web.seeds()).pages, 8);
        let requests = web.web.requests();
        let open = |at| requests.iter().filter(|r| r.started <= at && at < r.finished).count();
        requests.iter().map(|request| open(request.started)).max().unwrap()
    };
    assert_eq!((most(1), most(2)), (1, 2));
    assert!(most(8) > 2);
}

#[test]
fn small_hosts_are_done_while_a_huge_one_has_just_begun() {
    const SMALL: usize = 50;
    const PAGES: u64 = 10;
    let web = Web::start(SMALL + 1, |_| {
        // A million addresses, of which each page names the next hundred.
        let huge = Site::new().handler(|request| {
            let number: u64 = request.target.trim_start_matches("/p/").parse().unwrap_or(0);
            if request.target == "/robots.txt" {
                return None;
            }
            let links: Vec<String> = (1..=100).map(|n| format!("/p/{}", number + n)).collect();
            let links: Vec<&str> = links.iter().map(String::as_str).collect();
            Some(Page::html(page("Huge", &prose(number + 1_000_000, 40), &links)))
        });
        let links: Vec<String> = (1..PAGES).map(|n| format!("/s/{n}")).collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let small = |host: u64| {
            let front = Site::new().html("/", page("Small", &prose(host * 100, 40), &links));
            (1..PAGES).fold(front, |site, n| {
                site.html(&format!("/s/{n}"), page("S", &prose(host * 100 + n, 40), &[]))
            })
        };
        std::iter::once(huge).chain((1..=SMALL as u64).map(small)).collect()
    });
    let mut config = config();
    config.frontier.delay = Time::from_millis(20);
    // With few requests at a time, whoever is served out of turn takes the turns of others.
    config.crawl.limits.requests_max = 2;
    config.crawl.limits.pages_max = SMALL as u64 * PAGES + 60;
    Crawled::new().run(&config, &web.seeds());
    let last = (1..=SMALL).map(|host| {
        let asked = web.web.requests_of(host);
        assert_eq!(asked.len() as u64, PAGES + 1, "host {host} is whole");
        asked.iter().map(|request| request.finished).max().unwrap()
    });
    let last = last.max().unwrap();
    let huge = web.web.requests_of(0);
    let before = huge.iter().filter(|request| request.started <= last).count() as u64;
    // Its turn came as often as that of any small host, whatever the speed of the machine.
    assert!(before <= 3 * (PAGES + 1), "{before} of {} requests", huge.len());
    assert!(huge.len() as u64 > before, "it goes on when the others are done");
}

/// Peak memory in MiB of a crawl of so many pages, each with 300 long links of its own.
fn peak_memory(pages: u64) -> f64 {
    let web = Web::one(Site::new().handler(|request| {
        let number: u64 = request.target.trim_start_matches("/next/").parse().unwrap_or(0);
        let mut links: Vec<String> = vec![format!("/next/{}", number + 1)];
        let long = "as-long-as-addresses-get-".repeat(56);
        links.extend((0..300).map(|n| format!("/{long}/{number}/{n}")));
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let is_page = request.target != "/robots.txt";
        is_page.then(|| Page::html(page("List", &prose(number, 40), &links)))
    }));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seeds.txt"), web.web.url(0)).unwrap();
    let settings = format!(
        "[crawl]\npages_max = {pages}\npage_threads = 1\nrequests_max = 1\nbatch_pages_max = 1\n\
         probe_error_page = false\n[store]\ncache_mib = 8\n"
    );
    std::fs::write(folder.path().join("few.toml"), settings).unwrap();
    let run = ["--seeds", "seeds.txt", "--allow-private", "--delay", "0", "--config", "few.toml"];
    let out = crawl(&run, folder.path());
    let text = String::from_utf8(out.stdout).unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("peak memory"));
    let (number, unit) = line.unwrap().trim().split_once(' ').unwrap();
    assert_eq!(unit, "MiB");
    number.parse().unwrap()
}

#[test]
fn memory_does_not_grow_with_the_addresses_that_are_seen() {
    // The longer crawl sees 78 MB more of addresses, which are in the store alone. The peaks of two
    // runs of one length differ by up to 25 MiB, by what the allocator keeps.
    let (few, many) = (peak_memory(15), peak_memory(200));
    assert!(many < few + 40.0, "{few} MiB, then {many} MiB");
}
