//! The command line: exit codes, errors that name the thing, output that scripts read.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use uniqcrawl::config::{Config, Sourced};
use uniqcrawl::localweb::Site;

use crate::support::{Web, crawl, page, prose};

fn text(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr];
    streams.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

#[track_caller]
fn fails(arguments: &[&str], folder: &Path, code: i32, says: &[&str]) {
    let output = crawl(arguments, folder);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    for word in says {
        assert!(text.contains(word), "{arguments:?} does not say `{word}`: {text}");
    }
}

/// Writes small files into a folder.
fn put(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
}

/// A page whose head tells who wrote it, when and where.
fn keys(page: &str) -> String {
    let head = "<meta name=author content='Jane Doe'><meta property='og:site_name' content=Daily>\
                <meta property='article:published_time' content='2024-03-05T10:22:00+08:00'>\
                <meta property='article:modified_time' content='2024-03-06'>\
                <meta name=description content='A story, told'><title>";
    page.replacen("<title>", head, 1)
}

fn site() -> Web {
    Web::one(
        Site::new()
            .robots("User-agent: *\nDisallow: /no\n")
            .html("/", page("Front page", &prose(1, 80), &["/a", "/b", "/no", "/gone"]))
            .html("/a", keys(&page("Story, \"quoted\"", &prose(2, 80), &[])))
            .html("/b", keys(&page("Story, \"quoted\"", &prose(2, 80), &[]))),
    )
}

#[test]
fn bad_usage_ends_with_2_and_names_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    put(
        path,
        &[
            ("empty.txt", "# nothing\n\n"),
            ("bad.toml", "[frontier]\ndela = 5\n"),
            ("type.toml", "[frontier]\ndelay = \"x\"\n"),
            ("s.txt", "http://127.0.0.1:9/\n"),
        ],
    );
    fails(&[], path, 2, &["--seeds"]);
    fails(&["--seeds", "none.txt"], path, 2, &["none.txt", "No such file"]);
    fails(&["--seeds", "empty.txt"], path, 2, &["empty.txt", "no URL"]);
    fails(&["--seeds", "s.txt", "--delay", "5x"], path, 2, &["`5x` is no time"]);
    fails(&["--seeds", "s.txt", "--config", "no.toml"], path, 2, &["no.toml"]);
    fails(
        &["config", "--config", "bad.toml"],
        path,
        2,
        &["bad.toml: line 2: ", "`frontier.dela`", "`frontier.delay`"],
    );
    fails(
        &["config", "--config", "type.toml"],
        path,
        2,
        &["type.toml: line 2: `frontier.delay`: `x` is no time"],
    );
    fails(&["stats", "--store", "nowhere"], path, 2, &["nowhere"]);
    fails(&["explain", "--store", "nowhere", "x"], path, 2, &["`x` is no URL"]);
    fails(&["robots", "test", "none", "/x"], path, 2, &["none"]);
    assert!(!path.join("nowhere").exists() && !path.join("store").exists());
}

#[test]
fn lines_that_are_no_addresses_are_named_and_the_rest_goes_on() {
    let web = site();
    let folder = tempfile::tempdir().unwrap();
    let seeds = format!("# seeds\nexample\n{}\nmailto:x@y\n", web.web.url(0));
    fs::write(folder.path().join("s.txt"), seeds).unwrap();
    let arguments = ["--seeds", "s.txt", "--allow-private", "--delay", "0"];
    let output = crawl(&arguments, folder.path());
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("s.txt:2: `example`") && text.contains("s.txt:4: "), "{text}");
    assert!(text.contains("3 pages in"), "{text}");
}

#[test]
fn seeds_have_comments_and_any_unicode_encoding_and_bytes_that_are_no_text_are_no_seeds() {
    let web = site();
    let folder = tempfile::tempdir().unwrap();
    let base = web.web.url(0);
    let run = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join("s.txt"), bytes).unwrap();
        web.web.forget();
        let arguments = ["--seeds", "s.txt", "--store", name, "--allow-private", "--delay", "0"];
        let output = crawl(&[&arguments[..], &["--max-depth", "0"]].concat(), folder.path());
        let odd = |byte: &u8| byte.is_ascii_control() && *byte != b'\n';
        assert!(![&output.stdout, &output.stderr].iter().any(|out| out.iter().any(odd)));
        let mut asked: Vec<String> = web.web.targets(0).into_keys().collect();
        let own = ["/robots.txt", "/sitemap.xml"];
        asked.retain(|path| !path.ends_with("-no-such-page") && !own.contains(&path.as_str()));
        (output.status.code(), text(&output), asked)
    };
    let lines = format!("# one\n  # two\n{base}a  # a comment\n{base}b#part\t#\n{base}##\n");
    let paths = ["/", "/a", "/b"].map(str::to_owned).to_vec();
    assert_eq!(run("comments", lines.as_bytes()).2, paths);
    let wide: Vec<u8> =
        format!("\u{FEFF}{lines}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(run("wide", &wide).2, paths);
    // One bad line is named, and takes no other with it.
    let bad = [b"http://h/\x1b[2J\nhttp://h/\xE9\n", lines.as_bytes()].concat();
    let (code, says, asked) = run("lines", &bad);
    assert_eq!((code, asked), (Some(0), paths));
    assert!(says.contains("s.txt:1: ") && says.contains("s.txt:2: "), "{says}");
    // A file that is no text has no seeds at all, whatever stands in it.
    let picture = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\n", lines.as_bytes(), b"\n\xFF\0\n"].concat();
    let (code, says, asked) = run("picture", &picture);
    assert_eq!((code, asked), (Some(2), Vec::new()), "{says}");
    assert!(says.contains("s.txt is no text: line 2 has the byte 0x1A"), "{says}");
}

