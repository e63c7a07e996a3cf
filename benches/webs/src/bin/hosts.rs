//! A thousand hosts on loopback addresses of their own: small, slow, failing and huge ones.
//!
//! `hosts serve DIR` serves them until it is ended, and writes `seeds`, `hosts` and `log`;
//! `hosts score DIR DELAY_MS STARTED_US` reads them and the store of a crawl, and prints figures.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use uniqcrawl::frontier::Host;
use uniqcrawl::store::{Store, View as _};
use webs::{Answer, Line, Log, page, prose, read_log, serve, title};

/// Pages of a host that is not huge, its front page among them.
const PAGES: u64 = 10;

/// Time that a slow host takes for an answer.
const SLOW: Duration = Duration::from_secs(2);

/// What a busy host asks for, in seconds.
const RETRY_AFTER: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Small,
    Slow,
    Huge,
    /// Never listens.
    Refuses,
    /// Listens no more after four answers.
    Leaves,
    /// Closes each connection without an answer, from the first request on.
    Closes,
    /// The same after four answers, on connections that are open.
    HangsUp,
    /// Answers 500 after four answers.
    Breaks,
    /// Answers 503 with Retry-After: three times after four answers, then is well again.
    Rests,
    /// The same without end.
    Busy,
}

use Kind::*;

/// Kinds with the number of their hosts: 1,000 together, of which 50 fail.
const HOSTS: [(Kind, u64, &str); 10] = [
    (Small, 840, "small"),
    (Slow, 100, "slow (2 s)"),
    (Huge, 10, "huge"),
    (Refuses, 8, "refuses connections"),
    (Leaves, 7, "refuses after 4 answers"),
    (Closes, 7, "closes unanswered"),
    (HangsUp, 7, "closes after 4 answers"),
    (Breaks, 7, "500 after 4 answers"),
    (Rests, 7, "503 three times"),
    (Busy, 7, "503 without end"),
];

/// The kind of each host; failing ones are spread among the others.
fn kinds() -> Vec<Kind> {
    let mut kinds: Vec<(u64, Kind)> = HOSTS
        .iter()
        .flat_map(|(kind, count, _)| (0..*count).map(move |n| (n * 1_000 / count, *kind)))
        .collect();
    kinds.sort_by_key(|(place, _)| *place);
    kinds.into_iter().map(|(_, kind)| kind).collect()
}

fn name(kind: Kind) -> &'static str {
    HOSTS.iter().find(|(other, ..)| *other == kind).map_or("", |(.., name)| name)
}

fn answer(host: u64, kind: Kind, before: u64, target: &str) -> Answer {
    let fails = before >= 4;
    match kind {
        Closes => return Answer::close("closed"),
        HangsUp if fails => return Answer::close("closed"),
        Breaks if fails => return Answer::status(500, "error"),
        Rests if (4..7).contains(&before) => return busy(),
        Busy if fails => return busy(),
        _ => {}
    }
    let number = match target {
        "/" => Some(0),
        _ => target.strip_prefix("/p/").and_then(|number| number.parse().ok()),
    };
    let mut answer = match number {
        Some(number) if kind == Huge => {
            // Each page names a hundred others, all of them new.
            let links = (1..=100).map(|n| format!("/p/{}", number * 100 + n));
            made(host, number, links.collect())
        }
        Some(0) => made(host, 0, (1..PAGES).map(|n| format!("/p/{n}")).collect()),
        Some(number) if number < PAGES => made(host, number, vec!["/".to_owned()]),
        _ => Answer::status(404, "none"),
    };
    answer.wait = if kind == Slow { SLOW } else { Duration::ZERO };
    answer.is_last = kind == Leaves && before == 3;
    answer
}

fn busy() -> Answer {
    let headers = vec![("Retry-After", RETRY_AFTER.to_string())];
    Answer { headers, ..Answer::status(503, "busy") }
}

fn made(host: u64, number: u64, links: Vec<String>) -> Answer {
    let seed = (host << 40) + number;
    Answer::page("page", page(&title(seed), &prose(seed, 6), links))
}

