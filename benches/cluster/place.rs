//! Articles a second, and what they cost.

use std::fs;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::made::Kind;
use crate::nodes::{Nodes, Used};
use crate::work::Task;
use crate::{fill, memory};

pub(crate) fn place(articles: u64, workers: u64, batch: u64, filled: u64) {
    let folder = tempfile::tempdir().unwrap();
    let _nodes = Nodes::start(folder.path(), filled == 0, 15_000);
    let mut all = Task::new(folder.path().to_owned(), Kind::Place, articles, workers);
    all.batch = batch as usize;
    drop(all.open());
    let empty = Used::now();
    if filled > 0 {
        let begun = Instant::now();
        fill::fill(&all, filled);
        let memory = Used::now().memory - empty.memory;
        println!(
            "{filled} made documents in {:.0} s: {:.0} bytes each, on six primaries",
            begun.elapsed().as_secs_f64(),
            memory as f64 / filled as f64,
        );
    }
    let mut children: Vec<Child> = (0..workers).map(|worker| all.of(worker).start()).collect();
    for worker in 0..workers {
        while !all.of(worker).file("ready").exists() {
            sleep(Duration::from_millis(20));
        }
    }
    let before = Used::now();
    let begun = Instant::now();
    fs::write(folder.path().join("go"), "").unwrap();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = Used::now();
    let mut sums = [0_u64; 4];
    for worker in 0..workers {
        let told = fs::read_to_string(all.of(worker).file("told")).unwrap();
        for (sum, number) in sums.iter_mut().zip(told.split(' ')) {
            *sum += number.parse::<u64>().unwrap();
        }
    }
    let mut documents = 0_u64;
    let corpus = all.open();
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
        each(after.micros - before.micros),
        (after.memory.saturating_sub(before.memory)) as f64 / documents as f64,
    );
    if filled == 0 {
        memory::report(documents);
    }
}
