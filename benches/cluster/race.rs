//! Edited copies that come at the same time, from workers that die and sleep.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use uniqcrawl::corpus::shared::SharedCorpus;

use crate::made::{self, Kind};
use crate::nodes::Nodes;
use crate::work::Task;

/// What is there of racing copies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    /// URLs.
    pub stored: u64,
    /// URLs that are in two documents.
    pub twice: u64,
    /// Documents of a text beyond the first.
    pub double: u64,
}

pub(crate) fn count(corpus: &SharedCorpus) -> Counted {
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
    Counted { stored: urls.len() as u64, twice, double }
}

/// Workers, each of which is followed by another one if it dies.
pub(crate) struct Workers {
    pub task: Task,
    pub running: BTreeMap<u64, Child>,
    pub deaths: u64,
}

impl Workers {
    pub(crate) fn start(task: &Task) -> Self {
        let running = (0..task.workers).map(|worker| (worker, task.of(worker).start())).collect();
        Self { task: task.clone(), running, deaths: 0 }
    }

    /// Starts those again that have died. Tells whether some are left.
    pub(crate) fn follow(&mut self) -> bool {
        let mut over = Vec::new();
        for (worker, child) in &mut self.running {
            match child.try_wait().unwrap() {
                Some(status) if status.success() => over.push(*worker),
                Some(_) => {
                    self.deaths += 1;
                    *child = self.task.of(*worker).start();
                }
                None => {}
            }
        }
        for worker in over {
            self.running.remove(&worker);
        }
        !self.running.is_empty()
    }
}

pub(crate) fn race(articles: u64, workers: u64, killed: u64, paused: u64) {
    let folder = tempfile::tempdir().unwrap();
    let _nodes = Nodes::start(folder.path(), true, 15_000);
    let mut task = Task::new(folder.path().to_owned(), Kind::Race, articles, workers);
    (task.killed, task.paused) = (killed, paused);
    drop(task.open());
    fs::write(folder.path().join("go"), "").unwrap();
    let begun = Instant::now();
    let mut running = Workers::start(&task);
    while running.follow() {
        sleep(Duration::from_millis(5));
    }
    let (seconds, deaths) = (begun.elapsed().as_secs_f64(), running.deaths);
    let slept: u64 = (0..workers)
        .map(|worker| fs::read(task.of(worker).file("pauses")).map_or(0, |b| b.len() as u64))
        .sum();
    // Whoever died last has left something pending.
    sleep(Duration::from_secs(1));
    let corpus = task.open();
    let before = count(&corpus).double;
    let looked = corpus.look_again().unwrap();
    let Counted { stored, twice, double } = count(&corpus);
    println!(
        "{articles} racing articles, {workers} workers, {deaths} killed, {slept} paused: {} lost, \
         {twice} in two documents, {before} double canonicals before the second look and {double} \
         after it ({} moved, {} merged), {seconds:.0} s",
        articles - stored,
        looked.moved,
        looked.merged,
    );
    let checked = corpus.check(true, &mut |_| ()).unwrap();
    for (words, found) in checked.by_kind() {
        println!("  check: {found} {words}");
    }
    let again = corpus.check(false, &mut |_| ()).unwrap();
    println!("  {} mended, {} left", checked.mended, again.faults());
}
