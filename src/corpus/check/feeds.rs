//! Duplicate feeds that were taken in, what they keep from being fetched, and the order in which
//! duplicates of the store itself have changed.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_128;

use super::{Findings, Numbers, hex, row_of};
use crate::corpus::tables::{VERDICT_LOG, VERDICT_PLACES};
use crate::frontier::{ADDRESSES, FEED_HOSTS, FEEDS, KNOWN_SKIPPED, State};
use crate::store::{COUNTERS, Error, Snapshot, View as _};

/// Every URL that a feed holds back is in its list, and every feed counts its own.
pub(super) fn feeds(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    let mut skipped: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in snapshot.rows(KNOWN_SKIPPED)? {
        let entry = entry?;
        findings.look("known_skipped");
        let key = findings.read("known_skipped", hex(entry.key_bytes()), entry.key());
        let Some((page, url)) = key else { continue };
        let feed = entry.row()?;
        *skipped.entry(feed).or_default() += 1;
        let known = row_of(snapshot.get(ADDRESSES, url))?.ok().flatten();
        let fits = match known.map(|known| known.state) {
            Some(State::Known { feed: other, of }) => {
                other == feed && xxh3_128(of.as_bytes()) == page
            }
            _ => false,
        };
        if !fits {
            findings.fault("known_skipped", || format!("{url} is in the list and not skipped"));
        }
    }
    let listed: u64 = skipped.values().sum();
    let name = State::Known { feed: 0, of: String::new() }.counter();
    let counted = snapshot.get(COUNTERS, &name)?.unwrap_or(0);
    if listed != counted {
        findings.fault("known_skipped", || format!("{listed} are listed of {counted} skipped"));
    }
    for entry in snapshot.rows(FEEDS)? {
        let entry = entry?;
        let number = entry.key()?;
        findings.look("feeds");
        let counted = skipped.remove(&number).unwrap_or(0);
        let feed = findings.read("feeds", number, entry.row());
        if let Some(feed) = feed.filter(|feed| feed.skipped != counted) {
            findings.fault("feeds", || {
                format!("feed {number} counts {} skipped of {counted}", feed.skipped)
            });
        }
    }
    for (feed, count) in skipped {
        findings.fault("feeds", || format!("{count} are skipped by feed {feed}, which is missing"));
    }
    for entry in snapshot.rows(FEED_HOSTS)? {
        let entry = entry?;
        findings.look("feed_hosts");
        let key = findings.read("feed_hosts", hex(entry.key_bytes()), entry.key());
        let Some((feed, host)) = key else { continue };
        findings.read("feed_hosts", host, entry.row());
        if !snapshot.has(FEEDS, feed)? {
            findings.fault("feed_hosts", || format!("{host} is of feed {feed}, which is missing"));
        }
    }
    Ok(())
}

/// Every document of several copies has its place in the order of changes.
pub(super) fn log(
    snapshot: &Snapshot,
    numbers: &Numbers,
    findings: &mut Findings,
) -> Result<(), Error> {
    for entry in snapshot.rows(VERDICT_LOG)? {
        let entry = entry?;
        findings.look("verdict_log");
        let (place, document) = (entry.key()?, entry.row()?);
        if snapshot.get(VERDICT_PLACES, document)? != Some(place) {
            findings.fault("verdict_log", || format!("document {document} has another place"));
        }
        if !numbers.documents.contains(document) {
            findings.fault("verdict_log", || format!("document {document} is missing"));
        }
    }
    let (places, listed) = (snapshot.len(VERDICT_PLACES)?, snapshot.len(VERDICT_LOG)?);
    if places != listed {
        findings.fault("verdict_places", || format!("{places} places of {listed} documents"));
    }
    Ok(())
}
