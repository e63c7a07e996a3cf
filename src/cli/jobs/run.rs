//! `crawl jobs run`: what is due is run, until somebody asks for an end.

use std::process::exit;
use std::sync::Arc;
use std::thread;

use crate::base::clock::{Clock, Timestamp};
use crate::base::units::Time;
use crate::crawl::Context;
use crate::crawl::jobs::{Event, History, Job, JobWork, JobsFile, Outcome, Run, Runner, Trigger};
use anyhow::Result;

use super::super::args::JobsRunArgs;
use super::super::exit::{Exit, Usage};
use super::super::screen::{bytes, number};
use super::super::signals::Asked;
use super::work::House;
use super::{find, read_checked, work};

/// What is printed.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Screen {
    /// JSON lines.
    pub json: bool,
    /// Nothing.
    pub quiet: bool,
}

/// `crawl jobs run`.
pub(super) fn run(args: &JobsRunArgs, screen: Screen) -> Result<Exit> {
    let jobs = read_checked(&args.jobs.jobs)?;
    if let Some(name) = &args.once {
        return once(find(&jobs, name)?, &jobs, screen);
    }
    let until = args.until.as_deref().map(moment).transpose()?;
    let runner = open(&jobs, until, Arc::default(), screen)?;
    let handle = runner.handle();
    listen(move || handle.quit())?;
    Ok(if runner.run()? { Exit::Interrupted } else { Exit::Done })
}

/// Opens the loop with what all runs share.
pub(in crate::cli) fn open(
    jobs: &JobsFile,
    until: Option<Timestamp>,
    house: Arc<House>,
    screen: Screen,
) -> Result<Runner> {
    let work: Arc<JobWork> =
        Arc::new(move |job: &Job, run, context: &Context| work::work(job, run, context, &house));
    let told = Box::new(move |event: Event<'_>| match event {
        Event::Started(job, run) => screen.started(job, run),
        Event::Ended(job, run) => screen.ended(job, run),
    });
    Ok(Runner::open(jobs, Clock::System, until, work, told)?)
}

/// Reads a moment, or a time from now.
fn moment(text: &str) -> Result<Timestamp> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(Timestamp(time.as_millisecond()));
    }
    let time = text.parse().map(Time::duration);
    let time = time.map_err(|why| Usage(format!("--until: {why}, nor a moment in RFC 3339")))?;
    Ok(Clock::System.now().after(time))
}

/// `crawl jobs run --once NAME`.
fn once(job: &Job, jobs: &JobsFile, screen: Screen) -> Result<Exit> {
    let history = History::new(&jobs.settings.history, jobs.settings.history_max);
    let context = Context::default();
    let stop = context.stop.clone();
    listen(move || {
        let _times = stop.ask();
    })?;
    let now = context.clock.now();
    let Some(lock) = history.lock(&job.name)? else {
        let reason = "another process runs the job";
        let row = Run::none(now, 1, Outcome::Refused, reason, now);
        history.add(&job.name, None, std::slice::from_ref(&row))?;
        screen.ended(job, &row);
        return Ok(Exit::Failed);
    };
    history.note_cut(&job.name, &lock)?;
    let run = Run::begin(now, Trigger::Hand, now);
    let numbers = history.add(&job.name, None, std::slice::from_ref(&run))?;
    let number = numbers.first().copied().unwrap_or_default();
    screen.started(job, &run);
    let run = work::work(job, run, &context, &House::default());
    history.replace(&job.name, number, &run)?;
    screen.ended(job, &run);
    Ok(match run.outcome {
        Outcome::Done => Exit::Done,
        Outcome::SeedsFailed => Exit::SeedsFailed,
        Outcome::Stopped => Exit::Interrupted,
        _ => Exit::Failed,
    })
}

/// Asks to stop at Ctrl-C and SIGTERM: first to let requests end, then to commit at once, then
/// without waiting.
fn listen(quit: impl Fn() + Send + 'static) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut asked = runtime.block_on(async { Asked::new() })?;
    thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        runtime.block_on(async {
            for times in 1_u64.. {
                if !asked.next().await {
                    return;
                }
                if times > 2 {
                    exit(Exit::Interrupted as i32);
                }
                quit();
            }
        });
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
