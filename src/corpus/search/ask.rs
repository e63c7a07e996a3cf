//! Questions to an index, or to several that are its parts.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::Path;
use std::thread;

use serde::Serialize;
use tantivy::TantivyError;

use super::find::{Candidate, Figures, Mode, Question, Round, cut};
use super::{Config, Error, Search, damaged};

/// Documents whose cosines differ by less than this are as like a text as each other.
const REPRINT_MARGIN: f64 = 0.01;

/// Most of them that are looked at more closely.
const REPRINTS_MAX: usize = 20;

/// A document that is similar to a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// Identifier of the document.
    pub doc_id: String,
    /// Cosine of the counts of their words, 0 to 1.
    pub cosine: f64,
    /// Title of the canonical copy.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// The keywords asked for that the document has.
    pub keywords: Vec<String>,
}

/// A sentence that is similar to another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SentenceHit {
    /// Identifier of the document.
    pub doc_id: String,
    /// Cosine of the counts of their words, 0 to 1.
    pub cosine: f64,
    /// The sentence.
    pub sentence: String,
    /// Its number in the document, from 1.
    pub number: usize,
    /// Title of the canonical copy.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// The keywords asked for that the document has.
    pub keywords: Vec<String>,
}

/// A document that has some words.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WordHit {
    /// Identifier of the document.
    pub doc_id: String,
    /// How well it matches (BM25); only to be compared within one answer.
    pub score: f32,
    /// Title of the canonical copy.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// The words asked for that its text has.
    pub keywords: Vec<String>,
}

impl From<Candidate> for Hit {
    fn from(found: Candidate) -> Self {
        let Candidate { doc_id, cosine, title, url, keywords, .. } = found;
        Self { doc_id, cosine, title, url, keywords }
    }
}

impl From<Candidate> for SentenceHit {
    fn from(found: Candidate) -> Self {
        let Candidate { doc_id, cosine, sentence, title, url, keywords, .. } = found;
        let (number, sentence) = sentence.unwrap_or_default();
        Self { doc_id, cosine, sentence, number, title, url, keywords }
    }
}

impl From<Candidate> for WordHit {
    fn from(found: Candidate) -> Self {
        let Candidate { doc_id, score, title, url, keywords, .. } = found;
        Self { doc_id, score, title, url, keywords }
    }
}

/// A word that stands for a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Keyword {
    /// The word.
    pub word: String,
    /// Number of its occurrences times its inverse document frequency.
    pub weight: f32,
    /// Documents of the index that have it.
    pub documents: u64,
    #[serde(skip)]
    pub(super) hash: u64,
}

impl Search {
    /// Returns the `n` documents whose texts are most like `text`, the best first. Of those that
    /// are about as like it as the best, the first has most of its words in their order.
    pub fn text(&self, text: &str, n: usize) -> Result<Vec<Hit>, Error> {
        self.hits(Mode::Text, text, n)
    }

    /// Returns the `n` documents that have the sentences most like `sentence`, the best first, each
    /// with its best sentence.
    pub fn sentence(&self, sentence: &str, n: usize) -> Result<Vec<SentenceHit>, Error> {
        self.hits(Mode::Sentence, sentence, n)
    }

    /// Returns the `n` documents that have most of the words of `words` in title or text, ranked by
    /// BM25, the best first.
    pub fn words(&self, words: &str, n: usize) -> Result<Vec<WordHit>, Error> {
        self.hits(Mode::Words, words, n)
    }

    fn hits<T: From<Candidate>>(&self, mode: Mode, text: &str, n: usize) -> Result<Vec<T>, Error> {
        let found = ask(&[self], &Question::new(mode, text, n))?;
        Ok(found.into_iter().map(T::from).collect())
    }

    /// Returns the keywords that stand for a text, the heaviest first.
    pub fn keywords(&self, text: &str) -> Result<Vec<Keyword>, Error> {
        let question = Question::new(Mode::Sentence, text, 0);
        Ok(question.keywords(&self.figures(&question)?, &self.config))
    }
}

/// Asks all parts of an index at a time, as if they were one.
pub fn ask(parts: &[&Search], question: &Question) -> Result<Vec<Candidate>, Error> {
    let Some(first) = parts.first() else { return Ok(Vec::new()) };
    let mut figures = Figures::default();
    for own in at_once(parts, |part| part.figures(question))? {
        figures.add(&own);
    }
    answer(question, &figures, &first.config, |round| {
        let found = at_once(parts, |part| part.find(question, &figures, round))?;
        Ok(found.into_iter().flatten().collect())
    })
}

/// Does the same with each part, on a thread each.
pub fn at_once<P: Sync, T: Send>(
    parts: &[P],
    work: impl Fn(&P) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    if let [one] = parts {
        return Ok(vec![work(one)?]);
    }
    let work = &work;
    thread::scope(|scope| {
        let threads = parts.iter().map(|part| scope.spawn(move || work(part)));
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| {
                let detail = TantivyError::InternalError("a thread has panicked".to_owned());
                Err(damaged(Path::new("a part"), detail))
            })
        });
        ended.collect()
    })
}

/// Makes the answer of the candidates that all parts have, which `find` returns together.
pub fn answer<E>(
    question: &Question,
    figures: &Figures,
    config: &Config,
    mut find: impl FnMut(Round) -> Result<Vec<Candidate>, E>,
) -> Result<Vec<Candidate>, E> {
    let mut found = find(Round::First)?;
    match question.mode {
        Mode::Words => cut(&mut found, question.n),
        Mode::Sentence => {
            cut(&mut found, config.sentence_candidates);
            found.retain(|one| one.sentence.is_some() && one.cosine >= config.cosine_min);
            order(&mut found);
        }
        Mode::Text => {
            cut(&mut found, config.candidates);
            let asked = question.asked(figures, config).len();
            let has_more = (1..asked).contains(&config.asked) && config.cosine_enough > 0.0;
            if has_more && found.iter().all(|found| found.cosine < config.cosine_enough) {
                let mut more = find(Round::All)?;
                cut(&mut more, config.candidates);
                let known: HashSet<String> = found.iter().map(|one| one.doc_id.clone()).collect();
                found.extend(more.into_iter().filter(|one| !known.contains(&one.doc_id)));
            }
            found.retain(|one| one.cosine >= config.cosine_min);
            order(&mut found);
            order_reprints(&mut found);
        }
    }
    found.truncate(question.n);
    Ok(found)
}

fn order(found: &mut [Candidate]) {
    found.sort_by(|one, other| {
        let order = other.cosine.total_cmp(&one.cosine);
        order.then_with(|| one.doc_id.cmp(&other.doc_id))
    });
}

/// Orders those that are about as like a text as the best by how many of its pairs of words they
/// have: they are reprints of each other, mostly, and it was taken from one of them.
fn order_reprints(found: &mut [Candidate]) {
    let best = found.first().map_or(0.0, |found| found.cosine);
    let near = found.iter().take_while(|found| found.cosine > best - REPRINT_MARGIN);
    let near = near.take(REPRINTS_MAX).count();
    found[..near].sort_by_key(|found| Reverse(found.pairs));
}
