//! The service over HTTP: search, and the text of one copy.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uniqcrawl::base::units::Time;
use uniqcrawl::corpus::search;
use uniqcrawl::corpus::tables::COPIES;
use uniqcrawl::neardup::Key;
use uniqcrawl::store::{Store, Update as _, View as _};

use crate::service::{Server, article, escaped};
use crate::support::{check_clean, crawl, prose};

fn server() -> Server {
    Server::with(|settings| settings.api.search_update = Time::from_millis(20))
}

/// Asks until `fits`: the index follows in the background.
#[track_caller]
fn eventually(server: &Server, path: &str, fits: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        let answer = server.get(path);
        if answer.status == 503 {
            answer.is(503, "search_not_ready");
        } else {
            assert_eq!(answer.status, 200, "{}", answer.body);
            let rows = answer.json()["rows"].as_array().unwrap().clone();
            if fits(&rows) {
                return rows;
            }
        }
        assert!(Instant::now() < end, "{path}: {}", answer.body);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn texts_sentences_and_words_are_found_soon_after_they_came() {
    let server = server();
    for story in 1..=4 {
        server.send(&article(&story.to_string(), story, "sina"));
    }
    let copy = server.send(&article("5", 3, "sohu"));
    let chinese = "南京大桥昨天通车，市民可以步行参观。专家说，大桥的桥梁结构非常坚固。";
    let other = server
        .send(&json!({"nid": "6", "url": "http://news.example/6", "title": "大桥通车",
        "content": chinese, "media": "新华"}));
    let text = format!("/v1/search?q={}", escaped(&prose(3, 150)));
    let rows = eventually(&server, &text, |rows| rows.first().is_some_and(|r| r["copies"] == 2));
    assert_eq!((&rows[0]["docId"], &rows[0]["cosine"]), (&copy["docId"], &json!(1.0)));
    assert_eq!(
        (&rows[0]["media"], &rows[0]["title"]),
        (&json!("sina"), &json!("Story 3 of some words"))
    );
    let sentence = format!("/v1/search?mode=sentence&q={}", escaped("桥梁结构坚固，专家说"));
    let rows = eventually(&server, &sentence, |rows| !rows.is_empty());
    assert_eq!(rows[0]["docId"], other["docId"]);
    assert_eq!(rows[0]["sentence"], "专家说，大桥的桥梁结构非常坚固。");
    let words = format!("/v1/search?mode=words&limit=1&q={}", escaped("通车 story"));
    let rows = eventually(&server, &words, |rows| !rows.is_empty());
    assert!(rows.len() == 1 && rows[0]["score"].as_f64().unwrap() > 0.0, "{rows:?}");
    // The same, posted.
    let body = json!({"text": "桥梁结构坚固，专家说", "mode": "sentence", "limit": 1});
    let posted = server.post("/v1/search", "application/json", body.to_string().as_bytes()).json();
    assert_eq!(
        (&posted["mode"], &posted["rows"][0]["docId"]),
        (&json!("sentence"), &other["docId"])
    );
    assert_eq!(server.rows(&format!("/v1/search?q={}", escaped("。！？"))).len(), 0, "no words");
    server.lives();
}

#[test]
fn what_is_found_can_be_ordered_by_copies() {
    let server = server();
    // Story 1 has one copy, story 2 three, story 3 two; all share a word, the first most often.
    let mut ids = Vec::new();
    for (story, copies) in [(1_u64, 1), (2, 3), (3, 2)] {
        for copy in 0..copies {
            let mut one = article(&format!("{story}-{copy}"), story, &format!("m{copy}"));
            let text = format!("{} {}", prose(story, 150), "harbour ".repeat(5 - story as usize));
            one["content"] = text.into();
            ids.push(server.send(&one)["docId"].clone());
        }
    }
    let [one, three, two] = [&ids[0], &ids[1], &ids[4]];
    let words = "/v1/search?mode=words&q=harbour";
    let whole =
        |rows: &[Value]| rows.iter().map(|row| row["copies"].as_u64().unwrap()).sum::<u64>() == 6;
    eventually(&server, words, whole);
    let found = |rows: &[Value]| rows.iter().map(|row| row["docId"].clone()).collect::<Vec<_>>();
    let order = |sort: &str| found(&server.rows(&format!("{words}&{sort}")));
    assert_eq!(order("sort=best"), order(""));
    assert_eq!(order("sort=copies"), [three, two, one].map(Clone::clone));
    assert_eq!(order("sort=fewest"), [one, two, three].map(Clone::clone));
    // Of all that are found, not of the best ones that fit.
    assert_eq!(order("sort=copies&limit=1"), std::slice::from_ref(three));
    assert_eq!(order("sort=fewest&limit=1"), std::slice::from_ref(one));
    let body = json!({"text": "harbour", "mode": "words", "sort": "copies", "limit": 2});
    let posted = server.post("/v1/search", "application/json", body.to_string().as_bytes()).json();
    assert_eq!(found(posted["rows"].as_array().unwrap()), [three, two].map(Clone::clone));
    server.get(&format!("{words}&sort=most")).is(400, "bad_parameter");
    let body = br#"{"text":"x","sort":"most"}"#;
    server.post("/v1/search", "application/json", body).is(400, "bad_field");
    // The same on the command line, once the service has let go of the store.
    let mut server = server;
    server.stop();
    let folder = server.folder.path().to_owned();
    let other = tempfile::tempdir().unwrap();
    let empty = Store::open_or_create(other.path(), 1 << 20).unwrap();
    let store = std::mem::replace(&mut server.store, Arc::new(empty));
    assert!(uniqcrawl::service::close(store, Duration::from_secs(20)), "nothing holds the store");
    let store = folder.to_str().unwrap();
    let said = |arguments: &[&str]| {
        let all = ["search", "--store", store, "--json", "--words", "harbour"];
        let out = crawl(&[&all, arguments].concat(), &folder);
        assert!(out.status.success(), "{out:?}");
        found(serde_json::from_slice::<Value>(&out.stdout).unwrap().as_array().unwrap())
    };
    assert_eq!(said(&["--sort", "copies"]), [three, two, one].map(Clone::clone));
    assert_eq!(said(&["--sort", "fewest", "-n", "1"]), std::slice::from_ref(one));
    // Where no copies can be counted, no order is made up.
    let held = Store::open(&folder, 1 << 20).unwrap();
    let out = crawl(&["search", "--store", store, "--sort", "copies", "harbour"], &folder);
    let told = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1));
    assert!(told.contains("store is in use") && told.contains("sort=copies"), "{told}");
    drop(held);
}

