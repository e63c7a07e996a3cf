//! Look-ups in every index layout, in plain hash tables and in the crate `gaoya`, on one core.
//! Usage: index [N...]; an N may be followed by `:rotated,linear` to measure these layouts only.
//!
//! Random fingerprints and random queries: nearly all look-ups find nothing, as in a crawl. Each
//! figure is the best of up to 200 short rounds, and stands beside the linear scan of the same run. Recall
//! counts 500 fingerprints that were stored and are asked for with exactly k bits flipped.

use std::alloc::{GlobalAlloc, System};
use std::collections::{HashMap, HashSet};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use gaoya::simhash::SimHashIndex;
use uniqcrawl::neardup::index::layout::{Layout, LayoutKind, Near, build};
use uniqcrawl::text::simhash::Fingerprint;

/// Neighbours that are planted and looked for.
const PLANTED: usize = 500;

/// Seconds of one round.
const SHORT: f64 = 0.004;

/// Seconds of all rounds of one figure, the best of which counts.
const TOTAL: f64 = 0.8;

/// A generator (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn flipped(&mut self, word: u64, count: u32) -> u64 {
        let mut mask = 0u64;
        while mask.count_ones() < count {
            mask |= 1 << (self.next() % 64);
        }
        word ^ mask
    }
}

/// What is measured: filled once, asked often.
trait Index {
    /// Returns how many entries are within `k` bits and whether `number` is one of them.
    fn ask(&self, query: u64, k: u32, number: u32) -> (usize, bool);
    /// Asks for many queries at once, if the index can, and returns how many entries are near.
    fn ask_all(&self, _: &[u64], _: u32) -> Option<usize> {
        None
    }
}

struct Ours(Box<dyn Layout>);

impl Index for Ours {
    fn ask(&self, query: u64, k: u32, number: u32) -> (usize, bool) {
        thread_local!(static FOUND: std::cell::RefCell<Vec<Near>> = const { std::cell::RefCell::new(Vec::new()) });
        FOUND.with_borrow_mut(|found| {
            found.clear();
            self.0.probe(Fingerprint(query), k, found);
            (found.len(), found.iter().any(|near| near.number == number))
        })
    }

    fn ask_all(&self, queries: &[u64], k: u32) -> Option<usize> {
        let queries: Vec<Fingerprint> = queries.iter().copied().map(Fingerprint).collect();
        let mut found = Vec::new();
        self.0.probe_all(&queries, k, &mut found);
        Some(found.len())
    }
}

/// What one writes first: four hash tables from block to entries.
struct Maps([HashMap<u16, Vec<(u64, u32)>>; 4]);

fn block(word: u64, table: usize) -> u16 {
    (word >> (16 * table)) as u16
}

impl Index for Maps {
    fn ask(&self, query: u64, k: u32, number: u32) -> (usize, bool) {
        let mut found = HashSet::new();
        for (table, map) in self.0.iter().enumerate() {
            let rows = map.get(&block(query, table)).into_iter().flatten();
            let near = rows.filter(|(word, _)| (word ^ query).count_ones() <= k);
            found.extend(near.map(|(_, number)| *number));
        }
        (found.len(), found.contains(&number))
    }
}

struct Gaoya(SimHashIndex<u64, u32>);

impl Index for Gaoya {
    fn ask(&self, query: u64, _: u32, number: u32) -> (usize, bool) {
        let found = self.0.query(&query);
        (found.len(), found.contains(&number))
    }
}

/// Counts the bytes that are allocated.
struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: std::alloc::Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the same contract.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Bench {
    entries: Vec<(Fingerprint, u32)>,
    /// Nanoseconds of the linear scan.
    scan: f64,
}

impl Bench {
    /// Prints one row for each `k`.
    fn row(&mut self, name: &str, ks: &[u32], make: impl FnOnce(&[(Fingerprint, u32)]) -> Box<dyn Index>) {
        let before = BYTES.load(Ordering::Relaxed);
        let started = Instant::now();
        let index = make(&self.entries);
        let rate = self.entries.len() as f64 / started.elapsed().as_secs_f64() / 1e6;
        let bytes = BYTES.load(Ordering::Relaxed) - before;
        let bytes = bytes as f64 / self.entries.len() as f64;
        for k in ks {
            let recall = self.recall(&*index, *k);
            let nanos = time(&|queries| queries.iter().map(|query| index.ask(*query, *k, 0).0).sum());
            if name == "linear" {
                self.scan = nanos;
            }
            let batch = (name == "rotated").then(|| {
                time(&|queries| queries.chunks(256).filter_map(|queries| index.ask_all(queries, *k)).sum())
            });
            let batch = batch.map(|nanos| format!("{nanos:.0}")).unwrap_or_default();
            println!(
                "| {:.0e} | {name} | {k} | {nanos:.0} | {batch} | {:.5} | {:.0} | {bytes:.1} | {rate:.2} | {recall}/{PLANTED} |",
                self.entries.len() as f64,
                nanos / self.scan,
                self.scan / nanos,
            );
        }
    }

