//! Every invariant of a store, looked at row by row.
//!
//! A row that cannot be read is a fault of its table; what it may have said is then taken as it
//! should be, as far as its key tells, and the check goes on.

mod clusters;
mod feeds;
mod frontier;
mod index;
mod rules;
mod tallies;

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use serde::Serialize;

use crate::store::{BadRow, Error, ReadTables};

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

/// Checks every row of a store against every other that it must agree with.
///
/// # Errors
///
/// Only if the store cannot be read; a row that cannot be decoded is a fault, as any other.
pub fn check(tables: &ReadTables) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let waiting = frontier::queues(tables, &mut findings)?;
    frontier::hosts(tables, &mut findings)?;
    frontier::addresses(tables, &waiting, &mut findings)?;
    clusters::documents(tables, &mut findings)?;
    clusters::names(tables, &mut findings)?;
    clusters::search(tables, &mut findings)?;
    clusters::forest(tables, &mut findings)?;
    index::contents(tables, &mut findings)?;
    index::index(tables, &mut findings)?;
    tallies::ranking(tables, &mut findings)?;
    tallies::times(tables, &mut findings)?;
    tallies::sent(tables, &mut findings)?;
    rules::rules(tables, &mut findings)?;
    rules::error_pages(tables, &mut findings)?;
    feeds::feeds(tables, &mut findings)?;
    feeds::log(tables, &mut findings)?;
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
