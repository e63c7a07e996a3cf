//! The shingles of a text, and the keys of its longest sentences, in one pass.

use crate::sketch::mix;
use crate::text::{sentences, units};

use super::word_hash;

/// Units of a shingle that begins with a word.
const WORDS: usize = 2;

/// Units of a shingle that begins with a character of a script without blanks.
const CHARS: usize = 2;

/// Sentences of a text that are keys.
pub(super) const SENTENCES: usize = 8;

/// Least columns of a sentence that is a key: a shorter one is a commonplace.
const COLUMNS_MIN: usize = 20;

pub(super) struct Shingles {
    /// Distinct hashes, in increasing order.
    pub hashes: Vec<u64>,
    pub words: u32,
    /// Keys of the longest sentences, longest first.
    pub sentences: Vec<u32>,
}

impl Shingles {
    pub(super) fn of(normalised: &str) -> Self {
        // A unit is a hash and whether it is a character of a script without blanks.
        let mut all: Vec<(u64, bool)> = Vec::with_capacity(normalised.len() / 5);
        let mut keys: Vec<(usize, u32)> = Vec::new();
        for sentence in sentences(normalised) {
            let mut key = 0;
            let mut columns = 0;
            units(sentence, |unit, single| {
                let hash = word_hash(unit);
                key = mix(u64::rotate_left(key, 5) ^ hash);
                columns += if single { 2 } else { unit.len() + 1 };
                all.push((hash, single));
            });
            if columns >= COLUMNS_MIN {
                keys.push((columns, (key >> 32) as u32));
            }
        }
        keys.sort_unstable_by_key(|(columns, key)| (std::cmp::Reverse(*columns), *key));
        keys.dedup();
        keys.truncate(SENTENCES);
        let singles = all.iter().filter(|(_, single)| *single).count();
        let words = all.len() - singles + (singles * 2).div_ceil(3);
        Self {
            hashes: distinct(&all),
            words: u32::try_from(words).unwrap_or(u32::MAX),
            sentences: keys.into_iter().map(|(_, key)| key).collect(),
        }
    }
}

fn distinct(units: &[(u64, bool)]) -> Vec<u64> {
    let mut hashes: Vec<u64> = (0..units.len())
        .filter_map(|at| {
            let length = if units[at].1 { CHARS } else { WORDS };
            let shingle = units.get(at..at + length)?;
            Some(shingle.iter().fold(0, |hash, unit| mix(u64::rotate_left(hash, 23) ^ unit.0)))
        })
        .collect();
    if let (true, [only]) = (hashes.is_empty(), units) {
        hashes.push(only.0);
    }
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}
