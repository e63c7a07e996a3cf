//! The language of a text.

use crate::text::{USUAL_WORDS, is_han};

/// Characters that are looked at.
const CHARS_MAX: usize = 300;

/// Letters that a text must have before statistics are believed.
const LETTERS_MIN: usize = 40;

/// Returns the language of a text (ISO 639-1): by its script where that tells, by statistics
/// elsewhere, and as the page declares it if the text is too short for either.
pub(super) fn of(text: &str, declared: Option<&str>) -> Option<String> {
    let sample: String = text.chars().take(CHARS_MAX).collect();
    let count = |is: fn(char) -> bool| sample.chars().filter(|c| is(*c)).count();
    let letters = count(char::is_alphabetic);
    let han = count(is_han);
    let kana = count(|c| matches!(c, '\u{3040}'..='\u{30FF}'));
    let hangul = count(|c| matches!(c, '\u{AC00}'..='\u{D7AF}'));
    let share = |part: usize, of: usize| part * 10 >= of && part > 0;
    let by_script = if letters == 0 {
        None
    } else if share(hangul, letters * 3) {
        Some("ko")
    } else if share(kana, letters) {
        Some("ja")
    } else if share(han, letters * 3) {
        Some("zh")
    } else {
        None
    };
    if let Some(language) = by_script {
        return Some(language.to_owned());
    }
    if let Some(language) = by_usual_words(text) {
        return Some(language.to_owned());
    }
    if letters >= LETTERS_MIN
        && let Some(found) = whatlang::detect(&sample)
        && found.is_reliable()
    {
        return Some(two_letters(found.lang().code()).to_owned());
    }
    let declared = declared?.trim().get(..2)?.to_ascii_lowercase();
    declared.bytes().all(|byte| byte.is_ascii_lowercase()).then_some(declared)
}

/// Words that are looked at for usual ones.
const WORDS_MAX: usize = 300;

/// Returns the language whose usual words make up a twelfth of the text, and twice as much as
/// those of any other: a quick answer for most pages, so that statistics are for the others.
fn by_usual_words(text: &str) -> Option<&'static str> {
    let mut counts = [0usize; USUAL_WORDS.len()];
    let mut words = 0;
    for word in text.split_whitespace().take(WORDS_MAX) {
        words += 1;
        for (count, (_, usual)) in counts.iter_mut().zip(USUAL_WORDS) {
            *count += usize::from(usual.contains(&word));
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
