//! Connections of the small web.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::site::{Body, Page, Site};
use super::{RequestLog, SeenRequest};

/// Bytes of a request at most.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Wait after a failed accept, such as one for want of file handles, which would fail again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

pub(super) async fn listen(
    listener: TcpListener,
    site: Arc<Site>,
    host: usize,
    record: RequestLog,
) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
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
    record: &RequestLog,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(1024);
    while let Some(end) = read_head(&mut stream, &mut buffer).await? {
        let request = parse(&buffer[..end], host);
        buffer.drain(..end);
        let Some(request) = request else { return Ok(()) };
        let entry = record.begin(&request);
        let page = site.answer(&request);
        // Without a timer, which would round even no delay up to a millisecond.
        if !page.delay.is_zero() {
            sleep(page.delay).await;
        }
        // The end of the answer is noted before its last bytes can reach the client, so that a
        // quick client is never seen to ask before it was answered.
        let done = || record.end(entry);
        let stays = match answer(&mut stream, &page, request.method == "HEAD", done).await {
            Ok(stays) => stays,
            Err(error) => {
                // The client went away: for it the answer ends here.
                record.end(entry);
                return Err(error);
            }
        };
        if !stays {
            return Ok(());
        }
        if wants_close(&request) {
            return stream.shutdown().await;
        }
    }
    Ok(())
}

/// Reads until a whole head is in `buffer` and returns its length; none at the end of the
/// connection and for a head that is too long. What follows the head stays for the next request.
async fn read_head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let mut searched = 0;
    loop {
        if let Some(at) = buffer[searched..].windows(4).position(|four| four == b"\r\n\r\n") {
            return Ok(Some(searched + at + 4));
        }
        // The end of the head may have come in part.
        searched = buffer.len().saturating_sub(3);
        if buffer.len() > HEAD_BYTES_MAX || stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// Whether the connection ends after this request: the client asks for it, or sends a body, which
/// nobody here reads and which must not be taken for the next request.
fn wants_close(request: &SeenRequest) -> bool {
    let body = request.header("content-length").is_some_and(|length| length != "0")
        || request.header("transfer-encoding").is_some();
    body || request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

fn parse(head: &[u8], host: usize) -> Option<SeenRequest> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers =
        headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    let now = Instant::now();
    Some(SeenRequest { host, method, target, headers, started: now, finished: now })
}

/// Sends an answer; `done` is called before its last bytes, and not at all if the client goes away
/// before. Returns whether the connection stays open.
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
            // One write: a head that travels alone costs the client a wake-up.
            stream.write_all(&answer).await?;
            return Ok(true);
        }
        Body::Lying { declared, bytes } => {
            let mut answer = head(page, Some(*declared)).into_bytes();
            answer.extend_from_slice(bytes);
            done();
            stream.write_all(&answer).await?;
        }
        Body::Endless(bytes) => {
            stream.write_all(head(page, None).as_bytes()).await?;
            loop {
                stream.write_all(bytes).await?;
            }
        }
        Body::Drip { bytes, every } => {
            stream.write_all(head(page, Some(bytes.len())).as_bytes()).await?;
            let (last, before) = bytes
                .split_last()
                .map_or((&[][..], &[][..]), |(last, before)| (std::slice::from_ref(last), before));
            for byte in before {
                stream.write_all(&[*byte]).await?;
                sleep(*every).await;
            }
            done();
            stream.write_all(last).await?;
        }
        Body::Raw(bytes) => {
            done();
            stream.write_all(bytes).await?;
        }
        Body::Hang => {
            // Until the client closes its side.
            while stream.read(&mut [0; 256]).await? > 0 {}
            done();
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
