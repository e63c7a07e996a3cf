//! Rows of documents of the cluster as one transaction sees them: read as they are asked for,
//! changed here, and written by whoever commits it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use crate::cluster::{Found, How, Live, Look, Version};
use crate::corpus::documents::{Content, Document};
use crate::corpus::tables::{CONTENTS, DOCUMENTS};
use crate::neardup::Candidate;
use crate::store::{
    BadRow, Bytes, End, Error, Name, RawRows, Reading, Row as _, Table, Transaction, View as _,
    Writing,
};
use crate::text::features::ArticleKeys;

use super::SharedCorpus;
use super::keys::SharedKeys;
use super::rows::{PartRow, is_by_content, is_by_document, sort};
use super::texts::StoredPlaceOfText;
use super::written::Written;

/// Articles that are placed together. They do not ask the cluster for each other: whoever is judged
/// later sees what was judged before it as it will be written.
#[derive(Default)]
pub(super) struct Peers {
    /// Their numbers.
    pub numbers: HashSet<u64>,
    /// Rows of those that were judged; none of one that is no document of its own.
    pub judged: HashMap<u64, Vec<PartRow>>,
}

/// What one transaction has read and changed.
pub(super) struct Unit<'a> {
    pub corpus: &'a SharedCorpus,
    /// The number of the article that is placed: what is pending and older is waited for.
    asker: Option<u64>,
    /// Who else is placed with it.
    peers: Option<&'a RefCell<Peers>>,
    /// Identifiers, and the documents that may have them, as far as they were asked for.
    ids: HashMap<u128, Vec<u64>>,
    /// It is not used as the number of a document yet, and of a content.
    spare: [bool; 2],
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// Rows of the documents that were read.
    rows: BTreeMap<(Name, Vec<u8>), Vec<u8>>,
    documents: HashMap<u64, ReadDocument>,
    /// Documents that are not there, or pending.
    absent: HashSet<u64>,
    /// Documents that are not written yet: those of peers.
    expected: HashSet<u64>,
    /// Content -> its document.
    owners: HashMap<u64, u64>,
    /// What was there before each change, in their order.
    undo: Vec<Undo>,
    written: Written,
    counts: HashMap<String, u64>,
    /// Something pending must be waited for.
    waits: bool,
}

impl State {
    /// What there is of a document was asked for.
    fn knows(&self, document: u64) -> bool {
        self.documents.contains_key(&document) || self.absent.contains(&document)
    }

    /// Notes of a row what the judge of this transaction must find though the cluster does not have
    /// it yet.
    fn note_written(&mut self, table: Name, key: &[u8], row: &[u8]) -> Result<(), BadRow> {
        if table == Name::Contents {
            let (content, row) = (number_of(key)?, Content::decode(row)?);
            self.owners.insert(content, row.document);
            self.written.note_text(row.hash, content);
        } else if table == Name::Documents {
            let was = self.rows.get(&(table, key.to_vec()));
            let was = was.map(|was| Document::decode(was)).transpose()?;
            if was.map(|was| was.root) != Some(Document::decode(row)?.root) {
                self.written.note_rooted(number_of(key)?);
            }
        }
        Ok(())
    }

    fn take_in(&mut self, number: u64, read: ReadDocument) -> Result<(), BadRow> {
        for part in read.was.iter().cloned() {
            let key = if is_by_document(part.table) {
                [&number.to_be_bytes()[..], &part.key].concat()
            } else {
                if part.table == Name::Contents {
                    self.owners.insert(number_of(&part.key)?, number);
                }
                part.key
            };
            self.rows.insert((part.table, key), part.row);
        }
        self.documents.insert(number, read);
        Ok(())
    }
}

struct ReadDocument {
    version: Version,
    /// As the cluster has it, and all its rows.
    row: Vec<u8>,
    was: Vec<PartRow>,
}

struct Undo {
    table: Name,
    key: Vec<u8>,
    row: Option<Vec<u8>>,
}

