//! Articles placed by several processes into one corpus on six nodes of a cluster.
//!
//! ```text
//! cargo bench --bench cluster -- place ARTICLES WORKERS BATCH
//! cargo bench --bench cluster -- race ARTICLES WORKERS KILLED PAUSED      (in hundredths)
//! ```
//!
//! `place` tells articles a second, round trips, bytes, processor time and memory of the nodes; one
//! article of five is an edited copy. `race` has five edited copies of each text next to each other,
//! kills and pauses workers at random steps, and tells what was lost or doubled.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a bench")]

mod made;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{Layer, Registry};
use uniqcrawl::cluster::Settings;
use uniqcrawl::corpus::shared::{SentArticle, SharedCorpus, SharedOptions};
use uniqcrawl::neardup::Config;
use uniqcrawl::text::features::Fingerprinter;

use made::{Kind, article};

const PORT: u16 = 18_800;

/// What a worker is told: arguments of its process.
#[derive(Debug, Clone)]
struct Task {
    folder: PathBuf,
    kind: Kind,
    articles: u64,
    workers: u64,
    worker: u64,
    batch: usize,
    killed: u64,
    paused: u64,
    documents: u64,
}

impl Task {
    fn read(words: &[String]) -> Self {
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        Self {
            folder: PathBuf::from(&words[0]),
            kind: if words[1] == "race" { Kind::Race } else { Kind::Place },
            articles: number(2),
            workers: number(3),
            worker: number(4),
            batch: number(5) as usize,
            killed: number(6),
            paused: number(7),
            documents: number(8),
        }
    }

    fn words(&self) -> Vec<String> {
        let kind = if self.kind == Kind::Race { "race" } else { "place" };
        let mut words = vec![self.folder.display().to_string(), kind.to_owned()];
        let numbers = [self.articles, self.workers, self.worker, self.batch as u64];
        words.extend(numbers.map(|number| number.to_string()));
        words.extend([self.killed, self.paused, self.documents].map(|number| number.to_string()));
        words
    }

    fn open(&self) -> SharedCorpus {
        let url = format!("redis://127.0.0.1:{PORT},127.0.0.1:{}/bench", PORT + 1);
        let span = if self.kind == Kind::Race { 500 } else { 5_000 };
        let options =
            SharedOptions { documents: self.documents, span: Duration::from_millis(span) };
        let settings = Settings::parse(&url).unwrap();
        let texts = self.folder.join("texts");
        SharedCorpus::open(&settings, &texts, &Config::default(), options).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}-{}", self.worker))
    }

    fn start(&self) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .arg("worker")
            .args(self.words())
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }
}

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let number = |at: usize, or: u64| words.get(at).map_or(or, |word| word.parse().unwrap());
    match words.first().map(String::as_str) {
        Some("worker") => work(&Task::read(&words[1..])),
        Some("race") => race(number(1, 20_000), number(2, 4), number(3, 1), number(4, 1)),
        Some("place") | None => {
            let articles = number(1, 20_000);
            for workers in words.get(2).map_or(vec![1, 2, 4], |word| vec![word.parse().unwrap()]) {
                place(articles, workers, number(3, 128));
            }
        }
        Some(other) => panic!("`{other}` is neither place nor race"),
    }
}

/// Six nodes, which are stopped at the end.
struct Nodes(PathBuf);

impl Nodes {
    fn start(folder: &Path) -> Self {
        let nodes = Self(folder.join("nodes"));
        nodes.run("start");
        nodes
    }

