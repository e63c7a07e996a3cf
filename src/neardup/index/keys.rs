//! Equality keys: which contents share a sentence or a run of sketch slots.
//!
//! One open-addressed table of 8-byte slots, a 32-bit key and a 32-bit content number each, so that
//! a key with several contents is several slots of one probe run. About 12 bytes a key, growing by
//! doubling.

/// A multimap from 32-bit keys, which are hashes, to content numbers.
///
/// A key holds at most [`KeyIndex::PER_KEY_MAX`] contents: what more texts than that have in
/// common is a commonplace that tells nothing, and reading all of them would make look-ups slow.
#[derive(Debug, Clone)]
pub(crate) struct KeyIndex {
    /// Content number in the upper half, key in the lower, or [`EMPTY`].
    slots: Vec<u64>,
    /// Slots that are not [`EMPTY`].
    used: usize,
}

const EMPTY: u64 = u64::MAX;

/// Slots of the smallest table.
const SLOTS_MIN: usize = 1 << 10;

impl Default for KeyIndex {
    fn default() -> Self {
        Self { slots: vec![EMPTY; SLOTS_MIN], used: 0 }
    }
}

impl KeyIndex {
    /// Contents of one key at most; further ones are not added.
    pub(crate) const PER_KEY_MAX: usize = 64;

    /// Adds `content` under `key`. Returns false if it is there already, or the key is full.
    ///
    /// Content numbers are below `u32::MAX`.
    pub(crate) fn insert(&mut self, key: u32, content: u32) -> bool {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let entry = u64::from(content) << 32 | u64::from(key);
        let mut held = 0;
        let mut at = self.home(key);
        while self.slots[at] != EMPTY {
            let slot = self.slots[at];
            if slot == entry {
                return false;
            }
            held += usize::from(slot as u32 == key);
            at = (at + 1) & (self.slots.len() - 1);
        }
        if held >= Self::PER_KEY_MAX {
            return false;
        }
        self.used += 1;
        self.slots[at] = entry;
        true
    }

    /// Calls `each` with every content of `key`.
    pub(crate) fn get(&self, key: u32, mut each: impl FnMut(u32)) {
        let mut at = self.home(key);
        while self.slots[at] != EMPTY {
            let slot = self.slots[at];
            if slot as u32 == key {
                each((slot >> 32) as u32);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Memory of the table in bytes.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u64>()
    }

    /// The upper bits of a key are its place, so that growing keeps runs short.
    fn home(&self, key: u32) -> usize {
        ((u64::from(key) * self.slots.len() as u64) >> 32) as usize
    }

    fn grow(&mut self) {
        let larger = vec![EMPTY; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, larger);
        for slot in old.into_iter().filter(|slot| *slot != EMPTY) {
            let mut at = self.home(slot as u32);
            while self.slots[at] != EMPTY {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn held(keys: &KeyIndex, key: u32) -> Vec<u32> {
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

    proptest! {
        #[test]
        fn it_is_a_map_of_sets(
            steps in prop::collection::vec((0u32..40, 0u32..50), 0..4_000),
        ) {
            let spread = |key: u32| key.wrapping_mul(0x9E37_79B9).rotate_left(key % 3 * 16);
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
