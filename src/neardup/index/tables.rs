//! Sorted tables by chosen bits: the common part of [`super::pairs`] and [`super::two_level`].
//!
//! Each table is a mask of bits. It holds all fingerprints with these bits moved to the top,
//! sorted, so that all that agree with a query in them stand together.

use std::collections::HashSet;
use std::ops::Range;

use super::layout::{Layout, Near, insert_each};
use super::linear::Linear;
use crate::text::simhash::Fingerprint;

/// Entries of the list that is scanned, before they are sorted into the tables.
const TAIL: usize = 4_096;

/// A bit permutation that moves the bits of a mask to the top.
#[derive(Debug, Clone)]
struct BitPermutation {
    mask: u64,
    /// Runs of bits, top of the result first: the lowest bit of each and its length.
    runs: Vec<(u32, u32)>,
}

impl BitPermutation {
    fn new(mask: u64) -> Self {
        let mut runs = Vec::new();
        for wanted in [mask, !mask] {
            let mut left = wanted;
            while left != 0 {
                let first = left.trailing_zeros();
                let length = (!(left >> first)).trailing_zeros();
                runs.push((first, length));
                left &= !(ones(length) << first);
            }
        }
        Self { mask, runs }
    }

    fn apply(&self, word: u64) -> u64 {
        let runs = self.runs.iter();
        runs.fold(0, |moved, (first, length)| moved << length | (word >> first & ones(*length)))
    }

    fn undo(&self, mut moved: u64) -> u64 {
        self.runs.iter().rev().fold(0, |word, (first, length)| {
            let run = moved & ones(*length);
            moved >>= length;
            word | run << first
        })
    }
}

/// Returns `length` ones, for a length of 1 to 63.
fn ones(length: u32) -> u64 {
    (1 << length) - 1
}

#[derive(Debug, Clone)]
struct MaskTable {
    cut: BitPermutation,
    words: Vec<u64>,
    numbers: Vec<u32>,
    /// First row for each value of the top bits, about four rows each.
    directory: Vec<u32>,
    /// Bits that are not in the directory.
    shift: u32,
}

impl MaskTable {
    fn new(mask: u64) -> Self {
        let cut = BitPermutation::new(mask);
        Self { cut, words: Vec::new(), numbers: Vec::new(), directory: vec![0; 2], shift: 63 }
    }

    /// Replaces the rows.
    fn fill(&mut self, mut rows: Vec<(u64, u32)>) {
        for (word, _) in &mut rows {
            *word = self.cut.apply(*word);
        }
        rows.sort_unstable();
        self.words = rows.iter().map(|(word, _)| *word).collect();
        self.numbers = rows.iter().map(|(_, number)| *number).collect();
        let bits = (rows.len() / 4).max(2).ilog2().min(self.cut.mask.count_ones()).min(24);
        self.shift = 64 - bits;
        self.directory.clear();
        for (row, word) in (0u32..).zip(&self.words) {
            let value = (word >> self.shift) as usize;
            self.directory.resize(self.directory.len().max(value + 1), row);
        }
        let count = u32::try_from(rows.len()).expect("fewer than 2^32 entries");
        self.directory.resize((1 << bits) + 1, count);
    }

    /// Returns the rows whose words are in `first..=last`, which agree in the directory bits.
    fn range(&self, first: u64, last: u64) -> Range<usize> {
        let value = (first >> self.shift) as usize;
        let Some(ends) = self.directory.get(value..value + 2) else { return 0..0 };
        let start = ends[0] as usize;
        let words = &self.words[start..ends[1] as usize];
        let from = words.partition_point(|word| *word < first);
        start + from..start + words.partition_point(|word| *word <= last)
    }

    fn bytes(&self) -> usize {
        8 * self.words.capacity() + 4 * self.numbers.capacity() + 4 * self.directory.capacity()
    }
}

/// Tables by masks, of which at least one agrees with the query for every distance to `k_max`.
///
/// 12 bytes an entry and table, and a directory. An insertion that fills the list of 4,096
/// entries sorts all tables anew: meant for batches.
#[derive(Debug, Clone)]
pub struct MaskTables {
    k_max: u32,
    sorted: Vec<MaskTable>,
    tail: Linear,
    /// Removed entries that the tables still hold.
    dead: HashSet<(u64, u32)>,
}

