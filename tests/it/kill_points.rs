//! A process that ends without warning at each point of the way of a page, of a further visit and
//! of an export: what is there in the end equals an uninterrupted run.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::store::Store;

use crate::support::{Clusters, Web, clusters, page, prose};

/// Runs the binary; with a `crash`, until the event of that name has come so many times.
fn run(folder: &Path, arguments: &[&str], crash: Option<(&str, usize)>) -> ExitStatus {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
    command.args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some((event, number)) = crash {
        command.env("UNIQCRAWL_LOG", "uniqcrawl=trace");
        command.env("UNIQCRAWL_CRASH", format!("{event}:{number}"));
    }
    command.status().unwrap()
}

/// Lets the process crash at a point, and looks at what it left.
#[track_caller]
fn crash(folder: &Path, arguments: &[&str], at: (&str, usize)) {
    let status = run(folder, arguments, Some(at));
    assert!(status.signal().is_some(), "{at:?} was not reached: {status}");
    // A look takes time, in which a host that must not be contacted yet may be free again.
    if at.1 > 1 {
        return;
    }
    let store = Store::open(&folder.join("killed"), 1 << 24).unwrap();
    let findings = uniqcrawl::corpus::check::check(&store.snapshot().unwrap()).unwrap();
    assert_eq!(findings.listed, Vec::<String>::new(), "after {at:?}");
    no_copy_twice(&clusters(&store));
}

#[track_caller]
fn no_copy_twice(clusters: &Clusters) {
    let mut seen = BTreeSet::new();
    let twice: Vec<&String> =
        clusters.values().flatten().filter(|url| !seen.insert(*url)).collect();
    assert_eq!(twice, Vec::<&String>::new());
}

fn read(folder: &Path, name: &str) -> Clusters {
    let found = clusters(&Store::open(&folder.join(name), 1 << 24).unwrap());
    no_copy_twice(&found);
    found
}

/// Three hosts with a redirect each; every other story is on all of them, in three wordings.
fn web(day: &Arc<AtomicU64>) -> Web {
    let site = |host: u64, day: Arc<AtomicU64>| {
        let mut links: Vec<String> = (0..14).map(|n| format!("/{n}")).collect();
        links.push("/moved".to_owned());
        Site::new().page("/moved", Page::redirect(301, "/3")).handler(move |request| {
            let links: Vec<&str> = links.iter().map(String::as_str).collect();
            if request.target == "/" {
                return Some(Page::html(page("Front", &prose(host + 900, 80), &links)));
            }
            let number = request.target[1..].parse::<u64>().ok()?;
            let day = day.load(Ordering::SeqCst);
            let seed = match number {
                n if day > 1 && n % 5 == 1 => return Some(Page::status(410)),
                n if day > 0 && host == 0 && n % 4 == 0 => n + 500,
                n if n % 2 == 0 => n,
                n => n + 100 * (host + 1),
            };
            let text = format!("{} Printed in town {host} at nine.", prose(seed, 100));
            Some(Page::html(page(&format!("Story {seed}"), &text, &[])))
        })
    };
    Web::start(3, |_| (0..3).map(|host| site(host, day.clone())).collect())
}

fn folder_for(web: &Web) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let seeds: Vec<String> = web.seeds().iter().map(ToString::to_string).collect();
    std::fs::write(folder.path().join("seeds.txt"), seeds.join("\n")).unwrap();
    // Many commits, however fast pages are: each is a point to be killed at.
    let usual = "[crawl]\nbatch_pages_max = 8\nbatch_time_max = \"50ms\"\n";
    std::fs::write(folder.path().join("usual.toml"), usual).unwrap();
    let often = "[recrawl]\ninterval_min = \"1s\"\ninterval_first = \"1s\"\n\
                 interval_max = \"1s\"\nseed_interval_max = \"1s\"\n";
    std::fs::write(folder.path().join("often.toml"), [usual, often].concat()).unwrap();
    folder
}

