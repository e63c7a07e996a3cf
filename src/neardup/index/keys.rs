//! Equality keys: which contents share a sentence or a band of sketch slots.
//!
//! Open-addressed tables of 8-byte slots, a key of 40 bits and a content number of 24 bits each,
//! so that a key with several contents is several slots of one probe run. About 12 bytes a key,
//! growing by doubling. For each 2^24 - 1 contents there is
//! a table.

use super::simd::prefetch_line;

/// Bits of a key.
pub(crate) const BITS: u32 = 40;

/// A multimap from keys of 40 bits, which are hashes, to content numbers.
///
/// A key holds at most [`KeyIndex::PER_KEY_MAX`] contents of a table: what more texts than that
/// have in common is a commonplace that tells nothing, and reading all of them would make look-ups
/// slow.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyIndex {
    /// Contents by the upper bits of their numbers.
    tables: Vec<Table>,
}

impl KeyIndex {
    /// Contents of one key at most; further ones are not added.
    pub(crate) const PER_KEY_MAX: usize = 64;

    /// Adds `content` under `key`. Returns false if it is there already, or the key is full.
    pub(crate) fn insert(&mut self, key: u64, content: u32) -> bool {
        let table = (content / CONTENTS) as usize;
        if self.tables.len() <= table {
            self.tables.resize_with(table + 1, Table::default);
        }
        self.tables[table].insert(key, content % CONTENTS)
    }

    /// Tells that a key is inserted or got soon. A table is larger than the caches of a processor,
    /// so that each key is waited for, unless many are at the same time.
    pub(crate) fn prefetch(&self, key: u64) {
        for table in &self.tables {
            prefetch_line(&raw const table.slots[table.home(key)]);
        }
    }

    /// Calls `each` with every content of `key`.
    pub(crate) fn get(&self, key: u64, mut each: impl FnMut(u32)) {
        for (number, table) in (0..).zip(&self.tables) {
            table.get(key, |content| each(number * CONTENTS + content));
        }
    }

    /// Memory of the tables in bytes.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        self.tables.iter().map(|table| table.slots.len() * size_of::<u64>()).sum()
    }
}

/// Contents of a table. The last number is none, so that no slot is [`EMPTY`].
const CONTENTS: u32 = (1 << (u64::BITS - BITS)) - 1;

#[derive(Debug, Clone)]
struct Table {
    /// Content number in the upper bits, key in the lower ones, or [`EMPTY`].
    slots: Vec<u64>,
    /// Slots that are not [`EMPTY`].
    used: usize,
}

const EMPTY: u64 = u64::MAX;

/// Slots of the smallest table.
const SLOTS_MIN: usize = 1 << 10;

impl Default for Table {
    fn default() -> Self {
        Self { slots: vec![EMPTY; SLOTS_MIN], used: 0 }
    }
}

impl Table {
    fn insert(&mut self, key: u64, content: u32) -> bool {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let entry = u64::from(content) << BITS | key;
        let mut held = 0;
        let mut at = self.home(key);
        while self.slots[at] != EMPTY {
            let slot = self.slots[at];
            if slot == entry {
                return false;
            }
            held += usize::from(key_of(slot) == key);
            at = (at + 1) & (self.slots.len() - 1);
        }
        if held >= KeyIndex::PER_KEY_MAX {
            return false;
        }
        self.used += 1;
        self.slots[at] = entry;
        true
    }

    fn get(&self, key: u64, mut each: impl FnMut(u32)) {
        let mut at = self.home(key);
        while self.slots[at] != EMPTY {
            let slot = self.slots[at];
            if key_of(slot) == key {
                each((slot >> BITS) as u32);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// The upper bits of a key are its place, so that growing keeps runs short.
    fn home(&self, key: u64) -> usize {
        ((u128::from(key) * self.slots.len() as u128) >> BITS) as usize
    }

    fn grow(&mut self) {
        let larger = vec![EMPTY; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, larger);
        for slot in old.into_iter().filter(|slot| *slot != EMPTY) {
            let mut at = self.home(key_of(slot));
            while self.slots[at] != EMPTY {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = slot;
        }
    }
}

fn key_of(slot: u64) -> u64 {
    slot & ((1 << BITS) - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn held(keys: &KeyIndex, key: u64) -> Vec<u32> {
        let mut found = Vec::new();
        keys.get(key, |content| found.push(content));
        found.sort_unstable();
        found
    }

    #[test]
    fn a_commonplace_is_not_kept_for_every_content() {
        let mut keys = KeyIndex::default();
        for content in 0..1_000 {
            assert_eq!(keys.insert(7, content), content < 64);
        }
        assert_eq!(held(&keys, 7).len(), KeyIndex::PER_KEY_MAX);
        assert!(keys.insert(8, 999) && !keys.insert(8, 999));
    }

    #[test]
    fn keys_differ_by_any_of_forty_bits_and_contents_have_any_number() {
        let (mut keys, last) = (KeyIndex::default(), (1 << BITS) - 1);
        let contents = [0, 1 << 20, CONTENTS - 1, CONTENTS, 2 * CONTENTS + 5];
        for key in [last, last - 1, last ^ 1 << 39] {
            assert!(held(&keys, key).is_empty());
            assert!(contents.iter().all(|content| keys.insert(key, *content)));
            assert_eq!(held(&keys, key), contents);
        }
    }

    proptest! {
        #[test]
        fn it_is_a_map_of_sets(
            steps in prop::collection::vec((0u32..40, 0u32..50), 0..4_000),
        ) {
            let spread = |key: u32| {
                u64::from(key.wrapping_mul(0x9E37_79B9).rotate_left(key % 3 * 16)) << 8 | 0xA5
            };
            let mut keys = KeyIndex::default();
            let mut model = BTreeMap::<u32, BTreeSet<u32>>::new();
            for (key, content) in steps {
                let new = model.entry(key).or_default().insert(content);
                prop_assert_eq!(keys.insert(spread(key), content), new);
            }
            for (key, set) in model {
                prop_assert_eq!(held(&keys, spread(key)), set.into_iter().collect::<Vec<_>>());
            }
        }
    }
}
