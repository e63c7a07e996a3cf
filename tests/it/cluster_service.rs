//! Articles come into a cluster by files and by services, several processes at a time.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::Nodes;
use crate::service::{get, post};
use crate::support::{crawl, prose};

#[track_caller]
fn json_of(folder: &Path, arguments: &[&str]) -> Value {
    let out = crawl(&[arguments, &["--json"]].concat(), folder);
    assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Lines of documents, three of each text, of which each is edited in another place.
fn lines(texts: std::ops::Range<u64>) -> String {
    let mut all = String::new();
    for text in texts {
        for copy in 0..3 {
            let words = prose(text + 1, 120);
            let edited = format!("{words} The end of copy {copy}.");
            let url = format!("http://site{copy}-{}.example/{text}", text % 7);
            let line = json!({"url": url, "title": "", "text": edited, "popularity": copy});
            all.extend([line.to_string().as_str(), "\n"]);
        }
    }
    all
}

fn spawned(folder: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn files_come_into_a_cluster_by_several_processes_that_are_killed_and_nothing_comes_twice() {
    const TEXTS: u64 = 60;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Both have the middle.
    fs::write(folder.join("one.jsonl"), lines(0..40)).unwrap();
    fs::write(folder.join("other.jsonl"), lines(20..TEXTS)).unwrap();
    fs::write(folder.join("odd.jsonl"), "{\"text\": \"\"}\n{\"text\": \"words\"}\n").unwrap();
    let url = format!("cluster:{}", Nodes::shared().url("imported"));
    let import = ["import", "--store", &url, "--texts", "texts", "--documents", "1000"];
    let with = |file: &'static str| [&import[..], &[file]].concat();
    let mut both = ["one.jsonl", "other.jsonl"].map(|file| spawned(folder, &with(file)));
    std::thread::sleep(Duration::from_millis(400));
    both[0].kill().unwrap();
    both[0].wait().unwrap();
    assert!(both[1].wait().unwrap().success());
    let again = json_of(folder, &with("one.jsonl"));
    assert_eq!(again["documents"].as_u64().unwrap() + again["known"].as_u64().unwrap(), 120);
    let known = json_of(folder, &with("one.jsonl"));
    assert_eq!((&known["documents"], &known["known"]), (&0.into(), &120.into()), "{known}");
    let odd = json_of(folder, &with("odd.jsonl"));
    assert_eq!((&odd["documents"], &odd["rejected"]), (&1.into(), &1.into()), "{odd}");

    let export = json_of(folder, &["export", "--store", &url, "--out", "corpus"]);
    let documents = fs::read_to_string(folder.join("corpus/documents.jsonl")).unwrap();
    let dropped = fs::read_to_string(folder.join("corpus/duplicates.jsonl")).unwrap();
    let of = |text: &str, name: &str| -> Vec<String> {
        let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.map(|row| row[name].as_str().unwrap().to_owned()).collect()
    };
    let urls = [of(&documents, "url"), of(&dropped, "url")].concat();
    let distinct: BTreeSet<&String> = urls.iter().collect();
    assert_eq!((urls.len(), distinct.len() as u64), (181, 3 * TEXTS + 1), "each URL is there once");
    assert_eq!(export["documents"], TEXTS + 1, "no text is two documents");
    // One without a URL has a name of its own.
    assert!(urls.iter().any(|url| url.starts_with("urn:uniqcrawl:")));
    let rejected = fs::read_dir(folder.join("texts"))
        .unwrap()
        .filter(|worker| worker.as_ref().unwrap().path().join("import-rejected.jsonl").exists());
    assert_eq!(rejected.count(), 1);
    // Another corpus of the same cluster has none of it.
    let other = format!("cluster:{}", Nodes::shared().url("imported-not"));
    assert_eq!(crawl(&["stats", "--store", &other], folder).status.code(), Some(2));
}

/// A service process.
pub(crate) struct Served {
    child: Child,
    pub address: SocketAddr,
}

impl Served {
    pub(crate) fn start(folder: &Path, store: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["serve", "--store", store, "--texts", "texts", "--listen", "127.0.0.1:0"])
            .args(more)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").expect("it listens");
        Self { child, address: address.parse().unwrap() }
    }

    #[track_caller]
    fn send(&self, article: &Value) -> Value {
        let body = article.to_string();
        let answer = post(self.address, "/v1/articles", "application/json", body.as_bytes());
        assert!(matches!(answer.status, 200 | 201), "{}", answer.body);
        answer.json()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All who are asked count the same.
#[track_caller]
fn counts_are_those_of_documents(one: &Served, folder: &Path, url: &str) {
    // What is merely announced is no document, neither here nor in what a cluster counts.
    Nodes::shared().engine("served").announce(&[900, 901], Duration::from_mins(1)).unwrap();
    let mut stats = get(one.address, "/v1/stats").json();
    let end = Instant::now() + Duration::from_secs(20);
    while stats["copies"] != 153 && Instant::now() < end {
        // An answer is used again for a moment.
        std::thread::sleep(Duration::from_millis(100));
        stats = get(one.address, "/v1/stats").json();
    }
    assert_eq!((&stats["documents"], &stats["copies"]), (&52.into(), &153.into()), "{stats}");
    let duplicates = stats["duplicates"].as_object().unwrap();
    assert_eq!(duplicates.values().filter_map(Value::as_u64).sum::<u64>(), 101, "{stats}");
    let told = json_of(folder, &["stats", "--store", url]);
    for name in ["documents", "copies", "duplicates"] {
        assert_eq!(told[name], stats[name], "{name}");
    }
    let metrics = get(one.address, "/metrics").body;
    assert!(metrics.contains("\nuniqcrawl_documents 52\n"), "{metrics}");
    assert!(metrics.contains("\nuniqcrawl_copies 153\n"), "{metrics}");
    assert!(!metrics.contains("uniqcrawl_contents"), "what it does not keep is not there");
}

#[test]
fn services_on_one_cluster_give_one_text_one_identifier() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let url = format!("cluster:{}", Nodes::shared().url("served"));
    let services = [0, 1].map(|_| Served::start(folder, &url, &[]));
    let [one, other] = &services;
    let article = |url: &str, text: &str| json!({"url": url, "title": "A title", "content": text});
    let text = prose(7, 120);
    let first = one.send(&article("http://a.example/1", &text));
    assert_eq!(first["foundBy"], "new");
    let doc_id = first["docId"].as_str().unwrap();
    // The same again, and a near copy, by the other one.
    let again = other.send(&article("http://a.example/1", &text));
    assert_eq!((&again["docId"], &again["foundBy"]), (&first["docId"], &"url".into()));
    let near = other.send(&article("http://b.example/1", &format!("{text} More.")));
    assert_eq!(near["docId"], first["docId"]);
    assert_ne!(near["foundBy"], "new");
    let new = other.send(&article("http://c.example/1", &prose(8, 120)));
    assert_ne!(new["docId"], first["docId"]);

    // Many at once, the same by both: one identifier each.
    let lines: String = (0..150)
        .map(|at| {
            let line = article(&format!("http://d.example/{at}"), &prose(100 + at % 50, 120));
            format!("{line}\n")
        })
        .collect();
    let answers: Vec<Vec<String>> = std::thread::scope(|scope| {
        let send = |address| {
            let answer = post(address, "/v1/articles", "application/x-ndjson", lines.as_bytes());
            assert_eq!(answer.status, 200, "{}", answer.body);
            let rows = answer.body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            rows.map(|row| row["docId"].as_str().expect("each is stored").to_owned()).collect()
        };
        let running = services.each_ref().map(|one| scope.spawn(move || send(one.address)));
        running.map(|one| one.join().unwrap()).into_iter().collect()
    });
    assert_eq!(answers[0].len(), 150);
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].iter().collect::<BTreeSet<_>>().len(), 50);

    let told = get(one.address, &format!("/v1/documents/{doc_id}")).json();
    assert_eq!((&told["copies"], &told["docId"]), (&2.into(), &first["docId"]), "{told}");
    assert!(told["text"].as_str().unwrap().starts_with(&text[..100]));
    let copies = get(other.address, &format!("/v1/documents/{doc_id}/copies")).json();
    assert_eq!(copies["rows"].as_array().unwrap().len(), 2, "{copies}");
    let path = format!("/v1/documents/{doc_id}/copy?url=http%3A%2F%2Fb.example%2F1");
    assert!(get(one.address, &path).json()["text"].as_str().unwrap().ends_with("More."));
    let missing = "/v1/documents/0000000000000000-0000000000000000";
    assert_eq!(get(one.address, missing).status, 404);
    for (path, status) in [("/healthz", 200), ("/readyz", 200), ("/metrics", 200)] {
        assert_eq!(get(other.address, path).status, status, "{path}");
    }
    counts_are_those_of_documents(one, folder, &url);
    for path in ["/v1/documents", "/v1/articles/7", "/v1/changes"] {
        let refused = get(one.address, path);
        refused.is(501, "not_on_a_cluster");
        assert!(refused.body.contains("crawl store copy"), "{}", refused.body);
    }
    let no_index = get(one.address, "/v1/search?q=x");
    no_index.is(501, "no_search_index");
    assert!(no_index.body.contains("--index DIR"), "{}", no_index.body);
    let from = format!("http://{}", other.address);
    let export = json_of(folder, &["export", "--from", &from, "--out", "corpus"]);
    assert_eq!(export["documents"], 52, "{export}");
    let lines = fs::read_to_string(folder.join("corpus/documents.jsonl")).unwrap();
    assert!(lines.contains(doc_id));
    let jobs = crawl(&["serve", "--store", &url, "--allow-crawls"], folder);
    assert_eq!(jobs.status.code(), Some(2), "{jobs:?}");
}
