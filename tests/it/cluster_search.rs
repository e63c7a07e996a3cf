//! Search on a corpus in a cluster finds what a search in a store of the same documents finds, in
//! any number of parts and processes, and follows the corpus.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uniqcrawl::corpus::dedup::{Corpus as _, Popularity};
use uniqcrawl::corpus::export::ExportPart;
use uniqcrawl::corpus::search::{Config, Error, Followed};
use uniqcrawl::corpus::shared::{SharedCorpus, SharedIndex};

use crate::cluster::Nodes;
use crate::cluster_commands::done;
use crate::cluster_corpus::{OPTIONS, open};
use crate::cluster_failures::{check, doubled, place};
use crate::cluster_service::Served;
use crate::service::{escaped, get, post};
use crate::shelf::Came;
use crate::support::{crawl, prose};

const HAN: [&str; 24] = [
    "数据库",
    "索引",
    "桥梁",
    "港口",
    "新闻",
    "工程",
    "城市",
    "经济",
    "历史",
    "铁路",
    "大学",
    "医院",
    "气候",
    "卫星",
    "能源",
    "农业",
    "海洋",
    "图书馆",
    "音乐",
    "博物馆",
    "森林",
    "机器人",
    "河流",
    "火车",
];

/// A text of which words are in other texts too.
fn text(number: u64) -> String {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    if number.is_multiple_of(2) {
        let mut words: Vec<String> = (0..40).map(|_| format!("word{}", next(300))).collect();
        words.push(prose(number, 40));
        return words.join(" ");
    }
    let words = (0..60).map(|at| {
        let mark = if at % 9 == 8 { "。" } else { "" };
        format!("{}{mark}", HAN[next(HAN.len() as u64) as usize])
    });
    words.chain([prose(number, 40)]).collect()
}

fn lines(numbers: std::ops::Range<u64>) -> String {
    let line = |n: u64| {
        let title = if n.is_multiple_of(2) {
            format!("Of word{n}")
        } else {
            format!("关于{}", HAN[n as usize % 24])
        };
        let url = format!("http://site{}.example/{n}", n % 9);
        json!({"url": url, "title": title, "text": text(n)}).to_string() + "\n"
    };
    numbers.map(line).collect()
}

/// Asks many questions of one kind; a line of answers for each.
#[track_caller]
fn asked(folder: &Path, arguments: &[&str], mode: &str) -> Vec<Value> {
    let mut questions = Vec::new();
    for n in 0..6 {
        // Halves of two texts, some words of two, and what nobody has.
        let half = |n| text(n).chars().take(90).collect::<String>();
        let both = format!("{} {}", half(n), half(n + 14));
        let asked = match mode {
            "--words" => both.split(' ').step_by(5).take(6).collect::<Vec<_>>().join(" "),
            "--sentence" => half(n).chars().skip(40).collect(),
            _ => both,
        };
        writeln!(questions, "{}", json!({"id": n, "text": asked})).unwrap();
    }
    writeln!(questions, "{}", json!({"id": "none", "text": "nobody says that"})).unwrap();
    fs::write(folder.join("questions"), questions).unwrap();
    let mode = Some(mode).filter(|mode| !mode.is_empty());
    let out = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["search", "--jsonl", "-n", &N.to_string()])
        .args(mode)
        .args(arguments)
        .current_dir(folder)
        .stdin(File::open(folder.join("questions")).unwrap())
        .output()
        .unwrap();
    assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    let all = String::from_utf8(out.stdout).unwrap();
    all.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs a command and kills it, each time later, until it comes to its end.
