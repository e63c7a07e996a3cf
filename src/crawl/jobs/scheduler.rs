//! The scheduler: what is due now, what waits, what runs. It decides and records; whoever asks it
//! waits and works.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::base::clock::Timestamp;

use super::history::{History, Lock};
use super::plan::{CatchUp, CronRule, JobProgress, Planned};
use super::row::{Outcome, Run, Trigger};
use super::{Error, Job};

/// Runs for one moment that may be cut off; then the job waits for its next moment.
const TRIES_MAX: usize = 3;

/// A run that begins.
#[derive(Debug)]
pub struct Start {
    /// Number of the job, in the order of the file.
    pub job: usize,
    /// Number of its row in the history.
    pub number: u64,
    /// Its row.
    pub run: Run,
    /// Keeps others from running the job; to be held until the end has been told.
    pub lock: Lock,
}

/// What became of a moment that waited.
#[derive(Debug)]
pub enum BegunRun {
    /// Its run begins.
    Run(Start),
    /// Another process runs the job (its number): the row of the refusal.
    Refused(usize, Run),
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It waits for its next moment.
    Idle,
    /// Its moment has come: it waits for its turn.
    Waiting,
    /// A run is under way.
    Running,
}

impl Stage {
    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Waiting => "waiting",
            Self::Running => "running",
        }
    }
}

/// A job as the scheduler sees it.
#[derive(Debug)]
struct Seat {
    name: String,
    store: PathBuf,
    rule: CronRule,
    progress: JobProgress,
    /// Its next moment, which takes long to find; none if there is none.
    next: Option<Timestamp>,
}

/// Decides what runs when.
#[derive(Debug)]
pub struct Scheduler {
    seats: Vec<Seat>,
    at_once: usize,
    history: History,
    /// Jobs under way.
    running: BTreeMap<usize, Timestamp>,
    _lock: Lock,
}

impl Scheduler {
    /// Takes up the work where the last scheduler left it. Returns the rows of moments that were
    /// missed meanwhile, too.
    ///
    /// # Errors
    ///
    /// If the history cannot be used, or another scheduler uses it.
    pub fn open(
        jobs: &[Job],
        at_once: usize,
        history: History,
        now: Timestamp,
    ) -> Result<(Self, Vec<(usize, Run)>), Error> {
        let lock = history.lock_all()?;
        let (mut seats, mut told) = (Vec::new(), Vec::new());
        for (number, job) in jobs.iter().enumerate() {
            let (rule, name) = (job.rule.clone(), job.name.clone());
            let known = history.progress(&name)?;
            let mut progress = known.unwrap_or_else(|| JobProgress::new(now));
            // If it is not free, a run by hand goes on, and nothing is cut off.
            let cut = match history.lock(&name)? {
                Some(lock) => history.note_cut(&name, &lock)?,
                None => None,
            };
            let cut = cut.filter(|(run, tries)| run.trigger != Trigger::Hand && *tries < TRIES_MAX);
            let rows = progress.restore(&rule, cut.map(|(run, _)| run.planned), now);
            history.add(&name, Some(&progress), &rows)?;
            told.extend(rows.into_iter().map(|row| (number, row)));
            let next = rule.schedule.next_after(progress.seen, progress.anchor);
            seats.push(Seat { name, store: job.store.clone(), rule, progress, next });
        }
        let running = BTreeMap::new();
        Ok((Self { seats, at_once: at_once.max(1), history, running, _lock: lock }, told))
    }

    /// Takes note of the time, which may be an earlier one than before.
    pub fn follow_clock(&mut self, now: Timestamp) {
        for seat in &mut self.seats {
            if seat.progress.follow_clock(&seat.rule, now) {
                tracing::warn!(job = %seat.name, %now, "the clock was set back: it starts anew");
                seat.next = seat.rule.schedule.next_after(seat.progress.seen, seat.progress.anchor);
            }
        }
    }

