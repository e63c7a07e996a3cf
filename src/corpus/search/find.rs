//! What one index says to a question: how common its words are, and which of its documents are
//! candidates. Several indexes that are parts of one say the same as that one would, if all are
//! told how common the words are in all of them.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};
use tantivy::collector::TopDocs;
use tantivy::query::{Bm25StatisticsProvider, BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::{DocAddress, Searcher, TantivyDocument, TantivyError, Term};

use super::ask::Keyword;
use super::folder::Fields;
use super::matching::{self, Scored, Wanted};
use super::row::{SearchRow, pairs_of};
use super::terms::{TermCounts, Word, number, terms_of, words_of};
use super::{Config, Error, Search};
use crate::text::{Idf, is_han};

/// A word in the title counts as much as this many in the text.
const TITLE_BOOST: f32 = 2.0;

/// Most distinct words of a search by words.
const WORDS_MAX: usize = 64;

/// Most answers to one question.
const ANSWERS_MAX: usize = 10_000;

/// What is compared with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Whole texts.
    Text,
    /// Single sentences.
    Sentence,
    /// Words, in texts and titles.
    Words,
}

/// A question, with its words.
#[derive(Debug)]
pub struct Question {
    /// What is compared.
    pub mode: Mode,
    /// How many answers are wanted.
    pub n: usize,
    words: Vec<Word>,
    counts: TermCounts,
    square: u64,
    pairs: HashSet<(u32, u32)>,
}

impl Question {
    /// Cuts the text of a question into words.
    #[must_use]
    pub fn new(mode: Mode, text: &str, n: usize) -> Self {
        let mut words = words_of(text);
        let (mut counts, mut pairs) = (TermCounts::default(), HashSet::new());
        match mode {
            Mode::Words => words.truncate(WORDS_MAX),
            Mode::Text => pairs.extend(pairs_of(&terms_of(text))),
            Mode::Sentence => {}
        }
        for word in &words {
            *counts.entry(number(word.hash)).or_default() += word.count;
        }
        let square = counts.values().map(|count| u64::from(*count).pow(2)).sum();
        Self { mode, n, words, counts, square, pairs }
    }

    /// The words by TF-IDF, the heaviest first; of equal ones the first comes first. Single
    /// characters come after all others: they are mostly what is left of names that the dictionary
    /// does not have.
    ///
    /// jieba's table knows how rare Chinese words are. All others have its median, of which the
    /// more is taken away the more of the documents have the word.
    pub(super) fn keywords(&self, figures: &Figures, config: &Config) -> Vec<Keyword> {
        let whole = (figures.documents as f32 + 2.0).ln();
        let keywords = self.words.iter().zip(&figures.words).map(|(word, [documents, _])| {
            let mut idf = Idf::built_in().of(&word.text, word.hash);
            if !word.text.chars().any(is_han) {
                let documents = (*documents).min(figures.documents);
                idf *= whole - (documents as f32 + 1.0).ln();
                idf /= whole;
            }
            let weight = word.count as f32 * idf;
            Keyword { word: word.text.clone(), weight, documents: *documents, hash: word.hash }
        });
        let mut keywords: Vec<Keyword> = keywords.collect();
        let single = |keyword: &Keyword| keyword.word.chars().nth(1).is_none();
        keywords
            .sort_by(|a, b| single(a).cmp(&single(b)).then_with(|| b.weight.total_cmp(&a.weight)));
        keywords.truncate(config.keywords);
        keywords
    }

    /// The keywords that any document has: what none has cannot name one.
    pub(super) fn asked(&self, figures: &Figures, config: &Config) -> Vec<Keyword> {
        let mut asked = self.keywords(figures, config);
        asked.retain(|keyword| keyword.documents > 0);
        asked
    }
}

/// How common the words of a question are. Figures of parts add up to those of all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Documents that can be found.
    pub documents: u64,
    /// Documents whose words are counted: those that were removed are until segments are merged.
    counted: u64,
    /// Words of all texts, and of all titles.
    tokens: [u64; 2],
    /// For each word of the question how many texts and titles have it.
    words: Vec<[u64; 2]>,
}

