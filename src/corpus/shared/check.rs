//! A walk over all that the cluster holds of a corpus: what a worker has left that died, and what a
//! primary took with it that was lost, is found, and mended if that is wanted.
//!
//! It goes on while workers do, and so believes nothing that is younger than a step of theirs may
//! take: what looks wrong is looked at again after that time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::base::clock::Timestamp;
use crate::cluster::{Change, PARTITIONS, Posting, State, Table};
use crate::corpus::clusters;
use crate::corpus::documents::{Document, copies_of};
use crate::corpus::tables::{CONTENTS, COPIES, DOCUMENTS, REVIEWS, UNSURE};
use crate::neardup::segment::PER_KEY_MAX;
use crate::store::{self, Update as _, View as _};

use super::checked::SharedChecked;
use super::unit::Unit;
use super::{Error, SharedCorpus};

/// Documents that are looked at together.
const TOGETHER: usize = 128;

/// What looks wrong and waits for its second look, at most: then the walk waits.
const SUSPECTS_MAX: usize = 65_536;

/// How far a check has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckProgress {
    /// Steps that were done.
    pub done: u64,
    /// All steps.
    pub all: u64,
    /// From where a check goes on that was cut off here: see [`SharedCorpus::check_from`].
    pub cursor: u64,
}

/// What looks wrong.
#[derive(Debug, Clone, Copy)]
enum Suspect {
    Posting(Posting),
    Late(u64),
    Lock(u64, [u8; 16]),
    Change(Change),
    Unnoted(u64),
}

/// A walk.
struct Check<'a> {
    corpus: &'a SharedCorpus,
    repair: bool,
    found: SharedChecked,
    /// With when they were seen, and in which step.
    suspects: VecDeque<(Instant, u64, Suspect)>,
    step: u64,
}

impl SharedCorpus {
    /// Looks at all documents and all postings of the corpus, also while workers go on; with
    /// `repair`, mends what it finds: keys that are missing are posted again, postings that lead
    /// nowhere are removed, changes that nobody ends are carried out or dropped. Nothing is removed
    /// that is younger than twice [the time of an article](super::SharedOptions::span).
    /// `on_progress` is called after each step.
    ///
    /// # Errors
    ///
    /// Those of the cluster. A document that cannot be read is a finding.
    pub fn check(
        &self,
        repair: bool,
        on_progress: &mut dyn FnMut(CheckProgress),
    ) -> Result<SharedChecked, Error> {
        self.check_from(0, repair, on_progress)
    }

    /// Does the same from where a check was cut off: see [`CheckProgress::cursor`].
    pub fn check_from(
        &self,
        cursor: u64,
        repair: bool,
        on_progress: &mut dyn FnMut(CheckProgress),
    ) -> Result<SharedChecked, Error> {
        let hashes = self.engine.borrow_mut().last_hash()? + 1;
        let (found, suspects) = (SharedChecked::default(), VecDeque::new());
        let mut check = Check { corpus: self, repair, found, suspects, step: cursor };
        let all = hashes + PARTITIONS;
        if cursor == 0 {
            check.changes()?;
        }
        while check.step < all {
            if check.step == hashes {
                // What mends documents takes the place of some.
                check.look_again(0)?;
            }
            if check.step < hashes {
                check.documents(check.step)?;
            } else {
                check.partition(check.step - hashes)?;
            }
            check.step += 1;
            check.look_again(SUSPECTS_MAX)?;
            let cursor = check.suspects.front().map_or(check.step, |(_, step, _)| *step);
            on_progress(CheckProgress { done: check.step, all, cursor });
        }
        check.look_again(0)?;
        if repair && check.found.dead_postings > 0 {
            check.documents_again(hashes)?;
        }
        Ok(check.found)
    }

    /// Time in which a change of several documents must be decided. After so long, whoever was in
    /// the middle of anything has ended it, or is late.
    pub(super) fn change_span(&self) -> Duration {
        self.span * 2
    }
}

