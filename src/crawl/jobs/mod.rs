//! Scheduled jobs: crawls that run by a cron line or an interval, with a history of their runs.
//!
//! The scheduler neither waits nor starts a thread: it is asked what is due at a moment, and told
//! what has ended. So a day of jobs is simulated in a blink, and `kill -9` loses nothing but the
//! run that it cuts. The runner is what waits, works and listens.

mod file;
mod history;
mod plan;
mod row;
mod runner;
mod schedule;
mod scheduler;

use std::path::PathBuf;
use std::time::Duration;

use crate::corpus::export::{Compression, Expression, Fields, Format, ShardSize};
use crate::store;
use crate::urls::PageUrl;

pub use file::{Fault, JobsFile, key_lines};
pub use history::{History, Lock};
pub use plan::{CatchUp, CronRule, JobProgress, Planned};
pub use row::{Outcome, Run, RunCounts, Trigger};
pub use runner::{Event, JobRow, JobWork, JobsHandle, Refusal, Runner};
pub use schedule::Schedule;
pub use scheduler::{BegunRun, Scheduler, Stage, Start};

/// What stops the scheduler. A job that fails is never among the reasons.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The history cannot be read or written.
    #[error(transparent)]
    History(#[from] store::Error),
    /// The folder of the locks cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// No thread can start for a run.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// Two schedulers would run everything twice.
    #[error("another scheduler runs with the history {}", .0.display())]
    Second(PathBuf),
}

/// Settings of the scheduler itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobsSettings {
    /// Jobs that run at a time.
    pub at_once: usize,
    /// File of the history.
    pub history: PathBuf,
    /// Rows of the history that are kept of each job.
    pub history_max: usize,
    /// A moment counts as missed if it is this much in the past.
    pub late_max: Duration,
}

impl Default for JobsSettings {
    fn default() -> Self {
        Self {
            at_once: 1,
            history: PathBuf::from("jobs.redb"),
            history_max: 1_000,
            late_max: Duration::from_mins(10),
        }
    }
}

/// Where a job starts to crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seeds {
    /// A file, read when the run begins.
    File(PathBuf),
    /// These URLs.
    List(Vec<PageUrl>),
    /// It does not crawl.
    None,
}

/// What a run removes after its crawl, and before its export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expire {
    /// Documents that had no new copy for this long.
    pub older_than: Duration,
    /// Also if they are more than half of the store.
    pub more_than_half: bool,
}

/// An export after each run that ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Folder to write to, or a URL of one in object storage.
    pub folder: PathBuf,
    /// Output format.
    pub format: &'static Format,
    /// Which documents; all without it.
    pub filter: Option<Expression>,
    /// What is told of each document; what is usual without it.
    pub fields: Option<Fields>,
    /// How much a file holds; all without it.
    pub shard: Option<ShardSize>,
    /// Compression; what is usual for the format without it.
    pub compression: Option<Compression>,
}

/// A request that tells how a run ended.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Where it goes. It may hold a secret: only its host is ever shown.
    pub url: url::Url,
    /// File of a token that is sent as `Authorization: Bearer`; read anew each time, never shown.
    pub token_file: Option<PathBuf>,
    /// Longest time for one try.
    pub timeout: Duration,
    /// Tries after the first one failed.
    pub retries: u32,
    /// It may go to a private or loopback address.
    pub allow_private: bool,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

/// A program that is told how a run ended.
#[derive(Clone, PartialEq, Eq)]
pub struct JobCommand {
    /// The program and its arguments; no shell reads them. Only the program is ever shown.
    pub run: Vec<String>,
    /// Time after which it is ended.
    pub timeout: Duration,
}

impl std::fmt::Debug for JobCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobCommand").field("program", &self.run.first()).finish_non_exhaustive()
    }
}

/// One job of the file.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its name: letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// Line of the file on which it begins.
    pub line: usize,
    /// Where it starts.
    pub seeds: Seeds,
    /// Folder of the store.
    pub store: PathBuf,
    /// Settings file.
    pub settings_file: Option<PathBuf>,
    /// Settings that win over that file, in its sections.
    pub settings: toml::Table,
    /// When it is due, and what happens to moments that were missed.
    pub rule: CronRule,
    /// Time after which a run is stopped; what is left waits for the next one.
    pub time_max: Option<Duration>,
    /// What is removed after a run.
    pub expire: Option<Expire>,
    /// Export after a run.
    pub export: Option<Export>,
    /// Request after a run.
    pub webhook: Option<Webhook>,
    /// Program after a run.
    pub command: Option<JobCommand>,
}
