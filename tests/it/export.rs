//! What is exported: fields, filters, formats, what was kept of pages, and the stream of a service.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::documents::{Keep, read_page};
use uniqcrawl::corpus::tables::{DOCUMENTS, PAGES};
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::store::{Store, View as _};

use crate::service::{Server, get};
use crate::support::{Crawled, Web, config, crawl, page, prose};

/// A page with everything that may be kept of it.
fn rich(number: u64) -> Page {
    let text = prose(100 + number, 120);
    let html = format!(
        "<!DOCTYPE html><html lang=\"en\"><head><title>Story {number}</title>\
         <meta name=\"author\" content=\"Ann Author, Ben Writer\">\
         <meta property=\"article:published_time\" content=\"2026-11-{:02}T08:00:00+08:00\">\
         <meta property=\"og:image\" content=\"/lead.png\"></head>\
         <body><article><h1>Story {number}</h1><p>{text}</p><h2>More of it</h2>\
         <p>{} <a href=\"/{}\">the <b>next</b> story</a></p></article>\
         <a href=\"/away\" rel=\"nofollow\"><img src=\"/x.png\" alt=\"a picture\"></a></body></html>",
        number % 28 + 1,
        prose(900 + number, 60),
        number + 1,
    );
    Page::html(html)
        .header("ETag", "\"v1\"")
        .header("Last-Modified", "Sat, 21 Nov 2026 06:00:00 GMT")
        .header("Content-Language", "en")
}

/// A web of two hosts, with `count` stories on each; every third one stands on both.
pub(crate) fn web(count: u64) -> Web {
    let links: Vec<String> = (0..count).map(|n| format!("/{n}")).collect();
    Web::start(2, move |_| {
        let site = |host: u64| {
            let links: Vec<&str> = links.iter().map(String::as_str).collect();
            let front = page("Front", &prose(host + 1, 80), &links);
            let site = Site::new().html("/", front);
            (0..count).fold(site, |site, n| {
                let number = if n % 3 == 0 { n } else { n + host * 1_000 };
                site.page(&format!("/{n}"), rich(number))
            })
        };
        vec![site(0), site(1)]
    })
}

/// A crawl of it by the binary, into `store` of the folder.
pub(crate) fn crawled(count: u64, more: &[&str]) -> (Web, tempfile::TempDir) {
    let web = web(count);
    let folder = tempfile::tempdir().unwrap();
    let seeds: Vec<String> = web.seeds().iter().map(ToString::to_string).collect();
    fs::write(folder.path().join("seeds.txt"), seeds.join("\n")).unwrap();
    let usual = ["--seeds", "seeds.txt", "--allow-private", "--quiet", "--delay", "0"];
    let done = crawl(&[&usual[..], more].concat(), folder.path());
    assert!(done.status.success(), "{done:?}");
    (web, folder)
}

/// Runs an export, which succeeds. Returns what it says.
#[track_caller]
pub(crate) fn export(folder: &Path, more: &[&str]) -> String {
    let done = crawl(&[&["export"][..], more].concat(), folder);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Runs an export, which fails with a code. Returns what it says.
#[track_caller]
pub(crate) fn refused(folder: &Path, code: i32, more: &[&str]) -> String {
    let done = crawl(&[&["export"][..], more].concat(), folder);
    let text = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(code), "{text}");
    text
}

pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a store says of each document, by its identifier.
fn stored(folder: &Path) -> BTreeMap<String, (String, u64, Timestamp)> {
    let store = Store::open_to_read(&folder.join("store"), 1 << 24).unwrap();
    let snapshot = store.snapshot().unwrap();
    let rows = snapshot.rows(DOCUMENTS).unwrap();
    let row = |row: uniqcrawl::corpus::documents::Document| {
        (row.id.to_string(), (row.canonical, row.copies, row.first_arrival))
    };
    rows.map(|entry| row(entry.unwrap().row().unwrap())).collect()
}

