//! Traps that an address gives away, and budgets of hosts, patterns and domains.

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::frontier::{self, Frontier, Offer, Offered, PATTERNS, Rank, Reason};
use uniqcrawl::store::{Store, View as _};
use uniqcrawl::urls::{Normalize, OddShape, PageUrl, Scope, ScopeKind, ShapeLimits};

use crate::support::Crawled;

/// 2026-11-21.
const NOW: Timestamp = Timestamp(1_795_262_400_000);

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

fn odd(limits: &ShapeLimits, path: &str) -> Option<OddShape> {
    limits.odd_shape(&url(&format!("http://h/{path}")), NOW.0)
}

#[test]
fn odd_shapes_are_told_on_both_sides_of_each_limit() {
    let limits = ShapeLimits { url_length_max: 60, path_segments_max: 4, ..ShapeLimits::default() };
    assert_eq!(odd(&limits, &"a".repeat(51)), None);
    assert_eq!(odd(&limits, &"a".repeat(52)), Some(OddShape::TooLong));
    assert_eq!(odd(&limits, "a/b/c/d"), None);
    assert_eq!(odd(&limits, "a/b/c/d/e"), Some(OddShape::TooDeep));
    assert_eq!(odd(&limits, "a/x/a/a"), None);
    assert_eq!(odd(&limits, "a/a/a/a"), Some(OddShape::RepeatedSegment));
    let limits = ShapeLimits::default();
    assert_eq!(odd(&limits, &"a".repeat(1_991)), None, "2,000 bytes with `http://h/`");
    assert_eq!(odd(&limits, &"a".repeat(1_992)), Some(OddShape::TooLong));
    let deep: Vec<String> = ('a'..='z').map(String::from).collect();
    assert_eq!(odd(&limits, &deep[..20].join("/")), None);
    assert_eq!(odd(&limits, &deep[..21].join("/")), Some(OddShape::TooDeep));
    assert_eq!(odd(&limits, "?p=1&p=2&p=3&p=4&p=5"), None);
    assert_eq!(odd(&limits, "?p=1&p=2&p=3&p=4&p=5&p=6"), Some(OddShape::RepeatedParameter));
    assert_eq!(odd(&limits, "a/b/a/b"), None);
    assert_eq!(odd(&limits, "x/a/b/a/b/a/b/y"), Some(OddShape::RepeatedSequence));
    assert_eq!(odd(&limits, "a/b/c/a/b/c"), None);
    assert_eq!(odd(&limits, "a/b/c/a/b/c/a/b/c"), Some(OddShape::RepeatedSequence));
    // The same segments, not right after each other.
    assert_eq!(odd(&limits, "a/b/c/a/b/d/a/b"), None);
    assert_eq!(odd(&limits, "q%252Fa"), None);
    assert_eq!(odd(&limits, "q%25252Fa?b=%2525"), None);
    assert_eq!(odd(&limits, "q%2525252Fa"), Some(OddShape::NestedEscapes));
    let raw = |text: &str| PageUrl::parse_with(text, Normalize::none()).unwrap();
    let twice = raw("http://h/?a=1&amp;amp;b");
    assert_eq!(limits.odd_shape(&twice, NOW.0), None);
    let thrice = raw("http://h/?a=1&amp;AMP;amp;b");
    assert_eq!(limits.odd_shape(&thrice, NOW.0), Some(OddShape::NestedEscapes));
}

#[test]
fn the_host_in_its_own_path_is_odd_from_the_second_time() {
    let odd = |text: &str| ShapeLimits::default().odd_shape(&url(text), NOW.0);
    let found = Some(OddShape::HostInPath);
    assert_eq!(odd("http://www.example.com/www.example.com/a"), None);
    assert_eq!(odd("http://www.example.com/www.example.com/www.example.com/a"), found);
    assert_eq!(odd("http://www.example.com//www.example.com//example.com"), found);
    assert_eq!(odd("http://127.0.0.1:81/127.0.0.1:81/x/127.0.0.1"), found);
    // An archive has addresses of others in its paths.
    assert_eq!(odd("http://archive.test/web/2020/http://other.test/other.test/"), None);
}

#[test]
fn sessions_in_a_path_are_odd_where_rules_do_not_take_them_out() {
    let limits = ShapeLimits::default();
    let id = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
    for path in [
        &format!("sid/{id}/a"),
        &format!("PHPSESSID={id}/a"),
        &format!("a/sid={id}"),
        &format!("jsessionid/{id}"),
    ] {
        assert_eq!(odd(&limits, path), Some(OddShape::SessionInPath), "{path}");
        let off = ShapeLimits { refuse_path_sessions: false, ..limits };
        assert_eq!(odd(&off, path), None, "{path}");
    }
    for path in [&format!("image/{id}"), "sid/1234", "sid/a-story", "session/0a1b2c3d", "sid=12"] {
        assert_eq!(odd(&limits, path), None, "{path}");
    }
    let kept = PageUrl::parse_with("http://h/a;jsessionid=1", Normalize::none()).unwrap();
    assert_eq!(limits.odd_shape(&kept, NOW.0), Some(OddShape::SessionInPath));
}

