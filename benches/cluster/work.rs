//! A worker: a process that places its share of the articles.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::thread::sleep;
use std::time::{Duration, Instant};

use uniqcrawl::base::clock::Clock;
use uniqcrawl::cluster::Settings;
use uniqcrawl::corpus::shared::{SentArticle, SharedCorpus, SharedOptions};
use uniqcrawl::neardup::Config;
use uniqcrawl::text::features::Fingerprinter;

use crate::made::{Kind, article};
use crate::nodes::port;

/// Time of an article in races: who dies costs others as much.
pub(crate) const SPAN: Duration = Duration::from_millis(500);

/// What a worker is told: arguments of its process.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub folder: PathBuf,
    pub kind: Kind,
    /// The prefix of the keys.
    pub prefix: String,
    pub articles: u64,
    pub workers: u64,
    pub worker: u64,
    pub batch: usize,
    /// Chances at each step, in hundredths.
    pub killed: u64,
    pub paused: u64,
    /// By how much its clock is off, in ms.
    pub clock: i64,
}

impl Task {
    pub(crate) fn new(folder: PathBuf, kind: Kind, articles: u64, workers: u64) -> Self {
        let (batch, prefix) = (8, "bench".to_owned());
        Self {
            folder,
            kind,
            prefix,
            articles,
            workers,
            worker: 0,
            batch,
            killed: 0,
            paused: 0,
            clock: 0,
        }
    }

    pub(crate) fn read(words: &[String]) -> Self {
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        Self {
            folder: PathBuf::from(&words[0]),
            kind: if words[1] == "race" { Kind::Race } else { Kind::Place },
            prefix: words[2].clone(),
            articles: number(3),
            workers: number(4),
            worker: number(5),
            batch: number(6) as usize,
            killed: number(7),
            paused: number(8),
            clock: words[9].parse().unwrap(),
        }
    }

    fn words(&self) -> Vec<String> {
        let kind = if self.kind == Kind::Race { "race" } else { "place" };
        let mut words =
            vec![self.folder.display().to_string(), kind.to_owned(), self.prefix.clone()];
        let numbers = [self.articles, self.workers, self.worker, self.batch as u64];
        words.extend(numbers.map(|number| number.to_string()));
        words.extend([self.killed, self.paused].map(|number| number.to_string()));
        words.push(self.clock.to_string());
        words
    }

    /// The same, for another worker.
    pub(crate) fn of(&self, worker: u64) -> Self {
        Self { worker, ..self.clone() }
    }

    pub(crate) fn open(&self) -> SharedCorpus {
        let url = format!("redis://127.0.0.1:{},127.0.0.1:{}/{}", port(), port() + 1, self.prefix);
        let span = if self.kind == Kind::Race { SPAN } else { Duration::from_secs(5) };
        let options = SharedOptions { span, ..SharedOptions::default() };
        let settings = Settings::parse(&url).unwrap();
        let texts = self.folder.join("texts");
        let begun = Instant::now();
        loop {
            match SharedCorpus::open(&settings, &texts, &Config::default(), options) {
                Ok(mut corpus) => {
                    corpus.set_clock(Clock::Off(Arc::new(AtomicI64::new(self.clock))));
                    return corpus;
                }
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(40), "{error}"),
            }
            sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}-{}", self.worker))
    }

    pub(crate) fn start(&self) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .arg("worker")
            .args(self.words())
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }
}

/// Places the share of a worker, from where its predecessor ended.
pub(crate) fn work(task: &Task) {
    crate::chance::begin(task);
    let fingerprinter = Fingerprinter::default();
    let mine = (0..task.articles).filter(|number| number % task.workers == task.worker);
    let mut mine: Vec<u64> = mine.collect();
    // What was stored before this worker's predecessor died.
    let done = fs::read_to_string(task.file("done")).ok().and_then(|text| text.parse().ok());
    mine.drain(..done.unwrap_or(0_usize));
    let mut done = done.unwrap_or(0);
    let make = |number: &u64| article(task.kind, *number, &fingerprinter);
    let ready: Vec<_> = match task.kind {
        Kind::Place => mine.iter().map(make).collect(),
        Kind::Race => Vec::new(),
    };
    let mut corpus = task.open();
    let before = corpus.traffic();
    fs::write(task.file("ready"), "").unwrap();
    while !task.folder.join("go").exists() {
        sleep(Duration::from_millis(5));
    }
    let mut stall = fs::read_to_string(task.file("stall")).map_or(0, |text| text.parse().unwrap());
    for (at, numbers) in mine.chunks(task.batch).enumerate() {
        let made: Vec<_>;
        let articles = if ready.is_empty() {
            made = numbers.iter().map(make).collect();
            &made[..]
        } else {
            &ready[at * task.batch..][..numbers.len()]
        };
        let sent: Vec<SentArticle<'_>> =
            articles.iter().map(|article| SentArticle { article, links: 1 }).collect();
        let begun = Instant::now();
        while let Err(error) = corpus.place_all(&sent) {
            // As a worker does that has told what is wrong, until somebody mends it.
            assert!(begun.elapsed() < Duration::from_mins(2), "{error}");
            sleep(Duration::from_millis(100));
        }
        done += numbers.len();
        if task.kind == Kind::Race {
            stall = stall.max(begun.elapsed().as_millis() as u64);
            fs::write(task.file("stall"), stall.to_string()).unwrap();
            fs::write(task.file("done"), done.to_string()).unwrap();
        }
    }
    let traffic = corpus.traffic();
    let told = [
        traffic.round_trips - before.round_trips,
        traffic.commands - before.commands,
        traffic.sent - before.sent,
        traffic.received - before.received,
    ];
    fs::write(task.file("told"), told.map(|number| number.to_string()).join(" ")).unwrap();
}
