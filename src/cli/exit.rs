//! Exit codes. Scripts depend on them.

use std::process::ExitCode;

use crate::base::remote;
use crate::corpus::changes::ChangesError;
use crate::corpus::merge::MergeError;
use crate::corpus::transfer::TransferError;
use crate::corpus::{dedup, export, files, import, search, shared};
use crate::frontier::duplicate_feed;
use crate::neardup;
use crate::text::features;
use crate::web::fetch;
use crate::{cluster, config, crawl, service, store, urls};

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All done.
    Done = 0,
    /// It failed.
    Failed = 1,
    /// Bad usage or input.
    Usage = 2,
    /// Finished, but some seeds could not be crawled.
    SeedsFailed = 3,
    /// Interrupted and safely stopped.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Bad usage or input, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub String);

/// Returns the code for an error: 2 where the input is at fault, else 1.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    let input = error.chain().any(|cause| {
        is_store(cause)
            || cause.is::<Usage>()
            || matches!(
                cause.downcast_ref::<service::Error>(),
                Some(service::Error::Open(_) | service::Error::Token { .. })
            )
            || cause.is::<config::Error>()
            || cause.is::<neardup::Error>()
            || cause.is::<urls::FilterError>()
            || matches!(
                cause.downcast_ref(),
                Some(crawl::Error::Filter(_) | crawl::Error::Dedup(dedup::Error::Settings(_)))
            )
            || cause.is::<dedup::Error>()
            || cause.is::<features::Error>()
            || matches!(cause.downcast_ref(), Some(search::Error::Foreign(_)))
            || is_feed(cause)
            || cause.downcast_ref().is_some_and(export::Error::is_usage)
            || cause.downcast_ref().is_some_and(|error: &remote::Error| error.is_usage)
            || matches!(
                cause.downcast_ref(),
                Some(crawl::Error::Remote(error)) if error.is_usage
            )
            || is_input(cause.downcast_ref::<files::Error>())
            || is_import(cause)
            || is_cluster(cause)
            || is_setting(cause)
            || is_worker(cause)
    });
    if input { Exit::Usage } else { Exit::Failed }
}

/// Tells whether the store that was named is at fault, and not the machine.
fn is_store(cause: &(dyn std::error::Error + 'static)) -> bool {
    let store = |error: &store::Error| {
        matches!(
            error,
            store::Error::Missing(_)
                | store::Error::Exists(_)
                | store::Error::Setting { .. }
                | store::Error::NewerFormat { .. }
                | store::Error::OlderFormat { .. }
        )
    };
    let backup = |error: &store::BackupError| match error {
        store::BackupError::Store(error) => store(error),
        store::BackupError::Foreign(_)
        | store::BackupError::OtherStore { .. }
        | store::BackupError::Unknown { .. }
        | store::BackupError::Empty(_) => true,
        _ => false,
    };
    let merge = |error: &MergeError| match error {
        MergeError::Store(error) => store(error),
        MergeError::Twice(_) | MergeError::Alone | MergeError::Setting { .. } => true,
        _ => false,
    };
    cause.downcast_ref().is_some_and(store)
        || cause.downcast_ref().is_some_and(backup)
        || cause.downcast_ref().is_some_and(merge)
        || matches!(
            cause.downcast_ref(),
            Some(ChangesError::NoCursor(_) | ChangesError::Other | ChangesError::TooOld)
        )
}

/// Tells whether a setting of the client is at fault, and not the machine.
fn is_setting(cause: &(dyn std::error::Error + 'static)) -> bool {
    let error = match cause.downcast_ref() {
        Some(crawl::Error::Fetch(error)) => Some(error),
        _ => cause.downcast_ref(),
    };
    error.is_some_and(|error: &fetch::Error| !matches!(error, fetch::Error::Client(_)))
}

/// Tells whether what a worker was told is at fault, and not the cluster.
fn is_worker(cause: &(dyn std::error::Error + 'static)) -> bool {
    use crate::cluster::Error;
    use crawl::WorkerError::{Cluster, Setting, Stores, StoresGone};
    matches!(
        cause.downcast_ref(),
        Some(
            Setting(_)
                | Stores { .. }
                | StoresGone { .. }
                | Cluster(Error::Setting { .. } | Error::Url(_) | Error::File { .. })
        )
    )
}

/// Tells whether a duplicate feed is at fault, and not the store.
fn is_feed(cause: &(dyn std::error::Error + 'static)) -> bool {
    let feed = match cause.downcast_ref() {
        Some(crawl::Error::DuplicateFeed(feed)) => Some(feed),
        _ => cause.downcast_ref(),
    };
    feed.is_some_and(|error| !matches!(error, duplicate_feed::Error::Store(_)))
}

/// Tells whether a file that was named is at fault.
fn is_input(error: Option<&files::Error>) -> bool {
    match error {
        Some(files::Error::Io { source, .. } | files::Error::Read { source, .. }) => {
            source.kind() == std::io::ErrorKind::NotFound
        }
        Some(files::Error::Remote(error)) => error.is_usage,
        Some(files::Error::Output(_) | files::Error::Work(_) | files::Error::Write(_)) | None => {
            false
        }
        Some(_) => true,
    }
}

/// Tells whether a cluster was named wrongly, or has something else than was said.
fn is_cluster(cause: &(dyn std::error::Error + 'static)) -> bool {
    let cluster = |error: &cluster::Error| {
        matches!(error, cluster::Error::Url(_) | cluster::Error::Setting { .. })
    };
    // Others stand for it.
    let of_worker = match cause.downcast_ref() {
        Some(crawl::WorkerError::Corpus(error)) => Some(error),
        _ => cause.downcast_ref(),
    };
    let shared = match (cause.downcast_ref(), cause.downcast_ref(), cause.downcast_ref()) {
        (Some(service::Error::Shared(error)), ..)
        | (_, Some(import::Error::Shared(error)), _)
        | (.., Some(TransferError::Shared(error))) => Some(error),
        _ => of_worker,
    };
    match shared {
        Some(shared::Error::Cluster(error)) => cluster(error),
        Some(
            shared::Error::Missing(_)
            | shared::Error::NoTexts(_)
            | shared::Error::OtherTexts { .. },
        ) => true,
        Some(_) => false,
        None => {
            cause.downcast_ref().is_some_and(cluster)
                || cause.downcast_ref().is_some_and(TransferError::is_usage)
        }
    }
}

/// Tells whether what was to be imported is at fault, and not the store.
fn is_import(cause: &(dyn std::error::Error + 'static)) -> bool {
    match cause.downcast_ref() {
        Some(import::Error::Files(error)) => is_input(Some(error)),
        Some(import::Error::Dedup(error)) => matches!(error, dedup::Error::Settings(_)),
        _ => false,
    }
}

/// Returns an error with its causes, each once: some tell their cause themselves.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            let gap = if text.is_empty() { "" } else { ": " };
            text = format!("{text}{gap}{cause}");
        }
    }
    text
}

/// Tells whether the reader of our output went away, as `head` does.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.into_iter().any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
