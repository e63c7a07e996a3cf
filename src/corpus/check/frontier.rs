//! Addresses, hosts, and what waits for a visit.

use std::collections::{BTreeMap, HashMap, HashSet};

use redb::ReadableTable as _;

use super::{Findings, hex, row_of};
use crate::base::clock::Timestamp;
use crate::corpus::boilerplate::Counts;
use crate::corpus::documents::copy_key;
use crate::frontier::{
    Address, Host, LINKS_BEYOND, List, Purpose, Request, RobotsCopy, State, UNSTORED,
    split_queue_key, split_revisit_key, split_time_key,
};
use crate::store::{BadRow, Error, ReadTables, read_number};
use crate::urls::{HostKey, Normalize};

/// Facts about the store that are numbers, beside those whose names begin with `next_`.
const NUMBERS: [&str; 3] = ["format", "search_update", "settled"];

/// What waits for a visit.
pub(super) struct Waiting {
    addresses: HashSet<String>,
    /// A request cannot be read: it may be of any address.
    unread: bool,
}

/// Queues: every request is of a known host, host rows count them. Returns what waits.
pub(super) fn queues(tables: &ReadTables, findings: &mut Findings) -> Result<Waiting, Error> {
    let mut waiting = Waiting { addresses: HashSet::new(), unread: false };
    let mut by_host: HashMap<u32, (u64, u64)> = HashMap::new();
    for row in tables.queue.iter()? {
        let (key, value) = row?;
        findings.look("queue");
        let key = key.value();
        if let Some((host, _)) = findings.read("queue", hex(key), split_queue_key(key)) {
            let (requests, bytes) = by_host.entry(host).or_default();
            *requests += 1;
            *bytes += Request::decode(value.value()).map_or(0, |request| request.url.len() as u64);
        }
        waiting.add(findings, ("queue", key), value.value());
    }
    for row in tables.later.iter()? {
        let (key, value) = row?;
        findings.look("later");
        let key = key.value();
        let short = BadRow { kind: "later key", detail: "it has no time" };
        let place = key.split_at_checked(8).ok_or(short).and_then(|(_, key)| split_queue_key(key));
        findings.read("later", hex(key), place);
        waiting.add(findings, ("later", key), value.value());
    }
    let mut unstored = 0;
    for row in tables.hosts.iter()? {
        let (number, row) = row?;
        let number = number.value();
        findings.look("hosts");
        let (counted, bytes) = by_host.remove(&number).unwrap_or_default();
        let Some(host) = findings.read("hosts", number, Host::decode(row.value())) else {
            continue;
        };
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
        let number_of = tables.host_numbers.get(host.key.as_str())?.map(|row| row.value());
        if number_of != Some(number) {
            findings.fault("hosts", || format!("{} has another number than its row", host.key));
        }
    }
    let told = tables.counters.get(UNSTORED)?.map_or(0, |row| row.value());
    if told != unstored {
        findings.fault("counters", || format!("counter {UNSTORED} is {told}, not {unstored}"));
    }
    budgets(tables, findings)?;
    for host in by_host.into_keys() {
        findings.fault("queue", || format!("a queue is of host {host}, which has no row"));
    }
    Ok(waiting)
}

