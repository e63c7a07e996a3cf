//! The main text: the segments of a page that a model takes for parts of it.
//!
//! A page is cut into segments at the borders of its blocks. Each has some 200 features, all of
//! them bytes and none of them a word of any language: its own make, the elements around it, its
//! place, what repeats, what stands next to it, the score of Readability. Boosted trees turn them
//! into the chance that the segment is part of the main text, and the choice of the highest
//! expected F1 is taken.

mod blocks;
mod facts;
mod features;
mod kind;
mod markdown;
mod model;
mod names;
mod render;
mod repeats;
mod scores;
mod segments;
mod stats;
mod why;

use std::sync::LazyLock;

use url::Url;

use super::ParsedPage;
use super::tags::Tag;
use super::tree::{Bound, Tree};
use facts::PageFacts;
use features::{FeatureContext, Sink};
use model::{Columns, Models};
use repeats::Repeats;
use scores::Scores;
use segments::Segments;
use stats::latin;

pub(super) use blocks::LeftText;
pub use kind::PageKind;
pub(super) use render::collapse_lines;
pub use why::{BlockVerdict, TextReasons};

/// A page on which less than this is kept may have its text elsewhere.
const TEXT_MIN: u32 = latin(250);

/// Bytes in the order in which features are put.
#[derive(Debug, Default)]
struct Values(Vec<u8>);

impl Sink for Values {
    fn put_as(&mut self, _: &str, _: &str, value: u8) {
        self.0.push(value);
    }
}

/// Names in the order in which features are put.
#[derive(Debug, Default)]
struct FeatureNames(Vec<String>);

impl Sink for FeatureNames {
    fn put_as(&mut self, stem: &str, part: &str, _: u8) {
        self.0.push([stem, part].concat());
    }
}

/// A page whose segments have been judged.
#[derive(Debug)]
pub(super) struct MainText {
    segments: Segments,
    /// How likely each segment is part of the main text, 0 to 1.
    chances: Vec<f32>,
    /// The segments that are taken.
    kept: Vec<bool>,
    /// The F1 to be expected of the choice, if the chances hold: 0 to 1.
    pub quality: f32,
    /// What the page is.
    pub kind: PageKind,
    /// Features of the page.
    page: Vec<u8>,
    facts: PageFacts,
}

impl MainText {
    /// Judges the segments of a page.
    pub(super) fn new(
        tree: &Tree<'_>,
        url: Option<&Url>,
        ended: &mut impl FnMut(&'static str),
    ) -> Self {
        let facts = PageFacts::new(tree, url);
        let segments = Segments::new(tree);
        ended("segments");
        let mut page = Values::default();
        let chances = with_context(tree, &segments, &facts, |context| {
            context.page(&mut page);
            chances(context, &page.0, segments.all.len(), ended)
        });
        let page = page.0;
        let weights: Vec<f32> =
            segments.all.iter().map(|segment| segment.stats.weight as f32).collect();
        let (mut kept, quality) = choose(&chances, &weights);
        close_gaps(tree, &segments, &chances, &mut kept);
        keep_little(&segments, &chances, &mut kept);
        let kind = MODELS.kind(&kind::row(&page, &segments, &kept, quality));
        ended("choice and kind");
        Self { segments, chances, kept, quality, kind, page, facts }
    }

    /// Returns the main text, one line a block.
    pub(super) fn text(&self, tree: &Tree<'_>) -> String {
        self.elsewhere().unwrap_or_else(|| render::render(tree, &self.segments, &self.kept))
    }

    /// Returns the main text as Markdown; or what is left of it, which has these segments.
    pub(super) fn markdown(&self, read: &ParsedPage<'_>, left: Option<&[bool]>) -> String {
        let kept = left.unwrap_or(&self.kept);
        let here = || markdown::render(read.tree, &self.segments, kept, read.base);
        self.elsewhere().unwrap_or_else(here)
    }

    /// The text of a page that scripts would build: its structured data or its description.
    fn elsewhere(&self) -> Option<String> {
        let kept = self.segments.all.iter().zip(&self.kept).filter(|(_, kept)| **kept);
        let weight: u32 = kept.map(|(segment, _)| segment.stats.weight).sum();
        if weight >= TEXT_MIN {
            return None;
        }
        self.facts.text_elsewhere(weight)
    }
}

/// Segments whose features are in memory at a time.
const ROWS_AT_A_TIME: usize = 4_096;

/// Makes the features of a page ready.
fn with_context<T>(
    tree: &Tree<'_>,
    segments: &Segments,
    facts: &PageFacts,
    then: impl FnOnce(&FeatureContext<'_, '_>) -> T,
) -> T {
    let scores = Scores::new(tree, segments);
    let repeats = Repeats::new(tree, segments);
    then(&FeatureContext::new(tree, segments, &scores, &repeats, facts))
}

/// How likely each segment is part of the main text.
fn chances(
    context: &FeatureContext<'_, '_>,
    page: &[u8],
    count: usize,
    ended: &mut impl FnMut(&'static str),
) -> Vec<f32> {
    let mut chances = Vec::with_capacity(count);
    for from in (0..count).step_by(ROWS_AT_A_TIME) {
        let some = from..count.min(from + ROWS_AT_A_TIME);
        let mut rows = Columns::new(MODELS.usual.len(), some.len());
        for (row, at) in some.enumerate() {
            rows.begin(row);
            context.segment(at, &mut rows);
        }
        ended("features");
        chances.extend(MODELS.segments.chances(page, &rows));
        ended("model");
    }
    chances
}

/// The names of the features of a page, and of those of a segment.
fn feature_names() -> (Vec<String>, Vec<String>) {
    let html = super::tree::parse("<p>text", Bound::NONE).html;
    let tree = Tree::new(&html, usize::MAX);
    let segments = Segments::new(&tree);
    let scores = Scores::new(&tree, &segments);
    let repeats = Repeats::new(&tree, &segments);
    let facts = PageFacts::default();
    let context = FeatureContext::new(&tree, &segments, &scores, &repeats, &facts);
    let (mut page, mut row) = (FeatureNames::default(), FeatureNames::default());
    context.page(&mut page);
    context.segment(0, &mut row);
    (page.0, row.0)
}

/// The names of all features, those of the page first.
pub(super) fn all_feature_names() -> Vec<String> {
    let (page, row) = feature_names();
    page.into_iter().chain(row).collect()
}

static MODELS: LazyLock<Models> = LazyLock::new(|| {
    let (page, row) = feature_names();
    Models::read(include_str!("model.txt"), &page, &row).expect("the model in the program is whole")
});

/// Takes the segments whose expected F1 is highest: those of the highest chances, as long as each
/// adds more to what is found than to what is wrong.
///
/// If a segment is right with its chance, a choice of weight `s` that is right on `e` of it has
/// an F1 of `2e / (s + t)`, where `t` is the right weight to be expected of the page.
fn choose(chances: &[f32], weights: &[f32]) -> (Vec<bool>, f32) {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*b].total_cmp(&chances[*a]));
    let total: f32 = chances.iter().zip(weights).map(|(chance, weight)| chance * weight).sum();
    let (mut right, mut taken, mut best, mut count) = (0.0, 0.0, 0.0, 0);
    for (number, at) in order.iter().enumerate() {
        right += chances[*at] * weights[*at];
        taken += weights[*at];
        let f1 = 2.0 * right / (taken + total);
        if f1 > best {
            (best, count) = (f1, number + 1);
        }
    }
    let mut kept = vec![false; chances.len()];
    for at in &order[..count] {
        kept[*at] = true;
    }
    (kept, best)
}

