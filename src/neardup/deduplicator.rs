//! Duplicates among documents that come one after the other, in memory.

use std::collections::{BTreeMap, HashMap};

use super::Key;
use crate::text::features::{ArticleField, ArticleKeys, Fingerprinter, Input};
use crate::text::sketch::Sketch;

use super::classes::Classes;
use super::memory::{DistinctText, JudgedPage, MemoryTrees, TextPlace};
use super::{
    Attachment, Config, Error, Finder, Judgement, LOOKS_MAX, Likeness, Question, SiteRelation,
    article_keys, judge, loose_leaves, site_allows, takes_place, texts_of,
};

/// A document to be judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputDocument<'a> {
    /// Title, or empty.
    pub title: &'a str,
    /// Main text.
    pub text: &'a str,
    /// Language (ISO 639-1), or empty.
    pub language: &'a str,
    /// URL, or empty: pages of one host may share boilerplate.
    pub url: &'a str,
    /// Further fields, of which those matter that the settings of the features declare.
    pub fields: &'a [ArticleField<'a>],
    /// The copy of the highest popularity of a cluster is the one that is kept.
    pub popularity: u64,
}

/// What became of a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The first of its cluster.
    New,
    /// A copy.
    Duplicate {
        /// Number of the first document of the cluster: its place in the order of judging, from 0.
        first: u32,
        /// By which key it was found.
        key: Key,
        /// Bits between its fingerprint and that of the root of the cluster; 0 if another copy
        /// has the very same text.
        distance: u32,
        /// How alike its text is to that of the root, or of the copy with the same text.
        likeness: Likeness,
        /// It is more popular than all copies so far and takes their place.
        canonical: bool,
    },
}

/// Where a document is now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Membership {
    /// Number of its cluster, in the order of their making.
    pub cluster: u32,
    /// By which key it was found; [`Key::First`] for the first document of a cluster.
    pub key: Key,
    /// Bits between its fingerprint and that of the root of the cluster, 0 to 64.
    pub distance: u8,
    /// Similarity to the root of the cluster, 0 to 1.
    pub similarity: f32,
}

/// A cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// Number of its first document.
    pub first: u32,
    /// Number of its most popular document; of several, the first.
    pub canonical: u32,
    /// Its documents.
    pub copies: u32,
}

/// Judges documents one after the other.
///
/// ```
/// use uniqcrawl::neardup::{Config, Deduplicator, InputDocument, Verdict};
///
/// let mut dedup = Deduplicator::new(Config::default())?;
/// let text = "The harbour bridge opens on Monday after two years of work on its towers, \
///             and the ferry that took its place will sail for the last time on Sunday night.";
/// assert_eq!(dedup.judge(InputDocument { text, ..InputDocument::default() }), Verdict::New);
/// let reprint = format!("Updated at nine. {text} Read more.");
/// let verdict = dedup.judge(InputDocument { text: &reprint, ..InputDocument::default() });
/// assert!(matches!(verdict, Verdict::Duplicate { first: 0, .. }));
/// # Ok::<(), uniqcrawl::neardup::Error>(())
/// ```
pub struct Deduplicator {
    config: Config,
    fingerprinter: Fingerprinter,
    finder: Finder,
    /// Number of the first content of each exact hash.
    exact: HashMap<u128, u32>,
    /// The further ones: pages of one site that are no copies of each other have the same text.
    twins: HashMap<u128, Vec<u32>>,
    forest: MemoryTrees,
    /// What finds the tree of a text where fingerprints alone do.
    classes: Option<Classes>,
    /// Contents that hang on their trees by less than certain matches.
    unsure: Vec<u32>,
}

impl Deduplicator {
    /// Makes an empty one.
    pub fn new(config: Config) -> Result<Self, Error> {
        Ok(Self {
            fingerprinter: Fingerprinter::new(config.features.clone())?,
            finder: Finder::new(&config)?,
            exact: HashMap::new(),
            twins: HashMap::new(),
            forest: MemoryTrees::default(),
            classes: Classes::of(&config)?,
            unsure: Vec::new(),
            config,
        })
    }

    /// Returns the fingerprinter, for fingerprinting on several threads.
    #[must_use]
    pub fn fingerprinter(&self) -> &Fingerprinter {
        &self.fingerprinter
    }

    /// Judges a document and remembers it. At most `u32::MAX - 1` documents.
    pub fn judge(&mut self, document: InputDocument<'_>) -> Verdict {
        let InputDocument { title, text, language, url, fields, popularity } = document;
        let input = Input { title, text, language, url, fields };
        let keys = article_keys(&self.fingerprinter, &input);
        self.judge_keys(keys, popularity)
    }

