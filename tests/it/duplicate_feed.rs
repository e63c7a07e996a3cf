//! Published duplicates: what a feed spares, that a wrong one loses nothing, that damaged ones are
//! refused, and how they are read over HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::base::units::Time;
use uniqcrawl::config::Config;
use uniqcrawl::corpus::export::{self, JSONL, Target, export, write_duplicate_feed};
use uniqcrawl::frontier::State;
use uniqcrawl::frontier::duplicate_feed::{
    Addresses, Duplicate, FeedItem, FeedWriter, Header, Known, Reader,
};
use uniqcrawl::localweb::Site;
use uniqcrawl::store::{COUNTERS, Store, View as _};
use uniqcrawl::urls::{Normalize, PageUrl};
use uniqcrawl::web::robots::meta::Honour;

use crate::lab::Lab;
use crate::support::{Crawled, Web, clusters, config, crawl, page, prose};

pub(crate) const ARTICLES: u64 = 40;

/// Rules and brakes would spare downloads too.
pub(crate) fn plain() -> Config {
    let mut config = config();
    config.crawl.scope = uniqcrawl::urls::ScopeKind::Any;
    config.frontier.rules.learn_rules = false;
    config.frontier.yields.slow_after = 0;
    config.frontier.yields.stop_after = 0;
    config
}

fn with_feed(feed: &Path) -> Config {
    let mut config = plain();
    config.frontier.duplicate_feeds.known = vec![feed.to_owned()];
    config
}

/// A press with its articles, which links to a mirror that has each of them twice. The first copy
/// of the mirror alone links to an article of its own.
pub(crate) fn press_and_mirror() -> Web {
    let paths = |folder: &str| -> Vec<String> {
        (0..ARTICLES).map(|article| format!("/{folder}/{article}")).collect()
    };
    let front = |title: &str, seed: u64, paths: &[String]| {
        let links: Vec<&str> = paths.iter().map(String::as_str).collect();
        page(title, &prose(seed, 80), &links)
    };
    let article = |article: u64, links: &[&str]| {
        page(&format!("Article {article}"), &prose(1000 + article, 120), links)
    };
    // The articles are in the queue before any copy.
    let press_front =
        |mirror: &str| front("Press", 1, &[paths("a"), vec![mirror.to_owned()]].concat());
    let copies = [paths("mirrored/copy"), paths("mirrored/again")].concat();
    let mut press = Site::new();
    let mut mirror = Site::new().html("/", front("Mirror", 2, &copies));
    for number in 0..ARTICLES {
        press = press.html(&format!("/a/{number}"), article(number, &[]));
        let links: &[&str] = if number == 0 { &["/only/here"] } else { &[] };
        mirror = mirror
            .html(&format!("/mirrored/copy/{number}"), article(number, links))
            .html(&format!("/mirrored/again/{number}"), article(number, &[]));
    }
    mirror = mirror.html("/only/here", page("Own", &prose(77, 120), &[]));
    Web::start(2, |bases| vec![press.html("/", press_front(&format!("{}/", bases[1]))), mirror])
}

/// The press alone.
fn seed(web: &Web) -> Vec<PageUrl> {
    vec![web.url(0, "/")]
}

fn publish(crawled: &Crawled, path: &Path, addresses: Addresses) -> u64 {
    let header = Header::new("press watch", Timestamp(0), addresses, Normalize::default());
    let (tables, out) = (crawled.store.snapshot().unwrap(), Vec::new());
    let now = Timestamp(1_795_262_400_000);
    let (bytes, count) =
        write_duplicate_feed(&tables, out, &header, &Honour::default(), now).unwrap();
    let is_packed = path.extension().is_some_and(|ending| ending == "zst");
    let bytes = if is_packed { zstd::bulk::compress(&bytes, 3).unwrap() } else { bytes };
    fs::write(path, bytes).unwrap();
    count
}

fn items(path: &Path) -> Vec<FeedItem> {
    let mut reader = Reader::open(path, &Normalize::default()).unwrap();
    let mut items = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        items.push(item);
    }
    items
}