impl MaskTables {
    /// Makes empty tables. Any two fingerprints within `k_max` bits must agree in one of `masks`.
    pub(super) fn new(masks: &[u64], k_max: u32) -> Self {
        let sorted = masks.iter().map(|mask| MaskTable::new(*mask)).collect();
        Self { k_max, sorted, tail: Linear::new(), dead: HashSet::new() }
    }

    /// Sorts everything and `more` into the tables.
    fn rebuild(&mut self, more: &[(Fingerprint, u32)]) {
        let first = &self.sorted[0];
        let words = first.words.iter().map(|word| first.cut.undo(*word));
        let mut rows: Vec<(u64, u32)> = words.zip(first.numbers.iter().copied()).collect();
        rows.retain(|row| !self.dead.contains(row));
        rows.extend(self.tail.drain().map(|(fingerprint, number)| (fingerprint.0, number)));
        rows.extend(more.iter().map(|(fingerprint, number)| (fingerprint.0, *number)));
        rows.sort_unstable();
        rows.dedup();
        self.dead.clear();
        for table in &mut self.sorted {
            table.fill(rows.clone());
        }
    }

    /// Tells whether the tables hold the entry, removed or not.
    fn holds(&self, fingerprint: Fingerprint, number: u32) -> bool {
        let table = &self.sorted[0];
        let word = table.cut.apply(fingerprint.0);
        let rows = table.range(word, word);
        table.numbers[rows].binary_search(&number).is_ok()
    }
}

impl Layout for MaskTables {
    fn insert(&mut self, fingerprint: Fingerprint, number: u32) {
        if self.holds(fingerprint, number) {
            self.dead.remove(&(fingerprint.0, number));
        } else if !self.tail.contains(fingerprint, number) {
            self.tail.push(fingerprint, number);
            if self.tail.len() >= TAIL {
                self.rebuild(&[]);
            }
        }
    }

    fn insert_all(&mut self, entries: &[(Fingerprint, u32)]) {
        if self.tail.len() + entries.len() < TAIL {
            insert_each(self, entries);
        } else {
            self.rebuild(entries);
        }
    }

    fn remove(&mut self, fingerprint: Fingerprint, number: u32) -> bool {
        if self.tail.remove(fingerprint, number) {
            return true;
        }
        let there = self.holds(fingerprint, number) && self.dead.insert((fingerprint.0, number));
        if self.dead.len() > TAIL.max(self.sorted[0].words.len() / 4) {
            self.rebuild(&[]);
        }
        there
    }

    fn probe(&self, query: Fingerprint, k: u32, found: &mut Vec<Near>) {
        assert!(k <= self.k_max, "these tables find at most {} differing bits", self.k_max);
        for (at, table) in self.sorted.iter().enumerate() {
            let moved = table.cut.apply(query.0);
            let rest = u64::MAX >> table.cut.mask.count_ones();
            for row in table.range(moved & !rest, moved | rest) {
                let distance = (table.words[row] ^ moved).count_ones();
                if distance > k {
                    continue;
                }
                let (word, number) = (table.cut.undo(table.words[row]), table.numbers[row]);
                // Only the first table that reaches it tells of it.
                let agrees = |table: &MaskTable| (word ^ query.0) & table.cut.mask == 0;
                let dead = !self.dead.is_empty() && self.dead.contains(&(word, number));
                if !dead && !self.sorted[..at].iter().any(agrees) {
                    found.push(Near { number, fingerprint: Fingerprint(word), distance });
                }
            }
        }
        self.tail.probe(query, k, found);
    }

    fn len(&self) -> usize {
        self.sorted[0].words.len() - self.dead.len() + self.tail.len()
    }

    fn k_max(&self) -> u32 {
        self.k_max
    }

    fn bytes(&self) -> usize {
        let tables: usize = self.sorted.iter().map(MaskTable::bytes).sum();
        tables + self.tail.bytes() + 17 * self.dead.capacity()
    }
}
