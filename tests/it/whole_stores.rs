//! Stores as a whole: what they are, backups, and compaction.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::ops::Bound::Unbounded;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use uniqcrawl::localweb::Site;
use uniqcrawl::store::{META, Name, Reading as _, Store, Update as _};

use crate::check;
use crate::service::{get, post};
use crate::support::{Web, check_clean, clusters, config, crawl, page, prose};

/// Every row of a store, but for what a restore draws anew.
pub(crate) fn rows(folder: &Path) -> BTreeMap<(&'static str, Vec<u8>), Vec<u8>> {
    let store = Store::open_to_read(folder, 1 << 24).unwrap();
    check_clean(&store);
    let snapshot = store.snapshot().unwrap();
    let of = |name: &Name| {
        let rows = snapshot.raw_range(*name, Unbounded, Unbounded).unwrap().map(Result::unwrap);
        let rows = rows.map(|(key, row)| ((name.as_str(), key.to_vec()), row.to_vec()));
        rows.collect::<Vec<_>>()
    };
    let rows = Name::ALL.iter().flat_map(of);
    rows.filter(|((table, key), _)| (*table, &key[..]) != ("meta", b"changes_epoch")).collect()
}

/// A store with some hundred documents, of which many have copies.
pub(crate) fn filled(folder: &Path, from: u64, until: u64) {
    let names: Vec<String> = (from..until).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = names.iter().map(String::as_str).collect();
    let site = Site::new().html("/", page("Front", &prose(1, 80), &links));
    let web = Web::one((from..until).fold(site, |site, number| {
        let text = prose(10 + number % 120, 300);
        site.html(&format!("/{number}"), page(&format!("Story {}", number % 120), &text, &[]))
    }));
    let store = Store::open_or_create(folder, 16 << 20).unwrap();
    let (settings, context) = (config().settings(), uniqcrawl::crawl::Context::default());
    uniqcrawl::crawl::run(&store, &settings, &web.seeds(), &context).unwrap();
}

#[track_caller]
fn done(arguments: &[&str], folder: &Path) -> Value {
    let output = crawl(&[arguments, &["--json"]].concat(), folder);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The command ends with this code, and says this.
#[track_caller]
pub(crate) fn fails(arguments: &[&str], folder: &Path, code: i32, why: &str) {
    let output = crawl(arguments, folder);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
    assert!(told.contains(why) && !told.contains("panicked"), "{arguments:?}: {told}");
}

/// Runs the binary until the event of that name has come so many times.
#[track_caller]
pub(crate) fn crash(arguments: &[&str], folder: &Path, event: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
    command.args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    command.env("UNIQCRAWL_LOG", "uniqcrawl=trace").env("UNIQCRAWL_CRASH", event);
    assert_eq!(command.status().unwrap().code(), None, "{event} was not reached");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

#[test]
fn a_backup_is_restored_row_by_row_and_the_next_one_writes_what_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    filled(&path.join("s"), 0, 150);
    let whole = rows(&path.join("s"));
    let first = done(&["store", "backup", "--store", "s", "--to", "b", "--verify"], path);
    assert_eq!(first["rows"], whole.len());
    assert_eq!(first["newChunks"], first["chunks"]);
    let again = done(&["store", "backup", "--store", "s", "--to", "b"], path);
    assert_eq!((&again["newChunks"], &again["chunks"]), (&json!(0), &first["chunks"]));
    assert_ne!(again["name"], first["name"]);
    done(&["store", "restore", "--from", "b", "--store", "r"], path);
    assert_eq!(rows(&path.join("r")), whole);
    // Some rows are another thing, most are as before.
    let store = Store::open(&path.join("s"), 1 << 24).unwrap();
    let mut batch = store.begin().unwrap();
    batch.put(META, "zz", &b"x".to_vec()).unwrap();
    batch.commit().unwrap();
    drop(store);
    let third = done(&["store", "backup", "--store", "s", "--to", "b", "--keep", "2"], path);
    let (new, all) = (third["newChunks"].as_u64().unwrap(), third["chunks"].as_u64().unwrap());
    assert!(new >= 1 && new * 4 < all, "{new} of {all}");
    assert_eq!(third["removed"], 1);
    let known = done(&["store", "backups", "b"], path);
    let names: Vec<&str> =
        known.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, [again["name"].as_str().unwrap(), third["name"].as_str().unwrap()]);
    // The older one is still whole, by its name.
    done(&["store", "verify", "b", "--backup", names[0]], path);
    done(&["store", "restore", "--from", "b", "--backup", names[0], "--store", "old"], path);
    assert_eq!(rows(&path.join("old")), whole);
    done(&["store", "restore", "--from", "b", "--store", "new"], path);
    assert_eq!(rows(&path.join("new")), rows(&path.join("s")));
    // One backup is kept, and no chunk that it does not have.
    done(&["store", "backup", "--store", "s", "--to", "b", "--keep", "1"], path);
    let chunks = files(&path.join("b/chunks")).len() as u64;
    assert!(chunks <= all, "{chunks} of {all}");
    done(&["store", "verify", "b"], path);
}

