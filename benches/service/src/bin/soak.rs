//! A long mixed load on the service, and its memory meanwhile.
//!
//! `soak ADDRESS PID SECONDS IDLE STORED` sends for SECONDS, to the service of that process, articles
//! at a fixed rate (stored ones as they are, and reprints of them), reads, requests that are wrong in
//! a dozen ways, clients that send or read slowly, and holds IDLE connections that say nothing. It
//! fails if the process ends, an answer is an error that was not asked for, or memory grows.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use service::{Random, Words};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Requests a second, and how many clients share them.
const WRITES: (u32, u64) = (200, 16);
const READS: (u32, u64) = (200, 16);
const WRONG: (u32, u64) = (20, 4);

/// Clients that send a byte a second, and such that do not read.
const SLOW: u64 = 40;

/// Memory is flat if its trend, over the part that is looked at, is below this share of it.
const GROWTH_MAX: f64 = 0.02;

/// This share of the time is left out: caches fill.
const WARM_UP: f64 = 0.2;

/// What was answered, by what was asked.
#[derive(Default)]
struct Counted {
    answers: Mutex<BTreeMap<(&'static str, u16), u64>>,
    times: Mutex<Vec<Duration>>,
    /// Connections that were closed without an answer, by what was asked.
    closed: Mutex<BTreeMap<&'static str, u64>>,
    idle: AtomicU64,
    doc_ids: Mutex<Vec<String>>,
}

impl Counted {
    fn answer(&self, what: &'static str, status: u16) {
        *self.answers.lock().expect("no thread panics").entry((what, status)).or_default() += 1;
    }

    fn closed(&self, what: &'static str) {
        *self.closed.lock().expect("no thread panics").entry(what).or_default() += 1;
    }
}

struct Load {
    address: String,
    stored: u64,
    words: Words,
    counted: Counted,
    end: Instant,
}

/// An answer to one request on a connection that stays open, or is gone.
async fn ask(
    connection: &mut Option<TcpStream>,
    address: &str,
    request: &[u8],
) -> std::io::Result<(u16, Vec<u8>)> {
    if connection.is_none() {
        *connection = Some(TcpStream::connect(address).await?);
    }
    let mut stream = connection.take().expect("it was opened above");
    let gone = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    // A service that refuses a body may close before it has all of it: its answer is there.
    let _sent = stream.write_all(request).await;
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let read = stream.read(&mut buffer).await?;
        bytes.extend_from_slice(&buffer[..read]);
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let Some(head) = head else {
            if read == 0 {
                return Err(gone());
            }
            continue;
        };
        let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(gone)?;
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: Option<usize> = length.and_then(|length| length.trim().parse().ok());
        let whole = length.map_or(read == 0, |length| bytes.len() >= head + 4 + length);
        if whole {
            if length.is_some() && !text.contains("connection: close") {
                *connection = Some(stream);
            }
            return Ok((status, bytes.split_off(head + 4)));
        }
        if read == 0 {
            return Err(gone());
        }
    }
}

fn post(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes()
}