/// Makes a feed of addresses and what they are said to be copies of.
pub(crate) fn feed_of(path: &Path, pairs: &[(String, String)]) {
    let rules = Normalize::default();
    let header = Header::new("somebody", Timestamp(0), Addresses::Plain, rules);
    let mut feed = FeedWriter::new(Vec::new(), &header).unwrap();
    for (url, canonical) in pairs {
        let (url, canonical) = (url.clone(), canonical.clone());
        let doc_id = "cdd71f57317390e7-ad7b2a053b6e4176".to_owned();
        let visited = Timestamp(1_795_262_400_000);
        feed.duplicate(&Duplicate { url, doc_id, canonical, visited }).unwrap();
    }
    fs::write(path, feed.finish(None).unwrap().0).unwrap();
}

pub(crate) fn temporary(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    (folder, path)
}

fn names(crawled: &Crawled) -> Vec<String> {
    crawled.clusters().into_keys().collect()
}

#[test]
fn a_feed_spares_the_downloads_of_copies_and_loses_no_document() {
    let web = press_and_mirror();
    let publisher = Crawled::new();
    publisher.run(&plain(), &seed(&web));
    let all = names(&publisher);
    assert_eq!(all.len() as u64, ARTICLES + 3);
    let copies = |web: &Web| -> u64 {
        let targets = web.web.targets(1);
        let copies = targets.into_iter().filter(|(path, _)| path.starts_with("/mirrored/"));
        copies.map(|(_, count)| count as u64).sum()
    };
    assert_eq!(copies(&web), 2 * ARTICLES);
    for (name, addresses) in [("feed.jsonl", Addresses::Plain), ("h.zst", Addresses::Hashed)] {
        let (_folder, feed) = temporary(name);
        // The page that leads to an article is not published, though it is a copy.
        assert_eq!(publish(&publisher, &feed, addresses), 2 * ARTICLES - 1);
        assert_eq!(items(&feed).len() as u64, 2 * ARTICLES - 1);
        let text = fs::read(&feed).unwrap();
        let discloses = String::from_utf8_lossy(&text).contains("/mirrored/");
        assert_eq!(discloses, addresses == Addresses::Plain);
        web.web.forget();
        let reader = Crawled::new();
        let report = reader.run(&with_feed(&feed), &seed(&web));
        assert_eq!(names(&reader), all);
        // The page that leads on, the first of a feed that is not proved, and one in thirty.
        let fetched = copies(&web);
        assert!((3..=6).contains(&fetched), "{fetched}");
        assert_eq!(report.refused["skipped_by_feed"].unsigned_abs() + fetched, 2 * ARTICLES);
        let sum: u64 = report.addresses.values().sum();
        assert_eq!(sum, 3 * ARTICLES + 3, "every address is counted once");
        let is_skipped = |number: &u64| {
            let url = web.url(1, &format!("/mirrored/again/{number}"));
            matches!(reader.address(&url).unwrap().state, State::Known { .. })
        };
        let number = (0..ARTICLES).find(is_skipped).expect("some are skipped");
        let told = reader.explain(&web.url(1, &format!("/mirrored/again/{number}")));
        assert_eq!((told.state, told.reason), ("skipped", Some("skipped_by_feed")));
        for word in [name, "press watch", "1970-01-01", &format!("/a/{number}")] {
            assert!(told.summary.contains(word), "{word}: {}", told.summary);
        }
        let facts: BTreeMap<String, String> = told.facts.into_iter().collect();
        assert!(facts["feed was right"].contains(" looked at on this host"), "{facts:?}");
        assert!(facts.contains_key("docId of the feed"), "{facts:?}");
        // What is not fetched stands in the list of dropped copies.
        let out = tempfile::tempdir().unwrap();
        let form = Target { format: &JSONL, folder: out.path() };
        export(&reader.store, form, &export::Config::default(), Timestamp(0)).unwrap();
        let dropped = fs::read_to_string(out.path().join("duplicates.jsonl")).unwrap();
        let by_feed = dropped.lines().filter(|line| line.contains("\"skipped_by_feed\""));
        assert_eq!(by_feed.count() as u64, 2 * ARTICLES - fetched);
        // A feed that the store has is not taken in twice; in a run without it nothing changes.
        web.web.forget();
        reader.run(&plain(), &seed(&web));
        reader.run(&with_feed(&feed), &seed(&web));
        assert_eq!((copies(&web), names(&reader)), (0, all.clone()));
    }
}

