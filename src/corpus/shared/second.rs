//! Second looks at matches that were less than certain, by any worker.

use crate::corpus::dedup::{Looked, Range};
use crate::corpus::tables::{REVIEWS, UNSURE};
use crate::store::View as _;

use super::unit::Unit;
use super::{Error, SharedCorpus};

/// What second looks have changed.
pub type SharedLooked = Looked;

/// Documents that are taken of each partition at a time.
const TAKEN: u64 = 4;

impl SharedCorpus {
    /// Looks again at documents whose matches were less than certain, until none is due. Several
    /// workers may do so at a time: each document is taken by one.
    pub fn look_again(&self) -> Result<SharedLooked, Error> {
        let mut all = Looked::default();
        loop {
            let due = self.engine.borrow_mut().take_due(TAKEN)?;
            if due.is_empty() {
                return Ok(all);
            }
            for (at, document) in due.iter().enumerate() {
                match self.look_at(*document) {
                    Ok(looked) => {
                        all.moved += looked.moved;
                        all.merged += looked.merged;
                    }
                    Err(error) => {
                        // What was taken is due again, unless the cluster cannot be reached: then a
                        // check finds it.
                        let _ = self.engine.borrow_mut().note_due(&due[at..]);
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Looks again at all matches of one document.
    fn look_at(&self, document: u64) -> Result<Looked, Error> {
        {
            let unit = Unit::new(self, None);
            unit.load(&[document])?;
            if unit.len(UNSURE)? + unit.len(REVIEWS)? == 0 {
                return Ok(Looked::default());
            }
        }
        self.change(None, |placer| {
            placer.batch.load(&[document])?;
            let range = Range { after: 0, until: u64::MAX - 1, apart: true };
            let mut looked = placer.look(range, || true)?.0;
            looked.merged += placer.review()?;
            Ok(looked)
        })
    }
}