#[test]
fn a_backup_that_breaks_off_leaves_those_before_it_and_the_next_one_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    filled(&path.join("s"), 0, 60);
    let backup = ["store", "backup", "--store", "s", "--to", "b", "--keep", "1"];
    crash(&backup, path, "chunk:3");
    fails(&["store", "verify", "b"], path, 2, "there is no backup in b");
    done(&backup, path);
    let first = done(&["store", "verify", "b"], path);
    let whole = rows(&path.join("s"));
    for (round, (event, is_new)) in
        [("chunk:1", false), ("chunk:9", false), ("listed:1", true), ("unlisted:1", true)]
            .into_iter()
            .enumerate()
    {
        let store = Store::open(&path.join("s"), 1 << 24).unwrap();
        let mut batch = store.begin().unwrap();
        batch.put(META, "zz", &vec![b'x'; round + 1]).unwrap();
        batch.commit().unwrap();
        drop(store);
        crash(&backup, path, event);
        let newest = done(&["store", "verify", "b"], path);
        assert_eq!(newest["name"] != first["name"], is_new, "{event}");
        let out = format!("r{round}");
        done(&["store", "restore", "--from", "b", "--store", &out], path);
        let restored = rows(&path.join(&out));
        assert_eq!(restored == rows(&path.join("s")), is_new, "{event}");
        assert!(is_new || restored == whole, "{event}");
        if round == 1 {
            done(&["store", "backup", "--store", "s", "--to", "b"], path);
        }
    }
    // A restore that breaks off leaves no store, and the next one makes it.
    for event in ["rewriting:1", "verified:1", "replacing:1"] {
        crash(&["store", "restore", "--from", "b", "--store", "last"], path, event);
        assert!(!path.join("last/store.redb").exists(), "{event}");
    }
    done(&backup, path);
    done(&["store", "restore", "--from", "b", "--store", "last"], path);
    assert_eq!(rows(&path.join("last")), rows(&path.join("s")));
    let left = files(&path.join("last"));
    assert_eq!(left, [path.join("last/store.redb")], "nothing is left over");
}

