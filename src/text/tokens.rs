//! One pass over a text that serves everything: words, characters, sentences.

use xxhash_rust::xxh3::xxh3_64;

use super::Segmenter;
use super::word_hash::EightBytes;
use super::words::{CharKind, SHINGLE_CHARS, run_end};

/// A word of a script with blanks, or one character of a script without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Where it begins in the text, in bytes.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
    /// It is one character of a script that is written without blanks.
    pub single: bool,
    /// It is Chinese.
    pub han: bool,
    /// Hash of its text.
    pub hash: u64,
}

/// The tokens of a normalised text, with its sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens<'a> {
    /// The text, of at most 4 GiB.
    pub text: &'a str,
    /// Its tokens, in order.
    pub all: Vec<Token>,
    /// For each sentence with tokens, the number of the token after its last one.
    pub sentence_ends: Vec<u32>,
}

/// How runs of Chinese are cut.
#[derive(Debug, Clone, Copy)]
pub enum Chinese<'s> {
    /// Into words.
    Words(&'s Segmenter),
    /// Into overlapping pairs of characters; a run of one character is itself. No dictionary.
    Pairs,
}

/// Characters of a [`Chinese::Pairs`].
const PAIR: usize = 2;

/// A text of this many times more tokens than Chinese characters has little Chinese.
const LITTLE: usize = 20;

/// What a byte of a text is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Other,
    Letter,
    /// Ends a sentence before white space, the end, or a character that is not ASCII.
    Stop,
    Line,
    Wide,
}

const CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => ByteClass::Letter,
            b'.' | b'!' | b'?' | b';' => ByteClass::Stop,
            b'\n' => ByteClass::Line,
            0x80.. => ByteClass::Wide,
            _ => ByteClass::Other,
        };
        byte += 1;
    }
    classes
};

/// Tells whether a byte is an ASCII letter or digit.
pub(super) fn is_letter(byte: u8) -> bool {
    CLASSES[byte as usize] == ByteClass::Letter
}

