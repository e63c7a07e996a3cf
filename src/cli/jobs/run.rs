//! `crawl jobs run`: the loop that waits, starts runs and stops them.

use std::collections::BTreeMap;
use std::process::exit;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use uniqcrawl::clock::{Clock, Timestamp, duration};
use uniqcrawl::crawl::Context;
use uniqcrawl::jobs::{Begun, History, Job, Jobs, Outcome, Run, Scheduler, Start, Trigger};

use super::super::args::JobsRunArgs;
use super::super::exit::{Exit, Usage};
use super::super::screen::{bytes, number};
use super::super::signals::Asked;
use super::{find, read_checked, work};

/// Longest wait: the clock of the machine may be set, or stand still while it sleeps.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// What is printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    /// JSON lines.
    pub json: bool,
    /// Nothing.
    pub quiet: bool,
}

/// What wakes the loop.
enum News {
    /// A run has ended.
    Ended(Box<(Start, Run)>),
    /// Somebody asks for an end.
    Quit,
}

/// `crawl jobs run`.
pub(super) fn run(args: &JobsRunArgs, screen: Screen) -> Result<Exit> {
    let jobs = read_checked(&args.jobs.jobs)?;
    let (tell, news) = channel();
    listen(tell.clone())?;
    if let Some(name) = &args.once {
        return once(find(&jobs, name)?, &jobs, screen, (tell, &news));
    }
    let until = args.until.as_deref().map(moment).transpose()?;
    Loop::open(&jobs, until, screen, tell)?.run(&news)
}

/// Reads a moment, or a time from now.
fn moment(text: &str) -> Result<Timestamp> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(Timestamp(time.as_millisecond()));
    }
    let time = duration(text);
    let time = time.map_err(|why| Usage(format!("--until: {why}, nor a moment in RFC 3339")))?;
    Ok(Clock::System.now().after(time))
}

/// `crawl jobs run --once NAME`.
fn once(
    job: &Job,
    jobs: &Jobs,
    screen: Screen,
    (tell, news): (Sender<News>, &Receiver<News>),
) -> Result<Exit> {
    let history = History::new(&jobs.settings.history, jobs.settings.history_max);
    let context = Context::default();
    let now = context.clock.now();
    let Some(lock) = history.lock(&job.name)? else {
        let reason = "another process runs the job";
        let row = Run::none((now, 1), Outcome::Refused, reason, now);
        history.add(&job.name, None, std::slice::from_ref(&row))?;
        screen.ended(job, &row);
        return Ok(Exit::Failed);
    };
    history.note_cut(&job.name, &lock)?;
    let run = Run::begin(now, Trigger::Hand, now);
    let numbers = history.add(&job.name, None, std::slice::from_ref(&run))?;
    let number = numbers.first().copied().unwrap_or_default();
    screen.started(job, &run);
    spawn(job, Start { job: 0, number, run, lock }, context.clone(), tell)?;
    loop {
        match news.recv()? {
            News::Quit => quit(std::iter::once(&context)),
            News::Ended(ended) => {
                let (start, run) = *ended;
                history.replace(&job.name, start.number, &run)?;
                screen.ended(job, &run);
                return Ok(match run.outcome {
                    Outcome::Done => Exit::Done,
                    Outcome::SeedsFailed => Exit::SeedsFailed,
                    Outcome::Stopped => Exit::Interrupted,
                    _ => Exit::Failed,
                });
            }
        }
    }
}

/// The scheduler with the runs that are under way.
struct Loop<'a> {
    jobs: &'a Jobs,
    scheduler: Scheduler,
    contexts: BTreeMap<usize, Context>,
    until: Option<Timestamp>,
    quitting: bool,
    screen: Screen,
    tell: Sender<News>,
}

impl<'a> Loop<'a> {
    fn open(
        jobs: &'a Jobs,
        until: Option<Timestamp>,
        screen: Screen,
        tell: Sender<News>,
    ) -> Result<Self> {
        let history = History::new(&jobs.settings.history, jobs.settings.history_max);
        let now = Clock::System.now();
        let (scheduler, rows) = Scheduler::open(&jobs.jobs, jobs.settings.at_once, history, now)?;
        for (job, row) in rows {
            screen.ended(&jobs.jobs[job], &row);
        }
        let contexts = BTreeMap::new();
        Ok(Self { jobs, scheduler, contexts, until, quitting: false, screen, tell })
    }

