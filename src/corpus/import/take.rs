//! The one thread that stores what was read, in the order of the input.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::corpus::clusters::Place;
use crate::corpus::dedup::{
    self, AskedAhead, CommittedContents, Corpus as _, Placer, Popularity, known_content, sent_as,
};
use crate::corpus::documents::{nid_name, note_again};
use crate::corpus::files::Error as FilesError;
use crate::corpus::files::input::Sources;
use crate::corpus::files::pipeline::threads;
use crate::corpus::files::prepare::{Prepared, count};
use crate::corpus::files::together::{Most, gather};
use crate::corpus::index::{Index, LookedAhead};
use crate::corpus::tables::{REVIEWS, SENT, SENT_URLS};
use crate::store::{self, Batch, Update as _, View as _};
use crate::text::features::ArticleKeys;

use super::lists::Lists;
use super::progress::{self, Identity, InputRow};
use super::{Error, ImportOptions, ImportProgress, ImportReport, Incoming, Target, digest_of};

/// Records of a round, and bytes of their texts: it ends with the chunk that has the last of them.
const ROUND: Most = Most { records: 2_048, bytes: 8 << 20 };

/// Documents that are stored in one transaction.
type Round = Vec<Prepared<Incoming>>;

/// What is like the documents of a round among those before, in the order of hashes.
type RoundFound = Vec<LookedAhead>;

/// Stores what comes.
pub(super) struct Importer<'i> {
    target: Target<'i>,
    sources: &'i Sources,
    options: &'i ImportOptions,
    index: Arc<Mutex<Index>>,
    /// What was found for the round before and for this one: second looks ask for both.
    found: [RoundFound; 2],
    keys: Vec<String>,
    rows: Vec<InputRow>,
    lists: Lists,
    /// Inputs that were read before.
    before: u64,
    /// The input of the last chunk.
    at: usize,
    batch: Option<Batch>,
    /// Inputs whose rows have changed since the last commit.
    changed: Vec<usize>,
    /// What came in this run.
    came: u64,
    new: u64,
}

impl<'i> Importer<'i> {
    /// Looks how far each input was read.
    pub(super) fn open(
        target: Target<'i>,
        sources: &'i Sources,
        options: &'i ImportOptions,
        index: Arc<Mutex<Index>>,
    ) -> Result<Self, Error> {
        let Target { store, folder, .. } = target;
        let digest = digest_of(options);
        let snapshot = store.snapshot()?;
        let (mut keys, mut rows) = (Vec::new(), Vec::new());
        for source in sources.all() {
            let identity = Identity::of(source, digest).map_err(|error| {
                Error::Files(FilesError::Read { file: source.name.clone(), source: error })
            })?;
            let key = progress::key_of(source);
            let known = progress::read(&snapshot, &key)?;
            let known = known.filter(|row| row.identity == identity);
            rows.push(known.unwrap_or_else(|| InputRow {
                identity,
                records: 0,
                done: false,
                report: ImportReport::default(),
            }));
            keys.push(key);
        }
        let before = rows.iter().filter(|row| row.done).count() as u64;
        Ok(Self {
            target,
            sources,
            options,
            index,
            found: Default::default(),
            keys,
            rows,
            lists: Lists::open(folder, &snapshot)?,
            before,
            at: 0,
            batch: None,
            changed: Vec::new(),
            came: 0,
            new: 0,
        })
    }

    /// The first input that was not read to its end.
    pub(super) fn first(&self) -> usize {
        self.rows.iter().position(|row| !row.done).unwrap_or(self.rows.len())
    }

    /// Records of each input that are in the store.
    pub(super) fn records(&self) -> Vec<u64> {
        self.rows.iter().map(|row| row.records).collect()
    }

