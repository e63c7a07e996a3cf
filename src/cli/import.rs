//! `crawl import`.

use crate::base::clock::Clock;
use crate::config::Config;
use crate::corpus::import::{self, ImportOptions, ImportProgress, ImportReport, Target};
use crate::corpus::shared::SharedCorpus;
use crate::crawl;
use anyhow::Result;

use super::corpora::{ImportArgs, ReadingBar, reasons};
use super::exit::Exit;
use super::place::SharedStoreArg;
use super::screen::{self, bytes, number};
use super::settings;

/// `crawl import --store DIR INPUT...`.
pub(super) fn import(args: &ImportArgs, json: bool, quiet: bool) -> Result<Exit> {
    let mut sourced = settings::read(args.config.as_deref())?;
    if let Some(memory) = args.memory {
        sourced.apply(|config| config.memory = memory);
    }
    let mut config = sourced.config;
    args.filters.over(&mut config.filters)?;
    let options = ImportOptions {
        threads: args.input.threads,
        input: args.input.options(),
        filters: config.filters.clone(),
        dedup: config.dedup.clone(),
        urls: config.urls.clone(),
        unserved: config.unserved(),
    };
    let bar = ReadingBar::start(quiet)?;
    let show_progress = &mut |progress: &ImportProgress| {
        let ImportProgress { documents, new, position } = *progress;
        bar.show(position, &format!("{} documents, {} new", number(documents), number(new)));
    };
    let report = into_store(args, &config, &options, show_progress);
    bar.end();
    let report = report?;
    if json {
        return screen::json(&report);
    }
    show(&report, args)
}

fn into_store(
    args: &ImportArgs,
    config: &Config,
    options: &ImportOptions,
    progress: &mut dyn FnMut(&ImportProgress),
) -> Result<ImportReport> {
    let files = &args.input.files;
    let SharedStoreArg { store: name, texts } = &args.store;
    if let Some(settings) = name.cluster()? {
        let (texts, dedup) = (texts.as_deref(), &config.dedup);
        let mut corpus = SharedCorpus::open_or_begin(&settings, texts, dedup, args.documents)?;
        return Ok(import::import_shared(&mut corpus, files, options, progress)?);
    }
    let folder = args.store.folder()?;
    let store = super::crawl::open(config, folder)?;
    crawl::fix_rules(&store, &config.urls)?;
    let target = Target { store: &store, folder, clock: &Clock::System };
    Ok(import::import(target, files, options, progress)?)
}

fn show(report: &ImportReport, args: &ImportArgs) -> Result<Exit> {
    println!(
        "{} documents read in {:.1} s ({:.0} documents/s)",
        number(report.came),
        report.seconds,
        report.documents_per_second
    );
    let mut facts = vec![
        ("files".to_owned(), number(report.inputs)),
        ("documents of all runs".to_owned(), number(report.documents)),
        ("new documents".to_owned(), number(report.new)),
    ];
    facts.push(("duplicates".to_owned(), number(report.documents - report.new)));
    facts.extend(report.duplicates.iter().map(|(key, count)| (key.clone(), number(*count))));
    for (name, count) in [
        ("in the store already", report.known),
        ("files that were read before", report.inputs_before),
        ("with an id that another has", report.equal_ids),
        ("with a URL that is none", report.bad_urls),
        ("filtered", report.filtered),
        ("records that are no document", report.rejected),
        ("personal data masked", report.masked),
        ("read with replacement characters", report.repaired),
    ] {
        if count > 0 {
            facts.push((name.to_owned(), number(count)));
        }
    }
    facts.extend(reasons(&report.reasons));
    if let Some(peak) = screen::peak_memory() {
        facts.push(("peak memory".to_owned(), bytes(peak)));
    }
    screen::facts(facts.iter().map(|(name, value)| (name.as_str(), value.clone())))?;
    println!("in the store {}", args.store.store.shown()?);
    Ok(Exit::Done)
}
