//! The small web, asked over plain TCP: what a correct HTTP library would hide must be seen.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::record::{least_gap, most_at_once};
use super::{Body, LocalWeb, Page, SeenRequest, Site};

/// Long enough for any answer on a busy machine, short enough to see that there is none.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time in which an answer that will not come has not come.
const SILENCE: Duration = Duration::from_millis(80);

async fn web(site: Site) -> LocalWeb {
    LocalWeb::start(1, |_| vec![site]).await.unwrap()
}

async fn connect(web: &LocalWeb) -> TcpStream {
    let url = web.url(0);
    TcpStream::connect(url.strip_prefix("http://").unwrap().trim_end_matches('/')).await.unwrap()
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: here\r\n\r\n")
}

/// Sends `text` and returns all that comes until the server closes or says nothing for a while.
async fn exchange(stream: &mut TcpStream, text: &str) -> String {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The first byte may take long on a busy machine; what follows it comes at once.
    let first = timeout(PATIENCE, stream.read_buf(&mut answer)).await.unwrap();
    if first.is_ok_and(|count| count > 0) {
        while let Ok(Ok(1..)) = timeout(SILENCE, stream.read_buf(&mut answer)).await {}
    }
    String::from_utf8(answer).unwrap()
}

/// Sends `text` and returns all that comes until the server closes.
async fn read_to_close(web: &LocalWeb, text: &str) -> String {
    let mut stream = connect(web).await;
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

async fn until(what: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !what() {
        assert!(Instant::now() < end, "this comes in time");
        sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn one_connection_carries_many_requests() {
    let site = Site::new().html("/a", "first").html("/b?c=1", "second").robots("User-agent: *\n");
    let web = web(site.page("/old", Page::redirect(301, "/a"))).await;
    let mut stream = connect(&web).await;
    let answer = exchange(&mut stream, &get("/a")).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("\r\nContent-Length: 5\r\n"), "{answer}");
    assert_eq!(body(&answer), "first");
    assert_eq!(body(&exchange(&mut stream, &get("/b?c=1")).await), "second");
    assert!(exchange(&mut stream, &get("/b")).await.starts_with("HTTP/1.1 404 "));
    assert!(exchange(&mut stream, &get("/old")).await.contains("\r\nLocation: /a\r\n"));
    assert_eq!(body(&exchange(&mut stream, &get("/robots.txt")).await), "User-agent: *\n");
}

#[tokio::test]
async fn requests_that_come_together_or_in_pieces_are_answered_in_order() {
    let web = web(Site::new().html("/a", "first").html("/b", "second")).await;
    let mut stream = connect(&web).await;
    let both = exchange(&mut stream, &(get("/a") + &get("/b"))).await;
    assert!(both.find("first").unwrap() < both.find("second").unwrap(), "{both}");
    let text = get("/b");
    stream.set_nodelay(true).unwrap();
    for piece in text.as_bytes()[..text.len() - 1].chunks(1) {
        stream.write_all(piece).await.unwrap();
        tokio::task::yield_now().await;
    }
    // Time to read what came: the end of the head then comes in two reads.
    sleep(SILENCE).await;
    assert_eq!(body(&exchange(&mut stream, "\n").await), "second");
}

#[tokio::test]
async fn head_says_the_length_and_sends_nothing() {
    let web = web(Site::new().html("/", "seven b")).await;
    let mut stream = connect(&web).await;
    let answer = exchange(&mut stream, "HEAD / HTTP/1.1\r\n\r\n").await;
    assert!(answer.contains("\r\nContent-Length: 7\r\n") && body(&answer).is_empty(), "{answer}");
    assert_eq!(body(&exchange(&mut stream, &get("/")).await), "seven b");
}

#[tokio::test]
async fn the_connection_ends_when_asked_to_and_after_a_request_with_a_body() {
    let web = web(Site::new().html("/", "x")).await;
    let close = read_to_close(&web, "GET / HTTP/1.1\r\nConnection: Close\r\n\r\n").await;
    assert_eq!(body(&close), "x");
    let smuggled = format!("POST / HTTP/1.1\r\nContent-Length: 33\r\n\r\n{}", get("/hidden"));
    assert_eq!(body(&read_to_close(&web, &smuggled).await), "x");
    assert_eq!(web.targets(0).get("/hidden"), None);
}

#[tokio::test]
async fn a_head_of_64_kib_is_read_and_a_longer_one_is_not() {
    let web = web(Site::new().html("/", "x")).await;
    let head = |bytes: usize| format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(bytes));
    let mut stream = connect(&web).await;
    assert_eq!(body(&exchange(&mut stream, &head(60 << 10)).await), "x");
    let mut stream = connect(&web).await;
    // The end of the head never comes; the server may close before all is sent.
    let long = format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(200 << 10));
    let sent = stream.write_all(long.as_bytes()).await;
    let read = timeout(PATIENCE, stream.read(&mut [0; 16])).await.unwrap();
    assert!(sent.is_err() || !matches!(read, Ok(1..)), "there is no answer");
    assert_eq!(web.requests().len(), 1);
}

