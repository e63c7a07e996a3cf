//! Sentences.

/// Splits a text at line breaks and at the marks that end a sentence, in any script. The marks
/// stay with the sentence before them; blanks around a sentence are dropped.
///
/// A full stop, `!` or `?` of Latin text ends a sentence only before white space, the end, or a
/// character that is not ASCII, so that `3.14` and `example.com` stay whole.
///
/// ```
/// use uniqcrawl::text::sentences;
///
/// let found: Vec<&str> = sentences("Pi is 3.14. Is it?\n海量文本。去重！").collect();
/// assert_eq!(found, ["Pi is 3.14.", "Is it?", "海量文本。", "去重！"]);
/// ```
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (sentence, after) = rest.split_at(sentence_end(rest));
            rest = after;
            let sentence = sentence.trim();
            if !sentence.is_empty() {
                return Some(sentence);
            }
        }
        None
    })
}

fn sentence_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let ends = match c {
            '\n' | '。' | '！' | '？' | '；' | '…' | '।' | '؟' | '۔' | '｡' => true,
            '.' | '!' | '?' | ';' => {
                bytes.get(end).is_none_or(|next| next.is_ascii_whitespace() || !next.is_ascii())
            }
            _ => false,
        };
        if ends {
            return end;
        }
    }
    text.len()
}
