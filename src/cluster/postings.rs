//! Postings: by which keys documents are found.

use super::keys::{NUMBER_MAX, Step};
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

/// Bytes of what is kept of a fingerprint.
const NEAR: usize = 6;

fn number_bytes(number: u64) -> Vec<u8> {
    number.to_be_bytes()[8 - NUMBER..].to_vec()
}

fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)) & NUMBER_MAX
}

fn step(buckets: &Buckets, posting: &Posting) -> Step {
    let place = buckets.place(posting.table, posting.key, posting.each);
    let document = posting.document.map(number_bytes).unwrap_or_default();
    let arguments = vec![place.name.into_bytes(), place.rest, document];
    Step { partition: place.partition, arguments }
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
        let answers = self.steps("post", &[], steps)?;
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
            entries.collect()
        }
    }
}
