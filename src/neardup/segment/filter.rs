//! A filter tells of most keys that nobody has them, without the postings being read.
//!
//! The keys of a table are hashes, so that a range of them is as full as any other. Each filter is
//! that of one range, and as long as one page of the store: what is asked often stays in memory,
//! and nothing has to be read before the first question.
//!
//! Inside it is a split block Bloom filter: eight words of 32 bits make a block, and each key sets
//! one bit in each word of one block.
//!
//! Source: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", WEA 2007;
//! the multipliers are those of the specification of Apache Parquet.

use super::block::BadBlock;
use crate::text::sketch::mix;

/// Keys of one filter, as they come.
pub(super) const KEYS: u64 = 3_000;

/// Bits for each key: of the keys that nobody has, about one in eighty passes.
pub(super) const BITS: usize = 10;

/// Bits of a block.
pub(super) const BLOCK_BITS: usize = 256;

/// Bits of the keys of tables that have filters.
pub const KEY_BITS: u32 = 40;

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

/// Tells which keys of a range are there for sure not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(Box<[[u32; 8]]>);

impl Filter {
    /// Makes the filter of some keys, repeated ones counted once.
    #[must_use]
    pub fn of(keys: &[u64]) -> Self {
        let blocks = (keys.len() * BITS).div_ceil(BLOCK_BITS).max(1);
        let mut filter = Self(vec![[0; 8]; blocks].into_boxed_slice());
        for key in keys {
            let (block, bits) = place(*key, blocks);
            for (word, bit) in filter.0[block].iter_mut().zip(bits) {
                *word |= bit;
            }
        }
        filter
    }

    /// Reads a filter.
    pub fn read(bytes: &[u8]) -> Result<Self, BadBlock> {
        let (blocks, rest) = bytes.as_chunks::<32>();
        if blocks.is_empty() || !rest.is_empty() {
            return Err(BadBlock("is no filter"));
        }
        let words = |block: &[u8; 32]| {
            let (words, _) = block.as_chunks::<4>();
            std::array::from_fn(|at| u32::from_be_bytes(words[at]))
        };
        Ok(Self(blocks.iter().map(words).collect()))
    }

    /// Returns its bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.0.iter().flatten().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// Tells whether a key may be there.
    #[must_use]
    pub fn may_have(&self, key: u64) -> bool {
        let (block, bits) = place(key, self.0.len());
        self.0[block].iter().zip(bits).all(|(word, bit)| word & bit != 0)
    }

    /// Returns the memory that it takes, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of_val(&*self.0) + size_of::<Self>()
    }
}

/// Returns the number of the filter of a key among `filters`.
#[must_use]
pub(super) fn filter_of(key: u64, filters: u32) -> u32 {
    let at = (u128::from(key) * u128::from(filters)) >> KEY_BITS;
    (at as u32).min(filters.saturating_sub(1))
}

/// Returns the block of a key, and its bits there.
fn place(key: u64, blocks: usize) -> (usize, [u32; 8]) {
    let hash = mix(key);
    let block = ((hash >> 32) * blocks as u64) >> 32;
    let bits = SALTS.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27));
    (block as usize, bits)
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
