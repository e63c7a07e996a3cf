//! Hosts in memory: the ones in use, with their compiled robots.txt, written back in one go.

use std::collections::HashMap;

use redb::ReadableTable as _;

use crate::base::clock::Timestamp;
use crate::store::{Error, Tables};
use crate::urls::HostKey;
use crate::web::robots::AgentRules;

use super::rows::{Host, Place, time_key};

/// A host in use.
#[derive(Debug)]
pub(super) struct Live {
    /// Its row.
    pub row: Host,
    /// Compiled rules of its robots.txt with the moment at which they expire; none if they were
    /// not read yet.
    pub rules: Option<(AgentRules, Timestamp)>,
    /// Memory that the rules take, in bytes.
    pub rules_bytes: usize,
    /// Places in its queue that are in flight.
    pub in_flight: Vec<Place>,
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
    live: HashMap<u32, Live>,
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
    pub(super) fn known(&self, tables: &Tables<'_>, key: &HostKey) -> Result<Option<u32>, Error> {
        match self.numbers.get(key.as_str()) {
            Some(number) => Ok(Some(*number)),
            None => Ok(tables.host_numbers.get(key.as_str())?.map(|row| row.value())),
        }
    }

    /// Returns the number of a host, giving it one if it is new.
    pub(super) fn number(&mut self, tables: &mut Tables<'_>, key: &HostKey) -> Result<u32, Error> {
        if let Some(number) = self.numbers.get(key.as_str()) {
            return Ok(*number);
        }
        let stored = tables.host_numbers.get(key.as_str())?.map(|row| row.value());
        let number = if let Some(number) = stored {
            number
        } else {
            let number = tables.next_number("next_host")?;
            let number = u32::try_from(number).expect("fewer than four billion hosts");
            let domain = key.domain();
            let hosts = tables.domains.get(domain.as_str())?.map_or(0, |row| row.value());
            tables.domains.insert(domain.as_str(), hosts + 1)?;
            tables.host_numbers.insert(key.as_str(), number)?;
            tables.hosts.insert(number, Host::new(key.as_str()).encode().as_slice())?;
            number
        };
        if self.numbers.len() >= self.max {
            self.numbers.clear();
        }
        self.numbers.insert(key.as_str().to_owned(), number);
        Ok(number)
    }

    /// Returns a host, reading it if it is not in memory.
    pub(super) fn get(&mut self, tables: &Tables<'_>, number: u32) -> Result<&mut Live, Error> {
        use std::collections::hash_map::Entry;
        match self.live.entry(number) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let stored = tables.hosts.get(number)?;
                let missing =
                    crate::store::BadRow { kind: "host", detail: "a queue names one without row" };
                let row = Host::decode(stored.ok_or(missing)?.value())?;
                Ok(entry.insert(Live {
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
    pub(super) fn row(&self, tables: &Tables<'_>, number: u32) -> Result<Host, Error> {
        if let Some(live) = self.live.get(&number) {
            return Ok(live.row.clone());
        }
        let missing =
            crate::store::BadRow { kind: "host", detail: "a schedule names one without row" };
        Ok(Host::decode(tables.hosts.get(number)?.ok_or(missing)?.value())?)
    }

    /// Puts the host in the schedule at `due`, or takes it out.
    pub(super) fn schedule(
        &mut self,
        tables: &mut Tables<'_>,
        number: u32,
        due: Option<Timestamp>,
    ) -> Result<(), Error> {
        let live = self.get(tables, number)?;
        let due = due.map_or(Timestamp(0), |due| Timestamp(due.0.max(1)));
        if live.row.scheduled == due {
            return Ok(());
        }
        if live.row.scheduled.0 != 0 {
            tables.schedule.remove(time_key(live.row.scheduled, number).as_slice())?;
        }
        if due.0 != 0 {
            tables.schedule.insert(time_key(due, number).as_slice(), ())?;
        }
        live.row.scheduled = due;
        live.dirty = true;
        Ok(())
    }

    /// Writes all changed rows, and forgets idle hosts beyond the limit.
    pub(super) fn flush(&mut self, tables: &mut Tables<'_>) -> Result<(), Error> {
        let mut rules_bytes = 0;
        for (number, live) in &mut self.live {
            rules_bytes += live.rules_bytes;
            if live.dirty {
                tables.hosts.insert(*number, live.row.encode().as_slice())?;
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
