//! Settings as people write and read them: units, short numbers, old names, faults with their key.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use uniqcrawl::config::{Config, Sourced};
use uniqcrawl::localweb::Site;

use crate::support::{Web, crawl, page, prose};

fn said(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr];
    streams.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// What `crawl config` says of a settings file, and how it ends.
fn config(folder: &Path, settings: &str, more: &[&str]) -> (String, i32) {
    fs::write(folder.join("c.toml"), settings).unwrap();
    let output = crawl(&[&["config", "--config", "c.toml"], more].concat(), folder);
    (said(&output), output.status.code().unwrap())
}

#[test]
fn times_and_sizes_are_written_with_units_in_files_and_flags() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let file = "[crawl]\nidle_wait_max = \"1h30m\"\n[frontier]\ndelay = \"1.5s\"\ndomain_delay = 0\n\
                [fetch]\nbody_size_max = \"1.5 MiB\"\n[store]\ncache_size = \"2GB\"\n";
    let (text, code) = config(path, file, &[]);
    assert_eq!(code, 0, "{text}");
    for line in [
        "idle_wait_max = \"1h 30m\" ",
        "delay = \"1s 500ms\" ",
        "domain_delay = \"0s\" ",
        "body_size_max = \"1536 KiB\" ",
        "cache_size = \"2 GB\" ",
        "robots_unreachable_max = \"30d\" ",
        "input_size_max = \"8 MiB\" ",
    ] {
        assert!(text.lines().any(|one| one.starts_with(line)), "no `{line}` in\n{text}");
    }
    // What is printed can be read again, and means the same.
    let printed: String = text.lines().map(|line| format!("{line}\n")).collect();
    fs::write(path.join("again.toml"), printed).unwrap();
    let [first, again] = ["c.toml", "again.toml"].map(|name| path.join(name));
    let read = |path: &Path| Sourced::read(Some(path)).unwrap().config;
    assert_eq!(read(&first), read(&again));
    let output = crawl(&["config", "--delay", "1m30s", "--json"], path);
    let lines: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let delay = lines.iter().find(|line| line["key"] == "frontier.delay").unwrap();
    assert_eq!((&delay["value"], &delay["source"]), (&"1m 30s".into(), &"command line".into()));
}

#[test]
fn memory_is_shared_among_what_is_not_set_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let file = "memory = \"512 MiB\"\n[crawl]\npages_size_max = \"200 MiB\"\n";
    let (text, code) = config(path, file, &[]);
    assert_eq!(code, 0, "{text}");
    let lines: Vec<(&str, &str)> =
        text.lines().filter_map(|line| line.split_once("  # ")).collect();
    let line = |start: &str| {
        let found = lines.iter().find(|(line, _)| line.starts_with(start));
        found.map(|(line, source)| (line.trim_end(), source.trim()))
    };
    assert_eq!(line("memory"), Some(("memory = \"512 MiB\"", "file")));
    assert_eq!(line("pages_size_max"), Some(("pages_size_max = \"200 MiB\"", "file")));
    assert_eq!(line("cache_size"), Some(("cache_size = \"64 MiB\"", "share of memory")));
    assert_eq!(
        line("cookies_size_max"),
        Some(("cookies_size_max = \"16 MiB\"", "share of memory"))
    );
    // A flag wins over the file, and so do its shares.
    let (text, _) = config(path, file, &["--memory", "2 GiB"]);
    for said in
        ["memory = \"2 GiB\" ", "cache_size = \"256 MiB\" ", "pages_size_max = \"200 MiB\" "]
    {
        assert!(text.lines().any(|line| line.starts_with(said)), "no `{said}` in\n{text}");
    }
    let (text, code) = config(path, "memory = \"63 MiB\"\n", &[]);
    assert!(code == 2 && text.contains("`memory`: must be 64 MiB or more, not 63 MiB"), "{text}");
    let (text, code) = config(path, file, &["--memory", "8 KiB"]);
    assert!(code == 2 && text.contains("must be 64 MiB or more, not 8 KiB"), "{text}");
}

