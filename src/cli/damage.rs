//! What a command says of a store that is damaged: which tables, whatever the damage did to it.
//!
//! The database trusts the pages of a file that was closed, and asserts where they make no sense.

use std::error::Error;
use std::panic::{
    AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind, set_hook, take_hook,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::config::Config;
use crate::corpus::{check, dedup, export, search};
use crate::store::{self, Store};
use crate::{crawl, service};
use anyhow::{Result, anyhow};

use super::args::{Args, Command, RulesCommand};
use super::duplicate_feed::DuplicateFeedCommand;
use super::exit::Exit;

/// Returns the folder of the store that a command works on.
pub(super) fn store_of(args: &Args) -> Option<PathBuf> {
    let folder = match args.command.as_ref() {
        None => &args.crawl.store.store,
        Some(Command::Compare(compare)) => compare.store.as_ref()?,
        Some(Command::Search(search)) => &search.store.store,
        Some(Command::Export(export)) if export.from.is_some() => return None,
        Some(Command::Export(export)) => &export.store.store,
        Some(Command::Explain(explain)) => &explain.store.store,
        Some(Command::Inspect(inspect)) => &inspect.store.store,
        Some(Command::Expire(expire)) => &expire.store.store,
        Some(Command::Migrate(migrate)) => &migrate.store.store,
        Some(Command::Serve(serve)) => &serve.store.store,
        Some(Command::Stats(store)) => &store.store,
        Some(Command::Check(check)) => &check.store.store,
        Some(Command::Store { command }) => return command.folder(),
        Some(Command::Follow(follow)) => &follow.store.store,
        Some(Command::Rules { command }) => match command {
            RulesCommand::List { store, .. }
            | RulesCommand::Disable { store, .. }
            | RulesCommand::Enable { store, .. } => &store.store,
        },
        Some(Command::DuplicateFeed { command }) => match command {
            DuplicateFeedCommand::Export(export) => &export.store.store,
            DuplicateFeedCommand::List(store) | DuplicateFeedCommand::Drop { store, .. } => {
                &store.store
            }
        },
        Some(_) => return None,
    };
    folder.own_folder()
}

/// Runs a command. If it fails because its store is damaged, the error names the tables.
pub(super) fn told(folder: Option<PathBuf>, work: impl FnOnce() -> Result<Exit>) -> Result<Exit> {
    let Some(folder) = folder else { return work() };
    let last = Arc::new(Mutex::new(Panicked::default()));
    let (usual, noted) = (take_hook(), last.clone());
    set_hook(Box::new(move |info| {
        // That of the command itself is told when it is known what it means.
        if thread::current().name() == Some("main") {
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = Panicked::new(info);
        } else {
            usual(info);
        }
    }));
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Err(error)) if may_be_damage(&error) => {
            eprintln!("note: {error:#}");
            Err(look(&folder).map_or(error, |damage| in_words(&folder, &damage)))
        }
        Ok(done) => done,
        Err(panic) => {
            // The look may panic as well.
            let last = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(damage) = look(&folder).or(last.damage) {
                return Err(in_words(&folder, &damage));
            }
            eprintln!("{}", last.text);
            resume_unwind(panic)
        }
    }
}

/// The last panic of a command.
#[derive(Debug, Clone, Default)]
struct Panicked {
    text: String,
    /// What the database says of itself, if it was the one that panicked: its tables may all be
    /// sound while its list of free pages is not.
    damage: Option<String>,
}

impl Panicked {
    fn new(info: &PanicHookInfo<'_>) -> Self {
        let in_database = info.location().is_some_and(|at| at.file().contains("redb"));
        let detail = info.payload_as_str().unwrap_or("it cannot be written");
        Self { text: info.to_string(), damage: in_database.then(|| detail.to_owned()) }
    }
}

fn may_be_damage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| match store_error(cause) {
        Some(error) => error.may_be_damage(),
        None => cause.is::<store::BadRow>(),
    })
}

/// Returns the error of the store that another one stands for.
fn store_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a store::Error> {
    if let Some(export::Error::Store(error)) = cause.downcast_ref() {
        return Some(error);
    }
    if let Some(export::WriteError::Store(error)) = cause.downcast_ref() {
        return Some(error);
    }
    if let Some(search::Error::Store(error)) = cause.downcast_ref() {
        return Some(error);
    }
    if let Some(store::BackupError::Store(error)) = cause.downcast_ref() {
        return Some(error);
    }
    let dedup = match (cause.downcast_ref(), cause.downcast_ref()) {
        (Some(crawl::Error::Store(error)), _) | (_, Some(service::Error::Store(error))) => {
            return Some(error);
        }
        (Some(crawl::Error::Dedup(dedup)), _) | (_, Some(service::Error::Dedup(dedup))) => {
            Some(dedup)
        }
        _ => cause.downcast_ref(),
    };
    match dedup {
        Some(dedup::Error::Store(error)) => Some(error),
        _ => cause.downcast_ref(),
    }
}

/// Returns the tables that cannot be read or make no sense; none if all is well, or if not even
/// that can be told. Of a large store that takes minutes.
fn look(folder: &Path) -> Option<String> {
    eprintln!("note: reading all of the store to see what is damaged");
    let unread = store::damaged_tables(folder).ok()?;
    if !unread.is_empty() {
        let each = unread.iter().map(|(table, detail)| format!("table {table}: {detail}"));
        return Some(each.collect::<Vec<_>>().join("; "));
    }
    let checked = catch_unwind(AssertUnwindSafe(|| {
        let store = Store::open_to_read(folder, Config::default().cache_bytes())?;
        check::check(&store.snapshot()?)
    }));
    let tables = match checked {
        Ok(Ok(findings)) => findings.tables().collect::<Vec<_>>().join(", "),
        // What its migration said of it is all that can be told.
        Ok(Err(store::Error::OlderFormat { .. })) => return None,
        Ok(Err(error)) => return Some(error.to_string()),
        Err(_) => return Some("its tables do not fit together".to_owned()),
    };
    (!tables.is_empty()).then(|| format!("rows of the tables {tables} make no sense"))
}

fn in_words(folder: &Path, damage: &str) -> anyhow::Error {
    anyhow!(
        "the store in {} is damaged: {damage}; `crawl check` tells more. Put back a copy of it, or \
         crawl into another folder",
        folder.display()
    )
}
