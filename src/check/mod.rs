//! Every invariant of a store, looked at row by row.

use std::collections::{BTreeMap, HashMap, HashSet};

use redb::{ReadableTable as _, ReadableTableMetadata as _};
use serde::Serialize;

use crate::clusters::rank;
use crate::documents::{
    Content, Copy, Document, read_body, read_content, read_copy, read_document,
};
use crate::frontier::{Address, Host, Request, State};
use crate::index::stored;
use crate::simhash::Fingerprint;
use crate::store::{Error, ReadTables};

/// Faults that are listed; the others are only counted.
const FAULTS_MAX: usize = 100;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Rows that were looked at, by table.
    pub rows: BTreeMap<&'static str, u64>,
    /// Number of faults.
    pub faults: u64,
    /// The first of them, in words.
    pub listed: Vec<String>,
}

impl Findings {
    fn fault(&mut self, text: impl FnOnce() -> String) {
        self.faults += 1;
        if self.listed.len() < FAULTS_MAX {
            self.listed.push(text());
        }
    }

    fn look(&mut self, table: &'static str) {
        *self.rows.entry(table).or_default() += 1;
    }
}

/// Checks every row of a store against every other that it must agree with.
///
/// # Errors
///
/// Only if the store cannot be read; a row that cannot be decoded is a fault, as any other.
pub fn check(tables: &ReadTables) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let queued = queues(tables, &mut findings)?;
    addresses(tables, &queued, &mut findings)?;
    documents(tables, &mut findings)?;
    contents(tables, &mut findings)?;
    forest(tables, &mut findings)?;
    index(tables, &mut findings)?;
    Ok(findings)
}

/// Queues: every request is of a known host, host rows count them, addresses agree. Returns the
/// addresses that wait.
fn queues(tables: &ReadTables, findings: &mut Findings) -> Result<HashSet<String>, Error> {
    let mut waiting = HashSet::new();
    let mut by_host: HashMap<u32, u64> = HashMap::new();
    for row in tables.queue.iter()? {
        let (key, value) = row?;
        findings.look("queue");
        let host = u32::from_be_bytes(key.value()[..4].try_into().expect("keys have 15 bytes"));
        *by_host.entry(host).or_default() += 1;
        remember(value.value(), &mut waiting, findings);
    }
    for row in tables.later.iter()? {
        findings.look("later");
        remember(row?.1.value(), &mut waiting, findings);
    }
    for row in tables.hosts.iter()? {
        let (number, row) = row?;
        findings.look("hosts");
        let host = Host::decode(row.value())?;
        let counted = by_host.remove(&number.value()).unwrap_or(0);
        if counted != host.queued {
            findings
                .fault(|| format!("{} counts {} in its queue of {counted}", host.key, host.queued));
        }
        let number_of = tables.host_numbers.get(host.key.as_str())?.map(|row| row.value());
        if number_of != Some(number.value()) {
            findings.fault(|| format!("{} has another number than its row", host.key));
        }
    }
    for host in by_host.into_keys() {
        findings.fault(|| format!("a queue is of host {host}, which has no row"));
    }
    Ok(waiting)
}

fn remember(row: &[u8], waiting: &mut HashSet<String>, findings: &mut Findings) {
    match Request::decode(row) {
        Ok(request) if request.purpose == crate::frontier::Purpose::Page => {
            if !waiting.insert(request.url.clone()) {
                findings.fault(|| format!("{} waits twice", request.url));
            }
        }
        Ok(_) => {}
        Err(error) => findings.fault(|| error.to_string()),
    }
}

/// Addresses: a queued one waits and no other does; a stored one has its copy; counters are right.
fn addresses(
    tables: &ReadTables,
    waiting: &HashSet<String>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    let mut still_waiting = waiting.len();
    for row in tables.addresses.iter()? {
        let (url, row) = row?;
        let url = url.value();
        findings.look("addresses");
        let address = match Address::decode(row.value()) {
            Ok(address) => address,
            Err(error) => {
                findings.fault(|| format!("{url}: {error}"));
                continue;
            }
        };
        *counted.entry(address.state.counter()).or_default() += 1;
        let waits = waiting.contains(url);
        still_waiting -= usize::from(waits);
        match &address.state {
            State::Queued if !waits => {
                findings.fault(|| format!("{url} is queued and in no queue"));
            }
            State::Stored(document) if read_copy(&tables.copies, *document, url)?.is_none() => {
                findings.fault(|| format!("{url} is stored and has no copy row"));
            }
            _ => {}
        }
        if waits && address.state != State::Queued {
            findings.fault(|| format!("{url} is in a queue and not queued"));
        }
    }
    if still_waiting > 0 {
        findings.fault(|| format!("{still_waiting} queued requests have no address row"));
    }
    for row in tables.counters.iter()? {
        let (name, count) = row?;
        let found = counted.remove(name.value()).unwrap_or(0);
        if name.value().starts_with("addresses.") && found != count.value() {
            findings
                .fault(|| format!("counter {} is {}, not {found}", name.value(), count.value()));
        }
    }
    for (name, count) in counted {
        findings.fault(|| format!("counter {name} is missing, not {count}"));
    }
    Ok(())
}

