//! The frontier alone: addresses that pages of many hosts link to, twenty a page, two of them on other
//! hosts. How many are taken in a second as they grow, memory, bytes in the file for each, and the time
//! to open it again and to lease the first request. Exits with 1 if a goal is missed.
//! Usage: frontier ADDRESSES HOSTS FOLDER [CACHE_MIB]

use std::fs;
use std::path::Path;
use std::time::Instant;

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::frontier::{Config, Frontier, Offer, Rank};
use uniqcrawl::store::Store;
use uniqcrawl::text::sketch::mix;
use uniqcrawl::urls::{PageUrl, Scope, ScopeKind};

/// Links of a page.
const LINKS: u64 = 20;

/// Addresses in one commit, as a crawl at full speed has them.
const BATCH: u64 = 8_192 * LINKS;

/// Goals at every size: MiB of memory, seconds to open and to the first lease.
const GOALS: (u64, f64) = (1_024, 2.0);

/// A number of `/proc/self`.
fn kernel(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/{file}")).expect("this runs on Linux");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel tells it");
    let number = line.split_whitespace().next().and_then(|number| number.parse().ok());
    number.expect("a number")
}

/// The page that has the link of a number: pages come from hosts in no order.
fn source(number: u64, hosts: u64) -> u64 {
    mix(number / LINKS ^ 0xF00D) % hosts
}

/// The address of a number, with paths in no order.
fn address(number: u64, hosts: u64) -> PageUrl {
    let on_another = number % LINKS >= LINKS - 2;
    let host = if on_another { mix(number) % hosts } else { source(number, hosts) };
    let page = mix(number ^ 0x5EED);
    let text = format!("https://www.site{host}.example/news/{}/{page:016x}.html", page % 100);
    PageUrl::parse(&text).expect("an address")
}

fn main() {
    let usage = "frontier ADDRESSES HOSTS FOLDER [CACHE_MIB]";
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().and_then(|n| n.parse::<u64>().ok()).expect(usage);
    let (count, hosts) = (number(), number());
    let folder = arguments.next().expect(usage);
    let cache = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(128_usize) << 20;
    let scope = || Scope::new(ScopeKind::Any, []);
    let page_of = |one| {
        let text = format!("https://www.site{}.example/", source(one, hosts));
        PageUrl::parse(&text).expect("an address")
    };
    let open = |now| {
        let started = Instant::now();
        let store = Store::open_or_create(Path::new(&folder), cache).expect("a store");
        let mut batch = store.begin().expect("one writer");
        let mut frontier =
            Frontier::open(&mut batch, Config::default(), scope(), now).expect("a frontier");
        let lease = frontier.lease(&mut batch, now).expect("a sound store");
        let took = started.elapsed().as_secs_f64();
        assert!(now.0 < 1_000_000 || lease.is_some(), "somebody is due");
        drop(batch);
        (store, took)
    };
    let mut now = Timestamp(1_000);
    let (mut store, _) = open(now);
    println!(
        "addresses hosts taken/s slowest_commit_ms rss_mib written_bytes_each file_bytes_each open_ms"
    );
    let (mut next, mut goal, before) = (0, (count / 32).max(1), kernel("io", "write_bytes: "));
    let mut missed = false;
    while next < count {
        let (started, first, mut slowest) = (Instant::now(), next, 0_f64);
        let mut batch = store.begin().expect("one writer");
        let mut frontier =
            Frontier::open(&mut batch, Config::default(), scope(), now).expect("a frontier");
        while next < goal {
            let end = (next + BATCH).min(goal);
            for one in next..end {
                let (url, from) = (address(one, hosts), page_of(one));
                let (from, rank, nofollow) = (Some(&from), Rank::Link, false);
                let offer = Offer { url: &url, depth: 1, rank, hops: 0, from, nofollow };
                frontier.offer(&mut batch, &offer, now).expect("a sound store");
            }
            next = end;
            frontier.flush(&mut batch).expect("a sound store");
            if next == goal {
                frontier.close(&mut batch).expect("a sound store");
            }
            let commit = Instant::now();
            batch.commit().expect("room");
            slowest = slowest.max(commit.elapsed().as_secs_f64() * 1e3);
            batch = store.begin().expect("one writer");
        }
        let rate = (next - first) as f64 / started.elapsed().as_secs_f64();
        let memory = kernel("status", "VmHWM:") / 1024;
        let queued = frontier.queued();
        drop((batch, frontier));
        let written = (kernel("io", "write_bytes: ") - before) / goal;
        let size = fs::metadata(store.path()).map_or(0, |file| file.len()) / goal;
        drop(store);
        // A day later, when all copies of robots.txt are due.
        now = Timestamp(now.0 + 86_400_000);
        let opened;
        (store, opened) = open(now);
        println!(
            "{queued} {hosts} {rate:.0} {slowest:.1} {memory} {written} {size} {:.1}",
            opened * 1e3
        );
        missed |= memory > GOALS.0 || opened > GOALS.1;
        goal = (goal * 2).min(count).max(goal + 1);
    }
    if missed {
        println!("above a goal: {} MiB, {} s to open and to the first request", GOALS.0, GOALS.1);
        std::process::exit(1);
    }
}
