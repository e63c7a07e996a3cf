//! A server of many hosts that logs when each request came and when its answer ended.

pub mod web;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What is sent for a request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status; 0 closes the connection without an answer.
    pub status: u16,
    /// Header lines besides those of the body.
    pub headers: Vec<(&'static str, String)>,
    /// An HTML page.
    pub body: String,
    /// Time before the answer.
    pub wait: Duration,
    /// What the page is: stands in the log and nowhere else.
    pub label: String,
    /// The host refuses connections from now on.
    pub is_last: bool,
}

impl Answer {
    /// A page.
    pub fn page(label: impl Into<String>, body: String) -> Self {
        Self { body, ..Self::status(200, label) }
    }

    /// An answer with a short body.
    pub fn status(status: u16, label: impl Into<String>) -> Self {
        let body = format!("<h1>{status}</h1>");
        let (headers, wait, is_last) = (Vec::new(), Duration::ZERO, false);
        Self { status, headers, body, wait, label: label.into(), is_last }
    }

    /// A redirect.
    pub fn redirect(target: &str, label: impl Into<String>) -> Self {
        let headers = vec![("Location", target.to_owned())];
        Self { headers, ..Self::status(301, label) }
    }

    /// No answer: the connection closes.
    pub fn close(label: impl Into<String>) -> Self {
        Self::status(0, label)
    }
}

/// A line of the log.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name of the host, as in the `Host` header.
    pub host: String,
    /// When the request was complete, in microseconds since 1970.
    pub start: u64,
    /// When the last bytes were about to be sent; later than the client can have seen them only by
    /// nothing, so that gaps are never measured too long.
    pub end: u64,
    pub status: u16,
    /// Path and query.
    pub target: String,
    pub label: String,
}

/// The log of a server.
#[derive(Debug)]
pub struct Log {
    file: Mutex<BufWriter<File>>,
    began: (Instant, u64),
}

impl Log {
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = Mutex::new(BufWriter::new(File::create(path)?));
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
        Ok(Self { file, began: (Instant::now(), epoch.as_micros() as u64) })
    }

    /// Microseconds since 1970, by a clock that nobody sets.
    fn now(&self) -> u64 {
        self.began.1 + self.began.0.elapsed().as_micros() as u64
    }

    fn write(&self, line: &Line) {
        let Line { host, start, end, status, target, label } = line;
        let mut file = self.file.lock().expect("no holder of this lock panics");
        writeln!(file, "{host}\t{start}\t{end}\t{status}\t{target}\t{label}").expect("disk space");
    }

    fn flush(&self) {
        self.file.lock().expect("no holder of this lock panics").flush().expect("disk space");
    }
}

/// Reads a log, in the order in which requests came.
pub fn read_log(path: &Path) -> io::Result<Vec<Line>> {
    let text = std::fs::read_to_string(path)?;
    let mut lines: Vec<Line> = text.lines().filter_map(parse_line).collect();
    lines.sort_by_key(|line| line.start);
    Ok(lines)
}

fn parse_line(line: &str) -> Option<Line> {
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    Some(Line {
        host: next()?.to_owned(),
        start: next()?.parse().ok()?,
        end: next()?.parse().ok()?,
        status: next()?.parse().ok()?,
        target: next()?.to_owned(),
        label: next()?.to_owned(),
    })
}

/// Answers a request for a target of a host, named as in its `Host` header.
pub type Answers = Arc<dyn Fn(&str, &str) -> Answer + Send + Sync>;

/// Serves until the process is asked to end, and writes the log.
pub async fn serve(listeners: Vec<TcpListener>, answers: Answers, log: Log) -> io::Result<()> {
    let log = Arc::new(log);
    for listener in listeners {
        assert!(listener.local_addr()?.ip().is_loopback(), "nobody else is served");
        tokio::spawn(listen(listener, answers.clone(), log.clone()));
    }
    let mut end = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    end.recv().await;
    log.flush();
    Ok(())
}

