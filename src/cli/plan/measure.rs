//! Times of this machine for `crawl plan`: of comparisons and look-ups in indexes of random
//! fingerprints, which are made in memory for it, one after the other.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::neardup::index::layout::{Layout, LayoutKind, build};
use crate::neardup::index::linear::Linear;
use crate::neardup::plan::K;
use crate::neardup::segment::{
    BadBlock, Block, BlockId, Blocks, FILTERS, Filter, LookUpCost, Posting, ROTATIONS, Segment,
    SegmentPostings, TableContent, TableSize, equality_table, near_table, spread,
};
use crate::neardup::{Field, Key, Nearby, Postings as _};
use crate::text::simhash::Fingerprint;
use crate::text::sketch::mix;
use anyhow::Result;
use serde::Serialize;

use super::super::screen;

/// Fingerprints that are scanned: 64 MiB, more than most processors keep near.
pub(super) const SCANNED: u64 = 1 << 23;

/// Fingerprints of each index that is asked.
pub(super) const INDEXED: u64 = 100_000;

/// Look-ups of which one time is taken.
const AT_A_TIME: u64 = 500;

/// Time for each measurement.
const BUDGET: Duration = Duration::from_millis(120);

/// Times are taken at least so often.
const ROUNDS_MIN: usize = 3;

/// Medians, in seconds.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MachineTimes {
    /// A comparison of two fingerprints in a scan.
    pub comparison: f64,
    /// A look-up in four tables.
    pub four_tables: f64,
    /// A look-up in ten tables.
    pub ten_tables: f64,
    /// A look-up of a fingerprint that a segment has.
    pub segment: f64,
    /// A comparison in the blocks of a segment.
    pub block_comparison: f64,
    /// A look-up of an equality key that no content of a segment has.
    pub filter: f64,
    /// Memory of this process at its peak, in bytes.
    pub peak_memory: Option<u64>,
}

impl MachineTimes {
    /// Returns how long a look-up in an index takes: its comparisons, its blocks as they were gone
    /// through in the segment that was measured, and its filters.
    pub(super) fn of(&self, cost: LookUpCost) -> f64 {
        cost.comparisons * self.block_comparison
            + cost.blocks * self.block()
            + cost.filters * self.filter
    }

    /// Returns the time for which a block of a segment is gone through, without comparisons.
    fn block(&self) -> f64 {
        let rotation = TableSize::of(TableContent::fingerprints(INDEXED));
        let cost = rotation.map_or_else(LookUpCost::default, |table| table.found());
        let cost = cost.times(f64::from(ROTATIONS));
        let rest = self.segment - cost.comparisons * self.block_comparison;
        rest.max(0.0) / cost.blocks.max(1.0)
    }
}

/// Measures all of it, in about a second where the code is optimised.
pub(super) fn measure() -> Result<MachineTimes> {
    let comparison = scan();
    let four_tables = look_up(LayoutKind::Rotated)?;
    let ten_tables = look_up(LayoutKind::Pairs)?;
    let segment = segment()?;
    Ok(MachineTimes {
        comparison,
        four_tables,
        ten_tables,
        segment: segment.look_up,
        block_comparison: segment.comparison,
        filter: segment.filter,
        peak_memory: screen::peak_memory(),
    })
}