    /// Stores all that comes.
    pub(super) fn take(
        &mut self,
        chunks: &mut dyn Iterator<Item = Prepared<Incoming>>,
        progress: &mut dyn FnMut(&ImportProgress),
    ) -> Result<(), Error> {
        let mut next = || gather(chunks, ROUND, |one| one.article.text.len());
        let mut round = next();
        let mut found = look_up(&self.committed()?, &round, threads(self.options.threads))?;
        while !round.is_empty() {
            let coming = next();
            self.found = [std::mem::take(&mut self.found[1]), found];
            found = self.store_and_look_up(round, &coming)?;
            self.commit()?;
            round = coming;
            let position = self.sources.position();
            progress(&ImportProgress { documents: self.came, new: self.new, position });
        }
        Ok(())
    }

    /// Stores the documents of a round, and looks up those of the next one meanwhile, among those
    /// before both.
    fn store_and_look_up(&mut self, round: Round, coming: &Round) -> Result<RoundFound, Error> {
        let (committed, threads) = (self.committed()?, threads(self.options.threads));
        thread::scope(|scope| {
            let looks = scope.spawn(|| look_up(&committed, coming, threads));
            let stored = round.into_iter().try_for_each(|chunk| self.chunk(chunk));
            let looked = looks.join().unwrap_or_else(|panic| resume_unwind(panic));
            stored?;
            Ok(looked?)
        })
    }

    /// The state of the last commit, if no batch is open.
    fn committed(&self) -> Result<CommittedContents, Error> {
        Ok(CommittedContents::of(self.target.store, &self.index)?)
    }

    /// Notes that inputs were read to their ends.
    fn finish(&mut self, inputs: std::ops::Range<usize>) -> Result<(), Error> {
        for at in inputs.filter(|at| !self.rows[*at].done).collect::<Vec<_>>() {
            self.rows[at].done = true;
            self.change(at)?;
        }
        Ok(())
    }

    fn change(&mut self, at: usize) -> Result<(), Error> {
        self.begin()?;
        if self.changed.last() != Some(&at) {
            self.changed.push(at);
        }
        Ok(())
    }

    /// Begins a batch, if none is open.
    fn begin(&mut self) -> Result<(), Error> {
        if self.batch.is_none() {
            self.batch = Some(dedup::begin(self.target.store, &self.index, &self.options.dedup)?);
        }
        Ok(())
    }

    fn chunk(&mut self, chunk: Prepared<Incoming>) -> Result<(), Error> {
        if chunk.source > self.at {
            self.finish(self.at..chunk.source)?;
            self.at = chunk.source;
        }
        let source = &self.sources.all()[chunk.source];
        if self.rows[chunk.source].done || chunk.fates.is_empty() {
            return Ok(());
        }
        let last = chunk.first + chunk.fates.len() as u64 - 1;
        let done = self.rows[chunk.source].records;
        if last <= done {
            return Ok(());
        }
        self.change(chunk.source)?;
        self.rows[chunk.source].report.bytes += chunk.bytes;
        for (fate, number) in chunk.fates.into_iter().zip(chunk.first..) {
            if number <= done {
                continue;
            }
            let report = &mut self.rows[chunk.source].report;
            if let Some(document) = self.lists.take(fate, source, number, report)? {
                self.document(chunk.source, &document)?;
            }
        }
        self.rows[chunk.source].records = last;
        self.look_again(false)
    }

    /// Looks at matches whose time has come; with `all`, at all that are unsure.
    fn look_again(&mut self, all: bool) -> Result<(), Error> {
        let Some(batch) = &mut self.batch else { return Ok(()) };
        let (now, config) = (self.target.clock.now(), &self.options.dedup);
        let asked = asked(&self.index, &self.found);
        let mut placer = Placer { batch, index: &asked, config, now };
        placer.look_due(all)?;
        while all && placer.batch.rows(REVIEWS)?.next().is_some() {
            placer.review()?;
        }
        Ok(())
    }

