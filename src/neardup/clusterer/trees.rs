//! Trees and the clusters of the documents that have their texts.

use std::cmp::Reverse;

use super::super::storage::{JudgedPage, JudgedTree, PageList, Storage, TextPlace};
use super::super::{Cluster, Key, Question, site_allows};
use super::Clusterer;
use super::known::{MATES_MAX, mates};

/// Pages of the smaller of two trees that are asked before both become one; pages of a text that
/// are asked before it moves.
const MERGED_MAX: usize = 32;

/// All documents of a tree but the first.
fn others(tree: u32) -> PageList {
    PageList { tree, site: 0 }
}

impl<S: Storage> Clusterer<S> {
    /// Makes a tree of its own for a content that `first` has.
    pub(super) fn plant(&mut self, first: u32, root: u32) -> Result<TextPlace, S::Error> {
        let tree = self.trees;
        self.trees += 1;
        let cluster = Cluster { first, canonical: first, copies: 0 };
        self.put_tree(tree, JudgedTree { cluster, popularity: 0, root, best: root })?;
        Ok(TextPlace { tree, first, key: Key::First, distance: 0, similarity: 1.0 })
    }

    fn put_tree(&mut self, tree: u32, row: JudgedTree) -> Result<(), S::Error> {
        self.changed.note(tree);
        self.storage.put_tree(tree, row)
    }

    /// Adds a document to a tree. Returns whether it is the canonical one from here on, and was not
    /// the first.
    pub(super) fn add(&mut self, tree: u32, page: JudgedPage) -> Result<bool, S::Error> {
        let number = self.documents;
        self.documents += 1;
        self.storage.add_page(number, page)?;
        self.count(tree, number, &page)
    }

    fn count(&mut self, tree: u32, document: u32, page: &JudgedPage) -> Result<bool, S::Error> {
        let mut row = self.storage.tree(tree)?;
        row.cluster.copies += 1;
        let Cluster { first, canonical, copies } = row.cluster;
        if copies == 1 {
            row.cluster = Cluster { first: document, canonical: document, copies };
            (row.popularity, row.best) = (page.popularity, page.content);
            self.put_tree(tree, row)?;
            return Ok(false);
        }
        let (earlier, later) = (document.min(first), document.max(first));
        row.cluster.first = earlier;
        self.storage.add_listed(others(tree), copies - 2, later)?;
        let better = page.popularity > row.popularity
            || (page.popularity == row.popularity && document < canonical);
        if better {
            row.cluster.canonical = document;
            (row.popularity, row.best) = (page.popularity, page.content);
        }
        self.put_tree(tree, row)?;
        if copies == 2 {
            let other = if document == earlier { later } else { earlier };
            let site = self.storage.page(other)?.standing.site;
            self.note_site(PageList { tree, site }, other)?;
        }
        self.note_site(PageList { tree, site: page.standing.site }, document)?;
        Ok(better)
    }

    fn note_site(&mut self, list: PageList, document: u32) -> Result<(), S::Error> {
        if list.site == 0 {
            return Ok(());
        }
        let known = self.storage.listed(list, MATES_MAX)?.len();
        if known < MATES_MAX {
            self.storage.add_listed(list, known as u32, document)?;
        }
        Ok(())
    }

    /// Counts the documents of a tree anew, each where its text is by now.
    pub(super) fn recount(&mut self, tree: u32) -> Result<(), S::Error> {
        let mut row = self.storage.tree(tree)?;
        let mut documents = self.numbers(tree, usize::MAX)?;
        documents.sort_unstable();
        row.cluster.copies = 0;
        self.put_tree(tree, row)?;
        self.storage.clear_list(others(tree))?;
        for document in &documents {
            let site = self.storage.page(*document)?.standing.site;
            if site != 0 {
                self.storage.clear_list(PageList { tree, site })?;
            }
        }
        for document in documents {
            let page = self.storage.page(document)?;
            let tree = self.storage.place(page.content)?.tree;
            self.count(tree, document, &page)?;
        }
        Ok(())
    }

