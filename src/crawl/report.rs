//! What a run has done, for people and for machines.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::base::clock::Timestamp;
use crate::corpus::clusters::{Article, Joined, Place};
use crate::corpus::dedup::Looked;
use crate::corpus::tables::{COPIES, DOCUMENTS};
use crate::frontier::{
    ADDRESSES, Address, Fate, HOSTS, PageCut, REVISITS, Reason, Settlement, State,
};
use crate::neardup::Key;
use crate::store::{self, COUNTERS, Snapshot, Store, View};
use crate::urls::PageUrl;

use super::no_pages::NoPages;

/// Hosts that a report names.
const HOSTS_MAX: usize = 10;

/// Redirects of a seed that are followed to find out what became of it.
const SEED_HOPS_MAX: usize = 20;

/// Counts of one run, kept by the committer.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub pages: u64,
    pub requests: u64,
    pub new: u64,
    pub by_key: BTreeMap<&'static str, u64>,
    pub takeovers: u64,
    pub moved: u64,
    pub merged: u64,
    pub boilerplate: Boilerplate,
    pub redirects: u64,
    pub retries: u64,
    pub links_beyond: u64,
    pub cut: BTreeMap<&'static str, u64>,
    pub unsent: u64,
    pub unstored: u64,
    pub revisits: Revisits,
    pub kept_out: BTreeMap<String, u64>,
}

impl Tally {
    pub(super) fn looked(&mut self, looked: Looked) {
        self.moved += looked.moved;
        self.merged += looked.merged;
    }

    pub(super) fn settled(&mut self, settlement: &Settlement) {
        self.requests += u64::from(!matches!(settlement, Settlement::LookedUp(_)));
        match settlement {
            Settlement::Redirect(_) => self.redirects += 1,
            Settlement::Busy(_) | Settlement::Failed { again: true, .. } => self.retries += 1,
            _ => {}
        }
    }

    pub(super) fn left_out(&mut self, article: &Article) {
        self.boilerplate.blocks += u64::from(article.left_out);
        self.boilerplate.pages += u64::from(article.left_out > 0);
    }

    pub(super) fn cut(&mut self, cut: Option<PageCut>) {
        if let Some(cut) = cut {
            *self.cut.entry(cut.as_str()).or_default() += 1;
        }
    }

    pub(super) fn joined(&mut self, place: &Place, joined: &Joined) {
        match place {
            Place::New => self.new += 1,
            Place::Tree(matched) => {
                *self.by_key.entry(matched.key.as_str()).or_default() += 1;
                self.takeovers += u64::from(joined.canonical);
            }
        }
    }
}

/// What further visits have shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Revisits {
    /// URLs that became due.
    pub due: u64,
    /// Pages that are not modified, as their servers say (status 304).
    pub unmodified: u64,
    /// Pages that were read and say the same, or nearly the same.
    pub unchanged: u64,
    /// Pages that say something else, or are of another kind.
    pub changed: u64,
    /// Pages that were not there, but may have been missing by an error.
    pub missing: u64,
    /// Pages that are gone.
    pub gone: u64,
    /// Visits whose answer told nothing.
    pub failed: u64,
    /// Documents of which no URL carries a copy any more.
    pub documents_gone: u64,
}

impl Revisits {
    pub(super) fn count(&mut self, fate: Fate) {
        *match fate {
            Fate::Unmodified => &mut self.unmodified,
            Fate::Unchanged => &mut self.unchanged,
            Fate::Changed => &mut self.changed,
            Fate::Missing => &mut self.missing,
            Fate::Gone => &mut self.gone,
            Fate::Failed => &mut self.failed,
        } += 1;
    }

    /// Returns the number of visits that have ended.
    #[must_use]
    pub fn visited(&self) -> u64 {
        let same = self.unmodified + self.unchanged;
        same + self.changed + self.missing + self.gone + self.failed
    }

    /// Returns the share of status 304 among the visits that have ended, 0 to 1.
    #[must_use]
    pub fn unmodified_share(&self) -> f64 {
        self.unmodified as f64 / self.visited().max(1) as f64
    }
}

/// What was left out of texts because its host repeats it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Boilerplate {
    /// Blocks.
    pub blocks: u64,
    /// Pages that they stood on.
    pub pages: u64,
}

/// A seed that is not in the corpus, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeedFailure {
    /// The seed.
    pub url: String,
    /// Code of the reason.
    pub reason: String,
    /// The reason as a sentence.
    pub why: &'static str,
}

/// One line of the table of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostLine {
    /// Scheme, host and port.
    pub host: String,
    /// queued URLs.
    pub queued: u64,
    /// Requests answered, over all runs.
    pub answered: u64,
    /// Requests that got no answer, over all runs.
    pub failed: u64,
    /// Why it is left alone at the moment; empty for no such reason.
    pub trouble: String,
    /// The same as a sentence.
    pub why: &'static str,
}