impl Figures {
    /// Adds those of another part; tells whether they are of the same words.
    pub fn add(&mut self, other: &Self) -> bool {
        if self.words.is_empty() {
            self.words = vec![[0; 2]; other.words.len()];
        }
        let fits = self.words.len() == other.words.len();
        if fits {
            self.documents += other.documents;
            self.counted += other.counted;
            for (one, more) in self.tokens.iter_mut().zip(other.tokens) {
                *one += more;
            }
            for (one, more) in self.words.iter_mut().zip(&other.words) {
                *one = [one[0] + more[0], one[1] + more[1]];
            }
        }
        fits
    }

    /// Tells whether they are of the words of a question.
    #[must_use]
    pub fn fits(&self, question: &Question) -> bool {
        self.words.len() == question.words.len()
    }
}

/// How many keywords are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Round {
    /// The first ones, of which most must match.
    First,
    /// All of them, of which half must match.
    All,
}

/// A document that may be an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Keywords that it has, of those that were asked for.
    matched: usize,
    /// BM25.
    pub score: f32,
    /// Cosine of the counts of words, of the best sentence if sentences are compared.
    #[serde(with = "bits")]
    pub cosine: f64,
    /// Pairs of words that it shares with the text.
    pub(super) pairs: usize,
    /// Identifier of the document.
    pub doc_id: String,
    /// Title of the canonical copy.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// The words asked for that it has.
    pub keywords: Vec<String>,
    /// Its best sentence, with its number from 1, if sentences are compared.
    pub sentence: Option<(usize, String)>,
}

impl Candidate {
    fn of(row: &SearchRow<'_>) -> Self {
        Self {
            matched: 0,
            score: 0.0,
            cosine: 0.0,
            pairs: 0,
            doc_id: row.names.id.to_owned(),
            title: row.names.title.to_owned(),
            url: row.names.url.to_owned(),
            keywords: Vec::new(),
            sentence: None,
        }
    }
}

/// Keeps the best candidates of all parts: those that have more of the keywords, then by BM25.
pub(super) fn cut(candidates: &mut Vec<Candidate>, most: usize) {
    candidates.sort_by(|one, other| {
        let order = other.matched.cmp(&one.matched);
        let order = order.then_with(|| other.score.total_cmp(&one.score));
        order.then_with(|| one.doc_id.cmp(&other.doc_id))
    });
    candidates.truncate(most);
}

/// A number as it is, which decimal digits may not be.
mod bits {
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(number.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}

/// The figures of all parts, as the engine asks for them.
struct Statistics<'a> {
    figures: &'a Figures,
    title: Field,
    documents: HashMap<Term, u64>,
}

impl<'a> Statistics<'a> {
    fn new(fields: &Fields, question: &Question, figures: &'a Figures) -> Self {
        let mut documents = HashMap::new();
        for (word, [text, title]) in question.words.iter().zip(&figures.words) {
            documents.insert(Term::from_field_text(fields.words, &word.text), *text);
            documents.insert(Term::from_field_text(fields.title, &word.text), *title);
        }
        Self { figures, title: fields.title, documents }
    }
}

impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(self.figures.tokens[usize::from(field == self.title)])
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.figures.counted)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        Ok(self.documents.get(term).copied().unwrap_or(0))
    }
}

impl Search {
    /// Returns how common the words of a question are here.
    pub fn figures(&self, question: &Question) -> Result<Figures, Error> {
        self.guarded(|| {
            let searcher = self.reader.searcher();
            let failed = |error| self.damaged(error);
            let fields = [self.fields.words, self.fields.title];
            let has_titles = question.mode == Mode::Words;
            let mut figures = Figures {
                documents: searcher.num_docs(),
                counted: searcher.total_num_docs().map_err(failed)?,
                ..Figures::default()
            };
            for (tokens, field) in figures.tokens.iter_mut().zip(fields) {
                *tokens = searcher.total_num_tokens(field).map_err(failed)?;
            }
            for word in &question.words {
                let with = |field| searcher.doc_freq(&Term::from_field_text(field, &word.text));
                let text = with(fields[0]).map_err(failed)?;
                let title = if has_titles { with(fields[1]).map_err(failed)? } else { 0 };
                figures.words.push([text, title]);
            }
            Ok(figures)
        })
    }