    fn run(mut self, news: &Receiver<News>) -> Result<Exit> {
        loop {
            let now = Clock::System.now();
            if !self.quitting {
                self.begin(now)?;
            }
            let over = self.until.is_some_and(|until| now >= until) && !self.scheduler.waits();
            if self.scheduler.running() == 0 && (over || self.quitting) {
                return Ok(if self.quitting { Exit::Interrupted } else { Exit::Done });
            }
            match news.recv_timeout(self.wait(now)) {
                Ok(News::Quit) => {
                    self.quitting = true;
                    quit(self.contexts.values());
                }
                Ok(News::Ended(ended)) => {
                    let (start, run) = *ended;
                    self.contexts.remove(&start.job);
                    self.screen.ended(&self.jobs.jobs[start.job], &run);
                    self.scheduler.ended(start, &run)?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Failed),
            }
        }
    }

    /// Starts what is due.
    fn begin(&mut self, now: Timestamp) -> Result<()> {
        let horizon = self.until.map_or(now, |until| now.min(until));
        for (job, row) in self.scheduler.look(horizon)? {
            self.screen.ended(&self.jobs.jobs[job], &row);
        }
        while let Some(start) = self.scheduler.start(now)? {
            match start {
                Begun::Refused(job, row) => self.screen.ended(&self.jobs.jobs[job], &row),
                Begun::Run(start) => {
                    let (number, job) = (start.job, &self.jobs.jobs[start.job]);
                    let context = Context::default();
                    self.screen.started(job, &start.run);
                    self.contexts.insert(number, context.clone());
                    spawn(job, start, context, self.tell.clone())?;
                }
            }
        }
        Ok(())
    }

    fn wait(&self, now: Timestamp) -> Duration {
        let next = self.scheduler.next_due(now).into_iter().chain(self.until);
        let next = next.filter(|moment| *moment > now).min();
        next.map_or(WAIT_MAX, |moment| now.until(moment)).min(WAIT_MAX)
    }
}

/// Works in a thread of its own, and tells the end.
fn spawn(job: &Job, start: Start, context: Context, tell: Sender<News>) -> Result<()> {
    let job = job.clone();
    thread::Builder::new().name(format!("job-{}", job.name)).spawn(move || {
        let run = work::work(&job, start.run.clone(), &context);
        // Nobody listens only when the program ends anyway.
        drop(tell.send(News::Ended(Box::new((start, run)))));
    })?;
    Ok(())
}

/// Asks runs to stop: first to let requests end, then to commit at once, then without waiting.
fn quit<'a>(contexts: impl Iterator<Item = &'a Context>) {
    for context in contexts {
        if context.stop.ask() > 2 {
            exit(Exit::Interrupted as i32);
        }
    }
}

/// Turns Ctrl-C and SIGTERM into news.
fn listen(tell: Sender<News>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut asked = runtime.block_on(async { Asked::new() })?;
    thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        runtime.block_on(async { while asked.next().await && tell.send(News::Quit).is_ok() {} });
    })?;
    Ok(())
}

impl Screen {
    fn started(self, job: &Job, run: &Run) {
        if !self.json && !self.quiet {
            println!("{} {}: started, due {}", run.started, job.name, run.planned);
        }
    }

    fn ended(self, job: &Job, run: &Run) {
        if self.json {
            println!("{}", work::summary(job, run));
        } else if !self.quiet {
            let at = run.ended.unwrap_or(run.started);
            println!("{at} {}: {}", job.name, in_words(run));
            for (name, text) in &run.after {
                println!("{at} {}: {name}: {text}", job.name);
            }
        }
    }
}

/// The outcome of a run with its counts and its reason.
pub(super) fn in_words(run: &Run) -> String {
    if run.outcome.is_no_run() {
        let moments =
            if run.moments > 1 { format!(" {} moments", run.moments) } else { String::new() };
        return format!("{}{moments}, due {} ({})", run.outcome, run.planned, run.reason);
    }
    let counts = &run.counts;
    format!(
        "{}, {} pages, {} new, {} duplicates, {} ({})",
        run.outcome,
        number(counts.pages),
        number(counts.new),
        number(counts.duplicates),
        bytes(counts.bytes),
        run.reason
    )
}