fn killed(folder: &Path, arguments: &[&str]) {
    let mut wait = Duration::from_millis(30);
    loop {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(wait);
        if child.try_wait().unwrap().is_some_and(|status| status.success()) {
            return;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        wait *= 2;
    }
}

/// Answers that are asked for.
const N: usize = 15;

const MODES: [&str; 3] = ["", "--sentence", "--words"];

/// What was found: all but scores, and these. Of those by words that are as good as the last one,
/// others may have been taken.
fn hits(line: &Value) -> (Vec<Value>, Vec<f64>) {
    let mut hits = line["hits"].as_array().unwrap().clone();
    let score = |hit: &Value| hit["score"].as_f64();
    if let Some(last) = hits.last().and_then(score).filter(|_| hits.len() == N) {
        hits.retain(|hit| score(hit).is_some_and(|score| score > last + 1e-4));
    }
    let scores = hits.iter_mut().map(|hit| hit["score"].take().as_f64().unwrap_or(0.0)).collect();
    (hits, scores)
}

#[track_caller]
fn assert_alike(folder: &Path, one: &[&str], other: &[&str]) -> usize {
    let mut found = 0;
    for mode in MODES {
        let answers = [asked(folder, one, mode), asked(folder, other, mode)];
        assert_eq!(answers[0].len(), answers[1].len());
        for (one, other) in answers[0].iter().zip(&answers[1]) {
            let ((one, scores), (other, of_other)) = (hits(one), hits(other));
            found += one.len();
            assert_eq!(one, other, "{mode}");
            let apart = scores.iter().zip(of_other).map(|(one, other)| (one - other).abs());
            assert!(apart.fold(0.0, f64::max) < 1e-4, "{mode}");
        }
    }
    found
}

#[test]
fn a_cluster_finds_what_a_store_of_the_same_documents_finds_whoever_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let url = format!("cluster:{}", Nodes::shared().url("searched"));
    let import = |numbers| {
        fs::write(folder.join("some.jsonl"), lines(numbers)).unwrap();
        done(folder, &["import", "--store", &url, "--texts", "texts", "some.jsonl"]);
    };
    import(0..120);
    done(folder, &["store", "copy", &url, "copied"]);
    let copied = ["--store", "copied"];
    let one = ["--store", &url, "--index", "one"];
    let three =
        ["--store", &url, "--index", "three", "--part", "1/3", "--part", "2/3", "--part", "3/3"];
    // Whoever is killed while the index is made, or brought up to date, goes on.
    let ask = [&["search"][..], &one, &["--words", "word7"]].concat();
    killed(folder, &ask);
    assert!(assert_alike(folder, &copied, &three) > 30);

    import(120..240);
    killed(folder, &ask);
    done(folder, &["store", "copy", &url, "again"]);
    // The figures of an index are those of its documents, however they came.
    assert_alike(folder, &["--store", "again"], &one);
    assert_alike(folder, &["--store", "again"], &three);

    // As it is, in the order of copies, and shown to people.
    done(folder, &[&["search", "--no-update", "--sort", "copies"][..], &one, &["word7"]].concat());
    let told = |arguments: &[&str]| {
        let out = crawl(&[&["search"][..], arguments].concat(), folder);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {out:?}");
        String::from_utf8(out.stderr).unwrap()
    };
    assert!(told(&["--store", &url, "x"]).contains("--index DIR"));
    let missing = ["--store", &url, "--index", "none", "--no-update", "x"];
    assert!(told(&missing).contains("without --no-update"));
    assert!(told(&["--store", "copied", "--index", "one", "x"]).contains("--index is for"));
    let mixed = ["--store", &url, "--index", "one", "--part", "1/3", "--part", "1/2", "x"];
    assert!(told(&mixed).contains("--part"));
    // Parts of another number, and another corpus.
    let failed = |store: &str, index: &str, part: &str| {
        let ask = ["search", "--store", store, "--index", index, "--part", part, "x"];
        let out = crawl(&ask, folder);
        assert_eq!(out.status.code(), Some(1), "{out:?}");
        let told = String::from_utf8(out.stderr).unwrap();
        assert!(told.contains("another corpus, or of another part"), "{told}");
    };
    failed(&url, "three", "1/2");
    let other = format!("cluster:{}", Nodes::shared().url("searched-not"));
    done(folder, &["import", "--store", &other, "--texts", "texts", "some.jsonl"]);
    failed(&other, "one", "1/1");
}

fn page(n: u64) -> Came {
    Came::new(&format!("http://a.example/{n}"), &format!("Title {n}"), &text(n))
}

fn made(corpus: &SharedCorpus, folder: &Path) -> SharedIndex {
    let (folder, part) = (folder.join("index"), ExportPart::default());
    SharedIndex::open(corpus, &folder, part, &Config::default()).unwrap()
}

/// The URL of the document that has a text.
fn found(index: &SharedIndex, n: u64) -> Option<String> {
    let hits = index.search.text(&text(n), 1).unwrap();
    hits.first().filter(|hit| hit.cosine > 0.99).map(|hit| hit.url.clone())
}

