//! Where the blocks of segments are: in the store, or in files that end with a run, and those that
//! were asked for lately in memory.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::block_files::BlockFiles;
use super::filters::Filters;
use super::glimpses::Glimpses;
use crate::corpus::tables::{KEYS, NEAR};
use crate::neardup::Key;
use crate::neardup::segment::{
    BadBlock, Block, BlockId, Blocks, FILTERS, Filter, GONE, Posting, ROTATIONS, Segment, Written,
    equality_table,
};
use crate::store::{self, BadRow, Batch, Error, FixedKey as _, Table, Update as _, View};

/// Tables of rotated fingerprints: those of texts, and those of titles.
const FINGERPRINTS: u8 = 2 * ROTATIONS;

/// What a row of the index has: a block, or a filter.
pub(super) enum Kept {
    Block(Block),
    Filter,
}

impl Kept {
    pub(super) fn read(id: BlockId, bytes: &[u8]) -> Result<Self, BadBlock> {
        Ok(if id.level == FILTERS {
            Filter::read(bytes)?;
            Self::Filter
        } else {
            Self::Block(Block::read(bytes)?)
        })
    }
}

#[derive(Debug, Clone)]
pub(super) struct BytesOf;

impl Weighter<BlockId, Arc<Block>> for BytesOf {
    fn weight(&self, _: &BlockId, block: &Arc<Block>) -> u64 {
        (block.memory() + size_of::<(BlockId, Arc<Block>)>()) as u64
    }
}

/// What is in memory of the segments of a store: blocks that were asked for lately, and filters.
#[derive(Debug)]
pub(super) struct IndexCache {
    blocks: Cache<BlockId, Arc<Block>, BytesOf>,
    filters: RwLock<Filters>,
    /// Where the blocks are if they are not in the store.
    files: Option<BlockFiles>,
}

impl IndexCache {
    /// Makes the cache that belongs to a page cache of so many bytes: half of that for blocks, and
    /// for filters, of which a content has some hundred bytes, `more` and two and a half times that
    /// but for what [`Glimpses`] have.
    pub(super) fn beside(page_cache: usize, more: usize) -> Self {
        let bytes = page_cache / 2;
        let blocks = Cache::with_weighter(bytes / 4_096, bytes as u64, BytesOf);
        let of_filters = (bytes * 5 - Glimpses::bytes_beside(page_cache)).saturating_add(more);
        tracing::debug!(blocks = bytes, filters = of_filters, "memory of the index, in bytes");
        Self { blocks, filters: RwLock::new(Filters::within(of_filters)), files: None }
    }

    /// Has the blocks in files of a folder, which goes with the run, and not in the store.
    pub(super) fn with_files(self, folder: PathBuf) -> Self {
        Self { files: Some(BlockFiles::new(folder)), ..self }
    }

    /// Keeps blocks.
    pub(super) fn keep(
        &self,
        batch: &mut Batch,
        written: impl IntoIterator<Item = Written>,
    ) -> Result<(), Error> {
        match &self.files {
            Some(files) => files.keep(written),
            None => keep(batch, written),
        }
    }

    /// Tells that all blocks of a segment are kept.
    pub(super) fn end(&self, segment: u32) -> Result<(), Error> {
        self.files.as_ref().map_or(Ok(()), |files| files.end(segment))
    }

    /// Removes up to `count` blocks of a segment. Returns how many; 0 if none was left, or all are
    /// gone with their file.
    pub(super) fn remove_some(
        &self,
        batch: &mut Batch,
        segment: u32,
        count: usize,
    ) -> Result<usize, Error> {
        match &self.files {
            Some(files) => {
                files.remove(segment);
                Ok(0)
            }
            None => remove_some(batch, segment, count),
        }
    }

    /// Returns the memory that it takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let places = self.files.as_ref().map_or(0, BlockFiles::bytes);
        self.blocks.weight() as usize + self.filters().bytes() + places
    }

    /// Holds the filters of these segments from here on, and no others. Waits until all that ask
    /// are done.
    pub(super) fn follow(&self, asked: &[Segment]) {
        self.filters.write().unwrap_or_else(PoisonError::into_inner).follow(asked);
    }

    fn filters(&self) -> RwLockReadGuard<'_, Filters> {
        self.filters.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All blocks, as one state of the store has them.
pub(super) struct Source<'a, V> {
    view: &'a V,
    blocks: &'a Cache<BlockId, Arc<Block>, BytesOf>,
    filters: RwLockReadGuard<'a, Filters>,
    files: Option<&'a BlockFiles>,
    /// What is read from a file.
    buffer: RefCell<Vec<u8>>,
    /// What is read is kept in the cache: it is asked for, not merged.
    keeps: bool,
}

