//! The shingles of a text, and the keys of its longest sentences.

use crate::sketch::mix;
use crate::text::{Token, Tokens};

use super::with_counts;

/// Tokens of a shingle.
const TOKENS: usize = 2;

/// Sentences of a text that are keys.
const SENTENCES: usize = 8;

/// Least columns of a sentence that is a key: a shorter one is a commonplace.
const COLUMNS_MIN: u32 = 20;

pub(super) struct Shingles {
    /// Distinct hashes.
    pub hashes: Vec<u64>,
    pub words: u32,
    /// Keys of the longest sentences, longest first.
    pub sentences: Vec<u32>,
}

impl Shingles {
    pub(super) fn of(tokens: &Tokens<'_>) -> Self {
        let singles = tokens.all.iter().filter(|token| token.single).count();
        let words = tokens.all.len() - singles + (singles * 2).div_ceil(3);
        Self {
            hashes: distinct(&tokens.all),
            words: u32::try_from(words).unwrap_or(u32::MAX),
            sentences: longest(tokens),
        }
    }
}

fn longest(tokens: &Tokens<'_>) -> Vec<u32> {
    let mut found: Vec<(u32, &[Token])> = tokens
        .sentences()
        .map(|sentence| {
            let columns =
                |token: &Token| if token.single { 2 } else { token.end - token.start + 1 };
            (sentence.iter().map(columns).sum::<u32>(), sentence)
        })
        .filter(|(columns, _)| *columns >= COLUMNS_MIN)
        .collect();
    // Sentences of equal length are all hashed, so that their order in the text does not matter.
    found.sort_by_key(|(columns, _)| std::cmp::Reverse(*columns));
    let least = found.get(SENTENCES - 1).map_or(0, |(columns, _)| *columns);
    let mut keys: Vec<(u32, u32)> = found
        .iter()
        .take_while(|(columns, _)| *columns >= least)
        .map(|(columns, sentence)| {
            let key =
                sentence.iter().fold(0, |key, token| mix(u64::rotate_left(key, 5) ^ token.hash));
            (*columns, (key >> 32) as u32)
        })
        .collect();
    keys.sort_unstable_by_key(|(columns, key)| (std::cmp::Reverse(*columns), *key));
    keys.dedup();
    keys.into_iter().take(SENTENCES).map(|(_, key)| key).collect()
}

fn distinct(tokens: &[Token]) -> Vec<u64> {
    if let [only] = tokens {
        return vec![only.hash];
    }
    with_counts(tokens.len(), |counts| {
        for shingle in tokens.windows(TOKENS) {
            counts.add(mix(shingle[0].hash.rotate_left(23) ^ shingle[1].hash), 0);
        }
        counts.iter().map(|(hash, _, _)| hash).collect()
    })
}
