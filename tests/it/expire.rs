//! Expiry: by command, by request and as a job, with care for what is lost.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::store::Store;

use crate::service::{Answer, Server};
use crate::support::{Web, check_clean, crawl, page, prose};

const DAY: Duration = Duration::from_hours(24);

/// Sends an article of its own text.
fn send(server: &Server, nid: &str, url: &str, seed: u64) -> Value {
    let article = json!({"nid": nid, "url": url, "title": format!("Story {seed} of some words"),
        "content": prose(seed, 120)});
    server.send(&article)
}

fn ask(server: &Server, body: &Value) -> Answer {
    server.post("/v1/expire", "application/json", body.to_string().as_bytes())
}

fn open() -> Server {
    Server::with(|settings| settings.api.expiry = true)
}

#[test]
fn a_command_without_a_unit_or_for_most_of_a_store_removes_nothing() {
    let mut server = Server::new();
    for number in 0..5 {
        send(&server, &number.to_string(), "", number);
    }
    server.stop();
    let folder = server.folder.path().to_owned();
    let other = tempfile::tempdir().unwrap();
    let other = Arc::new(Store::open_or_create(other.path(), 1 << 20).unwrap());
    let store = std::mem::replace(&mut server.store, other);
    assert!(uniqcrawl::service::close(store, Duration::from_mins(1)), "nothing holds the store");
    let run = |arguments: &[&str]| {
        let store = ["--store", folder.to_str().unwrap()];
        let output = crawl(&[&["expire"], arguments, &store[..]].concat(), &folder);
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let documents = || {
        let output = crawl(&["stats", "--json", "--store", folder.to_str().unwrap()], &folder);
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        told["documents"].clone()
    };
    for bare in ["3", "0.5", "3 "] {
        let (code, text) = run(&["--older-than", bare]);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("has no unit"), "{text}");
    }
    let (code, text) = run(&["--older-than", "0s"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("5 of 5 documents") && text.contains("--yes"), "{text}");
    let (code, text) = run(&["--older-than", "0s", "--dry-run"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("5 of 5 documents") && text.contains("would go"), "{text}");
    assert_eq!(documents(), json!(5));
    let (code, text) = run(&["--older-than", "0s", "--yes"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("are gone"), "{text}");
    assert_eq!(documents(), json!(0));
}

#[test]
fn an_article_that_is_sent_again_is_fresh_again_whatever_it_was_recognised_by() {
    let server = open();
    send(&server, "by nid", "", 1);
    send(&server, "first", "http://a.example/url", 2);
    send(&server, "by text", "", 3);
    send(&server, "not again", "", 4);
    server.clock.advance(DAY * 20);
    // Each of the three in its own way.
    assert_eq!(send(&server, "by nid", "", 1)["foundBy"], "nid");
    assert_eq!(send(&server, "other", "http://a.example/url", 2)["foundBy"], "url");
    assert_eq!(send(&server, "copy", "", 3)["foundBy"], "content");
    // That a known article came is noted while it is answered.
    let wish = |dry: bool| json!({"olderThan": "10d", "dryRun": dry});
    let end = std::time::Instant::now() + Duration::from_mins(1);
    let old = loop {
        let old = ask(&server, &wish(true)).json();
        if old["documents"] == 1 || std::time::Instant::now() > end {
            break old;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!((&old["documents"], &old["of"]), (&json!(1), &json!(4)), "{old}");
    let gone = ask(&server, &wish(false)).json();
    assert_eq!((&gone["documents"], &gone["copies"]), (&json!(1), &json!(1)), "{gone}");
    assert_eq!(server.rows("/v1/documents").len(), 3);
    server.lives();
}

#[test]
fn expiry_by_request_works_beside_those_who_send() {
    Server::with(|_| {}).post("/v1/expire", "application/json", b"{}").is(403, "expiry_disabled");
    let server = open();
    for number in 0..600 {
        send(&server, &number.to_string(), "", number);
    }
    server.clock.advance(DAY * 2);
    for number in 600..1_300 {
        send(&server, &number.to_string(), "", number);
    }
    ask(&server, &json!({"olderThan": "3"})).is(400, "bad_field");
    ask(&server, &json!({"olderThan": "1d", "all": true})).is(400, "bad_field");
    let told = std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            for number in 1_300..1_400 {
                send(&server, &number.to_string(), "", number);
            }
        });
        let told = ask(&server, &json!({"olderThan": "1d"}));
        sending.join().unwrap();
        told
    });
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!(told.json()["documents"], 600);
    assert_eq!(server.get("/v1/stats").json()["documents"], 800);
    // The index of the service knows that they are gone.
    let again = send(&server, "x", "", 5);
    assert_eq!((&again["filterStatus"], &again["foundBy"]), (&json!("good"), &json!("new")));
    server.clock.advance(DAY * 2);
    ask(&server, &json!({"olderThan": "1d"})).is(409, "expires_most");
    assert_eq!(ask(&server, &json!({"olderThan": "1d", "yes": true})).json()["documents"], 801);
    server.lives();
}

#[test]
fn a_job_removes_what_is_old_and_needs_no_seeds_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let site = Site::new().html("/", page("Front", &prose(1, 80), &["/a", "/b"]));
    let site = site.html("/a", page("A", &prose(2, 80), &[]));
    let web = Web::one(site.html("/b", page("B", &prose(3, 80), &[])));
    let job = |name: &str, seeds: &str, expire: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\n{seeds}store = \"store\"\nevery = \"1h\"\n\
             [job.settings.fetch]\nallow_private = true\n[job.expire]\n{expire}\n"
        )
    };
    let seeds = format!("seeds = [\"{}\"]\n", web.web.url(0));
    let jobs = [
        job("crawls", &seeds, "older_than = \"30d\""),
        job("most", "", "older_than = \"0s\""),
        job("all", "", "older_than = \"0s\"\nmore_than_half = true"),
    ];
    fs::write(path.join("jobs.toml"), jobs.concat()).unwrap();
    let run = |name: &str| {
        let output = crawl(&["jobs", "run", "--jobs", "jobs.toml", "--once", name], path);
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let (code, text) = run("crawls");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("expire: 0 of 3 documents"), "{text}");
    let (code, text) = run("most");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("3 of 3 documents") && text.contains("more_than_half"), "{text}");
    let (code, text) = run("all");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("3 of 3 documents") && text.contains("are gone"), "{text}");
    let store = Store::open(&path.join("store"), 1 << 24).unwrap();
    check_clean(&store);
    fs::write(path.join("bad.toml"), job("bad", "", "older_than = \"3\"")).unwrap();
    let output = crawl(&["jobs", "check", "--jobs", "bad.toml"], path);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("expire.older_than: `3` has no unit"), "{text}");
}

