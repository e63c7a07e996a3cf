//! Commands on a corpus in a cluster: what they say of it, which refuse, and documents that go from
//! a store of one machine to a cluster and back.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cluster::Nodes;
use crate::support::crawl;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must succeed, and returns what it prints.
#[track_caller]
pub(crate) fn done(folder: &Path, arguments: &[&str]) -> String {
    let out = crawl(arguments, folder);
    assert!(out.status.success(), "{arguments:?}: {}{}", text(&out.stdout), text(&out.stderr));
    text(&out.stdout)
}

#[track_caller]
fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&done(folder, &[arguments, &["--json"]].concat())).unwrap()
}

fn told(out: &Output) -> String {
    [text(&out.stdout), text(&out.stderr)].concat()
}

/// Lines of a file of an export in one order, but for URLs that a crawl did not fetch: what is
/// brought again after a kill comes behind what was there.
fn lines(folder: &Path, file: &str) -> Vec<String> {
    let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
    sorted(text.lines().filter(|line| !line.contains("skipped_by_")))
}

fn sorted<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = lines.map(str::to_owned).collect();
    all.sort_unstable();
    all
}

#[test]
fn commands_work_on_a_cluster_or_say_what_to_do_and_none_tells_the_password() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("text.txt"), "a text").unwrap();
    let cluster = "cluster:redis://me:hidden@127.0.0.1:1/prefix";
    let refused: &[&[&str]] = &[
        &["--store", cluster, "http://127.0.0.1:1/"],
        &["demo", "--store", cluster],
        &["compare", "--store", cluster, "one", "other"],
        &["expire", "--store", cluster, "--older-than", "1d"],
        &["migrate", "--store", cluster],
        &["follow", "--store", cluster],
        &["rules", "list", "--store", cluster],
        &["rules", "disable", "--store", cluster, "1"],
        &["rules", "enable", "--store", cluster, "1"],
        &["duplicate-feed", "export", "--store", cluster, "feed"],
        &["duplicate-feed", "list", "--store", cluster],
        &["duplicate-feed", "drop", "--store", cluster, "1"],
        &["rebuild", "--warc", "none", "--store", cluster],
        &["store", "info", "--store", cluster],
        &["store", "backup", "--store", cluster, "--to", "backups"],
        &["store", "restore", "--from", "backups", "--store", cluster],
        &["store", "compact", "--store", cluster],
        &["store", "merge", cluster, "other", "--into", "new"],
        &["store", "merge", "one", "other", "--into", cluster],
    ];
    let used: &[&[&str]] = &[
        &["stats", "--store", cluster],
        &["check", "--store", cluster],
        &["check", "--store", cluster, "--repair"],
        &["explain", "--store", cluster, "http://a/"],
        &["inspect", "--store", cluster, "http://a/"],
        &["export", "--store", cluster, "--out", "corpus"],
        &["serve", "--store", cluster, "--listen", "127.0.0.1:0"],
        &["search", "--store", cluster, "--index", "index", "words"],
        &["import", "--store", cluster, "--texts", "texts", "text.txt"],
        &["store", "copy", cluster, "new"],
        &["store", "copy", cluster, "cluster:redis://127.0.0.1:1/other"],
    ];
    for arguments in refused {
        let out = crawl(&[arguments, &["-vv"][..]].concat(), folder.path());
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {out:?}");
        assert!(told(&out).contains("does not work on a cluster: "), "{arguments:?}: {out:?}");
        assert!(!told(&out).contains("hidden"), "{out:?}");
    }
    let out = crawl(&["dedup", "text.txt", "--out", "o", "--store", cluster], folder.path());
    assert!(out.status.code() == Some(2) && told(&out).contains("`crawl import"), "{out:?}");
    assert!(!told(&out).contains("hidden"), "{out:?}");
    for arguments in used {
        let out = crawl(&[arguments, &["-vv"][..]].concat(), folder.path());
        assert_eq!(out.status.code(), Some(1), "{arguments:?}: {out:?}");
        let all = told(&out);
        assert!(all.contains("no node of the cluster answers (127.0.0.1:1"), "{all}");
        assert!(!all.contains("hidden"), "{all}");
    }
    // Whatever is wrong with the name, the text of it is not shown.
    for wrong in [
        "cluster:me:hidden@127.0.0.1",
        "cluster:http://me:hidden@127.0.0.1",
        "cluster:redis://me:hidden@127.0.0.1:port/",
        "redis://me:hidden@127.0.0.1:1/prefix",
    ] {
        let out = crawl(&["stats", "--store", wrong], folder.path());
        assert_eq!(out.status.code(), Some(2), "{wrong}: {out:?}");
        let all = told(&out);
        assert!(all.contains("cluster:redis://HOST:PORT/PREFIX"), "{all}");
        assert!(!all.contains("hidden"), "{all}");
    }
}

