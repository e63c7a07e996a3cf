//! The judge over a store.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::ReadableTable as _;

use crate::clusters::{self, Place};
use crate::documents::{Content, Document, Key, read_content, read_document};
use crate::features::Signed;
use crate::index::stored;
use crate::sketch::Sketch;
use crate::store::{BadRow, Error, Store, Tables};

use super::{Config, Finder, Root, Sites, Trees, judge, loose_leaves};

/// Finds the place of a signed article among the stored ones. Reads only.
pub fn judge_stored(
    tables: &Tables<'_>,
    finder: &Finder,
    signed: &Signed,
    config: &Config,
) -> Result<Place, Error> {
    if signed.text.words == 0 {
        return Ok(Place::New);
    }
    if let Some(content) = tables.exact.get(signed.text.hash)?.map(|row| row.value()) {
        let document = must_read(tables, content)?.document;
        let (same, key, sure) = (Some(content), Key::Exact, true);
        let joint = clusters::Joint { document, same, key, distance: 0, similarity: 1.0, sure };
        return Ok(Place::Tree(joint));
    }
    near(tables, finder, (signed, None, None), config)
}

/// Finds the place of a content that is stored already, as if it came only now. `loose` says
/// that it hangs on its tree by boilerplate alone, as far as its siblings tell.
pub fn judge_again(
    tables: &Tables<'_>,
    finder: &Finder,
    (content, loose): (u64, bool),
    config: &Config,
) -> Result<Place, Error> {
    let row = must_read(tables, content)?;
    let wary = loose.then_some(row.document);
    near(tables, finder, (&row.signed(), Some(content), wary), config)
}

/// Returns for each of some contents whether it hangs on its tree by boilerplate alone.
pub fn loose_contents(tables: &Tables<'_>, contents: &[u64]) -> Result<Vec<bool>, Error> {
    let mut trees: BTreeMap<u64, Vec<(usize, Content)>> = BTreeMap::new();
    for (at, content) in contents.iter().enumerate() {
        let row = must_read(tables, *content)?;
        trees.entry(row.document).or_default().push((at, row));
    }
    let mut all = vec![false; contents.len()];
    for (document, leaves) in trees {
        let (_, root) = document_and_root(tables, document)?;
        let all_leaves: Vec<(&Sketch, bool)> = leaves
            .iter()
            .map(|(_, leaf)| (&leaf.sketch, Sites::of(leaf.site, root.site) == Sites::One))
            .collect();
        for ((at, _), loose) in leaves.iter().zip(loose_leaves(&root.sketch, &all_leaves)) {
            all[*at] = loose;
        }
    }
    Ok(all)
}

fn near(
    tables: &Tables<'_>,
    finder: &Finder,
    (signed, own, wary): (&Signed, Option<u64>, Option<u64>),
    config: &Config,
) -> Result<Place, Error> {
    let mut candidates = finder.candidates(signed);
    candidates.retain(|candidate| Some(u64::from(candidate.content)) != own);
    let joint = judge(&Stored(tables), &candidates, (signed, wary), config)?;
    Ok(joint.map_or(Place::New, |joint| {
        Place::Tree(clusters::Joint {
            document: joint.document,
            same: None,
            key: joint.key,
            distance: joint.distance,
            similarity: joint.likeness.similarity,
            sure: joint.sure,
        })
    }))
}

/// Puts the keys of all stored contents into a new index. Folds the log of fingerprints into the
/// rotated tables if it has outgrown them.
///
/// Cost: about twelve seconds of a processor for a million contents; without sentences and bands,
/// a tenth of a second.
pub fn load(store: &Store, config: &Config) -> Result<Finder, super::Error> {
    let mut finder = Finder::new(config)?;
    let tables = store.read()?;
    let mut entries = stored::load(&tables.near, &tables.near_log)?;
    if entries.is_fold_due() {
        let txn = store.db().begin_write().map_err(Error::from)?;
        let mut tables = Tables::open(&txn)?;
        stored::fold(&mut tables.near, &mut tables.near_log, &mut entries)?;
        drop(tables);
        txn.commit().map_err(Error::from)?;
    }
    finder.insert_fingerprints(&entries);
    if config.sentences || config.bands > 0 {
        let rows = tables.contents.iter().map_err(Error::from)?;
        finder.insert_keys(rows.map(|row| {
            let (number, row) = row?;
            Ok::<_, Error>((number.value() as u32, Content::decode(row.value())?.signed()))
        }))?;
    }
    Ok(finder)
}

/// Makes an index that is shared by several writers ready for the next one, whose turn it is and
/// who has not begun to write: if the last writer failed, or died, the index is read again, so that
/// it names no content that the store does not have.
pub fn catch_up(
    store: &Store,
    finder: &Mutex<Finder>,
    config: &Config,
) -> Result<(), super::Error> {
    if lock(finder).is_ahead() {
        let fresh = load(store, config)?;
        *lock(finder) = fresh;
    }
    Ok(())
}

/// Locks an index, also if a thread died while it had it: [`catch_up`] tells what that left.
pub fn lock(finder: &Mutex<Finder>) -> MutexGuard<'_, Finder> {
    finder.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Stored<'a, 'txn>(&'a Tables<'txn>);

impl Trees for Stored<'_, '_> {
    type Error = Error;

    fn root_of(&self, content: u32) -> Result<Root<'_>, Error> {
        let tables = self.0;
        let own = must_read(tables, u64::from(content))?;
        let document = own.document;
        let row = must_read_document(tables, document)?;
        // Most trees are their root.
        let is_root = row.root == u64::from(content);
        let root = if is_root { own } else { must_read(tables, row.root)? };
        Ok(Root {
            document,
            fingerprint: root.fingerprint,
            sketch: Cow::Owned(root.sketch),
            site: root.site,
            shingles: root.shingles,
            copies: row.copies,
            first_arrival: row.first_arrival,
        })
    }
}

/// Reads a document, and the content at the root of its tree.
fn document_and_root(tables: &Tables<'_>, document: u64) -> Result<(Document, Content), Error> {
    let row = must_read_document(tables, document)?;
    let root = must_read(tables, row.root)?;
    Ok((row, root))
}

fn must_read_document(tables: &Tables<'_>, document: u64) -> Result<Document, Error> {
    let missing = BadRow { kind: "document", detail: "a content names one that is missing" };
    Ok(read_document(&tables.documents, document)?.ok_or(missing)?)
}

fn must_read(tables: &Tables<'_>, content: u64) -> Result<Content, Error> {
    let missing = BadRow { kind: "content", detail: "the index names one that is missing" };
    Ok(read_content(&tables.contents, content)?.ok_or(missing)?)
}
