//! Files that a command writes are one set: a full disk or a kill leaves the old ones or the new
//! ones, and no pieces.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uniqcrawl::localweb::Site;

use crate::support::{Web, crawl, page, prose};

type Files = BTreeMap<String, Vec<u8>>;

fn files(folder: &Path) -> Files {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let file = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

/// Runs the binary with files of so many KiB at most, which stands in for a full disk: the write
/// fails in the same place.
fn limited(arguments: &[&str], folder: &Path, kib: usize) -> (Option<i32>, String) {
    let line = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" \"$@\"");
    let output = Command::new("bash")
        .args(["-c", &line, env!("CARGO_BIN_EXE_crawl")])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), text)
}

/// Runs the binary until the event of that name has come so many times.
fn crash(arguments: &[&str], folder: &Path, (event, number): (&str, usize)) {
    let output = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(arguments)
        .current_dir(folder)
        .env("UNIQCRAWL_LOG", "uniqcrawl=trace")
        .env("UNIQCRAWL_CRASH", format!("{event}:{number}"))
        .output()
        .unwrap();
    assert!(!output.status.success(), "{event}:{number} was not reached");
}

/// Two inputs of other lengths, with many copies that have long names.
fn inputs(folder: &Path) {
    for (name, seed, copies) in [("one.jsonl", 100, 3), ("two.jsonl", 200, 1_500)] {
        let mut lines = String::new();
        for number in 0..copies {
            let id = format!("{number}-{}", "x".repeat(100));
            let line = json!({"id": id, "text": prose(seed + number % 5, 60)});
            writeln!(lines, "{line}").unwrap();
        }
        fs::write(folder.join(name), lines).unwrap();
    }
}

/// The manifest names every other file as it is.
#[track_caller]
fn agrees(files: &Files) {
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    let named = manifest["files"].as_array().unwrap();
    assert_eq!(named.len() + 1, files.len(), "{:?}", files.keys());
    for file in named {
        let bytes = &files[file["name"].as_str().unwrap()];
        assert_eq!(file["bytes"], json!(bytes.len()));
        let hash = xxhash_rust::xxh3::xxh3_128(bytes);
        assert_eq!(file["xxh3"], json!(format!("{hash:032x}")));
    }
}

/// Nothing of a run that failed is there, but for what the next one goes on with.
#[track_caller]
fn is_as_before(before: &Files, folder: &Path, what: &str) {
    let mut now = files(folder);
    now.remove("journal.partial");
    let changed: Vec<&String> = now
        .iter()
        .filter(|(name, bytes)| before.get(*name) != Some(*bytes))
        .map(|at| at.0)
        .collect();
    assert_eq!(changed, Vec::<&String>::new(), "{what}");
    assert_eq!(now.len(), before.len(), "{what}");
}

#[test]
fn a_full_disk_leaves_the_files_of_the_run_before() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path(), folder.path().join("out"));
    inputs(path);
    let done = crawl(&["dedup", "one.jsonl", "--out", "out", "--quiet"], path);
    assert!(done.status.success(), "{done:?}");
    let before = files(&out);
    agrees(&before);
    let mut failed = 0;
    for kib in [0, 1, 2, 4, 16, 64, 200] {
        let (code, text) = limited(&["dedup", "two.jsonl", "--out", "out"], path, kib);
        if code == Some(0) {
            break;
        }
        failed += 1;
        assert_eq!(code, Some(1), "{text}");
        is_as_before(&before, &out, &format!("{kib} KiB: {text}"));
        assert!(text.contains("out/") && text.contains(".json"), "the file is named: {text}");
    }
    assert!(failed > 3, "{failed}");
    assert!(crawl(&["dedup", "two.jsonl", "--out", "out"], path).status.success());
    agrees(&files(&out));
}

