//! Classes of characters, as the programs have them whose rules are followed here. Made by
//! `benches/quality/quality_tables.py`.

use std::sync::LazyLock;

/// A name, then hexadecimal code points and runs of them in each line; `/2` is every second one.
const CLASSES: &str = include_str!("classes.txt");

/// Characters of the first so many code points are looked up in a table.
const TABLE: usize = 0x3000;

/// A class of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Class {
    /// Letters between which words are cut.
    Alpha = 1,
    /// Small letters, and those of scripts without cases.
    Lower = 1 << 1,
    /// Capital letters, and those of scripts without cases.
    Upper = 1 << 2,
    /// Signs and pictures, each a word of its own.
    Icon = 1 << 3,
    /// What is no word alone.
    Symbol = 1 << 4,
    /// Ends of lines that are whole.
    Stop = 1 << 5,
    /// Ends of sentences.
    SentenceEnd = 1 << 6,
    /// Letters of all scripts.
    Letter = 1 << 7,
    /// Punctuation.
    Punctuation = 1 << 8,
}

impl Class {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "alpha" => Self::Alpha,
            "lower" => Self::Lower,
            "upper" => Self::Upper,
            "icons" => Self::Icon,
            "symbols" => Self::Symbol,
            "stops" => Self::Stop,
            "sentence_ends" => Self::SentenceEnd,
            "letters" => Self::Letter,
            "punctuation" => Self::Punctuation,
            _ => return None,
        })
    }

    /// Tells whether a character is of the class.
    pub(super) fn has(self, c: char) -> bool {
        CHARS.of(c as u32) & self as u16 != 0
    }

    /// Tells whether the first character is there and of the class.
    pub(super) fn is_next(self, text: &str) -> bool {
        text.chars().next().is_some_and(|c| self.has(c))
    }

    /// Tells whether the last character is there and of the class.
    pub(super) fn is_last(self, text: &str) -> bool {
        text.chars().next_back().is_some_and(|c| self.has(c))
    }
}

/// A run of code points.
struct Run {
    first: u32,
    last: u32,
    step: u32,
    class: u16,
}

impl Run {
    fn has(&self, code: u32) -> bool {
        (self.first..=self.last).contains(&code) && (code - self.first).is_multiple_of(self.step)
    }
}

struct Chars {
    table: Vec<u16>,
    /// Runs that reach beyond the table.
    runs: Vec<Run>,
}

impl Chars {
    fn of(&self, code: u32) -> u16 {
        if let Some(classes) = self.table.get(code as usize) {
            return *classes;
        }
        let runs = self.runs.iter().filter(|run| run.has(code));
        runs.fold(0, |classes, run| classes | run.class)
    }
}

static CHARS: LazyLock<Chars> = LazyLock::new(|| {
    let mut chars = Chars { table: vec![0; TABLE], runs: Vec::new() };
    for line in CLASSES.lines() {
        let mut words = line.split(' ');
        let class = words.next().and_then(Class::named).expect("the table names known classes");
        for run in words.map(|word| parse(word, class as u16)) {
            for code in (run.first..=run.last.min(TABLE as u32 - 1)).step_by(run.step as usize) {
                chars.table[code as usize] |= run.class;
            }
            if run.last >= TABLE as u32 {
                chars.runs.push(run);
            }
        }
    }
    chars
});

fn parse(word: &str, class: u16) -> Run {
    let code = |hex: &str| u32::from_str_radix(hex, 16).expect("the table has code points");
    let (run, step) = word.strip_suffix("/2").map_or((word, 1), |run| (run, 2));
    let (first, last) = run.split_once('-').unwrap_or((run, run));
    Run { first: code(first), last: code(last), step, class }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_of_their_classes_in_the_table_and_beyond() {
        let of = |c: char| {
            [Class::Alpha, Class::Lower, Class::Upper, Class::Letter, Class::Punctuation]
                .map(|class| class.has(c))
        };
        assert_eq!(of('a'), [true, true, false, true, false]);
        assert_eq!(of('Ā'), [true, false, true, true, false]);
        assert_eq!(of('ā'), [true, true, false, true, false]);
        assert_eq!(of('中'), [true, true, true, true, false]);
        assert_eq!(of('。'), [true, true, true, false, true]);
        assert_eq!(of('7'), [false; 5]);
        assert!(Class::Icon.has('☃') && Class::Icon.has('😀') && !Class::Icon.has('x'));
        assert!(Class::Stop.has('。') && Class::Stop.has('.') && !Class::Stop.has(','));
    }
}
