//! `crawl jobs`: crawls by a schedule.

mod notify;
mod run;
mod show;
mod work;

use std::path::Path;

use crate::config::{Config, Sourced};
use crate::crawl::jobs::{Fault, Job, JobsFile, Seeds};
use crate::urls::{Filter, Normalize, PageUrl};
use anyhow::Result;

pub(super) use run::{Screen, open};
pub(super) use work::{House, Served};

use super::args::{JobsArg, JobsCommand};
use super::exit::{Exit, Usage};
use super::seeds::{self, SeedReading};
use super::{screen, settings};

/// Runs one of the commands.
pub(super) fn run(command: JobsCommand, json: bool, quiet: bool) -> Result<Exit> {
    match command {
        JobsCommand::Run(args) => run::run(&args, run::Screen { json, quiet }),
        JobsCommand::List(arg) => show::list(&read(&arg.jobs)?, json),
        JobsCommand::Next(args) => show::next(&args, &read(&args.jobs.jobs)?, json),
        JobsCommand::History(args) => show::history(&args, &read(&args.jobs.jobs)?, json),
        JobsCommand::Check(arg) => check(&arg, json),
    }
}

/// Reads the file.
fn read(path: &Path) -> Result<JobsFile> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Usage(format!("cannot read {}: {error}", path.display())))?;
    JobsFile::parse(&text).map_err(|faults| in_words(path, &faults).into())
}

fn in_words(path: &Path, faults: &[Fault]) -> Usage {
    let lines: Vec<_> = faults.iter().map(|fault| format!("{}: {fault}", path.display())).collect();
    Usage(lines.join("\n"))
}

/// Finds a job by its name.
fn find<'a>(jobs: &'a JobsFile, name: &str) -> Result<&'a Job> {
    jobs.job(name).ok_or_else(|| {
        let names: Vec<&str> = jobs.jobs.iter().map(|job| job.name.as_str()).collect();
        Usage(format!("there is no job `{name}`; there are {}", names.join(", "))).into()
    })
}

/// Checks what the file names: settings and seeds.
fn faults(jobs: &JobsFile) -> Vec<Fault> {
    let mut faults = Vec::new();
    for job in &jobs.jobs {
        let config = config(job).unwrap_or_else(|(key, detail)| {
            faults.push(jobs.fault(job, &key, detail));
            Config::default()
        });
        if let Err(error) = starts(job, &config.urls) {
            faults.push(jobs.fault(job, "seeds", super::exit::in_words(&error)));
        }
    }
    faults.sort_by_key(|fault| fault.line);
    faults
}

/// The file, if nothing is wrong with it.
pub(super) fn read_checked(path: &Path) -> Result<JobsFile> {
    let jobs = read(path)?;
    let faults = faults(&jobs);
    if faults.is_empty() { Ok(jobs) } else { Err(in_words(path, &faults).into()) }
}

/// `crawl jobs check`.
fn check(arg: &JobsArg, json: bool) -> Result<Exit> {
    let jobs = read_checked(&arg.jobs)?;
    if json {
        let names: Vec<_> = jobs.jobs.iter().map(|job| &job.name).collect();
        return screen::json(&serde_json::json!({ "jobs": names }));
    }
    println!("{}: {} jobs, nothing is wrong", arg.jobs.display(), jobs.jobs.len());
    Ok(Exit::Done)
}

/// The settings of a job; else the key at fault and what is wrong.
pub(super) fn config(job: &Job) -> Result<Config, (String, String)> {
    let from_file = Sourced::read(job.settings_file.as_deref());
    let mut sourced = from_file.map_err(|error| ("settings_file".to_owned(), error.to_string()))?;
    let from_file = sourced.notes.len();
    sourced.overlay(&job.settings).map_err(|(key, why)| (format!("settings.{key}"), why))?;
    for note in &mut sourced.notes[from_file..] {
        *note = format!("job {}: settings: {note}", job.name);
    }
    settings::tell(&sourced);
    let config = sourced.config;
    config.dedup.check().map_err(|error| ("settings.dedup".to_owned(), error.to_string()))?;
    Filter::new(&config.filter)
        .map_err(|error| ("settings.filter".to_owned(), error.to_string()))?;
    Ok(config)
}

/// The seeds of a job.
fn starts(job: &Job, rules: &Normalize) -> Result<Vec<PageUrl>> {
    match &job.seeds {
        Seeds::File(path) => {
            seeds::of_files(std::slice::from_ref(path), SeedReading { rules, quiet: false })
        }
        Seeds::List(seeds) => Ok(seeds.clone()),
        Seeds::None => Ok(Vec::new()),
    }
}