/// A document that was read, or made, and changed.
pub(super) struct ChangedDocument {
    pub number: u64,
    pub version: Version,
    /// What the cluster has of it.
    pub row: Option<Vec<u8>>,
    /// Its rows as they were read, and as they are.
    pub was: Vec<PartRow>,
    pub is: Vec<PartRow>,
}

impl<'a> Unit<'a> {
    pub(super) fn new(corpus: &'a SharedCorpus, asker: Option<u64>) -> Self {
        let spare = [asker.is_some(); 2];
        let (ids, state) = (HashMap::new(), RefCell::default());
        Self { corpus, asker, peers: None, ids, spare, state }
    }

    /// That of one of several articles that are placed together.
    pub(super) fn among(
        corpus: &'a SharedCorpus,
        asker: Option<u64>,
        peers: &'a RefCell<Peers>,
    ) -> Self {
        Self { peers: asker.and(Some(peers)), ..Self::new(corpus, asker) }
    }

    /// Notes which documents may have an identifier.
    pub(super) fn know_id(&mut self, id: u128, documents: Vec<u64>) {
        self.ids.insert(id, documents);
    }

    /// Returns what was noted.
    pub(super) fn known_id(&self, id: u128) -> Option<Vec<u64>> {
        self.ids.get(&id).cloned()
    }

    /// Tells whether something pending was met that must be waited for.
    pub(super) fn waits(&self) -> bool {
        self.state.borrow().waits
    }

    /// Has the change refused, to be tried again, if a document had a copy at a URL before it.
    pub(super) fn refuse_if_copied(&self, document: u64, url: &str) {
        let key = [&document.to_be_bytes()[..], url.as_bytes()].concat();
        let state = &mut *self.state.borrow_mut();
        let first = state.undo.iter().find(|undo| undo.table == Name::Copies && undo.key == key);
        state.waits |= first.is_some_and(|undo| undo.row.is_some());
    }

    /// What was counted.
    pub(super) fn counts(&self) -> HashMap<String, u64> {
        self.state.borrow().counts.clone()
    }

    /// Says how those of some documents are looked at that were not read yet.
    pub(super) fn wanted(&self, documents: &[u64]) -> Vec<Look> {
        let state = self.state.borrow();
        let mut looks: Vec<Look> = Vec::new();
        for document in documents.iter().copied() {
            let known = state.knows(document) || looks.iter().any(|look| look.document == document);
            if !known && self.asker != Some(document) && !self.is_peer(document) {
                let how = match self.asker {
                    None => How::Read,
                    Some(asker) if document < asker => How::Newer,
                    Some(_) => How::Older,
                };
                looks.push(Look { document, how });
            }
        }
        looks
    }

    fn is_peer(&self, document: u64) -> bool {
        self.peers.is_some_and(|peers| peers.borrow().numbers.contains(&document))
    }

    /// Takes in those of some documents that are placed with this one: as they will be, if they
    /// are older. They see the newer ones.
    fn meet(&self, documents: &[u64]) -> Result<(), Error> {
        let Some(peers) = self.peers.map(RefCell::borrow) else { return Ok(()) };
        let is_met = |number: &&u64| peers.numbers.contains(number) && self.asker != Some(**number);
        for number in documents.iter().filter(is_met).copied() {
            let state = &mut *self.state.borrow_mut();
            if state.knows(number) {
                continue;
            }
            match peers.judged.get(&number) {
                _ if self.asker < Some(number) => drop(state.absent.insert(number)),
                None => state.waits = true,
                Some(rows) if rows.is_empty() => drop(state.absent.insert(number)),
                Some(rows) => {
                    state.expected.insert(number);
                    let (version, row, was) = (Version::NONE, Vec::new(), rows.clone());
                    state.take_in(number, ReadDocument { version, row, was })?;
                }
            }
        }
        Ok(())
    }

    /// Tells whether it changes a document that is not written yet: it must wait for that.
    pub(super) fn changes_peer(&self) -> Result<bool, Error> {
        let changed = self.changed_numbers()?;
        Ok(!self.state.borrow().expected.is_disjoint(&changed.into_iter().collect()))
    }

