//! The language of a text.

use std::str::SplitWhitespace;
use std::sync::LazyLock;

use super::{USUAL_WORDS, is_han};

/// Characters that are looked at.
const CHARS_MAX: usize = 300;

/// Letters that a text must have before statistics are believed.
const LETTERS_MIN: usize = 40;

/// Returns the language of a text (ISO 639-1): by its script where that tells, by statistics
/// elsewhere, and as the page declares it if the text is too short for either.
pub(crate) fn language_of(text: &str, declared: Option<&str>) -> Option<String> {
    let sample = start(text, CHARS_MAX);
    let scripts = Scripts::of(sample);
    let letters = scripts.letters;
    if let Some((language, _)) = scripts.language() {
        return Some(language.to_owned());
    }
    if let Some(language) = by_usual_words(text) {
        return Some(language.to_owned());
    }
    if letters >= LETTERS_MIN
        && let Some(found) = whatlang::detect(sample)
        && found.is_reliable()
    {
        return Some(two_letters(found.lang().code()).to_owned());
    }
    let declared = declared?.trim().get(..2)?.to_ascii_lowercase();
    declared.bytes().all(|byte| byte.is_ascii_lowercase()).then_some(declared)
}

/// Characters that are looked at where certainty counts.
const SURE_CHARS_MAX: usize = 4_000;

/// A language, and how certain it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Guess {
    /// The language (ISO 639-1).
    pub(crate) language: String,
    /// From 0 to 1: the share of the letters that its script has, or what the statistics say.
    pub(crate) certainty: f32,
}

/// Guesses the language of a text, with the certainty of that; none of a text without letters.
pub(crate) fn guess_language(text: &str) -> Option<Guess> {
    let sample = start(text, SURE_CHARS_MAX);
    let scripts = Scripts::of(sample);
    if let Some((language, letters)) = scripts.language() {
        let certainty = letters as f32 / scripts.letters as f32;
        return Some(Guess { language: language.to_owned(), certainty });
    }
    let found = whatlang::detect(sample)?;
    let language = two_letters(found.lang().code()).to_owned();
    Some(Guess { language, certainty: found.confidence() as f32 })
}

/// The first characters of a text.
fn start(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

/// Letters of a text by scripts that tell the language.
struct Scripts {
    letters: usize,
    han: usize,
    kana: usize,
    hangul: usize,
}

impl Scripts {
    fn of(text: &str) -> Self {
        let mut scripts = Self { letters: 0, han: 0, kana: 0, hangul: 0 };
        for c in text.chars() {
            scripts.letters += usize::from(c.is_alphabetic());
            scripts.han += usize::from(is_han(c));
            scripts.kana += usize::from(matches!(c, '\u{3040}'..='\u{30FF}'));
            scripts.hangul += usize::from(matches!(c, '\u{AC00}'..='\u{D7AF}'));
        }
        scripts
    }

    /// The language that is told by its script, and the letters of that.
    fn language(&self) -> Option<(&'static str, usize)> {
        let Self { letters, han, kana, hangul } = *self;
        let share = |part: usize, of: usize| part * 10 >= of && part > 0;
        if letters == 0 {
            None
        } else if share(hangul, letters * 3) {
            Some(("ko", hangul))
        } else if share(kana, letters) {
            Some(("ja", (kana + han).min(letters)))
        } else if share(han, letters * 3) {
            Some(("zh", han.min(letters)))
        } else {
            None
        }
    }
}

/// Words that are looked at for usual ones.
const WORDS_MAX: usize = 300;

/// The words of a text as [`str::split_whitespace`] has them, faster as long as it is ASCII.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let is_space = |byte: u8| matches!(byte, b'\t'..=b'\r' | b' ');
    let (mut rest, mut others) = (text, None::<SplitWhitespace<'_>>);
    std::iter::from_fn(move || {
        if let Some(others) = &mut others {
            return others.next();
        }
        let start = rest.bytes().position(|byte| !is_space(byte))?;
        let end = rest[start..].bytes().position(|byte| is_space(byte) || !byte.is_ascii());
        let end = end.map_or(rest.len(), |end| start + end);
        if rest.as_bytes().get(end).is_some_and(|byte| !byte.is_ascii()) {
            let others = others.insert(rest.split_whitespace());
            return others.next();
        }
        let word = &rest[start..end];
        rest = &rest[end..];
        Some(word)
    })
}

/// All usual words, each with the number of its language, by their [`ends`].
static BY_ENDS: LazyLock<Vec<Vec<(usize, &str)>>> = LazyLock::new(|| {
    let mut all = vec![Vec::new(); 1 << 10];
    for (language, (_, usual)) in USUAL_WORDS.iter().enumerate() {
        for word in *usual {
            let alike = &mut all[ends(word)];
            if !alike.contains(&(language, *word)) {
                alike.push((language, *word));
            }
        }
    }
    all
});

/// A number that the length, the first and the last byte of a word make: few words share it.
fn ends(word: &str) -> usize {
    let [first, last] =
        [word.bytes().next(), word.bytes().next_back()].map(Option::unwrap_or_default);
    (usize::from(first) << 5 ^ usize::from(last) ^ word.len() << 8) & 0x3FF
}

/// Returns the language whose usual words make up a twelfth of the text, and twice as much as
/// those of any other: a quick answer for most pages, so that statistics are for the others.
fn by_usual_words(text: &str) -> Option<&'static str> {
    let mut counts = [0usize; USUAL_WORDS.len()];
    let mut words = 0;
    for word in words_of(text).take(WORDS_MAX) {
        words += 1;
        for (language, usual) in &BY_ENDS[ends(word)] {
            counts[*language] += usize::from(*usual == word);
        }
    }
    let (best, most) = counts.iter().enumerate().max_by_key(|(_, count)| **count)?;
    let second = counts.iter().enumerate().filter(|(at, _)| *at != best).map(|(_, c)| *c).max()?;
    (*most >= 5 && most * 12 >= words && *most >= second * 2).then_some(USUAL_WORDS[best].0)
}

