//! One-permutation MinHash of word shingles: 128 bytes that tell how alike two texts are.
//!
//! Source: Li, Owen, Zhang, "One Permutation Hashing", NIPS 2012; Shrivastava, Li, "Densifying
//! One Permutation Hashing via Rotation", ICML 2014; Li, König, "b-Bit Minwise Hashing", WWW 2010.

/// Slots of a sketch.
const SLOTS: usize = 128;

/// Chance that two unlike slots of 8 bits are equal.
const CHANCE: f32 = 1.0 / 256.0;

/// A sketch of the set of 2-word shingles of a text. The standard error of the estimated
/// similarity is about 0.04 in the middle of the range, less at its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch(pub [u8; 128]);

impl Sketch {
    /// Makes the sketch of a text, given 64-bit hashes of its words in their order. One word counts
    /// as one shingle; no words give a sketch of zeros.
    #[must_use]
    pub fn of(hashes: &[u64]) -> Self {
        let mut least = [u64::MAX; SLOTS];
        let mut add = |hash: u64| {
            // The top bits choose the slot, the others are the value.
            let slot = (hash >> 57) as usize;
            let value = hash & (u64::MAX >> 7);
            least[slot] = least[slot].min(value);
        };
        match hashes {
            [] => return Self([0; SLOTS]),
            [only] => add(mix(*only)),
            many => {
                for pair in many.windows(2) {
                    add(mix(pair[0].rotate_left(23) ^ pair[1]));
                }
            }
        }
        Self(densify(&least))
    }

    /// Returns the estimated share of shingles that both texts have among those that either has
    /// (Jaccard), 0 to 1.
    #[must_use]
    pub fn similarity(&self, other: &Self) -> f32 {
        let equal = self.0.iter().zip(&other.0).filter(|(a, b)| a == b).count();
        let share = equal as f32 / SLOTS as f32;
        ((share - CHANCE) / (1.0 - CHANCE)).max(0.0)
    }
}

/// Fills each empty slot from the next full one, marked with its distance so that only slots
/// that were filled in the same way can be equal.
fn densify(least: &[u64; SLOTS]) -> [u8; SLOTS] {
    let mut slots = [0; SLOTS];
    for (at, slot) in slots.iter_mut().enumerate() {
        let (steps, value) = (0..SLOTS)
            .map(|steps| (steps, least[(at + steps) % SLOTS]))
            .find(|(_, value)| *value != u64::MAX)
            .expect("a text with words fills a slot");
        *slot = (mix(value.wrapping_add((steps as u64) << 58)) >> 32) as u8;
    }
    slots
}

/// A bijection of 64 bits in which every input bit moves every output bit.
///
/// Source: the finaliser of `MurmurHash3` by Austin Appleby (public domain).
fn mix(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    bits ^ (bits >> 33)
}
