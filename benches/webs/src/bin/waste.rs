//! A web of known truth with sessions, mirrors, traps and false error pages.
//!
//! `waste serve DIR` serves it until it is ended, and writes `seeds`, `truth`, `log` and `resolve`;
//! `waste score DIR STORE [OTHER_LOG]` reads the log and the store of a crawl, and prints figures;
//! OTHER_LOG is that of a crawl to compare the duplicate downloads with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use uniqcrawl::corpus::documents::copies_of;
use uniqcrawl::corpus::tables::DOCUMENTS;
use uniqcrawl::frontier::rules::Status;
use uniqcrawl::frontier::{ADDRESSES, RULES, State};
use uniqcrawl::store::{Store, View as _};
use webs::web::{Content, HOSTS, Hosts};
use webs::{Answer, Line, Log, read_log, serve};

/// Time that the slow host takes for an answer.
const SLOW: Duration = Duration::from_millis(200);

fn ip(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 2, 0, number as u8 + 1)
}

/// Binds one port on all addresses.
async fn bind_all(of: &[usize]) -> std::io::Result<(u16, Vec<TcpListener>)> {
    loop {
        let first = TcpListener::bind((ip(of[0]), 0)).await?;
        let port = first.local_addr()?.port();
        let mut listeners = vec![first];
        for number in &of[1..] {
            match TcpListener::bind((ip(*number), port)).await {
                Ok(listener) => listeners.push(listener),
                Err(_) => break,
            }
        }
        if listeners.len() == of.len() {
            return Ok((port, listeners));
        }
    }
}

async fn run(folder: &Path) -> std::io::Result<()> {
    let all: Vec<usize> = (0..HOSTS.len()).collect();
    let (port, mut listeners) = bind_all(&all).await?;
    let herald = HOSTS.iter().position(|name| *name == "herald.test").expect("it is a host");
    let (second, more) = bind_all(&[herald]).await?;
    listeners.extend(more);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(std::io::Error::other)?;
    // Days of a mean month: near enough.
    let month = 1970 * 12 + (now.as_secs() as f64 / 2_629_746.0) as i64;
    let hosts = Hosts { port, second, month };
    let mut resolve = Vec::new();
    let mut seeds = String::new();
    for (number, name) in HOSTS.iter().enumerate() {
        resolve.push(format!("\"{name}={}\"", ip(number)));
        writeln!(seeds, "{}", hosts.url(name, "/")).expect("a string takes it");
    }
    std::fs::write(folder.join("seeds"), seeds)?;
    std::fs::write(folder.join("truth"), format!("{port} {second} {month}"))?;
    let log = Log::create(&folder.join("log"))?;
    // The last file: whoever waits for it finds all of them, and every host listening.
    std::fs::write(folder.join("resolve"), format!("resolve = [{}]\n", resolve.join(", ")))?;
    let tried = Mutex::new(BTreeSet::new());
    let answers = move |host: &str, target: &str| {
        let answer = hosts.answer(host, target);
        if host.starts_with("www.slow.") {
            return Answer { wait: SLOW, ..answer };
        }
        let is_article = answer.label.starts_with("article");
        let chance = webs::web::hash(target);
        if host.starts_with("www.flaky.") && is_article && chance.is_multiple_of(3) {
            let mut tried = tried.lock().expect("no holder of this lock panics");
            if tried.insert(target.to_owned()) {
                // A third of the articles can be had at the second try only.
                return match chance / 3 % 10 {
                    0 => Answer::status(503, "busy"),
                    n if n % 2 == 0 => Answer::status(500, "error"),
                    _ => Answer::close("closed"),
                };
            }
        }
        answer
    };
    serve(listeners, Arc::new(answers), log).await
}

/// Pages that were sent, with what they were.
fn sent(log: &[Line]) -> impl Iterator<Item = &str> {
    log.iter().filter(|line| line.status == 200).map(|line| line.label.as_str())
}

/// Pages that were sent again: every one but the first of its content.
fn again(log: &[Line]) -> usize {
    sent(log).count() - sent(log).collect::<BTreeSet<_>>().len()
}

/// The same of articles only.
fn articles_again(log: &[Line]) -> usize {
    let articles: Vec<&str> = sent(log).filter(|label| label.starts_with("article")).collect();
    articles.len() - articles.iter().collect::<BTreeSet<_>>().len()
}

fn articles_again_by_host(log: &[Line]) -> BTreeMap<&str, usize> {
    let (mut seen, mut counts) = (BTreeSet::new(), BTreeMap::new());
    let pages = log.iter().filter(|line| line.status == 200 && line.label.starts_with("article"));
    for line in pages {
        if !seen.insert(&line.label) {
            let port = line.host.find(':').unwrap_or(line.host.len());
            *counts.entry(&line.host[..port]).or_default() += 1;
        }
    }
    counts
}

fn row(name: &str, value: impl std::fmt::Display) {
    println!("  {name:58} {value:>10}");
}

