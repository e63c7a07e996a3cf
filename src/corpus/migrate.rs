//! A store of an older format, written anew: every row is read, gets the new numbers of documents
//! and contents, and is written, until nothing is left; then the new store is checked as a whole.
//!
//! Memory: the cache, half of it for each of both stores, one commit, and what a check takes.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::check;
use super::documents::{Piece, StoredBody};
use super::index;
use super::tables::{
    ARRIVALS, BODIES, BODY_PARTS, BOILERPLATE, CHANGE_LOG, CHANGE_PLACES, CONTENTS, COPIES,
    DOC_IDS, DOCUMENTS, ENDED_LOG, ERROR_PAGES, GROWTH, HISTORY, PAGES, RANKING, REVIEWS,
    SEARCH_CHANGES, SENT, SENT_URLS, UNSURE, VERDICT_LOG, VERDICT_PLACES,
};
use crate::frontier::{
    ADDRESSES, DOMAINS, DUPLICATES, FEED_HOSTS, FEEDS, HOST_NUMBERS, HOSTS, INLINKS, KNOWN_PAGES,
    KNOWN_SKIPPED, LATER, LEADS, LISTS, OUTBOX, PATTERNS, QUEUE, REVISITS, ROBOTS, RULE_KEYS,
    RULES, SCHEDULE, SKIPPED, URL_PATTERNS,
};
use crate::store::{
    BadRow, Batch, COUNTERS, Error, Key, META, Migration, Name, Reading as _, Renumber, Row as _,
    STORE_NUMBER, Snapshot, Store, Table, TableRow, Update as _, View as _, read_number,
    sequence_of, unique_number,
};
use crate::warc::PAYLOADS;

/// Bytes of keys and rows that are written in one commit.
const COMMIT_BYTES: usize = 16 << 20;

/// Faults of the new store that are told.
const FAULTS_TOLD: usize = 5;

/// What a migration has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Migrated {
    /// Format of the old store.
    pub from_format: u64,
    /// Number of the store from now on.
    pub store_number: u64,
    /// Documents.
    pub documents: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Where the old store is, if it was kept.
    pub kept: Option<PathBuf>,
    /// Bytes of the old store.
    pub old_bytes: u64,
    /// Bytes of the new one.
    pub new_bytes: u64,
}

/// Brings the store in `folder` to the present format; none if it has it. The old file stays beside
/// it if `keep` says so.
///
/// # Errors
///
/// Whatever it is, the store is as it was.
pub fn migrate(folder: &Path, cache_bytes: usize, keep: bool) -> Result<Option<Migrated>, Error> {
    let Some(mut work) = Migration::begin(folder, cache_bytes)? else { return Ok(None) };
    let old = work.old()?;
    let path = work.path().to_owned();
    let numbers = NewNumbers { store: work.number(), bad: false };
    let mut writer = Writer::new(work.new_store(), numbers);
    for name in Name::ALL {
        move_table(&old, &mut writer, *name).map_err(|error| at(&path, *name, error))?;
        tracing::info!(table = name.as_str(), "moved");
    }
    let rows = writer.end()?;
    let documents = verify(&old, work.new_store(), &path)?;
    drop(old);
    tracing::trace!("verified");
    let (from_format, store_number) = (work.format(), work.number());
    let ending = work.finish(keep)?;
    Ok(Some(Migrated {
        from_format,
        store_number,
        documents,
        rows,
        kept: ending.kept,
        old_bytes: ending.old_bytes,
        new_bytes: ending.new_bytes,
    }))
}

/// Names the table of a row that makes no sense.
fn at(path: &Path, table: Name, error: Error) -> Error {
    match error {
        Error::Row(bad) => {
            let detail = format!("table {}: {bad}", table.as_str());
            Error::Corrupt { path: path.to_owned(), detail }
        }
        other => other,
    }
}

