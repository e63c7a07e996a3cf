//! What repeats on a page: siblings of one look (posts, teasers, rows) and blocks of one look.

use std::collections::HashMap;

use super::segments::{Segments, hash};
use super::stats::Sum;
use crate::page::tags::Tag;
use crate::page::tree::{NodeKind, Tree};

/// Siblings of one look from which on they are taken for a series.
const SERIES_MIN: u32 = 3;

/// Levels above a block that are looked at for series.
const LEVELS: usize = 12;

/// Siblings of one look under one parent, or blocks of one look on the page.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Series {
    pub count: u32,
    pub sum: Sum,
}

/// Where a block stands in a series.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unit {
    pub element: usize,
    pub series: Series,
}

/// All that repeats.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    siblings: HashMap<u64, Series, Plain>,
    groups: HashMap<u64, Series, Plain>,
    seen: HashMap<u64, u32, Plain>,
    /// The text of each segment, as a key of `seen`.
    texts: Vec<u64>,
}

/// For keys that are hashes already.
pub(super) type Plain = std::hash::BuildHasherDefault<Mixer>;

/// Keys are hashes already; their bits are spread once more.
#[derive(Default)]
pub(super) struct Mixer(u64);

impl std::hash::Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, key: u64) {
        self.0 = mix(key, 0);
    }
}

fn mix(a: u64, b: u64) -> u64 {
    let x = (a ^ b.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^ (x >> 29)
}

impl Repeats {
    pub(super) fn new(tree: &Tree<'_>, segments: &Segments) -> Self {
        let mut repeats = Self::default();
        for (index, item) in tree.items.iter().enumerate() {
            if !matches!(item.kind, NodeKind::Element(_)) || !item.tag.is_block() {
                continue;
            }
            let range = segments.range(tree, index);
            if !range.is_empty() {
                let key = mix(segments.looks[index], item.parent as u64);
                repeats.siblings.entry(key).or_default().add(segments.sum(range));
            }
        }
        for segment in &segments.all {
            let key = group_key(tree, segments, segment.block);
            repeats.groups.entry(key).or_default().add(segment.sum());
            let text = text_key(tree, segment.first, segment.end);
            *repeats.seen.entry(text).or_default() += 1;
            repeats.texts.push(text);
        }
        repeats
    }

    /// Returns the nearest two series that a block is in, from the inside.
    pub(super) fn units(&self, tree: &Tree<'_>, segments: &Segments, block: usize) -> [Unit; 2] {
        let mut units = [Unit::default(); 2];
        let (mut found, mut at) = (0, block);
        for _ in 0..LEVELS {
            let parent = tree.items[at].parent;
            if parent == at || found == 2 {
                break;
            }
            let key = mix(segments.looks[at], parent as u64);
            if let Some(series) = self.siblings.get(&key)
                && series.count >= SERIES_MIN
                && !matches!(tree.items[at].tag, Tag::P | Tag::Td | Tag::Tr)
            {
                units[found] = Unit { element: at, series: *series };
                found += 1;
            }
            at = parent;
        }
        units
    }

    /// Returns what the blocks of the look of one are together.
    pub(super) fn group(&self, key: u64) -> Series {
        self.groups.get(&key).copied().unwrap_or_default()
    }

    /// Returns how often the text of a segment stands on the page.
    pub(super) fn seen(&self, segment: usize) -> u32 {
        self.seen.get(&self.texts[segment]).copied().unwrap_or_default()
    }
}

impl Series {
    fn add(&mut self, sum: Sum) {
        self.count += 1;
        self.sum = self.sum.plus(sum);
    }
}

/// Names the look of a block and of the two elements around it.
pub(super) fn group_key(tree: &Tree<'_>, segments: &Segments, block: usize) -> u64 {
    let parent = tree.items[block].parent;
    let above = tree.items[parent].parent;
    mix(mix(segments.looks[block], segments.looks[parent]), segments.looks[above])
}

fn text_key(tree: &Tree<'_>, first: usize, end: usize) -> u64 {
    tree.items[first..end].iter().fold(0, |key, item| match item.kind {
        NodeKind::Text(text) => mix(hash(text.trim()), key),
        NodeKind::Element(_) => key,
    })
}