#[test]
fn a_feed_that_is_wrong_loses_nothing_and_its_force() {
    let web = press_and_mirror();
    let honest = Crawled::new();
    honest.run(&plain(), &seed(&web));
    let (_folder, feed) = temporary("lies.jsonl");
    // Every article of the press is said to be a copy of another one, of itself, or of a circle.
    let url = |number: u64| web.url(0, &format!("/a/{}", number % ARTICLES)).to_string();
    let target = |number: u64| match number {
        0..20 => url(20),
        20..30 => url(number),
        _ => url(if number + 1 < ARTICLES { number + 1 } else { 30 }),
    };
    let lies: Vec<(String, String)> = (0..ARTICLES).map(|n| (url(n), target(n))).collect();
    feed_of(&feed, &lies);
    let fooled = Crawled::new();
    let report = fooled.run(&with_feed(&feed), &seed(&web));
    assert_eq!(names(&fooled), names(&honest));
    assert_eq!(report.refused.get("skipped_by_feed"), None);
    let told = fooled.explain(&web.url(0, "/a/3"));
    let words: Vec<&str> = told.facts.iter().map(|(_, value)| value.as_str()).collect();
    let lost = words.iter().any(|fact| fact.contains("not believed for this host any more"));
    assert!(lost, "{words:?}");
}

#[test]
fn a_copy_whose_canonical_page_cannot_be_had_is_fetched() {
    let folders = ["gone", "forbidden", "elsewhere", "unlinked", "down"];
    let links: Vec<String> = folders
        .iter()
        .flat_map(|folder| [format!("/copy/1/{folder}"), format!("/copy/2/{folder}")])
        .chain(["/gone".to_owned(), "/forbidden".to_owned(), "http://127.0.0.9:1/down".to_owned()])
        .collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let mut site = Site::new()
        .robots("User-agent: *\nDisallow: /forbidden\n")
        .html("/", page("Front", &prose(1, 80), &links));
    for (seed, folder) in (10..).zip(folders) {
        for copy in 1..=2 {
            let html = page(&format!("Story {seed}"), &prose(seed, 120), &[]);
            site = site.html(&format!("/copy/{copy}/{folder}"), html);
        }
    }
    let web = Web::one(site);
    let canonical = |folder: &str| match folder {
        "elsewhere" => "http://elsewhere.test/story".to_owned(),
        "down" => "http://127.0.0.9:1/down".to_owned(),
        folder => web.url(0, &format!("/{folder}")).to_string(),
    };
    let copy = |folder: &str, copy: u64| web.url(0, &format!("/copy/{copy}/{folder}"));
    let pairs: Vec<(String, String)> = folders
        .iter()
        .flat_map(|folder| [1, 2].map(|n| (copy(folder, n).to_string(), canonical(folder))))
        .collect();
    let (_folder, feed) = temporary("f.jsonl");
    feed_of(&feed, &pairs);
    let mut config = with_feed(&feed);
    config.frontier.duplicate_feeds.explore_one_in = 0;
    // The host that is down keeps its queue to the end of the run.
    config.frontier.busy_delay = Time::from_millis(60_000);
    config.frontier.host_failures_max = 1;
    config.frontier.robots_retry = Time::from_millis(60_000);
    config.crawl.limits.idle_wait_max = Time::from_millis(100);
    let crawled = Crawled::new();
    crawled.run(&config, &web.seeds());
    assert_eq!(crawled.clusters().len(), 1 + folders.len());
    for folder in folders {
        let states = [1, 2].map(|n| crawled.address(&copy(folder, n)).unwrap().state);
        let stored = states.iter().filter(|state| matches!(state, State::Stored(_))).count();
        let linked = states.iter().filter(|state| matches!(state, State::Known { .. })).count();
        // The first one stands for the page that is not there.
        assert!(stored >= 1 && stored + linked == 2, "{folder}: {states:?}");
    }
    let of = crawled.address(&copy("unlinked", 2)).unwrap().state;
    let State::Known { of, .. } = of else { panic!("{of:?}") };
    assert_eq!(of, copy("unlinked", 1).to_string());
}

