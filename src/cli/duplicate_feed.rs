//! `crawl duplicate-feed`: feeds of known copies, those of this store and those of others.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use crate::base::clock::Clock;
use crate::base::outputs;
use crate::config::Config;
use crate::corpus::export::write_duplicate_feed;
use crate::crawl::stored_rules;
use crate::frontier::FEEDS;
use crate::frontier::duplicate_feed::{Addresses, Header, Known};
use crate::store::{Store, View as _};
use anyhow::{Context as _, Result};
use clap::{Args as ClapArgs, Subcommand};

use super::exit::{Exit, Usage};
use super::place::StoreArg;
use super::screen::{self, number};
use super::settings;

#[derive(Debug, Subcommand)]
pub(crate) enum DuplicateFeedCommand {
    /// Write which URLs are copies of which document, for `crawl --known`
    Export(DuplicateFeedExportArgs),
    /// List the feeds that a store has taken in, and how often they were right
    List(StoreArg),
    /// Drop a feed; the next run lets in what it has held back
    Drop {
        #[command(flatten)]
        store: StoreArg,
        /// Number of the feed
        number: u64,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DuplicateFeedExportArgs {
    #[command(flatten)]
    pub store: StoreArg,
    /// Write hashes instead of URLs
    #[arg(long)]
    pub hashed: bool,
    /// Name of the publisher in the feed; without it, `api.publisher` of the settings
    #[arg(long, value_name = "NAME")]
    pub publisher: Option<String>,
    /// Settings file, of which the sections `export` and `api` are used
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The file, packed if it ends in .zst or .gz; `-` for standard output
    pub file: PathBuf,
}

pub(super) fn run(command: DuplicateFeedCommand, json: bool) -> Result<Exit> {
    match command {
        DuplicateFeedCommand::Export(args) => export(&args, json),
        DuplicateFeedCommand::List(store) => list(store.folder()?, json),
        DuplicateFeedCommand::Drop { store, number } => drop_feed(store.folder()?, number, json),
    }
}

fn export(args: &DuplicateFeedExportArgs, json: bool) -> Result<Exit> {
    let config = settings::read(args.config.as_deref())?.config;
    let store = Store::open_to_read(args.store.folder()?, config.cache_bytes())?;
    let snapshot = store.snapshot()?;
    let addresses = if args.hashed { Addresses::Hashed } else { Addresses::Plain };
    let publisher = args.publisher.as_ref().unwrap_or(&config.api.publisher);
    let now = Clock::System.now();
    let rules = stored_rules(&store)?.unwrap_or_default();
    let header = Header::new(publisher, now, addresses, rules);
    let honour = &config.export.honour;
    if args.file == Path::new("-") {
        let out = BufWriter::new(std::io::stdout().lock());
        write_duplicate_feed(&snapshot, out, &header, honour, now)?;
        return Ok(Exit::Done);
    }
    let cannot = || format!("cannot write {}", args.file.display());
    let ending = args.file.extension().and_then(|ending| ending.to_str());
    let write = |file: File| -> Result<(File, u64)> {
        match ending {
            Some("zst") => {
                let out = zstd::Encoder::new(file, 9).with_context(cannot)?;
                let written = write_duplicate_feed(&snapshot, out, &header, honour, now);
                let (out, count) = written.with_context(cannot)?;
                Ok((out.finish().with_context(cannot)?, count))
            }
            Some("gz") => {
                let out = flate2::write::GzEncoder::new(file, flate2::Compression::default());
                let written = write_duplicate_feed(&snapshot, out, &header, honour, now);
                let (out, count) = written.with_context(cannot)?;
                Ok((out.finish().with_context(cannot)?, count))
            }
            _ => {
                let out = BufWriter::new(file);
                let written = write_duplicate_feed(&snapshot, out, &header, honour, now);
                let (out, count) = written.with_context(cannot)?;
                let unpacked = out.into_inner().map_err(std::io::IntoInnerError::into_error);
                Ok((unpacked.with_context(cannot)?, count))
            }
        }
    };
    let duplicates = outputs::write_whole(&args.file, write)?;
    let bytes = std::fs::metadata(&args.file).with_context(cannot)?.len();
    if json {
        let path = args.file.display().to_string();
        return screen::json(
            &serde_json::json!({"duplicates": duplicates, "bytes": bytes, "path": path}),
        );
    }
    let size = screen::bytes(bytes);
    println!("{} duplicates in {} ({size})", number(duplicates), args.file.display());
    Ok(Exit::Done)
}

fn list(folder: &Path, json: bool) -> Result<Exit> {
    let store = Store::open_to_read(folder, Config::default().cache_bytes())?;
    let snapshot = store.snapshot()?;
    let mut feeds = Vec::new();
    for row in snapshot.rows(FEEDS)? {
        let row = row?;
        feeds.push((row.key()?, row.row()?));
    }
    if json {
        let feeds = feeds.iter().map(|(number, feed)| {
            serde_json::json!({
                "feed": number, "name": feed.name, "publisher": feed.publisher,
                "made": feed.made, "duplicates": feed.duplicates, "hashed": feed.hashed,
                "complete": feed.complete, "believed": !feed.lost, "held": feed.held,
                "failed": feed.failed, "lostHosts": feed.lost_hosts, "skipped": feed.skipped,
            })
        });
        return screen::json(&feeds.collect::<Vec<_>>());
    }
    if feeds.is_empty() {
        println!("the store {} has taken in no duplicate feed", folder.display());
    }
    for (count, feed) in feeds {
        let lost = if feed.lost { "; not believed any more" } else { "" };
        println!("{count}: {}{lost}", feed.in_words());
        screen::facts([
            ("duplicates", number(feed.duplicates)),
            ("right", format!("{} of {}", feed.held, feed.held + feed.failed)),
            ("hosts for which it is not believed", number(feed.lost_hosts)),
            ("URLs held back", number(feed.skipped)),
        ])?;
    }
    Ok(Exit::Done)
}

fn drop_feed(folder: &Path, number: u64, json: bool) -> Result<Exit> {
    let store = Store::open(folder, Config::default().cache_bytes())?;
    let mut batch = store.begin()?;
    let found = Known::drop_feed(&mut batch, number)?;
    if !found {
        return Err(Usage(format!("the store has no feed {number}")).into());
    }
    batch.commit()?;
    if json {
        return screen::json(&serde_json::json!({"feed": number, "believed": false}));
    }
    println!("feed {number} is not believed any more; the next run lets in what it held back");
    Ok(Exit::Done)
}
