//! `crawl dedup`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config;
use crate::corpus::files::{self, DedupReport, Options, Progress, Resources};
use crate::neardup::Config;
use anyhow::{Context as _, Result};

use super::args::{DedupArgs, RuleArgs};
use super::corpora::{KeptArg, ReadingBar, reasons};
use super::exit::{Exit, Usage};
use super::screen::{self, bytes, number};
use super::settings;

/// `crawl dedup INPUT... --out DIR`.
pub(super) fn dedup(args: &DedupArgs, json: bool, quiet: bool) -> Result<Exit> {
    let mut config = all_settings(&args.rule)?;
    if let Some(memory) = args.memory {
        config.memory = memory;
    }
    args.filters.over(&mut config.filters)?;
    let options = Options {
        resources: Resources { threads: args.input.threads, memory: config.memory_for_files() },
        input: args.input.options(),
        filters: config.filters.clone(),
        format: args.format.into(),
    };
    if args.out.as_os_str() == "-" {
        return to_standard_output(args, &config, &options, quiet);
    }
    let report = run(args, &args.out, &config.dedup, &options, quiet)?;
    if json {
        screen::json(&report)?;
    } else {
        show(&report, args).context("cannot print the report")?;
    }
    Ok(Exit::Done)
}

fn run(
    args: &DedupArgs,
    out: &Path,
    config: &Config,
    options: &Options,
    quiet: bool,
) -> Result<DedupReport> {
    let bar = ReadingBar::start(quiet)?;
    let show_progress = &mut |progress: &Progress| {
        let Progress { documents, duplicates, position } = *progress;
        let found = format!("{} documents, {} duplicates", number(documents), number(duplicates));
        bar.show(position, &found);
    };
    let report = files::run(&args.input.files, out, config, options, show_progress);
    bar.end();
    Ok(report?)
}

/// Writes what is kept to standard output, and nothing else. It is known only in the end, so that
/// it waits in a folder of its own.
fn to_standard_output(
    args: &DedupArgs,
    config: &config::Config,
    options: &Options,
    quiet: bool,
) -> Result<Exit> {
    if args.format == KeptArg::Parquet {
        let detail = "a table does not go to standard output: name a folder with --out";
        return Err(Usage(detail.to_owned()).into());
    }
    let folder = Waiting::new()?;
    let report = run(args, &folder.0, &config.dedup, options, quiet)?;
    let kept = folder.0.join("kept.jsonl");
    let mut kept =
        fs::File::open(&kept).with_context(|| format!("cannot read {}", kept.display()))?;
    io::copy(&mut kept, &mut io::stdout().lock())?;
    if !quiet {
        let DedupReport { documents, kept, rejected, filtered, .. } = &report;
        eprintln!(
            "{} documents, {} kept, {} filtered, {} rejected",
            number(*documents),
            number(*kept),
            number(*filtered),
            number(*rejected)
        );
    }
    Ok(Exit::Done)
}

/// A folder that is there as long as this is.
struct Waiting(PathBuf);

impl Waiting {
    fn new() -> Result<Self> {
        let name = format!("crawl-dedup-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot use {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The preset, or the section `dedup` of the settings file, and the flags.
pub(super) fn settings(args: &RuleArgs) -> Result<Config> {
    Ok(all_settings(args)?.dedup)
}

/// The same among all other settings.
fn all_settings(args: &RuleArgs) -> Result<config::Config> {
    let mut all = settings::read(args.config.as_deref())?.config;
    if let Some(preset) = args.preset {
        all.dedup = preset.config();
    }
    let config = &mut all.dedup;
    if let Some(extractor) = args.extractor {
        config.features.extractor = extractor;
    }
    if let Some(layout) = args.layout {
        config.layout = layout;
    }
    if let Some(k) = args.k {
        config.k = k;
    }
    config.check()?;
    Ok(all)
}

fn show(report: &DedupReport, args: &DedupArgs) -> Result<()> {
    println!(
        "{} documents in {:.1} s ({:.0} documents/s, {}/s)",
        number(report.documents),
        report.seconds,
        report.documents_per_second,
        bytes(
            report.bytes * 1000 / Duration::from_secs_f64(report.seconds).as_millis().max(1) as u64
        )
    );
    let mut facts = vec![("kept", number(report.kept))];
    facts.push(("duplicates", number(report.documents - report.kept)));
    facts.extend(report.duplicates.iter().map(|(key, count)| (*key, number(*count))));
    facts.push(("clusters", number(report.clusters)));
    facts.push(("largest cluster", number(report.largest_cluster)));
    for (name, count) in [
        ("canonical replaced", report.takeovers),
        ("moved at the second look", report.moved),
        ("without text", report.empty),
        ("with an id that another has", report.equal_ids),
        ("filtered", report.filtered),
        ("records that are no document", report.rejected),
        ("personal data masked", report.masked),
        ("read with replacement characters", report.repaired),
    ] {
        if count > 0 {
            facts.push((name, number(count)));
        }
    }
    let reasons = reasons(&report.reasons);
    facts.extend(reasons.iter().map(|(name, count)| (name.as_str(), count.clone())));
    facts.push(("index", bytes(report.index_bytes)));
    if let Some(peak) = screen::peak_memory() {
        facts.push(("peak memory", bytes(peak)));
    }
    screen::facts(facts)?;
    println!("written to {}", args.out.display());
    Ok(())
}
