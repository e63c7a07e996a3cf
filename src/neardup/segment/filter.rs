//! A filter tells of most keys that nobody has them, without the postings being read.
//!
//! Each filter is that of a range of keys, and no longer than one page of the store: what is asked
//! often stays in memory, and nothing has to be read before the first question. Of hashes, a range
//! is as full as any other; where one of fingerprints is too full, its filter lets all pass.
//!
//! Inside it is a homogeneous ribbon filter: of 64 rows one after the other, a key has some by its
//! hash, and the bits of these rows have an even sum in every column. Rows that no key decides are
//! random, so that a key that nobody has passes each column with one half. What has less memory
//! leaves out columns.
//!
//! A fingerprint that is asked for need not be there: others may differ from it. Those that have
//! the first 16 bits of a rotation in common with it and differ in at most three of the rest have
//! one of the four groups of twelve bits of the rest in common as well. So each fingerprint has
//! four keys in the filters of a rotation: the first 16 bits with each of these groups.
//!
//! Source: Dillinger, Hübschle-Schneider, Sanders, Walzer, "Fast Succinct Retrieval and Approximate
//! Membership Using Ribbon", SEA 2022.

use super::block::{BYTES_MAX, BadBlock};
use crate::neardup::index::simd::prefetch_line;
use crate::text::sketch::mix;

/// Keys of one filter, as they come.
pub(super) const KEYS: u64 = 3_000;

/// Columns as they are written: of the keys that nobody has, one in 256 passes.
pub const COLUMNS: usize = 8;

/// Rows for each key are as many as these are of those: with fewer, columns are no longer
/// independent of each other.
const ROWS: (usize, usize) = (16, 15);

/// Rows among which those of a key are.
const WINDOW: usize = u64::BITS as usize;

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
pub(super) const KEYS_MAX: usize =
    ((BYTES_MAX - 1) / BLOCK_BYTES * WINDOW + 1 - WINDOW) * ROWS.1 / ROWS.0;

/// Bytes of as many rows as a window has, in all columns.
const BLOCK_BYTES: usize = COLUMNS * size_of::<u64>();

/// First byte of a filter, as it is written.
const VERSION: u8 = 1;

/// Bytes of which filters were multiples before they had a version.
const BLOOM_BYTES: usize = 32;

/// Bits of the keys of tables that have filters.
pub const KEY_BITS: u32 = crate::neardup::index::keys::BITS;

/// Tells which keys of a range are there for sure not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Of as many rows as a window has the bits of each column, and so on for those that follow. If
    /// all are 0, every key passes.
    bits: Box<[u64]>,
    columns: usize,
}

/// The rows that a key has.
struct KeyRows {
    /// The first of them.
    first: usize,
    /// Which they are, from that on.
    which: u64,
}

impl KeyRows {
    fn of(key: u64, rows: usize) -> Self {
        let hash = mix(key);
        let starts = (rows + 1 - WINDOW) as u128;
        let first = (u128::from(hash) * starts) >> u64::BITS;
        let which = hash.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        Self { first: first as usize, which: (which ^ which >> 32) | 1 }
    }
}

/// Returns how many blocks of rows the filter of so many keys has.
pub(super) fn blocks_of(keys: usize) -> usize {
    (keys * ROWS.0 / ROWS.1 + WINDOW - 1).div_ceil(WINDOW)
}

/// Returns the bytes of a filter of so many keys as it is written.
pub(super) fn bytes_of(keys: usize) -> usize {
    1 + if keys > KEYS_MAX { 1 } else { blocks_of(keys) } * BLOCK_BYTES
}

/// Returns the bits of some filters that have so many keys in all, in so many columns.
#[must_use]
pub fn bits_of(keys: usize, filters: usize, columns: usize) -> usize {
    (keys * ROWS.0 / ROWS.1 + filters * (WINDOW + WINDOW / 2)) * columns
}

impl Filter {
    /// Makes the filter of some keys, none of them repeated. If they are more than it has room
    /// for, it lets every key pass.
    #[must_use]
    pub fn of(keys: &[u64]) -> Self {
        if keys.len() > KEYS_MAX {
            return Self::of_all();
        }
        let rows = blocks_of(keys.len()) * WINDOW;
        // The sum that has to be even of which a row is the first one.
        let mut sums = vec![0_u64; rows];
        for key in keys {
            let KeyRows { mut first, mut which } = KeyRows::of(*key, rows);
            // What follows from the sums that are there need not be noted.
            while which != 0 && sums[first] != 0 {
                which ^= sums[first];
                let next = which.trailing_zeros() % u64::BITS;
                first += next as usize;
                which >>= next;
            }
            if which != 0 {
                sums[first] = which;
            }
        }
        Self { bits: solved(&sums), columns: COLUMNS }
    }

    /// Makes one that lets every key pass.
    #[must_use]
    pub fn of_all() -> Self {
        Self { bits: [0; COLUMNS].into(), columns: COLUMNS }
    }

    /// Reads a filter. Those of an earlier form let every key pass.
    pub fn read(bytes: &[u8]) -> Result<Self, BadBlock> {
        let bad = BadBlock("is no filter");
        if !bytes.is_empty() && bytes.len().is_multiple_of(BLOOM_BYTES) {
            return Ok(Self::of_all());
        }
        let rest = bytes.strip_prefix(&[VERSION]).ok_or(bad)?;
        if rest.is_empty() || !rest.len().is_multiple_of(BLOCK_BYTES) {
            return Err(bad);
        }
        let words = rest.as_chunks().0.iter();
        Ok(Self { bits: words.map(|word| u64::from_be_bytes(*word)).collect(), columns: COLUMNS })
    }

