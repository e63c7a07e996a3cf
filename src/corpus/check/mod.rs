//! Every invariant of a store, looked at row by row.
//!
//! A row that cannot be read is a fault of its table; what it may have said is then taken as it
//! should be, as far as its key tells, and the check goes on.

mod changes;
mod clusters;
mod feeds;
mod frontier;
mod index;
mod pages;
mod rules;
mod tallies;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};

use serde::Serialize;

use crate::store::{BadRow, Error, Snapshot};

/// Faults that are listed of each table; the others are only counted.
const FAULTS_MAX: usize = 100;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Rows that were looked at, by table; of `near`, entries.
    pub rows: BTreeMap<&'static str, u64>,
    /// Number of faults.
    pub faults: u64,
    /// The first hundred of each table, in words.
    pub listed: Vec<String>,
    #[serde(skip)]
    listed_of: BTreeMap<&'static str, usize>,
}

impl Findings {
    fn fault(&mut self, table: &'static str, text: impl FnOnce() -> String) {
        self.faults += 1;
        let listed = self.listed_of.entry(table).or_default();
        if *listed < FAULTS_MAX {
            *listed += 1;
            self.listed.push(text());
        }
    }

    /// Returns the tables that have faults.
    pub fn tables(&self) -> impl Iterator<Item = &'static str> {
        self.listed_of.keys().copied()
    }

    fn look(&mut self, table: &'static str) {
        *self.rows.entry(table).or_default() += 1;
    }

    /// Returns a row, or notes that it cannot be read.
    fn read<T>(
        &mut self,
        table: &'static str,
        key: impl Display,
        row: Result<T, BadRow>,
    ) -> Option<T> {
        row.inspect_err(|bad| self.fault(table, || format!("{table}, row {key}: {bad}"))).ok()
    }
}

/// A row, as faults name it.
#[derive(Clone, Copy)]
struct Spot<'a> {
    table: &'static str,
    /// Its key, in words.
    key: &'a str,
}

impl Display for Spot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, row {}", self.table, self.key)
    }
}

/// Checks every row of a store against every other that it must agree with.
///
/// # Errors
///
/// Only if the store cannot be read; a row that cannot be decoded is a fault, as any other.
pub fn check(snapshot: &Snapshot) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let waiting = frontier::queues(snapshot, &mut findings)?;
    frontier::hosts(snapshot, &mut findings)?;
    frontier::addresses(snapshot, &waiting, &mut findings)?;
    clusters::documents(snapshot, &mut findings)?;
    clusters::names(snapshot, &mut findings)?;
    clusters::search(snapshot, &mut findings)?;
    clusters::forest(snapshot, &mut findings)?;
    index::contents(snapshot, &mut findings)?;
    index::index(snapshot, &mut findings)?;
    pages::pages(snapshot, &mut findings)?;
    tallies::ranking(snapshot, &mut findings)?;
    tallies::times(snapshot, &mut findings)?;
    tallies::sent(snapshot, &mut findings)?;
    rules::rules(snapshot, &mut findings)?;
    rules::error_pages(snapshot, &mut findings)?;
    feeds::feeds(snapshot, &mut findings)?;
    feeds::log(snapshot, &mut findings)?;
    changes::changes(snapshot, &mut findings)?;
    Ok(findings)
}

/// A key of bytes, as hexadecimal digits.
fn hex(key: &[u8]) -> String {
    key.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

/// Tells a row that cannot be read from a store that cannot.
fn row_of<T>(read: Result<T, Error>) -> Result<Result<T, BadRow>, Error> {
    match read {
        Ok(row) => Ok(Ok(row)),
        Err(Error::Row(bad)) => Ok(Err(bad)),
        Err(error) => Err(error),
    }
}
