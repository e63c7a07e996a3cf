//! New, changed and ended documents, followed over HTTP, on the command line, and into a sink.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::store::Store;

use crate::service::{Server, article, post};
use crate::support::{Web, crawl, page, prose};
use crate::whole_stores::{Running, fails};

/// What a reader of changes has, by docId.
type Mirror = BTreeMap<String, (u64, String)>;

/// Applies the lines of an answer. Returns where it goes on, and whether there is more.
fn apply(lines: &[Value], mirror: &mut Mirror) -> (String, bool) {
    let (end, changes) = lines.split_last().unwrap();
    for change in changes {
        let id = change["docId"].as_str().unwrap().to_owned();
        match change["change"].as_str().unwrap() {
            "upsert" => {
                let text = change["text"].as_str().unwrap().to_owned();
                mirror.insert(id, (change["copies"].as_u64().unwrap(), text));
            }
            "delete" => drop(mirror.remove(&id)),
            other => panic!("{other}"),
        }
    }
    (end["next"].as_str().unwrap().to_owned(), end["more"].as_bool().unwrap())
}

/// Reads to the end, in answers of so many changes.
fn read(server: &Server, cursor: &mut String, limit: u64, mirror: &mut Mirror) -> usize {
    let mut told = 0;
    loop {
        let lines = server.get(&format!("/v1/changes?limit={limit}&cursor={cursor}")).lines();
        told += lines.len() - 1;
        let (next, more) = apply(&lines, mirror);
        *cursor = next;
        if !more {
            return told;
        }
    }
}

/// What the service has.
fn there(server: &Server) -> Mirror {
    let rows = server.rows("/v1/documents?limit=500");
    let document = |row: &Value| {
        let id = row["docId"].as_str().unwrap();
        let whole = server.get(&format!("/v1/documents/{id}")).json();
        let text = whole["text"].as_str().unwrap().to_owned();
        (id.to_owned(), (whole["copies"].as_u64().unwrap(), text))
    };
    rows.iter().map(document).collect()
}

#[test]
fn who_follows_has_what_the_store_has_whatever_is_read_when() {
    let mut server = Server::with(|settings| settings.api.expiry = true);
    let (mut mirror, mut cursor) = (Mirror::new(), String::new());
    let mut random = 7_u64;
    let mut next = |most: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % most
    };
    let (mut number, mut restarts) = (0, 0);
    for step in 0..160 {
        match next(10) {
            0..6 => {
                number += 1;
                server.send(&article(&format!("{number}"), next(25), &format!("m{}", next(3))));
            }
            6 => {
                server.clock.advance(Duration::from_hours(1));
                let body = format!("{{\"olderThan\": \"{}h\", \"yes\": true}}", 2 + next(4));
                let kind = "application/json";
                assert_eq!(server.post("/v1/expire", kind, body.as_bytes()).status, 200);
            }
            7 if step > 60 && restarts < 2 => {
                restarts += 1;
                server = server.again(|settings| settings.api.expiry = true);
            }
            _ => {
                // Only a part: the rest comes later, after further changes.
                let path = format!("/v1/changes?limit={}&cursor={cursor}", 1 + next(4));
                cursor = apply(&server.get(&path).lines(), &mut mirror).0;
            }
        }
    }
    let limit = 1 + next(5);
    read(&server, &mut cursor, limit, &mut mirror);
    let whole = there(&server);
    assert!(whole.len() > 5 && restarts == 2, "{} {restarts}", whole.len());
    assert_eq!(mirror, whole);
    assert_eq!(read(&server, &mut cursor, 9, &mut mirror), 0, "nothing is told twice");
    // Who begins now has the same.
    let (mut other, mut begun) = (Mirror::new(), String::new());
    assert_eq!(read(&server, &mut begun, 3, &mut other), whole.len());
    assert_eq!(other, whole);
    server.lives();
}

#[test]
fn a_request_waits_for_a_change_and_cursors_of_others_are_refused() {
    let server = Server::new();
    server.send(&article("1", 1, "sina"));
    let end = server.get("/v1/changes?cursor=now").lines();
    let now = end[0]["next"].as_str().unwrap().to_owned();
    let began = Instant::now();
    let empty = server.get(&format!("/v1/changes?cursor={now}&wait=300ms")).lines();
    assert_eq!((empty.len(), &empty[0]["more"]), (1, &json!(false)));
    assert!(began.elapsed() >= Duration::from_millis(300));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let lines = server.get(&format!("/v1/changes?cursor={now}&wait=20s")).lines();
            (lines, Instant::now())
        });
        std::thread::sleep(Duration::from_millis(600));
        let sent = Instant::now();
        server.send(&article("2", 2, "sina"));
        let (lines, told) = waiting.join().unwrap();
        assert_eq!((lines.len(), &lines[0]["change"]), (2, &json!("upsert")));
        assert!(told - sent < Duration::from_secs(15), "{:?}", told - sent);
        assert_eq!(lines[0]["cursor"], lines[1]["next"]);
        let other = Server::new();
        other.send(&article("1", 1, "sina"));
        // Both have the number 0: only one of them has come so far.
        let ahead = lines[1]["next"].as_str().unwrap();
        other.get(&format!("/v1/changes?cursor={ahead}")).is(410, "cursor_gone");
    });
    for (query, code) in [
        ("cursor=abc", "bad_cursor"),
        (&format!("cursor={}{}", u8::from(now.starts_with('0')), &now[1..]), "bad_cursor"),
        ("wait=2h", "bad_parameter"),
        ("wait=soon", "bad_parameter"),
        ("limit=0", "bad_parameter"),
        ("since=now", "unknown_parameter"),
    ] {
        server.get(&format!("/v1/changes?{query}")).is(400, code);
    }
}