/// Documents: identifiers lead back, copies are counted, the canonical copy is the best one and
/// has its text.
fn documents(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    let mut copies: HashMap<u64, (u64, Option<(String, Copy)>)> = HashMap::new();
    for row in tables.copies.iter()? {
        let (key, row) = row?;
        findings.look("copies");
        let (number, address) = key.value().split_at(8);
        let number = u64::from_be_bytes(number.try_into().expect("eight bytes"));
        let address = String::from_utf8_lossy(address).into_owned();
        let copy = Copy::decode(row.value())?;
        let (count, best) = copies.entry(number).or_default();
        *count += 1;
        let better = best.as_ref().is_none_or(|(other, held)| {
            rank(copy.popularity, &address) < rank(held.popularity, other)
        });
        if better {
            *best = Some((address, copy));
        }
    }
    for row in tables.documents.iter()? {
        let (number, row) = row?;
        findings.look("documents");
        let document = Document::decode(row.value())?;
        let id = document.id;
        if tables.doc_ids.get(id.0)?.map(|row| row.value()) != Some(number.value()) {
            findings.fault(|| format!("{id} leads to another document"));
        }
        let Some((count, Some((address, best)))) = copies.remove(&number.value()) else {
            findings.fault(|| format!("{id} has no copy"));
            continue;
        };
        if count != document.copies {
            findings.fault(|| format!("{id} counts {} of {count} copies", document.copies));
        }
        if address != document.canonical || best.content != document.content {
            findings.fault(|| format!("{id} keeps {}, not {address}", document.canonical));
        }
    }
    for number in copies.into_keys() {
        findings.fault(|| format!("copies name document {number}, which is missing"));
    }
    Ok(())
}

/// Contents: each is in a document, under its hash, with its text and in the index.
fn contents(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    let entries = stored::load(&tables.near, &tables.near_log)?;
    let mut texts: HashMap<u32, Fingerprint> = HashMap::new();
    for (fingerprint, content) in &entries.contents {
        findings.look("near");
        if texts.insert(*content, *fingerprint).is_some() {
            findings.fault(|| format!("content {content} is twice in the index"));
        }
    }
    let mut titles: HashMap<u32, Fingerprint> =
        entries.titles.iter().map(|(print, content)| (*content, *print)).collect();
    for row in tables.contents.iter()? {
        let (number, row) = row?;
        let number = number.value();
        findings.look("contents");
        let content = Content::decode(row.value())?;
        if read_document(&tables.documents, content.document)?.is_none() {
            findings.fault(|| format!("content {number} is in no document"));
        }
        if tables.exact.get(content.hash)?.map(|row| row.value()) != Some(number) {
            findings.fault(|| format!("content {number} is not found by its hash"));
        }
        match read_body(&tables.bodies, number) {
            Ok(Some(_)) => {}
            Ok(None) => findings.fault(|| format!("content {number} has no text")),
            Err(error) => findings.fault(|| format!("content {number}: {error}")),
        }
        // Texts that were too short for near-duplicates have no fingerprint in the index.
        let print = texts.remove(&(number as u32));
        if print.is_some() && print != Some(content.fingerprint) {
            findings.fault(|| format!("content {number} has another fingerprint in the index"));
        }
        let title = titles.remove(&(number as u32));
        if title.is_some() && title != content.title_fingerprint {
            findings.fault(|| format!("content {number} has another title in the index"));
        }
    }
    for content in texts.into_keys().chain(titles.into_keys()) {
        findings.fault(|| format!("the index names content {content}, which is missing"));
    }
    Ok(())
}

/// The index agrees with itself; trees are of height two with their roots among their contents.
fn index(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    for fault in stored::faults(&tables.near)? {
        findings.fault(|| fault);
    }
    let (hashes, contents) = (tables.exact.len()?, tables.contents.len()?);
    if hashes != contents {
        findings.fault(|| format!("{hashes} exact hashes lead to {contents} contents"));
    }
    for row in tables.unsure.iter()? {
        let number = row?.0.value();
        findings.look("unsure");
        if tables.contents.get(number)?.is_none() {
            findings.fault(|| format!("content {number} waits for a second look and is missing"));
        }
    }
    Ok(())
}

/// The parent forest: every root is a content of its own tree, and every copy carries a content of
/// the tree it hangs on.
fn forest(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    for row in tables.documents.iter()? {
        let (number, row) = row?;
        let document = Document::decode(row.value())?;
        let root = read_content(&tables.contents, document.root)?;
        if root.is_none_or(|root| root.document != number.value()) {
            findings.fault(|| format!("the root of {} is not in its tree", document.id));
        }
    }
    let mut carriers: HashMap<u64, u64> = HashMap::new();
    for row in tables.copies.iter()? {
        let (key, row) = row?;
        let number = u64::from_be_bytes(*key.value().first_chunk().expect("eight bytes"));
        let copy = Copy::decode(row.value())?;
        *carriers.entry(copy.content).or_default() += 1;
        let content = read_content(&tables.contents, copy.content)?;
        if content.is_none_or(|content| content.document != number) {
            let content = copy.content;
            findings
                .fault(|| format!("a copy carries content {content}, which is not in its tree"));
        }
    }
    for row in tables.contents.iter()? {
        let (number, row) = row?;
        let (number, content) = (number.value(), Content::decode(row.value())?);
        let found = carriers.remove(&number).unwrap_or(0);
        if found != content.copies {
            let counted = content.copies;
            findings.fault(|| format!("content {number} counts {counted} of {found} copies"));
        }
    }
    Ok(())
}