#[test]
fn fields_are_chosen_and_what_is_kept_of_pages_is_among_them() {
    let (_web, folder) = crawled(6, &["--keep", "markdown,links,images,headers"]);
    let folder = folder.path();
    let fields = "url,markdown,authors,published,links,imageList,status,headers,fetched,\
        fingerprint,keys,host,domain,length,words,quality,first_seen";
    export(folder, &["--out", "out", "--fields", fields, "--where", "title like 'Story*'"]);
    let rows = lines(&folder.join("out/documents.jsonl"));
    assert_eq!(rows.len(), 10, "of 12 stories, two are on both hosts");
    for row in &rows {
        let names: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names.len(), 17, "{names:?}");
        let markdown = row["markdown"].as_str().unwrap();
        assert!(markdown.contains("## More of it\n"), "{markdown}");
        assert_eq!(row["authors"], serde_json::json!(["Ann Author", "Ben Writer"]));
        let links = row["links"].as_array().unwrap();
        assert_eq!(
            (&links[0]["text"], &links[0]["nofollow"]),
            (&"the next story".into(), &false.into())
        );
        assert_eq!((&links[1]["text"], &links[1]["nofollow"]), (&"a picture".into(), &true.into()));
        assert!(row["imageList"][0]["url"].as_str().unwrap().ends_with("/lead.png"), "{row}");
        assert_eq!(row["status"], 200);
        assert_eq!(row["headers"]["etag"], "\"v1\"");
        assert_eq!(row["headers"]["contentLanguage"], "en");
        assert!(row["headers"]["contentType"].as_str().unwrap().starts_with("text/html"));
        assert_eq!(row["fingerprint"].as_str().unwrap().len(), 16);
        assert_eq!(row["keys"]["hash"].as_str().unwrap().len(), 32);
        assert!(row["quality"].as_f64().unwrap() > 0.5 && row["length"].as_u64().unwrap() > 500);
        assert!(row["url"].as_str().unwrap().contains(row["host"].as_str().unwrap()));
    }
    let told = refused(folder, 2, &["--out", "x", "--fields", "url,pubished"]);
    assert!(told.contains("`pubished` is no field: there are docId, url"), "{told}");
    let told = refused(folder, 2, &["--out", "x", "--where", "host = a and pubished > 2026"]);
    assert!(told.contains("at character 14") && told.contains("             ^"), "{told}");
    assert!(!folder.join("x").exists());
}

#[test]
fn what_was_not_kept_is_told_and_goes_with_its_copy() {
    let (_web, folder) = crawled(3, &[]);
    let folder = folder.path();
    let told = refused(folder, 2, &["--out", "out", "--fields", "url,markdown"]);
    assert!(told.contains("`markdown` was kept of no page") && told.contains("--keep"), "{told}");
    export(folder, &["--out", "out", "--fields", "all"]);
    let rows = lines(&folder.join("out/documents.jsonl"));
    assert!(rows.iter().all(|row| row["markdown"].is_null() && row["text"].is_string()));

    let web = web(4);
    let crawled = Crawled::new();
    let mut config = config();
    crawled.run(&config, &web.seeds());
    assert_eq!(crawled.store.snapshot().unwrap().len(PAGES).unwrap(), 0);
    config.corpus.keep = vec![Keep::Markdown, Keep::Links];
    let crawled = Crawled::new();
    crawled.run(&config, &web.seeds());
    let url = web.url(0, "/1");
    let page = read_page(&crawled.store.snapshot().unwrap(), url.as_str()).unwrap().unwrap();
    assert!(page.has(Keep::Links) && !page.has(Keep::Headers) && page.status == 0);
    assert!(page.details().unwrap().markdown.contains("More of it"));
    // A document that ends takes with it what was kept.
    let before = crawled.store.snapshot().unwrap().len(PAGES).unwrap();
    assert_eq!(before, 10);
    uniqcrawl::corpus::dedup::expire(&crawled.store, None, Timestamp(i64::MAX)).unwrap();
    assert_eq!(crawled.store.snapshot().unwrap().len(PAGES).unwrap(), 0);
    crawled.assert_clean();
}

