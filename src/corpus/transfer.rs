//! Documents from one store to another as they are, between one machine and a cluster as well:
//! each keeps its identifier, its copies, its canonical copy, its history and its texts.
//!
//! ```text
//! has the target others? -> read -> is it there? -> bring -> compare checksums of both
//! ```
//!
//! What is there is left as it is, so that a run that was killed goes on when it is begun again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::clusters;
use super::dedup::{self, Keep as _};
use super::documents::{
    Checksum, Content, Copy, DocId, Document, WholeContent, WholeDocument, note_arrival,
    write_body, write_document,
};
use super::export::{self, Source, StoreSource};
use super::index::Index;
use super::shared::{self, SharedCorpus, SharedSource};
use super::tables::{
    CONTENTS, COPIES, DOC_IDS, DOCUMENTS, HISTORY, PAGES, REVIEWS, SENT, SENT_URLS, UNSURE,
};
use crate::frontier::ADDRESSES;
use crate::neardup;
use crate::store::{self, BadRow, Batch, META, Store, Update as _, View as _};

/// Documents that are brought together at most, and bytes of their texts about.
const TOGETHER: usize = 64;
const TOGETHER_BYTES: usize = 4 << 20;

/// Identifiers that are looked for together.
const LOOKED: usize = 256;

/// Settings that say how documents were made: both stores must have the same.
const SETTINGS: [&str; 2] = ["features", "urls"];

/// Why documents cannot be copied. What was copied stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// A store cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The index cannot be used.
    #[error(transparent)]
    Dedup(#[from] dedup::Error),
    /// The corpus of a cluster cannot be read or written.
    #[error(transparent)]
    Shared(#[from] shared::Error),
    /// The target has documents that the source has not.
    #[error(
        "the target has documents that the source has not, such as {0}: copy into a new folder or \
         prefix, and bring both together with `crawl store merge`"
    )]
    Foreign(String),
    /// A setting that is fixed differs.
    #[error("the source was made with {name} = {found}, not {own}: give its settings by --config")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// That of the source.
        found: String,
        /// That of the target.
        own: String,
    },
}

impl TransferError {
    /// Tells whether what was asked for is at fault.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Foreign(_) | Self::Setting { .. })
    }
}

impl From<export::Error> for TransferError {
    fn from(error: export::Error) -> Self {
        match error {
            export::Error::Store(error) => Self::Store(error),
            // Nothing else comes from where documents lie.
            other => Self::Store(store::Error::Remote(Box::new(other))),
        }
    }
}

/// How far a copy has come: documents of this step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Documents of the target that were looked for in the source.
    Looked(u64),
    /// Documents that are in the target.
    Copied(u64),
    /// Documents that were read again, of both.
    Verified(u64),
}

/// What a copy has come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransferSummary {
    /// Documents that were copied by this run.
    pub copied: u64,
    /// Documents that were there before.
    pub before: u64,
    /// What the source has.
    pub from: Checksum,
    /// What the target has.
    pub to: Checksum,
    /// Pages of which more is kept than the text, and that is left.
    pub pages: u64,
    /// Articles that senders know by names, which are left.
    pub sent: u64,
    /// URLs of crawls, which are left.
    pub addresses: u64,
}

impl TransferSummary {
    /// Tells whether both have the same documents.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.from == self.to
    }

    /// Returns it as it is printed.
    #[must_use]
    pub fn as_json(&self) -> Value {
        let of = |Checksum { documents, copies, texts, sum }: Checksum| {
            let sum = format!("{sum:032x}");
            json!({"documents": documents, "copies": copies, "texts": texts, "checksum": sum})
        };
        json!({
            "copied": self.copied,
            "before": self.before,
            "from": of(self.from),
            "to": of(self.to),
            "same": self.is_same(),
            "left": {"pages": self.pages, "sent": self.sent, "urls": self.addresses},
        })
    }
}

/// Where documents are copied from, or to.
pub struct Place(Kind);

enum Kind {
    Store { store: Box<Store>, writer: Option<Box<Writer>> },
    Shared(Box<SharedCorpus>),
}

/// What writes documents into a store of one machine.
struct Writer {
    index: Arc<Mutex<Index>>,
    config: neardup::Config,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

impl Place {
    /// A store of one machine, which is only read.
    #[must_use]
    pub fn store(store: Store) -> Self {
        Self(Kind::Store { store: Box::new(store), writer: None })
    }

    /// A store of one machine that gets documents, with its index.
    #[must_use]
    pub fn store_to_write(store: Store, index: Index, config: &neardup::Config) -> Self {
        let writer = Writer { index: Arc::new(Mutex::new(index)), config: config.clone() };
        Self(Kind::Store { store: Box::new(store), writer: Some(Box::new(writer)) })
    }

