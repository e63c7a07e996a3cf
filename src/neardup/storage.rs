//! What is remembered of the documents that were judged, wherever it is kept.

use std::borrow::Cow;

use crate::text::features::{ArticleKeys, Standing};

use super::deduplicator::Cluster;
use super::{Attachment, Candidate, Key};

/// Where a `Clusterer` keeps texts, clusters and documents, each by its number from 0. It gives the
/// numbers, one after the other.
pub(crate) trait Storage {
    /// What can go wrong.
    type Error;

    /// Returns the contents that share a key with an article; none if it is not to be found by
    /// any.
    fn candidates(&self, keys: &ArticleKeys) -> Result<Vec<Candidate>, Self::Error>;

    /// Returns of how many contents that is best asked at a time.
    fn together(&self) -> usize;

    /// Returns the same for each of some contents, whose own numbers may be among them.
    fn candidates_of(&mut self, contents: &[u32]) -> Result<Vec<Vec<Candidate>>, Self::Error>;

    /// Returns the contents whose text has a hash, oldest first: as many as a key may have.
    fn equal_texts(&self, hash: u128) -> Result<Vec<u32>, Self::Error>;

    /// Returns a content.
    fn text(&self, content: u32) -> Result<JudgedText<'_>, Self::Error>;

    /// Returns where a content hangs.
    fn place(&self, content: u32) -> Result<TextPlace, Self::Error>;

    /// Hangs a content elsewhere.
    fn put_place(&mut self, content: u32, place: TextPlace) -> Result<(), Self::Error>;

    /// Adds a content, which is found by its keys from now on.
    fn add_text(
        &mut self,
        content: u32,
        place: TextPlace,
        keys: ArticleKeys,
    ) -> Result<(), Self::Error>;

    /// Returns a tree.
    fn tree(&self, tree: u32) -> Result<JudgedTree, Self::Error>;

    /// Adds a tree, or writes it anew.
    fn put_tree(&mut self, tree: u32, row: JudgedTree) -> Result<(), Self::Error>;

    /// Returns a document.
    fn page(&self, document: u32) -> Result<JudgedPage, Self::Error>;

    /// Adds a document.
    fn add_page(&mut self, document: u32, page: JudgedPage) -> Result<(), Self::Error>;

    /// Returns the documents of a list in the order in which they were added, `limit` at most.
    fn listed(&self, list: PageList, limit: usize) -> Result<Vec<u32>, Self::Error>;

    /// Adds a document to a list, as the one with the number `at` from 0.
    fn add_listed(&mut self, list: PageList, at: u32, document: u32) -> Result<(), Self::Error>;

    /// Empties a list.
    fn clear_list(&mut self, list: PageList) -> Result<(), Self::Error>;
}

/// A text that was judged.
#[derive(Debug, Clone)]
pub(crate) struct JudgedText<'a> {
    /// Its tree.
    pub tree: u32,
    /// Its keys, with site and edition of the page that it came with.
    pub keys: Cow<'a, ArticleKeys>,
}

/// Documents of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PageList {
    /// The tree.
    pub tree: u32,
    /// Some of those on this site; all but the first if it is 0.
    pub site: u64,
}

/// Where a text hangs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TextPlace {
    /// Number of its tree.
    pub tree: u32,
    /// The first document that has it.
    pub first: u32,
    /// By which key it was found.
    pub key: Key,
    /// Bits between its fingerprint and that of the root.
    pub distance: u8,
    /// Similarity to the root, 0 to 1.
    pub similarity: f32,
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

/// A tree of texts, and the cluster of the documents that have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JudgedTree {
    /// The documents.
    pub cluster: Cluster,
    /// Popularity of the canonical one.
    pub popularity: u64,
    /// The content that the others are compared with.
    pub root: u32,
    /// The content of the canonical document.
    pub best: u32,
}

/// A document as it was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JudgedPage {
    /// Its content.
    pub content: u32,
    /// Its popularity.
    pub popularity: u64,
    /// Where it stands.
    pub standing: LineStanding,
}

/// A [`Standing`] without what files of lines do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineStanding {
    /// See [`Standing::site`], as the others.
    pub site: u64,
    pub edition: u32,
    pub form: u32,
    pub name: u32,
    pub title: u32,
    pub heading: u32,
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
