//! New, changed and ended documents, for whoever keeps something in step with a store.
//!
//! In: a cursor. Out: changes after it, each with the cursor that goes on behind it. Who begins
//! gets every document once, in the order of their numbers; from then on, documents in the order of
//! their last changes. A document that changes again while it is told goes to the end, so that
//! nothing is missed; and it stands there once, however often it has changed.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::documents::{CHANGES_FROM, DocId, Document, NEXT_CHANGE};
use super::export::{self, Row};
use super::tables::{CHANGE_LOG, CHANGE_PLACES, DOCUMENTS, ENDED_LOG};
use crate::base::clock::Timestamp;
use crate::store::{self, CHANGES_EPOCH, META, STORE_NUMBER, Snapshot, View as _, read_number};
use crate::web::robots::meta::Honour;

/// Documents that one part looks at.
const LOOKED_AT_MAX: usize = 5_000;

/// Bytes of texts after which a part ends.
const BYTES_MAX: usize = 8 << 20;

/// Bytes of a cursor: checksum, epoch, kind, two numbers.
const CURSOR_BYTES: usize = 33;

/// A place in the changes of a store. Readers take it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangesCursor {
    /// Of which life of which store it is.
    epoch: u64,
    at: ChangesPlace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangesPlace {
    /// Documents up to this number are told; the log follows behind `head`.
    Documents { told: u64, head: u64 },
    /// The log is told up to here.
    Log { told: u64 },
}

/// A cursor that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangesError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// It is none.
    #[error("`{0}` is no cursor: it is what `cursor` or `next` of an answer says")]
    NoCursor(String),
    /// It is of another store, or of one that was put back from a backup since.
    #[error("the cursor is of another store, or of a time that a restore took back: begin anew")]
    Other,
    /// More documents have ended since than are remembered.
    #[error("the cursor is too old: more has ended since than is remembered: begin anew")]
    TooOld,
}

impl From<store::BadRow> for ChangesError {
    fn from(error: store::BadRow) -> Self {
        Self::Store(error.into())
    }
}

impl fmt::Display for ChangesCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let place = self.bytes();
        for byte in xxh3_64(&place).to_be_bytes().iter().chain(&place) {
            write!(text, "{byte:02x}")?;
        }
        f.write_str(&text)
    }
}

impl FromStr for ChangesCursor {
    type Err = ChangesError;

    fn from_str(text: &str) -> Result<Self, ChangesError> {
        let none = || ChangesError::NoCursor(text.to_owned());
        if text.len() != 2 * CURSOR_BYTES || !text.is_ascii() {
            return Err(none());
        }
        let digits = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16);
        let bytes: Result<Vec<u8>, _> = (0..CURSOR_BYTES).map(digits).collect();
        let bytes = bytes.map_err(|_| none())?;
        let number = |at: usize| {
            let part: Result<[u8; 8], _> = bytes[at..at + 8].try_into();
            part.map(u64::from_be_bytes).unwrap_or_default()
        };
        let (epoch, told, head) = (number(8), number(17), number(25));
        let at = match bytes[16] {
            0 => ChangesPlace::Documents { told, head },
            _ => ChangesPlace::Log { told },
        };
        let cursor = Self { epoch, at };
        if number(0) == xxh3_64(&cursor.bytes()) { Ok(cursor) } else { Err(none()) }
    }
}

impl ChangesCursor {
    fn bytes(self) -> Vec<u8> {
        let (kind, told, head) = match self.at {
            ChangesPlace::Documents { told, head } => (0, told, head),
            ChangesPlace::Log { told } => (1, told, 0),
        };
        let mut bytes = self.epoch.to_be_bytes().to_vec();
        bytes.push(kind);
        bytes.extend_from_slice(&u64::to_be_bytes(told));
        bytes.extend_from_slice(&u64::to_be_bytes(head));
        bytes
    }

    /// Returns the cursor before everything.
    pub fn first(snapshot: &Snapshot) -> Result<Self, ChangesError> {
        let at = ChangesPlace::Documents { told: 0, head: head(snapshot)? };
        Ok(Self { epoch: epoch(snapshot)?, at })
    }

