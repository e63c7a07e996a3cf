//! `crawl import`: what comes into a store, once, whatever happens meanwhile.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use uniqcrawl::corpus::documents::read_body;
use uniqcrawl::corpus::tables::{COPIES, DOCUMENTS, SENT};
use uniqcrawl::store::{Store, View as _};

use crate::support::{check_clean, crawl, prose};

/// Address, docId, title, text and popularity of each copy; and the documents.
type Contents = Vec<(String, String, String, Option<String>, u64)>;

fn contents(store: &Path) -> Contents {
    let store = Store::open_to_read(store, 16 << 20).unwrap();
    check_clean(&store);
    let view = store.snapshot().unwrap();
    let mut all = Vec::new();
    for entry in view.rows(COPIES).unwrap() {
        let entry = entry.unwrap();
        let (document, address) = entry.key().unwrap();
        let copy = entry.row().unwrap();
        let id = view.get(DOCUMENTS, document).unwrap().unwrap().id.to_string();
        let text = read_body(&view, copy.content).unwrap();
        all.push((address.to_owned(), id, copy.title, text, copy.popularity));
    }
    all.sort();
    all
}

#[track_caller]
fn import(folder: &Path, arguments: &[&str]) -> Value {
    let done = crawl(&[&["import", "--json", "--store"], arguments].concat(), folder);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// What does not depend on when it ran.
fn lasting(mut report: Value) -> Value {
    let object = report.as_object_mut().unwrap();
    for name in ["seconds", "documentsPerSecond", "came", "inputsBefore"] {
        object.remove(name);
    }
    report
}

/// Documents with copies among them and bad lines; every other one has no URL.
fn write_input(path: &Path, first: u64, count: u64) {
    let line = |n: u64| {
        let mut line =
            json!({"id": format!("i{n}"), "title": "", "text": prose(n / 3 * 2 + 1, 40)});
        if n % 3 == 1 {
            line["text"] = json!(format!("{} One more line.", line["text"].as_str().unwrap()));
        }
        if n.is_multiple_of(2) {
            line["url"] = json!(format!("http://site{}.example/{n}", n % 7));
        }
        if n % 100 == 99 { "no line\n".to_owned() } else { format!("{line}\n") }
    };
    fs::write(path, (first..first + count).map(line).collect::<String>()).unwrap();
}

#[test]
fn documents_come_into_a_store_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let lines = [
        json!({"id": "a", "url": "http://One.example:80/x", "text": prose(1, 60), "popularity": 3}),
        json!({"id": "b", "url": "no address", "title": "T", "text": prose(2, 60), "date": "2026-01-02"}),
        json!({"id": "a", "text": format!("{} One more line.", prose(1, 60))}),
        json!({"title": "A headline alone", "text": ""}),
        json!({"id": "none", "text": " "}),
    ];
    fs::write(path.join("in.jsonl"), lines.map(|line| format!("{line}\n")).concat()).unwrap();
    let report = import(path, &["st", "in.jsonl"]);
    for (name, expected) in [
        ("documents", json!(4)),
        ("new", json!(3)),
        ("equalIds", json!(1)),
        ("badUrls", json!(1)),
        ("known", json!(0)),
        ("rejectedBy", json!({"empty": 1})),
    ] {
        assert_eq!(report[name], expected, "{name}: {report}");
    }
    let first = contents(&path.join("st"));
    let urns = first.iter().filter(|copy| copy.0.starts_with("urn:uniqcrawl:")).count();
    assert_eq!((first.len(), urns), (4, 3));
    let crawled = first.iter().find(|copy| copy.0 == "http://one.example/x").unwrap();
    assert_eq!(crawled.4, 3, "{crawled:?}");
    let list = fs::read_to_string(path.join("st/import-rejected.jsonl")).unwrap();
    assert_eq!(list.lines().count(), 1);
    // Read again, from elsewhere, or under other settings, nothing comes twice.
    let again = import(path, &["st", "in.jsonl"]);
    assert_eq!((&again["came"], &again["inputsBefore"]), (&json!(0), &json!(1)));
    assert_eq!(lasting(again), lasting(report));
    fs::create_dir(path.join("sub")).unwrap();
    fs::copy(path.join("in.jsonl"), path.join("sub/in.jsonl")).unwrap();
    let moved = import(path, &["st", "sub/in.jsonl"]);
    assert_eq!((&moved["documents"], &moved["known"]), (&json!(0), &json!(4)), "{moved}");
    assert_eq!(contents(&path.join("st")), first);
    let store = Store::open_to_read(&path.join("st"), 16 << 20).unwrap();
    assert!(store.snapshot().unwrap().get(SENT, "b").unwrap().is_some(), "known by its id");
}

