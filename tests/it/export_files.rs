//! The files of an export: shards, compression, what is whole after a kill, whose folder it is; and
//! that readers of others find in them what is in the store.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::export::{crawled, export, lines, refused};
use crate::python::venv;
use crate::support::crawl;

type Files = BTreeMap<String, Vec<u8>>;

fn files(folder: &Path) -> Files {
    let Ok(entries) = fs::read_dir(folder) else { return Files::new() };
    let entries = entries.map(|entry| entry.unwrap());
    let file = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

fn unpacked(name: &str, bytes: &[u8]) -> Vec<u8> {
    match name.rsplit('.').next().unwrap() {
        "zst" => zstd::decode_all(bytes).unwrap(),
        "gz" => {
            let mut out = Vec::new();
            flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
            out
        }
        _ => bytes.to_vec(),
    }
}

#[test]
fn shards_together_are_the_whole_and_their_manifest_says_what_they_are() {
    let (_web, folder) = crawled(12, &[]);
    let folder = folder.path();
    export(folder, &["--out", "whole"]);
    let whole = files(&folder.join("whole"));
    for compress in ["zstd", "gzip", "none"] {
        let how = ["--shard-size", "5", "--compress", compress];
        let told = export(folder, &[&["--out", "parts"][..], &how].concat());
        assert!(told.contains("documents in parts/documents-*.jsonl"), "{told}");
        let parts = files(&folder.join("parts"));
        for list in ["documents", "duplicates"] {
            let of_list = parts.iter().filter(|(name, _)| name.starts_with(list));
            let all: Vec<u8> = of_list.flat_map(|(name, bytes)| unpacked(name, bytes)).collect();
            assert!(all == whole[&format!("{list}.jsonl")], "{list} {compress}");
        }
        let counts: Vec<usize> = parts
            .iter()
            .filter(|(name, _)| name.starts_with("documents"))
            .map(|(name, bytes)| unpacked(name, bytes).split(|b| *b == b'\n').count() - 1)
            .collect();
        let total: usize = counts.iter().sum();
        assert!(counts[..counts.len() - 1].iter().all(|count| *count == 5), "{counts:?}");
        let manifest: Value = serde_json::from_slice(&parts["manifest.json"]).unwrap();
        assert_eq!(manifest["counts"]["documents"], total);
        assert_eq!(manifest["settings"]["shardSize"], "5 documents");
        assert!(manifest["program"].as_str().unwrap().starts_with("uniqcrawl "));
        assert!(manifest["store"]["number"].is_u64() && manifest["store"]["newest"].is_string());
        let named = manifest["files"].as_array().unwrap();
        assert_eq!(named.len() + 1, parts.len(), "files of the set before are gone");
        for file in named {
            let bytes = &parts[file["name"].as_str().unwrap()];
            let hash = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes));
            assert_eq!((&file["bytes"], &file["xxh3"]), (&bytes.len().into(), &hash.into()));
        }
    }
    let told = refused(folder, 2, &["--out", "parts", "--shard-size", "many"]);
    assert!(told.contains("a number of documents, such as 10000, or a size"), "{told}");
    let bytes = ["--shard-size", "4 KiB"];
    export(folder, &[&["--out", "parts"][..], &bytes].concat());
    let parts = files(&folder.join("parts"));
    let of_bytes = parts.iter().filter(|(name, _)| name.starts_with("documents"));
    let lengths: Vec<usize> = of_bytes.map(|(_, bytes)| bytes.len()).collect();
    assert!(lengths.len() > 3 && lengths.iter().all(|length| *length < 8192), "{lengths:?}");
}

#[test]
fn a_folder_with_files_of_others_is_refused_and_stays_as_it_is() {
    let (_web, folder) = crawled(3, &[]);
    let folder = folder.path();
    let out = folder.join("out");
    for (name, text) in [("notes.txt", "mine"), ("README.md", "# Mine"), ("kept.jsonl", "{}")] {
        let _ = fs::remove_dir_all(&out);
        fs::create_dir(&out).unwrap();
        fs::write(out.join(name), text).unwrap();
        let told = refused(folder, 2, &["--out", "out"]);
        assert!(told.contains(name) && told.contains("not of an export"), "{told}");
        assert_eq!(files(&out).len(), 1);
    }
    fs::remove_file(out.join("kept.jsonl")).unwrap();
    export(folder, &["--out", "out"]);
    // Its own files, of another format too, make room.
    export(folder, &["--out", "out", "--format", "csv"]);
    let names: Vec<String> = files(&out).into_keys().collect();
    let kept =
        ["README.md", "documents.csv", "duplicates.jsonl", "manifest.json", "withheld.jsonl"];
    assert_eq!(names, kept);
}