#[test]
fn it_is_told_how_far_the_search_is_behind() {
    let server = Server::with(|settings| settings.api.search_update = Time::from_millis(3_600_000));
    eventually(&server, "/v1/search?q=x", |_| true);
    server.send(&article("1", 1, "sina"));
    server.send(&article("2", 2, "sina"));
    assert_eq!(server.get("/v1/stats").json()["documentsToIndex"], 2);
    assert!(server.get("/metrics").body.contains("\nuniqcrawl_search_waiting 2\n"));
    let server = server.again(|settings| settings.api.search_update = Time::from_millis(20));
    let text = format!("/v1/search?q={}", escaped(&prose(2, 150)));
    eventually(&server, &text, |rows| !rows.is_empty());
    let end = Instant::now() + Duration::from_mins(1);
    while server.get("/v1/stats").json()["documentsToIndex"] != 0 {
        assert!(Instant::now() < end, "the index does not say that it has followed");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_index_of_the_search_gives_way_to_those_who_wait() {
    let server = server();
    eventually(&server, "/v1/search?q=x", |_| true);
    let nice = |stat: &str| -> i32 {
        // The name may have blanks and ends with the last bracket; the 17th field after it.
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().parse().unwrap()
    };
    let own = nice(&fs::read_to_string("/proc/thread-self/stat").unwrap());
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let stats = tasks.filter_map(|task| fs::read_to_string(task.join("stat")).ok());
    let mut keepers = stats.filter(|stat| stat.contains("(search-index)"));
    assert!(keepers.any(|stat| nice(&stat) == (own + 10).min(19)));
}

#[test]
fn searches_that_cannot_be_answered_say_why() {
    let server = server();
    eventually(&server, "/v1/search?q=x", |_| true);
    server.get("/v1/search").is(400, "missing_parameter");
    server.get("/v1/search?q=%20").is(400, "missing_parameter");
    server.get("/v1/search?q=x&mode=page").is(400, "bad_parameter");
    server.get("/v1/search?q=x&limit=201").is(400, "bad_parameter");
    server.get("/v1/search?q=x&n=3").is(400, "unknown_parameter");
    server.get("/v1/search?q=%FF").is(400, "bad_utf8");
    let post = |body: &[u8]| server.post("/v1/search", "application/json", body);
    post(b"{").is(400, "bad_json");
    post(b"{\"text\":\"\xff\"}").is(400, "bad_utf8");
    post(b"{}").is(400, "bad_field");
    post(br#"["x"]"#).is(400, "bad_field");
    post(br#"{"text":7}"#).is(400, "bad_field");
    post(br#"{"text":" "}"#).is(400, "missing_field");
    post(br#"{"text":"x","mode":"page"}"#).is(400, "bad_field");
    post(br#"{"text":"x","limit":0}"#).is(400, "bad_field");
    post(br#"{"text":"x","n":1}"#).is(400, "bad_field");
    let long = |bytes: usize| json!({"text": "x ".repeat(bytes / 2)}).to_string();
    post(long((1 << 20) + 2).as_bytes()).is(400, "field_too_long");
    assert_eq!(post(long(1 << 20).as_bytes()).status, 200);
    post(&vec![b'x'; (8 << 20) + 1]).is(413, "body_too_large");
    server.post("/v1/search", "text/plain", b"x").is(415, "unsupported_media_type");
    server.lives();
}

#[test]
fn what_asks_not_to_be_shown_is_not_found_and_hidden_texts_stay_hidden() {
    let server = server();
    let ids: Vec<Value> = (1..=3)
        .map(|story| server.send(&article(&story.to_string(), story, "m"))["docId"].clone())
        .collect();
    let story = |story: u64| format!("/v1/search?mode=sentence&q={}", escaped(&prose(story, 12)));
    for (number, id) in (1..).zip(&ids) {
        eventually(&server, &story(number), |rows| rows.iter().any(|row| row["docId"] == *id));
    }
    // The first pages come to ask for something after they were indexed.
    change(&server, 1, |copy| copy.terms.noai = true);
    change(&server, 2, |copy| copy.terms.noarchive = true);
    assert_eq!(server.rows(&story(1)).len(), 0);
    let row = &server.rows(&story(2))[0];
    assert_eq!((&row["docId"], &row["sentence"]), (&ids[1], &Value::Null));
    assert!(server.rows(&story(3))[0]["sentence"].is_string());
    let copy = |number: usize| {
        let id = ids[number - 1].as_str().unwrap();
        server.get(&format!("/v1/documents/{id}/copy?url=http://m.example/{number}"))
    };
    copy(1).is(403, "withheld");
    assert_eq!(
        (&copy(2).json()["text"], &copy(2).json()["withheld"]),
        (&json!(""), &json!("noarchive"))
    );
    assert_eq!(copy(3).json()["text"], prose(3, 150));
}

/// Changes the one copy of a document.
fn change(server: &Server, number: u64, change: impl Fn(&mut uniqcrawl::corpus::documents::Copy)) {
    let mut batch = server.store.begin().unwrap();
    let address = format!("http://m.example/{number}");
    let mut copy = batch.get(COPIES, (number, &address)).unwrap().unwrap();
    change(&mut copy);
    batch.put(COPIES, (number, &address), &copy).unwrap();
    batch.commit().unwrap();
}

#[test]
fn each_copy_has_the_text_that_it_came_with() {
    let server = Server::new();
    let one = prose(8, 300);
    let other = format!("{one}A last word.");
    let mut told = article("1", 8, "a");
    told["content"] = one.clone().into();
    let id = server.send(&told)["docId"].as_str().unwrap().to_owned();
    told["content"] = other.clone().into();
    told["title"] = "Quite another headline over it".into();
    (told["nid"], told["url"]) = (json!("2"), json!("http://b.example/?x=1&y=2"));
    let near = server.send(&told);
    assert_eq!((&near["docId"], &near["foundBy"]), (&json!(id), &json!("content")), "{near}");
    assert_ne!(near["key"], Key::Exact.as_str());
    let copy = |url: &str| server.get(&format!("/v1/documents/{id}/copy?url={}", escaped(url)));
    let (first, second) =
        (copy("http://a.example/1").json(), copy("http://b.example/?x=1&y=2").json());
    assert_eq!((&first["text"], &first["canonical"]), (&json!(one), &json!(true)));
    assert_eq!((&second["text"], &second["docId"]), (&json!(other), &json!(id)));
    copy("http://a.example/2").is(404, "unknown_copy");
    server.get(&format!("/v1/documents/{id}/copy")).is(400, "missing_parameter");
    server.lives();
}

#[test]
fn an_index_that_was_there_answers_at_once_and_a_broken_one_is_made_anew() {
    let mut first = server();
    first.send(&article("1", 1, "a"));
    let path = format!("/v1/search?q={}", escaped(&prose(1, 60)));
    eventually(&first, &path, |rows| rows.len() == 1);
    first.stop();
    // Nobody looks at the store for a day: what was committed is asked.
    let second = first.again(|settings| settings.api.search_update = Time::from_millis(86_400_000));
    assert_eq!(eventually(&second, &path, |_| true).len(), 1);
    let mut second = second;
    second.stop();
    damage(&second.folder.path().join("search"));
    let third = second.again(|settings| settings.api.search_update = Time::from_millis(20));
    eventually(&third, &path, |rows| rows.len() == 1);
    third.send(&article("2", 2, "a"));
    let other = format!("/v1/search?q={}", escaped(&prose(2, 60)));
    eventually(&third, &other, |rows| rows.iter().any(|row| row["url"] == "http://a.example/2"));
    check_clean(&third.store);
    // The command line sees the same index.
    let mut third = third;
    third.stop();
    let index = search::Search::open(third.folder.path(), &search::Config::default()).unwrap();
    assert_eq!((index.made_anew(), index.documents()), (None, 2));
}

/// Cuts every file of an index in two.
fn damage(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    }
}
