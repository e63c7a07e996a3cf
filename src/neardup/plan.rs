//! What a search for near fingerprints costs among so many of them: arithmetic, nothing is read.
//!
//! In: a number of documents. Out: comparisons of a look-up, entries to be kept, and what chance
//! brings. The fingerprints are taken to be spread evenly, as those of unlike texts are.
//!
//! Sources: the text on simhash engineering (simhash海量文本去重的工程化), whose figures are set
//! right here; Manku et al., "Detecting Near-Duplicates for Web Crawling", WWW 2007.

/// Bits in which near fingerprints differ at most, in the text and by default.
pub const K: u32 = 3;

/// Most documents that can be asked about: a store has no more numbers.
pub const DOCUMENTS_MAX: u64 = 1 << 40;

/// Bytes of an entry in memory: a fingerprint of 8 bytes, and the number of its document.
pub const ENTRY_BYTES: u64 = 16;

/// Bytes of a row key of the text: the segment (4), its flag (1), the fingerprint (8).
pub const ROW_KEY_BYTES: u64 = 13;

/// Bits of a slot of the bands of a sketch.
pub const SLOT_BITS: u32 = 16;

/// Bits of the key of a band, which is a hash of it and its place.
pub const EQUALITY_BITS: u32 = 40;

/// Bits of the hash of a sentence: there are no more keys, though these are spread over
/// [`EQUALITY_BITS`].
pub const SENTENCE_BITS: u32 = 32;

/// Some tables whose keys have the same number of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyedTables {
    /// Their number.
    pub tables: u64,
    /// Bits of a key, at most 32.
    pub key_bits: u32,
}

impl KeyedTables {
    /// Returns how many of `documents` fingerprints have one key, rounded up.
    #[must_use]
    pub fn set(self, documents: u64) -> u64 {
        documents.div_ceil(1 << self.key_bits)
    }
}

/// A way to keep fingerprints so that those near another one are found: each is an entry of every
/// table, and is compared if its key is that of the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableScheme {
    /// Its name.
    pub name: &'static str,
    /// Comparisons of a look-up among N.
    pub formula: &'static str,
    /// Its tables.
    pub tables: &'static [KeyedTables],
}

/// No key at all.
pub const LINEAR_SCAN: TableScheme = TableScheme {
    name: "linear scan",
    formula: "N",
    tables: &[KeyedTables { tables: 1, key_bits: 0 }],
};

/// Four blocks of 16 bits: three differing bits leave one of them equal.
pub const FOUR_TABLES: TableScheme = TableScheme {
    name: "four tables",
    formula: "4 N / 2^16",
    tables: &[KeyedTables { tables: 4, key_bits: 16 }],
};

/// Two of five blocks of 13, 13, 13, 13 and 12 bits: three differing bits leave two of them equal.
/// Of the ten pairs, four have the block of 12 bits.
pub const TEN_TABLES: TableScheme = TableScheme {
    name: "ten tables",
    formula: "6 N / 2^26 + 4 N / 2^25",
    tables: &[KeyedTables { tables: 6, key_bits: 26 }, KeyedTables { tables: 4, key_bits: 25 }],
};

impl TableScheme {
    /// Returns the comparisons of a look-up, rounded up once.
    #[must_use]
    pub fn comparisons(&self, documents: u64) -> u64 {
        let parts = self.tables.iter().map(|of| u128::from(of.tables) << (32 - of.key_bits));
        rounded_up(u128::from(documents) * parts.sum::<u128>(), 32)
    }

    /// Returns the entries of a fingerprint.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.tables.iter().map(|of| of.tables).sum()
    }
}

/// Returns a number of parts, `2^bits` of which make a whole, rounded up.
fn rounded_up(parts: u128, bits: u32) -> u64 {
    u64::try_from(parts.div_ceil(1 << bits)).unwrap_or(u64::MAX)
}

/// Returns how many fingerprints of `bits` bits are within `k` of one, itself included: the sum of
/// `C(bits, i)` for all `i` up to `k`.
#[must_use]
pub fn ball(bits: u32, k: u32) -> u128 {
    let mut chosen: u128 = 1;
    let mut sum = chosen;
    for i in 0..k.min(bits) {
        chosen = chosen * u128::from(bits - i) / u128::from(i + 1);
        sum += chosen;
    }
    sum
}

/// Returns how many of `documents` unlike texts are within `k` bits of another one by chance.
#[must_use]
pub fn chance_neighbours(documents: u64, bits: u32, k: u32) -> f64 {
    documents as f64 * share(bits, k)
}

/// Returns how many pairs of `documents` unlike texts are within `k` bits by chance.
#[must_use]
pub fn chance_pairs(documents: u64, bits: u32, k: u32) -> f64 {
    let documents = documents as f64;
    documents * (documents - 1.0) / 2.0 * share(bits, k)
}