/// A story at two addresses, the second of which a feed calls a copy of the first.
fn lab_with_a_known_copy(feed: &Path) -> Lab {
    let mut lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/story", "/copy"]));
    for path in ["/story", "/copy"] {
        lab.html(0, path, page("Story", &prose(7, 120), &[]));
    }
    feed_of(feed, &[(lab.url(0, "/copy").to_string(), lab.url(0, "/story").to_string())]);
    lab.config.frontier.duplicate_feeds.known = vec![feed.to_owned()];
    lab.config.frontier.duplicate_feeds.explore_one_in = 0;
    lab.run();
    let state = lab.address(0, "/copy").state;
    assert!(matches!(state, State::Known { .. }), "{state:?}");
    lab
}

#[test]
fn a_copy_is_fetched_when_the_page_that_stands_for_it_is_gone() {
    let (_folder, feed) = temporary("f.jsonl");
    let lab = lab_with_a_known_copy(&feed);
    lab.remove(0, "/story");
    lab.much_later();
    lab.much_later();
    assert_eq!(lab.crawled.explain(&lab.url(0, "/story")).reason, Some("gone"));
    let state = lab.address(0, "/copy").state;
    assert!(matches!(state, State::Stored(_)), "{state:?}");
}

#[test]
fn a_copy_is_fetched_when_the_page_that_stands_for_it_says_something_else() {
    let (_folder, feed) = temporary("f.jsonl");
    let lab = lab_with_a_known_copy(&feed);
    lab.html(0, "/story", page("Other", &prose(8, 120), &[]));
    lab.much_later();
    assert_eq!(lab.document(0, "/copy").title, "Story");
    assert_eq!(lab.document(0, "/story").title, "Other");
}

#[test]
fn a_feed_that_is_dropped_gives_back_what_it_held() {
    let (_folder, feed) = temporary("f.jsonl");
    let lab = lab_with_a_known_copy(&feed);
    let mut batch = lab.crawled.store.begin().unwrap();
    assert!(Known::drop_feed(&mut batch, 1).unwrap());
    batch.commit().unwrap();
    lab.run();
    let document = lab.document(0, "/copy");
    assert_eq!((document.copies, document.canonical), (2, lab.url(0, "/copy").to_string()));
}

#[test]
fn feeds_and_commands_of_the_version_before_are_read() {
    let (folder, feed) = temporary("f.jsonl");
    feed_of(&feed, &[("http://h/1".to_owned(), "http://h/".to_owned())]);
    let text = fs::read_to_string(&feed).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let head = lines[0].replace("uniqcrawl duplicate feed", "uniqcrawl verdicts");
    let before = format!("{head}\n{}\n", lines[1]);
    let mut end: serde_json::Value = serde_json::from_str(lines[2]).unwrap();
    let sum = xxhash_rust::xxh3::xxh3_128(before.as_bytes());
    let end = end.as_object_mut().unwrap();
    let count = end.remove("duplicates").unwrap();
    assert_eq!(count, 1);
    let end = format!(r#"{{"end":true,"verdicts":1,"xxh3":"{sum:032x}"}}"#);
    fs::write(&feed, format!("{before}{end}\n")).unwrap();
    let web = Web::one(Site::new().html("/", page("Front", &prose(1, 80), &[])));
    let path = folder.path();
    fs::write(path.join("s.txt"), web.web.url(0)).unwrap();
    let arguments = ["--seeds", "s.txt", "--allow-private", "--delay", "0", "--known", "f.jsonl"];
    let output = crawl(&arguments, path);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let listed = crawl(&["verdicts", "list"], path);
    assert_eq!(listed.status.code(), Some(0), "{listed:?}");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("1: f.jsonl of somebody"));
    let note = "note: `crawl verdicts` is now `crawl duplicate-feed`";
    assert!(String::from_utf8_lossy(&listed.stderr).contains(note), "{listed:?}");
}

