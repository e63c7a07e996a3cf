//! WARC files: written while crawling, read by tools that know nothing of us, and read again.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use uniqcrawl::corpus::tables::DOCUMENTS;
use uniqcrawl::localweb::{Body, Page, Site, demo};
use uniqcrawl::store::{Store, View as _};

use crate::python::venv;
use crate::support::{Web, check_clean, clusters, crawl, page, prose};

/// Python with the readers.
fn python() -> PathBuf {
    venv("warc", "tests/readers/warc-requirements.txt")
}

#[track_caller]
pub(crate) fn reader(arguments: &[&str], folder: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/warc.py");
    let mut command = Command::new(python());
    let read = command.arg(script).args(arguments).current_dir(folder).output().unwrap();
    let [out, error] = [&read.stdout, &read.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(read.status.success(), "{out}{error}");
    serde_json::from_str(&out).unwrap()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn sha256(text: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Pages of all kinds, with what each is before its codings.
fn kinds() -> (Site, BTreeMap<&'static str, String>) {
    let text = |seed: u64| page(&format!("Story {seed}"), &prose(seed, 90), &[]);
    let links = ["/plain", "/gzip", "/chunked", "/copy", "/moved", "/gone", "/image", "/short"];
    let pages = BTreeMap::from([
        ("/", page("Front", &prose(1, 90), &links)),
        ("/plain", text(2)),
        ("/gzip", text(3)),
        ("/chunked", text(4)),
    ]);
    let chunked = |text: &str| {
        let (one, two) = text.split_at(text.len() / 2);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\
                    Connection: close\r\n\r\n";
        let chunk = |part: &str| format!("{:x}\r\n{part}\r\n", part.len());
        format!("{head}{}{}0\r\n\r\n", chunk(one), chunk(two)).into_bytes()
    };
    let site = Site::new()
        .robots("User-agent: *\nAllow: /\n")
        .html("/", pages["/"].clone())
        .html("/plain", pages["/plain"].clone())
        .page(
            "/gzip",
            Page::bytes("text/html", gzip(&pages["/gzip"])).header("Content-Encoding", "gzip"),
        )
        .page("/chunked", Page::body(Body::Raw(chunked(&pages["/chunked"]))))
        .html("/copy", pages["/plain"].clone())
        .page("/moved", Page::redirect(301, "/plain"))
        .page("/gone", Page::status(410))
        .page("/image", Page::bytes("image/png", vec![7; 200_000]))
        .page(
            "/short",
            Page::body(Body::Lying { declared: 500, bytes: b"<p>It breaks off".to_vec() })
                .header("Content-Type", "text/html"),
        );
    (site, pages)
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let usual = ["--allow-private", "--delay", "0ms", "--quiet"];
    crawl(&[&usual[..], arguments].concat(), folder)
}

#[track_caller]
fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let done = crawl(arguments, folder);
    let [out, error] = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(done.status.success(), "{arguments:?}: {out}{error}");
    out.into_owned()
}

/// Settings under which what fails is not tried again.
pub(crate) fn settings(folder: &Path) {
    let text = "[frontier]\nretries_max = 0\n[frontier.discover]\nusual_place = false\n\
                [crawl]\nprobe_error_page = false\n";
    fs::write(folder.join("c.toml"), text).unwrap();
}

pub(crate) fn warc_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let entries = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.to_string_lossy().contains(".warc")).collect();
    files.sort();
    files
}