#[tokio::test]
async fn wrong_answers_are_sent_as_told() {
    let bytes = |text: &str| text.as_bytes().to_vec();
    let site = Site::new()
        .page("/short", Page::body(Body::Lying { declared: 9, bytes: bytes("four") }))
        .page("/long", Page::body(Body::Lying { declared: 2, bytes: bytes("four") }))
        .page("/raw", Page::body(Body::Raw(bytes("HTTP/9 what\r\n"))))
        .page("/close", Page::body(Body::Close));
    let web = web(site).await;
    let short = read_to_close(&web, &get("/short")).await;
    assert!(short.contains("Content-Length: 9") && body(&short) == "four", "{short}");
    let long = read_to_close(&web, &get("/long")).await;
    assert!(long.contains("Content-Length: 2") && body(&long) == "four", "{long}");
    assert_eq!(read_to_close(&web, &get("/raw")).await, "HTTP/9 what\r\n");
    assert_eq!(read_to_close(&web, &get("/close")).await, "");
}

#[tokio::test]
async fn an_endless_body_goes_on_until_the_client_goes_away() {
    let web = web(Site::new().page("/", Page::body(Body::Endless(vec![b'e'; 4096])))).await;
    let mut stream = connect(&web).await;
    stream.write_all(get("/").as_bytes()).await.unwrap();
    let mut much = vec![0; 8 << 20];
    timeout(PATIENCE, stream.read_exact(&mut much)).await.unwrap().unwrap();
    assert_eq!(web.requests().len(), 1, "it is seen while it goes on");
    drop(stream);
    until(|| web.requests()[0].finished > web.requests()[0].started).await;
}

#[tokio::test]
async fn a_hanging_answer_is_open_until_the_client_goes_away() {
    let web = web(Site::new().page("/", Page::body(Body::Hang)).html("/a", "a")).await;
    let mut stream = connect(&web).await;
    stream.write_all(get("/").as_bytes()).await.unwrap();
    assert!(timeout(SILENCE, stream.read(&mut [0; 16])).await.is_err(), "nothing comes");
    exchange(&mut connect(&web).await, &get("/a")).await;
    assert_eq!((web.most_at_once(0), web.least_gap(0)), (2, Some(Duration::ZERO)));
    drop(stream);
    until(|| web.requests()[0].finished > web.requests()[0].started).await;
}

#[tokio::test]
async fn a_dripping_answer_ends_with_its_last_byte() {
    let every = Duration::from_millis(20);
    let page = Page::body(Body::Drip { bytes: b"12345".to_vec(), every });
    let web = web(Site::new().page("/", page).html("/a", "a")).await;
    let started = Instant::now();
    assert_eq!(body(&read_to_close(&web, &get("/")).await), "12345");
    assert!(started.elapsed() >= every * 4, "four waits lie between five bytes");
    exchange(&mut connect(&web).await, &get("/a")).await;
    let requests = web.requests();
    let took = requests[0].finished.duration_since(requests[0].started);
    assert!(took >= every * 4, "an answer noted as ended too soon would hide a missing delay");
    assert_eq!(web.most_at_once(0), 1);
}

