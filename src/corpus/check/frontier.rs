//! URLs, hosts, and what waits for a visit.

use std::collections::HashMap;

use super::{Findings, Spot, hex};
use crate::corpus::documents::CHANGES_FROM;
use crate::corpus::tables::BOILERPLATE;
use crate::frontier::{
    ADDRESSES, DOMAINS, HOST_NUMBERS, HOSTS, INLINKS, LATER, LISTS, PATTERNS, QUEUE, REVISITS,
    ROBOTS, SCHEDULE, UNSTORED,
};
use crate::store::{
    BadRow, CHANGES_EPOCH, COUNTERS, Error, META, STORE_NUMBER, Snapshot, View as _, read_number,
};
use crate::urls::{HostKey, Normalize};

/// Facts about the store that are numbers, beside those whose names begin with `next_`.
const NUMBERS: [&str; 6] =
    ["format", "search_update", "settled", STORE_NUMBER, CHANGES_EPOCH, CHANGES_FROM];

/// Queues: every request is of a known host, host rows count them. Returns whether one of them
/// cannot be read: it may be of any URL.
pub(super) fn queues(snapshot: &Snapshot, findings: &mut Findings) -> Result<bool, Error> {
    let mut unread = false;
    let mut by_host: HashMap<u32, (u64, u64)> = HashMap::new();
    for entry in snapshot.rows(QUEUE)? {
        let entry = entry?;
        findings.look("queue");
        if let Some((host, _)) = findings.read("queue", hex(entry.key_bytes()), entry.key()) {
            let (requests, bytes) = by_host.entry(host).or_default();
            *requests += 1;
            *bytes += entry.row().map_or(0, |request| request.url.len() as u64);
        }
        unread |= findings.read("queue", hex(entry.key_bytes()), entry.row()).is_none();
    }
    for entry in snapshot.rows(LATER)? {
        let entry = entry?;
        findings.look("later");
        findings.read("later", hex(entry.key_bytes()), entry.key());
        unread |= findings.read("later", hex(entry.key_bytes()), entry.row()).is_none();
    }
    let mut unstored = 0;
    for entry in snapshot.rows(HOSTS)? {
        let entry = entry?;
        let number = entry.key()?;
        findings.look("hosts");
        let (counted, bytes) = by_host.remove(&number).unwrap_or_default();
        let Some(host) = findings.read("hosts", number, entry.row()) else { continue };
        if counted != host.queued {
            findings.fault("hosts", || {
                format!("{} counts {} in its queue of {counted}", host.key, host.queued)
            });
        }
        if let Some(told) = host.queued_bytes.filter(|told| *told != bytes && !unread) {
            findings.fault("hosts", || {
                format!("{} counts {told} bytes in its queue of {bytes}", host.key)
            });
        }
        unstored += host.unstored;
        if snapshot.get(HOST_NUMBERS, &host.key)? != Some(number) {
            findings.fault("hosts", || format!("{} has another number than its row", host.key));
        }
    }
    let told = snapshot.get(COUNTERS, UNSTORED)?.unwrap_or(0);
    if told != unstored {
        findings.fault("counters", || format!("counter {UNSTORED} is {told}, not {unstored}"));
    }
    budgets(snapshot, findings)?;
    for host in by_host.into_keys() {
        findings.fault("queue", || format!("a queue is of host {host}, which has no row"));
    }
    Ok(unread)
}

