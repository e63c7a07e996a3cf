//! Why an address is not in the corpus: a word and a sentence for every way, and sums that are
//! those of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::base::units::Time;
use uniqcrawl::corpus::explain::{Explanation, Language, explain, explain_in};
use uniqcrawl::frontier::{
    ADDRESSES, Config, Frontier, Offer, Purpose, Rank, Reason, RobotsAnswer, Settlement, State,
    Told, Visited,
};
use uniqcrawl::localweb::{Body, Page, Site};
use uniqcrawl::store::{COUNTERS, Coded as _, Store, View as _};
use uniqcrawl::urls::{PageUrl, Scope, ScopeKind};

use crate::lab::Lab;
use crate::support::{Crawled, Web, config, page, prose};

#[test]
fn every_reason_has_a_code_a_word_and_a_sentence_of_its_own() {
    let words: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    let sentences: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.describe()).collect();
    assert_eq!((words.len(), sentences.len()), (Reason::ALL.len(), Reason::ALL.len()));
    for reason in Reason::ALL {
        assert_eq!(Reason::from_code(*reason as u64), Some(*reason));
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(reason.as_str().bytes().all(plain));
        assert!(reason.describe().len() > 10, "{reason}");
    }
    assert_eq!(Reason::from_code(0), None, "0 stands for no reason in stored rows");
}

#[test]
fn every_reason_is_counted_and_explained_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(folder.path(), 1 << 24).unwrap();
    let now = Timestamp(1_800_000_000_000);
    let url = |reason: &Reason| PageUrl::parse(&format!("http://h/{reason}")).unwrap();
    let mut batch = store.begin().unwrap();
    let scope = Scope::new(ScopeKind::Any, &[]);
    let mut settings = Config { delay: Time::from_millis(0), ..Config::default() };
    settings.discover.usual_place = false;
    let mut frontier = Frontier::open(&mut batch, settings, scope, now).unwrap();
    for reason in Reason::ALL {
        let url = url(reason);
        let offer =
            Offer { url: &url, depth: 0, rank: Rank::Seed, hops: 0, from: None, nofollow: false };
        frontier.offer(&mut batch, &offer, now).unwrap();
    }
    let mut waiting: BTreeMap<String, Reason> =
        Reason::ALL.iter().map(|reason| (url(reason).to_string(), *reason)).collect();
    while let Some(lease) = frontier.lease(&mut batch, now).unwrap() {
        let settlement = match lease.purpose {
            Purpose::Page => Settlement::Refused(waiting.remove(lease.url.as_str()).unwrap()),
            Purpose::Robots { .. } => Settlement::Robots(RobotsAnswer::None),
            Purpose::Sitemap => unreachable!("the usual place is not asked"),
            Purpose::Lookup => unreachable!("without delay there are no groups"),
        };
        let visited = Visited::read(&batch, &lease, Told::status(404, now)).unwrap();
        frontier.settle(&mut batch, visited, settlement).unwrap();
    }
    assert!(waiting.is_empty(), "{waiting:?}");
    frontier.flush(&mut batch).unwrap();
    batch.commit().unwrap();
    let snapshot = store.snapshot().unwrap();
    for reason in Reason::ALL {
        let found = explain(&snapshot, &url(reason)).unwrap();
        assert_eq!((found.state, found.reason), ("refused", Some(reason.as_str())));
        assert!(found.summary.contains(reason.describe()), "{}", found.summary);
        is_told_in_chinese(
            &found,
            &explain_in(&snapshot, &url(reason), Language::Chinese).unwrap(),
        );
        let counter = format!("addresses.refused.{reason}");
        assert_eq!(snapshot.get(COUNTERS, &counter).unwrap(), Some(1), "{reason}");
    }
}

/// What is told in Chinese is the same, and has no words of ours in English.
#[track_caller]
fn is_told_in_chinese(english: &Explanation, chinese: &Explanation) {
    assert_eq!((&english.url, english.state), (&chinese.url, chinese.state));
    assert_eq!((english.reason, english.facts.len()), (chinese.reason, chinese.facts.len()));
    let names = "robots.txt docId HTML HTTP IP RSS Atom JSON nofollow --max-depth --allow-private \
                 `crawl check`";
    let is_ours = |word: &&str| {
        let is_address = word.contains(['/', '?']) || word.trim_end_matches('.').contains('.');
        let is_time = word.starts_with(|c: char| c.is_ascii_digit());
        word.contains(|c: char| c.is_ascii_alphabetic())
            && !is_address
            && !is_time
            && !names.contains(word)
    };
    let no_english = |text: &str| {
        let words = text.split(|c: char| c.is_whitespace() || !c.is_ascii());
        let ours: Vec<&str> = words.filter(is_ours).collect();
        assert!(ours.is_empty(), "{ours:?} in {text}");
    };
    no_english(&chinese.summary);
    for ((name, _), (chinese_name, value)) in english.facts.iter().zip(&chinese.facts) {
        no_english(chinese_name);
        // These are not our words.
        if !["title", "docId", "alias of docId", "asks for"].contains(&name.as_str()) {
            no_english(value);
        }
    }
}

