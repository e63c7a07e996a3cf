//! Fields with a fixed set of values in fingerprints: declared, sent, crawled, read from lines.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use uniqcrawl::base::clock::{Clock, Timestamp};
use uniqcrawl::corpus::files;
use uniqcrawl::corpus::index::Index;
use uniqcrawl::localweb::Site;
use uniqcrawl::neardup::{self, Deduplicator, InputDocument, Preset, Verdict};
use uniqcrawl::service::ingest::{ArticleLimits, Found, Ingest, IngestRules, Submission};
use uniqcrawl::store::Store;
use uniqcrawl::text::features::lecture::enum_hash;
use uniqcrawl::text::features::{
    ArticleField, Config, EnumHash, Enumeration, Extractor, Fingerprinter, Input,
};
use uniqcrawl::urls::Normalize;

use crate::support::{Crawled, Web, config, crawl, page, prose};

fn category(extractor: Extractor, weight: f32) -> Config {
    let values = vec!["News".to_owned(), "sport".to_owned()];
    let hash = EnumHash::default();
    let category = Enumeration { field: "category".to_owned(), values, weight, hash };
    Config { extractor, enums: vec![category], ..Config::default() }
}

fn by(dedup: &uniqcrawl::neardup::Config) -> IngestRules<'_> {
    IngestRules { dedup, normalize: Normalize::default(), limits: ArticleLimits::default() }
}

#[test]
fn declared_fields_vote_alone_or_beside_the_words() {
    let alone = Fingerprinter::new(category(Extractor::Enum, 1.0)).unwrap();
    let sign = |fingerprinter: &Fingerprinter, text: &str, value: &str| {
        let fields = [ArticleField { name: "category", value }];
        fingerprinter.text_keys_of(&Input { text, fields: &fields, ..Input::default() }).fingerprint
    };
    for (value, number) in [(" news ", 1), ("SPORT", 2), ("", 0), ("politics", 0)] {
        assert_eq!(sign(&alone, &prose(1, 50), value).0, enum_hash(number, 3), "{value}");
    }
    assert_eq!(
        alone.article_keys_of(&Input { title: "Some words", ..Input::default() }).title,
        None
    );
    let text = prose(1, 50);
    let (light, heavy) = (category(Extractor::Tfidf, 12.0), category(Extractor::Tfidf, 5_000.0));
    let (light, heavy) = (Fingerprinter::new(light).unwrap(), Fingerprinter::new(heavy).unwrap());
    let apart = |fingerprinter| {
        sign(fingerprinter, &text, "news").distance(sign(fingerprinter, &text, "sport"))
    };
    assert_eq!(apart(&heavy), 64, "the values of the lecture's hash are far apart");
    assert!(apart(&light) < 20, "one word more or less: {}", apart(&light));
    let title = |fingerprinter: &Fingerprinter| {
        fingerprinter.article_keys_of(&Input { title: "Some words", ..Input::default() }).title
    };
    assert_eq!(title(&heavy), title(&Fingerprinter::default()), "fields have no vote in a title");
    let shown = heavy.features_of(&Input { text: "harbour", ..Input::default() });
    assert_eq!(shown[0].text, "category=other");
    assert!((shown[0].weight - 5_000.0).abs() < 1e-3);
}

#[test]
fn a_value_that_is_added_changes_no_mixed_hash() {
    let print = |values: &[&str], hash| {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let one = Enumeration { field: "kind".to_owned(), values, weight: 1.0, hash };
        let config = Config { extractor: Extractor::Enum, enums: vec![one], ..Config::default() };
        let fields = [ArticleField { name: "kind", value: "b" }];
        let fingerprinter = Fingerprinter::new(config).unwrap();
        fingerprinter.text_keys_of(&Input { fields: &fields, ..Input::default() }).fingerprint
    };
    let (three, four) = (["a", "b", "c"], ["a", "b", "c", "d"]);
    assert_eq!(print(&three, EnumHash::Mixed), print(&four, EnumHash::Mixed));
    assert_ne!(print(&three, EnumHash::Lecture), print(&four, EnumHash::Lecture));
}

#[test]
fn the_language_and_the_site_of_an_article_are_fields() {
    let one = |field: &str, values: &[&str]| Enumeration {
        field: field.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        weight: 1.0,
        hash: EnumHash::Lecture,
    };
    let print = |config: Config, url: &str, language: &str| {
        let fingerprinter = Fingerprinter::new(config).unwrap();
        fingerprinter.text_keys_of(&Input { url, language, ..Input::default() }).fingerprint
    };
    let only = |enums| Config { extractor: Extractor::Enum, enums, ..Config::default() };
    let site = || only(vec![one("site", &["a.example"])]);
    for url in ["http://a.example/x", "https://me@A.example:8080", "x://a.example?q"] {
        assert_eq!(print(site(), url, "").0, u64::MAX, "{url}");
    }
    assert_eq!(print(site(), "https://b.example/a.example", "").0, 0);
    let languages =
        ["en", "zh", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "ja", "ko", "ar", "tr", "vi"];
    let weighted = Config { language_weight: 1.0, ..only(Vec::new()) };
    let declared = only(vec![one("language", &languages)]);
    assert_eq!(print(weighted, "", "fr"), print(declared, "", "fr"), "language_weight is one");
}

