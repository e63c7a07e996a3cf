//! Where the blocks of segments are: in the store, and those that were asked for lately in memory.

use std::borrow::Cow;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::corpus::tables::{KEYS, NEAR};
use crate::neardup::Key;
use crate::neardup::segment::{
    BadBlock, Block, BlockId, Blocks, FILTERS, Filter, GONE, Posting, ROTATIONS, Written,
    equality_table,
};
use crate::store::{self, BadRow, Batch, Error, FixedKey as _, Table, Update as _, View};

/// Tables of rotated fingerprints: those of texts, and those of titles.
const FINGERPRINTS: u8 = 2 * ROTATIONS;

/// A block, or a filter.
#[derive(Debug, Clone)]
pub(super) enum Held {
    Block(Arc<Block>),
    Filter(Arc<Filter>),
}

impl Held {
    pub(super) fn read(id: BlockId, bytes: &[u8]) -> Result<Self, BadBlock> {
        Ok(if id.level == FILTERS {
            Self::Filter(Arc::new(Filter::read(bytes)?))
        } else {
            Self::Block(Arc::new(Block::read(bytes)?))
        })
    }

    pub(super) fn memory(&self) -> usize {
        let own = match self {
            Self::Block(block) => block.memory(),
            Self::Filter(filter) => filter.memory(),
        };
        own + size_of::<(BlockId, Self)>()
    }
}

#[derive(Debug, Clone)]
pub(super) struct BytesOf;

impl Weighter<BlockId, Held> for BytesOf {
    fn weight(&self, _: &BlockId, held: &Held) -> u64 {
        held.memory() as u64
    }
}

/// Blocks of the store that were asked for lately, and filters: each article asks some of these
/// for each of its keys, so that as many as possible stay in memory.
pub(super) struct BlockCache {
    blocks: Cache<BlockId, Held, BytesOf>,
    filters: Cache<BlockId, Held, BytesOf>,
}

impl BlockCache {
    /// Makes the cache that belongs to a page cache of so many bytes: half of that for blocks, two
    /// and a half times that for filters, of which a content has some 64 bytes.
    pub(super) fn beside(page_cache: usize) -> Self {
        let of = |bytes: usize| Cache::with_weighter(bytes / 4_096, bytes as u64, BytesOf);
        Self { blocks: of(page_cache / 2), filters: of(page_cache / 2 * 5) }
    }

    fn part(&self, id: BlockId) -> &Cache<BlockId, Held, BytesOf> {
        if id.level == FILTERS { &self.filters } else { &self.blocks }
    }

    /// Returns the memory that it takes, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks.weight() + self.filters.weight()
    }
}

/// All blocks, as one state of the store has them.
pub(super) struct Source<'a, V> {
    pub(super) view: &'a V,
    pub(super) cache: &'a BlockCache,
    /// What is read is kept in the cache: it is asked for, not merged.
    pub(super) keeps: bool,
}

impl<V: View> Source<'_, V> {
    fn held(&self, id: BlockId) -> Result<Held, Error> {
        let cache = self.cache.part(id);
        if let Some(held) = cache.get(&id) {
            return Ok(held);
        }
        let bytes = self.view.bytes(table_of(id.table), id)?;
        let bytes = bytes.ok_or_else(|| bad(BadBlock("is missing")))?;
        let held = Held::read(id, &bytes).map_err(bad)?;
        if self.keeps || id.level > 0 {
            cache.insert(id, held.clone());
        }
        Ok(held)
    }
}

impl<V: View> Blocks for Source<'_, V> {
    type Error = Error;

    fn block(&self, id: BlockId) -> Result<Arc<Block>, Error> {
        match self.held(id)? {
            Held::Block(block) => Ok(block),
            Held::Filter(_) => Err(bad(BadBlock("is a filter")).into()),
        }
    }

    fn filter(&self, id: BlockId) -> Result<Arc<Filter>, Error> {
        match self.held(id)? {
            Held::Filter(filter) => Ok(filter),
            Held::Block(_) => Err(bad(BadBlock("is no filter")).into()),
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
pub(super) fn remove_some(batch: &mut Batch, segment: u32, count: usize) -> Result<usize, Error> {
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
