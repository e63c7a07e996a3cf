//! Several segments become one, a step at a time: between two steps all that is known of it can be
//! written down, and read again after a crash.

use std::collections::HashSet;
use std::sync::Arc;

use super::block::{BYTES_MAX, BadBlock, Block, Posting};
use super::tree::{Blocks, SegmentTable, TreeState, TreeWriter, Written};
use super::{GONE, PER_KEY_MAX, Segment, has_fingerprints, has_hashes};

/// Fingerprints that are read before the filter that they all fall into is given up: more than it
/// could tell apart.
const FINGERPRINTS_READ_MAX: usize = 2_048;

/// A segment that is being made of others.
#[derive(Debug, Clone)]
pub struct Merge {
    inputs: Vec<Segment>,
    /// What it is so far.
    output: Segment,
    /// No older segment is left out: what names contents that are gone can go too.
    forgets: bool,
    /// The table that is being written, if one is begun.
    current: Option<CurrentTable>,
    /// Contents that are gone.
    gone: HashSet<u64>,
    /// Bytes of a block at most.
    block_bytes: usize,
}

#[derive(Debug, Clone)]
struct CurrentTable {
    table: u8,
    writer: TreeWriter,
    /// The last posting that was dealt with.
    after: Option<Posting>,
}

/// A merge between two steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeState {
    /// Numbers of the segments that become one, oldest first.
    pub inputs: Vec<u32>,
    /// The segment that they become, as far as it is.
    pub output: Segment,
    /// No older segment is left out.
    pub forgets: bool,
    /// The table that is being written, its state, and the last posting that was dealt with.
    pub current: Option<PausedTable>,
}

/// A table that is being written, between two steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedTable {
    /// Its number.
    pub table: u8,
    /// What is written of it; none if it has no posting yet.
    pub tree: Option<TreeState>,
    /// The last posting that was dealt with.
    pub after: Option<Posting>,
}

/// What a step has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Blocks to be kept.
    pub written: Vec<Written>,
    /// Postings that were read.
    pub postings: usize,
    /// The segment, if it is whole.
    pub done: Option<Segment>,
}

/// The next postings of a table.
struct Read {
    postings: Vec<Posting>,
    /// They are the last ones.
    ended: bool,
    /// They end within a filter.
    cut: bool,
}

impl Merge {
    /// Begins to make a segment, which is empty yet, of others, oldest first. `forgets` says that
    /// no older one is left out.
    pub fn begin<B: Blocks>(
        blocks: &B,
        inputs: Vec<Segment>,
        mut output: Segment,
        forgets: bool,
    ) -> Result<Self, B::Error> {
        output.contents = inputs.iter().map(|input| input.contents).sum();
        let gone = gone_of(blocks, &inputs)?;
        Ok(Self { inputs, output, forgets, current: None, gone, block_bytes: BYTES_MAX })
    }

    /// Goes on with a merge whose inputs are found in `segments`.
    pub fn resume<B: Blocks>(
        blocks: &B,
        segments: &[Segment],
        state: MergeState,
    ) -> Result<Self, B::Error> {
        let find = |number: &u32| {
            let found = segments.iter().find(|segment| segment.number == *number);
            found.cloned().ok_or(BadBlock("is to be read that is missing"))
        };
        let inputs = state.inputs.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let gone = gone_of(blocks, &inputs)?;
        let MergeState { output, forgets, current, .. } = state;
        let block_bytes = BYTES_MAX;
        let mut merge = Self { inputs, output, forgets, current: None, gone, block_bytes };
        if let Some(PausedTable { table, tree, after }) = current {
            let mut writer = merge.writer(table);
            if let Some(tree) = &tree {
                writer.resume(tree)?;
            }
            merge.current = Some(CurrentTable { table, writer, after });
        }
        Ok(merge)
    }

    /// Has blocks of at most so many bytes from here on.
    #[must_use]
    pub fn with_block_bytes(mut self, block_bytes: usize) -> Self {
        self.block_bytes = block_bytes;
        if let Some(current) = &mut self.current {
            current.writer.set_block_bytes(block_bytes);
        }
        self
    }

    /// Returns the numbers of the segments that become one.
    pub fn inputs(&self) -> impl Iterator<Item = u32> {
        self.inputs.iter().map(|input| input.number)
    }

    /// Returns the segment that they become, as far as it is.
    #[must_use]
    pub fn output(&self) -> &Segment {
        &self.output
    }

    /// Returns the postings of all that become one.
    #[must_use]
    pub fn postings(&self) -> u64 {
        self.inputs.iter().map(Segment::postings).sum()
    }

    fn writer(&self, table: u8) -> TreeWriter {
        let tables = self.inputs.iter().filter_map(|input| input.table(table));
        let postings = tables.map(|table| table.postings).sum();
        let mut writer = TreeWriter::new(self.output.number, table, postings);
        writer.set_block_bytes(self.block_bytes);
        writer
    }

