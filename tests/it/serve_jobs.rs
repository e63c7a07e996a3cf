//! Jobs beside the service: listed, started and stopped over HTTP; kills in the middle.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uniqcrawl::localweb::{Page, Site};

use crate::service::{Answer, article, get, post, raw};
use crate::support::{Web, crawl, page, prose};

/// The binary, serving the store `s` with jobs.
struct Process {
    child: Child,
    address: SocketAddr,
    out: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(folder: &Path) -> Self {
        Self::logging(folder, None)
    }

    /// Logs what is for those who develop into a file, if there is one.
    fn logging(folder: &Path, log: Option<File>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
        command
            .args(["serve", "--store", "s", "--listen", "127.0.0.1:0", "--jobs", "jobs.toml"])
            .current_dir(folder)
            .env_remove("UNIQCRAWL_LOG")
            .stdout(Stdio::piped());
        if let Some(log) = log {
            command.env("UNIQCRAWL_LOG", "uniqcrawl=debug").stderr(log);
        }
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").expect("it listens");
        Self { address: address.parse().unwrap(), child, out }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and waits for that.
    #[track_caller]
    fn end(&mut self) {
        let id = i32::try_from(self.child.id()).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "stopped\n");
    }

    fn get(&self, path: &str) -> Value {
        get(self.address, path).json()
    }

    fn post(&self, path: &str) -> Answer {
        post(self.address, path, "application/json", b"")
    }

