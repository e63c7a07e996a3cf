//! WARC files that go to object storage, against a server that speaks S3: each exchange once, whoever
//! is killed, and nothing lost where the server fails.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use uniqcrawl::localweb::demo;
use uniqcrawl::store::Store;

use crate::export_remote::Storage;
use crate::support::{Web, clusters, crawl};
use crate::warc::reader;
use crate::warc_kills::archived;

const HOW: [&str; 9] = [
    "--seeds",
    "seeds.txt",
    "--allow-private",
    "--delay",
    "5ms",
    "--quiet",
    "--max-pages-per-host",
    "60",
    "--warc-size",
];

fn command(storage: &Storage, folder: &Path, store: &str, warc: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
    command.args(HOW).args(["40 KiB", "--store", store, "--warc", warc]);
    command.current_dir(folder).envs(storage.variables());
    command
}

fn start(storage: &Storage, folder: &Path, store: &str, warc: &str) -> Child {
    let mut command = command(storage, folder, store, warc);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Files of a store that wait to be sent.
fn waiting(store: &Path) -> Vec<String> {
    let spools = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    let spools = spools.filter(|path| path.is_dir());
    spools
        .flat_map(|spool| fs::read_dir(spool).unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Copies the files below a folder of the bucket. Returns how many they are.
fn fetch(storage: &Storage, prefix: &str, to: &Path) -> usize {
    fs::create_dir_all(to).unwrap();
    let mut names = storage.names();
    names.retain(|name| name.starts_with(prefix));
    for name in &names {
        let bytes = storage.ask("GET", &format!("/bucket/{name}"));
        fs::write(to.join(name.rsplit('/').next().unwrap()), bytes).unwrap();
    }
    names.len()
}

fn web(folder: &Path) -> Web {
    let web = Web::start(demo::HOSTS, demo::sites);
    let seeds: Vec<String> = web.seeds().iter().map(ToString::to_string).collect();
    fs::write(folder.join("seeds.txt"), seeds.join("\n")).unwrap();
    web
}

#[test]
fn a_crawl_into_a_bucket_that_is_killed_again_and_again_has_each_exchange_once() {
    let storage = Storage::start();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _web = web(folder);
    let whole = [&HOW[..], &["40 KiB", "--store", "whole", "--warc", "whole-kept"]].concat();
    assert!(crawl(&whole, folder).status.success());
    let mut moment = std::process::id();
    for _ in 0..8 {
        moment = moment.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let mut child = start(&storage, folder, "killed", "s3://bucket/crawls/one");
        std::thread::sleep(Duration::from_millis(u64::from(moment >> 16) % 600 + 100));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(start(&storage, folder, "killed", "s3://bucket/crawls/one").wait().unwrap().success());
    assert_eq!(waiting(&folder.join("killed")), [""; 0], "nothing is left beside the store");
    let files = fetch(&storage, "crawls/one/", &folder.join("killed-kept"));
    assert!(files >= 6, "{files}");
    let pages = |kept: &str| {
        let mut urls = archived(folder, kept);
        // A robots.txt is asked for again by who does not know it yet.
        urls.retain(|url| !url.ends_with("/robots.txt"));
        urls.sort();
        urls
    };
    let (one, other) = (pages("whole-kept"), pages("killed-kept"));
    assert_eq!(one.iter().collect::<BTreeSet<_>>(), other.iter().collect::<BTreeSet<_>>());
    assert_eq!(one, other, "none is there twice");
    fs::write(folder.join("expected.json"), "{\"payloads\": {}}").unwrap();
    reader(&["check", "killed-kept", "expected.json"], folder);
    let read = |name: &str| clusters(&Store::open(&folder.join(name), 1 << 24).unwrap());
    assert_eq!(read("whole"), read("killed"));
    let made = ["rebuild", "--warc", "killed-kept", "--store", "made"];
    assert!(crawl(&made, folder).status.success());
    assert_eq!(read("whole"), read("made"));
}

#[test]
fn what_cannot_be_sent_waits_for_the_next_run() {
    let storage = Storage::start();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _web = web(folder);
    storage.refuse.set("PUT /bucket/crawls/", 3);
    let output = command(&storage, folder, "s", "s3://bucket/crawls").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let error = told.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(error.contains("WARC files are not in s3://bucket/crawls yet"), "{error}");
    assert!(error.contains("500") && error.contains("/s/warc-"), "{error}");
    assert!(!told.contains("top-secret"), "{told}");
    let left = waiting(&folder.join("s"));
    assert!(left.len() >= 3 && left.iter().all(|name| !name.contains(".open")), "{left:?}");
    // What was sent is not there any more; nothing is in both places.
    let sent = storage.names();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(sent.iter().all(|name| !left.iter().any(|left| name.ends_with(left.as_str()))));
    storage.refuse.set("", 0);
    assert!(start(&storage, folder, "s", "s3://bucket/crawls").wait().unwrap().success());
    assert_eq!(waiting(&folder.join("s")), [""; 0]);
    let files = fetch(&storage, "crawls/", &folder.join("kept"));
    assert!(files >= left.len() + sent.len(), "{files}");
    let mut urls = archived(folder, "kept");
    urls.retain(|url| !url.ends_with("/robots.txt"));
    let all = urls.len();
    assert_eq!(urls.into_iter().collect::<BTreeSet<_>>().len(), all, "each once");
    // A place that is none is told before anything is asked for.
    let output = command(&storage, folder, "t", "s4://bucket/crawls").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}
