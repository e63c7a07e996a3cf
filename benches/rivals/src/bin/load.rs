//! Asks a site for its pages again and again over open connections and prints the requests a
//! second: what the server alone can do, which must be well above what any crawler asks of it.
//! Usage: load ADDRESS [SECONDS [CONNECTIONS [PAGES]]]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Reads one answer with a `Content-Length` and returns its bytes.
fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> usize {
    buffer.clear();
    let mut chunk = [0; 64 << 10];
    let mut whole = None;
    while whole.is_none_or(|whole| buffer.len() < whole) {
        let count = stream.read(&mut chunk).expect("the site answers");
        assert!(count > 0, "the site keeps the connection open");
        buffer.extend_from_slice(&chunk[..count]);
        if whole.is_none() {
            whole = length(buffer);
        }
    }
    assert!(buffer.starts_with(b"HTTP/1.1 200 "), "every page is there");
    buffer.len()
}

/// Returns the bytes of the whole answer, once its head is complete.
fn length(buffer: &[u8]) -> Option<usize> {
    let head = buffer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&buffer[..head]).expect("a head is ASCII");
    let line = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    Some(head + line.expect("answers say their length").parse::<usize>().expect("a number"))
}

fn ask(address: SocketAddr, until: Instant, first: usize, pages: usize) -> (u64, u64) {
    let mut stream = TcpStream::connect(address).expect("the site listens");
    stream.set_nodelay(true).expect("the option exists");
    let (mut requests, mut bytes, mut number) = (0, 0, first);
    let mut buffer = Vec::new();
    while Instant::now() < until {
        number = (number + 1) % pages;
        // The header lines that crawlers send.
        let request = format!(
            "GET /p/{number} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: load\r\n\
             Accept: text/html,*/*;q=0.8\r\nAccept-Encoding: gzip, br, zstd, deflate\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("the site reads");
        bytes += read_answer(&mut stream, &mut buffer) as u64;
        requests += 1;
    }
    (requests, bytes)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().expect("load ADDRESS [SECONDS [CONNECTIONS [PAGES]]]");
    let address: SocketAddr = address.parse().expect("an address and port");
    let mut number =
        |usual: usize| arguments.next().map_or(usual, |text| text.parse().expect("a number"));
    let (seconds, connections, pages) = (number(3), number(16), number(5_000));
    let started = Instant::now();
    let until = started + Duration::from_secs(seconds as u64);
    let askers: Vec<_> = (0..connections)
        .map(|n| thread::spawn(move || ask(address, until, n * pages / connections, pages)))
        .collect();
    let counts = askers.into_iter().map(|asker| asker.join().expect("no asker panics"));
    let (requests, bytes) = counts.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    let seconds = started.elapsed().as_secs_f64();
    let (rate, mib) = (requests as f64 / seconds, bytes as f64 / seconds / f64::from(1 << 20));
    println!("{{\"requests\": {requests}, \"per_second\": {rate:.0}, \"mib_per_second\": {mib:.0}}}");
}