fn followed(index: &SharedIndex, corpus: &SharedCorpus) -> [u64; 3] {
    let Followed { indexed, removed, unreadable } = index.follow(corpus).unwrap();
    [indexed, removed, unreadable]
}

#[test]
fn the_index_follows_what_comes_changes_goes_and_merges() {
    let (nodes, folder) = (Nodes::shared(), tempfile::tempdir().unwrap());
    let texts = folder.path().join("texts");
    let mut corpus = doubled(nodes, "follow-search", &texts);
    let index = made(&corpus, folder.path());
    assert!(!index.search.has_followed());
    assert_eq!(followed(&index, &corpus), [2, 0, 0]);
    assert_eq!(followed(&index, &corpus), [0; 3]);
    // Two that are merged are one.
    check(&corpus, true);
    assert_eq!(corpus.look_again().unwrap().merged, 1);
    let changes = followed(&index, &corpus);
    assert_eq!((changes[1], index.search.documents()), (1, 1), "{changes:?}");
    // What comes, in the index as it was left.
    for n in 0..6 {
        place(&mut corpus, &page(n));
    }
    drop(index);
    let index = made(&corpus, folder.path());
    assert_eq!(followed(&index, &corpus), [6, 0, 0]);
    assert_eq!(found(&index, 2).as_deref(), Some("http://a.example/2"));
    // Another copy is the canonical one.
    let copy = Came { popularity: 9, ..Came::new("http://b.example/2", "Other", &text(2)) };
    let document = place(&mut corpus, &copy);
    assert_eq!(followed(&index, &corpus)[0], 1);
    assert_eq!(found(&index, 2).as_deref(), Some("http://b.example/2"));
    // Popularity alone can change that.
    let popular = Popularity::Score(99);
    corpus.set_popularity(document, "http://a.example/2", popular).unwrap();
    followed(&index, &corpus);
    assert_eq!(found(&index, 2).as_deref(), Some("http://a.example/2"));
    // One page goes, whatever becomes of its document, and is not looked at again and again.
    let document = corpus.find_url("http://a.example/4").unwrap().unwrap();
    corpus.leave(document, "http://a.example/4").unwrap();
    assert_eq!(followed(&index, &corpus), [0, 1, 0]);
    assert_eq!((found(&index, 4), index.search.documents()), (None, 6));
    drop(index);
    let index = made(&corpus, folder.path());
    assert_eq!(followed(&index, &corpus), [0; 3]);
    drop(index);
    texts_that_are_away_are_counted(corpus, folder.path());
}

/// Texts that are away are counted, and what was known of them stays.
fn texts_that_are_away_are_counted(mut corpus: SharedCorpus, folder: &Path) {
    let texts = folder.join("texts");
    let reopened = |name| open(&Nodes::shared().url(name), &texts, OPTIONS);
    let index = made(&corpus, folder);
    let document = corpus.find_url("http://a.example/2").unwrap().unwrap();
    corpus.set_popularity(document, "http://b.example/2", Popularity::Score(999)).unwrap();
    place(&mut corpus, &page(8));
    drop(corpus);
    let away = folder.join("away");
    fs::rename(&texts, &away).unwrap();
    let corpus = reopened("follow-search");
    assert_eq!(followed(&index, &corpus), [0, 0, 2]);
    assert_eq!(found(&index, 2).as_deref(), Some("http://a.example/2"));
    fs::rename(&away, &texts).unwrap();
    assert_eq!(followed(&index, &corpus), [2, 0, 0]);
    assert_eq!(found(&index, 2).as_deref(), Some("http://b.example/2"));
    // Nobody else writes it meanwhile.
    let other = made(&corpus, folder);
    place(&mut reopened("follow-search"), &page(9));
    assert_eq!(followed(&other, &corpus), [1, 0, 0]);
    index.clear().unwrap();
    assert!(!index.search.has_followed());
    assert_eq!(followed(&index, &corpus)[0], 8);
    let wrong = reopened("follow-search-not");
    assert!(matches!(made(&wrong, folder).follow(&wrong), Err(Error::Other(_))));
}