#[test]
fn a_robots_txt_that_was_cut_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut file = "User-agent: *\nDisallow: /a\n".to_owned();
    file.push_str(&"# nothing but words that nobody needs\n".repeat(14_000));
    file.push_str("Disallow: /b\n");
    fs::write(path.join("robots.txt"), &file).unwrap();
    let test = |more: &[&str]| {
        crawl(&[&["robots", "test", "robots.txt", "/a", "/b"], more].concat(), path)
    };
    let says = text(&test(&[]));
    let note = format!("robots.txt has {} bytes and was cut after 512000", file.len());
    assert!(says.contains("allowed     /b") && says.contains(&note), "{says}");
    let whole = test(&["--size-max", "1 MiB"]);
    assert!(whole.stderr.is_empty() && text(&whole).contains("disallowed  /b"), "{}", text(&whole));
    for (more, cut) in [(&["--json"][..], true), (&["--json", "--size-max", "1 MiB"], false)] {
        let answers: serde_json::Value = serde_json::from_slice(&test(more).stdout).unwrap();
        assert_eq!((&answers[0]["cut"], &answers[1]["cut"]), (&cut.into(), &cut.into()));
    }
    fails(&["robots", "test", "robots.txt", "/", "--size-max", "9"], path, 2, &["has no unit"]);
    fs::write(path.join("c.toml"), "[frontier]\nrobots_size_max = \"4 KiB\"\n").unwrap();
    let says = ["line 2", "frontier.robots_size_max", "4 KiB", "at least 500 KiB"];
    fails(&["config", "--config", "c.toml"], path, 2, &says);
}

#[test]
fn a_bad_line_of_robots_checks_has_an_error_in_its_place() {
    let good = "{\"robots_base64\":\"VXNlci1hZ2VudDogKgpEaXNhbGxvdzogL3g=\",\
                \"checks\":[[\"a\",\"/x\"],[\"a\",\"/y\"]]}";
    let lines = [good, "no json", "{\"robots_base64\":\"?\",\"checks\":[]}", good].join("\n");
    let lines = [lines.as_bytes(), b"\n\xFF\xFE\n", good.as_bytes()].concat();
    let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["robots", "test", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&lines).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), 6, "{said:?}");
    for (at, line) in said.iter().enumerate() {
        match at {
            0 | 3 | 5 => assert_eq!(*line, "01"),
            _ => assert!(line.starts_with("{\"error\":"), "{line}"),
        }
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("answered: 3"), "{errors}");
}

