//! The documents of a corpus of many workers, as exports read them.

use crate::cluster::Engine;
use crate::corpus::export::{self, ExportPart, Source, StoreState, StoredDocument};
use crate::corpus::tables::{DOCUMENTS, UNSURE};
use crate::store::{self, Snapshot, View as _};

use super::SharedCorpus;
use super::read::{READ, SharedView};

/// The documents of a corpus of many workers, in the order of their numbers. It is no single
/// state: what others write meanwhile may be in it, or not; of each document it has one state.
#[derive(Debug)]
pub struct SharedSource<'a>(pub &'a SharedCorpus);

impl SharedSource<'_> {
    /// Up to which text all matches of each document have had their second look: all, or none if
    /// the document waits for one.
    fn settled(&self, view: &SharedView<'_>, numbers: &[u64]) -> Result<Vec<u64>, store::Error> {
        let mut unsure = Vec::new();
        for number in numbers {
            for content in view.contents_of(*number) {
                if view.has(UNSURE, content)? {
                    unsure.push(*number);
                    break;
                }
            }
        }
        let due = if unsure.is_empty() { Vec::new() } else { self.0.are_due(&unsure)? };
        let waits: Vec<u64> =
            unsure.into_iter().zip(due).filter(|(_, due)| *due).map(|(one, _)| one).collect();
        let settled = |number| if waits.contains(number) { 0 } else { u64::MAX };
        Ok(numbers.iter().map(settled).collect())
    }
}

impl Source for SharedSource<'_> {
    fn state(&self) -> Result<StoreState, store::Error> {
        // Nothing else tells that documents have come since.
        Ok(StoreState { number: None, bytes: self.0.last_number()?, changed: 0 })
    }

    fn each(
        &self,
        after: Option<u64>,
        part: Option<ExportPart>,
        each: &mut dyn FnMut(StoredDocument<'_>) -> Result<(), export::Error>,
    ) -> Result<(), export::Error> {
        let takes = |partition| part.is_none_or(|part| part.takes(partition));
        for block in after.map_or(0, Engine::block_of).. {
            let numbers = self.0.numbers_of_block(block, after, takes);
            let Some(numbers) = numbers.map_err(store::Error::from)? else { break };
            for numbers in numbers.chunks(READ) {
                let view = self.0.view(numbers).map_err(store::Error::from)?;
                let settled = self.settled(&view, numbers)?;
                for (number, settled) in numbers.iter().copied().zip(settled) {
                    if let Some(document) = view.get(DOCUMENTS, number)? {
                        each(StoredDocument { view: &view, number, document, settled })?;
                    }
                }
            }
        }
        Ok(())
    }

    fn beside(&self) -> Option<&Snapshot> {
        None
    }
}