    /// Reads documents that were not read yet.
    pub(super) fn load(&self, documents: &[u64]) -> Result<(), Error> {
        self.meet(documents)?;
        let looks = self.wanted(documents);
        if looks.is_empty() {
            return Ok(());
        }
        let found = self.corpus.engine.borrow_mut().look_unlocked(&looks)?;
        self.corpus.fetch_records(&found)?;
        looks.into_iter().zip(found).try_for_each(|(look, found)| self.take_in(look, found))
    }

    /// Takes in what was there of a document.
    pub(super) fn take_in(&self, look: Look, found: Found) -> Result<(), Error> {
        let number = look.document;
        let Live { version, row } = match found {
            Found::Live(live) => live,
            Found::Waits => {
                self.state.borrow_mut().waits = true;
                return Ok(());
            }
            Found::Nothing | Found::Locked(_) => {
                self.state.borrow_mut().absent.insert(number);
                return Ok(());
            }
        };
        let was = self.corpus.unpack(&row)?;
        Ok(self.state.borrow_mut().take_in(number, ReadDocument { version, row, was })?)
    }

    /// Returns the numbers of the contents of a document that was read.
    pub(super) fn contents_of(&self, document: u64) -> Vec<u64> {
        let state = self.state.borrow();
        let owners = state.owners.iter().filter(|(_, owner)| **owner == document);
        let mut contents: Vec<u64> = owners.map(|(content, _)| *content).collect();
        contents.sort_unstable();
        contents
    }

    /// Returns the contents of a hash that were written here.
    pub(super) fn contents_written(&self, hash: u128) -> Vec<u64> {
        self.state.borrow().written.contents(hash)
    }

    /// Returns the documents that share a key with an article: those to which the cluster leads,
    /// and those that were made here, or have got their roots here.
    pub(super) fn candidates(
        &self,
        keys: &ArticleKeys,
        found: &SharedKeys,
    ) -> Result<Vec<Candidate>, Error> {
        let rooted = self.state.borrow_mut().written.take_rooted();
        for number in rooted {
            let Some(document) = self.get(DOCUMENTS, number)? else { continue };
            let Some(root) = self.get(CONTENTS, document.root)? else { continue };
            let written = &mut self.state.borrow_mut().written;
            let added = written.add(number, &root.keys(), &self.corpus.config);
            added.map_err(super::Error::from)?;
        }
        self.state.borrow().written.candidates(keys, found, &self.corpus.finder)
    }

    /// Returns the version of a document that was read.
    pub(super) fn version_read(&self, document: u64) -> Option<Version> {
        self.state.borrow().documents.get(&document).map(|read| read.version)
    }

    /// Returns all rows of a document that was read, as they were.
    pub(super) fn rows_read(&self, document: u64) -> Option<Vec<PartRow>> {
        self.state.borrow().documents.get(&document).map(|read| read.was.clone())
    }

    /// Returns the documents that were changed, as they were and as they are, with their texts in
    /// files.
    pub(super) fn changed(&self) -> Result<Vec<ChangedDocument>, Error> {
        self.keep_texts()?;
        let mut changed = Vec::new();
        for number in self.changed_numbers()? {
            let is = self.rows_of_document(number);
            let state = self.state.borrow();
            let (version, row, was) = match state.documents.get(&number) {
                Some(read) if read.was == is => continue,
                Some(read) => (read.version, Some(read.row.clone()), read.was.clone()),
                None if is.is_empty() => continue,
                None => (Version::NONE, None, Vec::new()),
            };
            changed.push(ChangedDocument { number, version, row, was, is });
        }
        Ok(changed)
    }

    /// The documents of which rows were written.
    fn changed_numbers(&self) -> Result<BTreeSet<u64>, Error> {
        let state = self.state.borrow();
        let mut numbers = BTreeSet::new();
        for Undo { table, key, row } in &state.undo {
            if is_by_document(*table) {
                numbers.insert(number_of(key)?);
            } else if is_by_content(*table) {
                numbers.extend(state.owners.get(&number_of(key)?));
                if let (Name::Contents, Some(row)) = (table, row) {
                    numbers.insert(Content::decode(row)?.document);
                }
            }
        }
        Ok(numbers)
    }

