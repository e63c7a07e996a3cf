//! WARC files of crawls that are killed, crash, or find the disk full: whole records, nothing twice.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use uniqcrawl::crawl::{RebuildProgress, rebuild};
use uniqcrawl::localweb::{Page, Site, demo};
use uniqcrawl::store::Store;

use crate::support::{Web, clusters, crawl, page, prose};
use crate::warc::{exported, reader, settings, warc_files};

/// Starts a crawl of the demo web that keeps what it exchanges.
fn start(folder: &Path, name: &str) -> Child {
    let kept = format!("{name}-kept");
    Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["--seeds", "seeds.txt", "--allow-private", "--delay", "5ms", "--quiet"])
        .args(["--max-pages-per-host", "60", "--store", name, "--warc", &kept])
        .args(["--warc-size", "40 KiB"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// URLs of the answers in the files of a folder, in their order.
pub(crate) fn archived(folder: &Path, kept: &str) -> Vec<String> {
    let mut urls = Vec::new();
    for file in warc_files(&folder.join(kept)) {
        let mut text = Vec::new();
        let packed = fs::File::open(&file).unwrap();
        flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut text).unwrap();
        let text = String::from_utf8_lossy(&text);
        for record in text.split("WARC/1.1\r\n").skip(1) {
            let header = |name: &str| {
                let mut lines = record.split("\r\n").take_while(|line| !line.is_empty());
                lines.find_map(|line| line.strip_prefix(name)).map(|rest| rest[2..].to_owned())
            };
            let kind = header("WARC-Type").unwrap();
            if kind == "response" || kind == "revisit" {
                urls.push(header("WARC-Target-URI").unwrap());
            }
        }
    }
    urls
}

#[test]
fn a_crawl_that_is_killed_again_and_again_keeps_each_exchange_once() {
    let web = Web::start(demo::HOSTS, demo::sites);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let seeds: Vec<String> = web.seeds().iter().map(ToString::to_string).collect();
    fs::write(folder.join("seeds.txt"), seeds.join("\n")).unwrap();
    assert!(start(folder, "whole").wait().unwrap().success());
    let mut moment = std::process::id();
    for _ in 0..5 {
        moment = moment.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let mut child = start(folder, "killed");
        std::thread::sleep(Duration::from_millis(u64::from(moment >> 16) % 500 + 20));
        child.kill().unwrap();
        child.wait().unwrap();
        // What has its name is whole.
        let files = warc_files(&folder.join("killed-kept"));
        let whole: Vec<&str> =
            files.iter().filter_map(|f| f.to_str()).filter(|f| !f.contains(".open")).collect();
        if !whole.is_empty() {
            reader(&[&["count"][..], &whole].concat(), folder);
        }
    }
    assert!(start(folder, "killed").wait().unwrap().success());
    let (whole, killed) = (archived(folder, "whole-kept"), archived(folder, "killed-kept"));
    let set = |urls: &[String]| -> BTreeSet<String> { urls.iter().cloned().collect() };
    let pages = |urls: &[String]| {
        let mut pages = urls.to_vec();
        // A robots.txt is asked for again by who does not know it yet.
        pages.retain(|url| !url.ends_with("/robots.txt"));
        pages.sort();
        pages
    };
    assert_eq!(set(&whole), set(&killed));
    assert_eq!(pages(&whole), pages(&killed));
    fs::write(folder.join("expected.json"), "{\"payloads\": {}}").unwrap();
    reader(&["check", "killed-kept", "expected.json"], folder);
    let read = |name: &str| clusters(&Store::open(&folder.join(name), 1 << 24).unwrap());
    let crawled = read("whole");
    assert_eq!(crawled, read("killed"));

    // A store that is made of these files, and is killed again and again, is the same.
    let start_rebuild = |store: &str| {
        Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["rebuild", "--warc", "killed-kept", "--store", store])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    assert!(start_rebuild("made").wait().unwrap().success());
    let mut kills = 0;
    for wait in (0..20).map(|number| 60 + number * 60) {
        let mut child = start_rebuild("made-killed");
        std::thread::sleep(Duration::from_millis(wait));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills > 1);
    start_rebuild("made-killed").wait().unwrap();
    assert_eq!(read("made"), read("made-killed"));
    assert_eq!(crawled, read("made"));
    assert_eq!(exported(folder, "made"), exported(folder, "made-killed"));
    threads_make_the_same(folder);
}

/// Any number of threads makes the same of the files in `killed-kept`, and tells how far it is.
fn threads_make_the_same(folder: &Path) {
    let read = |name: &str| clusters(&Store::open(&folder.join(name), 1 << 24).unwrap());
    let files = warc_files(&folder.join("killed-kept"));
    let length: u64 = files.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    for threads in [1, 7] {
        let mut settings = uniqcrawl::config::Config::default().settings();
        settings.limits.page_threads = threads;
        settings.fetch.allow_private = true;
        let path = folder.join(format!("made-{threads}"));
        let store = Store::open_or_create(&path, 1 << 24).unwrap();
        let told = std::cell::RefCell::new(Vec::new());
        let tell = |progress: RebuildProgress| told.borrow_mut().push(progress);
        rebuild(&store, &settings, &files, &tell).unwrap();
        let told = told.into_inner();
        assert!(told.len() > 2, "{told:?}");
        assert!(told.iter().all(|one| one.of == length && one.read <= length), "{told:?}");
        assert!(told.is_sorted_by_key(|one| (one.read, one.visits)), "{told:?}");
        assert!(told.last().unwrap().read > length / 2, "{told:?}");
        drop(store);
    }
    assert_eq!(read("made-1"), read("made-7"));
    assert_eq!(exported(folder, "made-1"), exported(folder, "made-7"));
}

/// Bodies that nobody wants lie in the files alone, so that these are what grows too large.
#[test]
fn a_full_disk_ends_a_crawl_and_the_next_one_goes_on() {
    let mut state = 7_u64;
    let mut noise = || -> Vec<u8> {
        (0..60_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect()
    };
    let links: Vec<String> = (0..400).map(|number| format!("/{number}.png")).collect();
    let names: Vec<&str> = links.iter().map(String::as_str).collect();
    let front = Site::new().html("/", page("Front", &prose(1, 90), &names));
    let site =
        names.iter().fold(front, |site, name| site.page(name, Page::bytes("image/png", noise())));
    let web = Web::one(site);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    settings(folder);
    let arguments = ["--allow-private", "--delay", "0ms", "--quiet", "--config", "c.toml"];
    let seed = web.web.url(0);
    let arguments = [&arguments[..], &["--store", "s", "--warc", "kept", &seed]].concat();
    // A file that may not grow ends a process, unless it does not listen.
    let full = Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -f 12288; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_crawl"))
        .args(&arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&full.stderr);
    assert_eq!(full.status.code(), Some(1), "{error}");
    assert!(error.contains("cannot write") && error.contains(".warc.gz"), "{error}");
    let done = crawl(&arguments, folder);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut urls = archived(folder, "kept");
    urls.retain(|url| url.contains(".png"));
    urls.sort();
    let mut expected: Vec<String> = names.iter().map(|name| web.url(0, name).to_string()).collect();
    expected.sort();
    assert_eq!(urls, expected);
    fs::write(folder.join("expected.json"), "{\"payloads\": {}}").unwrap();
    reader(&["check", "kept", "expected.json"], folder);
}

/// A process that ends without warning at each point of the way to a file.
#[test]
fn a_crash_at_any_point_leaves_what_was_committed() {
    let web = Web::start(demo::HOSTS, demo::sites);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let seeds: Vec<String> = web.seeds().iter().take(4).map(ToString::to_string).collect();
    fs::write(folder.join("seeds.txt"), seeds.join("\n")).unwrap();
    assert!(start(folder, "whole").wait().unwrap().success());
    let points = ["archived:1", "archived:40", "committing:2", "committed:2", "indexed:1"];
    for point in points.iter().chain(&["committing:1", "committed:1", "indexed:2"]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
        command.args(["--seeds", "seeds.txt", "--allow-private", "--delay", "5ms", "--quiet"]);
        command.args(["--max-pages-per-host", "60", "--store", "killed"]);
        command.args(["--warc", "killed-kept", "--warc-size", "40 KiB"]);
        command.env("UNIQCRAWL_LOG", "uniqcrawl=trace").env("UNIQCRAWL_CRASH", point);
        command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().unwrap();
    }
    assert!(start(folder, "killed").wait().unwrap().success());
    let sorted = |kept: &str| {
        let mut urls = archived(folder, kept);
        urls.retain(|url| !url.ends_with("/robots.txt"));
        urls.sort();
        urls
    };
    assert_eq!(sorted("whole-kept"), sorted("killed-kept"));
    fs::write(folder.join("expected.json"), "{\"payloads\": {}}").unwrap();
    reader(&["check", "killed-kept", "expected.json"], folder);
}