    /// Reads about as many blocks of the largest input, and what the others have there.
    pub fn step<B: Blocks>(&mut self, blocks: &B, blocks_max: usize) -> Result<Step, B::Error> {
        let mut step = Step { written: Vec::new(), postings: 0, done: None };
        let Some(mut current) = self.current.take().or_else(|| self.next_table()) else {
            step.done = Some(self.output.clone());
            return Ok(step);
        };
        let Read { postings, ended, cut } = self.read(blocks, &current, blocks_max)?;
        step.postings = postings.len();
        current.after = postings.last().copied().or(current.after);
        let (mut key, mut held) = (None, 0);
        for posting in postings {
            if self.gone.contains(&posting.content) && current.table != GONE {
                continue;
            }
            held = if key == Some(posting.key) { held + 1 } else { 1 };
            key = Some(posting.key);
            if held <= PER_KEY_MAX || !has_hashes(current.table) {
                current.writer.push(posting);
            }
        }
        if ended {
            self.output.tables.extend(current.writer.finish());
            step.written = current.writer.take_written();
            self.current = self.next_after(current.table);
        } else {
            // What is written is the same whether it is interrupted here or not.
            if cut {
                current.writer.give_up_filter();
            }
            current.writer.pause();
            step.written = current.writer.take_written();
            self.current = Some(current);
        }
        if self.current.is_none() {
            step.done = Some(self.output.clone());
        }
        Ok(step)
    }

    /// Returns how to go on another time.
    #[must_use]
    pub fn state(&self) -> MergeState {
        let paused = |current: &CurrentTable| {
            let (table, tree) = (current.table, current.writer.clone().pause());
            PausedTable { table, tree, after: current.after }
        };
        MergeState {
            inputs: self.inputs().collect(),
            output: self.output.clone(),
            forgets: self.forgets,
            current: self.current.as_ref().map(paused),
        }
    }

    fn next_table(&self) -> Option<CurrentTable> {
        match self.output.tables.last() {
            Some(last) => self.next_after(last.table),
            None => self.next_from(0),
        }
    }

    fn next_after(&self, table: u8) -> Option<CurrentTable> {
        self.next_from(table.checked_add(1)?)
    }

    fn next_from(&self, first: u8) -> Option<CurrentTable> {
        let tables = self.inputs.iter().flat_map(|input| &input.tables).map(|table| table.table);
        let wanted = tables.filter(|table| *table >= first && !(self.forgets && *table == GONE));
        let table = wanted.min()?;
        Some(CurrentTable { table, writer: self.writer(table), after: None })
    }

    /// Returns the next postings of all inputs, in order. Of a table with filters they end where
    /// one does, but for fingerprints of which very many have the same first bits.
    fn read<B: Blocks>(
        &self,
        blocks: &B,
        current: &CurrentTable,
        blocks_max: usize,
    ) -> Result<Read, B::Error> {
        let mut parts: Vec<(SegmentTable, u32)> = self
            .inputs
            .iter()
            .filter_map(|input| Some((*input.table(current.table)?, input.number)))
            .collect();
        parts.sort_by_key(|(table, _)| std::cmp::Reverse(table.postings));
        let after = current.after;
        let mut limit: Option<Posting> = None;
        let mut all: Vec<Posting> = Vec::new();
        for (table, segment) in parts {
            let (mut last, mut left) = (None, blocks_max);
            let mut more = false;
            let from = after.unwrap_or_default();
            table.leaves(blocks, segment, from, &mut |block: &Arc<Block>| {
                if left == 0 || limit.is_some_and(|limit| block.get(0) > limit) {
                    more = true;
                    return false;
                }
                let start = after.map_or(0, |after| {
                    let below = block.below(after);
                    below + usize::from(below < block.count() && block.get(below) == after)
                });
                if start < block.count() {
                    left -= 1;
                    all.extend((start..block.count()).map(|at| block.get(at)));
                    last = Some(block.get(block.count() - 1));
                }
                true
            })?;
            if more && left == 0 {
                limit = limit.min(last).or(last);
            }
        }
        all.sort();
        all.dedup();
        let Some(limit) = limit else { return Ok(Read { postings: all, ended: true, cut: false }) };
        all.truncate(all.partition_point(|posting| *posting <= limit));
        let mut cut = false;
        if current.writer.is_filtered() {
            let filter = |posting: &Posting| current.writer.filter_of(posting.key);
            let whole = all.last().map(filter);
            let whole = all.partition_point(|posting| Some(filter(posting)) < whole);
            // Of fingerprints, any number may have the same first bits.
            let are_many = all.len() > FINGERPRINTS_READ_MAX && has_fingerprints(current.table);
            cut = whole == 0 && are_many;
            if whole == 0 && !cut {
                // All fall into one filter, so that more of them have to be read.
                return self.read(blocks, current, blocks_max.saturating_mul(2));
            }
            if !cut {
                all.truncate(whole);
            }
        }
        Ok(Read { postings: all, ended: false, cut })
    }
}

/// Returns the contents that segments name as gone.
fn gone_of<B: Blocks>(blocks: &B, segments: &[Segment]) -> Result<HashSet<u64>, B::Error> {
    let mut gone = HashSet::new();
    for segment in segments {
        if let Some(table) = segment.table(GONE) {
            table.postings_of(blocks, segment.number, 0..=u64::MAX, |block, range| {
                gone.extend(range.map(|at| block.key(at)));
            })?;
        }
    }
    Ok(gone)
}