/// Waits until no part is missing.
#[track_caller]
fn whole(service: &Served) {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let told = get(service.address, "/v1/search?q=word7&mode=words");
        if told.status == 200 && told.json()["partial"] == false {
            return;
        }
        assert!(Instant::now() < end, "{} {}", told.status, told.body);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Services find what one index of all documents does.
fn assert_as_one_index(folder: &Path, url: &str, services: &[&Served]) {
    done(folder, &["search", "--store", url, "--index", "all", "--rebuild"]);
    for (mode, flag) in
        [("text", None), ("sentence", Some("--sentence")), ("words", Some("--words"))]
    {
        for n in [3, 6] {
            let query: String = text(n).chars().take(60).collect();
            let own = ["search", "--json", "-n", "10", "--store", url, "--index", "all", &query];
            let own = done(folder, &own.into_iter().chain(flag).collect::<Vec<_>>());
            let own: Vec<Value> = serde_json::from_str(&own).unwrap();
            assert!(!own.is_empty());
            let path = format!("/v1/search?limit=10&mode={mode}&q={}", escaped(&query));
            for service in services {
                let told = get(service.address, &path).json();
                assert_eq!(told["documents"], 80, "{told}");
                let rows = told["rows"].as_array().unwrap();
                assert_eq!(rows.len(), own.len(), "{mode}");
                // Of those that are as good as the last one, others may have been taken.
                let last = own[own.len() - 1]["score"].as_f64().map_or(-1.0, |last| last + 1e-3);
                let sure = own.iter().filter(|own| own["score"].as_f64().unwrap_or(0.0) > last);
                for (row, own) in rows.iter().zip(sure) {
                    for name in
                        ["docId", "url", "title", "keywords", "sentence", "number", "copies"]
                    {
                        assert_eq!(row[name], own[name], "{mode} {name}");
                    }
                    for name in ["cosine", "score"] {
                        let of = |row: &Value| row[name].as_f64().unwrap_or_default();
                        assert!((of(row) - of(own)).abs() < 1e-4, "{mode} {name}");
                    }
                }
            }
        }
    }
}

#[test]
fn services_ask_each_other_for_their_parts_and_say_which_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let url = format!("cluster:{}", Nodes::shared().url("peers"));
    fs::write(folder.join("some.jsonl"), lines(0..80)).unwrap();
    done(folder, &["import", "--store", &url, "--texts", "texts", "some.jsonl"]);
    let fast = "[api]\nsearch_update = \"50ms\"\n[search]\npeer_time = \"20s\"\n";
    fs::write(folder.join("fast.toml"), fast).unwrap();
    let part = |part: &str, more: &[&str]| {
        let own = ["--config", "fast.toml", "--index", "index", "--part", part];
        Served::start(folder, &url, &[&own[..], more].concat())
    };
    let first = part("1/2", &[]);
    let peers = format!("http://{}", first.address);
    let second = part("2/2", &["--search-peers", &peers]);
    let both = format!("{peers},http://{}", second.address);
    let front = Served::start(folder, &url, &["--config", "fast.toml", "--search-peers", &both]);
    whole(&second);
    whole(&front);

    assert_as_one_index(folder, &url, &[&second, &front]);
    let half = get(first.address, "/v1/search?q=word7&mode=words").json();
    assert_eq!(
        (&half["partial"], &half["missingParts"]),
        (&true.into(), &json!(["2/2"])),
        "{half}"
    );

    // A document that comes later is found; one that dies is told.
    let article = json!({"url": "http://new.example/", "title": "New", "content": text(900)});
    let sent =
        post(first.address, "/v1/articles", "application/json", article.to_string().as_bytes());
    let id = sent.json()["docId"].clone();
    let path = format!("/v1/search?limit=1&q={}", escaped(&text(900)));
    let end = Instant::now() + Duration::from_secs(30);
    while get(front.address, &path).json()["rows"][0]["docId"] != id {
        assert!(Instant::now() < end, "the index does not follow");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(first);
    for service in [&second, &front] {
        let told = get(service.address, &path).json();
        assert_eq!((&told["partial"], &told["missingParts"]), (&true.into(), &json!(["1/2"])));
        assert_eq!(told["unanswered"][&peers], "it cannot be reached", "{told}");
    }
    drop(second);
    get(front.address, &path).is(503, "search_not_ready");
    let bad = ["serve", "--store", &url, "--listen", "127.0.0.1:0", "--search-peers", "here"];
    let bad = crawl(&bad, folder);
    assert!(String::from_utf8_lossy(&bad.stderr).contains("http://HOST:PORT"), "{bad:?}");
}