#[test]
fn a_crash_at_any_point_of_the_way_of_a_page_loses_and_doubles_nothing() {
    let delay = Duration::from_millis(300);
    let web = web(&Arc::default());
    let folder = folder_for(&web);
    let folder = folder.path();
    let crawl = |store, delay| {
        let usual =
            ["--seeds", "seeds.txt", "--allow-private", "--quiet", "--config", "usual.toml"];
        [&usual[..], &["--delay", delay, "--store", store]].concat()
    };
    assert!(run(folder, &crawl("whole", "0ms"), None).success());
    web.web.forget();
    let first = ["offered", "committing", "committed"].map(|event| (event, 1));
    let way = ["leased", "visited", "fingerprinted", "looked up", "joined", "kept", "settled"];
    let later = way.iter().chain(&["committing", "committed"]);
    let later = later.flat_map(|event| [(*event, 1), (*event, 4)]);
    for at in first.into_iter().chain(later) {
        crash(folder, &crawl("killed", "300ms"), at);
    }
    for host in 0..3 {
        web.assert_gaps(host, delay);
    }
    assert!(run(folder, &crawl("killed", "0ms"), None).success());
    let whole = read(folder, "whole");
    assert!(whole.values().any(|copies| copies.len() == 3) && whole.len() > 20, "{whole:?}");
    assert_eq!(whole, read(folder, "killed"));
}

#[test]
fn a_crash_at_any_point_of_a_further_visit_loses_and_doubles_nothing() {
    let day = Arc::new(AtomicU64::new(0));
    let web = web(&day);
    let folder = folder_for(&web);
    let folder = folder.path();
    let crawl = |store| {
        let usual = ["--seeds", "seeds.txt", "--allow-private", "--quiet", "--delay", "0ms"];
        [&usual[..], &["--config", "often.toml", "--recrawl", "--store", store]].concat()
    };
    for store in ["whole", "killed"] {
        assert!(run(folder, &crawl(store), None).success());
    }
    day.store(1, Ordering::SeqCst);
    let due = Duration::from_millis(1_050);
    for at in [("looked up", 1), ("changed", 1), ("changed", 2), ("settled", 9), ("committing", 2)]
    {
        std::thread::sleep(due);
        crash(folder, &crawl("killed"), at);
    }
    day.store(2, Ordering::SeqCst);
    // What is missing is gone when it is missing twice.
    for (store, at) in [("whole", None), ("killed", None), ("whole", None), ("killed", Some(1))] {
        if let Some(number) = at {
            for number in [number, 3] {
                std::thread::sleep(due);
                crash(folder, &crawl(store), ("left", number));
            }
        }
        std::thread::sleep(due);
        assert!(run(folder, &crawl(store), None).success());
    }
    let read = |name: &str| {
        let mut all = read(folder, name);
        // Which copy of a document is the last one to go is a matter of chance.
        let before = all.len();
        all.retain(|_, copies| !copies.is_empty());
        (before - all.len(), all)
    };
    let whole = read("whole");
    assert!(whole.0 > 3, "documents are gone");
    assert_eq!(whole, read("killed"));
}

#[test]
fn a_crash_during_an_export_leaves_no_half_of_a_file_and_the_next_one_is_whole() {
    let web = web(&Arc::default());
    let folder = folder_for(&web);
    let folder = folder.path();
    let crawl = ["--seeds", "seeds.txt", "--allow-private", "--quiet", "--delay", "0ms"];
    assert!(run(folder, &[&crawl[..], &["--store", "killed"]].concat(), None).success());
    let export = |out: &'static str| ["export", "--store", "killed", "--out", out];
    assert!(run(folder, &export("whole"), None).success());
    let files =
        ["documents.jsonl", "duplicates.jsonl", "withheld.jsonl", "README.md", "manifest.json"];
    let bytes = |out: &str, file: &str| std::fs::read(folder.join(out).join(file)).ok();
    let events = [("exported", 1), ("exported", 9)].into_iter();
    let ends = (1..=5).flat_map(|number| [("written", number), ("renamed", number)]);
    for at in events.chain(ends) {
        crash(folder, &export("out"), at);
        for file in files {
            let found = bytes("out", file);
            assert!(found.is_none() || found == bytes("whole", file), "{file} after {at:?}");
        }
        // No file has its name before all are whole, and the manifest comes last.
        let renamed = files.map(|file| bytes("out", file).is_some());
        let done = if at.0 == "renamed" { at.1 } else { 0 };
        assert_eq!(renamed, [0, 1, 2, 3, 4].map(|place| place < done), "after {at:?}");
        if done > 0 {
            std::fs::remove_dir_all(folder.join("out")).unwrap();
        }
    }
    crash(folder, &export("out"), ("exported", 9));
    assert!(run(folder, &export("out"), None).success());
    for file in files {
        assert_eq!(bytes("out", file), bytes("whole", file), "{file}");
    }
    assert_eq!(std::fs::read_dir(folder.join("out")).unwrap().count(), 5, "nothing is left over");
}
