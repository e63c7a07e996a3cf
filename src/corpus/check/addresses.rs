//! URLs: which of them wait for a visit, are to be visited again, or are stored.

use std::collections::{BTreeMap, HashSet};

use super::Findings;
use super::facts::{Again, Part, of_copy, of_url};
use crate::base::clock::Timestamp;
use crate::corpus::tables::COPIES;
use crate::frontier::{
    ADDRESSES, Address, LATER, LINKS_BEYOND, Purpose, QUEUE, REVISITS, Request, State,
};
use crate::store::{COUNTERS, Error, Key, Snapshot, Table, View as _};

/// What other tables say of the URLs of one part.
struct Said {
    /// Hashes of those that wait for a visit.
    waiting: Vec<u128>,
    /// Hashes of those that are to be visited again, and when.
    planned: Vec<(u128, Timestamp)>,
    /// Hashes of copies.
    copies: Vec<u128>,
    /// A request cannot be read: it may be of any URL.
    unread: bool,
}

/// What is said of the visits of one URL.
struct Visits {
    waits: bool,
    due: Option<Timestamp>,
}

impl Said {
    fn read(
        snapshot: &Snapshot,
        part: Part,
        unread: bool,
        findings: &mut Findings,
    ) -> Result<Self, Error> {
        let waiting = waiting(snapshot, part, findings)?;
        let planned = planned(snapshot, part, findings)?;
        Ok(Self { waiting, planned, copies: copies(snapshot, part)?, unread })
    }

    fn visits(&self, hash: u128) -> Visits {
        let at = self.planned.binary_search_by_key(&hash, |(hash, _)| *hash);
        let due = at.ok().map(|at| self.planned[at].1);
        Visits { waits: self.waiting.binary_search(&hash).is_ok(), due }
    }

    fn has_copy(&self, document: u64, url: &str) -> bool {
        self.copies.binary_search(&of_copy(document, url)).is_ok()
    }
}

/// Hashes of the URLs that wait for a visit, in order. One that waits twice is listed.
fn waiting(snapshot: &Snapshot, part: Part, findings: &mut Findings) -> Result<Vec<u128>, Error> {
    let mut hashes = Vec::new();
    each_waiting(snapshot, |_, url| {
        hashes.extend(Some(of_url(url)).filter(|hash| part.has(*hash)));
    })?;
    hashes.sort_unstable();
    let mut again = Again::among(hashes.iter().copied());
    if !again.is_empty() {
        each_waiting(snapshot, |table, url| {
            if again.meets(url) {
                findings.fault(table, || format!("{url} waits twice"));
            }
        })?;
    }
    hashes.dedup();
    Ok(hashes)
}

/// Hashes of the URLs that are to be visited again, in order, and when: of several moments the
/// last one. One that is planned twice is listed.
fn planned(
    snapshot: &Snapshot,
    part: Part,
    findings: &mut Findings,
) -> Result<Vec<(u128, Timestamp)>, Error> {
    let mut moments = Vec::new();
    each_planned(snapshot, |due, url| {
        let hash = of_url(url);
        moments.extend(part.has(hash).then_some((hash, due)));
    })?;
    moments.sort_unstable_by(|one, other| other.cmp(one));
    let mut again = Again::among(moments.iter().map(|(hash, _)| *hash));
    if !again.is_empty() {
        each_planned(snapshot, |_, url| {
            if again.meets(url) {
                findings.fault("revisits", || format!("revisits, row {url}: it is there twice"));
            }
        })?;
    }
    moments.dedup_by_key(|(hash, _)| *hash);
    moments.reverse();
    Ok(moments)
}

/// Hashes of copies, in order.
fn copies(snapshot: &Snapshot, part: Part) -> Result<Vec<u128>, Error> {
    let mut hashes = Vec::new();
    for entry in snapshot.rows(COPIES)? {
        let entry = entry?;
        // A key that cannot be read is listed with the documents.
        let Ok((document, url)) = entry.key() else { continue };
        hashes.extend(part.has(of_url(url)).then(|| of_copy(document, url)));
    }
    hashes.sort_unstable();
    Ok(hashes)
}