/// ISO 639-3 and ISO 639-1 of the languages that the statistics know.
const TWO_LETTERS: [(&str, &str); 69] = [
    ("epo", "eo"),
    ("eng", "en"),
    ("rus", "ru"),
    ("cmn", "zh"),
    ("spa", "es"),
    ("por", "pt"),
    ("ita", "it"),
    ("ben", "bn"),
    ("fra", "fr"),
    ("deu", "de"),
    ("ukr", "uk"),
    ("kat", "ka"),
    ("ara", "ar"),
    ("hin", "hi"),
    ("jpn", "ja"),
    ("heb", "he"),
    ("yid", "yi"),
    ("pol", "pl"),
    ("amh", "am"),
    ("jav", "jv"),
    ("kor", "ko"),
    ("nob", "nb"),
    ("dan", "da"),
    ("swe", "sv"),
    ("fin", "fi"),
    ("tur", "tr"),
    ("nld", "nl"),
    ("hun", "hu"),
    ("ces", "cs"),
    ("ell", "el"),
    ("bul", "bg"),
    ("bel", "be"),
    ("mar", "mr"),
    ("kan", "kn"),
    ("ron", "ro"),
    ("slv", "sl"),
    ("hrv", "hr"),
    ("srp", "sr"),
    ("mkd", "mk"),
    ("lit", "lt"),
    ("lav", "lv"),
    ("est", "et"),
    ("tam", "ta"),
    ("vie", "vi"),
    ("urd", "ur"),
    ("tha", "th"),
    ("guj", "gu"),
    ("uzb", "uz"),
    ("pan", "pa"),
    ("aze", "az"),
    ("ind", "id"),
    ("tel", "te"),
    ("pes", "fa"),
    ("mal", "ml"),
    ("ori", "or"),
    ("mya", "my"),
    ("nep", "ne"),
    ("sin", "si"),
    ("khm", "km"),
    ("tuk", "tk"),
    ("aka", "ak"),
    ("zul", "zu"),
    ("sna", "sn"),
    ("afr", "af"),
    ("lat", "la"),
    ("slk", "sk"),
    ("cat", "ca"),
    ("tgl", "tl"),
    ("hye", "hy"),
];

fn two_letters(code: &str) -> &str {
    TWO_LETTERS.iter().find(|(three, _)| *three == code).map_or(code, |(_, two)| two)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn words_are_parted_as_by_the_standard_library(
            text in "[a-cé的\\u{3000}\\u{85}\\x0B\\x1C \t\r\n]{0,60}",
        ) {
            let words: Vec<&str> = words_of(&text).collect();
            proptest::prop_assert_eq!(words, text.split_whitespace().collect::<Vec<_>>());
        }
    }

    #[test]
    fn usual_words_tell_their_language() {
        let text = |words: &str| format!("{words} xyz ").repeat(20);
        for (language, usual) in USUAL_WORDS {
            let own = usual.iter().filter(|word| {
                USUAL_WORDS.iter().filter(|(_, others)| others.contains(word)).count() == 1
            });
            let own: Vec<&str> = own.copied().collect();
            assert_eq!(by_usual_words(&text(&own.join(" "))), Some(language));
        }
        assert_eq!(by_usual_words(&text("one two three")), None);
    }
}
