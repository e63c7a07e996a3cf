//! What the judge has to know: trees, their texts and pages, and the article that is judged.

use std::borrow::Cow;

use crate::base::clock::Timestamp;
use crate::text::features::{ArticleKeys, Standing, TextKeys};

/// The trees that are known: whatever holds them, in memory or in a store.
pub(crate) trait Trees {
    /// What can go wrong when one is looked up.
    type Error;

    /// Returns a content; none if it is gone, though the index still names it.
    fn text(&self, content: u64) -> Result<Option<KnownText<'_>>, Self::Error>;

    /// Returns the tree of a content.
    fn tree<'a>(&'a self, text: KnownText<'a>) -> Result<KnownTree<'a>, Self::Error>;

    /// Returns pages of a document that are on the site of an article, but for those that carry
    /// the content that is judged again; a few of them if it has many.
    fn mates(&self, document: u64, question: &Question<'_>) -> Result<Vec<Mate<'_>>, Self::Error>;
}

/// A text that is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KnownText<'a> {
    /// Its number.
    pub content: u64,
    /// Number of its document.
    pub document: u64,
    /// Its keys, and where it stood first: site and edition.
    pub keys: Cow<'a, ArticleKeys>,
}

/// What the judge must know of a tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KnownTree<'a> {
    /// Number of its document.
    pub document: u64,
    /// Number of the content at its root.
    pub root_content: u64,
    /// The text there.
    pub root: Cow<'a, ArticleKeys>,
    /// The text of its canonical copy, if that is another one.
    pub canonical: Option<Cow<'a, ArticleKeys>>,
    /// The text by which it was found, if that is another one than its root.
    pub leaf: Option<Cow<'a, ArticleKeys>>,
    /// Copies of the document.
    pub copies: u64,
    /// When the first of them came.
    pub first_arrival: Timestamp,
}

/// A page of a document on the site of the article.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mate<'a> {
    /// Number of its content.
    pub content: u64,
    /// Where it stands.
    pub standing: Standing,
    /// Its text.
    pub text: Cow<'a, TextKeys>,
}

/// An article that is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question<'a> {
    /// Its keys, and where it stands.
    pub keys: &'a ArticleKeys,
    /// Its URL, or empty.
    pub address: &'a str,
    /// Its content, if it is judged again.
    pub content: Option<u64>,
    /// A document of which all that it shares with the article is taken for boilerplate.
    pub wary: Option<u64>,
    /// A document that it has to leave, and that does not take it back.
    pub leaves: Option<u64>,
}

impl<'a> Question<'a> {
    /// Asks for an article that is new.
    #[must_use]
    pub fn new(keys: &'a ArticleKeys, address: &'a str) -> Self {
        Self { keys, address, content: None, wary: None, leaves: None }
    }
}
