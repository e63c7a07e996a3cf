//! An index that follows a corpus which keeps no list of changes, but a version of each document:
//! what the index has is compared with what is there.
//!
//! The version of a document is committed with it, so that the index tells by itself what it has,
//! after any kill. Documents that are there and not shown have no row in the index; they are noted
//! beside it after each commit, which only spares another look at them.

use std::collections::HashMap;
use std::fs;
use std::sync::PoisonError;

use serde::Serialize;
use tantivy::Term;

use super::folder::Payload;
use super::memory::Plan;
use super::update::Numbered;
use super::{Entry, Error, PART_DOCUMENTS, Search};

/// The file of documents that are not shown: for each its number and version, 8 bytes each.
const HIDDEN: &str = "hidden";

/// Documents that are read at a time.
const READ: usize = 256;

/// A document as it was read.
#[derive(Debug)]
pub struct NewVersion {
    /// Its number.
    pub number: u64,
    /// Its version, 0 if it is not there any more.
    pub version: u64,
    /// What is shown of it; nothing of one that is gone.
    pub entry: Option<Entry>,
}

/// Reads documents of some numbers, but for those that cannot be read.
pub type ReadVersions<'a> = dyn FnMut(&[u64]) -> Result<Vec<NewVersion>, Error> + 'a;

/// What a look at all versions has led to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Followed {
    /// Documents that were indexed.
    pub indexed: u64,
    /// Documents that are not shown, or not any more.
    pub removed: u64,
    /// Documents that have changed and whose text or record cannot be read: they are as they were,
    /// and looked at again.
    pub unreadable: u64,
}

impl Search {
    /// Checks that the index was made of `source`, or of nothing yet.
    pub fn check_source(&self, source: &str) -> Result<(), Error> {
        match self.payload()? {
            Some(payload) if payload.source != source => Err(Error::Other(self.folder.clone())),
            _ => Ok(()),
        }
    }

    /// Tells whether it has once followed all of its source.
    #[must_use]
    pub fn has_followed(&self) -> bool {
        self.payload().is_ok_and(|payload| payload.is_some_and(|payload| payload.update > 0))
    }

    /// Returns number and version of each document that was looked at, in the order of numbers.
    pub fn versions(&self) -> Result<Vec<(u64, u64)>, Error> {
        let failed = |error| self.damaged(error);
        let searcher = self.reader.searcher();
        let mut versions = Vec::new();
        for segment in searcher.segment_readers() {
            let columns = segment.fast_fields();
            let numbers = columns.u64("number").map_err(failed)?;
            let of = columns.u64("version").map_err(failed)?;
            let pair = |document| Some((numbers.first(document)?, of.first(document)?));
            versions.extend(segment.doc_ids_alive().filter_map(pair));
        }
        // Of a document that is in both, the index is right: the list is written after it.
        versions.extend(self.hidden());
        versions.sort_by_key(|(number, _)| *number);
        versions.dedup_by_key(|(number, _)| *number);
        Ok(versions)
    }

