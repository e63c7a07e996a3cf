//! Postings: by which keys documents are found.

use super::keys::{NUMBER_MAX, Place, Step};
use super::{Buckets, Engine, Error, Table};

/// A posting, or what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Posting {
    /// Its kind.
    pub table: Table,
    /// Its key: a fingerprint, or 40 bits.
    pub key: u64,
    /// How many keys of the kind a document has, about.
    pub each: u64,
    /// The document that has the key; none to ask only.
    pub document: Option<u64>,
}

/// Bytes of the number of a document.
const NUMBER: usize = 5;

/// Bytes of what is kept of a fingerprint, and of other keys.
const NEAR: usize = 6;
const EQUAL: usize = 3;

fn number_bytes(number: u64) -> Vec<u8> {
    number.to_be_bytes()[8 - NUMBER..].to_vec()
}

fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)) & NUMBER_MAX
}

/// A posting as one argument: kind, field, rest, and of a document how many hashes there are to be,
/// and its number.
fn step(buckets: &Buckets, posting: &Posting) -> Step {
    let place = Place::of(posting.table, posting.key);
    let mut argument = posting.table.kind().to_vec();
    argument.push(place.field);
    if let Table::Near(_) = posting.table {
        argument.push(if buckets.is_wide { b'w' } else { b'n' });
    }
    argument.extend_from_slice(&place.rest);
    if let Some(document) = posting.document {
        if let Table::Equal(_) = posting.table {
            let hashes = buckets.hashes(document, posting.each);
            argument.extend_from_slice(&hashes.to_be_bytes()[1..]);
        }
        argument.extend_from_slice(&number_bytes(document));
    }
    Step { partition: place.partition, arguments: vec![argument] }
}

impl Engine {
    /// Adds postings that name a document, and returns for each the distance and number of every
    /// other document there: of equal keys those that have the same, of fingerprints all of the
    /// same first 16 bits.
    pub fn post(
        &mut self,
        buckets: &Buckets,
        postings: &[Posting],
    ) -> Result<Vec<Vec<(u32, u64)>>, Error> {
        let steps = postings.iter().map(|posting| step(buckets, posting)).collect();
        // A node that is full may be asked what is there.
        let adds = postings.iter().any(|posting| posting.document.is_some());
        let answers = self.steps(if adds { "post" } else { "find" }, &[], steps)?;
        let found = postings.iter().zip(answers).map(|(posting, answer)| {
            let mut found = read(posting, &answer);
            found.retain(|(_, number)| Some(*number) != posting.document);
            found
        });
        Ok(found.collect())
    }

    /// Removes postings.
    pub fn unpost(&mut self, buckets: &Buckets, postings: &[Posting]) -> Result<(), Error> {
        let steps = postings.iter().map(|posting| step(buckets, posting)).collect();
        self.steps("unpost", &[], steps).map(drop)
    }

    /// Calls `each` with all postings of some kinds in a partition, some at a time. What comes or
    /// goes meanwhile may be missing, or come twice.
    pub fn each_posting(
        &mut self,
        partition: u64,
        tables: &[Table],
        mut each: impl FnMut(&mut Self, Vec<Posting>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut next: Vec<(Table, u64)> = tables.iter().map(|table| (*table, 0)).collect();
        while !next.is_empty() {
            let steps = next.iter().map(|(table, at)| {
                let arguments = vec![table.kind().to_vec(), at.to_string().into_bytes()];
                Step { partition, arguments }
            });
            let answers = self.steps("entries", &[], steps.collect())?;
            let asked = std::mem::take(&mut next);
            for ((table, at), answer) in asked.into_iter().zip(answers) {
                let odd = || Error::Odd("postings are cut short".to_owned());
                let (hashes, entries) = answer.split_at_checked(3).ok_or_else(odd)?;
                each(self, entries_of(partition, table, entries).ok_or_else(odd)?)?;
                if at + 1 < number_of(hashes) {
                    next.push((table, at + 1));
                }
            }
        }
        Ok(())
    }
}

/// Reads all entries of a hash: fields, each with its letter, its length and its entries.
fn entries_of(partition: u64, table: Table, mut rest: &[u8]) -> Option<Vec<Posting>> {
    let width = if let Table::Near(_) = table { NEAR } else { EQUAL } + NUMBER;
    let mut postings = Vec::new();
    while let Some((field, after)) = rest.split_first() {
        let (length, after) = after.split_first_chunk()?;
        let (entries, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        for entry in entries.chunks_exact(width) {
            let (key, number) = entry.split_at(width - NUMBER);
            // A place that nobody has any more.
            if number_of(number) == 0 {
                continue;
            }
            let key = Place::key(table, partition, *field, key);
            postings.push(Posting { table, key, each: 1, document: Some(number_of(number)) });
        }
        rest = after;
    }
    Some(postings)
}

fn read(posting: &Posting, answer: &[u8]) -> Vec<(u32, u64)> {
    match posting.table {
        Table::Equal(_) => answer.chunks_exact(NUMBER).map(|id| (0, number_of(id))).collect(),
        Table::Near(_) => {
            let entries = answer.chunks_exact(NEAR + NUMBER).map(|entry| {
                let (rest, id) = entry.split_at(NEAR);
                let rest = rest.iter().fold(0, |rest, byte| rest << 8 | u64::from(*byte));
                // The first bits are those of the bucket that was asked.
                let key = posting.key & !(u64::MAX >> 16) | rest;
                ((key ^ posting.key).count_ones(), number_of(id))
            });
            entries.filter(|(_, number)| *number > 0).collect()
        }
    }
}