/// Segments between two kept ones that are looked at together.
const GAP_MAX: usize = 40;

/// Least mean chance of several segments that fill a gap.
const GAP_CHANCE_MIN: f32 = 0.15;

/// Keeps headings, code and cells that stand between two kept segments: short as they are, the
/// choice weighs them little, and a text without them is broken.
fn close_gaps(tree: &Tree<'_>, segments: &Segments, chances: &[f32], kept: &mut [bool]) {
    let belongs = |at: usize| {
        let segment = &segments.all[at];
        let tag = tree.items[segment.block].tag;
        let is_part = tag.heading().is_some() || matches!(tag, Tag::Pre | Tag::Td | Tag::Th);
        is_part && segment.link_weight * 2 < segment.stats.weight.max(1)
    };
    let taken: Vec<usize> = (0..kept.len()).filter(|at| kept[*at]).collect();
    for pair in taken.windows(2) {
        let gap = pair[0] + 1..pair[1];
        let mean = chances[gap.clone()].iter().sum::<f32>() / gap.len().max(1) as f32;
        let is_likely = gap.len() == 1 || mean >= GAP_CHANCE_MIN && gap.len() <= GAP_MAX;
        if is_likely && gap.clone().all(belongs) {
            kept[gap].fill(true);
        }
    }
}

/// A choice of less than this takes in more.
const CHOICE_MIN: u32 = latin(150);

/// Least chance of what is added to a choice of little text.
const LITTLE_CHANCE_MIN: f32 = 0.1;