async fn run(folder: &Path) -> std::io::Result<()> {
    let (mut listeners, mut seeds, mut table) = (Vec::new(), String::new(), String::new());
    let mut known = BTreeMap::new();
    for (number, kind) in kinds().into_iter().enumerate() {
        let [high, low] = [number / 250, number % 250 + 1].map(|part| part as u8);
        let listener = TcpListener::bind((Ipv4Addr::new(127, 1, high, low), 0)).await?;
        let host = listener.local_addr()?.to_string();
        writeln!(seeds, "http://{host}/").expect("a string takes it");
        writeln!(table, "{host}\t{}", name(kind)).expect("a string takes it");
        known.insert(host, (number as u64, kind, AtomicU64::new(0)));
        if kind != Refuses {
            listeners.push(listener);
        }
    }
    std::fs::write(folder.join("seeds"), seeds)?;
    let answers = move |host: &str, target: &str| match known.get(host) {
        Some((number, kind, before)) => {
            answer(*number, *kind, before.fetch_add(1, Ordering::Relaxed), target)
        }
        None => Answer::status(400, "no such host"),
    };
    let log = Log::create(&folder.join("log"))?;
    // The last file: whoever waits for it finds all of them, and every host listening.
    std::fs::write(folder.join("hosts"), table)?;
    serve(listeners, Arc::new(answers), log).await
}

/// What one host was asked.
#[derive(Debug, Default)]
struct Asked<'a>(Vec<&'a Line>);

impl Asked<'_> {
    /// Times from the end of an answer to the next request, each with the status of the answer;
    /// negative if the request came before.
    fn gaps(&self) -> impl Iterator<Item = (f64, u16)> {
        let pairs = self.0.windows(2);
        pairs.map(|two| ((two[1].start as f64 - two[0].end as f64) / 1e3, two[0].status))
    }

    fn pages(&self) -> usize {
        self.0.iter().filter(|line| line.label == "page").count()
    }

    fn done(&self, started: u64) -> f64 {
        self.0.last().map_or(f64::NAN, |line| (line.end as f64 - started as f64) / 1e6)
    }

    /// The time that so many requests take a crawler that is never late, in seconds: the last one
    /// needs no delay after it.
    fn bound(&self, delay: f64) -> f64 {
        let answers: f64 = self.0.iter().map(|line| (line.end - line.start) as f64 / 1e6).sum();
        answers + delay * (self.0.len() - 1) as f64
    }
}

fn at(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(place.max(1) - 1).copied().unwrap_or(f64::NAN)
}

