//! A scan of all fingerprints: the model of all layouts, the fastest one below some thousand
//! entries, and the place where the others keep what they have not yet sorted.

use super::layout::{Layout, Near};
use super::simd::{self, Level};
use crate::text::simhash::{BITS, Fingerprint};

/// Two columns: 12 bytes an entry, of which a look-up reads 8.
#[derive(Debug, Clone, Default)]
pub struct Linear {
    words: Vec<u64>,
    numbers: Vec<u32>,
    level: Level,
}

impl Linear {
    /// Makes an empty index that uses the best instructions of this processor.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty index that uses the instructions of `level`.
    #[must_use]
    pub fn with_level(level: Level) -> Self {
        Self { level, ..Self::default() }
    }

    /// Makes an index of fingerprints whose numbers are their places, fewer than 2^32.
    #[must_use]
    pub fn numbered(words: Vec<u64>) -> Self {
        let numbers = (0..).take(words.len()).collect();
        Self { words, numbers, level: Level::default() }
    }

    /// Adds an entry that is known not to be there. Amortised constant time.
    pub(super) fn push(&mut self, fingerprint: Fingerprint, number: u32) {
        self.words.push(fingerprint.0);
        self.numbers.push(number);
    }

    /// Tells whether the entry is there. Reads all fingerprints.
    pub(super) fn contains(&self, fingerprint: Fingerprint, number: u32) -> bool {
        self.position(fingerprint, number).is_some()
    }

    /// Empties the index and returns what it held, in the order of insertion.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (Fingerprint, u32)> {
        self.words.drain(..).map(Fingerprint).zip(self.numbers.drain(..))
    }

    fn position(&self, fingerprint: Fingerprint, number: u32) -> Option<usize> {
        let mut at = None;
        simd::near(self.level, &self.words, fingerprint.0, 0, &mut |row| {
            if self.numbers[row] == number {
                at = Some(row);
            }
        });
        at
    }
}

impl Layout for Linear {
    /// Reads all fingerprints, to keep every entry once.
    fn insert(&mut self, fingerprint: Fingerprint, number: u32) {
        if !self.contains(fingerprint, number) {
            self.push(fingerprint, number);
        }
    }

    fn insert_all(&mut self, entries: &[(Fingerprint, u32)]) {
        let mut all: Vec<_> = self.drain().chain(entries.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        self.words.extend(all.iter().map(|(fingerprint, _)| fingerprint.0));
        self.numbers.extend(all.iter().map(|(_, number)| *number));
    }

    fn remove(&mut self, fingerprint: Fingerprint, number: u32) -> bool {
        let at = self.position(fingerprint, number);
        if let Some(row) = at {
            self.words.swap_remove(row);
            self.numbers.swap_remove(row);
        }
        at.is_some()
    }

    fn probe(&self, query: Fingerprint, k: u32, found: &mut Vec<Near>) {
        assert!(k <= BITS, "a fingerprint has {BITS} bits");
        simd::near(self.level, &self.words, query.0, k, &mut |row| {
            let fingerprint = Fingerprint(self.words[row]);
            let distance = fingerprint.distance(query);
            found.push(Near { number: self.numbers[row], fingerprint, distance });
        });
    }

    fn len(&self) -> usize {
        self.words.len()
    }

    fn k_max(&self) -> u32 {
        BITS
    }

    fn bytes(&self) -> usize {
        8 * self.words.capacity() + 4 * self.numbers.capacity()
    }
}
