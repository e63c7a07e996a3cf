//! Why a run has read no page, by host and reason.
//!
//! Seeds tell by what became of them, hosts by what their waiting URLs wait for, the run by
//! how it ended.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::base::clock::Timestamp;
use crate::frontier::{ADDRESSES, HOSTS, LATER, Reason, State};
use crate::store::{self, Snapshot, View as _};
use crate::urls::{HostKey, PageUrl};

use super::report::{Report, seed_address};

/// Reasons that are told; the rest is counted.
const TOLD_MAX: usize = 10;

/// queued URLs for another try and are looked at.
const LATER_MAX: usize = 10_000;

/// Why a run has read no page: one reason of one host, or of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoPages {
    /// Scheme, host and port; empty if it is a reason of the run.
    pub host: String,
    /// Code of the reason: that of a URL, or one of this list. `interrupted`, `open_files`,
    /// `nothing_to_visit`, `visited_before`, `unmodified`, `delay` (of the host), `waits`,
    /// `skipped_by_rule`, `skipped_by_feed`, `more` (further reasons).
    pub reason: String,
    /// The same in words.
    pub text: String,
    /// URLs of which it tells; 0 if it is none of URLs.
    pub addresses: u64,
    /// When the host, or the first URL, may be asked for again; none if that is not it.
    pub until: Option<String>,
}

/// How a run has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunEnd {
    pub now: Timestamp,
    /// It was asked to stop.
    pub stopped: bool,
    /// This machine let no request go.
    pub starved: bool,
    /// It visits pages again.
    pub recrawl: bool,
}

/// The reasons of some hosts, while they are found.
#[derive(Default)]
struct FoundReasons(BTreeMap<(String, String), NoPages>);

impl FoundReasons {
    fn add(&mut self, host: &str, reason: &str, text: String, addresses: u64) -> &mut NoPages {
        let key = (host.to_owned(), reason.to_owned());
        let row = self.0.entry(key).or_insert_with(|| NoPages {
            host: host.to_owned(),
            reason: reason.to_owned(),
            text,
            addresses: 0,
            until: None,
        });
        row.addresses += addresses;
        row
    }
}

/// Returns why a run has read no page; empty if it has read one.
pub(super) fn why(
    snapshot: &Snapshot,
    report: &Report,
    seeds: &[PageUrl],
    end: RunEnd,
) -> Result<Vec<NoPages>, store::Error> {
    if report.pages > 0 {
        return Ok(Vec::new());
    }
    let mut found = FoundReasons::default();
    of_run(&mut found, report, end);
    of_seeds(&mut found, snapshot, seeds, end)?;
    of_waiting(&mut found, snapshot, end.now)?;
    of_refused(&mut found, report);
    if found.0.is_empty() {
        let text = "there is no seed, and no URL is queued".to_owned();
        found.add("", "nothing_to_visit", text, 0);
    }
    Ok(told(found))
}

fn of_run(found: &mut FoundReasons, report: &Report, end: RunEnd) {
    if end.stopped {
        found.add("", "interrupted", "the run was stopped".to_owned(), 0);
    }
    if end.starved {
        let text = "this machine lets no request go: raise the limit of open files (ulimit -n)";
        found.add("", "open_files", text.to_owned(), 0);
    }
    let unmodified = report.revisits.unmodified;
    if unmodified > 0 {
        let text = "visited again, and not modified, as their servers say (304)".to_owned();
        found.add("", "unmodified", text, unmodified);
    }
}

/// What became of the seeds. Those that wait are told of by their hosts.
fn of_seeds(
    found: &mut FoundReasons,
    snapshot: &Snapshot,
    seeds: &[PageUrl],
    end: RunEnd,
) -> Result<(), store::Error> {
    let (mut visited, mut first_due) = (BTreeMap::<String, u64>::new(), None::<Timestamp>);
    for seed in seeds {
        let Some((url, address)) = seed_address(snapshot, seed)? else { continue };
        let host = PageUrl::parse_stored(&url)
            .map_or_else(String::new, |url| HostKey::as_str(&url.host_key()).to_owned());
        match &address.state {
            State::Queued => {}
            State::Stored(_) | State::Redirect(_) => {
                *visited.entry(host).or_default() += 1;
                let due = Some(address.revisit.due).filter(|due| due.0 != 0);
                first_due = first_due.into_iter().chain(due).min();
            }
            State::Refused(reason) => {
                let text = match address.visited {
                    Timestamp(0) => reason.describe().to_owned(),
                    visited => format!("{}, as of {visited}", reason.describe()),
                };
                found.add(&host, reason.as_str(), text, 1);
            }
            State::Skipped { .. } => {
                let text = "by a rule learned from duplicates it is another page".to_owned();
                found.add(&host, "skipped_by_rule", text, 1);
            }
            State::Known { .. } => {
                let text = "by a duplicate feed it is a copy of another page".to_owned();
                found.add(&host, "skipped_by_feed", text, 1);
            }
        }
    }
    let again = match first_due {
        Some(due) if end.recrawl => format!("the next is due for another visit at {due}"),
        _ => "--recrawl visits pages again that are due".to_owned(),
    };
    let all = visited.values().sum::<u64>();
    if all > 0 && all == seeds.len() as u64 {
        let text = format!("every seed was visited before: {again}");
        found.add("", "visited_before", text, all);
        return Ok(());
    }
    for (host, seeds) in visited {
        found.add(&host, "visited_before", format!("visited before: {again}"), seeds);
    }
    Ok(())
}

