//! Goes through the postings of a table, and reads no block twice in a row.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use super::block::{Block, Posting};
use super::tree::{BlockId, Blocks, SegmentTable};

/// A place in a table of a segment.
pub(super) struct Cursor<'a, B> {
    blocks: &'a B,
    root: BlockId,
    /// From the block that stands for all down to the one with postings; empty before the start.
    path: Vec<CursorStep>,
}

/// A block, and which of those below it the path goes through.
struct CursorStep {
    block: Arc<Block>,
    level: u8,
    at: usize,
}

impl<'a, B: Blocks> Cursor<'a, B> {
    /// Begins before the first posting.
    pub(super) fn new(blocks: &'a B, segment: u32, table: &SegmentTable) -> Self {
        let SegmentTable { table, top, first, .. } = *table;
        let root = BlockId { table, segment, level: top, first };
        Self { blocks, root, path: Vec::new() }
    }

    /// Calls `each` with the postings of a range of keys, block by block. What lies near the range
    /// of the last call is found soonest.
    pub(super) fn postings_of(
        &mut self,
        keys: RangeInclusive<u64>,
        each: impl FnMut(&Block, Range<usize>),
    ) -> Result<(), B::Error> {
        self.some_of(keys, usize::MAX, each)
    }

    /// Does the same with so many blocks at most.
    pub(super) fn some_of(
        &mut self,
        keys: RangeInclusive<u64>,
        blocks_max: usize,
        mut each: impl FnMut(&Block, Range<usize>),
    ) -> Result<(), B::Error> {
        let (from, end) = places(&keys);
        let mut next = Some(from);
        for _ in 0..blocks_max {
            let Some(place) = next.filter(|next| is_before(*next, end)) else { break };
            let block = self.seek(place)?;
            let last = end.map_or(block.count(), |end| block.below(end));
            each(&block, block.below(from).min(last)..last);
            if last < block.count() {
                break;
            }
            next = self.next_first();
        }
        Ok(())
    }

    /// Tells whether the postings of a range of keys are in more blocks than so many. Reads none of
    /// these.
    pub(super) fn has_more(
        &mut self,
        keys: RangeInclusive<u64>,
        mut blocks: usize,
    ) -> Result<bool, B::Error> {
        let (mut from, end) = places(&keys);
        loop {
            self.go_to(from, 1)?;
            let above = self.path.iter().rev().skip_while(|step| step.level == 0);
            let mut above = above.map(|CursorStep { block, at, .. }| (block, *at));
            let Some((block, at)) = above.next() else { return Ok(false) };
            if at + blocks < block.count() {
                return Ok(is_before(block.get(at + blocks), end));
            }
            blocks -= block.count() - at;
            let next = above.find(|(block, at)| at + 1 < block.count());
            let next = next.map(|(block, at)| block.get(at + 1));
            match next.filter(|next| is_before(*next, end)) {
                Some(next) => from = next,
                None => return Ok(false),
            }
        }
    }

    /// Goes to the block that has a posting, or would have it.
    fn seek(&mut self, posting: Posting) -> Result<Arc<Block>, B::Error> {
        self.go_to(posting, 0)
    }

    /// Does the same with the block of a level, or one below it.
    fn go_to(&mut self, posting: Posting, lowest: u8) -> Result<Arc<Block>, B::Error> {
        // As far as the path is that to the posting.
        let other = self.path.iter().position(|CursorStep { block, level, at }| {
            let is_behind = || at + 1 < block.count() && block.get(at + 1) <= posting;
            let is_before = || *at > 0 && block.get(*at) > posting;
            *level > 0 && (is_behind() || is_before())
        });
        if let Some(depth) = other {
            self.path.truncate(depth + 1);
            self.path[depth].at = at_or_before(&self.path[depth].block, posting);
        }
        loop {
            let id = match self.path.last() {
                None => self.root,
                Some(step) if step.level <= lowest => return Ok(Arc::clone(&step.block)),
                Some(step) => {
                    let first = step.block.get(step.at);
                    BlockId { level: step.level - 1, first, ..self.root }
                }
            };
            let (block, level) = (self.blocks.block(id)?, id.level);
            // Of a block of postings, the whole is meant.
            let at = if level == 0 { block.count() } else { at_or_before(&block, posting) };
            self.path.push(CursorStep { block, level, at });
        }
    }

    /// Returns the first posting behind the present block.
    fn next_first(&self) -> Option<Posting> {
        let above = self.path.iter().rev().skip(1);
        let mut nexts = above.filter(|step| step.at + 1 < step.block.count());
        nexts.next().map(|step| step.block.get(step.at + 1))
    }
}

/// Returns where a range of keys begins, and where it has ended, unless it is the last one.
fn places(keys: &RangeInclusive<u64>) -> (Posting, Option<Posting>) {
    let place = |key| Posting { key, content: 0 };
    (place(*keys.start()), keys.end().checked_add(1).map(place))
}

fn is_before(place: Posting, end: Option<Posting>) -> bool {
    end.is_none_or(|end| place < end)
}

/// Returns the place of the last posting that is not behind another one; of the first if all are.
fn at_or_before(block: &Block, posting: Posting) -> usize {
    let below = block.below(posting);
    if below < block.count() && block.get(below) == posting {
        below
    } else {
        below.saturating_sub(1)
    }
}
