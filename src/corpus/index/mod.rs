//! The index of a store: which contents share a key with an article.
//!
//! ```text
//! tail  ->  segments in memory  ->  segments in the store, merged as they become many
//!   \_________ in the log ________/
//! ```
//!
//! What came last is in a [`Finder`]; some thousand contents at a time become a segment in memory,
//! and several of these one in the store. Until then the log names them, so that a crash loses
//! nothing. Each commit does a share of the merging that is due, in proportion to what it brought.
//! Nothing that grows with the store is read when it is opened.

mod blocks;
mod build;
mod faults;
mod log;
mod rows;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::corpus::tables::{CONTENTS, INDEX_LOG, MERGES, SEGMENTS};
use crate::neardup::segment::{GONE, Merge, Posting, Segment, SegmentPostings, SegmentSize, due};
use crate::neardup::{self, Candidate, Config, Finder};
use crate::store::{self, BadRow, Batch, Store, Update as _, View};
use crate::text::features::ArticleKeys;

pub use crate::neardup::segment::BlockId;
use blocks::{BlockCache, Held, IN_MEMORY, MemoryBlocks, Source, cache, keep, remove_some};
pub use faults::{Fingerprints, faults, fingerprints};
pub use log::{Change, changes, note};
pub use rows::{StoredMerge, StoredPaused, StoredPosting, StoredSegment, StoredTable};

/// Why the dedup stage of a store cannot work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Its settings cannot be.
    #[error(transparent)]
    Settings(#[from] neardup::Error),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// How large the parts of an index are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Contents of a segment in memory.
    pub tail: u64,
    /// Segments in memory that become one in the store.
    pub frozen: usize,
    /// Blocks of the largest segment that a step of a merge reads.
    pub step: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { tail: 2_048, frozen: 8, step: 8 }
    }
}

/// Blocks that a commit removes at least, while there are any.
const REMOVED_MIN: usize = 64;

/// Postings of a content, of which there are some more or fewer.
const POSTINGS: u64 = 58;

impl Sizes {
    /// Returns the postings of the smallest segments of the store.
    fn unit(self) -> u64 {
        self.tail * self.frozen as u64 * POSTINGS
    }
}

/// The index of a store.
pub struct Index {
    config: Config,
    sizes: Sizes,
    /// The newest contents.
    tail: Finder,
    /// Their postings, and those of contents that went.
    postings: Vec<(u8, Posting)>,
    contents: u64,
    /// Segments in memory, oldest first.
    frozen: Vec<Frozen>,
    memory: MemoryBlocks,
    /// Segments of the store, oldest first.
    kept: Vec<Segment>,
    /// All that can be asked, as the last commit has left them.
    asked: Vec<Segment>,
    merges: Vec<Merge>,
    /// Segments that became part of others with this batch, and earlier.
    ended: Vec<u32>,
    removed: Vec<u32>,
    cache: Arc<BlockCache>,
    next_in_memory: u32,
    /// Blocks that were written since some were removed.
    written: usize,
    /// Postings that are still to be merged by the next commits.
    owed: u64,
    /// It knows of changes that are not committed.
    ahead: bool,
}

/// A segment in memory.
struct Frozen {
    segment: Segment,
    /// The last row of the log that it makes needless; none if that is not known yet.
    logged: Option<u64>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("segments", &self.asked.len()).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index of a store. Builds it anew if it was made for other settings.
    pub fn open(store: &Store, config: &Config) -> Result<Self, Error> {
        Self::open_with(store, config, Sizes::default())
    }

    /// Does the same with parts of other sizes.
    pub fn open_with(store: &Store, config: &Config, sizes: Sizes) -> Result<Self, Error> {
        let mut index = Self {
            config: config.clone(),
            sizes,
            tail: Finder::new(config)?,
            postings: Vec::new(),
            contents: 0,
            frozen: Vec::new(),
            memory: MemoryBlocks::new(),
            kept: Vec::new(),
            asked: Vec::new(),
            merges: Vec::new(),
            ended: Vec::new(),
            removed: Vec::new(),
            cache: Arc::new(cache(store.cache_bytes() / 2)),
            next_in_memory: IN_MEMORY,
            written: 0,
            owed: 0,
            ahead: false,
        };
        build::build_if_other(store, &index.tail, config)?;
        index.read(&store.snapshot()?)?;
        Ok(index)
    }

