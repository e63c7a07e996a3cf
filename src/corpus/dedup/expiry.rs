//! The end of documents that had no new copy for long, also while others write to the store.

use std::sync::{Arc, Mutex};

use serde::Serialize;

use crate::base::clock::Timestamp;
use crate::corpus::clusters;
use crate::corpus::tables::DOCUMENTS;
use crate::frontier::Frontier;
use crate::store::{Error, Snapshot, Store, View as _};

use crate::corpus::index::{Index, lock};
use crate::neardup::Config;

/// Documents that end in one commit: others wait for it.
const PART: usize = 256;

/// What is too old, or was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Expiry {
    /// Documents that had no new copy, and no copy that came again.
    pub documents: u64,
    /// Copies of them.
    pub copies: u64,
    /// Documents of the store.
    pub of: u64,
}

impl Expiry {
    /// Tells whether it is more than half of the store, which is hardly what anybody wants.
    #[must_use]
    pub fn is_most(&self) -> bool {
        self.documents * 2 > self.of
    }
}

/// Counts the documents whose newest copy came before `before`.
pub fn old(snapshot: &Snapshot, before: Timestamp) -> Result<Expiry, Error> {
    look(snapshot, before, |_| {})
}

fn look(snapshot: &Snapshot, before: Timestamp, mut old: impl FnMut(u64)) -> Result<Expiry, Error> {
    let mut found = Expiry::default();
    for entry in snapshot.rows(DOCUMENTS)? {
        let entry = entry?;
        let document = entry.row()?;
        found.of += 1;
        if document.last_arrival < before {
            found.documents += 1;
            found.copies += document.copies;
            old(entry.key()?);
        }
    }
    Ok(found)
}

/// Ends the documents whose newest copy came before `before`, some at a time, so that others get
/// their turns to write. `shared` is the index of those that write to the store in this process.
/// What was ended before an error stays so.
pub fn expire(
    store: &Store,
    shared: Option<(&Arc<Mutex<Index>>, &Config)>,
    before: Timestamp,
) -> Result<Expiry, super::Error> {
    let mut numbers = Vec::new();
    let of = look(&store.snapshot()?, before, |number| numbers.push(number))?.of;
    let mut done = Expiry { of, ..Expiry::default() };
    for part in numbers.chunks(PART) {
        let _turn = store.turn();
        let mut batch = match shared {
            Some((index, config)) => super::begin(store, index, config)?,
            None => store.begin()?,
        };
        let ended = clusters::expire_some(&mut batch, part, before)?;
        Frontier::forget_expired(&mut batch, &ended.addresses)?;
        if let Some((index, _)) = shared {
            let mut index = lock(index);
            ended.contents.iter().for_each(|content| index.forget(*content));
        }
        batch.commit()?;
        done.documents += ended.documents;
        done.copies += ended.addresses.len() as u64;
    }
    Ok(done)
}
