//! Documents that are looked up, by several threads, while those before them are judged.

use std::collections::HashMap;
use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::corpus::documents::Content;
use crate::corpus::index::{LookedAhead, OlderContents, each_of};
use crate::corpus::tables::CONTENTS;
use crate::store::{self, Store, View as _};
use crate::text::features::ArticleKeys;

use super::ends::EndsUntil;

/// Texts that were compared lately. A key has its oldest texts, so that those that many others
/// share one with by chance are compared again and again.
pub(super) type TextCache = Cache<u32, Arc<CachedText>>;

/// Some texts, by their numbers.
pub(super) type Texts = HashMap<u32, Arc<CachedText>>;

/// The tree of a text, and its keys.
pub(super) struct CachedText {
    pub tree: u32,
    pub keys: ArticleKeys,
}

impl From<Content> for CachedText {
    fn from(row: Content) -> Self {
        Self { tree: row.document as u32, keys: row.keys() }
    }
}

/// Looks up documents among those of the last commit.
pub(super) struct Looker {
    pub store: Arc<Store>,
    pub older: OlderContents,
    pub ends: EndsUntil,
    pub reader: TextReader,
}

/// Reads texts.
#[derive(Clone)]
pub(super) struct TextReader {
    pub texts: Arc<TextCache>,
    /// So many at a time, at most.
    pub most: usize,
    pub threads: usize,
}

/// What was found for documents.
pub(super) struct FoundAhead {
    /// For each of them, in order.
    pub found: Vec<LookedAhead>,
    /// Texts that the judge likely reads, with the trees that they had at the last commit, or have
    /// since.
    pub texts: Texts,
}

impl Looker {
    /// Looks documents up.
    pub(super) fn look_up(&self, coming: &[&ArticleKeys]) -> Result<FoundAhead, store::Error> {
        let (ends, threads) = (&self.ends, self.reader.threads);
        let found = self.older.look_up(&self.store, coming, threads, |keys, content| {
            ends.resembles(content, &keys.text.sketch)
        })?;
        let likely = found.iter().flat_map(LookedAhead::likely).collect();
        let texts = self.reader.read(&self.store, likely)?;
        Ok(FoundAhead { found, texts })
    }
}

impl FoundAhead {
    /// Returns the memory that what was found takes, and took when it was looked up, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.found.iter().map(LookedAhead::memory).sum()
    }
}

impl TextReader {
    /// Reads texts as they were at the last commit, or are.
    pub(super) fn read(
        &self,
        store: &Store,
        mut contents: Vec<u64>,
    ) -> Result<Texts, store::Error> {
        contents.sort_unstable();
        contents.dedup();
        contents.truncate(self.most);
        let read = each_of(&contents, store, self.threads, |view, content| {
            let number = *content as u32;
            if let Some(known) = self.texts.get(&number) {
                return Ok(Some((number, known)));
            }
            // Those that are not there came after the last commit.
            let row = view.get(CONTENTS, *content)?;
            Ok(row.map(|row| (number, Arc::new(row.into()))))
        })?;
        Ok(read.into_iter().flatten().collect())
    }
}
