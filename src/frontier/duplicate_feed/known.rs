//! The feeds of a store: what they say of a URL, and how far each is believed.

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

use crate::frontier::tables::{DUPLICATES, FEED_HOSTS, FEEDS, KNOWN_PAGES, KNOWN_SKIPPED};
use crate::store::{Batch, Error, Update as _, View};

use super::rows::{Feed, Role};
use super::{Config, FeedItem};

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// What a feed says of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedSays {
    /// Number of the feed.
    pub feed: u64,
    /// What the URL is by it.
    pub role: Role,
}

impl FeedSays {
    /// The URL is that of a document, and no copy.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        matches!(self.role, Role::Canonical { .. })
    }
}

/// Writes what a feed says of a copy and of its canonical URL.
pub(super) fn put(batch: &mut Batch, feed: u64, item: &FeedItem) -> Result<(), Error> {
    if item.url == item.canonical {
        return Ok(());
    }
    let copy = Role::Copy { of: item.canonical, day: item.day };
    batch.put(DUPLICATES, (item.url, feed), &copy)?;
    if !batch.has(DUPLICATES, (item.canonical, feed))? {
        let canonical = Role::Canonical { doc_id: item.doc_id };
        batch.put(DUPLICATES, (item.canonical, feed), &canonical)?;
    }
    Ok(())
}

/// Returns what the feeds of a store say of a URL, those that were taken in last first.
pub fn said_of(view: &impl View, url: &str) -> Result<Vec<FeedSays>, Error> {
    let mut found = Vec::new();
    for entry in view.under(DUPLICATES, xxh3_128(url.as_bytes()))?.rev() {
        let entry = entry?;
        found.push(FeedSays { feed: entry.key()?.1, role: entry.row()? });
    }
    Ok(found)
}

/// All feeds of a store, in memory; their duplicates stay on disk.
#[derive(Debug, Default)]
pub struct Known {
    config: Config,
    feeds: BTreeMap<u64, Feed>,
    in_force: BTreeSet<u64>,
    changed: BTreeSet<u64>,
}

impl Known {
    /// Reads the feeds of a store, of which those of `in_force` are used.
    pub fn open(batch: &Batch, config: Config, in_force: &[u64]) -> Result<Self, Error> {
        let mut feeds = BTreeMap::new();
        for entry in batch.rows(FEEDS)? {
            let entry = entry?;
            feeds.insert(entry.key()?, entry.row()?);
        }
        let used = |number: &u64| feeds.get(number).is_some_and(|feed| feed.complete && !feed.lost);
        let in_force = in_force.iter().copied().filter(used).collect();
        Ok(Self { config, feeds, in_force, changed: BTreeSet::new() })
    }

