//! Which segments are to become one: as soon as there are four of one size, so that there are few
//! of each, and a posting is written anew once for each size, not for each segment that comes.
//!
//! Source: O'Neil, Cheng, Gawlick, O'Neil, "The Log-Structured Merge-Tree", Acta Informatica 1996;
//! Dayan, Idreos, "Dostoevsky", SIGMOD 2018 (tiers).

use std::ops::Range;

/// Segments of one size that become one.
pub const TIER: usize = 4;

/// A segment, as far as it matters when they are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentSize {
    /// Its postings.
    pub postings: u64,
    /// It is being merged.
    pub busy: bool,
}

/// Returns which segments, oldest first, are to become one next: the smallest that there are enough
/// of. `unit` is the size of the smallest.
#[must_use]
pub fn due(segments: &[SegmentSize], unit: u64) -> Option<Range<usize>> {
    let level = |segment: &SegmentSize| (segment.postings / unit.max(1)).max(1).ilog(TIER as u64);
    let highest = segments.iter().map(level).max()?;
    let free: Vec<Range<usize>> = segments
        .chunk_by(|a, b| a.busy == b.busy)
        .scan(0, |start, chunk| {
            let range = *start..*start + chunk.len();
            *start = range.end;
            Some((range, chunk[0].busy))
        })
        .filter_map(|(range, busy)| (!busy).then_some(range))
        .collect();
    (0..=highest)
        .find_map(|wanted| free.iter().find_map(|range| of_level(segments, range, wanted, level)))
}

/// Returns the segments of a level with smaller ones between them, if they are enough.
fn of_level(
    segments: &[SegmentSize],
    range: &Range<usize>,
    wanted: u32,
    level: impl Fn(&SegmentSize) -> u32,
) -> Option<Range<usize>> {
    let mut found: Option<Range<usize>> = None;
    let mut count = 0;
    for at in range.clone() {
        let own = level(&segments[at]);
        if own > wanted {
            (found, count) = (None, 0);
        } else if own == wanted {
            count += 1;
            found = Some(found.map_or(at, |found| found.start)..at + 1);
            if count == TIER {
                return found;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(sizes: &[u64]) -> Vec<SegmentSize> {
        sizes.iter().map(|postings| SegmentSize { postings: *postings, busy: false }).collect()
    }

    #[test]
    fn four_of_a_size_become_one() {
        assert_eq!(due(&[], 10), None);
        assert_eq!(due(&sizes(&[10, 10, 10]), 10), None);
        assert_eq!(due(&sizes(&[10, 10, 10, 10]), 10), Some(0..4));
        assert_eq!(due(&sizes(&[40, 40, 40, 10, 11, 12, 13]), 10), Some(3..7));
        // Smaller ones between them go along, larger ones part them.
        assert_eq!(due(&sizes(&[40, 40, 10, 40, 40, 10]), 10), Some(0..5));
        assert_eq!(due(&sizes(&[10, 10, 40, 10, 10]), 10), None);
        // Nothing at all is as good as the smallest.
        assert_eq!(due(&sizes(&[0, 1, 2, 3]), 10), Some(0..4));
    }

    #[test]
    fn what_is_being_merged_is_left_alone() {
        let mut segments = sizes(&[40, 40, 40, 40, 10, 10, 10, 10]);
        segments[..4].iter_mut().for_each(|segment| segment.busy = true);
        assert_eq!(due(&segments, 10), Some(4..8));
        segments[5].busy = true;
        assert_eq!(due(&segments, 10), None);
    }

    #[test]
    fn however_many_come_few_are_left() {
        let mut segments: Vec<SegmentSize> = Vec::new();
        for _ in 0..5_000 {
            segments.extend(sizes(&[10]));
            while let Some(range) = due(&segments, 10) {
                let postings = segments[range.clone()].iter().map(|segment| segment.postings).sum();
                segments.splice(range, sizes(&[postings]));
            }
            assert!(segments.len() <= 3 * 7, "{segments:?}");
        }
    }
}