    /// Deals with everything that is due at `now`. Returns rows for moments that get no run.
    pub fn look(&mut self, now: Timestamp) -> Result<Vec<(usize, Run)>, Error> {
        let mut told = Vec::new();
        for (number, seat) in self.seats.iter_mut().enumerate() {
            if seat.next.is_none_or(|next| next > now) {
                continue;
            }
            let busy = self.running.contains_key(&number);
            let rows = seat.progress.look(&seat.rule, busy, now);
            seat.next = seat.rule.schedule.next_after(seat.progress.seen, seat.progress.anchor);
            // A moment that waits is written when its run begins; before, it would be found anew.
            if !rows.is_empty() {
                self.history.add(&seat.name, Some(&seat.progress), &rows)?;
            }
            told.extend(rows.into_iter().map(|row| (number, row)));
        }
        Ok(told)
    }

    /// Lets a job run as soon as it may, because a person asks for it. Returns false if it runs
    /// already; a job that waits goes on waiting.
    pub fn ask(&mut self, job: usize, now: Timestamp) -> bool {
        if self.running.contains_key(&job) {
            return false;
        }
        let pending = &mut self.seats[job].progress.pending;
        if pending.is_empty() {
            pending.push(Planned { moment: now, trigger: Trigger::Hand });
        }
        true
    }

    /// Begins the next run that waits; none if nothing waits, or nothing may begin yet: as many
    /// jobs as allowed are under way, or one that uses the same store.
    pub fn start(&mut self, now: Timestamp) -> Result<Option<BegunRun>, Error> {
        if self.running.len() >= self.at_once {
            return Ok(None);
        }
        let Some((job, planned)) = self.first_waiting() else { return Ok(None) };
        let seat = &mut self.seats[job];
        seat.progress.pending.remove(0);
        let Some(lock) = self.history.lock_soon(&seat.name)? else {
            let reason = "another process runs the job";
            let row = Run::none(planned.moment, 1, Outcome::Refused, reason, now);
            self.history.add(&seat.name, Some(&seat.progress), std::slice::from_ref(&row))?;
            return Ok(Some(BegunRun::Refused(job, row)));
        };
        let run = Run::begin(planned.moment, planned.trigger, now);
        let row = std::slice::from_ref(&run);
        let numbers = self.history.add(&seat.name, Some(&seat.progress), row)?;
        self.running.insert(job, now);
        let number = numbers.first().copied().unwrap_or_default();
        Ok(Some(BegunRun::Run(Start { job, number, run, lock })))
    }

    /// Records the end of a run.
    pub fn ended(&mut self, start: Start, run: &Run) -> Result<(), Error> {
        self.history.replace(&self.seats[start.job].name, start.number, run)?;
        self.running.remove(&start.job);
        drop(start.lock);
        Ok(())
    }

    /// Returns when something is due next; none if nothing ever is.
    #[must_use]
    pub fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        self.seats.iter().filter_map(|seat| seat.next).min().map(|moment| moment.max(now))
    }

    /// Tells where a job stands.
    #[must_use]
    pub fn state(&self, job: usize) -> Stage {
        if self.running.contains_key(&job) {
            Stage::Running
        } else if self.seats[job].progress.pending.is_empty() {
            Stage::Idle
        } else {
            Stage::Waiting
        }
    }

    /// Returns the next moment of a job; none if there is none.
    #[must_use]
    pub fn next_of(&self, job: usize) -> Option<Timestamp> {
        self.seats[job].next
    }

    /// Returns how many jobs are under way.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Tells whether a moment waits for its run.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.seats.iter().any(|seat| !seat.progress.pending.is_empty())
    }

    /// The oldest moment that waits, of a job whose store nobody here uses.
    fn first_waiting(&self) -> Option<(usize, Planned)> {
        let waiting = self.seats.iter().enumerate().filter(|(number, seat)| {
            let taken = |job: &usize| *job == *number || self.seats[*job].store == seat.store;
            !self.running.keys().any(taken)
        });
        let first =
            waiting.filter_map(|(number, seat)| Some((number, *seat.progress.pending.first()?)));
        first.min_by_key(|(_, planned)| planned.moment)
    }
}

impl CatchUp {
    /// All policies with their names in the file.
    pub(super) const ALL: [(&'static str, Self); 3] =
        [("skip", Self::Skip), ("once", Self::Once), ("all", Self::All)];
}