#[test]
fn every_fact_that_is_told_has_a_name_in_chinese() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/corpus/explain");
    let read = |file: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(file.unwrap().path()).unwrap()
    };
    let source: String = std::fs::read_dir(folder).unwrap().map(read).collect();
    let calls = source.split("facts.add(").skip(1).map(str::trim_start);
    let direct = calls.filter_map(|call| call.strip_prefix('"')?.split_once('"'));
    let lists = source.lines().filter_map(|line| line.trim().strip_prefix("(\"entries "));
    let listed =
        lists.filter_map(|line| line.split_once('"')).map(|(name, _)| format!("entries {name}"));
    let names: BTreeSet<String> = direct.map(|(name, _)| name.to_owned()).chain(listed).collect();
    assert!(names.len() > 50, "{names:?}");
    for name in names {
        assert!(source.contains(&format!("(\"{name}\", \"")), "`{name}` has no Chinese name");
    }
}

/// A site on which addresses end in many ways.
fn odd_site() -> Site {
    let long = format!("/{}", "x".repeat(2_100));
    let links = [
        "/a",
        "/copy",
        "/no",
        "/gone",
        "/broken",
        "/png",
        "/empty",
        "/hidden",
        "/moved",
        "/void",
        "/cut",
        "/x/y/x/y/x/y/x/y",
        "/?p=1&p=2&p=3&p=4&p=5&p=6",
        "http://other.test/",
        &long,
        "/bomb",
        "/busy",
        "/bad-coding",
        "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21",
    ];
    let noindex = page("N", &prose(5, 80), &[]);
    let bomb = zstd::bulk::compress(&vec![b'a'; 16 << 20], 3).unwrap();
    Site::new()
        .robots("User-agent: *\nDisallow: /no\n")
        .html("/", page("Front", &prose(1, 80), &links))
        .html("/a", page("A", &prose(2, 80), &[]))
        .html("/copy", page("A", &prose(2, 80), &[]))
        .page("/broken", Page::status(500))
        .page("/png", Page::bytes("image/png", *b"png"))
        .html("/empty", "<html></html>")
        .page("/hidden", Page::html(noindex).header("X-Robots-Tag", "noindex"))
        .page("/moved", Page::redirect(301, "/a"))
        .page("/void", Page::status(302))
        .page("/cut", Page::body(Body::Close))
        .page("/bomb", Page::bytes("text/html", bomb).header("Content-Encoding", "zstd"))
        .page("/busy", Page::status(503))
        .page("/bad-coding", Page::html("x").header("Content-Encoding", "gzip"))
}

#[test]
fn the_sums_of_the_report_are_the_addresses_of_the_store() {
    let web = Web::one(odd_site());
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.retries_max = 1;
    config.frontier.busy_retries_max = 1;
    config.crawl.limits.pages_max = 6;
    // Also while addresses wait, and when a second run refuses more.
    let mut refused_before: BTreeMap<String, i64> = BTreeMap::new();
    for pages_max in [6, 0] {
        config.crawl.limits.pages_max = pages_max;
        let report = crawled.run(&config, &web.seeds());
        let snapshot = crawled.store.snapshot().unwrap();
        let mut found: BTreeMap<&str, u64> =
            ["queued", "redirect", "refused", "skipped", "stored"].map(|state| (state, 0)).into();
        let mut refused: BTreeMap<String, i64> = BTreeMap::new();
        for entry in snapshot.rows(ADDRESSES).unwrap() {
            let state = match entry.unwrap().row().unwrap().state {
                State::Queued => "queued",
                State::Stored(_) => "stored",
                State::Redirect(_) => "redirect",
                State::Skipped { .. } | State::Known { .. } => "skipped",
                State::Refused(reason) => {
                    *refused.entry(reason.to_string()).or_default() += 1;
                    "refused"
                }
            };
            *found.get_mut(state).unwrap() += 1;
        }
        assert_eq!(report.addresses, found);
        assert_eq!(report.addresses.values().sum::<u64>(), snapshot.len(ADDRESSES).unwrap());
        assert_eq!((report.queued, report.copies), (found["queued"], found["stored"]));
        let mut sum = refused_before.clone();
        for (reason, count) in &report.refused {
            *sum.entry(reason.clone()).or_default() += count;
        }
        assert_eq!(sum, refused);
        refused_before = refused;
        for entry in snapshot.rows(ADDRESSES).unwrap() {
            let url = PageUrl::parse(entry.unwrap().key().unwrap()).unwrap();
            let told = |language| explain_in(&snapshot, &url, language).unwrap();
            is_told_in_chinese(&told(Language::English), &told(Language::Chinese));
        }
    }
    let reasons: Vec<&str> = refused_before.keys().map(String::as_str).collect();
    assert_eq!(
        reasons,
        [
            "bad_encoding",
            "bad_redirect",
            "bad_response",
            "busy",
            "decompression_bomb",
            "http_error",
            "no_text",
            "noindex",
            "not_a_page",
            "out_of_scope",
            "path_too_deep",
            "repeated_parameter",
            "repeated_segment",
            "robots_disallowed",
            "url_too_long",
        ]
    );
}

