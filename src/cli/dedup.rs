//! `crawl dedup`.

use std::io::IsTerminal as _;
use std::time::Duration;

use crate::config;
use crate::corpus::files::{self, DedupReport, Resources};
use crate::neardup::Config;
use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};

use super::args::{DedupArgs, RuleArgs};
use super::exit::Exit;
use super::screen::{self, bytes, number};
use super::settings;

/// `crawl dedup FILE... --out DIR`.
pub(super) fn dedup(args: &DedupArgs, json: bool, quiet: bool) -> Result<Exit> {
    let mut config = all_settings(&args.rule)?;
    if let Some(memory) = args.memory {
        config.memory = memory;
    }
    let resources = Resources { threads: args.threads, memory: config.memory_for_files() };
    let bar = if quiet || !std::io::stderr().is_terminal() {
        ProgressBar::hidden()
    } else {
        ProgressBar::new_spinner()
    };
    bar.set_style(ProgressStyle::with_template("{spinner} {elapsed} {msg}")?);
    bar.enable_steady_tick(Duration::from_millis(200));
    let show_progress = &mut |all, copies| {
        bar.set_message(format!("{} documents, {} duplicates", number(all), number(copies)));
    };
    let report = files::run(&args.files, &args.out, &config.dedup, resources, show_progress);
    bar.finish_and_clear();
    let report = report?;
    if json {
        screen::json(&report)?;
    } else {
        show(&report, args).context("cannot print the report")?;
    }
    Ok(Exit::Done)
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
        ("lines that are no document", report.rejected),
        ("lines that were not UTF-8", report.repaired),
    ] {
        if count > 0 {
            facts.push((name, number(count)));
        }
    }
    facts.push(("index", bytes(report.index_bytes)));
    if let Some(peak) = screen::peak_memory() {
        facts.push(("peak memory", bytes(peak)));
    }
    screen::facts(facts)?;
    println!("written to {}", args.out.display());
    Ok(())
}
