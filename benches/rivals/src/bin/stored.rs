//! The index of a store alone, of contents with random keys: how many are added a second as it
//! grows, how long a look-up takes, memory, bytes written for each content, and the time to open
//! it again. Usage: stored N FOLDER [CACHE_MIB]

use std::fs;
use std::path::Path;
use std::time::Instant;

use uniqcrawl::corpus::index::Index;
use uniqcrawl::neardup::Config;
use uniqcrawl::store::Store;
use uniqcrawl::text::features::{ArticleKeys, KindHashes, Standing, TextKeys};
use uniqcrawl::text::simhash::Fingerprint;
use uniqcrawl::text::sketch::{Sketch, mix};

/// Contents in one commit, as a crawl at full speed has them.
const BATCH: u64 = 256;

/// Look-ups of each kind at each size.
const LOOKUPS: u64 = 2_000;

/// A number of `/proc/self`.
fn kernel(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/{file}")).expect("this runs on Linux");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel tells it");
    let number = line.split_whitespace().next().and_then(|number| number.parse().ok());
    number.expect("a number")
}

fn random(content: u64, what: u64) -> u64 {
    mix(content.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ mix(what))
}

/// Keys of a text that has nothing in common with others.
fn keys(content: u64) -> ArticleKeys {
    let mut bytes = [0; 384];
    for (at, eight) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *eight = random(content, 100 + at as u64).to_be_bytes();
    }
    let (slots, seconds) = bytes.split_at(256);
    let sketch = Sketch {
        slots: Box::new(slots.try_into().expect("so many")),
        seconds: Some(Box::new(seconds.try_into().expect("so many"))),
    };
    let text = TextKeys {
        hash: u128::from(random(content, 3)) << 64 | u128::from(content),
        fingerprint: Fingerprint(random(content, 1)),
        sketch,
        shingles: 200,
        words: 200,
        sentences: (0..8).map(|at| random(content, 10 + at) as u32).collect(),
        others: KindHashes::default(),
    };
    let title = Some(Fingerprint(random(content, 2)));
    ArticleKeys { text, title, standing: Standing::default() }
}

/// Look-ups of new texts, or of texts that are there: milliseconds of the median and of 99 of 100,
/// and how many were found.
fn look(index: &Index, store: &Store, texts: impl Iterator<Item = u64>) -> (f64, f64, usize) {
    let snapshot = store.snapshot().expect("tables");
    let mut found = 0;
    let mut times: Vec<f64> = texts
        .map(|content| {
            let keys = keys(content);
            let started = Instant::now();
            let candidates = index.candidates(&snapshot, &keys).expect("sound blocks");
            let time = started.elapsed().as_secs_f64() * 1e3;
            found += usize::from(candidates.iter().any(|other| other.content == content));
            time
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100], found)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().and_then(|n| n.parse().ok()).expect("stored N FOLDER");
    let folder = arguments.next().expect("stored N FOLDER");
    let cache = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(256_usize);
    let config = Config::default();
    let started = Instant::now();
    let store = Store::open_or_create(Path::new(&folder), cache << 20).expect("a store");
    let mut index = Index::open(&store, &config).expect("an index");
    println!("opened in {:.3} s", started.elapsed().as_secs_f64());
    let first = fs::metadata(store.path()).map_or(0, |file| file.len());
    println!("contents  added/s  look-up ms p50 p99  of known p50 p99  slowest commit ms  RSS MiB");
    let (mut next, mut goal, before) = (1, (count / 100).max(1), kernel("io", "write_bytes: "));
    while next <= count {
        let started = Instant::now();
        let (from, mut slowest) = (next, 0_f64);
        while next <= goal.min(count) {
            let commit = Instant::now();
            let mut batch = store.begin().expect("one writer");
            for content in next..(next + BATCH).min(goal.min(count) + 1) {
                index.insert(&mut batch, content, &keys(content));
                next += 1;
            }
            index.merge_some(&mut batch).expect("sound blocks");
            batch.commit().expect("room");
            index.committed();
            slowest = slowest.max(commit.elapsed().as_secs_f64() * 1e3);
        }
        let rate = (next - from) as f64 / started.elapsed().as_secs_f64();
        let new = look(&index, &store, (0..LOOKUPS).map(|at| u64::MAX - at));
        let step = (next / LOOKUPS).max(1);
        let known = look(&index, &store, (0..LOOKUPS).map(|at| 1 + at * step % (next - 1)));
        assert_eq!(known.2 as u64, LOOKUPS, "every content is found");
        let memory = kernel("status", "VmRSS:") / 1024;
        println!(
            "{:>10} {rate:>8.0} {:>8.3} {:>7.3} {:>8.3} {:>7.3} {slowest:>9.1} {memory:>7}",
            next - 1,
            new.0,
            new.1,
            known.0,
            known.1
        );
        goal *= 2;
        if goal > count / 2 && goal < count {
            goal = count;
        }
    }
    let mut batch = store.begin().expect("one writer");
    index.flush(&mut batch).expect("sound blocks");
    batch.commit().expect("room");
    index.committed();
    let bytes = (kernel("io", "write_bytes: ") - before) as f64 / count as f64;
    let size = fs::metadata(store.path()).map_or(0, |file| file.len());
    let file = (size - first) as f64 / count as f64;
    println!("{bytes:.0} bytes written for each, {file:.0} in the file");
    drop((index, store));
    let started = Instant::now();
    let store = Store::open_or_create(Path::new(&folder), cache << 20).expect("a store");
    let index = Index::open(&store, &config).expect("an index");
    let opened = started.elapsed().as_secs_f64();
    let known = look(&index, &store, 1..2);
    println!("opened again in {opened:.3} s, first look-up {:.3} ms", known.0);
}
