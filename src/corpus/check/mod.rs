//! Every invariant of a store, looked at row by row.
//!
//! A row that cannot be read is a fault of its table; what it may have said is then taken as it
//! should be, as far as its key tells, and the check goes on.

mod addresses;
mod changes;
mod clusters;
mod facts;
mod feeds;
mod frontier;
mod index;
mod pages;
mod rules;
mod tallies;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};

use roaring::RoaringTreemap;
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
        self.looked(table, 1);
    }

    fn looked(&mut self, table: &'static str, rows: usize) {
        *self.rows.entry(table).or_default() += rows as u64;
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

/// Numbers that rows of several tables name.
struct Numbers {
    documents: RoaringTreemap,
    contents: RoaringTreemap,
}

/// How much of a store is held in memory: what it says of this many URLs (at 16 to 32 bytes), or
/// the postings of this many contents (at three times 16 bytes). Where it has more, tables are read
/// several times.
pub const AT_A_TIME: u64 = 4 << 20;

/// Checks every row of a store against every other that it must agree with.
///
/// # Errors
///
/// Only if the store cannot be read; a row that cannot be decoded is a fault, as any other.
pub fn check(snapshot: &Snapshot) -> Result<Findings, Error> {
    check_in_parts(snapshot, AT_A_TIME, &mut |_| {})
}

/// Does what [`check`] does with `at_a_time` in place of [`AT_A_TIME`], at least one, and tells
/// what is looked at when that begins.
///
/// # Errors
///
/// As of [`check`].
pub fn check_in_parts(
    snapshot: &Snapshot,
    at_a_time: u64,
    tell: &mut dyn FnMut(&'static str),
) -> Result<Findings, Error> {
    let at_a_time = at_a_time.max(1);
    let mut findings = Findings::default();
    let found = &mut findings;
    tell("queues and hosts");
    let unread = frontier::queues(snapshot, found)?;
    frontier::hosts(snapshot, found)?;
    frontier::revisits(snapshot, found)?;
    tell("URLs");
    let all_have_copies = addresses::addresses(snapshot, unread, at_a_time, found)?;
    tell("documents and copies");
    let documents = clusters::documents(snapshot, found)?;
    clusters::names(snapshot, &documents, at_a_time, found)?;
    clusters::search(snapshot, found)?;
    let contents = clusters::forest(snapshot, found)?;
    let numbers = Numbers { documents, contents };
    tell("texts");
    let texts = index::texts(snapshot, &numbers, found)?;
    tell("the index");
    index::contents(snapshot, &numbers, &texts, at_a_time, found)?;
    index::index(snapshot, found)?;
    index::looks(snapshot, &numbers, found)?;
    tell("pages");
    pages::pages(snapshot, all_have_copies, found)?;
    tell("lists and rules");
    tallies::ranking(snapshot, found)?;
    tallies::times(snapshot, found)?;
    tallies::sent(snapshot, found)?;
    rules::rules(snapshot, found)?;
    rules::error_pages(snapshot, found)?;
    feeds::feeds(snapshot, found)?;
    feeds::log(snapshot, &numbers, found)?;
    changes::changes(snapshot, &numbers, found)?;
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
