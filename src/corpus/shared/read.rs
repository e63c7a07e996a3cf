//! What a corpus of many workers is asked for: documents by identifiers and URLs, many at a time,
//! and rows of documents as a state of a store has them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::cluster::{Engine, NodeMemory, SETTINGS, SHARDS_MAX, ShardLook, Version};
use crate::corpus::clusters::DUPLICATES;
use crate::corpus::documents::DocId;
use crate::corpus::tables::COPIES;
use crate::store::{self, Bytes, End, Name, RawRows, Reading, View as _};

use super::commit::COPIES_COUNTED;
use super::keys::SharedKeys;
use super::postings::{of_id, of_url};
use super::unit::Unit;
use super::{Error, SharedCorpus};

/// Some documents as they were when they were read, to be asked like a store. Others are read when
/// they are asked for.
pub struct SharedView<'a>(Unit<'a>);

impl std::fmt::Debug for SharedView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedView").finish_non_exhaustive()
    }
}

impl Reading for SharedView<'_> {
    fn raw_get(&self, table: Name, key: &[u8]) -> Result<Option<Bytes<'_>>, store::Error> {
        self.0.raw_get(table, key)
    }

    fn raw_range(
        &self,
        table: Name,
        from: End<'_>,
        to: End<'_>,
    ) -> Result<RawRows<'_>, store::Error> {
        self.0.raw_range(table, from, to)
    }

    fn rows_of(&self, table: Name) -> Result<u64, store::Error> {
        self.0.rows_of(table)
    }
}

impl SharedView<'_> {
    /// Returns the version of a document that was read; 0 of one that is not there.
    pub(super) fn version_of(&self, document: u64) -> u64 {
        self.0.version_read(document).map_or(0, Version::number)
    }

    /// Returns the numbers of the contents of a document that was read.
    pub(super) fn contents_of(&self, document: u64) -> Vec<u64> {
        self.0.contents_of(document)
    }
}

/// How much a corpus of many workers has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedStats {
    /// What all its keys begin with.
    pub prefix: String,
    /// Documents.
    pub documents: u64,
    /// Copies, canonical ones among them, as those count who write them; none if nobody did.
    pub copies: Option<u64>,
    /// Copies that were found, by the key that found them.
    pub duplicates: BTreeMap<String, u64>,
    /// Documents that deserve a second look.
    pub due: u64,
    /// Numbers that were given to documents and texts.
    pub numbers: u64,
    /// What was fixed when it was begun: name and value.
    pub settings: Vec<(&'static str, String)>,
    /// The memory of the primaries, with whatever else lies there.
    pub memory: Vec<NodeMemory>,
}

/// What workers tell, as they write it, and the shards of their crawl.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedCrowd {
    /// What each worker tells.
    pub told: Vec<String>,
    /// The shards, in the order of their numbers.
    pub shards: Vec<ShardLook>,
}