/// What the URLs wait for that wait.
fn of_waiting(
    found: &mut FoundReasons,
    snapshot: &Snapshot,
    now: Timestamp,
) -> Result<(), store::Error> {
    let mut later: BTreeMap<u32, (u64, Timestamp, Option<Reason>)> = BTreeMap::new();
    for row in snapshot.rows(LATER)?.take(LATER_MAX) {
        let row = row?;
        let (due, (host, _)) = row.key()?;
        let first = later.entry(host).or_insert((0, due, None));
        first.0 += 1;
        if first.0 == 1 {
            let url = row.row()?.url;
            first.2 = snapshot.get(ADDRESSES, &url)?.and_then(|address| address.trouble);
        }
    }
    for row in snapshot.rows(HOSTS)? {
        let row = row?;
        let host = row.row()?;
        let tries = later.remove(&row.key()?);
        let addresses = host.queued + tries.map_or(0, |(count, ..)| count);
        if addresses == 0 {
            continue;
        }
        let next = host.next_allowed.max(host.blocked_until);
        let (reason, text, until) = match (host.trouble, tries) {
            (Some(trouble), _) if host.blocked_until > now => {
                let (until, why) = (host.blocked_until, trouble.describe());
                (trouble.as_str(), format!("backing off until {until}: {why}"), until)
            }
            (trouble, Some((_, due, why))) if host.queued == 0 => {
                let why = why.or(trouble);
                let told = why.map_or(String::new(), |why| format!(", after: {}", why.describe()));
                let reason = why.map_or("waits", Reason::as_str);
                (reason, format!("another try is due at {due}{told}"), due)
            }
            _ if next > now => ("delay", format!("the next request may be sent at {next}"), next),
            (Some(trouble), _) => (trouble.as_str(), trouble.describe().to_owned(), next),
            (None, _) => ("waits", "the run ended before their turn".to_owned(), next),
        };
        let row = found.add(&host.key, reason, text, addresses);
        row.until = (until > now).then(|| until.to_string());
    }
    Ok(())
}

/// Reasons for which URLs were refused in this run and that no seed tells of.
fn of_refused(found: &mut FoundReasons, report: &Report) {
    let named: BTreeSet<&str> = found.0.values().map(|row| row.reason.as_str()).collect();
    let is_news = |reason: &Reason| !reason.is_own() && !named.contains(reason.as_str());
    let mut news = Vec::new();
    for reason in Reason::ALL.iter().filter(|reason| is_news(reason)) {
        let count = report.refused.get(reason.as_str()).map_or(0, |count| (*count).max(0));
        if count > 0 {
            news.push((*reason, count.unsigned_abs()));
        }
    }
    for (reason, count) in news {
        found.add("", reason.as_str(), reason.describe().to_owned(), count);
    }
}

/// The reasons of most URLs; those of the run before all others.
fn told(found: FoundReasons) -> Vec<NoPages> {
    let mut rows: Vec<NoPages> = found.0.into_values().collect();
    rows.sort_by_key(|row| (!row.host.is_empty(), std::cmp::Reverse(row.addresses)));
    if rows.len() > TOLD_MAX {
        let rest = rows.split_off(TOLD_MAX - 1);
        rows.push(NoPages {
            host: String::new(),
            reason: "more".to_owned(),
            text: format!("and {} further reasons: see `crawl explain`", rest.len()),
            addresses: rest.iter().map(|row| row.addresses).sum(),
            until: None,
        });
    }
    rows
}

impl NoPages {
    /// Says it on one line.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { host, text, .. } = self;
        if host.is_empty() { text.clone() } else { format!("{host}: {text}") }
    }
}

impl Report {
    /// Says on one line why the run has read no page; none if it has read one.
    #[must_use]
    pub fn why_no_pages(&self) -> Option<String> {
        let first = self.no_pages.first()?.line();
        Some(match self.no_pages.len() - 1 {
            0 => format!("no page was read: {first}"),
            more => format!("no page was read: {first} (and {more} more)"),
        })
    }
}
