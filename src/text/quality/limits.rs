//! The limits of the rules, which are settings.

use serde::{Deserialize, Serialize};

/// Limits of the published rules. Shares are of 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Gopher: least words of a text that are not signs alone.
    pub gopher_words_min: usize,
    /// Gopher: most of them.
    pub gopher_words_max: usize,
    /// Gopher: least characters of a word on average.
    pub gopher_word_length_min: f64,
    /// Gopher: most characters of a word on average.
    pub gopher_word_length_max: f64,
    /// Gopher: most `#`, and most ellipses, for a word.
    pub gopher_symbols_max: f64,
    /// Gopher: largest share of lines that begin with a bullet.
    pub gopher_bullet_lines_max: f64,
    /// Gopher: largest share of lines that end in an ellipsis.
    pub gopher_ellipsis_lines_max: f64,
    /// Gopher: least share of words with a letter.
    pub gopher_letter_words_min: f64,
    /// Gopher: least of the most usual words that are there.
    pub gopher_usual_words_min: usize,
    /// Largest share of paragraphs that stood there before.
    pub repeated_paragraphs_max: f64,
    /// Largest share of the characters that they have.
    pub repeated_paragraph_chars_max: f64,
    /// Largest share of lines that stood there before.
    pub repeated_lines_max: f64,
    /// Largest share of the characters that they have.
    pub repeated_line_chars_max: f64,
    /// Largest share of the characters that the most frequent run of 2, 3 and 4 words has.
    pub frequent_runs_max: Vec<f64>,
    /// Largest share of the characters in repeated runs of 5, 6, 7, 8, 9 and 10 words.
    pub repeated_runs_max: Vec<f64>,
    /// C4: only lines that end as sentences do are kept.
    pub c4_whole_lines: bool,
    /// C4: least words of a line that is kept.
    pub c4_line_words_min: usize,
    /// C4: most characters of a word in a line that is kept.
    pub c4_word_length_max: usize,
    /// C4: least sentences in the lines that are kept.
    pub c4_sentences_min: usize,
    /// FineWeb: least share of lines that end as sentences do.
    pub fineweb_whole_lines_min: f64,
    /// FineWeb: most characters of a short line.
    pub fineweb_short_line_chars: usize,
    /// FineWeb: largest share of short lines.
    pub fineweb_short_lines_max: f64,
    /// FineWeb: largest share of the characters in lines that stood there before.
    pub fineweb_repeated_chars_max: f64,
    /// FineWeb: most line breaks for a word.
    pub fineweb_line_breaks_max: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            gopher_words_min: 50,
            gopher_words_max: 100_000,
            gopher_word_length_min: 3.0,
            gopher_word_length_max: 10.0,
            gopher_symbols_max: 0.1,
            gopher_bullet_lines_max: 0.9,
            gopher_ellipsis_lines_max: 0.3,
            gopher_letter_words_min: 0.8,
            gopher_usual_words_min: 2,
            repeated_paragraphs_max: 0.3,
            repeated_paragraph_chars_max: 0.2,
            repeated_lines_max: 0.3,
            repeated_line_chars_max: 0.2,
            frequent_runs_max: vec![0.2, 0.18, 0.16],
            repeated_runs_max: vec![0.15, 0.14, 0.13, 0.12, 0.11, 0.10],
            c4_whole_lines: true,
            c4_line_words_min: 3,
            c4_word_length_max: 1_000,
            c4_sentences_min: 5,
            fineweb_whole_lines_min: 0.12,
            fineweb_short_line_chars: 30,
            fineweb_short_lines_max: 0.67,
            fineweb_repeated_chars_max: 0.01,
            fineweb_line_breaks_max: 0.3,
        }
    }
}

impl Limits {
    /// Limits for Chinese: of words that the dictionary cuts, which are shorter, and of signs, each
    /// a word. Set by the percentiles of 11,265 news texts (`benches/quality/chinese_limits.py`).
    #[must_use]
    pub fn chinese() -> Self {
        Self {
            gopher_words_min: 40,
            gopher_word_length_min: 1.4,
            gopher_letter_words_min: 0.5,
            gopher_word_length_max: 3.0,
            gopher_usual_words_min: 1,
            frequent_runs_max: vec![0.2, 0.2, 0.22],
            c4_line_words_min: 5,
            c4_sentences_min: 3,
            fineweb_short_line_chars: 15,
            ..Self::default()
        }
    }
}
