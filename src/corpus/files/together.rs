//! How many documents a run gathers, looks up together, and then judges.

use std::ops::RangeInclusive;

use super::prepare::Prepared;
use super::work::NEWEST_BYTES;

/// Of the memory of a run, one part of so many is that of the documents that are looked up
/// together, but for what all else takes at least: the more they are, the more of them find what
/// they ask for in the same block. Those before them, which are judged meanwhile, take as much.
const TOGETHER_PART: usize = 8;
const TOGETHER_LESS: usize = 4 << 20;

/// Documents that are looked up together.
const TOGETHER: RangeInclusive<usize> = 1 << 8..=1 << 16;

/// Memory of such a document until it is judged, for each: its keys, and those that are asked for.
const ASKED_BYTES: usize = 2_400;

/// Memory of what is found for one, as long as that is not known.
const FOUND_BYTES: usize = 4_000;

/// Returns how many documents are best looked up together by a run that takes some memory, of which
/// what is found for one takes so many bytes.
pub(super) fn together(memory: usize, found_bytes: usize) -> usize {
    let room = (memory / TOGETHER_PART).saturating_sub(TOGETHER_LESS);
    // When it takes its place among the newest texts, little of what was found is left.
    (room / (ASKED_BYTES + found_bytes.max(NEWEST_BYTES))).clamp(*TOGETHER.start(), *TOGETHER.end())
}

/// The same where nothing was looked up yet.
pub(super) fn together_first(memory: usize) -> usize {
    together(memory, FOUND_BYTES)
}

/// Of the memory of a run, one part of so many is that of lines that were made for the documents of
/// a batch: those of pages are long. Two batches are there at a time.
const LINES_PART: usize = 32;

/// How many documents are gathered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    /// Records.
    pub(crate) records: usize,
    /// Bytes of what is kept of them until they are judged.
    pub(crate) bytes: usize,
}

impl Most {
    /// Returns so many documents, of which the lines have a part of the memory.
    pub(super) fn of(records: usize, memory: usize) -> Self {
        Self { records, bytes: memory / LINES_PART }
    }
}

/// Takes the next chunks, at least one, until their records are enough; none if there are no more.
/// `bytes` says what is kept of a document until it is judged.
pub(crate) fn gather<T>(
    chunks: &mut dyn Iterator<Item = Prepared<T>>,
    most: Most,
    bytes: impl Fn(&T) -> usize,
) -> Vec<Prepared<T>> {
    let (mut gathered, mut records, mut kept) = (Vec::new(), 0, 0);
    while (gathered.is_empty() || records < most.records && kept < most.bytes)
        && let Some(chunk) = chunks.next()
    {
        records += chunk.fates.len();
        kept += chunk.documents().map(&bytes).sum::<usize>();
        gathered.push(chunk);
    }
    gathered
}

#[cfg(test)]
mod tests {
    use super::super::journal::FingerprintedLine;
    use super::super::prepare::Fate;
    use super::*;
    use crate::neardup::article_keys;
    use crate::text::features::{Fingerprinter, Input};

    #[test]
    fn so_many_are_gathered_as_memory_has_room_for_their_lines() {
        let keys = article_keys(&Fingerprinter::default(), &Input::default());
        let line = |made: Option<String>| {
            let (id, keys) = (String::new(), keys.clone());
            FingerprintedLine { id, keys, popularity: 0, made, masked: 0, repaired: false }
        };
        let chunk = |made: &Option<String>| {
            let fates = (0..10).map(|_| Fate::Document(line(made.clone()))).collect();
            Prepared { source: 0, first: 1, bytes: 0, fates }
        };
        let gathered = |made: Option<String>, most| {
            let mut chunks = std::iter::repeat_with(|| chunk(&made)).take(9);
            let bytes = |line: &FingerprintedLine| line.made.as_ref().map_or(0, String::len);
            let taken = gather(&mut chunks, most, bytes).len();
            assert_eq!(taken + chunks.count(), 9);
            taken
        };
        let most = Most::of(65, LINES_PART * 30_000);
        assert_eq!(gathered(None, most), 7, "by their number");
        let page = "x".repeat(1_000);
        assert_eq!(gathered(Some(page), most), 3, "by the lines of pages");
        assert_eq!(gathered(None, Most::of(1_000, 1 << 20)), 9, "there are no more");
        assert_eq!(gathered(None, Most::of(0, 0)), 1, "else all would end here");
    }

    #[test]
    fn as_many_are_looked_up_together_as_memory_and_what_is_found_for_them_allow() {
        let (small, large) = (96 << 20, 864 << 20);
        assert_eq!(together(0, 0), 256);
        assert!((256..4_000).contains(&together(small, FOUND_BYTES)));
        let many = together(large, FOUND_BYTES);
        assert!((12_000..20_000).contains(&many), "{many}");
        assert!(together(large, 4 * FOUND_BYTES) < many / 2);
        assert_eq!(together(usize::MAX, 0), 1 << 16);
    }
}
