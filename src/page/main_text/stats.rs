//! How much text there is, and of what make.

use std::ops::Range;

/// Weight of one Latin character; a Chinese, Japanese or Korean one says about as much as 2.5.
const LATIN: u32 = 2;
/// Weight of one CJK character.
const CJK: u32 = 5;

/// Weight of as many Latin characters.
pub(super) const fn latin(chars: u32) -> u32 {
    chars * LATIN
}

/// Counts over a text, without its white space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stats {
    /// Weighted characters.
    pub weight: u32,
    /// Words; two CJK characters are about one.
    pub words: u32,
    /// Commas and their kind.
    pub commas: u32,
    /// Full stops and their kind.
    pub stops: u32,
    pub digits: u32,
    pub capitals: u32,
    /// Other marks.
    pub marks: u32,
    /// Bars, arrows and bullets, as menus and bylines have them.
    pub bars: u32,
    /// CJK characters.
    pub cjk: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AsciiClass {
    Space,
    Letter,
    Capital,
    Digit,
    Comma,
    Stop,
    Bar,
    Mark,
}

const CLASSES: [AsciiClass; 128] = {
    let mut classes = [AsciiClass::Mark; 128];
    let mut at = 0;
    while at < 128 {
        classes[at] = match at as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0C | 0 => AsciiClass::Space,
            b'a'..=b'z' => AsciiClass::Letter,
            b'A'..=b'Z' => AsciiClass::Capital,
            b'0'..=b'9' => AsciiClass::Digit,
            b',' | b';' => AsciiClass::Comma,
            b'.' | b'!' | b'?' => AsciiClass::Stop,
            b'|' | b'>' | b'<' | b'/' | b'*' | b'[' | b']' => AsciiClass::Bar,
            _ => AsciiClass::Mark,
        };
        at += 1;
    }
    classes
};

fn class(c: char) -> (AsciiClass, bool) {
    if c.is_ascii() {
        return (CLASSES[c as usize], false);
    }
    // The usual case in Chinese, of which none of the others is.
    if ('\u{3040}'..='\u{9FFF}').contains(&c) {
        return (AsciiClass::Letter, true);
    }
    match c {
        '，' | '、' | '；' | '：' | '،' | '؛' => (AsciiClass::Comma, false),
        '。' | '！' | '？' | '…' | '؟' | '।' => (AsciiClass::Stop, false),
        '»' | '›' | '•' | '·' | '▪' | '■' | '◆' | '●' | '→' | '▶' | '｜' | '│' => {
            (AsciiClass::Bar, false)
        }
        '\u{3000}' | '\u{A0}' | '\u{2000}'..='\u{200D}' | '\u{FEFF}' | '\u{AD}' => {
            (AsciiClass::Space, false)
        }
        '\u{2E80}'..='\u{2FFF}'
        | '\u{AC00}'..='\u{D7AF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' => (AsciiClass::Letter, true),
        '\u{2010}'..='\u{206F}' | '\u{3001}'..='\u{303F}' | '\u{FF01}'..='\u{FF0F}' => {
            (AsciiClass::Mark, false)
        }
        c if c.is_uppercase() => (AsciiClass::Capital, false),
        _ => (AsciiClass::Letter, false),
    }
}

impl Stats {
    /// Adds a text. Its words end with it.
    pub(super) fn add(&mut self, text: &str) {
        if text.is_ascii() {
            self.add_ascii(text.as_bytes());
        } else {
            self.add_chars(text);
        }
    }

    fn add_chars(&mut self, text: &str) {
        let mut in_word = false;
        for c in text.chars() {
            let (class, cjk) = class(c);
            if class == AsciiClass::Space {
                in_word = false;
                continue;
            }
            self.weight += if cjk { CJK } else { LATIN };
            match class {
                AsciiClass::Letter if cjk => {
                    self.cjk += 1;
                    self.words += self.cjk & 1;
                    in_word = false;
                }
                AsciiClass::Letter | AsciiClass::Capital | AsciiClass::Digit => {
                    self.words += u32::from(!in_word);
                    in_word = true;
                    self.capitals += u32::from(class == AsciiClass::Capital);
                    self.digits += u32::from(class == AsciiClass::Digit);
                }
                AsciiClass::Comma => self.commas += 1,
                AsciiClass::Stop => self.stops += 1,
                AsciiClass::Bar => self.bars += 1,
                AsciiClass::Mark | AsciiClass::Space => self.marks += 1,
            }
        }
    }

    /// Adds an ASCII text, some bytes at a time.
    fn add_ascii(&mut self, text: &[u8]) {
        let (blocks, rest) = text.as_chunks();
        let mut before = b' ';
        for (number, some) in blocks.chunks(usize::from(u8::MAX)).enumerate() {
            let mut counts = AsciiCounts::default();
            for (at, block) in some.iter().enumerate() {
                if counts.add(block, before) {
                    let start = (number * usize::from(u8::MAX) + at) * ASCII_BLOCK;
                    self.words += words_after_marks(text, start..start + ASCII_BLOCK);
                }
                before = block[ASCII_BLOCK - 1];
            }
            self.add_counts(&counts.sums(), some.len() * ASCII_BLOCK);
        }
        let start = text.len() - rest.len();
        let mut sums = [0; COUNTED];
        for byte in rest {
            let of = counted(*byte, before);
            sums.iter_mut().zip(of).for_each(|(sum, is)| *sum += u32::from(is));
            before = *byte;
        }
        self.words += words_after_marks(text, start..text.len());
        self.add_counts(&sums, rest.len());
    }