#[tokio::test]
async fn a_gap_is_measured_from_the_end_of_an_answer() {
    let delay = Duration::from_millis(60);
    let web = web(Site::new().page("/", Page::html("x").after(delay))).await;
    assert_eq!((web.least_gap(0), web.most_at_once(0)), (None, 0));
    let mut stream = connect(&web).await;
    let started = Instant::now();
    exchange(&mut stream, &get("/")).await;
    assert!(started.elapsed() >= delay);
    assert_eq!(web.least_gap(0), None, "one request has no gap");
    let pause = Duration::from_millis(30);
    sleep(pause).await;
    exchange(&mut stream, &get("/")).await;
    let gap = web.least_gap(0).unwrap();
    let between = web.requests()[1].started.duration_since(web.requests()[0].started);
    assert!(gap >= pause && gap + delay <= between, "{gap:?} of {between:?}");
}

#[test]
fn answers_that_follow_each_other_without_a_gap_were_never_open_together() {
    let start = Instant::now();
    let request = |from: u64, to: u64| {
        let at = |millis| start + Duration::from_millis(millis);
        let (method, target, headers) = ("GET".to_owned(), "/".to_owned(), Vec::new());
        SeenRequest { host: 0, method, target, headers, started: at(from), finished: at(to) }
    };
    assert_eq!(most_at_once(&[request(0, 5), request(5, 9)]), 1);
    assert_eq!(most_at_once(&[request(0, 6), request(5, 9), request(6, 7)]), 2);
    assert_eq!(least_gap(vec![request(7, 9), request(0, 5)]), Some(Duration::from_millis(2)));
    assert_eq!(least_gap(vec![request(0, 8), request(5, 9)]), Some(Duration::ZERO));
}

#[tokio::test]
async fn a_handler_comes_before_the_table_and_may_decline() {
    let site = Site::new().html("/a", "table").handler(|request| {
        let agent = request.header("User-Agent")?;
        Some(Page::html(format!("{agent} wants {}", request.target)))
    });
    let web = web(site).await;
    let mut stream = connect(&web).await;
    assert_eq!(body(&exchange(&mut stream, &get("/a")).await), "table");
    let named = "GET /a?b HTTP/1.1\r\nUSER-agent:  me \r\n\r\n";
    assert_eq!(body(&exchange(&mut stream, named).await), "me wants /a?b");
}

#[tokio::test]
async fn what_is_forgotten_or_not_recorded_is_not_seen() {
    // Longer than two short requests with the silence after each.
    let wait = SILENCE * 6;
    let slow = Page::html("slow").after(wait);
    let web = web(Site::new().html("/", "x").page("/slow", slow)).await;
    let mut stream = connect(&web).await;
    exchange(&mut stream, &get("/")).await;
    stream.write_all(get("/slow").as_bytes()).await.unwrap();
    until(|| web.requests_of(0).len() == 2).await;
    web.forget();
    exchange(&mut stream, &get("/")).await;
    // The end of the forgotten request must not be written into the entry of the next one.
    assert_eq!(web.targets(0).into_iter().collect::<Vec<_>>(), [("/".to_owned(), 1)]);
    assert!(web.requests()[0].finished > web.requests()[0].started);
    stream.write_all(get("/slow").as_bytes()).await.unwrap();
    until(|| web.requests_of(0).len() == 2).await;
    web.forget();
    // Two entries of another connection take the places of the forgotten ones.
    let mut other = connect(&web).await;
    exchange(&mut other, &get("/")).await;
    exchange(&mut other, &get("/")).await;
    let ends = || web.requests().iter().map(|request| request.finished).collect::<Vec<_>>();
    let before = ends();
    assert!(body(&exchange(&mut stream, "").await) == "slow" && ends() == before);
    web.forget();
    exchange(&mut stream, &get("/")).await;
    web.stop_recording();
    exchange(&mut stream, &get("/")).await;
    assert_eq!((web.requests().len(), web.requests_of(1).len()), (1, 0));
}

#[tokio::test]
async fn only_loopback_is_served_and_a_stopped_web_frees_its_ports() {
    let refused = LocalWeb::start_at(([0, 0, 0, 0], 0).into(), Site::new()).await;
    assert!(refused.unwrap_err().to_string().contains("is not on loopback"));
    let web = LocalWeb::start(3, |_| vec![Site::new(), Site::new(), Site::new()]).await.unwrap();
    let urls: Vec<String> = (0..web.hosts()).map(|host| web.url(host)).collect();
    assert!(urls[0].starts_with("http://127.77.0.1:") && urls[2].starts_with("http://127.77.0.3:"));
    let address = urls[0].strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    web.stop().await;
    LocalWeb::start_at(address.parse().unwrap(), Site::new()).await.unwrap();
}