impl Load {
    /// Sends what `next` makes, so many times a second, and counts the answers.
    async fn send(
        self: Arc<Self>,
        what: &'static str,
        (rate, clients): (u32, u64),
        client: u64,
        next: impl Fn(&Load, &mut Random) -> Vec<u8> + Send,
    ) {
        let mut random = Random::new(client + 1_000 * u64::from(what.as_bytes()[0]));
        let mut ticks = interval(Duration::from_secs_f64(clients as f64 / f64::from(rate)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut connection = None;
        while Instant::now() < self.end {
            ticks.tick().await;
            let request = next(&self, &mut random);
            let began = Instant::now();
            let answer = ask(&mut connection, &self.address, &request);
            match timeout(Duration::from_secs(40), answer).await {
                Ok(Ok((status, body))) => {
                    self.counted.answer(what, status);
                    if what != "wrong" {
                        let time = began.elapsed();
                        self.counted.times.lock().expect("no thread panics").push(time);
                    }
                    if what == "article" && status == 200 {
                        self.learn(&body);
                    }
                }
                Ok(Err(_)) => self.counted.closed(what),
                Err(_) => {
                    connection = None;
                    self.counted.answer(what, 0);
                }
            }
        }
    }

    fn learn(&self, body: &[u8]) {
        let text = String::from_utf8_lossy(body);
        let id = text.split("\"docId\":\"").nth(1).and_then(|rest| rest.split('"').next());
        if let Some(id) = id.filter(|id| id.len() == 33) {
            let mut all = self.counted.doc_ids.lock().expect("no thread panics");
            if all.len() < 10_000 {
                all.push(id.to_owned());
            }
        }
    }

    fn article(&self, random: &mut Random) -> Vec<u8> {
        let number = random.below(self.stored);
        let article = match random.below(4) {
            // A reprint is one more copy of a stored text: the store grows, the index does not.
            0 => self.words.reprint(number, random.next()),
            _ => self.words.article(number),
        };
        let json = serde_json::to_vec(&article).expect("texts have a form in JSON");
        post("/docId/getDocId", "application/json", &json)
    }

    fn read(&self, random: &mut Random) -> Vec<u8> {
        let ids = self.counted.doc_ids.lock().expect("no thread panics");
        let id = ids.get(random.below(ids.len() as u64) as usize).cloned();
        drop(ids);
        let id = id.unwrap_or_default();
        get(&match random.below(10) {
            0..4 if !id.is_empty() => format!("/v1/documents/{id}"),
            4..6 if !id.is_empty() => format!("/v1/documents/{id}/copies"),
            6 if !id.is_empty() => format!("/v1/documents/{id}/similar"),
            7 => "/v1/documents?sort=copies&limit=20".to_owned(),
            8 => "/v1/documents?sort=newest&limit=20".to_owned(),
            9 => "/v1/stats".to_owned(),
            _ => "/healthz".to_owned(),
        })
    }
}

/// Requests that must be refused.
fn wrong(_: &Load, random: &mut Random) -> Vec<u8> {
    let (service, json) = ("/docId/getDocId", "application/json");
    let number = random.next();
    match random.below(14) {
        0 => post(service, json, br#"{"url": "http://a.example/", "content": "#),
        1 => post(service, json, br#"{"content": "neither nid nor url"}"#),
        2 => post(service, json, br#"{"nid": "n", "content": {"deep": []}}"#),
        3 => post(service, json, &[b"[".repeat(50_000), b"]".repeat(50_000)].concat()),
        4 => post(service, json, b"{\"nid\": \"n\", \"content\": \"\xff\xfe\"}"),
        5 => post(service, "text/plain", b"what"),
        6 => post("/v1/articles", json, br#"{"nid": "n"}"#),
        7 => get(&format!("/v1/documents/{number:016x}-0000000000000000")),
        8 => get("/v1/documents/not-an-identifier"),
        9 => get("/v1/documents?limit=many"),
        10 => get(&format!("/nowhere/{number}")),
        11 => get("/docId/getDocId?json=%7B%22url%22"),
        12 => b"DELETE /v1/documents HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_vec(),
        // Announced, never sent whole: the limit refuses it before.
        _ => b"POST /v1/articles HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
               Content-Length: 100000000\r\n\r\n{"
            .to_vec(),
    }
}

/// A client that sends its request byte by byte, or does not read the answer.
async fn slow(load: Arc<Load>, client: u64) {
    let mut random = Random::new(client + 77);
    while Instant::now() < load.end {
        let Ok(mut stream) = TcpStream::connect(&load.address).await else {
            load.counted.closed("slow, refused");
            sleep(Duration::from_secs(1)).await;
            continue;
        };
        if client.is_multiple_of(2) {
            let request = match client.is_multiple_of(4) {
                // In the head, or in the body.
                true => get("/healthz"),
                false => load.article(&mut random),
            };
            let head = request.windows(4).position(|window| window == b"\r\n\r\n");
            let at = if client.is_multiple_of(4) { 0 } else { head.unwrap_or(0) + 4 };
            let _sent = stream.write_all(&request[..at]).await;
            for byte in &request[at..] {
                if Instant::now() >= load.end || stream.write_all(&[*byte]).await.is_err() {
                    break;
                }
                sleep(Duration::from_secs(1)).await;
            }
            load.counted.closed("slow sender, ended");
        } else {
            let asked = get("/v1/documents?sort=newest&limit=100");
            for _ in 0..500 {
                if timeout(Duration::from_secs(2), stream.write_all(&asked)).await.is_err() {
                    break;
                }
            }
            sleep(Duration::from_secs(25)).await;
            load.counted.closed("slow reader, ended");
        }
    }
}

/// Holds a connection that says nothing; the service closes it in the end, and it comes again.
async fn idle(load: Arc<Load>, client: u64) {
    sleep(Duration::from_micros(client * 500)).await;
    let mut byte = [0];
    while Instant::now() < load.end {
        let Ok(mut stream) = TcpStream::connect(&load.address).await else {
            load.counted.closed("idle, refused");
            sleep(Duration::from_secs(1)).await;
            continue;
        };
        load.counted.idle.fetch_add(1, Ordering::Relaxed);
        let _closed = timeout(Duration::from_secs(60), stream.read(&mut byte)).await;
        load.counted.idle.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Resident memory of a process in MiB: all of it, and what it has made itself.
fn memory(pid: &str) -> Option<(f64, f64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
    };
    Some((of("VmRSS:")?, of("RssAnon:")?))
}

/// The trend of `y` over `x`, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, at| (sum.0 + at.0, sum.1 + at.1));
    let (x, y) = (x / count, y / count);
    let both: f64 = points.iter().map(|at| (at.0 - x) * (at.1 - y)).sum();
    both / points.iter().map(|at| (at.0 - x).powi(2)).sum::<f64>().max(1e-9)
}

async fn watch(load: &Load, pid: &str, seconds: u64) -> Vec<(f64, f64)> {
    println!("| after | RSS, MiB | of its own | idle connections | requests | p50, ms | p99, ms |");
    println!("|---|---|---|---|---|---|---|");
    let (mut points, mut ticks) = (Vec::new(), interval(Duration::from_secs(1)));
    let each = (seconds / 10).clamp(1, 60);
    for second in 0..=seconds {
        ticks.tick().await;
        let Some((all, own)) = memory(pid) else { break };
        points.push((second as f64, all));
        if second.is_multiple_of(each) || second == seconds {
            let mut times = std::mem::take(&mut *load.counted.times.lock().expect("no panic"));
            times.sort_unstable();
            let of = |share: usize| {
                let time = times.get((times.len() * share / 100).min(times.len().max(1) - 1));
                time.map_or(0.0, |time| time.as_secs_f64() * 1000.0)
            };
            let idle = load.counted.idle.load(Ordering::Relaxed);
            println!(
                "| {second} s | {all:.0} | {own:.0} | {idle} | {} | {:.2} | {:.2} |",
                times.len(),
                of(50),
                of(99)
            );
        }
    }
    points
}

fn verdict(load: &Load, points: &[(f64, f64)], seconds: u64) -> bool {
    println!("\n| asked | answer | times |\n|---|---|---|");
    let mut well = true;
    for ((what, status), times) in &*load.counted.answers.lock().expect("no panic") {
        // Slow and idle clients may have taken all places for a moment (503): that is an answer.
        let right = match *what {
            "wrong" => (400..500).contains(status),
            _ => matches!(status, 200 | 201),
        };
        well &= right;
        let mark = if right { "" } else { " (!)" };
        println!("| {what} | {status}{mark} | {times} |");
    }
    for (what, times) in &*load.counted.closed.lock().expect("no panic") {
        println!("| {what} | closed | {times} |");
    }
    if points.len() as u64 <= seconds {
        println!("\nthe process ended after {} s", points.len());
        return false;
    }
    let late: Vec<(f64, f64)> =
        points.iter().copied().filter(|at| at.0 >= seconds as f64 * WARM_UP).collect();
    let mean = late.iter().map(|at| at.1).sum::<f64>() / late.len() as f64;
    let growth = slope(&late) * (late[late.len() - 1].0 - late[0].0);
    let most = points.iter().fold(0.0, |most: f64, at| most.max(at.1));
    let flat = growth <= mean * GROWTH_MAX;
    println!(
        "\nafter the first {:.0} s memory is {mean:.0} MiB, at most {most:.0}; its trend is {:+.2} MiB a minute: {}",
        late[0].0,
        slope(&late) * 60.0,
        if flat { "flat" } else { "it grows" }
    );
    well && flat
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, pid, numbers @ ..] = arguments.as_slice() else {
        eprintln!("usage: soak ADDRESS PID SECONDS IDLE STORED");
        return ExitCode::from(2);
    };
    let numbers: Vec<u64> = numbers.iter().filter_map(|text| text.parse().ok()).collect();
    let &[seconds, idle_connections, stored] = numbers.as_slice() else {
        eprintln!("usage: soak ADDRESS PID SECONDS IDLE STORED");
        return ExitCode::from(2);
    };
    let end = Instant::now() + Duration::from_secs(seconds);
    let load = Arc::new(Load {
        address: address.clone(),
        stored,
        words: Words::new(),
        counted: Counted::default(),
        end,
    });
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..idle_connections {
        clients.spawn(idle(load.clone(), client));
    }
    for client in 0..WRITES.1 {
        clients.spawn(load.clone().send("article", WRITES, client, Load::article));
    }
    for client in 0..READS.1 {
        clients.spawn(load.clone().send("read", READS, client, Load::read));
    }
    for client in 0..WRONG.1 {
        clients.spawn(load.clone().send("wrong", WRONG, client, wrong));
    }
    for client in 0..SLOW {
        clients.spawn(slow(load.clone(), client));
    }
    let points = watch(&load, pid, seconds).await;
    clients.abort_all();
    if verdict(&load, &points, seconds) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
