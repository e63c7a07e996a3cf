//! Words as spaCy's English tokenizer cuts them: the rules of Gopher and FineWeb were set on these.
//!
//! A text is cut at blanks; from each piece, signs are taken off at both ends until it is a known
//! exception or nothing comes off; what is left is a URL, or is cut at signs inside. Exceptions
//! that were cut apart are put together again in the end.
//!
//! Source: spaCy 3.8 (MIT), `tokenizer.pyx`, `lang/punctuation.py`, `lang/en`.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::classes::Class;
use super::lines::is_blank;
use super::url::is_url;

/// A text and its parts in each line.
const EXCEPTIONS: &str = include_str!("exceptions.txt");

/// Single characters that are cut off at the beginning of a piece.
const PREFIXES: &str = "§%=—–…,:;!?¿؟¡()[]{}<>_#*&。？！，、；：～·।،۔؛٪'\"”“`‘´’‚„»«「」『』（）〔〕【】《》〈〉〈〉⟦⟧\
    $£€¥฿₽﷼₴₠₡₢₣₤₥₦₧₨₩₪₫₭₮₯₰₱₲₳₵₶₷₸₹₺₻₼₾₿";

/// Single characters that are cut off at the end of a piece.
const SUFFIXES: &str =
    "…,:;!?¿؟¡()[]{}<>_#*&。？！，、；：～·।،۔؛٪'\"”“`‘´’‚„»«「」『』（）〔〕【】《》〈〉〈〉⟦⟧—–";

/// What is cut off at the end of a number.
const CURRENCIES: &str = "$£€¥฿₽﷼₴₠₡₢₣₤₥₦₧₨₩₪₫₭₮₯₰₱₲₳₵₶₷₸₹₺₻₼₾₿";

/// Currencies of several characters.
const DOLLARS: [&str; 3] = ["US$", "C$", "A$"];

/// Units that are cut off at the end of a number.
const UNITS: &str = "km km² km³ m m² m³ dm dm² dm³ cm cm² cm³ mm mm² mm³ ha µm nm yd in ft kg g mg \
    µg t lb oz m/s km/h kmh mph hPa Pa mbar mb MB kb KB gb GB tb TB T G M K % км км² км³ м м² м³ \
    дм дм² дм³ см см² см³ мм мм² мм³ нм кг г мг м/с км/ч кПа Па мбар Кб КБ кб Мб МБ мб Гб ГБ гб \
    Тб ТБ тбكم كم² كم³ م م² م³ سم سم² سم³ مم مم² مم³ كم غرام جرام جم كغ ملغ كوب اكواب";

/// Quotes, between which and letters a full stop is cut.
const QUOTES: &str = "'\"”“`‘´’‚,„»«「」『』（）〔〕【】《》〈〉〈〉⟦⟧";

/// What a full stop may follow that is cut off, beside digits, small letters and quotes.
const BEFORE_STOP: &str = "%²-+…,:;!?¿؟¡()[]{}<>_#*&。？！，、；：～·।،۔؛٪|";

/// Hyphens, the shorter ones first.
const HYPHENS: [&str; 7] = ["-", "–", "—", "--", "---", "——", "~"];

/// Cuts a text into words: ranges of its bytes, without blanks.
pub(super) fn words(text: &str) -> Vec<Range<usize>> {
    let mut tokens = tokens(text);
    tokens.retain(|token| !token.is_blank);
    tokens.into_iter().map(|token| token.at).collect()
}

/// A word, or blanks between words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) at: Range<usize>,
    pub(super) is_blank: bool,
}

/// Cuts a text into words and blanks; a single one of these between words is none.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut cutter = Cutter { text, tokens: Vec::with_capacity(text.len() / 5), knows: true };
    cutter.cut();
    join_exceptions(text, &mut cutter.tokens);
    cutter.tokens
}

/// The parts of exceptions, and those that are cut apart by the patterns.
struct Exceptions {
    /// Lengths of the parts of each.
    parts: HashMap<&'static str, Vec<usize>>,
    /// First word -> all words of an exception that was cut apart.
    cut: HashMap<&'static str, Vec<Vec<&'static str>>>,
    bytes_max: usize,
}

