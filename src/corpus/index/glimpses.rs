//! By what texts that share a weak key with an article are told from others without being read
//! again.

use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::corpus::tables::CONTENTS;
use crate::neardup::{Glimpse, Resemblance, Rule};
use crate::store::{Error, View};
use crate::text::features::ArticleKeys;

/// Memory of one, with its key and its place in the cache, in bytes.
const BYTES: usize = 192;

/// Glimpses of contents that were compared lately. A key has its oldest contents, so that those
/// with which many others share one are compared again and again. A text stays as it is for as long
/// as its content is there.
#[derive(Debug, Clone)]
pub struct Glimpses {
    cache: Arc<Cache<u64, Glimpse>>,
    rule: Rule,
}

impl Glimpses {
    pub(super) fn within(bytes: usize, rule: Rule) -> Self {
        Self { cache: Arc::new(Cache::new(bytes / BYTES)), rule }
    }

    /// Returns the memory that it takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.cache.len() * BYTES
    }

    /// Returns how like an article a content looks; none if it is not there.
    pub fn compare(
        &self,
        view: &impl View,
        keys: &ArticleKeys,
        content: u64,
    ) -> Result<Option<Resemblance>, Error> {
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
