//! Why each block was kept or dropped.

use serde::Serialize;

use super::model::Columns;
use super::names::MEANINGS;
use super::segments::KINDS;
use super::{MODELS, MainText, Values, feature_names, kind, render, with_context};
use crate::page::tree::Tree;

/// Reasons that are given for a block.
const REASONS_MAX: usize = 4;

/// Least change of the odds' logarithm that is a reason.
const EFFECT_MIN: f32 = 0.2;

/// Why the text of a page is what it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TextReasons {
    /// What was decided on each block, in document order.
    pub blocks: Vec<BlockVerdict>,
    /// What is known of the page, in hexadecimal, one byte a feature: for training.
    pub features: String,
}

/// What was decided on a block of a page, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockVerdict {
    /// It is part of the main text.
    pub kept: bool,
    /// How likely it is part of the main text, 0 to 1.
    pub chance: f32,
    /// What spoke for it (above 0) and against it, as change of the logarithm of the odds when
    /// that is made like in a usual block; the strongest first.
    pub reasons: Vec<(String, f32)>,
    /// Its text.
    pub text: String,
    /// What is known of the block, in hexadecimal, one byte a feature: for training.
    pub features: String,
}

impl MainText {
    /// Returns what was decided, and why.
    pub(in crate::page) fn why(&self, tree: &Tree<'_>) -> TextReasons {
        let row = kind::row(&self.page, &self.segments, &self.kept, self.quality);
        TextReasons { blocks: self.verdicts(tree), features: hexadecimal(row.iter()) }
    }

    fn verdicts(&self, tree: &Tree<'_>) -> Vec<BlockVerdict> {
        let (_, names) = feature_names();
        let reasons: Vec<String> = names.iter().map(|name| reason(name)).collect();
        with_context(tree, &self.segments, &self.facts, |context| {
            let verdict = |at| {
                let mut row = Values::default();
                context.segment(at, &mut row);
                let mut only = vec![false; self.kept.len()];
                only[at] = true;
                BlockVerdict {
                    kept: self.kept[at],
                    chance: self.chances[at],
                    reasons: self.reasons(&row.0, &reasons),
                    text: render::render(tree, &self.segments, &only),
                    features: hexadecimal(self.page.iter().chain(&row.0)),
                }
            };
            (0..self.segments.all.len()).map(verdict).collect()
        })
    }

    /// What changes when one thing after the other is made like in a usual block.
    fn reasons(&self, row: &[u8], reasons: &[String]) -> Vec<(String, f32)> {
        let mut groups: Vec<&str> = reasons.iter().map(String::as_str).collect();
        groups.sort_unstable();
        groups.dedup();
        let mut rows = row.to_vec();
        for group in &groups {
            rows.extend(
                row.iter()
                    .zip(&MODELS.usual)
                    .zip(reasons)
                    .map(|((own, usual), reason)| if reason == group { *usual } else { *own }),
            );
        }
        let odds = MODELS.segments.odds(&self.page, &Columns::of_rows(&rows, row.len()));
        let effects = groups.iter().zip(&odds[1..]).map(|(group, without)| {
            let effect = odds[0] - without;
            ((*group).to_owned(), (effect * 100.0).round() / 100.0)
        });
        let mut effects: Vec<_> =
            effects.filter(|(_, effect)| effect.abs() >= EFFECT_MIN).collect();
        effects.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        effects.truncate(REASONS_MAX);
        effects
    }
}

fn hexadecimal<'a>(bytes: impl Iterator<Item = &'a u8>) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).expect("below 16");
    bytes.flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// What a feature is about, in words.
fn reason(name: &str) -> String {
    if let Some(meaning) = name.strip_prefix("name_").filter(|name| MEANINGS.contains(name)) {
        return format!("names say {meaning}");
    }
    if KINDS.contains(&name) {
        return format!("inside {name}");
    }
    let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let about = if matches!(name, "links" | "link_count") {
        "links"
    } else if matches!(name, "commas" | "stops" | "ends" | "begins" | "marks") {
        "punctuation"
    } else if matches!(name, "weight" | "words" | "word_length" | "after_break") {
        "length"
    } else if matches!(name, "digits" | "capitals" | "bars" | "bar_count") {
        "signs and digits"
    } else if starts(&["tag", "heading"]) {
        "element"
    } else if starts(&["place", "from_h1", "depth"]) {
        "place on the page"
    } else if matches!(name, "in_best" | "from_best" | "score") {
        "score of paragraphs around"
    } else if starts(&["up_"]) {
        "enclosing blocks"
    } else if starts(&["unit_", "series_", "group_", "seen"]) {
        "what repeats"
    } else if starts(&["p1", "p2", "n1", "n2", "prose_", "window_"]) {
        "neighbours"
    } else {
        "likeness to title and description"
    };
    about.to_owned()
}
