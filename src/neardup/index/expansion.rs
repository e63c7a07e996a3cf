//! Query expansion: an exact map, asked for every fingerprint within `k` bits of the query.
//!
//! 1 + 64 + 2,016 + 41,664 = 43,745 look-ups for `k = 3`, however few entries there are.
//!
//! Source: Manku et al., "Detecting Near-Duplicates for Web Crawling", WWW 2007, section 3.1
//! (the first of the two simple ways that it sets aside).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::layout::{Layout, Near, insert_each};
use crate::text::simhash::{BITS, Fingerprint};

/// Largest distance; four bits would need 679,121 look-ups.
pub const K_MAX: u32 = 3;

/// Calls `each` with all words within `k` bits of `word`, each once.
pub(super) fn neighbours(word: u64, k: u32, each: &mut impl FnMut(u64)) {
    fn flip(word: u64, from: u32, k: u32, each: &mut impl FnMut(u64)) {
        each(word);
        if k > 0 {
            (from..BITS).for_each(|bit| flip(word ^ 1 << bit, bit + 1, k - 1, each));
        }
    }
    flip(word, 0, k, each);
}

/// Multiplies and folds: enough for keys that nobody chooses to collide in this map alone.
#[derive(Debug, Clone, Copy, Default)]
struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

/// The exact map, from fingerprint to numbers.
#[derive(Debug, Clone, Default)]
pub struct Expansion {
    numbers: HashMap<u64, Vec<u32>, BuildHasherDefault<Fold>>,
    count: usize,
}

impl Expansion {
    /// Makes an empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Layout for Expansion {
    fn insert(&mut self, fingerprint: Fingerprint, number: u32) {
        let numbers = self.numbers.entry(fingerprint.0).or_insert_with(|| Vec::with_capacity(1));
        if let Err(at) = numbers.binary_search(&number) {
            numbers.insert(at, number);
            self.count += 1;
        }
    }

    fn insert_all(&mut self, entries: &[(Fingerprint, u32)]) {
        let mut entries = entries.to_vec();
        entries.sort_unstable();
        self.numbers.reserve(entries.len());
        insert_each(self, &entries);
    }

    fn remove(&mut self, fingerprint: Fingerprint, number: u32) -> bool {
        let Some(numbers) = self.numbers.get_mut(&fingerprint.0) else { return false };
        let Ok(at) = numbers.binary_search(&number) else { return false };
        numbers.remove(at);
        if numbers.is_empty() {
            self.numbers.remove(&fingerprint.0);
        }
        self.count -= 1;
        true
    }

    fn probe(&self, query: Fingerprint, k: u32, found: &mut Vec<Near>) {
        assert!(k <= K_MAX, "query expansion finds at most {K_MAX} differing bits");
        neighbours(query.0, k, &mut |word| {
            let fingerprint = Fingerprint(word);
            let distance = fingerprint.distance(query);
            let numbers = self.numbers.get(&word).into_iter().flatten();
            found.extend(numbers.map(|number| Near { number: *number, fingerprint, distance }));
        });
    }

    fn len(&self) -> usize {
        self.count
    }

    fn k_max(&self) -> u32 {
        K_MAX
    }

    fn bytes(&self) -> usize {
        let numbers: usize = self.numbers.values().map(|numbers| 4 * numbers.capacity()).sum();
        // A key, a vector and a control byte for each place; maps are at most 7/8 full.
        self.numbers.capacity() * 8 / 7 * (8 + 24 + 1) + numbers
    }
}