#[test]
fn the_tools_of_the_field_read_what_a_crawl_keeps() {
    let (site, pages) = kinds();
    let web = Web::one(site);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    settings(folder);
    let seed = web.web.url(0);
    let url = |path: &str| format!("{seed}{}", &path[1..]);
    let payloads: BTreeMap<String, String> =
        pages.iter().map(|(path, text)| (url(path), sha256(text.as_bytes()))).collect();
    for (how, out) in [("gzip", "gz"), ("zstd", "zst")] {
        let common = ["--config", "c.toml", "--warc-compress", how];
        let done = run(folder, &[&[&seed, "--store", out, "--warc", out][..], &common].concat());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        // robots.txt, and each page once: a revisit where the payload was known, nothing where
        // there was no answer.
        let expected = json!({
            "warcinfo": 1, "resource": 3, "response": 9, "request": 10, "metadata": 10,
            "revisit": 1, "payloads": payloads,
        });
        fs::write(folder.join("expected.json"), expected.to_string()).unwrap();
        let store = folder.join(out);
        fs::create_dir(folder.join("only")).unwrap();
        for file in fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().path()) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            assert!(!name.contains(".open") && !name.contains(".part"), "{name}");
            if name.contains(".warc") || name.contains(".cdxj") {
                fs::copy(&file, folder.join("only").join(name)).unwrap();
            }
        }
        let read = reader(&["check", "only", "expected.json"], folder);
        assert_eq!(read["files"], 1);
        fs::remove_dir_all(folder.join("only")).unwrap();
    }
    // What was sent and came stands there, but for secrets and what the client hides.
    let files = warc_files(&folder.join("gz"));
    let mut text = Vec::new();
    let file = fs::File::open(&files[0]).unwrap();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut text).unwrap();
    let text = String::from_utf8_lossy(&text);
    for part in [
        "GET /plain HTTP/1.1\r\n",
        "user-agent: uniqcrawl/",
        "HTTP/1.1 301 Status\r\n",
        "x-crawler-transfer-encoding: chunked\r\n",
        "WARC-IP-Address: 127.77.0.1\r\n",
        "WARC-Truncated: disconnect\r\n",
        "WARC-Truncated: unspecified\r\n",
        "software: uniqcrawl/",
        "purpose: robots\r\n",
        "identical-payload-digest\r\n",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("\r\ntransfer-encoding"));
}

