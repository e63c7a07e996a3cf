//! Sixteen tables by a block of 16 bits and then by 12 of the other 48.
//!
//! Three differing bits leave one of four 16-bit blocks equal, and one of the four 12-bit parts
//! of what remains. A key has 28 bits; the price is sixteen copies.
//!
//! Source: Manku et al., "Detecting Near-Duplicates for Web Crawling", WWW 2007, section 3.1.2.

use super::tables::MaskTables;

/// Largest distance: one of four blocks is left, and one of four parts.
pub const K_MAX: u32 = 3;

/// Makes an empty two-level index.
#[must_use]
pub fn two_level() -> MaskTables {
    let mut masks = Vec::new();
    for block in 0..4 {
        let first: u64 = 0xFFFF << (16 * block);
        let others: Vec<u32> = (0..64).filter(|bit| first >> bit & 1 == 0).collect();
        let parts = others.chunks(12);
        masks.extend(parts.map(|part| part.iter().fold(first, |mask, bit| mask | 1 << bit)));
    }
    MaskTables::new(&masks, K_MAX)
}