/// Returns the share of all fingerprints that are within `k` bits of one.
fn share(bits: u32, k: u32) -> f64 {
    ball(bits, k) as f64 / 2f64.powi(bits.cast_signed())
}

/// Returns the bits of a fingerprint for which `chance` is below one: the fewest.
#[must_use]
pub fn bits_needed(chance: impl Fn(u32) -> f64) -> u32 {
    (K..128).find(|bits| chance(*bits) < 1.0).unwrap_or(128)
}

/// Returns how many of `documents` unlike texts share one of `bands` bands, of so many bits in all
/// their slots, with another one by chance.
#[must_use]
pub fn chance_by_bands(documents: u64, bands: usize, bits: u32) -> f64 {
    bands as f64 * documents as f64 / 2f64.powi(bits.cast_signed())
}

/// Returns how many of `documents` unlike texts share one of `keys` hashes with another one because
/// hashes have so few bits.
#[must_use]
pub fn chance_by_hashes(documents: u64, keys: usize, bits: u32) -> f64 {
    let keys = keys as f64;
    keys * keys * documents as f64 / 2f64.powi(bits.cast_signed())
}

/// Returns how many parts of a size hold so much, at least one.
#[must_use]
pub fn machines(bytes: u64, each: u64) -> u64 {
    bytes.div_ceil(each.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::sketch::WIDE_SLOTS;

    #[test]
    fn what_is_no_power_of_two_is_rounded_up_once() {
        let documents = 10_000_000_000;
        // 610,351.56 and 2,086.16.
        assert_eq!(FOUR_TABLES.comparisons(documents), 610_352);
        assert_eq!(TEN_TABLES.comparisons(documents), 2_087);
        assert_eq!(FOUR_TABLES.tables[0].set(documents), 152_588);
        assert_eq!([0, 1].map(|of| TEN_TABLES.tables[of].set(documents)), [150, 299]);
        for scheme in [LINEAR_SCAN, FOUR_TABLES, TEN_TABLES] {
            assert_eq!(scheme.comparisons(1), 1);
            assert!(scheme.comparisons(DOCUMENTS_MAX) <= DOCUMENTS_MAX);
        }
    }

    #[test]
    fn neighbours_are_counted() {
        assert_eq!([0, 1, 2, 3].map(|k| ball(64, k)), [1, 65, 2_081, 43_745]);
        assert_eq!((ball(4, 4), ball(4, 9)), (16, 16));
        let one = chance_neighbours(1_000_000_000, 64, K);
        assert!((one - 1e9 * 43_745.0 / 18_446_744_073_709_551_616.0).abs() < 1e-18, "{one}");
        // 5e17 pairs.
        let all = chance_pairs(1_000_000_000, 64, K);
        assert!((1_185.0..1_186.0).contains(&all), "{all}");
    }

    /// By counting all fingerprints of a few bits.
    #[test]
    fn a_ball_has_all_that_are_near() {
        for bits in [1, 5, 12] {
            for k in 0..=4 {
                let near = (0u32..1 << bits).filter(|print| print.count_ones() <= k).count();
                assert_eq!(ball(bits, k), near as u128, "{bits} bits, {k}");
            }
        }
    }

    #[test]
    fn so_many_documents_need_so_many_bits() {
        let one = |documents| bits_needed(|bits| chance_neighbours(documents, bits, K));
        let all = |documents| bits_needed(|bits| chance_pairs(documents, bits, K));
        for documents in [1_000, 1_000_000, 1_000_000_000, DOCUMENTS_MAX] {
            let (bits, more) = (one(documents), all(documents));
            assert!(chance_neighbours(documents, bits, K) < 1.0);
            assert!(chance_neighbours(documents, bits - 1, K) >= 1.0);
            assert!(chance_pairs(documents, more, K) < 1.0);
            assert!(chance_pairs(documents, more - 1, K) >= 1.0 && more > bits);
        }
        assert!(one(1_000_000_000) < 64 && all(1_000_000_000) > 64);
    }

    #[test]
    fn bands_and_hashes_are_shared_by_chance() {
        let config = super::super::Config::default();
        assert!(config.bands * config.band_rows <= WIDE_SLOTS, "slots of {SLOT_BITS} bits");
        assert!((chance_by_bands(1 << 24, 42, 24) - 42.0).abs() < 1e-9);
        assert!((chance_by_bands(1 << 40, 42, 3 * SLOT_BITS) - 42.0 / 256.0).abs() < 1e-9);
        assert!((chance_by_hashes(1 << 40, 42, EQUALITY_BITS) - 1_764.0).abs() < 1e-9);
        assert!((chance_by_hashes(1 << 32, 8, SENTENCE_BITS) - 64.0).abs() < 1e-9);
    }

    #[test]
    fn there_is_at_least_one_machine() {
        assert_eq!([0, 1, 24, 25, 49].map(|bytes| machines(bytes, 24)), [1, 1, 1, 2, 3]);
    }
}