#[test]
fn files_are_full_at_a_size_and_a_secret_is_not_kept() {
    let web = Web::start(demo::HOSTS, demo::sites);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let auth = format!("[\"{}\"]\nheader = \"X-Key\"\nvalue = \"hush-hush\"\n", web.web.url(1));
    fs::write(folder.join("auth.toml"), auth).unwrap();
    let text = "[auth]\nfile = \"auth.toml\"\n[fetch]\nheaders = [\"X-Own: also-secret\", \
                \"Accept-Language: de\"]\n[warc]\nfolder = \"kept\"\nfile_size_max = \"20 KiB\"\n";
    fs::write(folder.join("c.toml"), text).unwrap();
    let seed = web.web.url(1);
    let done = run(folder, &[&seed, "--config", "c.toml", "--store", "s"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let files = warc_files(&folder.join("kept"));
    assert!(files.len() > 2, "{files:?}");
    for file in &files {
        let bytes = fs::metadata(file).unwrap().len();
        assert!(bytes < 60 << 10, "{bytes} bytes");
        let mut text = Vec::new();
        let file = fs::File::open(file).unwrap();
        flate2::read::MultiGzDecoder::new(file).read_to_end(&mut text).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains("hush-hush") && !text.contains("also-secret"));
        assert!(text.contains("x-key: ***") && text.contains("x-own: ***"));
        assert!(text.contains("accept-language: de"));
    }
    fs::write(folder.join("expected.json"), "{\"payloads\": {}}").unwrap();
    assert_eq!(reader(&["check", "kept", "expected.json"], folder)["files"], files.len());
}

/// What an export says, without what is of one store or one moment.
pub(crate) fn exported(folder: &Path, store: &str) -> BTreeMap<String, Vec<String>> {
    let out = format!("{store}-out");
    succeed(folder, &["export", "--store", store, "--out", &out]);
    let mut all = BTreeMap::new();
    for file in ["documents.jsonl", "duplicates.jsonl", "withheld.jsonl"] {
        let text = fs::read_to_string(folder.join(&out).join(file)).unwrap();
        let mut ids = BTreeMap::new();
        let mut lines: Vec<String> =
            text.lines().map(|line| plain(serde_json::from_str(line).unwrap(), &mut ids)).collect();
        lines.sort();
        all.insert(file.to_owned(), lines);
    }
    fs::remove_dir_all(folder.join(out)).unwrap();
    all
}

/// A line of an export, without identifiers, which every store has its own of.
fn plain(mut line: Value, _ids: &mut BTreeMap<String, usize>) -> String {
    for field in ["docId", "doc_id", "id", "canonicalId"] {
        line.as_object_mut().unwrap().remove(field);
    }
    line.to_string()
}

#[test]
fn a_store_that_is_made_from_files_has_the_documents_of_the_crawl() {
    let web = Web::start(demo::HOSTS, demo::sites);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let seeds: Vec<String> = web.seeds().iter().map(ToString::to_string).collect();
    fs::write(folder.join("seeds.txt"), seeds.join("\n")).unwrap();
    let usual = ["--seeds", "seeds.txt", "--max-pages-per-host", "60"];
    let done = run(folder, &[&usual[..], &["--store", "crawled", "--warc", "kept"]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let made = succeed(folder, &["rebuild", "--warc", "kept", "--store", "made", "--json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!((&made["unused"], &made["faults"]), (&json!({}), &json!({})));
    let read = |name: &str| {
        let store = Store::open(&folder.join(name), 1 << 24).unwrap();
        check_clean(&store);
        clusters(&store)
    };
    let (crawled, rebuilt) = (read("crawled"), read("made"));
    assert!(crawled.len() > 50 && crawled.values().any(|copies| copies.len() > 1));
    assert_eq!(crawled, rebuilt);
    let (crawled, rebuilt) = (exported(folder, "crawled"), exported(folder, "made"));
    for (file, lines) in &crawled {
        for (one, other) in lines.iter().zip(&rebuilt[file]) {
            assert_eq!(one, other, "{file}");
        }
        assert_eq!(lines.len(), rebuilt[file].len(), "{file}");
    }
    // A store is made once, and from nothing.
    let again = crawl(&["rebuild", "--warc", "kept", "--store", "made"], folder);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("whole: choose a new folder"));
    let used = crawl(&["rebuild", "--warc", "kept", "--store", "crawled"], folder);
    assert_eq!(used.status.code(), Some(2));
    // The crawl goes on in it, and has nothing to do.
    let on = run(folder, &[&usual[..], &["--store", "made", "--json"]].concat());
    let on: Value = serde_json::from_slice(&on.stdout).unwrap();
    assert_eq!(on["pages"], 0, "{on}");
}

/// Several runs, in which pages change, stay as they are by what their server says, and go.
#[test]
fn further_visits_are_kept_and_made_anew() {
    let day = Arc::new(AtomicU64::new(0));
    let today = Arc::clone(&day);
    let links: Vec<String> = (0..12).map(|number| format!("/{number}")).collect();
    let site = Site::new().handler(move |request| {
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        if request.target == "/" {
            return Some(Page::html(page("Front", &prose(900, 80), &links)));
        }
        let number = request.target[1..].parse::<u64>().ok()?;
        let day = today.load(Ordering::SeqCst);
        if day > 0 && number == 1 {
            return Some(Page::status(410));
        }
        let seed = if day > 0 && number % 3 == 0 { number + 500 } else { number };
        let tag = format!("\"{seed}\"");
        if request.header("If-None-Match") == Some(&tag) {
            return Some(Page::body(Body::Bytes(Vec::new())).header("ETag", &tag))
                .map(|page| Page { status: 304, ..page });
        }
        let text = page(&format!("Story {seed}"), &prose(seed, 100), &[]);
        Some(Page::html(text).header("ETag", &tag))
    });
    let web = Web::one(site);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "[recrawl]\ninterval_min = \"1s\"\ninterval_first = \"1s\"\ninterval_max = \"1s\"\n\
                seed_interval_max = \"1s\"\n[crawl]\nprobe_error_page = false\n\
                [frontier.discover]\nusual_place = false\n";
    fs::write(folder.join("c.toml"), text).unwrap();
    let seed = web.web.url(0);
    let arguments = [&seed, "--config", "c.toml", "--recrawl", "--store", "s", "--warc", "kept"];
    for run_of_day in 0..3 {
        day.store(u64::from(run_of_day > 0), Ordering::SeqCst);
        let done = run(folder, &arguments);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        std::thread::sleep(Duration::from_millis(1_100));
    }
    fs::write(folder.join("expected.json"), "{\"payloads\": {}, \"warcinfo\": 3}").unwrap();
    assert_eq!(reader(&["check", "kept", "expected.json"], folder)["files"], 3);
    let mut text = Vec::new();
    for file in warc_files(&folder.join("kept")) {
        let file = fs::File::open(file).unwrap();
        flate2::read::MultiGzDecoder::new(file).read_to_end(&mut text).unwrap();
    }
    let text = String::from_utf8_lossy(&text);
    assert!(text.matches("revisit/server-not-modified").count() > 10);
    assert!(text.contains("WARC-Refers-To-Date: "));
    let made = succeed(folder, &["rebuild", "--warc", "kept", "--store", "made", "--json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!((&made["unused"], &made["faults"]), (&json!({}), &json!({})));
    let read = |name: &str| {
        let store = Store::open(&folder.join(name), 1 << 24).unwrap();
        check_clean(&store);
        store.snapshot().unwrap().len(DOCUMENTS).unwrap()
    };
    assert_eq!(read("s"), read("made"));
    assert_eq!(exported(folder, "s"), exported(folder, "made"));
}

#[test]
fn pages_are_read_again_from_files() {
    let (site, pages) = kinds();
    let web = Web::one(site);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    settings(folder);
    let seed = web.web.url(0);
    run(folder, &[&seed, "--config", "c.toml", "--warc", "kept", "--warc-compress", "zstd"]);
    let read = crawl(&["extract", "--warc", "kept"], folder);
    let error = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{error}");
    for part in ["5 pages read", "status 2", "not_a_page 1", "revisit 1", "robots_txt 1"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let mut found = BTreeMap::new();
    for line in String::from_utf8(read.stdout).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let url = line["url"].as_str().unwrap().to_owned();
        found.insert(url, line["text"].as_str().unwrap().to_owned());
    }
    for (path, html) in &pages {
        fs::write(folder.join("page.html"), html).unwrap();
        let url = format!("{seed}{}", &path[1..]);
        let alone = succeed(folder, &["extract", "page.html", "--url", &url]);
        assert_eq!(found[&url].trim(), alone.trim(), "{path}");
    }
    // One more broke off.
    assert_eq!(found.len(), pages.len() + 1);
}

/// WARC files of another project, as they lie in its package.
fn samples() -> &'static Path {
    static SAMPLES: OnceLock<PathBuf> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        const NAME: &str = "pywb-2.10.0";
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("warc-samples");
        let inside = folder.join(NAME).join("sample_archive/warcs");
        if !inside.exists() {
            fs::create_dir_all(&folder).unwrap();
            let run = |arguments: &[&str]| {
                let done = Command::new(python()).args(arguments).current_dir(&folder).output();
                let done = done.unwrap();
                assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            };
            let no_wheel = ["--no-deps", "--no-binary", ":all:", "pywb==2.10.0"];
            run(&[&["-m", "pip", "download", "--quiet"][..], &no_wheel].concat());
            run(&["-m", "tarfile", "-e", &format!("{NAME}.tar.gz")]);
        }
        inside
    })
}

#[test]
fn files_of_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, pages, not_read) in [
        ("dupes.warc.gz", 1, "not_a_page 1, revisit 9, status 1"),
        // One member of gzip for several records.
        ("example-bad.warc.gz.bad", 1, "revisit 1, status 1"),
        ("example-extra.warc", 2, "revisit 2"),
        ("example-url-agnostic-orig.warc.gz", 1, ""),
        ("example-url-agnostic-revisit.warc.gz", 0, "revisit 1"),
        ("example-wget-1-14.warc.gz", 4, ""),
        ("example-wpull.warc.gz", 2, ""),
        // Of a record that is longer than it says.
        ("example.warc", 1, "revisit 1, status 1, stray_bytes 1"),
        ("example.warc.gz", 1, "revisit 1, status 1"),
        ("example2.warc.gz", 1, ""),
        ("httpbin-resource.warc.gz", 0, "not_a_page 1"),
        ("iana.warc.gz", 16, "not_a_page 28, revisit 123, status 4"),
        // It says that it is longer than it is.
        ("missing-status-text.warc", 0, "cut_short 1"),
        ("post-test.warc.gz", 0, "not_a_page 3"),
    ] {
        let path = samples().join(name);
        let path = path.to_str().unwrap();
        let read = crawl(&["extract", "--warc", path], folder.path());
        let error = String::from_utf8_lossy(&read.stderr);
        let told =
            if not_read.is_empty() { String::new() } else { format!("; not read: {not_read}") };
        assert!(error.contains(&format!("{pages} pages read{told}\n")), "{name}: {error}");
        assert_eq!(read.status.code(), Some(if pages > 0 { 0 } else { 2 }), "{name}: {error}");
    }
    let arc = samples().join("example.arc.gz");
    let told = crawl(&["extract", "--warc", arc.to_str().unwrap()], folder.path());
    assert_eq!(told.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&told.stderr).contains("it is an ARC file"));
    // Files of others have no seeds: their pages are what a store is made of.
    let iana = samples().join("iana.warc.gz");
    let made = ["rebuild", "--warc", iana.to_str().unwrap(), "--store", "s", "--json"];
    let made: Value = serde_json::from_str(&succeed(folder.path(), &made)).unwrap();
    assert_eq!(
        (&made["visits"], &made["faults"], &made["unused"]),
        (&json!(171), &json!({}), &json!({}))
    );
    assert_eq!(made["documents"], 16);
    check_clean(&Store::open(&folder.path().join("s"), 1 << 24).unwrap());
}

