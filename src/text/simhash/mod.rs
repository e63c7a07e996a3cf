//! 64-bit simhash fingerprints.
//!
//! Source: Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002;
//! used for web pages by Manku et al., "Detecting Near-Duplicates for Web Crawling", WWW 2007.

use std::fmt;

/// Bits of a fingerprint.
pub const BITS: u32 = 64;

/// Weights are counted in parts of this size, so that the order of the features does not matter.
const PARTS: f32 = 256.0;

/// A 64-bit simhash. Similar feature sets give fingerprints at a small Hamming distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// Returns the number of bits in which the two differ, 0 to 64.
    #[must_use]
    pub fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }

    /// Makes the fingerprint of weighted feature hashes: each bit is the fingerprint of the
    /// weighted vote of that bit over all features. A sum of exactly zero gives 0.
    ///
    /// No features give the fingerprint 0. Cost: 64 additions a feature.
    ///
    /// ```
    /// use uniqcrawl::text::simhash::Fingerprint;
    ///
    /// // The worked example of the docId paper: 去重 = 110010 with weight 3 and
    /// // 系统 = 101001 with weight 5 give 101001.
    /// let print = Fingerprint::of([(0b11_0010, 3.0), (0b10_1001, 5.0)]);
    /// assert_eq!(print.0 & 0b11_1111, 0b10_1001);
    /// ```
    ///
    /// Source: 汤建明, 寇小强, 海量网络文本去重系统 (bit = 1 if the sum is greater than 0).
    #[must_use]
    pub fn of(features: impl IntoIterator<Item = (u64, f32)>) -> Self {
        let mut votes = [0i64; 64];
        let mut some = SomeVotes::default();
        for (hash, weight) in features {
            let weight = (weight * PARTS).round() as i64;
            if !some.add(hash, weight) {
                some.count(&mut votes);
                some = SomeVotes::default();
                if !some.add(hash, weight) {
                    for (bit, vote) in votes.iter_mut().enumerate() {
                        *vote += if hash >> bit & 1 == 1 { weight } else { -weight };
                    }
                }
            }
        }
        some.count(&mut votes);
        let bits = votes.iter().enumerate().map(|(bit, vote)| u64::from(*vote > 0) << bit);
        Self(bits.fold(0, |all, bit| all | bit))
    }
}

/// Votes as long as they fit in 32 bits, of which twice as many are added up at a time.
#[derive(Default)]
struct SomeVotes {
    /// The weight of the features that have each bit, lowest first.
    having: [[u32; 32]; 2],
    /// The weight of all features.
    all: u32,
}

impl SomeVotes {
    /// Adds a feature; returns whether there was room for it.
    fn add(&mut self, hash: u64, weight: i64) -> bool {
        let Ok(weight) = u32::try_from(weight) else { return false };
        let Some(all) = self.all.checked_add(weight) else { return false };
        self.all = all;
        for (having, hash) in self.having.iter_mut().zip([hash as u32, (hash >> 32) as u32]) {
            for (bit, having) in having.iter_mut().enumerate() {
                // Branch-free, so that the compiler makes vector code of it.
                let mask = u32::from(hash & (1 << bit) == 0).wrapping_sub(1);
                *having += weight & mask;
            }
        }
        true
    }

    /// Adds them to others: what has a bit votes for it, the rest against it.
    fn count(&self, votes: &mut [i64; 64]) {
        for (vote, having) in votes.iter_mut().zip(self.having.as_flattened()) {
            *vote += 2 * i64::from(*having) - i64::from(self.all);
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plain definition.
    fn model(features: &[(u64, f32)]) -> u64 {
        let vote = |bit: u32| {
            let weights = features.iter().map(|(hash, weight)| {
                let weight = i128::from((weight * PARTS).round() as i64);
                if hash >> bit & 1 == 1 { weight } else { -weight }
            });
            u64::from(weights.sum::<i128>() > 0) << bit
        };
        (0..BITS).map(vote).sum()
    }

    proptest::proptest! {
        #[test]
        fn votes_of_any_weight_are_added_up(
            features in proptest::collection::vec(
                (0..=u64::MAX, proptest::prop_oneof![0.0..50.0f32, 0.0..3e7f32, -9.0..0.0f32]),
                0..40,
            ),
        ) {
            proptest::prop_assert_eq!(Fingerprint::of(features.clone()).0, model(&features));
        }
    }
}