#[test]
fn the_settings_file_names_the_store_and_the_flag_wins() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let line = serde_json::json!({"url": "http://a.example/1", "title": "", "text": "some words"});
    fs::write(folder.join("one.jsonl"), format!("{line}\n")).unwrap();
    let run = |settings: &str, arguments: &[&str]| {
        fs::write(folder.join("c.toml"), settings).unwrap();
        let out = crawl(&[arguments, &["--config", "c.toml"]].concat(), folder);
        assert!(!told(&out).contains("hidden"), "{out:?}");
        (out.status.code().unwrap(), told(&out))
    };
    for (settings, store) in
        [("store = \"redb:one\"", "one"), ("[store]\nplace = \"other\"", "other")]
    {
        let (code, all) = run(settings, &["import", "one.jsonl"]);
        assert!(code == 0 && all.contains(&format!("in the store {store}")), "{all}");
        assert!(folder.join(store).join("store.redb").exists());
    }
    let (_, all) = run("store = \"one\"", &["import", "one.jsonl", "--store", "flag"]);
    assert!(all.contains("in the store flag"), "{all}");
    let cluster = "store = \"cluster:redis://me:hidden@127.0.0.1:1/prefix\"";
    for used in [&["check"][..], &["worker"], &["export", "--out", "corpus"]] {
        let (code, all) = run(cluster, used);
        assert!(code == 1 && all.contains("no node of the cluster answers (127.0.0.1:1"), "{all}");
    }
    let (code, all) = run(cluster, &["http://127.0.0.1:1/"]);
    assert!(code == 2 && all.contains("`crawl` does not work on a cluster"), "{all}");
    let (_, all) = run(cluster, &["config"]);
    assert!(all.contains("place = \"cluster:redis://***@127.0.0.1:1/prefix\""), "{all}");
    // What is wrong is told with the file and the key.
    for (settings, arguments, why) in [
        ("store = \"cluster:http://me:hidden@h\"", &["check"][..], "c.toml: `store`: "),
        ("store = \"\"", &["check"], "c.toml: `store`: it names no folder"),
        ("store = 7", &["check"], "c.toml: line 1: `store`: must be a text, such as"),
        ("[store]\nplace = 7", &["check"], "c.toml: line 2: `store.place`: must be a text"),
        ("store = \"one\"", &["worker"], "which cluster? Name it by --join"),
        ("", &["worker"], "which cluster? Name it by --join"),
    ] {
        let (code, all) = run(settings, arguments);
        assert!(code == 2 && all.contains(why), "{settings}: {all}");
    }
}

#[test]
fn a_job_is_a_crawl_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = "cluster:redis://me:hidden@127.0.0.1:1/prefix";
    let job = format!(
        "[[job]]\nname = \"one\"\nseeds = [\"http://127.0.0.1:1/\"]\nstore = \"{cluster}\"\n\
         every = \"1h\"\n"
    );
    fs::write(folder.path().join("jobs.toml"), job).unwrap();
    let out = crawl(&["jobs", "check", "--jobs", "jobs.toml"], folder.path());
    let all = told(&out);
    assert!(out.status.code() == Some(2) && all.contains("crawl worker"), "{all}");
    assert!(!all.contains("hidden"), "{all}");
}

