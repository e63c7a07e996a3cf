//! Duplicates among documents that come one after the other, in memory.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

use crate::clock::Timestamp;
use crate::documents::Key;
use crate::features::{Field, Input, Signed, Signer};
use crate::simhash::Fingerprint;
use crate::sketch::Sketch;

use super::{
    Config, Error, Finder, Joint, LOOKS_MAX, Likeness, Root, Sites, Trees, judge, loose_leaves,
};

/// A document to be judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Document<'a> {
    /// Title, or empty.
    pub title: &'a str,
    /// Main text.
    pub text: &'a str,
    /// Language (ISO 639-1), or empty.
    pub language: &'a str,
    /// Address, or empty: pages of one host may share boilerplate.
    pub url: &'a str,
    /// Further fields, of which those matter that the settings of the features declare.
    pub fields: &'a [Field<'a>],
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
pub struct Fate {
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
/// use uniqcrawl::dedup::{Config, Deduplicator, Document, Verdict};
///
/// let mut dedup = Deduplicator::new(Config::default())?;
/// let text = "The harbour bridge opens on Monday after two years of work on its towers, \
///             and the ferry that took its place will sail for the last time on Sunday night.";
/// assert_eq!(dedup.judge(Document { text, ..Document::default() }), Verdict::New);
/// let reprint = format!("Updated at nine. {text} Read more.");
/// let verdict = dedup.judge(Document { text: &reprint, ..Document::default() });
/// assert!(matches!(verdict, Verdict::Duplicate { first: 0, .. }));
/// # Ok::<(), uniqcrawl::dedup::Error>(())
/// ```
pub struct Deduplicator {
    config: Config,
    signer: Signer,
    finder: Finder,
    /// Content number of each exact hash.
    exact: HashMap<u128, u32>,
    forest: Forest,
    /// Content, popularity of each document.
    documents: Vec<(u32, u64)>,
    /// Contents that hang on their trees by less than certain joints.
    unsure: Vec<(u32, Box<Signed>)>,
}

/// The trees of all contents.
#[derive(Default)]
struct Forest {
    nodes: Vec<Node>,
    trees: Vec<Tree>,
}

/// A distinct text.
struct Node {
    tree: u32,
    /// The first document that has it.
    first: u32,
    key: Key,
    distance: u8,
    similarity: f32,
}

struct Tree {
    cluster: Cluster,
    popularity: u64,
    fingerprint: Fingerprint,
    sketch: Sketch,
    site: u64,
    shingles: u32,
}

impl Trees for Forest {
    type Error = Infallible;

    fn root_of(&self, content: u32) -> Result<Root<'_>, Infallible> {
        let number = self.nodes[content as usize].tree;
        let tree = &self.trees[number as usize];
        Ok(Root {
            document: u64::from(number),
            fingerprint: tree.fingerprint,
            sketch: Cow::Borrowed(&tree.sketch),
            site: tree.site,
            shingles: tree.shingles,
            copies: u64::from(tree.cluster.copies),
            first_arrival: Timestamp(i64::from(tree.cluster.first)),
        })
    }
}

impl Deduplicator {
    /// Makes an empty one.
    pub fn new(config: Config) -> Result<Self, Error> {
        Ok(Self {
            signer: Signer::new(config.features.clone())?,
            finder: Finder::new(&config)?,
            exact: HashMap::new(),
            forest: Forest::default(),
            documents: Vec::new(),
            unsure: Vec::new(),
            config,
        })
    }

    /// Returns the signer, for signing on several threads.
    #[must_use]
    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// Judges a document and remembers it. At most `u32::MAX - 1` documents.
    pub fn judge(&mut self, document: Document<'_>) -> Verdict {
        let Document { title, text, language, url, fields, popularity } = document;
        let signed = self.signer.sign_input(&Input { title, text, language, url, fields });
        self.judge_signed(signed, popularity)
    }

    /// Judges a document that is signed already.
    pub fn judge_signed(&mut self, signed: Signed, popularity: u64) -> Verdict {
        let number = self.documents.len() as u32;
        let content = self.forest.nodes.len() as u32;
        // No two documents are the same because both are empty.
        let known = self.exact.get(&signed.text.hash).filter(|_| signed.text.words > 0).copied();
        self.documents.push((known.unwrap_or(content), popularity));
        let (tree, key, distance, likeness) = if let Some(content) = known {
            let whole = Likeness { similarity: 1.0, containment: 1.0, size: 1.0 };
            (self.forest.nodes[content as usize].tree, Key::Exact, 0, whole)
        } else {
            let joint = self.place(&signed, None, None);
            self.exact.insert(signed.text.hash, content);
            self.finder.insert(content, &signed);
            let Some(joint) = joint else {
                let root = self.forest.plant(number, &signed, popularity);
                self.forest.nodes.push(root);
                return Verdict::New;
            };
            self.forest.nodes.push(self.forest.leaf(number, &joint));
            if !joint.sure {
                self.unsure.push((content, Box::new(signed)));
            }
            (joint.document as u32, joint.key, joint.distance, joint.likeness)
        };
        let tree = &mut self.forest.trees[tree as usize];
        let canonical = tree.add(number, popularity);
        Verdict::Duplicate { first: tree.cluster.first, key, distance, likeness, canonical }
    }

