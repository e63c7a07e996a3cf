//! How the index is filled, and kept in step with the store.
//!
//! Whoever writes a document notes it in `search_changes`, in the same transaction. An update reads
//! the rows of that table and the documents as one state of the store, commits them to the index
//! together with the number of the update, and only then takes the rows out, if they still say what
//! was indexed, together with the same number. After a crash between the two the same rows are
//! indexed once more. An index whose number does not fit was lost, or is of another state of the
//! store: all documents are indexed anew.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread;

use serde::Serialize;
use tantivy::indexer::{IndexWriter, IndexWriterOptions};
use tantivy::{TantivyDocument, TantivyError, Term};

use super::folder::Payload;
use super::memory::{Held, Leaving, Merges, Plan, Room, Waiting};
use super::row::{Names, encode};
use super::terms::{analyse, joined};
use super::{Error, Search};
use crate::corpus::documents::{Document, read_body};
use crate::corpus::tables::{DOCUMENTS, SEARCH_CHANGES};
use crate::store::{self, META, Snapshot, Store, Update as _, View, read_number};

/// Name of the number of the last update in the table `meta`.
const UPDATE: &str = "search_update";

/// Texts that wait to be cut into words.
const WAITING_MAX: usize = 64;

/// What a text takes until a thread of the engine has it, in times its length: itself, its words,
/// and its row with the numbers of these.
const TIMES_TEXT: usize = 4;

/// Documents of one commit. While they are indexed, the store keeps every state of its pages since.
pub const PART_DOCUMENTS: usize = 10_000;

/// A document that belongs to no store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its identifier.
    pub id: String,
    /// Title.
    pub title: String,
    /// URL.
    pub url: String,
    /// Text.
    pub text: String,
}

impl Entry {
    /// A document as it is indexed; none if it is not shown, or has no text.
    pub fn of(view: &impl View, document: &Document) -> Result<Option<Self>, store::Error> {
        if document.shown() == 0 {
            return Ok(None);
        }
        let text = read_body(view, document.content)?;
        Ok(text.map(|text| Self {
            id: document.id.to_string(),
            title: document.title.clone(),
            url: document.canonical.clone(),
            text,
        }))
    }
}

/// A document on its way into the index.
#[derive(Debug)]
pub(super) struct Numbered {
    pub number: u64,
    pub version: u64,
    pub entry: Entry,
}

/// What an update has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Updated {
    /// Documents that were indexed.
    pub indexed: u64,
    /// Documents that had changed and are not shown any more.
    pub removed: u64,
    /// All of the index was made anew.
    pub all: bool,
    /// More documents had changed than were looked at.
    #[serde(skip)]
    pub more: bool,
}

/// The work of one update.
struct Work {
    /// Documents to be looked at, with what the store says of them.
    changes: Vec<(u64, u64)>,
    /// Number of this update.
    update: u64,
    all: bool,
    /// There are more changes than these.
    more: bool,
}

impl Search {
    /// Brings the index up to date with its store. Nothing of the store is kept from being written
    /// meanwhile, but for a moment after each part.
    pub fn update(&self, store: &Store) -> Result<Updated, Error> {
        let mut sum = Updated::default();
        loop {
            let updated = self.update_part(store, PART_DOCUMENTS)?;
            sum.indexed += updated.indexed;
            sum.removed += updated.removed;
            sum.all |= updated.all;
            if !updated.more {
                return Ok(sum);
            }
        }
    }

    /// Looks at no more than `documents_max` of the documents that have changed. An index that must
    /// be made anew is made in one go.
    pub fn update_part(&self, store: &Store, documents_max: usize) -> Result<Updated, Error> {
        self.bring(store, false, documents_max)
    }

    /// Makes the index anew from its store. The old one answers until the new one is whole.
    pub fn rebuild(&self, store: &Store) -> Result<Updated, Error> {
        self.bring(store, true, 0)
    }