#[test]
fn expiry_of_what_was_sent_leaves_the_addresses_of_a_crawl_as_they_are() {
    let site = Site::new().html("/", page("Front", &prose(1, 80), &["/waits", "/moved"]));
    let web = Web::one(site.page("/moved", Page::redirect(302, "/")));
    let server = Server::new();
    for (number, name) in ["/waits", "/moved"].into_iter().enumerate() {
        let url = web.url(0, name).to_string();
        send(&server, name, &url, 50 + number as u64);
    }
    let seeds = [web.url(0, "/"), web.url(0, "/moved")];
    let mut config = crate::support::config();
    config.crawl.limits.pages_max = 2;
    config.frontier.discover.usual_place = false;
    let context = uniqcrawl::crawl::Context::default();
    uniqcrawl::crawl::run(&server.store, &config.settings(), &seeds, &context).unwrap();
    check_clean(&server.store);
    let store = server.store.clone();
    let mut batch = store.begin().unwrap();
    let before = uniqcrawl::base::clock::Timestamp(i64::MAX);
    let ended = uniqcrawl::corpus::clusters::expire(&mut batch, before).unwrap();
    assert_eq!(ended.documents, 3);
    uniqcrawl::frontier::Frontier::forget_expired(&mut batch, &ended.addresses).unwrap();
    batch.commit().unwrap();
    check_clean(&store);
}
