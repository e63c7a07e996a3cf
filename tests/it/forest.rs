//! The parent forest against a plain model of its rules.

use std::collections::BTreeMap;

use proptest::prelude::*;
use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::neardup::forest::Forest;
use uniqcrawl::neardup::index::layout::LayoutKind;
use uniqcrawl::neardup::{Deduplicator, InputDocument, Preset};
use uniqcrawl::text::features::Fingerprinter;
use uniqcrawl::text::simhash::Fingerprint;

use crate::support::prose;

const K: u32 = 3;

/// Fingerprint, root, last arrival, in the order of insertion.
#[derive(Default)]
struct Model(Vec<(u64, u64, i64)>);

impl Model {
    fn insert(&mut self, print: u64, now: i64) -> u64 {
        let known = self.0.iter().find(|(known, _, _)| *known == print).map(|(_, root, _)| *root);
        let root = known.unwrap_or_else(|| self.choose(print));
        if known.is_none() {
            self.0.push((print, root, now));
        }
        for (node, _, arrival) in &mut self.0 {
            if *node == print || *node == root {
                *arrival = (*arrival).max(now);
            }
        }
        root
    }

    fn choose(&self, print: u64) -> u64 {
        let near = self.0.iter().filter(|(node, _, _)| (node ^ print).count_ones() <= K);
        let roots: Vec<u64> = near.map(|(_, root, _)| *root).collect();
        let children = |root: u64| self.0.iter().filter(|(_, of, _)| *of == root).count();
        let age = |root: u64| self.0.iter().position(|(node, _, _)| *node == root).unwrap();
        let best = roots.into_iter().min_by_key(|root| (usize::MAX - children(*root), age(*root)));
        best.unwrap_or(print)
    }

    fn expire(&mut self, before: i64) {
        let roots = self.0.iter().filter(|(node, root, at)| node == root && *at < before);
        let roots: Vec<u64> = roots.map(|(node, _, _)| *node).collect();
        self.0.retain(|(_, root, _)| !roots.contains(root));
    }

    fn trees(&self) -> BTreeMap<Fingerprint, Vec<Fingerprint>> {
        let mut trees: BTreeMap<Fingerprint, Vec<Fingerprint>> = BTreeMap::new();
        for (node, root, _) in &self.0 {
            trees.entry(Fingerprint(*root)).or_default().push(Fingerprint(*node));
        }
        for nodes in trees.values_mut() {
            nodes.sort_unstable();
        }
        trees
    }
}

fn forest() -> Forest {
    Forest::new(LayoutKind::Rotated, K).unwrap()
}

#[test]
fn a_node_between_two_trees_joins_the_one_with_most_children_then_the_oldest() {
    let mut forest = forest();
    let at = Timestamp;
    let (old, new) = (Fingerprint(0), Fingerprint(0b11_1111));
    forest.insert(old, at(1));
    forest.insert(new, at(2));
    assert_eq!(forest.insert(Fingerprint(0b00_0111), at(3)), old, "as many children: the oldest");
    let mut other = self::forest();
    other.insert(old, at(1));
    other.insert(new, at(2));
    other.insert(Fingerprint(0b111_1111), at(3));
    assert_eq!(other.insert(Fingerprint(0b00_0111), at(4)), new, "the one with more children");
    // A tree may be refreshed through any of its nodes, and ends as a whole.
    assert_eq!(other.touch(Fingerprint(0b00_0111), at(9)), Some(new));
    assert_eq!(other.expire(at(9)), [old]);
    assert_eq!(other.trees().into_keys().collect::<Vec<_>>(), [new]);
    assert_eq!((other.size(new), other.size(old)), (3, 0));
    other.insert(Fingerprint(0b00_0111), at(9));
    assert_eq!(other.size(new), 4, "documents are counted, not fingerprints");
    assert_eq!(other.expire(at(10)), [new]);
    assert_eq!(other.touch(new, at(11)), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn it_is_the_plain_model(
        steps in prop::collection::vec((prop::collection::vec(0u32..12, 0..5), 0u8..12), 1..60),
    ) {
        let (mut forest, mut model) = (forest(), Model::default());
        for (now, (bits, kind)) in (0i64..).zip(steps) {
            let print = bits.iter().fold(0, |print, bit| print ^ 1u64 << (bit * 5));
            if kind == 0 {
                forest.expire(Timestamp(now - 8));
                model.expire(now - 8);
            } else {
                let root = forest.insert(Fingerprint(print), Timestamp(now));
                prop_assert_eq!(root.0, model.insert(print, now));
            }
            prop_assert_eq!(forest.trees(), model.trees());
            prop_assert_eq!(forest.faults(), Vec::<String>::new());
        }
    }
}

#[test]
fn the_preset_seeds_gives_the_trees_of_the_forest() {
    let config = Preset::Seeds.config();
    let fingerprinter = Fingerprinter::new(config.features.clone()).unwrap();
    let mut forest = Forest::new(config.layout, config.k).unwrap();
    let mut dedup = Deduplicator::new(config).unwrap();
    let mut roots = Vec::new();
    for number in 0..120_u64 {
        // Four versions of each text, a word or two apart; every tenth document is one of before.
        let text = match number % 10 {
            9 => prose(number / 40, 300),
            _ => format!("{} {}", prose(number / 4, 300), "added ".repeat(number as usize % 4)),
        };
        let print = fingerprinter.text_keys(&text, "").fingerprint;
        roots.push(forest.insert(print, Timestamp(number.cast_signed())));
        dedup.judge(InputDocument { text: &text, ..InputDocument::default() });
    }
    let cluster = |number: usize| dedup.fate(number as u32).cluster;
    let mut joined = 0;
    for one in 0..roots.len() {
        for other in 0..one {
            assert_eq!(roots[one] == roots[other], cluster(one) == cluster(other), "{one} {other}");
            joined += usize::from(cluster(one) == cluster(other));
        }
    }
    assert!(joined > 20, "{joined}");
    let sizes = dedup.clusters().map(|cluster| u64::from(cluster.copies));
    assert_eq!(sizes.sum::<u64>(), 120);
    assert!(roots.iter().all(|root| forest.size(*root) > 0));
}
