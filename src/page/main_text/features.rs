//! What is known of each segment, as bytes: the same numbers for training and for use.

use super::facts::{HINTS, PageFacts, pair_key, text_words};
use super::names::MEANINGS;
use super::repeats::{Repeats, Unit, group_key};
use super::scores::Scores;
use super::segments::{KINDS, Segment, Segments};
use super::stats::{Sum, latin};
use crate::page::tags::Tag;
use crate::page::tree::{NodeKind, Tree};

/// Levels of enclosing blocks whose sums are features.
const LEVELS: usize = 4;

/// Names of levels.
const DIGITS: [&str; LEVELS] = ["0", "1", "2", "3"];

/// Longest segment that is compared to the title.
const TITLE_WEIGHT_MAX: u32 = latin(300);

/// Everything that features are made of.
pub(super) struct FeatureContext<'a, 'b> {
    tree: &'a Tree<'b>,
    segments: &'a Segments,
    scores: &'a Scores,
    repeats: &'a Repeats,
    facts: &'a PageFacts,
    whole: PageSums,
}

/// Sums over the page.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PageSums {
    pub sum: Sum,
    pub count: usize,
    pub prose_count: u32,
    pub cjk: u32,
    /// Number of the segment of the first `h1`.
    pub heading: Option<usize>,
    pub articles: u32,
    pub headings: u32,
    pub items: u32,
    pub forms: u32,
    pub best: Sum,
}

/// Takes features in a fixed order.
pub(super) trait Sink {
    /// Takes one, whose name has two parts.
    fn put_as(&mut self, stem: &str, part: &str, value: u8);

    fn put(&mut self, name: &str, value: u8) {
        self.put_as(name, "", value);
    }
}

/// Logarithmic: 8 steps an octave.
pub(super) fn level(value: u32) -> u8 {
    let value = value.saturating_add(1);
    let octave = value.ilog2();
    let rest = if octave >= 3 { (value >> (octave - 3)) & 7 } else { (value << (3 - octave)) & 7 };
    (octave * 8 + rest).min(255) as u8
}

/// A share, 0 to 1, in steps of 1/250.
pub(super) fn share(part: u32, of: u32) -> u8 {
    match part.checked_mul(250) {
        Some(0) => 0,
        // A division of 32 bits takes half of the time.
        Some(part) => (part / of.max(1)).min(255) as u8,
        None => (u64::from(part) * 250 / u64::from(of.max(1))).min(255) as u8,
    }
}

/// A share of a quantity that is no count, 0 to 1, in steps of 1/250.
#[allow(clippy::cast_sign_loss, reason = "it is clamped")]
pub(super) fn ratio(part: f32, of: f32) -> u8 {
    if of > 0.0 { (part / of * 250.0).clamp(0.0, 255.0) as u8 } else { 0 }
}

impl PageSums {
    pub(super) fn new(tree: &Tree<'_>, segments: &Segments, scores: &Scores) -> Self {
        let count = segments.all.len();
        let mut whole = Self { sum: segments.sum(0..count), count, ..Self::default() };
        for segment in &segments.all {
            whole.prose_count += u32::from(segment.sum().prose > 0);
            whole.cjk += segment.stats.cjk;
        }
        for (index, item) in tree.items.iter().enumerate() {
            match item.tag {
                Tag::Article => whole.articles += 1,
                Tag::Li => whole.items += 1,
                Tag::Form => whole.forms += 1,
                Tag::H1 if whole.heading.is_none() => {
                    let range = segments.range(tree, index);
                    whole.heading = (!range.is_empty()).then_some(range.start);
                }
                tag if tag.heading().is_some() => whole.headings += 1,
                _ => {}
            }
        }
        if let Some(best) = scores.best {
            whole.best = segments.sum_of(tree, best);
        }
        whole
    }
}

impl<'a, 'b> FeatureContext<'a, 'b> {
    pub(super) fn new(
        tree: &'a Tree<'b>,
        segments: &'a Segments,
        scores: &'a Scores,
        repeats: &'a Repeats,
        facts: &'a PageFacts,
    ) -> Self {
        let whole = PageSums::new(tree, segments, scores);
        Self { tree, segments, scores, repeats, facts, whole }
    }

    /// Puts the features of a page, which are the same for all its segments.
    pub(super) fn page(&self, sink: &mut impl Sink) {
        let whole = &self.whole;
        sink.put("page_weight", level(whole.sum.weight));
        sink.put("page_links", share(whole.sum.links, whole.sum.weight));
        sink.put("page_segments", level(whole.count as u32));
        sink.put("page_prose", share(whole.sum.prose, whole.sum.weight));
        sink.put("page_prose_count", level(whole.prose_count));
        sink.put("page_cjk", share(whole.cjk * 5, whole.sum.weight));
        sink.put("page_stops", share(whole.sum.stops * 10, whole.sum.words));
        sink.put("page_articles", whole.articles.min(200) as u8);
        sink.put("page_headings", level(whole.headings));
        sink.put("page_items", level(whole.items));
        sink.put("page_forms", whole.forms.min(200) as u8);
        sink.put("page_h1", u8::from(whole.heading.is_some()));
        sink.put("best_share", share(whole.best.weight, whole.sum.weight));
        sink.put("best_prose", share(whole.best.prose, whole.sum.prose));
        sink.put("best_weight", level(whole.best.weight));
        sink.put("best_second", ratio(self.scores.second, self.scores.highest));
        let facts = self.facts;
        for (at, name) in HINTS.iter().enumerate() {
            sink.put(name, (facts.hints >> at & 1) as u8);
        }
        sink.put("has_article_body", u8::from(!facts.article.is_empty()));
        sink.put("has_description", u8::from(!facts.description.is_empty()));
    }

