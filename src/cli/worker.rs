//! `crawl worker`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::base::remote::Location;
use crate::base::system;
use crate::cluster::{Secret, Settings};
use crate::config::Sourced;
use crate::crawl::{self, Context, WorkerError, WorkerPlan, WorkerReport};

use super::args::Overrides;
use super::exit::{Exit, Usage};
use super::place;
use super::progress::Progress;
use super::screen::{self, number};
use super::seeds::{self, SeedReading};
use super::settings;

#[derive(Debug, ClapArgs)]
pub(crate) struct WorkerArgs {
    /// URLs to start from; `https://` may be left out
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,
    /// File of further URLs, one a line, `#` for comments, `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub seeds: Vec<PathBuf>,
    /// The cluster: redis://[USER@]HOST:PORT[,HOST:PORT...][/PREFIX], rediss:// for TLS; by default
    /// that of `store = "cluster:redis://..."` in the settings file. The password is that of
    /// --password-file, or of the variable `CRAWL_CLUSTER_PASSWORD`, or of the file that
    /// `CRAWL_CLUSTER_PASSWORD_FILE` names
    #[arg(long, value_name = "CLUSTER")]
    pub join: Option<String>,
    /// File of the password of the cluster
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// PEM file of the authority that has signed the certificates of the cluster
    #[arg(long, value_name = "FILE")]
    pub authority: Option<PathBuf>,
    /// Folder of the stores of shards; on a volume that all workers see, they go on with the stores
    /// of each other. With folders of their own, all of them need --backup
    #[arg(long, value_name = "DIR", default_value = "worker")]
    pub folder: PathBuf,
    /// Folder of texts, on a volume that all workers see, or s3://, gs:// or az://; by default
    /// `texts` below --folder
    #[arg(long, value_name = "PLACE")]
    pub texts: Option<PathBuf>,
    /// Back shards up there while they are crawled, and restore those whose store is gone or older:
    /// a folder, s3://, gs:// or az://
    #[arg(long, value_name = "TO")]
    pub backup: Option<String>,
    /// End when nothing is left to do for any worker
    #[arg(long)]
    pub until_done: bool,
    /// Begin shards with empty stores where those of other workers are gone for good: URLs that
    /// waited there are known again when they are found again
    #[arg(long)]
    pub stores_lost: bool,
    #[command(flatten)]
    pub overrides: Overrides,
}

/// Works as one of many.
pub(super) fn work(args: &WorkerArgs, json: bool, quiet: bool) -> Result<Exit> {
    let sourced = settings::effective(&args.overrides)?;
    let mut cluster = match &args.join {
        Some(join) => Settings::parse(join).map_err(|error| Usage(error.to_string()))?,
        None => cluster_of(&sourced, args.overrides.config.as_deref())?,
    };
    let mut config = sourced.config;
    if let Some(to) = &args.backup {
        config.cluster.backup.clone_from(to);
    }
    Location::parse(&config.cluster.backup).map_err(|error| Usage(error.to_string()))?;
    if let Some(file) = &args.password_file {
        cluster.password = Secret::read(file)?;
    }
    place::from_environment(&mut cluster)?;
    if let Some(authority) = &args.authority {
        cluster.authority = Some(authority.clone());
    }
    let read = SeedReading { rules: &config.urls, quiet };
    let seeds = if args.urls.is_empty() && args.seeds.is_empty() {
        Vec::new()
    } else {
        seeds::all(&args.urls, &args.seeds, read)?
    };
    let plan = WorkerPlan {
        cluster,
        texts: args.texts.clone().unwrap_or_else(|| args.folder.join("texts")),
        folder: args.folder.clone(),
        config: config.cluster.clone(),
        cache_bytes: config.cache_bytes(),
        host: system::host_name(),
        until_done: args.until_done,
        stores_lost: args.stores_lost,
    };
    let context = Context::default();
    let progress = Progress::start(&context, quiet)?;
    let report = crawl::work(&plan, &config.settings(), &seeds, &context);
    progress.end();
    let report = report.map_err(|error| match error {
        // What is at fault is told apart by what stands in it.
        WorkerError::Crawl(error) => anyhow::Error::from(error),
        other => other.into(),
    })?;
    if json {
        screen::json(&report)?;
    } else {
        show(&report)?;
    }
    Ok(if context.stop.asked() > 0 { Exit::Interrupted } else { Exit::Done })
}

/// The cluster that the settings name.
fn cluster_of(sourced: &Sourced, file: Option<&Path>) -> Result<Settings> {
    let missing = "which cluster? Name it by --join redis://HOST:PORT/PREFIX, or in the settings \
                   file by store = \"cluster:redis://HOST:PORT/PREFIX\"";
    let named = sourced.store_place().zip(file);
    let named = named.map(|(place, file)| place::of_setting(place, file)?.cluster()).transpose()?;
    named.flatten().ok_or_else(|| Usage(missing.to_owned()).into())
}

fn show(report: &WorkerReport) -> Result<()> {
    println!("worker {}", report.worker);
    screen::facts([
        ("shards taken", number(report.shards_taken)),
        ("leases lost", number(report.shards_lost)),
        ("requests", number(report.requests)),
        ("pages", number(report.pages)),
        ("new in their shard", number(report.new)),
        ("duplicates in their shard", number(report.duplicates)),
        ("requests without an answer", number(report.failed)),
        ("backups of shards", number(report.backups)),
        ("backups that failed", number(report.backups_failed)),
        ("shards restored", number(report.restored)),
        ("links to other shards", number(report.links_out)),
        ("links from other shards", number(report.links_in)),
    ])
}
