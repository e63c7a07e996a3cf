//! What a command says when a disk is full: which file has no room, and how to go on.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::system;
use crate::store::Failure;

use super::args::{Args, Command};
use super::exit;
use super::place::StoreName;
use super::store::StoreCommand;

/// How to go on behind a full disk.
#[derive(Debug, Default)]
pub(super) struct WayOut {
    /// The file of the store that is written, which its database does not name.
    store: Option<PathBuf>,
    /// What the same command does when it is run again.
    again: &'static str,
}

impl WayOut {
    /// Returns that of a command.
    pub(super) fn of(args: &Args) -> Self {
        let (store, again) = match &args.command {
            None => (
                file_of(&args.crawl.store.store, FILE),
                "what is in the store stays, and the crawl goes on behind it",
            ),
            Some(Command::Import(import)) => (
                file_of(&import.store.store, FILE),
                "what is in the store stays, and the import goes on behind it",
            ),
            Some(Command::Rebuild(rebuild)) => (
                file_of(&rebuild.store, FILE),
                "what is in the store stays, and the work goes on behind it",
            ),
            Some(Command::Dedup(_)) => {
                (None, "the run goes on behind what it has read, and the folder needs no cleaning")
            }
            Some(Command::Export(export)) if export.shard_size.is_some() => {
                (None, "shards that are whole are kept, and the export goes on behind them")
            }
            Some(Command::Export(_)) => {
                (None, "the files of an export before are as they were; --shard-size keeps pieces")
            }
            Some(Command::Store { command }) => of_stores(command),
            Some(Command::Serve(serve)) => (file_of(&serve.store.store, FILE), GOES_ON),
            Some(_) => (None, GOES_ON),
        };
        Self { store, again }
    }

    /// Returns an error in words; of a full disk also which file it is, and the way out.
    pub(super) fn told(&self, error: &anyhow::Error) -> String {
        let words = exit::in_words(error);
        if !error.chain().any(is_full) {
            return words;
        }
        let of_database = error.chain().any(|cause| cause.downcast_ref::<Failure>().is_some());
        let file = self.store.as_deref().filter(|_| of_database).map(Path::display);
        let named = file.map_or(words.clone(), |file| format!("cannot write {file}: {words}"));
        let again = if self.again.is_empty() { GOES_ON } else { self.again };
        format!("{named}. Make room on that disk and run the same command again: {again}")
    }
}

/// A file of a store, if it has a folder.
fn file_of(store: &StoreName, file: &str) -> Option<PathBuf> {
    store.own_folder().map(|folder| folder.join(file))
}

/// The file of a store in its folder.
const FILE: &str = "store.redb";

/// One that is not in the place of a store yet.
const UNFINISHED: &str = "store.replacing";

/// What is true of all commands.
const GOES_ON: &str = "what was committed stays";

fn of_stores(command: &StoreCommand) -> (Option<PathBuf>, &'static str) {
    match command {
        StoreCommand::Backup(_) => {
            (None, "earlier backups are as they were, and what is written already is used")
        }
        StoreCommand::Compact(compact) => {
            (file_of(&compact.store.store, UNFINISHED), "the store is as it was")
        }
        StoreCommand::Merge(merge) => (file_of(&merge.into, FILE), of_merge(&merge.into)),
        StoreCommand::Restore(restore) => {
            (file_of(&restore.store, UNFINISHED), "there is no store yet, and the backup is whole")
        }
        _ => (None, GOES_ON),
    }
}

fn of_merge(into: &StoreName) -> &'static str {
    if file_of(into, FILE).is_some_and(|file| file.exists()) {
        "the stores that are read are as they were, and the merge goes on behind what it did"
    } else {
        "the stores that are read are as they were, and what was merged stays"
    }
}

/// Tells whether an error is that of a full disk, or stands around one.
fn is_full(cause: &(dyn Error + 'static)) -> bool {
    if let Some(failure) = cause.downcast_ref::<Failure>() {
        return failure.io().is_some_and(system::is_full);
    }
    let Some(error) = cause.downcast_ref::<io::Error>() else { return false };
    // What an error of one's own stands around is no source of it, but its inside.
    system::is_full(error) || error.get_ref().is_some_and(|inner| chain(inner).any(is_full))
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_with_its_file_and_the_way_out_and_nothing_else_is() {
        let full = || io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
        let way_out =
            WayOut { store: Some("s/store.redb".into()), again: "the import goes on behind it" };
        let inside = anyhow::Error::from(io::Error::other(io::Error::other(full())));
        for error in [full().into(), inside, anyhow::Error::from(full()).context("cannot write x")]
        {
            let told = way_out.told(&error);
            assert!(
                told.contains("No space left") && told.ends_with("goes on behind it"),
                "{told}"
            );
            assert!(!told.contains("store.redb"), "the database had no part in it: {told}");
        }
        let other = anyhow::Error::from(io::Error::from(io::ErrorKind::NotFound));
        assert!(!way_out.told(&other).contains("Make room"));
    }
}