#[test]
fn what_is_no_backup_or_a_damaged_one_is_told_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    drop(check::made(&path.join("s")));
    drop(Store::open_or_create(&path.join("other"), 1 << 20).unwrap());
    fs::create_dir(path.join("full")).unwrap();
    fs::write(path.join("full/letter.txt"), "dear").unwrap();
    let to = |store, to| ["store", "backup", "--store", store, "--to", to];
    fails(&to("s", "full"), path, 2, "full has files that are no backups");
    fails(&to("none", "b"), path, 2, "there is no store in none");
    fails(&["store", "backup", "--store", "s"], path, 2, "--to");
    fails(&["store", "backups", "full"], path, 2, "there is no backup in full");
    done(&to("s", "b"), path);
    fails(&to("other", "b"), path, 2, "name another folder");
    let restore = ["store", "restore", "--from", "b", "--store"];
    fails(&[&restore[..], &["s"]].concat(), path, 2, "there is a store in s");
    fails(&["store", "verify", "b", "--backup", "x"], path, 2, "has no backup x: it has ");
    for path_of in files(&path.join("b")) {
        if path_of.extension().is_some_and(|ending| ending == "lock") {
            continue;
        }
        let bytes = fs::read(&path_of).unwrap();
        for damaged in [bytes[..bytes.len() / 2].to_vec(), {
            let mut other = bytes.clone();
            let at = bytes.len() / 2;
            other[at] ^= 1;
            other
        }] {
            fs::write(&path_of, &damaged).unwrap();
            let told = crawl(&["store", "verify", "b"], path);
            let text = String::from_utf8_lossy(&told.stderr).into_owned();
            let file = path_of.file_name().unwrap().to_string_lossy().into_owned();
            // The seed is part of every name: another one is seen at the first chunk.
            let named = text.contains(&file) || file == "backup.json";
            assert!(!told.status.success() && named, "{file}: {text}");
            let told = crawl(&[&restore[..], &["r"]].concat(), path);
            assert!(!told.status.success() && !path.join("r/store.redb").exists(), "{file}");
        }
        fs::write(&path_of, &bytes).unwrap();
    }
    done(&[&restore[..], &["r"]].concat(), path);
}

/// A service that runs on its own.
pub(crate) struct Running {
    process: Child,
    pub address: std::net::SocketAddr,
}

