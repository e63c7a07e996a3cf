//! The dashboard in a browser: each view shows what the service says, in both languages.

use std::time::Duration;
use uniqcrawl::units::Time;

use serde_json::{Value, json};

use crate::browser::Tab;
use crate::service::{Server, article, escaped};
use crate::support::prose;

const BRIDGE: &str = "南京长江大桥昨天正式恢复通车，许多市民一早就赶来步行参观。\
    专家表示，大桥的桥梁结构依然非常坚固。\n工程历时两年，共更换了上万个零件。\
    今后车辆的限速为每小时五十公里。市政府感谢所有参加建设的工人。";

/// A title that would be a script if it were read as HTML.
pub(crate) const ODD: &str = r#"<script>document.title="x"</script> "quoted" & <b>bold</b>"#;

/// A service with articles of two languages. The copies of the bridge differ in some words.
pub(crate) fn filled() -> (Server, String) {
    let server = Server::with(|settings| settings.api.search_update = Time::from_millis(20));
    let send = |nid: &str, title: &str, text: &str, media: &str| {
        let told = server.send(&json!({"nid": nid, "url": format!("http://{media}.example/{nid}"),
            "title": title, "content": text, "media": media}));
        told["docId"].as_str().unwrap().to_owned()
    };
    for story in 1..=28_u64 {
        server.send(&article(&format!("s{story}"), story, "wire"));
    }
    send("odd", ODD, &prose(40, 120), "odd");
    server.clock.advance(Duration::from_hours(3));
    let id = send("b1", "南京长江大桥恢复通车", BRIDGE, "新华");
    assert_eq!(send("b2", "南京长江大桥恢复通车", &BRIDGE.replace("昨天", "今天"), "sina"), id);
    assert_eq!(send("b3", "南京长江大桥恢复通车", BRIDGE, "sohu"), id);
    (server, id)
}

fn url(server: &Server, hash: &str) -> String {
    format!("http://{}/{hash}", server.address)
}

/// Opens a view and waits for a text in it.
fn open(server: &Server, language: &str, hash: &str, text: &str) -> Tab {
    let tab = Tab::open(language);
    tab.go(&url(server, hash));
    tab.shows(text);
    tab
}

#[test]
fn articles_are_listed_filtered_and_paged() {
    let (server, _) = filled();
    let tab = open(&server, "en-GB", "#/articles", "南京长江大桥恢复通车");
    tab.shows("2 similar articles");
    let rows = server.rows("/v1/documents?limit=25");
    let titles = "[...document.querySelectorAll('.article h3')].map((one) => one.textContent)";
    let told: Vec<&str> = rows.iter().map(|row| row["title"].as_str().unwrap()).collect();
    assert_eq!(tab.eval(titles), json!(told));
    tab.shot("articles-en");
    tab.eval("document.querySelector('.pager a').click()");
    tab.shows("Story 1 of some words");
    assert_eq!(tab.eval("document.querySelectorAll('.article').length"), 5);
    // Back to the first page, as with any page.
    tab.eval("history.back()");
    tab.shows("南京长江大桥恢复通车");
    tab.eval("document.querySelector('[name=media]').value = 'sina'");
    tab.eval("document.querySelector('.filters button').click()");
    tab.until("document.querySelectorAll('.article').length === 1");
    tab.eval("document.querySelector('[name=media]').value = 'nobody'");
    tab.eval("document.querySelector('.filters button').click()");
    tab.shows("No article fits.");
    assert!(tab.eval("location.hash").as_str().unwrap().contains("media=nobody"));
    tab.go(&url(&server, "#/articles?until=2026-11-20"));
    tab.shows("No article fits.");
    tab.go(&url(&server, "#/articles?until=2026-11-21&sort=copies&since=2026-11-21"));
    tab.until("document.querySelector('.article h3')?.textContent.includes('大桥')");
    tab.is_content(&[]);
}

