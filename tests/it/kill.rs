//! `kill -9` at random moments: what is there in the end equals an uninterrupted run.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use uniqcrawl::localweb::{Page, Site, demo};
use uniqcrawl::store::Store;

use crate::support::{Web, clusters, crawl, page, prose};

const DELAY: Duration = Duration::from_millis(25);

/// Kills of the process. `UNIQCRAWL_KILLS` sets another number, for a longer run by hand.
fn kills() -> u64 {
    std::env::var("UNIQCRAWL_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

fn start(folder: &Path, store: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["--seeds", "seeds.txt", "--allow-private", "--delay", "25ms", "--quiet"])
        .args(["--max-pages-per-host", "60", "--store", store])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_crawl_that_is_killed_again_and_again_ends_like_one_that_is_not() {
    let web = Web::start(demo::HOSTS, demo::sites);
    let folder = tempfile::tempdir().unwrap();
    let seeds: Vec<String> = web.seeds().iter().map(ToString::to_string).collect();
    std::fs::write(folder.path().join("seeds.txt"), seeds.join("\n")).unwrap();
    assert!(start(folder.path(), "whole").wait().unwrap().success());
    web.web.forget();

    let mut moment = std::process::id();
    for _ in 0..kills() {
        moment = moment.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let mut child = start(folder.path(), "killed");
        std::thread::sleep(Duration::from_millis(u64::from(moment >> 16) % 500 + 20));
        child.kill().unwrap();
        child.wait().unwrap();
        if folder.path().join("killed/store.redb").exists() {
            let check = crawl(&["check", "--store", "killed"], folder.path());
            let text = String::from_utf8_lossy(&check.stdout).into_owned();
            assert!(check.status.success(), "{text}{}", String::from_utf8_lossy(&check.stderr));
        }
    }
    assert!(start(folder.path(), "killed").wait().unwrap().success());
    let read = |name: &str| clusters(&Store::open(&folder.path().join(name), 1 << 24).unwrap());
    let (whole, killed) = (read("whole"), read("killed"));
    assert_eq!(whole.keys().collect::<Vec<_>>(), killed.keys().collect::<Vec<_>>());
    assert_eq!(whole, killed);
    for host in 0..demo::HOSTS {
        // The slow host answers requests of killed processes that nobody waits for any more.
        if demo::NAMES[host] != "slow host" {
            web.assert_gaps(host, DELAY);
        }
    }
}

#[test]
fn visiting_again_that_is_killed_again_and_again_ends_like_one_that_is_not() {
    let day = Arc::new(AtomicU64::new(0));
    let site = |host: u64, day: Arc<AtomicU64>| {
        let links: Vec<String> = (0..30).map(|n| format!("/{n}")).collect();
        Site::new().handler(move |request| {
            let links: Vec<&str> = links.iter().map(String::as_str).collect();
            let Ok(number) = request.target[1..].parse::<u64>() else {
                let front = page("Front", &prose(host + 900, 80), &links);
                return (request.target == "/").then(|| Page::html(front));
            };
            let day = day.load(Ordering::SeqCst);
            // Both hosts have the same pages, of which some change on one host, and some go.
            let changed = day > 0 && host == 0 && number % 3 == 0;
            if day > 0 && number % 7 == 1 {
                return Some(Page::status(410));
            }
            let seed = if changed { number + 500 } else { number };
            Some(Page::html(page(&format!("Story {seed}"), &prose(seed, 100), &[])))
        })
    };
    let web = Web::start(2, |_| (0..2).map(|host| site(host, day.clone())).collect());
    let folder = tempfile::tempdir().unwrap();
    let seeds: Vec<String> = web.seeds().iter().map(ToString::to_string).collect();
    std::fs::write(folder.path().join("seeds.txt"), seeds.join("\n")).unwrap();
    let often = "[recrawl]\ninterval_min = \"1s\"\ninterval_first = \"1s\"\n\
                 interval_max = \"1s\"\nseed_interval_max = \"1s\"\n";
    std::fs::write(folder.path().join("often.toml"), often).unwrap();
    let start = |store: &str| {
        Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["--seeds", "seeds.txt", "--allow-private", "--delay", "5ms", "--quiet"])
            .args(["--config", "often.toml", "--recrawl", "--store", store])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    for store in ["whole", "killed"] {
        assert!(start(store).wait().unwrap().success());
    }
    day.store(1, Ordering::SeqCst);
    let mut moment = std::process::id();
    for _ in 0..kills() / 2 {
        std::thread::sleep(Duration::from_millis(500));
        moment = moment.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let mut child = start("killed");
        std::thread::sleep(Duration::from_millis(u64::from(moment >> 16) % 400 + 20));
        child.kill().unwrap();
        child.wait().unwrap();
        let check = crawl(&["check", "--store", "killed"], folder.path());
        let text = String::from_utf8_lossy(&check.stdout).into_owned();
        assert!(check.status.success(), "{text}{}", String::from_utf8_lossy(&check.stderr));
    }
    for store in ["whole", "killed"] {
        // What is missing is gone when it is missing twice.
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(1_050));
            assert!(start(store).wait().unwrap().success());
        }
    }
    let read = |name: &str| {
        let mut all = clusters(&Store::open(&folder.path().join(name), 1 << 24).unwrap());
        // Which copy of a document is the last one to go is a matter of chance.
        let before = all.len();
        all.retain(|_, copies| !copies.is_empty());
        (before - all.len(), all)
    };
    let (gone, whole) = read("whole");
    assert_eq!((gone, whole.clone()), read("killed"));
    assert_eq!(gone, 5);
    assert_eq!(whole.values().filter(|copies| copies.len() == 1).count(), 20, "{whole:?}");
}

#[test]
fn a_host_is_not_contacted_inside_its_delay_after_a_kill() {
    let delay = Duration::from_millis(1_500);
    let web = Web::one(Site::new().html("/", page("Front", &prose(1, 60), &["/a"])));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seeds.txt"), web.web.url(0)).unwrap();
    // Each life of the process sends one request, and is killed as soon as the server has it.
    for life in 1..=3 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["--seeds", "seeds.txt", "--allow-private", "--delay", "1500ms", "--quiet"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while web.web.requests().len() < life && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(web.web.requests().len() >= 3);
    web.assert_gaps(0, delay);
}