    /// All rows of a document, in a fixed order.
    pub(super) fn rows_of_document(&self, number: u64) -> Vec<PartRow> {
        let contents = self.contents_of(number);
        let state = self.state.borrow();
        let mut rows = Vec::new();
        let prefix = number.to_be_bytes().to_vec();
        let end = (number + 1).to_be_bytes().to_vec();
        for table in [Name::Documents, Name::Copies, Name::History, Name::Reviews] {
            let range = (table, prefix.clone())..(table, end.clone());
            rows.extend(state.rows.range(range).map(|((_, key), row)| PartRow {
                table,
                key: key[prefix.len()..].to_vec(),
                row: row.clone(),
            }));
        }
        for content in contents {
            let key = content.to_be_bytes().to_vec();
            for table in [Name::Contents, Name::Unsure, Name::Bodies] {
                if let Some(row) = state.rows.get(&(table, key.clone())) {
                    rows.push(PartRow { table, key: key.clone(), row: row.clone() });
                }
            }
        }
        sort(&mut rows);
        rows
    }

    /// Writes new texts to files, and has their places in their stead.
    fn keep_texts(&self) -> Result<(), Error> {
        let mut texts = self.corpus.texts.borrow_mut();
        let state = &mut *self.state.borrow_mut();
        let written: BTreeSet<Vec<u8>> = state
            .undo
            .iter()
            .filter(|undo| undo.table == Name::Bodies)
            .map(|undo| undo.key.clone())
            .collect();
        for key in written {
            let name = (Name::Bodies, key.clone());
            let Some(first) = state.rows.get(&name) else { continue };
            if place_of(first).is_some() {
                continue;
            }
            let mut whole = first.clone();
            let parts = (Name::BodyParts, key.clone())..(Name::BodyParts, after(&key));
            let parts: Vec<_> = state.rows.range(parts).map(|(key, _)| key.clone()).collect();
            for part in parts {
                whole.extend(state.rows.remove(&part).unwrap_or_default());
            }
            let place = texts.append(&whole)?;
            state.rows.insert(name, place.encode().into_owned());
        }
        Ok(())
    }

    /// Which document a row of a table is read with.
    fn load_for(&self, table: Name, key: &[u8]) -> Result<(), Error> {
        if is_by_document(table) && key.len() >= 8 {
            return self.load(&[number_of(key)?]);
        }
        if table == Name::Contents {
            // A candidate that was not read: the root of a document has mostly its number.
            let number = number_of(key)?;
            if !self.state.borrow().owners.contains_key(&number) {
                return self.load(&[number]);
            }
        }
        Ok(())
    }

    fn set(
        &mut self,
        table: Name,
        key: &[u8],
        row: Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.load_for(table, key)?;
        let state = self.state.get_mut();
        if let Some(row) = &row {
            state.note_written(table, key, row)?;
        }
        let name = (table, key.to_vec());
        let was = match row {
            Some(row) => state.rows.insert(name, row),
            None => state.rows.remove(&name),
        };
        state.undo.push(Undo { table, key: key.to_vec(), row: was.clone() });
        Ok(was)
    }
}

/// Reads where a text lies, if that stands in its place.
fn place_of(row: &[u8]) -> Option<StoredPlaceOfText> {
    // A body has a version of its own, which the decoder refuses.
    StoredPlaceOfText::decode(row).ok()
}

fn number_of(key: &[u8]) -> Result<u64, BadRow> {
    let bad = BadRow { kind: "key", detail: "it is cut short" };
    Ok(u64::from_be_bytes(*key.first_chunk().ok_or(bad)?))
}

/// The first key behind all that begin with a number.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[u8::MAX; 5]].concat()
}

/// Tables that a corpus of many workers keeps. Those of lists that one machine keeps for its
/// dashboard are not among them: nothing is written there, and nothing found.
fn is_kept(table: Name) -> bool {
    is_by_document(table) || is_by_content(table) || matches!(table, Name::BodyParts | Name::DocIds)
}

