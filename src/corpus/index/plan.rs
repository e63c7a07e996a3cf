//! How large the index of so many contents is, and what a look-up in it reads: arithmetic, nothing
//! is opened. The contents have all keys that they can have, and in common what chance gives them.

use serde::Serialize;

use crate::neardup::Config;
use crate::neardup::plan::{EQUALITY_BITS, SENTENCE_BITS};
use crate::neardup::segment::{
    KEY_BITS, LookUpCost, Posting, ROTATIONS, TIER, TableContent, TableSize,
};
use crate::store::FixedKey as _;
use crate::text::features::SENTENCES;

use super::{BlockId, Sizes};

/// Bytes of a page of the store.
const PAGE: u64 = 4_096;

/// Bytes that a page notes of itself, and of each row beside key and value.
const NOTES: u64 = 4;

/// Pages that a page above them names, as full as these are on the average.
const PAGES_OF_A_BRANCH: u64 = 64;

/// Bytes in memory of a fingerprint in four tables, of their directories and the list before them,
/// of a slot of a hash table, at most three quarters of which are full, and of a content's number.
const PACKED_BYTES: u64 = 28;
const DIRECTORIES_BYTES: u64 = 4 * 4 * 65_537 + 12 * 4_096;
const SLOT_BYTES: u64 = 8;
const NUMBER_BYTES: u64 = 8;

/// Segments of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlannedTier {
    /// Contents of each.
    pub contents: u64,
    /// How many there are.
    pub segments: u64,
    /// Bytes of the blocks and filters of each.
    pub bytes: u64,
}

/// Memory of an index, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct IndexMemory {
    /// The newest contents, and their postings.
    pub tail: u64,
    /// As many before them, and the blocks that are written of these.
    pub writing: u64,
    /// Blocks of the store that were asked for lately, at most.
    pub cache: u64,
}

impl IndexMemory {
    /// Returns all of it.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.tail + self.writing + self.cache
    }
}

/// The index of so many contents.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IndexPlan {
    /// Segments by size, largest first.
    pub tiers: Vec<PlannedTier>,
    /// Postings of a content.
    pub postings_each: u64,
    /// What it costs to find the fingerprints near that of a text.
    pub look_up: LookUpCost,
    /// What it costs to find all that shares any key with an article.
    pub article: LookUpCost,
    /// Bytes of blocks and filters, when all is in the store.
    pub bytes: u64,
    /// Bytes of the pages of the store that have them.
    pub file_bytes: u64,
    /// Bytes of the file while its largest segments become one: it does not shrink after that.
    pub peak_bytes: u64,
    /// Its memory, which does not grow with the store.
    pub memory: IndexMemory,
}

impl IndexPlan {
    /// Plans the index of `contents`, in a store whose page cache has `cache_bytes`.
    #[must_use]
    pub fn of(contents: u64, config: &Config, sizes: Sizes, cache_bytes: usize) -> Self {
        let keys = KeyCounts::of(config);
        let mut plan = Self {
            tiers: Vec::new(),
            postings_each: keys.postings(),
            look_up: LookUpCost::default(),
            article: LookUpCost::default(),
            bytes: 0,
            file_bytes: 0,
            peak_bytes: 0,
            memory: keys.memory(sizes, cache_bytes),
        };
        for (size, segments) in sizes_of(contents / sizes.tail, sizes.tail) {
            let tables = keys.tables(size);
            let bytes = plan.add(&tables, segments);
            plan.tiers.push(PlannedTier { contents: size, segments, bytes });
            for table in tables {
                let cost = table.size.look_up().times(segments as f64);
                plan.article += cost.times(table.questions as f64);
                if table.size.content.keys.is_none() {
                    plan.look_up += cost.times(f64::from(ROTATIONS));
                }
            }
        }
        // What is in memory is asked by tables of the same bits, and comes into the store at the
        // end of a crawl, as one segment.
        let tail = contents % sizes.tail;
        let compared = (tail * u64::from(ROTATIONS)) as f64 / 65_536.0;
        let cost = LookUpCost { comparisons: compared, ..LookUpCost::default() };
        plan.look_up += cost;
        plan.article += cost.times(keys.fields as f64);
        plan.add(&keys.tables(tail), 1);
        plan.peak_bytes = 2 * plan.file_bytes;
        plan
    }

    /// Returns the number of segments that are asked.
    #[must_use]
    pub fn segments(&self) -> u64 {
        self.tiers.iter().map(|tier| tier.segments).sum()
    }

    /// Adds the bytes of so many segments. Returns those of one.
    fn add(&mut self, tables: &[KeyTable], segments: u64) -> u64 {
        let bytes = bytes_of(tables);
        self.bytes += bytes * segments;
        let pages = tables.iter().map(KeyTable::pages).sum::<u64>() * segments;
        self.file_bytes += (pages + pages / PAGES_OF_A_BRANCH) * PAGE;
        bytes
    }
}

/// Returns the sizes of segments, largest first, and how many there are of each: four of one size
/// have become one of the next.
fn sizes_of(mut units: u64, unit: u64) -> Vec<(u64, u64)> {
    let mut sizes = Vec::new();
    let mut size = unit;
    while units > 0 {
        sizes.push((size, units % TIER as u64));
        units /= TIER as u64;
        size = size.saturating_mul(TIER as u64);
    }
    sizes.retain(|(_, segments)| *segments > 0);
    sizes.reverse();
    sizes
}

/// Keys of the whole text of a content.
const TEXTS: u64 = 1;

/// Keys of a content.
#[derive(Debug, Clone, Copy)]
struct KeyCounts {
    /// Fingerprints.
    fields: u64,
    sentences: u64,
    bands: u64,
}

