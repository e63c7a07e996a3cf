//! The feeds of a store: what they say of an address, and how far each is believed.
//!
//! Row of `verdicts`: key: hash of an address (16 bytes), number of the feed (8 bytes); value of a
//! copy: version 1, hash of the canonical address, day; of a canonical address: version 2, docId.
//!
//! Row of `known_pages`: key: hash of a canonical address (16 bytes); value: the address, as it is
//! known here. With the number of a feed behind it (8 bytes), the key is that of the first copy
//! that was stored while the canonical page was not: it stands for it.
//!
//! Row of `known_skipped`: key: hash of the address that stands for it (16 bytes), the address that
//! is not fetched; value: number of the feed.

use std::collections::{BTreeMap, BTreeSet};

use redb::ReadableTable;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

use crate::store::{BadRow, Decoder, Encoder, Error, Tables};

use super::rows::{Feed, FeedHost, feed_host_key};
use super::{Config, Item};

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// What a feed says of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// Number of the feed.
    pub feed: u64,
    /// Of a copy, hash of the canonical address and the day; of a canonical address, none.
    pub copy_of: Option<(u128, u64)>,
}

fn verdict_key(url: u128, feed: u64) -> [u8; 24] {
    let mut key = [0; 24];
    key[..16].copy_from_slice(&url.to_be_bytes());
    key[16..].copy_from_slice(&feed.to_be_bytes());
    key
}

/// Writes what a feed says of a copy and of its canonical address.
pub(super) fn put(tables: &mut Tables<'_>, feed: u64, item: &Item) -> Result<(), Error> {
    if item.url == item.canonical {
        return Ok(());
    }
    let row = Encoder::new(1).wide(item.canonical).number(item.day).finish();
    tables.verdicts.insert(verdict_key(item.url, feed).as_slice(), row.as_slice())?;
    let key = verdict_key(item.canonical, feed);
    if tables.verdicts.get(key.as_slice())?.is_none() {
        let row = Encoder::new(2).wide(item.doc_id).finish();
        tables.verdicts.insert(key.as_slice(), row.as_slice())?;
    }
    Ok(())
}

/// Returns what the feeds of a store say of an address, those that were taken in last first.
pub fn said_of(
    verdicts: &impl ReadableTable<&'static [u8], &'static [u8]>,
    url: &str,
) -> Result<Vec<Said>, Error> {
    let hash = xxh3_128(url.as_bytes());
    let (first, last) = (verdict_key(hash, 0), verdict_key(hash, u64::MAX));
    let mut found = Vec::new();
    for row in verdicts.range(first.as_slice()..=last.as_slice())?.rev() {
        let (key, row) = row?;
        let bad = BadRow { kind: "verdict", detail: "its key has not 24 bytes" };
        let feed = key.value().last_chunk().copied().map(u64::from_be_bytes).ok_or(bad)?;
        let copy_of = if row.value().first() == Some(&2) {
            None
        } else {
            let mut row = Decoder::new("verdict", 1, row.value())?;
            Some((row.wide()?, row.number()?))
        };
        found.push(Said { feed, copy_of });
    }
    Ok(found)
}

/// Returns the identifier that a feed gives the document of a canonical address.
pub fn canonical_id(
    verdicts: &impl ReadableTable<&'static [u8], &'static [u8]>,
    canonical: u128,
    feed: u64,
) -> Result<Option<u128>, Error> {
    let Some(row) = verdicts.get(verdict_key(canonical, feed).as_slice())? else { return Ok(None) };
    let row = Decoder::new("verdict", 2, row.value());
    Ok(row.and_then(|mut row| row.wide()).ok())
}

/// Returns the address of a canonical page that is known here, or, for a feed, that of the copy
/// that stands for it.
pub fn page_of(
    pages: &impl ReadableTable<&'static [u8], &'static str>,
    canonical: u128,
    feed: Option<u64>,
) -> Result<Option<String>, Error> {
    let row = pages.get(page_key(canonical, feed).as_slice())?;
    Ok(row.map(|row| row.value().to_owned()))
}

fn page_key(canonical: u128, feed: Option<u64>) -> Vec<u8> {
    let mut key = canonical.to_be_bytes().to_vec();
    key.extend(feed.into_iter().flat_map(u64::to_be_bytes));
    key
}

/// Key of `known_skipped`.
#[must_use]
pub fn skipped_key(of: &str, address: &str) -> Vec<u8> {
    let mut key = xxh3_128(of.as_bytes()).to_be_bytes().to_vec();
    key.extend_from_slice(address.as_bytes());
    key
}

/// Takes a key of `known_skipped` apart: the address that is not fetched.
pub fn split_skipped_key(key: &[u8]) -> Result<&str, BadRow> {
    let bad = |detail| BadRow { kind: "known copy", detail };
    let (_, address) = key.split_first_chunk::<16>().ok_or_else(|| bad("its key is cut short"))?;
    std::str::from_utf8(address).map_err(|_| bad("its address is not UTF-8"))
}

/// All feeds of a store, in memory; their verdicts stay on disk.
#[derive(Debug, Default)]
pub struct Known {
    config: Config,
    feeds: BTreeMap<u64, Feed>,
    in_force: BTreeSet<u64>,
    changed: BTreeSet<u64>,
}