impl Check<'_> {
    fn suspect(&mut self, suspect: Suspect) {
        self.suspects.push_back((Instant::now(), self.step, suspect));
    }

    /// Looks at the documents of the hashes of a number.
    fn documents(&mut self, hash: u64) -> Result<(), Error> {
        let numbers = self.corpus.engine.borrow_mut().documents_in(hash)?;
        for numbers in numbers.chunks(TOGETHER) {
            let states = self.corpus.engine.borrow_mut().states(numbers)?;
            let mut live = Vec::new();
            for (number, state) in numbers.iter().copied().zip(states) {
                match state {
                    State::Nothing | State::Pending => {}
                    State::Late(_) => self.suspect(Suspect::Late(number)),
                    State::Live => live.push(number),
                    State::Locked(change) => self.suspect(Suspect::Lock(number, change)),
                }
            }
            self.live(&live)?;
        }
        Ok(())
    }

    /// Looks at all documents once more: a key that was full of what led nowhere has room by now
    /// for those that are live.
    fn documents_again(&mut self, hashes: u64) -> Result<(), Error> {
        let (documents, copies) = (self.found.documents, self.found.copies);
        for hash in 0..hashes {
            self.documents(hash)?;
        }
        self.look_again(0)?;
        (self.found.documents, self.found.copies) = (documents, copies);
        Ok(())
    }

    /// Looks at documents that are live.
    fn live(&mut self, numbers: &[u64]) -> Result<(), Error> {
        let unit = Unit::new(self.corpus, None);
        if unit.load(numbers).is_ok() {
            return self.loaded(&unit, numbers);
        }
        // One of them cannot be read, or the cluster cannot: then that is told here.
        for number in numbers.iter().copied() {
            let unit = Unit::new(self.corpus, None);
            match unit.load(&[number]) {
                Ok(()) => self.loaded(&unit, &[number])?,
                Err(error @ store::Error::Remote(_)) => return Err(error.into()),
                Err(error) => {
                    self.found.unreadable += 1;
                    self.found.list(|| format!("document {number} cannot be read: {error}"));
                }
            }
        }
        Ok(())
    }

    fn loaded(&mut self, unit: &Unit<'_>, numbers: &[u64]) -> Result<(), Error> {
        let (mut asked, mut unnoted, mut unsure) = (BTreeMap::new(), Vec::new(), Vec::new());
        for number in numbers.iter().copied() {
            let Some(rows) = unit.rows_read(number) else { continue };
            self.found.documents += 1;
            self.counts(unit, number)?;
            asked.insert(
                number,
                self.corpus.postings_of(number, &rows).map_err(store::Error::from)?,
            );
            let has = |table| rows.iter().any(|row| row.table == table);
            if has(store::Name::Reviews) {
                unnoted.push(number);
            } else if has(store::Name::Unsure) {
                unsure.push(number);
            }
        }
        let due = self.corpus.engine.borrow_mut().are_due(&unnoted)?;
        for (number, _) in unnoted.into_iter().zip(due).filter(|(_, is_due)| !is_due) {
            self.suspect(Suspect::Unnoted(number));
        }
        if self.repair {
            // Whether these had their look is not written down.
            self.corpus.engine.borrow_mut().note_due(&unsure)?;
        }
        for number in self.unfound(&asked)?.into_keys() {
            self.lacks_keys(number)?;
        }
        Ok(())
    }

    /// Looks whether a document counts its copies and texts, and has all of them.
    fn counts(&mut self, unit: &Unit<'_>, number: u64) -> Result<(), Error> {
        let wrong = wrong_in(unit, number)?;
        self.found.copies += wrong.copies;
        self.found.orphans += wrong.orphans.len() as u64 + u64::from(wrong.is_bare);
        self.found.miscounted += u64::from(wrong.is_miscounted);
        if !wrong.is_miscounted && !wrong.is_bare && wrong.orphans.is_empty() {
            return Ok(());
        }
        self.found.list(|| format!("document {number} has not what it counts: {wrong:?}"));
        if self.repair && !wrong.is_bare {
            self.corpus.change(None, |placer| mend(placer.batch, number, placer.now))?;
            self.found.mended += 1;
        }
        Ok(())
    }

    /// Returns the documents that are not found by all of their keys, with those.
    fn unfound(
        &mut self,
        asked: &BTreeMap<u64, BTreeSet<Posting>>,
    ) -> Result<BTreeMap<u64, Vec<Posting>>, Error> {
        let all: Vec<Posting> = asked.values().flatten().copied().collect();
        let questions: Vec<Posting> =
            all.iter().map(|posting| Posting { document: None, ..*posting }).collect();
        let corpus = self.corpus;
        let found = corpus.engine.borrow_mut().post(&corpus.buckets, &questions)?;
        let mut unfound: BTreeMap<u64, Vec<Posting>> = BTreeMap::new();
        for (posting, found) in all.into_iter().zip(found) {
            let Some(document) = posting.document else { continue };
            let is_there = found.contains(&(0, document));
            // A commonplace leads to no more than some documents.
            let is_full = matches!(posting.table, Table::Equal(_)) && found.len() >= PER_KEY_MAX;
            if !is_there && !is_full {
                unfound.entry(document).or_default().push(posting);
            }
        }
        Ok(unfound)
    }

    /// A document seems to lack keys: it is so if it is the same before they are looked for and
    /// after.
    fn lacks_keys(&mut self, number: u64) -> Result<(), Error> {
        let corpus = self.corpus;
        let read = || -> Result<_, Error> { Ok(corpus.engine.borrow_mut().read(&[number])?) };
        let before = read()?;
        let unit = Unit::new(corpus, None);
        unit.load(&[number])?;
        let Some(rows) = unit.rows_read(number) else { return Ok(()) };
        let postings = corpus.postings_of(number, &rows).map_err(store::Error::from)?;
        let unfound = self.unfound(&BTreeMap::from([(number, postings)]))?;
        let Some(missing) = unfound.into_values().next() else { return Ok(()) };
        if read()? != before {
            return Ok(());
        }
        self.found.unfound += 1;
        self.found.missing_keys += missing.len() as u64;
        self.found.list(|| format!("document {number} lacks {} of its keys", missing.len()));
        if !self.repair {
            return Ok(());
        }
        corpus.engine.borrow_mut().post(&corpus.buckets, &missing)?;
        // A copy that has not found it may be a document of its own by now.
        corpus.change(None, |placer| {
            placer.batch.load(&[number])?;
            let Some(document) = placer.batch.get(DOCUMENTS, number)? else { return Ok(()) };
            if document.gone.0 == 0 {
                placer.batch.put(UNSURE, document.content, &document.canonical)?;
                placer.batch.put(REVIEWS, number, &())?;
            }
            Ok(())
        })?;
        corpus.engine.borrow_mut().note_due(&[number])?;
        self.found.mended += 1;
        Ok(())
    }

    /// Looks at the postings of a partition.
    fn partition(&mut self, partition: u64) -> Result<(), Error> {
        let corpus = self.corpus;
        let mut suspects = Vec::new();
        let mut count = 0;
        corpus.engine.borrow_mut().each_posting(
            partition,
            &corpus.tables(),
            |engine, postings| {
                count += postings.len() as u64;
                let numbers: BTreeSet<u64> =
                    postings.iter().filter_map(|posting| posting.document).collect();
                let numbers: Vec<u64> = numbers.into_iter().collect();
                let states = engine.states(&numbers)?;
                let gone: BTreeSet<u64> = numbers
                    .into_iter()
                    .zip(states)
                    .filter(|(_, state)| matches!(state, State::Nothing | State::Late(_)))
                    .map(|(number, _)| number)
                    .collect();
                let leads = |posting: &Posting| {
                    posting.document.is_some_and(|number| gone.contains(&number))
                };
                suspects.extend(postings.into_iter().filter(leads).map(Suspect::Posting));
                Ok(())
            },
        )?;
        self.found.postings += count;
        for suspect in suspects {
            self.suspect(suspect);
        }
        Ok(())
    }

    /// Looks for changes that were begun.
    fn changes(&mut self) -> Result<(), Error> {
        for partition in 0..PARTITIONS {
            let changes = self.corpus.engine.borrow_mut().changes(partition)?;
            for change in changes {
                self.suspect(Suspect::Change(change));
            }
        }
        Ok(())
    }

    /// Looks again at what looked wrong long enough ago, and waits until at most so much is left.
    fn look_again(&mut self, left: usize) -> Result<(), Error> {
        let grace = self.corpus.change_span();
        loop {
            let is_old = |(seen, ..): &&(Instant, u64, Suspect)| seen.elapsed() >= grace;
            let old = self.suspects.iter().take_while(is_old).count();
            let old: Vec<Suspect> = self.suspects.drain(..old).map(|(.., one)| one).collect();
            self.judge(old)?;
            if self.suspects.len() <= left {
                return Ok(());
            }
            let Some((seen, ..)) = self.suspects.front() else { return Ok(()) };
            sleep(grace.saturating_sub(seen.elapsed()));
        }
    }

    fn judge(&mut self, suspects: Vec<Suspect>) -> Result<(), Error> {
        let mut postings = Vec::new();
        for suspect in suspects {
            match suspect {
                Suspect::Posting(posting) => postings.push(posting),
                Suspect::Late(number) => self.late(number)?,
                Suspect::Lock(number, change) => self.lock(number, change)?,
                Suspect::Change(change) => self.change(change)?,
                Suspect::Unnoted(number) => self.unnoted(number)?,
            }
        }
        postings.chunks(4_096).try_for_each(|postings| self.dead(postings))
    }

    fn dead(&mut self, postings: &[Posting]) -> Result<(), Error> {
        let corpus = self.corpus;
        let numbers: Vec<u64> = postings.iter().filter_map(|posting| posting.document).collect();
        let engine = &mut *corpus.engine.borrow_mut();
        let mut states = engine.states(&numbers)?;
        if self.repair {
            // Whoever announced them may come back: then there is nothing that could become live.
            let is_late = |(_, state): &(&u64, State)| matches!(state, State::Late(_));
            let late = numbers.iter().zip(states).filter(is_late).map(|(number, _)| *number);
            engine.expire(&late.collect::<Vec<_>>(), Duration::ZERO)?;
            states = engine.states(&numbers)?;
        }
        let found = postings.iter().zip(states);
        let dead: Vec<Posting> = found
            .filter(|(_, state)| matches!(state, State::Nothing | State::Late(_)))
            .map(|(posting, _)| *posting)
            .collect();
        self.found.dead_postings += dead.len() as u64;
        for posting in &dead {
            self.found.list(|| format!("{posting:?} leads nowhere"));
        }
        if self.repair && !dead.is_empty() {
            engine.unpost(&corpus.buckets, &dead)?;
            self.found.mended += dead.len() as u64;
        }
        Ok(())
    }

    fn late(&mut self, number: u64) -> Result<(), Error> {
        let engine = &mut *self.corpus.engine.borrow_mut();
        if matches!(engine.states(&[number])?[..], [State::Late(_)]) {
            self.found.late += 1;
            self.found.list(|| format!("number {number} was announced and never settled"));
            if self.repair {
                engine.expire(&[number], Duration::ZERO)?;
                self.found.mended += 1;
            }
        }
        Ok(())
    }

    fn lock(&mut self, number: u64, change: [u8; 16]) -> Result<(), Error> {
        let corpus = self.corpus;
        let state = corpus.engine.borrow_mut().states(&[number])?;
        if state == [State::Locked(change)] {
            self.found.locked += 1;
            self.found.list(|| format!("document {number} stays locked"));
            if !self.repair {
                return Ok(());
            }
            // Whoever reads it does what is left of the change.
            corpus.engine.borrow_mut().read(&[number])?;
            self.found.mended += 1;
        }
        self.live(&[number])
    }

    fn change(&mut self, change: Change) -> Result<(), Error> {
        let engine = &mut *self.corpus.engine.borrow_mut();
        if engine.changes(change.partition())?.contains(&change) {
            self.found.changes += 1;
            self.found.list(|| format!("nobody ends {change:?}"));
            if self.repair && engine.finish(change)? {
                self.found.mended += 1;
            }
        }
        Ok(())
    }

    fn unnoted(&mut self, number: u64) -> Result<(), Error> {
        let unit = Unit::new(self.corpus, None);
        unit.load(&[number])?;
        let deserves = unit.len(REVIEWS)? > 0;
        let engine = &mut *self.corpus.engine.borrow_mut();
        if deserves && engine.are_due(&[number])? == [false] {
            self.found.unnoted += 1;
            self.found.list(|| format!("document {number} waits for a look that nobody does"));
            if self.repair {
                engine.note_due(&[number])?;
                self.found.mended += 1;
            }
        }
        Ok(())
    }
}

