//! `crawl store copy`.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::corpus::documents::Checksum;
use crate::corpus::index::Index;
use crate::corpus::shared::SharedCorpus;
use crate::corpus::transfer::{self, Place, Told, TransferSummary};
use crate::store::Store;
use crate::text::features::Fingerprinter;

use super::super::exit::Exit;
use super::super::place::{StoreName, store_name};
use super::super::screen::{self, number};
use super::super::settings;
use crate::config::Config;

/// Time between two lines of progress.
const TELL_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, ClapArgs)]
pub(crate) struct CopyArgs {
    /// The store whose documents are copied: a folder, or `cluster:redis://HOST:PORT[,...]/PREFIX`
    #[arg(value_name = "FROM", value_parser = store_name())]
    pub from: StoreName,
    /// The store that gets them: a new one, or one in which some of them are; it may have no others
    #[arg(value_name = "TO", value_parser = store_name())]
    pub to: StoreName,
    /// Place of the texts of the cluster that is begun: a folder that all workers see, s3://, gs://
    /// or az://; of one that is there, if it is not the one that was named first
    #[arg(long, value_name = "PLACE")]
    pub texts: Option<PathBuf>,
    /// Place of the texts of the cluster that is read, if both stores are in clusters
    #[arg(long, value_name = "PLACE")]
    pub from_texts: Option<PathBuf>,
    /// Documents that are expected at least in a cluster that is begun: keys of so many have room
    /// as the first ones come, others as they come [default: 1]
    #[arg(long, value_name = "N")]
    pub documents: Option<u64>,
    /// Settings file, of which the sections `dedup` and `store` are used
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `crawl store copy FROM TO`.
pub(super) fn copy(args: &CopyArgs, json: bool, quiet: bool) -> Result<Exit> {
    let config = settings::read(args.config.as_deref())?.config;
    let features = Fingerprinter::for_articles(config.dedup.features.clone())?.name();
    let from = open_from(args, &config)?;
    let to = open_to(args, &config)?;
    transfer::fit(&from, &to, &features)?;
    let shows = !quiet && !json && std::io::stderr().is_terminal();
    let mut last = Instant::now();
    let summary = transfer::transfer(&from, &to, |told| {
        if shows && last.elapsed() >= TELL_EVERY {
            last = Instant::now();
            match told {
                Told::Looked(documents) => eprintln!("{} documents read", number(documents)),
                Told::Copied(documents) => eprintln!("{} documents copied", number(documents)),
                Told::Verified(documents) => eprintln!("{} documents compared", number(documents)),
            }
        }
    })?;
    drop((from, to));
    let exit = if summary.is_same() { Exit::Done } else { Exit::Failed };
    if json {
        screen::json(&summary.as_json())?;
        return Ok(exit);
    }
    show(&summary, args)?;
    Ok(exit)
}

fn open_from(args: &CopyArgs, config: &Config) -> Result<Place> {
    let Some(settings) = args.from.cluster()? else {
        let store = Store::open_to_read(args.from.folder()?, config.cache_bytes())?;
        return Ok(Place::store(store));
    };
    let is_cluster = matches!(args.to, StoreName::Cluster(_));
    let texts = if is_cluster { &args.from_texts } else { &args.texts };
    let corpus = SharedCorpus::open_to_read(&settings, texts.as_deref())?;
    Ok(Place::shared(corpus))
}

fn open_to(args: &CopyArgs, config: &Config) -> Result<Place> {
    let Some(settings) = args.to.cluster()? else {
        let store = Store::open_or_create(args.to.folder()?, config.cache_bytes())?;
        let index = Index::open(&store, &config.dedup)?;
        return Ok(Place::store_to_write(store, index, &config.dedup));
    };
    let texts = args.texts.as_deref();
    let corpus = SharedCorpus::open_or_begin(&settings, texts, &config.dedup, args.documents)?;
    Ok(Place::shared(corpus))
}

fn show(summary: &TransferSummary, args: &CopyArgs) -> Result<()> {
    println!("{} documents copied, {} were there", number(summary.copied), number(summary.before));
    for (what, sum, name) in [("of", &summary.from, &args.from), ("in", &summary.to, &args.to)] {
        println!("{what} {}", name.shown()?);
        let Checksum { documents, copies, texts, sum } = sum;
        screen::facts([
            ("documents", number(*documents)),
            ("copies", number(*copies)),
            ("texts", number(*texts)),
            ("checksum", format!("{sum:032x}")),
        ])?;
    }
    for (what, count) in [
        ("pages of which more was kept than the text (--keep): that stays behind", summary.pages),
        ("identifiers that senders gave: they stay behind", summary.sent),
        ("URLs of crawls, with their hosts and queues: they stay behind", summary.addresses),
    ] {
        if count > 0 {
            println!("note: {} {what}", number(count));
        }
    }
    if summary.is_same() {
        println!("both have the same documents");
    } else {
        println!(
            "they differ: what was changed in one of them since it was copied is not changed in \
             the other: copy into a new store"
        );
    }
    Ok(())
}
