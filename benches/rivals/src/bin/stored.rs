//! The index of a store alone, of contents with random keys: how many are added a second as it
//! grows, how long a look-up takes, memory, bytes written for each content, and the time to open
//! it again. Exits with 1 if a goal is missed. Usage: stored N FOLDER [CACHE_MIB]

use std::fs;
use std::path::Path;
use std::time::Instant;

use uniqcrawl::corpus::index::Index;
use uniqcrawl::neardup::{Config, Resemblance};
use uniqcrawl::store::Store;
use uniqcrawl::text::features::{ArticleKeys, KindHashes, Standing, TextKeys};
use uniqcrawl::text::simhash::Fingerprint;
use uniqcrawl::text::sketch::{Sketch, mix};

/// Contents in one commit, as a crawl at full speed has them.
const BATCH: u64 = 256;

/// Look-ups of each kind at each size.
const LOOKUPS: u64 = 2_000;

/// Texts that are looked up together.
const TOGETHER: usize = 256;

/// Goals at every size: milliseconds of 99 of 100 look-ups, MiB of memory, seconds to open.
const GOALS: (f64, u64, f64) = (5.0, 1_024, 2.0);

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

/// Looks up new texts together, as many as a crawl does at most: milliseconds for each.
fn look_together(index: &Index, store: &Store) -> f64 {
    let (snapshot, older) = (store.snapshot().expect("tables"), index.older());
    let new: Vec<ArticleKeys> = (0..LOOKUPS).map(|at| keys(u64::MAX / 4 - at)).collect();
    let started = Instant::now();
    for some in new.chunks(TOGETHER) {
        let some: Vec<&ArticleKeys> = some.iter().collect();
        let found = older.look_up_new(&snapshot, &some, 1, |_, _| Ok(Some(Resemblance::Chance)));
        assert_eq!(found.expect("sound blocks").len(), some.len());
    }
    started.elapsed().as_secs_f64() * 1e3 / LOOKUPS as f64
}

/// Adds contents up to `last`. Returns how many a second, and the milliseconds of the slowest commit.
fn grow(store: &Store, index: &mut Index, from: u64, last: u64) -> (f64, f64) {
    let (started, mut next, mut slowest) = (Instant::now(), from, 0_f64);
    while next <= last {
        let commit = Instant::now();
        let mut batch = store.begin().expect("one writer");
        let end = (next + BATCH).min(last + 1);
        for content in next..end {
            index.insert(&mut batch, content, &keys(content));
        }
        next = end;
        index.merge_some(&mut batch).expect("sound blocks");
        batch.commit().expect("room");
        index.committed();
        slowest = slowest.max(commit.elapsed().as_secs_f64() * 1e3);
    }
    ((next - from) as f64 / started.elapsed().as_secs_f64(), slowest)
}

/// Opens the store with its index. Returns both, and the seconds that it took.
fn open(folder: &str, cache_bytes: usize) -> (Store, Index, f64) {
    let started = Instant::now();
    let store = Store::open_or_create(Path::new(folder), cache_bytes).expect("a store");
    let index = Index::open(&store, &Config::default()).expect("an index");
    (store, index, started.elapsed().as_secs_f64())
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().and_then(|n| n.parse().ok()).expect("stored N FOLDER");
    let folder = arguments.next().expect("stored N FOLDER");
    let cache = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(128_usize) << 20;
    let (mut store, mut index, _) = open(&folder, cache);
    println!(
        "contents added/s look-up_p50_ms look-up_p99_ms together_ms known_p50_ms known_p99_ms \
         slowest_commit_ms rss_mib written_bytes_each file_bytes_each open_ms"
    );
    let (mut next, mut goal, before) = (1, (count / 128).max(1), kernel("io", "write_bytes: "));
    let mut missed = false;
    while next <= count {
        let (rate, slowest) = grow(&store, &mut index, next, goal);
        next = goal + 1;
        // A crawl looks up whatever it adds, so that the caches are filled.
        look(&index, &store, (0..2 * LOOKUPS).map(|at| u64::MAX / 2 - at));
        let new = look(&index, &store, (0..LOOKUPS).map(|at| u64::MAX - at));
        let together = look_together(&index, &store);
        let step = (next / LOOKUPS).max(1);
        let known = look(&index, &store, (0..LOOKUPS).map(|at| 1 + at * step % (next - 1)));
        assert_eq!(known.2 as u64, LOOKUPS, "every content is found");
        let memory = kernel("status", "VmRSS:") / 1024;
        let written = (kernel("io", "write_bytes: ") - before) / goal;
        // What is in memory comes into the store, as at the end of a crawl.
        let mut batch = store.begin().expect("one writer");
        index.flush(&mut batch).expect("sound blocks");
        batch.commit().expect("room");
        index.committed();
        let size = fs::metadata(store.path()).map_or(0, |file| file.len()) / goal;
        drop((index, store));
        let opened;
        (store, index, opened) = open(&folder, cache);
        println!(
            "{goal} {rate:.0} {:.3} {:.3} {together:.3} {:.3} {:.3} {slowest:.1} {memory} {written} {size} {:.1}",
            new.0,
            new.1,
            known.0,
            known.1,
            opened * 1e3
        );
        missed |= new.1.max(known.1) > GOALS.0 || memory > GOALS.1 || opened > GOALS.2;
        goal = if goal < count && goal * 2 > count { count } else { goal * 2 };
    }
    if missed {
        println!("above a goal: p99 of {} ms, {} MiB, {} s to open", GOALS.0, GOALS.1, GOALS.2);
        std::process::exit(1);
    }
}