/// What a run has done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// When it began.
    pub started: String,
    /// Seconds that it took.
    pub seconds: f64,
    /// Pages that were read in this run.
    pub pages: u64,
    /// Pages per second.
    pub pages_per_second: f64,
    /// New documents in this run.
    pub new: u64,
    /// Duplicates in this run, by the key that recognised them.
    pub duplicates: BTreeMap<&'static str, u64>,
    /// Times that a more popular copy became canonical in this run.
    pub takeovers: u64,
    /// Texts that turned out to be no copies when more pages of their kind were known.
    pub moved: u64,
    /// Documents that turned out to be one with another one.
    pub merged: u64,
    /// Blocks that were left out of texts in this run.
    pub boilerplate_removed: Boilerplate,
    /// Redirects in this run.
    pub redirects: u64,
    /// Tries in this run that will be, or were, made again.
    pub retries: u64,
    /// Links in this run that stand on their pages beyond the limit, and were not followed.
    pub links_beyond_limit: u64,
    /// Links that were turned away without a row of their own: the URLs of their host, or
    /// those that its pages name, take as much room as the limit allows.
    pub links_unstored: u64,
    /// Pages in this run of which only the start was read, by what they were too long for.
    pub pages_cut: BTreeMap<&'static str, u64>,
    /// Requests in this run that had to wait because this machine had too few open files or the
    /// like; each was, or will be, sent later.
    pub unsent: u64,
    /// Further visits in this run.
    pub revisits: Revisits,
    /// URLs that are not in the corpus since this run, by reason.
    pub refused: BTreeMap<String, i64>,
    /// URLs that the filter has kept out in this run, by the pattern that did it.
    pub kept_out: BTreeMap<String, u64>,
    /// URLs in the store, by what became of them: each is counted once.
    pub addresses: BTreeMap<&'static str, u64>,
    /// Documents in the store.
    pub documents: u64,
    /// Copies of documents in the store, canonical ones among them.
    pub copies: u64,
    /// URLs that still wait.
    pub queued: u64,
    /// When the next of them may be visited; none if none waits.
    pub next_due: Option<String>,
    /// When the next URL is due for another visit; none if none is.
    pub next_revisit: Option<String>,
    /// Seeds that are not in the corpus.
    pub failed_seeds: Vec<SeedFailure>,
    /// The hosts with most trouble.
    pub hosts: Vec<HostLine>,
    /// Why no page was read in this run; empty if one was.
    pub no_pages: Vec<NoPages>,
}

/// Counters of URLs that are linked to a page unfetched, each with its word: by a rule, and by
/// a duplicate feed.
const SKIPPED: [(&str, &str); 2] = [
    ("addresses.skipped_by_rule", "skipped_by_rule"),
    ("addresses.skipped_by_feed", "skipped_by_feed"),
];

/// What was before the end of a run.
pub(super) struct Past {
    /// URLs that were refused before it, by reason.
    pub refused: BTreeMap<String, i64>,
    /// When it began.
    pub started: Timestamp,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    /// Returns how many URLs are refused, by reason.
    pub fn refused_counts(snapshot: &Snapshot) -> Result<BTreeMap<String, i64>, store::Error> {
        let mut counts = BTreeMap::new();
        for reason in Reason::ALL {
            let name = State::Refused(*reason).counter();
            let count = snapshot.get(COUNTERS, name.as_str())?.unwrap_or(0);
            if count > 0 {
                counts.insert(reason.to_string(), count.cast_signed());
            }
        }
        for (counter, word) in SKIPPED {
            let skipped = snapshot.get(COUNTERS, counter)?.unwrap_or(0);
            if skipped > 0 {
                counts.insert(word.to_owned(), skipped.cast_signed());
            }
        }
        Ok(counts)
    }

    /// Returns how many pages could not be had.
    pub fn errors(view: &impl View) -> Result<u64, store::Error> {
        let mut all = 0;
        for reason in Reason::ALL.iter().filter(|reason| reason.is_error()) {
            let name = State::Refused(*reason).counter();
            all += view.get(COUNTERS, name.as_str())?.unwrap_or(0);
        }
        Ok(all)
    }

    pub(super) fn make(
        store: &Store,
        seeds: &[PageUrl],
        tally: Tally,
        past: Past,
        next_due: Option<Timestamp>,
    ) -> Result<Self, store::Error> {
        let snapshot = store.snapshot()?;
        let mut refused = Self::refused_counts(&snapshot)?;
        for (reason, count) in past.refused {
            *refused.entry(reason).or_default() -= count;
        }
        refused.retain(|_, count| *count != 0);
        let seconds = past.took.as_secs_f64();
        let counter = |name: &str| -> Result<u64, store::Error> {
            Ok(snapshot.get(COUNTERS, name)?.unwrap_or(0))
        };
        Ok(Self {
            started: past.started.to_string(),
            seconds,
            pages: tally.pages,
            pages_per_second: tally.pages as f64 / seconds.max(1e-9),
            new: tally.new,
            duplicates: tally.by_key,
            takeovers: tally.takeovers,
            moved: tally.moved,
            merged: tally.merged,
            boilerplate_removed: tally.boilerplate,
            redirects: tally.redirects,
            retries: tally.retries,
            links_beyond_limit: tally.links_beyond,
            links_unstored: tally.unstored,
            pages_cut: tally.cut,
            unsent: tally.unsent,
            revisits: tally.revisits,
            refused,
            kept_out: tally.kept_out,
            addresses: states(&snapshot)?,
            documents: snapshot.len(DOCUMENTS)?,
            copies: snapshot.len(COPIES)?,
            queued: counter(&State::Queued.counter())?,
            next_due: next_due.map(|due| due.to_string()),
            next_revisit: next_revisit(&snapshot)?,
            failed_seeds: failed_seeds(&snapshot, seeds)?,
            hosts: worst_hosts(&snapshot)?,
            no_pages: Vec::new(),
        })
    }