    /// The corpus of a cluster.
    #[must_use]
    pub fn shared(corpus: SharedCorpus) -> Self {
        Self(Kind::Shared(Box::new(corpus)))
    }

    fn setting(&self, name: &str) -> Result<Option<String>, TransferError> {
        Ok(match &self.0 {
            Kind::Store { store, .. } => store.setting(name)?,
            Kind::Shared(corpus) => corpus.setting(name)?,
        })
    }

    fn fix(&self, name: &'static str, value: &str) -> Result<(), TransferError> {
        match &self.0 {
            Kind::Store { store, .. } => Ok(store.fix_setting(name, value)?),
            Kind::Shared(corpus) => Ok(corpus.fix(name, value)?),
        }
    }

    /// Does something with the documents as they are now.
    fn with<R>(
        &self,
        work: impl FnOnce(&dyn Source) -> Result<R, TransferError>,
    ) -> Result<R, TransferError> {
        match &self.0 {
            Kind::Store { store, .. } => work(&StoreSource::open(store)?),
            Kind::Shared(corpus) => work(&SharedSource(corpus)),
        }
    }

    /// Tells which identifiers it has.
    fn has(&self, ids: &[DocId]) -> Result<Vec<bool>, TransferError> {
        match &self.0 {
            Kind::Store { store, .. } => {
                let snapshot = store.snapshot()?;
                let found = ids.iter().map(|id| Ok(snapshot.has(DOC_IDS, *id)?));
                found.collect()
            }
            Kind::Shared(corpus) => {
                Ok(corpus.find_all(ids)?.into_iter().map(|found| found.is_some()).collect())
            }
        }
    }

    /// Stores documents that are not there.
    fn bring(&self, all: &[WholeDocument]) -> Result<(), TransferError> {
        match &self.0 {
            Kind::Store { store, writer: Some(writer) } => {
                let mut batch = dedup::begin(store, &writer.index, &writer.config)?;
                for whole in all {
                    put(&mut batch, &writer.index, whole)?;
                }
                tracing::trace!("copying");
                Ok(batch.commit()?)
            }
            Kind::Store { store, writer: None } => {
                Err(store::Error::InUse(store.path().to_owned()).into())
            }
            Kind::Shared(corpus) => Ok(corpus.bring(all)?),
        }
    }

