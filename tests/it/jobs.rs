//! Jobs with the real binary: export, webhook, command, kills, overlaps, faults of the file.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use uniqcrawl::corpus::export::Format;
use uniqcrawl::crawl::jobs::JobsFile;
use uniqcrawl::localweb::{Page, Site};

use crate::support::{Web, crawl, page, prose};

fn text(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr];
    streams.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

#[track_caller]
fn ends(arguments: &[&str], folder: &Path, code: i32) -> String {
    let output = crawl(&[&["jobs"], arguments].concat(), folder);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    text
}

/// What `--json` prints.
#[track_caller]
fn json(arguments: &[&str], folder: &Path) -> Value {
    let output = crawl(&[&["jobs"], arguments, &["--json"]].concat(), folder);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn put_jobs(folder: &Path, text: &str) {
    fs::create_dir_all(folder.join("config")).unwrap();
    fs::write(folder.join("config/jobs.toml"), text).unwrap();
}

/// A job without delays on loopback.
fn job(name: &str, web: &Web, more: &str) -> String {
    format!(
        "[[job]]\nname = \"{name}\"\nseeds = [\"{}\"]\nstore = \"{name}\"\nevery = \"1h\"\n\
         [job.settings]\nfetch.allow_private = true\nfrontier.delay = 0\n\
         crawl.idle_wait_max = \"2s\"\n{more}",
        web.web.url(0)
    )
}

/// A site of `pages` pages, each of which takes some time.
fn site(pages: u64, takes: Duration) -> Web {
    let links: Vec<String> = (0..pages).map(|number| format!("/p/{number}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let front = Site::new().html("/", page("Front", &prose(1, 80), &links));
    Web::one((0..pages).fold(front, |site, number| {
        let html = page(&format!("Page {number}"), &prose(number + 10, 80), &[]);
        site.page(&format!("/p/{number}"), Page::html(html).after(takes))
    }))
}

/// A server that answers each request with the next status of a list, the last one again and
/// again, and keeps what it was sent.
struct Hook {
    address: SocketAddr,
    got: Arc<Mutex<Vec<(String, String)>>>,
}

impl Hook {
    fn start(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let got: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let kept = got.clone();
        std::thread::spawn(move || {
            for number in 0.. {
                let Ok((mut stream, _)) = listener.accept() else { return };
                let mut bytes = Vec::new();
                let (mut head, mut body) = (String::new(), String::new());
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    bytes.extend_from_slice(&buffer[..length]);
                    let all = String::from_utf8_lossy(&bytes).into_owned();
                    let Some((first, rest)) = all.split_once("\r\n\r\n") else { continue };
                    (head, body) = (first.to_ascii_lowercase(), rest.to_owned());
                    let length = head.split("content-length: ").nth(1).unwrap();
                    if body.len() >= length.lines().next().unwrap().parse().unwrap() {
                        break;
                    }
                }
                kept.lock().unwrap().push((head, body));
                let status = statuses[number.min(statuses.len() - 1)];
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\
                     Connection: close\r\n\r\n"
                );
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { address, got }
    }

    fn got(&self) -> Vec<(String, String)> {
        self.got.lock().unwrap().clone()
    }
}

#[test]
fn a_job_crawls_exports_and_tells_a_webhook_and_a_command() {
    let (web, hook) = (site(3, Duration::ZERO), Hook::start(&[503, 200]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let more = format!(
        "[job.export]\nfolder = \"corpus\"\n[job.webhook]\nurl = \"http://{}/hook/s3cret-path\"\n\
         token_file = \"token\"\nallow_private = true\n\
         [job.command]\nrun = [\"sh\", \"-c\", \"cat > told.json; env > told.env; exit 7\", \"s3cret-arg\"]\n",
        hook.address
    );
    put_jobs(path, &job("news", &web, &more));
    fs::write(path.join("token"), "s3cret-token\n").unwrap();
    assert!(ends(&["list"], path, 0).contains("never ran"));

    let said = ends(&["run", "--once", "news", "-v", "-v"], path, 0);
    assert!(said.contains("news: done, 4 pages, 4 new, 0 duplicates"), "{said}");
    assert!(said.contains("export: 4 documents in corpus"), "{said}");
    assert!(said.contains("webhook: 127.0.0.1 answered 200"), "{said}");
    assert!(said.contains("command: failed: sh: exit status: 7"), "noted, and no failure: {said}");
    let corpus = fs::read_to_string(path.join("corpus/documents.jsonl")).unwrap();
    assert_eq!(corpus.lines().count(), 4);

    let got = hook.got();
    assert_eq!(got.len(), 2, "tried again after 503");
    let (head, body) = &got[1];
    assert!(head.starts_with("post /hook/s3cret-path "), "{head}");
    assert!(head.contains("authorization: bearer s3cret-token"), "{head}");
    let sent: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&sent["job"], &sent["outcome"]), (&Value::from("news"), &Value::from("done")));
    assert_eq!(sent["counts"]["pages"], 4);
    assert!(sent["counts"]["bytes"].as_u64().unwrap() > 1_000);
    assert_eq!(sent["after"]["export"], "4 documents in corpus");
    let told: Value =
        serde_json::from_str(&fs::read_to_string(path.join("told.json")).unwrap()).unwrap();
    assert_eq!(told["counts"], sent["counts"]);
    let env = fs::read_to_string(path.join("told.env")).unwrap();
    for line in ["UNIQCRAWL_JOB=news", "UNIQCRAWL_OUTCOME=done", "UNIQCRAWL_NEW=4"] {
        assert!(env.lines().any(|one| one == line), "{line}: {env}");
    }

    // By hand is not by schedule: the first moment of the interval is still due.
    let said = said + &ends(&["run", "--until", "0"], path, 0);
    assert!(said.contains("news: started, due "), "{said}");
    let rows = json(&["history", "news"], path);
    let triggers: Vec<&str> =
        rows.as_array().unwrap().iter().map(|row| row["trigger"].as_str().unwrap()).collect();
    assert_eq!(triggers, ["schedule", "hand"]);
    assert_eq!(rows[0]["counts"]["documents"], 4);
    let quiet = ends(&["run", "--until", "0"], path, 0);
    assert_eq!(quiet, "", "nothing is due any more");
    let said = said + &ends(&["list"], path, 0) + &ends(&["history", "news"], path, 0);
    assert!(said.contains("last run  ") && said.contains("next run  "), "{said}");
    let kept = fs::read(path.join("jobs.redb")).unwrap();
    let kept = String::from_utf8_lossy(&kept);
    for secret in ["s3cret-path", "s3cret-token", "s3cret-arg"] {
        assert!(!said.contains(secret), "{secret} was told: {said}");
        assert!(!kept.contains(secret), "{secret} was stored");
    }
}

#[test]
fn webhooks_and_commands_are_bounded_and_their_failures_fail_nothing() {
    let web = site(1, Duration::ZERO);
    let (moved, wrong) = (Hook::start(&[302]), Hook::start(&[400]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let hook = |name: &str, to: SocketAddr, more: &str| {
        let more = format!("[job.webhook]\nurl = \"http://{to}/\"\n{more}");
        job(name, &web, &more)
    };
    // Its port is free again: nobody answers.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = hook("guarded", moved.address, "")
        + &hook("moved", moved.address, "allow_private = true\n")
        + &hook("wrong", wrong.address, "allow_private = true\n")
        + &hook("nobody", nobody, "allow_private = true\nretries = 1\n")
        + &job(
            "endless",
            &web,
            "[job.command]\nrun = [\"sh\", \"-c\", \"sleep 600 & wait\"]\ntimeout = \"200ms\"\n",
        )
        + &job("missing", &web, "[job.command]\nrun = [\"./no-such-program\"]\n");
    put_jobs(path, &text);
    let said = |name: &str| ends(&["run", "--once", name], path, 0);
    let guarded = said("guarded");
    assert!(guarded.contains("webhook: failed") && guarded.contains("loopback"), "{guarded}");
    assert!(moved.got().is_empty(), "the guard stands before the connection");
    assert!(said("moved").contains("webhook: failed: 127.0.0.1 answered 302"));
    assert_eq!(moved.got().len(), 1, "redirects are not followed");
    assert!(said("wrong").contains("webhook: failed: 127.0.0.1 answered 400"));
    assert_eq!(wrong.got().len(), 1, "what is wrong stays wrong");
    assert!(said("nobody").contains("webhook: failed"));
    let started = Instant::now();
    assert!(said("endless").contains("command: failed: sh took longer than 200ms"));
    assert!(started.elapsed() < Duration::from_mins(1), "what it started is ended too");
    assert!(said("missing").contains("command: failed: cannot start ./no-such-program"));
}

/// The scheduler as a process of its own.
fn start(folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["jobs", "run"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn wait_for(what: impl Fn() -> bool) {
    let started = Instant::now();
    while !what() {
        assert!(started.elapsed() < Duration::from_mins(1), "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_run_is_shown_as_interrupted_and_goes_on_where_it_stopped() {
    let web = site(40, Duration::from_millis(120));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    put_jobs(path, &job("big", &web, "crawl.batch_time_max = \"50ms\"\n"));
    let mut child = start(path);
    // Longer than a batch stays open.
    wait_for(|| web.web.requests().len() > 14);
    // While it runs: others may look, but neither run the job nor a second scheduler.
    assert!(ends(&["list"], path, 0).contains("running"));
    assert!(ends(&["run", "--once", "big"], path, 1).contains("another process runs the job"));
    assert!(ends(&["run"], path, 1).contains("another scheduler"));
    child.kill().unwrap();
    child.wait().unwrap();
    let before = web.web.requests().len();
    assert!(before < 41, "killed too late");
    let rows = json(&["history", "big"], path);
    assert_eq!(rows[1]["outcome"], "interrupted", "{rows}");
    assert_eq!(rows[0]["outcome"], "refused", "{rows}");

    ends(&["run", "--until", "0s"], path, 0);
    let rows = json(&["history", "big"], path);
    let first = &rows[0];
    assert_eq!(
        (&first["outcome"], &first["trigger"]),
        (&"done".into(), &"resume".into()),
        "{rows}"
    );
    assert_eq!(first["counts"]["documents"], 41, "{rows}");
    assert!(first["counts"]["pages"].as_u64().unwrap() < 41, "it went on: {rows}");
    assert_eq!(first["planned"], rows[2]["planned"], "for the same moment");
}

#[test]
fn a_scheduler_that_is_asked_to_end_stops_its_runs_safely() {
    let web = site(40, Duration::from_millis(30));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    put_jobs(path, &job("big", &web, ""));
    let mut child = start(path);
    wait_for(|| web.web.requests().len() > 5);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let rows = json(&["history", "big"], path);
    assert_eq!(
        (&rows[0]["outcome"], &rows[0]["reason"]),
        (&"stopped".into(), &"asked to stop".into())
    );
    assert!(rows[0]["counts"]["queued"].as_u64().unwrap() > 0);
    let check = crawl(&["check", "--store", "big"], path);
    assert!(check.status.success(), "{}", text(&check));
}

#[test]
fn runs_end_at_their_limits_and_say_so() {
    let web = site(40, Duration::from_millis(30));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let text = job("few", &web, "crawl.pages_max = 3\n")
        + &job("short", &web, "").replace("every", "time_max = \"300ms\"\nevery")
        + &job("broken", &web, "[job.export]\nfolder = \"file/x\"\n")
        + &job("gone", &web, "").replace("/\"]", "/none\"]");
    put_jobs(path, &text);
    fs::write(path.join("file"), "").unwrap();
    assert!(ends(&["run", "--once", "few"], path, 0).contains("(limit of 3 pages)"));
    assert!(ends(&["run", "--once", "short"], path, 0).contains("(time_max of 300ms is over)"));
    let broken = ends(&["run", "--once", "broken"], path, 0);
    assert!(broken.contains("broken: done") && broken.contains("export: failed"), "{broken}");
    assert!(ends(&["run", "--once", "gone"], path, 3).contains("1 seeds not crawled"));
    assert!(ends(&["run", "--once", "nobody"], path, 2).contains("few, short, broken, gone"));
    // Somebody else uses the store.
    let store = uniqcrawl::store::Store::open(&path.join("few"), 1 << 20).unwrap();
    assert!(ends(&["run", "--once", "few"], path, 1).contains("few: refused"));
    drop(store);
}

#[test]
fn every_fault_of_a_file_is_told_with_its_job_key_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    put_jobs(
        path,
        "[scheduler]\nat_once = 0\nhistroy = \"x\"\n\
         [[job]]\nname = \"a b\"\nseeds = []\nstore = 5\ncron = \"61 * * * *\"\n\
         [[job]]\nname = \"b\"\nseeds = [\"nonsense\"]\nstore = \"s\"\ncron = \"@daily\"\n\
         time_zone = \"Mars/Base\"\nevery = \"1h\"\ncatch_up = \"maybe\"\n\
         [job.webhook]\nurl = \"ftp://user:s3cret@example.org\"\nretries = 99\n\
         [job.export]\nformat = \"xml\"\n[job.command]\nrun = \"true\"\n",
    );
    let said = ends(&["check"], path, 2);
    for line in [
        "line 2: scheduler.at_once: must be a number from 1 to 64",
        "line 3: scheduler.histroy: no such key",
        "line 5: job a b: name: may have letters",
        "line 6: job a b: seeds: must be a list of texts",
        "line 7: job a b: store: must be a text, not integer",
        "line 8: job a b: cron: `61 * * * *`",
        "line 11: job b: seeds: ",
        "line 14: job b: time_zone: `Mars/Base` is no time zone",
        "line 15: job b: every: there is a `cron` too",
        "line 16: job b: catch_up: must be skip, once or all",
        "line 18: job b: webhook.url: is no URL",
        "line 19: job b: webhook.retries: must be a number from 0 to 10",
        "line 20: job b: export.folder: is missing",
        "line 23: job b: command.run: must be a list of texts, not string",
    ] {
        assert!(said.contains(&format!("config/jobs.toml: {line}")), "`{line}` not in:\n{said}");
    }
    let format = Format::named("xml").unwrap_err();
    let format = format!("config/jobs.toml: line 21: job b: export.format: {format}");
    assert!(format.contains("jsonl") && said.contains(&format), "`{format}` not in:\n{said}");
    assert!(!said.contains("s3cret"));
    // What only the files that it names can tell.
    let head = "[[job]]\nname = \"a\"\nstore = \"s\"\nevery = \"1h\"\n";
    put_jobs(path, &format!("{head}seeds = \"none.txt\"\n[job.settings]\nfrontier.dela = 5\n"));
    let said = ends(&["check"], path, 2);
    assert!(said.contains("line 5: job a: seeds: cannot read the seeds file none.txt"), "{said}");
    assert!(said.contains("line 7: job a: settings.frontier.dela: unknown key"), "{said}");
    assert!(said.contains("frontier.delay"), "{said}");
    put_jobs(
        path,
        &format!(
            "{head}seeds = [\"https://example.org/\"]\n[job.settings.crawl]\npages_max = \"many\"\n"
        ),
    );
    assert!(ends(&["check"], path, 2).contains("line 7: job a: settings.crawl.pages_max: "));
    put_jobs(path, "[[job]]\nname = ");
    assert!(ends(&["check"], path, 2).contains("line 2: "));
    put_jobs(path, "");
    assert!(ends(&["list"], path, 2).contains("there is no [[job]]"));
    put_jobs(path, &format!("{head}seeds = [\"https://example.org/\"]\n").repeat(2));
    assert!(ends(&["check"], path, 2).contains("job a: name: another job has this name"));
    assert!(ends(&["list", "--jobs", "nowhere.toml"], path, 2).contains("nowhere.toml"));
}

#[test]
fn the_next_moments_are_shown_with_their_time_zone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    put_jobs(
        path,
        "[[job]]\nname = \"tokyo\"\nseeds = [\"https://example.org/\"]\nstore = \"t\"\n\
         cron = \"30 2 * * *\"\ntime_zone = \"Asia/Tokyo\"\n\
         [[job]]\nname = \"often\"\nseeds = [\"https://example.org/\"]\nstore = \"o\"\nevery = \"90m\"\n",
    );
    let said = ends(&["next", "tokyo", "-n", "3"], path, 0);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines.iter().all(|line| line.contains(" 02:30:00 +09:00 Asia/Tokyo  tokyo")), "{said}");
    let all = json(&["next"], path);
    assert_eq!(all.as_array().unwrap().len(), 5, "{all}");
    assert!(all[0]["moment"].as_str() < all[1]["moment"].as_str(), "in order: {all}");
    let said = ends(&["list"], path, 0);
    assert!(said.contains("30 2 * * * Asia/Tokyo") && said.contains("every 90m"), "{said}");
}

#[test]
fn the_file_of_jobs_in_the_repository_is_complete_and_right() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = fs::read_to_string(root.join("config/jobs.toml")).unwrap();
    JobsFile::parse(&file).unwrap();
    // What stands there to be uncommented is right too.
    let open: Vec<String> = file
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') || rest.contains(" = ") => rest.to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    let jobs = JobsFile::parse(&open.join("\n")).unwrap();
    assert!(jobs.jobs[0].webhook.is_some() && jobs.jobs[0].command.is_some());
    assert!(ends(&["check"], root, 0).contains("2 jobs, nothing is wrong"));
}

#[test]
fn the_units_and_the_container_file_name_what_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(root.join("config").join(name)).unwrap();
    let known: &[(&str, &[&str])] = &[
        ("Unit", &["Description", "Documentation", "Wants", "After"]),
        (
            "Service",
            &[
                "Type",
                "ExecStart",
                "ExecStartPre",
                "WorkingDirectory",
                "User",
                "DynamicUser",
                "StateDirectory",
                "Restart",
                "RestartSec",
                "SuccessExitStatus",
                "KillMode",
                "KillSignal",
                "TimeoutStopSec",
                "NoNewPrivileges",
                "ProtectSystem",
                "ProtectHome",
                "PrivateTmp",
                "PrivateDevices",
                "Nice",
                "ConfigurationDirectory",
            ],
        ),
        ("Timer", &["OnCalendar", "Persistent", "RandomizedDelaySec", "Unit", "AccuracySec"]),
        ("Install", &["WantedBy"]),
    ];
    for name in ["crawl-jobs.service", "crawl-jobs-due.service", "crawl-jobs-due.timer"] {
        let mut keys: &[&str] = &[];
        for line in read(name).lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                keys = known.iter().find(|(known, _)| *known == section).expect(section).1;
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{name}: {line}"));
            assert!(keys.contains(&key), "{name}: {key} is not known there");
            if key.starts_with("ExecStart") {
                runs(value.trim_start_matches("/usr/local/bin/crawl "));
            }
        }
    }
    let container = read("Containerfile");
    let words = ["FROM", "RUN", "COPY", "WORKDIR", "USER", "VOLUME", "ENTRYPOINT", "CMD"];
    let mut goes_on = false;
    for line in container.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let word = line.split(' ').next().unwrap();
        assert!(goes_on || words.contains(&word), "Containerfile: {line}");
        goes_on = line.ends_with('\\');
        for file in line.strip_prefix("COPY ").iter().flat_map(|rest| rest.split(' ')) {
            let ours = !line.contains("--from") && !file.starts_with('.') && !file.starts_with('/');
            assert!(!ours || root.join(file).exists(), "Containerfile: {file} is not there");
        }
        if let Some(command) = line.strip_prefix("CMD ") {
            let words: Vec<String> = serde_json::from_str(command).unwrap();
            runs(&words.join(" "));
        }
    }
}

/// Checks that the binary knows these arguments.
#[track_caller]
fn runs(arguments: &str) {
    let arguments: Vec<&str> = arguments.split(' ').chain(["--help"]).collect();
    let output = crawl(&arguments, Path::new("/"));
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    for flag in arguments.iter().filter(|word| word.starts_with("--")) {
        assert!(help.contains(flag), "{flag} is not known: {help}");
    }
}
