//! The rules of Gopher: what a text is like, and what it repeats.
//!
//! Source: Rae et al., Scaling Language Models: Methods, Analysis & Insights from Training Gopher
//! (2021), table A1 and section A.1.1; in the form of datatrove (Apache-2.0).

use super::classes::Class;
use super::lines::{chars, is_blank, share, split, trim};
use super::words::{Repeated, Script, Words};
use super::{Limits, Reason};

/// Words of which a text in English has some.
const USUAL: [&str; 8] = ["the", "be", "to", "of", "and", "that", "have", "with"];

/// The same in Chinese, each cut as a word by the dictionary; of both forms of writing.
const USUAL_CHINESE: [&str; 16] = [
    "的", "了", "在", "是", "和", "不", "也", "有", "与", "对", "就", "为", "這", "與", "對", "為",
];

/// Lengths of the runs whose most frequent one is looked for.
const FREQUENT: usize = 2;

/// Lengths of the runs that are looked for again.
const REPEATED: usize = 5;

/// Says what speaks against a text.
pub(super) fn quality(
    text: &str,
    words: &Words<'_>,
    script: Script,
    limits: &Limits,
) -> Result<(), Reason> {
    let is_word = |word: &&&str| word.chars().any(|c| !Class::Symbol.has(c));
    let (mut count, mut length) = (0, 0);
    for word in words.all.iter().filter(is_word) {
        count += 1;
        length += chars(word);
    }
    if count < limits.gopher_words_min {
        return Err(Reason::GopherShort);
    }
    if limits.gopher_words_max > 0 && count > limits.gopher_words_max {
        return Err(Reason::GopherLong);
    }
    let average = share(length, count);
    if average < limits.gopher_word_length_min {
        return Err(Reason::GopherShortWords);
    }
    if average > limits.gopher_word_length_max {
        return Err(Reason::GopherLongWords);
    }
    let all = words.all.len();
    if share(text.matches('#').count(), all) > limits.gopher_symbols_max {
        return Err(Reason::GopherHashes);
    }
    let ellipses = text.matches("...").count() + text.matches('…').count();
    if share(ellipses, all) > limits.gopher_symbols_max {
        return Err(Reason::GopherEllipses);
    }
    let (mut lines, mut bullets, mut endless) = (0, 0, 0);
    for line in split(text) {
        lines += 1;
        bullets += usize::from(line.trim_start_matches(is_blank).starts_with(['•', '-']));
        let end = line.trim_end_matches(is_blank);
        endless += usize::from(end.ends_with("...") || end.ends_with('…'));
    }
    if share(bullets, lines) > limits.gopher_bullet_lines_max {
        return Err(Reason::GopherBullets);
    }
    if share(endless, lines) > limits.gopher_ellipsis_lines_max {
        return Err(Reason::GopherEndEllipses);
    }
    let lettered = words.all.iter().filter(|word| word.chars().any(|c| Class::Letter.has(c)));
    if share(lettered.count(), all) < limits.gopher_letter_words_min {
        return Err(Reason::GopherFewLetters);
    }
    let usual: &[&str] = if script == Script::Chinese { &USUAL_CHINESE } else { &USUAL };
    let mut found: Vec<&str> =
        words.all.iter().copied().filter(|word| usual.contains(word)).collect();
    found.sort_unstable();
    found.dedup();
    if found.len() < limits.gopher_usual_words_min {
        return Err(Reason::GopherFewUsualWords);
    }
    Ok(())
}

/// Says which lines or paragraphs are too many times in a text.
pub(super) fn lines(text: &str, limits: &Limits) -> Result<(), Reason> {
    let all = chars(text);
    if all == 0 {
        return Err(Reason::Empty);
    }
    let paragraphs = Repeated::among(pieces(trim(text), 2));
    if share(paragraphs.elements, paragraphs.of) > limits.repeated_paragraphs_max {
        return Err(Reason::RepeatedParagraphs);
    }
    if share(paragraphs.chars, all) > limits.repeated_paragraph_chars_max {
        return Err(Reason::RepeatedParagraphChars);
    }
    let lines = Repeated::among(pieces(text, 1));
    if share(lines.elements, lines.of) > limits.repeated_lines_max {
        return Err(Reason::RepeatedLines);
    }
    if share(lines.chars, all) > limits.repeated_line_chars_max {
        return Err(Reason::RepeatedLineChars);
    }
    Ok(())
}

/// Says which runs of words are too many times in a text.
pub(super) fn runs(text: &str, words: &Words<'_>, limits: &Limits) -> Result<(), Reason> {
    let all = chars(text);
    for (length, most) in (FREQUENT..).zip(&limits.frequent_runs_max) {
        let chars = words.most_frequent_run(length);
        if chars.is_some_and(|chars| share(chars, all) > *most) {
            return Err(Reason::FrequentRun(length as u8));
        }
    }
    let joined = words.joined();
    for (length, most) in (REPEATED..).zip(&limits.repeated_runs_max) {
        if share(words.repeated_run_chars(&joined, length), all) > *most {
            return Err(Reason::RepeatedRuns(length as u8));
        }
    }
    Ok(())
}

/// What stands between runs of line feeds of a length and more.
fn pieces(text: &str, feeds: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut from = 0;
        while let Some(at) = text[from..].find('\n').map(|at| from + at) {
            let run = text[at..].bytes().take_while(|byte| *byte == b'\n').count();
            if run >= feeds {
                rest = Some(&text[at + run..]);
                return Some(&text[..at]);
            }
            from = at + run;
        }
        rest = None;
        Some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stand_between_line_feeds() {
        let of = |feeds| pieces("a\nb\n\n\nc\n", feeds).collect::<Vec<_>>();
        assert_eq!(of(1), ["a", "b", "c", ""]);
        assert_eq!(of(2), ["a\nb", "c\n"]);
    }
}
