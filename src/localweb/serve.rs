//! Connections of the small web.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::site::{Body, Page, Site};
use super::{RECORDED_MAX, Record, Request};

/// Bytes of a request at most.
const HEAD_BYTES_MAX: usize = 64 << 10;

pub(super) async fn listen(listener: TcpListener, site: Arc<Site>, host: usize, record: Record) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (site, record) = (site.clone(), record.clone());
        connections.spawn(async move {
            // A client that goes away in the middle is its own affair.
            let _ = converse(stream, &site, host, &record).await;
        });
    }
}

async fn converse(
    mut stream: TcpStream,
    site: &Site,
    host: usize,
    record: &Record,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(1024);
    loop {
        let end = loop {
            if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if buffer.len() > HEAD_BYTES_MAX || stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let head: Vec<u8> = buffer.drain(..end).collect();
        let Some(mut request) = parse(&head, host) else { return Ok(()) };
        let page = site.answer(&request);
        sleep(page.delay).await;
        // The end of the answer is noted before its last bytes can reach the client, so that a
        // quick client is never seen to ask before it was answered.
        let stays = answer(&mut stream, &page, request.method == "HEAD", || {
            request.finished = Instant::now();
            note(record, &request);
        });
        if !stays.await? {
            return Ok(());
        }
    }
}

fn note(record: &Record, request: &Request) {
    let mut record = record.lock().expect("no holder of this lock panics");
    if record.len() < RECORDED_MAX {
        record.push(request.clone());
    }
}

fn parse(head: &[u8], host: usize) -> Option<Request> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers =
        headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    let now = Instant::now();
    Some(Request { host, method, target, headers, started: now, finished: now })
}

/// Sends an answer; `done` is called before its last bytes. Returns whether the connection stays
/// open.
async fn answer(
    stream: &mut TcpStream,
    page: &Page,
    head_only: bool,
    done: impl FnOnce(),
) -> io::Result<bool> {
    match &page.body {
        Body::Bytes(bytes) => {
            let mut answer = head(page, Some(bytes.len())).into_bytes();
            if !head_only {
                answer.extend_from_slice(bytes);
            }
            done();
            stream.write_all(&answer).await?;
            return Ok(true);
        }
        Body::Lying { declared, bytes } => {
            done();
            stream.write_all(head(page, Some(*declared)).as_bytes()).await?;
            stream.write_all(bytes).await?;
        }
        Body::Endless(bytes) => {
            done();
            stream.write_all(head(page, None).as_bytes()).await?;
            loop {
                stream.write_all(bytes).await?;
            }
        }
        Body::Drip { bytes, every } => {
            done();
            stream.write_all(head(page, Some(bytes.len())).as_bytes()).await?;
            for byte in bytes {
                stream.write_all(&[*byte]).await?;
                sleep(*every).await;
            }
        }
        Body::Raw(bytes) => {
            done();
            stream.write_all(bytes).await?;
        }
        Body::Hang => {
            done();
            // Until the client closes its side.
            while stream.read(&mut [0; 256]).await? > 0 {}
        }
        Body::Close => done(),
    }
    stream.shutdown().await?;
    Ok(false)
}

fn head(page: &Page, length: Option<usize>) -> String {
    let mut head = format!("HTTP/1.1 {} Status\r\n", page.status);
    for (name, value) in &page.headers {
        write!(head, "{name}: {value}\r\n").expect("writing to a string cannot fail");
    }
    match length {
        Some(length) => {
            write!(head, "Content-Length: {length}\r\n\r\n").expect("writing to a string");
        }
        None => head.push_str("Connection: close\r\n\r\n"),
    }
    head
}
