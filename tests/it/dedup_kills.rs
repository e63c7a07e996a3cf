//! `crawl dedup` that is killed again and again: the next run goes on, and the files in the end are
//! those of a run that was not killed, byte for byte.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{crawl, prose};

/// Documents of which every third one is like the one before, with lines that are none, in two
/// files of lines and in pages.
fn write_inputs(folder: &Path) {
    fs::create_dir(folder.join("in")).unwrap();
    for (name, first) in [("a.jsonl", 0), ("b.jsonl", 1_500)] {
        let mut lines = String::new();
        for number in first..first + 1_500_u64 {
            let mut text = prose(number / 3 * 2, 50);
            if number % 3 == 1 {
                text.push_str(" One more line, to somebody@example.org.");
            }
            let url = format!("http://site{}.example/{number}", number % 7);
            let popularity = number * 7 % 13;
            let line = json!({"id": number, "url": url, "text": text, "popularity": popularity});
            writeln!(lines, "{line}").unwrap();
            if number.is_multiple_of(200) {
                lines.push_str("no line\n");
            }
        }
        fs::write(folder.join("in").join(name), lines).unwrap();
    }
    for number in 0..40 {
        let text = prose(number * 2, 50);
        let page = format!("<title>Page {number}</title><body><article><p>{text}</article>");
        fs::write(folder.join(format!("in/c{number:02}.html")), page).unwrap();
    }
}

/// All files of a folder; without the times in the report, and the checksum of that.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        assert!(!name.contains(".partial"), "{name} is left");
        let mut bytes = fs::read(entry.path()).unwrap();
        if name == "report.json" {
            let mut report: Value = serde_json::from_slice(&bytes).unwrap();
            for name in ["seconds", "documentsPerSecond", "indexBytes"] {
                report.as_object_mut().unwrap().remove(name).unwrap();
            }
            bytes = report.to_string().into_bytes();
        }
        if name != "manifest.json" {
            all.insert(name, bytes);
        }
    }
    all
}

#[track_caller]
fn same(one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>) {
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, bytes) in one {
        assert!(other[name] == *bytes, "{name}");
    }
}

#[test]
fn a_dedup_that_is_killed_again_and_again_goes_on_and_is_that_of_one_that_was_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_inputs(path);
    let mut moment = std::process::id();
    // What is remembered lies in memory, or on the disk; lines are copied, or made.
    for (name, how) in
        [("memory", &["--threads", "2"][..]), ("disk", &["--memory", "64MiB", "--mask", "mail"])]
    {
        let run = |out: &str, quiet: &str| -> Vec<String> {
            let all = [&["dedup", "in", "--out", out, quiet][..], how].concat();
            all.into_iter().map(str::to_owned).collect()
        };
        let whole = format!("whole-{name}");
        let began = Instant::now();
        let arguments = run(&whole, "-v");
        let done = crawl(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), path);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let took = began.elapsed();
        let moved = String::from_utf8_lossy(&done.stderr).contains("no more room in memory");
        assert_eq!(moved, name == "disk");
        let mut kills = 0;
        // A leg that goes on where another one was killed may be done before its time.
        let mut legs = 0;
        while kills < 5 {
            legs += 1;
            assert!(legs < 100, "only {kills} were killed on their way");
            moment = moment.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            let share = f64::from((moment >> 16) % 100) / 100.0;
            let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
                .args(run("killed", "--quiet"))
                .current_dir(path)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(took.mul_f64(0.1 + 0.8 * share) + Duration::from_millis(5));
            child.kill().unwrap();
            child.wait().unwrap();
            if path.join("killed/manifest.json").exists() {
                // It was done; the next one begins anew.
                fs::remove_dir_all(path.join("killed")).unwrap();
            } else {
                kills += 1;
            }
        }
        let done = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(run("killed", "-v"))
            .current_dir(path)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        same(&files(&path.join(&whole)), &files(&path.join("killed")));
        fs::remove_dir_all(path.join("killed")).unwrap();
    }
}

/// Stops a run behind its third note of what it has read.
fn stop(arguments: &[&str], folder: &Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(arguments)
        .current_dir(folder)
        .env("UNIQCRAWL_LOG", "uniqcrawl=trace")
        .env("UNIQCRAWL_CRASH", "noted:3")
        .output()
        .unwrap();
    assert!(!output.status.success(), "it has made no third note");
}

#[test]
fn a_dedup_goes_on_only_where_nothing_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_inputs(path);
    let run = ["dedup", "in", "--out", "out", "-v"];
    let goes_on = |arguments: &[&str]| {
        let done = crawl(arguments, path);
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{told}");
        assert!(!path.join("out/journal.partial").exists());
        told.contains("going on behind what was read")
    };
    assert!(!goes_on(&["dedup", "in", "--out", "whole", "-v"]));
    stop(&run, path);
    assert!(path.join("out/journal.partial").exists());
    assert!(goes_on(&run));
    same(&files(&path.join("whole")), &files(&path.join("out")));
    // Other rules, or another input, are another run.
    stop(&run, path);
    assert!(!goes_on(&[&run[..], &["--min-words", "5"]].concat()));
    stop(&run, path);
    let more = json!({"id": "new", "text": prose(90_000, 90)}).to_string();
    let before = fs::read_to_string(path.join("in/b.jsonl")).unwrap();
    fs::write(path.join("in/b.jsonl"), format!("{before}{more}\n")).unwrap();
    assert!(!goes_on(&run));
    assert!(!goes_on(&["dedup", "in", "--out", "whole", "-v"]));
    same(&files(&path.join("whole")), &files(&path.join("out")));
}
