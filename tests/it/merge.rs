//! Stores that become one: clusters are joined, elections are made anew, nothing is lost, and a kill
//! changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use uniqcrawl::localweb::Site;
use uniqcrawl::store::Store;

use crate::service::{get, post};
use crate::support::{Clusters, Web, check_clean, clusters, config, crawl, page, prose};
use crate::whole_stores::{Running, crash, fails};

/// Two hosts, each with stories of its own, and stories that both have; those of the second one are
/// edited.
fn web() -> Web {
    let site = |host: u64| {
        let names: Vec<String> = (0..40).map(|number| format!("/{number}")).collect();
        let links: Vec<&str> = names.iter().map(String::as_str).collect();
        let site = Site::new().html("/", page("Front", &prose(900 + host, 80), &links));
        (0..40u64).fold(site, |site, number| {
            let seed = if number % 2 == 0 { number } else { number + 100 * (host + 1) };
            let more = if host == 1 { " Printed again in town at nine." } else { "" };
            let text = format!("{}{more}", prose(seed, 120));
            site.html(&format!("/{number}"), page(&format!("Story {seed}"), &text, &[]))
        })
    };
    Web::start(2, |_| vec![site(0), site(1)])
}

fn crawl_into(folder: &Path, web: &Web, hosts: &[usize]) {
    let store = Store::open_or_create(folder, 16 << 20).unwrap();
    let seeds = web.seeds();
    let seeds: Vec<_> = hosts.iter().map(|host| seeds[*host].clone()).collect();
    let (settings, context) = (config().settings(), uniqcrawl::crawl::Context::default());
    uniqcrawl::crawl::run(&store, &settings, &seeds, &context).unwrap();
}

fn read(folder: &Path) -> Clusters {
    let store = Store::open_to_read(folder, 1 << 24).unwrap();
    check_clean(&store);
    clusters(&store)
}

#[track_caller]
fn merge(arguments: &[&str], folder: &Path) -> Value {
    let output = crawl(&[&["store", "merge", "--json"], arguments].concat(), folder);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Identifier of each document, by its canonical URL.
fn ids(store: &str, folder: &Path) -> BTreeMap<String, String> {
    let out = crawl(&["follow", "--store", store], folder);
    assert!(out.status.success(), "{out:?}");
    let lines = String::from_utf8(out.stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    lines.map(|line| (text(&line["url"]), text(&line["docId"]))).collect()
}

#[test]
fn stores_become_the_store_that_one_crawl_of_both_makes_and_a_kill_changes_nothing() {
    let web = web();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    crawl_into(&path.join("a"), &web, &[0]);
    crawl_into(&path.join("b"), &web, &[1]);
    crawl_into(&path.join("both"), &web, &[0, 1]);
    let told = merge(&["a", "b", "--into", "ab", "--list", "list.jsonl"], path);
    let whole = read(&path.join("both"));
    let merged = read(&path.join("ab"));
    assert_eq!(merged, whole);
    let of = |source: usize, what: &str| told["merged"]["sources"][source][what].clone();
    assert_eq!(
        (of(0, "base"), of(0, "documents"), of(1, "documents")),
        (json!(true), json!(41), json!(41))
    );
    assert_eq!((of(0, "becamePart"), of(1, "becamePart")), (json!(0), json!(20)));
    assert_eq!(of(1, "copies"), 41);
    // Documents keep their identifiers; which became part of which is told.
    let (before, after) = (ids("b", path), ids("ab", path));
    let kept = before.iter().filter(|(url, id)| after.get(*url) == Some(*id)).count();
    assert_eq!(kept, 21);
    let list = fs::read_to_string(path.join("list.jsonl")).unwrap();
    let list: Vec<Value> = list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(list.len(), 20);
    let known: BTreeSet<&str> = after.values().map(String::as_str).collect();
    assert!(list.iter().all(|line| known.contains(line["into"].as_str().unwrap())), "{list:?}");
    let part = list[0]["docId"].as_str().unwrap();
    let found = crawl(&["inspect", part, "--store", "ab", "--json"], path);
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["document"]["docId"], list[0]["into"]);
    // Once more changes nothing, and brings what has come to a store since.
    merge(&["a", "b", "--into", "ab"], path);
    assert_eq!((read(&path.join("ab")), ids("ab", path)), (merged.clone(), after.clone()));
    let more = Web::one(Site::new().html("/", page("More", &prose(777, 90), &[])));
    fs::create_dir(path.join("grown")).unwrap();
    fs::copy(path.join("b/store.redb"), path.join("grown/store.redb")).unwrap();
    crawl_into(&path.join("grown"), &more, &[0]);
    fs::create_dir(path.join("all")).unwrap();
    fs::copy(path.join("ab/store.redb"), path.join("all/store.redb")).unwrap();
    let told = merge(&["b", "grown", "--into", "all"], path);
    assert_eq!(told["merged"]["documents"], merged.len() + 1);

    for event in ["copied:9", "replaced:1", "merging:1", "merged part:1", "settling:1"] {
        crash(&["store", "merge", "a", "b", "--into", "killed"], path, event);
    }
    merge(&["a", "b", "--into", "killed"], path);
    assert_eq!(read(&path.join("killed")), merged);
    assert_eq!(ids("killed", path), after);
    assert_eq!(read(&path.join("a")).len(), 41, "it was only read");

    // The crawl goes on in the merged store: what was taken over is read again as what it is.
    crawl_into(&path.join("ab"), &web, &[0, 1]);
    assert_eq!(read(&path.join("ab")), merged);
}

#[test]
fn large_stores_are_placed_in_many_commits_and_a_kill_in_any_of_them_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    crate::whole_stores::filled(&path.join("a"), 0, 30);
    let mut running = Running::start(path, "");
    let mut lines = String::new();
    for number in 0..2_500_u64 {
        let text = format!("{} Seen by {number}.", prose(number % 1_700, 60));
        let line = json!({"nid": format!("n{number}"), "content": text,
            "url": format!("http://sent.test/{number}")});
        writeln!(lines, "{line}").unwrap();
    }
    let answer = post(running.address, "/v1/articles", "application/x-ndjson", lines.as_bytes());
    assert_eq!(answer.status, 200);
    running.kill();
    merge(&["a", "s", "--into", "whole"], path);
    let arguments = ["store", "merge", "a", "s", "--into", "killed"];
    for event in ["merging:1", "merging:2", "merged part:1", "merging:1", "settling:1"] {
        crash(&arguments, path, event);
        check_clean(&Store::open_to_read(&path.join("killed"), 1 << 24).unwrap());
    }
    merge(&["a", "s", "--into", "killed"], path);
    let whole = read(&path.join("whole"));
    assert!(whole.len() > 1_000, "{}", whole.len());
    assert_eq!(whole, read(&path.join("killed")));
    assert_eq!(ids("whole", path), ids("killed", path));
}