#[test]
fn documents_that_merge_end_or_may_not_be_shown_are_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let hidden = page("Hidden", &prose(2, 90), &[])
        .replace("<head>", "<head><meta name=\"robots\" content=\"noai\">");
    let site = Site::new()
        .html("/", page("Front", &prose(1, 80), &["/hidden", "/open"]))
        .page("/hidden", Page::html(hidden))
        .html("/open", page("Open", &prose(3, 90), &[]));
    let web = Web::one(site);
    let url = web.web.url(0);
    let told = crawl(&[&url, "--store", "s", "--allow-private", "--delay", "0ms"], path);
    assert!(told.status.success(), "{told:?}");
    let lines = |arguments: &[&str]| -> Vec<Value> {
        let out = crawl(&[&["follow", "--store", "s"], arguments].concat(), path);
        assert!(out.status.success(), "{out:?}");
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = lines(&[]);
    let titles: Vec<&str> = all.iter().map(|line| line["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Front", "Open"], "what is withheld is not told");
    let cursor = all[1]["cursor"].as_str().unwrap();
    assert_eq!(lines(&["--since", cursor]), Vec::<Value>::new());
    assert_eq!(lines(&["--since", all[0]["cursor"].as_str().unwrap()]), all[1..]);
    assert_eq!(lines(&["--since", ""]), all);
    assert_eq!(lines(&["--since", "now"]), Vec::<Value>::new());
    let told = crawl(&["expire", "--store", "s", "--older-than", "1ms", "--yes"], path);
    assert!(told.status.success(), "{told:?}");
    let ended = lines(&["--since", cursor]);
    assert_eq!(ended.len(), 3);
    assert!(ended.iter().all(|line| line["change"] == "delete" && line["reason"] == "ended"));
    fails(&["follow", "--store", "s", "--since", "x"], path, 2, "`x` is no cursor");
    fails(&["follow", "--store", "none"], path, 2, "there is no store in none");
    fails(&["follow", "--from", "nonsense"], path, 2, "`nonsense` is no URL of a service");
    fails(&["follow", "--from", "http://127.0.0.1:9"], path, 1, "does not answer");
    drop(Store::open_or_create(&path.join("other"), 1 << 20).unwrap());
    fails(&["follow", "--store", "other", "--since", cursor], path, 2, "of another store");
    // A store that was put back has a past of its own.
    for arguments in [
        &["store", "backup", "--store", "s", "--to", "b"][..],
        &["store", "restore", "--from", "b", "--store", "r"],
    ] {
        assert!(crawl(arguments, path).status.success());
    }
    fails(&["follow", "--store", "r", "--since", cursor], path, 2, "begin anew");
}

/// A server that notes the bodies that are posted to it.
fn sink() -> (String, std::sync::mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap_or(0) > 0 && line != "\r\n" {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            reader.get_mut().write_all(answer).unwrap();
            if tell.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (url, told)
}

/// The program of the guide that begins with a comment of this name.
pub(crate) fn program(name: &str) -> String {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/guide/follow.md");
    let guide = fs::read_to_string(guide).unwrap();
    let found = guide.split("```python\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let found = found.into_iter().find(|text| text.starts_with(&format!("# {name}")));
    found.unwrap_or_else(|| panic!("no program {name}")).to_owned()
}

#[test]
fn the_webhook_of_the_guide_gets_every_change_once_over_a_kill_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut running = Running::start(path, "");
    for number in 0..5 {
        running.send(number);
    }
    fs::write(path.join("hook.py"), program("webhook.py")).unwrap();
    let (url, told) = sink();
    let command = "\"$0\" follow --from $1 --since \"$(cat cursor 2>/dev/null)\" --follow | \
                   python3 hook.py $2 cursor";
    let start = |service: &str| {
        Command::new("bash")
            .args(["-c", command, env!("CARGO_BIN_EXE_crawl"), service, &url])
            .current_dir(path)
            .stderr(Stdio::null())
            .process_group_of_its_own()
            .spawn()
            .unwrap()
    };
    let next = || told.recv_timeout(Duration::from_mins(1)).unwrap();
    let mut hook = start(&running.url());
    let titles: Vec<Value> = (0..5).map(|_| next()["title"].clone()).collect();
    assert_eq!(titles, ["Story 0", "Story 1", "Story 2", "Story 3", "Story 4"]);
    running.send(5);
    assert_eq!(next()["title"], "Story 5");
    end(&mut hook);
    running.send(6);
    running.kill();
    let running = Running::start(path, "");
    let mut hook = start(&running.url());
    // The cursor of the last one may not have been written when all was ended.
    let mut first = next();
    if first["title"] == "Story 5" {
        first = next();
    }
    assert_eq!(first["title"], "Story 6");
    let body = json!({"nid": "copy", "url": "http://copy.test/", "content": prose(6, 200)});
    let body = body.to_string();
    let answer = post(running.address, "/v1/articles", "application/json", body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.body);
    let copied = next();
    assert_eq!((&copied["url"], &copied["copies"]), (&json!("http://copy.test/"), &json!(2)));
    end(&mut hook);
}

/// Ends a process with all that it started.
fn end(process: &mut std::process::Child) {
    let pid = rustix::process::Pid::from_child(process);
    let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    process.wait().unwrap();
}

trait OwnGroup {
    fn process_group_of_its_own(&mut self) -> &mut Self;
}

impl OwnGroup for Command {
    fn process_group_of_its_own(&mut self) -> &mut Self {
        std::os::unix::process::CommandExt::process_group(self, 0)
    }
}
