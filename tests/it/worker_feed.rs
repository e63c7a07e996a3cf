//! Feeds of duplicates in a crawl by many: what workers have found, published shard by shard, spares
//! other workers the same downloads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use uniqcrawl::base::units::Time;
use uniqcrawl::config::Config;
use uniqcrawl::frontier::duplicate_feed::WholeFeed;
use uniqcrawl::store::{Store, View as _};
use uniqcrawl::urls::Normalize;

use crate::cluster::Nodes;
use crate::duplicate_feed::{ARTICLES, plain, press_and_mirror};
use crate::support::Web;
use crate::worker::Crowd;

fn settings() -> Config {
    let mut config = plain();
    config.cluster.shards = 16;
    config.cluster.lease = Time::from_secs(6);
    config.cluster.documents = 1_000;
    config
}

/// Crawls with two workers. Returns how many copies were fetched of the mirror, which has two of
/// each article.
fn fetched(prefix: &str, web: &Web, config: &Config) -> (u64, Crowd) {
    web.web.forget();
    let mut crowd = Crowd::on(Nodes::shared(), prefix, web);
    (0..2).for_each(|_| crowd.start(config));
    crowd.wait_all();
    assert_eq!(crowd.clusters(config).len() as u64, ARTICLES + 3, "no document is lost");
    let targets = web.web.targets(1).into_iter();
    let copies = targets.filter(|(path, _)| path.starts_with("/mirrored/"));
    (copies.map(|(_, count)| count as u64).sum(), crowd)
}

/// Exports the feeds of all shards. Returns them with the number of their duplicates.
fn publish(crowd: &Crowd, out: &Path, hashed: bool) -> (Vec<PathBuf>, u64) {
    let (mut feeds, mut duplicates) = (Vec::new(), 0);
    for shard in fs::read_dir(crowd.path("stores/shards")).unwrap() {
        let shard = shard.unwrap().path();
        let feed = out.join(shard.file_name().unwrap()).with_extension("jsonl.zst");
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
        command.args(["duplicate-feed", "export", "--json", "--store"]).arg(&shard).arg(&feed);
        let out = command.args(hashed.then_some("--hashed")).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let told: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        duplicates += told["duplicates"].as_u64().unwrap();
        feeds.push(feed);
    }
    (feeds, duplicates)
}

#[test]
fn feeds_of_shards_spare_other_workers_what_was_a_copy() {
    let web = press_and_mirror();
    let (all, crowd) = fetched("feed-none", &web, &settings());
    assert_eq!(all, 2 * ARTICLES);
    for (prefix, hashed) in [("feed-plain", false), ("feed-hashed", true)] {
        let out = tempfile::tempdir().unwrap();
        let (feeds, duplicates) = publish(&crowd, out.path(), hashed);
        // One of two of the mirror, and both where press and mirror fell into one shard; but for
        // the page by which another one is found.
        assert!(duplicates + 1 >= ARTICLES, "{duplicates}");
        let mut config = settings();
        config.frontier.duplicate_feeds.known = feeds;
        let (some, _) = fetched(prefix, &web, &config);
        // The first copies of a feed that is not proved, and one in thirty, are looked at.
        let spared = all - some;
        assert!(spared <= duplicates && spared + 8 >= duplicates, "{some} of {all}: {duplicates}");
    }
}

#[test]
fn a_worker_names_the_line_of_a_damaged_feed_and_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let feed = folder.path().join("feed.jsonl");
    crate::duplicate_feed::feed_of(&feed, &[("http://a/".to_owned(), "http://b/".to_owned())]);
    let cut = fs::read_to_string(&feed).unwrap().replace("http://a/", "http://c/");
    fs::write(&feed, cut).unwrap();
    let join = Nodes::shared().url("feed-damaged");
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
    command.args(["worker", "--until-done", "--join", &join, "--known"]).arg(&feed);
    command.arg("--folder").arg(folder.path().join("stores")).arg("http://127.0.0.1:1/");
    let out = command.output().unwrap();
    let told = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{told}");
    assert!(told.contains("feed.jsonl:3") && told.contains("altered"), "{told}");
    assert!(!folder.path().join("stores").exists());
}

#[test]
fn a_feed_that_is_exchanged_while_workers_run_is_not_taken_in_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let feed = folder.path().join("feed.jsonl");
    let pairs = |host: &str| -> Vec<_> {
        (0..5).map(|n| (format!("http://{host}/{n}"), format!("http://press/{n}"))).collect()
    };
    crate::duplicate_feed::feed_of(&feed, &pairs("mirror"));
    let rules = Normalize::default();
    let first = fs::read(&feed).unwrap();
    let read = WholeFeed::all(std::slice::from_ref(&feed), &rules).unwrap();
    crate::duplicate_feed::feed_of(&feed, &pairs("other"));
    let store = Store::open_or_create(&folder.path().join("store"), 1 << 20).unwrap();
    let error = read[0].take_in(&store, &rules, None).unwrap_err().to_string();
    assert_eq!(error, format!("the feed {} is another one than it was", feed.display()));
    let complete = || {
        let snapshot = store.snapshot().unwrap();
        let rows = snapshot.rows(uniqcrawl::frontier::FEEDS).unwrap();
        rows.map(|entry| entry.unwrap().row().unwrap().complete).collect::<Vec<_>>()
    };
    assert_eq!(complete(), [false]);
    fs::write(&feed, first).unwrap();
    read[0].take_in(&store, &rules, None).unwrap();
    assert_eq!(complete(), [true]);
}