#[test]
fn calendars_end_on_both_sides_of_their_range() {
    let limits = ShapeLimits::default();
    // 24 months from November 2026, and a hundred years back.
    for path in [
        "2028/11/",
        "2028/11/30",
        "blog/2028-11-30/a",
        "events?date=2028-11-30",
        "calendar/2028/11",
        "calendar?year=2028&month=11",
        "calendar/20281130",
        "calendar?time=1859155200",
        "?month=12",
        "?month=24",
        "?month=-24",
        "calendar/1926/11/",
        "prev?date=1926-11-01",
        // Old papers, and numbers that are no dates.
        "1865/04/15/archives/a.html",
        "events/1815/06/18",
        "?date=1865-04-15",
        "forum/4512/12",
        "forum/2045/12",
        "forum/3000/10/04",
        "part/2045-77",
        "id/20450312",
        "a?x=100&y=2100",
        "p/2099",
        "?month=0",
        "calendar/events",
    ] {
        assert_eq!(odd(&limits, path), None, "{path}");
    }
    let beyond = [
        "2028/12/01",
        "2029/01/",
        "blog/2029-01",
        "blog/2028-12-01/a",
        "events?date=2028-12-01",
        "?day=20281201",
        "calendar/2028/12",
        "calendar/2029/",
        "calendar?y=2029",
        "?year=2029",
        "calendar?year=2028&month=12",
        "calendar/20281201",
        "calendar/202812",
        "calendar?time=1859760000",
        "?month=25",
        "kalender/4512/12",
        "calendar/1926/10/",
        "prev?date=1926-10-31",
        "calendar?month=0001-01",
    ];
    for path in beyond {
        assert_eq!(odd(&limits, path), Some(OddShape::Calendar), "{path}");
    }
    let off = ShapeLimits { calendar_months_ahead_max: 0, calendar_years_back_max: 0, ..limits };
    for path in beyond {
        assert_eq!(odd(&off, path), None, "{path}");
    }
}

/// A frontier without a network: offers links and tells what becomes of them.
pub(crate) fn with_frontier<T>(
    store: &Store,
    config: &frontier::Config,
    work: impl FnOnce(&mut dyn FnMut(&str, Rank) -> Offered) -> T,
) -> T {
    let mut batch = store.begin().unwrap();
    let done = {
        let scope = Scope::new(ScopeKind::Any, []);
        let mut frontier = Frontier::open(&mut batch, config.clone(), scope, NOW).unwrap();
        let from = url("http://from.test/");
        let mut offer = |text: &str, rank: Rank| {
            let (url, from) = (url(text), Some(&from).filter(|_| rank != Rank::Seed));
            let hops = u8::from(rank == Rank::Redirect);
            let offer = Offer { url: &url, depth: 1, rank, hops, from, nofollow: false };
            frontier.offer(&mut batch, &offer, NOW).unwrap()
        };
        let done = work(&mut offer);
        frontier.flush(&mut batch).unwrap();
        done
    };
    batch.commit().unwrap();
    done
}

#[test]
fn wildcard_dns_ends_at_the_hosts_of_a_domain() {
    let crawled = Crawled::new();
    let config = frontier::Config { hosts_per_domain_max: 3, ..frontier::Config::default() };
    let refused = Offered::Refused(Reason::DomainHosts);
    with_frontier(&crawled.store, &config, |offer| {
        for name in ["a", "b", "c"] {
            assert_eq!(offer(&format!("http://{name}.trap.co.uk/"), Rank::Link), Offered::Queued);
        }
        for number in 0..1_000 {
            assert_eq!(offer(&format!("http://x{number}.trap.co.uk/"), Rank::Link), refused);
        }
        assert_eq!(offer("http://r.trap.co.uk/", Rank::Redirect), refused);
        // Known hosts go on, other domains and seeds are not concerned.
        assert_eq!(offer("http://a.trap.co.uk/more", Rank::Link), Offered::Queued);
        assert_eq!(offer("http://a.other.co.uk/", Rank::Link), Offered::Queued);
        assert_eq!(offer("http://127.0.0.1/", Rank::Link), Offered::Queued);
        assert_eq!(offer("http://seed.trap.co.uk/", Rank::Seed), Offered::Queued);
    });
    // The count is in the store.
    with_frontier(&crawled.store, &config, |offer| {
        assert_eq!(offer("http://y.trap.co.uk/", Rank::Link), refused);
    });
    crawled.assert_clean();
    let found = crawled.explain(&url("http://x7.trap.co.uk/"));
    assert_eq!(found.reason, Some("domain_hosts"));
    assert!(found.summary.contains("as many hosts as the limit allows"), "{}", found.summary);
    let hosts = ("hosts of its domain".to_owned(), "4 of trap.co.uk".to_owned());
    assert!(found.facts.contains(&hosts), "{:?}", found.facts);
    let free = frontier::Config { hosts_per_domain_max: 0, ..config };
    with_frontier(&crawled.store, &free, |offer| {
        assert_eq!(offer("http://x7.trap.co.uk/", Rank::Link), Offered::Queued);
    });
    crawled.assert_clean();
}

