//! The words of a text, cut once for all rules.

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64;

use super::english;
use super::lines::{chars, is_blank};
use crate::text::Segmenter;
use crate::text::is_han;

/// Words of a text, and how many characters they have.
pub(super) struct Words<'t> {
    pub(super) all: Vec<&'t str>,
    /// Words before each one, in characters; one more than words.
    chars_before: Vec<usize>,
}

/// What a text is cut by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    /// Words stand between blanks.
    Blanks,
    /// Words of Chinese are found by a dictionary.
    Chinese,
}

impl Script {
    /// Chinese is what has more Chinese characters than other letters.
    pub(super) fn of(text: &str) -> Self {
        if text.is_ascii() {
            return Self::Blanks;
        }
        let (mut han, mut others) = (0, 0_usize);
        for c in text.chars() {
            if is_han(c) {
                han += 1;
            } else {
                others += usize::from(c.is_alphabetic());
            }
        }
        if han > others { Self::Chinese } else { Self::Blanks }
    }
}

impl<'t> Words<'t> {
    pub(super) fn of(text: &'t str, script: Script, segmenter: &Segmenter) -> Self {
        let all: Vec<&str> = match script {
            Script::Blanks => english::words(text).into_iter().map(|at| &text[at]).collect(),
            Script::Chinese => chinese(text, segmenter),
        };
        let mut chars_before = Vec::with_capacity(all.len() + 1);
        let mut before = 0;
        for word in &all {
            chars_before.push(before);
            before += chars(word);
        }
        chars_before.push(before);
        Self { all, chars_before }
    }

    /// Characters of the run of `length` words that begins at a word.
    fn run_chars(&self, at: usize, length: usize) -> usize {
        self.chars_before[at + length] - self.chars_before[at]
    }

    /// Characters of the most frequent run of so many words, with one blank between two, as often
    /// as it is there; of several the first. None if there are fewer words.
    pub(super) fn most_frequent_run(&self, length: usize) -> Option<usize> {
        let joined = Joined::new(&self.all, " ");
        let mut counts: HashMap<u64, (usize, usize)> = HashMap::new();
        for at in 0..(self.all.len() + 1).saturating_sub(length) {
            counts.entry(joined.hash(at, length)).or_insert((0, at)).0 += 1;
        }
        let order = |(count, at): &(usize, usize)| (*count, std::cmp::Reverse(*at));
        let (count, at) = counts.into_values().max_by_key(order)?;
        Some(count * (self.run_chars(at, length) + length - 1))
    }

    /// Characters of all runs of so many words that were there before; runs do not overlap with
    /// one that was.
    pub(super) fn repeated_run_chars(&self, joined: &Joined, length: usize) -> usize {
        let (mut known, mut repeated, mut at) = (HashSet::new(), 0, 0);
        while at + length <= self.all.len() {
            if known.insert(joined.hash(at, length)) {
                at += 1;
            } else {
                repeated += self.run_chars(at, length);
                at += length;
            }
        }
        repeated
    }

    /// All words in one, for [`Words::repeated_run_chars`].
    pub(super) fn joined(&self) -> Joined {
        Joined::new(&self.all, "")
    }
}

/// The words of runs of Chinese, runs of other letters and digits, and each sign by itself.
fn chinese<'t>(text: &'t str, segmenter: &Segmenter) -> Vec<&'t str> {
    let kind = |c: char| {
        if is_han(c) {
            1
        } else if c.is_alphanumeric() {
            2
        } else {
            3
        }
    };
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let of = kind(first);
        let end = if of == 3 {
            first.len_utf8()
        } else {
            rest.find(|c| kind(c) != of).unwrap_or(rest.len())
        };
        let (run, after) = rest.split_at(end);
        match of {
            1 => segmenter.cut(run, |word| words.push(word)),
            3 if is_blank(first) => {}
            _ => words.push(run),
        }
        rest = after;
    }
    words
}

/// Words one after the other.
pub(super) struct Joined {
    text: String,
    ends: Vec<usize>,
    gap: usize,
}

impl Joined {
    fn new(words: &[&str], gap: &str) -> Self {
        let mut text = String::new();
        let mut ends = vec![0];
        for word in words {
            text.push_str(word);
            text.push_str(gap);
            ends.push(text.len());
        }
        Self { text, ends, gap: gap.len() }
    }

    fn hash(&self, at: usize, length: usize) -> u64 {
        xxh3_64(&self.text.as_bytes()[self.ends[at]..self.ends[at + length] - self.gap])
    }
}

/// Elements that stood there before, and their characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Repeated {
    pub(super) elements: usize,
    pub(super) chars: usize,
    /// All elements.
    pub(super) of: usize,
}

impl Repeated {
    pub(super) fn among<'t>(elements: impl Iterator<Item = &'t str>) -> Self {
        let mut known = HashSet::new();
        let mut repeated = Self::default();
        for element in elements {
            repeated.of += 1;
            if !known.insert(element) {
                repeated.elements += 1;
                repeated.chars += chars(element);
            }
        }
        repeated
    }
}
