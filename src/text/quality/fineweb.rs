//! The rules of FineWeb: lists, menus and lines that repeat.
//!
//! Source: Penedo et al., The FineWeb Datasets (2024), section 3.6; in the form of datatrove
//! (Apache-2.0).

use super::classes::Class;
use super::lines::{chars, share, trim};
use super::words::{Repeated, Script, Words};
use super::{Limits, Reason};

/// Signs that may stand behind the end of a sentence in Chinese.
const CLOSING: [char; 6] = ['”', '’', '」', '』', '）', '…'];

/// Says what speaks against a text.
pub(super) fn quality(
    text: &str,
    words: &Words<'_>,
    script: Script,
    limits: &Limits,
) -> Result<(), Reason> {
    let lines: Vec<&str> = text.split('\n').filter(|line| !trim(line).is_empty()).collect();
    if lines.is_empty() {
        return Err(Reason::Empty);
    }
    let is_chinese = script == Script::Chinese;
    let is_whole =
        |line: &&&str| Class::Stop.is_last(line) || is_chinese && line.ends_with(CLOSING);
    if share(lines.iter().filter(is_whole).count(), lines.len()) < limits.fineweb_whole_lines_min {
        return Err(Reason::FinewebFewWholeLines);
    }
    let short = lines.iter().filter(|line| chars(line) <= limits.fineweb_short_line_chars);
    if share(short.count(), lines.len()) > limits.fineweb_short_lines_max {
        return Err(Reason::FinewebShortLines);
    }
    let breaks = text.bytes().filter(|byte| *byte == b'\n').count();
    let repeated = Repeated::among(lines.into_iter());
    if share(repeated.chars, chars(text) - breaks) > limits.fineweb_repeated_chars_max {
        return Err(Reason::FinewebRepeatedLines);
    }
    if share(breaks, words.all.len()) > limits.fineweb_line_breaks_max {
        return Err(Reason::FinewebLineBreaks);
    }
    Ok(())
}
