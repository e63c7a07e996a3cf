//! One run of a job: crawl, export, tell.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::base::remote::Location;
use crate::base::units::Size;
use crate::config::Config;
use crate::corpus::dedup::{self, Expiry};
use crate::corpus::export::{self, ExportPlan};
use crate::corpus::index::Index;
use crate::crawl::jobs::{Expire, Job, Outcome, Run, RunCounts, Seeds};
use crate::crawl::{self, Context, Crawls, Report};
use crate::store::{self, Store};
use crate::urls::PageUrl;
use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};

use super::super::{crawl as plain, exit};
use super::notify;

/// A store that this process serves while jobs run.
pub(in crate::cli) struct Served {
    /// Its folder, by its one true name.
    pub folder: PathBuf,
    pub store: Arc<Store>,
    pub index: Arc<Mutex<Index>>,
}

impl Served {
    /// Tells whether a job crawls into it.
    pub(in crate::cli) fn is_of(&self, job: &Job) -> bool {
        job.store.canonicalize().is_ok_and(|folder| folder == self.folder)
    }
}

/// What the runs of one process share.
#[derive(Default)]
pub(in crate::cli) struct House {
    pub crawls: Crawls,
    pub served: Option<Served>,
}

/// Runs a job and returns its row. Whatever goes wrong is in the row.
pub(super) fn work(job: &Job, run: Run, context: &Context, house: &House) -> Run {
    let begun = run.clone();
    let worked = catch_unwind(AssertUnwindSafe(|| all(job, run, context, house)));
    worked.unwrap_or_else(|_| Run {
        ended: Some(context.clock.now()),
        outcome: Outcome::Failed,
        reason: "the program is wrong: see the log".to_owned(),
        ..begun
    })
}

fn all(job: &Job, mut run: Run, context: &Context, house: &House) -> Run {
    match crawl_and_export(job, &mut run, context, house) {
        Ok(()) => {}
        Err(error) if is_in_use(&error) => {
            run.outcome = Outcome::Refused;
            run.reason = format!("another process uses the store {}", job.store.display());
        }
        Err(error) => {
            run.outcome = Outcome::Failed;
            run.reason = exit::in_words(&error);
        }
    }
    run.ended = Some(context.clock.now());
    // The store is closed, unless it is served: a command may open it.
    let summary = summary(job, &run);
    if let Some(webhook) = &job.webhook {
        // Who asked for an end does not wait for a server that may come back.
        let retries = if run.outcome == Outcome::Stopped { 0 } else { webhook.retries };
        note(&mut run, "webhook", notify::post(webhook, retries, &summary));
    }
    if let Some(command) = &job.command {
        note(&mut run, "command", notify::tell(command, &summary));
    }
    run
}

fn note(run: &mut Run, name: &str, result: Result<String>) {
    let text = match result {
        Ok(text) => text,
        Err(error) => format!("failed: {}", exit::in_words(&error)),
    };
    run.after.push((name.to_owned(), text));
}

fn crawl_and_export(job: &Job, run: &mut Run, context: &Context, house: &House) -> Result<()> {
    if matches!(job.seeds, Seeds::None) && job.expire.is_none() && job.export.is_none() {
        // All that it does is its command, which may be that of a worker.
        (run.outcome, run.reason) = (Outcome::Done, "nothing to crawl".to_owned());
        return Ok(());
    }
    let config = super::config(job).map_err(|(key, why)| anyhow!("{key}: {why}"))?;
    let seeds = super::starts(job, &config.urls)?;
    let served = house.served.as_ref().filter(|served| served.is_of(job));
    let mut context = context.clone();
    let store = match served {
        Some(served) => {
            context.index = Some(served.index.clone());
            served.store.clone()
        }
        None => Arc::new(plain::open(&config, &job.store)?),
    };
    let context = &context;
    let Some(_begun) = house.crawls.begin(Some(&job.name), &job.store, context) else {
        run.outcome = Outcome::Refused;
        run.reason = format!("a crawl of the store {} is under way", job.store.display());
        return Ok(());
    };
    if matches!(job.seeds, Seeds::None) {
        (run.outcome, run.reason) = (Outcome::Done, "nothing to crawl".to_owned());
    } else {
        let (report, late) =
            crawl_in_time(&store, &settings(&config, house), &seeds, context, job.time_max)
                .inspect_err(|_| store.suspect())?;
        run.counts = counts(&report, context);
        (run.outcome, run.reason) = end(&report, &config, context, job.time_max.filter(|_| late));
    }
    if run.outcome != Outcome::Stopped
        && let Some(expire) = &job.expire
    {
        let gone = expired(&store, *expire, &config, context);
        if matches!(job.seeds, Seeds::None) {
            run.reason = gone?;
        } else {
            note(run, "expire", gone);
        }
    }
    if run.outcome != Outcome::Stopped
        && let Some(to) = &job.export
    {
        note(run, "export", exported(&store, to, &config, context));
    }
    Ok(())
}

