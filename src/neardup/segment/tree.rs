//! The postings of one table of a segment: blocks in order, and blocks of their first postings
//! above them, up to one that stands for all. Written once, from the first posting to the last.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use super::block::{BYTES_MAX, BadBlock, Block, BlockWriter, Posting};
use super::filter::{
    FINGERPRINT_KEYS, Filter, GROUP_ERRORS_MAX, KEYS, filter_of, filter_of_fingerprint,
    filters_of_fingerprints, fingerprint_keys,
};
use super::{Ask, has_fingerprints, has_hashes};

/// Level of the filters, which stand for no blocks.
pub const FILTERS: u8 = u8::MAX;

/// Where a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// Number of the table.
    pub table: u8,
    /// Number of the segment.
    pub segment: u32,
    /// 0 for postings, above it blocks of first postings; or [`FILTERS`].
    pub level: u8,
    /// Its first posting; of a filter, its number and 0.
    pub first: Posting,
}

impl BlockId {
    /// Returns where a filter is.
    #[must_use]
    pub fn filter(table: u8, segment: u32, number: u32) -> Self {
        let first = Posting { key: u64::from(number), content: 0 };
        Self { table, segment, level: FILTERS, first }
    }
}

/// A block that was written, with its place.
pub type Written = (BlockId, Vec<u8>);

/// Whatever holds blocks.
pub trait Blocks {
    /// What can go wrong.
    type Error: From<BadBlock>;

    /// Returns a block.
    fn block(&self, id: BlockId) -> Result<Arc<Block>, Self::Error>;

    /// Tells whether a filter lets a key pass.
    fn passes(&self, filter: BlockId, key: u64) -> Result<bool, Self::Error>;

    /// Has the place in a filter come nearer that a key will be asked at, if that is of use.
    fn prefetch(&self, filter: BlockId, key: u64) {
        let _ = (filter, key);
    }
}

/// One table of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentTable {
    /// Its number.
    pub table: u8,
    /// Its postings.
    pub postings: u64,
    /// Level of the block that stands for all.
    pub top: u8,
    /// The first posting.
    pub first: Posting,
    /// Its filters; 0 if it has none.
    pub filters: u32,
}

impl SegmentTable {
    /// Calls `each` with the postings of a range of keys, block by block.
    pub fn postings_of<B: Blocks>(
        &self,
        blocks: &B,
        segment: u32,
        keys: RangeInclusive<u64>,
        mut each: impl FnMut(&Block, Range<usize>),
    ) -> Result<(), B::Error> {
        let from = Posting { key: *keys.start(), content: 0 };
        let end = keys.end().checked_add(1).map(|key| Posting { key, content: 0 });
        self.leaves(blocks, segment, from, &mut |block| {
            let last = end.map_or(block.count(), |end| block.below(end));
            each(block, block.below(from).min(last)..last);
            last == block.count()
        })
    }

    /// Tells whether a key may be there, as its filter has it.
    pub fn may_have<B: Blocks>(
        &self,
        blocks: &B,
        segment: u32,
        key: u64,
    ) -> Result<bool, B::Error> {
        if self.filters == 0 {
            return Ok(true);
        }
        blocks.passes(self.filter(segment, key), key)
    }

    /// Has the place in its filter come nearer that a key will be asked at.
    pub fn prefetch<B: Blocks>(&self, blocks: &B, segment: u32, key: u64) {
        if self.filters > 0 {
            blocks.prefetch(self.filter(segment, key), key);
        }
    }

    /// Returns how many keys its filters have at most.
    #[must_use]
    pub fn filter_keys(&self) -> u64 {
        match self.filters {
            0 => 0,
            _ if has_fingerprints(self.table) => self.postings * FINGERPRINT_KEYS,
            _ => self.postings,
        }
    }

