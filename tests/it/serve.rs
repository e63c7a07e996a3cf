//! The service over HTTP: articles, bad input, limits, who may ask, durability.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use uniqcrawl::base::units::{Size, Time};
use uniqcrawl::service;
use uniqcrawl::store::Store;

use crate::service::{Answer, Server, article, connect, escaped, get, post, raw, read, request};
use crate::support::{check_clean, crawl, prose};

const FIRST: &str = r#"{"url": "http://www.simhash.com", "title": "计算机应用与软件", "content": "海量网络文本去重系统实验测试,这是一段测试文本的内容。", "category": "0", "media": "test1", "imageCount": "4"}"#;
const SECOND: &str = r#"{"url": "http://www.simhash1.com", "title": "计算机应用和软件2", "content": "海量网络文本去重系统实验检测,这是一段相似的测试文本的内容。", "category": "0", "media": "test2", "imageCount": "3"}"#;

#[test]
fn the_samples_of_the_paper_come_out_as_it_shows() {
    let server = Server::new();
    let first = server.get(&format!("/docId/getDocId?json={}", escaped(FIRST)));
    let doc_id = first.json()["docId"].as_str().unwrap().to_owned();
    let shown = |reason: &str, status: &str| {
        format!(
            r#"{{"filterReason":"docId_filter {reason}","docId":"{doc_id}","filterStatus":"{status}","status":"success"}}"#
        )
    };
    assert_eq!(first.body, shown("good news", "good"));
    let second = server.get(&format!("/docId/getDocId?json={}", escaped(SECOND)));
    assert_eq!(second.body, shown("content duplicate", "duplicate"));
    // In a form, and as a body.
    let form = format!("other=1&json={}", escaped(FIRST));
    let form = server.post("/docId/getDocId", "application/x-www-form-urlencoded", form.as_bytes());
    assert_eq!(form.body, shown("nid duplicate", "duplicate"));
    let kind = "application/json; charset=utf-8";
    assert_eq!(
        server.post("/docId/getDocId", kind, SECOND.as_bytes()).body,
        shown("nid duplicate", "duplicate")
    );
    // The text may be named as in files of JSON lines.
    let named = FIRST.replace(r#""content""#, r#""text""#).replace("simhash.com", "other.com");
    let named = server.get(&format!("/docId/getDocId?json={}", escaped(&named)));
    assert_eq!(named.body, shown("content duplicate", "duplicate"));
    let bare = r#"{"nid":"7","url":"http://www.simhash.com","title":"x","content":"y"}"#;
    let url = server.get(&format!("/docId/getDocId?json={}", escaped(bare)));
    assert_eq!(url.body, shown("url duplicate", "duplicate"));
    server.lives();
}

#[test]
fn requests_of_the_paper_that_cannot_be_answered_say_why_in_its_form() {
    let server = Server::new();
    let ask = |json: &str| server.get(&format!("/docId/getDocId?json={json}"));
    ask("%7B%22url").failed(400, "bad_json");
    ask("%7B%2").failed(400, "two hexadecimal digits");
    ask("%zz").failed(400, "two hexadecimal digits");
    ask("%FF%FE").failed(400, "not UTF-8");
    ask("").failed(400, "`json` is missing");
    ask("{}").failed(400, "neither `nid` nor `url`");
    ask(&escaped(r#"{"nid":"1"}"#)).failed(400, "neither `title` nor `content`");
    ask(&escaped(r#"{"nid":["1"],"title":"x"}"#)).failed(400, "bad_field");
    ask(&escaped(r#"{"nid":"1","title":"x","imageCount":"many"}"#)).failed(400, "bad_field");
    ask(&escaped(r#"{"url":"nowhere","title":"x"}"#)).failed(400, "bad_url");
    server.get("/docId/getDocId").failed(400, "`json` is missing");
    server.get("/docId/getDocId?json=1&json=2").failed(400, "given twice");
    server.get("/docId/other").failed(404, "not_found");
    server.post("/docId/getDocId", "text/plain", b"x").failed(415, "text/plain");
    server.post("/docId/getDocId", "application/json", b"").failed(400, "bad_json");
    let long = vec![b'x'; (8 << 20) + 1];
    server.post("/docId/getDocId", "application/json", &long).failed(413, "body_too_large");
    let wrong = raw(
        server.address,
        b"DELETE /docId/getDocId HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    wrong.failed(405, "method_not_allowed");
    assert!(wrong.headers["allow"].contains("POST"));
    server.lives();
}

#[test]
fn bad_articles_are_problems_with_a_stable_code_and_the_service_lives() {
    let server = Server::new();
    let send = |body: &[u8]| server.post("/v1/articles", "application/json", body);
    send(b"{").is(400, "bad_json");
    send(b"").is(400, "bad_json");
    send(b"[]").is(400, "bad_field");
    send(b"\"x\"").is(400, "bad_field");
    send(b"{}").is(400, "missing_field");
    send(b"{\"nid\":\"1\",\"title\":\"\xff\"}").is(400, "bad_utf8");
    send(br#"{"nid":"1","title":{"x":1}}"#).is(400, "bad_field");
    send(br#"{"nid":"1","title":"x","popularity":-1}"#).is(400, "bad_field");
    send(br#"{"nid":"1","title":"x"} {}"#).is(400, "bad_json");
    send(br#"{"nid":"1","nid":"2","title":"x"}"#).is(400, "bad_field");
    let nested = |depth: usize, field: &str| {
        format!(r#"{{"nid":"1","{field}":{}{}}}"#, "[".repeat(depth), "]".repeat(depth))
    };
    send(nested(200_000, "title").as_bytes()).is(400, "bad_field");
    send(nested(200_000, "unknown").as_bytes()).is(400, "missing_field");
    send(nested(200_000, "unknown").trim_end_matches([']', '}']).as_bytes()).is(400, "bad_json");
    let long = json!({"nid": "1", "title": "x".repeat(9_000)});
    send(long.to_string().as_bytes()).is(400, "field_too_long");
    server.post("/v1/articles", "text/xml", b"<a/>").is(415, "unsupported_media_type");
    server.raw(b"POST /v1/articles HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}").is(415, "unsupported_media_type");
    server.get("/v1/articles").is(405, "method_not_allowed");
    server.get("/v1/nothing").is(404, "not_found");
    server.get("/v1/documents/x").is(400, "bad_doc_id");
    server.get("/v1/documents/0000000000000000-0000000000000000").is(404, "unknown_document");
    server
        .get("/v1/documents/0000000000000000-0000000000000000/copies")
        .is(404, "unknown_document");
    server.get("/v1/documents?sort=size").is(400, "bad_parameter");
    server.get("/v1/documents?limit=0").is(400, "bad_parameter");
    server.get("/v1/documents?cursor=12").is(400, "bad_cursor");
    server.get("/v1/documents?page=2").is(400, "unknown_parameter");
    server.get("/v1/counts?since=now").is(400, "bad_parameter");
    server.get("/v1/trending?window=99d").is(400, "bad_parameter");
    server.get("/v1/explain").is(400, "missing_parameter");
    server.get("/v1/explain?url=%zz").is(400, "bad_escape");
    assert_eq!(server.rows("/v1/documents").len(), 0, "nothing was stored");
    server.lives();
}

#[test]
fn a_body_of_100_mb_is_refused_before_it_is_read_and_while_it_comes() {
    let server = Server::new();
    let megabyte = vec![b' '; 1 << 20];
    for head in ["Content-Length: 104857600", "Transfer-Encoding: chunked"] {
        let mut stream = connect(server.address);
        let head = format!(
            "POST /v1/articles HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n{head}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let chunked = head.contains("chunked");
        for _ in 0..100 {
            let mut part = if chunked { b"100000\r\n".to_vec() } else { Vec::new() };
            part.extend_from_slice(&megabyte);
            part.extend_from_slice(if chunked { b"\r\n" } else { b"" });
            if stream.write_all(&part).is_err() {
                break;
            }
        }
        read(&mut stream).is(413, "body_too_large");
    }
    server.lives();
}

#[test]
fn slow_clients_are_left_and_idle_ones_do_no_harm() {
    let server = Server::with(|settings| {
        settings.api.header_time_max = Time::from_millis(700);
        settings.api.stall_time_max = Time::from_millis(700);
    });
    let mut body = connect(server.address);
    body.write_all(b"POST /v1/articles HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\nConnection: close\r\n\r\n{").unwrap();
    let mut head = connect(server.address);
    head.write_all(b"GET /healthz HTTP/1.1\r\nHos").unwrap();
    let dribble = thread::spawn({
        let mut stream = connect(server.address);
        move || {
            let end = Instant::now() + Duration::from_secs(20);
            // A byte now and then does not keep it open.
            while Instant::now() < end && stream.write_all(b"G").is_ok() {
                thread::sleep(Duration::from_millis(50));
            }
            Instant::now() < end
        }
    });
    let mut idle: Vec<TcpStream> = (0..400).map(|_| connect(server.address)).collect();
    server.lives();
    read(&mut body).is(408, "timeout");
    let mut left = Vec::new();
    // hyper may say that it waited too long, or just go.
    head.read_to_end(&mut left).unwrap();
    assert!(!String::from_utf8_lossy(&left).contains(" 200 "));
    assert!(dribble.join().unwrap(), "it was left");
    for stream in &mut idle {
        assert_eq!(stream.read(&mut [0; 16]).unwrap_or(0), 0, "it was closed");
    }
    server.lives();
}

#[test]
fn one_connection_too_many_is_told_so() {
    let server = Server::with(|settings| settings.api.connections_max = 3);
    let held: Vec<TcpStream> = (0..3).map(|_| connect(server.address)).collect();
    thread::sleep(Duration::from_millis(300));
    let mut refused = connect(server.address);
    read(&mut refused).is(503, "busy");
    drop(held);
    let end = Instant::now() + Duration::from_secs(20);
    while get_status(server.address) != 200 {
        assert!(Instant::now() < end, "there is room again");
        thread::sleep(Duration::from_millis(20));
    }
    server.lives();
}

fn get_status(address: SocketAddr) -> u16 {
    get(address, "/healthz").status
}

#[test]
fn who_asks_too_often_is_told_to_wait() {
    let server = Server::with(|settings| settings.api.client_requests_per_second_max = 5);
    let answers: Vec<Answer> = (0..12).map(|_| server.get("/v1/stats")).collect();
    let refused = answers.iter().find(|answer| answer.status == 429).expect("one is too many");
    refused.is(429, "rate_limited");
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(answers[0].status, 200);
    thread::sleep(Duration::from_millis(1_200));
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn without_a_token_only_this_machine_is_answered_and_no_page_in_its_browser() {
    let server = Server::new();
    let ask = |headers: &str| {
        let text = format!("GET /v1/stats HTTP/1.1\r\nConnection: close\r\n{headers}\r\n\r\n");
        server.raw(text.as_bytes())
    };
    assert_eq!(ask("Host: localhost:8080").status, 200);
    assert_eq!(ask("Host: [::1]").status, 200);
    assert_eq!(ask("Host: 127.0.0.1\r\nOrigin: http://localhost:3000").status, 200);
    ask("Host: rebound.example").is(403, "forbidden_host");
    ask("Host: 127.0.0.1.nip.example:80").is(403, "forbidden_host");
    ask("Host: localhost\r\nOrigin: https://evil.example").is(403, "forbidden_origin");
    ask("Host: localhost\r\nOrigin: null").is(403, "forbidden_origin");
    ask("Host: localhost\r\nSec-Fetch-Site: cross-site").is(403, "forbidden_origin");
    let answer = ask("Host: localhost");
    assert!(answer.headers["content-security-policy"].starts_with("default-src 'none'"));
    assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    assert_eq!(answer.headers["referrer-policy"], "no-referrer");
}

#[test]
fn with_a_token_only_who_knows_it_is_answered() {
    let token = "correct-horse-battery";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{token}\n")).unwrap();
    let server = Server::with(|settings| settings.api.token_file.clone_from(&file));
    let ask = |path: &str, headers: &str| {
        let text = format!(
            "GET {path} HTTP/1.1\r\nHost: any.example\r\nConnection: close\r\n{headers}\r\n"
        );
        server.raw(text.as_bytes())
    };
    ask("/v1/stats", "").is(401, "unauthorized");
    assert_eq!(ask("/v1/stats", "").headers["www-authenticate"], "Bearer");
    ask("/v1/stats", "Authorization: Bearer correct-horse-batterz\r\n").is(401, "unauthorized");
    ask("/v1/stats", &format!("Authorization: Basic {token}\r\n")).is(401, "unauthorized");
    ask("/metrics", "").is(401, "unauthorized");
    ask("/docId/getDocId?json={}", "").failed(401, "unauthorized");
    assert_eq!(ask("/v1/stats", &format!("Authorization: bearer {token}\r\n")).status, 200);
    assert_eq!(ask("/healthz", "").status, 200);
}

#[test]
fn an_open_door_without_a_token_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |arguments: &[&str], why: &str| {
        let out = crawl(&[&["serve", "--store", "s"], arguments].concat(), folder.path());
        let told = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{told}");
        assert!(told.contains(why), "{told}");
    };
    fails(&["--listen", "0.0.0.0:0"], "a token is needed");
    fails(&["--listen", "[::]:0"], "a token is needed");
    fails(&["--listen", "0.0.0.0:0", "--token-file", "none"], "the token in none");
    std::fs::write(folder.path().join("short"), "secret").unwrap();
    fails(&["--token-file", "short"], "at least 16");
    assert!(!folder.path().join("s").exists(), "no store was made");
}

#[test]
fn a_batch_of_5000_lines_is_answered_in_order_and_bad_lines_end_nothing() {
    let server = Server::new();
    let mut lines = String::new();
    for line in 1..=5_000_u64 {
        match line {
            77 => lines.push_str("{\"nid\":\n"),
            78 => lines.push('\n'),
            79 => lines.push_str("{\"nid\":\"x\"}\r\n"),
            _ => {
                let text = json!({"nid": line.to_string(), "content": prose(line % 2_000, 30)});
                lines.push_str(&text.to_string());
                lines.push('\n');
            }
        }
    }
    let answer = server.post("/v1/articles", "application/x-ndjson", lines.trim_end().as_bytes());
    assert_eq!(
        (answer.status, answer.headers["content-type"].as_str()),
        (200, "application/x-ndjson")
    );
    let told = answer.lines();
    assert_eq!(told.len(), 4_999, "the empty line has no answer");
    let numbers: Vec<u64> = told.iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert!(
        numbers.is_sorted() && numbers[76] == 77 && numbers[77] == 79 && numbers[4_998] == 5_000
    );
    assert_eq!(
        (&told[76]["code"], &told[77]["code"]),
        (&json!("bad_json"), &json!("missing_field"))
    );
    for line in told.iter().filter(|line| line["code"].is_null()) {
        let nid: u64 = line["nid"].as_str().unwrap().parse().unwrap();
        assert_eq!(line["line"], nid);
        let new = nid <= 2_000 || matches!(nid, 2_077..=2_079);
        assert_eq!(line["filterStatus"] == "good", new, "{line}");
    }
    // Sent again, nothing changes.
    let again = server.post("/v1/articles", "application/x-ndjson", lines.as_bytes()).lines();
    for (first, second) in told.iter().zip(&again) {
        assert_eq!(first["docId"], second["docId"]);
        assert!(second["code"].is_string() || second["foundBy"] == "nid");
    }
    server.lives();
}

#[test]
fn lines_of_a_batch_are_stored_as_they_come() {
    let server = Server::with(|settings| {
        settings.api.stall_time_max = Time::from_millis(1_500);
        settings.api.body_size_max = Size::from_bytes(2_000);
        settings.api.batch_lines_max = 4;
    });
    let mut stream = connect(server.address);
    stream.write_all(b"POST /v1/articles HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n").unwrap();
    let mut send = |text: &str| {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        stream.write_all(chunk.as_bytes()).unwrap();
    };
    send("{\"nid\":\"1\",\"title\":\"half a");
    send(" line\"}\n{\"nid\":\"2\",");
    let end = Instant::now() + Duration::from_secs(20);
    while server.rows("/v1/documents").is_empty() {
        assert!(Instant::now() < end, "the first line is stored while the second one comes");
        thread::sleep(Duration::from_millis(20));
    }
    // The rest of the line does not come.
    let told = read(&mut stream).lines();
    assert_eq!((&told[0]["nid"], &told[0]["filterStatus"]), (&json!("1"), &json!("good")));
    assert_eq!((&told[1]["line"], &told[1]["code"]), (&json!(2), &json!("timeout")));
    let long = format!(
        "{{\"nid\":\"3\",\"title\":\"{}\"}}\n{{\"nid\":\"4\",\"title\":\"four\"}}\n",
        "x".repeat(3_000)
    );
    let lines = server.post("/v1/articles", "application/jsonl", long.as_bytes()).lines();
    assert_eq!((&lines[0]["code"], &lines[1]["nid"]), (&json!("line_too_long"), &json!("4")));
    let many = "{\"nid\":\"5\",\"title\":\"five\"}\n".repeat(9);
    let lines = server.post("/v1/articles", "application/jsonl", many.as_bytes()).lines();
    assert_eq!((lines.len(), &lines[4]["code"]), (5, &json!("too_many_lines")));
    server.lives();
}

#[test]
fn equal_articles_at_one_moment_are_one_document() {
    let server = Server::new();
    let address = server.address;
    let ids: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..24)
            .map(|n| {
                scope.spawn(move || {
                    let body = article(&n.to_string(), 9, &format!("h{n}")).to_string();
                    let answer = post(address, "/v1/articles", "application/json", body.as_bytes());
                    (answer.status, answer.json()["docId"].as_str().unwrap().to_owned())
                })
            })
            .collect();
        let answers: Vec<_> = threads.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(answers.iter().filter(|(status, _)| *status == 201).count(), 1, "one is new");
        answers.into_iter().map(|(_, id)| id).collect()
    });
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 1);
    assert_eq!(server.rows("/v1/documents?sort=copies")[0]["copies"], 24);
    server.lives();
}

#[test]
fn requests_under_way_are_finished_when_the_service_stops() {
    let mut server = Server::new();
    let mut stream = connect(server.address);
    let body = article("1", 1, "a").to_string();
    let bytes = request(server.address, "/v1/articles", "application/json", body.as_bytes());
    let (head, rest) = bytes.split_at(bytes.len() - 10);
    stream.write_all(head).unwrap();
    thread::sleep(Duration::from_millis(200));
    drop(server.stop.take());
    thread::sleep(Duration::from_millis(200));
    assert!(TcpStream::connect(server.address).is_err(), "nobody is let in any more");
    stream.write_all(rest).unwrap();
    assert_eq!(read(&mut stream).status, 201);
    server.stop();
    let folder = server.folder.path().to_owned();
    let store = std::mem::replace(&mut server.store, {
        let other = folder.join("other");
        Arc::new(Store::open_or_create(&other, 1 << 20).unwrap())
    });
    assert!(service::close(store, Duration::from_secs(20)), "nothing holds the store");
    check_clean(&Store::open(&folder, 1 << 20).unwrap());
}

/// The binary, serving a store.
struct Process {
    child: Child,
    address: SocketAddr,
    out: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["serve", "--store", "s", "--listen", "127.0.0.1:0"])
            .current_dir(folder)
            .env_remove("UNIQCRAWL_LOG")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").expect("it listens");
        Self { address: address.parse().unwrap(), child, out }
    }
}

#[test]
fn what_was_answered_is_there_after_a_kill_and_the_end_is_clean() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(folder.path());
    let mut answers = Vec::new();
    for n in 0..20_u64 {
        let body = article(&n.to_string(), n / 2, "m").to_string();
        let answer = post(process.address, "/docId/getDocId", "application/json", body.as_bytes());
        answers.push((body, answer.json()["docId"].clone()));
        if n % 7 == 6 || n == 19 {
            process.child.kill().unwrap();
            process.child.wait().unwrap();
            process = Process::start(folder.path());
            for (body, id) in &answers {
                let again =
                    post(process.address, "/docId/getDocId", "application/json", body.as_bytes());
                assert_eq!(again.json()["docId"], *id);
                assert_eq!(again.json()["filterReason"], "docId_filter nid duplicate");
            }
        }
    }
    let id = i32::try_from(process.child.id()).unwrap();
    let id = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert_eq!(process.child.wait().unwrap().code(), Some(130));
    let mut rest = String::new();
    process.out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "stopped\n");
    let out = crawl(&["check", "--store", "s"], folder.path());
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stdout));
    assert_eq!(
        crawl(&["inspect", "--store", "s", answers[0].1.as_str().unwrap()], folder.path())
            .status
            .code(),
        Some(0)
    );
}
