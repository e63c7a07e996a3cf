//! Duplicates among documents that come one after the other, wherever is kept what they are.

mod known;
mod second;
mod trees;

use super::classes::Classes;
use super::deduplicator::{Cluster, Membership, Verdict};
use super::storage::{JudgedPage, Storage, TextPlace};
use super::{
    Attachment, Candidate, Config, Error, Judgement, Key, Likeness, Question, SiteRelation,
    is_its_text, judge, site_allows, texts_of,
};
use crate::text::features::ArticleKeys;
use known::{KnownTrees, mates};
use second::Changed;

/// Judges documents one after the other.
pub(crate) struct Clusterer<S> {
    storage: S,
    config: Config,
    /// What finds the tree of a text where fingerprints alone do.
    classes: Option<Classes>,
    /// Contents that hang on their trees by less than certain matches.
    unsure: Vec<u32>,
    /// Trees that have changed during a pass of the second look, and during the one before.
    changed: Changed,
    documents: u32,
    contents: u32,
    trees: u32,
}

impl<S: Storage> Clusterer<S> {
    /// Begins with a storage that is empty.
    pub(crate) fn new(storage: S, config: Config) -> Result<Self, Error> {
        let classes = Classes::of(&config)?;
        let (documents, contents, trees) = (0, 0, 0);
        let (unsure, changed) = (Vec::new(), Changed::default());
        Ok(Self { storage, config, classes, unsure, changed, documents, contents, trees })
    }

    /// Judges a document and remembers it. At most `u32::MAX - 1` documents.
    pub(crate) fn judge(
        &mut self,
        keys: ArticleKeys,
        popularity: u64,
    ) -> Result<Verdict, S::Error> {
        let number = self.documents;
        let site = keys.standing.site;
        let (same, mut evicts) = self.equal(&Question::new(&keys, ""))?;
        if let Some(content) = same {
            let likeness = Likeness::EXACT;
            let tree = self.storage.place(content)?.tree;
            let page = JudgedPage::of(&keys.standing, content, popularity);
            let mut canonical = self.add(tree, page)?;
            self.evict(&evicts, site)?;
            if let Some(classes) = &mut self.classes {
                classes.count(&keys.text, number);
            }
            let Cluster { first, canonical: best, .. } = self.cluster_of(content)?;
            canonical &= best == number;
            return Ok(Verdict::Duplicate {
                first,
                key: Key::Exact,
                distance: 0,
                likeness,
                canonical,
            });
        }
        let content = self.contents;
        let Judgement { matched, also, perhaps, refused, .. } = match &mut self.classes {
            Some(classes) => classes.place(&keys.text, number, self.trees, &self.storage)?,
            None => self.find(&Question::new(&keys, ""), self.storage.candidates(&keys)?)?,
        };
        self.doubt(&perhaps)?;
        let page = JudgedPage::of(&keys.standing, content, popularity);
        if refused || matched.as_ref().is_some_and(|matched| !matched.sure) {
            self.unsure.push(content);
        }
        self.contents += 1;
        let Some(matched) = matched else {
            let place = self.plant(number, content)?;
            self.storage.add_text(content, place, keys)?;
            self.add(place.tree, page)?;
            self.evict(&evicts, site)?;
            return Ok(Verdict::New);
        };
        self.storage.add_text(content, TextPlace::leaf(number, &matched), keys)?;
        let Attachment { document, key, distance, likeness, evicts: others, .. } = matched;
        evicts.extend(others);
        let mut canonical = self.add(document as u32, page)?;
        self.evict(&evicts, site)?;
        let tree = self.storage.place(content)?.tree;
        self.unite(tree, &also)?;
        let cluster = self.cluster_of(content)?;
        canonical &= cluster.canonical == number;
        Ok(Verdict::Duplicate { first: cluster.first, key, distance, likeness, canonical })
    }