    /// Puts the features of one segment.
    pub(super) fn segment(&self, at: usize, sink: &mut impl Sink) {
        let segment = &self.segments.all[at];
        own(segment, sink);
        self.tags(segment, sink);
        self.place(at, segment, sink);
        self.around(at, segment, sink);
        self.series(at, segment, sink);
        self.neighbours(at, sink);
        self.likeness(segment, sink);
    }

    fn tags(&self, segment: &Segment, sink: &mut impl Sink) {
        let block = segment.block;
        let tree = self.tree;
        sink.put("tag", tree.items[block].tag as u8);
        sink.put("tag_above", tree.items[tree.items[block].parent].tag as u8);
        sink.put("heading", tree.items[block].tag.heading().unwrap_or_default());
        for (bit, name) in KINDS.iter().enumerate() {
            sink.put(name, (segment.kinds >> bit & 1) as u8);
        }
        let mut near = 0;
        let mut above = block;
        for _ in 0..3 {
            near |= self.segments.names[above];
            above = tree.items[above].parent;
        }
        let around = self.segments.names_around[segment.first];
        for (bit, name) in MEANINGS.iter().enumerate() {
            // Nowhere, somewhere above, near.
            let value = (around >> bit & 1) + (near >> bit & 1);
            sink.put_as("name_", name, value as u8);
        }
    }

    fn place(&self, at: usize, segment: &Segment, sink: &mut impl Sink) {
        let whole = &self.whole;
        let before = self.segments.sum(0..at);
        sink.put("place", share(at as u32, whole.count as u32));
        sink.put("place_weight", share(before.weight, whole.sum.weight));
        sink.put("place_prose", share(before.prose, whole.sum.prose));
        sink.put("place_first", level(at as u32));
        sink.put("place_last", level((whole.count - at) as u32));
        let distance = match whole.heading {
            None => 128,
            Some(heading) if at >= heading => 128 + (level((at - heading) as u32) / 2).min(120),
            Some(heading) => 128 - (level((heading - at) as u32) / 2).min(120),
        };
        sink.put("from_h1", distance);
        let depth = segment.depth;
        sink.put("depth", depth);
        let scores = self.scores;
        let tree = self.tree;
        let best = scores.best.unwrap_or_default();
        let in_best = scores.best.is_some() && tree.holds(best, segment.block);
        sink.put("in_best", u8::from(in_best));
        let (mut common, mut up) = (best, 0u8);
        while !tree.holds(common, segment.block) && tree.items[common].parent != common {
            common = tree.items[common].parent;
            up = up.saturating_add(1);
        }
        sink.put("from_best", up);
        let (mut highest, mut above) = (0.0f32, segment.block);
        for _ in 0..4 {
            highest = highest.max(scores.of[above]);
            above = tree.items[above].parent;
        }
        sink.put("score", ratio(highest, scores.highest));
    }

    /// Sums over the enclosing blocks, each with more text than the one in it.
    fn around(&self, at: usize, segment: &Segment, sink: &mut impl Sink) {
        let mut above = segment.block;
        let mut range = self.segments.range(self.tree, above);
        for (number, digit) in DIGITS.into_iter().enumerate() {
            if number > 0 {
                let inner = range.clone();
                while range == inner {
                    let parent = self.tree.items[above].parent;
                    if parent == above {
                        break;
                    }
                    above = parent;
                    range = self.segments.range(self.tree, above);
                }
            }
            let sum = self.segments.sum(range.clone());
            let mut put = |name: &str, value| {
                sink.put_as(name, digit, value);
            };
            put("up_weight", level(sum.weight));
            put("up_share", share(sum.weight, self.whole.sum.weight));
            put("up_links", share(sum.links, sum.weight));
            put("up_marks", share((sum.commas + sum.stops) * 8, sum.words));
            put("up_prose", share(sum.prose, sum.weight));
            put("up_mean", level(sum.weight / range.len().max(1) as u32));
            if number > 0 {
                put("up_tag", self.tree.items[above].tag as u8);
                put("up_count", level(range.len() as u32));
                put("up_place", share((at - range.start.min(at)) as u32, range.len() as u32));
            }
        }
    }