    /// Reads the lists of segments and merges, and what the log names.
    fn read(&mut self, view: &impl View) -> Result<(), store::Error> {
        let mut all = Vec::new();
        for row in view.rows(SEGMENTS)? {
            let row = row?;
            let (number, stored) = (row.key()?, row.row()?);
            let is_being_made = view.has(MERGES, number)?;
            if !stored.is_whole && !is_being_made {
                self.removed.push(number);
            }
            all.push((stored.is_whole, stored.segment(number)));
        }
        all.sort_by_key(|(_, segment)| (segment.age, segment.number));
        let age = |number: u32| {
            let found = all.iter().find(|(_, segment)| segment.number == number);
            found.map(|(_, segment)| segment.age)
        };
        let mut states = Vec::new();
        for row in view.rows(MERGES)? {
            let row = row?;
            let missing = BadRow { kind: "merge", detail: "its segment is missing" };
            let number = row.key()?;
            states.push(row.row()?.state(number, age(number).ok_or(missing)?));
        }
        self.kept = all.into_iter().filter(|(is_whole, _)| *is_whole).map(|(_, one)| one).collect();
        for state in states {
            let merge = Merge::resume(&self.source(view, false), &self.kept, state)?;
            self.merges.push(merge);
        }
        for row in view.rows(INDEX_LOG)? {
            let row = row?;
            for change in log::read(row.bytes())? {
                if change.gone {
                    self.take_out(change.content);
                } else if let Some(row) = view.get(CONTENTS, change.content)? {
                    self.take_in(change.content, &row.keys());
                }
            }
            // Not within a row: the log is cut between two.
            self.freeze_if_full(Some(row.key()?))?;
        }
        self.asked = self.all();
        Ok(())
    }

    fn source<'a, V: View>(&'a self, view: &'a V, keeps: bool) -> Source<'a, V> {
        Source { view, memory: &self.memory, cache: &self.cache, keeps }
    }

    fn all(&self) -> Vec<Segment> {
        self.kept.iter().chain(self.frozen.iter().map(|frozen| &frozen.segment)).cloned().collect()
    }

    fn take_in(&mut self, content: u64, keys: &ArticleKeys) {
        let postings = self.tail.postings(content, keys);
        if !postings.is_empty() {
            self.tail.insert(content, keys);
            self.owed += postings.len() as u64 * self.merged_each();
            self.postings.extend(postings);
            self.contents += 1;
        }
    }

    /// How often a posting is merged, and a little more: once to come into the store, and once for
    /// each size of segments.
    fn merged_each(&self) -> u64 {
        let largest = self.kept.first().map_or(0, Segment::postings);
        3 + u64::from((largest / self.sizes.unit()).max(1).ilog(4))
    }

    fn take_out(&mut self, content: u64) {
        self.tail.forget(content);
        self.postings.push((GONE, Posting { key: content, content: 0 }));
    }

    /// Adds the keys of a content. Texts that are too short to be near-duplicates have none.
    pub fn insert(&mut self, batch: &mut Batch, content: u64, keys: &ArticleKeys) {
        self.ahead = true;
        let before = self.postings.len();
        self.take_in(content, keys);
        if self.postings.len() > before {
            note(batch, Change { content, gone: false });
        }
    }

    /// Names a content no more: it was removed from the store, which has noted it in the log.
    pub fn forget(&mut self, content: u64) {
        self.ahead = true;
        self.take_out(content);
    }