    /// Has the index begin anew, of nothing.
    pub fn clear(&self, source: &str) -> Result<(), Error> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = self.writer(&Plan::new(self.config.memory.bytes(), 0))?;
        writer.delete_all_documents().map_err(|error| self.damaged(error))?;
        self.note_hidden(&HashMap::new())?;
        self.commit(writer, &Payload { update: 0, source: source.to_owned() })
    }

    /// Takes the documents of `gone` out, and those of `changed` in as `read` returns them, which
    /// leaves out what cannot be read. Commits again and again, so that a kill loses no more than
    /// the last part. `source` names what they are of.
    pub fn follow(
        &self,
        source: &str,
        gone: &[u64],
        changed: &[u64],
        read: &mut ReadVersions<'_>,
    ) -> Result<Followed, Error> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Followed::default();
        if gone.is_empty() && changed.is_empty() && self.has_followed() {
            return Ok(all);
        }
        let mut hidden = self.hidden();
        let mut parts = changed.chunks(PART_DOCUMENTS).peekable();
        let mut gone = gone;
        loop {
            let part = parts.next().unwrap_or_default();
            let update = u64::from(self.has_followed() || parts.peek().is_none());
            let plan = Plan::new(self.config.memory.bytes(), part.len() as u64);
            let writer = self.writer(&plan)?;
            let remove = |number: u64| {
                writer.delete_term(Term::from_field_u64(self.fields.number, number));
            };
            for number in std::mem::take(&mut gone) {
                remove(*number);
                all.removed += u64::from(hidden.remove(number).is_none());
            }
            let mut waiting = part.chunks(READ);
            let mut ready = Vec::new().into_iter();
            let next = || {
                loop {
                    let Some(NewVersion { number, version, entry }) = ready.next() else {
                        let Some(numbers) = waiting.next() else { return Ok(None) };
                        let found = read(numbers)?;
                        all.unreadable += (numbers.len() - found.len()) as u64;
                        ready = found.into_iter();
                        continue;
                    };
                    remove(number);
                    hidden.remove(&number);
                    if let Some(entry) = entry {
                        return Ok(Some(Numbered { number, version, entry }));
                    }
                    all.removed += 1;
                    if version != 0 {
                        hidden.insert(number, version);
                    }
                }
            };
            all.indexed += self.add(&writer, &plan, next)?;
            self.commit(writer, &Payload { update, source: source.to_owned() })?;
            self.note_hidden(&hidden)?;
            if parts.peek().is_none() {
                return Ok(all);
            }
        }
    }

    fn note_hidden(&self, hidden: &HashMap<u64, u64>) -> Result<(), Error> {
        let path = self.folder.join(HIDDEN);
        let partial = path.with_extension("partial");
        let pairs = hidden.iter().flat_map(|(number, version)| [*number, *version]);
        let bytes: Vec<u8> = pairs.flat_map(u64::to_be_bytes).collect();
        let written = fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, &path));
        written.map_err(|source| Error::Io { path, source })
    }

    /// Documents that are not shown, with their versions. A list that cannot be read is none.
    fn hidden(&self) -> HashMap<u64, u64> {
        let bytes = fs::read(self.folder.join(HIDDEN)).unwrap_or_default();
        let number = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes);
        let pairs = bytes.as_chunks::<8>().0.as_chunks::<2>().0.iter();
        pairs.map(|[document, version]| (number(document), number(version))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::search::Config;

    fn version(number: u64) -> NewVersion {
        let text = format!("word{} other{number}", number % 7);
        let entry = Entry { id: number.to_string(), text, ..Entry::default() };
        // Each tenth is there and not shown.
        let entry = Some(entry).filter(|_| !number.is_multiple_of(10));
        NewVersion { number, version: number + 1, entry }
    }

    #[test]
    fn an_update_that_fails_keeps_what_was_committed_and_goes_on_from_there() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Search::open_at(Some(&folder.path().join("index")), &Config::default());
        let search = open().unwrap();
        let all: Vec<u64> = (1..=PART_DOCUMENTS as u64 + 50).collect();
        let (first, rest) = all.split_at(PART_DOCUMENTS);
        let failed = search.follow("a corpus", &[], &all, &mut |numbers| {
            if numbers[0] == rest[0] {
                return Err(Error::Stopped);
            }
            Ok(numbers.iter().copied().map(version).collect())
        });
        assert!(matches!(failed, Err(Error::Stopped)));
        drop(search);
        let search = open().unwrap();
        assert!(!search.has_followed(), "it has not seen all");
        let pairs = |numbers: &[u64]| numbers.iter().map(|n| (*n, n + 1)).collect::<Vec<_>>();
        assert_eq!(search.versions().unwrap(), pairs(first));
        let read = &mut |numbers: &[u64]| Ok(numbers.iter().copied().map(version).collect());
        let followed = search.follow("a corpus", &[7, 10], rest, read).unwrap();
        // The tenth was not shown before either.
        assert_eq!(followed, Followed { indexed: 45, removed: 6, unreadable: 0 });
        assert!(search.has_followed());
        let left: Vec<u64> = all.iter().copied().filter(|n| ![7, 10].contains(n)).collect();
        assert_eq!(search.versions().unwrap(), pairs(&left));
        assert_eq!(
            search.documents(),
            left.iter().filter(|n| !n.is_multiple_of(10)).count() as u64
        );
        // Without the list beside it, those that are not shown are looked at again.
        fs::remove_file(folder.path().join("index").join(HIDDEN)).unwrap();
        assert_eq!(search.versions().unwrap().len() as u64, search.documents());
        assert!(matches!(search.check_source("another"), Err(Error::Other(_))));
    }
}