    /// Judges a document that is fingerprinted already.
    pub fn judge_keys(&mut self, keys: ArticleKeys, popularity: u64) -> Verdict {
        let number = self.forest.documents.len() as u32;
        let site = keys.standing.site;
        let page = |content| JudgedPage::of(&keys.standing, content, popularity);
        if let Some((content, evicts)) = self.equal(&keys) {
            let likeness = Likeness { similarity: 1.0, containment: 1.0, size: 1.0 };
            let tree = self.forest.nodes[content as usize].place.tree;
            let mut canonical = self.forest.add(tree, page(content));
            self.evict(&evicts, site);
            if let Some(classes) = &mut self.classes {
                classes.count(&keys.text, number);
            }
            let Cluster { first, canonical: best, .. } = self.cluster_of(content);
            canonical &= best == number;
            return Verdict::Duplicate { first, key: Key::Exact, distance: 0, likeness, canonical };
        }
        let content = self.forest.nodes.len() as u32;
        let Judgement { matched, also, perhaps, refused, .. } = match &mut self.classes {
            Some(classes) => classes.place(&keys.text, number, &self.forest),
            None => self.place(&Question::new(&keys, "")),
        };
        self.doubt(&perhaps);
        if *self.exact.entry(keys.text.hash).or_insert(content) != content {
            self.twins.entry(keys.text.hash).or_default().push(content);
        }
        if self.classes.is_none() {
            self.finder.insert(u64::from(content), &keys);
        }
        let page = page(content);
        if refused || matched.as_ref().is_some_and(|matched| !matched.sure) {
            self.unsure.push(content);
        }
        let Some(matched) = matched else {
            let place = self.forest.plant(number, content);
            self.forest.nodes.push(DistinctText { place, keys: Box::new(keys) });
            self.forest.add(place.tree, page);
            return Verdict::New;
        };
        let place = TextPlace::leaf(number, &matched);
        self.forest.nodes.push(DistinctText { place, keys: Box::new(keys) });
        let Attachment { document, key, distance, likeness, evicts, .. } = matched;
        let mut canonical = self.forest.add(document as u32, page);
        self.evict(&evicts, site);
        self.unite(self.forest.nodes[content as usize].place.tree, &also);
        let cluster = self.cluster_of(content);
        canonical &= cluster.canonical == number;
        Verdict::Duplicate { first: cluster.first, key, distance, likeness, canonical }
    }

    /// Finds a content that has the very text of a document, if both may be one; and contents that
    /// cannot stay beside it.
    fn equal(&self, keys: &ArticleKeys) -> Option<(u32, Vec<u64>)> {
        // No two documents are the same because both are empty.
        let hash = &keys.text.hash;
        let known = self.exact.get(hash).filter(|_| keys.text.words > 0)?;
        let twins = self.twins.get(hash).into_iter().flatten();
        let question = Question::new(keys, "");
        let mut best: Option<(SiteRelation, u32)> = None;
        let mut refused = None;
        for content in std::iter::once(known).chain(twins) {
            let DistinctText { place, keys: same } = &self.forest.nodes[*content as usize];
            let mates = self.forest.pages(place.tree, &question);
            let allowed = site_allows(&question, &mates, &self.config);
            if allowed > best.map(|(allowed, _)| allowed) {
                best = allowed.map(|allowed| (allowed, *content));
            }
            if allowed.is_none() && takes_place(&question, same, &mates) {
                refused.get_or_insert((*content, texts_of(&mates)));
            }
        }
        best.map(|(_, content)| (content, Vec::new())).or(refused)
    }

    /// The cluster of a content, which may have become part of another one since it was placed.
    fn cluster_of(&self, content: u32) -> Cluster {
        let tree = self.forest.nodes[content as usize].place.tree;
        self.forest.trees[tree as usize].cluster
    }

    /// Looks for another place for texts whose pages on a site are in the way of another one.
    fn evict(&mut self, contents: &[u64], site: u64) {
        for content in contents {
            let content = *content as u32;
            let page = self.forest.carrier_on(content, site);
            let (_, also) = self.look_at(content, page, None);
            let tree = self.forest.nodes[content as usize].place.tree;
            self.unite(tree, &also.unwrap_or_default());
        }
    }

    /// Notes trees of which one and that of a new article may be one: a page that is alone may have
    /// come before what it is a copy of.
    fn doubt(&mut self, perhaps: &[u64]) {
        let trees = perhaps.iter().map(|tree| &self.forest.trees[*tree as usize]);
        self.unsure.extend(trees.filter(|tree| tree.cluster.copies == 1).map(|tree| tree.root));
    }

    /// Finds the tree of a text.
    fn place(&self, question: &Question<'_>) -> Judgement {
        let mut candidates = self.finder.candidates(question.keys);
        candidates.retain(|candidate| Some(candidate.content) != question.content);
        match judge(&self.forest, &candidates, question, &self.config) {
            Ok(judgement) => judgement,
            Err(never) => match never {},
        }
    }

    /// Makes the trees of which one text is surely a copy one tree, as far as they have no
    /// different pages of one site. Returns the tree that has it.
    fn unite(&mut self, mut tree: u32, also: &[u64]) -> u32 {
        for other in also {
            let other = *other as u32;
            let (large, small) = self.forest.order(tree, other);
            if self.forest.may_merge(small, large, &self.config) {
                self.forest.merge(small, large);
                tree = large;
            }
        }
        tree
    }

