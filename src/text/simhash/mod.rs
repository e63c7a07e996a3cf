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
        for (hash, weight) in features {
            let weight = (weight * PARTS).round() as i64;
            for (bit, vote) in votes.iter_mut().enumerate() {
                // Branch-free, so that the compiler makes vector code of it: all ones where the
                // bit is 0, which negates.
                let flip = (hash >> bit & 1).cast_signed() - 1;
                *vote += (weight ^ flip) - flip;
            }
        }
        let bits = votes.iter().enumerate().map(|(bit, vote)| u64::from(*vote > 0) << bit);
        Self(bits.fold(0, |all, bit| all | bit))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