/// Counted patterns are of known hosts, and as many as their rows say; so are hosts of domains.
fn budgets(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    let mut patterns: HashMap<u32, u64> = HashMap::new();
    for row in tables.patterns.iter()? {
        let key = row?.0;
        findings.look("patterns");
        let bad = BadRow { kind: "pattern", detail: "its key has not 12 bytes" };
        let host = <[u8; 12]>::try_from(key.value()).map_err(|_| bad);
        if let Some([a, b, c, d, ..]) = findings.read("patterns", hex(key.value()), host) {
            *patterns.entry(u32::from_be_bytes([a, b, c, d])).or_default() += 1;
        }
    }
    for row in tables.hosts.iter()? {
        let (number, row) = row?;
        let counted = patterns.remove(&number.value()).unwrap_or(0);
        let Ok(host) = Host::decode(row.value()) else { continue };
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
    for row in tables.host_numbers.iter()? {
        let key = HostKey::from_stored(row?.0.value());
        *domains.entry(key.domain()).or_default() += 1;
    }
    for row in tables.domains.iter()? {
        let (domain, count) = row?;
        findings.look("domains");
        let found = domains.remove(domain.value()).unwrap_or(0);
        if found != count.value() {
            findings.fault("domains", || {
                format!("{} counts {} hosts, not {found}", domain.value(), count.value())
            });
        }
    }
    for domain in domains.into_keys() {
        findings.fault("domains", || format!("{domain} does not count its hosts"));
    }
    Ok(())
}

impl Waiting {
    fn add(&mut self, findings: &mut Findings, (table, key): (&'static str, &[u8]), row: &[u8]) {
        match findings.read(table, hex(key), Request::decode(row)) {
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
pub(super) fn hosts(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    for row in tables.host_numbers.iter()? {
        let (key, number) = row?;
        findings.look("host_numbers");
        known(tables, findings, ("host_numbers", key.value()), number.value())?;
    }
    for row in tables.robots.iter()? {
        let host = row?.0.value();
        findings.look("robots");
        let copy = row_of(RobotsCopy::read(&tables.robots, host))?;
        findings.read("robots", host, copy);
        known(tables, findings, ("robots", &host.to_string()), host)?;
    }
    for row in tables.lists.iter()? {
        let (url, row) = row?;
        let url = url.value();
        findings.look("lists");
        findings.read("lists", url, List::decode(row.value()));
        if tables.addresses.get(url)?.is_none() {
            findings.fault("lists", || format!("{url} is a list and has no address row"));
        }
    }
    for row in tables.boilerplate.iter()? {
        let (host, row) = row?;
        let host = host.value();
        findings.look("boilerplate");
        findings.read("boilerplate", host, Counts::decode(row.value()));
        known(tables, findings, ("boilerplate", &host.to_string()), host)?;
    }
    for row in tables.schedule.iter()? {
        let key = row?.0;
        findings.look("schedule");
        let name = hex(key.value());
        if let Some((_, host)) = findings.read("schedule", &name, split_time_key(key.value())) {
            known(tables, findings, ("schedule", &name), host)?;
        }
    }
    for row in tables.inlinks.iter()? {
        let key = row?.0;
        findings.look("inlinks");
        let short = BadRow { kind: "link", detail: "its key has not 12 bytes" };
        let whole = if key.value().len() == 12 { Ok(()) } else { Err(short) };
        findings.read("inlinks", hex(key.value()), whole);
    }
    for row in tables.meta.iter()? {
        let (name, row) = row?;
        findings.look("meta");
        let name = name.value();
        let not_utf8 = BadRow { kind: "meta", detail: "its text is not UTF-8" };
        let read = if NUMBERS.contains(&name) || name.starts_with("next_") {
            read_number(row.value()).map(drop)
        } else if name == "urls" {
            let rules = std::str::from_utf8(row.value()).ok().and_then(Normalize::from_stored);
            rules.map(drop).ok_or(BadRow { kind: "meta", detail: "it has no rules of addresses" })
        } else {
            std::str::from_utf8(row.value()).map(drop).map_err(|_| not_utf8)
        };
        findings.read("meta", name, read);
    }
    Ok(())
}

/// Notes that a row names a host without row.
fn known(
    tables: &ReadTables,
    findings: &mut Findings,
    (table, key): (&'static str, &str),
    host: u32,
) -> Result<(), Error> {
    if tables.hosts.get(host)?.is_none() {
        findings.fault(table, || format!("{table}, row {key}: host {host} has no row"));
    }
    Ok(())
}

/// The addresses that are to be visited again, each with the moment.
fn planned(
    tables: &ReadTables,
    findings: &mut Findings,
) -> Result<HashMap<String, Timestamp>, Error> {
    let mut planned = HashMap::new();
    for row in tables.revisits.iter()? {
        let key = row?.0;
        findings.look("revisits");
        let name = hex(key.value());
        let Some((due, url)) = findings.read("revisits", &name, split_revisit_key(key.value()))
        else {
            continue;
        };
        if planned.insert(url.to_owned(), due).is_some() {
            findings.fault("revisits", || format!("revisits, row {name}: {url} is there twice"));
        }
    }
    Ok(planned)
}

/// Addresses: a queued one waits and no other does; a stored one has its copy; counters are right.
pub(super) fn addresses(
    tables: &ReadTables,
    waiting: &Waiting,
    findings: &mut Findings,
) -> Result<(), Error> {
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    let mut still_waiting = waiting.addresses.len();
    let mut planned = planned(tables, findings)?;
    for row in tables.addresses.iter()? {
        let (url, row) = row?;
        let url = url.value();
        findings.look("addresses");
        let waits = waiting.addresses.contains(url);
        still_waiting -= usize::from(waits);
        let due = planned.remove(url);
        let Some(address) = findings.read("addresses", url, Address::decode(row.value())) else {
            continue;
        };
        *counted.entry(address.state.counter()).or_default() += 1;
        if address.links_beyond > 0 {
            *counted.entry(LINKS_BEYOND.to_owned()).or_default() += address.links_beyond;
        }
        match &address.state {
            State::Queued if !waits && !waiting.unread => {
                findings.fault("addresses", || format!("{url} is queued and in no queue"));
            }
            State::Stored(document)
                if tables.copies.get(copy_key(*document, url).as_slice())?.is_none() =>
            {
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
        findings
            .fault("addresses", || format!("{still_waiting} queued requests have no address row"));
    }
    for url in planned.into_keys() {
        findings.fault("revisits", || format!("revisits, row {url}: it is no address"));
    }
    for row in tables.counters.iter()? {
        let (name, count) = row?;
        findings.look("counters");
        let found = counted.remove(name.value()).unwrap_or(0);
        let is_checked = name.value().starts_with("addresses.") || name.value() == LINKS_BEYOND;
        if is_checked && found != count.value() {
            findings.fault("counters", || {
                format!("counter {} is {}, not {found}", name.value(), count.value())
            });
        }
    }
    for (name, count) in counted {
        findings.fault("counters", || format!("counter {name} is missing, not {count}"));
    }
    Ok(())
}
