//! The loop that waits for moments, starts runs and stops them; and the handle where it is asked.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::base::clock::{Clock, Timestamp};
use crate::crawl::Context;

use super::history::History;
use super::row::Run;
use super::scheduler::{BegunRun, Scheduler, Stage, Start};
use super::{Error, Job, JobsFile};

/// Longest wait: the clock of the machine may be set, or stand still while it sleeps.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// What does the work of a run, in a thread of its own. Whatever goes wrong is in the row that it
/// returns.
pub type JobWork = dyn Fn(&Job, Run, &Context) -> Run + Send + Sync;

/// What happens to jobs.
#[derive(Debug)]
pub enum Event<'a> {
    /// A run begins.
    Started(&'a Job, &'a Run),
    /// A run has ended, or there was none for a moment.
    Ended(&'a Job, &'a Run),
}

/// A job as it stands.
#[derive(Debug, Clone)]
pub struct JobRow {
    /// Its name.
    pub name: String,
    /// Its schedule in words.
    pub schedule: String,
    /// Its next moment.
    pub next: Option<Timestamp>,
    /// Where it stands.
    pub stage: Stage,
    /// Its newest run.
    pub last: Option<Run>,
}

/// Why a wish was not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such job.
    Unknown,
    /// It is not in the state for it; or why it could not run.
    Conflict(String),
    /// The scheduler has ended.
    Ended,
}

/// What wakes the loop.
enum News {
    /// A run has ended.
    Ended(Box<(Start, Run)>),
    /// Somebody asks for an end.
    Quit,
    /// Somebody asks for a run of this job.
    Start(usize, oneshot::Sender<Result<JobRow, Refusal>>),
    /// Somebody asks for the end of the run of this job.
    Stop(usize, oneshot::Sender<Result<JobRow, Refusal>>),
}

/// Where the loop is asked, from any thread. Cheap to clone.
#[derive(Clone)]
pub struct JobsHandle {
    tell: Sender<News>,
    rows: Arc<Mutex<Vec<JobRow>>>,
    history: History,
}

impl JobsHandle {
    fn lock(&self) -> MutexGuard<'_, Vec<JobRow>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns every job, in the order of the file.
    #[must_use]
    pub fn rows(&self) -> Vec<JobRow> {
        self.lock().clone()
    }

    /// Returns the newest runs of a job, the newest first; none if there is no such job. Reads the
    /// history.
    pub fn runs(&self, name: &str, limit: usize) -> Result<Option<Vec<Run>>, Error> {
        if self.number(name).is_err() {
            return Ok(None);
        }
        let rows = self.history.shown(name, limit)?;
        Ok(Some(rows.into_iter().map(|(_, run)| run).collect()))
    }

    /// Lets a job run now, or as soon as it may. Returns the job as it stands then.
    pub async fn start(&self, name: &str) -> Result<JobRow, Refusal> {
        let (reply, told) = oneshot::channel();
        self.say(News::Start(self.number(name)?, reply))?;
        told.await.map_err(|_| Refusal::Ended)?
    }

    /// Asks the run of a job to stop: requests under way may end. Returns the job as it stands.
    pub async fn stop(&self, name: &str) -> Result<JobRow, Refusal> {
        let (reply, told) = oneshot::channel();
        self.say(News::Stop(self.number(name)?, reply))?;
        told.await.map_err(|_| Refusal::Ended)?
    }

    /// Asks for the end of the loop: nothing begins any more, and runs are asked to stop. Asked
    /// again, they do not wait for their requests.
    pub fn quit(&self) {
        // Who has ended need not be told.
        drop(self.tell.send(News::Quit));
    }

    fn say(&self, news: News) -> Result<(), Refusal> {
        self.tell.send(news).map_err(|_| Refusal::Ended)
    }

    fn number(&self, name: &str) -> Result<usize, Refusal> {
        self.lock().iter().position(|row| row.name == name).ok_or(Refusal::Unknown)
    }
}

