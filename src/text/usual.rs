//! Words without which no longer text of a language gets by: they tell the language of a text,
//! and nothing of what it is about.

use std::sync::LazyLock;

use jieba_rs::DEFAULT_STOP_WORDS;
use xxhash_rust::xxh3::xxh3_64;

/// The usual words of some languages that are written with Latin letters (ISO 639-1).
pub(crate) const USUAL_WORDS: [(&str, &[&str]); 8] = [
    (
        "en",
        &[
            "the", "of", "and", "is", "that", "for", "with", "this", "are", "was", "by", "from",
            "he", "his", "she", "her", "had", "has", "have", "but", "they", "were", "their",
            "which", "would", "there", "been", "when", "who", "will", "more", "if", "its", "into",
            "than", "other", "some", "could", "these", "about",
        ],
    ),
    ("de", &["der", "und", "die", "das", "ist", "nicht", "mit", "auf", "eine", "ein", "zu", "von"]),
    ("fr", &["les", "des", "est", "et", "une", "dans", "pour", "qui", "pas", "sur", "du", "au"]),
    ("es", &["los", "el", "las", "por", "una", "con", "para", "del", "como", "más", "y", "es"]),
    ("it", &["il", "di", "che", "della", "sono", "gli", "nel", "alla", "più", "anche", "è"]),
    ("pt", &["os", "uma", "não", "dos", "mais", "foi", "ao", "pela", "são", "em", "na", "da"]),
    ("nl", &["het", "een", "van", "niet", "zijn", "voor", "met", "aan", "ook", "maar", "bij"]),
    ("pl", &["się", "nie", "jest", "że", "oraz", "dla", "przez", "ale", "jak", "po", "od", "tym"]),
];

/// The [`xxh3_64`] of each of them, and of jieba's stop words, sorted.
static HASHES: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let own = USUAL_WORDS.iter().flat_map(|(_, words)| words.iter().copied());
    let all = own.chain(DEFAULT_STOP_WORDS.iter().map(String::as_str));
    let mut hashes: Vec<u64> = all.map(|word| xxh3_64(word.as_bytes())).collect();
    hashes.sort_unstable();
    hashes
});

/// One bit for each value of the lowest 16 bits of a hash in [`HASHES`]: most words are told apart
/// by a look at it.
static FILTER: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut bits = vec![0; 1 << 10];
    for hash in HASHES.iter() {
        bits[(hash >> 6 & 0x3FF) as usize] |= 1u64 << (hash & 63);
    }
    bits
});

/// Tells whether a normalised word, given by its hash, is a usual one of any of the languages, or
/// one of jieba's stop words.
pub(super) fn is_usual(hash: u64) -> bool {
    FILTER[(hash >> 6 & 0x3FF) as usize] >> (hash & 63) & 1 == 1
        && HASHES.binary_search(&hash).is_ok()
}
