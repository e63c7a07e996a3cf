//! The index of a store: which contents share a key with an article.
//!
//! ```text
//! some thousand contents in memory  ->  segments in the store, merged as they become many
//!     \_________ in the log ________/
//! ```
//!
//! What came last is asked in memory; some thousand contents at a time become a segment of the
//! store. Until then the log names them, so that a crash loses nothing. Each commit does a share of
//! the writing and merging that is due, in proportion to what it brought. Nothing that grows with
//! the store is read when it is opened.

mod ahead;
mod block_files;
mod blocks;
mod build;
mod faults;
mod filters;
mod glimpses;
mod log;
mod plan;
mod recent;
mod rows;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::units::Size;
use crate::corpus::tables::{CONTENTS, INDEX_LOG, MERGES, SEGMENTS};
use crate::neardup::segment::{
    BYTES_MAX, Merge, Segment, SegmentPostings, SegmentSize, due, exact_key,
};
use crate::neardup::{self, Candidate, Config, Finder, Key, Postings as _};
use crate::store::{self, BadRow, Batch, Store, Update as _, View};
use crate::text::features::ArticleKeys;

pub use crate::neardup::segment::BlockId;
pub use ahead::{LookedAhead, OlderContents};
use blocks::{IndexCache, Source};
pub use build::SETTINGS;
pub use faults::{Fingerprints, faults, fingerprints};
pub use glimpses::Glimpses;
pub use log::{Change, changes, note};
pub use plan::{IndexMemory, IndexPlan, PlannedTier};
use recent::{Frozen, Tail};
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
    /// Contents in memory that become a segment of the store.
    pub tail: u64,
    /// Blocks of the largest segment that a step of a merge reads, and of a new one that a step
    /// writes.
    pub step: usize,
    /// Bytes of a block of merged segments at most.
    pub block_bytes: usize,
    /// Memory of filters, in bytes, beside that which goes with the page cache.
    pub more_filters: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { tail: 8_192, step: 8, block_bytes: BYTES_MAX, more_filters: 0 }
    }
}

/// Blocks that a commit removes at least, while there are any.
const REMOVED_MIN: usize = 64;

/// Postings of a content, of which there are some more or fewer.
pub const POSTINGS: u64 = 59;

impl Sizes {
    /// Returns the usual ones, with more memory for filters.
    #[must_use]
    pub fn with_more_for_filters(more: Size) -> Self {
        Self { more_filters: more.bytes(), ..Self::default() }
    }

    /// Returns the postings of the smallest segments of the store.
    fn unit(self) -> u64 {
        self.tail * POSTINGS
    }
}