    /// Returns the cursor behind all that has come so far.
    pub fn last(snapshot: &Snapshot) -> Result<Self, store::Error> {
        let at = ChangesPlace::Log { told: head(snapshot)? };
        Ok(Self { epoch: epoch(snapshot)?, at })
    }

    /// Tells whether a document has changed after all that a cursor behind the documents tells. All
    /// have, where it is of another store.
    pub(in crate::corpus) fn is_before(
        self,
        snapshot: &Snapshot,
        document: u64,
    ) -> Result<bool, store::Error> {
        let ChangesPlace::Log { told } = self.at else { return Ok(true) };
        let place = snapshot.get(CHANGE_PLACES, document)?;
        Ok(self.epoch != epoch(snapshot)? || place.is_some_and(|place| place > told))
    }
}

fn meta(snapshot: &Snapshot, name: &str) -> Result<Option<u64>, store::Error> {
    Ok(snapshot.bytes(META, name)?.map(|row| read_number(&row)).transpose()?)
}

fn head(snapshot: &Snapshot) -> Result<u64, store::Error> {
    Ok(meta(snapshot, NEXT_CHANGE)?.unwrap_or(0))
}

fn epoch(snapshot: &Snapshot) -> Result<u64, store::Error> {
    let epoch = meta(snapshot, CHANGES_EPOCH)?;
    let number = meta(snapshot, STORE_NUMBER)?;
    Ok(epoch.or(number).unwrap_or(0))
}

/// A change, as it is told: one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum Change {
    /// The document is new, or says something else: what a reader has of it is replaced.
    Upsert {
        /// Goes on behind it.
        cursor: String,
        /// The document, as an export has it.
        #[serde(flatten)]
        row: Box<Row>,
    },
    /// The document is not to be shown any more.
    #[serde(rename_all = "camelCase")]
    Delete {
        /// Goes on behind it.
        cursor: String,
        /// Its identifier.
        doc_id: String,
        /// `merged`, `ended`, `gone`, or what its pages ask for.
        reason: &'static str,
        /// Identifier of the document that it is part of since.
        #[serde(skip_serializing_if = "Option::is_none")]
        into: Option<String>,
    },
}

/// The line behind the changes of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangesEnd {
    /// Where the next answer goes on.
    pub next: String,
    /// There is more now.
    pub more: bool,
}

/// A part of the changes.
#[derive(Debug)]
pub struct ChangesPart {
    /// The changes.
    pub changes: Vec<Change>,
    /// Where they go on.
    pub next: ChangesCursor,
    /// There are more now.
    pub more: bool,
}

impl ChangesPart {
    /// Returns the line that stands behind the changes.
    #[must_use]
    pub fn end(&self) -> ChangesEnd {
        ChangesEnd { next: self.next.to_string(), more: self.more }
    }
}

/// What pages ask of those who use their text, and when it is.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// What is honoured.
    pub honour: &'a Honour,
    /// The present moment.
    pub now: Timestamp,
}

/// Returns changes behind a cursor: at most `most`.
pub fn changes(
    snapshot: &Snapshot,
    from: &ChangesCursor,
    most: usize,
    shown: Shown<'_>,
) -> Result<ChangesPart, ChangesError> {
    let head = head(snapshot)?;
    let (reached, since) = match from.at {
        ChangesPlace::Documents { head, .. } => (head, head),
        ChangesPlace::Log { told } => (told, told),
    };
    if from.epoch != epoch(snapshot)? || reached > head {
        return Err(ChangesError::Other);
    }
    if meta(snapshot, CHANGES_FROM)?.is_some_and(|forgotten| forgotten > since) {
        return Err(ChangesError::TooOld);
    }
    let mut part = PartMaker {
        snapshot,
        shown,
        most,
        bytes: 0,
        looked_at: 0,
        part: ChangesPart { changes: Vec::new(), next: *from, more: false },
    };
    if let ChangesPlace::Documents { told, head } = from.at
        && !part.documents(told, head)?
    {
        part.part.more = true;
        return Ok(part.part);
    }
    part.log(since)?;
    Ok(part.part)
}