#[test]
fn a_pattern_of_a_host_has_a_budget_of_its_own() {
    let crawled = Crawled::new();
    let config = frontier::Config { pattern_addresses_max: 3, ..frontier::Config::default() };
    let refused = Offered::Refused(Reason::PatternBudget);
    with_frontier(&crawled.store, &config, |offer| {
        for number in 0..3 {
            let text = format!("http://h/list/{number}?page={number}");
            assert_eq!(offer(&text, Rank::Link), Offered::Queued);
        }
        assert_eq!(offer("http://h/list/9?page=9", Rank::Link), refused);
        // What is in stays known, other patterns, hosts and ranks have room.
        assert_eq!(offer("http://h/list/1?page=1", Rank::Link), Offered::Known);
        assert_eq!(offer("http://h/list/9", Rank::Link), Offered::Queued);
        assert_eq!(offer("http://h/list/9?sort=9", Rank::Link), Offered::Queued);
        assert_eq!(offer("http://i/list/9?page=9", Rank::Link), Offered::Queued);
        assert_eq!(offer("http://h/list/10?page=9", Rank::Redirect), Offered::Queued);
        assert_eq!(offer("http://h/list/11?page=9", Rank::Seed), Offered::Queued);
    });
    with_frontier(&crawled.store, &config, |offer| {
        assert_eq!(offer("http://h/list/77?page=9", Rank::Link), refused);
    });
    crawled.assert_clean();
    let found = crawled.explain(&url("http://h/list/9?page=9"));
    assert_eq!(found.reason, Some("pattern_budget"));
    assert!(found.summary.contains("URLs of its pattern"), "{}", found.summary);
    let links = ("links of its pattern".to_owned(), "3 of /list/0?page".to_owned());
    assert!(found.facts.contains(&links), "{:?}", found.facts);
}

#[test]
fn counted_patterns_are_capped_and_the_common_ones_stay() {
    let crawled = Crawled::new();
    let config = frontier::Config {
        pattern_addresses_max: 10,
        patterns_per_host_max: 8,
        ..frontier::Config::default()
    };
    let words: Vec<String> = ('a'..='z').map(|c| c.to_string().repeat(5)).collect();
    let let_in = with_frontier(&crawled.store, &config, |offer| {
        let mut let_in = 0;
        for (number, word) in words.iter().cycle().take(260).enumerate() {
            // A trap between pages of which each has a pattern of its own.
            let page = format!("http://h/{word}{}x", "y".repeat(number / 26));
            assert_eq!(offer(&page, Rank::Link), Offered::Queued, "{page}");
            let_in +=
                u32::from(offer(&format!("http://h/t/{number}"), Rank::Link) == Offered::Queued);
        }
        let_in
    });
    assert_eq!(let_in, 10, "the trap is counted all along");
    crawled.assert_clean();
    let snapshot = crawled.store.snapshot().unwrap();
    assert!(snapshot.len(PATTERNS).unwrap() <= 8);
}

#[test]
fn a_full_host_still_counts_links_to_what_it_has() {
    let crawled = Crawled::new();
    let config = frontier::Config { host_addresses_max: 1, ..frontier::Config::default() };
    with_frontier(&crawled.store, &config, |offer| {
        assert_eq!(offer("http://h/a", Rank::Link), Offered::Queued);
        assert_eq!(offer("http://h/b", Rank::Link), Offered::Refused(Reason::HostBudget));
        // A better place in the queue is no second address.
        assert_eq!(offer("http://h/a", Rank::Seed), Offered::Queued);
    });
    let wider = frontier::Config { host_addresses_max: 2, ..config };
    with_frontier(&crawled.store, &wider, |offer| {
        assert_eq!(offer("http://h/b", Rank::Link), Offered::Queued);
        assert_eq!(offer("http://h/c", Rank::Link), Offered::Refused(Reason::HostBudget));
    });
    crawled.assert_clean();
}