impl Running {
    pub(crate) fn start(folder: &Path, config: &str) -> Self {
        let config = format!("[api]\nlisten = \"127.0.0.1:0\"\n{config}");
        fs::write(folder.join("c.toml"), config).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["serve", "--store", "s", "--config", "c.toml"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit('/').next().unwrap().parse().unwrap();
        Self { process, address }
    }

    pub(crate) fn send(&self, number: u64) -> Value {
        let body = json!({"nid": format!("n{number}"), "title": format!("Story {number}"),
            "url": format!("http://sent.test/{number}"), "content": prose(number, 200)});
        let body = body.to_string();
        let answer = post(self.address, "/v1/articles", "application/json", body.as_bytes());
        assert!(matches!(answer.status, 200 | 201), "{}", answer.body);
        answer.json()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[test]
fn a_store_is_backed_up_while_its_service_stores() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut plain = Running::start(path, "");
    get(plain.address, "/v1/backup").is(403, "backup_disabled");
    fails(&["store", "backup", "--from", &plain.url()], path, 1, "set `folder` of [backup]");
    plain.kill();
    let running = Running::start(path, "[backup]\nfolder = \"b\"\nkeep = 2\n");
    for number in 0..30 {
        running.send(number);
    }
    fails(&["store", "backup", "--store", "s", "--to", "x"], path, 1, "--from http");
    let url = running.url();
    fails(&["store", "backup", "--from", &url, "--to", "x"], path, 2, "leave out --to");
    let told = std::thread::scope(|scope| {
        let other = scope.spawn(|| (30..60).for_each(|number| drop(running.send(number))));
        let told = done(&["store", "backup", "--from", &url], path);
        other.join().unwrap();
        told
    });
    assert!(told["documents"].as_u64().unwrap() >= 30, "{told}");
    let last = done(&["store", "backup", "--from", &url], path);
    assert_eq!(last["documents"], 60);
    done(&["store", "restore", "--from", "b", "--store", "r"], path);
    let store = Store::open_to_read(&path.join("r"), 1 << 24).unwrap();
    check_clean(&store);
    assert_eq!(clusters(&store).len(), 60);
}

#[test]
fn a_crawl_backs_its_store_up_at_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let names: Vec<String> = (0..12).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = names.iter().map(String::as_str).collect();
    let site = Site::new().html("/", page("Front", &prose(1, 80), &links));
    let web = Web::one((0..12).fold(site, |site, number| {
        site.html(&format!("/{number}"), page("Story", &prose(10 + number, 200), &[]))
    }));
    fs::write(
        path.join("c.toml"),
        "[backup]\nfolder = \"b\"\nevery = \"200ms\"\nkeep = 3\n[crawl]\nbatch_time_max = \"50ms\"\n",
    )
    .unwrap();
    let url = web.web.url(0);
    let told = crawl(
        &[&url, "--store", "s", "--config", "c.toml", "--delay", "100ms", "--allow-private"],
        path,
    );
    assert!(told.status.success(), "{told:?}");
    let known = done(&["store", "backups", "b"], path);
    assert!((2..=3).contains(&known.as_array().unwrap().len()), "{known}");
    done(&["store", "restore", "--from", "b", "--store", "r"], path);
    check_clean(&Store::open_to_read(&path.join("r"), 1 << 24).unwrap());
}

#[test]
fn a_store_is_compacted_to_a_smaller_one_with_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    filled(&path.join("s"), 0, 60);
    let mut running = Running::start(path, "");
    let mut lines = String::new();
    for number in 0..1_200_u64 {
        let content = prose(1_000 + number, 150);
        let line = json!({"nid": format!("n{number}"), "content": content});
        writeln!(lines, "{line}").unwrap();
    }
    let answer = post(running.address, "/v1/articles", "application/x-ndjson", lines.as_bytes());
    assert_eq!(answer.status, 200);
    running.kill();
    drop(fs::remove_dir_all(path.join("s/search")));
    let whole = rows(&path.join("s"));
    let size = || fs::metadata(path.join("s/store.redb")).unwrap().len();
    let before = size();
    for event in ["rewriting:1", "copied:20", "verified:1", "replacing:1", "replaced:1"] {
        fs::create_dir_all(path.join("keep")).unwrap();
        fs::copy(path.join("s/store.redb"), path.join("keep/store.redb")).unwrap();
        crash(&["store", "compact", "--store", "s"], path, event);
        assert_eq!(size() < before, event == "replaced:1", "{event}");
        assert_eq!(rows(&path.join("s")), whole, "{event}");
        fs::copy(path.join("keep/store.redb"), path.join("s/store.redb")).unwrap();
    }
    let told = done(&["store", "compact", "--store", "s"], path);
    assert_eq!((&told["oldBytes"], &told["replaced"]), (&json!(before), &json!(true)));
    assert!(told["newBytes"].as_u64().unwrap() < before, "{told}");
    assert_eq!((told["newBytes"].as_u64(), rows(&path.join("s"))), (Some(size()), whole));
    assert_eq!(files(&path.join("s")), [path.join("s/store.redb")], "nothing is left over");
    // What has ended leaves nothing behind.
    let told = crawl(&["expire", "--store", "s", "--older-than", "1ms", "--yes"], path);
    assert!(told.status.success(), "{told:?}");
    let told = done(&["store", "compact", "--store", "s"], path);
    assert!(told["newBytes"].as_u64().unwrap() * 2 < before, "{told} of {before}");
    // It goes on as before.
    filled(&path.join("s"), 300, 320);
    check_clean(&Store::open_to_read(&path.join("s"), 1 << 24).unwrap());
    let running = Running::start(path, "");
    fails(&["store", "compact", "--store", "s"], path, 1, "in use by another process");
    drop(running);
    fails(&["store", "compact", "--store", "none"], path, 2, "there is no store in none");
}

#[test]
fn a_store_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    drop(check::made(&path.join("s")));
    let told = done(&["store", "info", "--store", "s"], path);
    assert_eq!((&told["format"], &told["storeNumber"]), (&json!(8), &json!(0)));
    assert_eq!(told["program"], env!("CARGO_PKG_VERSION"));
    assert_eq!(told["madeBy"], env!("CARGO_PKG_VERSION"));
    let store = Store::open_to_read(&path.join("s"), 1 << 20).unwrap();
    assert_eq!(told["documents"], clusters(&store).len() as u64);
    assert_eq!(told["bytes"], fs::metadata(path.join("s/store.redb")).unwrap().len());
    assert!(told["settings"]["urls"].is_object(), "{told}");
    assert!(told["made"].as_str().unwrap().starts_with("20"), "{told}");
    let shown = crawl(&["store", "info", "--store", "s"], path);
    let shown = String::from_utf8(shown.stdout).unwrap();
    for word in ["format", "number", "documents", "last commit", "ago", "rules of URLs"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    fails(&["store", "info", "--store", "none"], path, 2, "there is no store in none");
}
