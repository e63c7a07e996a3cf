//! Questions to the index.

use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::{DocAddress, Searcher, TantivyDocument, TantivyError, Term};

use super::matching;
use super::row::{SearchRow, pairs_of};
use super::terms::{TermCounts, Word, number, terms_of, words_of};
use super::{Config, Error, Search};
use crate::text::{Idf, is_han};

/// A word in the title counts as much as this many in the text.
const TITLE_BOOST: f32 = 2.0;

/// Most distinct words of a search by words.
const WORDS_MAX: usize = 64;

/// Documents whose cosines differ by less than this are as like a text as each other.
const REPRINT_MARGIN: f64 = 0.01;

/// Most of them that are looked at more closely.
const REPRINTS_MAX: usize = 20;

/// Most answers to one question.
const ANSWERS_MAX: usize = 10_000;

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
    hash: u64,
}

/// A question: the words of a text, and its keywords that any document has.
struct SearchQuestion {
    counts: TermCounts,
    square: u64,
    asked: Vec<Keyword>,
}

/// Keywords that are asked for.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    words: &'a [Keyword],
    /// How many of them a candidate must have.
    least: usize,
}

/// A document that may be like a text.
struct FoundPhrases {
    address: DocAddress,
    hit: Hit,
    /// Pairs of words that it shares with the text, if that was counted.
    pairs: usize,
}

impl Search {
    /// Returns the `n` documents whose texts are most like `text`, the best first. Of those that
    /// are about as like it as the best, the first has most of its words in their order.
    pub fn text(&self, text: &str, n: usize) -> Result<Vec<Hit>, Error> {
        self.guarded(|| {
            let searcher = self.reader.searcher();
            let question = self.question(&searcher, text)?;
            let mut found = Vec::new();
            self.alike(&searcher, &question, self.first(&question), &mut found)?;
            let Config { asked, cosine_enough, .. } = self.config;
            let has_more = (1..question.asked.len()).contains(&asked) && cosine_enough > 0.0;
            if has_more && found.iter().all(|found| found.hit.cosine < cosine_enough) {
                let all = Wanted { words: &question.asked, least: question.asked.len() / 2 };
                self.alike(&searcher, &question, all, &mut found)?;
            }
            found.retain(|found| found.hit.cosine >= self.config.cosine_min);
            found.sort_by(|a, b| {
                let order = best(a.hit.cosine, b.hit.cosine);
                order.then_with(|| a.hit.doc_id.cmp(&b.hit.doc_id))
            });
            self.order_reprints(&searcher, text, &mut found)?;
            Ok(found.into_iter().take(n).map(|found| found.hit).collect())
        })
    }

    /// Adds the documents that have enough of the words asked for, and were not found before.
    fn alike(
        &self,
        searcher: &Searcher,
        question: &SearchQuestion,
        asked: Wanted<'_>,
        found: &mut Vec<FoundPhrases>,
    ) -> Result<(), Error> {
        let known: HashSet<DocAddress> = found.iter().map(|found| found.address).collect();
        for address in self.candidates(searcher, asked, self.config.candidates)? {
            if known.contains(&address) {
                continue;
            }
            self.row(searcher, address, &mut |row| {
                let cosine = row.cosine(&question.counts, question.square);
                let hit = Hit {
                    doc_id: row.names.id.to_owned(),
                    cosine,
                    title: row.names.title.to_owned(),
                    url: row.names.url.to_owned(),
                    keywords: shared(asked.words, row),
                };
                found.push(FoundPhrases { address, hit, pairs: 0 });
            })?;
        }
        Ok(())
    }

    /// Orders those that are about as like a text as the best by how many of its pairs of words
    /// they have: they are reprints of each other, mostly, and it was taken from one of them.
    fn order_reprints(
        &self,
        searcher: &Searcher,
        text: &str,
        found: &mut [FoundPhrases],
    ) -> Result<(), Error> {
        let best = found.first().map_or(0.0, |found| found.hit.cosine);
        let near = found.iter().take_while(|found| found.hit.cosine > best - REPRINT_MARGIN);
        let near = near.take(REPRINTS_MAX).count();
        if near < 2 {
            return Ok(());
        }
        let terms = terms_of(text);
        let pairs: HashSet<(u32, u32)> = pairs_of(&terms).collect();
        for one in &mut found[..near] {
            self.row(searcher, one.address, &mut |row| one.pairs = row.pairs_among(&pairs))?;
        }
        found[..near].sort_by_key(|found| Reverse(found.pairs));
        Ok(())
    }

    /// Returns the `n` documents that have the sentences most like `sentence`, the best first, each
    /// with its best sentence.
    pub fn sentence(&self, sentence: &str, n: usize) -> Result<Vec<SentenceHit>, Error> {
        self.guarded(|| {
            let searcher = self.reader.searcher();
            let question = self.question(&searcher, sentence)?;
            let (mut hits, most) = (Vec::new(), self.config.sentence_candidates);
            let asked = self.first(&question);
            for address in self.candidates(&searcher, asked, most)? {
                self.row(&searcher, address, &mut |row| {
                    let found = row.best_sentence(&question.counts, question.square);
                    let Some((cosine, at, sentence)) = found else { return };
                    if cosine >= self.config.cosine_min {
                        hits.push(SentenceHit {
                            doc_id: row.names.id.to_owned(),
                            cosine,
                            sentence: sentence.to_owned(),
                            number: at + 1,
                            title: row.names.title.to_owned(),
                            url: row.names.url.to_owned(),
                            keywords: shared(asked.words, row),
                        });
                    }
                })?;
            }
            hits.sort_by(|a, b| best(a.cosine, b.cosine).then_with(|| a.doc_id.cmp(&b.doc_id)));
            hits.truncate(n);
            Ok(hits)
        })
    }

