//! Where the documents of an export lie: in a store of one machine, or wherever else they can be
//! read in the order of their numbers.

use std::fmt;
use std::str::FromStr;

use super::{Error, StoreState};
use crate::corpus::clusters;
use crate::corpus::documents::Document;
use crate::corpus::tables::DOCUMENTS;
use crate::store::{self, Reading, Snapshot, Store, View as _};

/// Parts of an export at most.
pub const PARTS_MAX: u64 = 1_024;

/// One of several parts of all documents, which together have each of them once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExportPart {
    /// Which one, from 0.
    number: u64,
    /// How many there are.
    of: u64,
}

impl ExportPart {
    /// Tells whether a document is in it.
    #[must_use]
    pub fn takes(self, document: u64) -> bool {
        document % PARTS_MAX % self.of == self.number
    }
}

impl ExportPart {
    /// Returns how many parts there are.
    #[must_use]
    pub fn of(self) -> u64 {
        self.of
    }
}

impl Default for ExportPart {
    /// All documents in one part.
    fn default() -> Self {
        Self { number: 0, of: 1 }
    }
}

impl FromStr for ExportPart {
    type Err = String;

    /// Reads `I/N`, where I is 1 to N.
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(number, of)| {
            Some((number.trim().parse::<u64>().ok()?, of.trim().parse::<u64>().ok()?))
        });
        match parsed {
            Some((number, of)) if (1..=of).contains(&number) && of <= PARTS_MAX => {
                Ok(Self { number: number - 1, of })
            }
            _ => Err(format!("write I/N, such as 1/4: part I of N, at most {PARTS_MAX} parts")),
        }
    }
}

impl fmt::Display for ExportPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number + 1, self.of)
    }
}

/// A document where it lies.
pub struct StoredDocument<'a> {
    /// What has all rows of it.
    pub view: &'a dyn Reading,
    /// Its number.
    pub number: u64,
    /// The document.
    pub document: Document,
    /// Number of the text up to which all matches of it have had their second look.
    pub settled: u64,
}

/// Where documents lie.
pub trait Source {
    /// Returns which store, and which state of it.
    fn state(&self) -> Result<StoreState, store::Error>;

    /// Calls `each` with the documents of a part behind the number `after`, in the order of their
    /// numbers, until it fails.
    fn each(
        &self,
        after: Option<u64>,
        part: Option<ExportPart>,
        each: &mut dyn FnMut(StoredDocument<'_>) -> Result<(), Error>,
    ) -> Result<(), Error>;

    /// Returns what is kept beside documents: URLs that were not fetched, and pages. None where
    /// documents are all there is.
    fn beside(&self) -> Option<&Snapshot>;
}

/// One state of a store.
pub struct StoreSource<'a> {
    store: &'a Store,
    snapshot: Snapshot,
}

impl<'a> StoreSource<'a> {
    /// Takes the state of a store as it is now.
    pub fn open(store: &'a Store) -> Result<Self, store::Error> {
        Ok(Self { store, snapshot: store.snapshot()? })
    }
}

impl Source for StoreSource<'_> {
    fn state(&self) -> Result<StoreState, store::Error> {
        StoreState::of(self.store, &self.snapshot)
    }

    fn each(
        &self,
        after: Option<u64>,
        part: Option<ExportPart>,
        each: &mut dyn FnMut(StoredDocument<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let view = &self.snapshot;
        let settled = clusters::settled(view)?;
        let from = after.map_or(0, |number| number.saturating_add(1));
        for entry in view.range(DOCUMENTS, from..)? {
            let entry = entry?;
            let number = entry.key().map_err(store::Error::from)?;
            if part.is_none_or(|part| part.takes(number)) {
                let document = entry.row().map_err(store::Error::from)?;
                each(StoredDocument { view, number, document, settled })?;
            }
        }
        Ok(())
    }

    fn beside(&self) -> Option<&Snapshot> {
        Some(&self.snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_each_document_once_and_others_are_refused() {
        for of in [1, 3, 4, 7, PARTS_MAX] {
            let parts: Vec<ExportPart> =
                (1..=of).map(|number| format!("{number}/{of}").parse().unwrap()).collect();
            for document in [0, 1, 5, 1_023, 1_024, 5_000, u64::MAX] {
                assert_eq!(parts.iter().filter(|part| part.takes(document)).count(), 1);
            }
        }
        for wrong in ["", "1", "0/3", "4/3", "1/0", "1/1025", "a/b", "-1/3"] {
            assert!(wrong.parse::<ExportPart>().is_err(), "{wrong}");
        }
    }
}
