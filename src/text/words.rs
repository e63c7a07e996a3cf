//! Words of any script, and how rare they are.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::LazyLock;

use jieba_rs::{Jieba, KeywordExtract, KeywordExtractConfig, TfIdf};
use xxhash_rust::xxh3::xxh3_64;

use super::is_usual;

/// The segmenter with its built-in dictionary: 5 MB, loaded at the first Chinese text.
static JIEBA: LazyLock<Jieba> = LazyLock::new(Jieba::new);

/// Characters of a shingle in scripts that are written without blanks and are not Chinese.
const SHINGLE_CHARS: usize = 3;

/// Words remembered by each thread with their IDF; then the memory starts anew.
const IDF_CACHE_MAX: usize = 400_000;

/// Splits a normalised text into words, in order.
///
/// Runs of Han go through jieba; runs of other scripts that are written without blanks (kana,
/// Thai, Lao, Khmer, Burmese), which jieba cannot serve, become overlapping character 3-grams;
/// everything else is split at characters that are neither letter nor digit. Punctuation is
/// dropped. Cost: about 40 MB/s, for Han about 8 MB/s.
#[must_use]
pub fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::with_capacity(text.len() / 6);
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii() && !bytes[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let rest = &text[at..];
        let kind = Kind::of(rest.chars().next().expect("`at` is before the end"));
        let run = &rest[..run_end(rest, kind)];
        match kind {
            Kind::Word => words.push(run),
            Kind::Han => words.extend(JIEBA.cut(run, true).iter().map(|token| token.word)),
            Kind::Unspaced => push_shingles(&mut words, run),
            Kind::Other => {}
        }
        at += run.len();
    }
    words
}

/// Where the run of characters of one kind at the start of `rest` ends.
fn run_end(rest: &str, kind: Kind) -> usize {
    // Most runs are ASCII words, which need no decoding.
    let plain = match kind {
        Kind::Word => rest.bytes().take_while(u8::is_ascii_alphanumeric).count(),
        _ => 0,
    };
    match rest.as_bytes().get(plain) {
        None => plain,
        Some(byte) if plain > 0 && byte.is_ascii() => plain,
        Some(_) => {
            let end = rest[plain..].find(|c| Kind::of(c) != kind);
            end.map_or(rest.len(), |end| plain + end)
        }
    }
}

/// Tells whether `c` is a Chinese character. Source: Unicode blocks CJK Unified Ideographs,
/// its extensions A to H, and the compatibility ideographs.
#[must_use]
pub fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{323AF}' | '々' | '〇')
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Han,
    Unspaced,
    Other,
}

impl Kind {
    fn of(c: char) -> Self {
        if c.is_ascii() {
            return if c.is_ascii_alphanumeric() { Self::Word } else { Self::Other };
        }
        match c {
            _ if is_han(c) => Self::Han,
            '\u{3040}'..='\u{30FF}'
            | '\u{0E00}'..='\u{0EFF}'
            | '\u{1780}'..='\u{17FF}'
            | '\u{1000}'..='\u{109F}' => Self::Unspaced,
            _ if c.is_alphanumeric() => Self::Word,
            // Marks that stand on letters, as in Hindi and Arabic, do not end a word.
            '\u{0300}'..='\u{036F}' | '\u{064B}'..='\u{065F}' | '\u{0900}'..='\u{0DFF}' => {
                Self::Word
            }
            _ => Self::Other,
        }
    }
}

fn push_shingles<'a>(words: &mut Vec<&'a str>, run: &'a str) {
    let mut starts: Vec<usize> = run.char_indices().map(|(at, _)| at).collect();
    starts.push(run.len());
    if starts.len() <= SHINGLE_CHARS {
        words.push(run);
        return;
    }
    words.extend(starts.windows(SHINGLE_CHARS + 1).map(|w| &run[w[0]..w[SHINGLE_CHARS]]));
}

/// Inverse document frequencies: jieba's built-in table, its median for unknown words, and zero
/// for jieba's stop words.
///
/// Source: jieba's `idf.txt`; the median rule is that of the text on simhash engineering.
#[derive(Debug)]
pub struct Idf(());

/// Median of the table: what a word has that it does not know.
const MEDIAN_IDF: f32 = 11.954_767;

/// jieba's table, loaded at the first Chinese word: a crawl of other scripts never needs it.
static TABLE: LazyLock<TfIdf> = LazyLock::new(|| {
    let config = KeywordExtractConfig::builder().min_keyword_length(1).use_hmm(false).build();
    let mut table = TfIdf::default();
    *table.config_mut() = config;
    table
});

thread_local! {
    static CACHE: RefCell<HashMap<u64, f32>> = RefCell::default();
}

impl Idf {
    /// Returns the built-in table.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &Self(())
    }

    /// Returns the IDF of a normalised word: the table's median if it does not have the word,
    /// 0 if it is a usual word of its language. The table is of Chinese words: all others have
    /// the median.
    #[must_use]
    pub fn of(&self, word: &str) -> f32 {
        if is_usual(word) {
            return 0.0;
        }
        if word.is_ascii() || !word.chars().any(is_han) {
            return MEDIAN_IDF;
        }
        let key = xxh3_64(word.as_bytes());
        if let Some(idf) = CACHE.with_borrow(|cache| cache.get(&key).copied()) {
            return idf;
        }
        let idf = sole_weight(word).unwrap_or(MEDIAN_IDF);
        CACHE.with_borrow_mut(|cache| {
            if cache.len() >= IDF_CACHE_MAX {
                cache.clear();
            }
            cache.insert(key, idf);
        });
        idf
    }
}

/// The table can only be asked for the keywords of a text. A text of one word has a term
/// frequency of 1, so that the weight of its only keyword is that word's IDF.
fn sole_weight(word: &str) -> Option<f32> {
    match TABLE.extract_keywords(&JIEBA, word, 2, Vec::new()).as_slice() {
        [only] if only.keyword == word => Some(only.weight as f32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_that_of_the_table() {
        // A word that no table has weighs the median.
        let unknown = sole_weight("zzqx").unwrap();
        assert!((unknown - MEDIAN_IDF).abs() < 1e-5, "{unknown}");
    }

    #[test]
    fn rare_words_weigh_more_than_usual_ones() {
        let idf = Idf::built_in();
        assert!(idf.of("去重") >= idf.of("系统") && idf.of("系统") > idf.of("的"));
        assert!((idf.of("unheard") - MEDIAN_IDF).abs() < f32::EPSILON);
        assert!(idf.of("the").abs() < f32::EPSILON);
    }
}
