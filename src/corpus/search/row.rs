//! What is stored of a document in the index: names, words of each sentence, text.
//!
//! Row: version 1, identifier, title, URL, square of the length of the vector of counts (8),
//! number of sentences, of each its length in bytes and the number of its words, then all words
//! (4 each, little-endian) and the text, each with its length.

use std::collections::HashSet;

use super::terms::{TermCounts, square};
use crate::store::{BadRow, Decoder, Encoder};

/// One sentence of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    /// Where it ends in the text, in bytes.
    pub end: usize,
    /// The numbers of its words.
    pub terms: Vec<u32>,
}

/// The names under which a document is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Names<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub url: &'a str,
}

/// Writes a row.
pub(super) fn encode(names: &Names<'_>, sentences: &[Sentence], text: &str) -> Vec<u8> {
    let all = || sentences.iter().flat_map(|sentence| sentence.terms.iter().copied());
    let mut row = Encoder::new(1)
        .text(names.id)
        .text(names.title)
        .text(names.url)
        .fixed(square(all()))
        .number(sentences.len() as u64);
    let mut start = 0;
    for sentence in sentences {
        row = row.number((sentence.end - start) as u64).number(sentence.terms.len() as u64);
        start = sentence.end;
    }
    let terms: Vec<u8> = all().flat_map(u32::to_le_bytes).collect();
    row.bytes(&terms).text(text).finish()
}

/// A row that is read.
pub(super) struct SearchRow<'a> {
    pub names: Names<'a>,
    square: u64,
    /// Length in bytes and number of words of each sentence.
    sentences: Vec<(usize, usize)>,
    terms: &'a [u8],
    text: &'a str,
}

impl<'a> SearchRow<'a> {
    /// Reads a row.
    pub(super) fn decode(row: &'a [u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::new("search", 1, row)?;
        let names = Names { id: row.text()?, title: row.text()?, url: row.text()? };
        let square = row.fixed()?;
        let count: usize = row.narrow()?;
        let sentences = (0..count)
            .map(|_| Ok((row.narrow()?, row.narrow()?)))
            .collect::<Result<Vec<(usize, usize)>, BadRow>>()?;
        let (terms, text) = (row.bytes()?, row.text()?);
        let words: usize = sentences.iter().map(|(_, words)| words).sum();
        if words.checked_mul(4) != Some(terms.len()) {
            return Err(row.bad("its words are not those of its sentences"));
        }
        Ok(Self { names, square, sentences, terms, text })
    }

    fn terms(&self) -> impl Iterator<Item = u32> + use<'a> {
        numbers(self.terms)
    }

    /// Tells whether the text has a word.
    pub(super) fn has(&self, term: u32) -> bool {
        self.terms().any(|own| own == term)
    }

    /// Returns how many of some pairs of words stand in the text, one after the other.
    pub(super) fn pairs_among(&self, pairs: &HashSet<(u32, u32)>) -> usize {
        let terms: Vec<u32> = self.terms().collect();
        pairs_of(&terms).filter(|pair| pairs.contains(pair)).collect::<HashSet<_>>().len()
    }

    /// Returns the cosine of its counts of words and those of a query.
    pub(super) fn cosine(&self, query: &TermCounts, query_square: u64) -> f64 {
        cosine(self.terms(), self.square, query, query_square)
    }

    /// Returns the sentence of the largest cosine: cosine, number from 0, text. Of several, the
    /// first.
    pub(super) fn best_sentence(
        &self,
        query: &TermCounts,
        query_square: u64,
    ) -> Option<(f64, usize, &'a str)> {
        let mut best: Option<(f64, usize, &str)> = None;
        let (mut at, mut start) = (0, 0);
        for (number, (bytes, words)) in self.sentences.iter().enumerate() {
            let own = self.terms.get(at * 4..(at + words) * 4).unwrap_or_default();
            let terms = || numbers(own);
            let whole = self.text.get(start..start + bytes).unwrap_or_default();
            (at, start) = (at + words, start + bytes);
            if !terms().any(|term| query.contains_key(&term)) {
                continue;
            }
            let cosine = cosine(terms(), square(terms()), query, query_square);
            if best.is_none_or(|(other, ..)| cosine > other) {
                best = Some((cosine, number, whole.trim()));
            }
        }
        best
    }
}

/// Returns the words of a text that stand one after the other.
pub(super) fn pairs_of(terms: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    terms.iter().copied().zip(terms.iter().copied().skip(1))
}

fn numbers(terms: &[u8]) -> impl Iterator<Item = u32> {
    terms.as_chunks::<4>().0.iter().map(|term| u32::from_le_bytes(*term))
}

/// Returns the cosine of two vectors of counts; 0 if one of them is empty.
fn cosine(terms: impl Iterator<Item = u32>, square: u64, query: &TermCounts, other: u64) -> f64 {
    let product: u64 = terms.filter_map(|term| query.get(&term)).map(|c| u64::from(*c)).sum();
    if product == 0 {
        return 0.0;
    }
    product as f64 / ((square as f64).sqrt() * (other as f64).sqrt())
}