#[test]
fn plain_numbers_are_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (file, line) in [
        (
            "[frontier]\ndelay = 1000\n",
            "line 2: `frontier.delay`: `1000` has no unit: write \"1000ms\" or \"1000s\"",
        ),
        ("[fetch]\ntotal_timeout = \"10\"\n", "line 2: `fetch.total_timeout`: `10` has no unit"),
        ("[store]\n\ncache_size = 256\n", "line 3: `store.cache_size`: `256` has no unit"),
        ("fetch.body_size_max = \"8 M\"\n", "line 1: `fetch.body_size_max`: `8 M` is no size"),
    ] {
        let (text, code) = config(path, file, &[]);
        assert!(code == 2 && text.contains("c.toml: ") && text.contains(line), "{text}");
    }
    for flag in ["10", "1.5"] {
        let output = crawl(&["--seeds", "s.txt", "--delay", flag], path);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("--delay") && text.contains("has no unit"), "{text}");
    }
    let jobs = "[[job]]\nname = \"a\"\nstore = \"s\"\nseeds = [\"https://example.org/\"]\n\
                every = 6\ntime_max = \"90\"\n";
    fs::write(path.join("jobs.toml"), jobs).unwrap();
    let text = said(&crawl(&["jobs", "check", "--jobs", "jobs.toml"], path));
    assert!(
        text.contains("line 5: job a: every: `6` has no unit: write \"6ms\" or \"6s\""),
        "{text}"
    );
    assert!(text.contains("line 6: job a: time_max: `90` has no unit"), "{text}");
}

#[test]
fn old_names_are_read_with_a_note_that_names_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let old = "[crawl]\nidle_wait_ms_max = 2000\n[frontier]\nrobots_in_memory_mib = 3\n\
               shape.url_bytes_max = 99\n[fetch]\nbody_bytes_max = 5000\n";
    let (text, code) = config(path, old, &[]);
    assert_eq!(code, 0, "{text}");
    for line in [
        "note: c.toml: `crawl.idle_wait_ms_max` is now `crawl.idle_wait_max`: write `idle_wait_max = \"2s\"`",
        "`frontier.robots_in_memory_mib` is now `frontier.robots_in_memory`",
        "write `url_length_max = 99`",
        "write `body_size_max = \"5 kB\"`",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
    let read = Sourced::read(Some(&path.join("c.toml"))).unwrap();
    let mut config_of_old = Config::default();
    config_of_old.crawl.limits.idle_wait_max = "2s".parse().unwrap();
    config_of_old.frontier.robots_in_memory = "3 MiB".parse().unwrap();
    config_of_old.frontier.shape.url_length_max = 99;
    config_of_old.fetch.body_size_max = "5 kB".parse().unwrap();
    assert_eq!(read.config, config_of_old);
    let (text, code) = config(path, "[frontier]\ndelay_ms = 5\ndelay = \"5ms\"\n", &[]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("line 2: `frontier.delay_ms`: is the old name"), "{text}");
    let (text, _) = config(path, "[frontier]\n\ndelay_ms = true\n", &[]);
    assert!(text.contains("line 3: `frontier.delay_ms`"), "{text}");
}

#[test]
fn a_value_of_a_wrong_type_names_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (file, line) in [
        ("[crawl]\npages_max = \"many\"\n", "line 2: `crawl.pages_max`: must be a whole number"),
        ("[extract]\nnodes_max = true\n", "line 2: `extract.nodes_max`: must be a whole number"),
        ("[urls]\nnormal_escapes = 1\n", "`urls.normal_escapes`: must be true or false"),
        ("[dedup]\nsure_min = \"a\"\n", "`dedup.sure_min`: must be a number with a point"),
        ("[fetch]\nproxies = \"x\"\n", "`fetch.proxies`: must be a list"),
        ("[fetch]\nuser_agent = 5\n", "line 2: `fetch.user_agent`: must be a text"),
        ("[crawl]\nscope = \"all\"\n", "line 2: `crawl.scope`: unknown variant `all`"),
        ("[crawl]\npages_max = -1\n", "line 2: `crawl.pages_max`: must be a number from 0 to"),
        ("[frontier]\ndelay = [1]\n", "line 2: `frontier.delay`: must be a text"),
        (
            "[frontier]\nretries_max = 1000\n",
            "line 2: `frontier.retries_max`: must be a number from 0 to 255",
        ),
    ] {
        let (text, code) = config(path, file, &[]);
        assert!(code == 2 && text.contains(line), "`{line}` not in:\n{text}");
    }
    // A whole number stands for one with a point.
    let (text, code) = config(path, "[dedup]\nsure_min = 1\n", &[]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn numbers_are_printed_as_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let all = said(&crawl(&["config"], folder.path()));
    assert!(all.contains("abroad_similarity_min = 0.4 "), "{all}");
    let json = said(&crawl(&["config", "--json"], folder.path()));
    for text in [&all, &json] {
        for word in text.split(|c: char| !c.is_ascii_digit() && c != '.') {
            assert!(word.len() < 12, "`{word}` in\n{text}");
        }
    }
}