    /// Returns the candidates that this index has, by the figures of all parts.
    pub fn find(
        &self,
        question: &Question,
        figures: &Figures,
        round: Round,
    ) -> Result<Vec<Candidate>, Error> {
        self.guarded(|| {
            let searcher = self.reader.searcher();
            let statistics = Statistics::new(&self.fields, question, figures);
            if question.mode == Mode::Words {
                return self.by_words(&searcher, question, &statistics);
            }
            let Config { asked, match_min, candidates, sentence_candidates, .. } = self.config;
            let keywords = question.asked(figures, &self.config);
            let (words, least) = match round {
                Round::All => (&keywords[..], keywords.len() / 2),
                Round::First => {
                    let words = &keywords[..keywords.len().min(asked)];
                    (words, words.len() * match_min / asked.max(1))
                }
            };
            let by_sentence = question.mode == Mode::Sentence;
            let most = if by_sentence { sentence_candidates } else { candidates };
            let wanted = Wanted {
                statistics: &statistics,
                field: self.fields.words,
                words: &words.iter().map(|word| word.word.as_str()).collect::<Vec<_>>(),
                least: least.clamp(1, words.len().max(1)),
            };
            let mut found = Vec::new();
            for scored in self.candidates(&searcher, &wanted, most)? {
                self.row(&searcher, scored.address, &mut |row| {
                    let has = |keyword: &&Keyword| row.has(number(keyword.hash));
                    let own = words.iter().filter(has).map(|keyword| keyword.word.clone());
                    let mut one = Candidate {
                        matched: scored.words,
                        score: scored.score,
                        keywords: own.collect(),
                        ..Candidate::of(row)
                    };
                    if by_sentence {
                        let best = row.best_sentence(&question.counts, question.square);
                        let best = best.map(|(cosine, at, sentence)| {
                            one.cosine = cosine;
                            (at + 1, sentence.to_owned())
                        });
                        one.sentence = best;
                    } else {
                        one.cosine = row.cosine(&question.counts, question.square);
                        one.pairs = row.pairs_among(&question.pairs);
                    }
                    found.push(one);
                })?;
            }
            Ok(found)
        })
    }

    /// Returns the documents that have enough of the keywords, best match first.
    fn candidates(
        &self,
        searcher: &Searcher,
        wanted: &Wanted<'_>,
        most: usize,
    ) -> Result<Vec<Scored>, Error> {
        if wanted.words.is_empty() || most == 0 {
            return Ok(Vec::new());
        }
        matching::best(searcher, wanted, most).map_err(|error| self.damaged(error))
    }

    fn by_words(
        &self,
        searcher: &Searcher,
        question: &Question,
        statistics: &Statistics<'_>,
    ) -> Result<Vec<Candidate>, Error> {
        if question.words.is_empty() || question.n == 0 {
            return Ok(Vec::new());
        }
        let mut any: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for word in &question.words {
            any.push((Occur::Should, term_query(self.fields.words, &word.text)));
            let title = term_query(self.fields.title, &word.text);
            any.push((Occur::Should, Box::new(BoostQuery::new(title, TITLE_BOOST))));
        }
        let best = TopDocs::with_limit(question.n.clamp(1, ANSWERS_MAX)).order_by_score();
        let query = BooleanQuery::new(any);
        let found = searcher.search_with_statistics_provider(&query, &best, statistics);
        let mut candidates = Vec::new();
        for (score, address) in found.map_err(|error| self.damaged(error))? {
            self.row(searcher, address, &mut |row| {
                let own = question.words.iter().filter(|word| row.has(number(word.hash)));
                let keywords = own.map(|word| word.text.clone()).collect();
                candidates.push(Candidate { score, keywords, ..Candidate::of(row) });
            })?;
        }
        Ok(candidates)
    }

    fn row(
        &self,
        searcher: &Searcher,
        address: DocAddress,
        each: &mut dyn FnMut(&SearchRow<'_>),
    ) -> Result<(), Error> {
        let document: TantivyDocument =
            searcher.doc(address).map_err(|error| self.damaged(error))?;
        let bad = |detail: String| Error::Damaged { path: self.folder.clone(), detail };
        let row = document.get_first(self.fields.row);
        let row = row.as_ref().and_then(Value::as_bytes);
        let row = row.ok_or_else(|| bad("a document has no row".to_owned()))?;
        each(&SearchRow::decode(row).map_err(|error| bad(error.to_string()))?);
        Ok(())
    }

    /// A damaged index may make the engine panic: that is an error like any other.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            let error = TantivyError::InternalError("its files cannot be read".to_owned());
            Err(self.damaged(error))
        })
    }
}

fn term_query(field: Field, word: &str) -> Box<dyn Query> {
    let term = Term::from_field_text(field, word);
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}