#[test]
fn feeds_of_a_store_are_listed_and_dropped() {
    let web = Web::one(Site::new().html("/", page("Front", &prose(1, 80), &[])));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("s.txt"), web.web.url(0)).unwrap();
    feed_of(&path.join("good.jsonl"), &[("http://h/1".to_owned(), "http://h/".to_owned())]);
    let arguments = ["--seeds", "s.txt", "--allow-private", "--delay", "0"];
    let output = crawl(&[&arguments[..], &["--known", "good.jsonl"]].concat(), path);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let listed = crawl(&["duplicate-feed", "list"], path);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("1: good.jsonl of somebody") && !listed.contains("2: "), "{listed}");
    assert_eq!(crawl(&["duplicate-feed", "drop", "2"], path).status.code(), Some(2));
    assert_eq!(crawl(&["duplicate-feed", "drop", "1"], path).status.code(), Some(0));
    let listed = crawl(&["duplicate-feed", "list"], path);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("not believed"), "{listed:?}");
}

#[test]
fn damaged_feeds_are_refused_with_their_line_and_nothing_is_crawled() {
    let web = Web::one(Site::new().html("/", page("Front", &prose(1, 80), &[])));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("s.txt"), web.web.url(0)).unwrap();
    let good = path.join("good.jsonl");
    feed_of(&good, &[1, 2, 3].map(|n| (format!("http://h/{n}"), "http://h/".to_owned())));
    let text = fs::read_to_string(&good).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("cut.jsonl", text[..text.len() - 20].into(), "cut.jsonl:5: the feed is cut short"),
        ("short.jsonl", lines[..4].concat().into(), "short.jsonl:5: the feed is cut short"),
        (
            "less.jsonl",
            [lines[0], lines[1], lines[4]].concat().into(),
            "less.jsonl:3: the feed has 1",
        ),
        (
            "altered.jsonl",
            text.replace("http://h/2", "http://h/4").into(),
            "altered.jsonl:5: the feed was altered",
        ),
        ("more.jsonl", format!("{text}x\n").into(), "more.jsonl:6: there is more"),
        (
            "line.jsonl",
            text.replacen("\"date\"", "\"day\"", 1).into(),
            "line.jsonl:2: the line is no duplicate",
        ),
        (
            "version.jsonl",
            text.replace("\"version\":1", "\"version\":9").into(),
            "version.jsonl:1: the feed has version 9",
        ),
        (
            "other.jsonl",
            b"{\"url\":\"http://h/\"}\n".to_vec(),
            "other.jsonl:1: this is no duplicate feed",
        ),
        ("page.html", b"<html>".to_vec(), "page.html:1: this is no duplicate feed"),
        ("empty.jsonl", Vec::new(), "empty.jsonl:1: this is no duplicate feed"),
        (
            "rules.jsonl",
            text.replace("\"drop_www\":false", "\"drop_www\":true").into(),
            "drop_www = true",
        ),
        (
            "cut.zst",
            {
                let packed = zstd::bulk::compress(text.as_bytes(), 3).unwrap();
                packed[..packed.len() - 8].to_vec()
            },
            "cut.zst:",
        ),
    ];
    let run = |feed: &str| {
        let arguments = ["--seeds", "s.txt", "--allow-private", "--delay", "0", "--known", feed];
        let output = crawl(&arguments, path);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (name, bytes, says) in cases {
        fs::write(path.join(name), bytes).unwrap();
        let (code, told) = run(name);
        assert_eq!(code, Some(2), "{name}: {told}");
        assert!(told.contains(says), "{name} does not say `{says}`: {told}");
    }
    assert_eq!(run("missing.jsonl").0, Some(2));
    assert_eq!(run(".").0, Some(2), "a folder is no feed");
    assert_eq!(web.web.requests().len(), 0, "nothing is crawled");
    let (code, told) = run("good.jsonl");
    assert_eq!(code, Some(0), "{told}");
}