    /// Looks again at every match that was less than certain, now that more documents are known:
    /// what two pages have in common may since have turned out to be boilerplate of their site.
    /// Returns how many texts moved to another cluster or became one of their own.
    ///
    /// The same documents in the same order give the same clusters. To be called after the last
    /// document; it may also be called in between.
    pub fn settle(&mut self) -> usize {
        let mut all = 0;
        // What moves may be a better place for what was looked at before.
        for pass in 0..LOOKS_MAX {
            let moved = self.look_again(pass == 0);
            all += moved;
            if moved == 0 {
                break;
            }
        }
        all
    }

    /// `apart`: trees on which leaves are loose are taken apart. Once is enough: their leaves may
    /// form another one, which again would be.
    fn look_again(&mut self, apart: bool) -> usize {
        let mut moved = 0;
        let unsure = std::mem::take(&mut self.unsure);
        let loose = if apart { self.loose(&unsure) } else { vec![false; unsure.len()] };
        let mut unite = Vec::new();
        for (content, loose) in unsure.into_iter().zip(loose) {
            let tree = self.forest.nodes[content as usize].place.tree;
            let (changed, also) = self.look_at(content, None, loose.then_some(u64::from(tree)));
            moved += usize::from(changed);
            unite.extend(also.map(|also| (content, also)));
        }
        for (content, also) in unite {
            moved += also.len();
            self.unite(self.forest.nodes[content as usize].place.tree, &also);
        }
        moved
    }

    /// Looks for another place for a text. Returns whether it has moved, and further trees that
    /// would surely take it.
    ///
    /// It is judged where `page` stands, which cannot stay with the others; of the first page that
    /// carries it if that is none.
    fn look_at(
        &mut self,
        content: u32,
        page: Option<u32>,
        wary: Option<u64>,
    ) -> (bool, Option<Vec<u64>>) {
        let node = &self.forest.nodes[content as usize];
        let TextPlace { tree, first, .. } = node.place;
        let is_root = self.forest.trees[tree as usize].root == content;
        let mut keys = node.keys.clone();
        keys.standing = self.forest.documents[page.unwrap_or(first) as usize].standing();
        let question =
            Question { content: Some(u64::from(content)), wary, ..Question::new(&keys, "") };
        let Judgement { matched, mut also, refused, .. } = self.place(&question);
        // What is in the way of another text may be in its turn: that goes on at the next look.
        let matched = matched.filter(|matched| matched.evicts.is_empty());
        if refused || matched.as_ref().is_some_and(|matched| !matched.sure) {
            self.unsure.push(content);
        }
        if is_root {
            also.extend(matched.map(|matched| matched.document));
            also.retain(|other| *other != u64::from(tree));
            return (false, Some(also).filter(|also| !also.is_empty()));
        }
        let fits = matched.as_ref().is_none_or(|matched| {
            self.forest.may_move(content, matched.document as u32, &self.config)
        });
        let moves = matched.as_ref().is_none_or(|matched| matched.document != u64::from(tree));
        let moves = moves && (fits || page.is_some());
        if moves {
            self.forest.nodes[content as usize].place = match matched.filter(|_| fits) {
                Some(matched) => TextPlace::leaf(first, &matched),
                None => self.forest.plant(first, content),
            };
            self.forest.recount(tree);
        }
        (moves, Some(also).filter(|also| !also.is_empty()))
    }

    /// Tells for each unsure content whether it hangs on its tree by boilerplate alone.
    fn loose(&self, unsure: &[u32]) -> Vec<bool> {
        let nodes = &self.forest.nodes;
        let mut leaves: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, content) in unsure.iter().enumerate() {
            leaves.entry(nodes[*content as usize].place.tree).or_default().push(at);
        }
        let mut all = vec![false; unsure.len()];
        for (tree, leaves) in leaves {
            let root = &nodes[self.forest.trees[tree as usize].root as usize].keys;
            let site = root.standing.site;
            let sketches: Vec<(&Sketch, bool)> = leaves
                .iter()
                .map(|at| &nodes[unsure[*at] as usize].keys)
                .map(|leaf| (&leaf.text.sketch, site != 0 && leaf.standing.site == site))
                .collect();
            for (at, loose) in leaves.iter().zip(loose_leaves(&root.text.sketch, &sketches)) {
                all[*at] = loose;
            }
        }
        all
    }

    /// Returns the number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.forest.documents.len()
    }

    /// Tells whether nothing was judged yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.forest.documents.is_empty()
    }

    /// Returns where a document is now.
    ///
    /// # Panics
    ///
    /// If no document has this number.
    #[must_use]
    pub fn fate(&self, number: u32) -> Membership {
        let node = &self.forest.nodes[self.forest.documents[number as usize].content as usize];
        let TextPlace { tree: cluster, first, key, distance, similarity } = node.place;
        let key = if first == number { key } else { Key::Exact };
        Membership { cluster, key, distance, similarity }
    }

    /// Returns the clusters; their numbers are their places.
    pub fn clusters(&self) -> impl Iterator<Item = Cluster> {
        self.forest.trees.iter().map(|tree| tree.cluster)
    }

    /// Returns the memory of the index in bytes.
    #[must_use]
    pub fn index_bytes(&self) -> usize {
        self.finder.bytes() + self.classes.as_ref().map_or(0, Classes::bytes)
    }
}