/// Runs the binary until the event of that name has come so many times.
fn crash(arguments: &[&str], folder: &Path, event: &str, number: usize) {
    let output = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(arguments)
        .current_dir(folder)
        .env("UNIQCRAWL_LOG", "uniqcrawl=trace")
        .env("UNIQCRAWL_CRASH", format!("{event}:{number}"))
        .output()
        .unwrap();
    assert!(!output.status.success(), "{event}:{number} was not reached");
}

#[test]
fn an_export_that_was_killed_goes_on_and_is_that_of_one_that_was_not() {
    let (_web, folder) = crawled(12, &["--keep", "links"]);
    let folder = folder.path();
    for how in [
        &["--shard-size", "4", "--compress", "zstd"][..],
        &["--shard-size", "4", "--format", "parquet", "--fields", "usual,links"],
    ] {
        let run = |out: &'static str| [&["export", "--out", out][..], how].concat();
        let _ = fs::remove_dir_all(folder.join("whole"));
        assert!(crawl(&run("whole"), folder).status.success());
        let whole = files(&folder.join("whole"));
        assert!(whole.len() > 8, "{:?}", whole.keys());
        let events = [("shard", 1), ("shard", 3), ("exported", 7), ("written", 4), ("renamed", 2)];
        for (event, number) in events {
            let _ = fs::remove_dir_all(folder.join("out"));
            crash(&run("out"), folder, event, number);
            let left = files(&folder.join("out"));
            if event != "renamed" {
                let named = left.keys().filter(|name| !name.ends_with(".partial"));
                assert_eq!(named.count(), 0, "after {event}: {:?}", left.keys());
            }
            // A second kill, and then to the end.
            if event == "shard" && number == 1 {
                crash(&run("out"), folder, "exported", 5);
            }
            let first = left.get("documents-00000.jsonl.zst.partial").cloned();
            let path = folder.join("out/documents-00000.jsonl.zst.partial");
            let time = path.metadata().and_then(|meta| meta.modified()).ok();
            let done = crawl(&[&run("out")[..], &["-v"]].concat(), folder);
            let told = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.success(), "{told}");
            let is_behind = told.contains("going on behind what is whole");
            assert_eq!(is_behind, event == "shard" || number == 7 || event == "written", "{told}");
            let resumed = files(&folder.join("out"));
            assert_eq!(resumed.keys().collect::<Vec<_>>(), whole.keys().collect::<Vec<_>>());
            for (name, bytes) in &whole {
                assert!(resumed[name] == *bytes, "{name} after {event}:{number}");
            }
            if let (Some(first), Some(time)) = (first, time)
                && is_behind
            {
                let now = folder.join("out/documents-00000.jsonl.zst");
                assert_eq!(fs::read(&now).unwrap(), first);
                assert_eq!(now.metadata().unwrap().modified().unwrap(), time, "not written again");
            }
        }
    }
    // Other settings begin anew.
    let run = ["export", "--out", "out", "--shard-size", "4"];
    let _ = fs::remove_dir_all(folder.join("out"));
    crash(&run, folder, "shard", 2);
    let done = crawl(&["export", "--out", "out", "--shard-size", "3", "-v"], folder);
    assert!(done.status.success());
    assert!(!String::from_utf8_lossy(&done.stderr).contains("going on behind"));
    assert!(!files(&folder.join("out")).keys().any(|name| name.contains("partial")));
    // And so does one whose files have changed.
    let _ = fs::remove_dir_all(folder.join("out"));
    crash(&run, folder, "shard", 2);
    fs::write(folder.join("out/documents-00000.jsonl.partial"), "{}\n").unwrap();
    assert!(crawl(&run, folder).status.success());
    let rows: usize =
        (0..3).map(|n| lines(&folder.join(format!("out/documents-{n:05}.jsonl"))).len()).sum();
    assert_eq!(rows, 12);
}

