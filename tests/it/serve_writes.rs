//! Who may send articles: no page of another origin, whatever it can make a browser do.

use serde_json::json;
use uniqcrawl::service::Senders;

use crate::service::{Answer, Server, escaped};

/// What a browser says of a request that a page of another origin made it send: a form, an image,
/// a script; and the same where it sends no `Sec-Fetch-Site`.
const FOREIGN: [&str; 9] = [
    "Origin: http://127.0.0.1:3000\r\nSec-Fetch-Site: same-site\r\nSec-Fetch-Mode: navigate",
    "Sec-Fetch-Site: same-site\r\nSec-Fetch-Dest: image\r\nSec-Fetch-Mode: no-cors",
    "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: image",
    "Origin: http://localhost:3000",
    "Origin: https://evil.example",
    "Origin: null",
    "Referer: http://localhost:3000/page",
    "Referer: https://evil.example/",
    "Referer: http://127.0.0.1/",
];

/// The ways in which an article can be sent: method, path, type, body.
fn ways(article: &str) -> Vec<(&'static str, String, &'static str, String)> {
    let paper = "/docId/getDocId".to_owned();
    let in_address = format!("{paper}?json={}", escaped(article));
    let form = format!("json={}", escaped(article));
    let line = format!("{article}\n");
    vec![
        ("GET", in_address.clone(), "", String::new()),
        ("HEAD", in_address.clone(), "", String::new()),
        ("POST", in_address, "", String::new()),
        ("POST", paper.clone(), "application/x-www-form-urlencoded", form),
        ("POST", paper, "application/json", article.to_owned()),
        ("POST", "/v1/articles".to_owned(), "application/json", article.to_owned()),
        ("POST", "/v1/articles".to_owned(), "application/x-ndjson", line),
    ]
}

fn send(server: &Server, way: &(&str, String, &str, String), headers: &str) -> Answer {
    let (method, path, kind, body) = way;
    let kind = if kind.is_empty() { String::new() } else { format!("Content-Type: {kind}\r\n") };
    let headers = if headers.is_empty() { String::new() } else { format!("{headers}\r\n") };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{kind}{headers}\
         Content-Length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    server.raw(head.as_bytes())
}

fn article(n: usize) -> String {
    json!({"nid": n.to_string(), "url": format!("http://h/{n}"), "title": format!("Title {n}"),
        "content": crate::support::prose(n as u64 + 1, 60)})
    .to_string()
}

#[test]
fn no_page_of_another_origin_can_store_an_article() {
    let server = Server::new();
    let mut stored = Vec::new();
    for (n, headers) in FOREIGN.into_iter().enumerate() {
        for (m, way) in ways(&article(n)).iter().enumerate() {
            let answer = send(&server, way, headers);
            if answer.status != 403 {
                stored.push((m, headers, answer.status));
            } else if way.0 != "HEAD" {
                assert!(answer.body.contains("forbidden_origin"), "{}", answer.body);
            }
        }
    }
    let rows = server.rows("/v1/documents").len();
    let sent = FOREIGN.len() * 7;
    assert!(stored.is_empty() && rows == 0, "{} of {sent}, {rows} rows: {stored:?}", stored.len());
    server.lives();
}

#[test]
fn plain_clients_own_pages_and_typed_addresses_store_as_before() {
    let server = Server::new();
    let own = format!("Origin: http://{}", server.address);
    let same = format!("{own}\r\nSec-Fetch-Site: same-origin");
    let page = format!("Referer: http://{}/", server.address);
    for (n, headers) in ["", &own, &same, &page, "Sec-Fetch-Site: none"].into_iter().enumerate() {
        for way in &ways(&article(n)) {
            let answer = send(&server, way, headers);
            assert!(matches!(answer.status, 200 | 201), "{headers}, {way:?}: {}", answer.body);
        }
    }
    assert_eq!(server.rows("/v1/documents").len(), 5);
    server.lives();
}

#[test]
fn who_may_send_in_the_form_of_the_paper_is_a_setting() {
    let posts = Server::with(|settings| settings.api.doc_id_senders = Senders::Post);
    let statuses = |server: &Server, headers: &str| {
        let ways = ways(&article(1));
        ways.iter().map(|way| send(server, way, headers).status).collect::<Vec<_>>()
    };
    assert_eq!(statuses(&posts, ""), [405, 405, 200, 200, 200, 200, 200]);
    assert_eq!(statuses(&posts, FOREIGN[3]), [405, 405, 403, 403, 403, 403, 403]);
    let any = Server::with(|settings| settings.api.doc_id_senders = Senders::Any);
    assert_eq!(statuses(&any, FOREIGN[3]), [200, 200, 200, 200, 200, 403, 403]);
    // Pages of other sites were never answered without a token, and are not now.
    assert_eq!(statuses(&any, FOREIGN[4]), [403; 7]);
}
