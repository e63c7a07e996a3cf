//! Boosted trees over bytes: how likely a segment is part of the main text, and what a page is.
//!
//! All nodes of one level of a tree ask the same question, so that the leaf of a row is a number
//! of a few bits, and a tree is answered for all rows of a page at once.

use std::collections::HashMap;

use super::features::Sink;
use super::kind::{CHOICE, PageKind};

/// Questions a tree asks at most.
const DEPTH_MAX: usize = 8;

/// One of a leaf's values is a thousandth of the logarithm of the odds.
const SCALE: f32 = 1000.0;

/// First line of a file of models.
const HEADER: &str = "uniqcrawl trees 1";

/// Is a feature greater than a bound?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TreeSplit {
    feature: u16,
    bound: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OneTree {
    questions: Vec<TreeSplit>,
    leaves: Vec<i16>,
}

/// Trees whose values add up.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Model {
    bias: f32,
    trees: Vec<OneTree>,
}

/// All that is learned.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Models {
    /// Is a segment part of the main text?
    pub segments: Model,
    /// The value that half of all training segments do not exceed, of each feature of a segment.
    pub usual: Vec<u8>,
    /// Is a page of a kind? In the order of the kinds.
    kinds: Vec<Model>,
}

/// Why a file of models cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the model: {what}")]
pub(super) struct BadModel {
    line: usize,
    what: String,
}

type Numbers<'a> = HashMap<&'a str, u16>;

fn numbered<'a>(names: impl Iterator<Item = &'a str>) -> Numbers<'a> {
    names.enumerate().map(|(at, name)| (name, at as u16)).collect()
}

impl Models {
    /// Reads models: a header; `model NAME BIAS` begins a model; `usual NAME=VALUE ...`; and a
    /// line a tree, `NAME>BOUND ... : LEAF ...`. The names are those of the features.
    pub(super) fn read(text: &str, page: &[String], row: &[String]) -> Result<Self, BadModel> {
        let own = page.iter().chain(row).map(String::as_str);
        let of_segments = numbered(own);
        let of_pages = numbered(page.iter().map(String::as_str).chain(CHOICE));
        let mut models = Self { usual: vec![0; row.len()], ..Self::default() };
        models.kinds.resize(PageKind::ALL.len(), Model::default());
        let mut present: Option<Option<usize>> = None;
        for (line, text) in text.lines().enumerate() {
            let bad = |what: &str| BadModel { line: line + 1, what: what.to_owned() };
            if line == 0 {
                if text != HEADER {
                    return Err(bad("it does not begin with the header"));
                }
            } else if let Some(rest) = text.strip_prefix("usual ") {
                models.read_usual(rest, &of_segments, page.len()).map_err(|what| bad(&what))?;
            } else if let Some(rest) = text.strip_prefix("model ") {
                let (name, bias) = rest.split_once(' ').ok_or(bad("there is no bias"))?;
                let kind = PageKind::ALL.iter().position(|kind| kind.as_str() == name);
                if kind.is_none() && name != "segments" {
                    return Err(bad("the model has an unknown name"));
                }
                present = Some(kind);
                let bias = bias.parse().map_err(|_| bad("the bias is no number"))?;
                models.of(kind).bias = bias;
            } else {
                let kind = present.ok_or(bad("the tree belongs to no model"))?;
                let numbers = if kind.is_some() { &of_pages } else { &of_segments };
                let tree = OneTree::read(text, numbers).map_err(|what| bad(&what))?;
                models.of(kind).trees.push(tree);
            }
        }
        Ok(models)
    }

    fn of(&mut self, kind: Option<usize>) -> &mut Model {
        match kind {
            Some(kind) => &mut self.kinds[kind],
            None => &mut self.segments,
        }
    }

    fn read_usual(&mut self, text: &str, numbers: &Numbers<'_>, page: usize) -> Result<(), String> {
        for entry in text.split_whitespace() {
            let (name, value) = entry.split_once('=').ok_or(format!("{entry} has no `=`"))?;
            let at = *numbers.get(name).ok_or(format!("no feature is named {name}"))?;
            let at = usize::from(at).checked_sub(page).ok_or(format!("{name} is of the page"))?;
            self.usual[at] = value.parse().map_err(|_| format!("{value} is no value"))?;
        }
        Ok(())
    }