    fn series(&self, at: usize, segment: &Segment, sink: &mut impl Sink) {
        let units = self.repeats.units(self.tree, self.segments, segment.block);
        for (number, Unit { element, series }) in units.into_iter().enumerate() {
            let mut put = |name: &str, value| {
                sink.put_as(name, DIGITS[number], value);
            };
            let own = if series.count == 0 {
                Sum::default()
            } else {
                self.segments.sum_of(self.tree, element)
            };
            put("unit_count", level(series.count));
            put("unit_weight", level(own.weight));
            put("unit_links", share(own.links, own.weight));
            put("unit_prose", share(own.prose, own.weight));
            put("series_share", share(series.sum.weight, self.whole.sum.weight));
            put("series_links", share(series.sum.links, series.sum.weight));
            put("series_prose", share(series.sum.prose, series.sum.weight));
            put("series_mean", level(series.sum.weight / series.count.max(1)));
        }
        let group = self.repeats.group(group_key(self.tree, self.segments, segment.block));
        sink.put("group_count", level(group.count));
        sink.put("group_share", share(group.sum.weight, self.whole.sum.weight));
        sink.put("group_links", share(group.sum.links, group.sum.weight));
        sink.put("group_prose", share(group.sum.prose, group.sum.weight));
        sink.put("group_mean", level(group.sum.weight / group.count.max(1)));
        let seen = self.repeats.seen(at);
        sink.put("seen", seen.min(255) as u8);
    }

    fn neighbours(&self, at: usize, sink: &mut impl Sink) {
        let all = &self.segments.all;
        for (name, distance) in [("p2", -2isize), ("p1", -1), ("n1", 1), ("n2", 2)] {
            let other = at.checked_add_signed(distance).and_then(|at| all.get(at));
            let mut put = |part: &str, value| sink.put_as(name, part, value);
            let stats = other.map(|other| other.stats).unwrap_or_default();
            let links = other.map_or(0, |other| other.link_weight);
            put("_weight", level(stats.weight));
            put("_links", share(links, stats.weight));
            put("_marks", share((stats.commas + stats.stops) * 8, stats.words));
            let alike = other.is_some_and(|other| {
                self.segments.looks[other.block] == self.segments.looks[all[at].block]
            });
            put("_alike", u8::from(alike));
            let tag = other.map_or(0, |other| self.tree.items[other.block].tag as u8);
            put("_tag", tag);
        }
        let is_prose = |segment: &&Segment| segment.sum().prose > 0;
        let before = all[..at].iter().rev().take(40).position(|s| is_prose(&s));
        let after = all[at + 1..].iter().take(40).position(|s| is_prose(&s));
        sink.put("prose_before", before.map_or(41, |n| n as u8));
        sink.put("prose_after", after.map_or(41, |n| n as u8));
        for (name, from, to) in
            [("window_before", at.saturating_sub(6), at), ("window_after", at + 1, at + 7)]
        {
            let sum = self.segments.sum(from.min(all.len())..to.min(all.len()));
            sink.put_as(name, "_weight", level(sum.weight));
            sink.put_as(name, "_links", share(sum.links, sum.weight));
            sink.put_as(name, "_prose", share(sum.prose, sum.weight));
        }
    }

    /// How much a segment is like the title, the description and the structured data.
    fn likeness(&self, segment: &Segment, sink: &mut impl Sink) {
        let facts = self.facts;
        let mut counts = [0u32; 3];
        let mut all = 0;
        let pairs = !facts.article.is_empty();
        let nothing = facts.title.is_empty() && facts.description.is_empty() && !pairs;
        let looks = segment.stats.weight <= TITLE_WEIGHT_MAX || pairs;
        if looks && !nothing {
            let mut last = 0;
            let mut lower = String::new();
            for item in &self.tree.items[segment.first..segment.end] {
                let NodeKind::Text(text) = item.kind else { continue };
                for word in text_words(text) {
                    all += 1;
                    if !pairs && !facts.known.may_have(&word) {
                        continue;
                    }
                    let word = word.hash(&mut lower);
                    counts[0] += u32::from(facts.title.contains(&word));
                    counts[1] += u32::from(facts.description.contains(&word));
                    counts[2] += u32::from(facts.article.contains(&pair_key(last, word)));
                    last = word;
                }
            }
        }
        sink.put("like_title", share(counts[0], all));
        sink.put("title_part", share(counts[0], facts.title.len() as u32));
        sink.put("like_description", share(counts[1], all));
        sink.put("like_article", share(counts[2], all));
    }
}

fn own(segment: &Segment, sink: &mut impl Sink) {
    let stats = &segment.stats;
    sink.put("weight", level(stats.weight));
    sink.put("words", level(stats.words));
    sink.put("links", share(segment.link_weight, stats.weight));
    sink.put("link_count", segment.links.min(255) as u8);
    sink.put("commas", share(stats.commas * 8, stats.words));
    sink.put("stops", share(stats.stops * 8, stats.words));
    sink.put("digits", share(stats.digits * 2, stats.weight));
    sink.put("capitals", share(stats.capitals, stats.words));
    sink.put("marks", share(stats.marks * 4, stats.words));
    sink.put("bars", share(stats.bars * 4, stats.words));
    sink.put("bar_count", stats.bars.min(255) as u8);
    sink.put("word_length", level(stats.weight * 8 / stats.words.max(1)));
    sink.put("after_break", u8::from(segment.after_break));
    sink.put("ends", segment.last_mark);
    sink.put("begins", segment.first_mark);
}
