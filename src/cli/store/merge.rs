//! `crawl store merge`.

use std::io::{BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Args as ClapArgs;

use crate::base::outputs;
use crate::corpus::check;
use crate::corpus::merge::{self, MergeOrder};
use crate::store::Store;

use super::super::exit::Exit;
use super::super::place::{StoreName, store_name};
use super::super::screen::{self, number};
use super::super::settings;

/// Time between two lines of progress.
const TELL_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, ClapArgs)]
pub(crate) struct MergeArgs {
    /// Folders of the stores, which are only read. A new store begins as a copy of the first one,
    /// with its queues; of the others the documents are taken
    #[arg(required = true, value_name = "STORE", value_parser = store_name())]
    pub stores: Vec<StoreName>,
    /// Folder of the store that they become: a new one, or one that is there
    #[arg(long, value_name = "DIR", value_parser = store_name())]
    pub into: StoreName,
    /// Write which documents became part of which into this file, as lines of JSON
    #[arg(long, value_name = "FILE")]
    pub list: Option<PathBuf>,
    /// Settings file, of which the sections `dedup` and `store` are used
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `crawl store merge A B --into NEW`.
pub(super) fn merge(args: &MergeArgs, json: bool, quiet: bool) -> Result<Exit> {
    let config = settings::read(args.config.as_deref())?.config;
    let into = args.into.folder()?;
    let sources: Vec<PathBuf> = args.stores.iter().filter_map(StoreName::own_folder).collect();
    let order = MergeOrder {
        sources: &sources,
        into,
        cache_bytes: config.cache_bytes(),
        config: &config.dedup,
    };
    let shows = !quiet && !json && std::io::stderr().is_terminal();
    let (began, mut last) = (Instant::now(), Instant::now());
    let summary = merge::merge(order, |placed, of| {
        if shows && last.elapsed() >= TELL_EVERY && placed > 0 {
            last = Instant::now();
            let left = began.elapsed().as_secs_f64() / placed as f64 * (of - placed) as f64;
            let (placed, of) = (number(placed), number(of));
            eprintln!("{placed} of {of} documents, about {left:.0} s left");
        }
    })?;
    if let Some(path) = &args.list {
        write_list(order, path)?;
    }
    let mut store = Store::open_to_read(into, config.cache_bytes())?;
    let clean = store.check_pages()?;
    let findings = check::check(&store.snapshot()?)?;
    let faults = findings.faults + u64::from(!clean);
    let exit = if faults == 0 { Exit::Done } else { Exit::Failed };
    if json {
        screen::json(&serde_json::json!({ "merged": summary, "faults": faults }))?;
        return Ok(exit);
    }
    println!("the store in {} has", into.display());
    screen::facts([
        ("number", summary.store_number.to_string()),
        ("documents", number(summary.documents)),
        ("copies", number(summary.copies)),
    ])?;
    for source in &summary.sources {
        let base = if source.base { ", which it began as a copy of" } else { "" };
        println!("of {} (store {}){base}", source.folder.display(), source.store_number);
        let mut facts = vec![
            ("documents", number(source.documents)),
            ("part of others now", number(source.became_part)),
            ("copies, all found again", number(source.copies)),
        ];
        if source.gone > 0 && !source.base {
            facts.push(("gone, and left", number(source.gone)));
        }
        if source.waiting > 0 {
            facts.push(("queued URLs that are left", number(source.waiting)));
        }
        screen::facts(facts)?;
    }
    for fault in &findings.listed {
        println!("fault: {fault}");
    }
    match faults {
        0 => println!("it is checked: every invariant holds"),
        faults => println!("{faults} faults"),
    }
    Ok(exit)
}

/// Writes which documents became part of which, as lines of JSON.
fn write_list(order: MergeOrder<'_>, path: &Path) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    outputs::write_whole(path, |file| {
        let mut out = BufWriter::new(file);
        let told = merge::became_part(order, |store, id, into| {
            let store = store.display().to_string();
            let line = serde_json::json!({"docId": id, "store": store, "into": into});
            writeln!(out, "{line}")
        });
        told?.with_context(cannot)?;
        let file = out.into_inner().map_err(std::io::IntoInnerError::into_error);
        anyhow::Ok((file.with_context(cannot)?, ()))
    })
}
