//! A crawl and the service on one store in one process; what is shown of crawls.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uniqcrawl::base::clock::Clock;
use uniqcrawl::corpus::index::{self, Index};
use uniqcrawl::crawl::{self, Context};
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::neardup::Config;
use uniqcrawl::service::ingest::{ArticleLimits, Ingest, IngestRules, Submission};
use uniqcrawl::store::Store;
use uniqcrawl::text::features::Fingerprinter;
use uniqcrawl::urls::Normalize;

use crate::service::{Answer, Server, get, post};
use crate::support::{Web, check_clean, config, crawl as crawl_command, page, prose};

/// A service that lets requests start crawls on loopback.
fn server() -> Server {
    Server::with(|settings| {
        settings.clock = Clock::System;
        settings.crawl = config().settings();
        settings.api.crawls = true;
    })
}

fn ask(server: &Server, body: &Value) -> Answer {
    server.post("/v1/crawls", "application/json", body.to_string().as_bytes())
}

/// Starts a crawl from the front page of a web.
#[track_caller]
fn start(server: &Server, web: &Web) -> u64 {
    let answer = ask(server, &json!({"seeds": [web.web.url(0)]}));
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.json()["id"].as_u64().unwrap()
}

fn state(server: &Server, id: u64) -> String {
    let rows = server.rows("/v1/crawls");
    let row = rows.iter().find(|row| row["id"] == id).unwrap();
    row["state"].as_str().unwrap().to_owned()
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn knows(server: &Server, url: &str) -> bool {
    server.get(&format!("/v1/explain?url={url}")).json()["state"] == "stored"
}

/// The text of a story with a few other words.
fn edited(story: u64) -> String {
    format!("{} these few words were added", prose(story, 150))
}

fn titled(story: u64) -> String {
    format!("Story {story} of some words")
}

#[test]
fn articles_and_pages_that_are_alike_are_one_document_in_both_orders_while_a_crawl_runs() {
    let server = server();
    // The page that comes late is linked from one that takes its time.
    let slow = page("Slow", &prose(2, 150), &["/late"]);
    let web = Web::one(
        Site::new()
            .html("/", page("Front", &prose(1, 150), &["/early", "/slow"]))
            .html("/early", page(&titled(3), &prose(3, 150), &[]))
            .page("/slow", Page::html(slow).after(Duration::from_millis(1_500)))
            .html("/late", page(&titled(4), &edited(4), &[])),
    );
    let id = start(&server, &web);
    let url = |path: &str| web.url(0, path).to_string();
    until("the early page is stored", || knows(&server, &url("/early")));
    let article = |nid: &str, story: u64, text: String| {
        server.send(&json!({"nid": nid, "title": titled(story), "content": text}))
    };
    let early = article("1", 3, edited(3));
    assert_eq!((&early["filterStatus"], &early["foundBy"]), (&json!("duplicate"), &json!("title")));
    let late = article("2", 4, prose(4, 150));
    assert_eq!(late["filterStatus"], "good");
    let live = server.get("/v1/live").json();
    let row = &live["crawls"][0];
    assert_eq!((&row["job"], &row["state"]), (&Value::Null, &json!("running")), "{live}");
    assert!(row["pages"].as_u64() >= Some(2) && row["inFlight"].as_u64() >= Some(1), "{live}");
    until("the crawl ends", || state(&server, id) == "done");
    for (told, path) in [(&early, "/early"), (&late, "/late")] {
        let copies =
            server.rows(&format!("/v1/documents/{}/copies", told["docId"].as_str().unwrap()));
        let urls: Vec<&str> = copies.iter().map(|copy| copy["url"].as_str().unwrap()).collect();
        assert!(urls.len() == 2 && urls.contains(&url(path).as_str()), "{urls:?}");
    }
    assert_eq!(server.get("/v1/live").json()["crawls"], json!([]));
    let metrics = server.get("/metrics").body;
    for line in ["uniqcrawl_crawls 0", "uniqcrawl_crawl_pages_total 4"] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    server.lives();
}

#[test]
fn a_page_whose_address_was_sent_before_is_that_copy() {
    let server = server();
    let web = Web::one(
        Site::new()
            .html("/", page("Front", &prose(1, 150), &["/same", "/other"]))
            .html("/same", page(&titled(2), &prose(2, 150), &[]))
            .html("/other", page(&titled(8), &prose(8, 150), &[])),
    );
    let send = |nid: &str, path: &str, story: u64| {
        let url = web.url(0, path).to_string();
        let article = json!({"nid": nid, "url": url, "title": titled(story),
            "content": prose(story, 150)});
        server.send(&article)["docId"].as_str().unwrap().to_owned()
    };
    let (same, other) = (send("1", "/same", 2), send("2", "/other", 3));
    let id = start(&server, &web);
    until("the crawl ends", || state(&server, id) == "done");
    let document = server.get(&format!("/v1/documents/{same}")).json();
    assert_eq!((&document["docId"], &document["copies"]), (&json!(same), &json!(1)));
    // What was sent under this address is not what its page says now.
    let document = server.get(&format!("/v1/documents/{other}")).json();
    assert_eq!((&document["title"], &document["copies"]), (&json!(titled(8)), &json!(1)));
    let documents = server.rows("/v1/documents");
    assert_eq!(documents.len(), 3, "{documents:?}");
    server.lives();
}

#[test]
fn neither_a_crawl_nor_articles_are_held_up_by_the_other() {
    let server = server();
    let links: Vec<String> = (0..60).map(|number| format!("/p/{number}")).collect();
    let web = Web::one(Site::new().handler(move |request| {
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        match request.target.strip_prefix("/p/") {
            Some(number) => {
                let number: u64 = number.parse().ok()?;
                Some(Page::html(page(&format!("Page {number}"), &prose(number, 100), &[])))
            }
            None => {
                (request.target == "/").then(|| Page::html(page("Front", &prose(999, 100), &links)))
            }
        }
    }));
    let id = start(&server, &web);
    let sent = AtomicUsize::new(0);
    let began = Instant::now();
    let address = server.address;
    thread::scope(|scope| {
        for client in 0..3_u64 {
            let (sent, server) = (&sent, &server);
            scope.spawn(move || {
                let mut number = 0;
                while state(server, id) == "running" {
                    number += 1;
                    let article = json!({"nid": format!("{client}-{number}"),
                        "content": prose((client + 1) * 1_000_000 + number, 60)});
                    let body = article.to_string();
                    let answer = post(address, "/v1/articles", "application/json", body.as_bytes());
                    assert_eq!(answer.status, 201, "{}", answer.body);
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (sent, took) = (sent.into_inner(), began.elapsed());
    eprintln!("{sent} articles and 61 pages in {took:?}");
    assert_eq!(state(&server, id), "done");
    assert!(sent >= 10, "only {sent} articles got in between in {took:?}");
    let told = server.get("/v1/reasons").json();
    assert_eq!(told["documents"], json!(61 + sent));
    server.lives();
}

#[test]
fn an_index_that_a_failed_writer_left_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open_or_create(folder.path(), 16 << 20).unwrap());
    let settings = Config::default();
    let index = Arc::new(Mutex::new(Index::open(&store, &settings).unwrap()));
    let ingest = Ingest::start(
        store.clone(),
        index.clone(),
        IngestRules {
            dedup: &settings,
            normalize: Normalize::default(),
            limits: ArticleLimits::default(),
        },
        Clock::System,
    )
    .unwrap();
    let fingerprinter = Fingerprinter::new(settings.features.clone()).unwrap();
    // As if a batch with this text had been aborted: no content has this number.
    let lost = |story: u64| {
        let article = fingerprinter.article_keys(&titled(story), &prose(story, 150), "");
        let mut batch = store.begin().unwrap();
        index::lock(&index).insert(&mut batch, 77, &article);
    };
    lost(1);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let send = |nid: &str, story: u64| {
        let article = json!({"nid": nid, "title": titled(story), "content": edited(story)});
        let article: Submission = serde_json::from_value(article).unwrap();
        let prepared = ingest.prepare(article).unwrap();
        runtime.block_on(ingest.deliver(vec![prepared])).unwrap().remove(0)
    };
    assert_eq!(send("1", 1).found.as_str(), "new");
    assert!(!index::lock(&index).is_ahead());
    lost(2);
    let web = Web::one(Site::new().html("/", page(&titled(2), &edited(2), &[])));
    let context = Context { index: Some(index.clone()), ..Context::default() };
    let report = crawl::run(&store, &config().settings(), &web.seeds(), &context).unwrap();
    assert_eq!((report.pages, report.new), (1, 1));
    assert_eq!(send("2", 2).found.as_str(), "title", "the crawl put its page into the index");
    check_clean(&store);
}

#[test]
fn crawls_by_request_are_refused_unless_they_are_allowed_and_their_seeds_are_checked() {
    let disabled = Server::new();
    ask(&disabled, &json!({"seeds": ["http://example.org/"]})).is(403, "crawls_disabled");
    assert_eq!(disabled.get("/v1/crawls").json(), json!({"enabled": false, "rows": []}));
    disabled.post("/v1/crawls/1/stop", "application/json", b"").is(404, "unknown_crawl");
    let strict = Server::with(|settings| {
        settings.api.crawls = true;
        settings.api.crawl_seeds_max = 2;
    });
    let refused = |seeds: Value, status: u16, code: &str| {
        ask(&strict, &json!({ "seeds": seeds })).is(status, code);
    };
    for private in [
        "http://127.0.0.1:8080/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://169.254.169.254/latest/",
        "http://0x7f.1/",
        "http://[::ffff:192.168.0.1]/",
    ] {
        refused(json!(["http://example.org/", private]), 400, "address_refused");
    }
    refused(json!(["file:///etc/passwd"]), 400, "bad_url");
    refused(json!(["nowhere"]), 400, "bad_url");
    refused(json!([]), 400, "missing_field");
    refused(json!("http://example.org/"), 400, "bad_field");
    let many = json!(["http://a.example/", "http://b.example/", "http://c.example/"]);
    refused(many, 400, "too_many_seeds");
    ask(&strict, &json!({"seeds": ["http://a.example/"], "pagesMax": 0})).is(400, "bad_field");
    ask(&strict, &json!({"seeds": ["http://a.example/"], "depth": 1})).is(400, "bad_field");
    strict.post("/v1/crawls", "application/json", b"{").is(400, "bad_json");
    let form = "application/x-www-form-urlencoded";
    strict.post("/v1/crawls", form, b"seeds=1").is(415, "unsupported_media_type");
    let wish = r#"{"seeds":["http://a.example/"]}"#;
    for headers in ["Origin: http://localhost:3000", "Origin: null", "Sec-Fetch-Site: same-site"] {
        let text = format!(
            "POST /v1/crawls HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{wish}",
            strict.address,
            wish.len()
        );
        strict.raw(text.as_bytes()).is(403, "forbidden_origin");
    }
    assert_eq!(strict.rows("/v1/crawls"), Vec::<Value>::new(), "nothing was started");
    assert_eq!(strict.get("/v1/live").json()["crawls"], json!([]));
}

#[test]
fn a_name_that_leads_to_this_machine_is_not_contacted_by_a_crawl_that_was_asked_for() {
    let web = Web::one(Site::new().html("/", page("Front", &prose(1, 100), &[])));
    let server = Server::with(|settings| {
        settings.clock = Clock::System;
        settings.crawl = config().settings();
        settings.crawl.fetch.allow_private = false;
        settings.api.crawls = true;
    });
    let port = web.web.url(0).trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    let answer = ask(&server, &json!({"seeds": [format!("http://localhost:{port}/")]}));
    let id = answer.json()["id"].as_u64().unwrap();
    until("the crawl ends", || state(&server, id) == "seeds_failed");
    let row = &server.rows("/v1/crawls")[0];
    assert!(row["reason"].as_str().unwrap().contains("address_refused"), "{row}");
    assert_eq!(web.web.requests().len(), 0);
}

#[test]
fn one_crawl_at_a_time_is_stopped_by_request_and_when_the_service_stops() {
    let mut server = server();
    let links: Vec<String> = (0..200).map(|number| format!("/p/{number}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let front = Site::new().html("/", page("Front", &prose(1, 80), &links));
    let web = Web::one((0..200).fold(front, |site, number| {
        let html = page(&format!("Page {number}"), &prose(number + 10, 80), &[]);
        site.page(&format!("/p/{number}"), Page::html(html).after(Duration::from_millis(100)))
    }));
    let id = start(&server, &web);
    ask(&server, &json!({"seeds": [web.web.url(0)]})).is(409, "crawl_running");
    let stop = |id: u64| server.post(&format!("/v1/crawls/{id}/stop"), "application/json", b"");
    let answer = stop(id);
    assert_eq!((answer.status, &answer.json()["state"]), (202, &json!("stopping")));
    until("it stops", || state(&server, id) == "stopped");
    stop(id).is(409, "crawl_ended");
    let again = start(&server, &web);
    assert!(again > id);
    let pages = |server: &Server| server.get("/v1/live").json()["crawls"][0]["pages"].as_u64();
    until("it reads pages", || pages(&server) > Some(2));
    server.stop();
    let folder = server.folder.path().to_owned();
    let store = std::mem::replace(&mut server.store, {
        Arc::new(Store::open_or_create(&folder.join("other"), 1 << 20).unwrap())
    });
    assert!(uniqcrawl::service::close(store, Duration::from_secs(30)), "the crawl has ended");
    let store = Store::open(&folder, 16 << 20).unwrap();
    check_clean(&store);
}

/// Hosts that link to each other, each with some pages, a copy, and pages that cannot be stored.
fn hosts_of_all_kinds(hosts: usize) -> Web {
    Web::start(hosts, |urls| {
        let site = |host: usize| {
            let links: Vec<String> = (0..=host).map(|number| format!("/p/{number}")).collect();
            let mut links: Vec<&str> = links.iter().map(String::as_str).collect();
            links.extend(urls.iter().map(String::as_str));
            let texts = ["/copy", "/missing", "/noindex"];
            links.extend(texts);
            let none = page("None", &prose(7, 80), &[])
                .replace("<head>", "<head><meta name=\"robots\" content=\"noindex\">");
            (0..=host).fold(
                Site::new()
                    .html("/", page("Front", &prose(host as u64 + 100, 80), &links))
                    .html("/copy", page("Copy", &prose(55, 150), &[]))
                    .html("/noindex", none),
                |site, number| {
                    let seed = (host * 10 + number) as u64 + 1_000;
                    site.html(&format!("/p/{number}"), page("Page", &prose(seed, 80), &[]))
                },
            )
        };
        (0..hosts).map(site).collect()
    })
}

#[test]
fn hosts_are_listed_in_pages_and_reasons_are_those_of_the_report() {
    let hosts = 5;
    let web = hosts_of_all_kinds(hosts);
    let server = Server::with(|settings| settings.clock = Clock::System);
    let seeds = web.seeds();
    let mut config = config();
    config.crawl.limits.probe_error_page = true;
    config.frontier.discover.usual_place = true;
    let context = Context::default();
    let report = crawl::run(&server.store, &config.settings(), &seeds, &context).unwrap();
    let told = server.get("/v1/reasons").json();
    assert_eq!(told["documents"], json!(report.documents));
    assert_eq!(told["copies"], json!(report.copies));
    assert_eq!(told["duplicates"], json!(report.duplicates));
    // What the crawler asked for of itself is no page that was not stored.
    assert_eq!(told["own"], json!({"no_sitemap": hosts, "probe": hosts}));
    let mut refused = report.refused.clone();
    refused.retain(|name, _| told["own"].get(name).is_none());
    assert_eq!(told["refused"], json!(refused));
    // Errors are the same wherever they are counted; a status that is an error is one.
    assert_eq!(told["refused"]["http_error"], json!(hosts));
    assert_eq!(told["errors"], json!(hosts));
    assert_eq!(context.live.errors.load(Ordering::Relaxed), hosts as u64);
    assert_eq!(context.live.failed.load(Ordering::Relaxed), 0, "each request got an answer");
    assert_eq!(told["waiting"], json!(report.queued));
    assert!(report.duplicates_total() >= 4 && report.refused.len() >= 2, "{report:?}");

    let all = server.rows("/v1/hosts?sort=name");
    let names: Vec<&str> = all.iter().map(|row| row["host"].as_str().unwrap()).collect();
    assert!(names.len() == hosts && names.is_sorted(), "{names:?}");
    for row in &all {
        assert_eq!((&row["state"], &row["queued"]), (&json!("done"), &json!(0)), "{row}");
        assert!(row["answered"].as_u64() > Some(4) && row["delayMs"].is_u64(), "{row}");
    }
    for sort in ["answered", "failed", "queued", "name"] {
        let whole = server.rows(&format!("/v1/hosts?sort={sort}"));
        if sort != "name" {
            let numbers = |rows: &[Value]| -> Vec<_> {
                rows.iter().map(|row| std::cmp::Reverse(row[sort].as_u64())).collect()
            };
            assert!(numbers(&whole).is_sorted(), "{whole:?}");
        }
        for limit in 1..=hosts {
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let path = format!("/v1/hosts?sort={sort}&limit={limit}{cursor}");
                let page = server.get(&path).json();
                let rows = page["rows"].as_array().unwrap();
                assert!(!rows.is_empty() && rows.len() <= limit);
                seen.extend(rows.iter().cloned());
                let Some(next) = page["next"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            assert_eq!(seen, whole, "{sort} by {limit}");
        }
    }
    let next = server.get("/v1/hosts?limit=1").json()["next"].as_str().unwrap().to_owned();
    server.get(&format!("/v1/hosts?sort=name&cursor={next}")).is(400, "bad_cursor");
    server.get("/v1/hosts?sort=size").is(400, "bad_parameter");
    server.get("/v1/live?x=1").is(400, "unknown_parameter");
    server.lives();
}

#[test]
fn a_crawl_from_the_command_line_can_be_looked_at_while_it_is_running() {
    let links: Vec<String> = (2..8).map(|story| format!("/{story}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let pages = links.iter().zip(2..).fold(
        Site::new().html("/", page("Front", &prose(1, 150), &links)),
        |site, (path, story)| {
            let text = page(&titled(story), &prose(story, 150), &[]);
            site.page(path, Page::html(text).after(Duration::from_millis(400)))
        },
    );
    let web = Web::one(pages);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seeds.txt"), web.web.url(0)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["--seeds", "seeds.txt", "--allow-private", "--delay", "0", "--json"])
        .args(["--serve", "127.0.0.1:0"])
        .current_dir(folder.path())
        .env_remove("UNIQCRAWL_LOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut address = told.by_ref().map(Result::unwrap);
    let address = address.find_map(|line| Some(line.split_once("on http://")?.1.to_owned()));
    let address: SocketAddr = address.expect("it says where").parse().unwrap();
    let live = || get(address, "/v1/live").json();
    until("a page is shown", || live()["crawls"][0]["pages"].as_u64() >= Some(2));
    // An article that is sent meanwhile is judged by what the crawl has stored.
    let text = format!("{} these few words were added", prose(1, 150));
    let body = json!({"nid": "1", "title": "Front", "content": text}).to_string();
    let sent = post(address, "/v1/articles", "application/json", body.as_bytes()).json();
    assert_eq!(sent["filterStatus"], "duplicate", "{sent}");
    assert!(get(address, "/").body.contains("<html"));
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&report["pages"], &report["documents"]), (&json!(7), &json!(7)));
    check_clean(&Store::open(&folder.path().join("store"), 1 << 20).unwrap());
    // What would be open to everybody is refused before anything is made.
    let open = crawl_command(
        &["--seeds", "seeds.txt", "--store", "other", "--serve", "0.0.0.0:0"],
        folder.path(),
    );
    assert_eq!(open.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&open.stderr).contains("a token is needed"));
    assert!(!folder.path().join("other").exists());
}

#[test]
fn what_was_sent_for_addresses_that_lead_elsewhere_moves_and_they_stay_redirects() {
    let server = server();
    let names: Vec<String> = (0..20).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = names.iter().map(String::as_str).collect();
    let site = Site::new()
        .html("/", page("Front", &prose(1, 150), &links))
        .html("/there", page("There", &prose(2, 150), &[]));
    let web = Web::one(
        names.iter().fold(site, |site, name| site.page(name, Page::redirect(302, "/there"))),
    );
    // One title and much that all have, so that they part at the second look.
    let boilerplate = prose(99, 200);
    for (number, name) in names.iter().enumerate() {
        let content = format!("{boilerplate} {}", prose(1_000 + number as u64, 100));
        let url = web.url(0, name).to_string();
        server.send(&json!({"url": url, "title": "News of the town", "content": content}));
    }
    let before = server.rows("/v1/documents").len();
    assert!(before < 20, "nothing tells them apart at first");
    let id = start(&server, &web);
    until("the crawl ends", || state(&server, id) == "done");
    assert_eq!(server.rows("/v1/documents").len(), 22, "the second look has parted them");
    for name in &names {
        let told = server.get(&format!("/v1/explain?url={}", web.url(0, name))).json();
        assert_eq!(told["state"], "redirect", "{told}");
    }
    server.lives();
}

#[test]
fn an_nid_that_is_the_address_of_a_page_is_no_copy_at_that_address() {
    let server = server();
    let web = Web::one(
        Site::new()
            .html("/", page("Front", &prose(1, 150), &["/page"]))
            .html("/page", page(&titled(2), &prose(2, 150), &[])),
    );
    let nid = web.url(0, "/page").to_string();
    let article = json!({"nid": nid, "title": titled(2), "content": prose(2, 150)});
    let sent = server.send(&article);
    let id = start(&server, &web);
    until("the crawl ends", || state(&server, id) == "done");
    let copies = server.rows(&format!("/v1/documents/{}/copies", sent["docId"].as_str().unwrap()));
    let mut urls: Vec<&str> = copies.iter().map(|copy| copy["url"].as_str().unwrap()).collect();
    urls.sort_unstable();
    assert_eq!(urls, [nid.as_str(), &format!("nid:{nid}")]);
    let again = server.send(&article);
    assert_eq!((&again["foundBy"], &again["nid"]), (&json!("nid"), &json!(nid)));
    server.lives();
}