    /// The way of a document: is it known by its URL, by its title or content?
    fn document(&mut self, at: usize, incoming: &Incoming) -> Result<(), Error> {
        let now = self.target.clock.now();
        let batch = self.batch.as_mut().expect("a batch is open where records are taken");
        let report = &mut self.rows[at].report;
        let Incoming { article, id, bad_url, masked, repaired } = incoming;
        self.came += 1;
        let address = &article.address;
        if let Some((_, document)) = known_content(batch, address)? {
            if let Some(score) = article.score {
                let (index, config) = (&*self.index, &self.options.dedup);
                let mut placer = Placer { batch: &mut *batch, index, config, now };
                placer.set_popularity(document, address, Popularity::Score(score))?;
            }
            note_again(batch, document, now)?;
            report.known += 1;
            return Ok(());
        }
        let asked = asked(&self.index, &self.found);
        let config = &self.options.dedup;
        let mut placer = Placer { batch: &mut *batch, index: &asked, config, now };
        let stored = placer.place(article, 0)?;
        let sent = sent_as(article, &stored, now);
        batch.put(SENT_URLS, address, &sent.content)?;
        if let Some(id) = id {
            let name = nid_name(id);
            if batch.has(SENT, &name)? {
                report.equal_ids += 1;
            } else {
                batch.put(SENT, &name, &sent)?;
            }
        }
        report.documents += 1;
        report.bad_urls += u64::from(*bad_url);
        report.masked += masked;
        report.repaired += u64::from(*repaired);
        match stored.judged.place {
            Place::New => {
                report.new += 1;
                self.new += 1;
            }
            Place::Tree(matched) => count(&mut report.duplicates, matched.key.as_str()),
        }
        Ok(())
    }

    /// Stores what came, with how far each input was read.
    fn commit(&mut self) -> Result<(), Error> {
        let Some(mut batch) = self.batch.take() else { return Ok(()) };
        self.lists.commit(&mut batch)?;
        for at in self.changed.drain(..) {
            progress::write(&mut batch, &self.keys[at], &self.rows[at])?;
        }
        batch.commit()?;
        Ok(())
    }

    /// Notes that all was read, and looks at all matches that are unsure, in one batch.
    pub(super) fn end(mut self) -> Result<ImportReport, Error> {
        let total = self.total();
        self.lists.must_be_of_use(&total)?;
        self.finish(0..self.rows.len())?;
        self.begin()?;
        self.look_again(true)?;
        self.commit()?;
        let (came, inputs_before) = (self.came, self.before);
        Ok(ImportReport { inputs_before, came, ..self.total() })
    }

    /// What all inputs have given, over all runs.
    fn total(&self) -> ImportReport {
        let mut total = ImportReport { inputs: self.rows.len() as u64, ..ImportReport::default() };
        for row in &self.rows {
            let report = &row.report;
            total.documents += report.documents;
            total.new += report.new;
            total.known += report.known;
            total.equal_ids += report.equal_ids;
            total.bad_urls += report.bad_urls;
            total.rejected += report.rejected;
            total.filtered += report.filtered;
            total.masked += report.masked;
            total.repaired += report.repaired;
            total.bytes += report.bytes;
            for (sum, counts) in [
                (&mut total.duplicates, &report.duplicates),
                (&mut total.reasons.rejected, &report.reasons.rejected),
                (&mut total.reasons.filtered, &report.reasons.filtered),
                (&mut total.reasons.skipped, &report.reasons.skipped),
            ] {
                for (name, count) in counts {
                    *sum.entry(name.clone()).or_default() += count;
                }
            }
        }
        total
    }
}

/// The index, with what was found there before for two rounds.
fn asked<'a>(index: &'a Mutex<Index>, [before, now]: &'a [RoundFound; 2]) -> AskedAhead<'a> {
    AskedAhead { index, found: [now, before] }
}

/// Finds what is like the documents of a round in the state of the last commit.
fn look_up(
    committed: &CommittedContents,
    round: &Round,
    threads: usize,
) -> Result<RoundFound, store::Error> {
    let documents = round.iter().flat_map(Prepared::documents);
    let keys: Vec<&ArticleKeys> = documents.map(|one| &one.article.keys).collect();
    committed.look_up_all(&keys, threads)
}
