//! The words of a text, sentence by sentence: the same for what is indexed and what is asked.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::row::Sentence;
use crate::text::{Idf, Normal, Tokens, normalize_as};

/// Words of a smaller inverse document frequency are usual: more than one in twenty documents has
/// them, as 的 and 我 do. Those of languages other than Chinese have 0.
const USUAL_IDF: f32 = 3.0;

/// Longer words are names of nothing that anyone asks for, such as encoded data.
const WORD_BYTES_MAX: usize = 200;

/// Marks that open what follows them, and so belong to the sentence after them.
const OPENERS: &[char] = &['“', '‘', '「', '『', '《', '〈', '（', '(', '[', '【', '"', '\''];

/// How often each word stands in a text, by the number of the word.
pub(super) type TermCounts = HashMap<u32, u32, BuildHasherDefault<TermHasher>>;

/// Numbers of words are parts of hashes and need no further hashing.
#[derive(Default)]
pub(super) struct TermHasher(u64);

impl std::hash::Hasher for TermHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxhash_rust::xxh3::xxh3_64(bytes);
    }

    fn write_u32(&mut self, number: u32) {
        // The table takes its groups from the low bits and its tags from the high ones.
        self.0 = u64::from(number) << 32 | u64::from(number);
    }
}

/// One word of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// As it stands in the index.
    pub text: String,
    /// Its hash.
    pub hash: u64,
    /// How often it stands in the text.
    pub count: u32,
}

/// Returns the number of a word: 32 bits of its hash.
pub(super) fn number(hash: u64) -> u32 {
    hash as u32
}

/// Calls `each` with every word of a text that tells anything: usual words do not.
fn telling(text: &str, mut each: impl FnMut(&str, u64)) {
    let (text, idf) = (normalize_as(text, Normal::default()), Idf::built_in());
    Tokens::of(&text).every_word(|word, hash| {
        if word.len() <= WORD_BYTES_MAX && idf.of(word, hash) >= USUAL_IDF {
            each(word, hash);
        }
    });
}

/// Returns where each sentence of a text ends, in bytes. All of the text is in one of them.
fn sentence_ends(text: &str) -> Vec<usize> {
    let tokens = Tokens::of(text);
    let mut ends: Vec<usize> = Vec::new();
    let mut last = 0;
    for sentence in tokens.sentences() {
        let (first, end) = (sentence[0].start as usize, sentence[sentence.len() - 1].end as usize);
        if last > 0 {
            // What stands between two sentences belongs to the first, but for what opens the next.
            let gap = &text[last..first];
            let opens = |c: char| c.is_whitespace() || OPENERS.contains(&c);
            ends.push(last + gap.trim_end_matches(opens).len());
        }
        last = end;
    }
    ends.push(text.len());
    ends
}

/// A text that is ready to be indexed.
pub(super) struct Analysed {
    /// Its words with blanks between them.
    pub words: String,
    /// Its sentences with the numbers of their words.
    pub sentences: Vec<Sentence>,
}

/// Cuts a text into sentences and words.
pub(super) fn analyse(text: &str) -> Analysed {
    let mut words = String::with_capacity(text.len());
    let mut sentences = Vec::new();
    let mut start = 0;
    for end in sentence_ends(text) {
        let mut terms = Vec::new();
        telling(&text[start..end], |word, hash| {
            words.push_str(word);
            words.push(' ');
            terms.push(number(hash));
        });
        sentences.push(Sentence { end, terms });
        start = end;
    }
    Analysed { words, sentences }
}

/// Returns the words of a text with blanks between them.
pub(super) fn joined(text: &str) -> String {
    analyse(text).words
}

/// Returns the distinct words of a query, in the order in which they first stand there.
pub(super) fn words_of(text: &str) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut start = 0;
    for end in sentence_ends(text) {
        telling(&text[start..end], |word, hash| {
            let place = *places.entry(hash).or_insert(found.len());
            match found.get_mut(place) {
                Some(known) => known.count += 1,
                None => found.push(Word { text: word.to_owned(), hash, count: 1 }),
            }
        });
        start = end;
    }
    found
}

/// Returns the numbers of the words of a text, in their order.
pub(super) fn terms_of(text: &str) -> Vec<u32> {
    analyse(text).sentences.into_iter().flat_map(|sentence| sentence.terms).collect()
}

/// Returns the sum of the squares of how often each word stands among some.
pub(super) fn square(terms: impl Iterator<Item = u32>) -> u64 {
    let mut all: Vec<u32> = terms.collect();
    all.sort_unstable();
    let runs = all.chunk_by(|one, other| one == other);
    runs.map(|run| (run.len() as u64).pow(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_hold_all_of_a_text_and_end_at_the_marks_of_their_script() {
        let cut = |text: &str| {
            let mut start = 0;
            let ends = sentence_ends(text).into_iter();
            ends.map(|end| {
                let sentence = text[start..end].trim().to_owned();
                start = end;
                sentence
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(cut("去重了。“系统”好！真的？"), ["去重了。", "“系统”好！", "真的？"]);
        assert_eq!(
            cut("Pi is 3.14. Is it? (Yes.)\nA line"),
            ["Pi is 3.14.", "Is it?", "(Yes.)", "A line"]
        );
        assert_eq!(cut(""), [""]);
        assert_eq!(cut("。。。"), ["。。。"]);
    }

    #[test]
    fn squares_are_those_of_the_counts() {
        assert_eq!(square([7, 1, 7, 7, 2].into_iter()), 9 + 1 + 1);
        assert_eq!(square(std::iter::empty()), 0);
    }

    #[test]
    fn usual_words_do_not_count() {
        let words = words_of("The 系统 and the 索引 的 系统");
        let words: Vec<_> = words.iter().map(|word| (word.text.as_str(), word.count)).collect();
        assert_eq!(words, [("系统", 2), ("索引", 1)]);
    }
}
