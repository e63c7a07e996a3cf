//! How a store is named: a folder of this machine, or a cluster that many share; and which commands
//! work on which.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as ClapArgs};

use crate::cluster::{Secret, Settings};
use crate::corpus::shared::SharedCorpus;
use crate::neardup;

use super::args::{Args, Command, RulesCommand};
use super::duplicate_feed::DuplicateFeedCommand;
use super::exit::Usage;
use super::settings;
use super::store::StoreCommand;

/// What the name of a store on this machine, and of one in a cluster, may begin with.
const FOLDER: &str = "redb:";
const CLUSTER: &str = "cluster:";

/// Variables of the password and of the authority that has signed the certificates of the nodes.
const PASSWORD: &str = "CRAWL_CLUSTER_PASSWORD";
const PASSWORD_FILE: &str = "CRAWL_CLUSTER_PASSWORD_FILE";
const AUTHORITY_FILE: &str = "CRAWL_CLUSTER_AUTHORITY_FILE";

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum StoreName {
    /// In a folder of this machine.
    Folder(PathBuf),
    /// In a cluster: what stands behind `cluster:`. It is shown nowhere: it may hold a password.
    Cluster(String),
}

impl fmt::Debug for StoreName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.fmt(f),
            Self::Cluster(_) => f.write_str("cluster:***"),
        }
    }
}

impl From<OsString> for StoreName {
    fn from(text: OsString) -> Self {
        match text.to_str() {
            Some(text) if text.starts_with(CLUSTER) => {
                Self::Cluster(text[CLUSTER.len()..].to_owned())
            }
            // Without the word before it a folder could be meant; a password is safe in any case.
            Some(text) if text.starts_with("redis://") || text.starts_with("rediss://") => {
                Self::Cluster(format!("without {CLUSTER}"))
            }
            Some(text) if text.starts_with(FOLDER) => Self::Folder(text[FOLDER.len()..].into()),
            _ => Self::Folder(text.into()),
        }
    }
}

/// Reads the name of a store. Whatever is wrong with it is told later, and without the text.
pub(crate) fn store_name() -> impl TypedValueParser<Value = StoreName> {
    OsStringValueParser::new().map(StoreName::from)
}

impl StoreName {
    /// Returns its folder.
    ///
    /// # Errors
    ///
    /// If it is in a cluster. Commands that do not work there are refused before.
    pub(super) fn folder(&self) -> Result<&Path> {
        match self {
            Self::Folder(folder) => Ok(folder),
            Self::Cluster(_) => {
                let why = "a folder of this machine is needed here, and no cluster";
                Err(Usage(why.to_owned()).into())
            }
        }
    }

    /// Returns its folder, if it has one.
    pub(super) fn own_folder(&self) -> Option<PathBuf> {
        self.folder().ok().map(Path::to_owned)
    }

    /// Returns the settings of its cluster, if it is in one, with password and authority from the
    /// environment.
    pub(super) fn cluster(&self) -> Result<Option<Settings>> {
        let Self::Cluster(text) = self else { return Ok(None) };
        let mut settings = Settings::parse(text).map_err(|error| {
            Usage(format!("{error}, with `{CLUSTER}` before it: {CLUSTER}redis://HOST:PORT/PREFIX"))
        })?;
        from_environment(&mut settings)?;
        Ok(Some(settings))
    }

    /// Names it, without a password.
    pub(super) fn shown(&self) -> Result<String> {
        Ok(match self.cluster()? {
            None => self.folder()?.display().to_string(),
            Some(settings) => shown(&settings),
        })
    }
}

/// Takes the password, unless the URL has one, and the authority from the environment.
pub(super) fn from_environment(settings: &mut Settings) -> Result<()> {
    if settings.password.is_empty() {
        if let Some(password) = env::var_os(PASSWORD) {
            settings.password = Secret::new(password.to_string_lossy());
        } else if let Some(file) = env::var_os(PASSWORD_FILE) {
            settings.password = Secret::read(Path::new(&file))?;
        }
    }
    settings.authority = env::var_os(AUTHORITY_FILE).map(PathBuf::from);
    Ok(())
}

/// Names a cluster, without user and password.
pub(super) fn shown(settings: &Settings) -> String {
    let scheme = if settings.tls { "rediss" } else { "redis" };
    let nodes: Vec<String> = settings.nodes.iter().map(ToString::to_string).collect();
    format!("{CLUSTER}{scheme}://{}/{}", nodes.join(","), settings.prefix)
}

