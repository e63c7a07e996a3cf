//! Writing what a transaction has changed: postings before, so that nothing is there that is not
//! found; then the documents, if nobody else has written them; what is not wanted any more at last.

use std::collections::BTreeSet;

use crate::cluster::{Change, Posting, Settled, Version, Write, Written};
use crate::store::{Error, Name};

use super::SharedCorpus;
use super::place::Announced;
use super::rows::{PartRow, encode};
use super::unit::{ChangedDocument, Unit};

/// What is to be written.
#[derive(Default)]
pub(super) struct Plan {
    pub writes: Vec<Write>,
    /// Postings that must be there before, and such that lead nowhere behind.
    pub added: BTreeSet<Posting>,
    pub removed: BTreeSet<Posting>,
    /// Documents that deserve a second look.
    pub due: Vec<u64>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Written,
    /// Somebody else has written one of the documents.
    Conflict,
    /// Somebody older was announced.
    Marked,
    /// The article was announced too long ago.
    Late,
}

impl SharedCorpus {
    /// Plans the writing of all that a transaction has changed.
    pub(super) fn plan(&self, unit: &Unit<'_>) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        for ChangedDocument { number, version, was, is } in unit.changed()? {
            let before = self.postings_of(number, &was)?;
            let after = self.postings_of(number, &is)?;
            plan.added.extend(after.difference(&before));
            plan.removed.extend(before.difference(&after));
            let deserves = |table: Name| {
                let rows = |rows: &[PartRow]| {
                    let of_table = rows.iter().filter(|row| row.table == table);
                    of_table.map(|row| row.key.clone()).collect::<BTreeSet<_>>()
                };
                !rows(&is).is_subset(&rows(&was))
            };
            if deserves(Name::Unsure) || deserves(Name::Reviews) {
                plan.due.push(number);
            }
            let row = if is.iter().any(|row| row.table == Name::Documents) {
                encode(&is)
            } else {
                Vec::new()
            };
            plan.writes.push(Write { document: number, version, row });
        }
        Ok(plan)
    }

    /// Writes it. `announced` is an article that is placed, whose postings are there.
    pub(super) fn carry_out(
        &self,
        plan: &Plan,
        announced: Option<&Announced>,
    ) -> Result<Outcome, Error> {
        let engine = &mut *self.engine.borrow_mut();
        let is_new = |one: &&Posting| announced.is_none_or(|known| !known.postings.contains(one));
        let number = announced.map(|announced| announced.number);
        let added: Vec<Posting> = plan.added.iter().filter(is_new).copied().collect();
        if !added.is_empty() {
            engine.post(&self.buckets, &added)?;
        }
        tracing::trace!("posted");
        let outcome = match plan.writes.as_slice() {
            [] => Outcome::Written,
            [one] if one.version == Version::NONE && Some(one.document) == number => {
                match engine.settle(vec![one.clone()])?.first() {
                    Some(Settled::Live) => Outcome::Written,
                    Some(Settled::Marked) => Outcome::Marked,
                    Some(Settled::Late) | None => Outcome::Late,
                }
            }
            [one] if one.version != Version::NONE => {
                match engine.write(vec![one.clone()])?.first() {
                    Some(true) => Outcome::Written,
                    Some(false) | None => Outcome::Conflict,
                }
            }
            several => {
                self.changes.set(self.changes.get() + 1);
                let change = Change::of(self.worker, self.changes.get());
                match engine.write_together(change, several)? {
                    Written::All => Outcome::Written,
                    Written::None => Outcome::Conflict,
                }
            }
        };
        tracing::trace!("written");
        if outcome == Outcome::Written {
            if !plan.due.is_empty() {
                engine.note_due(&plan.due)?;
            }
            let removed: Vec<Posting> = plan.removed.iter().copied().collect();
            if !removed.is_empty() {
                engine.unpost(&self.buckets, &removed)?;
            }
        }
        Ok(outcome)
    }

    /// Adds to the counters of this worker.
    pub(super) fn add_counts(&self, unit: &Unit<'_>) -> Result<(), Error> {
        let new = unit.counts();
        if new.is_empty() {
            return Ok(());
        }
        let mut counts = self.counts.borrow_mut();
        for (name, by) in new {
            *counts.entry(name).or_default() += by;
        }
        Ok(self.engine.borrow_mut().count(self.worker, &counts)?)
    }
}

/// Tells whether a document was made of an article that was announced under its number.
pub(super) fn makes(plan: &Plan, number: u64) -> bool {
    plan.writes.iter().any(|write| write.document == number && !write.row.is_empty())
}
