//! Folders of the stores of shards: what waits in the queue of a shard is not lost when another
//! worker takes it, or that worker is told before anything happens.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use uniqcrawl::base::units::Time;
use uniqcrawl::localweb::Site;

use crate::cluster::Nodes;
use crate::support::{Web, page, prose};
use crate::worker::{Crowd, alone, assert_polite, settings, wait_for_requests, web};

/// Crawls one page with one worker, to its end.
fn work(folder: &std::path::Path, join: &str, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["worker", "--until-done", "--quiet", "--allow-private", "--delay", "5ms"])
        .args(["--scope", "any", "--join", join])
        .args(more)
        .args((!more.contains(&"--texts")).then_some(["--texts", "texts"]).into_iter().flatten())
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn a_worker_whose_folder_is_not_that_of_the_others_is_refused_unless_all_back_their_shards_up() {
    let web = Web::one(Site::new().html("/", page("One", &prose(1, 80), &[])));
    let (url, folder) = (web.web.url(0), tempfile::tempdir().unwrap());
    let path = folder.path();
    let join = Nodes::shared().url("folders");
    let works = |more: &[&str]| {
        let out = work(path, &join, more);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    };
    let refused = |more: &[&str], way: &str| {
        let out = work(path, &join, more);
        let told = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{told}");
        assert!(told.contains(way) && told.contains("--backup TO"), "{told}");
        assert!(!path.join("two").exists());
    };
    works(&["--folder", "one", &url]);
    let first = format!("{}, and two is another folder: URLs", path.join("one").display());
    refused(&["--folder", "two"], &first);
    refused(&["--folder", "two", "--backup", "backups"], &first);
    // The same folder is the same one wherever it is seen.
    symlink(path.join("one"), path.join("mounted")).unwrap();
    works(&["--folder", "mounted"]);
    fs::rename(path.join("one"), path.join("away")).unwrap();
    refused(&["--folder", "one"], "are gone: URLs that waited");
    fs::rename(path.join("away"), path.join("one")).unwrap();
    // The first folder is backed up from now on: all of its shards were given back since.
    works(&["--folder", "one", "--backup", "backups"]);
    refused(&["--folder", "two"], "two is another folder without --backup: URLs");
    works(&["--folder", "two", "--backup", "backups"]);
    let refused = work(path, &join, &["--folder", "three"]);
    assert_eq!(refused.status.code(), Some(2));
    // Texts that others cannot read are told as well, whoever would write them.
    let store = format!("cluster:{join}");
    fs::write(path.join("more.jsonl"), r#"{"url": "http://a.example/1", "text": "Some words."}"#)
        .unwrap();
    let import = ["import", "--texts", "three", "--store", &store, "more.jsonl"];
    let serve = ["serve", "--texts", "three", "--store", &store, "--listen", "127.0.0.1:0"];
    let worker =
        ["worker", "--texts", "three", "--folder", "one", "--scope", "any", "--join", &join];
    for command in [&import[..], &serve[..], &worker[..]] {
        let run = |command: &[&str]| {
            Command::new(env!("CARGO_BIN_EXE_crawl"))
                .args(command)
                .current_dir(path)
                .output()
                .unwrap()
        };
        let out = run(command);
        let told = String::from_utf8_lossy(&out.stderr).into_owned();
        let [first, other] = ["texts", "three"].map(|name| path.join(name).display().to_string());
        assert_eq!(out.status.code(), Some(2), "{command:?}: {told}");
        assert!(told.contains(&format!("{first}, and {other} is another folder: ")), "{told}");
        assert!(!path.join("three").exists(), "nothing is left of it");
    }
    works(&["--folder", "three", "--stores-lost"]);
    works(&["--folder", "three"]);
}

#[test]
fn shards_are_handed_over_with_their_queues_to_workers_with_disks_of_their_own() {
    let web = web();
    let mut config = settings(&web);
    config.cluster.backup_interval = Time::from_secs(2);
    let expected = alone(&web, &config);
    let mut crowd = Crowd::new("own-disks", &web);
    config.cluster.backup = crowd.path("backups").display().to_string();
    for (name, requests) in [("one", 20), ("two", 40), ("three", 0)] {
        crowd.stores = name.to_owned();
        crowd.start(&config);
        wait_for_requests(&web, requests);
    }
    crowd.wait_all();
    assert!((1..3).any(|worker| crowd.log(worker).contains("restored from its backup")));
    assert_eq!(crowd.clusters(&config), expected);
    assert_polite(&web);
}