impl<'a, V: View> Source<'a, V> {
    pub(super) fn new(view: &'a V, cache: &'a IndexCache, keeps: bool) -> Self {
        let (filters, files) = (cache.filters(), cache.files.as_ref());
        Self { view, blocks: &cache.blocks, filters, files, buffer: RefCell::default(), keeps }
    }

    fn read<T>(&self, id: BlockId, of: impl Fn(&[u8]) -> Result<T, BadBlock>) -> Result<T, Error> {
        if let Some(files) = self.files {
            let mut buffer = self.buffer.borrow_mut();
            let length = files.read(id, &mut buffer)?;
            return Ok(of(&buffer[..length])?);
        }
        let bytes = self.view.bytes(table_of(id.table), id)?;
        let bytes = bytes.ok_or(BadBlock("is missing"))?;
        Ok(of(&bytes)?)
    }
}

impl<V: View> Blocks for Source<'_, V> {
    type Error = Error;

    fn block(&self, id: BlockId) -> Result<Arc<Block>, Error> {
        if let Some(block) = self.blocks.get(&id) {
            return Ok(block);
        }
        let block = Arc::new(self.read(id, Block::read)?);
        if self.keeps || id.level > 0 {
            self.blocks.insert(id, Arc::clone(&block));
        }
        Ok(block)
    }

    fn passes(&self, id: BlockId, key: u64) -> Result<bool, Error> {
        let Some(held) = self.filters.of(id) else { return Ok(true) };
        let Some(place) = held.filters.get(id.first.key as usize) else { return Ok(true) };
        if let Some(filter) = place.get() {
            return Ok(filter.may_have(key));
        }
        let filter = self.read(id, Filter::read)?.narrowed(held.columns.into());
        Ok(place.get_or_init(|| filter).may_have(key))
    }

    fn prefetch(&self, id: BlockId, key: u64) {
        let place = self.filters.of(id).and_then(|held| held.filters.get(id.first.key as usize));
        if let Some(filter) = place.and_then(OnceLock::get) {
            filter.prefetch(key);
        }
    }
}

pub(super) fn bad(error: BadBlock) -> BadRow {
    BadRow { kind: "index", detail: error.0 }
}

impl From<BadBlock> for Error {
    fn from(error: BadBlock) -> Self {
        bad(error).into()
    }
}

/// Returns the table of the store in which a table of segments lies.
pub(super) fn table_of(table: u8) -> Table<BlockId, Vec<u8>> {
    if table < FINGERPRINTS { NEAR } else { KEYS }
}

/// Keeps blocks in the store.
pub(super) fn keep(
    batch: &mut Batch,
    written: impl IntoIterator<Item = Written>,
) -> Result<(), Error> {
    for (id, bytes) in written {
        batch.put(table_of(id.table), id, &bytes)?;
    }
    Ok(())
}

/// Removes up to `count` blocks of a segment. Returns how many; 0 if none was left.
fn remove_some(batch: &mut Batch, segment: u32, count: usize) -> Result<usize, Error> {
    let mut removed = 0;
    for table in (0..=u8::MAX).filter(|table| is_used(*table)) {
        let id = |level, number| {
            let first = Posting { key: number, content: number };
            BlockId { table, segment, level, first }
        };
        let all = id(0, 0)..=id(u8::MAX, u64::MAX);
        let some = batch.range(table_of(table), all)?.take(count - removed);
        let mut last = None;
        for entry in some {
            last = Some(entry?.key()?);
            removed += 1;
        }
        if let Some(last) = last {
            batch.clear(table_of(table), id(0, 0)..=last)?;
        }
    }
    Ok(removed)
}

/// Tells whether a segment may have a table.
fn is_used(table: u8) -> bool {
    table < FINGERPRINTS
        || table == GONE
        || Key::ALL.iter().any(|key| equality_table(*key) == table)
}

impl store::Key for BlockId {
    type Ref<'a> = Self;

    fn encode(key: Self::Ref<'_>) -> Cow<'_, [u8]> {
        let mut bytes = Vec::with_capacity(Self::SIZE);
        bytes.push(key.table);
        bytes.extend_from_slice(&key.segment.to_be_bytes());
        bytes.push(key.level);
        bytes.extend_from_slice(&key.first.key.to_be_bytes());
        bytes.extend_from_slice(&key.first.content.to_be_bytes());
        Cow::Owned(bytes)
    }

    fn decode(bytes: &[u8]) -> Result<Self::Ref<'_>, BadRow> {
        let bad = BadRow { kind: "key", detail: "it is not that of a block" };
        let bytes: &[u8; Self::SIZE] = bytes.try_into().map_err(|_| bad)?;
        let wide = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let segment = u32::from_be_bytes(std::array::from_fn(|byte| bytes[1 + byte]));
        let first = Posting { key: wide(6), content: wide(14) };
        Ok(Self { table: bytes[0], segment, level: bytes[5], first })
    }
}

impl store::FixedKey for BlockId {
    const SIZE: usize = 22;
}