    /// Returns its bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let words = self.bits.iter().flat_map(|word| word.to_be_bytes());
        std::iter::once(VERSION).chain(words).collect()
    }

    /// Returns it with the first columns alone: it takes so much less memory, and each column that
    /// is missing lets twice as many keys pass.
    #[must_use]
    pub fn narrowed(&self, columns: usize) -> Self {
        let columns = columns.min(self.columns);
        let kept = self.bits.chunks(self.columns).flat_map(|block| &block[..columns]);
        Self { bits: kept.copied().collect(), columns }
    }

    /// Tells whether a key may be there.
    #[must_use]
    pub fn may_have(&self, key: u64) -> bool {
        let KeyRows { first, which } = KeyRows::of(key, self.rows());
        let (low, high) = self.bits[first / WINDOW * self.columns..].split_at(self.columns);
        let at = first % WINDOW;
        let mut odd = 0;
        if at == 0 {
            for low in low {
                odd |= (low & which).count_ones();
            }
        } else {
            for (low, high) in low.iter().zip(high) {
                let rows = low >> at | high << (WINDOW - at);
                odd |= (rows & which).count_ones();
            }
        }
        odd & 1 == 0
    }

    /// Has the rows come nearer by which a key will be judged.
    pub fn prefetch(&self, key: u64) {
        let KeyRows { first, .. } = KeyRows::of(key, self.rows());
        let low = self.bits.as_ptr().wrapping_add(first / WINDOW * self.columns);
        prefetch_line(low);
        prefetch_line(low.wrapping_add(2 * self.columns - 1));
    }

    fn rows(&self) -> usize {
        self.bits.len() / self.columns * WINDOW
    }

    /// Returns the memory that it takes, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of_val(&*self.bits) + size_of::<Self>()
    }
}

/// Returns rows that make sums even; random ones where no sum begins.
fn solved(sums: &[u64]) -> Box<[u64]> {
    let mut bits = vec![0; sums.len() / WINDOW * COLUMNS].into_boxed_slice();
    // Of each column the rows behind the present one.
    let mut behind = [0_u64; COLUMNS];
    for (row, sum) in sums.iter().enumerate().rev() {
        let random = if *sum == 0 { mix(row as u64) } else { 0 };
        let block = &mut bits[row / WINDOW * COLUMNS..][..COLUMNS];
        for (column, (behind, block)) in behind.iter_mut().zip(block).enumerate() {
            *behind <<= 1;
            let bit = u64::from((*behind & sum).count_ones()) ^ random >> column;
            *behind |= bit & 1;
            *block |= (bit & 1) << (row % WINDOW);
        }
    }
    bits
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_and_of_others_few_pass() {
        for count in [0, 1, 30, 64, 700, KEYS, KEYS_MAX as u64] {
            let keys: Vec<u64> = (0..count).map(|n| mix(n) >> 24).collect();
            let filter = Filter::of(&keys);
            assert_eq!(filter.bytes().len(), bytes_of(keys.len()));
            assert!(filter.bytes().len() <= BYTES_MAX);
            assert!(keys.iter().all(|key| filter.may_have(*key)));
            let others = (KEYS_MAX as u64..).take(100_000);
            let others = others.filter(|n| filter.may_have(mix(*n) >> 24)).count();
            assert!((250..600).contains(&others), "{count}: {others} of 100,000 pass");
            assert_eq!(Filter::read(&filter.bytes()), Ok(filter));
        }
    }

    #[test]
    fn a_filter_of_an_earlier_form_lets_all_pass_and_what_is_none_is_told() {
        assert_eq!(Filter::read(&[0; 64]), Ok(Filter::of_all()));
        let all = Filter::read(&Filter::of_all().bytes()).unwrap();
        assert!([&all, &all.narrowed(3)].iter().all(|all| (0..999).all(|key| all.may_have(key))));
        for bad in [&[][..], &[1], &[2], &[1; 33], &[2; 65]] {
            assert!(Filter::read(bad).is_err(), "{bad:?}");
        }
        let too_many: Vec<u64> = (0..=KEYS_MAX as u64).collect();
        assert_eq!(Filter::of(&too_many), Filter::of_all());
    }

    #[test]
    fn a_narrow_filter_finds_every_key_and_lets_more_pass() {
        let keys: Vec<u64> = (0..KEYS).map(|n| mix(n) >> 24).collect();
        let filter = Filter::of(&keys);
        let count = |filter: &Filter| {
            (KEYS..KEYS + 100_000).filter(|n| filter.may_have(mix(*n) >> 24)).count()
        };
        for columns in [6, 4, 3, 2, 1] {
            let (narrow, about) = (filter.narrowed(columns), 100_000 >> columns);
            assert!(narrow.memory() < filter.memory() * (columns + 1) / COLUMNS);
            assert!(narrow.memory() * 8 <= bits_of(keys.len(), 1, columns) + 512);
            assert!(keys.iter().all(|key| narrow.may_have(*key)));
            let passed = count(&narrow);
            assert!(passed.abs_diff(about) < about / 8, "{columns} columns: {passed} of 100,000");
            assert_eq!(filter.narrowed(columns + 1).narrowed(columns), narrow);
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
