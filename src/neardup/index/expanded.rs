//! The expanded set: every fingerprint within `k` bits of a stored one, asked once.
//!
//! 65 words an entry for `k = 1`, 2,081 for 2, of 12 bytes each. Three bits would need 43,745.
//!
//! Source: Manku et al., "Detecting Near-Duplicates for Web Crawling", WWW 2007, section 3.1
//! (the second of the two simple ways that it sets aside).

use std::collections::HashSet;

use super::expansion::neighbours;
use super::layout::{Layout, Near, insert_each};
use super::linear::Linear;
use crate::text::simhash::Fingerprint;

/// Largest distance; more takes half a megabyte an entry.
pub const K_MAX: u32 = 2;

/// Entries of the list that is scanned, before they are expanded.
const TAIL: usize = 256;

/// The expanded set, in order of the words. An insertion that fills the list of entries that are
/// not expanded, 256 or as many as are, expands everything anew: meant for batches.
#[derive(Debug, Clone)]
pub struct Expanded {
    k: u32,
    /// Entries that are expanded, in order.
    entries: Vec<(Fingerprint, u32)>,
    words: Vec<u64>,
    /// Which entry each word comes from.
    origins: Vec<u32>,
    tail: Linear,
    dead: HashSet<(Fingerprint, u32)>,
}

impl Expanded {
    /// Makes an empty index for distances to `k`, at most [`K_MAX`].
    #[must_use]
    pub fn new(k: u32) -> Self {
        assert!(k <= K_MAX, "the expanded set is limited to {K_MAX} differing bits");
        let (entries, words, origins) = (Vec::new(), Vec::new(), Vec::new());
        Self { k, entries, words, origins, tail: Linear::new(), dead: HashSet::new() }
    }

    fn rebuild(&mut self, more: &[(Fingerprint, u32)]) {
        self.entries.retain(|entry| !self.dead.contains(entry));
        self.entries.extend(self.tail.drain().chain(more.iter().copied()));
        self.entries.sort_unstable();
        self.entries.dedup();
        self.dead.clear();
        (self.words, self.origins) = (Vec::new(), Vec::new());
        let mut rows = Vec::new();
        for (origin, (fingerprint, _)) in (0..).zip(&self.entries) {
            neighbours(fingerprint.0, self.k, &mut |word| rows.push((word, origin)));
        }
        rows.sort_unstable();
        self.words = rows.iter().map(|(word, _)| *word).collect();
        self.origins = rows.iter().map(|(_, origin)| *origin).collect();
    }
}

impl Layout for Expanded {
    fn insert(&mut self, fingerprint: Fingerprint, number: u32) {
        let entry = (fingerprint, number);
        if self.entries.binary_search(&entry).is_ok() {
            self.dead.remove(&entry);
        } else if !self.tail.contains(fingerprint, number) {
            self.tail.push(fingerprint, number);
            if self.tail.len() >= TAIL.max(self.entries.len()) {
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
        let entry = (fingerprint, number);
        self.tail.remove(fingerprint, number)
            || self.entries.binary_search(&entry).is_ok() && self.dead.insert(entry)
    }

    fn probe(&self, query: Fingerprint, k: u32, found: &mut Vec<Near>) {
        assert!(k <= self.k, "this set is expanded by {} bits", self.k);
        let first = self.words.partition_point(|word| *word < query.0);
        let equal = self.words[first..].iter().take_while(|word| **word == query.0).count();
        for origin in &self.origins[first..first + equal] {
            let entry = self.entries[*origin as usize];
            let (fingerprint, number) = entry;
            let distance = fingerprint.distance(query);
            if distance <= k && (self.dead.is_empty() || !self.dead.contains(&entry)) {
                found.push(Near { number, fingerprint, distance });
            }
        }
        self.tail.probe(query, k, found);
    }

    fn len(&self) -> usize {
        self.entries.len() - self.dead.len() + self.tail.len()
    }

    fn k_max(&self) -> u32 {
        self.k
    }

    fn bytes(&self) -> usize {
        let expanded = 8 * self.words.capacity() + 4 * self.origins.capacity();
        let dead = 17 * self.dead.capacity();
        16 * self.entries.capacity() + expanded + self.tail.bytes() + dead
    }
}
