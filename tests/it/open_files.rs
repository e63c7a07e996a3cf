//! A crawl of many hosts with few open files: no host is blamed for what this machine lacks.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use uniqcrawl::localweb::{Page, Site};

use crate::support::{Web, crawl, page, prose};

/// Hosts, each with a page of its own and links to nowhere else.
fn web(hosts: usize) -> Web {
    Web::start(hosts, |bases| {
        let front = |n| page(&format!("Host {n}"), &prose(n, 60), &["/more"]);
        let site = |n: usize| {
            Site::new()
                .html("/", front(n as u64))
                .html("/more", page(&format!("More {n}"), &prose(100_000 + n as u64, 60), &[]))
                .handler(|request| {
                    // Long enough for connections to be there at the same time.
                    let slow = request.target == "/robots.txt";
                    slow.then(|| Page::status(404).after(Duration::from_millis(20)))
                })
        };
        (0..bases.len()).map(site).collect()
    })
}

/// Starts a crawl of all hosts whose process may have at most `files` open files at first.
fn start(web: &Web, folder: &Path, requests: usize, (soft, hard): (u64, u64)) -> Child {
    let seeds: Vec<String> = web.seeds().iter().map(ToString::to_string).collect();
    fs::write(folder.join("seeds.txt"), seeds.join("\n")).unwrap();
    let settings = format!(
        "[crawl]\nrequests_max = {requests}\nidle_wait_max = \"30s\"\nprobe_error_page = false\n\
         [frontier.discover]\nusual_place = false\n"
    );
    fs::write(folder.join("some.toml"), settings).unwrap();
    let line = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &line, env!("CARGO_BIN_EXE_crawl"), "--seeds", "seeds.txt"])
        .args(["--allow-private", "--config", "some.toml", "--delay", "50ms"])
        .args(["--report", "report.json"])
        .current_dir(folder)
        .env_remove("UNIQCRAWL_LOG")
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.join("errors.txt")).unwrap())
        .spawn()
        .unwrap()
}

fn report(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(folder.join("report.json")).unwrap()).unwrap()
}

/// Every page of every host is stored, and nothing is said against any host.
#[track_caller]
fn assert_whole(folder: &Path, hosts: usize) {
    let report = report(folder);
    assert_eq!(report["documents"], hosts * 2, "{report}");
    assert_eq!((&report["retries"], &report["queued"]), (&0.into(), &0.into()), "{report}");
    assert_eq!(report["hosts"], serde_json::json!([]), "{report}");
    assert_eq!(report["failed_seeds"], serde_json::json!([]));
    let check = crawl(&["check", "--store", "store"], folder);
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}

#[test]
fn many_hosts_are_crawled_with_few_open_files() {
    const HOSTS: usize = 150;
    let (web, folder) = (web(HOSTS), tempfile::tempdir().unwrap());
    let mut child = start(&web, folder.path(), 256, (60, 60));
    assert!(child.wait().unwrap().success());
    assert_whole(folder.path(), HOSTS);
}

#[test]
fn the_limit_of_open_files_is_raised_as_far_as_it_may_be() {
    let (web, folder) = (web(1), tempfile::tempdir().unwrap());
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(4_096).min(4_096);
    let mut child = start(&web, folder.path(), 256, (60, hard));
    let pid = Pid::from_child(&child);
    let limits = format!("/proc/{}/limits", pid.as_raw_nonzero());
    let raised = format!("{hard} {hard}");
    let is_raised = || {
        let text = fs::read_to_string(&limits).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("Max open files")).map(str::to_owned);
        let line = line.unwrap_or_default();
        line.split_whitespace().skip(3).take(2).collect::<Vec<_>>().join(" ") == raised
    };
    // The page has a link that waits for a moment: the crawl is there to be looked at.
    let mut seen = false;
    while !seen && child.try_wait().unwrap().is_none() {
        seen = is_raised();
    }
    assert!(child.wait().unwrap().success());
    assert!(seen, "never {raised}");
}

#[test]
fn a_crawl_without_open_files_waits_and_blames_no_host() {
    const HOSTS: usize = 150;
    let (web, folder) = (web(HOSTS), tempfile::tempdir().unwrap());
    let mut child = start(&web, folder.path(), 4, (1_024, 1_024));
    let pid = Pid::from_child(&child);
    let started = Instant::now();
    let patience = || assert!(started.elapsed() < Duration::from_mins(2));
    while web.web.requests().len() < HOSTS / 4 {
        patience();
        std::thread::sleep(Duration::from_millis(1));
    }
    // Fewer than it has open: from now on nothing can be opened.
    let none = Rlimit { current: Some(8), maximum: Some(1_024) };
    prlimit(Some(pid), Resource::Nofile, none).unwrap();
    let errors = || fs::read_to_string(folder.path().join("errors.txt")).unwrap();
    while !errors().contains("the crawl waits") {
        patience();
        assert!(child.try_wait().unwrap().is_none(), "it must not end: {}", errors());
        std::thread::sleep(Duration::from_millis(5));
    }
    let enough = Rlimit { current: Some(1_024), maximum: Some(1_024) };
    prlimit(Some(pid), Resource::Nofile, enough).unwrap();
    assert!(child.wait().unwrap().success(), "{}", errors());
    assert_whole(folder.path(), HOSTS);
    assert!(errors().contains("Too many open files"), "{}", errors());
    assert!(report(folder.path())["unsent"].as_u64().unwrap() > 0);
}