fn score(
    folder: &Path,
    store: &Path,
    other: Option<&Path>,
) -> Result<bool, Box<dyn std::error::Error>> {
    let log = read_log(&folder.join("log"))?;
    let truth = std::fs::read_to_string(folder.join("truth"))?;
    let [port, second, month] = truth.split(' ').collect::<Vec<_>>()[..] else {
        return Err("two ports and a month".into());
    };
    let hosts = Hosts { port: port.parse()?, second: second.parse()?, month: month.parse()? };
    let known = hosts.articles();
    let fetched: BTreeSet<&str> =
        sent(&log).filter_map(|label| label.strip_prefix("article ")).collect();
    let pages = sent(&log).count();

    let store = Store::open(store, 64 << 20)?;
    let snapshot = store.snapshot()?;
    let mut stored: HashMap<String, BTreeSet<u64>> = HashMap::new();
    let mut of_document: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    let (mut soft, mut wrong, mut skipped, mut skipped_articles) = (0, Vec::new(), 0, 0);
    let mut unfetched: BTreeMap<String, usize> = BTreeMap::new();
    for entry in snapshot.rows(ADDRESSES)? {
        let entry = entry?;
        let url = entry.key()?;
        let content = hosts.content(url);
        match entry.row()?.state {
            State::Stored(document) => match content {
                Content::Article(name) => {
                    stored.entry(name.clone()).or_default().insert(document);
                    of_document.entry(document).or_default().insert(name);
                }
                Content::Soft404 | Content::Missing => soft += 1,
                Content::Other(_) => {}
            },
            State::Skipped { of, .. } | State::Known { of, .. } => {
                skipped += 1;
                skipped_articles += usize::from(matches!(content, Content::Article(_)));
                if content != hosts.content(&of) {
                    wrong.push(format!("{url} as {of}"));
                }
            }
            State::Refused(reason) => *unfetched.entry(reason.to_string()).or_default() += 1,
            State::Redirect(_) => *unfetched.entry("redirect".to_owned()).or_default() += 1,
            State::Queued => *unfetched.entry("still waits".to_owned()).or_default() += 1,
        }
    }
    let mut canonical_soft = 0;
    let mut documents = 0;
    for entry in snapshot.rows(DOCUMENTS)? {
        let entry = entry?;
        let (number, document) = (entry.key()?, entry.row()?);
        documents += 1;
        assert!(!copies_of(&snapshot, number)?.is_empty(), "a document has copies");
        let content = hosts.content(&document.canonical);
        canonical_soft += usize::from(matches!(content, Content::Soft404 | Content::Missing));
    }
    let lost: Vec<&String> = known.iter().filter(|name| !stored.contains_key(*name)).collect();
    let joined: Vec<&BTreeSet<String>> =
        of_document.values().filter(|names| names.len() > 1).collect();
    let parted = stored.values().filter(|documents| documents.len() > 1).count();

    row("requests", log.len());
    row("pages fetched", pages);
    row("articles of the web", known.len());
    row("distinct articles fetched", fetched.len());
    row(
        "waste factor (pages fetched / distinct articles)",
        format!("{:.3}", pages as f64 / fetched.len() as f64),
    );
    let downloads = fetched.len() + articles_again(&log);
    let factor = format!("{:.3}", downloads as f64 / fetched.len() as f64);
    row("the same of articles only", factor);
    row(
        "pages fetched that were no article",
        sent(&log).filter(|label| !label.starts_with("article")).count(),
    );
    row("duplicate downloads (all pages)", again(&log));
    row("duplicate downloads of articles", articles_again(&log));
    if let Some(other) = other {
        let other = read_log(other)?;
        let share =
            |now: usize, then: usize| format!("{:.2} %", 100.0 * (1.0 - now as f64 / then as f64));
        row("duplicate downloads avoided (all pages)", share(again(&log), again(&other)));
        row(
            "duplicate downloads of articles avoided",
            share(articles_again(&log), articles_again(&other)),
        );
    }
    row("documents in the store", documents);
    row("documents that are articles", of_document.len());
    row("articles in more than one document", parted);
    row("documents of more than one article", joined.len());
    row("articles lost (no address of them is stored)", lost.len());
    row("addresses skipped by a learned rule", skipped);
    row("of these, of articles", skipped_articles);
    row("wrongly skipped (linked to another page)", wrong.len());
    row("false error pages stored", soft);
    row("false error pages that are canonical", canonical_soft);
    println!("  duplicate downloads of articles, by host:");
    for (host, count) in articles_again_by_host(&log) {
        row(&format!("  {host}"), count);
    }
    println!("  addresses not stored, by reason:");
    for (reason, count) in unfetched {
        row(&format!("  {reason}"), count);
    }
    println!("  learned rules:");
    let mut learning = 0;
    for entry in snapshot.rows(RULES)? {
        let rule = entry?.row()?;
        if rule.status == Status::Learning && rule.failed == 0 {
            learning += 1;
            continue;
        }
        let (host, all) = (rule.host.trim_start_matches("http://"), rule.held + rule.failed);
        println!(
            "    {} {host}: {}; {} of {all} pairs held, {} skipped",
            rule.status.as_str(),
            rule.change,
            rule.held,
            rule.skipped
        );
    }
    println!("    and {learning} that have too few pairs");
    for (what, names) in [
        ("lost", lost.iter().map(ToString::to_string).collect()),
        ("wrongly skipped", wrong.clone()),
        ("joined", joined.iter().map(|names| format!("{names:?}")).collect::<Vec<_>>()),
    ] {
        for name in names.iter().take(10) {
            println!("  {what}: {name}");
        }
    }
    Ok(lost.is_empty() && wrong.is_empty() && canonical_soft == 0)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&Path> = arguments.iter().map(Path::new).collect();
    let is_good = match words[..] {
        [command, folder] if command == Path::new("serve") => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(run(folder)).expect("addresses and files");
            true
        }
        [command, folder, store] if command == Path::new("score") => {
            score(folder, store, None).expect("a log and a store")
        }
        [command, folder, store, other] if command == Path::new("score") => {
            score(folder, store, Some(other)).expect("logs and a store")
        }
        _ => panic!("waste serve DIR | waste score DIR STORE [OTHER_LOG]"),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