#[test]
fn documents_are_chosen_and_so_are_their_copies() {
    let (web, folder) = crawled(6, &[]);
    let folder = folder.path();
    let all = stored(folder);
    let host = web.web.url(0).split('/').nth(2).unwrap().split(':').next().unwrap().to_owned();
    for (expression, takes) in [
        (
            "copies > 1",
            Box::new(|copies: u64, _: &str| copies > 1) as Box<dyn Fn(u64, &str) -> bool>,
        ),
        ("not copies > 1", Box::new(|copies, _: &str| copies <= 1)),
        (&format!("host = {host}"), {
            let host = host.clone();
            Box::new(move |_, url: &str| url.contains(&format!("//{host}:")))
        }),
        ("published > 2026-11 or published = 2026-11-01T00:00:00Z", Box::new(|_, _: &str| false)),
        ("first_seen > 2020 and length > 100", Box::new(|_, _: &str| true)),
    ] {
        let _ = fs::remove_dir_all(folder.join("out"));
        let told = export(folder, &["--out", "out", "--where", expression]);
        let mut found: Vec<String> = lines(&folder.join("out/documents.jsonl"))
            .iter()
            .map(|row| row["docId"].as_str().unwrap().to_owned())
            .collect();
        found.sort();
        let wanted: Vec<String> = all
            .iter()
            .filter(|(_, (url, copies, _))| takes(*copies, url))
            .map(|(id, _)| id.clone())
            .collect();
        if expression.starts_with("published") {
            // Midnight in UTC is eight in the morning there.
            assert!(!found.is_empty() && found.len() < all.len(), "{expression}: {found:?}");
        } else {
            assert_eq!(found, wanted, "{expression}");
            let others = all.len() - found.len();
            assert!(told.contains(&format!("{others} others are not taken")), "{told}");
        }
        for dropped in lines(&folder.join("out/duplicates.jsonl")) {
            assert!(found.contains(&dropped["docId"].as_str().unwrap().to_owned()), "{dropped}");
        }
    }
}

#[test]
fn standard_output_has_one_list_and_no_folder_is_made() {
    let (_web, folder) = crawled(4, &[]);
    let folder = folder.path();
    export(folder, &["--out", "out"]);
    let piped = crawl(&["export", "--out", "-"], folder);
    assert!(piped.status.success() && !folder.join("-").exists());
    assert_eq!(piped.stdout, fs::read(folder.join("out/documents.jsonl")).unwrap());
    let told = String::from_utf8(piped.stderr).unwrap();
    assert!(told.contains("documents written") && told.contains("--list duplicates"), "{told}");
    let dropped = crawl(&["export", "--out", "-", "--list", "duplicates", "--quiet"], folder);
    assert_eq!(dropped.stdout, fs::read(folder.join("out/duplicates.jsonl")).unwrap());
    assert!(dropped.stderr.is_empty(), "{dropped:?}");
    let packed = crawl(&["export", "--out", "-", "--compress", "zstd", "--quiet"], folder);
    let unpacked = zstd::decode_all(&packed.stdout[..]).unwrap();
    assert_eq!(unpacked, piped.stdout);
    let told = refused(folder, 2, &["--out", "-", "--shard-size", "10"]);
    assert!(told.contains("--shard-size needs a folder"), "{told}");
    let told = refused(folder, 2, &["--out", "x", "--list", "duplicates"]);
    assert!(told.contains("--list is for --out -"), "{told}");
}