impl Reading for Unit<'_> {
    fn raw_get(&self, table: Name, key: &[u8]) -> Result<Option<Bytes<'_>>, Error> {
        self.load_for(table, key)?;
        let found = self.state.borrow().rows.get(&(table, key.to_vec())).cloned();
        match (table, found) {
            (Name::DocIds, None) => {
                let id = key.try_into().map(u128::from_be_bytes);
                let id = id.map_err(|_| BadRow { kind: "key", detail: "it is no docId" })?;
                let number = self.corpus.document_of_id(self, id)?;
                Ok(number.map(|number| Bytes::owned(number.to_be_bytes().to_vec())))
            }
            (Name::Bodies, Some(row)) => match place_of(&row) {
                Some(place) => Ok(Some(Bytes::owned(self.corpus.texts.borrow_mut().read(&place)?))),
                None => Ok(Some(Bytes::owned(row))),
            },
            (_, found) => Ok(found.map(Bytes::owned)),
        }
    }

    fn raw_range(&self, table: Name, from: End<'_>, to: End<'_>) -> Result<RawRows<'_>, Error> {
        if let Bound::Included(key) | Bound::Excluded(key) = from {
            self.load_for(table, key)?;
        }
        let own = |end: End<'_>, open: Vec<u8>| match end {
            Bound::Included(key) => Bound::Included((table, key.to_vec())),
            Bound::Excluded(key) => Bound::Excluded((table, key.to_vec())),
            Bound::Unbounded => Bound::Included((table, open)),
        };
        let range = (own(from, Vec::new()), own(to, vec![u8::MAX; 64]));
        let state = self.state.borrow();
        let rows = state.rows.range(range).map(|((_, key), row)| (key.clone(), row.clone()));
        let rows: Vec<(Vec<u8>, Vec<u8>)> = rows.collect();
        let rows = rows.into_iter();
        Ok(Box::new(rows.map(|(key, row)| Ok((Bytes::owned(key), Bytes::owned(row))))))
    }

    fn rows_of(&self, table: Name) -> Result<u64, Error> {
        Ok(self.state.borrow().rows.keys().filter(|(name, _)| *name == table).count() as u64)
    }
}

impl Writing for Unit<'_> {
    fn raw_put(&mut self, table: Name, key: &[u8], row: &[u8]) -> Result<Option<Bytes<'_>>, Error> {
        if !is_kept(table) {
            return Ok(None);
        }
        Ok(self.set(table, key, Some(row.to_vec()))?.map(Bytes::owned))
    }

    fn raw_remove(&mut self, table: Name, key: &[u8]) -> Result<Option<Bytes<'_>>, Error> {
        if !is_kept(table) {
            return Ok(None);
        }
        Ok(self.set(table, key, None)?.map(Bytes::owned))
    }

    fn raw_clear(&mut self, table: Name, from: End<'_>, to: End<'_>) -> Result<(), Error> {
        if !is_kept(table) {
            return Ok(());
        }
        let rows = self.raw_range(table, from, to)?;
        let keys = rows.map(|row| Ok(row?.0.to_vec())).collect::<Result<Vec<_>, Error>>()?;
        for key in keys {
            self.set(table, &key, None)?;
        }
        Ok(())
    }
}

impl Transaction for Unit<'_> {
    fn next_number(&mut self, _: &'static str) -> Result<u64, Error> {
        // Only of lists that are not kept.
        Ok(0)
    }

    fn next_unique_number(&mut self, name: &'static str) -> Result<u64, Error> {
        let spare = &mut self.spare[usize::from(name == "next_content")];
        if let Some(asker) = self.asker
            && std::mem::take(spare)
        {
            return Ok(asker);
        }
        let engine = &mut self.corpus.engine.borrow_mut();
        Ok(self.corpus.numbers.borrow_mut().next(engine)?)
    }

    fn count(&mut self, name: &str, by: u64) -> Result<(), Error> {
        *self.state.get_mut().counts.entry(name.to_owned()).or_default() += by;
        Ok(())
    }

    fn append(&mut self, _: Table<u64, Vec<u8>>, _: &[u8]) {
        // What has changed is seen when it is committed.
    }

    fn has_texts(&self) -> bool {
        false
    }
}