/// Returns the settings of a crawl of a house, whose service has its memory whatever is crawled.
fn settings(config: &Config, house: &House) -> crawl::Settings {
    let settings = config.settings();
    let unserved = if house.served.is_some() { Size::default() } else { settings.unserved };
    crawl::Settings { unserved, ..settings }
}

/// Crawls for no longer than `time_max`. Returns whether the crawl was stopped for that.
fn crawl_in_time(
    store: &Store,
    settings: &crawl::Settings,
    seeds: &[PageUrl],
    context: &Context,
    time_max: Option<Duration>,
) -> Result<(crawl::Report, bool), crawl::Error> {
    let late = AtomicBool::new(false);
    let report = thread::scope(|scope| {
        let (over, ended) = channel::<()>();
        if let Some(time_max) = time_max {
            let late = &late;
            scope.spawn(move || {
                if ended.recv_timeout(time_max) == Err(RecvTimeoutError::Timeout) {
                    late.store(true, Ordering::SeqCst);
                    let _times = context.stop.ask();
                }
            });
        }
        let report = crawl::run(store, settings, seeds, context);
        drop(over);
        report
    });
    Ok((report?, late.load(Ordering::SeqCst)))
}

/// Removes what is too old, through the index of the service if it serves the store.
fn expired(store: &Store, how: Expire, config: &Config, context: &Context) -> Result<String> {
    let before = context.clock.now().before(how.older_than);
    let old = dedup::old(&store.snapshot()?, before)?;
    let Expiry { documents, of, .. } = old;
    if old.is_most() && !how.more_than_half {
        return Err(anyhow!(
            "{documents} of {of} documents had no new copy since {before}, more than half of the \
             store: they stay unless more_than_half is true"
        ));
    }
    let shared = context.index.as_ref().map(|index| (index, &config.dedup));
    let gone = dedup::expire(store, shared, before).inspect_err(|_| store.suspect())?;
    Ok(format!("{} of {of} documents had no new copy since {before} and are gone", gone.documents))
}

fn exported(
    store: &Store,
    to: &crate::crawl::jobs::Export,
    config: &Config,
    context: &Context,
) -> Result<String> {
    let now = context.clock.now();
    let usual = ExportPlan::usual(to.format, &config.export);
    let plan = ExportPlan {
        fields: to.fields.clone().unwrap_or_else(|| usual.fields.clone()),
        filter: to.filter.clone(),
        shard: to.shard,
        compression: to.compression,
        ..usual
    };
    let location = Location::parse(&to.folder.to_string_lossy())?;
    let written = export::export_to(store, &location, &plan, now)
        .with_context(|| format!("cannot write to {}", to.folder.display()))?;
    Ok(format!("{} documents in {}", written.documents, to.folder.display()))
}

fn counts(report: &Report, context: &Context) -> RunCounts {
    RunCounts {
        pages: report.pages,
        new: report.new,
        duplicates: report.duplicates_total(),
        bytes: context.live.bytes.load(Ordering::Relaxed),
        failed_seeds: report.failed_seeds.len() as u64,
        documents: report.documents,
        queued: report.queued,
    }
}

/// How the crawl ended, and why. `late` is there if its time was over.
fn end(
    report: &Report,
    config: &Config,
    context: &Context,
    late: Option<Duration>,
) -> (Outcome, String) {
    let asked = context.stop.asked();
    if asked > u8::from(late.is_some()) {
        return (Outcome::Stopped, "asked to stop".to_owned());
    }
    let pages_max = config.crawl.limits.pages_max;
    let reason = match (late, &report.next_due) {
        (Some(time), _) => format!("time_max of {time:?} is over"),
        _ if pages_max > 0 && report.pages >= pages_max => format!("limit of {pages_max} pages"),
        (None, Some(due)) if report.queued > 0 => {
            format!("{} URLs are queued, the next until {due}", report.queued)
        }
        _ => "nothing left to visit".to_owned(),
    };
    let reason = match report.why_no_pages() {
        Some(why) => format!("{reason}; {why}"),
        None => reason,
    };
    match report.failed_seeds.len() {
        0 => (Outcome::Done, reason),
        failed => (Outcome::SeedsFailed, format!("{reason}; {failed} seeds not crawled")),
    }
}

fn is_in_use(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<store::Error>());
    causes.any(|cause| matches!(cause, store::Error::InUse(_)))
}

/// A run for machines: what `--json`, webhooks and commands get.
pub(super) fn summary(job: &Job, run: &Run) -> Value {
    let seconds = run.ended.map(|ended| run.started.until(ended).as_secs_f64());
    let after: serde_json::Map<String, Value> =
        run.after.iter().map(|(name, text)| (name.clone(), Value::from(text.clone()))).collect();
    json!({
        "job": job.name,
        "planned": run.planned.to_string(),
        "trigger": run.trigger,
        "started": run.started.to_string(),
        "ended": run.ended.map(|ended| ended.to_string()),
        "seconds": seconds,
        "outcome": run.outcome,
        "reason": run.reason,
        "moments": run.moments,
        "counts": run.counts,
        "store": job.store,
        "after": after,
    })
}