    fn run(&self, command: &str) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/nodes");
        let status = Command::new(script)
            .arg(command)
            .arg(&self.0)
            .arg(PORT.to_string())
            .env("PARENT", std::process::id().to_string())
            .env("APPENDFSYNC", "off")
            .env("MAXMEMORY", "4gb")
            .env("NODE_TIMEOUT_MS", "15000")
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{command}");
    }

    /// Memory in bytes, and processor time in microseconds, of all primaries.
    fn used() -> (u64, u64) {
        let mut sums = (0, 0);
        for at in 0..6 {
            let url = format!("redis://127.0.0.1:{}", PORT + at);
            let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
            let told: String = redis::cmd("INFO").arg("everything").query(&mut connection).unwrap();
            let field = |name: &str| {
                let line = told.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap().trim().to_owned()
            };
            if field("role:") == "master" {
                sums.0 += field("used_memory_dataset:").parse::<u64>().unwrap();
                let seconds = |name| field(name).parse::<f64>().unwrap();
                let all = seconds("used_cpu_user:") + seconds("used_cpu_sys:");
                #[expect(clippy::cast_sign_loss, reason = "time that was used")]
                let micros = (all * 1e6) as u64;
                sums.1 += micros;
            }
        }
        sums
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.run("stop");
    }
}

fn place(articles: u64, workers: u64, batch: u64) {
    let folder = tempfile::tempdir().unwrap();
    let _nodes = Nodes::start(folder.path());
    let task = |worker| Task {
        folder: folder.path().to_owned(),
        kind: Kind::Place,
        articles,
        workers,
        worker,
        batch: batch as usize,
        killed: 0,
        paused: 0,
        documents: articles,
    };
    drop(task(0).open());
    let before = Nodes::used();
    let mut children: Vec<Child> = (0..workers).map(|worker| task(worker).start()).collect();
    for worker in 0..workers {
        while !task(worker).file("ready").exists() {
            sleep(Duration::from_millis(20));
        }
    }
    let begun = Instant::now();
    fs::write(folder.path().join("go"), "").unwrap();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = Nodes::used();
    let mut sums = [0_u64; 4];
    for worker in 0..workers {
        let told = fs::read_to_string(task(worker).file("told")).unwrap();
        for (sum, number) in sums.iter_mut().zip(told.split(' ')) {
            *sum += number.parse::<u64>().unwrap();
        }
    }
    let mut documents = 0_u64;
    let corpus = task(0).open();
    corpus
        .each_document(&mut |_| {
            documents += 1;
            Ok(())
        })
        .unwrap();
    let each = |sum: u64| sum as f64 / articles as f64;
    println!(
        "{articles} articles, {workers} workers, batches of {batch}: {:.0} articles/s, {:.2} round \
         trips, {:.1} commands, {:.0} bytes out and {:.0} in an article; nodes: {:.0} us an article, \
         {:.0} bytes a document ({documents} documents)",
        articles as f64 / seconds,
        each(sums[0]),
        each(sums[1]),
        each(sums[2]),
        each(sums[3]),
        each(after.1 - before.1),
        (after.0.saturating_sub(before.0)) as f64 / documents as f64,
    );
}