#[test]
fn markdown_has_each_document_behind_its_fields() {
    let (_web, folder) = crawled(3, &["--keep", "markdown"]);
    let folder = folder.path();
    export(folder, &["--out", "out", "--format", "markdown", "--shard-size", "1"]);
    let text = fs::read_to_string(folder.join("out/documents-00003.md")).unwrap();
    let (head, body) = text.strip_prefix("---\n").unwrap().split_once("\n---\n\n").unwrap();
    assert!(head.contains("title: \"Story") && head.contains("docId: \""), "{head}");
    assert!(!head.contains("text:") && body.contains("## More of it"), "{text}");
    export(folder, &["--out", "one", "--format", "markdown"]);
    let all = fs::read_to_string(folder.join("one/documents.md")).unwrap();
    let begins = all.lines().filter(|line| *line == "---").count();
    assert_eq!(begins, 2 * stored(folder).len(), "no text has a line of dashes");
}

/// A service of the binary.
struct Service(Child, String);

impl Service {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["serve", "--store", "store", "--listen", "127.0.0.1:0"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        let url = line.split_whitespace().last().unwrap().to_owned();
        Self(child, url)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_export_from_a_running_service_is_that_of_its_store() {
    let (_web, folder) = crawled(8, &["--keep", "links,headers"]);
    let folder = folder.path();
    let formats: &[&[&str]] = &[
        &["--format", "jsonl", "--shard-size", "4", "--compress", "gzip"],
        &["--format", "parquet", "--fields", "usual,links,headers,authors,quality"],
        &["--format", "csv", "--where", "copies > 1"],
    ];
    for (number, how) in formats.iter().enumerate() {
        export(folder, &[&["--out", &format!("own-{number}")][..], how].concat());
    }
    let service = Service::start(folder);
    let told = refused(folder, 1, &["--out", "x"]);
    assert!(told.contains("in use by another process"), "{told}");
    assert!(told.contains("crawl export --from http://127.0.0.1:8080"), "the way out: {told}");
    for (number, how) in formats.iter().enumerate() {
        let out = format!("from-{number}");
        export(folder, &[&["--from", &service.1, "--out", &out][..], how].concat());
        let (own, from) = (folder.join(format!("own-{number}")), folder.join(&out));
        let names = |folder: &Path| -> Vec<String> {
            let mut names: Vec<String> = fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names(&own), names(&from), "{how:?}");
        for name in names(&own) {
            assert!(
                fs::read(own.join(&name)).unwrap() == fs::read(from.join(&name)).unwrap(),
                "{name}"
            );
        }
    }
    let piped = crawl(&["export", "--from", &service.1, "--out", "-", "--quiet"], folder);
    assert_eq!(piped.stdout.split(|byte| *byte == b'\n').count(), stored_count(&service) + 1);
    let told = refused(folder, 2, &["--from", &service.1, "--out", "x", "--fields", "markdown"]);
    assert!(told.contains("`markdown` was kept of no page") || told.contains("missing"), "{told}");
    drop(service);
    let told = refused(folder, 1, &["--from", "http://127.0.0.1:1", "--out", "x"]);
    assert!(told.contains("no service answers there"), "{told}");
    let told = refused(folder, 2, &["--from", "ftp://a", "--out", "x"]);
    assert!(told.contains("http or https"), "{told}");
    assert!(!folder.join("x").exists());
}

fn stored_count(service: &Service) -> usize {
    let address = service.1.strip_prefix("http://").unwrap().parse().unwrap();
    let told: Value = get(address, "/v1/stats").json();
    usize::try_from(told["documents"].as_u64().unwrap()).unwrap()
}

#[test]
fn a_service_streams_a_list_and_refuses_what_it_does_not_know() {
    let server = Server::new();
    for number in 0..30 {
        let content = prose(number % 20, 80);
        let url = format!("http://a.example/{number}");
        server.send(
            &serde_json::json!({"url": url, "title": format!("=T{number}"), "content": content}),
        );
    }
    let answer = server.get("/v1/export");
    assert_eq!((answer.status, answer.lines().len()), (200, 20));
    assert_eq!(answer.headers["content-type"], "application/x-ndjson");
    assert!(answer.headers["content-disposition"].contains("documents.jsonl"));
    assert_eq!(server.get("/v1/export?list=duplicates").lines().len(), 10);
    let some = server.get("/v1/export?where=copies+%3E+1&fields=docId,copies");
    assert_eq!(some.lines().len(), 10);
    let csv = server.get("/v1/export?format=csv&fields=title");
    assert!(csv.body.starts_with("title\n'=T"), "{}", csv.body);
    let all = server.get("/v1/export?list=all").lines();
    assert!(all[0]["export"]["fields"].is_array() && all.last().unwrap()["end"]["documents"] == 20);
    for (query, code) in [
        ("format=xml", "bad_parameter"),
        ("list=others", "bad_parameter"),
        ("list=all&format=csv", "bad_parameter"),
        ("where=copies+%3E", "bad_parameter"),
        ("fields=nothing", "bad_parameter"),
        ("fields=markdown", "bad_parameter"),
        ("compress=rar", "bad_parameter"),
        ("unsettled=perhaps", "bad_parameter"),
        ("color=red", "unknown_parameter"),
    ] {
        server.get(&format!("/v1/export?{query}")).is(400, code);
    }
    server.lives();
}

#[test]
fn an_export_that_a_service_cuts_off_leaves_nothing() {
    // A server that ends in the middle of an export.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let head = "{\"export\":{\"program\":\"x\",\"store\":{\"number\":1,\"bytes\":1,\"changed\":1},\
        \"fields\":[\"url\"]}}\n{\"documents\":{\"url\":\"http://a/\"}}\n";
    let body = zstd::encode_all(head.as_bytes(), 1).unwrap();
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = std::io::Read::read(&mut stream, &mut request).unwrap();
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            let chunk = format!("{:x}\r\n", body.len());
            let bytes = [head.as_bytes(), chunk.as_bytes(), &body, b"\r\n"].concat();
            std::io::Write::write_all(&mut stream, &bytes).unwrap();
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let from = ["--from", &url, "--out", "out", "--fields", "url"];
    let told = refused(folder.path(), 1, &from);
    assert!(told.contains("the export ended") || told.contains("cut off"), "{told}");
    let left: Vec<_> = fs::read_dir(folder.path().join("out")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let other = ["--from", &url, "--out", "out", "--fields", "url,title"];
    let told = refused(folder.path(), 1, &other);
    assert!(told.contains("other fields"), "{told}");
    server.join().unwrap();
}

#[test]
fn a_job_exports_what_it_is_told_to() {
    let (web, folder) = crawled(4, &[]);
    let path = folder.path();
    let job = |export: &str| {
        format!(
            "[[job]]\nname = \"a\"\nseeds = [\"{}\"]\nstore = \"store\"\nevery = \"1h\"\n\
             [job.settings.fetch]\nallow_private = true\n[job.export]\nfolder = \"out\"\n{export}",
            web.web.url(0)
        )
    };
    let run = |jobs: &str| {
        fs::write(path.join("jobs.toml"), jobs).unwrap();
        crawl(&["jobs", "run", "--jobs", "jobs.toml", "--once", "a"], path)
    };
    let how = "where = \"copies > 1\"\nfields = \"url,copies\"\nshard_size = \"1\"\ncompress = \"gzip\"\n";
    let done = run(&job(how));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let bytes = fs::read(path.join("out/documents-00001.jsonl.gz")).unwrap();
    let mut text = String::new();
    let mut file = flate2::read::GzDecoder::new(&bytes[..]);
    std::io::Read::read_to_string(&mut file, &mut text).unwrap();
    let row: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((row.as_object().unwrap().len(), &row["copies"]), (2, &2.into()));
    for (wrong, told) in [
        (
            "where = \"copys > 1\"\n",
            "line 10: job a: export.where: at character 1: `copys` is no field",
        ),
        ("fields = \"all,x\"\n", "line 10: job a: export.fields: `x` is no field"),
        ("shard_size = \"x\"\n", "line 10: job a: export.shard_size: write a number"),
        ("compress = \"rar\"\n", "line 10: job a: export.compress: must be zstd, gzip or none"),
    ] {
        let done = run(&job(wrong));
        let said = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains(told), "{told}: {said}");
    }
}
