//! The documents that have at least some of several words: those that have more of them first, then
//! by BM25.
//!
//! BM25 alone prefers short documents that say a few of the words often. Who has many of the words
//! of a text is more likely where it comes from, however long it is.
//!
//! The engine can find them too, with a heap over all occurrences of all words. But who has `least`
//! of `n` words has one of any `n - least + 1` of them, so that it is enough to go through those of
//! the fewest documents and to look the others up. The documents and their scores are the same.

use std::cmp::Ordering;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings as _, SegmentPostings};
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet as _, Searcher, SegmentReader, TERMINATED, Term};

/// A document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scored {
    /// How many of the words it has.
    pub words: usize,
    /// BM25.
    pub score: f32,
    pub address: DocAddress,
}

/// A part of the index.
struct PhraseSegment<'a> {
    reader: &'a SegmentReader,
    /// Its number among all.
    number: u32,
    /// Lengths of its texts.
    norms: FieldNormReader,
}

/// One word in one segment.
struct MatchedWord {
    postings: SegmentPostings,
    weight: Bm25Weight,
}

/// What is asked for.
pub(super) struct Wanted<'a> {
    /// How common words are.
    pub statistics: &'a dyn Bm25StatisticsProvider,
    pub field: Field,
    pub words: &'a [&'a str],
    /// How many of them a document must have.
    pub least: usize,
}

/// Returns the `most` best documents that have enough of the words, the best first; of equal ones
/// in the order of the index.
pub(super) fn best(
    searcher: &Searcher,
    wanted: &Wanted<'_>,
    most: usize,
) -> tantivy::Result<Vec<Scored>> {
    let Wanted { statistics, field, words, least } = *wanted;
    let terms = words.iter().map(|word| Term::from_field_text(field, word));
    let terms = terms.map(|term| {
        let weight = Bm25Weight::for_terms(statistics, std::slice::from_ref(&term))?;
        Ok((term, weight))
    });
    let terms = terms.collect::<tantivy::Result<Vec<_>>>()?;
    let mut found = Vec::new();
    for (number, reader) in searcher.segment_readers().iter().enumerate() {
        let inverted = reader.inverted_index(field)?;
        let mut here = Vec::with_capacity(terms.len());
        for (term, weight) in &terms {
            if let Some(postings) = inverted.read_postings(term, IndexRecordOption::WithFreqs)? {
                here.push(MatchedWord { postings, weight: weight.clone() });
            }
        }
        if here.len() >= least.max(1) {
            let segment = PhraseSegment {
                reader,
                number: number as u32,
                norms: reader.get_fieldnorms_reader(field)?,
            };
            in_segment(&segment, here, least.max(1), most, &mut found)?;
        }
    }
    cut(&mut found, most);
    found.sort_unstable_by(order);
    Ok(found)
}

fn in_segment(
    segment: &PhraseSegment<'_>,
    mut words: Vec<MatchedWord>,
    least: usize,
    most: usize,
    found: &mut Vec<Scored>,
) -> tantivy::Result<()> {
    let alive = segment.reader.alive_bitset();
    words.sort_by_key(|word| word.postings.doc_freq());
    let leaders = words.len() - least + 1;
    loop {
        let (first, others) = words.split_at_mut(leaders);
        let doc = first.iter().map(|word| word.postings.doc()).min().unwrap_or(TERMINATED);
        if doc == TERMINATED {
            return Ok(());
        }
        let mut have = first.iter().filter(|word| word.postings.doc() == doc).count();
        let mut left = others.len();
        for word in others {
            if have + left < least {
                break;
            }
            if word.postings.doc() < doc {
                word.postings.seek(doc);
            }
            have += usize::from(word.postings.doc() == doc);
            left -= 1;
        }
        // Where the look-up ended early, there are not enough of them.
        if have >= least && alive.is_none_or(|alive| alive.is_alive(doc)) {
            let norm = segment.norms.fieldnorm_id(doc);
            let there = words.iter().filter(|word| word.postings.doc() == doc);
            let score = there.map(|word| word.weight.score(norm, word.postings.term_freq())).sum();
            let address = DocAddress::new(segment.number, doc);
            found.push(Scored { words: have, score, address });
            if found.len() >= most.saturating_mul(8) {
                cut(found, most);
            }
        }
        for word in words.iter_mut().take(leaders).filter(|word| word.postings.doc() == doc) {
            word.postings.advance();
        }
    }
}

/// Keeps the best.
fn cut(found: &mut Vec<Scored>, most: usize) {
    if found.len() > most {
        found.select_nth_unstable_by(most, order);
        found.truncate(most);
    }
}

fn order(one: &Scored, other: &Scored) -> Ordering {
    let order = other.words.cmp(&one.words).then_with(|| other.score.total_cmp(&one.score));
    order.then_with(|| one.address.cmp(&other.address))
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use tantivy::collector::TopDocs;
    use tantivy::query::{BooleanQuery, Query, TermQuery};

    use super::*;
    use crate::corpus::search::{Config, Entry, Search};

    #[test]
    fn the_engine_finds_the_same_documents_with_the_same_scores() {
        let search = Search::open_at(None, &Config::default()).unwrap();
        let mut state = 7u64;
        let mut next = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        // Words of a small number are common, and some are said again and again.
        let mut text = || -> String {
            let words = next(30) + 1;
            (0..words)
                .map(|_| next(30) * next(30) / 30)
                .fold(String::new(), |text, word| format!("{text} word{word}"))
        };
        let all: Vec<_> = (0..800u64)
            .map(|id| Ok(Entry { id: id.to_string(), text: text(), ..Entry::default() }))
            .collect();
        search.fill("a test", all.into_iter()).unwrap();
        let (searcher, field) = (search.reader.searcher(), search.fields.words);
        let find = |words: &[&str], least, most| {
            best(&searcher, &Wanted { statistics: &searcher, field, words, least }, most)
        };
        let words: Vec<String> = (0..30).map(|n| format!("word{n}")).collect();
        let mut compared = 0;
        for first in 0..20 {
            let words: Vec<&str> = words[first..first + 10].iter().map(String::as_str).collect();
            for least in 1..=10 {
                let ours = find(&words, least, 50).unwrap();
                let any = words.iter().map(|word| {
                    let term = Term::from_field_text(field, word);
                    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)) as Box<dyn Query>
                });
                let any = any.collect();
                let query = BooleanQuery::union_with_minimum_required_clauses(any, least);
                let top = TopDocs::with_limit(1_000).order_by_score();
                let theirs = searcher.search(&query, &top).unwrap();
                assert_eq!(ours.len(), theirs.len().min(50), "{least} of {words:?}");
                let theirs: HashMap<_, _> =
                    theirs.into_iter().map(|(score, address)| (address, score)).collect();
                for one in &ours {
                    assert!((one.score - theirs[&one.address]).abs() < 1e-4, "{one:?}");
                }
                for pair in ours.windows(2) {
                    let better = (pair[0].words, pair[0].score) >= (pair[1].words, pair[1].score);
                    assert!(better && pair[1].words >= least, "{pair:?}");
                }
                // Nobody who was left out has a better score with as many words as the last.
                if let Some(last) = ours.last().filter(|last| last.words == words.len()) {
                    let kept: HashSet<_> = ours.iter().map(|one| one.address).collect();
                    let all = find(&words, words.len(), 1_000).unwrap();
                    for one in all.iter().filter(|one| !kept.contains(&one.address)) {
                        assert!(one.score <= last.score, "{one:?} {last:?}");
                    }
                }
                compared += ours.len();
            }
        }
        assert!(compared > 2_000, "{compared}");
    }
}