/// A part of the changes on its way.
struct PartMaker<'a> {
    snapshot: &'a Snapshot,
    shown: Shown<'a>,
    most: usize,
    bytes: usize,
    looked_at: usize,
    part: ChangesPart,
}

impl PartMaker<'_> {
    fn is_full(&self) -> bool {
        let rows = self.part.changes.len();
        rows == self.most || self.looked_at == LOOKED_AT_MAX || self.bytes >= BYTES_MAX
    }

    /// Tells documents by their numbers. Returns whether these were all.
    fn documents(&mut self, told: u64, head: u64) -> Result<bool, ChangesError> {
        for entry in self.snapshot.range(DOCUMENTS, told.saturating_add(1)..)? {
            if self.is_full() {
                return Ok(false);
            }
            let entry = entry?;
            let (number, document) = (entry.key()?, entry.row()?);
            self.part.next.at = ChangesPlace::Documents { told: number, head };
            self.looked_at += 1;
            if self.snapshot.get(CHANGE_PLACES, number)?.is_some_and(|place| place > head) {
                // It came or changed since the reader began: the log tells it.
                continue;
            }
            // What was never told need not be taken back.
            if let Some(change @ Change::Upsert { .. }) = self.change_of(number, document)? {
                self.part.changes.push(change);
            }
        }
        self.part.next.at = ChangesPlace::Log { told: head };
        Ok(true)
    }

    /// Tells what has changed after a place of the log.
    fn log(&mut self, told: u64) -> Result<(), ChangesError> {
        let from = told.saturating_add(1);
        let mut changed = self.snapshot.range(CHANGE_LOG, from..)?.peekable();
        let mut ended = self.snapshot.range(ENDED_LOG, from..)?.peekable();
        loop {
            let key = |place: Result<u64, store::BadRow>| place.map_err(ChangesError::from);
            let one = match changed.peek() {
                Some(Ok(entry)) => Some(key(entry.key())?),
                Some(Err(_)) => Some(0),
                None => None,
            };
            let other = match ended.peek() {
                Some(Ok(entry)) => Some(key(entry.key())?),
                Some(Err(_)) => Some(0),
                None => None,
            };
            if one.is_none() && other.is_none() {
                return Ok(());
            }
            if self.is_full() {
                self.part.more = true;
                return Ok(());
            }
            self.looked_at += 1;
            if one.is_some_and(|one| other.is_none_or(|other| one < other)) {
                let Some(entry) = changed.next().transpose()? else { return Ok(()) };
                self.part.next.at = ChangesPlace::Log { told: entry.key()? };
                let number = entry.row()?;
                if let Some(document) = self.snapshot.get(DOCUMENTS, number)?
                    && let Some(change) = self.change_of(number, document)?
                {
                    self.part.changes.push(change);
                }
            } else {
                let Some(entry) = ended.next().transpose()? else { return Ok(()) };
                self.part.next.at = ChangesPlace::Log { told: entry.key()? };
                let row = entry.row()?;
                let into = (row.into != DocId(0)).then(|| row.into.to_string());
                let reason = if into.is_some() { "merged" } else { "ended" };
                let change = self.delete(row.id, reason, into);
                self.part.changes.push(change);
            }
        }
    }

    fn change_of(
        &mut self,
        number: u64,
        mut document: Document,
    ) -> Result<Option<Change>, ChangesError> {
        let id = document.id;
        let Shown { honour, now } = self.shown;
        let hidden = match export::show(self.snapshot, number, &mut document, honour, now)? {
            Ok(hidden) => hidden,
            Err(reason) => return Ok(Some(self.delete(id, reason, None))),
        };
        let mut row = export::row_of(self.snapshot, &document)?;
        if hidden {
            (row.text, row.withheld) = (String::new(), "noarchive");
        }
        self.bytes += row.text.len();
        let cursor = self.part.next.to_string();
        Ok(Some(Change::Upsert { cursor, row: Box::new(row) }))
    }

    fn delete(&self, id: DocId, reason: &'static str, into: Option<String>) -> Change {
        let (cursor, doc_id) = (self.part.next.to_string(), id.to_string());
        Change::Delete { cursor, doc_id, reason, into }
    }
}
