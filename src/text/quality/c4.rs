//! The rules of C4: lines that are no sentences go, and texts of too few go whole.
//!
//! Source: Raffel et al., Exploring the Limits of Transfer Learning with a Unified Text-to-Text
//! Transformer (2020), section 2.2; in the form of datatrove (Apache-2.0).

use std::borrow::Cow;

use super::classes::Class;
use super::lines::{chars, split, trim, words};
use super::words::Script;
use super::{Limits, Reason, english};

/// Ends of lines that are whole.
const ENDS: [char; 5] = ['.', '?', '!', '"', '\''];

/// The same in Chinese, with the closing signs that may stand behind.
const ENDS_CHINESE: [char; 14] =
    ['。', '？', '！', '；', '”', '’', '…', '」', '』', '）', '.', '?', '!', '"'];

/// Lines with these tell of the site, and not of the page.
const POLICIES: [&str; 6] = [
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
];

/// Returns the lines that are kept, or says what speaks against the text.
pub(super) fn quality(text: &str, script: Script, limits: &Limits) -> Result<String, Reason> {
    let is_chinese = script == Script::Chinese;
    let ends: &[char] = if is_chinese { &ENDS_CHINESE } else { &ENDS };
    let (mut kept, mut sentences) = (Vec::new(), 0);
    for line in split(text).map(trim) {
        let (mut count, mut longest) = (0, 0);
        for word in words(line) {
            count +=
                if is_chinese { word.chars().filter(|c| Class::Letter.has(*c)).count() } else { 1 };
            longest = longest.max(chars(word));
        }
        if longest > limits.c4_word_length_max {
            continue;
        }
        let line = without_citations(line);
        let is_open = !is_chinese && line.ends_with("...");
        if limits.c4_whole_lines && (!line.ends_with(ends) || is_open) {
            continue;
        }
        if count < limits.c4_line_words_min {
            continue;
        }
        let small = line.to_lowercase();
        if small.contains("lorem ipsum") {
            return Err(Reason::C4LoremIpsum);
        }
        if small.contains("javascript") {
            continue;
        }
        if line.contains('{') {
            return Err(Reason::C4CurlyBracket);
        }
        if POLICIES.iter().any(|policy| small.contains(policy)) {
            continue;
        }
        sentences += if is_chinese { chinese_sentences(&line) } else { english::sentences(&line) };
        kept.push(line);
    }
    if sentences < limits.c4_sentences_min {
        return Err(Reason::C4FewSentences);
    }
    Ok(trim(&kept.join("\n")).to_owned())
}

/// Ends of sentences with something behind the last one.
fn chinese_sentences(line: &str) -> usize {
    let sentences = line.split(['。', '！', '？', '!', '?', '…']);
    sentences.filter(|sentence| sentence.chars().any(|c| Class::Letter.has(c))).count()
}

/// Takes out `[1]`, `[edit]` and `[citation needed]`.
fn without_citations(line: &str) -> Cow<'_, str> {
    if !line.contains('[') {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('[') {
        out.push_str(&rest[..at]);
        let inside = &rest[at + 1..];
        let words = ["edit]", "citation needed]"].into_iter();
        let digits = inside.trim_start_matches(char::is_numeric);
        let after = digits
            .strip_prefix(']')
            .or_else(|| words.into_iter().find_map(|word| inside.strip_prefix(word)));
        if after.is_none() {
            out.push('[');
        }
        rest = after.unwrap_or(inside);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_go_and_other_brackets_stay() {
        let line = "So[1] it[] was[edit] [sic] and[citation needed] [12a].";
        assert_eq!(without_citations(line), "So it was [sic] and [12a].");
    }
}
