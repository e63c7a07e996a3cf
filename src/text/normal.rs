//! The normal form in which texts are compared.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

use super::is_han;

/// How a text is brought into normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Normal {
    /// Traditional Chinese characters become simplified ones.
    pub simplify: bool,
}

impl Default for Normal {
    fn default() -> Self {
        Self { simplify: true }
    }
}

/// First and last character of the block CJK Unified Ideographs.
const UNIFIED: std::ops::RangeInclusive<char> = '\u{4E00}'..='\u{9FFF}';

/// The simplified form of each character of [`UNIFIED`].
static SIMPLIFIED: LazyLock<Vec<char>> = LazyLock::new(|| {
    UNIFIED
        .map(|c| fast2s::convert(c.encode_utf8(&mut [0; 4])).chars().next().unwrap_or(c))
        .collect()
});

/// Returns the simplified form of a Chinese character; any other character as it is.
///
/// Only single characters are looked at: 乾 is 干 in 乾燥 and stays 乾 in 乾隆; for comparing it is
/// enough that both spellings of one text come out the same.
#[must_use]
pub fn simplified(c: char) -> char {
    if UNIFIED.contains(&c) { SIMPLIFIED[c as usize - *UNIFIED.start() as usize] } else { c }
}

/// Brings a text into the form in which texts are compared: Unicode NFKC (full-width forms become
/// half-width), lower case, simplified Chinese, runs of white space as one blank, none at the
/// ends. Zero-width characters and soft hyphens are dropped.
///
/// ```
/// use uniqcrawl::text::normalize;
///
/// assert_eq!(normalize(" Ｈｅｌｌｏ\u{3000}\n World "), "hello world");
/// assert_eq!(normalize("數據庫"), normalize("数据库"));
/// ```
#[must_use]
pub fn normalize(text: &str) -> String {
    normalize_as(text, Normal::default()).replace('\n', " ")
}

/// Does the same, but a run of white space with a line break in it becomes one line break, so that
/// sentences can be told.
#[must_use]
pub fn normalize_as(text: &str, normal: Normal) -> String {
    let mut out = Collapsed { text: String::with_capacity(text.len()), gap: None };
    let mut rest = text;
    while !rest.is_empty() {
        let plain = ascii_prefix(rest.as_bytes());
        // A letter with a mark after it is one character in the normal form.
        let plain = if plain < rest.len() { plain.saturating_sub(1) } else { plain };
        out.push_ascii(&rest[..plain]);
        rest = &rest[plain..];
        let Some(first) = rest.chars().next() else { break };
        if UNIFIED.contains(&first) {
            let end = rest.find(|c| !UNIFIED.contains(&c)).unwrap_or(rest.len());
            out.push_unified(&rest[..end], normal);
            rest = &rest[end..];
            continue;
        }
        let odd = rest.char_indices().skip(1).find(|(_, c)| c.is_ascii() || UNIFIED.contains(c));
        let (run, after) = rest.split_at(odd.map_or(rest.len(), |(at, _)| at));
        let alone = run.len() == first.len_utf8();
        match sole_form(first).filter(|_| alone) {
            Some(c) => out.push(c),
            None => forms(run, normal).for_each(|c| out.push(c)),
        }
        rest = after;
    }
    out.text
}

/// The normal form of a run of characters, with its white space.
fn forms(run: &str, normal: Normal) -> impl Iterator<Item = char> {
    let simplify = move |c| if normal.simplify && is_han(c) { simplified(c) } else { c };
    run.nfkc().map(simplify).flat_map(char::to_lowercase)
}

/// Ranges with the usual marks of Chinese: characters with which simplification does nothing.
const MARKS: [std::ops::Range<u32>; 3] = [0x2000..0x2070, 0x3000..0x3030, 0xFF00..0xFF60];

/// The normal form of each of [`MARKS`] that stands alone; none if that is not one character.
static MARK_FORMS: LazyLock<[Vec<Option<char>>; 3]> = LazyLock::new(|| {
    let form = |code: u32| {
        let alone = char::from_u32(code)?.to_string();
        let mut alone = forms(&alone, Normal::default());
        alone.next().filter(|_| alone.next().is_none())
    };
    MARKS.map(|marks| marks.map(form).collect())
});

/// The normal form of a character that stands alone, if that is one character and known.
fn sole_form(c: char) -> Option<char> {
    if c.is_ascii() {
        return Some(c.to_ascii_lowercase());
    }
    let code = u32::from(c);
    let range = MARKS.iter().position(|marks| marks.contains(&code))?;
    MARK_FORMS[range][(code - MARKS[range].start) as usize]
}

/// A text in which white space is collapsed while it grows.
struct Collapsed {
    text: String,
    /// White space that was met since the last character.
    gap: Option<char>,
}