#[test]
fn stores_that_were_merged_once_stay_as_they_are_when_that_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    crate::whole_stores::filled(&path.join("a"), 0, 20);
    // Copies of 400 texts on one site with up to two words edited: what is told apart from what
    // depends on what else is there, so that the last look moves some.
    let mut running = Running::start(path, "");
    let mut lines = String::new();
    let mut chance = 1_u64;
    let mut below = |most: u64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        (chance >> 33) % most
    };
    for number in 0..1_000_u64 {
        let story = below(400);
        let place = |word: u64| (story * 150 + word).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        let mut words: Vec<String> = (0..150).map(|word| format!("{:x}", place(word))).collect();
        for edit in 0..below(3) {
            words[20 + 13 * edit as usize] = format!("edited{story}x{edit}");
        }
        let line = json!({"nid": format!("n{number}"), "content": words.join(" "),
            "url": format!("http://sent.test/n{number}")});
        writeln!(lines, "{line}").unwrap();
    }
    let answer = post(running.address, "/v1/articles", "application/x-ndjson", lines.as_bytes());
    assert_eq!(answer.status, 200);
    running.kill();
    merge(&["a", "s", "--into", "whole"], path);
    let (whole, names) = (read(&path.join("whole")), ids("whole", path));
    let copies: usize = whole.values().map(BTreeSet::len).sum();
    assert!(copies > whole.len() + 100, "{copies} copies of {}", whole.len());
    crash(&["store", "merge", "a", "s", "--into", "killed"], path, "settled:1");
    merge(&["a", "s", "--into", "killed"], path);
    let as_before = |store: &str| {
        let now = read(&path.join(store));
        let others: Vec<_> = now.iter().filter(|(url, of)| whole.get(*url) != Some(of)).collect();
        assert!(others.is_empty() && now.len() == whole.len(), "{store}: {others:?}");
        assert!(ids(store, path) == names, "{store}: documents have other identifiers");
    };
    as_before("killed");
    merge(&["a", "s", "--into", "whole"], path);
    as_before("whole");
}

#[test]
fn what_senders_know_their_articles_by_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut first = Running::start(path, "");
    let story = |number| first.send(number)["docId"].clone();
    let sent: Vec<Value> = (0..6).map(story).collect();
    let nameless = json!({"nid": "bare", "title": "Bare", "content": prose(70, 150)}).to_string();
    let answer = post(first.address, "/v1/articles", "application/json", nameless.as_bytes());
    let bare = answer.json()["docId"].clone();
    first.kill();
    fs::rename(path.join("s"), path.join("old")).unwrap();
    let mut second = Running::start(path, "");
    second.send(4);
    second.send(9);
    second.kill();
    let told = merge(&["old", "--into", "s"], path);
    assert_eq!(told["merged"]["documents"], 8);
    let third = Running::start(path, "");
    for (number, id) in sent.iter().enumerate() {
        let told = get(third.address, &format!("/v1/articles/n{number}"));
        assert_eq!((told.status, &told.json()["docId"]), (200, id), "{number}");
        let again = third.send(number as u64);
        assert_eq!(again["docId"], *id, "it is known by its nid");
    }
    assert_eq!(get(third.address, "/v1/articles/bare").json()["docId"], bare);
    drop(third);
    check_clean(&Store::open_to_read(&path.join("s"), 1 << 24).unwrap());
}

#[test]
fn stores_that_cannot_be_one_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    drop(crate::check::made(&path.join("a")));
    let other = Store::open_or_create(&path.join("other"), 1 << 20).unwrap();
    other.fix_setting("features", "another one").unwrap();
    drop(other);
    Store::open(&path.join("a"), 1 << 20).unwrap().fix_setting("features", "one").unwrap();
    let order = |stores: &[&'static str]| [&["store", "merge"], stores, &["--into", "m"]].concat();
    fails(&order(&["a", "a"]), path, 2, "a is named twice");
    fails(&order(&["a"]), path, 2, "two stores or more");
    fails(&order(&["a", "none"]), path, 2, "there is no store in none");
    fails(&order(&["a", "other"]), path, 2, "other was made with features = another one");
    fails(&["store", "merge", "--into", "m"], path, 2, "<STORE>");
    fails(&["store", "merge", "a", "--into", "a"], path, 2, "a is named twice");
}
