//! The trees of all contents, in memory.

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;

use super::Key;
use crate::base::clock::Timestamp;
use crate::text::features::{ArticleKeys, Standing};

use super::deduplicator::Cluster;
use super::known::{KnownText, KnownTree, Mate, Question, Trees};
use super::{Attachment, Config, site_allows};

/// Pages of a document on one site that are asked.
const MATES_MAX: usize = 8;

/// Pages of the smaller of two trees that are asked before both become one; pages of a text that
/// are asked before it moves.
const MERGED_MAX: usize = 32;

/// All trees with their texts, and the documents that carry these.
#[derive(Default)]
pub(super) struct MemoryTrees {
    pub nodes: Vec<DistinctText>,
    pub trees: Vec<MemoryTree>,
    pub documents: Vec<JudgedPage>,
    /// Some documents of each tree of several on each site.
    sites: HashMap<(u32, u64), Vec<u32>>,
}

/// A distinct text.
pub(super) struct DistinctText {
    pub place: TextPlace,
    /// In a box: the list grows without moving it.
    pub keys: Box<ArticleKeys>,
}

/// Where a text hangs.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextPlace {
    pub tree: u32,
    /// The first document that has it.
    pub first: u32,
    pub key: Key,
    pub distance: u8,
    pub similarity: f32,
}

pub(super) struct MemoryTree {
    pub cluster: Cluster,
    pub popularity: u64,
    /// The content that the others are compared with.
    pub root: u32,
    /// Its documents but for the first, until it is counted anew.
    others: Vec<u32>,
}

/// A document as it was judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct JudgedPage {
    pub content: u32,
    pub popularity: u64,
    standing: LineStanding,
}

/// A [`Standing`] without what files of lines do not have.
#[derive(Debug, Clone, Copy)]
struct LineStanding {
    site: u64,
    edition: u32,
    form: u32,
    name: u32,
    title: u32,
    heading: u32,
}

impl JudgedPage {
    pub(super) fn of(standing: &Standing, content: u32, popularity: u64) -> Self {
        let Standing { site, edition, form, name, title, heading, .. } = *standing;
        let standing = LineStanding { site, edition, form, name, title, heading };
        Self { content, popularity, standing }
    }

    pub(super) fn standing(&self) -> Standing {
        let LineStanding { site, edition, form, name, title, heading } = self.standing;
        Standing { site, edition, form, name, title, heading, ..Standing::default() }
    }
}

impl TextPlace {
    /// That of a leaf.
    pub(super) fn leaf(first: u32, matched: &Attachment) -> Self {
        Self {
            tree: matched.document as u32,
            first,
            key: matched.key,
            distance: matched.distance as u8,
            similarity: matched.likeness.similarity,
        }
    }
}

impl Trees for MemoryTrees {
    type Error = Infallible;

    fn text(&self, content: u64) -> Result<Option<KnownText<'_>>, Infallible> {
        let node = &self.nodes[content as usize];
        let (document, keys) = (u64::from(node.place.tree), Cow::Borrowed(&*node.keys));
        Ok(Some(KnownText { content, document, keys }))
    }

    fn tree<'a>(&'a self, text: KnownText<'a>) -> Result<KnownTree<'a>, Infallible> {
        let tree = &self.trees[text.document as usize];
        let keys = |content: u32| Cow::Borrowed(&*self.nodes[content as usize].keys);
        let canonical = self.documents.get(tree.cluster.canonical as usize);
        let canonical = canonical.map(|page| page.content).filter(|content| *content != tree.root);
        let root_content = u64::from(tree.root);
        Ok(KnownTree {
            document: text.document,
            root_content,
            root: keys(tree.root),
            canonical: canonical.map(keys),
            leaf: (text.content != root_content).then_some(text.keys),
            copies: u64::from(tree.cluster.copies),
            first_arrival: Timestamp(i64::from(tree.cluster.first)),
        })
    }

    fn mates(&self, document: u64, question: &Question<'_>) -> Result<Vec<Mate<'_>>, Infallible> {
        Ok(self.pages(document as u32, question))
    }
}

impl MemoryTrees {
    /// Returns documents of a tree on the site of a question.
    pub(super) fn pages(&self, tree: u32, question: &Question<'_>) -> Vec<Mate<'_>> {
        let site = question.keys.standing.site;
        if site == 0 {
            return Vec::new();
        }
        let first = [self.trees[tree as usize].cluster.first];
        let numbers = self.sites.get(&(tree, site)).map_or(&first[..], Vec::as_slice);
        let pages = numbers.iter().map(|number| &self.documents[*number as usize]);
        let pages = pages.filter(|page| {
            page.standing.site == site && question.content != Some(u64::from(page.content))
        });
        pages.map(|page| self.mate(page)).collect()
    }

    fn mate(&self, page: &JudgedPage) -> Mate<'_> {
        let text = &self.nodes[page.content as usize].keys.text;
        let (content, standing) = (u64::from(page.content), page.standing());
        Mate { content, standing, text: Cow::Borrowed(text) }
    }

