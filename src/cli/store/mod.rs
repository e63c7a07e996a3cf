//! `crawl store`: what a store is, and stores as a whole: backups, compaction, merging.

mod backup;
mod copy;
mod info;
mod merge;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use crate::config::Config;
use crate::corpus::rewrite;

use super::exit::Exit;
use super::place::StoreArg;
use super::screen::{self, bytes, number};
use backup::{BackupArgs, BackupsArgs, RestoreArgs, VerifyArgs};
use copy::CopyArgs;
use merge::MergeArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Show what a store is: format, number, size, age, settings that are fixed
    Info(StoreArg),
    /// Write a backup into a folder; only what has changed since the last one is written
    Backup(BackupArgs),
    /// List the backups of a folder
    Backups(BackupsArgs),
    /// Read every byte of a backup and compare it with its checksums
    Verify(VerifyArgs),
    /// Make a store of a backup
    Restore(RestoreArgs),
    /// Write a store anew without what is empty in its file, check it, and put it in its place
    Compact(CompactArgs),
    /// Make several stores one
    Merge(MergeArgs),
    /// Copy the documents of a store into another one, from one machine to a cluster or back
    Copy(CopyArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub store: StoreArg,
}

impl StoreCommand {
    /// Returns the folder of the store that the command opens.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        Some(match self {
            Self::Info(store) => store.store.own_folder()?,
            Self::Compact(compact) => compact.store.store.own_folder()?,
            Self::Backup(backup) => backup.store.store.own_folder()?,
            _ => return None,
        })
    }
}

pub(super) fn run(command: StoreCommand, json: bool, quiet: bool) -> Result<Exit> {
    match command {
        StoreCommand::Info(store) => info::info(&store, json),
        StoreCommand::Backup(args) => backup::backup(&args, json),
        StoreCommand::Backups(args) => backup::list(&args, json),
        StoreCommand::Verify(args) => backup::verify(&args, json),
        StoreCommand::Restore(args) => backup::restore(&args, json),
        StoreCommand::Compact(args) => compact(&args, json),
        StoreCommand::Merge(args) => merge::merge(&args, json, quiet),
        StoreCommand::Copy(args) => copy::copy(&args, json, quiet),
    }
}

/// `crawl store compact`.
fn compact(args: &CompactArgs, json: bool) -> Result<Exit> {
    let folder = args.store.folder()?;
    let done = rewrite::compact(folder, Config::default().cache_bytes())?;
    if json {
        return screen::json(&done);
    }
    if done.replaced {
        println!(
            "the store in {} is compacted, and checked: every invariant holds",
            folder.display()
        );
    } else {
        println!("the store in {} would be no smaller: it was left as it is", folder.display());
    }
    screen::facts([
        ("documents", number(done.documents)),
        ("rows", number(done.rows)),
        ("size before", bytes(done.old_bytes)),
        ("size now", bytes(if done.replaced { done.new_bytes } else { done.old_bytes })),
    ])?;
    Ok(Exit::Done)
}