/// The index of a store.
pub struct Index {
    config: Config,
    /// Says what an article asks for.
    asks: Arc<Finder>,
    sizes: Sizes,
    tail: Tail,
    /// On their way into the store, oldest first.
    frozen: Vec<Frozen>,
    /// How many such have come into the store before them.
    frozen_before: u64,
    /// Segments of the store, oldest first.
    kept: Vec<Segment>,
    /// Those that can be asked, as the last commit has left them.
    asked: Arc<[Segment]>,
    /// Of `frozen`, so many are in the store with this batch.
    stored: usize,
    merges: Vec<Merge>,
    /// Segments that became part of others with this batch, and earlier.
    ended: Vec<u32>,
    removed: Vec<u32>,
    cache: Arc<IndexCache>,
    glimpses: Glimpses,
    /// Blocks that were written since some were removed.
    written: usize,
    /// Postings that are still to be written or merged by the next commits.
    owed: u64,
    /// It knows of changes that are not committed.
    ahead: bool,
    /// Of the contents that became segments since it was opened, the first so many came out of a
    /// log that names contents which are in a segment already.
    frozen_twice: u64,
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
        let cache = IndexCache::beside(store.cache_bytes(), sizes.more_filters);
        Self::with_cache(store, config, sizes, cache)
    }

    /// Opens the index of an empty store that goes when a run ends, with its blocks in files of a
    /// folder that goes as well.
    pub fn of_run(
        store: &Store,
        config: &Config,
        sizes: Sizes,
        folder: PathBuf,
    ) -> Result<Self, Error> {
        let cache = IndexCache::beside(store.cache_bytes(), sizes.more_filters).with_files(folder);
        Self::with_cache(store, config, sizes, cache)
    }

    fn with_cache(
        store: &Store,
        config: &Config,
        sizes: Sizes,
        cache: IndexCache,
    ) -> Result<Self, Error> {
        let mut index = Self {
            config: config.clone(),
            asks: Arc::new(Finder::new(config)?),
            sizes,
            tail: Tail::new(config)?,
            frozen: Vec::new(),
            frozen_before: 0,
            kept: Vec::new(),
            asked: Arc::default(),
            stored: 0,
            merges: Vec::new(),
            ended: Vec::new(),
            removed: Vec::new(),
            cache: Arc::new(cache),
            glimpses: Glimpses::beside(store.cache_bytes(), config.rule),
            written: 0,
            owed: 0,
            ahead: false,
            frozen_twice: 0,
        };
        build::build_if_other(store, &index.tail.contents.finder, config)?;
        if index.read(&store.snapshot()?)? {
            index.frozen_twice = index.frozen.len() as u64 + u64::from(!index.tail.is_empty());
        }
        Ok(index)
    }

    /// Reads the lists of segments and merges, and what the log names. Tells whether some of that
    /// may be in a segment already: older versions left the last row as it was.
    fn read(&mut self, view: &impl View) -> Result<bool, store::Error> {
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
            self.merges.push(merge.with_block_bytes(self.sizes.block_bytes));
        }
        let (has_segments, mut is_first, mut twice) = (!self.kept.is_empty(), true, false);
        for row in view.rows(INDEX_LOG)? {
            let row = row?;
            twice |= has_segments && std::mem::take(&mut is_first) && !row.bytes().is_empty();
            for change in log::read(row.bytes())? {
                if change.gone {
                    self.tail.forget(change.content);
                } else if let Some(row) = view.get(CONTENTS, change.content)? {
                    self.take_in(change.content, &row.keys());
                }
            }
            // Not within a row: the log is cut between two.
            self.freeze_if_full(Some(row.key()?))?;
        }
        self.ask_kept();
        Ok(twice)
    }

    fn source<'a, V: View>(&'a self, view: &'a V, keeps: bool) -> Source<'a, V> {
        Source::new(view, &self.cache, keeps)
    }

    fn take_in(&mut self, content: u64, keys: &ArticleKeys) -> bool {
        let postings = self.tail.insert(content, keys);
        self.owed += postings * self.written_each();
        postings > 0
    }

    /// How often a posting is written, and a little more: once to come into the store, and once for
    /// each size of segments.
    fn written_each(&self) -> u64 {
        let largest = self.kept.first().map_or(0, Segment::postings);
        3 + u64::from((largest / self.sizes.unit()).max(1).ilog(4))
    }

    /// Adds the keys of a content. Texts that are too short to be near-duplicates have one, that of
    /// the whole text; an empty one has none.
    pub fn insert(&mut self, batch: &mut Batch, content: u64, keys: &ArticleKeys) {
        self.ahead = true;
        if self.take_in(content, keys) {
            note(batch, Change { content, gone: false });
        }
    }

    /// Names a content no more: it was removed from the store, which has noted it in the log.
    pub fn forget(&mut self, content: u64) {
        self.ahead = true;
        self.glimpses.forget(content);
        self.tail.forget(content);
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
        let mut found = self.found(view, &[keys])?;
        let Ok(found) =
            self.tail.contents.finder.candidates_with(keys, &found.pop().unwrap_or_default());
        Ok(found)
    }

    /// Returns the contents whose whole texts may have a hash, older ones first; of very many some.
    /// Some of them may be gone, or have another hash.
    pub fn equal_texts(&self, view: &impl View, hash: u128) -> Result<Vec<u64>, store::Error> {
        let (key, mut found) = (exact_key(hash), Vec::new());
        let blocks = &self.source(view, true);
        self.postings(blocks).equal(Key::Exact, key, &mut |content| found.push(content))?;
        let Ok(()) = self.newest(0).equal(Key::Exact, key, &mut |content| found.push(content));
        Ok(self.tail.oldest(found))
    }

    fn postings<'a, V: View>(
        &'a self,
        blocks: &'a Source<'a, V>,
    ) -> SegmentPostings<'a, Source<'a, V>> {
        SegmentPostings { segments: &self.asked, blocks }
    }

    /// Does this batch's share of the writing and merging. To be called before its commit.
    pub fn merge_some(&mut self, batch: &mut Batch) -> Result<(), store::Error> {
        self.note_logged(batch)?;
        while self.owed > 0 && self.stored < self.frozen.len() {
            self.write_some(batch)?;
        }
        self.begin_merges(batch)?;
        let mut stepped = false;
        while self.owed > 0 && !self.merges.is_empty() {
            stepped = true;
            self.step(batch)?;
        }
        if self.merges.is_empty() && self.stored == self.frozen.len() {
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
            let removed = self.cache.remove_some(batch, segment, left)?;
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

    /// Writes some blocks of the oldest contents that are not in the store yet. With the last one
    /// their segment can be asked.
    fn write_some(&mut self, batch: &mut Batch) -> Result<(), store::Error> {
        self.ahead = true;
        let Some(frozen) = self.frozen.get_mut(self.stored) else { return Ok(()) };
        let logged = frozen.logged;
        let made = frozen.segment();
        if !made.is_begun() {
            made.number(batch.next_number("next_segment")? as u32);
            let begun = StoredSegment::of(&made.segment, false);
            batch.put(SEGMENTS, made.segment.number, &begun)?;
        }
        let count = made.blocks.len().min(self.sizes.step);
        self.written += count;
        self.owed = self.owed.saturating_sub(made.block_postings * count.max(1) as u64);
        self.cache.keep(batch, made.blocks.drain(..count))?;
        if made.blocks.is_empty() {
            self.stored += 1;
            let segment = made.segment.clone();
            // The last row stays, without entries, so that the next one has a number of its own.
            if let Some(logged) = logged {
                batch.clear(INDEX_LOG, ..logged)?;
                batch.put(INDEX_LOG, logged, &Vec::new())?;
            }
            return self.keep_segment(batch, segment);
        }
        Ok(())
    }

    /// Has a segment that is whole among those of the store.
    fn keep_segment(&mut self, batch: &mut Batch, segment: Segment) -> Result<(), store::Error> {
        if segment.tables.is_empty() {
            batch.remove(SEGMENTS, segment.number)?;
            return Ok(());
        }
        batch.put(SEGMENTS, segment.number, &StoredSegment::of(&segment, true))?;
        self.cache.end(segment.number)?;
        let place = self.kept.partition_point(|one| one.age < segment.age);
        self.kept.insert(place, segment);
        Ok(())
    }

    /// Writes down how to go on with merges.
    fn keep_merges(&self, batch: &mut Batch) -> Result<(), store::Error> {
        for merge in &self.merges {
            batch.put(MERGES, merge.output().number, &StoredMerge::of(&merge.state()))?;
        }
        Ok(())
    }

    /// Returns which segments are to become one next.
    fn due(&self) -> Option<Range<usize>> {
        let size = |one: &Segment| SegmentSize {
            postings: one.postings(),
            busy: self.merges.iter().any(|merge| merge.inputs().any(|own| own == one.number)),
        };
        let sizes: Vec<SegmentSize> = self.kept.iter().map(size).collect();
        due(&sizes, self.sizes.unit())
    }

    /// Tells whether segments are becoming one, or are to.
    #[must_use]
    pub fn has_merges(&self) -> bool {
        !self.merges.is_empty() || self.due().is_some()
    }

    /// Has the next commit read so many postings of segments that become one, whatever it brings.
    pub fn hurry(&mut self, postings: u64) {
        self.owed = self.owed.max(postings);
    }

    /// Begins the merges that are due.
    fn begin_merges(&mut self, batch: &mut Batch) -> Result<(), store::Error> {
        while let Some(range) = self.due() {
            self.ahead = true;
            let forgets = range.start == 0;
            let inputs = self.kept[range].to_vec();
            let number = batch.next_number("next_segment")? as u32;
            let output = Segment::new(number, inputs.first().map_or(number, |oldest| oldest.age));
            batch.put(SEGMENTS, number, &StoredSegment::of(&output, false))?;
            let merge = Merge::begin(&self.source(batch, false), inputs, output, forgets)?;
            self.merges.push(merge.with_block_bytes(self.sizes.block_bytes));
        }
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
        self.cache.keep(batch, step.written)?;
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
        if !self.tail.postings.is_empty() {
            self.freeze(None)?;
        }
        self.note_logged(batch)?;
        while self.stored < self.frozen.len() {
            self.write_some(batch)?;
        }
        Ok(())
    }

    /// Puts a segment in the place of those that became it.
    fn end(
        &mut self,
        batch: &mut Batch,
        merge: &Merge,
        segment: Segment,
    ) -> Result<(), store::Error> {
        batch.remove(MERGES, segment.number)?;
        let is_ended = |one: &Segment| merge.inputs().any(|input| input == one.number);
        for gone in self.kept.iter().filter(|one| is_ended(one)) {
            batch.put(SEGMENTS, gone.number, &StoredSegment::of(gone, false))?;
        }
        self.ended.extend(merge.inputs());
        self.kept.retain(|one| !is_ended(one));
        self.keep_segment(batch, segment)
    }

    /// Notes that all it was told of is committed.
    pub fn committed(&mut self) {
        self.ahead = false;
        self.removed.append(&mut self.ended);
        self.frozen_before += self.stored as u64;
        self.frozen.drain(..std::mem::take(&mut self.stored));
        self.ask_kept();
        if let Err(error) = self.freeze_if_full(None) {
            tracing::error!(%error, "the index has to be read again");
            self.ahead = true;
        }
    }

    /// Asks the segments that are in the store from here on.
    fn ask_kept(&mut self) {
        if !self.asked.iter().map(|one| one.number).eq(self.kept.iter().map(|one| one.number)) {
            self.asked = self.kept.as_slice().into();
            self.cache.follow(&self.asked);
        }
    }

    fn freeze_if_full(&mut self, logged: Option<u64>) -> Result<(), store::Error> {
        let postings_max = self.sizes.unit() * 2;
        if self.tail.count < self.sizes.tail && (self.tail.postings.len() as u64) < postings_max {
            return Ok(());
        }
        self.freeze(logged)
    }

    /// Makes the tail a segment. `logged` is the last row of the log with its contents.
    fn freeze(&mut self, logged: Option<u64>) -> Result<(), store::Error> {
        let tail = Tail::new(&self.config)
            .map_err(|_| BadRow { kind: "index", detail: "its settings have become impossible" })?;
        let full = std::mem::replace(&mut self.tail, tail);
        self.frozen.push(Frozen::of(full, logged));
        Ok(())
    }

    /// Returns the memory that it takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let frozen: usize = self.frozen.iter().map(Frozen::bytes).sum();
        self.tail.bytes() + frozen + self.cache.bytes() + self.glimpses.bytes()
    }
}

/// Locks an index, also if a thread died while it had it: whoever begins to write reads it again.
pub fn lock(index: &Mutex<Index>) -> MutexGuard<'_, Index> {
    index.lock().unwrap_or_else(PoisonError::into_inner)
}
