//! Words of any script.

use std::sync::LazyLock;

use super::Tokens;
use super::tokens::is_letter;

/// Characters of a shingle in scripts that are written without blanks and are not Chinese.
pub(super) const SHINGLE_CHARS: usize = 3;

/// Splits a normalised text into words, in order.
///
/// Runs of Han go through jieba; runs of other scripts that are written without blanks (kana,
/// Thai, Lao, Khmer, Burmese), which jieba cannot serve, become overlapping character 3-grams;
/// everything else is split at characters that are neither letter nor digit. Punctuation is
/// dropped. Cost: about 40 MB/s, for Han about 8 MB/s.
#[must_use]
pub fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::with_capacity(text.len() / 6);
    Tokens::of(text).words(|word, _| words.push(word));
    words
}

/// Where the run of characters of one kind at the start of `rest` ends.
pub(super) fn run_end(rest: &str, kind: CharKind) -> usize {
    // Most runs are ASCII words, which need no decoding.
    let plain = match kind {
        CharKind::Word => rest.bytes().take_while(|byte| is_letter(*byte)).count(),
        _ => 0,
    };
    match rest.as_bytes().get(plain) {
        None => plain,
        Some(byte) if plain > 0 && byte.is_ascii() => plain,
        Some(_) => {
            let end = rest[plain..].find(|c| CharKind::of(c) != kind);
            end.map_or(rest.len(), |end| plain + end)
        }
    }
}

/// Tells whether `c` is a Chinese character. Source: Unicode blocks CJK Unified Ideographs,
/// its extensions A to H, and the compatibility ideographs.
#[must_use]
pub(crate) fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{323AF}' | '々' | '〇')
}

/// One bit for each character of the basic plane: whether it is a letter or a number.
static ALPHANUMERIC: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut bits = vec![0; 1 << 10];
    for c in (0..1 << 16).filter_map(char::from_u32).filter(|c| c.is_alphanumeric()) {
        bits[c as usize >> 6] |= 1 << (c as usize & 63);
    }
    bits
});

/// Does the same as [`char::is_alphanumeric`], which searches its tables for what is not ASCII.
#[must_use]
pub(crate) fn is_alphanumeric(c: char) -> bool {
    match ALPHANUMERIC.get(c as usize >> 6) {
        Some(bits) => bits >> (c as usize & 63) & 1 == 1,
        None => c.is_alphanumeric(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CharKind {
    Word,
    Han,
    Unspaced,
    Other,
}

impl CharKind {
    pub(super) fn of(c: char) -> Self {
        if c.is_ascii() {
            return if c.is_ascii_alphanumeric() { Self::Word } else { Self::Other };
        }
        match c {
            _ if is_han(c) => Self::Han,
            '\u{3040}'..='\u{30FF}'
            | '\u{0E00}'..='\u{0EFF}'
            | '\u{1780}'..='\u{17FF}'
            | '\u{1000}'..='\u{109F}' => Self::Unspaced,
            _ if is_alphanumeric(c) => Self::Word,
            // The dandas end a sentence of Hindi, and stand in the middle of its marks.
            '\u{0964}' | '\u{0965}' => Self::Other,
            // Marks that stand on letters, as in Hindi and Arabic, do not end a word.
            '\u{0300}'..='\u{036F}' | '\u{064B}'..='\u{065F}' | '\u{0900}'..='\u{0DFF}' => {
                Self::Word
            }
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_numbers_are_those_of_the_standard_library() {
        let all = (0..=0x2_FFFF).filter_map(char::from_u32);
        let others: String = all.filter(|c| is_alphanumeric(*c) != c.is_alphanumeric()).collect();
        assert_eq!(others, "");
    }
}