/// Where the store is, for commands that work on stores of this machine.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct StoreArg {
    /// Folder of the store
    #[arg(long, value_name = "DIR", default_value = "store", value_parser = store_name())]
    pub store: StoreName,
}

impl StoreArg {
    /// Returns its folder.
    pub(super) fn folder(&self) -> Result<&Path> {
        self.store.folder()
    }
}

/// Where the store is, for commands that also work on a cluster.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct SharedStoreArg {
    /// Folder of the store, or the cluster that has it: `cluster:redis://HOST:PORT[,...][/PREFIX]`
    #[arg(long, value_name = "STORE", default_value = "store", value_parser = store_name())]
    pub store: StoreName,
    /// Place of the texts of a cluster (a folder, s3://, gs:// or az://), if it is not the one that
    /// was named first
    #[arg(long, value_name = "PLACE")]
    pub texts: Option<PathBuf>,
}

impl SharedStoreArg {
    /// Returns its folder, if it has one.
    pub(super) fn folder(&self) -> Result<&Path> {
        self.store.folder()
    }

    /// Opens the corpus of a cluster to be read; none if it is a store of this machine.
    pub(super) fn shared(&self) -> Result<Option<SharedCorpus>> {
        let Some(settings) = self.store.cluster()? else { return Ok(None) };
        Ok(Some(SharedCorpus::open_to_read(&settings, self.texts.as_deref())?))
    }

    /// Opens the corpus of a cluster to be changed, by the settings with which it was made.
    pub(super) fn shared_to_change(
        &self,
        config: &neardup::Config,
    ) -> Result<Option<SharedCorpus>> {
        let Some(settings) = self.store.cluster()? else { return Ok(None) };
        Ok(Some(SharedCorpus::open_to_change(&settings, self.texts.as_deref(), config)?))
    }
}

/// Tells whether `--store` was given.
pub(super) fn is_named(matches: &ArgMatches) -> bool {
    let mut at = matches;
    while let Some((_, inner)) = at.subcommand() {
        at = inner;
    }
    let has = at.try_contains_id("store").unwrap_or(false);
    has && at.value_source("store") == Some(ValueSource::CommandLine)
}

/// Takes the store from the settings file of a command, if the file names one.
///
/// # Errors
///
/// What is wrong with the file, or with the store that it names: its key.
pub(super) fn settle(args: &mut Args) -> Result<()> {
    let Some((store, Some(file))) = own(args) else { return Ok(()) };
    let sourced = settings::read(Some(file))?;
    if let Some(place) = sourced.store_place() {
        *store = of_setting(place, file)?;
    }
    Ok(())
}

/// The store that a settings file names.
pub(super) fn of_setting(place: &str, file: &Path) -> Result<StoreName> {
    let name = StoreName::from(OsString::from(place));
    let fault = match &name {
        StoreName::Folder(folder) if folder.as_os_str().is_empty() => {
            Some("it names no folder".to_owned())
        }
        _ => name.cluster().err().map(|error| error.to_string()),
    };
    match fault {
        Some(why) => Err(Usage(format!("{}: `store`: {why}", file.display())).into()),
        None => Ok(name),
    }
}

/// The store of a command that has a settings file, and that file.
fn own(args: &mut Args) -> Option<(&mut StoreName, Option<&Path>)> {
    let (store, file) = match args.command.as_mut() {
        None => (&mut args.crawl.store.store, &args.crawl.overrides.config),
        Some(Command::Serve(serve)) => (&mut serve.store.store, &serve.config),
        Some(Command::Import(import)) => (&mut import.store.store, &import.config),
        Some(Command::Check(check)) => (&mut check.store.store, &check.config),
        Some(Command::Search(search)) if search.corpus.is_empty() && search.index.is_none() => {
            (&mut search.store.store, &search.config)
        }
        Some(Command::Export(export)) if export.from.is_none() => {
            (&mut export.store.store, &export.config)
        }
        Some(Command::Follow(follow)) if follow.service.from.is_none() => {
            (&mut follow.store.store, &follow.config)
        }
        Some(Command::DuplicateFeed { command: DuplicateFeedCommand::Export(export) }) => {
            (&mut export.store.store, &export.config)
        }
        Some(_) => return None,
    };
    Some((store, file.as_deref()))
}

/// What to do where a command does not work on a cluster.
const COPY: &str =
    "copy it into a store of this machine (`crawl store copy cluster:... DIR`) and run it there";

