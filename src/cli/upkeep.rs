//! Commands on a store or a corpus that run now and then: expire, idf, migrate.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use crate::base::clock::Clock;
use crate::base::outputs;
use crate::base::units::Time;
use crate::config::Config;
use crate::corpus::dedup::{self, Expiry};
use crate::corpus::files::{Lines, Record};
use crate::corpus::migrate;
use crate::store::{FORMAT, Store};
use crate::text::{DocumentFrequencies, Normal, Segmenter};
use anyhow::{Context as _, Result};
use clap::Args as ClapArgs;

use super::exit::{Exit, Usage};
use super::place::StoreArg;
use super::screen::{self, bytes, number};
use super::settings;

#[derive(Debug, ClapArgs)]
pub(crate) struct ExpireArgs {
    #[command(flatten)]
    pub store: StoreArg,
    /// Remove what had no new copy for this long: 12h, 30d
    #[arg(long, value_name = "TIME")]
    pub older_than: Time,
    /// Only count what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Remove it also if it is more than half of the store
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct IdfArgs {
    /// Files of lines with `text`; plain, gzip or zstd
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// File for the table
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Leave out words of fewer documents
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub min_documents: u32,
    /// Settings file: its `simplify` and `dictionary_file` tell how Chinese is cut
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    pub store: StoreArg,
    /// Remove the old file when the new one is in its place; without this it is kept beside it
    #[arg(long)]
    pub remove_old: bool,
}

/// `crawl expire --older-than TIME`.
pub(super) fn expire(args: &ExpireArgs, json: bool) -> Result<Exit> {
    let before = Clock::System.now().before(args.older_than.duration());
    let (folder, cache) = (args.store.folder()?, Config::default().cache_bytes());
    let old = dedup::old(&Store::open_to_read(folder, cache)?.snapshot()?, before)?;
    let Expiry { documents, of, .. } = old;
    if old.is_most() && !args.yes && !args.dry_run {
        return Err(Usage(format!(
            "{documents} of {of} documents had no new copy since {before}, more than half of the \
             store: look with --dry-run, and say --yes to remove them"
        ))
        .into());
    }
    let done =
        if args.dry_run { old } else { dedup::expire(&Store::open(folder, cache)?, None, before)? };
    if json {
        return screen::json(&serde_json::json!({
            "documents": done.documents,
            "copies": done.copies,
            "of": done.of,
            "before": before.to_string(),
            "dryRun": args.dry_run,
        }));
    }
    let what = if args.dry_run { "would go" } else { "are gone" };
    let (documents, of) = (number(done.documents), number(done.of));
    println!("{documents} of {of} documents had no new copy since {before} and {what}");
    screen::facts([("copies of them", number(done.copies))])?;
    Ok(Exit::Done)
}

/// `crawl migrate`.
pub(super) fn migrate(args: &MigrateArgs, json: bool) -> Result<Exit> {
    let began = Instant::now();
    let (folder, cache) = (args.store.folder()?, Config::default().cache_bytes());
    let done = migrate::migrate(folder, cache, !args.remove_old)?;
    if json {
        let done = done.map(|done| serde_json::json!(done));
        return screen::json(&serde_json::json!({ "format": FORMAT, "migrated": done }));
    }
    let Some(done) = done else {
        println!("the store in {} has format {FORMAT}: nothing to do", folder.display());
        return Ok(Exit::Done);
    };
    let (from, path) = (done.from_format, folder.display());
    println!("the store in {path} has format {FORMAT} now, and is checked: every invariant holds");
    let kept = match &done.kept {
        Some(kept) => format!("{} ({})", kept.display(), bytes(done.old_bytes)),
        None => "removed".to_owned(),
    };
    screen::facts([
        ("store number", done.store_number.to_string()),
        ("documents", number(done.documents)),
        ("rows", number(done.rows)),
        ("size", bytes(done.new_bytes)),
        ("seconds", format!("{:.1}", began.elapsed().as_secs_f64())),
        (&format!("store of format {from}"), kept),
    ])?;
    Ok(Exit::Done)
}

/// `crawl idf FILE... --out FILE`.
pub(super) fn idf(args: &IdfArgs, json: bool) -> Result<Exit> {
    let features = settings::read(args.config.as_deref())?.config.dedup.features;
    let normal = Normal { simplify: features.simplify };
    let segmenter = match features.dictionary_file.as_str() {
        "" => Segmenter::default(),
        path => Segmenter::read(path.as_ref(), normal).map_err(|error| Usage(error.to_string()))?,
    };
    let mut frequencies = DocumentFrequencies::new(segmenter, normal);
    let mut rejected = 0;
    for path in &args.files {
        let mut lines = Lines::open(path).map_err(|error| Usage(error.to_string()))?;
        let mut line = Vec::new();
        while lines.next(&mut line)? {
            match Record::parse(&String::from_utf8_lossy(&line)) {
                Ok(record) => frequencies.add(&record.text),
                Err(_) => rejected += 1,
            }
        }
    }
    outputs::write_whole(&args.out, |mut file| {
        let text = frequencies.table(args.min_documents);
        let written = file.write_all(text.as_bytes());
        written.with_context(|| format!("cannot write {}", args.out.display()))?;
        anyhow::Ok((file, ()))
    })?;
    let (documents, words) = frequencies.counts();
    if json {
        return screen::json(&serde_json::json!({
            "documents": documents, "words": words, "rejected": rejected,
        }));
    }
    println!("{} distinct words of {} documents", number(words as u64), number(documents));
    if rejected > 0 {
        println!("{} lines are no document and were left out", number(rejected));
    }
    println!("written to {}: name it as idf_file in [dedup.features]", args.out.display());
    Ok(Exit::Done)
}