    /// Tells whether it was told of changes that are not committed. Whoever begins to write and
    /// finds it so follows a writer that failed: the store has to be read again.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        self.ahead
    }

    /// Returns the contents that share a key with an article, those for which most speaks first,
    /// then older ones. Some of them may be gone.
    pub fn candidates(
        &self,
        view: &impl View,
        keys: &ArticleKeys,
    ) -> Result<Vec<Candidate>, store::Error> {
        let blocks = self.source(view, true);
        let more = SegmentPostings { segments: &self.asked, blocks: &blocks };
        self.tail.candidates_with(keys, &more)
    }

    /// Does this batch's share of the merging. To be called before its commit.
    pub fn merge_some(&mut self, batch: &mut Batch) -> Result<(), store::Error> {
        self.note_logged(batch)?;
        self.begin_merges(batch)?;
        let mut stepped = false;
        while self.owed > 0 && !self.merges.is_empty() {
            stepped = true;
            self.step(batch)?;
        }
        if self.merges.is_empty() {
            self.owed = 0;
        }
        if stepped {
            self.keep_merges(batch)?;
        }
        self.remove_ended(batch)
    }

    /// Removes blocks of segments that became part of others: more than were written since.
    fn remove_ended(&mut self, batch: &mut Batch) -> Result<(), store::Error> {
        let mut left = REMOVED_MIN + 2 * std::mem::take(&mut self.written);
        while left > 0
            && let Some(segment) = self.removed.first().copied()
        {
            self.ahead = true;
            let removed = remove_some(batch, segment, left)?;
            if removed == 0 {
                batch.remove(SEGMENTS, segment)?;
                self.removed.remove(0);
            }
            left = left.saturating_sub(removed.max(1));
        }
        Ok(())
    }

    /// Notes up to which row the log is needless when what is in memory has come into the store.
    fn note_logged(&mut self, batch: &Batch) -> Result<(), store::Error> {
        let last = batch.last(INDEX_LOG)?.map(|row| row.key()).transpose()?;
        for frozen in self.frozen.iter_mut().filter(|frozen| frozen.logged.is_none()) {
            frozen.logged = Some(last.unwrap_or(0));
        }
        Ok(())
    }

    /// Writes down how to go on with merges. What is made of segments in memory begins anew after a
    /// crash, as they do.
    fn keep_merges(&self, batch: &mut Batch) -> Result<(), store::Error> {
        let is_kept = |merge: &&Merge| merge.inputs().all(|input| input < IN_MEMORY);
        for merge in self.merges.iter().filter(is_kept) {
            batch.put(MERGES, merge.output().number, &StoredMerge::of(&merge.state()))?;
        }
        Ok(())
    }

    /// Begins the merges that are due.
    fn begin_merges(&mut self, batch: &mut Batch) -> Result<(), store::Error> {
        let is_busy = |index: &Self, number: u32| {
            index.merges.iter().any(|merge| merge.inputs().any(|input| input == number))
        };
        let idle = |index: &Self| {
            index.frozen.iter().filter(|one| !is_busy(index, one.segment.number)).count()
        };
        while idle(self) >= self.sizes.frozen {
            let idle = self.frozen.iter().filter(|one| !is_busy(self, one.segment.number));
            let inputs = idle.take(self.sizes.frozen).map(|one| one.segment.clone()).collect();
            self.begin(batch, inputs)?;
        }
        loop {
            let sizes: Vec<SegmentSize> = self
                .kept
                .iter()
                .map(|one| SegmentSize {
                    postings: one.postings(),
                    busy: is_busy(self, one.number),
                })
                .collect();
            let Some(range) = due(&sizes, self.sizes.unit()) else { return Ok(()) };
            let inputs = self.kept[range].to_vec();
            self.begin(batch, inputs)?;
        }
    }

    fn begin(&mut self, batch: &mut Batch, inputs: Vec<Segment>) -> Result<(), store::Error> {
        self.ahead = true;
        let number = batch.next_number("next_segment")? as u32;
        let oldest = self.kept.first().or(self.frozen.first().map(|frozen| &frozen.segment));
        let newest = inputs.last().map_or(0, |newest| newest.age);
        // What is on its way into the store may be older than the newest of these.
        let forgets = oldest.map(|oldest| oldest.number) == inputs.first().map(|one| one.number)
            && self.merges.iter().all(|merge| merge.output().age > newest);
        let age = inputs.first().map(|oldest| oldest.age).filter(|age| *age < IN_MEMORY);
        let age = age.unwrap_or(number);
        let output = Segment::new(number, age);
        batch.put(SEGMENTS, number, &StoredSegment::of(&output, false))?;
        let merge = Merge::begin(&self.source(batch, false), inputs, output, forgets)?;
        self.merges.push(merge);
        Ok(())
    }

    /// Does a step of the smallest merge: the others can wait, and there are few of them.
    fn step(&mut self, batch: &mut Batch) -> Result<(), store::Error> {
        self.ahead = true;
        let size = |at: &usize| self.merges[*at].postings().checked_ilog2();
        let Some(at) = (0..self.merges.len()).min_by_key(size) else { return Ok(()) };
        let mut merge = self.merges.remove(at);
        let step = merge.step(&self.source(batch, false), self.sizes.step)?;
        self.written += step.written.len();
        keep(batch, step.written)?;
        self.owed = self.owed.saturating_sub(step.postings.max(1) as u64);
        if let Some(segment) = step.done {
            return self.end(batch, &merge, segment);
        }
        self.merges.insert(at, merge);
        Ok(())
    }

    /// Puts all that is in memory into the store. To be called in a batch of its own, when nothing
    /// more is to come for a while.
    pub fn flush(&mut self, batch: &mut Batch) -> Result<(), store::Error> {
        if !self.postings.is_empty() {
            self.freeze(None)?;
            self.asked = self.all();
        }
        self.note_logged(batch)?;
        let is_busy = |number: u32| self.merges.iter().any(|one| one.inputs().any(|n| n == number));
        let idle = self.frozen.iter().map(|one| &one.segment).filter(|one| !is_busy(one.number));
        let idle: Vec<Segment> = idle.cloned().collect();
        if !idle.is_empty() {
            self.begin(batch, idle)?;
        }
        while !self.frozen.is_empty() {
            self.step(batch)?;
        }
        self.keep_merges(batch)
    }

    /// Puts a segment in the place of those that became it.
    fn end(
        &mut self,
        batch: &mut Batch,
        merge: &Merge,
        segment: Segment,
    ) -> Result<(), store::Error> {
        batch.remove(MERGES, segment.number)?;
        for input in merge.inputs() {
            self.ended.push(input);
            if input < IN_MEMORY {
                let gone = self.kept.iter().find(|one| one.number == input);
                if let Some(gone) = gone {
                    batch.put(SEGMENTS, input, &StoredSegment::of(gone, false))?;
                }
            }
        }
        // Not beyond what is still in memory, should it be older. The last row stays, so that the
        // next one gets a number of its own.
        let in_store =
            self.frozen.iter().take_while(|one| self.ended.contains(&one.segment.number));
        if let Some(last) = in_store.filter_map(|one| one.logged).last() {
            batch.clear(INDEX_LOG, ..last)?;
        }
        let ended = &self.ended;
        self.kept.retain(|one| !ended.contains(&one.number));
        self.frozen.retain(|one| !ended.contains(&one.segment.number));
        if segment.tables.is_empty() {
            batch.remove(SEGMENTS, segment.number)?;
        } else {
            batch.put(SEGMENTS, segment.number, &StoredSegment::of(&segment, true))?;
            let place = self.kept.partition_point(|one| one.age < segment.age);
            self.kept.insert(place, segment);
        }
        Ok(())
    }

    /// Notes that all it was told of is committed.
    pub fn committed(&mut self) {
        self.ahead = false;
        if let Err(error) = self.settle() {
            tracing::error!(%error, "the index has to be read again");
            self.ahead = true;
        }
    }

    fn settle(&mut self) -> Result<(), store::Error> {
        let ended = std::mem::take(&mut self.ended);
        if ended.iter().any(|number| *number >= IN_MEMORY) {
            self.memory.retain(|id, _| !ended.contains(&id.segment));
        }
        self.removed.extend(ended.into_iter().filter(|number| *number < IN_MEMORY));
        self.freeze_if_full(None)?;
        self.asked = self.all();
        Ok(())
    }

    fn freeze_if_full(&mut self, logged: Option<u64>) -> Result<(), store::Error> {
        let postings_max = self.sizes.tail * POSTINGS * 2;
        if self.contents < self.sizes.tail && (self.postings.len() as u64) < postings_max {
            return Ok(());
        }
        self.freeze(logged)
    }

    /// Makes the tail a segment in memory. `logged` is the last row of the log with its contents.
    fn freeze(&mut self, logged: Option<u64>) -> Result<(), store::Error> {
        let number = self.next_in_memory;
        self.next_in_memory += 1;
        let postings = std::mem::take(&mut self.postings);
        let (segment, written) = Segment::of(number, self.contents, postings);
        for (id, bytes) in written {
            self.memory.insert(id, Held::read(id, &bytes).map_err(blocks::bad)?);
        }
        self.frozen.push(Frozen { segment, logged });
        self.contents = 0;
        self.tail = Finder::new(&self.config)
            .map_err(|_| BadRow { kind: "index", detail: "its settings have become impossible" })?;
        Ok(())
    }

    /// Returns the memory that it takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let postings = self.postings.capacity() * size_of::<(u8, Posting)>();
        let memory: usize = self.memory.values().map(Held::memory).sum();
        self.tail.bytes() + postings + memory + self.cache.weight() as usize
    }
}

/// Locks an index, also if a thread died while it had it: whoever begins to write reads it again.
pub fn lock(index: &Mutex<Index>) -> MutexGuard<'_, Index> {
    index.lock().unwrap_or_else(PoisonError::into_inner)
}
