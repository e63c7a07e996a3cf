//! What keeps a text out of a corpus: the language, the length, the published rules of Gopher, C4
//! and FineWeb, words of a list; and personal data, which is masked. All is off by default.
//!
//! In: a text. Out: the text as it is kept, or the [`Reason`] why it is not. Pure, but for the list
//! of words that a setting names, which is read once. English texts are judged as datatrove judges
//! them, which others build their corpora with.

mod blocked;
mod c4;
mod classes;
mod english;
mod fineweb;
mod gopher;
mod limits;
mod lines;
mod named;
mod personal;
mod reason;
mod url;
mod words;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Segmenter, guess_language};
use blocked::BlockedWords;
use lines::chars;
use words::{Script, Words};

pub use blocked::BadWordList;
pub use limits::Limits;
pub use personal::Personal;
pub use reason::Reason;

/// Letters of a line whose language is told.
const LINE_LETTERS_MIN: usize = 20;

/// A set of rules that is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Lines and paragraphs that a text repeats.
    RepeatedLines,
    /// The same, and runs of words: Gopher's rules of repetition.
    GopherRepetition,
    /// Gopher's rules of quality.
    GopherQuality,
    /// C4's rules; lines that are no sentences go.
    C4,
    /// FineWeb's rules.
    Fineweb,
}

impl Rule {
    /// All of them, in the order in which they are asked.
    pub const ALL: [Self; 5] =
        [Self::RepeatedLines, Self::GopherRepetition, Self::GopherQuality, Self::C4, Self::Fineweb];

    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RepeatedLines => "repeated-lines",
            Self::GopherRepetition => "gopher-repetition",
            Self::GopherQuality => "gopher-quality",
            Self::C4 => "c4",
            Self::Fineweb => "fineweb",
        }
    }
}

/// The settings of filters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Rules that a text must pass.
    pub rules: Vec<Rule>,
    /// Languages that are kept (ISO 639-1); none for all.
    pub languages: Vec<String>,
    /// Least certainty of the language, from 0 to 1, where languages are named.
    pub language_certainty_min: f32,
    /// Least share of the letters in lines of these languages, from 0 to 1.
    pub language_share_min: f32,
    /// Least characters of a text.
    pub chars_min: usize,
    /// Most characters of a text; 0 for no limit.
    pub chars_max: usize,
    /// Least words of a text.
    pub words_min: usize,
    /// Most words of a text; 0 for no limit.
    pub words_max: usize,
    /// File of words, one a line, that a text must not have.
    pub blocked_words_file: String,
    /// How many of them a text may have.
    pub blocked_words_max: usize,
    /// Personal data that is replaced.
    pub mask: Vec<Personal>,
    /// Limits of the rules.
    pub limits: Limits,
    /// The same for texts in Chinese, whose words are cut by the dictionary.
    pub chinese: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            languages: Vec::new(),
            language_certainty_min: 0.65,
            language_share_min: 0.0,
            chars_min: 0,
            chars_max: 0,
            words_min: 0,
            words_max: 0,
            blocked_words_file: String::new(),
            blocked_words_max: 0,
            mask: Vec::new(),
            limits: Limits::default(),
            chinese: Limits::chinese(),
        }
    }
}

impl Config {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// What cannot be, in words.
    pub fn check(&self) -> Result<(), String> {
        let is_share = |share: f32| (0.0..=1.0).contains(&share);
        for (name, share) in [
            ("language_certainty_min", self.language_certainty_min),
            ("language_share_min", self.language_share_min),
        ] {
            if !is_share(share) {
                return Err(format!("`filters.{name}` is a share from 0 to 1, not {share}"));
            }
        }
        let is_code =
            |code: &&String| code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_lowercase());
        if let Some(wrong) = self.languages.iter().find(|code| !is_code(code)) {
            return Err(format!("`{wrong}` is no language: it has two letters, such as en or zh"));
        }
        for (min, max, name) in
            [(self.words_min, self.words_max, "words"), (self.chars_min, self.chars_max, "chars")]
        {
            if max > 0 && min > max {
                return Err(format!("no text has {min} {name} and more and {max} at most"));
            }
        }
        Ok(())
    }
}

/// What becomes of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<'t> {
    /// It is kept in this form.
    Kept(Kept<'t>),
    /// It is not, for this reason.
    Filtered(Reason),
}

