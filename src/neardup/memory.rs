//! All that is remembered of documents, in memory.

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;

use crate::text::features::ArticleKeys;

use super::segment::PER_KEY_MAX;
use super::storage::{JudgedPage, JudgedText, JudgedTree, PageList, Storage, TextPlace};
use super::{Candidate, Config, Error, Finder, classes};

/// Bytes of a text beyond the keys by which it is found, as measured: half of them are its sketch.
const TEXT_BYTES: usize = 1_536;

/// Bytes of the hash of a text in its table.
const EXACT_BYTES: usize = 34;

/// Bytes of a list of documents, which is mostly short.
const LIST_BYTES: usize = 80;

/// Texts that are looked up together: one after the other, their lists are short-lived.
const TOGETHER: usize = 1_024;

/// Everything in lists.
pub(crate) struct MemoryStorage {
    /// None where no text is asked for by its keys.
    finder: Option<Finder>,
    /// Number of the first content of each exact hash.
    exact: HashMap<u128, u32>,
    /// The next ones: pages of one site that are no copies of each other have the same text.
    twins: HashMap<u128, Vec<u32>>,
    texts: Vec<DistinctText>,
    trees: Vec<JudgedTree>,
    pages: Vec<JudgedPage>,
    lists: HashMap<PageList, Vec<u32>>,
}

/// A distinct text.
struct DistinctText {
    place: TextPlace,
    /// In a box: the list grows without moving it.
    keys: Box<ArticleKeys>,
}

impl MemoryStorage {
    /// Makes an empty one.
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let finder = if classes::are_enough(config) { None } else { Some(Finder::new(config)?) };
        Ok(Self {
            finder,
            exact: HashMap::new(),
            twins: HashMap::new(),
            texts: Vec::new(),
            trees: Vec::new(),
            pages: Vec::new(),
            lists: HashMap::new(),
        })
    }

    /// Moves everything to another storage, which is empty.
    pub(crate) fn move_to<S: Storage>(self, other: &mut S) -> Result<(), S::Error> {
        // The other one finds texts by itself: here, memory becomes free.
        drop((self.finder, self.exact, self.twins));
        for (content, DistinctText { place, keys }) in (0..).zip(self.texts) {
            other.add_text(content, place, *keys)?;
        }
        for (tree, row) in (0..).zip(self.trees) {
            other.put_tree(tree, row)?;
        }
        for (document, page) in (0..).zip(self.pages) {
            other.add_page(document, page)?;
        }
        for (list, documents) in self.lists {
            for (at, document) in (0..).zip(documents) {
                other.add_listed(list, at, document)?;
            }
        }
        Ok(())
    }

    /// Returns about how much memory it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let rows = self.trees.capacity() * size_of::<JudgedTree>()
            + self.pages.capacity() * size_of::<JudgedPage>()
            + self.lists.capacity() * LIST_BYTES;
        // Its tables double, and then there are two of them.
        let index = self.index_bytes() / 2 * 3;
        index + self.exact.capacity() * EXACT_BYTES + self.texts.len() * TEXT_BYTES + rows
    }

    /// Returns the memory of the keys by which texts are found, in bytes.
    pub(crate) fn index_bytes(&self) -> usize {
        self.finder.as_ref().map_or(0, Finder::bytes)
    }
}

impl Storage for MemoryStorage {
    type Error = Infallible;

    fn candidates(&self, keys: &ArticleKeys) -> Result<Vec<Candidate>, Infallible> {
        Ok(self.finder.as_ref().map_or(Vec::new(), |finder| finder.candidates(keys)))
    }

    fn together(&self) -> usize {
        TOGETHER
    }

    fn candidates_of(&mut self, contents: &[u32]) -> Result<Vec<Vec<Candidate>>, Infallible> {
        contents
            .iter()
            .map(|content| self.candidates(&self.texts[*content as usize].keys))
            .collect()
    }

    fn equal_texts(&self, hash: u128) -> Result<Vec<u32>, Infallible> {
        let first = self.exact.get(&hash);
        let twins = self.twins.get(&hash).into_iter().flatten();
        Ok(first.into_iter().chain(twins).copied().collect())
    }

    fn text(&self, content: u32) -> Result<JudgedText<'_>, Infallible> {
        let DistinctText { place, keys } = &self.texts[content as usize];
        Ok(JudgedText { tree: place.tree, keys: Cow::Borrowed(keys) })
    }

    fn place(&self, content: u32) -> Result<TextPlace, Infallible> {
        Ok(self.texts[content as usize].place)
    }

    fn put_place(&mut self, content: u32, place: TextPlace) -> Result<(), Infallible> {
        self.texts[content as usize].place = place;
        Ok(())
    }

    fn add_text(
        &mut self,
        content: u32,
        place: TextPlace,
        keys: ArticleKeys,
    ) -> Result<(), Infallible> {
        if *self.exact.entry(keys.text.hash).or_insert(content) != content {
            let twins = self.twins.entry(keys.text.hash).or_default();
            if twins.len() + 1 < PER_KEY_MAX {
                twins.push(content);
            }
        }
        if let Some(finder) = &mut self.finder {
            finder.insert(u64::from(content), &keys);
        }
        self.texts.push(DistinctText { place, keys: Box::new(keys) });
        Ok(())
    }

    fn tree(&self, tree: u32) -> Result<JudgedTree, Infallible> {
        Ok(self.trees[tree as usize])
    }

    fn put_tree(&mut self, tree: u32, row: JudgedTree) -> Result<(), Infallible> {
        match self.trees.get_mut(tree as usize) {
            Some(known) => *known = row,
            None => self.trees.push(row),
        }
        Ok(())
    }

    fn page(&self, document: u32) -> Result<JudgedPage, Infallible> {
        Ok(self.pages[document as usize])
    }

    fn add_page(&mut self, _: u32, page: JudgedPage) -> Result<(), Infallible> {
        self.pages.push(page);
        Ok(())
    }

    fn listed(&self, list: PageList, limit: usize) -> Result<Vec<u32>, Infallible> {
        let all = self.lists.get(&list).into_iter().flatten();
        Ok(all.take(limit).copied().collect())
    }

    fn add_listed(&mut self, list: PageList, _: u32, document: u32) -> Result<(), Infallible> {
        self.lists.entry(list).or_default().push(document);
        Ok(())
    }

    fn clear_list(&mut self, list: PageList) -> Result<(), Infallible> {
        self.lists.remove(&list);
        Ok(())
    }
}