    fn job(&self, name: &str) -> Value {
        let told = self.get("/v1/jobs");
        assert_eq!(told["enabled"], true);
        let rows = told["rows"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    }

    /// Waits until a job has ended for the `times`th time.
    #[track_caller]
    fn ended(&self, name: &str, times: usize) -> Value {
        let end = Instant::now() + Duration::from_mins(1);
        loop {
            let runs = self.get(&format!("/v1/jobs/{name}/runs"))["rows"].clone();
            let runs = runs.as_array().unwrap();
            let row = self.job(name);
            if runs.len() == times && !runs[0]["ended"].is_null() && row["state"] == "idle" {
                assert_eq!(row["last"], runs[0]);
                return runs[0].clone();
            }
            assert!(Instant::now() < end, "{name} does not end: {runs:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the crawl of a job has read some pages.
    #[track_caller]
    fn reads(&self, name: &str, pages: u64) -> Value {
        let end = Instant::now() + Duration::from_mins(1);
        loop {
            let live = self.get("/v1/live");
            let rows = live["crawls"].as_array().unwrap();
            let row = rows.iter().find(|row| row["job"] == name);
            if let Some(row) = row.filter(|row| row["pages"].as_u64() >= Some(pages)) {
                return row.clone();
            }
            assert!(Instant::now() < end, "{name} reads no page: {live}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, unless a test failed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[track_caller]
fn check(folder: &Path, store: &str) {
    let out = crawl(&["check", "--store", store], folder);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stdout));
}

/// A site of pages that take some time each.
fn site(pages: u64, takes: Duration) -> Web {
    let links: Vec<String> = (0..pages).map(|number| format!("/p/{number}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let front = Site::new().html("/", page("Front", &prose(1, 80), &links));
    Web::one((0..pages).fold(front, |site, number| {
        let html = page(&format!("Page {number}"), &prose(number + 10, 80), &[]);
        site.page(&format!("/p/{number}"), Page::html(html).after(takes))
    }))
}

/// A job whose only moment is far away.
fn job(name: &str, web: &Web, store: &str) -> String {
    format!(
        "[[job]]\nname = \"{name}\"\nseeds = [\"{}\"]\nstore = \"{store}\"\ncron = \"0 0 29 2 *\"\n\
         [job.settings]\nfetch.allow_private = true\nfrontier.delay = 0\n\
         frontier.discover.usual_place = false\ncrawl.idle_wait_max = \"2s\"\n\
         crawl.probe_error_page = false\n",
        web.web.url(0)
    )
}

#[test]
fn jobs_are_listed_started_and_stopped_over_http() {
    let (quick, slow) = (site(3, Duration::ZERO), site(300, Duration::from_millis(50)));
    let last = site(200, Duration::from_millis(50));
    let folder = tempfile::tempdir().unwrap();
    let other = job("other", &quick, "o");
    let own = format!("{}crawl.pages_max = 4\n", job("own", &quick, "s"));
    let jobs = [own, job("slow", &slow, "s"), other, job("last", &last, "s")];
    std::fs::write(folder.path().join("jobs.toml"), jobs.concat()).unwrap();
    let mut process = Process::start(folder.path());
    let row = process.job("own");
    assert_eq!((&row["state"], &row["last"]), (&json!("idle"), &Value::Null));
    assert!(row["next"].is_string() && row["schedule"].as_str().unwrap().contains("29"), "{row}");

    // Nothing that a page of another origin can send starts anything.
    for headers in [
        "Origin: https://evil.example",
        "Origin: http://localhost:3000",
        "Origin: null",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ] {
        let text = format!(
            "POST /v1/jobs/own/start HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Length: 0\r\n{headers}\r\n\r\n",
            process.address
        );
        raw(process.address, text.as_bytes()).is(403, "forbidden_origin");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        post(process.address, "/v1/jobs/own/start", kind, b"").is(415, "unsupported_media_type");
    }
    process.post("/v1/jobs/none/start").is(404, "unknown_job");
    process.post("/v1/jobs/none/stop").is(404, "unknown_job");
    get(process.address, "/v1/jobs/none/runs").is(404, "unknown_job");
    get(process.address, "/v1/jobs/own/start").is(405, "method_not_allowed");
    process.post("/v1/jobs/own/stop").is(409, "job_conflict");
    assert!(process.job("own")["last"].is_null(), "nothing was started");

    // Its own page may: a browser names its origin.
    let text = format!(
        "POST /v1/jobs/own/start HTTP/1.1\r\nHost: {0}\r\nConnection: close\r\nContent-Length: 0\r\n\
         Origin: http://{0}\r\nSec-Fetch-Site: same-origin\r\n\r\n",
        process.address
    );
    let answer = raw(process.address, text.as_bytes());
    assert_eq!((answer.status, &answer.json()["name"]), (202, &json!("own")), "{}", answer.body);
    let run = process.ended("own", 1);
    assert_eq!((&run["outcome"], &run["trigger"]), (&json!("done"), &json!("hand")), "{run}");
    assert_eq!((&run["counts"]["pages"], &run["counts"]["new"]), (&json!(4), &json!(4)), "{run}");
    assert_eq!(process.get("/v1/documents")["rows"].as_array().unwrap().len(), 4);

    // A run of the store that is served: its pages and articles are one store.
    assert_eq!(process.post("/v1/jobs/slow/start").status, 202);
    process.reads("slow", 3);
    // Hosts are shown with the pace of the crawl that is under way, not of the service.
    let hosts = process.get("/v1/hosts?sort=queued");
    assert_eq!(hosts["rows"][0]["delayMs"], 0, "{hosts}");
    process.post("/v1/jobs/slow/start").is(409, "job_conflict");
    let copy = json!({"nid": "1", "title": "Page 0", "content": prose(10, 80)}).to_string();
    let answer = post(process.address, "/v1/articles", "application/json", copy.as_bytes());
    assert_eq!(answer.json()["filterStatus"], "duplicate", "{}", answer.body);
    // One that would use the same store waits for it.
    let waits = process.post("/v1/jobs/own/start");
    assert_eq!((waits.status, &waits.json()["state"]), (202, &json!("waiting")));
    assert_eq!(process.post("/v1/jobs/slow/stop").status, 202);
    assert_eq!(process.ended("slow", 1)["outcome"], "stopped");
    // It reads a few pages that the other has left.
    process.ended("own", 2);

    // Another store is opened by its job alone.
    assert_eq!(process.post("/v1/jobs/other/start").status, 202);
    assert_eq!(process.ended("other", 1)["outcome"], "done");
    check(folder.path(), "o");

    // The service ends with a run under way.
    assert_eq!(process.post("/v1/jobs/last/start").status, 202);
    process.reads("last", 1);
    process.end();
    let out = crawl(&["jobs", "history", "last", "--jobs", "jobs.toml", "--json"], folder.path());
    let runs: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&runs[0]["outcome"], runs.as_array().unwrap().len()), (&json!("stopped"), 1));
    check(folder.path(), "s");
}

#[test]
fn a_run_that_another_process_has_begun_is_refused() {
    let slow = site(200, Duration::from_millis(50));
    let folder = tempfile::tempdir().unwrap();
    let jobs = [job("slow", &slow, "o")];
    std::fs::write(folder.path().join("jobs.toml"), jobs.concat()).unwrap();
    let mut process = Process::start(folder.path());
    let mut other = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["jobs", "run", "--once", "slow", "--jobs", "jobs.toml", "--quiet"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_mins(1);
    while slow.web.requests().len() < 5 {
        assert!(Instant::now() < end, "the other process crawls");
        thread::sleep(Duration::from_millis(5));
    }
    let answer = process.post("/v1/jobs/slow/start");
    answer.is(409, "job_conflict");
    assert!(answer.body.contains("another process"), "{}", answer.body);
    assert_eq!(process.job("slow")["last"]["outcome"], "refused");
    other.kill().unwrap();
    other.wait().unwrap();
    process.end();
}

#[test]
fn jobs_that_cannot_share_the_store_are_told_before_anything_is_served() {
    let quick = site(1, Duration::ZERO);
    let folder = tempfile::tempdir().unwrap();
    let fails = |jobs: &str, why: &str| {
        std::fs::write(folder.path().join("jobs.toml"), jobs).unwrap();
        let arguments = ["serve", "--store", "s", "--listen", "127.0.0.1:0", "--jobs", "jobs.toml"];
        let out = crawl(&arguments, folder.path());
        let told = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{told}");
        assert!(told.contains(why), "{told}");
    };
    fails("[[job]]\nname = \"x\"\n", "job x");
    let other = format!("{}dedup.k = 2\n", job("x", &quick, "s"));
    fails(&other, "its settings of `dedup` are not those of the service");
}

#[test]
fn a_kill_with_a_job_and_articles_under_way_loses_nothing_that_was_answered() {
    let web = site(120, Duration::from_millis(5));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.toml"), job("news", &web, "s")).unwrap();
    let mut process = Process::start(folder.path());
    let mut answers: Vec<(String, Value)> = Vec::new();
    let send = |process: &Process, body: &str| {
        post(process.address, "/docId/getDocId", "application/json", body.as_bytes()).json()
    };
    for life in 0..3_u64 {
        assert_eq!(process.post("/v1/jobs/news/start").status, 202);
        process.reads("news", 2);
        for n in 0..12 {
            let number = life * 100 + n;
            let body = article(&number.to_string(), 5_000 + number / 2, "m").to_string();
            let told = send(&process, &body);
            answers.push((body, told["docId"].clone()));
        }
        process.kill();
        check(folder.path(), "s");
        process = Process::start(folder.path());
        for (body, id) in &answers {
            let again = send(&process, body);
            assert_eq!(again["docId"], *id);
            assert_eq!(again["filterReason"], "docId_filter nid duplicate");
        }
    }
    // What was cut is told, and the last run ends like one that was never killed.
    let runs = process.get("/v1/jobs/news/runs")["rows"].clone();
    assert!(runs.as_array().unwrap().iter().all(|run| run["outcome"] == "interrupted"), "{runs}");
    assert_eq!(process.post("/v1/jobs/news/start").status, 202);
    let run = process.ended("news", 4);
    assert_eq!(run["outcome"], "done", "{run}");
    let told = process.get("/v1/reasons");
    assert_eq!(told["documents"], json!(121 + 18), "{told}");
    assert_eq!(told["waiting"], 0);
    process.end();
    check(folder.path(), "s");
}

#[test]
fn memory_that_no_service_takes_is_that_of_filters() {
    let quick = site(1, Duration::ZERO);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let write = |name: &str, text: &str| std::fs::write(path.join(name), text).unwrap();
    write("jobs.toml", &format!("{}memory = \"1 GiB\"\n", job("other", &quick, "o")));
    write("one.jsonl", &format!("{}\n", json!({"text": prose(1, 80)})));
    write("list.txt", &quick.web.url(0));
    // Its page cache of 128 MiB has 312 MiB of filters, and service 160 MiB.
    let filters = |log: &[u8]| {
        let log = String::from_utf8_lossy(log).into_owned();
        let said = log.lines().filter(|line| line.contains("memory of the index"));
        let mib = |line: &str| {
            let (_, bytes) = line.rsplit_once("filters=").unwrap();
            bytes.split(' ').next().unwrap().parse::<u64>().unwrap() >> 20
        };
        said.map(mib).collect::<Vec<_>>()
    };
    for arguments in [
        &["import", "one.jsonl", "--store", "i"][..],
        &["--seeds", "list.txt", "--store", "c", "--allow-private", "--delay", "0"],
        &["jobs", "run", "--once", "other", "--jobs", "jobs.toml"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
        let done = command
            .args(arguments)
            .args(["--memory", "1 GiB"].iter().filter(|_| arguments[0] != "jobs"))
            .env("UNIQCRAWL_LOG", "uniqcrawl=debug")
            .current_dir(path)
            .output()
            .unwrap();
        assert_eq!(filters(&done.stderr), [472], "{arguments:?}");
    }
    // The service has its memory, whatever is crawled beside it.
    let log = path.join("serve.log");
    let mut process = Process::logging(path, Some(File::create(&log).unwrap()));
    assert_eq!(process.post("/v1/jobs/other/start").status, 202);
    process.ended("other", 2);
    process.end();
    assert_eq!(filters(&std::fs::read(&log).unwrap()).last(), Some(&312));
}