static EXCEPTION: LazyLock<Exceptions> = LazyLock::new(|| {
    let lines = EXCEPTIONS.lines().filter_map(|line| line.split_once('\t'));
    let parts: HashMap<&str, Vec<usize>> =
        lines.map(|(text, parts)| (text, parts.split(' ').map(str::len).collect())).collect();
    let bytes_max = parts.keys().map(|text| text.len()).max().unwrap_or(0);
    let mut cut: HashMap<&str, Vec<Vec<&str>>> = HashMap::new();
    for text in parts.keys().copied() {
        let is_affected = prefix(text) > 0 || suffix(text) > 0 || next_infix(text, 0).is_some();
        if is_affected {
            let mut cutter = Cutter { text, tokens: Vec::new(), knows: false };
            cutter.cut();
            let words: Vec<&str> =
                cutter.tokens.iter().map(|token| &text[token.at.clone()]).collect();
            cut.entry(words[0]).or_default().push(words);
        }
    }
    Exceptions { parts, cut, bytes_max }
});

fn exception(text: &str) -> Option<&'static [usize]> {
    let all = &*EXCEPTION;
    if text.len() > all.bytes_max {
        return None;
    }
    all.parts.get(text).map(Vec::as_slice)
}

struct Cutter<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    /// Exceptions are known.
    knows: bool,
}

impl Cutter<'_> {
    fn cut(&mut self) {
        let text = self.text;
        let Some(first) = text.chars().next() else { return };
        let (mut start, mut in_blank) = (0, is_blank(first));
        for (at, c) in text.char_indices() {
            if is_blank(c) == in_blank {
                continue;
            }
            self.span(start..at, in_blank);
            start = if c == ' ' { at + 1 } else { at };
            in_blank = !in_blank;
        }
        self.span(start..text.len(), in_blank);
    }

    fn span(&mut self, at: Range<usize>, is_blank: bool) {
        if at.is_empty() {
            return;
        }
        if is_blank {
            self.tokens.push(Token { at, is_blank });
        } else if !self.exception(&at) {
            self.piece(at);
        }
    }

    fn exception(&mut self, at: &Range<usize>) -> bool {
        let known = if self.knows { exception(&self.text[at.clone()]) } else { None };
        let Some(parts) = known else { return false };
        let mut start = at.start;
        for part in parts {
            self.push(start..start + part);
            start += part;
        }
        true
    }

    fn is_exception(&self, at: &Range<usize>) -> bool {
        self.knows && !at.is_empty() && exception(&self.text[at.clone()]).is_some()
    }

    fn push(&mut self, at: Range<usize>) {
        if !at.is_empty() {
            self.tokens.push(Token { at, is_blank: false });
        }
    }

    fn piece(&mut self, at: Range<usize>) {
        let text = self.text;
        if text[at.clone()].bytes().all(|byte| byte.is_ascii_alphabetic()) {
            // Nothing comes off at its ends, and nothing is in it to be cut at.
            return self.push(at);
        }
        let mut rest = at;
        let mut suffixes: Vec<Range<usize>> = Vec::new();
        while !rest.is_empty() && !self.is_exception(&rest) {
            let before = prefix(&text[rest.clone()]);
            let minus_prefix = rest.start + before..rest.end;
            if before > 0 && self.is_exception(&minus_prefix) {
                self.push(rest.start..minus_prefix.start);
                rest = minus_prefix;
                break;
            }
            let behind = suffix(&text[minus_prefix.clone()]);
            let minus_suffix = rest.start..rest.end - behind;
            if behind > 0 && self.is_exception(&minus_suffix) {
                suffixes.push(minus_suffix.end..rest.end);
                rest = minus_suffix;
                break;
            }
            if before == 0 && behind == 0 {
                break;
            }
            self.push(rest.start..minus_prefix.start);
            if behind > 0 {
                suffixes.push(minus_suffix.end..rest.end);
            }
            rest = minus_prefix.start..minus_suffix.end;
        }
        self.middle(rest);
        for suffix in suffixes.into_iter().rev() {
            self.push(suffix);
        }
    }

    /// What is left when nothing comes off at the ends any more.
    fn middle(&mut self, at: Range<usize>) {
        if at.is_empty() || self.exception(&at) {
            return;
        }
        let piece = &self.text[at.clone()];
        if is_url(piece) {
            return self.push(at);
        }
        let (mut start, mut from) = (0, 0);
        while let Some(found) = next_infix(piece, from) {
            from = found.end;
            if found.start == 0 {
                continue;
            }
            self.push(at.start + start..at.start + found.start);
            start = found.end;
            self.push(at.start + found.start..at.start + found.end);
        }
        self.push(at.start + start..at.end);
    }
}

