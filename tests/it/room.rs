//! Room that the addresses of a host take in the store: those that wait, and those that are turned
//! away.

use std::fs;

use uniqcrawl::base::units::Size;
use uniqcrawl::frontier::{self, Offered, Rank, Reason};
use uniqcrawl::localweb::Site;
use uniqcrawl::urls::PageUrl;

use crate::support::{Crawled, Web, config, page, prose};
use crate::traps::with_frontier;

/// An address of 1,600 bytes.
fn long(base: &str, number: usize) -> String {
    let start = format!("{base}{number}?q=");
    format!("{start}{}", "x".repeat(1_600 - start.len()))
}

#[test]
fn addresses_of_a_host_that_wait_have_a_budget_in_bytes() {
    let crawled = Crawled::new();
    let host_size_max = Size::from_bytes(10 * 1_600);
    let config = frontier::Config { host_size_max, ..frontier::Config::default() };
    let full = Offered::Refused(Reason::HostSize);
    with_frontier(&crawled.store, &config, |offer| {
        for number in 0..10 {
            assert_eq!(offer(&long("http://h/", number), Rank::Link), Offered::Queued);
        }
        // Ten more have a row that says why, and the rest are counted.
        for number in 10..50 {
            assert_eq!(offer(&long("http://h/", number), Rank::Link), full);
        }
        // A better place is no more room; seeds and other hosts have theirs.
        assert_eq!(offer(&long("http://h/", 3), Rank::Seed), Offered::Queued);
        assert_eq!(offer(&long("http://h/", 90), Rank::Seed), Offered::Queued);
        assert_eq!(offer(&long("http://i/", 0), Rank::Link), Offered::Queued);
    });
    crawled.assert_clean();
    let explain = |url: &str| crawled.explain(&PageUrl::parse(url).unwrap());
    let told = explain(&long("http://h/", 19));
    assert_eq!((told.state, told.reason), ("refused", Some("host_size")));
    assert_eq!(explain(&long("http://h/", 20)).state, "unknown");
    let kept = (
        "URLs not kept".to_owned(),
        "30 links of its pages, beyond the room of the host".to_owned(),
    );
    assert!(explain("http://from.test/").facts.contains(&kept));

    // More room lets in what was turned away.
    let wider = frontier::Config { host_size_max: Size::from_mib(1), ..config };
    with_frontier(&crawled.store, &wider, |offer| {
        for number in 10..50 {
            assert_eq!(offer(&long("http://h/", number), Rank::Link), Offered::Queued);
        }
    });
    crawled.assert_clean();
}

/// Pages of long links to their own host and to others, as an attacker would write them.
#[test]
fn pages_of_long_links_do_not_fill_the_disk() {
    let web = Web::start(1, |bases| {
        let base = &bases[0];
        let pages = (0..12_usize).fold(Site::new(), |site, number| {
            let name =
                |number: usize| if number == 0 { "/".to_owned() } else { format!("/p{number}") };
            let mut links: Vec<String> =
                (0..700).map(|link| long(&format!("{base}/trap/{number}/"), link)).collect();
            links.extend((0..700).map(|link| long(&format!("http://x{number}.test/"), link)));
            // First, so that they do not wait behind the others.
            if number == 0 {
                links.splice(0..0, (1..12).map(name));
            }
            let links: Vec<&str> = links.iter().map(String::as_str).collect();
            site.html(&name(number), page("P", &prose(number as u64, 60), &links))
        });
        vec![pages]
    });
    let size = |host_size_max: Size| {
        let crawled = Crawled::new();
        let mut config = config();
        config.frontier.host_size_max = host_size_max;
        config.crawl.limits.pages_max = 12;
        let report = crawled.run(&config, &web.seeds());
        crawled.assert_clean();
        let bytes = fs::metadata(crawled.store.path()).unwrap().len();
        (bytes, report.links_unstored)
    };
    let (free, none) = size(Size::from_bytes(0));
    let (bounded, unstored) = size(Size::from_bytes(256 << 10));
    assert_eq!(none, 0);
    assert!(unstored > 10_000, "{unstored} links have no row");
    assert!(bounded * 4 < free, "{bounded} bytes with a budget, {free} without one");
}
