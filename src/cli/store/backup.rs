//! `crawl store backup`, `backups`, `verify` and `restore`.

use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args as ClapArgs;
use serde_json::Value;

use crate::base::clock::Clock;
use crate::base::remote::Location;
use crate::config::Config;
use crate::corpus::rewrite;
use crate::store::{self, BackupOrder, BackupSummary, Store};

use super::super::exit::{Exit, Usage};
use super::super::place::{StoreArg, StoreName, store_name};
use super::super::screen::{self, bytes, number};
use super::super::service_client::{ServiceArg, ServiceClient};

/// Time between two looks whether the service has made its backup.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, ClapArgs)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub store: StoreArg,
    /// Folder of the backups: a new one, an empty one, or one that has backups of this store; or
    /// s3://, gs:// or az://
    #[arg(long, value_name = "DIR", required_unless_present = "from")]
    pub to: Option<String>,
    /// Keep so many backups, the newest, and remove the others; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub keep: usize,
    /// Read the backup again when it is written, and compare it with its checksums
    #[arg(long, conflicts_with = "from")]
    pub verify: bool,
    #[command(flatten)]
    pub service: ServiceArg,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BackupsArgs {
    /// Folder of the backups, or s3://, gs:// or az://
    #[arg(value_name = "DIR")]
    pub folder: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct VerifyArgs {
    /// Folder of the backups, or s3://, gs:// or az://
    #[arg(value_name = "DIR")]
    pub folder: String,
    /// The backup, by its name; the newest if it is not given
    #[arg(long, value_name = "NAME")]
    pub backup: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RestoreArgs {
    /// Folder of the backups, or s3://, gs:// or az://
    #[arg(long, value_name = "DIR")]
    pub from: String,
    /// The backup, by its name; the newest if it is not given
    #[arg(long, value_name = "NAME")]
    pub backup: Option<String>,
    /// Folder of the store; it must not have one yet
    #[arg(long, value_name = "DIR", value_parser = store_name())]
    pub store: StoreName,
}

/// `crawl store backup`.
pub(super) fn backup(args: &BackupArgs, json: bool) -> Result<Exit> {
    if let Some(base) = &args.service.from {
        if args.to.is_some() || args.keep > 0 {
            let why = "the service writes where its settings say (`folder` and `keep` of \
                       [backup]): leave out --to and --keep";
            return Err(Usage(why.to_owned()).into());
        }
        let client = ServiceClient::new(base, args.service.token_file.as_deref())?;
        return by_service(&client, json);
    }
    let Some(folder) = &args.to else { return Err(Usage("name a folder: --to".to_owned()).into()) };
    let folder = &place(folder)?;
    let store = match Store::open_to_read(args.store.folder()?, Config::default().cache_bytes()) {
        Err(error @ store::Error::InUse(_)) => {
            let hint = "ask the service that has it open: --from http://127.0.0.1:8080, or set \
                        `folder` and `every` of [backup] in the settings of the crawl";
            return Err(anyhow::Error::new(error).context(hint));
        }
        opened => opened?,
    };
    let order = BackupOrder { folder, name: None, keep: args.keep, now: Clock::System.now() };
    let summary = store::backup(&store, order, || true)?;
    drop(store);
    if args.verify {
        store::verify(folder, Some(&summary.name))?;
    }
    if json {
        return screen::json(&summary);
    }
    show(&summary)?;
    if args.verify {
        println!("it was read again: every checksum is right");
    }
    Ok(Exit::Done)
}

/// Reads the name of a folder of backups.
fn place(text: &str) -> Result<Location> {
    Ok(Location::parse(text).map_err(|error| Usage(error.to_string()))?)
}

fn show(summary: &BackupSummary) -> Result<()> {
    println!("backup {}", summary.name);
    let chunks = format!("{} ({} new)", number(summary.chunks), number(summary.new_chunks));
    screen::facts([
        ("documents", number(summary.documents)),
        ("rows", number(summary.rows)),
        ("size of the rows", bytes(summary.bytes)),
        ("chunks", chunks),
        ("written", bytes(summary.written_bytes)),
        ("older backups removed", number(summary.removed)),
    ])
}

/// Has the service make a backup, and waits for it.
fn by_service(client: &ServiceClient, json: bool) -> Result<Exit> {
    let read = |text: String| serde_json::from_str::<Value>(&text);
    let began = read(client.post("/v1/backup")?)?;
    let before = began["made"].as_u64().unwrap_or(0);
    let told = loop {
        let told = read(client.get("/v1/backup")?)?;
        if told["made"].as_u64().unwrap_or(0) > before {
            break told;
        }
        thread::sleep(LOOK_EVERY);
    };
    if let Some(error) = told["error"].as_str() {
        return Err(anyhow!("the service could not make a backup: {error}"));
    }
    if json {
        return screen::json(&told["last"]);
    }
    let last = &told["last"];
    let count = |name: &str| last[name].as_u64().unwrap_or(0);
    println!("backup {} by the service", last["name"].as_str().unwrap_or_default());
    screen::facts([
        ("documents", number(count("documents"))),
        ("rows", number(count("rows"))),
        ("chunks", format!("{} ({} new)", number(count("chunks")), number(count("newChunks")))),
        ("written", bytes(count("writtenBytes"))),
    ])?;
    Ok(Exit::Done)
}

/// `crawl store backups DIR`.
pub(super) fn list(args: &BackupsArgs, json: bool) -> Result<Exit> {
    let all = store::backups(&place(&args.folder)?)?;
    if json {
        let all = all.iter().map(|(name, head)| serde_json::json!({"name": name, "of": head}));
        return screen::json(&all.collect::<Vec<_>>());
    }
    if all.is_empty() {
        println!("there is no backup in {}", args.folder);
    }
    for (name, head) in all {
        println!(
            "{name}  {} documents, {} copies, {} URLs; store {}, format {}, version {}",
            number(head.documents),
            number(head.copies),
            number(head.urls),
            head.store_number,
            head.format,
            head.program,
        );
    }
    Ok(Exit::Done)
}

/// `crawl store verify DIR`.
pub(super) fn verify(args: &VerifyArgs, json: bool) -> Result<Exit> {
    let summary = store::verify(&place(&args.folder)?, args.backup.as_deref())?;
    if json {
        return screen::json(&summary);
    }
    println!("backup {} is whole: every checksum is right", summary.name);
    screen::facts([
        ("documents", number(summary.documents)),
        ("rows", number(summary.rows)),
        ("chunks", number(summary.chunks)),
        ("size of the rows", bytes(summary.bytes)),
    ])?;
    Ok(Exit::Done)
}

/// `crawl store restore`.
pub(super) fn restore(args: &RestoreArgs, json: bool) -> Result<Exit> {
    let cache = Config::default().cache_bytes();
    let summary =
        rewrite::restore(&place(&args.from)?, args.backup.as_deref(), args.store.folder()?, cache)?;
    if json {
        return screen::json(&summary);
    }
    let (name, folder) = (&summary.name, args.store.folder()?.display());
    println!("the store in {folder} is that of backup {name}, and checked: every invariant holds");
    screen::facts([
        ("documents", number(summary.documents)),
        ("rows", number(summary.rows)),
        ("chunks", number(summary.chunks)),
    ])?;
    Ok(Exit::Done)
}
