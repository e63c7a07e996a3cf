//! A filter tells of most keys that nobody has them, without the postings being read.
//!
//! Each filter is that of a range of keys, and no longer than one page of the store: what is asked
//! often stays in memory, and nothing has to be read before the first question. Of hashes, a range
//! is as full as any other; where one of fingerprints is too full, its filter lets all pass.
//!
//! Inside it is a split block Bloom filter: eight words of 32 bits make a block, and each key sets
//! one bit in each word of one block.
//!
//! A fingerprint that is asked for need not be there: others may differ from it. Those that have
//! the first 16 bits of a rotation in common with it and differ in at most three of the rest have
//! one of the four groups of twelve bits of the rest in common as well. So each fingerprint has
//! four keys in the filters of a rotation: the first 16 bits with each of these groups.
//!
//! Source: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", WEA 2007;
//! the multipliers are those of the specification of Apache Parquet.

use super::block::{BYTES_MAX, BadBlock};
use crate::neardup::index::simd::prefetch_line;
use crate::text::sketch::mix;

/// Keys of one filter, as they come.
pub(super) const KEYS: u64 = 3_000;

/// Bits for each key: of the keys that nobody has, about one in eighty passes.
pub const BITS: usize = 10;

/// Fingerprints of one filter at most, as they come where they are unlike.
pub(super) const FINGERPRINTS: u64 = 640;

/// Keys of a fingerprint in the filters of a rotation.
pub(super) const FINGERPRINT_KEYS: u64 = 4;

/// Bits of a rotated fingerprint that are asked for as they are, and of a group of the others.
const PREFIX_BITS: u32 = 16;
const GROUP_BITS: u32 = 12;

/// Of the bits behind the first ones, fingerprints that share no group differ in more.
pub(super) const GROUP_ERRORS_MAX: u32 = 3;

/// Keys for which a filter has room: it is no longer than a page of the store.
pub(super) const KEYS_MAX: usize = BYTES_MAX / (BLOCK_BITS / 8) * BLOCK_BITS / BITS;

/// Bits of a block.
pub(super) const BLOCK_BITS: usize = 256;

/// Bits of the keys of tables that have filters.
pub const KEY_BITS: u32 = crate::neardup::index::keys::BITS;

const SALTS: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// Words of a block, in each of which a key sets a bit.
pub const WORDS: usize = 8;

/// Tells which keys of a range are there for sure not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The words of all blocks.
    bits: Box<[u32]>,
    blocks: u32,
}

impl Filter {
    /// Makes the filter of some keys, repeated ones counted once. If they are more than it has room
    /// for, it lets every key pass.
    #[must_use]
    pub fn of(keys: &[u64]) -> Self {
        if keys.len() > KEYS_MAX {
            return Self::of_all();
        }
        let blocks = (keys.len() * BITS).div_ceil(BLOCK_BITS).max(1) as u32;
        let mut bits = vec![0; blocks as usize * WORDS].into_boxed_slice();
        for key in keys {
            let (block, hash) = place(*key, blocks);
            for (word, salt) in bits[block * WORDS..].iter_mut().zip(SALTS) {
                *word |= bit(hash, salt);
            }
        }
        Self { bits, blocks }
    }

    /// Makes one that lets every key pass.
    #[must_use]
    pub fn of_all() -> Self {
        Self { bits: [u32::MAX; WORDS].into(), blocks: 1 }
    }

    /// Reads a filter.
    pub fn read(bytes: &[u8]) -> Result<Self, BadBlock> {
        let (words, rest) = bytes.as_chunks::<4>();
        if words.is_empty() || !words.len().is_multiple_of(WORDS) || !rest.is_empty() {
            return Err(BadBlock("is no filter"));
        }
        let blocks = (words.len() / WORDS) as u32;
        Ok(Self { bits: words.iter().map(|word| u32::from_be_bytes(*word)).collect(), blocks })
    }

    /// Returns its bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.bits.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// Returns it with the first words of each block alone: it takes so much less memory, and each
    /// word that is missing lets nearly twice as many keys pass.
    #[must_use]
    pub fn narrowed(&self, words: usize) -> Self {
        let had = self.bits.len() / self.blocks as usize;
        let kept = self.bits.chunks(had).flat_map(|block| &block[..words.min(had)]);
        Self { bits: kept.copied().collect(), blocks: self.blocks }
    }

    /// Tells whether a key may be there.
    #[must_use]
    pub fn may_have(&self, key: u64) -> bool {
        let (block, hash) = place(key, self.blocks);
        let words = self.words();
        let words = &self.bits[block * words..][..words];
        let missing = words.iter().zip(SALTS).map(|(word, salt)| !word & bit(hash, salt));
        missing.fold(0, |all, missing| all | missing) == 0
    }

