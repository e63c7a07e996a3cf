//! The parent forest (双亲森林) exactly as its text describes it, over fingerprints alone.
//!
//! - A tree has a root and leaves and no more levels; its root is the fingerprint of the class.
//! - Every fingerprint is one node. Roots are more than `k` bits apart.
//! - A fingerprint with no node within `k` bits is a new root. One with such nodes becomes a child
//!   of their root. If they have several roots: of the one with most children; then of the oldest;
//!   then of the smaller fingerprint.
//! - Adding a node, or looking its root up, refreshes its time of arrival and that of its root, so
//!   that a root is never older than its leaves and an expired root takes its whole tree with it.
//!
//! The preset `seeds` of [`crate::neardup`] runs on it. The stored clusters of a crawl follow the
//! same rules, and ask for a confirmation besides: see [`crate::corpus::clusters`].
//!
//! Source: the text on near-duplicates of a public-opinion platform. Its trees are no equivalence
//! classes: a fingerprint between two trees joins one of them, the other stays, and the order of
//! arrival matters.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::base::clock::Timestamp;
use crate::neardup::index::layout::{KTooLarge, Layout, LayoutKind, Near, build};
use crate::text::simhash::Fingerprint;

/// A forest of fingerprints.
///
/// ```
/// use uniqcrawl::base::clock::Timestamp;
/// use uniqcrawl::neardup::forest::Forest;
/// use uniqcrawl::neardup::index::layout::LayoutKind;
/// use uniqcrawl::text::simhash::Fingerprint;
///
/// let mut forest = Forest::new(LayoutKind::Rotated, 3)?;
/// let root = forest.insert(Fingerprint(0), Timestamp(1));
/// assert_eq!(forest.insert(Fingerprint(0b111), Timestamp(2)), root);
/// assert_eq!(forest.insert(Fingerprint(0b111_0000), Timestamp(3)), root);
/// assert_ne!(forest.insert(Fingerprint(0b1111_1111 << 32), Timestamp(4)), root);
/// assert_eq!(forest.size(root), 3);
/// # Ok::<(), uniqcrawl::neardup::index::layout::KTooLarge>(())
/// ```
pub struct Forest {
    k: u32,
    index: Box<dyn Layout>,
    nodes: HashMap<Fingerprint, ForestNode>,
    /// Inserted nodes, which orders them by age.
    inserted: u64,
}

#[derive(Debug, Clone, Copy)]
struct ForestNode {
    root: Fingerprint,
    arrival: Timestamp,
    /// Place in the order of insertion.
    number: u64,
    /// Leaves, if it is a root.
    children: u64,
    /// Documents of the tree, if it is a root.
    tree_documents: u64,
}

impl Forest {
    /// Makes an empty forest for distances up to `k` bits, inclusive.
    pub fn new(layout: LayoutKind, k: u32) -> Result<Self, KTooLarge> {
        Ok(Self { k, index: build(layout, k)?, nodes: HashMap::new(), inserted: 0 })
    }

    /// Adds one document with this fingerprint and returns the root of its tree.
    pub fn insert(&mut self, fingerprint: Fingerprint, now: Timestamp) -> Fingerprint {
        if let Some(root) = self.touch(fingerprint, now) {
            self.count(root);
            return root;
        }
        let root = self.nearest_root(fingerprint).unwrap_or(fingerprint);
        self.inserted += 1;
        let node = ForestNode {
            root,
            arrival: now,
            number: self.inserted,
            children: 0,
            tree_documents: 0,
        };
        self.nodes.insert(fingerprint, node);
        self.index.insert(fingerprint, 0);
        if root != fingerprint {
            let root = self.nodes.get_mut(&root).expect("a root is a node");
            root.children += 1;
            root.arrival = root.arrival.max(now);
        }
        self.count(root);
        root
    }

    fn count(&mut self, root: Fingerprint) {
        self.nodes.get_mut(&root).expect("a root is a node").tree_documents += 1;
    }

    /// Chooses the root that takes a new fingerprint; none if no node is near.
    fn nearest_root(&self, fingerprint: Fingerprint) -> Option<Fingerprint> {
        let mut near: Vec<Near> = Vec::new();
        self.index.probe(fingerprint, self.k, &mut near);
        let roots = near.iter().map(|near| self.nodes[&near.fingerprint].root);
        roots.min_by_key(|root| {
            let node = &self.nodes[root];
            // No two are of the same age, so that the fingerprints are never asked.
            (Reverse(node.children), node.number)
        })
    }

    /// Returns the root of a known fingerprint and refreshes both.
    pub fn touch(&mut self, fingerprint: Fingerprint, now: Timestamp) -> Option<Fingerprint> {
        let node = self.nodes.get_mut(&fingerprint)?;
        node.arrival = node.arrival.max(now);
        let root = node.root;
        let root_node = self.nodes.get_mut(&root).expect("a root is a node");
        root_node.arrival = root_node.arrival.max(now);
        Some(root)
    }

    /// Removes every tree whose root was last refreshed before `before`; returns their roots.
    pub fn expire(&mut self, before: Timestamp) -> Vec<Fingerprint> {
        let mut roots: Vec<Fingerprint> = self
            .nodes
            .iter()
            .filter(|(print, node)| node.root == **print && node.arrival < before)
            .map(|(print, _)| *print)
            .collect();
        roots.sort_unstable();
        let (nodes, index) = (&mut self.nodes, &mut self.index);
        nodes.retain(|print, node| {
            let stays = roots.binary_search(&node.root).is_err();
            if !stays {
                index.remove(*print, 0);
            }
            stays
        });
        roots
    }

    /// Returns the documents in the tree of a root; 0 if it is none.
    #[must_use]
    pub fn size(&self, root: Fingerprint) -> u64 {
        self.nodes.get(&root).map_or(0, |node| node.tree_documents)
    }

    /// Returns all trees: the roots with the fingerprints of their trees, in order.
    #[must_use]
    pub fn trees(&self) -> BTreeMap<Fingerprint, Vec<Fingerprint>> {
        let mut trees: BTreeMap<Fingerprint, Vec<Fingerprint>> = BTreeMap::new();
        for (print, node) in &self.nodes {
            trees.entry(node.root).or_default().push(*print);
        }
        for prints in trees.values_mut() {
            prints.sort_unstable();
        }
        trees
    }

    /// Returns the memory of its index in bytes.
    #[must_use]
    pub fn index_bytes(&self) -> usize {
        self.index.bytes()
    }

    /// Returns what is wrong with the forest; nothing, unless this code is.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (print, node) in &self.nodes {
            let Some(root) = self.nodes.get(&node.root) else {
                faults.push(format!("the root of {print} is missing"));
                continue;
            };
            if root.root != node.root {
                faults.push(format!("the root of {print} is a leaf: the tree is too high"));
            }
            if root.arrival < node.arrival {
                faults.push(format!("{print} is younger than its root"));
            }
            let mut near: Vec<Near> = Vec::new();
            self.index.probe(*print, self.k, &mut near);
            let others = || near.iter().map(|near| near.fingerprint).filter(|other| other != print);
            if node.root == *print && others().any(|other| self.nodes[&other].root == other) {
                faults.push(format!("another root is within {} bits of {print}", self.k));
            }
        }
        faults
    }
}