/// The scheduler with the runs that are under way.
pub struct Runner {
    jobs: Vec<Job>,
    scheduler: Scheduler,
    contexts: BTreeMap<usize, Context>,
    clock: Clock,
    until: Option<Timestamp>,
    quitting: bool,
    work: Arc<JobWork>,
    told: Box<dyn Fn(Event<'_>) + Send>,
    news: Receiver<News>,
    handle: JobsHandle,
}

impl Runner {
    /// Takes up the work where the last scheduler left it. Nothing begins that is due later than
    /// `until`; without it, the loop goes on until it is asked to end. `told` hears what happens.
    ///
    /// # Errors
    ///
    /// If the history cannot be used, or another scheduler uses it.
    pub fn open(
        jobs: &JobsFile,
        clock: Clock,
        until: Option<Timestamp>,
        work: Arc<JobWork>,
        told: Box<dyn Fn(Event<'_>) + Send>,
    ) -> Result<Self, Error> {
        let settings = &jobs.settings;
        let history = History::new(&settings.history, settings.history_max);
        let (scheduler, missed) =
            Scheduler::open(&jobs.jobs, settings.at_once, history.clone(), clock.now())?;
        let mut rows = Vec::new();
        for (number, job) in jobs.jobs.iter().enumerate() {
            let last = history.shown(&job.name, 1)?.pop().map(|(_, run)| run);
            let (stage, next) = (scheduler.state(number), scheduler.next_of(number));
            let (name, schedule) = (job.name.clone(), job.rule.schedule.to_string());
            rows.push(JobRow { name, schedule, next, stage, last });
        }
        for (job, row) in &missed {
            told(Event::Ended(&jobs.jobs[*job], row));
        }
        let (tell, news) = channel();
        let handle = JobsHandle { tell, rows: Arc::new(Mutex::new(rows)), history };
        let (jobs, contexts) = (jobs.jobs.clone(), BTreeMap::new());
        let quitting = false;
        Ok(Self { jobs, scheduler, contexts, clock, until, quitting, work, told, news, handle })
    }

    /// Returns where the loop is asked.
    #[must_use]
    pub fn handle(&self) -> JobsHandle {
        self.handle.clone()
    }

    /// Works until nothing is left to do, or somebody asks for an end; returns whether that was so.
    pub fn run(mut self) -> Result<bool, Error> {
        loop {
            let now = self.clock.now();
            if !self.quitting {
                self.begin(now)?;
            }
            self.show();
            let over = self.until.is_some_and(|until| now >= until) && !self.scheduler.waits();
            if self.scheduler.running() == 0 && (over || self.quitting) {
                return Ok(self.quitting);
            }
            match self.news.recv_timeout(self.wait(now)) {
                Ok(News::Quit) => {
                    self.quitting = true;
                    for context in self.contexts.values() {
                        let _times = context.stop.ask();
                    }
                }
                Ok(News::Ended(ended)) => {
                    let (start, run) = *ended;
                    let job = start.job;
                    self.contexts.remove(&job);
                    self.ended(job, &run);
                    self.scheduler.ended(start, &run)?;
                }
                Ok(News::Start(job, reply)) => {
                    let row = self.start(job)?;
                    // Who asked may be gone; the run goes on all the same.
                    drop(reply.send(row));
                }
                Ok(News::Stop(job, reply)) => drop(reply.send(self.stop(job))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the handle is kept"),
            }
        }
    }

    /// Starts what is due.
    fn begin(&mut self, now: Timestamp) -> Result<(), Error> {
        self.scheduler.follow_clock(now);
        let horizon = self.until.map_or(now, |until| now.min(until));
        for (job, row) in self.scheduler.look(horizon)? {
            self.ended(job, &row);
        }
        while let Some(start) = self.scheduler.start(now)? {
            match start {
                BegunRun::Refused(job, row) => self.ended(job, &row),
                BegunRun::Run(start) => {
                    let number = start.job;
                    let context = Context { clock: self.clock.clone(), ..Context::default() };
                    (self.told)(Event::Started(&self.jobs[number], &start.run));
                    self.handle.lock()[number].last = Some(start.run.clone());
                    self.contexts.insert(number, context.clone());
                    self.spawn(start, context)?;
                }
            }
        }
        Ok(())
    }

    /// Works in a thread of its own, and tells the end.
    fn spawn(&self, start: Start, context: Context) -> Result<(), Error> {
        let (job, work) = (self.jobs[start.job].clone(), self.work.clone());
        let tell = self.handle.tell.clone();
        let thread = thread::Builder::new().name(format!("job-{}", job.name));
        let spawned = thread.spawn(move || {
            let run = work(&job, start.run.clone(), &context);
            // What the work holds, such as an open store, is given back before the end is told.
            drop((work, context));
            // Nobody listens only when the program ends anyway.
            drop(tell.send(News::Ended(Box::new((start, run)))));
        });
        spawned.map(drop).map_err(Error::Thread)
    }

    fn start(&mut self, job: usize) -> Result<Result<JobRow, Refusal>, Error> {
        let now = self.clock.now();
        if self.quitting {
            return Ok(Err(Refusal::Ended));
        }
        if !self.scheduler.ask(job, now) {
            let why = "a run of the job is under way";
            return Ok(Err(Refusal::Conflict(why.to_owned())));
        }
        self.begin(now)?;
        self.show();
        let row = self.row(job);
        if row.stage != Stage::Idle {
            return Ok(Ok(row));
        }
        Ok(Err(Refusal::Conflict(row.last.map_or_else(String::new, |run| run.reason))))
    }

    fn stop(&self, job: usize) -> Result<JobRow, Refusal> {
        let Some(context) = self.contexts.get(&job) else {
            return Err(Refusal::Conflict("no run of the job is under way".to_owned()));
        };
        // To ask twice means not to wait for requests under way.
        if context.stop.asked() == 0 {
            let _times = context.stop.ask();
        }
        Ok(self.row(job))
    }

    fn ended(&self, job: usize, run: &Run) {
        (self.told)(Event::Ended(&self.jobs[job], run));
        self.handle.lock()[job].last = Some(run.clone());
    }

    fn row(&self, job: usize) -> JobRow {
        self.handle.lock()[job].clone()
    }

    /// Brings the rows at the handle up to date.
    fn show(&self) {
        for (number, row) in self.handle.lock().iter_mut().enumerate() {
            row.stage = self.scheduler.state(number);
            row.next = self.scheduler.next_of(number);
        }
    }

    fn wait(&self, now: Timestamp) -> Duration {
        let next = self.scheduler.next_due(now).into_iter().chain(self.until);
        let next = next.filter(|moment| *moment > now).min();
        next.map_or(WAIT_MAX, |moment| now.until(moment)).min(WAIT_MAX)
    }
}