    /// Ends it, when all documents are there. `waits` tells that matches of some wait for their
    /// second look.
    fn end(&self, waits: bool) -> Result<(), TransferError> {
        let Kind::Store { store, writer: Some(writer) } = &self.0 else { return Ok(()) };
        if !waits {
            let mut batch = store.begin()?;
            let newest = clusters::newest(&batch)?;
            batch.put(META, "settled", &newest.to_be_bytes().to_vec())?;
            batch.commit()?;
        }
        Ok(dedup::settle(store, &writer.index, &writer.config)?)
    }
}

/// Compares how documents of the source were made with how those of the target are, whose texts
/// are read by `features`, and fixes that in the target.
pub fn fit(from: &Place, to: &Place, features: &str) -> Result<(), TransferError> {
    for name in SETTINGS {
        let found = from.setting(name)?;
        let own = if name == "features" { Some(features.to_owned()) } else { to.setting(name)? };
        match (found, own) {
            (Some(found), Some(own)) if found != own => {
                return Err(TransferError::Setting { name, found, own });
            }
            (Some(value), _) | (None, Some(value)) => to.fix(name, &value)?,
            (None, None) => {}
        }
    }
    Ok(())
}

/// Copies all documents that the target lacks, and compares both. `tell` hears how far it has come.
///
/// # Errors
///
/// [`TransferError::Foreign`] before anything is copied; what was copied before another error
/// stays, and the same call goes on behind it.
pub fn transfer(
    from: &Place,
    to: &Place,
    mut tell: impl FnMut(Told),
) -> Result<TransferSummary, TransferError> {
    no_others(from, to, &mut tell)?;
    let mut summary = TransferSummary::default();
    let waits = from.with(|source| {
        if let Some(snapshot) = source.beside() {
            summary.pages = snapshot.len(PAGES)?;
            summary.sent = snapshot.len(SENT)?;
            summary.addresses = snapshot.len(ADDRESSES)?;
        }
        let (mut coming, mut bytes, mut waits) = (Vec::new(), 0, false);
        let mut bring = |coming: &mut Vec<WholeDocument>| -> Result<(), TransferError> {
            let ids: Vec<DocId> = coming.iter().map(|whole| whole.document.id).collect();
            let mut there = to.has(&ids)?.into_iter();
            let before = coming.len();
            coming.retain(|_| there.next() == Some(false));
            to.bring(coming)?;
            summary.copied += coming.len() as u64;
            summary.before += (before - coming.len()) as u64;
            coming.clear();
            tracing::trace!("copied part");
            tell(Told::Copied(summary.copied + summary.before));
            Ok(())
        };
        each_whole(source, &mut |whole| {
            waits |= whole.waits;
            bytes += whole.contents.iter().map(|content| content.text.len()).sum::<usize>();
            coming.push(whole);
            if coming.len() >= TOGETHER || bytes >= TOGETHER_BYTES {
                bytes = 0;
                bring(&mut coming)?;
            }
            Ok(())
        })?;
        bring(&mut coming)?;
        Ok(waits)
    })?;
    to.end(waits)?;
    let mut read = 0;
    for (place, sum) in [(from, &mut summary.from), (to, &mut summary.to)] {
        place.with(|source| {
            each_whole(source, &mut |whole| {
                sum.add(&whole);
                read += 1;
                tell(Told::Verified(read));
                Ok(())
            })
        })?;
    }
    Ok(summary)
}

/// Looks whether the target has a document that the source has not.
fn no_others(from: &Place, to: &Place, tell: &mut impl FnMut(Told)) -> Result<(), TransferError> {
    let mut looked = 0;
    let mut look = |ids: &mut Vec<DocId>| -> Result<(), TransferError> {
        let there = from.has(ids)?;
        if let Some((id, _)) = ids.iter().zip(there).find(|(_, there)| !there) {
            return Err(TransferError::Foreign(id.to_string()));
        }
        looked += ids.len() as u64;
        ids.clear();
        tell(Told::Looked(looked));
        Ok(())
    };
    to.with(|target| {
        let mut ids = Vec::new();
        each(target, &mut |document| {
            ids.push(document.document.id);
            if ids.len() >= LOOKED { look(&mut ids) } else { Ok(()) }
        })?;
        look(&mut ids)
    })
}

/// Calls `each` with every document; its errors may be any.
fn each(
    source: &dyn Source,
    each: &mut dyn FnMut(export::StoredDocument<'_>) -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    let mut failed = None;
    let done = source.each(None, None, &mut |stored| {
        each(stored).map_err(|error| {
            failed = Some(error);
            export::Error::BadStream("what was to take it failed")
        })
    });
    match (failed, done) {
        (Some(error), _) => Err(error),
        (None, done) => Ok(done?),
    }
}

fn each_whole(
    source: &dyn Source,
    take: &mut dyn FnMut(WholeDocument) -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    each(source, &mut |stored| match WholeDocument::read(
        &stored.view,
        stored.number,
        stored.settled,
    )? {
        Some(whole) => take(whole),
        None => Ok(()),
    })
}

/// Writes a document into a store, with all that follows from it.
fn put(batch: &mut Batch, index: &Mutex<Index>, whole: &WholeDocument) -> Result<(), store::Error> {
    let number = batch.next_unique_number("next_document")?;
    let mut numbers: HashMap<u64, u64> = HashMap::new();
    let mut root = None;
    for WholeContent { number: was, content, text, unsure } in &whole.contents {
        let new = batch.next_unique_number("next_content")?;
        numbers.insert(*was, new);
        let content = Content { document: number, ..content.clone() };
        batch.put(CONTENTS, new, &content)?;
        // The root comes first.
        write_body(batch, new, text, root)?;
        root.get_or_insert(new);
        if let Some(url) = unsure {
            batch.put(UNSURE, new, url)?;
        }
        index.insert(batch, new, &content.keys());
    }
    let missing = BadRow { kind: "document", detail: "it names a text that it does not have" };
    let new = |was: u64| numbers.get(&was).copied().ok_or_else(|| missing.clone());
    let first = whole.copies.iter().min_by_key(|(_, copy)| copy.arrival).map(|(url, _)| url);
    for (url, copy) in &whole.copies {
        let copy = Copy { content: new(copy.content)?, ..copy.clone() };
        batch.put(COPIES, (number, url), &copy)?;
        // By its URL it is found, as an article that was sent.
        batch.put(SENT_URLS, url, &copy.content)?;
        note_arrival(batch, number, Some(url) == first, copy.arrival)?;
    }
    for (at, change) in (0..).zip(&whole.history) {
        batch.put(HISTORY, (number, at), change)?;
    }
    if whole.is_reviewed {
        batch.put(REVIEWS, number, &())?;
    }
    for id in whole.other_ids().into_iter().chain([whole.document.id]) {
        batch.put(DOC_IDS, id, &number)?;
    }
    let (root, content) = (new(whole.document.root)?, new(whole.document.content)?);
    debug_assert!(!batch.has(DOCUMENTS, number)?, "numbers are given once");
    let document = Document { root, content, ..whole.document.clone() };
    write_document(batch, number, &document)
}