impl SharedCorpus {
    /// Reads documents, all in one round trip.
    pub fn view(&self, documents: &[u64]) -> Result<SharedView<'_>, Error> {
        let unit = Unit::new(self, None);
        unit.load(documents)?;
        Ok(SharedView(unit))
    }

    /// Returns the numbers of the documents of identifiers, each of one that is there.
    pub fn find_all(&self, ids: &[DocId]) -> Result<Vec<Option<u64>>, Error> {
        let keys = SharedKeys::default();
        let postings: Vec<_> = ids.iter().map(|id| of_id(id.0, None)).collect();
        keys.ask(self, &postings)?;
        let mut unit = Unit::new(self, None);
        let mut all = Vec::new();
        for id in ids {
            let documents = keys.of_id(id.0);
            all.extend_from_slice(&documents);
            unit.know_id(id.0, documents);
        }
        unit.load(&all)?;
        let found = ids.iter().map(|id| Ok(self.document_of_id(&unit, id.0)?));
        found.collect()
    }

    /// Returns the numbers of the documents that have copies at URLs, each of one that is there.
    pub fn find_urls(&self, urls: &[&str]) -> Result<Vec<Option<u64>>, Error> {
        let keys = SharedKeys::default();
        let postings: Vec<_> = urls.iter().map(|url| of_url(url, None)).collect();
        keys.ask(self, &postings)?;
        let all: Vec<Vec<u64>> = postings.iter().map(|posting| keys.documents(posting)).collect();
        let unit = Unit::new(self, None);
        unit.load(&all.concat())?;
        let mut found = Vec::new();
        for (url, documents) in urls.iter().zip(all) {
            let mut at = None;
            for number in documents {
                if at.is_none() && unit.has(COPIES, (number, url))? {
                    at = Some(number);
                }
            }
            found.push(at);
        }
        Ok(found)
    }

    /// Returns the numbers of all documents of a block behind `after`, in their order, those that
    /// are announced among them; none behind the last block.
    pub(super) fn numbers_of_block(
        &self,
        block: u64,
        after: Option<u64>,
        takes: impl Fn(u64) -> bool,
    ) -> Result<Option<Vec<u64>>, Error> {
        let engine = &mut *self.engine.borrow_mut();
        if block > Engine::block_of(engine.last_number()?) {
            return Ok(None);
        }
        let mut numbers = engine.numbers_of_block(block, takes)?;
        numbers.retain(|number| after.is_none_or(|after| *number > after));
        Ok(Some(numbers))
    }

    /// Returns what workers tell of themselves, and how the shards of their crawl are. No shards if
    /// none has begun.
    pub fn crowd(&self) -> Result<SharedCrowd, Error> {
        let engine = &mut *self.engine.borrow_mut();
        let shards = engine.setting("shards")?.and_then(|shards| shards.parse().ok());
        Ok(SharedCrowd {
            told: engine.told()?,
            shards: engine.look_at_shards(shards.unwrap_or(0).min(SHARDS_MAX))?,
        })
    }

    /// Returns how much there is. Nodes look at every document.
    pub fn stats(&self) -> Result<SharedStats, Error> {
        let engine = &mut *self.engine.borrow_mut();
        let mut settings = Vec::new();
        for name in SETTINGS {
            settings.extend(engine.setting(name)?.map(|value| (name, value)));
        }
        let documents = engine.count_documents()?;
        let counted = engine.counted()?;
        let [came, went] = COPIES_COUNTED.map(|name| counted.get(name).copied().unwrap_or(0));
        // Who died before it told what it had counted did not count some.
        let copies = (came > 0).then(|| came.saturating_sub(went).max(documents));
        let duplicates = counted
            .into_iter()
            .filter_map(|(name, count)| Some((name.strip_prefix(DUPLICATES)?.to_owned(), count)));
        let duplicates = duplicates.collect();
        Ok(SharedStats {
            prefix: engine.prefix().to_owned(),
            documents,
            copies,
            duplicates,
            due: engine.count_due()?,
            numbers: engine.last_number()?,
            settings,
            memory: engine.memory()?,
        })
    }

    /// Returns the folder for what this process writes beside texts: where its texts are, or one
    /// in the working directory if these are in object storage.
    #[must_use]
    pub fn own_folder(&self) -> PathBuf {
        let own = format!("{:016x}", self.worker);
        match self.texts.borrow().location().local() {
            Some(folder) => folder.join(own),
            None => PathBuf::from(format!("import-{own}")),
        }
    }

    /// Returns what was fixed when it was begun; none if that was not.
    pub fn setting(&self, name: &str) -> Result<Option<String>, Error> {
        Ok(self.engine.borrow_mut().setting(name)?)
    }

    /// Fixes a setting, or compares it with what was fixed.
    pub fn fix(&self, name: &'static str, value: &str) -> Result<(), Error> {
        Ok(self.engine.borrow_mut().fix(name, value)?)
    }

    /// Returns the number that was given last: another one tells that something came since.
    pub fn last_number(&self) -> Result<u64, Error> {
        Ok(self.engine.borrow_mut().last_number()?)
    }

    /// Tells which of some documents deserve a second look.
    pub(super) fn are_due(&self, documents: &[u64]) -> Result<Vec<bool>, Error> {
        Ok(self.engine.borrow_mut().are_due(documents)?)
    }
}

/// Documents that are read at a time.
pub(super) const READ: usize = 256;