#[test]
fn a_document_shows_its_copies_and_how_two_of_them_differ() {
    let (server, id) = filled();
    let tab = open(&server, "en-GB", "#/articles?sort=copies", "南京长江大桥恢复通车");
    tab.eval("document.querySelector('.article a').click()");
    tab.shows("All copies (3)");
    assert_eq!(tab.eval("document.querySelector('h1').textContent"), "南京长江大桥恢复通车");
    assert_eq!(tab.eval("document.activeElement.tagName"), "H1", "the focus went along");
    for text in [BRIDGE.split('\n').nth(1).unwrap(), "新华", "sina", "sohu", &id] {
        tab.shows(text);
    }
    tab.eval("document.querySelector('[name=left][value*=b1]').click()");
    tab.eval("document.querySelector('[name=right][value*=b2]').click()");
    tab.eval("document.querySelector('form button').click()");
    tab.until("document.querySelector('.diff')");
    assert_eq!(tab.eval("document.querySelector('.diff del').textContent"), "昨");
    assert_eq!(tab.eval("document.querySelector('.diff ins').textContent"), "今");
    assert_eq!(tab.eval("document.querySelectorAll('.diff .changed').length"), 1);
    tab.until("document.activeElement.textContent === 'Difference'");
    tab.shot("document-en");
    tab.go(&url(
        &server,
        &format!("#/document/{id}?left=http://xn--efvu43b.example/b1&right=http://sohu.example/b3"),
    ));
    tab.eval("location.reload()");
    tab.shows("Difference");
    let none = "0000000000000000-0000000000000000";
    tab.go(&url(&server, &format!("#/document/{none}")));
    tab.shows("There is no such document.");
    tab.go(&url(&server, "#/document/x"));
    tab.shows("There is no such document.");
    tab.is_content(&["404", "400"]);
}

#[test]
fn search_finds_by_text_sentence_and_words() {
    let (server, id) = filled();
    let path = format!("/v1/search?q={}", escaped(BRIDGE));
    let end = std::time::Instant::now() + Duration::from_mins(1);
    while server.get(&path).json()["rows"][0]["docId"] != json!(id) {
        assert!(std::time::Instant::now() < end, "the index follows");
        std::thread::sleep(Duration::from_millis(50));
    }
    let tab = open(&server, "zh-CN", "#/search", "搜索内容");
    tab.eval("document.querySelector('form button').click()");
    tab.shows("请输入文章、句子或词语。");
    tab.eval("document.querySelector('textarea').focus()");
    tab.type_text("桥梁结构坚固，专家表示");
    tab.eval("document.querySelector('[value=sentence]').click()");
    tab.eval("document.querySelector('form button').click()");
    tab.until("document.querySelector('blockquote')");
    let sentence = "document.querySelector('blockquote').textContent";
    assert_eq!(tab.eval(sentence), "专家表示，大桥的桥梁结构依然非常坚固。");
    tab.until("document.activeElement.textContent === '结果'");
    tab.shot("search-zh");
    tab.go(&url(&server, "#/search?mode=words&q=quoted"));
    tab.until("document.querySelector('.article a')?.textContent.includes('quoted')");
    tab.go(&url(&server, "#/search?q=zzzzzz"));
    tab.shows("没有找到相似内容");
    // A text that is longer than an address may be.
    let long = format!("{} {}", prose(7, 150), prose(7, 150));
    tab.eval(&format!("document.querySelector('textarea').value = {}", json!(long)));
    tab.eval("document.querySelector('form button').click()");
    tab.until("document.querySelector('.article a')?.textContent === 'Story 7 of some words'");
    tab.shows("相似度 100%");
    tab.is_content(&[]);
}