    /// Returns the number of duplicates in this run.
    #[must_use]
    pub fn duplicates_total(&self) -> u64 {
        self.duplicates.values().sum()
    }

    /// Returns the words for the keys that recognise duplicates.
    pub fn keys() -> impl Iterator<Item = &'static str> {
        Key::ALL.iter().filter(|key| key.finds()).map(|key| key.as_str())
    }
}

/// Returns how many URLs are in each state.
fn states(snapshot: &Snapshot) -> Result<BTreeMap<&'static str, u64>, store::Error> {
    let count = |state: &State| -> Result<u64, store::Error> {
        Ok(snapshot.get(COUNTERS, state.counter().as_str())?.unwrap_or(0))
    };
    let mut skipped = 0;
    for (counter, _) in SKIPPED {
        skipped += snapshot.get(COUNTERS, counter)?.unwrap_or(0);
    }
    let mut states = BTreeMap::from([
        ("queued", count(&State::Queued)?),
        ("skipped", skipped),
        ("stored", count(&State::Stored(0))?),
        ("redirect", count(&State::Redirect(String::new()))?),
    ]);
    let mut refused = 0;
    for reason in Reason::ALL {
        refused += count(&State::Refused(*reason))?;
    }
    states.insert("refused", refused);
    Ok(states)
}

fn next_revisit(snapshot: &Snapshot) -> Result<Option<String>, store::Error> {
    let Some(first) = snapshot.first(REVISITS)? else { return Ok(None) };
    let (due, _) = first.key()?;
    Ok(Some(due.to_string()))
}

/// Returns where a seed leads, and what is known of that; none if nothing is.
pub(super) fn seed_address(
    snapshot: &Snapshot,
    seed: &PageUrl,
) -> Result<Option<(String, Address)>, store::Error> {
    let mut url = seed.as_str().to_owned();
    let mut address = snapshot.get(ADDRESSES, &url)?;
    for _ in 0..SEED_HOPS_MAX {
        match &address {
            Some(Address { state: State::Redirect(target), .. }) => url.clone_from(target),
            _ => break,
        }
        address = snapshot.get(ADDRESSES, &url)?;
    }
    Ok(address.map(|address| (url, address)))
}

fn failed_seeds(snapshot: &Snapshot, seeds: &[PageUrl]) -> Result<Vec<SeedFailure>, store::Error> {
    let mut failed = Vec::new();
    for seed in seeds {
        let reason = match seed_address(snapshot, seed)?.map(|(_, address)| address) {
            Some(Address { state: State::Refused(reason), .. }) => reason,
            Some(Address { state: State::Queued, host, trouble, .. }) => {
                let host = snapshot.get(HOSTS, host)?;
                match trouble.or(host.and_then(|host| host.trouble)) {
                    Some(trouble) => trouble,
                    // It merely waits its turn; the run was ended by a limit.
                    None => continue,
                }
            }
            _ => continue,
        };
        // A page that was fetched and asks not to be stored, or a list, did not fail.
        let fine = [Reason::Noindex, Reason::NoText, Reason::Sitemap, Reason::Feed];
        if !fine.contains(&reason) {
            let (reason, why) = (reason.to_string(), reason.describe());
            failed.push(SeedFailure { url: seed.to_string(), reason, why });
        }
    }
    Ok(failed)
}

fn worst_hosts(snapshot: &Snapshot) -> Result<Vec<HostLine>, store::Error> {
    let mut worst: Vec<HostLine> = Vec::new();
    for row in snapshot.rows(HOSTS)? {
        let host = row?.row()?;
        if host.queued == 0 && host.failed == 0 && host.trouble.is_none() {
            continue;
        }
        worst.push(HostLine {
            host: host.key,
            queued: host.queued,
            answered: host.answered,
            failed: host.failed,
            trouble: host.trouble.map_or(String::new(), |reason| reason.to_string()),
            why: host.trouble.map_or("", Reason::describe),
        });
        if worst.len() > HOSTS_MAX * 10 {
            keep_worst(&mut worst);
        }
    }
    keep_worst(&mut worst);
    Ok(worst)
}

fn keep_worst(hosts: &mut Vec<HostLine>) {
    hosts.sort_by_key(|host| {
        (host.trouble.is_empty(), std::cmp::Reverse((host.failed, host.queued)))
    });
    hosts.truncate(HOSTS_MAX);
}
