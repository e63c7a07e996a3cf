//! How many documents a run looks up together.

use std::ops::RangeInclusive;

use super::work::NEWEST_BYTES;

/// Of the memory of a run, one part of so many is that of the documents that are looked up
/// together, but for what all else takes at least: the more they are, the more of them find what
/// they ask for in the same block.
const TOGETHER_PART: usize = 4;
const TOGETHER_LESS: usize = 16 << 20;

/// Documents that are looked up together.
const TOGETHER: RangeInclusive<usize> = 1 << 8..=1 << 15;

/// Memory of such a document until it is judged, for each: its keys, those that are asked for, and
/// what it takes among the newest texts.
const ASKED_BYTES: usize = 2_400 + NEWEST_BYTES;

/// Memory of what is found for one, as long as that is not known.
const FOUND_BYTES: usize = 4_000;

/// Returns how many documents are best looked up together by a run that takes some memory, of which
/// what is found for one takes so many bytes.
pub(super) fn together(memory: usize, found_bytes: usize) -> usize {
    let room = (memory / TOGETHER_PART).saturating_sub(TOGETHER_LESS);
    (room / (ASKED_BYTES + found_bytes)).clamp(*TOGETHER.start(), *TOGETHER.end())
}

/// The same where nothing was looked up yet.
pub(super) fn together_first(memory: usize) -> usize {
    together(memory, FOUND_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_looked_up_together_as_memory_and_what_is_found_for_them_allow() {
        let (small, large) = (96 << 20, 864 << 20);
        assert_eq!(together(0, 0), 256);
        assert!((256..1_000).contains(&together(small, FOUND_BYTES)));
        let many = together(large, FOUND_BYTES);
        assert!((20_000..32_000).contains(&many), "{many}");
        assert!(together(large, 4 * FOUND_BYTES) < many / 2);
        assert_eq!(together(usize::MAX, 0), 1 << 15);
    }
}
