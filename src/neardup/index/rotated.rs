//! The default layout: four tables by 16-bit block, 28 bytes a fingerprint, exact to 11 bits.
//!
//! A fingerprint has four blocks of 16 bits. Let the blocks have thresholds that add up, each
//! plus one, to `k + 1`. If every block differed in more bits than its threshold, all of them
//! together would differ in `k + 1` or more; so some block stays within its threshold, and it is
//! enough to look up, in the table of each block, all keys within the threshold of that block.
//! Four times 0 makes `k = 3` with 4 probes, four times 1 makes 7 with 68 (16 neighbours of each
//! key), four times 2 makes 11 with 548; a `k` between needs fewer, and below 3 some tables none.
//!
//! Entries are added to a short list that is scanned, which becomes a packed part when it is
//! full; parts are joined so that each is at least eight times as large as the next.
//!
//! Sources: Manku et al., "Detecting Near-Duplicates for Web Crawling", WWW 2007 (tables by
//! block); Norouzi et al., "Fast Search in Hamming Space with Multi-Index Hashing", CVPR 2012
//! (neighbours of a key); Qin et al., "GPH: Similarity Search in Hamming Space", ICDE 2018
//! (thresholds of different size).

use std::sync::LazyLock;
use std::thread;

use super::layout::{Layout, Near, insert_each};
use super::linear::Linear;
use super::packed::{PackedPart, THREADS_MIN};
use super::simd::{self, Level, Probe, RowHit, Sweep};
use crate::text::simhash::Fingerprint;

/// Largest distance: a threshold of two bits for each of the four blocks.
pub const K_MAX: u32 = 11;

/// Entries of the list before it is packed: what fits beside other things in the fastest cache.
const TAIL: usize = 4_096;

/// A part is at least this many times as large as the next one.
const GROWTH: usize = 8;

/// Probes for each `k`.
static PLANS: LazyLock<[Vec<Probe>; K_MAX as usize + 1]> =
    LazyLock::new(|| std::array::from_fn(|k| plan(k as u32)));

/// Returns for `k` how many bits of each block may differ, plus one; 0 if the table is not used.
fn thresholds(k: u32) -> [u32; 4] {
    [0, 1, 2, 3].map(|table| (k + 4 - table) / 4)
}

/// Returns by which bits the first 16 of a rotation may differ for fingerprints within `k` bits, at
/// most [`K_MAX`], to be found by it; none if others find them all.
pub(crate) fn key_flips(k: u32, rotation: u8) -> impl Iterator<Item = u16> {
    let probes = PLANS[k as usize].iter();
    probes.filter(move |probe| probe.table == rotation).map(|probe| probe.flips)
}

fn plan(k: u32) -> Vec<Probe> {
    let mut probes = Vec::new();
    for (table, threshold) in (0u8..).zip(thresholds(k)) {
        let keys = (0..=u16::MAX).filter(|flips| flips.count_ones() < threshold);
        probes.extend(keys.map(|flips| Probe { table, flips }));
    }
    probes
}

/// The rotated tables.
#[derive(Debug, Clone, Default)]
pub struct Rotated {
    /// Large to small.
    parts: Vec<PackedPart>,
    tail: Linear,
    level: Level,
}

impl Rotated {
    /// Makes an empty index that uses the best instructions of this processor.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty index that uses the instructions of `level`.
    #[must_use]
    pub fn with_level(level: Level) -> Self {
        Self { parts: Vec::new(), tail: Linear::with_level(level), level }
    }

    /// Packs all entries into one part. Look-ups are fastest then; otherwise up to about
    /// `log8(n / 4,096)` parts are asked.
    pub fn pack(&mut self) {
        self.flush(Vec::new());
        while self.parts.len() > 1 {
            let (small, large) = (self.parts.pop(), self.parts.pop());
            self.parts.extend(large.zip(small).map(|(large, small)| large.merge(small)));
        }
    }

    /// Packs the list and `entries`, which are not in any part.
    fn flush(&mut self, mut entries: Vec<(Fingerprint, u32)>) {
        entries.extend(self.tail.drain());
        if entries.is_empty() {
            return;
        }
        sort(&mut entries);
        entries.dedup();
        let mut part = PackedPart::of(&entries);
        drop(entries);
        while self.parts.last().is_some_and(|last| last.len() < GROWTH * part.len()) {
            let last = self.parts.pop().expect("it was just seen");
            part = last.merge(part);
        }
        self.parts.push(part);
    }

    /// Tells whether a part has the entry, which is there again if it was removed.
    fn revive(&mut self, fingerprint: Fingerprint, number: u32) -> bool {
        self.parts.iter_mut().any(|part| {
            let row = part.find(fingerprint, number);
            row.inspect(|row| _ = part.mark(*row, false)).is_some()
        })
    }

