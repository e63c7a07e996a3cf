//! Goes through the postings of a table from smaller keys to larger ones, and reads no block twice
//! in a row.

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
    at: usize,
}

impl<'a, B: Blocks> Cursor<'a, B> {
    /// Begins before the first posting.
    pub(super) fn new(blocks: &'a B, segment: u32, table: &SegmentTable) -> Self {
        let SegmentTable { table, top, first, .. } = *table;
        let root = BlockId { table, segment, level: top, first };
        Self { blocks, root, path: Vec::new() }
    }

    /// Calls `each` with the postings of a range of keys, block by block. The range is that of the
    /// last call, or lies behind it.
    pub(super) fn postings_of(
        &mut self,
        keys: RangeInclusive<u64>,
        each: impl FnMut(&Block, Range<usize>),
    ) -> Result<(), B::Error> {
        self.some_of(keys, usize::MAX, each).map(drop)
    }

    /// Does the same with so many blocks at most. Returns whether these were all.
    pub(super) fn some_of(
        &mut self,
        keys: RangeInclusive<u64>,
        blocks_max: usize,
        mut each: impl FnMut(&Block, Range<usize>),
    ) -> Result<bool, B::Error> {
        let mut blocks = 0;
        let from = Posting { key: *keys.start(), content: 0 };
        let end = keys.end().checked_add(1).map(|key| Posting { key, content: 0 });
        let mut next = Some(from);
        while let Some(place) = next.filter(|next| end.is_none_or(|end| *next < end)) {
            if blocks == blocks_max {
                return Ok(false);
            }
            blocks += 1;
            let block = self.seek(place)?;
            let last = end.map_or(block.count(), |end| block.below(end));
            each(&block, block.below(from).min(last)..last);
            if last < block.count() {
                break;
            }
            next = self.next_first();
        }
        Ok(true)
    }

    /// Goes to the block that has a posting, or would have it, which is not before the present one.
    fn seek(&mut self, posting: Posting) -> Result<Arc<Block>, B::Error> {
        // As far as the path is that to the posting.
        let same = self.path.iter().position(|step| {
            let next = step.at + 1;
            next < step.block.count() && step.block.get(next) <= posting
        });
        if let Some(depth) = same {
            self.path.truncate(depth + 1);
            self.path[depth].at = at_or_before(&self.path[depth].block, posting);
        }
        loop {
            let id = match self.path.last() {
                None => self.root,
                Some(CursorStep { block, at }) => {
                    let depth = self.path.len() as u8;
                    match self.root.level.checked_sub(depth) {
                        None => return Ok(Arc::clone(block)),
                        Some(level) => BlockId { level, first: block.get(*at), ..self.root },
                    }
                }
            };
            let block = self.blocks.block(id)?;
            // Of a block of postings, the whole is meant.
            let is_leaf = id.level == 0;
            let at = if is_leaf { block.count() } else { at_or_before(&block, posting) };
            self.path.push(CursorStep { block, at });
        }
    }

    /// Returns the first posting behind the present block.
    fn next_first(&self) -> Option<Posting> {
        let above = self.path.iter().rev().skip(1);
        let mut nexts = above.filter(|step| step.at + 1 < step.block.count());
        nexts.next().map(|step| step.block.get(step.at + 1))
    }
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