#[test]
fn the_password_of_a_cluster_comes_from_the_url_the_environment_or_a_file() {
    let nodes = Nodes::start(8, &[("PASSWORD", "hidden")]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("word"), "hidden\n").unwrap();
    fs::write(folder.path().join("text.txt"), "a text").unwrap();
    let plain = format!("cluster:{}", nodes.url("word"));
    let within = plain.replace("redis://", "redis://:hidden@");
    let run = |store: &str, variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
        let command = command.args(["stats", "-vv", "--store", store]).current_dir(folder.path());
        let out = command.envs(variables.iter().copied()).output().unwrap();
        let all = [text(&out.stdout), text(&out.stderr)].concat();
        assert!(!all.contains("hidden"), "{all}");
        (out.status.code(), all)
    };
    for (store, variables) in [
        (&within, &[][..]),
        (&plain, &[("CRAWL_CLUSTER_PASSWORD", "hidden")][..]),
        (&plain, &[("CRAWL_CLUSTER_PASSWORD_FILE", "word")][..]),
    ] {
        let (code, all) = run(store, variables);
        assert!(code == Some(2) && all.contains("no corpus under the prefix `word`"), "{all}");
    }
    for variables in [&[][..], &[("CRAWL_CLUSTER_PASSWORD", "other")][..]] {
        let (code, all) = run(&plain, variables);
        assert!(code == Some(1) && all.contains("refuses user `default`"), "{all}");
    }
    let (code, all) = run(&plain, &[("CRAWL_CLUSTER_PASSWORD_FILE", "missing")]);
    assert!(code == Some(1) && all.contains("missing"), "{all}");
}

