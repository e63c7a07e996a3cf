//! The service over HTTP: lists, documents, counts, what it says of itself.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use uniqcrawl::corpus::clusters;
use uniqcrawl::service::routes;

use crate::service::{Server, article, escaped};
use crate::support::prose;

#[test]
fn documents_are_listed_sorted_filtered_and_paged() {
    let server = Server::new();
    for story in 1..=9_u64 {
        for copy in 0..=story % 4 {
            server.send(&article(&format!("{story}-{copy}"), story, &format!("m{copy}")));
        }
        server.clock.advance(Duration::from_hours(1));
    }
    let stories = |rows: &[Value]| -> Vec<u64> {
        let title = |row: &Value| row["title"].as_str().unwrap()[6..7].parse().unwrap();
        rows.iter().map(title).collect()
    };
    assert_eq!(stories(&server.rows("/v1/documents")), [9, 8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(stories(&server.rows("/v1/documents?sort=oldest&limit=3")), [1, 2, 3]);
    let ranked = [7, 3, 6, 2, 9, 5, 1, 8, 4];
    assert_eq!(stories(&server.rows("/v1/documents?sort=copies")), ranked);
    let mut fewest = ranked;
    fewest.reverse();
    assert_eq!(stories(&server.rows("/v1/documents?sort=fewest")), fewest);
    let newest = [9, 8, 7, 6, 5, 4, 3, 2, 1];
    for limit in 1..=5 {
        for (sort, all) in [("copies", ranked), ("fewest", fewest), ("newest", newest)] {
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let page =
                    server.get(&format!("/v1/documents?sort={sort}&limit={limit}{cursor}")).json();
                seen.extend(stories(page["rows"].as_array().unwrap()));
                let Some(next) = page["next"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            assert_eq!(seen, all, "{sort} by {limit}");
        }
    }
    let row = &server.rows("/v1/documents?sort=copies&limit=1")[0];
    assert_eq!(
        (&row["copies"], &row["similar"], &row["media"]),
        (&json!(4), &json!(3), &json!("m0"))
    );
    let since = "/v1/documents?since=2026-11-21T14:00:00Z&until=2026-11-21T16:00:00Z";
    assert_eq!(stories(&server.rows(since)), [4, 3]);
    assert_eq!(server.rows("/v1/documents?media=m1").len(), 0, "no canonical copy is of m1");
    assert_eq!(server.rows("/v1/documents?media=m0").len(), 9);
    let told = server.get("/v1/facets").json();
    assert_eq!(told["media"], json!([{"media": "m0", "documents": 9}]));
    assert_eq!((&told["complete"], told["languages"].is_array()), (&json!(true), true));
    let next = server.get("/v1/documents?limit=1").json()["next"].as_str().unwrap().to_owned();
    server.get(&format!("/v1/documents?sort=copies&cursor={next}")).is(400, "bad_cursor");
    server.lives();
}

#[test]
fn a_document_shows_its_copies_their_media_and_what_is_like_it() {
    let server = Server::new();
    let told = server.send(&article("1", 5, "sina"));
    let id = told["docId"].as_str().unwrap().to_owned();
    for (nid, media) in [("2", "sohu"), ("3", "sina"), ("4", "163")] {
        server.send(&article(nid, 5, media));
    }
    // Half of it is the same: similar, and no copy.
    let half = format!("{} {}", prose(5, 75), prose(6, 75));
    let like = server.send(&json!({"nid": "5", "title": "Another thing", "content": half}));
    assert_eq!(like["filterStatus"], "good");
    server.send(&article("6", 77, "sina"));
    let document = server.get(&format!("/v1/documents/{id}")).json();
    assert_eq!((&document["docId"], &document["copies"]), (&json!(id), &json!(4)));
    assert_eq!(document["text"], prose(5, 150));
    let copies = server.get(&format!("/v1/documents/{id}/copies")).json();
    let media = json!([
        {"media": "sina", "copies": 2}, {"media": "163", "copies": 1}, {"media": "sohu", "copies": 1}
    ]);
    assert_eq!((&copies["media"], &copies["mediaComplete"]), (&media, &json!(true)));
    let rows = copies["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows.iter().filter(|row| row["canonical"] == true).count(), 1);
    assert_eq!((&rows[0]["key"], &rows[0]["similarity"]), (&json!("exact_content"), &json!(1.0)));
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/v1/documents/{id}/copies?limit=1{cursor}")).json();
        seen.extend(page["rows"].as_array().unwrap().iter().map(|row| row["url"].clone()));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, rows.iter().map(|row| row["url"].clone()).collect::<Vec<_>>());
    let similar = server.rows(&format!("/v1/documents/{id}/similar"));
    assert_eq!((similar.len(), &similar[0]["docId"]), (1, &like["docId"]));
    let similarity = similar[0]["similarity"].as_f64().unwrap();
    assert!((0.15..0.45).contains(&similarity), "{similarity}");
    let explained = server.get("/v1/explain?url=http://sohu.example/2").json();
    assert_eq!(
        (&explained["state"], &explained["url"]),
        (&json!("duplicate"), &json!("http://sohu.example/2"))
    );
    server.lives();
}

#[test]
fn an_article_tells_by_its_nid_which_document_it_belongs_to() {
    let server = Server::new();
    let odd = "a/b c+d%?#中";
    let first = server.send(&article("1", 1, "a"));
    let second = server.send(&article(odd, 1, "b"));
    let nameless = json!({"url": "http://c.example/x?y=1", "title": "T", "content": prose(2, 150)});
    let third = server.send(&nameless);
    let asked = |nid: &str| server.get(&format!("/v1/articles/{}", escaped(nid)));
    for (nid, told) in [("1", &first), (odd, &second), ("http://c.example/x?y=1", &third)] {
        assert_eq!(asked(nid).json(), *told, "{nid}");
    }
    assert_eq!(second["docId"], first["docId"]);
    assert_eq!(server.get("/v1/articles/a%2Fb%20c+d%25%3F%23%E4%B8%AD").json(), second);
    asked("2").is(404, "unknown_article");
    server.get("/v1/articles/%zz").is(400, "bad_escape");
    server.get("/v1/articles/1?limit=2").is(400, "unknown_parameter");
    server.post("/v1/articles/1", "application/json", b"{}").is(405, "method_not_allowed");
    // It follows its document into another one.
    let other = server.send(&article("9", 9, "d"));
    let mut batch = server.store.begin().unwrap();
    clusters::merge(&mut batch, 3, 1, server.clock.now()).unwrap();
    batch.commit().unwrap();
    let told = asked("9").json();
    assert_eq!((&told["docId"], &told["arrival"]), (&first["docId"], &other["arrival"]));
    server.lives();
}

#[test]
fn a_merged_identifier_leads_to_the_present_document() {
    let server = Server::new();
    let one = server.send(&article("1", 1, "a"))["docId"].as_str().unwrap().to_owned();
    let two = server.send(&article("2", 2, "b"))["docId"].as_str().unwrap().to_owned();
    let mut batch = server.store.begin().unwrap();
    clusters::merge(&mut batch, 2, 1, server.clock.now()).unwrap();
    batch.commit().unwrap();
    let found = server.get(&format!("/v1/documents/{two}")).json();
    assert_eq!((&found["docId"], &found["merged"]), (&json!(one), &json!([two])));
    assert_eq!(server.rows("/v1/documents?sort=copies")[0]["copies"], 2);
    server.lives();
}

#[test]
fn counts_by_time_and_what_grows() {
    let server = Server::new();
    let send = |nid: &str, story: u64| drop(server.send(&article(nid, story, "m")));
    send("a1", 1);
    send("a2", 1);
    send("a3", 1);
    send("b1", 2);
    server.clock.advance(Duration::from_hours(30));
    send("b2", 2);
    send("b3", 2);
    send("a4", 1);
    send("c1", 3);
    let days = server.get("/v1/counts?by=day&since=2026-11-01").json();
    assert_eq!((&days["documents"], &days["copies"]), (&json!(3), &json!(8)));
    let rows = json!([
        {"start": "2026-11-21T00:00:00Z", "documents": 2, "copies": 4},
        {"start": "2026-11-22T00:00:00Z", "documents": 1, "copies": 4},
    ]);
    assert_eq!(days["rows"], rows);
    let hours = server.rows("/v1/counts?since=2026-11-22&until=2026-11-23");
    assert_eq!((hours.len(), &hours[0]["start"]), (1, &json!("2026-11-22T18:00:00Z")));
    let grown = |window: &str| -> Vec<(String, u64)> {
        let rows = server.rows(&format!("/v1/trending?window={window}"));
        let row = |row: &Value| {
            (row["title"].as_str().unwrap()[..7].to_owned(), row["grown"].as_u64().unwrap())
        };
        rows.iter().map(row).collect()
    };
    assert_eq!(grown("6h"), [("Story 2".to_owned(), 2), ("Story 1".to_owned(), 1)]);
    assert_eq!(grown("3d"), [("Story 1".to_owned(), 3), ("Story 2".to_owned(), 2)]);
}

#[test]
fn the_description_names_every_path_and_metrics_count_the_requests() {
    let server = Server::new();
    let told: Value = serde_json::from_str(&server.get("/openapi.json").body).unwrap();
    let described: BTreeSet<(String, String)> = told["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(|m| (path.clone(), m.clone()))
        })
        .collect();
    let known = routes().flat_map(|route| {
        route.methods.iter().map(|(method, _)| (route.path.to_owned(), (*method).to_owned()))
    });
    assert_eq!(described, known.collect());
    for route in routes() {
        let has = |wanted: &str| route.methods.iter().any(|(method, _)| *method == wanted);
        let path = route.path.replace("{docId}", "0000000000000000-0000000000000000");
        let path = path.replace("{name}", "none").replace("{id}", "1");
        for (method, known) in ["GET", "POST", "PUT"].map(|m| (m, has(&m.to_lowercase()))) {
            let text = format!(
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            );
            let answer = server.raw(text.as_bytes());
            assert_eq!(answer.status == 405, !known, "{method} {path}");
            assert!(!answer.body.contains("\"code\":\"not_found\""), "{path}");
        }
    }
    server.send(&article("1", 1, "a"));
    server.send(&article("2", 1, "b"));
    let metrics = server.get("/metrics").body;
    for line in [
        r#"uniqcrawl_http_requests_total{route="/v1/articles",status="201"} 1"#,
        r#"uniqcrawl_articles_total{verdict="new"} 1"#,
        r#"uniqcrawl_articles_total{verdict="content"} 1"#,
        "uniqcrawl_documents 1",
        "uniqcrawl_copies 2",
        r#"uniqcrawl_http_request_duration_seconds_count{route="/v1/articles"}"#,
        "# EOF",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    let stats = server.get("/v1/stats").json();
    assert_eq!((&stats["documents"], &stats["articlesSent"]), (&json!(1), &json!(2)));
}