    /// Returns the kind that a page is most likely of.
    pub(super) fn kind(&self, row: &[u8]) -> PageKind {
        let odds = self.kinds.iter().map(|model| model.odds_of_one(row));
        let best = odds.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(at, _)| PageKind::ALL[at]).unwrap_or_default()
    }
}

impl Model {
    /// Returns the chance of each row, 0 to 1. `page` has the features that all rows share, which
    /// come first.
    pub(super) fn chances(&self, page: &[u8], rows: &Columns) -> Vec<f32> {
        let odds = self.odds(page, rows).into_iter();
        odds.map(|odds| 1.0 / (1.0 + (-odds).exp())).collect()
    }

    /// Returns the logarithm of the odds of each row.
    pub(super) fn odds(&self, page: &[u8], rows: &Columns) -> Vec<f32> {
        let mut sums = vec![0i32; rows.stride];
        for tree in &self.trees {
            let questions = TreeQuestions::new(tree, page, rows);
            for (number, sums) in sums.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                let leaves = questions.leaves(&rows.bytes[number * LANES..]);
                for (sum, leaf) in sums.iter_mut().zip(leaves) {
                    *sum += i32::from(tree.leaves[usize::from(leaf)]);
                }
            }
        }
        sums.truncate(rows.count);
        sums.into_iter().map(|sum| self.odds_of(sum)).collect()
    }

    /// Returns those of a single row, all of whose features are in it.
    fn odds_of_one(&self, row: &[u8]) -> f32 {
        let leaf = |tree: &OneTree| {
            let questions = tree.questions.iter().enumerate();
            let answers = questions.map(|(level, question)| {
                usize::from(row[usize::from(question.feature)] > question.bound) << level
            });
            i32::from(tree.leaves[answers.fold(0, |leaf, answer| leaf | answer)])
        };
        self.odds_of(self.trees.iter().map(leaf).sum())
    }

    fn odds_of(&self, sum: i32) -> f32 {
        sum as f32 / SCALE + self.bias
    }
}

impl OneTree {
    fn read(line: &str, numbers: &Numbers<'_>) -> Result<Self, String> {
        let (questions, leaves) = line.split_once(": ").ok_or("there is no colon")?;
        let questions: Vec<TreeSplit> = questions
            .split_whitespace()
            .map(|question| {
                let (name, bound) = question.split_once('>').ok_or("a question has no `>`")?;
                let feature = *numbers.get(name).ok_or(format!("no feature is named {name}"))?;
                let bound = bound.parse().map_err(|_| format!("{bound} is no bound"))?;
                Ok(TreeSplit { feature, bound })
            })
            .collect::<Result<_, String>>()?;
        let leaves: Vec<i16> = leaves
            .split_whitespace()
            .map(|leaf| leaf.parse().map_err(|_| format!("{leaf} is no leaf")))
            .collect::<Result<_, String>>()?;
        if questions.len() > DEPTH_MAX || leaves.len() != 1 << questions.len() {
            return Err(format!("{} questions, {} leaves", questions.len(), leaves.len()));
        }
        Ok(Self { questions, leaves })
    }
}

/// Rows that are answered at a time.
const LANES: usize = 32;

/// The questions of a tree about the rows of one page.
struct TreeQuestions {
    /// The answers to those about the page, which are the same for all rows.
    same: u8,
    /// Where the column begins, the bound, and the bit of the answer.
    of_rows: [(usize, u8, u8); DEPTH_MAX],
    count: usize,
}

impl TreeQuestions {
    fn new(tree: &OneTree, page: &[u8], rows: &Columns) -> Self {
        let mut all = Self { same: 0, of_rows: [(0, 0, 0); DEPTH_MAX], count: 0 };
        for (level, question) in tree.questions.iter().enumerate() {
            let (feature, bit) = (usize::from(question.feature), 1 << level);
            match page.get(feature) {
                Some(value) if *value > question.bound => all.same |= bit,
                Some(_) => {}
                None => {
                    let column = (feature - page.len()) * rows.stride;
                    all.of_rows[all.count] = (column, question.bound, bit);
                    all.count += 1;
                }
            }
        }
        all
    }