    /// Calls `tell` with the place of the query and each entry near it in a packed part.
    fn sweep(&self, queries: &[u64], k: u32, tell: &mut impl FnMut(usize, Near)) {
        let (probes, thresholds) = (&PLANS[k as usize], thresholds(k));
        for part in &self.parts {
            let sweep = Sweep { tables: &part.tables, probes, queries, k };
            simd::sweep(self.level, sweep, &mut |hit| {
                resolve(part, queries[hit.query], thresholds, hit, tell);
            });
        }
    }
}

/// Finds the numbers of a row, if no earlier table has told of it.
#[cold]
fn resolve(
    part: &PackedPart,
    query: u64,
    thresholds: [u32; 4],
    hit: RowHit,
    tell: &mut impl FnMut(usize, Near),
) {
    let table = usize::from(hit.probe.table);
    let key = block(query, table) ^ hit.probe.flips;
    let fingerprint = part.fingerprint(table, key, hit.row);
    let differing = fingerprint.0 ^ query;
    if (0..table).any(|table| block(differing, table).count_ones() < thresholds[table]) {
        return;
    }
    let distance = differing.count_ones();
    let mut tell = |number| tell(hit.query, Near { number, fingerprint, distance });
    if table == 0 {
        part.number(hit.row).into_iter().for_each(&mut tell);
    } else {
        part.numbers(fingerprint).for_each(&mut tell);
    }
}

/// Returns the block by which `table` is ordered.
fn block(word: u64, table: usize) -> u16 {
    (word.rotate_left(16 * table as u32) >> 48) as u16
}

impl Layout for Rotated {
    /// Looks the entry up first; a copy of all entries is made about every `n / 8` insertions.
    fn insert(&mut self, fingerprint: Fingerprint, number: u32) {
        if self.revive(fingerprint, number) || self.tail.contains(fingerprint, number) {
            return;
        }
        self.tail.push(fingerprint, number);
        if self.tail.len() >= TAIL {
            self.flush(Vec::new());
        }
    }

    fn insert_all(&mut self, entries: &[(Fingerprint, u32)]) {
        if self.tail.len() + entries.len() < TAIL {
            insert_each(self, entries);
            return;
        }
        let mut entries = entries.to_vec();
        if !self.parts.is_empty() {
            entries.retain(|(fingerprint, number)| !self.revive(*fingerprint, *number));
        }
        self.flush(entries);
    }

    /// Marks the entry; the space is used again when a quarter of a part is marked.
    fn remove(&mut self, fingerprint: Fingerprint, number: u32) -> bool {
        if self.tail.remove(fingerprint, number) {
            return true;
        }
        for at in 0..self.parts.len() {
            let part = &mut self.parts[at];
            if let Some(row) = part.find(fingerprint, number) {
                let there = part.mark(row, true);
                if part.dead() > part.len() / 3 {
                    let part = self.parts.remove(at);
                    if part.len() > 0 {
                        self.parts.insert(at, part.merge(PackedPart::of(&[])));
                    }
                }
                return there;
            }
        }
        false
    }

    fn probe(&self, query: Fingerprint, k: u32, found: &mut Vec<Near>) {
        assert!(k <= K_MAX, "four tables find at most {K_MAX} differing bits");
        self.sweep(&[query.0], k, &mut |_, near| found.push(near));
        self.tail.probe(query, k, found);
    }

    /// Asks memory for the buckets of several queries at once.
    fn probe_all(&self, queries: &[Fingerprint], k: u32, found: &mut Vec<(usize, Near)>) {
        assert!(k <= K_MAX, "four tables find at most {K_MAX} differing bits");
        let words: Vec<u64> = queries.iter().map(|query| query.0).collect();
        self.sweep(&words, k, &mut |place, near| found.push((place, near)));
        self.tail.probe_all(queries, k, found);
    }

    fn len(&self) -> usize {
        self.parts.iter().map(PackedPart::len).sum::<usize>() + self.tail.len()
    }

    fn k_max(&self) -> u32 {
        K_MAX
    }

    fn bytes(&self) -> usize {
        self.parts.iter().map(PackedPart::bytes).sum::<usize>() + self.tail.bytes()
    }
}

/// Sorts entries, many of them on two threads: the last step merges two runs.
fn sort(entries: &mut [(Fingerprint, u32)]) {
    if entries.len() >= THREADS_MIN {
        let (one, other) = entries.split_at_mut(entries.len() / 2);
        thread::scope(|scope| {
            scope.spawn(|| one.sort_unstable());
            other.sort_unstable();
        });
        // A stable sort finds the two runs and merges them.
        entries.sort();
    } else {
        entries.sort_unstable();
    }
}
