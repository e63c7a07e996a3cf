//! `kill -9` at random moments: what is there in the end equals an uninterrupted run.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use uniqcrawl::localweb::{Site, demo};
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