    /// Has the words come nearer by which a key will be judged.
    pub fn prefetch(&self, key: u64) {
        let (block, _) = place(key, self.blocks);
        prefetch_line(self.bits.as_ptr().wrapping_add(block * self.words()));
    }

    /// Words of each block.
    fn words(&self) -> usize {
        if self.bits.len() == self.blocks as usize * WORDS {
            WORDS
        } else {
            self.bits.len() / self.blocks as usize
        }
    }

    /// Returns the memory that it takes, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of_val(&*self.bits) + size_of::<Self>()
    }
}

/// Returns the number of the filter of a key among `filters`.
#[must_use]
pub(super) fn filter_of(key: u64, filters: u32) -> u32 {
    let at = (u128::from(key) * u128::from(filters)) >> KEY_BITS;
    (at as u32).min(filters.saturating_sub(1))
}

/// Returns how many filters a rotation of so many fingerprints has: each has as many of the first
/// bits as another one.
pub(super) fn filters_of_fingerprints(fingerprints: u64) -> u64 {
    fingerprints.div_ceil(FINGERPRINTS).next_power_of_two().min(1 << PREFIX_BITS)
}

/// Returns the number of the filter of a rotated fingerprint, by its first bits.
pub(super) fn filter_of_fingerprint(key: u64, filters: u32) -> u32 {
    let prefix = key >> (u64::BITS - PREFIX_BITS);
    ((prefix * u64::from(filters)) >> PREFIX_BITS) as u32
}

/// Returns how many values a key of a group has.
pub(super) fn key_values() -> f64 {
    f64::from(1_u32 << (PREFIX_BITS + GROUP_BITS))
}

/// Returns the keys of a rotated fingerprint.
pub(super) fn fingerprint_keys(key: u64) -> [u64; FINGERPRINT_KEYS as usize] {
    let prefix = key >> (u64::BITS - PREFIX_BITS);
    std::array::from_fn(|group| {
        let bits = key >> (group as u32 * GROUP_BITS) & ((1 << GROUP_BITS) - 1);
        prefix << 32 | (group as u64) << GROUP_BITS | bits
    })
}

/// Returns the block of a key, and the hash that its bits there are made of.
fn place(key: u64, blocks: u32) -> (usize, u32) {
    let hash = mix(key);
    let block = ((hash >> 32) * u64::from(blocks)) >> 32;
    (block as usize, hash as u32)
}

/// Returns the bit of a word.
fn bit(hash: u32, salt: u32) -> u32 {
    1 << (hash.wrapping_mul(salt) >> 27)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_and_of_others_few_pass() {
        let keys: Vec<u64> = (0..KEYS).map(|n| mix(n) >> 24).collect();
        let filter = Filter::of(&keys);
        assert!(filter.bytes().len() <= super::super::block::BYTES_MAX);
        assert!(keys.iter().all(|key| filter.may_have(*key)));
        let others = (KEYS..KEYS + 100_000).filter(|n| filter.may_have(mix(*n) >> 24)).count();
        assert!((100..2_500).contains(&others), "{others} of 100,000 pass");
        assert_eq!(Filter::read(&filter.bytes()), Ok(filter));
        assert!(Filter::read(&[]).is_err() && Filter::read(&[0; 33]).is_err());
        assert!(Filter::read(&[0; 36]).is_err());
    }

    #[test]
    fn a_narrow_filter_finds_every_key_and_lets_more_pass() {
        let keys: Vec<u64> = (0..KEYS).map(|n| mix(n) >> 24).collect();
        let filter = Filter::of(&keys);
        let count = |filter: &Filter| {
            (KEYS..KEYS + 100_000).filter(|n| filter.may_have(mix(*n) >> 24)).count()
        };
        for (words, about) in [(6, 2_800), (4, 8_300), (2, 29_000), (1, 54_000)] {
            let narrow = filter.narrowed(words);
            assert!(narrow.memory() < filter.memory() * (words + 1) / WORDS);
            assert!(keys.iter().all(|key| narrow.may_have(*key)));
            let passed = count(&narrow);
            assert!(passed.abs_diff(about) < about / 5, "{words} words: {passed} of 100,000");
            assert_eq!(filter.narrowed(words + 1).narrowed(words), narrow);
        }
    }

    #[test]
    fn keys_fall_into_filters_by_their_order() {
        assert_eq!(filter_of(0, 7), 0);
        assert_eq!(filter_of((1 << KEY_BITS) - 1, 7), 6);
        assert_eq!(filter_of(u64::MAX, 7), 6);
        assert_eq!(filter_of(1 << (KEY_BITS - 1), 2), 1);
        assert!((0..1_000).map(|n| filter_of(n << 30, 7)).is_sorted());
    }
}