    /// Tells whether a rotated fingerprint that is looked for may be there, as its filter has it.
    pub(super) fn may_be_near<B: Blocks>(
        &self,
        blocks: &B,
        segment: u32,
        ask: Ask,
    ) -> Result<bool, B::Error> {
        if self.filters == 0 || ask.errors_max() > GROUP_ERRORS_MAX {
            return Ok(true);
        }
        let near = ask.with_prefix();
        let filter = self.filter(segment, near);
        for key in fingerprint_keys(near) {
            if blocks.passes(filter, key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the filter that lets a key of a posting pass, and the keys that it has of it.
    #[must_use]
    pub fn in_filter(&self, segment: u32, key: u64) -> (BlockId, [u64; FINGERPRINT_KEYS as usize]) {
        let is_rotated = has_fingerprints(self.table);
        let keys = if is_rotated { fingerprint_keys(key) } else { [key; _] };
        (self.filter(segment, key), keys)
    }

    fn filter(&self, segment: u32, key: u64) -> BlockId {
        BlockId::filter(self.table, segment, filter_in(self.table, key, self.filters))
    }

    /// Calls `each` with the block that has `from`, or would have it, and those behind it, as long
    /// as it returns true.
    pub fn leaves<B: Blocks>(
        &self,
        blocks: &B,
        segment: u32,
        from: Posting,
        each: &mut impl FnMut(&Arc<Block>) -> bool,
    ) -> Result<(), B::Error> {
        let root = BlockId { table: self.table, segment, level: self.top, first: self.first };
        walk(blocks, root, from, each).map(drop)
    }
}

fn walk<B: Blocks>(
    blocks: &B,
    id: BlockId,
    from: Posting,
    each: &mut impl FnMut(&Arc<Block>) -> bool,
) -> Result<bool, B::Error> {
    let block = blocks.block(id)?;
    let Some(level) = id.level.checked_sub(1) else { return Ok(each(&block)) };
    // The last one that does not begin behind it.
    let mut start = block.below(from);
    if start == block.count() || block.get(start) != from {
        start = start.saturating_sub(1);
    }
    for at in start..block.count() {
        let below = BlockId { level, first: block.get(at), ..id };
        if !walk(blocks, below, from, each)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the number of the filter of a key of a table that has so many.
fn filter_in(table: u8, key: u64, filters: u32) -> u32 {
    if has_fingerprints(table) {
        filter_of_fingerprint(key, filters)
    } else {
        filter_of(key, filters)
    }
}

/// A table that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeWriter {
    segment: u32,
    table: u8,
    /// Bytes of a block at most.
    block_bytes: usize,
    /// The block of each level that is not full yet.
    levels: Vec<BlockWriter>,
    postings: u64,
    first: Option<Posting>,
    /// Filters in all, and the one that is not whole yet with its keys.
    filters: u32,
    filter: u32,
    keys: Vec<u64>,
    /// The last key that was added to a filter.
    last: Option<u64>,
    written: Vec<Written>,
}

/// A table that is being written, between two steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeState {
    /// The block of each level that is not full yet.
    pub levels: Vec<Vec<u8>>,
    /// Postings that came.
    pub postings: u64,
    /// The first of them.
    pub first: Posting,
    /// Filters that are whole.
    pub filter: u32,
}

impl TreeWriter {
    /// Begins a table of at most `postings_max` postings.
    #[must_use]
    pub fn new(segment: u32, table: u8, postings_max: u64) -> Self {
        let filters = if has_fingerprints(table) {
            filters_of_fingerprints(postings_max)
        } else if has_hashes(table) {
            postings_max.div_ceil(KEYS).max(1)
        } else {
            0
        };
        Self {
            segment,
            table,
            block_bytes: BYTES_MAX,
            levels: vec![BlockWriter::default()],
            postings: 0,
            first: None,
            filters: u32::try_from(filters).unwrap_or(u32::MAX),
            filter: 0,
            keys: Vec::new(),
            last: None,
            written: Vec::new(),
        }
    }

    /// Has blocks of at most so many bytes from here on.
    pub fn set_block_bytes(&mut self, block_bytes: usize) {
        self.block_bytes = block_bytes;
    }

    /// Goes on with a table as it was after [`TreeWriter::pause`].
    pub fn resume(&mut self, state: &TreeState) -> Result<(), BadBlock> {
        let levels = state.levels.iter().map(|bytes| Block::read(bytes));
        let levels = levels.map(|block| Ok::<_, BadBlock>(BlockWriter::resumed(&block?)));
        self.levels = levels.collect::<Result<_, _>>()?;
        (self.postings, self.first) = (state.postings, Some(state.first));
        self.filter = state.filter;
        if has_fingerprints(self.table) && state.postings > 0 && state.filter == 0 {
            // It was begun when fingerprints had no filters.
            self.filters = 0;
        }
        Ok(())
    }

    /// Returns the number of the filter that a key falls into.
    #[must_use]
    pub fn filter_of(&self, key: u64) -> u32 {
        filter_in(self.table, key, self.filters)
    }

    /// Tells whether it has filters.
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        self.filters > 0
    }

    /// Adds a posting, which is behind all before.
    pub fn push(&mut self, posting: Posting) {
        if self.is_filtered() {
            self.add_to_filter(posting.key);
        }
        self.first.get_or_insert(posting);
        self.postings += 1;
        self.add(0, posting);
    }

    fn add_to_filter(&mut self, key: u64) {
        let filter = self.filter_of(key);
        if filter < self.filter {
            // It lets all pass.
            return;
        }
        self.end_filters(filter);
        if self.last == Some(key) {
            return;
        }
        self.last = Some(key);
        if has_fingerprints(self.table) {
            self.keys.extend(fingerprint_keys(key));
        } else {
            self.keys.push(key);
        }
    }

    fn add(&mut self, level: usize, posting: Posting) {
        if self.levels.len() == level {
            self.levels.push(BlockWriter::default());
        }
        if !self.levels[level].push(posting, self.block_bytes) {
            self.end_block(level);
            self.levels[level].push(posting, self.block_bytes);
        }
    }

    /// Writes the block of a level, and notes it in the level above.
    fn end_block(&mut self, level: usize) {
        let Some(first) = self.levels[level].first() else { return };
        self.write(level, first);
        self.add(level + 1, first);
    }

    fn write(&mut self, level: usize, first: Posting) {
        let Some(bytes) = self.levels[level].take() else { return };
        let level = u8::try_from(level).expect("each level is a hundredth of the one below");
        self.written
            .push((BlockId { table: self.table, segment: self.segment, level, first }, bytes));
    }

    /// Writes all filters before one.
    fn end_filters(&mut self, next: u32) {
        while self.filter < next {
            self.keys.sort_unstable();
            self.keys.dedup();
            self.write_filter(&Filter::of(&self.keys));
        }
    }

    fn write_filter(&mut self, filter: &Filter) {
        let id = BlockId::filter(self.table, self.segment, self.filter);
        self.written.push((id, filter.bytes()));
        self.keys.clear();
        self.filter += 1;
    }

    /// Has the filter of the last posting let all pass, if it is not written yet: the next postings
    /// fall into it as well.
    pub fn give_up_filter(&mut self) {
        if !self.keys.is_empty() {
            self.write_filter(&Filter::of_all());
        }
    }

    /// Returns what was written since the last time.
    pub fn take_written(&mut self) -> Vec<Written> {
        std::mem::take(&mut self.written)
    }

    /// Returns how to go on another time; none if nothing came yet. The next posting falls into
    /// another filter than the last one, unless that one was given up.
    pub fn pause(&mut self) -> Option<TreeState> {
        let first = self.first?;
        if !self.keys.is_empty() {
            self.end_filters(self.filter + 1);
        }
        let levels = self.levels.iter().filter_map(BlockWriter::bytes).collect();
        Some(TreeState { levels, postings: self.postings, first, filter: self.filter })
    }

    /// Ends the table; none if nothing came.
    pub fn finish(&mut self) -> Option<SegmentTable> {
        let first = self.first?;
        self.end_filters(self.filters);
        let mut level = 0;
        while level + 1 < self.levels.len() {
            self.end_block(level);
            level += 1;
        }
        self.write(level, first);
        let (table, postings, filters) = (self.table, self.postings, self.filters);
        Some(SegmentTable { table, postings, top: level as u8, first, filters })
    }
}