    /// Finds a content that has the very text of a document, if both may be one; and contents that
    /// cannot stay where they are: those of other pages of its site, or the very text, if it hangs
    /// on one that such a page has.
    fn equal(&self, question: &Question<'_>) -> Result<(Option<u32>, Vec<u64>), S::Error> {
        let keys = question.keys;
        // No two documents are the same because both are empty.
        if keys.text.words == 0 {
            return Ok((None, Vec::new()));
        }
        let mut best: Option<(SiteRelation, u32)> = None;
        let mut refused = None;
        for content in self.storage.equal_texts(keys.text.hash)? {
            let tree = self.storage.place(content)?.tree;
            let itself = question.content == Some(u64::from(content));
            if itself || question.leaves == Some(u64::from(tree)) {
                continue;
            }
            let mates = mates(&self.storage, tree, question)?;
            let allowed = site_allows(question, &mates, &self.config);
            if allowed > best.map(|(allowed, _)| allowed) {
                best = allowed.map(|allowed| (allowed, content));
            }
            if allowed.is_none() && refused.is_none() {
                let same = self.storage.text(content)?.keys;
                if is_its_text(question, &same, &mates) {
                    let root = self.storage.tree(tree)?.root;
                    let root_site = self.storage.text(root)?.keys.standing.site;
                    let stays = root_site == keys.standing.site
                        || mates.iter().any(|mate| mate.content == u64::from(root));
                    refused = Some(if stays {
                        (None, vec![u64::from(content)])
                    } else {
                        (Some(content), texts_of(&mates))
                    });
                }
            }
        }
        let found = best.map(|(_, content)| (Some(content), Vec::new()));
        Ok(found.or(refused).unwrap_or_default())
    }

    /// The cluster of a content, which may have become part of another one since it was placed.
    fn cluster_of(&self, content: u32) -> Result<Cluster, S::Error> {
        Ok(self.storage.tree(self.storage.place(content)?.tree)?.cluster)
    }

    /// Finds the tree of a text among those that share a key with it.
    fn find(
        &self,
        question: &Question<'_>,
        mut candidates: Vec<Candidate>,
    ) -> Result<Judgement, S::Error> {
        candidates.retain(|candidate| Some(candidate.content) != question.content);
        judge(&KnownTrees(&self.storage), &candidates, question, &self.config)
    }

    /// Returns what it keeps things in.
    pub(crate) fn storage(&self) -> &S {
        &self.storage
    }

    /// Returns the same, to be changed.
    pub(crate) fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Tells whether texts are looked up in the storage by their keys.
    pub(crate) fn looks_up(&self) -> bool {
        self.classes.is_none()
    }

    /// Returns the number of documents.
    pub(crate) fn documents(&self) -> u32 {
        self.documents
    }

    /// Returns where a document is now.
    pub(crate) fn fate(&self, number: u32) -> Result<Membership, S::Error> {
        let place = self.storage.place(self.storage.page(number)?.content)?;
        let TextPlace { tree: cluster, first, key, distance, similarity } = place;
        let key = if first == number { key } else { Key::Exact };
        Ok(Membership { cluster, key, distance, similarity })
    }

    /// Returns the number of clusters, some of which may be empty by now.
    pub(crate) fn clusters(&self) -> u32 {
        self.trees
    }

    /// Returns a cluster.
    pub(crate) fn cluster(&self, number: u32) -> Result<Cluster, S::Error> {
        Ok(self.storage.tree(number)?.cluster)
    }

    /// Returns the documents of all clusters: each is to be in one.
    fn counted(&self) -> Result<u32, S::Error> {
        (0..self.trees).map(|tree| Ok(self.cluster(tree)?.copies)).sum()
    }

    /// Returns the memory of what finds trees by fingerprints alone, in bytes.
    pub(crate) fn class_bytes(&self) -> usize {
        self.classes.as_ref().map_or(0, Classes::bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MemoryStorage, article_keys};
    use super::*;
    use crate::text::features::{Fingerprinter, Input};

    #[test]
    fn a_tree_that_became_part_of_another_one_is_looked_for_there() {
        let (config, fingerprinter) = (Config::default(), Fingerprinter::default());
        let storage = MemoryStorage::new(&config).unwrap();
        let mut all = Clusterer::new(storage, config).unwrap();
        for tree in 0..4 {
            let words: Vec<String> = (0..80).map(|word| format!("word{tree}x{word}")).collect();
            let text = &words.join(" ");
            let keys = article_keys(&fingerprinter, &Input { text, ..Input::default() });
            let Ok(verdict) = all.judge(keys, 0);
            assert_eq!(verdict, Verdict::New);
        }
        // Two texts were found to be copies of the second one, and that of the fourth after it.
        for (tree, also) in [(0, 1), (2, 1), (3, 1)] {
            assert_eq!(all.unite(tree, &[also]), Ok(1));
        }
        let clusters: Vec<Vec<u32>> = (0..all.clusters())
            .filter(|cluster| all.cluster(*cluster).unwrap().copies > 0)
            .map(|cluster| all.members(cluster).unwrap())
            .collect();
        assert_eq!(clusters, [[0, 1, 2, 3]], "each is in one cluster");
        assert_eq!([0, 1, 2, 3].map(|number| all.fate(number).unwrap().cluster), [0; 4]);
    }
}
