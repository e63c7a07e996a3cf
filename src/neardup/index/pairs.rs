//! Ten tables by two of five blocks: 13, 13, 13, 13 and 12 bits.
//!
//! Three differing bits touch at most three of the five blocks, so two stay equal. A key has 25
//! or 26 bits, so that few rows are read even among 10^9; the price is ten copies.
//!
//! Source: Manku et al., "Detecting Near-Duplicates for Web Crawling", WWW 2007, section 3.1.2.

use super::tables::MaskTables;

/// Largest distance: two of five blocks are left.
pub const K_MAX: u32 = 3;

/// Blocks from the top: 13, 13, 13, 13 and 12 bits.
const BLOCKS: [u64; 5] = [
    ((1 << 13) - 1) << 51,
    ((1 << 13) - 1) << 38,
    ((1 << 13) - 1) << 25,
    ((1 << 13) - 1) << 12,
    (1 << 12) - 1,
];

/// Makes an empty index by pairs of blocks.
#[must_use]
pub fn pairs() -> MaskTables {
    let mut masks = Vec::new();
    for (at, one) in BLOCKS.iter().enumerate() {
        masks.extend(BLOCKS[at + 1..].iter().map(|other| one | other));
    }
    MaskTables::new(&masks, K_MAX)
}
