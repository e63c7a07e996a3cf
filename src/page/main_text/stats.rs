//! How much text there is, and of what make.

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

    /// Adds an ASCII text: all classes are counted at once, in the bytes of one number.
    fn add_ascii(&mut self, text: &[u8]) {
        // 1 within a word, of which each byte but white space is part that follows a letter.
        let mut in_word = 0;
        for part in text.chunks(usize::from(u8::MAX)) {
            let mut counts = 0u64;
            let mut words = 0;
            for byte in part {
                let of = &BYTES[usize::from(*byte)];
                counts += of.count;
                words += of.letter & !in_word;
                in_word = of.letter | in_word & of.not_space;
            }
            self.words += words;
            let counts = counts.to_le_bytes();
            let count = |class: AsciiClass| u32::from(counts[class as usize]);
            self.weight += LATIN * (part.len() as u32 - count(AsciiClass::Space));
            self.capitals += count(AsciiClass::Capital);
            self.digits += count(AsciiClass::Digit);
            self.commas += count(AsciiClass::Comma);
            self.stops += count(AsciiClass::Stop);
            self.bars += count(AsciiClass::Bar);
            self.marks += count(AsciiClass::Mark);
        }
    }
}

/// What a byte adds to the counts.
#[derive(Clone, Copy)]
struct CountedByte {
    /// One, in the byte of its class.
    count: u64,
    /// 1 for a letter or digit.
    letter: u32,
    /// 1 for all but white space.
    not_space: u32,
}

const BYTES: [CountedByte; 256] = {
    let mut bytes = [CountedByte { count: 0, letter: 0, not_space: 1 }; 256];
    let mut at = 0;
    while at < 256 {
        let class = CLASSES[at & 0x7F];
        bytes[at].count = 1 << (class as u32 * 8);
        bytes[at].letter = (at as u8 & 0x7F).is_ascii_alphanumeric() as u32;
        bytes[at].not_space = !matches!(class, AsciiClass::Space) as u32;
        at += 1;
    }
    bytes
};

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
