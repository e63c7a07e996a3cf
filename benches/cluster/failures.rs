//! Each failure of nodes and workers in a loop, while workers place racing copies.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::cmd;

use crate::made::Kind;
use crate::nodes::{Nodes, connection, is_primary};
use crate::race::{Workers, count};
use crate::work::{SPAN, Task};

/// Articles of a loop: they are to last until the failure is over.
const ARTICLES: u64 = 6_000;
const WORKERS: u64 = 3;

/// Time until a node counts as failed.
const TIMEOUT: u64 = 1_500;

type Inject = fn(&Nodes, &mut Workers, u64);

const FAILURES: [(&str, Inject); 9] = [
    ("nothing", |_, _, _| ()),
    ("worker killed", kill_worker),
    ("worker paused beyond its deadline", pause_worker),
    ("primary killed", kill_primary),
    ("primary paused, comes back as replica", pause_primary),
    ("replica promoted with lost writes", lose_writes),
    ("cluster down for 3 s", pause_all),
    ("node full for 2 s", fill_node),
    ("clocks of workers 5 minutes apart", |_, _, _| ()),
];

/// Sums of all loops of a failure.
#[derive(Debug, Default)]
struct Sums {
    lost: u64,
    twice: u64,
    double: u64,
    /// After the check has mended what it found, and another second look.
    double_after: u64,
    mended: u64,
    left: u64,
    stall: Duration,
}

/// Prints a line of a table for each failure, or for one.
pub(crate) fn run(loops: u64, only: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let nodes = Nodes::start(folder.path(), true, TIMEOUT);
    println!(
        "| failure | times | acknowledged and lost | in two documents | double after the second \
         look | after `check --repair` and another | mended | left | longest stall |\n\
         |---|---|---|---|---|---|---|---|---|"
    );
    for (at, (name, inject)) in FAILURES.iter().enumerate() {
        if only.is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let mut sums = Sums::default();
        for number in 0..loops {
            let own = folder.path().join(format!("{at}-{number}"));
            fs::create_dir(&own).unwrap();
            once(&nodes, &own, *inject, (at, number), &mut sums);
            fs::remove_dir_all(&own).unwrap();
        }
        let Sums { lost, twice, double, double_after, mended, left, stall } = sums;
        println!(
            "| {name} | {loops} | {lost} | {twice} | {double} | {double_after} | {mended} | {left} \
             | {:.1} s |",
            stall.as_secs_f64()
        );
    }
}

fn once(nodes: &Nodes, folder: &Path, inject: Inject, (at, number): (usize, u64), sums: &mut Sums) {
    let mut task = Task::new(folder.to_owned(), Kind::Race, ARTICLES, WORKERS);
    (task.prefix, task.batch) = (format!("f{at}-{number}"), 4);
    if at + 1 == FAILURES.len() {
        task.clock = 300_000;
    }
    drop(task.open());
    fs::write(folder.join("go"), "").unwrap();
    let mut workers = Workers::start(&task);
    sleep(Duration::from_millis(700 + number * 137 % 900));
    let name = FAILURES[at].0;
    assert!(workers.follow(), "{name}: all is done before it fails: more articles are needed");
    inject(nodes, &mut workers, number);
    assert!(workers.follow(), "{name}: all is done before it is over: more articles are needed");
    while workers.follow() {
        sleep(Duration::from_millis(5));
    }
    let begun = Instant::now();
    while !nodes.is_whole() {
        assert!(begun.elapsed() < Duration::from_mins(2), "the cluster does not become whole");
        sleep(Duration::from_millis(200));
    }
    // Whoever died last has left something pending.
    sleep(SPAN * 2);
    let corpus = task.open();
    corpus.look_again().unwrap();
    let before = count(&corpus);
    let checked = corpus.check(true, &mut |_| ()).unwrap();
    corpus.look_again().unwrap();
    let after = count(&corpus);
    let left = corpus.check(false, &mut |_| ()).unwrap();
    sums.lost += ARTICLES.saturating_sub(after.stored);
    sums.twice += after.twice;
    sums.double += before.double;
    sums.double_after += after.double;
    sums.mended += checked.mended;
    sums.left += left.faults();
    for worker in 0..WORKERS {
        let told = fs::read_to_string(task.of(worker).file("stall")).unwrap();
        sums.stall = sums.stall.max(Duration::from_millis(told.parse().unwrap_or(0)));
    }
    eprintln!(
        "{name} {number}: {} stored, {} double, then {}; {:?}",
        after.stored,
        before.double,
        after.double,
        checked.by_kind().iter().filter(|(_, found)| *found > 0).collect::<Vec<_>>()
    );
}