#[test]
fn enumerations_that_cannot_be_are_named() {
    let fails = |change: &dyn Fn(&mut Config), says: &str| {
        let mut config = category(Extractor::Tfidf, 1.0);
        change(&mut config);
        let error = Fingerprinter::new(config).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    fails(&|config| config.enums[0].values[1] = " NEWS".to_owned(), "values 1 and 2 are the same");
    fails(&|config| config.enums[0].values.clear(), "`category`: it has 0 values");
    fails(&|config| config.enums[0].values[0] = " ".to_owned(), "empty");
    fails(&|config| config.enums[0].weight = f32::NAN, "weight");
    fails(&|config| config.enums[0].weight = 1e7, "weight");
    fails(&|config| config.enums[0].field.clear(), "no name");
    fails(&|config| config.enums.push(config.enums[0].clone()), "twice");
    fails(&|config| config.enums = vec![config.enums[0].clone(); 65], "twice");
    let language = |config: &mut Config| {
        config.language_weight = 1.0;
        config.enums[0].field = "language".to_owned();
    };
    fails(&language, "twice");
    let alone = |config: &mut Config| {
        config.extractor = Extractor::Enum;
        config.enums[0].weight = 0.0;
    };
    fails(&alone, "`enum` needs");
    let mut odd = category(Extractor::Tfidf, 1.0);
    assert!(Fingerprinter::for_articles(odd.clone()).is_ok());
    odd.enums[0].field = "colour".to_owned();
    let error = Fingerprinter::for_articles(odd).unwrap_err().to_string();
    assert!(error.contains("`colour`") && error.contains("media"), "{error}");
}

/// Settings by which two texts are one document if their fields are equal, whatever they say.
fn by_fields(field: &str, values: &[&str]) -> neardup::Config {
    let mut config = Preset::Seeds.config();
    config.features = category(Extractor::Enum, 1.0);
    field.clone_into(&mut config.features.enums[0].field);
    config.features.enums[0].values = values.iter().map(|value| (*value).to_owned()).collect();
    config
}

#[test]
fn the_fields_of_what_is_sent_reach_the_fingerprint() {
    for (field, value, other) in [
        ("category", "sport", "news"),
        ("media", "sina", "xinhua"),
        ("language", "en", "de"),
        ("site", "a.example", "b.example"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open_or_create(folder.path(), 16 << 20).unwrap());
        let config = by_fields(field, &[value, other]);
        let index = Arc::new(Mutex::new(Index::open(&store, &config).unwrap()));
        let clock = Clock::hand(Timestamp(1_795_262_400_000));
        let rules = IngestRules {
            dedup: &config,
            normalize: Normalize::default(),
            limits: ArticleLimits::default(),
        };
        let ingest = Ingest::start(store, index, rules, clock).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let send = |n: u64, value: &str| {
            let mut article = json!({"nid": n, "content": prose(n, 60), "language": "fr"});
            article[field] = json!(value);
            if field == "site" {
                article["url"] = json!(format!("http://{value}/{n}"));
            }
            let submission: Submission = serde_json::from_value(article).unwrap();
            let prepared = ingest.prepare(submission).unwrap();
            runtime.block_on(ingest.deliver(vec![prepared])).unwrap()[0].found
        };
        assert_eq!(send(1, value), Found::New, "{field}");
        assert_eq!(send(2, other), Found::New, "{field}");
        assert_eq!(send(3, value).as_str(), "content", "{field}");
    }
    let odd = by_fields("colour", &["red"]);
    let store = Arc::new(Store::open_or_create(tempfile::tempdir().unwrap().path(), 1).unwrap());
    let index = Arc::new(Mutex::new(Index::open(&store, &odd).unwrap()));
    let clock = Clock::hand(Timestamp(0));
    let started = Ingest::start(store, index, by(&odd), clock);
    assert!(started.err().unwrap().to_string().contains("colour"));
}

#[test]
fn the_fields_of_pages_reach_the_fingerprint() {
    let pages = |name: &str| {
        let site_name = format!("<meta property='og:site_name' content='{name}'><title>");
        let page = |n: u64| page("P", &prose(n, 120), &[]).replacen("<title>", &site_name, 1);
        let seed = name.len() as u64 * 10;
        Site::new().html("/", page(seed + 1)).html("/2", page(seed + 2))
    };
    let web = Web::start(2, |_| vec![pages("Daily"), pages("Evening")]);
    let mut seeds = web.seeds();
    seeds.extend([web.url(0, "/2"), web.url(1, "/2")]);
    let mut config = config();
    config.dedup = by_fields("media", &["daily", "evening"]);
    let crawled = Crawled::new();
    crawled.run(&config, &seeds);
    let sizes: Vec<usize> = crawled.clusters().values().map(BTreeSet::len).collect();
    assert_eq!(sizes, [2, 2], "{:?}", crawled.clusters());
}

#[test]
fn any_field_of_a_line_may_be_declared() {
    let folder = tempfile::tempdir().unwrap();
    let line = |id: &str, colour: Value| {
        json!({"id": id, "text": prose(id.len() as u64, 60), "colour": colour}).to_string()
    };
    let lines = [
        line("a", json!(7)),
        line("bb", json!("7")),
        line("ccc", json!(null)),
        line("dddd", json!(true)),
        line("eeeee", json!(["x"])),
        line("ffffff", json!("TRUE")),
    ];
    fs::write(folder.path().join("in.jsonl"), lines.join("\n")).unwrap();
    let config = by_fields("colour", &["7", "true"]);
    let inputs = [folder.path().join("in.jsonl")];
    let out = folder.path().join("out");
    let options = files::Options::default();
    files::run(&inputs, &out, &config, &options, &mut |_| {}).unwrap();
    let clusters = fs::read_to_string(out.join("duplicates.jsonl")).unwrap();
    let pairs: Vec<(String, String)> = clusters
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).unwrap())
        .map(|row| (row["id"].to_string(), row["duplicateOf"].to_string()))
        .collect();
    let pair = |one: &str, other: &str| (format!("\"{one}\""), format!("\"{other}\""));
    assert_eq!(pairs, [pair("bb", "a"), pair("eeeee", "ccc"), pair("ffffff", "dddd")]);
    // The library's judge knows them too.
    let mut judge = Deduplicator::new(config).unwrap();
    let mut ask = |n: u64, value: &str| {
        let fields = [ArticleField { name: "colour", value }];
        judge.judge(InputDocument {
            text: &prose(n, 60),
            fields: &fields,
            ..InputDocument::default()
        })
    };
    assert_eq!((ask(1, "7"), ask(2, "true")), (Verdict::New, Verdict::New));
    assert!(matches!(ask(3, "7"), Verdict::Duplicate { first: 0, .. }));
}