    fn bring(&self, store: &Store, all: bool, documents_max: usize) -> Result<Updated, Error> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = store.snapshot()?;
        let seen = seen(&snapshot)?;
        let own = self.payload()?.filter(|payload| payload.source.is_empty());
        let own = own.map(|payload| payload.update);
        let fits = own.is_some_and(|own| own == seen || own == seen + 1);
        let all = all || !fits;
        let most = if all { usize::MAX } else { documents_max };
        // Each part begins behind the last one, so that none waits for ever behind the others.
        let from = if all { 0 } else { self.next.load(Ordering::Relaxed) };
        let behind = snapshot.range(SEARCH_CHANGES, from..)?;
        let before = snapshot.range(SEARCH_CHANGES, ..from)?;
        let rows = behind.chain(before).take(most);
        let changes = rows.map(|entry| {
            let entry = entry?;
            Ok((entry.key()?, entry.row()?))
        });
        let changes = changes.collect::<Result<Vec<(u64, u64)>, store::Error>>()?;
        if changes.is_empty() && !all && own == Some(seen) {
            return Ok(Updated::default());
        }
        let noted = snapshot.len(SEARCH_CHANGES)?;
        let more = noted > changes.len() as u64;
        let work = Work { changes, update: seen + 1, all, more };
        let updated = self.index(&snapshot, &work)?;
        drop(snapshot);
        settle(store, &work)?;
        let last = work.changes.last().map_or(0, |(number, _)| number.saturating_add(1));
        self.next.store(last, Ordering::Relaxed);
        Ok(updated)
    }

    fn index(&self, snapshot: &Snapshot, work: &Work) -> Result<Updated, Error> {
        let stored = snapshot.len(DOCUMENTS)?;
        let most = if work.all { stored } else { work.changes.len() as u64 };
        let mut updated = Updated { all: work.all, more: work.more, ..Updated::default() };
        let plan = Plan::new(self.config.memory.bytes(), most);
        let writer = self.writer(&plan)?;
        let failed = |error| self.damaged(error);
        if work.all {
            writer.delete_all_documents().map_err(failed)?;
            let mut rows = snapshot.rows(DOCUMENTS)?;
            let read = || {
                for row in rows.by_ref() {
                    let row = row?;
                    let document = row.row().map_err(store::Error::from)?;
                    if let Some(entry) = Entry::of(snapshot, &document)? {
                        let number = row.key().map_err(store::Error::from)?;
                        return Ok(Some(Numbered { number, version: 0, entry }));
                    }
                }
                Ok(None)
            };
            updated.indexed = self.add(&writer, &plan, read)?;
        } else {
            for (number, _) in &work.changes {
                writer.delete_term(Term::from_field_u64(self.fields.number, *number));
            }
            let mut numbers = work.changes.iter().map(|(number, _)| *number);
            let read = || {
                for number in numbers.by_ref() {
                    let Some(document) = snapshot.get(DOCUMENTS, number)? else {
                        continue;
                    };
                    if let Some(entry) = Entry::of(snapshot, &document)? {
                        return Ok(Some(Numbered { number, version: 0, entry }));
                    }
                }
                Ok(None)
            };
            updated.indexed = self.add(&writer, &plan, read)?;
            updated.removed = most - updated.indexed;
        }
        self.commit(writer, &Payload { update: work.update, source: String::new() })?;
        Ok(updated)
    }

    /// Fills the index with documents that belong to no store. If it was made from the same
    /// `source` before, it is left as it is, and nothing is read.
    pub fn fill(
        &self,
        source: &str,
        mut entries: impl Iterator<Item = Result<Entry, Box<dyn std::error::Error + Send + Sync>>>,
    ) -> Result<Updated, Error> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.payload()?.is_some_and(|payload| payload.source == source) {
            return Ok(Updated::default());
        }
        let plan = Plan::new(self.config.memory.bytes(), u64::MAX);
        let writer = self.writer(&plan)?;
        writer.delete_all_documents().map_err(|error| self.damaged(error))?;
        let mut number = 0;
        let indexed = self.add(&writer, &plan, || {
            let entry = entries.next().transpose().map_err(Error::Source)?;
            number += 1;
            Ok(entry.map(|entry| Numbered { number, version: 0, entry }))
        })?;
        self.commit(writer, &Payload { update: 0, source: source.to_owned() })?;
        Ok(Updated { indexed, all: true, ..Updated::default() })
    }

    pub(super) fn writer(&self, plan: &Plan) -> Result<IndexWriter<Waiting>, Error> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(plan.writers)
            .memory_budget_per_thread(plan.arena_bytes)
            .num_merge_threads(1)
            .build();
        let writer = self.index.writer_with_options(options);
        let writer: IndexWriter<Waiting> = writer.map_err(|error| self.damaged(error))?;
        let (files, bytes_max) = (self.index.directory().clone(), plan.merged_bytes_max);
        writer.set_merge_policy(Box::new(Merges { files, bytes_max }));
        // An update that was killed leaves files under names that the next one may want.
        writer.garbage_collect_files().wait().map_err(|error| self.damaged(error))?;
        Ok(writer)
    }

    /// Adds what `next` reads, cut into words on all cores, and returns its number.
    pub(super) fn add(
        &self,
        writer: &IndexWriter<Waiting>,
        plan: &Plan,
        mut next: impl FnMut() -> Result<Option<Numbered>, Error>,
    ) -> Result<u64, Error> {
        let (hand, work) = async_channel::bounded::<(Numbered, Held)>(WAITING_MAX);
        let room = Room::new(plan.waiting_bytes);
        let mut added = 0;
        thread::scope(|scope| {
            let hands: Vec<_> = (0..plan.cutters)
                .map(|_| {
                    let (work, leaving) = (work.clone(), Leaving(Arc::clone(&room)));
                    scope.spawn(move || {
                        let _leaving = leaving;
                        while let Ok((one, held)) = work.recv_blocking() {
                            let document = self.document(&one);
                            writer.add_document(Waiting::new(document, held))?;
                        }
                        Ok::<(), TantivyError>(())
                    })
                })
                .collect();
            drop(work);
            let mut read = || {
                while let Some(one) = next()? {
                    self.check_stop()?;
                    added += 1;
                    let held = room.take(one.entry.text.len() * TIMES_TEXT);
                    // All threads have failed: what they say comes below.
                    if hand.send_blocking((one, held)).is_err() {
                        break;
                    }
                }
                Ok::<(), Error>(())
            };
            let mut result = read();
            drop(hand);
            for hand in hands {
                let ended = hand.join().unwrap_or_else(|_| {
                    Err(TantivyError::InternalError("a thread has panicked".to_owned()))
                });
                result = result.and(ended.map_err(|error| self.damaged(error)));
            }
            result
        })?;
        Ok(added)
    }

    fn document(&self, Numbered { number, version, entry }: &Numbered) -> TantivyDocument {
        let analysed = analyse(&entry.text);
        let names = Names { id: &entry.id, title: &entry.title, url: &entry.url };
        let mut document = TantivyDocument::new();
        document.add_u64(self.fields.number, *number);
        document.add_u64(self.fields.version, *version);
        document.add_text(self.fields.words, analysed.words);
        document.add_text(self.fields.title, joined(&entry.title));
        let row = encode(&names, &analysed.sentences, &entry.text);
        document.add_bytes(self.fields.row, &row);
        document
    }

    /// Commits, waits until segments are merged, and lets readers see it.
    pub(super) fn commit(
        &self,
        mut writer: IndexWriter<Waiting>,
        payload: &Payload,
    ) -> Result<(), Error> {
        let failed = |error| self.damaged(error);
        let mut prepared = writer.prepare_commit().map_err(failed)?;
        prepared.set_payload(&serde_json::to_string(payload).expect("it has a form in JSON"));
        prepared.commit().map_err(failed)?;
        writer.wait_merging_threads().map_err(failed)?;
        self.reader.reload().map_err(failed)
    }
}

/// Number of the last update that the store knows of.
fn seen(snapshot: &Snapshot) -> Result<u64, Error> {
    let number = snapshot.bytes(META, UPDATE)?.map(|row| read_number(&row)).transpose();
    Ok(number.map_err(store::Error::from)?.unwrap_or(0))
}

/// Takes out of the store what is indexed now. What was changed meanwhile stays for the next time.
fn settle(store: &Store, work: &Work) -> Result<(), store::Error> {
    let _turn = store.turn();
    let mut batch = store.begin()?;
    for (number, shown) in &work.changes {
        if batch.get(SEARCH_CHANGES, *number)? == Some(*shown) {
            batch.remove(SEARCH_CHANGES, *number)?;
        }
    }
    batch.put(META, UPDATE, &work.update.to_be_bytes().to_vec())?;
    batch.commit()?;
    Ok(())
}