    fn recall(&self, index: &dyn Index, k: u32) -> usize {
        let mut random = Random(99);
        let step = (self.entries.len() / PLANTED).max(1);
        let planted = self.entries.iter().step_by(step).take(PLANTED);
        planted.filter(|(word, number)| index.ask(random.flipped(word.0, k), k, *number).1).count()
    }
}

/// Nanoseconds of a look-up of a random fingerprint: the best round.
fn time(ask: &dyn Fn(&[u64]) -> usize) -> f64 {
    let mut random = Random(0xABCD);
    let mut queries = |count: usize| -> Vec<u64> { (0..count).map(|_| random.next()).collect() };
    let round = |queries: &[u64]| {
        let started = Instant::now();
        black_box(ask(queries));
        started.elapsed().as_secs_f64() / queries.len() as f64
    };
    // Rounds so short that some of them are not disturbed by other work on the machine.
    let guess = round(&queries(8)).max(2e-8);
    let count = ((SHORT / guess) as usize).max(4);
    let rounds = ((TOTAL / (guess * count as f64)) as usize).clamp(5, 200);
    let best = (0..rounds).map(|_| round(&queries(count))).fold(f64::MAX, f64::min);
    best * 1e9
}

fn filled(kind: LayoutKind, k: u32, entries: &[(Fingerprint, u32)]) -> Box<dyn Index> {
    let mut layout = build(kind, k).expect("the layout goes that far");
    layout.insert_all(entries);
    Box::new(Ours(layout))
}

fn gaoya(blocks: usize, distance: usize, entries: &[(Fingerprint, u32)]) -> Box<dyn Index> {
    let mut index = SimHashIndex::new(blocks, distance);
    entries.iter().for_each(|(word, number)| index.insert(*number, word.0));
    Box::new(Gaoya(index))
}

fn maps(entries: &[(Fingerprint, u32)]) -> Box<dyn Index> {
    let mut maps: [HashMap<u16, Vec<(u64, u32)>>; 4] = Default::default();
    for (table, map) in maps.iter_mut().enumerate() {
        entries.iter().for_each(|(word, number)| {
            map.entry(block(word.0, table)).or_default().push((word.0, *number));
        });
    }
    Box::new(Maps(maps))
}

fn measure(count: usize, only: Option<&str>) {
    let wanted = |name: &str| only.is_none_or(|only| only.split(',').any(|one| one == name));
    let mut random = Random(1);
    let entries = (0..count as u32).map(|number| (Fingerprint(random.next()), number)).collect();
    let mut bench = Bench { entries, scan: f64::NAN };
    bench.row("linear", &[3], |entries| filled(LayoutKind::Linear, 3, entries));
    if wanted("rotated") {
        bench.row("rotated", &[3, 7, 11], |entries| filled(LayoutKind::Rotated, 11, entries));
    }
    for kind in [LayoutKind::Pairs, LayoutKind::TwoLevel, LayoutKind::QueryExpansion] {
        if wanted(kind.name()) {
            bench.row(kind.name(), &[3], |entries| filled(kind, 3, entries));
        }
    }
    if wanted("expanded") && count <= 100_000 {
        bench.row("expanded", &[1], |entries| filled(LayoutKind::Expanded, 1, entries));
        bench.row("expanded", &[2], |entries| filled(LayoutKind::Expanded, 2, entries));
    }
    if wanted("hash-maps") {
        bench.row("4 x HashMap<u16, Vec<(u64, u32)>>", &[3], maps);
    }
    if wanted("gaoya") {
        bench.row("gaoya (4, 3)", &[3], |entries| gaoya(4, 3, entries));
        // It compares with <, so that this is what finds three bits.
        bench.row("gaoya (5, 4)", &[3], |entries| gaoya(5, 4, entries));
    }
}

fn main() {
    println!("| entries | index | k | ns/look-up | 256 at once | share of scan | times faster | B/entry | M inserts/s | recall |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    for argument in arguments {
        let (count, only) = argument.split_once(':').map_or((&*argument, None), |(count, only)| (count, Some(only)));
        let count: f64 = count.parse().expect("a number of fingerprints, such as 1e6");
        measure(count as usize, only);
    }
}
