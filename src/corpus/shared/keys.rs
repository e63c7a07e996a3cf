//! Candidates for an article among the documents of the cluster, as the judge asks for them.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use crate::cluster::{Posting, Table};
use crate::corpus::clusters::Article;
use crate::corpus::dedup::{Keep, Lookup};
use crate::corpus::documents::{Content, DocId, Document};
use crate::corpus::tables::{CONTENTS, COPIES, DOCUMENTS};
use crate::neardup::index::rotated::key_flips;
use crate::neardup::segment::{ROTATIONS, equality_table, near_table};
use crate::neardup::{Candidate, Key, Nearby, Postings, looked_up};
use crate::store::{Error, View as _};
use crate::text::features::ArticleKeys;

use super::SharedCorpus;
use super::postings::{of_id, of_text, of_url};
use super::unit::Unit;

/// A key, and how much of it a table has.
type Asked = (Table, u64);

/// What was found by keys of articles.
#[derive(Default)]
pub(super) struct SharedKeys {
    found: RefCell<HashMap<Asked, Vec<(u32, u64)>>>,
}

impl SharedKeys {
    /// Notes what was found.
    pub(super) fn add(&self, posting: &Posting, found: Vec<(u32, u64)>) {
        self.found.borrow_mut().insert((posting.table, posting.key), found);
    }

    /// Asks for what was not asked yet.
    pub(super) fn ask(&self, corpus: &SharedCorpus, postings: &[Posting]) -> Result<(), Error> {
        let mut missing: Vec<Posting> = {
            let found = self.found.borrow();
            let is_new = |one: &&Posting| !found.contains_key(&(one.table, one.key));
            postings.iter().filter(is_new).copied().collect()
        };
        for posting in &mut missing {
            posting.document = None;
        }
        if missing.is_empty() {
            return Ok(());
        }
        let answers = corpus.engine.borrow_mut().post(&corpus.buckets, &missing)?;
        missing.iter().zip(answers).for_each(|(posting, found)| self.add(posting, found));
        Ok(())
    }

    /// The document that has a copy at a URL.
    pub(super) fn document_at(&self, unit: &Unit<'_>, url: &str) -> Result<Option<u64>, Error> {
        let posting = of_url(url, None);
        self.ask(unit.corpus, &[posting])?;
        let documents = self.documents(&posting);
        unit.load(&documents)?;
        for number in documents {
            if unit.has(COPIES, (number, url))? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Documents that the judge of an article will likely ask for.
    pub(super) fn likely(
        &self,
        corpus: &SharedCorpus,
        article: &Article,
    ) -> Result<Vec<u64>, Error> {
        let mut documents = self.documents(&of_url(&article.address, None));
        documents.extend(self.documents(&of_text(article.keys.text.hash, None)));
        let candidates = corpus.finder.candidates_with(&article.keys, self)?;
        documents.extend(looked_up(&candidates).map(|one| one.content));
        Ok(documents)
    }

    /// Documents that may have an identifier.
    pub(super) fn of_id(&self, id: u128) -> Vec<u64> {
        self.documents(&of_id(id, None))
    }

    pub(super) fn documents(&self, posting: &Posting) -> Vec<u64> {
        let found = self.found.borrow();
        let found = found.get(&(posting.table, posting.key));
        found.into_iter().flatten().map(|(_, document)| *document).collect()
    }
}

/// What the judge asks is answered by documents, whose roots stand for them.
impl Postings for SharedKeys {
    type Error = Error;

    fn near(&self, asked: Nearby, each: &mut dyn FnMut(u32, u64)) -> Result<(), Error> {
        let found = self.found.borrow();
        for rotation in 0..ROTATIONS {
            let key = asked.fingerprint.0.rotate_left(16 * u32::from(rotation));
            for flips in key_flips(asked.k, rotation) {
                let key = key ^ u64::from(flips) << 48;
                let table = Table::Near(near_table(asked.field, rotation));
                for (distance, document) in found.get(&(table, key)).into_iter().flatten() {
                    // Counted without the bits that were asked for otherwise.
                    let distance = distance + flips.count_ones();
                    if distance <= asked.k {
                        each(distance, *document);
                    }
                }
            }
        }
        Ok(())
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), Error> {
        let found = self.found.borrow();
        let found = found.get(&(Table::Equal(equality_table(key)), hash));
        found.into_iter().flatten().for_each(|(_, document)| each(*document));
        Ok(())
    }
}

impl Lookup<Unit<'_>> for SharedKeys {
    fn equal_texts(&self, unit: &Unit<'_>, hash: u128) -> Result<Vec<u64>, Error> {
        let posting = of_text(hash, None);
        self.ask(unit.corpus, &[posting])?;
        let documents = self.documents(&posting);
        unit.load(&documents)?;
        let there = documents.into_iter().flat_map(|document| unit.contents_of(document));
        let contents: BTreeSet<u64> = there.chain(unit.contents_written(hash)).collect();
        let mut found = Vec::new();
        for content in contents {
            let row: Option<Content> = unit.get(CONTENTS, content)?;
            if row.is_some_and(|row| row.hash == hash) {
                found.push(content);
            }
        }
        Ok(found)
    }

    fn candidates(&self, unit: &Unit<'_>, keys: &ArticleKeys) -> Result<Vec<Candidate>, Error> {
        self.ask(unit.corpus, &unit.corpus.asked(keys))?;
        let mut candidates = unit.candidates(keys, self)?;
        let likely: Vec<u64> = looked_up(&candidates).map(|one| one.content).collect();
        unit.load(&likely)?;
        for candidate in &mut candidates {
            let document: Option<Document> = unit.get(DOCUMENTS, candidate.content)?;
            if let Some(document) = document {
                candidate.content = document.root;
            }
        }
        Ok(candidates)
    }
}

impl Keep<Unit<'_>> for SharedKeys {
    fn insert(&self, _: &mut Unit<'_>, _: u64, _: &ArticleKeys) {
        // Postings follow from the rows of a document when these are written.
    }

    fn forget(&self, _: u64) {}
}

impl SharedCorpus {
    /// What is asked for an article: its own keys, and fingerprints that differ in the first bits
    /// if such are near.
    pub(super) fn asked(&self, keys: &ArticleKeys) -> Vec<Posting> {
        let own = self.near(keys, None);
        let mut asked = own.clone();
        for posting in own {
            let Table::Near(table) = posting.table else { continue };
            for flips in key_flips(self.config.k, table % ROTATIONS) {
                asked.push(Posting { key: posting.key ^ u64::from(flips) << 48, ..posting });
            }
        }
        let mut seen = BTreeSet::new();
        asked.retain(|posting| seen.insert(*posting));
        asked
    }

    /// The document of an identifier.
    pub(super) fn document_of_id(&self, unit: &Unit<'_>, id: u128) -> Result<Option<u64>, Error> {
        let documents = if let Some(documents) = unit.known_id(id) {
            documents
        } else {
            let keys = SharedKeys::default();
            keys.ask(self, &[of_id(id, None)])?;
            keys.of_id(id)
        };
        unit.load(&documents)?;
        for number in documents {
            let document: Option<Document> = unit.get(DOCUMENTS, number)?;
            let has = |row: &Document| row.id == DocId(id) || row.merged.contains(&DocId(id));
            if document.is_some_and(|row| has(&row)) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}