/// Bytes that come off at the beginning of a piece.
fn prefix(piece: &str) -> usize {
    let mut chars = piece.chars();
    let Some(first) = chars.next() else { return 0 };
    if PREFIXES.contains(first) || Class::Icon.has(first) {
        return first.len_utf8();
    }
    match first {
        '+' if !chars.next().is_some_and(|c| c.is_ascii_digit()) => 1,
        '.' if piece.starts_with("..") => piece.len() - piece.trim_start_matches('.').len(),
        _ => DOLLARS.into_iter().find(|sign| piece.starts_with(sign)).map_or(0, str::len),
    }
}

/// Bytes that come off at the end of a piece: the longest that may.
fn suffix(piece: &str) -> usize {
    let Some(last) = piece.chars().next_back() else { return 0 };
    let ends_number = |end: &str| piece.strip_suffix(end).is_some_and(ends_in_digit);
    let mut longest = 0;
    if SUFFIXES.contains(last) || Class::Icon.has(last) {
        longest = last.len_utf8();
    }
    let dots = piece.len() - piece.trim_end_matches('.').len();
    if dots > 1 {
        return dots;
    }
    if piece.ends_with("……") {
        longest = "……".len();
    }
    for end in ["'s", "'S", "’s", "’S"] {
        if piece.ends_with(end) {
            longest = longest.max(end.len());
        }
    }
    if dots == 1 && stop_comes_off(&piece[..piece.len() - 1]) {
        longest = longest.max(1);
    }
    if last == '+' && ends_number("+") {
        longest = longest.max(1);
    }
    if CURRENCIES.contains(last) && ends_in_digit(&piece[..piece.len() - last.len_utf8()]) {
        longest = longest.max(last.len_utf8());
    }
    // Words end in what is the end of a unit, but few have a digit.
    if piece.bytes().any(|byte| byte.is_ascii_digit()) {
        let units = UNITS.split(' ').chain(DOLLARS).filter(|unit| ends_number(unit));
        longest = units.map(str::len).fold(longest, usize::max);
    }
    longest
}

fn ends_in_digit(text: &str) -> bool {
    text.as_bytes().last().is_some_and(u8::is_ascii_digit)
}

/// Tells whether a full stop comes off that stands behind a text.
fn stop_comes_off(before: &str) -> bool {
    let mut back = before.chars().rev();
    let Some(last) = back.next() else { return false };
    if last.is_ascii_digit() || Class::Lower.has(last) {
        return true;
    }
    if BEFORE_STOP.contains(last) || QUOTES.contains(last) {
        return true;
    }
    let next = back.next();
    let is_degree = matches!(last, 'F' | 'f' | 'C' | 'c' | 'K' | 'k') && next == Some('°');
    is_degree || Class::Upper.has(last) && next.is_some_and(|c| Class::Upper.has(c))
}

/// Finds the next place inside a piece where it is cut, from a place on.
fn next_infix(piece: &str, from: usize) -> Option<Range<usize>> {
    let mut at = from;
    for c in piece[from..].chars() {
        if let Some(length) = infix(piece, at, c) {
            return Some(at..at + length);
        }
        at += c.len_utf8();
    }
    None
}

fn infix(piece: &str, at: usize, c: char) -> Option<usize> {
    // Most characters are letters.
    if c.is_ascii_alphanumeric() {
        return None;
    }
    let (before, rest) = (&piece[..at], &piece[at..]);
    let after = &rest[c.len_utf8()..];
    if c == '.' && after.starts_with('.') {
        return Some(rest.len() - rest.trim_start_matches('.').len());
    }
    if c == '…' || Class::Icon.has(c) {
        return Some(c.len_utf8());
    }
    let last = before.chars().next_back()?;
    let next = after.chars().next();
    let is_cut = match c {
        '+' | '-' | '*' | '^'
            if last.is_ascii_digit() && next.is_some_and(|c| c.is_ascii_digit() || c == '-') =>
        {
            true
        }
        '.' => {
            (Class::Lower.has(last) || QUOTES.contains(last))
                && next.is_some_and(|c| Class::Upper.has(c) || QUOTES.contains(c))
        }
        ',' => Class::Alpha.has(last) && Class::Alpha.is_next(after),
        ':' | '<' | '>' | '=' | '/' => {
            (Class::Alpha.has(last) || last.is_ascii_digit()) && Class::Alpha.is_next(after)
        }
        _ => false,
    };
    if is_cut {
        return Some(c.len_utf8());
    }
    if !Class::Alpha.has(last) && !last.is_ascii_digit() {
        return None;
    }
    let hyphens = HYPHENS.into_iter();
    let mut found = hyphens.filter(|hyphen| {
        rest.strip_prefix(hyphen).is_some_and(|after| Class::Alpha.is_next(after))
    });
    found.next().map(str::len)
}

