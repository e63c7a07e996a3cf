//! Large heads that never end, from one client and from several.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use tokio::net::TcpSocket;
use uniqcrawl::base::units::{Size, Time};

use crate::service::Server;

const HEAD_BYTES: usize = 200_000;

/// A connection from `client` (the last number of its address) on which a head has begun.
fn begun(address: SocketAddr, client: u8) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, client], 0))).unwrap();
        socket.connect(address).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    let head = format!("GET /docId/getDocId?content={}", "x".repeat(HEAD_BYTES));
    // The service may have closed it before all was sent.
    let _ = (&stream).write_all(head.as_bytes());
    stream
}

fn refused(server: &Server) -> u64 {
    let text = server.get("/metrics").body;
    let line = text.lines().find(|line| line.starts_with("uniqcrawl_http_heads_refused_total "));
    line.and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("the metric")
}

#[track_caller]
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_mins(1), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn heads_that_are_coming_have_a_budget_in_all_and_for_each_client() {
    let server = Server::with(|settings| {
        settings.api.heads_size_max = Size::from_mib(2);
        settings.api.client_heads_size_max = Size::from_mib(1);
        settings.api.header_time_max = Time::from_secs(600);
    });
    // A mebibyte has room for five heads of one client, two mebibytes for ten of all.
    let mut open: Vec<TcpStream> = (0..50).map(|_| begun(server.address, 2)).collect();
    wait("one client has five heads at most", || refused(&server) >= 45);
    open.extend((0..50).map(|_| begun(server.address, 3)));
    wait("so has the next one", || refused(&server) >= 90);
    open.extend((0..20).map(|_| begun(server.address, 4)));
    wait("all have ten at most", || refused(&server) >= 110);
    assert!(refused(&server) <= 120);
    // Others are answered meanwhile, and there is room again when the connections are gone.
    assert_eq!(server.get("/healthz").status, 200);
    drop(open);
    let path = format!("/healthz?{}", "x".repeat(HEAD_BYTES));
    wait("there is room again", || server.get(&path).status != 503);
}

/// What comes after a head is its body, which has a budget of its own; the next head is one again.
#[test]
fn bodies_are_no_heads_and_connections_are_used_again() {
    let server = Server::with(|settings| {
        // What a connection reads at once.
        settings.api.heads_size_max = Size::from_bytes(512 << 10);
        settings.api.client_heads_size_max = Size::from_bytes(512 << 10);
    });
    let body = format!("{{\"content\": \"{}\"}}", "word ".repeat(20_000));
    let head = format!(
        "POST /v1/articles HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nx-long: {}\r\n",
        body.len(),
        "y".repeat(10_000)
    );
    let stream = TcpStream::connect(server.address).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for round in 0..30 {
        (&stream).write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            assert_ne!(answers.read_line(&mut line).unwrap(), 0, "ended in round {round}");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        answers.read_exact(&mut vec![0; length]).unwrap();
    }
    assert_eq!(refused(&server), 0);
    // The head after a whole request is counted like the first one.
    let more = format!("GET /healthz?{}", "x".repeat(HEAD_BYTES));
    (&stream).write_all(more.as_bytes()).unwrap();
    let mut others: Vec<TcpStream> = vec![stream];
    wait("a later head counts", || {
        others.push(begun(server.address, 1));
        refused(&server) > 0
    });
    assert!(others.len() <= 8, "{} heads at once", others.len());
}