impl<'a> Tokens<'a> {
    /// Splits a normalised text. Cost: about 200 MB/s for ASCII.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        let text = &text[..text.floor_char_boundary(u32::MAX as usize)];
        let all = Vec::with_capacity(text.len() / 5);
        let mut tokens = Self { text, all, sentence_ends: Vec::new() };
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match CLASSES[*byte as usize] {
                ByteClass::Letter => at = tokens.push_word(at),
                ByteClass::Wide => at = tokens.push_wide(at),
                ByteClass::Line => {
                    tokens.end_sentence();
                    at += 1;
                }
                ByteClass::Stop => {
                    let next = bytes.get(at + 1);
                    if next.is_none_or(|next| next.is_ascii_whitespace() || !next.is_ascii()) {
                        tokens.end_sentence();
                    }
                    at += 1;
                }
                ByteClass::Other => at += 1,
            }
        }
        tokens.end_sentence();
        tokens
    }

    /// Returns the text of a token.
    #[must_use]
    pub fn text_of(&self, token: &Token) -> &'a str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// Returns the text from the first of some neighbouring tokens to the last.
    ///
    /// # Panics
    ///
    /// If there is no token.
    #[must_use]
    pub fn stretch(&self, tokens: &[Token]) -> &'a str {
        &self.text[tokens[0].start as usize..tokens[tokens.len() - 1].end as usize]
    }

    fn push_word(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        if let Some(eight) = EightBytes::at(bytes, at) {
            let length = eight.letters();
            let ends = bytes.get(at + length).is_none_or(u8::is_ascii);
            if (1..EightBytes::COUNT).contains(&length) && ends {
                let (end, hash) = (at + length, eight.hash(length));
                self.push_hashed(at, end, CharKind::Word, hash);
                return end;
            }
        }
        let end = at + run_end(&self.text[at..], CharKind::Word);
        self.push(at, end, CharKind::Word);
        end
    }

    fn push_wide(&mut self, at: usize) -> usize {
        let first = self.text[at..].chars().next().expect("`at` is before the end");
        let end = at + first.len_utf8();
        match CharKind::of(first) {
            CharKind::Word => return self.push_word(at),
            CharKind::Other if ends_sentence(first) => self.end_sentence(),
            CharKind::Other => {}
            kind => self.push(at, end, kind),
        }
        end
    }

    fn push(&mut self, start: usize, end: usize, kind: CharKind) {
        let hash = xxh3_64(&self.text.as_bytes()[start..end]);
        self.push_hashed(start, end, kind, hash);
    }

    fn push_hashed(&mut self, start: usize, end: usize, kind: CharKind, hash: u64) {
        let (single, han) = (kind != CharKind::Word, kind == CharKind::Han);
        self.all.push(Token { start: start as u32, end: end as u32, single, han, hash });
    }

    fn end_sentence(&mut self) {
        let end = self.all.len() as u32;
        if self.sentence_ends.last().copied().unwrap_or(0) < end {
            self.sentence_ends.push(end);
        }
    }

    /// Returns the tokens of each sentence that has any, in order.
    ///
    /// A sentence ends at a line break or at a mark that ends one in its script. A full stop, `!`,
    /// `?` or `;` of Latin text does so only before white space, the end, or a character that is
    /// not ASCII, so that `3.14` and `example.com` stay whole.
    pub fn sentences(&self) -> impl Iterator<Item = &[Token]> {
        let mut start = 0;
        self.sentence_ends.iter().map(move |end| {
            let sentence = &self.all[start..*end as usize];
            start = *end as usize;
            sentence
        })
    }

    /// Calls `each` with every word and its hash: words of scripts with blanks as they stand, runs
    /// of Chinese as jieba cuts them, other runs as overlapping character 3-grams.
    ///
    /// In a text with little Chinese (less than a twentieth of its tokens) it is passed over:
    /// a name or two do not need the dictionary.
    pub fn words(&self, each: impl FnMut(&'a str, u64)) {
        self.words_by(Chinese::Words(&Segmenter::default()), each);
    }

    /// Does the same, but cuts Chinese as it is told.
    pub(crate) fn words_by(&self, chinese: Chinese<'_>, each: impl FnMut(&'a str, u64)) {
        let han = self.all.iter().filter(|token| token.han).count();
        self.cut((han * LITTLE >= self.all.len()).then_some(chinese), each);
    }

    /// Does the same as [`Self::words`], but cuts Chinese however little of it there is.
    pub fn every_word(&self, each: impl FnMut(&'a str, u64)) {
        self.cut(Some(Chinese::Words(&Segmenter::default())), each);
    }

    /// Without `chinese`, Chinese is left out.
    fn cut(&self, chinese: Option<Chinese<'_>>, mut each: impl FnMut(&'a str, u64)) {
        let mut rest = self.all.as_slice();
        while let Some(first) = rest.first() {
            if first.han && chinese.is_none() {
                rest = &rest[1..];
                continue;
            }
            if !first.single {
                each(self.text_of(first), first.hash);
                rest = &rest[1..];
                continue;
            }
            // Characters of one script that touch each other are one run.
            let ends = rest.windows(2).position(|pair| {
                pair[1].start != pair[0].end || pair[1].han != first.han || !pair[1].single
            });
            let (run, after) = rest.split_at(ends.map_or(rest.len(), |end| end + 1));
            self.words_of_run(run, chinese, &mut each);
            rest = after;
        }
    }

    fn words_of_run(
        &self,
        run: &[Token],
        chinese: Option<Chinese<'_>>,
        each: &mut impl FnMut(&'a str, u64),
    ) {
        let mut hashed = |word: &'a str| each(word, xxh3_64(word.as_bytes()));
        let whole = self.stretch(run);
        let length = match chinese.filter(|_| run[0].han) {
            Some(Chinese::Words(segmenter)) => return segmenter.cut(whole, hashed),
            Some(Chinese::Pairs) => PAIR,
            None => SHINGLE_CHARS,
        };
        if run.len() <= length {
            hashed(whole);
        } else {
            for few in run.windows(length) {
                hashed(self.stretch(few));
            }
        }
    }
}

fn ends_sentence(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '；' | '…' | '।' | '॥' | '؟' | '۔' | '｡')
}
