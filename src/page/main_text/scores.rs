//! The element whose paragraphs score best, as Readability finds it.

use super::names::{SAYS_BOILERPLATE, SAYS_MAIN};
use super::segments::Segments;
use super::stats::latin;
use crate::page::tags::Tag;
use crate::page::tree::Tree;

/// Levels above a paragraph that share in its score.
const LEVELS: usize = 5;

/// Least text of a paragraph that scores.
const PARAGRAPH_MIN: u32 = latin(25);

/// Scores of elements, and the best one.
#[derive(Debug, Default)]
pub(super) struct Scores {
    pub of: Vec<f32>,
    /// The element of the highest score.
    pub best: Option<usize>,
    pub highest: f32,
    /// Highest score of an element that neither holds the best one nor is in it.
    pub second: f32,
}

impl Scores {
    /// Source: the scoring of Readability: 1, commas and length of each paragraph, shared with the
    /// elements above it, less the share of links.
    pub(super) fn new(tree: &Tree<'_>, segments: &Segments) -> Self {
        let mut of = vec![0.0f32; tree.items.len()];
        for segment in &segments.all {
            if segment.stats.weight < PARAGRAPH_MIN {
                continue;
            }
            let length = (segment.stats.weight as f32 / latin(100) as f32).min(3.0);
            let links = segment.link_weight as f32 / segment.stats.weight as f32;
            let marks = (segment.stats.commas + segment.stats.stops / 2) as f32;
            let mut score = (1.0 + marks + length) * (1.0 - links);
            if segments.names_around[segment.block] & SAYS_BOILERPLATE != 0 {
                score *= 0.5;
            }
            spread(tree, &mut of, segment.block, score);
        }
        let mut scores = Self { of, ..Self::default() };
        for index in 0..tree.items.len() {
            if scores.of[index] > 0.0 {
                let sum = segments.sum_of(tree, index);
                let links = sum.links as f32 / sum.weight.max(1) as f32;
                let named = if segments.names[index] & SAYS_MAIN != 0 { 1.25 } else { 1.0 };
                scores.of[index] *= named * (1.0 - links);
                if scores.of[index] > scores.highest {
                    scores.highest = scores.of[index];
                    scores.best = Some(index);
                }
            }
        }
        let best = scores.best.unwrap_or_default();
        let apart = |index: usize| !tree.holds(best, index) && !tree.holds(index, best);
        let others = (0..tree.items.len()).filter(|index| apart(*index));
        scores.second = others.map(|index| scores.of[index]).fold(0.0, f32::max);
        scores
    }
}

fn spread(tree: &Tree<'_>, of: &mut [f32], block: usize, score: f32) {
    // A paragraph's score is its container's; text right in a container is its own.
    let is_paragraph = matches!(
        tree.items[block].tag,
        Tag::P | Tag::Pre | Tag::Blockquote | Tag::Li | Tag::H2 | Tag::H3 | Tag::Dd
    );
    let mut above = if is_paragraph { tree.items[block].parent } else { block };
    for level in 0..LEVELS {
        let share = match level {
            0 => 1.0,
            1 => 0.5,
            level => 1.0 / (3.0 * level as f32),
        };
        of[above] += score * share;
        let next = tree.items[above].parent;
        if next == above {
            break;
        }
        above = next;
    }
}