impl KeyCounts {
    fn of(config: &Config) -> Self {
        Self {
            fields: 1 + u64::from(config.titles),
            sentences: if config.sentences { SENTENCES as u64 } else { 0 },
            bands: config.bands as u64,
        }
    }

    fn postings(self) -> u64 {
        self.fields * u64::from(ROTATIONS) + TEXTS + self.sentences + self.bands
    }

    /// Returns the tables of a segment; none is there that has no postings.
    fn tables(self, contents: u64) -> Vec<KeyTable> {
        let rotations = self.fields * u64::from(ROTATIONS);
        let hashes = |each, bits: u32| TableContent::hashes(contents, each, 1 << bits);
        let all = [
            (TableContent::fingerprints(contents), rotations, rotations),
            (hashes(TEXTS, KEY_BITS), 1, TEXTS),
            (hashes(self.sentences, SENTENCE_BITS), 1, self.sentences),
            (hashes(self.bands, EQUALITY_BITS), 1, self.bands),
        ];
        let table = |(content, tables, questions)| {
            Some(KeyTable { size: TableSize::of(content)?, tables, questions })
        };
        all.into_iter().filter_map(table).collect()
    }

    fn memory(self, sizes: Sizes, cache_bytes: usize) -> IndexMemory {
        let contents = sizes.tail;
        let slots = |each: u64| (each * contents * 4 / 3 + 1).next_power_of_two() * SLOT_BYTES;
        let texts = 2 * contents * size_of::<Posting>() as u64;
        let near = texts + self.fields * (contents * PACKED_BYTES + DIRECTORIES_BYTES);
        let asked = near + slots(self.sentences) + slots(self.bands) + contents * NUMBER_BYTES;
        let postings = (self.postings() * contents).next_power_of_two();
        IndexMemory {
            tail: asked + postings * size_of::<(u8, Posting)>() as u64,
            writing: asked + bytes_of(&self.tables(contents)),
            cache: cache_bytes as u64 * 3,
        }
    }
}

/// Tables of a segment that are of one size.
struct KeyTable {
    size: TableSize,
    /// Their number.
    tables: u64,
    /// What an article asks them.
    questions: u64,
}

impl KeyTable {
    /// Returns the pages of the store in which their blocks lie.
    fn pages(&self) -> u64 {
        let levels = self.size.levels.iter().map(|level| pages(level.blocks, level.bytes));
        let filters = pages(self.size.filters, self.size.filter_bytes);
        (levels.sum::<u64>() + filters) * self.tables
    }
}

fn bytes_of(tables: &[KeyTable]) -> u64 {
    tables.iter().map(|table| table.size.bytes() * table.tables).sum()
}

/// Returns the pages of so many rows that have so many bytes without their keys.
fn pages(rows: u64, bytes: u64) -> u64 {
    let row = bytes / rows.max(1) + BlockId::SIZE as u64 + NOTES;
    rows.div_ceil(((PAGE - NOTES) / row).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::index::POSTINGS;

    fn plan(contents: u64) -> IndexPlan {
        IndexPlan::of(contents, &Config::default(), Sizes::default(), 256 << 20)
    }

    #[test]
    fn segments_are_counted_by_size() {
        let unit = 8_192;
        let tiers = |contents| {
            let tiers = plan(contents).tiers.into_iter();
            tiers.map(|tier| (tier.contents, tier.segments)).collect::<Vec<_>>()
        };
        assert_eq!(tiers(unit - 1), []);
        assert_eq!(tiers(3 * unit), [(unit, 3)]);
        assert_eq!(tiers(4 * unit), [(4 * unit, 1)]);
        assert_eq!(tiers(27 * unit + 5), [(16 * unit, 1), (4 * unit, 2), (unit, 3)]);
        assert_eq!(plan(27 * unit + 100).segments(), 6);
    }

    #[test]
    fn contents_are_compared_by_the_first_bits_of_the_rotations_that_filters_let_pass() {
        for (contents, most) in [(1 << 20, 0.04), (1_000_000_000, 1.0)] {
            let compared = plan(contents).look_up.comparisons;
            let all = contents as f64 / 65_536.0 * 4.0;
            assert!(compared > all * most / 4.0 && compared <= all * most, "{compared} of {all}");
        }
    }

    #[test]
    fn the_postings_of_a_content_are_those_that_sizes_go_by() {
        assert_eq!(plan(1).postings_each, POSTINGS);
        let fingerprints =
            Config { titles: false, sentences: false, bands: 0, ..Config::default() };
        let plan = IndexPlan::of(1 << 20, &fingerprints, Sizes::default(), 0);
        // And the whole text, whose key nobody has most of the time.
        assert_eq!(plan.postings_each, 5);
        let more = plan.article.blocks - plan.look_up.blocks;
        assert!((0.0..1.0).contains(&more) && plan.article.filters > 0.0, "{plan:?}");
        assert!((plan.look_up.comparisons - plan.article.comparisons).abs() < 1e-9);
    }

    #[test]
    fn memory_does_not_grow_and_the_file_does() {
        let [small, large] = [1 << 20, 1 << 30].map(plan);
        assert_eq!(small.memory, large.memory);
        assert!(large.memory.bytes() < 832 << 20, "{:?}", large.memory);
        let growth = large.bytes as f64 / small.bytes as f64;
        // Of segments of hundreds of millions, filters of fingerprints tell nothing.
        assert!((800.0..1_100.0).contains(&growth), "{growth}");
        for plan in [small, large] {
            let full = plan.bytes as f64 / plan.file_bytes as f64;
            assert!((0.85..1.0).contains(&full), "{full}");
        }
    }

    #[test]
    fn nothing_takes_no_room() {
        let plan = plan(0);
        assert_eq!((plan.bytes, plan.file_bytes, plan.segments()), (0, 0, 0));
    }
}