#[test]
fn the_log_tells_visits_refusals_and_hosts_that_are_left_alone() {
    let web = Web::one(odd_site());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.txt"), web.web.url(0)).unwrap();
    let settings = "[crawl]\nidle_wait_max = \"500ms\"\n[frontier]\nbusy_delay = \"20ms\"\n\
        retries_max = 0\nbusy_retries_max = 1\n";
    std::fs::write(folder.path().join("c.toml"), settings).unwrap();
    let run = |level: &[&str], store: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["--seeds", "s.txt", "--config", "c.toml", "--store", store])
            .args(["--allow-private", "--delay", "0", "--contact", "a@b", "--log-json"])
            .args(level)
            .env_remove("UNIQCRAWL_LOG")
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let lines =
            text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines
            .map(|line| {
                let fields = &line["fields"];
                let level = line["level"].as_str().unwrap();
                let what = fields["message"].as_str().unwrap();
                let who = fields["url"].as_str().or(fields["host"].as_str()).unwrap_or("");
                let why = fields["reason"].as_str().or(fields["was"].as_str()).unwrap_or("");
                format!("{level} {what} {} {why}", who.trim_start_matches(&web.web.url(0)))
            })
            .collect::<Vec<String>>()
    };
    assert_eq!(run(&[], "quiet"), Vec::<String>::new());
    let some = run(&["-v"], "some");
    let host = web.web.url(0).trim_end_matches('/').to_owned();
    assert!(some.contains(&format!("INFO host is left alone {host} busy")), "{some:?}");
    assert!(some.contains(&format!("INFO host answers again {host} busy")), "{some:?}");
    assert!(some.iter().all(|line| line.starts_with("INFO ")), "{some:?}");
    let all = run(&["-vv"], "all");
    for line in [
        "DEBUG visited a ",
        "DEBUG no answer cut ",
        "DEBUG refused gone http_error",
        "DEBUG refused no robots_disallowed",
        "DEBUG refused x/y/x/y/x/y/x/y repeated_segment",
        "DEBUG refused busy busy",
    ] {
        assert_eq!(all.iter().filter(|found| *found == line).count(), 1, "{line}: {all:#?}");
    }
}

#[test]
fn links_beyond_the_limit_of_a_page_are_counted_and_told() {
    let mut lab = Lab::new(1);
    lab.config.extract.limits.links_max = 10;
    let front = |links: u64| {
        let paths: Vec<String> = (0..links).map(|link| format!("/{link}.html")).collect();
        // What is no link, and what was there before, does not count.
        let other = ["/0.html", "#top", "mailto:a@b", "javascript:void(0)", ""];
        let links: Vec<&str> = paths.iter().map(String::as_str).chain(other).collect();
        page("Front", &prose(1, 80), &links)
    };
    let counted = || {
        let snapshot = lab.crawled.store.snapshot().unwrap();
        snapshot.get(COUNTERS, "links.beyond_limit").unwrap().unwrap_or(0)
    };
    lab.html(0, "/", front(10));
    let report = lab.run();
    assert_eq!((report.links_beyond_limit, counted()), (0, 0));
    lab.html(0, "/", front(32));
    let report = lab.much_later();
    assert_eq!((report.links_beyond_limit, counted()), (22, 22));
    let told = lab.crawled.explain(&lab.url(0, "/"));
    let fact = ("links not followed".to_owned(), "22, more than the limit of a page".to_owned());
    assert!(told.facts.contains(&fact), "{told:?}");
    // An error says nothing of the links that the page has; fewer links are fewer.
    lab.put(0, "/", Page::status(500));
    lab.much_later();
    assert_eq!(counted(), 22);
    lab.html(0, "/", front(11));
    lab.much_later();
    assert_eq!(counted(), 1);
}
