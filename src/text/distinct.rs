//! Counting hashes: how often each stands in a text.

/// A table this many times larger than needed is given back.
const KEPT_MAX: usize = 64;

/// Counts 64-bit hashes in a flat table of the right size from the start.
///
/// The hashes lie apart from the counts, so that most of what is read fits in the nearest cache.
#[derive(Debug)]
pub(crate) struct HashCounts {
    /// Hash of each slot; 0 is a free one.
    hashes: Vec<u64>,
    /// Count of each slot in use, and the tag of its first hash.
    tallies: Vec<(u32, u32)>,
    /// Slots in use, in the order of their first hash.
    order: Vec<u32>,
}

impl HashCounts {
    /// Makes a table for at most `most` distinct hashes.
    #[must_use]
    pub(crate) fn with_capacity(most: usize) -> Self {
        let mut table = Self { hashes: Vec::new(), tallies: Vec::new(), order: Vec::new() };
        table.clear(most);
        table
    }

    /// Empties the table for at most `most` distinct hashes, and keeps its memory.
    pub(crate) fn clear(&mut self, most: usize) {
        for at in self.order.drain(..) {
            self.hashes[at as usize] = 0;
        }
        let slots = (most * 2).next_power_of_two().max(16);
        if slots > self.hashes.len() || slots * KEPT_MAX < self.hashes.len() {
            self.hashes = vec![0; slots];
            self.tallies = vec![(0, 0); slots];
        }
    }

    /// Counts a hash. `tag` is kept with the first of its kind. (The hash 0 counts as 1.)
    ///
    /// # Panics
    ///
    /// When there are more distinct hashes than the table was made for.
    pub(crate) fn add(&mut self, hash: u64, tag: u32) {
        if let Some(count) = self.find(hash, tag) {
            *count = count.saturating_add(1);
        }
    }

    /// Returns the count of a hash that is there; puts it there otherwise.
    fn find(&mut self, hash: u64, tag: u32) -> Option<&mut u32> {
        let hash = hash.max(1);
        let last = self.hashes.len() - 1;
        // The upper bits of the product depend on all bits of the hash.
        let mut at = (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as usize & last;
        loop {
            let held = self.hashes[at];
            if held == hash {
                return Some(&mut self.tallies[at].0);
            }
            if held == 0 {
                assert!(self.order.len() < last, "the table is full");
                self.hashes[at] = hash;
                self.tallies[at] = (1, tag);
                self.order.push(at as u32);
                return None;
            }
            at = (at + 1) & last;
        }
    }

    /// Returns each hash with its count and tag, in the order in which they first came.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u32, u32)> {
        self.order.iter().map(|at| {
            let (count, tag) = self.tallies[*at as usize];
            (self.hashes[*at as usize], count, tag)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    proptest::proptest! {
        #[test]
        fn it_counts_as_a_map(texts in proptest::collection::vec(
            proptest::collection::vec(1u64..40, 0..200), 1..5,
        )) {
            let mut counts = HashCounts::with_capacity(0);
            for text in texts {
                counts.clear(text.len());
                let mut model: BTreeMap<u64, u32> = BTreeMap::new();
                for (place, hash) in text.iter().enumerate() {
                    counts.add(*hash, place as u32);
                    *model.entry(*hash).or_default() += 1;
                }
                let found: BTreeMap<u64, u32> =
                    counts.iter().map(|(hash, count, _)| (hash, count)).collect();
                proptest::prop_assert_eq!(found, model);
                // In the order of the text, each with the place of its first.
                let mut firsts: Vec<(u64, u32)> = Vec::new();
                for (place, hash) in (0..).zip(&text) {
                    if firsts.iter().all(|(known, _)| known != hash) {
                        firsts.push((*hash, place));
                    }
                }
                let found: Vec<(u64, u32)> =
                    counts.iter().map(|(hash, _, tag)| (hash, tag)).collect();
                proptest::prop_assert_eq!(found, firsts);
            }
        }
    }

    #[test]
    fn as_many_hashes_fit_as_the_table_is_made_for() {
        for most in 0..300 {
            let mut counts = HashCounts::with_capacity(most);
            (0..most as u64).for_each(|n| counts.add(n * n + 1, 0));
            assert_eq!(counts.iter().count(), most);
        }
    }

    #[test]
    fn a_table_far_too_large_is_given_back_and_others_are_used_again() {
        let mut counts = HashCounts::with_capacity(1 << 16);
        assert_eq!(counts.hashes.len(), 1 << 17);
        counts.clear(1 << 10);
        assert_eq!(counts.hashes.len(), 1 << 17, "64 times too large at most");
        counts.clear(1 << 9);
        assert_eq!(counts.hashes.len(), 1 << 10);
    }
}
