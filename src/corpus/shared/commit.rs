//! Writing what a transaction has changed: postings before, so that nothing is there that is not
//! found; then the documents, if nobody else has written them; what is not wanted any more at last.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use crate::cluster::{Change, Engine, Found, Posting, Settled, Table, Version, Write, Written};
use crate::store::{Error, Name};

use super::SharedCorpus;
use super::change::{Announced, Tried};
use super::rows::{PartRow, pack, packed, record_of, record_place, unpack};
use super::unit::{ChangedDocument, Unit};

/// Counters of copies that came, and that went.
pub(super) const COPIES_COUNTED: [&str; 2] = ["copies.came", "copies.went"];

/// What is to be written.
#[derive(Default)]
pub(super) struct Plan {
    pub writes: Vec<Write>,
    /// Postings that must be there before, and such that lead nowhere behind.
    pub added: BTreeSet<Posting>,
    pub removed: BTreeSet<Posting>,
    /// Documents that deserve a second look.
    pub due: Vec<u64>,
    /// Copies that come, and that go.
    pub copies: [u64; 2],
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
    /// Plans the writing of all that a transaction has changed. `announced` is the number of an
    /// article that is placed.
    pub(super) fn plan(&self, unit: &Unit<'_>, announced: Option<u64>) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        for ChangedDocument { number, version, row, was, mut is } in unit.changed()? {
            if version == Version::NONE && Some(number) != announced {
                // Nobody knew that it comes: whoever races did not see it, and it is looked at
                // again.
                let table = Name::Reviews;
                let review = PartRow { table, key: Vec::new(), row: Vec::new() };
                is.retain(|row| row.table != table);
                is.push(review);
            }
            let [had, has] = [&was, &is].map(|rows| copies_in(rows));
            plan.copies[0] += has.saturating_sub(had);
            plan.copies[1] += had.saturating_sub(has);
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
                self.pack(row.as_deref(), &is)?
            } else {
                Vec::new()
            };
            plan.writes.push(Write { document: number, version, row });
        }
        Ok(plan)
    }

    /// Writes what was planned, each if nobody else has written the same. `announced` are the
    /// articles that are placed, whose postings are there.
    pub(super) fn carry_out(
        &self,
        tried: &[Tried],
        announced: &[Option<&Announced>],
    ) -> Result<Vec<Outcome>, Error> {
        let mut added = BTreeSet::new();
        for (one, announced) in tried.iter().zip(announced) {
            let is_new =
                |one: &&Posting| announced.is_none_or(|known| !known.postings.contains(one));
            added.extend(one.plan.added.iter().filter(is_new).copied());
        }
        let added: Vec<Posting> = added.into_iter().collect();
        self.texts.borrow_mut().sync()?;
        let engine = &mut *self.engine.borrow_mut();
        let begun = Instant::now();
        engine.post(&self.buckets, &added)?;
        tracing::trace!("posted");
        let outcomes = self.write_plans(engine, tried, announced)?;
        tracing::trace!("written");
        if begun.elapsed() > self.span {
            // A check may have taken them for those of nobody.
            engine.post(&self.buckets, &added)?;
        }
        let (mut due, mut done) = (Vec::new(), Vec::new());
        for (one, outcome) in tried.iter().zip(&outcomes) {
            // What looks like a conflict may have been written, if an answer was lost.
            due.extend(one.plan.due.iter().copied());
            if *outcome == Outcome::Written {
                done.push(&one.plan);
                let counts = COPIES_COUNTED.into_iter().zip(one.plan.copies);
                let counts = counts.filter(|(_, count)| *count > 0);
                self.add_counts(counts.map(|(name, count)| (name.to_owned(), count)).collect());
            }
        }
        engine.note_due(&due)?;
        self.take_away(engine, &done)?;
        Ok(outcomes)
    }

    /// Writes the documents of plans.
    fn write_plans(
        &self,
        engine: &mut Engine,
        tried: &[Tried],
        announced: &[Option<&Announced>],
    ) -> Result<Vec<Outcome>, Error> {
        let mut outcomes = vec![Outcome::Written; tried.len()];
        let (mut settles, mut writes) = (Vec::new(), Vec::new());
        let mut taken = BTreeSet::new();
        for (at, (one, announced)) in tried.iter().zip(announced).enumerate() {
            let number = announced.map(|announced| announced.number);
            let all = with_root(&one.plan, number);
            if one.plan.writes.iter().any(|write| taken.contains(&write.document)) {
                // Another one of these was faster.
                outcomes[at] = Outcome::Conflict;
                continue;
            }
            taken.extend(one.plan.writes.iter().map(|write| write.document));
            match all.as_slice() {
                [] => {}
                [write] if write.version == Version::NONE && Some(write.document) == number => {
                    settles.push((at, write.clone()));
                }
                [write] if write.version != Version::NONE => writes.push((at, write.clone())),
                _ => {
                    let mut several = all;
                    for write in several.iter_mut().filter(|one| Some(one.document) == number) {
                        write.version = Version::ANNOUNCED;
                    }
                    self.changes.set(self.changes.get() + 1);
                    let change = Change::of(self.worker, self.changes.get());
                    if engine.write_together(change, &several, self.change_span())? == Written::None
                    {
                        outcomes[at] = Outcome::Conflict;
                    }
                }
            }
        }
        let (places, rows): (Vec<usize>, Vec<Write>) = settles.into_iter().unzip();
        for (at, settled) in places.into_iter().zip(engine.settle(rows)?) {
            outcomes[at] = match settled {
                Settled::Live => Outcome::Written,
                Settled::Marked => Outcome::Marked,
                Settled::Late => Outcome::Late,
            };
        }
        let (places, rows): (Vec<usize>, Vec<Write>) = writes.into_iter().unzip();
        for (at, written) in places.into_iter().zip(engine.write(rows)?) {
            outcomes[at] = if written { Outcome::Written } else { Outcome::Conflict };
        }
        Ok(outcomes)
    }

    /// Takes postings away that documents do not have any more, now that these are written.
    ///
    /// Somebody else may have given a document one of them again meanwhile. So it is written once
    /// more as it is: who has read it before that, and is about to write it, must read it again,
    /// and posts what he adds again. What was written already is looked at here.
    fn take_away(&self, engine: &mut Engine, done: &[&Plan]) -> Result<(), Error> {
        let removed: BTreeSet<Posting> =
            done.iter().flat_map(|plan| plan.removed.iter().copied()).collect();
        if removed.is_empty() {
            return Ok(());
        }
        engine.unpost(&self.buckets, &removed.iter().copied().collect::<Vec<_>>())?;
        tracing::trace!("unposted");
        let lost: BTreeSet<Option<u64>> = removed.iter().map(|posting| posting.document).collect();
        let of_lost =
            |write: &&Write| !write.row.is_empty() && lost.contains(&Some(write.document));
        let writes = done.iter().flat_map(|plan| &plan.writes).filter(of_lost);
        let mut left: Vec<Write> =
            writes.map(|write| Write { version: write.version.next(), ..write.clone() }).collect();
        while !left.is_empty() {
            let written = engine.write(left.clone())?;
            let mut refused = written.into_iter().map(|is_written| !is_written);
            left.retain(|_| refused.next() == Some(true));
            let numbers: Vec<u64> = left.iter().map(|write| write.document).collect();
            let mut again = Vec::new();
            for (write, found) in left.into_iter().zip(engine.read(&numbers)?) {
                let Found::Live(live) = found else { continue };
                if live.version == write.version {
                    // It was locked for a change that is not done.
                    again.push(write);
                    continue;
                }
                let has = self.postings_of(write.document, &self.unpack(&live.row)?)?;
                let back: Vec<Posting> = has.intersection(&removed).copied().collect();
                engine.post(&self.buckets, &back)?;
            }
            left = again;
        }
        Ok(())
    }

    /// Takes articles back that were announced and became no documents: their numbers, and the
    /// postings of those that are gone. One of them may be a document after all, which somebody
    /// else has changed before this worker heard that it is one: it stays as it is.
    pub(super) fn take_back(&self, over: &[(u64, &BTreeSet<Posting>)]) -> Result<(), Error> {
        if over.is_empty() {
            return Ok(());
        }
        let engine = &mut *self.engine.borrow_mut();
        let numbers: Vec<u64> = over.iter().map(|(number, _)| *number).collect();
        let (mut dead, mut live) = (Vec::new(), Vec::new());
        for ((number, postings), is_gone) in over.iter().zip(engine.withdraw(&numbers)?) {
            if is_gone {
                dead.extend(postings.iter().copied());
            } else {
                live.push(*number);
            }
        }
        engine.unpost(&self.buckets, &dead)?;
        // Whether they deserve a second look was to be noted when they were written.
        engine.note_due(&live)?;
        tracing::trace!("withdrawn");
        Ok(())
    }

    /// Gets the records of rows that are read next.
    pub(super) fn fetch_records(&self, found: &[Found]) -> Result<(), Error> {
        let mut places = Vec::new();
        for one in found {
            if let Found::Live(live) = one {
                places.push(record_place(&live.row)?);
            }
        }
        self.texts.borrow_mut().fetch_records(&places)
    }

    /// Reads all rows of a document, as far as the cluster does not have them from its record.
    pub(super) fn unpack(&self, row: &[u8]) -> Result<Vec<PartRow>, Error> {
        let record = self.texts.borrow_mut().record(&record_place(row)?)?;
        Ok(unpack(row, &record)?)
    }

    /// Makes what the cluster is to have of the rows of a document, of which it has `row`.
    pub(super) fn pack(&self, row: Option<&[u8]>, rows: &[PartRow]) -> Result<Vec<u8>, Error> {
        let mut texts = self.texts.borrow_mut();
        if let Some(row) = row {
            let place = record_place(row)?;
            if let Some(row) = pack(&place, &texts.record(&place)?, rows)? {
                return Ok(row);
            }
        }
        Ok(packed(&texts.append_record(record_of(rows))?))
    }

    /// Adds to the counters of this worker.
    pub(super) fn add_counts(&self, new: HashMap<String, u64>) {
        let mut counts = self.counts.borrow_mut();
        for (name, by) in new {
            *counts.entry(name).or_default() += by;
            self.has_counted.set(true);
        }
    }

    /// Tells the cluster how much this worker has counted in all.
    pub(super) fn send_counts(&self) -> Result<(), Error> {
        if self.has_counted.replace(false) {
            self.engine.borrow_mut().count(self.worker, &self.counts.borrow())?;
        }
        Ok(())
    }
}

/// Copies of a document in its rows.
fn copies_in(rows: &[PartRow]) -> u64 {
    rows.iter().filter(|row| row.table == Name::Copies).count() as u64
}

/// What is written, and with it, where the article gives a document another root, that it is
/// pending and not marked: who is older and has looked before must be looked for.
fn with_root(plan: &Plan, announced: Option<u64>) -> Vec<Write> {
    let mut writes = plan.writes.clone();
    let moves_root = plan.added.iter().any(|posting| matches!(posting.table, Table::Near(_)));
    if let Some(document) = announced
        && moves_root
        && !makes(plan, document)
    {
        writes.push(Write { document, version: Version::NONE, row: Vec::new() });
    }
    writes
}

/// Tells whether a document was made of an article that was announced under its number.
pub(super) fn makes(plan: &Plan, number: u64) -> bool {
    plan.writes.iter().any(|write| write.document == number && !write.row.is_empty())
}