#[test]
fn nothing_usable_and_what_is_not_there_are_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("words.jsonl"), "no\nlines\n").unwrap();
    fs::write(path.join("fields.jsonl"), "{\"a\":\"x\"}\n").unwrap();
    for (name, told) in [
        ("words.jsonl", "nothing can be used"),
        ("fields.jsonl", "--text-field"),
        ("missing.jsonl", "missing.jsonl"),
    ] {
        let done = crawl(&["import", "--store", "st", name], path);
        let err = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{name}: {err}");
        assert!(err.contains(told), "{err}");
    }
}

#[test]
fn filters_keep_documents_out_of_a_store_and_list_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let lines =
        [json!({"id": "short", "text": "Few words"}), json!({"id": "long", "text": prose(1, 60)})];
    fs::write(path.join("in.jsonl"), lines.map(|line| format!("{line}\n")).concat()).unwrap();
    let report = import(path, &["st", "in.jsonl", "--min-words", "10"]);
    assert_eq!(report["filteredBy"], json!({"too_few_words": 1}));
    let list = fs::read_to_string(path.join("st/import-filtered.jsonl")).unwrap();
    assert!(list.contains("\"id\":\"short\"") && list.lines().count() == 1, "{list}");
    assert_eq!(contents(&path.join("st")).len(), 1);
}

#[test]
fn a_kill_at_any_moment_of_an_import_changes_nothing_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_input(&path.join("a.jsonl"), 0, 2_600);
    write_input(&path.join("b.jsonl"), 2_600, 1_800);
    let inputs = ["a.jsonl", "b.jsonl", "--threads", "1"];
    let whole = lasting(import(path, &[&["whole"], &inputs[..]].concat()));
    let expected = contents(&path.join("whole"));
    assert_eq!(whole["documents"].as_u64().unwrap(), expected.len() as u64);
    assert_eq!(whole["rejected"], 44);
    let list =
        |store: &str| fs::read_to_string(path.join(store).join("import-rejected.jsonl")).unwrap();
    // In the first batch, in the second, and in the first again after one that is committed.
    for steps in [&[600][..], &[3_000], &[2_200, 800, 40]] {
        drop(fs::remove_dir_all(path.join("killed")));
        for step in steps {
            let killed = Command::new(env!("CARGO_BIN_EXE_crawl"))
                .args([&["import", "--quiet", "--store", "killed"], &inputs[..]].concat())
                .current_dir(path)
                .env("UNIQCRAWL_CRASH", format!("joined:{step}"))
                .env("UNIQCRAWL_LOG", "uniqcrawl=trace")
                .output()
                .unwrap();
            assert!(killed.status.code().is_none(), "it was killed at {step}");
        }
        let resumed = import(path, &[&["killed"], &inputs[..]].concat());
        assert_eq!(lasting(resumed), whole, "{steps:?}");
        assert!(contents(&path.join("killed")) == expected, "{steps:?}");
        assert_eq!(list("killed"), list("whole"), "{steps:?}");
    }
}

#[test]
fn threads_change_nothing_in_an_import() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_input(&path.join("in.jsonl"), 0, 4_600);
    let of = |threads: &str| {
        let report = import(path, &[threads, "in.jsonl", "--threads", threads]);
        (lasting(report), contents(&path.join(threads)))
    };
    let one = of("1");
    assert!(one.1.len() > 4_000);
    for threads in ["2", "5"] {
        assert!(of(threads) == one, "{threads}");
    }
}