fn score(folder: &Path, delay_ms: f64, started: u64) -> Result<bool, Box<dyn std::error::Error>> {
    let log = read_log(&folder.join("log"))?;
    let table = std::fs::read_to_string(folder.join("hosts"))?;
    let kinds: BTreeMap<&str, &str> =
        table.lines().filter_map(|line| line.split_once('\t')).collect();
    let mut asked: BTreeMap<&str, Asked<'_>> = BTreeMap::new();
    for line in &log {
        asked.entry(&line.host).or_default().0.push(line);
    }
    let last = log.iter().map(|line| line.end).max().unwrap_or(started);
    let seconds = (last - started) as f64 / 1e6;
    let pages = log.iter().filter(|line| line.label == "page").count();
    println!("{} requests, {pages} pages in {seconds:.1} s", log.len());

    println!(
        "small hosts, delay {delay_ms} ms: when each was done, and that by what its requests take at least"
    );
    let delay = delay_ms / 1e3;
    let small = || asked.iter().filter(|(host, _)| kinds.get(*host) == Some(&name(Small)));
    let whole = small().filter(|(_, asked)| asked.pages() as u64 == PAGES).count();
    let count = small().map(|(_, asked)| asked.0.len()).max().unwrap_or(0);
    println!("  {whole} of {} whole; requests of each: {count}", HOSTS[0].1);
    let sorted = |of: &dyn Fn(&Asked<'_>) -> f64| {
        let mut all: Vec<f64> = small().map(|(_, asked)| of(asked)).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let rows: [(&str, Vec<f64>); 4] = [
        ("bound, s", sorted(&|asked| asked.bound(delay))),
        ("done after the start of the crawl, s", sorted(&|asked| asked.done(started))),
        ("  / bound", sorted(&|asked| asked.done(started) / asked.bound(delay))),
        (
            "done after its first request / bound",
            sorted(&|asked| asked.done(asked.0[0].start) / asked.bound(delay)),
        ),
    ];
    for (name, all) in rows {
        let [median, late, worst] = [0.5, 0.99, 1.0].map(|share| at(&all, share));
        println!("  {name:38} median {median:7.3}  p99 {late:7.3}  worst {worst:7.3}");
    }
    let while_small = at(&sorted(&|asked| asked.done(started)), 1.0);
    let then = log.iter().filter(|line| (line.end - started) as f64 / 1e6 <= while_small);
    println!(
        "  requests a second until the last of them was done: {:.0}",
        then.count() as f64 / while_small
    );

    println!("gaps between the end of an answer and the next request of the host, by the server");
    println!(
        "  {:26} {:>5} {:>8} {:>12} {:>12} {:>11}",
        "kind", "hosts", "gaps", "least, ms", "median, ms", "below delay"
    );
    let mut below_all = 0;
    for (.., kind) in HOSTS {
        let of_kind = || asked.iter().filter(|(host, _)| kinds.get(*host) == Some(&kind));
        let mut gaps: Vec<f64> =
            of_kind().flat_map(|(_, asked)| asked.gaps()).map(|(gap, _)| gap).collect();
        gaps.sort_by(f64::total_cmp);
        let below = gaps.iter().filter(|gap| **gap < delay_ms).count();
        below_all += below;
        let told = |share: f64| {
            if gaps.is_empty() { "-".to_owned() } else { format!("{:.1}", at(&gaps, share)) }
        };
        println!(
            "  {kind:26} {:>5} {:>8} {:>12} {:>12} {below:>11}",
            of_kind().count(),
            gaps.len(),
            told(0.0),
            told(0.5)
        );
    }
    let after_busy = asked.values().flat_map(Asked::gaps).filter(|(_, status)| *status == 503);
    let least = after_busy.map(|(gap, _)| gap).fold(f64::NAN, f64::min);
    println!("  least gap after a 503 that asked for {RETRY_AFTER} s: {least:.1} ms");

    println!("hosts in the store, when the run was ended");
    println!(
        "  {:26} {:>5} {:>8} {:>8} {:>8} {:>8}  trouble",
        "kind", "hosts", "answered", "failed", "waiting", "breaker"
    );
    let store = Store::open(&folder.join("store"), 64 << 20)?;
    let mut rows: BTreeMap<&str, Vec<Host>> = BTreeMap::new();
    let snapshot = store.snapshot()?;
    for entry in snapshot.rows(uniqcrawl::frontier::HOSTS)? {
        let host = entry?.row()?;
        if let Some(kind) = kinds.get(host.key.trim_start_matches("http://")) {
            rows.entry(kind).or_default().push(host);
        }
    }
    for (.., kind) in HOSTS {
        let hosts = rows.get(kind).map_or(&[][..], Vec::as_slice);
        let sum = |of: fn(&Host) -> u64| hosts.iter().map(of).sum::<u64>();
        let mut trouble: Vec<String> =
            hosts.iter().filter_map(|host| Some(host.trouble?.to_string())).collect();
        trouble.sort_unstable();
        trouble.dedup();
        println!(
            "  {kind:26} {:>5} {:>8} {:>8} {:>8} {:>8}  {}",
            hosts.len(),
            sum(|host| host.answered),
            sum(|host| host.failed),
            sum(|host| host.queued),
            sum(|host| u64::from(host.breaker_open)),
            trouble.join(" ")
        );
    }
    println!(
        "gaps below the delay: {below_all}; small hosts that are not whole: {}",
        HOSTS[0].1 - whole as u64
    );
    Ok(below_all == 0 && whole as u64 == HOSTS[0].1)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let is_good = match words[..] {
        ["serve", folder] => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime");
            runtime.block_on(run(Path::new(folder))).expect("addresses and files");
            true
        }
        ["score", folder, delay, started] => {
            let (delay, started) = (delay.parse(), started.parse());
            let (delay, started) = (delay.expect("milliseconds"), started.expect("microseconds"));
            score(Path::new(folder), delay, started).expect("a log and a store")
        }
        _ => panic!("hosts serve DIR | hosts score DIR DELAY_MS STARTED_US"),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
