//! One document of a store, placed in another one.

use std::path::{Path, PathBuf};

use super::{MergeError, Work};
use crate::base::clock::Timestamp;
use crate::corpus::changes::ChangesCursor;
use crate::corpus::clusters::{self, Article, Place};
use crate::corpus::dedup::{Corpus as _, keys_at};
use crate::corpus::documents::{Copy, Document, copies_of, read_body, sent_content};
use crate::corpus::tables::{CONTENTS, COPIES, DOCUMENTS, SENT, SENT_URLS};
use crate::frontier::{ADDRESSES, Address, State};
use crate::neardup::Key;
use crate::store::{
    self, BadRow, Batch, META, STORE_NUMBER, Snapshot, Store, Update as _, View, read_number,
};

/// A store that becomes part of another one.
pub(super) struct Source {
    pub folder: PathBuf,
    /// By which a merge that goes on knows it.
    pub key: String,
    pub number: u64,
    pub snapshot: Snapshot,
    pub documents: u64,
    pub features: Option<String>,
    pub urls: Option<String>,
    /// When its newest copy came.
    pub latest: Timestamp,
    /// Behind its last change.
    pub changes: ChangesCursor,
    /// What the state is of: it can be read as long as this is open.
    _store: Store,
}

impl Source {
    pub(super) fn new(folder: &Path, store: Store) -> Result<Self, MergeError> {
        let snapshot = store.snapshot()?;
        let number = snapshot.bytes(META, STORE_NUMBER)?.map(|row| read_number(&row));
        let mut latest = Timestamp(0);
        for entry in snapshot.rows(DOCUMENTS)? {
            latest = latest.max(entry?.row()?.last_arrival);
        }
        let changes = ChangesCursor::last(&snapshot)?;
        Ok(Self {
            folder: folder.to_owned(),
            key: folder.canonicalize().unwrap_or_default().display().to_string(),
            number: number.transpose()?.unwrap_or(0),
            documents: snapshot.len(DOCUMENTS)?,
            features: store.setting("features")?,
            urls: store.setting("urls")?,
            snapshot,
            latest,
            changes,
            _store: store,
        })
    }

    /// Tells whether a document is as it was when its changes were `taken`.
    pub(super) fn has_stood(
        &self,
        number: u64,
        taken: Option<ChangesCursor>,
    ) -> Result<bool, MergeError> {
        let Some(taken) = taken else { return Ok(false) };
        Ok(!taken.is_before(&self.snapshot, number)?)
    }
}

/// A document of a store.
pub(super) struct SourceDocument {
    pub number: u64,
    pub row: Document,
    /// It was placed as it is now: its copies stay where the looks since then have left them.
    pub stood: bool,
}

/// What was placed.
pub(super) struct PlacedDocument {
    pub copies: u64,
    pub bytes: u64,
}

/// Returns the document and the content of the copy at a URL, or of another name.
pub(super) fn carried(view: &impl View, address: &str) -> Result<Option<(u64, u64)>, store::Error> {
    let row = view.get(ADDRESSES, address)?;
    if let Some(State::Stored(document)) = row.map(|row| row.state)
        && let Some(copy) = view.get(COPIES, (document, address))?
    {
        return Ok(Some((document, copy.content)));
    }
    let sent = match sent_content(view, address)? {
        Some((content, document)) => Some((document, content)),
        None => match view.get(SENT, address)? {
            Some(sent) => view.get(CONTENTS, sent.content)?.map(|row| (row.document, sent.content)),
            None => None,
        },
    };
    let Some((document, _)) = sent else { return Ok(None) };
    // The copy may carry another text since, or have left.
    Ok(view.get(COPIES, (document, address))?.map(|copy| (document, copy.content)))
}

