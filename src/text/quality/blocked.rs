//! Words that a text must not have.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::text::is_han;

/// A list of words that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadWordList {
    /// It cannot be read.
    #[error("cannot read the words of {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// It is too large, or has no word.
    #[error("the words of {} cannot be used: {detail}", path.display())]
    Words {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
}

/// Words that are looked for whatever their case is. Chinese is found anywhere, other words only
/// where no letter stands beside them.
#[derive(Debug, Clone)]
pub(super) struct BlockedWords(Arc<AhoCorasick>);

impl BlockedWords {
    /// Reads a list: UTF-8, one word or more in each line; lines that begin with `#` are comments.
    pub(super) fn read(path: &Path) -> Result<Self, BadWordList> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| BadWordList::Io { path: path.to_owned(), source })?;
        let bad = |detail: String| BadWordList::Words { path: path.to_owned(), detail };
        let lines = text.trim_start_matches('\u{FEFF}').lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let words: Vec<String> = lines.map(str::to_lowercase).collect();
        if words.is_empty() {
            return Err(bad("there is none".to_owned()));
        }
        let mut found = AhoCorasick::builder();
        found.match_kind(MatchKind::LeftmostLongest);
        let found = found.build(words).map_err(|error| bad(error.to_string()))?;
        Ok(Self(Arc::new(found)))
    }

    /// Counts them in a text.
    pub(super) fn count(&self, text: &str) -> usize {
        let text = text.to_lowercase();
        let is_word = |c: char| c.is_alphanumeric() && !is_han(c);
        let is_alone = |start: usize, end: usize| {
            let first = text[start..end].chars().next().is_some_and(is_word);
            let last = text[start..end].chars().next_back().is_some_and(is_word);
            let before = text[..start].chars().next_back().is_some_and(is_word);
            let after = text[end..].chars().next().is_some_and(is_word);
            !(first && before || last && after)
        };
        self.0.find_iter(&text).filter(|found| is_alone(found.start(), found.end())).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_where_they_stand_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words.txt");
        std::fs::write(&path, "# a comment\nBad\nvery bad thing\n赌博\n\n").unwrap();
        let words = BlockedWords::read(&path).unwrap();
        assert_eq!(words.count("A bad day: BAD, badly. A very bad thing! 在线赌博网"), 4);
        std::fs::write(&path, "# nothing\n").unwrap();
        assert!(BlockedWords::read(&path).unwrap_err().to_string().contains("there is none"));
        let missing = BlockedWords::read(&folder.path().join("none")).unwrap_err();
        assert!(missing.to_string().contains("cannot read the words"));
    }
}