#[test]
fn a_full_disk_leaves_the_export_before_and_no_piece_of_another_file() {
    let stories: Vec<String> = (0..40).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = stories.iter().map(String::as_str).collect();
    let site = Site::new().html("/", page("Front", &prose(1, 80), &links));
    let web = Web::one((0..40u64).fold(site, |site, number| {
        let text = prose(10 + number % 4, 400);
        site.html(&format!("/{number}"), page(&format!("Story {}", number % 4), &text, &[]))
    }));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("s.txt"), web.web.url(0)).unwrap();
    let crawl_more = |pages| {
        let seeds = ["--seeds", "s.txt", "--allow-private", "--delay", "0", "--quiet"];
        let done = crawl(&[&seeds[..], &["--max-pages", pages]].concat(), path);
        assert!(done.status.success(), "{done:?}");
    };
    crawl_more("3");
    assert!(crawl(&["export", "--out", "out"], path).status.success());
    assert!(crawl(&["duplicate-feed", "export", "feed.jsonl"], path).status.success());
    let before = files(&path.join("out"));
    agrees(&before);
    let feed = fs::read(path.join("feed.jsonl")).unwrap();
    crawl_more("60");
    for kib in [0, 1, 2, 4] {
        let (code, text) = limited(&["export", "--out", "out"], path, kib);
        assert_eq!(code, Some(1), "{kib} KiB: {text}");
        is_as_before(&before, &path.join("out"), &format!("{kib} KiB: {text}"));
        assert!(text.contains(".json"), "the file is named: {text}");
    }
    for kib in [0, 1] {
        let (code, text) = limited(&["duplicate-feed", "export", "feed.jsonl"], path, kib);
        assert_eq!(code, Some(1), "{kib} KiB: {text}");
        assert!(text.contains("feed.jsonl"), "{text}");
        assert_eq!(fs::read(path.join("feed.jsonl")).unwrap(), feed);
        assert!(!path.join("feed.jsonl.partial").exists());
    }
    assert!(crawl(&["export", "--out", "out"], path).status.success());
    agrees(&files(&path.join("out")));
}

#[test]
fn a_kill_at_any_step_of_a_dedup_leaves_one_set_or_no_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path(), folder.path().join("out"));
    inputs(path);
    let run = |input: &'static str| ["dedup", input, "--out", "out", "--quiet"];
    let whole = |input| {
        assert!(crawl(&run(input), path).status.success());
        files(&out)
    };
    let report = |mut files: Files| {
        files.remove("report.json");
        files.remove("manifest.json");
        files
    };
    let new = report(whole("two.jsonl"));
    let steps = (1..=6).flat_map(|number| [("written", number), ("renamed", number)]);
    let mut mixed = 0;
    for at in steps {
        let old = whole("one.jsonl");
        agrees(&old);
        crash(&run("two.jsonl"), path, at);
        let mut left = files(&out);
        left.retain(|name, _| !name.ends_with(".partial"));
        if left == old {
            continue;
        }
        if left.contains_key("manifest.json") {
            agrees(&left);
            assert_eq!(report(left), new, "{at:?}");
        } else {
            mixed += 1;
        }
        let next = whole("two.jsonl");
        agrees(&next);
        assert_eq!(report(next), new, "the next run makes it whole");
    }
    assert!(mixed >= 3, "a set without a manifest is none");
}

#[test]
fn a_folder_that_a_run_writes_is_refused_to_others_until_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path(), folder.path().join("out"));
    inputs(path);
    let refused = |arguments: &[&str]| {
        let done = crawl(arguments, path);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(said.contains("out: another run writes there"), "{said}");
        assert!(said.contains("name another folder"), "{said}");
    };
    // It waits for its standard input.
    let mut first = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["dedup", "-", "--out", "out", "--quiet"])
        .current_dir(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !out.join("lock.partial").exists() {
        assert!(begun.elapsed() < Duration::from_mins(1), "it does not begin");
        sleep(Duration::from_millis(10));
    }
    refused(&["dedup", "two.jsonl", "--out", "out"]);
    let mut input = first.stdin.take().unwrap();
    input.write_all(&fs::read(path.join("one.jsonl")).unwrap()).unwrap();
    drop(input);
    assert!(first.wait().unwrap().success());
    agrees(&files(&out));
    assert!(crawl(&["dedup", "two.jsonl", "--out", "out", "--quiet"], path).status.success());
    agrees(&files(&out));

    assert!(crawl(&["import", "one.jsonl", "--quiet"], path).status.success());
    fs::remove_dir_all(&out).unwrap();
    fs::create_dir(&out).unwrap();
    let lock = File::create(out.join("lock.partial")).unwrap();
    lock.lock().unwrap();
    refused(&["export", "--out", "out"]);
    // A run that was killed leaves the file, and no lock.
    lock.unlock().unwrap();
    assert!(crawl(&["export", "--out", "out"], path).status.success());
    agrees(&files(&out));
}