#[test]
fn nobody_who_reads_on_is_no_panic() {
    let web = Web::one(Site::new().html("/", page("Front", &prose(1, 80), &["/a"])));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("s.txt"), format!("mailto:x\n{}\n", web.web.url(0))).unwrap();
    fs::write(path.join("old.toml"), "[frontier]\ndelay_ms = 0\n").unwrap();
    let crawling = ["--seeds", "s.txt", "--allow-private", "--config", "old.toml"];
    let lines: [&[&str]; 12] = [
        &["completions", "bash"],
        &["completions", "zsh"],
        &["completions", "fish"],
        &["--help"],
        &["--nonsense"],
        &["config", "--config", "old.toml"],
        &["config", "--config", "none.toml"],
        &crawling,
        &[&crawling[..], &["-vv", "--store", "two"]].concat(),
        &["stats"],
        &["stats", "--json"],
        &["explain", "x"],
    ];
    for line in lines {
        let binary = env!("CARGO_BIN_EXE_crawl");
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = Command::new(binary);
        command.args(line).current_dir(path).stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut child = command.spawn().unwrap();
        drop((reader, command));
        let status = child.wait().unwrap();
        assert!(matches!(status.code(), Some(0..=3)), "{line:?} ended with {status}");
    }
}

#[test]
fn keys_of_json_have_no_blanks() {
    let web = Web::one(Site::new().html("/", page("Front", &prose(1, 80), &["/a"])));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("s.txt"), web.web.url(0)).unwrap();
    let flags = ["--seeds", "s.txt", "--allow-private", "--delay", "0", "--json"];
    let lines: [&[&str]; 5] = [
        &flags,
        &["stats", "--json"],
        &["check", "--json"],
        &["explain", &web.web.url(0), "--json"],
        &["export", "--out", "corpus", "--json"],
    ];
    for line in lines {
        let output = crawl(line, path);
        let value: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let mut keys = Vec::new();
        keys_of(&value, &mut keys);
        let bad: Vec<_> = keys.iter().filter(|key| key.contains(char::is_whitespace)).collect();
        assert!(!keys.is_empty() && bad.is_empty(), "{line:?}: {bad:?}");
        if line[0] == "stats" {
            for key in ["linksBetweenHosts", "urlsToRevisit", "fileBytes"] {
                assert!(value[key].is_u64(), "no {key} in {value}");
            }
        }
    }
}

fn keys_of(value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::Object(all) => {
            for (key, value) in all {
                keys.push(key.clone());
                keys_of(value, keys);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| keys_of(value, keys)),
        _ => {}
    }
}

/// With a log in JSON, whoever reads standard error finds nothing else: notes, warnings, and the
/// error that ends a command.
#[test]
fn all_of_standard_error_is_json_when_the_log_is() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("c.toml"), "[crawl]\nidle_wait_ms_max = 2000\n").unwrap();
    fs::write(folder.path().join("s.txt"), "ftp://127.0.0.1/\n").unwrap();
    let arguments = ["--seeds", "s.txt", "--config", "c.toml", "--store", "s", "--log-json"];
    let output = crawl(&arguments, folder.path());
    let text = String::from_utf8(output.stderr).unwrap();
    let events: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let told: Vec<_> = events
        .iter()
        .map(|event| {
            let [level, message] = [&event["level"], &event["fields"]["message"]];
            let start: String = message.as_str().unwrap().chars().take(10).collect();
            assert!(event["timestamp"].is_string() && event["target"].is_string(), "{event}");
            format!("{} {start}", level.as_str().unwrap())
        })
        .collect();
    assert_eq!(told, ["INFO c.toml: `c", "WARN s.txt:1: `", "ERROR s.txt has "], "{text}");
}
