//! Filters of texts within an export: the same as those of `crawl dedup`, counted and listed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::service::Server;
use crate::support::{crawl, prose};

/// English and Chinese, long and short, with lines that repeat and with personal data.
fn texts() -> Vec<String> {
    let sentence = |number: u64| {
        format!(
            "The harbour bridge of {} opens on Monday after two years of work on its towers, and \
             the ferry that took its place will sail for the last time on Sunday night. Write to \
             editor{number}@example.org with what you think of it, and the answer is printed.",
            prose(number, 12)
        )
    };
    let mut texts: Vec<String> = (0..12)
        .map(|number| (0..5).map(|at| sentence(number * 10 + at)).collect::<Vec<_>>().join("\n"))
        .collect();
    texts.extend((0..4).map(|number| format!("Short text {} it is.", prose(900 + number, 3))));
    let chinese = [
        "海量网络文本去重系统把重复的文章找出来并且只留下一篇最好的版本给读者阅读。",
        "大桥在星期一开放，轮渡在星期天晚上最后一次航行，市民纷纷前往码头告别它们。",
    ];
    texts.extend(chinese.iter().map(|line| line.repeat(3)));
    texts.extend((0..3).map(|number| vec![sentence(500 + number); 9].join("\n")));
    texts
}

fn write_documents(path: &Path) {
    let line = |(number, text): (usize, &String)| {
        let url = format!("http://site{number}.example/story");
        format!("{}\n", json!({"id": number.to_string(), "url": url, "text": text}))
    };
    fs::write(path, texts().iter().enumerate().map(line).collect::<String>()).unwrap();
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of(lines: &[Value], field: &str) -> BTreeSet<String> {
    lines.iter().map(|line| line[field].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn done(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let done = crawl(arguments, folder);
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

const FILTERS: [&[&str]; 4] = [
    &["--languages", "en", "--min-words", "20", "--mask", "mail"],
    &["--filter", "gopher-repetition,c4"],
    &["--max-chars", "500", "--languages", "zh", "--min-certainty", "0.5"],
    &["--blocked-words", "words.txt"],
];

#[test]
fn an_export_keeps_what_dedup_keeps_and_counts_the_same_reasons() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_documents(&path.join("docs.jsonl"));
    fs::write(path.join("words.txt"), "轮渡\n").unwrap();
    done(path, &["import", "--store", "s", "docs.jsonl", "--quiet"]);
    for filters in FILTERS {
        done(path, &[&["dedup", "docs.jsonl", "--out", "d", "--quiet"], filters].concat());
        let export = ["export", "--store", "s", "--out"];
        done(path, &[&export[..], &["x"], filters].concat());
        let read = |name: &str| fs::read(path.join(name)).unwrap();
        let (kept, exported) = (lines(&read("d/kept.jsonl")), lines(&read("x/documents.jsonl")));
        assert_eq!(of(&kept, "text"), of(&exported, "text"), "{filters:?}");
        let report: Value = serde_json::from_slice(&read("d/report.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&read("x/manifest.json")).unwrap();
        let counts = &manifest["counts"];
        assert_eq!(counts["filteredBy"], report["filteredBy"], "{filters:?}");
        assert_eq!(counts["masked"], report["masked"], "{filters:?}");
        assert!(!counts["filteredBy"].as_object().unwrap().is_empty(), "{filters:?}");
        assert!(manifest["settings"]["filters"].is_object());
        // Each that is kept out is listed, with its reason; the card tells of them.
        let out = lines(&read("x/withheld.jsonl"));
        assert_eq!(out.len() + exported.len(), texts().len());
        let card = String::from_utf8(read("x/README.md")).unwrap();
        for (reason, count) in counts["filteredBy"].as_object().unwrap() {
            let listed = out.iter().filter(|line| line["reason"] == format!("filter:{reason}"));
            assert_eq!(listed.count() as u64, count.as_u64().unwrap(), "{reason}");
            let told = format!("- {count} documents are not here: {reason}\n");
            assert!(card.contains(&told), "{told}{card}");
        }
        // A stream has the same lines.
        let stream = done(path, &[&export[..], &["-", "--quiet"], filters].concat());
        assert_eq!(stream, read("x/documents.jsonl"));
        let list = ["-", "--quiet", "--list", "withheld"];
        assert_eq!(done(path, &[&export[..], &list, filters].concat()), read("x/withheld.jsonl"));
    }
    // Nothing is on by default.
    done(path, &["export", "--store", "s", "--out", "x"]);
    let manifest = fs::read(path.join("x/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["counts"]["documents"], texts().len());
    assert_eq!(manifest["settings"].get("filters"), None);
    // C4 takes lines out of a text, which its Markdown would keep.
    let refused = crawl(
        &["export", "--store", "s", "--out", "y", "--filter", "c4", "--fields", "url,markdown"],
        path,
    );
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_service_streams_what_filters_leave() {
    let server = Server::new();
    for (number, text) in texts().iter().enumerate() {
        let url = format!("http://site{number}.example/story");
        server.send(&json!({"url": url, "title": "", "content": text}));
    }
    let all = server.get("/v1/export?fields=text").lines();
    assert_eq!(all.len(), texts().len());
    let kept = server.get("/v1/export?fields=text&languages=en&min-words=20&mask=mail").lines();
    assert!(!kept.is_empty() && kept.len() < all.len(), "{}", kept.len());
    for line in &kept {
        let text = line["text"].as_str().unwrap();
        assert!(text.contains("email@example.com") && !text.contains("editor"), "{text}");
    }
    let query = "list=withheld&languages=en&min-words=20";
    let out = server.get(&format!("/v1/export?{query}")).lines();
    assert_eq!(out.len() + kept.len(), all.len());
    assert!(out.iter().all(|line| line["reason"].as_str().unwrap().starts_with("filter:")));
    for query in ["filter=c5", "mask=", "min-words=x", "languages=English", "min-certainty=2"] {
        server.get(&format!("/v1/export?{query}")).is(400, "bad_parameter");
    }
    server.get("/v1/export?blocked-words=/etc/passwd").is(400, "unknown_parameter");
    // A client asks with its flags.
    let folder = tempfile::tempdir().unwrap();
    let from = format!("http://{}", server.address);
    let flags = ["--languages", "en", "--min-words", "20", "--mask", "mail"];
    let export = ["export", "--from", &from, "--out", "x"];
    done(folder.path(), &[&export[..], &flags].concat());
    let exported = lines(&fs::read(folder.path().join("x/documents.jsonl")).unwrap());
    assert_eq!(of(&exported, "text"), of(&kept, "text"));
    let manifest = fs::read(folder.path().join("x/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert!(manifest["counts"]["filteredBy"]["language"].as_u64().unwrap() > 0);
    fs::write(folder.path().join("words.txt"), "ferry\n").unwrap();
    let refused = crawl(&[&export[..], &["--blocked-words", "words.txt"]].concat(), folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("reads no file of words"));
}