async fn listen(listener: TcpListener, answers: Answers, log: Arc<Log>) {
    let gone = Arc::new(Notify::new());
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            () = gone.notified() => return,
        };
        let Ok((stream, _)) = stream else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (answers, log, gone) = (answers.clone(), log.clone(), gone.clone());
        tokio::spawn(async move {
            // A client that goes away is its own affair; what it had is in the log.
            let _ = converse(stream, &answers, &log, &gone).await;
        });
    }
}

async fn converse(
    mut stream: TcpStream,
    answers: &Answers,
    log: &Log,
    gone: &Notify,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(1024);
    loop {
        let head = loop {
            if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if buffer.len() > 64 << 10 || stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let start = log.now();
        let text = String::from_utf8_lossy(&buffer[..head]).into_owned();
        buffer.drain(..head);
        let mut lines = text.split("\r\n");
        let target = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or("/");
        let host = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then(|| value.trim())
        });
        let answer = answers(host.unwrap_or_default(), target);
        if !answer.wait.is_zero() {
            tokio::time::sleep(answer.wait).await;
        }
        let mut line = Line {
            host: host.unwrap_or_default().to_owned(),
            start,
            end: 0,
            status: answer.status,
            target: target.to_owned(),
            label: answer.label.clone(),
        };
        if answer.is_last {
            gone.notify_one();
        }
        if answer.status == 0 {
            line.end = log.now();
            log.write(&line);
            return Ok(());
        }
        let mut bytes = format!(
            "HTTP/1.1 {} Answer\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n",
            answer.status,
            answer.body.len()
        );
        for (name, value) in &answer.headers {
            write!(bytes, "{name}: {value}\r\n").expect("a string takes it");
        }
        bytes.push_str("\r\n");
        bytes.push_str(&answer.body);
        line.end = log.now();
        log.write(&line);
        stream.write_all(bytes.as_bytes()).await?;
        if answer.is_last {
            return Ok(());
        }
    }
}

/// Numbers by chance that a seed decides.
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        let mut chance = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03);
        chance.below(2);
        chance
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// Words that make up a third of any English text.
const USUAL: [&str; 12] =
    ["the", "of", "and", "to", "in", "is", "that", "for", "with", "as", "was", "by"];

const SYLLABLES: [&str; 20] = [
    "ba", "cor", "del", "fi", "gra", "hol", "in", "ju", "ka", "lem", "mo", "nar", "os", "pi",
    "qua", "ret", "sil", "tu", "ver", "zo",
];

fn word(chance: &mut Chance) -> String {
    // The square of a uniform number favours the small ones, as usage does.
    let uniform = chance.below(1 << 20) as f64 / f64::from(1 << 20);
    let n = (uniform * uniform * 6_000.0) as usize;
    let parts = [n % 20, n / 20 % 20, n / 400 % 20];
    parts[..if n < 400 { 2 } else { 3 }].iter().map(|at| SYLLABLES[*at]).collect()
}

/// A title of five words.
pub fn title(seed: u64) -> String {
    let mut chance = Chance::new(seed ^ 0x7175_7465);
    let words: Vec<String> = (0..5).map(|_| word(&mut chance)).collect();
    words.join(" ")
}

/// Paragraphs of 40 words each.
pub fn prose(seed: u64, paragraphs: usize) -> String {
    let mut chance = Chance::new(seed);
    let mut text = String::new();
    for _ in 0..paragraphs {
        text.push_str("<p>");
        for at in 0..40 {
            if chance.below(3) == 0 {
                text.push_str(USUAL[chance.below(12) as usize]);
            } else {
                text.push_str(&word(&mut chance));
            }
            text.push_str(if at % 13 == 12 { ". " } else { " " });
        }
        text.push_str("</p>\n");
    }
    text
}

/// A page with its links below.
pub fn page(title: &str, main: &str, links: impl IntoIterator<Item = String>) -> String {
    let mut html = format!(
        "<!DOCTYPE html><html><head><title>{title}</title></head><body><article><h1>{title}</h1>\n\
         {main}</article><ul>"
    );
    for link in links {
        let link = link.replace('&', "&amp;");
        write!(html, "<li><a href=\"{link}\">{link}</a></li>").expect("a string takes it");
    }
    html.push_str("</ul></body></html>");
    html
}
