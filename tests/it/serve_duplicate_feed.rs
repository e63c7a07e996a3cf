//! Duplicate feeds over HTTP, and the room that they take.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use redb::{ReadableDatabase as _, ReadableTableMetadata as _};
use uniqcrawl::crawl::{self as crawling, Context};
use uniqcrawl::frontier::duplicate_feed::{FeedItem, Reader, import_all};
use uniqcrawl::localweb::Site;
use uniqcrawl::store::Store;
use uniqcrawl::urls::Normalize;

use crate::duplicate_feed::{feed_of, plain, temporary};
use crate::service::{Answer, Server};
use crate::support::{Web, page, prose};

/// An answer is a feed of its own: its duplicates, where it goes on, whether there is more.
fn part(answer: &Answer) -> (Vec<FeedItem>, String, bool) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let (_folder, path) = temporary("part.jsonl");
    fs::write(&path, &answer.body).unwrap();
    let mut reader = Reader::open(&path, &Normalize::default()).unwrap();
    let mut items = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        items.push(item);
    }
    let end = reader.end.unwrap();
    (items, end.next.unwrap(), end.more.unwrap())
}

/// Two fronts, each of ten articles under three addresses, and a fourth copy of the first article.
fn two_fronts() -> Web {
    let paths = |from: u64| -> Vec<String> {
        let all = (from..from + 10).flat_map(|n| (0..3).map(move |copy| (n, copy)));
        all.map(|(n, copy)| format!("/{copy}/{n}")).collect()
    };
    let links = |from: u64| paths(from).join(" ");
    let mut site = Site::new();
    for (path, from) in [("/", 0), ("/more", 10)] {
        let links = links(from);
        let links: Vec<&str> = links.split(' ').collect();
        site = site.html(path, page(path, &prose(500 + from, 80), &links));
    }
    // A fourth copy of the first article comes late.
    site = site.html("/3/0", page("Article 0", &prose(100, 120), &[]));
    let site = paths(0).iter().chain(&paths(10)).fold(site, |site, path| {
        let number: u64 = path.rsplit('/').next().unwrap().parse().unwrap();
        let title = format!("Article {number}");
        site.html(path, page(&title, &prose(100 + number, 120), &[]))
    });
    Web::one(site)
}

#[test]
fn duplicates_are_read_in_parts_over_http_while_new_ones_come() {
    let server = Server::new();
    let web = two_fronts();
    let run = |seeds: &[&str]| {
        let seeds: Vec<_> = seeds.iter().map(|path| web.url(0, path)).collect();
        let settings = plain().settings();
        crawling::run(&server.store, &settings, &seeds, &Context::default()).unwrap();
    };
    let (none, start, more) = part(&server.get("/v1/duplicate-feed"));
    part(&server.get("/v1/verdicts"));
    assert!(none.is_empty() && !more);
    run(&["/"]);
    let read = |after: &str, limit: usize| {
        let (mut all, mut after, mut parts) = (Vec::new(), after.to_owned(), 0);
        loop {
            let path = format!("/v1/duplicate-feed?limit={limit}&after={after}");
            let (items, next, more) = part(&server.get(&path));
            assert!(items.len() <= limit);
            all.extend(items);
            (after, parts) = (next, parts + 1);
            if !more {
                return (all, after, parts);
            }
        }
    };
    let (first, after, parts) = read(&start, 3);
    let distinct: BTreeSet<FeedItem> = first.iter().copied().collect();
    assert_eq!((first.len(), distinct.len()), (20, 20), "each copy once, in {parts} parts");
    assert!(parts >= 7, "{parts}");
    let one: BTreeSet<FeedItem> = read(&start, 1).0.into_iter().collect();
    assert_eq!(one, distinct);

    let path = format!("/v1/duplicate-feed?after={start}");
    let tag = server.get(&path).headers["etag"].clone();
    let ask = |tag: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        server.raw(format!("{head}If-None-Match: {tag}\r\n\r\n").as_bytes())
    };
    server.clock.advance(Duration::from_hours(1));
    for known in [tag.clone(), format!("\"x\", {tag}"), "*".to_owned()] {
        let answer = ask(&known);
        assert_eq!((answer.status, answer.body.as_str()), (304, ""), "{known}");
        assert_eq!(answer.headers["etag"], tag);
    }
    assert_eq!(ask("\"x\"").status, 200);

    // Who goes on gets what is new: twenty duplicates, and the three of the article that changed.
    run(&["/", "/more", "/3/0"]);
    assert_eq!(ask(&tag).status, 200, "there is more than before");
    let (second, end, _) = read(&after, 4);
    let second: BTreeSet<FeedItem> = second.into_iter().collect();
    assert_eq!(second.len(), 23);
    let whole: BTreeSet<FeedItem> = read(&start, 1_000).0.into_iter().collect();
    assert_eq!(whole.len(), 41);
    assert!(whole.is_superset(&second));
    assert_eq!(read(&end, 7), (Vec::new(), end.clone(), 1));

    let hashed = server.get("/v1/duplicate-feed?addresses=hashed");
    assert!(!hashed.body.contains("127.0.0.1"));
    let hashed: BTreeSet<FeedItem> = part(&hashed).0.into_iter().collect();
    assert_eq!(hashed, whole);
    server.get("/v1/duplicate-feed?after=12").is(400, "bad_cursor");
    server.get("/v1/duplicate-feed?limit=0").is(400, "bad_parameter");
    server.get("/v1/duplicate-feed?addresses=none").is(400, "bad_parameter");
    server.get("/v1/duplicate-feed?cursor=1").is(400, "unknown_parameter");
    server.lives();
}

#[test]
fn a_duplicate_takes_little_room_in_a_feed_and_in_a_store() {
    const DUPLICATES: usize = 20_000;
    let (folder, feed) = temporary("many.jsonl");
    let url = |site: &str, n: usize| format!("https://{site}.example.org/news/2026/11/{n}.html");
    // Every document has three copies.
    let pairs: Vec<(String, String)> = (0..DUPLICATES)
        .map(|n| (url(["www2", "m", "mirror"][n % 3], n / 3), url("www", n / 3)))
        .collect();
    feed_of(&feed, &pairs);
    let bytes = fs::read(&feed).unwrap();
    let packed = zstd::bulk::compress(&bytes, 9).unwrap();
    let store = Store::open_or_create(&folder.path().join("s"), 16 << 20).unwrap();
    import_all(&store, &[feed], &Normalize::default()).unwrap();
    drop(store);
    let db = redb::Database::open(folder.path().join("s/store.redb")).unwrap();
    let table = redb::TableDefinition::<&[u8], &[u8]>::new("verdicts");
    let table = db.begin_read().unwrap().open_table(table).unwrap();
    let (stats, duplicates) = (table.stats().unwrap(), DUPLICATES as u64);
    let stored = stats.stored_bytes() + stats.metadata_bytes() + stats.fragmented_bytes();
    let each = [bytes.len() as u64, packed.len() as u64, stored].map(|all| all / duplicates);
    eprintln!("bytes of a duplicate in a feed, packed, in a store: {each:?}");
    assert!(each[0] < 250 && each[1] < 30 && each[2] < 200, "{each:?}");
}