/// What does not agree in the rows of a document.
#[derive(Debug, Default)]
struct Wrong {
    copies: u64,
    /// URLs of copies whose text is not there.
    orphans: Vec<String>,
    is_miscounted: bool,
    /// There are rows, and no document.
    is_bare: bool,
}

fn wrong_in(view: &impl store::View, number: u64) -> Result<Wrong, store::Error> {
    let mut wrong = Wrong::default();
    let document: Option<Document> = view.get(DOCUMENTS, number)?;
    let mut carried: BTreeMap<u64, u64> = BTreeMap::new();
    for (url, copy) in copies_of(view, number)? {
        wrong.copies += 1;
        *carried.entry(copy.content).or_default() += 1;
        if view.get(CONTENTS, copy.content)?.is_none() {
            wrong.orphans.push(url);
        }
    }
    for (content, count) in &carried {
        let row = view.get(CONTENTS, *content)?;
        wrong.is_miscounted |= row.is_some_and(|row| row.copies != *count);
    }
    match document {
        None => wrong.is_bare = true,
        Some(document) => {
            wrong.is_miscounted |= document.copies != wrong.copies;
            let is_there = wrong.copies == 0 || view.has(COPIES, (number, &document.canonical))?;
            wrong.is_miscounted |= !is_there;
        }
    }
    Ok(wrong)
}

/// Takes copies out that have no text, and counts the others anew.
fn mend(unit: &mut Unit<'_>, number: u64, now: Timestamp) -> Result<(), store::Error> {
    unit.load(&[number])?;
    let wrong = wrong_in(unit, number)?;
    if wrong.is_bare {
        return Ok(());
    }
    for url in &wrong.orphans {
        unit.remove(COPIES, (number, url))?;
    }
    let mut carried: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, copy) in copies_of(unit, number)? {
        *carried.entry(copy.content).or_default() += 1;
    }
    for (content, count) in carried {
        if let Some(mut row) = unit.get(CONTENTS, content)?
            && row.copies != count
        {
            row.copies = count;
            unit.put(CONTENTS, content, &row)?;
        }
    }
    clusters::recount(unit, number, now)
}
