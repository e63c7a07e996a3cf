//! `crawl follow`: new, changed and ended documents, as lines of JSON.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::base::clock::Clock;
use crate::config::Config;
use crate::corpus::changes::{self, ChangesCursor, Shown};
use crate::store::{self, Store};

use super::exit::{Exit, Usage};
use super::place::StoreArg;
use super::screen::json_lines;
use super::service_client::{ServiceArg, ServiceClient, ServiceProblem};
use super::settings;

/// Changes of one part.
const PART_MAX: usize = 500;

/// For how long the service is asked to wait for a change.
const WAIT: &str = "20s";

/// Time between two looks into a store that nobody serves.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Longest time between two tries to reach a service that does not answer.
const RETRY_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, ClapArgs)]
pub(crate) struct FollowArgs {
    #[command(flatten)]
    pub store: StoreArg,
    #[command(flatten)]
    pub service: ServiceArg,
    /// Go on behind this cursor: what `cursor` of a line says; `now` for what comes from now on.
    /// Without it, all documents come first
    #[arg(long, value_name = "CURSOR")]
    pub since: Option<String>,
    /// Wait for further changes, until Ctrl-C
    #[arg(short, long)]
    pub follow: bool,
    /// Settings file, of which the section `export` is used
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Lines of one part.
struct Part {
    changes: Vec<String>,
    next: String,
    more: bool,
}

/// `crawl follow`.
pub(super) fn follow(args: &FollowArgs) -> Result<Exit> {
    if let Some(since) = args.since.as_deref().filter(|since| !["", "now"].contains(since)) {
        since.parse::<ChangesCursor>().map_err(|error| Usage(error.to_string()))?;
    }
    match &args.service.from {
        Some(base) => {
            let client = ServiceClient::new(base, args.service.token_file.as_deref())?;
            from_service(args, &client)
        }
        None => from_store(args),
    }
}

/// Writes a part. Ends if nobody reads on.
fn write(part: &Part) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for line in &part.changes {
        writeln!(out, "{}", json_lines(line))?;
    }
    Ok(out.flush()?)
}

fn from_service(args: &FollowArgs, client: &ServiceClient) -> Result<Exit> {
    let mut cursor = args.since.clone();
    let mut rest = LOOK_EVERY;
    loop {
        let place = cursor.as_ref().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        let wait = if args.follow { format!("&wait={WAIT}") } else { String::new() };
        let answer = client.get(&format!("/v1/changes?limit={PART_MAX}{place}{wait}"));
        let part = match answer {
            Ok(text) => part_of(&text)?,
            Err(error) if args.follow && may_pass(&error) => {
                eprintln!("note: {error:#}; trying again in {} s", rest.as_secs());
                thread::sleep(rest);
                rest = (rest * 2).min(RETRY_MAX);
                continue;
            }
            Err(error) => return Err(error),
        };
        rest = LOOK_EVERY;
        write(&part)?;
        cursor = Some(part.next);
        if !part.more && !args.follow {
            return Ok(Exit::Done);
        }
    }
}

/// Tells whether the service may answer later: it does not answer, or says that it cannot now.
fn may_pass(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<ServiceProblem>() {
        Some(problem) => matches!(problem.status, 429 | 500..),
        None => true,
    }
}

/// Takes the lines of an answer apart: the last one says where the next answer goes on.
fn part_of(text: &str) -> Result<Part> {
    let mut changes: Vec<String> = text.lines().map(str::to_owned).collect();
    let end = changes.pop().unwrap_or_default();
    let end: serde_json::Value = serde_json::from_str(&end)?;
    let next = end["next"].as_str().map(str::to_owned);
    let next = next.ok_or_else(|| anyhow::anyhow!("the answer of the service is cut short"))?;
    Ok(Part { changes, next, more: end["more"] == true })
}

fn from_store(args: &FollowArgs) -> Result<Exit> {
    let honour = settings::read(args.config.as_deref())?.config.export.honour;
    let mut cursor = args.since.clone();
    let mut told = false;
    loop {
        let store = match open(args.store.folder()?) {
            Err(store::Error::InUse(path)) if args.follow => {
                if !std::mem::replace(&mut told, true) {
                    eprintln!(
                        "note: {} is in use by another process: waiting for its end; with --from, \
                         its service is asked",
                        path.display()
                    );
                }
                thread::sleep(LOOK_EVERY);
                continue;
            }
            Err(error @ store::Error::InUse(_)) => {
                let hint = "name its service to read beside it: --from http://127.0.0.1:8080";
                return Err(anyhow::Error::new(error).context(hint));
            }
            opened => opened?,
        };
        let snapshot = store.snapshot()?;
        let mut at = match cursor.as_deref() {
            None | Some("") => ChangesCursor::first(&snapshot)?,
            Some("now") => ChangesCursor::last(&snapshot)?,
            Some(cursor) => cursor.parse()?,
        };
        loop {
            let shown = Shown { honour: &honour, now: Clock::System.now() };
            let part = changes::changes(&snapshot, &at, PART_MAX, shown)?;
            let lines = part.changes.iter().map(serde_json::to_string);
            let changes = lines.collect::<Result<Vec<_>, _>>()?;
            write(&Part { changes, next: part.next.to_string(), more: part.more })?;
            at = part.next;
            if !part.more {
                break;
            }
        }
        cursor = Some(at.to_string());
        if !args.follow {
            return Ok(Exit::Done);
        }
        drop((snapshot, store));
        thread::sleep(LOOK_EVERY);
    }
}

fn open(folder: &Path) -> Result<Store, store::Error> {
    Store::open_to_read(folder, Config::default().cache_bytes())
}