fn race(articles: u64, workers: u64, killed: u64, paused: u64) {
    let folder = tempfile::tempdir().unwrap();
    let _nodes = Nodes::start(folder.path());
    let task = |worker| Task {
        folder: folder.path().to_owned(),
        kind: Kind::Race,
        articles,
        workers,
        worker,
        batch: 8,
        killed,
        paused,
        documents: articles,
    };
    drop(task(0).open());
    fs::write(folder.path().join("go"), "").unwrap();
    let begun = Instant::now();
    let mut children: BTreeMap<u64, Child> =
        (0..workers).map(|worker| (worker, task(worker).start())).collect();
    let mut deaths = 0;
    while !children.is_empty() {
        let mut over = Vec::new();
        for (worker, child) in &mut children {
            match child.try_wait().unwrap() {
                Some(status) if status.success() => over.push(*worker),
                Some(_) => {
                    deaths += 1;
                    *child = task(*worker).start();
                }
                None => {}
            }
        }
        for worker in over {
            children.remove(&worker);
        }
        sleep(Duration::from_millis(5));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let slept: u64 = (0..workers)
        .map(|worker| fs::read(task(worker).file("pauses")).map_or(0, |bytes| bytes.len() as u64))
        .sum();
    // Whoever died last has left something pending.
    sleep(Duration::from_secs(1));
    let corpus = task(0).open();
    let count = |corpus: &SharedCorpus| {
        let (mut urls, mut texts, mut twice) = (BTreeSet::new(), BTreeMap::new(), 0);
        corpus
            .each_document(&mut |one| {
                for (url, _) in &one.copies {
                    twice += u64::from(!urls.insert(url.clone()));
                }
                *texts.entry(made::text_of(&one.document.canonical)).or_insert(0_u64) += 1;
                Ok(())
            })
            .unwrap();
        let double: u64 = texts.values().map(|documents| documents - 1).sum();
        (urls.len() as u64, twice, double)
    };
    let (_, _, before) = count(&corpus);
    let looked = corpus.look_again().unwrap();
    let (stored, twice, double) = count(&corpus);
    println!(
        "{articles} racing articles, {workers} workers, {deaths} killed, {slept} paused: {} lost, \
         {twice} in two documents, {before} double canonicals before the second look and {double} \
         after it ({} moved, {} merged), {seconds:.0} s",
        articles - stored,
        looked.moved,
        looked.merged,
    );
}

/// Kills this process, or has it sleep, at random steps.
struct Chance {
    state: AtomicU64,
    task: Task,
}

struct IsStep(bool);

impl Visit for IsStep {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let steps = ["announced", "looked", "posted", "written", "withdrawn", "locked", "decided"];
        self.0 |= field.name() == "message" && steps.contains(&format!("{value:?}").as_str());
    }
}

impl<S: Subscriber> Layer<S> for Chance {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut step = IsStep(false);
        event.record(&mut step);
        if !step.0 {
            return;
        }
        let mut next = self.state.load(Ordering::Relaxed);
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        self.state.store(next, Ordering::Relaxed);
        let Task { killed, paused, .. } = self.task;
        match next % 100 {
            hit if hit < killed => std::process::abort(),
            hit if hit < killed + paused => {
                let mut file = fs::File::options()
                    .create(true)
                    .append(true)
                    .open(self.task.file("pauses"))
                    .unwrap();
                std::io::Write::write_all(&mut file, b".").unwrap();
                sleep(Duration::from_millis(700));
            }
            _ => {}
        }
    }
}

fn work(task: &Task) {
    if task.killed + task.paused > 0 {
        let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let state = AtomicU64::new(seed.as_nanos() as u64 | 1);
        let layer = Chance { state, task: task.clone() };
        tracing::subscriber::set_global_default(Registry::default().with(layer)).unwrap();
    }
    let fingerprinter = Fingerprinter::default();
    let mine = (0..task.articles).filter(|number| number % task.workers == task.worker);
    let mut mine: Vec<u64> = mine.collect();
    // What was stored before this worker's predecessor died.
    let done = fs::read_to_string(task.file("done")).ok().and_then(|text| text.parse().ok());
    mine.drain(..done.unwrap_or(0_usize));
    let mut done = done.unwrap_or(0);
    let ready: Vec<_> = match task.kind {
        Kind::Place => mine.iter().map(|at| article(task.kind, *at, &fingerprinter)).collect(),
        Kind::Race => Vec::new(),
    };
    let mut corpus = task.open();
    let before = corpus.traffic();
    fs::write(task.file("ready"), "").unwrap();
    while !task.folder.join("go").exists() {
        sleep(Duration::from_millis(5));
    }
    for (at, numbers) in mine.chunks(task.batch).enumerate() {
        let made: Vec<_>;
        let articles = if ready.is_empty() {
            made = numbers.iter().map(|at| article(task.kind, *at, &fingerprinter)).collect();
            &made[..]
        } else {
            &ready[at * task.batch..][..numbers.len()]
        };
        let sent: Vec<SentArticle<'_>> =
            articles.iter().map(|article| SentArticle { article, links: 1 }).collect();
        corpus.place_all(&sent).unwrap();
        done += numbers.len();
        if task.kind == Kind::Race {
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