#[test]
fn charts_and_growth_show_the_counts_of_the_service() {
    let (server, _) = filled();
    let tab = open(&server, "en-GB", "#/charts", "New documents");
    tab.shows("Total: 30");
    tab.shows("Total: 2");
    let label = tab.eval("document.querySelector('svg.chart').getAttribute('aria-label')");
    assert!(label.as_str().unwrap().contains("the most is 29"), "{label}");
    let rows = "[...document.querySelectorAll('tbody tr')].map((row) => \
        [...row.cells].slice(1).map((cell) => Number(cell.textContent)))";
    assert_eq!(tab.eval(rows), json!([[1, 2], [29, 0]]), "the newest first");
    tab.shot("charts-en");
    tab.eval("document.querySelector('[name=by]').value = 'day'");
    tab.eval("document.querySelector('.filters button').click()");
    tab.until("document.querySelectorAll('tbody tr').length === 1");
    assert_eq!(tab.eval(rows), json!([[30, 2]]));
    tab.go(&url(&server, "#/growing"));
    tab.shows("2 further copies");
    assert_eq!(tab.eval("document.querySelectorAll('.article').length"), 1);
    tab.shot("growing-en");
    let chinese = open(&server, "zh-CN", "#/charts?by=day", "新文档");
    chinese.shot("charts-zh");
    chinese.go(&url(&server, "#/growing?window=7d"));
    chinese.shows("新增 2 个副本");
    chinese.shot("growing-zh");
    tab.is_content(&[]);
    chinese.is_content(&[]);
}

/// What a service with a crawl and jobs says.
fn give_live(tab: &Tab) {
    let run = json!({"outcome": "done", "reason": null, "trigger": "schedule", "planned": "2026-11-21T06:00:00Z",
        "started": "2026-11-21T06:00:01Z", "ended": "2026-11-21T06:40:00Z",
        "counts": {"pages": 5120, "new": 1200, "duplicates": 3100, "bytes": 90_000_000, "failed_seeds": 0, "documents": 9000, "queued": 3}});
    give_pages(tab, 1000, "2026-11-21T12:00:00Z");
    tab.give(
        "/v1/reasons",
        200,
        json!({"documents": 1234, "copies": 5678, "waiting": 321,
        "duplicates": {"exact_content": 3000, "near_content": 900, "near_title": 44},
        "refused": {"robots_disallowed": 120, "http_error": 60, "some_new_reason": 7}}),
    );
    let host = |name: &str, state: &str, trouble: Value| {
        json!({"host": name, "state": state, "nextVisit": "2026-11-21T12:00:05Z", "queued": 100,
            "answered": 2000, "failed": 3, "delayMs": 1500, "trouble": trouble})
    };
    tab.give("/v1/hosts", 200, json!({"rows": [
        host("https://news.example", "ready", Value::Null), host("https://slow.example", "waiting", Value::Null),
        host("https://busy.example", "blocked", json!("HTTP 503")), host("https://down.example", "broken", json!("no connection to the host")),
    ], "next": "abcd"}));
    tab.give("/v1/jobs", 200, json!({"enabled": true, "rows": [
        {"name": "daily news", "schedule": "0 6 * * *", "next": "2026-11-22T06:00:00Z", "state": "idle", "last": run},
        {"name": "forums", "schedule": "every 2h", "next": null, "state": "running", "last": null},
    ]}));
    tab.give("/v1/jobs/daily%20news/runs", 200, json!({"rows": [run]}));
}

fn give_pages(tab: &Tab, pages: u64, now: &str) {
    tab.give("/v1/live", 200, json!({"now": now, "crawls": [{"job": "forums", "store": "news",
        "started": "2026-11-21T11:50:00Z", "state": "running", "pages": pages, "requests": pages + 50,
        "new": 300, "duplicates": 650, "failed": 50, "bytes": 123_456_789, "queued": 4321, "inFlight": 17}]}));
}

#[test]
fn live_shows_crawls_with_their_pace_reasons_and_hosts() {
    let (server, _) = filled();
    let tab = Tab::open("en-GB");
    give_live(&tab);
    tab.go(&url(&server, ""));
    tab.shows("1,000");
    tab.shows("1.7");
    for text in [
        "forums",
        "4,321",
        "17",
        "123.5 MB",
        "equal text",
        "robots.txt forbids it",
        "some_new_reason",
        "https://busy.example",
        "left alone",
        "HTTP 503",
        "not answering",
        "1.5 sec",
    ] {
        tab.shows(text);
    }
    // 50 pages in 2 seconds.
    give_pages(&tab, 1050, "2026-11-21T12:00:02Z");
    tab.until("document.querySelector('.crawl dd')?.textContent === '25'");
    tab.shot("live-en");
    assert_eq!(tab.eval("document.querySelector('.pager a').hash"), "#/live?cursor=abcd");
    tab.eval("document.getElementById('language').click()");
    for text in ["正在运行的抓取", "正文完全相同", "暂不打扰", "页/秒", "robots.txt 禁止"]
    {
        tab.shows(text);
    }
    tab.shot("live-zh");
    tab.give("/v1/live", 200, json!({"now": "2026-11-21T12:00:09Z", "crawls": []}));
    tab.shows("目前没有抓取在运行。");
    tab.is_content(&[]);
}