fn put(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const SETTINGS: &str = "[dedup.features]\nwords_max = 100\n[[dedup.features.enums]]\n\
    field = \"category\"\nvalues = [\"news\", \"sport\"]\nweight = 900.0\n";

#[test]
fn simhash_works_by_the_settings_and_the_fields_of_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    put(path, "c.toml", SETTINGS);
    put(path, "t.txt", "the quick brown fox");
    let says = |arguments: &[&str]| {
        let out = crawl(arguments, path);
        assert!(out.status.success(), "{arguments:?}: {out:?}");
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    let plain = says(&["simhash", "t.txt"]);
    let chars = says(&["simhash", "t.txt", "--extractor", "char-shingles"]);
    let sport = ["simhash", "t.txt", "--config", "c.toml", "--field", "category=sport"];
    let news = ["simhash", "t.txt", "--config", "c.toml", "--field", "category=news"];
    let (sport, news) = (says(&sport), says(&news));
    let all = BTreeSet::from([&plain, &chars, &sport, &news]);
    assert_eq!(all.len(), 4, "{all:?}");
    let only = ["--extractor", "enum", "--field", "category=sport", "--json"];
    let only = says(&[&["simhash", "t.txt", "--config", "c.toml"], &only[..]].concat());
    let only: Value = serde_json::from_str(&only).unwrap();
    assert_eq!(only["simhash"], format!("{:016x}", enum_hash(2, 3)));
    assert!(only["features"].as_str().unwrap().starts_with("enum, top 100, category of 3"));
    assert_eq!(only["weights"][0]["word"], "category=sport");
    let line = r#"{"id":1,"category":"news","text":"the quick brown fox"}"#;
    let binary = env!("CARGO_BIN_EXE_crawl");
    let out = std::process::Command::new("bash")
        .args([
            "-c",
            "printf '%s\\n' \"$1\" | \"$0\" simhash --jsonl --config c.toml",
            binary,
            line,
        ])
        .current_dir(path)
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer, json!({"id": 1, "simhash": news}));
    for (arguments, says) in [
        (&["--field", "category=news"][..], "declare none"),
        (&["--config", "c.toml", "--field", "colour=red"], "declare category"),
        (&["--config", "c.toml", "--field", "red"], "no `=`"),
        (&["--extractor", "enum"], "`enum` needs"),
    ] {
        let out = crawl(&[&["simhash", "t.txt"], arguments].concat(), path);
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{error}");
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn enumerations_are_settings_like_others() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "c.toml", SETTINGS);
    let out = crawl(&["config", "--config", "c.toml"], folder.path());
    let text = String::from_utf8(out.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("enums = ")).unwrap();
    assert!(line.contains("\"sport\"") && line.ends_with("file"), "{line}");
    put(folder.path(), "c.toml", &SETTINGS.replace("weight", "wieght"));
    let out = crawl(&["config", "--config", "c.toml"], folder.path());
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(2) && error.contains("wieght"), "{error}");
}