    /// Makes a tree of its own for a content that `first` has.
    pub(super) fn plant(&mut self, first: u32, content: u32) -> TextPlace {
        let tree = self.trees.len() as u32;
        let cluster = Cluster { first, canonical: first, copies: 0 };
        self.trees.push(MemoryTree { cluster, popularity: 0, root: content, others: Vec::new() });
        TextPlace { tree, first, key: Key::First, distance: 0, similarity: 1.0 }
    }

    /// Adds a document to a tree. Returns whether it is the canonical one from here on, and was not
    /// the first.
    pub(super) fn add(&mut self, tree: u32, page: JudgedPage) -> bool {
        let number = self.documents.len() as u32;
        self.documents.push(page);
        self.count(tree, number)
    }

    fn count(&mut self, number: u32, document: u32) -> bool {
        let page = self.documents[document as usize];
        let tree = &mut self.trees[number as usize];
        tree.cluster.copies += 1;
        if tree.cluster.copies == 1 {
            let first = document;
            tree.cluster = Cluster { first, canonical: first, copies: 1 };
            tree.popularity = page.popularity;
            return false;
        }
        let (earlier, later) = (document.min(tree.cluster.first), document.max(tree.cluster.first));
        tree.cluster.first = earlier;
        tree.others.push(later);
        let canonical = tree.cluster.canonical;
        let better = page.popularity > tree.popularity
            || (page.popularity == tree.popularity && document < canonical);
        if better {
            (tree.cluster.canonical, tree.popularity) = (document, page.popularity);
        }
        if tree.cluster.copies == 2 {
            let other = if document == earlier { later } else { earlier };
            self.note_site(number, other);
        }
        self.note_site(number, document);
        better
    }

    fn note_site(&mut self, tree: u32, document: u32) {
        let site = self.documents[document as usize].standing.site;
        if site != 0 {
            let pages = self.sites.entry((tree, site)).or_default();
            if pages.len() < MATES_MAX {
                pages.push(document);
            }
        }
    }

    /// Counts the documents of a tree anew, each where its text is by now.
    pub(super) fn recount(&mut self, number: u32) {
        let tree = &mut self.trees[number as usize];
        let mut documents = std::mem::take(&mut tree.others);
        documents.push(tree.cluster.first);
        documents.sort_unstable();
        tree.cluster.copies = 0;
        for document in &documents {
            self.sites.remove(&(number, self.documents[*document as usize].standing.site));
        }
        for document in documents {
            let content = self.documents[document as usize].content;
            self.count(self.nodes[content as usize].place.tree, document);
        }
    }

    /// Returns which of two trees takes the other: the one with most copies, then the older one.
    pub(super) fn order(&self, one: u32, other: u32) -> (u32, u32) {
        let rank = |tree: u32| {
            let cluster = self.trees[tree as usize].cluster;
            (cluster.copies, std::cmp::Reverse(cluster.first))
        };
        if rank(one) >= rank(other) { (one, other) } else { (other, one) }
    }

    /// Tells whether two trees may become one for all that is known of the sites of their pages.
    pub(super) fn may_merge(&self, small: u32, large: u32, config: &Config) -> bool {
        let pages = self.numbers(small).take(MERGED_MAX);
        small != large && self.allow(pages, large, config)
    }

    /// Tells whether all pages of a text may be pages of another tree for all that is known of
    /// their sites.
    pub(super) fn may_move(&self, content: u32, tree: u32, config: &Config) -> bool {
        let pages = self.numbers(self.nodes[content as usize].place.tree);
        let pages = pages.filter(|page| self.documents[*page as usize].content == content);
        self.allow(pages.take(MERGED_MAX), tree, config)
    }

    fn allow(&self, pages: impl Iterator<Item = u32>, tree: u32, config: &Config) -> bool {
        let mut pages = pages.map(|number| &self.documents[number as usize]);
        pages.all(|page| {
            let mut keys = self.nodes[page.content as usize].keys.clone();
            keys.standing = page.standing();
            let content = Some(u64::from(page.content));
            let question = Question { content, ..Question::new(&keys, "") };
            site_allows(&question, &self.pages(tree, &question), config).is_some()
        })
    }

    /// The documents of a tree.
    fn numbers(&self, tree: u32) -> impl Iterator<Item = u32> {
        let tree = &self.trees[tree as usize];
        std::iter::once(tree.cluster.first).chain(tree.others.iter().copied())
    }

    /// Returns a page of a site that carries a text.
    pub(super) fn carrier_on(&self, content: u32, site: u64) -> Option<u32> {
        self.numbers(self.nodes[content as usize].place.tree).find(|number| {
            let page = &self.documents[*number as usize];
            page.content == content && page.standing.site == site
        })
    }

    /// Makes all documents of one tree documents of another one.
    pub(super) fn merge(&mut self, small: u32, large: u32) {
        let root = self.trees[large as usize].root as usize;
        let root = self.nodes[root].keys.text.clone();
        let tree = &self.trees[small as usize];
        for number in std::iter::once(&tree.cluster.first).chain(&tree.others) {
            let content = self.documents[*number as usize].content;
            let DistinctText { place, keys } = &mut self.nodes[content as usize];
            if place.tree != large {
                let text = &keys.text;
                (place.tree, place.key) = (large, Key::Merged);
                place.distance = text.fingerprint.distance(root.fingerprint) as u8;
                place.similarity = text.sketch.similarity(&root.sketch);
            }
        }
        self.recount(small);
    }
}
