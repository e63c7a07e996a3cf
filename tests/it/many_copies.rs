//! Files of a run on texts that may be copies of very many others.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use uniqcrawl::corpus::files::{self, Options, Resources};
use uniqcrawl::neardup::Config;

use crate::corpus::{pages_of_sites, write};
use crate::support::prose;

/// One text on 30 hosts, several times on each under other titles, with other words here and there: what
/// is on one host is no copy of each other, and nearly all may be copies of what is on others.
fn reprints() -> Vec<Value> {
    let text = prose(7, 300);
    let words: Vec<&str> = text.split(' ').collect();
    let page = |n: u64| {
        let own = prose(n + 1_000, 300);
        let other = |(at, (word, own)): (usize, (&&str, &str))| {
            let is_own = (at as u64 * 7 + n * 13) % 31 == n % 5;
            if is_own { own.to_owned() } else { (*word).to_owned() }
        };
        let text: Vec<String> = words.iter().zip(own.split(' ')).enumerate().map(other).collect();
        json!({
            "id": n.to_string(), "url": format!("http://host{}.example/{n}", n * 11 % 30),
            "title": format!("Title {}", n * 17 % 15), "text": text.join(" "),
        })
    };
    (0..200).map(page).collect()
}

#[test]
fn each_document_is_in_one_cluster_and_is_kept_or_stood_for_by_one_that_is() {
    let folder = tempfile::tempdir().unwrap();
    for (name, lines) in [("reprints", reprints()), ("sites", pages_of_sites(600))] {
        let numbered = |(n, mut line): (u64, Value)| {
            line["id"] = json!(n.to_string());
            line
        };
        let lines: Vec<Value> = (0..).zip(lines).map(numbered).collect();
        let input = write(folder.path(), "in.jsonl", &lines);
        for memory in [1 << 30, 1] {
            let out = folder.path().join(format!("{name}-{memory}"));
            let resources = Resources { threads: 2, memory };
            let options = Options { resources, ..Options::default() };
            let inputs = std::slice::from_ref(&input);
            let report =
                files::run(inputs, &out, &Config::default(), &options, &mut |_| {}).unwrap();
            let rows = |file: &str| -> Vec<Value> {
                let text = fs::read_to_string(out.join(file)).unwrap();
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
            };
            let id = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
            let kept: BTreeSet<String> = rows("kept.jsonl").iter().map(|r| id(r, "id")).collect();
            let dropped = rows("duplicates.jsonl");
            assert!(dropped.iter().all(|row| kept.contains(&id(row, "duplicateOf"))), "{name}");
            let mut all: Vec<String> = dropped.iter().map(|row| id(row, "id")).collect();
            all.extend(kept.iter().cloned());
            all.sort_unstable();
            all.dedup();
            let counted = kept.len() + dropped.len();
            assert_eq!((all.len(), counted), (lines.len(), lines.len()), "{name}");
            assert_eq!(report.kept, kept.len() as u64, "{name}");
            let mut clustered = 0;
            for cluster in rows("clusters.jsonl") {
                let members = cluster["members"].as_array().unwrap();
                assert!(kept.contains(&id(&cluster, "canonical")), "{cluster}");
                assert!(members.contains(&cluster["canonical"]), "{cluster}");
                clustered += members.len() - 1;
            }
            assert_eq!(clustered, dropped.len(), "{name}");
            assert!(report.moved > 0, "{name}: {report:?}");
        }
    }
}