    /// Returns which of two trees takes the other: the one with most copies, then the older one.
    fn larger(&self, one: u32, other: u32) -> Result<u32, S::Error> {
        let rank = |tree: u32| {
            let cluster = self.storage.tree(tree)?.cluster;
            Ok((cluster.copies, Reverse(cluster.first)))
        };
        Ok(if rank(one)? >= rank(other)? { one } else { other })
    }

    /// Tells whether two trees may become one for all that is known of the sites of their pages.
    fn may_merge(&self, small: u32, large: u32) -> Result<bool, S::Error> {
        Ok(small != large && self.allow(&self.numbers(small, MERGED_MAX)?, large)?)
    }

    /// Tells whether all pages of a text may be pages of another tree for all that is known of
    /// their sites.
    pub(super) fn may_move(&self, content: u32, tree: u32) -> Result<bool, S::Error> {
        let mut pages = Vec::new();
        for number in self.numbers(self.storage.place(content)?.tree, usize::MAX)? {
            if pages.len() < MERGED_MAX && self.storage.page(number)?.content == content {
                pages.push(number);
            }
        }
        self.allow(&pages, tree)
    }

    fn allow(&self, pages: &[u32], tree: u32) -> Result<bool, S::Error> {
        for number in pages {
            let page = self.storage.page(*number)?;
            let mut keys = self.storage.text(page.content)?.keys.into_owned();
            keys.standing = page.standing();
            let content = Some(u64::from(page.content));
            let question = Question { content, ..Question::new(&keys, "") };
            let mates = mates(&self.storage, tree, &question)?;
            if site_allows(&question, &mates, &self.config).is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The documents of a tree, the first before the others; `limit` at most.
    fn numbers(&self, tree: u32, limit: usize) -> Result<Vec<u32>, S::Error> {
        let mut numbers = vec![self.storage.tree(tree)?.cluster.first];
        numbers.extend(self.storage.listed(others(tree), limit - 1)?);
        Ok(numbers)
    }

    /// Returns the documents of a cluster.
    pub(crate) fn members(&self, cluster: u32) -> Result<Vec<u32>, S::Error> {
        self.numbers(cluster, usize::MAX)
    }

    /// Returns a page of a site that carries a text.
    pub(super) fn carrier_on(&self, content: u32, site: u64) -> Result<Option<u32>, S::Error> {
        for number in self.numbers(self.storage.place(content)?.tree, usize::MAX)? {
            let page = self.storage.page(number)?;
            if page.content == content && page.standing.site == site {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Makes the trees of which one text is surely a copy one tree, as far as they have no
    /// different pages of one site. One that is empty by now is looked for where its root is: the
    /// document that it names last may be of any other. Returns how many trees became part of
    /// another one.
    pub(super) fn unite(&mut self, mut tree: u32, also: &[u64]) -> Result<usize, S::Error> {
        let mut united = 0;
        for other in also {
            let root = self.storage.tree(*other as u32)?.root;
            let other = self.storage.place(root)?.tree;
            let large = self.larger(tree, other)?;
            let small = if large == tree { other } else { tree };
            if self.may_merge(small, large)? {
                self.merge(small, large)?;
                tree = large;
                united += 1;
            }
        }
        Ok(united)
    }

    /// Makes all documents of one tree documents of another one.
    fn merge(&mut self, small: u32, large: u32) -> Result<(), S::Error> {
        let root = self.storage.text(self.storage.tree(large)?.root)?.keys.into_owned().text;
        for number in self.numbers(small, usize::MAX)? {
            let content = self.storage.page(number)?.content;
            let mut place = self.storage.place(content)?;
            if place.tree != large {
                let text = &self.storage.text(content)?.keys.text;
                (place.tree, place.key) = (large, Key::Merged);
                place.distance = text.fingerprint.distance(root.fingerprint) as u8;
                place.similarity = text.sketch.similarity(&root.sketch);
                self.storage.put_place(content, place)?;
            }
        }
        self.recount(small)
    }
}