/// Returns the median of the seconds that `work` takes for one of `count` things. It gets the
/// number of the round.
fn seconds(count: u64, mut work: impl FnMut(u64)) -> f64 {
    let end = Instant::now() + BUDGET;
    let mut times = Vec::new();
    while times.len() < ROUNDS_MIN || Instant::now() < end {
        let round = times.len() as u64;
        let started = Instant::now();
        work(round);
        times.push(started.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2] / count as f64
}

/// Returns a fingerprint that is asked for: none of those that are stored.
fn asked(round: u64, at: u64) -> Fingerprint {
    Fingerprint(mix((1 << 40) + round * AT_A_TIME + at))
}

/// Seconds of a comparison in a linear scan.
fn scan() -> f64 {
    let scanned = Linear::numbered((0..SCANNED).map(mix).collect());
    let mut found = Vec::new();
    seconds(SCANNED, |round| {
        scanned.probe(asked(round, 0), K, &mut found);
        black_box(&found);
    })
}

/// Seconds of a look-up in a layout of [`INDEXED`] fingerprints.
fn look_up(kind: LayoutKind) -> Result<f64> {
    let mut layout = build(kind, K)?;
    let entries: Vec<_> =
        (0u32..).zip(0..INDEXED).map(|(at, n)| (Fingerprint(mix(n)), at)).collect();
    layout.insert_all(&entries);
    let mut found = Vec::new();
    Ok(seconds(AT_A_TIME, |round| {
        for at in 0..AT_A_TIME {
            layout.probe(asked(round, at), K, &mut found);
        }
        black_box(&found);
    }))
}

/// Blocks of a segment in memory.
#[derive(Default)]
struct BuiltBlocks {
    blocks: HashMap<BlockId, Arc<Block>>,
    filters: HashMap<BlockId, Filter>,
}

impl Blocks for BuiltBlocks {
    type Error = BadBlock;

    fn block(&self, id: BlockId) -> Result<Arc<Block>, BadBlock> {
        self.blocks.get(&id).cloned().ok_or(BadBlock("is missing"))
    }

    fn passes(&self, filter: BlockId, key: u64) -> Result<bool, BadBlock> {
        let filter = self.filters.get(&filter).ok_or(BadBlock("is missing"))?;
        Ok(filter.may_have(key))
    }
}

/// A segment of [`INDEXED`] contents.
struct SegmentTime {
    look_up: f64,
    comparison: f64,
    filter: f64,
}

/// Makes a segment with the fingerprints of texts, and one equality key of each.
fn built() -> Result<(Segment, BuiltBlocks)> {
    let mut postings = Vec::new();
    for content in 0..INDEXED {
        postings.extend((0..ROTATIONS).map(|rotation| {
            let key = mix(content).rotate_left(16 * u32::from(rotation));
            (near_table(Field::Content, rotation), Posting { key, content })
        }));
        let key = spread((mix(content) >> 32) as u32);
        postings.push((equality_table(Key::Shingles), Posting { key, content }));
    }
    let (segment, written) = Segment::of(0, INDEXED, postings);
    let mut blocks = BuiltBlocks::default();
    for (id, bytes) in written {
        if id.level == FILTERS {
            blocks.filters.insert(id, Filter::read(&bytes)?);
        } else {
            blocks.blocks.insert(id, Arc::new(Block::read(&bytes)?));
        }
    }
    Ok((segment, blocks))
}

fn segment() -> Result<SegmentTime> {
    let (segment, blocks) = built()?;
    let all = SegmentPostings { segments: std::slice::from_ref(&segment), blocks: &blocks };
    let (mut found, mut fault) = (0, Ok(()));
    let look_up = seconds(AT_A_TIME, |round| {
        for at in 0..AT_A_TIME {
            let fingerprint = Fingerprint(mix((round * AT_A_TIME + at) * 7 % INDEXED));
            let asked = Nearby { field: Field::Content, fingerprint, k: K };
            fault = fault.and(all.near(asked, &mut |_, _| found += 1));
        }
    });
    let comparison = seconds(INDEXED, |round| {
        let query = asked(round, 0).0;
        let Some(table) = segment.table(near_table(Field::Content, 0)) else { return };
        fault = fault.and(table.postings_of(&blocks, 0, 0..=u64::MAX, |block, range| {
            let near = |at: &usize| (block.key(*at) ^ query).count_ones() <= K;
            found += range.filter(near).count();
        }));
    });
    let filter = seconds(AT_A_TIME, |round| {
        for at in 0..AT_A_TIME {
            let hash = spread((asked(round, at).0 >> 32) as u32);
            fault = fault.and(all.equal(Key::Shingles, hash, &mut |_| found += 1));
        }
    });
    black_box(found);
    fault?;
    Ok(SegmentTime { look_up, comparison, filter })
}
