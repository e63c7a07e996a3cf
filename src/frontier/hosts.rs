//! Hosts in memory: the ones in use, with their compiled robots.txt, written back in one go.

use std::collections::HashMap;

use crate::base::clock::Timestamp;
use crate::store::{BadRow, Batch, Error, Update as _, View as _};
use crate::urls::HostKey;
use crate::web::robots::AgentRules;

use super::rows::{Host, QueuePlace};
use super::tables::{DOMAINS, HOST_NUMBERS, HOSTS, SCHEDULE};

/// A host in use.
#[derive(Debug)]
pub(super) struct LiveHost {
    /// Its row.
    pub row: Host,
    /// Compiled rules of its robots.txt with the moment at which they expire; none if they were
    /// not read yet.
    pub rules: Option<(AgentRules, Timestamp)>,
    /// Memory that the rules take, in bytes.
    pub rules_bytes: usize,
    /// Places in its queue that are in flight.
    pub in_flight: Vec<QueuePlace>,
    /// Its own robots.txt is in flight.
    pub robots_in_flight: bool,
    /// The row differs from the stored one.
    pub dirty: bool,
    /// The row has news that a crash must not lose before the next request is sent.
    pub hold: bool,
}

/// The hosts in memory. At most `max` that are idle are kept.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    live: HashMap<u32, LiveHost>,
    numbers: HashMap<String, u32>,
    max: usize,
    /// Bytes of rules that are kept.
    rules_bytes_max: usize,
}

impl Hosts {
    pub(super) fn new(max: usize, rules_bytes_max: usize) -> Self {
        Self { max: max.max(1), rules_bytes_max, ..Self::default() }
    }

    /// Returns the number of a host, if it has one.
    pub(super) fn known(&self, batch: &Batch, key: &HostKey) -> Result<Option<u32>, Error> {
        match self.numbers.get(key.as_str()) {
            Some(number) => Ok(Some(*number)),
            None => batch.get(HOST_NUMBERS, key.as_str()),
        }
    }

    /// Returns the number of a host, giving it one if it is new.
    pub(super) fn number(&mut self, batch: &mut Batch, key: &HostKey) -> Result<u32, Error> {
        if let Some(number) = self.numbers.get(key.as_str()) {
            return Ok(*number);
        }
        let number = if let Some(number) = batch.get(HOST_NUMBERS, key.as_str())? {
            number
        } else {
            let number = batch.next_number("next_host")?;
            let number = u32::try_from(number).expect("fewer than four billion hosts");
            let domain = key.domain();
            let hosts = batch.get(DOMAINS, domain.as_str())?.unwrap_or(0);
            batch.put(DOMAINS, domain.as_str(), &(hosts + 1))?;
            batch.put(HOST_NUMBERS, key.as_str(), &number)?;
            batch.put(HOSTS, number, &Host::new(key.as_str()))?;
            number
        };
        if self.numbers.len() >= self.max {
            self.numbers.clear();
        }
        self.numbers.insert(key.as_str().to_owned(), number);
        Ok(number)
    }

    /// Returns a host, reading it if it is not in memory.
    pub(super) fn get(&mut self, batch: &Batch, number: u32) -> Result<&mut LiveHost, Error> {
        use std::collections::hash_map::Entry;
        match self.live.entry(number) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let missing = BadRow { kind: "host", detail: "a queue names one without row" };
                let row = batch.get(HOSTS, number)?.ok_or(missing)?;
                Ok(entry.insert(LiveHost {
                    row,
                    rules: None,
                    rules_bytes: 0,
                    in_flight: Vec::new(),
                    robots_in_flight: false,
                    dirty: false,
                    hold: false,
                }))
            }
        }
    }

    /// Returns what is known of a host, without keeping it in memory.
    pub(super) fn row(&self, batch: &Batch, number: u32) -> Result<Host, Error> {
        if let Some(live) = self.live.get(&number) {
            return Ok(live.row.clone());
        }
        let missing = BadRow { kind: "host", detail: "a schedule names one without row" };
        Ok(batch.get(HOSTS, number)?.ok_or(missing)?)
    }

    /// Puts the host in the schedule at `due`, or takes it out.
    pub(super) fn schedule(
        &mut self,
        batch: &mut Batch,
        number: u32,
        due: Option<Timestamp>,
    ) -> Result<(), Error> {
        let live = self.get(batch, number)?;
        let due = due.map_or(Timestamp(0), |due| Timestamp(due.0.max(1)));
        if live.row.scheduled == due {
            return Ok(());
        }
        if live.row.scheduled.0 != 0 {
            batch.remove(SCHEDULE, (live.row.scheduled, number))?;
        }
        if due.0 != 0 {
            batch.put(SCHEDULE, (due, number), &())?;
        }
        live.row.scheduled = due;
        live.dirty = true;
        Ok(())
    }

    /// Writes all changed rows, and forgets idle hosts beyond the limit.
    pub(super) fn flush(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let mut rules_bytes = 0;
        for (number, live) in &mut self.live {
            rules_bytes += live.rules_bytes;
            if live.dirty {
                batch.put(HOSTS, *number, &live.row)?;
                live.dirty = false;
            }
            live.hold = false;
        }
        if rules_bytes > self.rules_bytes_max {
            for live in self.live.values_mut() {
                (live.rules, live.rules_bytes) = (None, 0);
            }
        }
        if self.live.len() > self.max {
            self.live.retain(|_, live| !live.in_flight.is_empty() || live.robots_in_flight);
        }
        Ok(())
    }
}