/// Calls `each` with every URL that waits for a visit and the table in which it does.
fn each_waiting(
    snapshot: &Snapshot,
    mut each: impl FnMut(&'static str, &str),
) -> Result<(), Error> {
    fn of<K: Key>(
        snapshot: &Snapshot,
        table: Table<K, Request>,
        each: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        for entry in snapshot.rows(table)? {
            // One that cannot be read is listed with the queues.
            let Ok(request) = entry?.row() else { continue };
            if matches!(request.purpose, Purpose::Page | Purpose::Sitemap) {
                each(&request.url);
            }
        }
        Ok(())
    }
    of(snapshot, QUEUE, &mut |url| each("queue", url))?;
    of(snapshot, LATER, &mut |url| each("later", url))
}

/// Calls `each` with every URL that is to be visited again, and when.
fn each_planned(snapshot: &Snapshot, mut each: impl FnMut(Timestamp, &str)) -> Result<(), Error> {
    for entry in snapshot.rows(REVISITS)? {
        let entry = entry?;
        // One that cannot be read is listed with the queues.
        let Ok((due, url)) = entry.key() else { continue };
        each(due, url);
    }
    Ok(())
}

/// What is counted of URLs on the way through them.
#[derive(Default)]
struct Tally {
    /// By the name of the counter.
    counted: BTreeMap<String, u64>,
    /// Hashes of what waits or is planned that were of a URL.
    waited: usize,
    planned: usize,
    /// A stored URL has no copy.
    is_missed: bool,
}

/// Addresses: a queued one waits and no other does; a stored one has its copy; counters are right.
/// `unread` tells that a request cannot be read: it may be of any URL. Returns whether every stored
/// URL has its copy.
pub(super) fn addresses(
    snapshot: &Snapshot,
    unread: bool,
    at_a_time: u64,
    findings: &mut Findings,
) -> Result<bool, Error> {
    let mut tally = Tally::default();
    let (mut waiting, mut planned) = (0, 0);
    let waits = snapshot.len(QUEUE)? + snapshot.len(LATER)?;
    let hashes = waits + snapshot.len(REVISITS)? + snapshot.len(COPIES)?;
    for part in Part::all(hashes, at_a_time) {
        let said = Said::read(snapshot, part, unread, findings)?;
        waiting += said.waiting.len();
        planned += said.planned.len();
        for entry in snapshot.rows(ADDRESSES)? {
            let entry = entry?;
            let url = entry.key()?;
            if part.has(of_url(url)) {
                findings.look("addresses");
                let address = findings.read("addresses", url, entry.row());
                tally.note(url, address.as_ref(), &said, findings);
            }
        }
    }
    if waiting > tally.waited {
        let more = waiting - tally.waited;
        findings.fault("addresses", || format!("{more} queued requests have no URL row"));
    }
    if planned > tally.planned {
        let mut met = HashSet::new();
        for entry in snapshot.rows(REVISITS)? {
            let entry = entry?;
            let Ok((_, url)) = entry.key() else { continue };
            if !snapshot.has(ADDRESSES, url)? && met.insert(url.to_owned()) {
                findings.fault("revisits", || format!("revisits, row {url}: it is no URL"));
            }
        }
    }
    counters(snapshot, tally.counted, findings)?;
    Ok(!tally.is_missed)
}

impl Tally {
    /// Looks at a URL; its row may be one that cannot be read.
    fn note(&mut self, url: &str, address: Option<&Address>, said: &Said, findings: &mut Findings) {
        let Visits { waits, due } = said.visits(of_url(url));
        self.waited += usize::from(waits);
        self.planned += usize::from(due.is_some());
        let Some(address) = address else { return };
        *self.counted.entry(address.state.counter()).or_default() += 1;
        if address.links_beyond > 0 {
            *self.counted.entry(LINKS_BEYOND.to_owned()).or_default() += address.links_beyond;
        }
        match &address.state {
            State::Queued if !waits && !said.unread => {
                findings.fault("addresses", || format!("{url} is queued and in no queue"));
            }
            State::Stored(document) if !said.has_copy(*document, url) => {
                self.is_missed = true;
                findings.fault("addresses", || format!("{url} is stored and has no copy row"));
            }
            _ => {}
        }
        let again = address.revisit.waits;
        if waits && address.state != State::Queued && !again {
            findings.fault("addresses", || format!("{url} is in a queue and not queued"));
        }
        if again && !waits && !said.unread {
            findings.fault("addresses", || format!("{url} is to be visited and in no queue"));
        }
        let expected = (address.revisit.due.0 != 0 && !again).then_some(address.revisit.due);
        if due != expected {
            findings.fault("addresses", || format!("{url} is due at another time than planned"));
        }
    }
}

/// Counters of URLs tell how many there are.
fn counters(
    snapshot: &Snapshot,
    mut counted: BTreeMap<String, u64>,
    findings: &mut Findings,
) -> Result<(), Error> {
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
