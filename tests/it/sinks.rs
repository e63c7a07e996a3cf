//! The recipes of the guide for Elasticsearch and Kafka, run as they stand there against servers that
//! take nothing but what the bulk format and the options of kcat say.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::follow::program;
use crate::support::{crawl, prose};

/// What an index has, by identifier.
type Documents = Arc<Mutex<BTreeMap<String, Value>>>;

/// An index on loopback. Panics at a request that is not of its form.
#[derive(Default, Clone)]
struct Index {
    documents: Documents,
    refuses: Arc<AtomicBool>,
    faults: Arc<Mutex<Vec<String>>>,
}

impl Index {
    fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let index = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    assert!(reader.read_line(&mut head).unwrap() > 0);
                }
                let lower = head.to_ascii_lowercase();
                let length = lower.split("content-length: ").nth(1).unwrap();
                let length = length.split("\r\n").next().unwrap().parse().unwrap();
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let answer = index.bulk(&lower, &String::from_utf8(body).unwrap());
                let (status, answer) = match answer {
                    Ok(answer) => ("200 OK", answer),
                    Err(fault) => {
                        index.faults.lock().unwrap().push(fault.clone());
                        ("400 Bad Request", json!({"error": fault, "status": 400}))
                    }
                };
                let body = answer.to_string();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n\
                     Content-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        url
    }

    /// Takes a bulk request. Each line ends with a line feed, the last one too; an action is an
    /// object of one member, and of those only `index` has a source behind it.
    fn bulk(&self, head: &str, body: &str) -> Result<Value, String> {
        let wrong = |what: &str| Err(what.to_owned());
        if !head.starts_with("post /_bulk http/1.1") {
            return wrong("no bulk request");
        }
        if !head.contains("content-type: application/x-ndjson\r\n") {
            return wrong("Content-Type is not application/x-ndjson");
        }
        let Some(body) = body.strip_suffix('\n') else {
            return wrong("The bulk request must be terminated by a newline");
        };
        let mut documents = self.documents.lock().unwrap();
        let (mut items, mut lines) = (Vec::new(), body.split('\n'));
        while let Some(line) = lines.next() {
            let action: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
            let action = action.as_object().filter(|action| action.len() == 1);
            let Some((name, about)) = action.and_then(|action| action.iter().next()) else {
                return wrong("Malformed action/metadata line");
            };
            let about = about.as_object().ok_or("Malformed action/metadata line")?;
            let known = ["_index", "_id"];
            if about.len() != 2 || !known.iter().all(|name| about.contains_key(*name)) {
                return wrong("Action/metadata line contains an unknown parameter");
            }
            let id = about["_id"].as_str().filter(|id| !id.is_empty() && id.len() <= 512);
            let id = id.ok_or("an _id is a text of 512 bytes at most")?.to_owned();
            assert_eq!(about["_index"], "documents");
            let mut item = json!({"_index": "documents", "_id": id});
            if self.refuses.load(Ordering::SeqCst) {
                item["status"] = 429.into();
                lines.next_if_source(name);
            } else if name == "index" {
                let source = lines.next().ok_or("an action without a source")?;
                let source: Value =
                    serde_json::from_str(source).map_err(|error| error.to_string())?;
                assert!(source.is_object());
                let before = documents.insert(id, source);
                item["status"] = if before.is_none() { 201.into() } else { 200.into() };
            } else if name == "delete" {
                let was = documents.remove(&id).is_some();
                item["status"] = if was { 200.into() } else { 404.into() };
            } else {
                return wrong("an unknown action");
            }
            items.push(json!({ name: item }));
        }
        let refused = self.refuses.load(Ordering::SeqCst);
        Ok(json!({"took": 1, "errors": refused, "items": items}))
    }
}

trait Sources {
    /// Passes over the source of an action that has one.
    fn next_if_source(&mut self, action: &str);
}

impl Sources for std::str::Split<'_, char> {
    fn next_if_source(&mut self, action: &str) {
        if action == "index" {
            self.next();
        }
    }
}

#[track_caller]
fn import(folder: &Path, first: u64, count: u64) {
    let mut lines = String::new();
    for number in first..first + count {
        let url = format!("http://site{}.example/{number}", number % 9);
        // What has to be escaped in JSON, and a tab.
        let text = format!("{} \"quoted\"\tand a tab\nand a line", prose(number, 30));
        writeln!(lines, "{}", json!({"url": url, "title": format!("T{number}"), "text": text}))
            .unwrap();
    }
    fs::write(folder.join("docs.jsonl"), lines).unwrap();
    let done = crawl(&["import", "--store", "s", "docs.jsonl", "--quiet"], folder);
    assert!(done.status.success(), "{done:?}");
}

#[track_caller]
fn end_all(folder: &Path) {
    let done = crawl(&["expire", "--store", "s", "--older-than", "1ms", "--yes"], folder);
    assert!(done.status.success(), "{done:?}");
}