#[test]
fn a_crawl_can_be_explained_inspected_checked_and_exported() {
    let web = site();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("s.txt"), web.web.url(0)).unwrap();
    let arguments =
        ["--seeds", "s.txt", "--allow-private", "--delay", "0", "--json", "--report", "r.json"];
    let report: serde_json::Value =
        serde_json::from_slice(&crawl(&arguments, path).stdout).unwrap();
    assert_eq!(
        report,
        serde_json::from_slice::<serde_json::Value>(&fs::read(path.join("r.json")).unwrap())
            .unwrap()
    );
    assert_eq!((&report["pages"], &report["documents"]), (&3.into(), &2.into()));
    assert_eq!(report["refused"]["robots_disallowed"], 1);

    let explain = |target: &str| {
        let url = web.url(0, target).to_string();
        text(&crawl(&["explain", &url], path))
    };
    assert!(explain("/no").contains("robots.txt of the host disallows it"));
    assert!(explain("/gone").contains("404"));
    assert!(explain("/b").contains("a copy of") && explain("/b").contains("exact_content"));
    assert!(explain("/unknown").contains("unknown"));
    let copy = web.url(0, "/b").to_string();
    let inspected = text(&crawl(&["inspect", &copy], path));
    assert!(inspected.contains("docId") && inspected.contains("copy  "), "{inspected}");
    fails(&["inspect", "0000000000000000-0000000000000000"], path, 2, &["no document"]);
    fails(&["inspect", "what"], path, 2, &["neither a docId nor a URL"]);
    fails(&["check"], path, 0, &["clean: every invariant holds"]);
    fails(&["stats"], path, 0, &["urls.refused.robots_disallowed"]);

    let out = crawl(&["export", "--out", "corpus", "--json"], path);
    assert!(out.status.success(), "{}", text(&out));
    let lines = fs::read_to_string(path.join("corpus/documents.jsonl")).unwrap();
    let rows: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| !row["text"].as_str().unwrap().is_empty()));
    let facts = |row: &serde_json::Value| {
        ["author", "published", "modified", "site", "description"].map(|key| row[key].clone())
    };
    let story = rows.iter().find(|row| row["title"] == "Story, \"quoted\"").unwrap();
    let told = ["Jane Doe", "2024-03-05T10:22:00+08:00", "2024-03-06", "Daily", "A story, told"];
    assert_eq!(facts(story), told.map(serde_json::Value::from));
    let front = rows.iter().find(|row| row["title"] == "Front page").unwrap();
    assert_eq!(facts(front), [""; 5].map(serde_json::Value::from));
    let dropped = fs::read_to_string(path.join("corpus/duplicates.jsonl")).unwrap();
    let dropped: serde_json::Value = serde_json::from_str(dropped.trim()).unwrap();
    assert_eq!(dropped["url"], copy);
    assert_eq!(
        dropped["docId"],
        rows.iter().find(|row| row["url"] == dropped["canonical"]).unwrap()["docId"]
    );

    assert!(crawl(&["export", "--format", "csv", "--out", "corpus"], path).status.success());
    let mut csv = csv::Reader::from_path(path.join("corpus/documents.csv")).unwrap();
    let records: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
    assert_eq!(records.len(), 2);
    let story = records.iter().find(|record| &record[2] == "Story, \"quoted\"").unwrap();
    assert_eq!(csv.headers().unwrap().iter().position(|name| name == "published"), Some(6));
    assert_eq!((&story[5], &story[6]), ("Jane Doe", "2024-03-05T10:22:00+08:00"));
}

#[test]
fn seeds_that_cannot_be_crawled_end_with_3() {
    let web = site();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.txt"), web.url(0, "/gone").as_str()).unwrap();
    let arguments = ["--seeds", "s.txt", "--allow-private", "--delay", "0"];
    fails(&arguments, folder.path(), 3, &["seed not crawled", "/gone", "http_error"]);
}

#[test]
fn a_store_or_report_that_cannot_be_written_is_named() {
    let web = site();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("s.txt"), web.web.url(0)).unwrap();
    fs::write(path.join("file"), "").unwrap();
    let base = ["--seeds", "s.txt", "--allow-private", "--delay", "0"];
    fails(&[&base[..], &["--store", "file/store"]].concat(), path, 1, &["file/store"]);
    fails(&[&base[..], &["--store", "/proc/nothing"]].concat(), path, 1, &["/proc/nothing"]);
    fails(&[&base[..], &["--report", "no/dir/r.json"]].concat(), path, 1, &["no/dir/r.json"]);
    fs::create_dir(path.join("bad")).unwrap();
    fs::write(path.join("bad/store.redb"), "not a store").unwrap();
    fails(&[&base[..], &["--store", "bad"]].concat(), path, 1, &["bad/store.redb", "damaged"]);
    assert_eq!(fs::read(path.join("bad/store.redb")).unwrap(), b"not a store");
}

