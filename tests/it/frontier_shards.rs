//! Frontiers that are one of many: whose a URL is, and what is sent to others.

use std::collections::BTreeSet;

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::frontier::{
    Config, Frontier, LEADS, LinksSent, OUTBOX, Offer, Offered, Rank, Reason, SentLink, Share,
};
use uniqcrawl::store::{Batch, View as _};
use uniqcrawl::urls::{PageUrl, Scope, ScopeKind};
use xxhash_rust::xxh3::xxh3_64;

use crate::support::Crawled;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

#[test]
fn all_hosts_of_a_domain_are_of_one_shard_and_so_are_all_ports_of_an_address() {
    let share = Share { own: 0, of: 64 };
    let shards = |all: &[&str]| -> BTreeSet<u32> {
        all.iter().map(|text| share.shard_of(&url(text))).collect()
    };
    let one =
        ["http://a.example.co.uk/", "https://example.co.uk:81/x", "http://b.c.example.co.uk/"];
    assert_eq!(shards(&one).len(), 1);
    assert_eq!(shards(&["http://127.0.0.1/", "http://127.0.0.1:8080/x"]).len(), 1);
    assert_eq!(shards(&["http://[::1]/", "https://[::1]:8080/x"]).len(), 1);
    let many: Vec<String> = (0..1_000).map(|n| format!("http://site{n}.example/")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(shards(&many).len(), 64, "they are spread");
}

fn offer<'a>(url: &'a PageUrl, from: &'a PageUrl, rank: Rank, nofollow: bool) -> Offer<'a> {
    Offer { url, depth: 3, rank, hops: 1, from: Some(from), nofollow }
}

fn outbox(batch: &Batch) -> Vec<((u32, u64), SentLink)> {
    let rows = batch.rows(OUTBOX).unwrap();
    let rows = rows.map(|entry| {
        let entry = entry.unwrap();
        (entry.key().unwrap(), entry.row().unwrap())
    });
    rows.collect()
}

#[test]
fn what_is_of_others_is_sent_once_and_taken_in_as_if_it_were_found_there() {
    let all = Share { own: 0, of: 8 };
    let sites: Vec<PageUrl> = (0..40).map(|n| url(&format!("http://site{n}.example/"))).collect();
    let here = sites.iter().find(|site| all.shard_of(site) == 0).unwrap();
    let there = sites.iter().find(|site| all.shard_of(site) == 5).unwrap();
    let frontier = |batch: &mut Batch, own| {
        let scope = Scope::new(ScopeKind::Host, &sites);
        let frontier = Frontier::open(batch, Config::default(), scope, NOW).unwrap();
        frontier.with_share(Some(Share { own, ..all }))
    };
    let sender = Crawled::new();
    let mut batch = sender.store.begin().unwrap();
    let mut one = frontier(&mut batch, 0);
    let deep = there.join("/deep", uniqcrawl::urls::Normalize::none()).unwrap();
    let mut offer_it = |batch: &mut Batch, url: &PageUrl, rank, nofollow| {
        one.offer(batch, &offer(url, here, rank, nofollow), NOW).unwrap()
    };
    let leads = |batch: &Batch| batch.has(LEADS, xxh3_64(here.as_str().as_bytes())).unwrap();
    assert!(!leads(&batch));
    for _ in 0..3 {
        assert_eq!(offer_it(&mut batch, &deep, Rank::Link, false), Offered::Known);
        assert_eq!(offer_it(&mut batch, &deep, Rank::Link, true), Offered::Known);
    }
    assert!(leads(&batch), "a feed that names it as a copy could hide what it links to");
    offer_it(&mut batch, there, Rank::Redirect, false);
    let outside = url("http://elsewhere.example/");
    let refused = offer_it(&mut batch, &outside, Rank::Link, false);
    assert!(
        refused == Offered::Refused(Reason::OutOfScope) || all.shard_of(&outside) == 0,
        "{refused:?}"
    );
    let sent = outbox(&batch);
    let places: Vec<u32> = sent.iter().map(|((shard, _), _)| *shard).collect();
    assert_eq!(places, [5, 5, 5], "a link, the same one marked nofollow, and a redirect");
    let links: Vec<SentLink> = sent.iter().map(|(_, link)| link.clone()).collect();
    assert_eq!((links[0].depth, links[0].hops, links[0].from.as_str()), (3, 1, here.as_str()));
    assert_eq!([links[0].nofollow, links[1].nofollow], [false, true]);

    let receiver = Crawled::new();
    let mut batch_there = receiver.store.begin().unwrap();
    let mut other = frontier(&mut batch_there, 5);
    let offered: Vec<Offered> =
        links.iter().map(|link| other.receive(&mut batch_there, link, NOW).unwrap()).collect();
    assert_eq!(offered, [Offered::Queued, Offered::Known, Offered::Queued]);
    assert_eq!(other.queued(), 2);
    // A link that comes twice changes nothing.
    let again = other.receive(&mut batch_there, &links[2], NOW).unwrap();
    assert_eq!((again, other.queued()), (Offered::Known, 2));
    // What is of another shard is never queued.
    let stray = other.receive(&mut batch_there, &SentLink::seed(here), NOW).unwrap();
    assert_eq!((stray, other.queued()), (Offered::Known, 2));

    let until = sent[1].0.1;
    one.forget_sent(&mut batch, LinksSent { shard: 5, until }).unwrap();
    assert_eq!(outbox(&batch), [sent[2].clone()]);
    one.forget_sent(&mut batch, LinksSent { shard: 4, until: u64::MAX }).unwrap();
    assert_eq!(outbox(&batch).len(), 1, "those of other shards stay");
}

/// The moment at which the first request to a new host may be sent.
fn first_due(taken: bool) -> Option<Timestamp> {
    let crawled = Crawled::new();
    let mut batch = crawled.store.begin().unwrap();
    let scope = Scope::new(ScopeKind::Any, &[]);
    let mut frontier = if taken {
        Frontier::take_over(&mut batch, Config::default(), scope, NOW).unwrap()
    } else {
        Frontier::open(&mut batch, Config::default(), scope, NOW).unwrap()
    };
    let host = url("http://127.0.0.1/");
    let seed = Offer { from: None, ..offer(&host, &host, Rank::Seed, false) };
    frontier.offer(&mut batch, &seed, NOW).unwrap();
    (0..3_000)
        .map(|ms| Timestamp(NOW.0 + ms))
        .find(|now| frontier.lease(&mut batch, *now).unwrap().is_some())
}

#[test]
fn hosts_that_somebody_else_may_have_contacted_rest_for_their_delay_whether_known_or_not() {
    assert_eq!(first_due(false), Some(NOW));
    assert_eq!(first_due(true), Some(Timestamp(NOW.0 + 1_000)));
}

#[test]
fn a_lease_whose_address_is_taken_comes_back_and_is_due_when_the_address_is_free() {
    let crawled = Crawled::new();
    let mut batch = crawled.store.begin().unwrap();
    let scope = Scope::new(ScopeKind::Any, &[]);
    let mut frontier = Frontier::open(&mut batch, Config::default(), scope, NOW).unwrap();
    let hosts = [url("http://127.0.0.1/"), url("http://127.0.0.1:81/")];
    for host in &hosts {
        let seed = Offer { from: None, ..offer(host, host, Rank::Seed, false) };
        frontier.offer(&mut batch, &seed, NOW).unwrap();
    }
    let lease = frontier.lease(&mut batch, NOW).unwrap().unwrap();
    assert!(lease.address().is_some());
    let until = Timestamp(NOW.0 + 400);
    frontier.give_back_until(&mut batch, &lease, until).unwrap();
    let due = (0..3_000).map(|ms| Timestamp(NOW.0 + ms)).find_map(|now| {
        frontier.lease(&mut batch, now).unwrap().map(|lease| (now, lease.url.host_key()))
    });
    // The other host of the address, and not before it is free.
    assert_eq!(due, Some((until, hosts[1].host_key())));
}