/// Runs a command and kills it, each time later, until it comes to its end.
fn killed(folder: &Path, arguments: &[&str]) {
    for millis in (5..).map(|step| step * 8) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        if child.try_wait().unwrap().is_some_and(|status| status.success()) {
            return;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// What commands say of the store and of the cluster is the same. Returns the lines of documents and
/// of duplicates.
fn assert_told_alike(folder: &Path, store: &str, documents: u64) -> (Vec<String>, Vec<String>) {
    // What commands say of both is the same.
    for of in ["first", store] {
        let out = if of == store { "of-cluster" } else { "of-first" };
        let export = json(folder, &["export", "--store", of, "--out", out]);
        assert_eq!(export["documents"], documents);
    }
    let first = lines(folder, "of-first/documents.jsonl");
    assert_eq!(lines(folder, "of-cluster/documents.jsonl"), first);
    let dropped = lines(folder, "of-first/duplicates.jsonl");
    assert_eq!(lines(folder, "of-cluster/duplicates.jsonl"), dropped);
    let stream = done(folder, &["export", "--store", store, "--out", "-", "--quiet"]);
    assert_eq!(sorted(stream.lines()), first);
    let document: Value = serde_json::from_str(&dropped[0]).unwrap();
    for name in [&document["docId"], &document["url"], &document["canonical"]] {
        let inspect = |of| json(folder, &["inspect", "--store", of, name.as_str().unwrap()]);
        let inspected = inspect(store);
        assert_eq!(inspected["document"], inspect("first")["document"]);
        assert_eq!(inspected["dropped"], inspect("first")["dropped"]);
        assert_eq!(inspected["document"]["docId"], document["docId"]);
    }
    let explain = |url: &Value| {
        json(folder, &["explain", "--store", store, url.as_str().unwrap()])["state"].clone()
    };
    assert_eq!(explain(&document["url"]), "duplicate");
    assert_eq!(explain(&document["canonical"]), "stored");
    assert_eq!(explain(&"http://127.0.0.1:1/none".into()), "unknown");
    let stats = json(folder, &["stats", "--store", store]);
    // What killed processes have announced is counted as well.
    assert!(stats["documents"].as_u64().unwrap() >= documents, "{stats}");
    assert_eq!(stats["primaries"].as_array().unwrap().len(), 3);
    let missing = crawl(&["inspect", "--store", store, "http://none/"], folder);
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");

    // Parts have each document once.
    let mut parts = BTreeSet::new();
    for part in ["1/3", "2/3", "3/3"] {
        let out = format!("part-{}", &part[..1]);
        done(folder, &["export", "--store", store, "--part", part, "--out", &out]);
        for line in lines(folder, &format!("{out}/documents.jsonl")) {
            assert!(parts.insert(line), "a document is in two parts");
        }
    }
    assert_eq!(parts, first.iter().cloned().collect());
    (first, dropped)
}

/// A text that is away is told, and a target that has something else.
fn assert_loss_and_difference_are_told(folder: &Path, store: &str, duplicate: &str) {
    let document: Value = serde_json::from_str(duplicate).unwrap();
    // A text that is lost is told.
    let hidden = folder.join("texts-away");
    fs::rename(folder.join("texts"), &hidden).unwrap();
    let lost = crawl(&["check", "--store", store], folder);
    assert_eq!(lost.status.code(), Some(1), "{lost:?}");
    assert!(text(&lost.stdout).contains(" documents that cannot be read"), "{lost:?}");
    done(folder, &["check", "--store", store, "--texts", "texts-away"]);
    fs::rename(hidden, folder.join("texts")).unwrap();

    // A target with other documents is refused, and one that has changed is told.
    fs::write(folder.join("other.jsonl"), "{\"text\": \"something else entirely\"}\n").unwrap();
    done(folder, &["import", "--store", "other", "other.jsonl"]);
    let refused = crawl(&["store", "copy", store, "other"], folder);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("has documents that the source has not"));
    let url = document["url"].as_str().unwrap();
    let line = format!("{{\"url\": \"{url}\", \"text\": \"x\", \"popularity\": 999}}\n");
    fs::write(folder.join("popular.jsonl"), line).unwrap();
    let popular =
        ["import", "--store", "last", "popular.jsonl", "--popularity-field", "popularity"];
    assert_eq!(json(folder, &popular)["known"], 1);
    let differ = crawl(&["store", "copy", store, "last"], folder);
    assert_eq!(differ.status.code(), Some(1), "{differ:?}");
    assert!(text(&differ.stdout).contains("they differ"), "{differ:?}");
}

#[test]
fn documents_go_to_a_cluster_and_back_whoever_is_killed_and_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(folder, &["demo", "--store", "first", "--quiet"]);
    let url = format!("cluster:{}", Nodes::shared().url("copied"));
    let store = url.as_str();
    let copy = ["store", "copy", "first", store, "--texts", "texts", "--documents", "1000"];
    killed(folder, &copy);
    let begun = Instant::now();
    let again = json(folder, &copy);
    assert_eq!((&again["copied"], &again["same"]), (&0.into(), &true.into()), "{again}");
    let documents = again["from"]["documents"].as_u64().unwrap();
    assert!(documents > 50, "{again}");

    let (first, dropped) = assert_told_alike(folder, store, documents);

    // Back into a store.
    let back = ["store", "copy", store, "last"];
    killed(folder, &back);
    let again = json(folder, &back);
    assert_eq!((&again["copied"], &again["same"]), (&0.into(), &true.into()), "{again}");
    done(folder, &["export", "--store", "last", "--out", "of-last"]);
    assert_eq!(lines(folder, "of-last/documents.jsonl"), first);
    assert_eq!(lines(folder, "of-last/duplicates.jsonl"), dropped);
    // What killed processes have left is found and mended, when it is older than anything that may
    // be under way.
    std::thread::sleep(Duration::from_secs(12).saturating_sub(begun.elapsed()));
    let repair = ["check", "--store", store, "--repair"];
    let mended = json(folder, &repair);
    assert_eq!(mended["documents"], documents, "{mended}");
    assert_eq!(mended["mended"], mended["faults"], "{mended}");
    for of in ["first", store, "last"] {
        done(folder, &["check", "--store", of]);
    }

    assert_loss_and_difference_are_told(folder, store, &dropped[0]);
}
