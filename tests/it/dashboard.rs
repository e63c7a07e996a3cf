//! The dashboard in a browser: each view shows what the service says, in both languages.

use std::time::Duration;
use uniqcrawl::base::units::Time;

use serde_json::{Value, json};

use crate::browser::{PATIENCE, Tab};
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
    // Media and languages are chosen from those that there are.
    let options = |name: &str| {
        tab.eval(&format!("[...document.querySelector('select[name={name}]').options].map((one) => one.textContent)"))
    };
    assert_eq!(options("media"), json!(["all", "wire (28)", "odd (1)", "sina (1)"]));
    assert_eq!(options("language").as_array().unwrap()[0], "all");
    assert!(options("language").as_array().unwrap().contains(&json!("zh (1)")));
    tab.eval("document.querySelector('[name=media]').value = 'sina'");
    tab.eval("document.querySelector('.filters button').click()");
    tab.until("document.querySelectorAll('.article').length === 1");
    tab.until("document.querySelector('[name=media]')?.value === 'sina'");
    // What an address asks for is kept, also if there is none of it.
    tab.go(&url(&server, "#/articles?media=nobody"));
    tab.shows("No article fits.");
    assert_eq!(tab.eval("document.querySelector('[name=media]').value"), "nobody");
    // Of too many, any can be named.
    let many = json!([{"media": "sina", "documents": 9}]);
    tab.give("/v1/facets", 200, json!({"media": many, "languages": [], "complete": false}));
    tab.go(&url(&server, "#/articles?media=sin"));
    tab.until("document.querySelector('input[name=media]')?.value === 'sin'");
    assert_eq!(tab.eval("document.querySelector('[name=media]').list.options[0].value"), "sina");
    tab.give("/v1/facets", 503, json!({"status": 503, "code": "busy", "detail": "x"}));
    tab.go(&url(&server, "#/articles?media=sina&sort=fewest"));
    tab.until("document.querySelector('.article h3')?.textContent.includes('大桥')");
    tab.go(&url(&server, "#/articles?until=2026-11-20"));
    tab.shows("No article fits.");
    tab.go(&url(&server, "#/articles?until=2026-11-21&sort=copies&since=2026-11-21"));
    tab.until("document.querySelector('.article h3')?.textContent.includes('大桥')");
    tab.is_content(&["503"]);
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
    tab.reload();
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
    let end = std::time::Instant::now() + PATIENCE;
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
    // By copies: the bridge has three, and the word is in a title that is a better match.
    tab.go(&url(&server, "#/search?mode=words&q=quoted%20大桥"));
    tab.until("document.querySelectorAll('.article').length === 2");
    let first = "document.querySelector('.article a').textContent";
    for (order, title) in [("copies", "南京长江大桥恢复通车"), ("fewest", ODD)] {
        tab.eval(&format!("document.querySelector('[name=sort]').value = '{order}'"));
        tab.eval("document.querySelector('form button').click()");
        tab.until(&format!("location.hash.includes('sort={order}') && document.querySelector('.article') && {first} === {}", json!(title)));
    }
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
    let run = json!({"outcome": "seeds_failed", "reason": "limit of 5120 pages; 2 seeds not crawled", "trigger": "schedule", "planned": "2026-11-21T06:00:00Z",
        "started": "2026-11-21T06:00:01Z", "ended": "2026-11-21T06:40:00Z",
        "counts": {"pages": 5120, "new": 1200, "duplicates": 3100, "bytes": 90_000_000, "failed_seeds": 0, "documents": 9000, "queued": 3}});
    give_pages(tab, 1000, "2026-11-21T12:00:00Z");
    tab.give(
        "/v1/reasons",
        200,
        json!({"documents": 1234, "copies": 5678, "waiting": 321,
        "duplicates": {"exact_content": 3000, "near_content": 900, "near_title": 44},
        "refused": {"robots_disallowed": 120, "http_error": 60, "dns": 3, "some_new_reason": 7},
        "own": {"probe": 9, "no_sitemap": 8}, "errors": 63}),
    );
    let host = |name: &str, state: &str, trouble: Value| {
        json!({"host": name, "state": state, "nextVisit": "2026-11-21T12:00:05Z", "queued": 100,
            "answered": 2000, "failed": 3, "delayMs": 1500, "trouble": trouble})
    };
    tab.give("/v1/hosts", 200, json!({"rows": [
        host("https://news.example", "ready", Value::Null), host("https://slow.example", "waiting", Value::Null),
        host("https://busy.example", "blocked", json!("busy")), host("https://down.example", "broken", json!("connect")),
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
        "new": 300, "duplicates": 650, "failed": 2, "errors": 63, "bytes": 123_456_789, "queued": 4321, "inFlight": 17}]}));
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
        "server stayed busy",
        "not answering",
        "1.5 sec",
    ] {
        tab.shows(text);
    }
    // Errors are those of the table below, which leaves out what the crawler asked for of itself.
    let figures = "[...document.querySelectorAll('dl.figures div')].filter((one) => \
        one.querySelector('dt').textContent === 'Errors').map((one) => one.querySelector('dd').textContent)";
    assert_eq!(tab.eval(figures), json!(["63", "63"]));
    let table = |caption: &str| {
        let find = format!(
            "[...document.querySelectorAll('caption')].find((one) => one.textContent === {})",
            json!(caption)
        );
        tab.eval(&format!(
            "[...{find}.parentElement.tBodies[0].rows].map((row) => row.cells[0].textContent)"
        ))
    };
    assert_eq!(
        table("Pages that were not stored, by reason"),
        json!(["robots.txt forbids it", "error status", "some_new_reason", "name not resolved"])
    );
    assert_eq!(
        table("Requests of the crawler itself"),
        json!(["probe of the error page", "no sitemap there"])
    );
    // 50 pages in 2 seconds.
    give_pages(&tab, 1050, "2026-11-21T12:00:02Z");
    tab.until("document.querySelector('.crawl dd')?.textContent === '25'");
    tab.shot("live-en");
    assert_eq!(tab.eval("document.querySelector('.pager a').hash"), "#/live?cursor=abcd");
    tab.eval("document.getElementById('language').click()");
    for text in [
        "正在运行的抓取",
        "正文完全相同",
        "暂不打扰",
        "页/秒",
        "robots.txt 禁止",
        "抓取程序自身的请求",
        "无法连接",
    ] {
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
    tab.shows("种子失败（已达 5120 页的上限；2 个种子未抓取）");
    tab.go(&url(&server, "#/jobs"));
    tab.shows("运行中");
    tab.shot("jobs-zh");
    tab.give("/v1/jobs", 200, json!({"enabled": false, "rows": []}));
    tab.shows("任务功能未启用");
    tab.is_content(&["409"]);
}

#[test]
fn an_address_is_explained_in_the_language_of_the_reader() {
    let (server, _) = filled();
    let tab = open(&server, "zh-CN", "#/explain?url=http://sohu.example/b3", "已知信息");
    tab.shows("重复");
    tab.shows("http://sina.example/b2 的副本");
    for text in ["识别依据", "正文完全相同", "由请求送入，不是抓取得来", "副本数"]
    {
        tab.shows(text);
    }
    let english = "document.querySelector('main').innerText.match(/\\b(copy|canonical|sent|found|bits|text)\\b/g)";
    assert_eq!(tab.eval(english), Value::Null, "{}", tab.text());
    tab.shot("explain-zh");
    tab.eval("document.getElementById('language').click()");
    tab.shows("it was sent, not crawled");
    tab.shows("a copy of http://sina.example/b2");
    tab.is_content(&[]);
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
    tab.shows("This is not a web address.");
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
