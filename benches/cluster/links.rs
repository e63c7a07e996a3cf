//! Links that go from shard to shard through streams: how many a second, and what one costs.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::cmd;
use uniqcrawl::cluster::{Engine, LinksTo, ReadFrom, Settings, ShardLease, Taken};
use uniqcrawl::frontier::SentLink;
use uniqcrawl::store::Row as _;
use uniqcrawl::urls::PageUrl;

use crate::nodes::{Nodes, Used, port, primaries};

const SENDERS: u64 = 2;
const TAKERS: u64 = 2;

/// Links that wait for a shard at most: senders wait then, as those of a crawl do.
const MOST: u64 = 100_000;

/// Links that are read together, as a worker does.
const TOGETHER: usize = 1_000;

/// What a process is told: folder, number of the process, links of it, shards, links of a batch.
struct Task {
    folder: PathBuf,
    number: u64,
    links: u64,
    shards: u32,
    batch: u64,
}

fn engine() -> Engine {
    let url = format!("redis://127.0.0.1:{},127.0.0.1:{}/links", port(), port() + 1);
    Engine::connect(&Settings::parse(&url).unwrap()).unwrap()
}

impl Task {
    fn start(&self, kind: &str) -> Child {
        let numbers = [self.number, self.links, self.shards.into(), self.batch];
        Command::new(std::env::current_exe().unwrap())
            .args([kind, &self.folder.display().to_string()])
            .args(numbers.map(|number| number.to_string()))
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn read(words: &[String]) -> Self {
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let folder = PathBuf::from(&words[0]);
        let (links, shards, batch) = (number(2), number(3) as u32, number(4));
        Self { folder, number: number(1), links, shards, batch }
    }

    /// Waits until all begin together, and notes in the end what went to the cluster.
    fn work(&self, kind: &str, work: impl FnOnce(&mut Engine)) {
        let mut engine = engine();
        let before = engine.traffic();
        let name = format!("{kind}-{}", self.number);
        fs::write(self.folder.join(format!("{name}-ready")), "").unwrap();
        while !self.folder.join("go").exists() {
            sleep(Duration::from_millis(2));
        }
        work(&mut engine);
        let traffic = engine.traffic();
        let told = [
            traffic.round_trips - before.round_trips,
            traffic.sent - before.sent,
            traffic.received - before.received,
        ];
        fs::write(self.folder.join(name), told.map(|number| number.to_string()).join(" ")).unwrap();
    }
}

/// Sends links, a batch to all shards at a time.
pub(crate) fn send(words: &[String]) {
    let task = Task::read(words);
    task.work("links-send", |engine| {
        let mut next = 0;
        while next < task.links {
            let mut all: Vec<LinksTo> =
                (0..task.shards).map(|shard| LinksTo { shard, links: Vec::new() }).collect();
            let end = task.links.min(next + task.batch);
            for link in next..end {
                let site = (link * 2_654_435_761 + task.number) % 1_000_003;
                let url = format!("https://www.site{site}.example/articles/2026/{link}.html");
                let page = SentLink::seed(&PageUrl::parse(&url).unwrap());
                let from = format!("https://www.other{}.example/2026/{link}", link % 997);
                let shard = site as usize % task.shards as usize;
                all[shard].links.push(SentLink { from, ..page }.encode().into_owned());
            }
            all.retain(|to| !to.links.is_empty());
            while !all.is_empty() {
                let mut sent = engine.send_links(&all, MOST).unwrap().into_iter();
                all.retain(|_| !sent.next().unwrap());
                if !all.is_empty() {
                    sleep(Duration::from_millis(20));
                }
            }
            next = end;
        }
    });
}

/// Takes links of its share of the shards, and removes them from their streams.
pub(crate) fn take(words: &[String]) {
    let task = Task::read(words);
    task.work("links-take", |engine| {
        let own = (0..task.shards).filter(|shard| u64::from(*shard) % TAKERS == task.number);
        let worker = format!("taker-{}", task.number);
        let mut leases: Vec<(ShardLease, String)> = Vec::new();
        for shard in own {
            match engine.take_shard(shard, &worker, Duration::from_hours(1)).unwrap() {
                Taken::Got { lease, .. } => leases.push((lease, "0".to_owned())),
                Taken::HeldBy(other) => panic!("{shard} is held by {other}"),
            }
        }
        // Senders have ended, and nothing came since.
        let mut is_last = false;
        loop {
            let from: Vec<ReadFrom> = leases
                .iter()
                .map(|(lease, last)| ReadFrom { shard: lease.shard, last: last.clone() })
                .collect();
            let mut came = false;
            for ((lease, last), read) in
                leases.iter_mut().zip(engine.read_links(&from, TOGETHER).unwrap())
            {
                if let Some(until) = read.last {
                    assert!(engine.trim_links(*lease, &worker, &until).unwrap());
                    *last = until;
                    came = true;
                }
            }
            if !came && is_last {
                return;
            }
            is_last = !came && task.folder.join("sent").exists();
            if !came {
                sleep(Duration::from_millis(5));
            }
        }
    });
}

/// Tells links a second, round trips, bytes, time of the primaries and memory of those that wait.
pub(crate) fn links(links: u64, shards: u32, batch: u64) {
    let folder = tempfile::tempdir().unwrap();
    let _nodes = Nodes::start(folder.path(), true, 15_000);
    drop(engine());
    let task = |number| Task {
        folder: folder.path().to_owned(),
        number,
        links: links / SENDERS,
        shards,
        batch,
    };
    // What waits, without takers.
    let empty = Used::now();
    let few = Task { links: links.min(50_000), ..task(SENDERS) };
    fs::write(folder.path().join("go"), "").unwrap();
    assert!(few.start("links-send").wait().unwrap().success());
    fs::remove_file(folder.path().join("go")).unwrap();
    let memory = Used::now().memory.saturating_sub(empty.memory) as f64 / few.links as f64;
    for node in &mut primaries() {
        cmd("FLUSHALL").exec(node).unwrap();
    }
    let mut senders: Vec<Child> =
        (0..SENDERS).map(|number| task(number).start("links-send")).collect();
    let mut takers: Vec<Child> =
        (0..TAKERS).map(|number| task(number).start("links-take")).collect();
    let names = (0..SENDERS)
        .map(|number| format!("links-send-{number}"))
        .chain((0..TAKERS).map(|number| format!("links-take-{number}")));
    let names: Vec<String> = names.collect();
    while names.iter().any(|name| !folder.path().join(format!("{name}-ready")).exists()) {
        sleep(Duration::from_millis(20));
    }
    let before = Used::now();
    let begun = Instant::now();
    fs::write(folder.path().join("go"), "").unwrap();
    for sender in &mut senders {
        assert!(sender.wait().unwrap().success());
    }
    fs::write(folder.path().join("sent"), "").unwrap();
    for taker in &mut takers {
        assert!(taker.wait().unwrap().success());
    }
    let seconds = begun.elapsed().as_secs_f64();
    let micros = Used::now().micros - before.micros;
    let mut sums = [0_u64; 3];
    for name in &names {
        let told = fs::read_to_string(folder.path().join(name)).unwrap();
        for (sum, number) in sums.iter_mut().zip(told.split(' ')) {
            *sum += number.parse::<u64>().unwrap();
        }
    }
    let each = |sum: u64| sum as f64 / links as f64;
    println!(
        "{links} links, {SENDERS} senders, {TAKERS} takers, {shards} shards, batches of {batch}: \
         {:.0} links/s, {:.4} round trips, {:.0} bytes out and {:.0} in a link; nodes: {:.2} us a \
         link, {memory:.0} bytes a link that waits",
        links as f64 / seconds,
        each(sums[0]),
        each(sums[1]),
        each(sums[2]),
        each(micros),
    );
}