    /// Returns the leaf of each of some rows, with which `bytes` begin. Masks instead of branches,
    /// so that the compiler makes vector code of it.
    #[inline]
    fn leaves(&self, bytes: &[u8]) -> [u8; LANES] {
        let mut leaves = [self.same; LANES];
        for &(column, bound, bit) in &self.of_rows[..self.count] {
            let values: &[u8; LANES] = bytes[column..].first_chunk().expect("columns are padded");
            let mut next = [0; LANES];
            for at in 0..LANES {
                next[at] = leaves[at] | u8::from(values[at] > bound).wrapping_neg() & bit;
            }
            leaves = next;
        }
        leaves
    }
}

/// Features of rows, one column after the other.
#[derive(Debug)]
pub(super) struct Columns {
    bytes: Vec<u8>,
    count: usize,
    /// Bytes of a column: no fewer than rows, and a whole number of [`LANES`].
    stride: usize,
    /// Where the next feature of the present row goes.
    next: usize,
}

impl Columns {
    /// Makes room for so many rows of `width` features.
    pub(super) fn new(width: usize, count: usize) -> Self {
        let stride = count.next_multiple_of(LANES);
        Self { bytes: vec![0; width * stride], count, stride, next: 0 }
    }

    /// Turns rows into columns that lie one after the other, `width` features each.
    pub(super) fn of_rows(rows: &[u8], width: usize) -> Self {
        let mut columns = Self::new(width, rows.len().checked_div(width).unwrap_or_default());
        for (number, row) in rows.chunks_exact(width.max(1)).enumerate() {
            columns.begin(number);
            for value in row {
                columns.put("", *value);
            }
        }
        columns
    }

    /// Begins the row of this number: its features follow.
    pub(super) fn begin(&mut self, row: usize) {
        self.next = row;
    }
}

impl Sink for Columns {
    fn put_as(&mut self, _: &str, _: &str, value: u8) {
        self.bytes[self.next] = value;
        self.next += self.stride;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn read(text: &str) -> Result<Models, BadModel> {
        Models::read(text, &names(&["long"]), &names(&["links", "words"]))
    }

    #[test]
    fn rows_are_led_to_their_leaves() {
        let text = "uniqcrawl trees 1\nmodel segments 0.5\nlinks>10 long>3 : 500 1000 1500 4000\n\
                    words>0 : -1000 1000\nusual words=7\n";
        let models = read(text).unwrap();
        let rows = |rows: &[u8]| Columns::of_rows(rows, 2);
        let odds = |page: u8, of: &[u8]| models.segments.odds(&[page], &rows(of));
        assert_eq!(odds(3, &[10, 0, 11, 0, 11, 1]), [0.0, 0.5, 2.5]);
        assert_eq!(odds(4, &[10, 0, 11, 1]), [1.0, 5.5]);
        assert_eq!(models.usual, [0, 7]);
        let chances = models.segments.chances(&[4], &rows(&[11, 1]));
        let whole = models.segments.odds_of_one(&[4, 11, 1]);
        assert!((whole - 5.5).abs() < f32::EPSILON, "{whole}");
        assert!((chances[0] - 0.995_93).abs() < 1e-4, "{chances:?}");
    }

    #[test]
    fn what_is_wrong_with_a_model_is_named() {
        for (text, says) in [
            ("trees\n", "line 1 of the model: it does not begin"),
            ("uniqcrawl trees 1\nlinks>1 : 0 1\n", "line 2 of the model: the tree belongs to no"),
            ("uniqcrawl trees 1\nmodel x 0\n", "the model has an unknown name"),
            ("uniqcrawl trees 1\nmodel segments x\n", "the bias is no number"),
            ("uniqcrawl trees 1\nmodel segments 0\nlink>1 : 0 1\n", "no feature is named link"),
            ("uniqcrawl trees 1\nmodel segments 0\nlinks>x : 0 1\n", "x is no bound"),
            ("uniqcrawl trees 1\nmodel segments 0\nlinks>1 : 0\n", "1 questions, 1 leaves"),
            ("uniqcrawl trees 1\nmodel segments 0\nlinks>1 : 0 x\n", "x is no leaf"),
            ("uniqcrawl trees 1\nusual long=1\n", "long is of the page"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
