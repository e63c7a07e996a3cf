//! URLs, hosts, and what waits for a visit.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Findings, Spot, hex};
use crate::base::clock::Timestamp;
use crate::corpus::documents::CHANGES_FROM;
use crate::corpus::tables::{BOILERPLATE, COPIES};
use crate::frontier::{
    ADDRESSES, DOMAINS, HOST_NUMBERS, HOSTS, INLINKS, LATER, LINKS_BEYOND, LISTS, PATTERNS,
    Purpose, QUEUE, REVISITS, ROBOTS, Request, SCHEDULE, State, UNSTORED,
};
use crate::store::{
    BadRow, CHANGES_EPOCH, COUNTERS, Entry, Error, Key, META, STORE_NUMBER, Snapshot, View as _,
    read_number,
};
use crate::urls::{HostKey, Normalize};

/// Facts about the store that are numbers, beside those whose names begin with `next_`.
const NUMBERS: [&str; 6] =
    ["format", "search_update", "settled", STORE_NUMBER, CHANGES_EPOCH, CHANGES_FROM];

/// What waits for a visit.
pub(super) struct StillWaiting {
    addresses: HashSet<String>,
    /// A request cannot be read: it may be of any URL.
    unread: bool,
}

/// Queues: every request is of a known host, host rows count them. Returns what waits.
pub(super) fn queues(snapshot: &Snapshot, findings: &mut Findings) -> Result<StillWaiting, Error> {
    let mut waiting = StillWaiting { addresses: HashSet::new(), unread: false };
    let mut by_host: HashMap<u32, (u64, u64)> = HashMap::new();
    for entry in snapshot.rows(QUEUE)? {
        let entry = entry?;
        findings.look("queue");
        if let Some((host, _)) = findings.read("queue", hex(entry.key_bytes()), entry.key()) {
            let (requests, bytes) = by_host.entry(host).or_default();
            *requests += 1;
            *bytes += entry.row().map_or(0, |request| request.url.len() as u64);
        }
        waiting.add(findings, "queue", &entry);
    }
    for entry in snapshot.rows(LATER)? {
        let entry = entry?;
        findings.look("later");
        findings.read("later", hex(entry.key_bytes()), entry.key());
        waiting.add(findings, "later", &entry);
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
        if let Some(told) = host.queued_bytes.filter(|told| *told != bytes && !waiting.unread) {
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
    Ok(waiting)
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

impl StillWaiting {
    fn add<K: Key>(
        &mut self,
        findings: &mut Findings,
        table: &'static str,
        entry: &Entry<'_, K, Request>,
    ) {
        match findings.read(table, hex(entry.key_bytes()), entry.row()) {
            Some(Request { purpose: Purpose::Page | Purpose::Sitemap, url }) => {
                if let Some(url) = self.addresses.replace(url) {
                    findings.fault(table, || format!("{url} waits twice"));
                }
            }
            Some(_) => {}
            None => self.unread = true,
        }
    }
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

/// The URLs that are to be visited again, each with the moment.
fn planned(
    snapshot: &Snapshot,
    findings: &mut Findings,
) -> Result<HashMap<String, Timestamp>, Error> {
    let mut planned = HashMap::new();
    for entry in snapshot.rows(REVISITS)? {
        let entry = entry?;
        findings.look("revisits");
        let name = hex(entry.key_bytes());
        let Some((due, url)) = findings.read("revisits", &name, entry.key()) else { continue };
        if planned.insert(url.to_owned(), due).is_some() {
            findings.fault("revisits", || format!("revisits, row {name}: {url} is there twice"));
        }
    }
    Ok(planned)
}

/// Addresses: a queued one waits and no other does; a stored one has its copy; counters are right.
pub(super) fn addresses(
    snapshot: &Snapshot,
    waiting: &StillWaiting,
    findings: &mut Findings,
) -> Result<(), Error> {
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    let mut still_waiting = waiting.addresses.len();
    let mut planned = planned(snapshot, findings)?;
    for entry in snapshot.rows(ADDRESSES)? {
        let entry = entry?;
        let url = entry.key()?;
        findings.look("addresses");
        let waits = waiting.addresses.contains(url);
        still_waiting -= usize::from(waits);
        let due = planned.remove(url);
        let Some(address) = findings.read("addresses", url, entry.row()) else { continue };
        *counted.entry(address.state.counter()).or_default() += 1;
        if address.links_beyond > 0 {
            *counted.entry(LINKS_BEYOND.to_owned()).or_default() += address.links_beyond;
        }
        match &address.state {
            State::Queued if !waits && !waiting.unread => {
                findings.fault("addresses", || format!("{url} is queued and in no queue"));
            }
            State::Stored(document) if !snapshot.has(COPIES, (*document, url))? => {
                findings.fault("addresses", || format!("{url} is stored and has no copy row"));
            }
            _ => {}
        }
        let again = address.revisit.waits;
        if waits && address.state != State::Queued && !again {
            findings.fault("addresses", || format!("{url} is in a queue and not queued"));
        }
        if again && !waits && !waiting.unread {
            findings.fault("addresses", || format!("{url} is to be visited and in no queue"));
        }
        let expected = (address.revisit.due.0 != 0 && !again).then_some(address.revisit.due);
        if due != expected {
            findings.fault("addresses", || format!("{url} is due at another time than planned"));
        }
    }
    if still_waiting > 0 {
        findings.fault("addresses", || format!("{still_waiting} queued requests have no URL row"));
    }
    for url in planned.into_keys() {
        findings.fault("revisits", || format!("revisits, row {url}: it is no URL"));
    }
    for entry in snapshot.rows(COUNTERS)? {
        let entry = entry?;
        findings.look("counters");
        let (name, count) = (entry.key()?, entry.row()?);
        let found = counted.remove(name).unwrap_or(0);
        let is_checked = name.starts_with("addresses.") || name == LINKS_BEYOND;
        if is_checked && found != count {
            findings.fault("counters", || format!("counter {name} is {count}, not {found}"));
        }
    }
    for (name, count) in counted {
        findings.fault("counters", || format!("counter {name} is missing, not {count}"));
    }
    Ok(())
}
