//! Lines and blanks as Python has them, in which the rules were written.

/// Tells whether a character is blank: some control characters are there that are not elsewhere.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1C}'..='\u{1F}')
}

/// Cuts blanks off at both ends.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// The words between blanks.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_blank).filter(|word| !word.is_empty())
}

/// Lines, ended by any of the ends that there are. Behind the last end there is no line.
pub(super) fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let Some((end, c)) = text.char_indices().find(|(_, c)| is_end(*c)) else {
            rest = None;
            return Some(text);
        };
        let mut next = &text[end + c.len_utf8()..];
        if c == '\r' {
            next = next.strip_prefix('\n').unwrap_or(next);
        }
        rest = Some(next).filter(|next| !next.is_empty());
        Some(&text[..end])
    })
}

fn is_end(c: char) -> bool {
    let is_control = matches!(c, '\n'..='\r' | '\u{1C}'..='\u{1E}' | '\u{85}');
    is_control || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Characters of a text.
pub(super) fn chars(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// How large a part is of a whole, which is not 0.
pub(super) fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_python_ends_them() {
        let lines = |text| split(text).collect::<Vec<_>>();
        assert_eq!(lines("a\r\nb\n\nc\rd\u{2028}e\x1Ef\n"), ["a", "b", "", "c", "d", "e", "f"]);
        assert_eq!(lines(""), [""; 0]);
        assert_eq!(lines("\n"), [""]);
        assert_eq!(trim("\x1F a\u{A0}"), "a");
        assert_eq!(words(" a \x1Cb  ").collect::<Vec<_>>(), ["a", "b"]);
    }
}
