//! Text before it is compared: normal form, words, and how much of it there is.

mod base64;
mod usual;
mod words;

use unicode_normalization::UnicodeNormalization;

pub use base64::decode_base64;
pub use usual::{USUAL_WORDS, is_usual};
pub use words::{Idf, is_han, words};

/// Brings a text into the form in which texts are compared: Unicode NFKC (full-width forms become
/// half-width), lower case, runs of white space as one blank, none at the ends.
///
/// ```
/// assert_eq!(uniqcrawl::text::normalize(" Ｈｅｌｌｏ\u{3000}\n World "), "hello world");
/// ```
#[must_use]
pub fn normalize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    if text.is_ascii() {
        for word in text.split_ascii_whitespace() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(word);
        }
        out.make_ascii_lowercase();
    } else {
        push_collapsed(&mut out, text.nfkc().flat_map(char::to_lowercase));
    }
    out
}

fn push_collapsed(out: &mut String, chars: impl Iterator<Item = char>) {
    let mut blank = false;
    for c in chars {
        if c.is_whitespace() {
            blank = !out.is_empty();
        } else if !is_invisible(c) {
            if blank {
                out.push(' ');
                blank = false;
            }
            out.push(c);
        }
    }
}

/// Zero-width characters and soft hyphens, which readers do not see.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{00AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}')
}