fn start(folder: &Path, store: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["--seeds", "seeds.txt", "--allow-private", "--delay", "5ms", "--quiet"])
        .args(["--known", "feed.zst", "--config", "c.toml", "--store", store])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_crawl_with_a_feed_that_is_killed_again_and_again_ends_like_one_that_is_not() {
    let web = press_and_mirror();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let seeds: Vec<String> = seed(&web).iter().map(ToString::to_string).collect();
    fs::write(path.join("seeds.txt"), seeds.join("\n")).unwrap();
    fs::write(
        path.join("c.toml"),
        "[frontier.rules]\nlearn_rules = false\n[crawl]\nscope = \"any\"\nprobe_error_page = false\n",
    )
    .unwrap();
    let publisher = Crawled::new();
    publisher.run(&plain(), &seed(&web));
    publish(&publisher, &path.join("feed.zst"), Addresses::Plain);
    for millis in [150, 300, 450, 600] {
        let mut child = start(path, "killed");
        std::thread::sleep(Duration::from_millis(millis));
        child.kill().unwrap();
        child.wait().unwrap();
        if path.join("killed/store.redb").exists() {
            let check = crawl(&["check", "--store", "killed"], path);
            assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
        }
    }
    assert!(start(path, "killed").wait().unwrap().success());
    let store = Store::open(&path.join("killed"), 1 << 24).unwrap();
    crate::support::check_clean(&store);
    assert_eq!(clusters(&store).into_keys().collect::<Vec<_>>(), names(&publisher));
    let skipped = store.snapshot().unwrap().get(COUNTERS, "addresses.skipped_by_feed").unwrap();
    let skipped = skipped.unwrap_or(0);
    assert!(skipped > ARTICLES, "{skipped}");
}

#[test]
fn pages_that_ask_not_to_be_kept_and_documents_that_are_gone_are_not_published() {
    let lab = Lab::new(1);
    let paths: Vec<String> = ["open", "noarchive", "noai", "half", "gone"]
        .iter()
        .flat_map(|kind| [format!("/{kind}"), format!("/copies/{kind}")])
        .collect();
    let links: Vec<&str> = paths.iter().map(String::as_str).collect();
    lab.html(0, "/", page("Front", &prose(1, 80), &links));
    for (at, path) in paths.iter().enumerate() {
        let html = page("Story", &prose(20 + at as u64 / 2, 120), &[]);
        let asks = match (path.trim_start_matches("/copies").trim_start_matches('/'), at % 2) {
            ("noarchive", _) | ("half", 1) => "noarchive",
            ("noai", _) => "noai",
            _ => "all",
        };
        let mark = format!("<head><meta name=robots content={asks}>");
        lab.html(0, path, html.replace("<head>", &mark));
    }
    lab.run();
    let (_folder, feed) = temporary("f.jsonl");
    let published = || -> BTreeSet<String> {
        publish(&lab.crawled, &feed, Addresses::Plain);
        let text = fs::read_to_string(&feed).unwrap();
        let rows =
            text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let urls = rows.filter_map(|row| Some(row["url"].as_str()?.to_owned()));
        urls.map(|url| url.rsplit('/').next().unwrap().to_owned()).collect()
    };
    assert_eq!(published(), ["gone", "open"].map(str::to_owned).into());
    for path in ["/gone", "/copies/gone"] {
        lab.remove(0, path);
    }
    lab.much_later();
    lab.much_later();
    assert_eq!(published(), ["open"].map(str::to_owned).into());
}