/// Moves the rows of a table. A table that is new has to say here how that is done.
fn move_table(old: &Snapshot, writer: &mut Writer<'_>, name: Name) -> Result<(), Error> {
    let to = &mut Move { old, writer };
    match name {
        Name::Meta => to.facts(),
        // The index is made anew; parts of texts come with the first ones; runs over files have
        // stores of their own.
        Name::Near
        | Name::Keys
        | Name::Segments
        | Name::Merges
        | Name::IndexLog
        | Name::BodyParts
        | Name::LineLists
        | Name::LineCandidates => Ok(()),
        Name::HostNumbers => to.table(HOST_NUMBERS),
        Name::Domains => to.table(DOMAINS),
        Name::Patterns => to.table(PATTERNS),
        Name::Hosts => to.table(HOSTS),
        Name::Robots => to.table(ROBOTS),
        Name::Addresses => to.table(ADDRESSES),
        Name::Queue => to.table(QUEUE),
        Name::Lists => to.table(LISTS),
        Name::Outbox => to.table(OUTBOX),
        Name::Schedule => to.table(SCHEDULE),
        Name::Later => to.table(LATER),
        Name::Revisits => to.table(REVISITS),
        Name::Inlinks => to.table(INLINKS),
        Name::Documents => to.table(DOCUMENTS),
        Name::DocIds => to.table(DOC_IDS),
        Name::Copies => to.table(COPIES),
        Name::Contents => to.table(CONTENTS),
        Name::Pages => to.table(PAGES),
        Name::Bodies => to.bodies(),
        Name::Unsure => to.table(UNSURE),
        Name::Reviews => to.table(REVIEWS),
        Name::Sent => to.table(SENT),
        Name::SentUrls => to.table(SENT_URLS),
        Name::Ranking => to.table(RANKING),
        Name::Arrivals => to.table(ARRIVALS),
        Name::Growth => to.table(GROWTH),
        Name::History => to.table(HISTORY),
        Name::Boilerplate => to.table(BOILERPLATE),
        Name::Rules => to.table(RULES),
        Name::RuleKeys => to.table(RULE_KEYS),
        Name::Skipped => to.table(SKIPPED),
        Name::UrlPatterns => to.table(URL_PATTERNS),
        Name::ErrorPages => to.table(ERROR_PAGES),
        Name::SearchChanges => to.changes(),
        Name::Feeds => to.table(FEEDS),
        Name::FeedHosts => to.table(FEED_HOSTS),
        Name::Verdicts => to.table(DUPLICATES),
        Name::KnownPages => to.table(KNOWN_PAGES),
        Name::KnownSkipped => to.table(KNOWN_SKIPPED),
        Name::Leads => to.table(LEADS),
        Name::VerdictLog => to.table(VERDICT_LOG),
        Name::VerdictPlaces => to.table(VERDICT_PLACES),
        Name::Payloads => to.table(PAYLOADS),
        Name::ChangeLog => to.table(CHANGE_LOG),
        Name::ChangePlaces => to.table(CHANGE_PLACES),
        Name::EndedLog => to.table(ENDED_LOG),
        Name::Counters => to.table(COUNTERS),
    }
}

/// Tells whether a table is of the index, which is made anew when the store is first opened.
fn is_of_index(name: Name) -> bool {
    let tables = [Name::Near, Name::Keys, Name::Segments, Name::Merges, Name::IndexLog];
    tables.contains(&name)
}

/// The way of rows from the old store to the new one.
struct Move<'a, 'w> {
    old: &'a Snapshot,
    writer: &'a mut Writer<'w>,
}

impl Move<'_, '_> {
    /// Moves rows that say themselves which numbers they have.
    fn table<K: Key, R: TableRow>(&mut self, table: Table<K, R>) -> Result<(), Error> {
        self.rows(table, |_, mut row, numbers| {
            R::renumber(&mut row, numbers);
            Ok(Some(row))
        })
    }

    /// Moves rows of which `change` says what becomes of them; none if they stay behind.
    fn rows<K: Key, R: TableRow>(
        &mut self,
        table: Table<K, R>,
        change: impl Fn(K::Ref<'_>, R::Value, &mut NewNumbers) -> Result<Option<R::Value>, Error>,
    ) -> Result<(), Error> {
        for entry in self.old.rows(table)? {
            let entry = entry?;
            let numbers = &mut self.writer.numbers;
            let row = change(entry.key()?, entry.row()?, numbers)?;
            let key = K::renumber(entry.key()?, numbers);
            numbers.check()?;
            if let Some(row) = row {
                self.writer.put(table, key, &row)?;
            }
        }
        Ok(())
    }

    /// Moves texts, each in as many pieces as it has now.
    fn bodies(&mut self) -> Result<(), Error> {
        for entry in self.old.rows(BODIES)? {
            let entry = entry?;
            let old = entry.key()?;
            let mut body = StoredBody::read(self.old, old, entry.bytes())?;
            body.renumber(&mut self.writer.numbers);
            let content = self.writer.numbers.of(old);
            self.writer.numbers.check()?;
            body.pieces(|piece| match piece {
                Piece::First(bytes) => self.writer.put(BODIES, content, &bytes),
                Piece::Further(at, bytes) => self.writer.put(BODY_PARTS, (content, at), &bytes),
            })?;
        }
        Ok(())
    }

    /// Moves the documents that search has not seen, each with a hash of what it shows of it, in
    /// which the number of its content is.
    fn changes(&mut self) -> Result<(), Error> {
        let old = self.old;
        self.rows(SEARCH_CHANGES, |number, shown, numbers| {
            let document = old.get(DOCUMENTS, number)?;
            // A hash that does not fit is a fault that the check finds.
            let Some(mut document) = document.filter(|document| document.shown() == shown) else {
                return Ok(Some(shown));
            };
            document.renumber(numbers);
            Ok(Some(document.shown()))
        })
    }

    /// Moves the small facts. The index of search finds documents by their numbers: a count of its
    /// updates that it cannot have come to has it made anew.
    fn facts(&mut self) -> Result<(), Error> {
        self.rows(META, fact)?;
        let updates = match self.old.bytes(META, SEARCH_UPDATE)? {
            Some(row) => read_number(&row)?,
            None => 0,
        };
        // It may be one ahead.
        let beyond = updates.saturating_add(2);
        self.writer.put(META, SEARCH_UPDATE, &beyond.to_be_bytes().to_vec())
    }
}

/// Name of the number of the last update of the search index in [`META`].
const SEARCH_UPDATE: &str = "search_update";

/// Moves a small fact; none if the new store has its own.
fn fact(name: &str, row: Vec<u8>, numbers: &mut NewNumbers) -> Result<Option<Vec<u8>>, Error> {
    match name {
        "format" | STORE_NUMBER | SEARCH_UPDATE | index::SETTINGS => Ok(None),
        "next_document" | "next_content" | "settled" => {
            let number = numbers.of(read_number(&row)?);
            Ok(Some(number.to_be_bytes().to_vec()))
        }
        _ => Ok(Some(row)),
    }
}

/// Writes rows to the new store, some in each commit.
struct Writer<'a> {
    store: &'a Store,
    batch: Option<Batch>,
    bytes: usize,
    rows: u64,
    numbers: NewNumbers,
}