/// Counted patterns are of known hosts, and as many as their rows say; so are hosts of domains.
fn budgets(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    let mut patterns: HashMap<u32, u64> = HashMap::new();
    for entry in snapshot.rows(PATTERNS)? {
        let entry = entry?;
        findings.look("patterns");
        if let Some((host, _)) = findings.read("patterns", hex(entry.key_bytes()), entry.key()) {
            *patterns.entry(host).or_default() += 1;
        }
    }
    for entry in snapshot.rows(HOSTS)? {
        let entry = entry?;
        let counted = patterns.remove(&entry.key()?).unwrap_or(0);
        let Ok(host) = entry.row() else { continue };
        if counted != host.patterns {
            findings.fault("patterns", || {
                format!("{} counts {} patterns of {counted}", host.key, host.patterns)
            });
        }
    }
    for host in patterns.into_keys() {
        findings.fault("patterns", || format!("patterns are of host {host}, which has no row"));
    }
    let mut domains: HashMap<String, u64> = HashMap::new();
    for entry in snapshot.rows(HOST_NUMBERS)? {
        let key = HostKey::from_stored(entry?.key()?);
        *domains.entry(key.domain()).or_default() += 1;
    }
    for entry in snapshot.rows(DOMAINS)? {
        let entry = entry?;
        findings.look("domains");
        let (domain, count) = (entry.key()?, entry.row()?);
        let found = domains.remove(domain).unwrap_or(0);
        if found != count {
            findings.fault("domains", || format!("{domain} counts {count} hosts, not {found}"));
        }
    }
    for domain in domains.into_keys() {
        findings.fault("domains", || format!("{domain} does not count its hosts"));
    }
    Ok(())
}

/// What is stored of hosts besides their rows names hosts that have one.
pub(super) fn hosts(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    for entry in snapshot.rows(HOST_NUMBERS)? {
        let entry = entry?;
        findings.look("host_numbers");
        known(snapshot, findings, Spot { table: "host_numbers", key: entry.key()? }, entry.row()?)?;
    }
    for entry in snapshot.rows(ROBOTS)? {
        let entry = entry?;
        let host = entry.key()?;
        findings.look("robots");
        findings.read("robots", host, entry.row());
        known(snapshot, findings, Spot { table: "robots", key: &host.to_string() }, host)?;
    }
    for entry in snapshot.rows(LISTS)? {
        let entry = entry?;
        let url = entry.key()?;
        findings.look("lists");
        findings.read("lists", url, entry.row());
        if !snapshot.has(ADDRESSES, url)? {
            findings.fault("lists", || format!("{url} is a list and has no URL row"));
        }
    }
    for entry in snapshot.rows(BOILERPLATE)? {
        let entry = entry?;
        let host = entry.key()?;
        findings.look("boilerplate");
        findings.read("boilerplate", host, entry.row());
        known(snapshot, findings, Spot { table: "boilerplate", key: &host.to_string() }, host)?;
    }
    for entry in snapshot.rows(SCHEDULE)? {
        let entry = entry?;
        findings.look("schedule");
        let name = hex(entry.key_bytes());
        if let Some((_, host)) = findings.read("schedule", &name, entry.key()) {
            known(snapshot, findings, Spot { table: "schedule", key: &name }, host)?;
        }
    }
    for entry in snapshot.rows(INLINKS)? {
        let entry = entry?;
        findings.look("inlinks");
        findings.read("inlinks", hex(entry.key_bytes()), entry.key());
    }
    for entry in snapshot.rows(META)? {
        let entry = entry?;
        findings.look("meta");
        let name = entry.key()?;
        let not_utf8 = BadRow { kind: "meta", detail: "its text is not UTF-8" };
        let text = std::str::from_utf8(entry.bytes());
        let read = if NUMBERS.contains(&name) || name.starts_with("next_") {
            read_number(entry.bytes()).map(drop)
        } else if name == "urls" {
            let rules = text.ok().and_then(Normalize::from_stored);
            rules.map(drop).ok_or(BadRow { kind: "meta", detail: "it has no rules of URLs" })
        } else {
            text.map(drop).map_err(|_| not_utf8)
        };
        findings.read("meta", name, read);
    }
    Ok(())
}

/// Notes that a row names a host without row.
fn known(
    snapshot: &Snapshot,
    findings: &mut Findings,
    spot: Spot<'_>,
    host: u32,
) -> Result<(), Error> {
    if !snapshot.has(HOSTS, host)? {
        findings.fault(spot.table, || format!("{spot}: host {host} has no row"));
    }
    Ok(())
}

/// What is planned can be read.
pub(super) fn revisits(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    for entry in snapshot.rows(REVISITS)? {
        let entry = entry?;
        findings.look("revisits");
        findings.read("revisits", hex(entry.key_bytes()), entry.key());
    }
    Ok(())
}