impl Known {
    /// Reads the feeds of a store, of which those of `in_force` are used.
    pub fn open(tables: &Tables<'_>, config: Config, in_force: &[u64]) -> Result<Self, Error> {
        let mut feeds = BTreeMap::new();
        for row in tables.feeds.iter()? {
            let (number, row) = row?;
            feeds.insert(number.value(), Feed::decode(row.value())?);
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

    /// Tells whether any address is not fetched because of a feed.
    #[must_use]
    pub fn have_skipped(&self) -> bool {
        self.feeds.values().any(|feed| feed.skipped > 0)
    }

    /// Returns the feeds that are not believed any more and still hold addresses back.
    #[must_use]
    pub fn to_release(&self) -> Vec<u64> {
        let left = |feed: &Feed| feed.lost && feed.skipped > 0;
        self.feeds.iter().filter(|(_, feed)| left(feed)).map(|(number, _)| *number).collect()
    }

    /// Returns what the feeds in force say of an address.
    pub fn said_of(&self, tables: &Tables<'_>, url: &str) -> Result<Vec<Said>, Error> {
        if self.is_idle() {
            return Ok(Vec::new());
        }
        let mut said = said_of(&tables.verdicts, url)?;
        said.retain(|said| self.in_force.contains(&said.feed));
        Ok(said)
    }

    /// Tells whether a feed is still believed for a host.
    pub fn is_believed(&self, tables: &Tables<'_>, feed: u64, host: &str) -> Result<bool, Error> {
        let row = FeedHost::read(&tables.feed_hosts, feed, host)?;
        Ok(row.is_none_or(|row| row.failed == 0))
    }

    /// Notes that a feed could spare a copy of a host. Returns whether the copy is to be fetched
    /// all the same: by turn and not by chance, so that a feed that is wrong is found out in time.
    ///
    /// The turns of a host begin at a place that its name decides, so that many small hosts are
    /// looked at as often as a large one. A feed that has not proved itself has the first copy of
    /// each host looked at.
    pub fn take_turn(
        &mut self,
        tables: &mut Tables<'_>,
        feed: u64,
        host: &str,
    ) -> Result<bool, Error> {
        let (one_in, Some(known)) = (self.config.explore_one_in, self.feeds.get(&feed)) else {
            return Ok(false);
        };
        let row = FeedHost::read(&tables.feed_hosts, feed, host)?;
        let is_first = row.is_none() && known.held < self.config.proof_pairs;
        let mut row = row.unwrap_or_default();
        row.turn += 1;
        tables.feed_hosts.insert(feed_host_key(feed, host).as_slice(), row.encode().as_slice())?;
        let start = xxh3_64_with_seed(host.as_bytes(), known.sum as u64);
        Ok(one_in > 0 && (is_first || (start % one_in + row.turn).is_multiple_of(one_in)))
    }

    /// Notes a verdict that was looked at. Returns whether the feed has just lost its force for
    /// the host, or as a whole.
    pub fn note(
        &mut self,
        tables: &mut Tables<'_>,
        (feed, host): (u64, &str),
        held: bool,
    ) -> Result<Option<Lost>, Error> {
        let Some(known) = self.feeds.get_mut(&feed) else { return Ok(None) };
        let mut row = FeedHost::read(&tables.feed_hosts, feed, host)?.unwrap_or_default();
        let was_believed = row.failed == 0;
        (row.held, row.failed) = (row.held + u64::from(held), row.failed + u64::from(!held));
        (known.held, known.failed) =
            (known.held + u64::from(held), known.failed + u64::from(!held));
        self.changed.insert(feed);
        tables.feed_hosts.insert(feed_host_key(feed, host).as_slice(), row.encode().as_slice())?;
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

    /// Names the address of a canonical page, if it is one of any feed in force.
    pub fn note_page(&self, tables: &mut Tables<'_>, url: &str) -> Result<(), Error> {
        let said = self.said_of(tables, url)?;
        if said.iter().any(|said| said.copy_of.is_none()) {
            let key = page_key(xxh3_128(url.as_bytes()), None);
            tables.known_pages.insert(key.as_slice(), url)?;
        }
        Ok(())
    }

    /// Lets a stored copy stand for its canonical page, which is not stored.
    pub fn stand_in(
        &self,
        tables: &mut Tables<'_>,
        (canonical, feed): (u128, u64),
        url: &str,
    ) -> Result<(), Error> {
        tables.known_pages.insert(page_key(canonical, Some(feed)).as_slice(), url)?;
        Ok(())
    }

    /// Notes that an address is not fetched because of a feed.
    pub fn note_skipped(
        &mut self,
        tables: &mut Tables<'_>,
        feed: u64,
        (of, url): (&str, &str),
    ) -> Result<(), Error> {
        tables.known_skipped.insert(skipped_key(of, url).as_slice(), feed)?;
        if let Some(known) = self.feeds.get_mut(&feed) {
            known.skipped += 1;
            self.changed.insert(feed);
        }
        Ok(())
    }

    /// Takes an address out of the list of those that are not fetched.
    pub fn release(
        &mut self,
        tables: &mut Tables<'_>,
        (of, url): (&str, &str),
    ) -> Result<(), Error> {
        let feed = tables.known_skipped.remove(skipped_key(of, url).as_slice())?;
        let Some(feed) = feed.map(|feed| feed.value()) else { return Ok(()) };
        if let Some(known) = self.feeds.get_mut(&feed) {
            known.skipped = known.skipped.saturating_sub(1);
            self.changed.insert(feed);
        }
        Ok(())
    }

    /// Writes what has changed.
    pub fn flush(&mut self, tables: &mut Tables<'_>) -> Result<(), Error> {
        for number in std::mem::take(&mut self.changed) {
            tables.feeds.insert(number, self.feeds[&number].encode().as_slice())?;
        }
        Ok(())
    }

    /// Takes a feed out of use for good. Returns false if there is no such feed.
    pub fn drop_feed(tables: &mut Tables<'_>, number: u64) -> Result<bool, Error> {
        let row = tables.feeds.get(number)?.map(|row| Feed::decode(row.value())).transpose()?;
        let Some(mut feed) = row else { return Ok(false) };
        feed.lost = true;
        tables.feeds.insert(number, feed.encode().as_slice())?;
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