#[test]
fn half_a_line_of_the_journal_is_in_nobodys_way() {
    let (_web, folder) = crawled(12, &[]);
    let folder = folder.path();
    for cut in [1, 20] {
        let run = ["export", "--out", "out", "--shard-size", "4", "-v"];
        crash(&run, folder, "shard", 1);
        let path = folder.join("out/export.partial");
        let journal = fs::OpenOptions::new().write(true).open(&path).unwrap();
        journal.set_len(journal.metadata().unwrap().len() - cut).unwrap();
        crash(&run, folder, "shard", 2);
        let done = crawl(&run, folder);
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{told}");
        assert!(told.contains("going on behind what is whole shards=2"), "{told}");
        fs::remove_dir_all(folder.join("out")).unwrap();
    }
}

#[test]
fn a_full_disk_keeps_the_shards_that_are_whole_and_names_none() {
    let (_web, folder) = crawled(12, &[]);
    let folder = folder.path();
    let line = "trap '' XFSZ; ulimit -f 3; exec \"$0\" export --out out --shard-size 1";
    let output = Command::new("bash")
        .args(["-c", line, env!("CARGO_BIN_EXE_crawl")])
        .current_dir(folder)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    // Shards fit into 3 KiB, the list of all of them does not.
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("cannot write out/") && told.contains("goes on behind them"), "{told}");
    let left = files(&folder.join("out"));
    assert!(left.keys().all(|name| name.ends_with(".partial")), "{:?}", left.keys());
    assert!(left.contains_key("documents-00003.jsonl.partial"), "{:?}", left.keys());
    let done = crawl(&["export", "--out", "out", "--shard-size", "1", "-v"], folder);
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && told.contains("going on behind what is whole"), "{told}");
    assert!(!files(&folder.join("out")).keys().any(|name| name.ends_with(".partial")));
}

#[test]
fn the_card_says_what_is_in_the_folder() {
    let (_web, folder) = crawled(5, &[]);
    let folder = folder.path();
    export(folder, &["--out", "out", "--format", "parquet", "--where", "copies >= 1"]);
    let card = fs::read_to_string(folder.join("out/README.md")).unwrap();
    for part in [
        "license: unknown\n",
        "- config_name: documents\n  data_files: \"documents.parquet\"\n  default: true\n",
        "- config_name: duplicates\n  data_files: \"duplicates.parquet\"\n",
        "documents, each once, and ",
        "| only | `copies >= 1` (0 other documents) |",
        "## Languages",
        "## Hosts",
        "What pages ask is honoured: noarchive, noai, tdm-reservation, unavailable_after.",
        "## How duplicates were judged",
    ] {
        assert!(card.contains(part), "{part}\n{card}");
    }
    for name in ["documents.parquet", "duplicates.parquet", "duplicates.jsonl"] {
        assert!(folder.join("out").join(name).exists(), "{name}");
    }
}

/// Every format is read by the readers of others, who find what is in the store; so are the lines
/// that the guide shows.
#[test]
fn readers_of_others_find_what_is_in_the_store() {
    let python = venv("readers", "tests/readers/requirements.txt");
    let (_web, folder) = crawled(12, &["--keep", "markdown,links,images,headers"]);
    let folder = folder.path();
    let all = "usual,authors,host,length,words,quality,markdown,links,imageList,status,headers,\
        fetched,fingerprint,keys";
    for (out, how) in [
        ("corpus", &["--format", "parquet"][..]),
        ("shards", &["--format", "parquet", "--shard-size", "5", "--fields", all]),
        ("plain", &["--format", "parquet", "--compress", "none"]),
        ("lines", &["--format", "jsonl", "--compress", "zstd", "--shard-size", "5"]),
        ("gzip", &["--format", "jsonl", "--compress", "gzip"]),
        ("cells", &["--format", "csv", "--fields", all]),
    ] {
        export(folder, &[&["--out", out][..], how].concat());
    }
    let expected = crawl(&["export", "--out", "-", "--fields", all, "--quiet"], folder);
    fs::write(folder.join("expected.jsonl"), expected.stdout).unwrap();
    let dropped = crawl(&["export", "--out", "-", "--list", "duplicates", "--quiet"], folder);
    fs::write(folder.join("dropped.jsonl"), dropped.stdout).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(python)
        .arg(root.join("tests/readers/read.py"))
        .arg(root.join("docs/src/guide/export.md"))
        .current_dir(folder)
        .env("HF_HUB_OFFLINE", "1")
        .env("HF_HOME", folder.join("hf"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{failed}");
    for reader in ["pyarrow", "pandas", "polars", "duckdb", "datasets"] {
        assert!(told.contains(&format!("{reader}: ")), "{told}");
        assert!(told.contains(&format!("guide {reader}: ")), "{told}");
    }
}