/// A text that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept<'t> {
    /// The text without the lines that go, and with personal data masked.
    pub text: Cow<'t, str>,
    /// Pieces of personal data that were masked.
    pub masked: u64,
}

/// The filters that are on.
#[derive(Debug, Clone)]
pub struct Filters {
    config: Config,
    blocked: Option<BlockedWords>,
    segmenter: Segmenter,
}

impl Filters {
    /// Makes filters ready.
    ///
    /// # Errors
    ///
    /// If the list of words cannot be read.
    pub fn new(config: Config) -> Result<Self, BadWordList> {
        let blocked = match config.blocked_words_file.as_str() {
            "" => None,
            path => Some(BlockedWords::read(path.as_ref())?),
        };
        Ok(Self { config, blocked, segmenter: Segmenter::default() })
    }

    /// Tells whether any is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        let Config { rules, languages, mask, .. } = &self.config;
        let Config { chars_min, chars_max, words_min, words_max, .. } = &self.config;
        let lengths = chars_min + chars_max + words_min + words_max;
        !(rules.is_empty() && languages.is_empty() && mask.is_empty() && lengths == 0)
            || self.blocked.is_some()
    }

    /// Tells whether texts may be changed: by C4, or by masks.
    #[must_use]
    pub fn changes_texts(&self) -> bool {
        !self.config.mask.is_empty() || self.config.rules.contains(&Rule::C4)
    }

    /// Asks all filters about a text. The first one that speaks against it decides.
    #[must_use]
    pub fn ask<'t>(&self, text: &'t str) -> Outcome<'t> {
        match self.kept(text) {
            Ok(kept) => Outcome::Kept(kept),
            Err(reason) => Outcome::Filtered(reason),
        }
    }

    fn kept<'t>(&self, text: &'t str) -> Result<Kept<'t>, Reason> {
        let config = &self.config;
        self.language(text)?;
        let script = Script::of(text);
        if config.chars_min > 0 || config.chars_max > 0 {
            within(chars(text), config.chars_min, config.chars_max)
                .map_err(|is_long| if is_long { Reason::TooLong } else { Reason::TooShort })?;
        }
        if config.words_min > 0 || config.words_max > 0 {
            let words = Words::of(text, script, &self.segmenter).all.len();
            within(words, config.words_min, config.words_max).map_err(|is_long| {
                if is_long { Reason::TooManyWords } else { Reason::TooFewWords }
            })?;
        }
        if let Some(blocked) = &self.blocked
            && blocked.count(text) > config.blocked_words_max
        {
            return Err(Reason::BlockedWords);
        }
        Ok(self.mask(self.rules(text, script)?))
    }

    /// Masks personal data, and asks nothing.
    #[must_use]
    pub fn mask<'t>(&self, text: Cow<'t, str>) -> Kept<'t> {
        let mut kept = Kept { text, masked: 0 };
        for kind in Personal::ALL.into_iter().filter(|kind| self.config.mask.contains(kind)) {
            let (masked, count) = kind.mask(&kept.text);
            if count > 0 {
                kept = Kept { text: Cow::Owned(masked.into_owned()), masked: kept.masked + count };
            }
        }
        kept
    }

    /// Tells whether lines of a text may go: by C4.
    #[must_use]
    pub fn drops_lines(&self) -> bool {
        self.config.rules.contains(&Rule::C4)
    }

    /// Asks the published rules.
    fn rules<'t>(&self, text: &'t str, script: Script) -> Result<Cow<'t, str>, Reason> {
        let config = &self.config;
        let is_on = |rule: Rule| config.rules.contains(&rule);
        if config.rules.is_empty() {
            return Ok(Cow::Borrowed(text));
        }
        let limits = if script == Script::Chinese { &config.chinese } else { &config.limits };
        if is_on(Rule::RepeatedLines) || is_on(Rule::GopherRepetition) {
            gopher::lines(text, limits)?;
        }
        if is_on(Rule::GopherRepetition) || is_on(Rule::GopherQuality) {
            let words = Words::of(text, script, &self.segmenter);
            if is_on(Rule::GopherRepetition) {
                gopher::runs(text, &words, limits)?;
            }
            if is_on(Rule::GopherQuality) {
                gopher::quality(text, &words, script, limits)?;
            }
        }
        let mut text = Cow::Borrowed(text);
        if is_on(Rule::C4) {
            text = Cow::Owned(c4::quality(&text, script, limits)?);
        }
        if is_on(Rule::Fineweb) {
            let words = Words::of(&text, script, &self.segmenter);
            fineweb::quality(&text, &words, script, limits)?;
        }
        Ok(text)
    }

    fn language(&self, text: &str) -> Result<(), Reason> {
        let config = &self.config;
        if config.languages.is_empty() {
            return Ok(());
        }
        let is_wanted = |text: &str, certainty: f32| {
            guess_language(text).is_some_and(|guess| {
                guess.certainty >= certainty && config.languages.contains(&guess.language)
            })
        };
        if !is_wanted(text, 0.0) {
            return Err(Reason::Language);
        }
        if !is_wanted(text, config.language_certainty_min) {
            return Err(Reason::UnsureLanguage);
        }
        if config.language_share_min > 0.0 {
            let (mut wanted, mut all) = (0, 0);
            for line in lines::split(text) {
                let letters = line.chars().filter(|c| c.is_alphabetic()).count();
                if letters >= LINE_LETTERS_MIN {
                    all += letters;
                    wanted += if is_wanted(line, 0.0) { letters } else { 0 };
                }
            }
            if all > 0 && lines::share(wanted, all) < f64::from(config.language_share_min) {
                return Err(Reason::LanguageShare);
            }
        }
        Ok(())
    }
}