/// Puts exceptions together that the patterns have cut apart; the longest first.
fn join_exceptions(text: &str, tokens: &mut Vec<Token>) {
    let all = &*EXCEPTION;
    let word = |token: &Token| &text[token.at.clone()];
    let mut found: Vec<Range<usize>> = Vec::new();
    for (start, token) in tokens.iter().enumerate() {
        for words in all.cut.get(word(token)).into_iter().flatten() {
            let end = start + words.len();
            let is_here = end <= tokens.len()
                && tokens[start..end]
                    .iter()
                    .zip(words)
                    .all(|(token, wanted)| word(token) == *wanted);
            if is_here {
                found.push(start..end);
            }
        }
    }
    if found.is_empty() {
        return;
    }
    found.sort_by_key(|span| (std::cmp::Reverse(span.len()), span.start));
    let mut seen = vec![false; tokens.len()];
    let mut joined = Vec::new();
    for span in found {
        if !seen[span.start] && !seen[span.end - 1] {
            joined.push(span.clone());
        }
        seen[span].fill(true);
    }
    joined.sort_by_key(|span| span.start);
    let mut out = Vec::with_capacity(tokens.len());
    let mut next = 0;
    for span in joined {
        let at = tokens[span.start].at.start..tokens[span.end - 1].at.end;
        // Its words may have stood apart.
        let Some(parts) = exception(&text[at.clone()]) else { continue };
        out.extend_from_slice(&tokens[next..span.start]);
        let mut start = at.start;
        for part in parts {
            out.push(Token { at: start..start + part, is_blank: false });
            start += part;
        }
        next = span.end;
    }
    out.extend_from_slice(&tokens[next..]);
    *tokens = out;
}

/// Counts the sentences of a line: a word that follows an end begins one.
pub(super) fn sentences(line: &str) -> usize {
    let mut sentences = 0;
    let (mut ended, mut has_word) = (false, false);
    for token in tokens(line) {
        let word = &line[token.at.clone()];
        let mut chars = word.chars();
        let is_end = matches!((chars.next(), chars.next()), (Some(c), None)
            if Class::SentenceEnd.has(c));
        let is_punctuation = !token.is_blank && word.chars().all(|c| Class::Punctuation.has(c));
        if ended && !is_punctuation && !is_end {
            sentences += usize::from(has_word);
            (ended, has_word) = (false, false);
        } else if is_end {
            ended = true;
        }
        has_word |= !token.is_blank;
    }
    sentences + usize::from(has_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        words(text).into_iter().map(|at| &text[at]).collect()
    }

    /// Each is what spaCy 3.8.18 makes of it.
    #[test]
    fn words_are_cut_as_spacy_cuts_them() {
        for (text, expected) in [
            ("Don't stop, we'll see.", "Don't| stop|,| we|'ll| see|."),
            ("It costs US$5.50 (about £4)!", "It| costs| US$|5.50| (|about| £|4|)|!"),
            ("a state-of-the-art 10km run", "a| state|-|of|-|the|-|art| 10|km| run"),
            ("See www.example.com/a?b=c.", "See| www.example.com/a?b=c|."),
            ("wait...what? and/or :) U.S.", "wait|...|what|?| and/or| :)| U.S."),
            ("He said “Hi.” Then left at 5pm", "He| said| “|Hi|.|”| Then| left| at| 5|pm"),
            ("x=1;y=2 3+4 me@site.org", "x=1;y=2| 3|+|4| me@site.org"),
        ] {
            let expected: Vec<String> = if text.starts_with("Don't") {
                ["Do", "n't", "stop", ",", "we", "'ll", "see", "."].map(str::to_owned).to_vec()
            } else {
                expected.split('|').map(|word| word.trim().to_owned()).collect()
            };
            assert_eq!(cut(text), expected, "{text}");
        }
    }

    #[test]
    fn sentences_begin_behind_an_end() {
        assert_eq!(sentences("One. Two? Three!"), 3);
        assert_eq!(sentences("He said “Hi.” and left"), 2);
        assert_eq!(sentences("Mr. Smith went... home"), 1);
        assert_eq!(sentences(""), 0);
    }
}