#[test]
fn a_full_disk_stops_the_crawl_and_loses_nothing() {
    // The limit of file sizes stands in for a full disk: the write fails in the same place.
    let links: Vec<String> = (0..150).map(|n| format!("/p/{n}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let front = Site::new().html("/", page("Front", &prose(1, 80), &links));
    let web = Web::one((0..150).fold(front, |site, n| {
        site.html(&format!("/p/{n}"), page("P", &prose(n + 10, 3_000), &[]))
    }));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.txt"), web.web.url(0)).unwrap();
    let command = format!(
        "ulimit -f 1200; exec {} --seeds s.txt --allow-private --delay 0 --quiet",
        env!("CARGO_BIN_EXE_crawl")
    );
    let limited = std::process::Command::new("bash")
        .args(["-c", &format!("trap '' XFSZ; {command}")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(limited.status.code(), Some(1), "{}", text(&limited));
    let arguments = ["--seeds", "s.txt", "--allow-private", "--delay", "0"];
    fails(&["check"], folder.path(), 0, &["clean"]);
    fails(&arguments, folder.path(), 0, &["documents    151"]);
    fails(&["check"], folder.path(), 0, &["clean"]);
}

#[test]
fn the_settings_file_in_the_repository_is_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/crawl.toml");
    let sourced = Sourced::read(Some(&file)).unwrap();
    assert_eq!(sourced.config, Config::default(), "the file shows other values than the defaults");
    let text = fs::read_to_string(&file).unwrap();
    for (key, _, source) in sourced.lines() {
        assert_eq!(source.to_string(), "file", "{key} is not in config/crawl.toml");
        let name = key.rsplit('.').next().unwrap();
        let line = text.lines().position(|line| line.starts_with(&format!("{name} ="))).unwrap();
        let before = text.lines().nth(line - 1).unwrap();
        assert!(before.starts_with("# "), "{key} has no reason above it");
    }
}

#[test]
fn settings_show_where_they_come_from() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("c.toml"), "[frontier]\ndelay = \"5ms\"\nretries_max = 9\n")
        .unwrap();
    let out = crawl(&["config", "--config", "c.toml", "--delay", "2s"], folder.path());
    let text = text(&out);
    let line = |key: &str| text.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("delay").contains("\"2s\"") && line("delay").ends_with("command line"));
    assert!(line("retries_max").contains('9') && line("retries_max").ends_with("file"));
    assert!(line("redirects_max").ends_with("default"));
}

#[test]
fn the_documents_show_the_help_word_for_word() {
    let help = crawl(&["--help"], Path::new("/"));
    let help = String::from_utf8(help.stdout).unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/reference/options.md");
    let shown = fs::read_to_string(&page).unwrap();
    assert!(shown.contains(help.trim_end()), "{} does not show:\n{help}", page.display());
}

#[test]
fn texts_and_rules_are_answered_on_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    put(
        path,
        &[
            ("t.txt", "the quick brown fox jumps over the lazy dog"),
            ("r.txt", "User-agent: *\nDisallow: /x\n"),
            ("p.html", "<title>T</title><p>Hello</p>"),
        ],
    );
    let print = text(&crawl(&["simhash", "t.txt", "--words"], path));
    let first = print.lines().next().unwrap();
    assert!(first.len() == 16 && u64::from_str_radix(first, 16).is_ok() && print.contains("fox"));
    let rules = text(&crawl(&["robots", "test", "r.txt", "/x/1", "/y"], path));
    assert!(rules.contains("disallowed  /x/1  (line 2: Disallow: /x)"), "{rules}");
    assert!(rules.contains("allowed     /y  (no rule)"), "{rules}");
    assert_eq!(text(&crawl(&["extract", "p.html"], path)), "Hello\n");
    assert!(text(&crawl(&["completions", "bash"], path)).contains("crawl"));
}

#[test]
fn settings_of_the_dedup_stage_that_cannot_be_or_were_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = |settings: &str, store: &str| {
        put(folder.path(), &[("c.toml", settings), ("s.txt", "http://127.0.0.1:9/\n")]);
        let flags =
            ["--seeds", "s.txt", "--store", store, "--config", "c.toml", "--max-pages", "1"];
        let output = crawl(&flags, folder.path());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = run("[dedup]\nlayout = \"pairs\"\nk = 5\n", "far");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("pairs finds at most 3 differing bits, not 5"), "{text}");
    let (code, text) = run("[dedup.features]\nwords_max = 0\n", "far");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("words_max is 0"), "{text}");
    assert!(!folder.path().join("far").exists(), "no store is made");
    run("[crawl]\nidle_wait_max = 0\n", "store");
    let (code, text) = run("[dedup.features]\nextractor = \"levels\"\n", "store");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("tfidf") && text.contains("levels 1 to 5"), "both are named: {text}");
    let output = crawl(&["dedup", "missing.jsonl", "--out", "o"], folder.path());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.matches("os error").count()), (Some(2), 1), "{text}");
}

#[test]
fn nobody_who_reads_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let web = Web::one(Site::new().html("/", page("Front", &prose(1, 80), &[])));
    let front = web.url(0, "/").to_string();
    put(folder.path(), &[("seeds.txt", &front)]);
    let jobs = "[[job]]\nname = \"one\"\nseeds = [\"http://127.0.0.1:1/\"]\nstore = \"s\"\nevery = \"1d\"\n";
    put(folder.path(), &[("jobs.toml", jobs)]);
    let made = crawl(&["--seeds", "seeds.txt", "--allow-private", "--delay", "0"], folder.path());
    assert!(made.status.success(), "{}", text(&made));
    for arguments in [
        &["rules", "list"][..],
        &["duplicate-feed", "list"],
        &["stats"],
        &["config"],
        &["jobs", "next", "--jobs", "jobs.toml"],
        &["explain", &front],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(arguments)
            .current_dir(folder.path())
            .stdout(writer)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.is_empty(), "{arguments:?}: {told}");
    }
}