impl Collapsed {
    fn push(&mut self, c: char) {
        if c.is_whitespace() {
            let breaks = matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
            self.gap = if breaks { Some('\n') } else { self.gap.or(Some(' ')) };
        } else if !is_invisible(c) {
            self.close_gap();
            self.text.push(c);
        }
    }

    /// Adds characters of [`UNIFIED`].
    fn push_unified(&mut self, run: &str, normal: Normal) {
        self.close_gap();
        if normal.simplify {
            self.text.extend(run.chars().map(simplified));
        } else {
            self.text.push_str(run);
        }
    }

    fn push_ascii(&mut self, run: &str) {
        let mut rest = run;
        while !rest.is_empty() {
            // Words with single blanks between them are copied at once.
            let visible = rest[..tidy_prefix(rest.as_bytes())].trim_ascii_end().len();
            if visible > 0 {
                self.close_gap();
                let start = self.text.len();
                self.text.push_str(&rest[..visible]);
                self.text[start..].make_ascii_lowercase();
            } else {
                self.push(char::from(rest.as_bytes()[0]));
            }
            rest = &rest[visible.max(1)..];
        }
    }

    fn close_gap(&mut self) {
        if let Some(gap) = self.gap.take()
            && !self.text.is_empty()
        {
            self.text.push(gap);
        }
    }
}

/// Returns how many bytes at the start are visible ASCII with single blanks between: at least
/// all up to the first other byte or double blank, a blank at the end included.
pub(crate) fn tidy_prefix(bytes: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    let mut before = b' ';
    for word in bytes.chunks_exact(8) {
        let word = u64::from_le_bytes(*word.first_chunk().expect("eight bytes"));
        let control = word.wrapping_sub(EACH * 0x20) & !word & HIGH;
        let other = word ^ (EACH * 0x20);
        // The high bit of each byte that is a blank.
        let blanks = !(((other & !HIGH) + !HIGH) | other) & HIGH;
        let first = u64::from(before == b' ') << 7;
        if control | (blanks & (blanks << 8 | first)) != 0 {
            break;
        }
        before = (word >> 56) as u8;
        at += 8;
    }
    let rest = bytes[at..].iter().take_while(|byte| {
        let fits = **byte > b' ' || (**byte == b' ' && before > b' ');
        before = **byte;
        fits
    });
    at + rest.count()
}

/// Returns how many bytes at the start are ASCII.
fn ascii_prefix(bytes: &[u8]) -> usize {
    let words = bytes.chunks_exact(8);
    let plain = words.take_while(|word| {
        let word = u64::from_ne_bytes(*word.first_chunk().expect("eight bytes"));
        word & 0x8080_8080_8080_8080 == 0
    });
    let at = plain.count() * 8;
    at + bytes[at..].iter().take_while(|byte| byte.is_ascii()).count()
}

/// Zero-width characters and soft hyphens, which readers do not see.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{00AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD_TEXTS: &str = "[a-cA-C，“”…〈·！～ \n\u{3000}é\u{301}\u{30A}ＡＢ中國国體ﬁㄱ가각\u{11A8}ｶﾞ。\
                             \u{200B}\u{F92F}\u{AD}\u{85}]{0,40}";

    /// Long runs of ASCII, which are copied eight bytes at a time.
    const PLAIN_TEXTS: &str =
        "[a-cA-C]{0,9}([ \t\n\u{1}]{1,2}[a-cA-C]{1,12}){0,8}[ \n]{0,2}é?[ ab]{0,20}";

    /// The plain definition, without fast paths.
    fn model(text: &str) -> String {
        let chars = text.nfkc().flat_map(char::to_lowercase).filter(|c| !is_invisible(*c));
        let chars: String = chars.map(simplified).collect();
        chars.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    proptest::proptest! {
        #[test]
        fn fast_paths_change_nothing(text in ODD_TEXTS) {
            proptest::prop_assert_eq!(normalize(&text), model(&text));
        }

        #[test]
        fn fast_paths_change_nothing_in_plain_texts(text in PLAIN_TEXTS) {
            proptest::prop_assert_eq!(normalize(&text), model(&text));
        }
    }

    #[test]
    fn line_breaks_are_told_from_blanks() {
        let normal = Normal { simplify: false };
        assert_eq!(normalize_as(" A b \r\n\n C\u{2028}體 ", normal), "a b\nc\n體");
        assert_eq!(normalize_as("體", Normal::default()), "体");
        for lines in ["a\u{85}b", "a\rb", "a\u{2029}b", "a \n b"] {
            assert_eq!(normalize_as(lines, normal), "a\nb", "{lines:?}");
        }
    }

    #[test]
    fn what_readers_do_not_see_is_dropped() {
        for invisible in ['\u{AD}', '\u{200B}', '\u{200C}', '\u{200F}', '\u{2060}', '\u{FEFF}'] {
            assert_eq!(
                normalize(&format!("{invisible}wo{invisible}rd {invisible} two")),
                "word two"
            );
        }
    }
}