impl<'a> Writer<'a> {
    fn new(store: &'a Store, numbers: NewNumbers) -> Self {
        Self { store, batch: None, bytes: 0, rows: 0, numbers }
    }

    fn put<K: Key, R: TableRow>(
        &mut self,
        table: Table<K, R>,
        key: K::Ref<'_>,
        row: &R::Value,
    ) -> Result<(), Error> {
        let batch = match &mut self.batch {
            Some(batch) => batch,
            none => none.insert(self.store.begin()?),
        };
        batch.put(table, key, row)?;
        self.rows += 1;
        self.bytes += K::encode(key).len() + row.encode().len();
        if self.bytes >= COMMIT_BYTES { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.bytes = 0;
        tracing::trace!("migrating");
        self.batch.take().map_or(Ok(()), Batch::commit)
    }

    /// Returns the number of rows that were written.
    fn end(mut self) -> Result<u64, Error> {
        self.commit()?;
        Ok(self.rows)
    }
}

/// The numbers that the new store gives to what the old one has.
#[derive(Debug)]
struct NewNumbers {
    store: u64,
    /// Some were none that a store gives.
    bad: bool,
}

impl NewNumbers {
    fn of(&mut self, old: u64) -> u64 {
        let sequence = sequence_of(old);
        if sequence != old && sequence > 0 && unique_number(old >> 40, sequence) == Some(old) {
            // The old store had its number already, or this came from another store that had.
            return old;
        }
        unique_number(self.store, old).unwrap_or_else(|| {
            self.bad = true;
            old
        })
    }

    /// Tells whether all numbers so far were such as stores give.
    fn check(&self) -> Result<(), BadRow> {
        let bad = BadRow { kind: "number", detail: "no store gives such a one" };
        if self.bad { Err(bad) } else { Ok(()) }
    }
}

impl Renumber for NewNumbers {
    fn document(&mut self, number: u64) -> u64 {
        self.of(number)
    }

    fn content(&mut self, number: u64) -> u64 {
        self.of(number)
    }
}

/// Looks whether the new store has all rows of the old one, and whether they agree. Returns the
/// number of its documents.
fn verify(old: &Snapshot, new: &mut Store, path: &Path) -> Result<u64, Error> {
    let corrupt = |detail| Error::Corrupt { path: path.to_owned(), detail };
    if !new.check_pages()? {
        return Err(corrupt("what was written of it cannot be read again".to_owned()));
    }
    let snapshot = new.snapshot()?;
    for name in Name::ALL.iter().filter(|name| !is_of_index(**name)) {
        let (before, after) = (old.rows_of(*name)?, snapshot.rows_of(*name)?);
        // Facts are added, and texts lie in more pieces.
        let may_grow = matches!(name, Name::Meta | Name::BodyParts);
        // Those of the index are left behind with it.
        let may_lose = u64::from(*name == Name::Meta);
        if after + may_lose < before || (after > before && !may_grow) {
            let table = name.as_str();
            return Err(corrupt(format!("table {table} has {before} rows, moved were {after}")));
        }
    }
    let findings = check::check(&snapshot)?;
    if findings.faults > 0 {
        let told = findings.listed.iter().take(FAULTS_TOLD).cloned().collect::<Vec<_>>();
        let (faults, told) = (findings.faults, told.join("; "));
        return Err(corrupt(format!("{faults} faults: {told}")));
    }
    snapshot.len(DOCUMENTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_no_store_gives_is_noticed() {
        let mut numbers = NewNumbers { store: 3, bad: false };
        assert_eq!(numbers.document(9), 3 << 40 | 9);
        assert_eq!(numbers.document(3 << 40 | 9), 3 << 40 | 9);
        assert_eq!(numbers.check(), Ok(()));
        numbers.document(1 << 40);
        assert!(numbers.check().is_err());
    }
}