    /// Tells whether no feed is used.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.in_force.is_empty()
    }

    /// Tells whether any URL is not fetched because of a feed.
    #[must_use]
    pub fn have_skipped(&self) -> bool {
        self.feeds.values().any(|feed| feed.skipped > 0)
    }

    /// Returns the feeds that are not believed any more and still hold URLs back.
    #[must_use]
    pub fn to_release(&self) -> Vec<u64> {
        let left = |feed: &Feed| feed.lost && feed.skipped > 0;
        self.feeds.iter().filter(|(_, feed)| left(feed)).map(|(number, _)| *number).collect()
    }

    /// Returns what the feeds in force say of a URL.
    pub fn said_of(&self, batch: &Batch, url: &str) -> Result<Vec<FeedSays>, Error> {
        if self.is_idle() {
            return Ok(Vec::new());
        }
        let mut said = said_of(batch, url)?;
        said.retain(|said| self.in_force.contains(&said.feed));
        Ok(said)
    }

    /// Tells whether a feed is still believed for a host.
    pub fn is_believed(batch: &Batch, feed: u64, host: &str) -> Result<bool, Error> {
        let row = batch.get(FEED_HOSTS, (feed, host))?;
        Ok(row.is_none_or(|row| row.failed == 0))
    }

    /// Notes that a feed could spare a copy of a host. Returns whether the copy is to be fetched
    /// all the same: by turn and not by chance, so that a feed that is wrong is found out in time.
    ///
    /// The turns of a host begin at a place that its name decides, so that many small hosts are
    /// looked at as often as a large one. A feed that has not proved itself has the first copy of
    /// each host looked at.
    pub fn take_turn(&mut self, batch: &mut Batch, feed: u64, host: &str) -> Result<bool, Error> {
        let (one_in, Some(known)) = (self.config.explore_one_in, self.feeds.get(&feed)) else {
            return Ok(false);
        };
        let row = batch.get(FEED_HOSTS, (feed, host))?;
        let is_first = row.is_none() && known.held < self.config.proof_pairs;
        let mut row = row.unwrap_or_default();
        row.turn += 1;
        batch.put(FEED_HOSTS, (feed, host), &row)?;
        let start = xxh3_64_with_seed(host.as_bytes(), known.sum as u64);
        Ok(one_in > 0 && (is_first || (start % one_in + row.turn).is_multiple_of(one_in)))
    }

    /// Notes a duplicate that was looked at. Returns whether the feed has just lost its force for
    /// the host, or as a whole.
    pub fn note(
        &mut self,
        batch: &mut Batch,
        feed: u64,
        host: &str,
        held: bool,
    ) -> Result<Option<Lost>, Error> {
        let Some(known) = self.feeds.get_mut(&feed) else { return Ok(None) };
        let mut row = batch.get(FEED_HOSTS, (feed, host))?.unwrap_or_default();
        let was_believed = row.failed == 0;
        (row.held, row.failed) = (row.held + u64::from(held), row.failed + u64::from(!held));
        (known.held, known.failed) =
            (known.held + u64::from(held), known.failed + u64::from(!held));
        self.changed.insert(feed);
        batch.put(FEED_HOSTS, (feed, host), &row)?;
        if held || !was_believed {
            return Ok(None);
        }
        known.lost_hosts += 1;
        tracing::warn!(feed = known.name, host, "a feed was wrong: not believed for this host");
        let most = self.config.lost_hosts_max;
        if most > 0 && known.lost_hosts >= most {
            known.lost = true;
            self.in_force.remove(&feed);
            tracing::warn!(feed = known.name, "a feed was wrong for several hosts: not believed");
            return Ok(Some(Lost::Wholly));
        }
        Ok(Some(Lost::Host))
    }

    /// Names the URL of a canonical page, if it is one of any feed in force.
    pub fn note_page(&self, batch: &mut Batch, url: &str) -> Result<(), Error> {
        let said = self.said_of(batch, url)?;
        if said.iter().any(FeedSays::is_canonical) {
            batch.put(KNOWN_PAGES, (xxh3_128(url.as_bytes()), None), &url.to_owned())?;
        }
        Ok(())
    }

    /// Lets a stored copy stand for its canonical page, which is not stored.
    pub fn stand_in(batch: &mut Batch, canonical: u128, feed: u64, url: &str) -> Result<(), Error> {
        batch.put(KNOWN_PAGES, (canonical, Some(feed)), &url.to_owned())
    }

    /// Notes that a URL is not fetched because of a feed.
    pub fn note_skipped(
        &mut self,
        batch: &mut Batch,
        feed: u64,
        of: &str,
        url: &str,
    ) -> Result<(), Error> {
        batch.put(KNOWN_SKIPPED, (xxh3_128(of.as_bytes()), url), &feed)?;
        if let Some(known) = self.feeds.get_mut(&feed) {
            known.skipped += 1;
            self.changed.insert(feed);
        }
        Ok(())
    }

    /// Takes a URL out of the list of those that are not fetched.
    pub fn release(&mut self, batch: &mut Batch, of: &str, url: &str) -> Result<(), Error> {
        let feed = batch.take(KNOWN_SKIPPED, (xxh3_128(of.as_bytes()), url))?;
        let Some(feed) = feed else { return Ok(()) };
        if let Some(known) = self.feeds.get_mut(&feed) {
            known.skipped = known.skipped.saturating_sub(1);
            self.changed.insert(feed);
        }
        Ok(())
    }

    /// Writes what has changed.
    pub fn flush(&mut self, batch: &mut Batch) -> Result<(), Error> {
        for number in std::mem::take(&mut self.changed) {
            batch.put(FEEDS, number, &self.feeds[&number])?;
        }
        Ok(())
    }

    /// Takes a feed out of use for good. Returns false if there is no such feed.
    pub fn drop_feed(batch: &mut Batch, number: u64) -> Result<bool, Error> {
        let Some(mut feed) = batch.get(FEEDS, number)? else { return Ok(false) };
        feed.lost = true;
        batch.put(FEEDS, number, &feed)?;
        Ok(true)
    }
}

/// How much of its force a feed has lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// For one host.
    Host,
    /// For all.
    Wholly,
}