fn signal(worker: &std::process::Child, signal: &str) {
    let status = Command::new("kill").arg(signal).arg(worker.id().to_string()).status().unwrap();
    assert!(status.success());
}

/// Kills one of the workers, again and again.
fn kill_worker(_: &Nodes, workers: &mut Workers, number: u64) {
    for _ in 0..3 {
        if let Some(child) = workers.running.get_mut(&(number % WORKERS)) {
            child.kill().unwrap();
        }
        sleep(Duration::from_millis(200));
        workers.follow();
        sleep(Duration::from_millis(400));
    }
}

fn pause_worker(_: &Nodes, workers: &mut Workers, number: u64) {
    for _ in 0..3 {
        workers.follow();
        let Some(child) = workers.running.get(&(number % WORKERS)) else { return };
        signal(child, "-STOP");
        sleep(SPAN * 3);
        signal(child, "-CONT");
        sleep(Duration::from_millis(300));
    }
}

fn primary(number: u64) -> usize {
    let primaries: Vec<usize> = (0..6).filter(|node| is_primary(*node)).collect();
    primaries[(number % primaries.len() as u64) as usize]
}

/// Has workers go on until another node has taken over.
fn wait_for_another(workers: &mut Workers, failed: usize) {
    let begun = Instant::now();
    let others = || (0..6).filter(|node| *node != failed);
    while others().filter(|node| is_primary(*node)).count() < 3 {
        workers.follow();
        assert!(begun.elapsed() < Duration::from_mins(1), "no replica takes over");
        sleep(Duration::from_millis(100));
    }
}

fn kill_primary(nodes: &Nodes, workers: &mut Workers, number: u64) {
    let node = primary(number);
    nodes.node("kill", node);
    wait_for_another(workers, node);
    nodes.node("revive", node);
}

fn pause_primary(nodes: &Nodes, workers: &mut Workers, number: u64) {
    let node = primary(number);
    nodes.node("pause", node);
    wait_for_another(workers, node);
    nodes.node("resume", node);
}

/// Cuts the replica of a primary off for a while, in which workers write, and kills the primary.
fn lose_writes(nodes: &Nodes, workers: &mut Workers, number: u64) {
    let node = primary(number);
    let mut cut = connection(node);
    cmd("ACL").arg(&["SETUSER", "default", "-psync", "-sync"]).exec(&mut cut).unwrap();
    cmd("CLIENT").arg(&["KILL", "TYPE", "replica"]).exec(&mut cut).unwrap();
    sleep(Duration::from_millis(700));
    kill_primary(nodes, workers, number);
}

fn pause_all(nodes: &Nodes, _: &mut Workers, _: u64) {
    (0..6).for_each(|node| nodes.node("pause", node));
    sleep(Duration::from_secs(3));
    (0..6).for_each(|node| nodes.node("resume", node));
}

fn fill_node(_: &Nodes, _: &mut Workers, number: u64) {
    let mut node = connection(primary(number));
    let mut limit = |bytes: &str| {
        cmd("CONFIG").arg(&["SET", "maxmemory", bytes]).exec(&mut node).unwrap();
    };
    limit("1mb");
    sleep(Duration::from_secs(2));
    limit("4gb");
}