    /// Finds the tree of a text; `own` is its content number if it is known already, `wary` a tree
    /// on which it seems to hang by boilerplate alone.
    fn place(&self, signed: &Signed, own: Option<u32>, wary: Option<u64>) -> Option<Joint> {
        let mut candidates = self.finder.candidates(signed);
        candidates.retain(|candidate| Some(candidate.content) != own);
        match judge(&self.forest, &candidates, (signed, wary), &self.config) {
            Ok(joint) => joint,
            Err(never) => match never {},
        }
    }

    /// Looks again at every joint that was less than certain, now that more documents are known:
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
        for ((content, signed), loose) in unsure.into_iter().zip(loose) {
            let tree = u64::from(self.forest.nodes[content as usize].tree);
            let joint = self.place(&signed, Some(content), loose.then_some(tree));
            if joint.is_none_or(|joint| joint.document != tree) {
                let first = self.forest.nodes[content as usize].first;
                self.forest.nodes[content as usize] = match joint {
                    Some(joint) => self.forest.leaf(first, &joint),
                    None => self.forest.plant(first, &signed, 0),
                };
                moved += 1;
            }
            if joint.is_some_and(|joint| !joint.sure) {
                self.unsure.push((content, signed));
            }
        }
        if moved > 0 {
            self.recount();
        }
        moved
    }

    /// Tells for each unsure content whether it hangs on its tree by boilerplate alone.
    fn loose(&self, unsure: &[(u32, Box<Signed>)]) -> Vec<bool> {
        let mut leaves: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, (content, _)) in unsure.iter().enumerate() {
            leaves.entry(self.forest.nodes[*content as usize].tree).or_default().push(at);
        }
        let mut all = vec![false; unsure.len()];
        for (tree, leaves) in leaves {
            let root = &self.forest.trees[tree as usize];
            let of_site = |leaf: &Signed| Sites::of(leaf.site, root.site) == Sites::One;
            let sketches: Vec<(&Sketch, bool)> = leaves
                .iter()
                .map(|at| (&unsure[*at].1.text.sketch, of_site(&unsure[*at].1)))
                .collect();
            for (at, loose) in leaves.iter().zip(loose_leaves(&root.sketch, &sketches)) {
                all[*at] = loose;
            }
        }
        all
    }

    /// Counts the copies of every tree anew and elects the canonical ones.
    fn recount(&mut self) {
        for tree in &mut self.forest.trees {
            tree.cluster.copies = 0;
        }
        for (number, (content, popularity)) in self.documents.iter().enumerate() {
            let tree = self.forest.nodes[*content as usize].tree as usize;
            let tree = &mut self.forest.trees[tree];
            if tree.cluster.copies == 0 {
                let first = number as u32;
                tree.cluster = Cluster { first, canonical: first, copies: 1 };
                tree.popularity = *popularity;
            } else {
                tree.add(number as u32, *popularity);
            }
        }
    }

    /// Returns the number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Tells whether nothing was judged yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Returns where a document is now.
    ///
    /// # Panics
    ///
    /// If no document has this number.
    #[must_use]
    pub fn fate(&self, number: u32) -> Fate {
        let node = &self.forest.nodes[self.documents[number as usize].0 as usize];
        let Node { tree: cluster, first, key, distance, similarity } = *node;
        let key = if first == number { key } else { Key::Exact };
        Fate { cluster, key, distance, similarity }
    }

    /// Returns the clusters; their numbers are their places.
    pub fn clusters(&self) -> impl Iterator<Item = Cluster> {
        self.forest.trees.iter().map(|tree| tree.cluster)
    }

    /// Returns the memory of the index in bytes.
    #[must_use]
    pub fn index_bytes(&self) -> usize {
        self.finder.bytes()
    }
}

impl Forest {
    /// Makes a tree of its own for a text, and returns its root.
    fn plant(&mut self, first: u32, signed: &Signed, popularity: u64) -> Node {
        let tree = self.trees.len() as u32;
        self.trees.push(Tree {
            cluster: Cluster { first, canonical: first, copies: 1 },
            popularity,
            fingerprint: signed.text.fingerprint,
            sketch: signed.text.sketch.clone(),
            site: signed.site,
            shingles: signed.text.shingles,
        });
        Node { tree, first, key: Key::First, distance: 0, similarity: 1.0 }
    }

    /// Makes a text a leaf of a tree.
    fn leaf(&self, first: u32, joint: &Joint) -> Node {
        debug_assert!((joint.document as usize) < self.trees.len(), "the tree is there");
        Node {
            tree: joint.document as u32,
            first,
            key: joint.key,
            distance: joint.distance as u8,
            similarity: joint.likeness.similarity,
        }
    }
}

impl Tree {
    /// Counts one more copy. Returns whether it is the canonical one from here on.
    fn add(&mut self, number: u32, popularity: u64) -> bool {
        self.cluster.copies += 1;
        let better = popularity > self.popularity;
        if better {
            (self.cluster.canonical, self.popularity) = (number, popularity);
        }
        better
    }
}