#[test]
fn jobs_are_listed_started_and_stopped() {
    let (server, _) = filled();
    let tab = Tab::open("en-GB");
    give_live(&tab);
    tab.go(&url(&server, "#/jobs"));
    tab.shows("daily news");
    tab.shows("0 6 * * *");
    tab.shot("jobs-en");
    tab.give("/v1/jobs/daily%20news/start", 202, json!({}));
    tab.give(
        "/v1/jobs/forums/stop",
        409,
        json!({"status": 409, "code": "conflict", "detail": "x"}),
    );
    tab.eval("document.querySelector('[aria-label=\"Start daily news\"]').click()");
    tab.shows("daily news was started.");
    tab.eval("document.querySelector('[aria-label=\"Stop forums\"]').click()");
    tab.shows("The job is not in a state for that.");
    let sent = tab.sent.lock().unwrap().clone();
    assert!(sent.contains(&"POST /v1/jobs/daily%20news/start".to_owned()), "{sent:?}");
    tab.eval("document.querySelector('tbody a').click()");
    tab.shows("Runs of daily news");
    tab.shows("5,120");
    tab.shot("runs-en");
    tab.eval("document.getElementById('language').click()");
    tab.go(&url(&server, "#/jobs"));
    tab.shows("运行中");
    tab.shot("jobs-zh");
    tab.give("/v1/jobs", 200, json!({"enabled": false, "rows": []}));
    tab.shows("任务功能未启用");
    tab.is_content(&["409"]);
}

#[test]
fn what_the_service_does_not_offer_or_cannot_answer_is_told() {
    let (server, _) = filled();
    let tab = Tab::open("en-GB");
    let gone = json!({"status": 404, "code": "not_found", "detail": "there is no such path"});
    for path in ["/v1/live", "/v1/hosts", "/v1/reasons", "/v1/jobs"] {
        tab.give(path, 404, gone.clone());
    }
    tab.go(&url(&server, ""));
    tab.until("document.querySelectorAll('.note').length >= 3");
    tab.until("document.body.innerText.split('Not available').length === 4");
    tab.go(&url(&server, "#/jobs"));
    tab.shows("Not available: this service does not offer this view.");
    tab.give("/v1/search", 503, json!({"status": 503, "code": "search_not_ready", "detail": "x"}));
    tab.go(&url(&server, "#/search?q=x"));
    tab.shows("The index of the search is still being made.");
    tab.go(&url(&server, "#/explain?url=http://wire.example/s1"));
    tab.shows("What is known of it");
    tab.shot("explain-en");
    tab.go(&url(&server, "#/explain?url=nowhere"));
    tab.shows("The service could not answer:");
    tab.go(&url(&server, "#/nothing"));
    tab.shows("There is no such view.");
    tab.shows("Service ready · 30 documents");
    tab.shows(concat!("Version ", env!("CARGO_PKG_VERSION")));
    tab.is_content(&["404", "503", "400"]);
}

#[test]
fn a_service_that_stops_is_told_and_comes_back() {
    let (mut server, _) = filled();
    let tab = Tab::open("zh-CN");
    give_live(&tab);
    tab.go(&url(&server, ""));
    tab.shows("forums");
    server.stop();
    tab.shows("服务暂时没有回应");
    assert!(tab.text().contains("forums"), "the last state stays");
    tab.is_content(&["ERR_CONNECTION", "ERR_EMPTY_RESPONSE"]);
}