/// Documents as records, read by tools that know nothing of us.
#[test]
fn an_export_as_warc_has_the_texts_of_the_documents() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(folder, &["demo", "--store", "s", "--quiet"]);
    let read = |out: &str| {
        let files: Vec<PathBuf> = warc_files(&folder.join(out));
        assert_eq!(files.len(), 1);
        files[0].clone()
    };
    succeed(folder, &["export", "--store", "s", "--out", "lines"]);
    let text = fs::read_to_string(folder.join("lines/documents.jsonl")).unwrap();
    let expected: BTreeMap<String, String> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| {
            let [url, text] = ["url", "text"].map(|name| line[name].as_str().unwrap().to_owned());
            (url, sha256(text.as_bytes()))
        })
        .collect();
    assert!(expected.len() > 50);
    for how in ["gzip", "zstd", "none"] {
        let export = ["export", "--store", "s", "--format", "warc", "--compress", how];
        succeed(folder, &[&export[..], &["--out", how]].concat());
        let found = reader(&["texts", read(how).to_str().unwrap()], folder);
        assert_eq!(found["texts"], json!(expected), "{how}");
        assert_eq!(found["fields"], expected.len(), "{how}");
        // The same documents are the same bytes.
        succeed(folder, &[&export[..], &["--out", "again"]].concat());
        assert_eq!(fs::read(read(how)).unwrap(), fs::read(read("again")).unwrap());
        fs::remove_dir_all(folder.join("again")).unwrap();
    }
}

#[test]
fn what_is_no_warc_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("text.warc"), "no record\n").unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    for (arguments, part) in [
        (&["extract", "--warc", "text.warc"][..], "text.warc is no WARC file"),
        (&["extract", "--warc", "none.warc"], "none.warc"),
        (&["extract", "--warc", "empty"], "empty has no WARC file"),
        (&["rebuild", "--warc", "empty", "--store", "s"], "empty has no WARC file"),
        (&["rebuild", "--warc", "text.warc", "--store", "s"], "text.warc is no WARC file"),
        (&["--warc-size", "1 MiB", "http://a.org"], "--warc <DIR>"),
        (&["--warc", "w", "--warc-compress", "brotli", "http://a.org"], "neither gzip nor zstd"),
    ] {
        let told = crawl(arguments, folder);
        let error = String::from_utf8_lossy(&told.stderr);
        assert_eq!(told.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
}