    /// Returns the `n` documents that have most of the words of `words` in title or text, ranked by
    /// BM25, the best first.
    pub fn words(&self, words: &str, n: usize) -> Result<Vec<WordHit>, Error> {
        self.guarded(|| {
            let searcher = self.reader.searcher();
            let mut asked = words_of(words);
            asked.truncate(WORDS_MAX);
            if asked.is_empty() || n == 0 {
                return Ok(Vec::new());
            }
            let mut any: Vec<(Occur, Box<dyn Query>)> = Vec::new();
            for word in &asked {
                any.push((Occur::Should, term_query(self.fields.words, &word.text)));
                let title = term_query(self.fields.title, &word.text);
                any.push((Occur::Should, Box::new(BoostQuery::new(title, TITLE_BOOST))));
            }
            let found = self.top(&searcher, &BooleanQuery::new(any), n)?;
            let mut hits = Vec::new();
            for (score, address) in found {
                self.row(&searcher, address, &mut |row| {
                    let own = asked.iter().filter(|word| row.has(number(word.hash)));
                    hits.push(WordHit {
                        doc_id: row.names.id.to_owned(),
                        score,
                        title: row.names.title.to_owned(),
                        url: row.names.url.to_owned(),
                        keywords: own.map(|word| word.text.clone()).collect(),
                    });
                })?;
            }
            Ok(hits)
        })
    }

    /// Returns the keywords that stand for a text, the heaviest first.
    pub fn keywords(&self, text: &str) -> Result<Vec<Keyword>, Error> {
        self.guarded(|| self.keywords_of(&self.reader.searcher(), words_of(text)))
    }

    /// The words of a text by TF-IDF; of equal ones the first comes first. Single characters come
    /// after all others: they are mostly what is left of names that the dictionary does not have.
    ///
    /// jieba's table knows how rare Chinese words are. All others have its median, of which this
    /// index takes the more away the more of its documents have the word.
    fn keywords_of(&self, searcher: &Searcher, words: Vec<Word>) -> Result<Vec<Keyword>, Error> {
        let all = searcher.num_docs();
        let whole = (all as f32 + 2.0).ln();
        let mut keywords = Vec::with_capacity(words.len());
        for Word { text: word, hash, count } in words {
            let mut idf = Idf::built_in().of(&word, hash);
            if !word.chars().any(is_han) {
                let documents = self.documents_with(searcher, &word)?.min(all);
                idf *= whole - (documents as f32 + 1.0).ln();
                idf /= whole;
            }
            keywords.push(Keyword { word, weight: count as f32 * idf, documents: 0, hash });
        }
        let single = |keyword: &Keyword| keyword.word.chars().nth(1).is_none();
        keywords
            .sort_by(|a, b| single(a).cmp(&single(b)).then_with(|| b.weight.total_cmp(&a.weight)));
        keywords.truncate(self.config.keywords);
        for keyword in &mut keywords {
            keyword.documents = self.documents_with(searcher, &keyword.word)?;
        }
        Ok(keywords)
    }

    fn documents_with(&self, searcher: &Searcher, word: &str) -> Result<u64, Error> {
        let term = Term::from_field_text(self.fields.words, word);
        searcher.doc_freq(&term).map_err(|error| self.damaged(error))
    }

    fn question(&self, searcher: &Searcher, text: &str) -> Result<SearchQuestion, Error> {
        let words = words_of(text);
        let mut counts = TermCounts::default();
        for word in &words {
            *counts.entry(number(word.hash)).or_default() += word.count;
        }
        let square = counts.values().map(|count| u64::from(*count).pow(2)).sum();
        // What no document has cannot name one.
        let mut asked = self.keywords_of(searcher, words)?;
        asked.retain(|keyword| keyword.documents > 0);
        Ok(SearchQuestion { counts, square, asked })
    }

    /// The keywords that are asked for first.
    fn first<'q>(&self, question: &'q SearchQuestion) -> Wanted<'q> {
        let words = &question.asked[..question.asked.len().min(self.config.asked)];
        Wanted { words, least: words.len() * self.config.match_min / self.config.asked.max(1) }
    }

    /// Returns the documents that have enough of the keywords, best match first.
    fn candidates(
        &self,
        searcher: &Searcher,
        Wanted { words, least }: Wanted<'_>,
        most: usize,
    ) -> Result<Vec<DocAddress>, Error> {
        if words.is_empty() || most == 0 {
            return Ok(Vec::new());
        }
        let words: Vec<&str> = words.iter().map(|word| word.word.as_str()).collect();
        let least = least.clamp(1, words.len());
        let best = matching::best(searcher, self.fields.words, &words, least, most);
        let best = best.map_err(|error| self.damaged(error))?;
        Ok(best.into_iter().map(|scored| scored.address).collect())
    }

    fn top(
        &self,
        searcher: &Searcher,
        query: &dyn Query,
        most: usize,
    ) -> Result<Vec<(f32, DocAddress)>, Error> {
        let best = TopDocs::with_limit(most.clamp(1, ANSWERS_MAX)).order_by_score();
        searcher.search(query, &best).map_err(|error| self.damaged(error))
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

/// The words asked for that a document has.
fn shared(asked: &[Keyword], row: &SearchRow<'_>) -> Vec<String> {
    let own = asked.iter().filter(|keyword| row.has(number(keyword.hash)));
    own.map(|keyword| keyword.word.clone()).collect()
}

fn term_query(field: Field, word: &str) -> Box<dyn Query> {
    let term = Term::from_field_text(field, word);
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}

fn best(one: f64, other: f64) -> Ordering {
    other.total_cmp(&one)
}
