//! The kept segments as blocks that other pages may have as well.

use std::collections::HashSet;
use std::hash::BuildHasher;

use super::MainText;
use super::render;
use super::segments::{Segment, hash};
use super::stats::latin;
use crate::page::tags::Tag;
use crate::page::tree::Tree;
use crate::page::{Blocks, ParsedPage};

/// A block below this weight may name what follows it: a note, a command.
const LABEL_MAX: u32 = latin(30);

/// What is left of a text.
pub(in crate::page) struct LeftText {
    pub text: String,
    /// The segments that it has.
    pub kept: Vec<bool>,
}

impl MainText {
    /// Returns the blocks of the text and, if some of them are left out, the text without them.
    ///
    /// What would lose more than half of its weight loses nothing: it is a copy, not a page in
    /// a frame.
    pub(in crate::page) fn without(
        &self,
        read: &ParsedPage<'_>,
        repeated: &HashSet<u64, impl BuildHasher>,
    ) -> (Blocks, Option<LeftText>) {
        if self.elsewhere().is_some() {
            return (Blocks::default(), None);
        }
        let tree = read.tree;
        let texts = self.segments.all.iter().zip(&self.kept);
        let texts: Vec<Option<String>> =
            texts.map(|(segment, kept)| kept.then(|| normal(tree, segment))).collect();
        let hashes: Vec<Option<u64>> = texts.iter().map(|text| text.as_deref().map(hash)).collect();
        let mut keys: Vec<u64> = hashes.iter().flatten().copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let mut out: Vec<bool> = hashes
            .iter()
            .zip(&texts)
            .map(|(hash, text)| {
                hash.is_some_and(|hash| repeated.contains(&hash)) && text.as_deref() != read.title
            })
            .collect();
        let mut blocks = Blocks { keys, ..Blocks::default() };
        self.keep_labels(tree, &mut out);
        let left: Vec<bool> = self.kept.iter().zip(&out).map(|(kept, out)| *kept && !out).collect();
        if left == self.kept || self.weight(&left) * 2 < self.weight(&self.kept) {
            return (blocks, None);
        }
        blocks.left_out = out.iter().filter(|out| **out).count() as u32;
        let text = render::render(tree, &self.segments, &left);
        (blocks, Some(LeftText { text, kept: left }))
    }

    /// Keeps what names other text: cells in a row of which another cell stays, headings,
    /// terms and other short blocks before what stays.
    fn keep_labels(&self, tree: &Tree<'_>, out: &mut [bool]) {
        let kept: Vec<usize> = (0..out.len()).filter(|at| self.kept[*at]).collect();
        let row = |at: usize| render::row_of(tree, &self.segments.all[at]);
        for cells in kept.chunk_by(|a, b| row(*a).is_some() && row(*a) == row(*b)) {
            if cells.iter().any(|at| !out[*at]) {
                for at in cells {
                    out[*at] = false;
                }
            }
        }
        for pair in kept.windows(2).rev() {
            let segment = &self.segments.all[pair[0]];
            let tag = tree.items[segment.block].tag;
            let short = segment.stats.weight < LABEL_MAX && row(pair[0]).is_none();
            if (short || tag.heading().is_some() || tag == Tag::Dt) && !out[pair[1]] {
                out[pair[0]] = false;
            }
        }
    }

    fn weight(&self, kept: &[bool]) -> u64 {
        let kept = self.segments.all.iter().zip(kept).filter(|(_, kept)| **kept);
        kept.map(|(segment, _)| u64::from(segment.stats.weight)).sum()
    }
}

/// The text of a segment, white space collapsed.
fn normal(tree: &Tree<'_>, segment: &Segment) -> String {
    let mut texts = segment.texts(tree).map(|(_, text)| text);
    let first = texts.next().unwrap_or_default();
    match texts.next() {
        None => render::collapse(first),
        Some(second) => {
            let all: String = [first, second].into_iter().chain(texts).collect();
            render::collapse(&all)
        }
    }
}
