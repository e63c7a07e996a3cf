//! `crawl jobs list`, `next` and `history`.

use crate::base::clock::{Clock, Timestamp};
use crate::crawl::jobs::{History, Job, JobProgress, JobsFile, Schedule};
use anyhow::Result;
use serde_json::json;

use super::super::args::{JobsHistoryArgs, JobsNextArgs};
use super::super::exit::Exit;
use super::super::screen;
use super::run::in_words;
use super::{find, work};

/// `crawl jobs list`.
pub(super) fn list(jobs: &JobsFile, json: bool) -> Result<Exit> {
    let (history, now) = (history_of(jobs), Clock::System.now());
    let mut all = Vec::new();
    for job in &jobs.jobs {
        let last = history.shown(&job.name, 1)?.pop().map(|(_, run)| run);
        let next = coming(job, &history, now)?.next();
        if json {
            all.push(json!({
                "job": job.name,
                "schedule": job.rule.schedule.to_string(),
                "last": last.map(|run| work::summary(job, &run)),
                "next": next.map(|moment| moment.to_string()),
            }));
            continue;
        }
        println!("{}", job.name);
        let last = last
            .map_or("never ran".to_owned(), |run| format!("{}  {}", run.started, in_words(&run)));
        screen::facts([
            ("schedule", job.rule.schedule.to_string()),
            ("last run", last),
            ("next run", next.map_or("never".to_owned(), |next| due(job, next, now))),
        ])?;
    }
    if json { screen::json(&all) } else { Ok(Exit::Done) }
}

fn due(job: &Job, moment: Timestamp, now: Timestamp) -> String {
    let shown = job.rule.schedule.show(moment);
    if moment <= now { format!("{shown}  (due: nothing runs it yet)") } else { shown }
}

/// `crawl jobs next`.
pub(super) fn next(args: &JobsNextArgs, jobs: &JobsFile, json: bool) -> Result<Exit> {
    let (history, now) = (history_of(jobs), Clock::System.now());
    let one = args.name.as_deref().map(|name| find(jobs, name)).transpose()?;
    let mut moments: Vec<(Timestamp, &Job)> = Vec::new();
    for job in jobs.jobs.iter().filter(|job| one.is_none_or(|one| one.name == job.name)) {
        moments.extend(coming(job, &history, now)?.take(args.n).map(|moment| (moment, job)));
    }
    moments.sort_by_key(|(moment, _)| *moment);
    moments.truncate(args.n);
    if json {
        let all: Vec<_> = moments
            .iter()
            .map(|(moment, job)| {
                let local = job.rule.schedule.show(*moment);
                json!({"job": job.name, "moment": moment.to_string(), "local": local})
            })
            .collect();
        return screen::json(&all);
    }
    for (moment, job) in moments {
        println!("{}  {}", job.rule.schedule.show(moment), job.name);
    }
    Ok(Exit::Done)
}

/// The moments of a job from its last one on; an interval that has none begins at once.
fn coming<'a>(
    job: &'a Job,
    history: &History,
    now: Timestamp,
) -> Result<impl Iterator<Item = Timestamp> + 'a> {
    let known = history.progress(&job.name)?;
    let fresh = known.is_none();
    let progress = known.unwrap_or_else(|| JobProgress::new(now));
    let mut seen = progress.seen;
    // Long missed moments of a cron line are no news; the last one is.
    if let Some(last) = job.rule.schedule.last_until(now, progress.anchor) {
        let interval = matches!(job.rule.schedule, Schedule::Every(_));
        let skipped = if fresh && !interval { last } else { Timestamp(last.0 - 1) };
        seen = seen.max(skipped);
    }
    Ok(std::iter::from_fn(move || {
        let next = job.rule.schedule.next_after(seen, progress.anchor)?;
        seen = next;
        Some(next)
    }))
}

/// `crawl jobs history NAME`.
pub(super) fn history(args: &JobsHistoryArgs, jobs: &JobsFile, json: bool) -> Result<Exit> {
    let job = find(jobs, &args.name)?;
    let rows = history_of(jobs).shown(&job.name, args.n)?;
    if json {
        let all: Vec<_> = rows.iter().map(|(_, run)| work::summary(job, run)).collect();
        return screen::json(&all);
    }
    for (_, run) in rows {
        let took = run.ended.map(|ended| run.started.until(ended).as_secs_f64());
        let took = took.map_or("       -".to_owned(), |seconds| format!("{seconds:7.1}s"));
        println!("{}  {took}  {}", run.started, in_words(&run));
        for (name, text) in &run.after {
            println!("    {name}: {text}");
        }
    }
    Ok(Exit::Done)
}

fn history_of(jobs: &JobsFile) -> History {
    History::new(&jobs.settings.history, jobs.settings.history_max)
}
