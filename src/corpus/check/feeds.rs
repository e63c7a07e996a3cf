//! Feeds of verdicts that were taken in, what they keep from being fetched, and the order in which
//! verdicts of the store itself have changed.

use std::collections::BTreeMap;

use redb::{ReadableTable as _, ReadableTableMetadata as _};

use super::{Findings, hex, row_of};
use crate::frontier::verdicts::{Feed, FeedHost, skipped_key, split_skipped_key};
use crate::frontier::{Address, State};
use crate::store::{Error, ReadTables};

/// Every address that a feed holds back is in its list, and every feed counts its own.
pub(super) fn feeds(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    let mut skipped: BTreeMap<u64, u64> = BTreeMap::new();
    for row in tables.known_skipped.iter()? {
        let (key, feed) = row?;
        let (key, feed) = (key.value(), feed.value());
        findings.look("known_skipped");
        let Some(url) = findings.read("known_skipped", hex(key), split_skipped_key(key)) else {
            continue;
        };
        *skipped.entry(feed).or_default() += 1;
        let known = row_of(Address::read(&tables.addresses, url))?.ok().flatten();
        let fits = match known.map(|known| known.state) {
            Some(State::Known { feed: other, of }) => other == feed && skipped_key(&of, url) == key,
            _ => false,
        };
        if !fits {
            findings.fault("known_skipped", || format!("{url} is in the list and not skipped"));
        }
    }
    let listed: u64 = skipped.values().sum();
    let name = State::Known { feed: 0, of: String::new() }.counter();
    let counted = tables.counters.get(name.as_str())?.map_or(0, |row| row.value());
    if listed != counted {
        findings.fault("known_skipped", || format!("{listed} are listed of {counted} skipped"));
    }
    for row in tables.feeds.iter()? {
        let (number, row) = row?;
        let number = number.value();
        findings.look("feeds");
        let counted = skipped.remove(&number).unwrap_or(0);
        let feed = findings.read("feeds", number, Feed::decode(row.value()));
        if let Some(feed) = feed.filter(|feed| feed.skipped != counted) {
            findings.fault("feeds", || {
                format!("feed {number} counts {} skipped of {counted}", feed.skipped)
            });
        }
    }
    for (feed, count) in skipped {
        findings.fault("feeds", || format!("{count} are skipped by feed {feed}, which is missing"));
    }
    for row in tables.feed_hosts.iter()? {
        let (key, _) = row?;
        findings.look("feed_hosts");
        let parts = key.value().split_first_chunk::<8>();
        let read = parts.map(|(feed, host)| (u64::from_be_bytes(*feed), host));
        let Some((feed, Ok(host))) = read.map(|(feed, host)| (feed, std::str::from_utf8(host)))
        else {
            findings.fault("feed_hosts", || format!("the key {} is none", hex(key.value())));
            continue;
        };
        let row = row_of(FeedHost::read(&tables.feed_hosts, feed, host))?;
        findings.read("feed_hosts", host, row);
        if tables.feeds.get(feed)?.is_none() {
            findings.fault("feed_hosts", || format!("{host} is of feed {feed}, which is missing"));
        }
    }
    Ok(())
}

/// Every document of several copies has its place in the order of changes.
pub(super) fn log(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    for row in tables.verdict_log.iter()? {
        let (place, document) = row?;
        findings.look("verdict_log");
        let (place, document) = (place.value(), document.value());
        if tables.verdict_places.get(document)?.map(|row| row.value()) != Some(place) {
            findings.fault("verdict_log", || format!("document {document} has another place"));
        }
        if tables.documents.get(document)?.is_none() {
            findings.fault("verdict_log", || format!("document {document} is missing"));
        }
    }
    let (places, listed) = (tables.verdict_places.len()?, tables.verdict_log.len()?);
    if places != listed {
        findings.fault("verdict_places", || format!("{places} places of {listed} documents"));
    }
    Ok(())
}