/// The same for a feed of duplicates.
const FEED: &str = "a feed leaves out pages that lead to others, and which these are is known \
     where they were crawled. Export a feed from the store of each shard (`--store \
     FOLDER/shards/NNN`, with the `--folder` of `crawl worker`), and give them all to `--known`. \
     `crawl export` writes all copies with their documents (`duplicates.jsonl`)";

/// Refuses a command that does not work on the cluster that is named.
pub(super) fn check(args: &Args) -> Result<()> {
    if let Some(Command::Dedup(dedup)) = &args.command
        && dedup.store.is_some()
    {
        let why = "`crawl dedup` has no store: it reads files and writes files. `crawl import \
                   --store STORE INPUT` takes documents into a store or a cluster, and finds their \
                   copies there";
        return Err(Usage(why.to_owned()).into());
    }
    let is_cluster = |store: &&StoreName| matches!(store, StoreName::Cluster(_));
    let (command, stores, way_out) = asked(args);
    if stores.iter().any(is_cluster) {
        return Err(Usage(format!("`{command}` does not work on a cluster: {way_out}")).into());
    }
    Ok(())
}

/// The stores of a command that must be of this machine, and what to do with a cluster.
fn asked(args: &Args) -> (&'static str, Vec<&StoreName>, &'static str) {
    let rules = "rules are learned by crawls, and lie in the stores of the workers (`--folder` of \
                 `crawl worker`)";
    match args.command.as_ref() {
        None => (
            "crawl",
            vec![&args.crawl.store.store],
            "workers crawl into it: `crawl worker --join redis://... --folder DIR --seeds FILE`",
        ),
        Some(Command::Demo(demo)) => (
            "crawl demo",
            vec![&demo.store],
            "name a folder, and `crawl store copy DIR cluster:...` brings it there",
        ),
        Some(Command::Rebuild(rebuild)) => (
            "crawl rebuild",
            vec![&rebuild.store],
            "name a folder, and `crawl store copy DIR cluster:...` brings it there",
        ),
        Some(Command::Compare(compare)) => ("crawl compare", compare.store.iter().collect(), COPY),
        Some(Command::Expire(expire)) => ("crawl expire", vec![&expire.store.store], COPY),
        Some(Command::Migrate(migrate)) => (
            "crawl migrate",
            vec![&migrate.store.store],
            "its rows have versions of their own, and are read whatever version has written them",
        ),
        Some(Command::Follow(follow)) => ("crawl follow", vec![&follow.store.store], COPY),
        Some(Command::Rules { command }) => match command {
            RulesCommand::List { store, .. }
            | RulesCommand::Disable { store, .. }
            | RulesCommand::Enable { store, .. } => ("crawl rules", vec![&store.store], rules),
        },
        Some(Command::DuplicateFeed { command }) => match command {
            DuplicateFeedCommand::Export(export) => {
                ("crawl duplicate-feed export", vec![&export.store.store], FEED)
            }
            DuplicateFeedCommand::List(store) | DuplicateFeedCommand::Drop { store, .. } => (
                "crawl duplicate-feed",
                vec![&store.store],
                "feeds are taken in by crawls, and lie in the stores of the workers (`--folder` \
                 of `crawl worker`)",
            ),
        },
        Some(Command::Store { command }) => of_store(command),
        Some(_) => ("crawl", Vec::new(), COPY),
    }
}

fn of_store(command: &StoreCommand) -> (&'static str, Vec<&StoreName>, &'static str) {
    match command {
        StoreCommand::Info(store) => {
            ("crawl store info", vec![&store.store], "`crawl stats` tells what it is")
        }
        StoreCommand::Backup(backup) => (
            "crawl store backup",
            vec![&backup.store.store],
            "its nodes keep backups of themselves, and its texts are files; or copy it into a \
             store (`crawl store copy cluster:... DIR`)",
        ),
        StoreCommand::Restore(restore) => (
            "crawl store restore",
            vec![&restore.store],
            "name a folder, and `crawl store copy DIR cluster:...` brings it there",
        ),
        StoreCommand::Compact(compact) => (
            "crawl store compact",
            vec![&compact.store.store],
            "its nodes compact their files themselves (`redis-cli BGREWRITEAOF`)",
        ),
        StoreCommand::Merge(merge) => (
            "crawl store merge",
            merge.stores.iter().chain([&merge.into]).collect(),
            "copy it into a store of this machine (`crawl store copy cluster:... DIR`) and merge \
             that",
        ),
        StoreCommand::Backups(_) | StoreCommand::Verify(_) | StoreCommand::Copy(_) => {
            ("crawl store", Vec::new(), COPY)
        }
    }
}
