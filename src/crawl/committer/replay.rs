//! What was exchanged in an earlier crawl, recorded as if it came now: fingerprinted, judged,
//! joined, kept and settled, in the order of that crawl.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::corpus::boilerplate::KnownBlocks;
use crate::corpus::dedup;
use crate::store::{Batch, Update as _, View as _};
use crate::warc::{PAYLOADS, StoredPayload, payload_key};

use super::super::crew::Way;
use super::super::fingerprint::{With, Yield, fingerprinted};
use super::super::memory::HeldMemory;
use super::super::rebuild::{Progress, RebuildProgress, Replayed, Source, Step};
use super::super::visitor::{Visit, VisitAnswer};
use super::{Committer, Error};

/// Visits that are fingerprinted together.
const CHUNK_VISITS: usize = 64;

/// Bytes of their bodies, beyond which no further one is added.
const CHUNK_BYTES: usize = 8 << 20;

/// Visits of one commit.
const COMMIT_VISITS: usize = 1_024;

/// What a replay works with.
pub(in super::super) struct Replay<'a> {
    pub with: With<'a>,
    pub threads: usize,
    /// Hears how far it has come.
    pub tell: &'a dyn Fn(RebuildProgress),
}

/// Some visits, and what ends them.
struct Chunk {
    visits: Vec<Replayed>,
    /// The run is over, by itself or cut off.
    end: Option<Step>,
}

impl Committer<'_> {
    /// Records the visits of one run. Returns the step that ended it.
    pub(in super::super) fn replay(
        &mut self,
        source: &mut Source,
        replay: &Replay<'_>,
        progress: &mut Progress,
    ) -> Result<Step, Error> {
        loop {
            let turn = self.store.turn();
            let mut batch = dedup::begin(self.store, &self.index, &self.settings.dedup)?;
            let end = self.replay_batch(&mut batch, source, replay, progress)?;
            self.boundary(&mut batch)?;
            progress.note(source.counts());
            self.frontier.flush(&mut batch)?;
            progress.write(&mut batch)?;
            tracing::trace!("committing");
            batch.commit()?;
            drop(turn);
            tracing::trace!("committed");
            if let Some(step) = end {
                return Ok(step);
            }
        }
    }

    /// Records visits until there are enough for a commit. While those of a chunk are recorded, the
    /// next ones are fingerprinted, if what they yield depends on nothing that is recorded. Nothing
    /// is read ahead of a commit, which says how far the files were read.
    fn replay_batch(
        &mut self,
        batch: &mut Batch,
        source: &mut Source,
        replay: &Replay<'_>,
        progress: &mut Progress,
    ) -> Result<Option<Step>, Error> {
        let Replay { with, threads, .. } = *replay;
        let mut chunk = read_chunk(batch, source, progress)?;
        let (mut visits, mut yields) = (0, None);
        loop {
            visits += chunk.visits.len();
            let made = match yields.take() {
                Some(yields) => yields,
                None => self.fingerprint_here(batch, &mut chunk.visits, replay)?,
            };
            let is_last = chunk.end.is_some() || visits >= COMMIT_VISITS;
            let mut next = if is_last { None } else { Some(read_chunk(batch, source, progress)?) };
            let ahead = next.as_mut().filter(|next| next.is_independent());
            yields = thread::scope(|scope| {
                let ahead = ahead.map(|next| {
                    scope.spawn(move || fingerprint_all(&mut next.visits, with, threads))
                });
                self.record_all(batch, chunk.visits, made, progress)?;
                let yields = ahead.map(|ahead| ahead.join().expect("a page that panics is caught"));
                Ok::<_, Error>(yields)
            })?;
            let (read, of) = source.position();
            (replay.tell)(RebuildProgress { visits: progress.visits, read, of });
            match next {
                Some(next) => chunk = next,
                None => return Ok(chunk.end),
            }
        }
    }

    /// Fingerprints visits whose texts depend on what is known of their hosts by now.
    fn fingerprint_here(
        &mut self,
        batch: &mut Batch,
        visits: &mut [Replayed],
        replay: &Replay<'_>,
    ) -> Result<Vec<Visit<Yield>>, Error> {
        for visit in &mut *visits {
            visit.host = self.frontier.host_number(batch, &visit.asked.url)?;
            if self.settings.boilerplate.learn_boilerplate {
                self.boilerplate.load(batch, visit.host)?;
            }
        }
        Ok(fingerprint_all(visits, replay.with, replay.threads))
    }

    /// Ends a run as a crawl does: matches that were less than certain get their second look.
    pub(in super::super) fn end_replay(&mut self, progress: &Progress) -> Result<(), Error> {
        loop {
            let turn = self.store.turn();
            let mut batch = dedup::begin(self.store, &self.index, &self.settings.dedup)?;
            let done = self.look_again(&mut batch)?;
            self.frontier.close(&mut batch)?;
            self.frontier.flush(&mut batch)?;
            progress.write(&mut batch)?;
            batch.commit()?;
            drop(turn);
            if done {
                return Ok(());
            }
        }
    }

    /// Notes where the look at the end of a run begins.
    pub(in super::super) fn begin_replay(&mut self) -> Result<(), Error> {
        Ok(self.look.begin(&self.store.snapshot()?)?)
    }

    /// Does what is done at a commit of the crawl.
    fn boundary(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let now = self.context.clock.now();
        // By how much has come, and never by the clock: a replay has none.
        let looked = self.placer(batch, now).look_due(false)?;
        self.tally.looked(looked.unwrap_or_default());
        Ok(self.boilerplate.flush(batch)?)
    }

    fn record_all(
        &mut self,
        batch: &mut Batch,
        visits: Vec<Replayed>,
        yields: Vec<Visit<Yield>>,
        progress: &mut Progress,
    ) -> Result<(), Error> {
        for visit in &visits {
            // Hosts are known in the order in which they come.
            let host = self.frontier.host_number(batch, &visit.asked.url)?;
            if self.settings.boilerplate.learn_boilerplate {
                self.boilerplate.load(batch, host)?;
            }
        }
        for (visit, outcome) in visits.into_iter().zip(yields) {
            if visit.commit.is_some_and(|commit| progress.is_other_commit(commit)) {
                self.boundary(batch)?;
            }
            progress.at = visit.place();
            let now = visit.told.finished;
            self.context.clock.advance(self.context.clock.now().until(now));
            let Some(lease) = self.frontier.lease_again(batch, &visit.asked, now)? else {
                progress.unused("kept_out");
                continue;
            };
            self.in_flight += 1;
            progress.visits += 1;
            let Visit { outcome, told, held, way, .. } = outcome;
            self.record(batch, Visit { lease, outcome, told, held, way })?;
            tracing::trace!("replayed");
        }
        Ok(())
    }
}

