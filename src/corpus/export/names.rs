//! Names of the files of an export, by which it knows its own.

use std::io::Read as _;

use super::form::FORMATS;
use super::stream::Compression;
use super::walk::List;
use super::{Error, card};
use crate::base::outputs::{self, LOCK, MANIFEST, PARTIAL};
use crate::base::remote::Location;

/// The file of a run that is not over: which files are whole.
pub(super) const JOURNAL: &str = "export";

/// Files that are named in an error.
const NAMED_MAX: usize = 5;

/// Returns the name of a file of a list; `shard` is its number if there are several.
pub(super) fn file(list: List, shard: Option<u64>, ending: &str) -> String {
    match shard {
        Some(number) => format!("{}-{number:05}.{ending}", list.as_str()),
        None => format!("{}.{ending}", list.as_str()),
    }
}

/// Tells whether a file of that name is one of an export.
fn is_own(name: &str) -> bool {
    let Some((stem, ending)) = name.split_once('.') else { return false };
    let (list, number) = stem.split_once('-').unwrap_or((stem, "0"));
    let is_list = List::ALL.iter().any(|known| known.as_str() == list);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_ending = FORMATS.iter().any(|format| {
        Compression::ALL.iter().any(|compression| format.file_ending(*compression) == ending)
    });
    is_list && is_number && is_ending
}

/// What lies in a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Files of a set.
    pub whole: Vec<String>,
    /// What a run that did not end has left, under the names of whole files.
    pub partial: Vec<String>,
}

/// Looks into the folder of an export.
///
/// # Errors
///
/// A file that no export has written.
pub(super) fn look(location: &Location) -> Result<Found, Error> {
    let mut found = Found::default();
    let mut foreign = Vec::new();
    for name in names(location)? {
        let partial = name.strip_suffix(PARTIAL);
        let stem = partial.unwrap_or(&name);
        let is_own = is_own(stem)
            || stem == MANIFEST
            || (partial.is_some() && [JOURNAL, LOCK, card::NAME].contains(&stem))
            || (stem == card::NAME && is_card(location)?);
        match partial {
            _ if !is_own => foreign.push(name),
            // Whoever takes it removes it.
            Some(LOCK) => {}
            Some(stem) => found.partial.push(stem.to_owned()),
            None if name != MANIFEST => found.whole.push(name),
            None => {}
        }
    }
    if foreign.is_empty() {
        return Ok(found);
    }
    foreign.sort();
    let more = foreign.len().saturating_sub(NAMED_MAX);
    foreign.truncate(NAMED_MAX);
    let mut names = foreign.join(", ");
    if more > 0 {
        names = format!("{names} and {more} more");
    }
    Err(Error::Foreign { folder: location.to_string(), names })
}

fn names(location: &Location) -> Result<Vec<String>, Error> {
    match location {
        Location::Local(folder) => {
            let io = |source| outputs::Error { path: folder.clone(), source };
            let entries = match std::fs::read_dir(folder) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(Vec::new());
                }
                entries => entries.map_err(io)?,
            };
            let name = |entry: std::io::Result<std::fs::DirEntry>| {
                Ok(entry.map_err(io)?.file_name().to_string_lossy().into_owned())
            };
            entries.map(name).collect()
        }
        #[cfg(feature = "object-store")]
        Location::Remote(objects) => {
            let below = objects.list().map_err(Error::Remote)?;
            let start = format!("{objects}/");
            let name = |url: String| url.strip_prefix(&start).unwrap_or(&url).to_owned();
            Ok(below.into_iter().map(|(object, _)| name(object.to_string())).collect())
        }
    }
}

/// Tells whether the page in the folder was written by an export.
fn is_card(location: &Location) -> Result<bool, Error> {
    let card = match location {
        Location::Local(folder) => Location::Local(folder.join(card::NAME)),
        #[cfg(feature = "object-store")]
        Location::Remote(objects) => Location::Remote(objects.child(card::NAME)),
    };
    let mut text = String::new();
    let read = card.open().and_then(|file| file.take(1 << 20).read_to_string(&mut text));
    match read {
        Ok(_) => Ok(text.contains(card::MARK)),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Ok(false),
        Err(source) => Err(outputs::Error { path: card.to_string().into(), source }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_knows_its_files_by_their_names() {
        for name in ["documents.jsonl", "withheld-00012.jsonl.zst", "duplicates.csv.gz"] {
            assert!(is_own(name), "{name}");
        }
        for name in ["a.txt", "documents", "documents-.jsonl", "documents-x.csv", "kept.jsonl"] {
            assert!(!is_own(name), "{name}");
        }
        assert_eq!(file(List::Duplicates, Some(7), "jsonl"), "duplicates-00007.jsonl");
    }

    #[test]
    fn the_lock_of_a_run_is_no_file_that_the_next_one_removes() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["lock.partial", "documents.jsonl.partial", "manifest.json", "withheld.jsonl"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = look(&Location::Local(folder.path().to_owned())).unwrap();
        let (whole, partial) = ("withheld.jsonl".to_owned(), "documents.jsonl".to_owned());
        assert_eq!(found, Found { whole: vec![whole], partial: vec![partial] });
    }
}