/// Of little text, statistics tell little. If a page has no more, all is kept but what calls itself
/// something else, or is links. If it has, the choice takes in what is not unlikely: without that,
/// a label more or less would make two texts of two copies of a page.
fn keep_little(segments: &Segments, chances: &[f32], kept: &mut [bool]) {
    let weigh = |kept: &[bool]| -> u32 {
        let all = segments.all.iter().zip(kept).filter(|(_, kept)| **kept);
        all.map(|(segment, _)| segment.stats.weight).sum()
    };
    if weigh(&vec![true; kept.len()]) < TEXT_MIN {
        let is_plain = |segment| segments.is_plain(segment);
        let plain: Vec<bool> = segments.all.iter().map(is_plain).collect();
        if plain.contains(&true) {
            kept.copy_from_slice(&plain);
        }
    } else if weigh(kept) < CHOICE_MIN {
        for (kept, chance) in kept.iter_mut().zip(chances) {
            *kept |= *chance >= LITTLE_CHANCE_MIN;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn f1(chances: &[f32], weights: &[f32], kept: &[bool]) -> f32 {
        let total: f32 = chances.iter().zip(weights).map(|(chance, weight)| chance * weight).sum();
        let (mut right, mut taken) = (0.0, 0.0);
        for ((chance, weight), kept) in chances.iter().zip(weights).zip(kept) {
            if *kept {
                right += chance * weight;
                taken += weight;
            }
        }
        2.0 * right / (taken + total)
    }

    #[test]
    fn what_belongs_between_two_kept_blocks_is_kept() {
        let kept = |page: &str, chances: &[f32]| {
            let html = crate::page::tree::parse(page, Bound::NONE).html;
            let tree = Tree::new(&html, usize::MAX);
            let segments = Segments::new(&tree);
            assert_eq!(segments.all.len(), chances.len(), "{page}");
            let mut kept: Vec<bool> = chances.iter().map(|chance| *chance > 0.5).collect();
            close_gaps(&tree, &segments, chances, &mut kept);
            kept
        };
        let heading = "<p>text<h2>Heading</h2><p>text";
        assert_eq!(kept(heading, &[0.9, 0.0, 0.9]), [true; 3]);
        let linked = "<p>text<h2><a href=x>Heading</a></h2><p>text";
        assert_eq!(kept(linked, &[0.9, 0.0, 0.9]), [true, false, true]);
        let other = "<p>text<p>other<p>text";
        assert_eq!(kept(other, &[0.9, 0.4, 0.9]), [true, false, true]);
        let cells = "<p>text<table><tr><td>a<td>b</table><p>text";
        assert_eq!(kept(cells, &[0.9, 0.2, 0.1, 0.9]), [true; 4]);
        assert_eq!(kept(cells, &[0.9, 0.1, 0.1, 0.9]), [true, false, false, true]);
    }

    #[test]
    fn a_choice_of_little_text_takes_in_what_is_not_unlikely() {
        let long = "A sentence of a footer, which goes on for a while. ".repeat(12);
        let long = long.trim_end();
        let kept = |texts: &[&str], chances: &[f32], chosen: usize| {
            let page = format!("<p>{}", texts.join("<p>"));
            let html = crate::page::tree::parse(&page, Bound::NONE).html;
            let segments = Segments::new(&Tree::new(&html, usize::MAX));
            let mut kept: Vec<bool> = (0..texts.len()).map(|at| at == chosen).collect();
            keep_little(&segments, chances, &mut kept);
            kept
        };
        // A page of much text of which one word is chosen.
        let texts = ["upsert", "Used by: insert", "Menu", long];
        assert_eq!(kept(&texts, &[0.5, 0.1, 0.09, 0.01], 0), [true, true, false, false]);
        // A page of which enough is chosen.
        assert_eq!(kept(&texts, &[0.2, 0.2, 0.2, 0.5], 3), [false, false, false, true]);
        // A page of little text has nothing else to offer.
        assert_eq!(kept(&texts[..3], &[0.5, 0.01, 0.01], 0), [true, true, true]);
    }

    proptest! {
        /// Of all choices there are, none has a higher expected F1.
        #[test]
        fn the_best_choice_is_taken(
            segments in prop::collection::vec((0.001..1.0f32, 1.0..500.0f32), 1..10),
        ) {
            let (chances, weights): (Vec<f32>, Vec<f32>) = segments.into_iter().unzip();
            let (kept, quality) = choose(&chances, &weights);
            prop_assert!((f1(&chances, &weights, &kept) - quality).abs() < 1e-4);
            for choice in 1u32..1 << chances.len() {
                let other: Vec<bool> = (0..chances.len()).map(|at| choice >> at & 1 == 1).collect();
                prop_assert!(f1(&chances, &weights, &other) <= quality + 1e-4, "{:?}", other);
            }
        }

        /// Sums over a block are those of its segments, however the markup is broken.
        #[test]
        fn sums_over_blocks_are_those_of_their_segments(
            parts in prop::collection::vec(prop::sample::select(vec![
                "<div>", "</div>", "<p>", "<b>", "</b>", "<a href=x>", "</a>", "<br>", "<td>",
                "<table>", "</table>", "<li>", "<ul>", "</ul>", "words here, ", "汉字。",
                "<script>x</script>", "<pre>", "</pre>", "<noscript>", "</noscript>",
            ]), 0..60),
        ) {
            let html = crate::page::tree::parse(&parts.concat(), Bound::NONE).html;
            let tree = Tree::new(&html, usize::MAX);
            let segments = Segments::new(&tree);
            for (index, item) in tree.items.iter().enumerate() {
                if !item.tag.is_block() || item.tag.is_not_text() {
                    continue;
                }
                let inside = segments.all.iter().filter(|segment| tree.holds(index, segment.first));
                let weight: u32 = inside.map(|segment| segment.stats.weight).sum();
                prop_assert_eq!(segments.sum_of(&tree, index).weight, weight, "{:?}", item.tag);
            }
        }
    }
}