/// Texts of the store by docId.
fn there(folder: &Path) -> BTreeMap<String, String> {
    let out = ["export", "--store", "s", "--out", "-", "--fields", "docId,text", "--quiet"];
    let lines = String::from_utf8(crawl(&out, folder).stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    lines.map(|line| (text(&line["docId"]), text(&line["text"]))).collect()
}

/// Runs a line of a shell in which `$0` is the program.
fn shell(folder: &Path, line: &str, rest: &[&str]) -> Output {
    let path = std::env::var("PATH").unwrap();
    Command::new("bash")
        .args(["-o", "pipefail", "-c", line, env!("CARGO_BIN_EXE_crawl")])
        .args(rest)
        .env("PATH", format!("{}:{path}", folder.join("bin").display()))
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn the_program_of_the_guide_for_elasticsearch_sends_bulk_requests_of_its_form() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("elastic.py"), program("elastic.py")).unwrap();
    fs::write(path.join("cursor"), "").unwrap();
    let index = Index::default();
    let url = index.start();
    let line = "\"$0\" follow --store s --since \"$(cat cursor)\" | \
                python3 elastic.py $1 documents cursor";
    let run = || {
        let output = shell(path, line, &[&url]);
        assert_eq!(*index.faults.lock().unwrap(), Vec::<String>::new());
        output
    };
    let has = || -> BTreeMap<String, String> {
        let documents = index.documents.lock().unwrap();
        let text = |change: &Value| change["text"].as_str().unwrap().to_owned();
        documents.iter().map(|(id, change)| (id.clone(), text(change))).collect()
    };
    import(path, 0, 450);
    let done = run();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(has().len(), 450);
    assert_eq!(has(), there(path));
    // An index that refuses what it is told does so in an answer of status 200.
    import(path, 1_000, 5);
    index.refuses.store(true, Ordering::SeqCst);
    let cursor = fs::read_to_string(path.join("cursor")).unwrap();
    let refused = run();
    assert!(!refused.status.success());
    assert_eq!(fs::read_to_string(path.join("cursor")).unwrap(), cursor, "it comes again");
    index.refuses.store(false, Ordering::SeqCst);
    assert!(run().status.success());
    assert_eq!(has(), there(path));
    end_all(path);
    import(path, 2_000, 3);
    assert!(run().status.success());
    assert_eq!(has().len(), 3);
    assert_eq!(has(), there(path));
}

/// In the place of kcat: takes the options of the guide alone, and notes each message.
const KCAT: &str = r#"#!/usr/bin/env python3
import json, sys
assert sys.argv[1:] == ["-P", "-b", "localhost:9092", "-t", "documents", "-K", "\\t", "-Z"], sys.argv
with open("topic", "a") as topic:
    for line in sys.stdin:
        assert line.endswith("\n")
        key, value = line[:-1].split("\t", 1)
        assert key and "\t" not in value
        topic.write(json.dumps([key, json.loads(value) if value else None]) + "\n")
"#;

#[test]
fn the_line_of_the_guide_for_kafka_gives_kcat_a_message_for_each_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::create_dir(path.join("bin")).unwrap();
    fs::write(path.join("bin/kcat"), KCAT).unwrap();
    fs::set_permissions(path.join("bin/kcat"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(path.join("cursor"), "").unwrap();
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/guide/follow.md");
    let guide = fs::read_to_string(guide).unwrap();
    let block = guide
        .split("```\n")
        .find(|block| block.contains("| kcat -P") || block.contains("  kcat -P"));
    let line = block.unwrap().trim_start_matches("$ ");
    let line = line.replace("crawl follow --from http://127.0.0.1:8080", "\"$0\" follow --store s");
    let line = line.replace(" --follow |", " |");
    assert!(line.starts_with("\"$0\" follow --store s --since"), "{line}");
    let topic = || -> BTreeMap<String, String> {
        let mut last = BTreeMap::new();
        for line in fs::read_to_string(path.join("topic")).unwrap().lines() {
            let message: (String, Value) = serde_json::from_str(line).unwrap();
            match message.1["text"].as_str() {
                Some(text) => last.insert(message.0, text.to_owned()),
                None => last.remove(&message.0),
            };
        }
        last
    };
    import(path, 0, 40);
    let done = shell(path, &line, &[]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(topic(), there(path));
    // The cursor of the last message, as the guide says.
    let messages = fs::read_to_string(path.join("topic")).unwrap();
    let last: (String, Value) = serde_json::from_str(messages.lines().last().unwrap()).unwrap();
    fs::write(path.join("cursor"), last.1["cursor"].as_str().unwrap()).unwrap();
    end_all(path);
    import(path, 100, 2);
    let done = shell(path, &line, &[]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(topic().len(), 2);
    assert_eq!(topic(), there(path));
}
