//! By what texts that share a weak key with an article are told from others without being read
//! again.

use std::sync::Arc;

use quick_cache::sync::Cache;
use roaring::RoaringTreemap;

use crate::corpus::tables::CONTENTS;
use crate::neardup::{Glimpse, Resemblance, Rule};
use crate::store::{Error, View};
use crate::text::features::ArticleKeys;

/// Memory of a place in the cache, in bytes: what is there, its key, and two links, a state and a
/// place in the map.
const PLACE_BYTES: usize = size_of::<(u64, Glimpse)>() + 21;

/// Glimpses of contents that were compared lately. A key has its oldest contents, so that those
/// with which many others share one are compared again and again. A text stays as it is for as long
/// as its content is there.
#[derive(Debug, Clone)]
pub struct Glimpses {
    cache: Arc<Cache<u64, Glimpse>>,
    rule: Rule,
    /// Contents that were removed since the index was opened. Whoever looks ahead in an older state
    /// of the store may still put their glimpses into the cache.
    gone: Arc<RoaringTreemap>,
}

impl Glimpses {
    /// Returns the memory that they have beside a page cache of so many bytes.
    pub(super) fn bytes_beside(page_cache: usize) -> usize {
        page_cache / 16
    }

    pub(super) fn beside(page_cache: usize, rule: Rule) -> Self {
        let places = (Self::bytes_beside(page_cache) / PLACE_BYTES)
            .checked_ilog2()
            .map_or(1, |bits| 1 << bits);
        let cache = Arc::new(Cache::new(places * 2 / 3));
        Self { cache, rule, gone: Arc::default() }
    }

    /// Returns the memory that it takes, in bytes: the cache has places for half as many more as
    /// are in it, whose numbers it remembers.
    pub(super) fn bytes(&self) -> usize {
        let places = (self.cache.len() * 3 / 2).next_power_of_two();
        places * PLACE_BYTES + self.gone.serialized_size()
    }

    /// Names a content no more that is removed.
    pub(super) fn forget(&mut self, content: u64) {
        Arc::make_mut(&mut self.gone).insert(content);
    }

    /// Returns how many contents it names no more.
    pub(super) fn forgotten(&self) -> u64 {
        self.gone.len()
    }

    /// Returns how like an article a content looks; none if it is not there.
    pub fn compare(
        &self,
        view: &impl View,
        keys: &ArticleKeys,
        content: u64,
    ) -> Result<Option<Resemblance>, Error> {
        if self.gone.contains(content) {
            return Ok(None);
        }
        let known = self.cache.get(&content);
        let glimpse = if let Some(known) = known {
            known
        } else {
            let Some(row) = view.get(CONTENTS, content)? else { return Ok(None) };
            let read = Glimpse::of(&row.sketch, row.shingles);
            self.cache.insert(content, read);
            read
        };
        Ok(Some(Resemblance::of(&keys.text, &glimpse, &self.rule)))
    }
}