/// Places the copies of a document, in the order in which they came.
pub(super) fn place_document(
    work: &Work<'_>,
    batch: &mut Batch,
    source: &Source,
    document: &SourceDocument,
) -> Result<PlacedDocument, MergeError> {
    let SourceDocument { number, row, stood } = document;
    let mut copies = copies_of(&source.snapshot, *number)?;
    // The first one gives the document its identifier.
    copies.sort_by(|(url, copy), (other_url, other)| {
        let order = |copy: &Copy| (copy.key != Key::First, copy.arrival);
        order(copy).cmp(&order(other)).then_with(|| url.cmp(other_url))
    });
    let mut done = PlacedDocument { copies: copies.len() as u64, bytes: 0 };
    let mut documents: Vec<u64> = Vec::new();
    let (mut new, mut placed_any) = (None, false);
    for (address, copy) in copies {
        let arrival = copy.arrival;
        let links = copy.popularity;
        let known = carried(batch, &address)?;
        if let Some((known, content)) = known {
            let held = batch.get(COPIES, (known, &address))?;
            if held.is_some_and(|held| held.arrival >= arrival) {
                documents.push(known);
                name(batch, source, &address, content)?;
                continue;
            }
        }
        let article = article_of(source, address, copy)?;
        done.bytes += article.text.len() as u64;
        placed_any = true;
        let mut corpus = work.placer(batch, arrival);
        let placed = match known {
            Some((known, _)) => corpus.revise(known, &article, links)?.0,
            None => corpus.place(&article, links)?,
        };
        if placed.judged.place == Place::New && known.is_none() {
            new.get_or_insert(placed.joined.document);
        }
        documents.push(placed.document);
        if known.is_some() {
            Address::set_document(batch, &article.address, placed.document)?;
        }
        let content = batch.get(COPIES, (placed.document, &article.address))?;
        let missing = BadRow { kind: "copy", detail: "one that was placed is missing" };
        name(batch, source, &article.address, content.ok_or(missing)?.content)?;
    }
    let Some((first, others)) = documents.split_first() else { return Ok(done) };
    if *stood && !placed_any {
        return Ok(done);
    }
    // Some may be part of others by now.
    let others: Vec<u64> = others.iter().copied().filter(|other| other != first).collect();
    let mut placer = work.placer(batch, source.latest);
    let mut at = *first;
    if !placer.batch.has(DOCUMENTS, at)? {
        let there = |number: &u64| placer.batch.has(DOCUMENTS, *number);
        at = find(&documents, there)?.unwrap_or(at);
    }
    let united = placer.unite(at, &others)?.document;
    clusters::recount(batch, united, source.latest)?;
    let mut ids = vec![row.id];
    ids.extend(row.merged.iter().chain(&row.joined));
    clusters::take_ids(batch, united, &ids, new == Some(united))?;
    Ok(done)
}

fn find<E>(all: &[u64], is: impl Fn(&u64) -> Result<bool, E>) -> Result<Option<u64>, E> {
    for one in all {
        if is(one)? {
            return Ok(Some(*one));
        }
    }
    Ok(None)
}

/// Makes the article of a copy again.
fn article_of(source: &Source, address: String, copy: Copy) -> Result<Article, MergeError> {
    let view = &source.snapshot;
    let bad = |detail| BadRow { kind: "copy", detail };
    let content = view.get(CONTENTS, copy.content)?.ok_or(bad("its content is missing"))?;
    let text = read_body(view, copy.content)?.ok_or(bad("its text is missing"))?;
    let keys = keys_at(content, &address, &copy);
    Ok(Article {
        address,
        title: copy.title,
        text,
        language: copy.language,
        facts: copy.facts,
        left_out: copy.left_out,
        score: copy.scored.then_some(copy.popularity),
        terms: copy.terms,
        declared: copy.declared,
        keys,
    })
}

/// Has a copy known by its name, or its URL, as that of an article that was sent: a crawl that
/// comes to the URL reads it again.
fn name(batch: &mut Batch, source: &Source, address: &str, content: u64) -> Result<(), MergeError> {
    let row = batch.get(ADDRESSES, address)?;
    if matches!(row.map(|row| row.state), Some(State::Stored(_))) {
        return Ok(());
    }
    let view = &source.snapshot;
    if view.has(ADDRESSES, address)? || view.has(SENT_URLS, address)? {
        batch.put(SENT_URLS, address, &content)?;
    } else if let Some(sent) = view.get(SENT, address)? {
        batch.put(SENT, address, &crate::corpus::documents::Sent { content, ..sent })?;
    }
    Ok(())
}