impl Chunk {
    /// Tells whether it is known of each visit what was left out of its text, so that it does not
    /// depend on the visits before.
    fn is_independent(&self) -> bool {
        self.visits.iter().all(|visit| visit.left_out.is_some())
    }
}

/// Reads the next visits, with the payloads that their records refer to.
fn read_chunk(
    batch: &mut Batch,
    source: &mut Source,
    progress: &mut Progress,
) -> Result<Chunk, Error> {
    let (mut visits, mut bytes) = (Vec::new(), 0);
    while visits.len() < CHUNK_VISITS && bytes < CHUNK_BYTES {
        match source.next()? {
            Step::Visit(mut visit) => {
                if resolve(batch, &mut visit)? {
                    bytes += visit.bytes();
                    visits.push(*visit);
                } else {
                    progress.unused("payload_missing");
                }
            }
            end => return Ok(Chunk { visits, end: Some(end) }),
        }
    }
    Ok(Chunk { visits, end: None })
}

/// Notes where the payload of a visit lies, or reads the one that it refers to. Returns whether
/// it has one.
fn resolve(batch: &mut Batch, visit: &mut Replayed) -> Result<bool, Error> {
    let Some(digest) = visit.digest else { return Ok(true) };
    let key = payload_key(&visit.folder, digest);
    let known = batch.get(PAYLOADS, key)?;
    if visit.is_revisit {
        let Some(known) = known else { return Ok(false) };
        return Ok(visit.fill(&known));
    }
    if known.is_none_or(|known| known.file.is_empty()) {
        let url = visit.asked.url.as_str().to_owned();
        let (file, offset) = (visit.file.clone(), visit.offset);
        let here = StoredPayload { url, date: visit.date, file, offset };
        batch.put(PAYLOADS, key, &here)?;
    }
    Ok(true)
}

/// Fingerprints visits on all cores, each as the crawl did it.
fn fingerprint_all(visits: &mut [Replayed], with: With<'_>, threads: usize) -> Vec<Visit<Yield>> {
    let work: Vec<Mutex<Slot<'_>>> =
        visits.iter_mut().map(|visit| Mutex::new(Slot { visit, read: None })).collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads.min(work.len()) {
            scope.spawn(|| {
                while let Some(slot) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                    slot.read = Some(fingerprint_one(slot.visit, with));
                }
            });
        }
    });
    let read =
        work.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    read.map(|slot| slot.read.expect("each slot has had its turn")).collect()
}

/// A visit, and what it has yielded.
struct Slot<'a> {
    visit: &'a mut Replayed,
    read: Option<Visit<Yield>>,
}

fn fingerprint_one(replayed: &mut Replayed, with: With<'_>) -> Visit<Yield> {
    let lease = replayed.provisional_lease();
    let outcome = replayed.answer.take().unwrap_or_else(replayed_panic);
    let told = replayed.told.clone();
    let (held, way) = (HeldMemory::new(None), Way::default());
    let visit = Visit { lease, outcome, told, held, way };
    let known = replayed
        .left_out
        .take()
        .map(|blocks| KnownBlocks::of_host(replayed.host, blocks.into_iter().collect()));
    let with = With { known: known.as_ref().unwrap_or(with.known), ..with };
    let mut visit = fingerprinted(visit, with);
    // The pages of a chunk are bounded by themselves, and nobody may wait for one behind.
    visit.held = HeldMemory::new(None);
    visit
}

/// Each visit has its answer until it is fingerprinted.
fn replayed_panic() -> VisitAnswer {
    VisitAnswer::Response(Err(crate::web::fetch::Failure::Panicked))
}
