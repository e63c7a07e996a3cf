//! What is stored, as the judge asks for it.

use std::borrow::Cow;

use super::super::known::{KnownText, KnownTree, Mate, Question, Trees};
use super::super::storage::{JudgedText, PageList, Storage};
use crate::base::clock::Timestamp;

/// Pages of a document on one site that are asked.
pub(super) const MATES_MAX: usize = 8;

/// The trees of a storage.
pub(super) struct KnownTrees<'s, S>(pub &'s S);

impl<S: Storage> Trees for KnownTrees<'_, S> {
    type Error = S::Error;

    fn text(&self, content: u64) -> Result<Option<KnownText<'_>>, S::Error> {
        let JudgedText { tree, keys } = self.0.text(content as u32)?;
        Ok(Some(KnownText { content, document: u64::from(tree), keys }))
    }

    fn tree<'a>(&'a self, text: KnownText<'a>) -> Result<KnownTree<'a>, S::Error> {
        let tree = self.0.tree(text.document as u32)?;
        let keys = |content| Ok::<_, S::Error>(self.0.text(content)?.keys);
        let canonical = if tree.best == tree.root { None } else { Some(keys(tree.best)?) };
        // Most trees are their root.
        let (root, leaf) = if u64::from(tree.root) == text.content {
            (text.keys, None)
        } else {
            (keys(tree.root)?, Some(text.keys))
        };
        Ok(KnownTree {
            document: text.document,
            root_content: u64::from(tree.root),
            root,
            canonical,
            leaf,
            copies: u64::from(tree.cluster.copies),
            first_arrival: Timestamp(i64::from(tree.cluster.first)),
        })
    }

    fn mates(&self, document: u64, question: &Question<'_>) -> Result<Vec<Mate<'_>>, S::Error> {
        mates(self.0, document as u32, question)
    }
}

/// Returns documents of a tree on the site of a question.
pub(super) fn mates<'s, S: Storage>(
    storage: &'s S,
    tree: u32,
    question: &Question<'_>,
) -> Result<Vec<Mate<'s>>, S::Error> {
    let site = question.keys.standing.site;
    if site == 0 {
        return Ok(Vec::new());
    }
    let mut numbers = storage.listed(PageList { tree, site }, MATES_MAX)?;
    if numbers.is_empty() {
        numbers.push(storage.tree(tree)?.cluster.first);
    }
    let mut mates = Vec::new();
    for number in numbers {
        let page = storage.page(number)?;
        let content = u64::from(page.content);
        if page.standing.site == site && question.content != Some(content) {
            let text = match storage.text(page.content)?.keys {
                Cow::Borrowed(keys) => Cow::Borrowed(&keys.text),
                Cow::Owned(keys) => Cow::Owned(keys.text),
            };
            mates.push(Mate { content, standing: page.standing(), text });
        }
    }
    Ok(mates)
}
