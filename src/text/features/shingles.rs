//! The shingles of a text, and the keys of its longest sentences.

use crate::text::sketch::mix;
use crate::text::{Token, Tokens};

/// Tokens of a shingle.
const TOKENS: usize = 2;

/// Sentences of a text that are keys.
pub const SENTENCES: usize = 8;

/// Bits for each hash when distinct ones are counted.
const BITS_PER_HASH: usize = 8;

/// Least columns of a sentence that is a key: a shorter one is a commonplace.
const COLUMNS_MIN: u32 = 20;

pub(super) struct Shingles {
    /// Hashes of the shingles, repeated ones too.
    pub hashes: Vec<u64>,
    /// Distinct ones among them.
    pub distinct: u32,
    pub words: u32,
    /// Keys of the longest sentences, longest first.
    pub sentences: Box<[u32]>,
}

impl Shingles {
    pub(super) fn of(tokens: &Tokens<'_>) -> Self {
        let singles = tokens.all.iter().filter(|token| token.single).count();
        let words = tokens.all.len() - singles + (singles * 2).div_ceil(3);
        let (hashes, distinct) = shingles(&tokens.all);
        Self {
            hashes,
            distinct,
            words: u32::try_from(words).unwrap_or(u32::MAX),
            sentences: longest(tokens),
        }
    }
}

fn longest(tokens: &Tokens<'_>) -> Box<[u32]> {
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
    // A vector of its own: collected in place it would keep room for all sentences.
    keys.iter().take(SENTENCES).map(|(_, key)| *key).collect()
}

/// Returns the hashes of all shingles, repeated ones too, and about how many distinct ones
/// there are.
fn shingles(tokens: &[Token]) -> (Vec<u64>, u32) {
    if let [only] = tokens {
        return (vec![only.hash], 1);
    }
    let pairs = tokens.windows(TOKENS);
    let hashes: Vec<u64> =
        pairs.map(|pair| mix(pair[0].hash.rotate_left(23) ^ pair[1].hash)).collect();
    let count = distinct(&hashes);
    (hashes, count)
}

/// Estimates the number of distinct hashes by the bits that they set among [`BITS_PER_HASH`] each;
/// the error is below a hundredth.
///
/// Source: Whang et al., "A Linear-Time Probabilistic Counting Algorithm", TODS 1990.
fn distinct(hashes: &[u64]) -> u32 {
    let bits = (hashes.len() * BITS_PER_HASH).next_power_of_two().max(1 << 10);
    let mut map = vec![0u64; bits / 64];
    for hash in hashes {
        // Any bits of a hash will do: the sketch mixes it once more before it chooses a slot.
        let bit = (*hash >> 8) as usize & (bits - 1);
        map[bit / 64] |= 1 << (bit % 64);
    }
    let set: u32 = map.iter().map(|word| word.count_ones()).sum();
    let free = 1.0 - f64::from(set) / bits as f64;
    #[expect(clippy::cast_sign_loss, reason = "the logarithm of a share is not above zero")]
    let count = (-free.ln() * bits as f64).round() as u32;
    count.min(u32::try_from(hashes.len()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Shingles {
        Shingles::of(&Tokens::of(text))
    }

    #[test]
    fn the_eight_longest_sentences_are_keys_wherever_they_stand() {
        let sentence = |n: usize| format!("{} and so it goes on and on. ", "harbour ".repeat(n));
        let texts = |numbers: &[usize]| numbers.iter().map(|n| sentence(*n)).collect::<String>();
        let keys = of(&texts(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])).sentences;
        assert_eq!(keys.len(), 8);
        assert_eq!(keys, of(&texts(&[10, 3, 9, 4, 8, 5, 7, 6, 2])).sentences, "without 1 and 2");
        assert_eq!(keys[0], of(&sentence(10)).sentences[0], "longest first");
        assert_ne!(
            of("one two three four five.").sentences,
            of("five four three two one.").sentences
        );
    }

    #[test]
    fn of_equally_long_sentences_the_order_does_not_matter() {
        let mut all: Vec<String> =
            (10..22).map(|n| format!("the harbour bridge number {n} is open. ")).collect();
        let keys = of(&all.concat()).sentences;
        all.reverse();
        assert_eq!((keys.len(), &keys), (8, &of(&all.concat()).sentences));
    }

    #[test]
    fn a_sentence_is_a_key_from_twenty_columns_on() {
        // A word has one column more than letters, for the blank; a Chinese character has two.
        assert!(of("abcd efghi jklmnop.").sentences.is_empty());
        assert_eq!(of("abcd efghi jklmnopq.").sentences.len(), 1);
        assert!(of("网页去重系统的说明").sentences.is_empty());
        assert_eq!(of("网页去重系统的说明书").sentences.len(), 1);
    }

    #[test]
    fn a_shingle_is_a_pair_in_its_order() {
        assert_ne!(of("harbour bridge").hashes, of("bridge harbour").hashes);
        assert_ne!(of("harbour harbour").hashes, of("bridge bridge").hashes);
        assert_eq!(
            (of("").hashes.len(), of("one").hashes.len(), of("a b c").hashes.len()),
            (0, 1, 2)
        );
        assert_eq!((of("one two three").words, of("网页去重系统").words), (3, 4));
    }

    #[test]
    fn distinct_hashes_are_counted_within_a_hundredth() {
        for size in [0u64, 1, 10, 300, 5_000, 200_000] {
            let hashes: Vec<u64> = (0..2 * size).map(|n| mix(n % size.max(1) + 1)).collect();
            let found = f64::from(distinct(&hashes));
            assert!((found - size as f64).abs() <= 1.0 + size as f64 / 100.0, "{size}: {found}");
        }
    }
}