/// Whether a length is within bounds, of which a longest one of 0 is none; else whether it is too
/// long.
fn within(length: usize, min: usize, max: usize) -> Result<(), bool> {
    let is_long = max > 0 && length > max;
    if is_long || length < min { Err(is_long) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(change: impl FnOnce(&mut Config)) -> Filters {
        let mut config = Config::default();
        change(&mut config);
        Filters::new(config).unwrap()
    }

    fn reason(filters: &Filters, text: &str) -> Option<&'static str> {
        match filters.ask(text) {
            Outcome::Kept(_) => None,
            Outcome::Filtered(reason) => Some(reason.as_str()),
        }
    }

    const ENGLISH: &str = "The harbour bridge opens on Monday after two years of work on its \
        towers, and the ferry that took its place will sail for the last time on Sunday night.";

    #[test]
    fn nothing_is_on_by_default() {
        let filters = filters(|_| {});
        assert!(!filters.is_on() && !filters.changes_texts());
        assert_eq!(reason(&filters, ""), None);
    }

    #[test]
    fn texts_of_other_languages_and_lengths_go() {
        let english = filters(|config| config.languages = vec!["en".to_owned()]);
        assert_eq!(reason(&english, ENGLISH), None);
        assert_eq!(reason(&english, "海量网络文本去重系统把重复的文章找出来"), Some("language"));
        let share = filters(|config| {
            (config.languages, config.language_share_min) = (vec!["en".to_owned()], 0.8);
            config.language_certainty_min = 0.0;
        });
        let mixed = format!(
            "{ENGLISH}\nDie Brücke über den Hafen wird am Montag nach zwei Jahren \
            Arbeit an ihren Türmen eröffnet."
        );
        assert_eq!(reason(&share, &mixed), Some("language_share"));
        let short = filters(|config| (config.words_min, config.chars_max) = (5, 100));
        assert_eq!(reason(&short, "Four words are here"), Some("too_few_words"));
        assert_eq!(reason(&short, ENGLISH), Some("too_long"));
        assert_eq!(reason(&short, "Now five words are here"), None);
    }

    #[test]
    fn c4_keeps_sentences_and_masks_are_laid_over_what_is_kept() {
        let filters = filters(|config| {
            config.rules = vec![Rule::C4];
            config.mask = vec![Personal::Mail];
        });
        let text = "Home | About\nOne is here. Two is here. Three is here.\nWrite to a@b.com now. \
            And so on.\nRead our privacy policy for more.";
        let Outcome::Kept(kept) = filters.ask(text) else { panic!("{:?}", filters.ask(text)) };
        assert_eq!(
            kept.text,
            "One is here. Two is here. Three is here.\nWrite to email@example.com now. And so on."
        );
        assert_eq!(kept.masked, 1);
        assert!(filters.changes_texts());
    }
}