    fn add_counts(&mut self, sums: &[u32; COUNTED], bytes: usize) {
        let [spaces, letters, capitals, digits, commas, stops, bars, words] = *sums;
        self.weight += LATIN * (bytes as u32 - spaces);
        self.capitals += capitals;
        self.digits += digits;
        self.commas += commas;
        self.stops += stops;
        self.bars += bars;
        self.marks += bytes as u32 - spaces - letters - commas - stops - bars;
        self.words += words;
    }
}

/// Bytes that are counted at a time.
const ASCII_BLOCK: usize = 32;

/// What is counted of each byte.
const COUNTED: usize = 8;

/// Counts of each place in some blocks.
#[derive(Default)]
struct AsciiCounts([[u8; ASCII_BLOCK]; COUNTED]);

impl AsciiCounts {
    /// Adds a block, given with the byte before it; tells whether a letter stands after a mark.
    /// Without branches, so that the compiler makes vector code of it.
    fn add(&mut self, block: &[u8; ASCII_BLOCK], before: u8) -> bool {
        let mut shifted = [before; ASCII_BLOCK];
        shifted[1..].copy_from_slice(&block[..ASCII_BLOCK - 1]);
        let mut after_mark = 0;
        for at in 0..ASCII_BLOCK {
            let (byte, before) = (block[at], shifted[at]);
            for (counts, is) in self.0.iter_mut().zip(counted(byte, before)) {
                counts[at] += u8::from(is);
            }
            after_mark |= u8::from(is_letter(byte) & is_mark(before));
        }
        after_mark != 0
    }

    fn sums(&self) -> [u32; COUNTED] {
        self.0.map(|counts| counts.iter().map(|count| u32::from(*count)).sum())
    }
}

/// What a byte is: white space, letter or digit, capital, digit, comma, full stop, bar; and whether
/// a word begins with it for certain.
fn counted(byte: u8, before: u8) -> [bool; COUNTED] {
    [
        is_space(byte),
        is_letter(byte),
        byte.is_ascii_uppercase(),
        byte.is_ascii_digit(),
        (byte == b',') | (byte == b';'),
        (byte == b'.') | (byte == b'!') | (byte == b'?'),
        is_bar(byte),
        is_letter(byte) & is_space(before),
    ]
}

fn is_space(byte: u8) -> bool {
    (byte == b' ')
        | (byte == b'\t')
        | (byte == b'\n')
        | (byte == b'\r')
        | (byte == 0x0C)
        | (byte == 0)
}

fn is_letter(byte: u8) -> bool {
    (byte | 0x20).is_ascii_lowercase() | byte.is_ascii_digit()
}

fn is_bar(byte: u8) -> bool {
    (byte == b'|')
        | (byte == b'>')
        | (byte == b'<')
        | (byte == b'/')
        | (byte == b'*')
        | (byte == b'[')
        | (byte == b']')
}

/// Neither white space nor letter.
fn is_mark(byte: u8) -> bool {
    !is_letter(byte) & !is_space(byte)
}

/// Words in a part of a text that begin after a mark: the mark is not within a word.
fn words_after_marks(text: &[u8], part: Range<usize>) -> u32 {
    let begins = |at: &usize| {
        let before = text[..*at].iter().rev();
        is_letter(text[*at])
            && *at > 0
            && is_mark(text[*at - 1])
            && before.copied().find(|byte| !is_mark(*byte)).is_none_or(is_space)
    };
    part.filter(begins).count() as u32
}

/// Counts over a part of a page, from sums up to each place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub weight: u32,
    pub links: u32,
    pub commas: u32,
    pub stops: u32,
    pub words: u32,
    /// Weight of segments that read like prose.
    pub prose: u32,
}

impl Sum {
    pub(super) fn plus(self, more: Self) -> Self {
        Self {
            weight: self.weight.saturating_add(more.weight),
            links: self.links.saturating_add(more.links),
            commas: self.commas.saturating_add(more.commas),
            stops: self.stops.saturating_add(more.stops),
            words: self.words.saturating_add(more.words),
            prose: self.prose.saturating_add(more.prose),
        }
    }

    pub(super) fn minus(self, less: Self) -> Self {
        Self {
            weight: self.weight - less.weight,
            links: self.links - less.links,
            commas: self.commas - less.commas,
            stops: self.stops - less.stops,
            words: self.words - less.words,
            prose: self.prose - less.prose,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: &str = "[a-cA-C09 ,;.!?|><*/'\"\\[\\]\t\n\r\x0C\0\x0B()-]{0,200}";

    proptest::proptest! {
        #[test]
        fn ascii_is_counted_as_any_other_text(text in TEXTS, long in 0..20_000usize) {
            let text = if long % 7 == 0 { text.repeat(long / text.len().max(1)) } else { text };
            let (mut fast, mut plain) = (Stats::default(), Stats::default());
            fast.add_ascii(text.as_bytes());
            plain.add_chars(&text);
            proptest::prop_assert_eq!(fast, plain);
        }
    }
}
