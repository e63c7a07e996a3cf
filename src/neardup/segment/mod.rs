//! The index of a store as a log-structured merge tree: segments that are written once, in order,
//! and become fewer and larger ones in small steps.
//!
//! In: postings, each a key and a content that has it. Out: blocks to be kept, and what was found
//! in those that are. Nothing here knows where blocks are kept ([`Blocks`]).
//!
//! A segment has a table for each rotation of a kind of fingerprints, for each kind of equality
//! keys, and one of contents that are gone. All but the last have filters.

mod ask;
mod block;
mod cursor;
mod filter;
mod levels;
mod merge;
mod size;
mod tree;

pub use ask::{Answer, Ask, Found, SegmentPostings};
pub use block::{BYTES_MAX, BadBlock, Block, BlockWriter, Posting, bytes_of_pages};
pub use filter::{COLUMNS, Filter, KEY_BITS, bits_of};
pub use levels::{SegmentSize, TIER, due};
pub use merge::{Merge, MergeState, PausedTable, Step};
pub use size::{LevelSize, LookUpCost, TableContent, TableSize};
pub use tree::{BlockId, Blocks, FILTERS, SegmentTable, TreeState, TreeWriter, Written};

use super::{Field, Key};
use crate::text::sketch::mix;

/// Rotations of a fingerprint, by 16 bits each: two that differ in few bits agree in the first 16
/// of one of them.
///
/// Source: Manku et al., "Detecting Near-Duplicates for Web Crawling", WWW 2007.
pub const ROTATIONS: u8 = 4;

/// The first table of equality keys; those before it are of rotated fingerprints.
const EQUALITY: u8 = 64;

/// The table of contents that are gone: their numbers are its keys.
pub const GONE: u8 = u8::MAX;

/// Contents of one equality key at most, those with the lowest numbers: what more texts than that
/// have in common is a commonplace that tells nothing.
pub const PER_KEY_MAX: usize = 64;

/// Returns the table of a rotation of a kind of fingerprints.
#[must_use]
pub fn near_table(field: Field, rotation: u8) -> u8 {
    field as u8 * ROTATIONS + rotation
}

/// Returns the kind of fingerprints and the rotation of such a table.
fn near_of(table: u8) -> (Field, u8) {
    let field = if table < ROTATIONS { Field::Content } else { Field::Title };
    (field, table % ROTATIONS)
}

/// Returns the table of a kind of equality keys.
#[must_use]
pub const fn equality_table(key: Key) -> u8 {
    EQUALITY + key as u8
}

/// Returns a hash as an equality key, which has 40 bits: so spread over all keys that each range of
/// them is as full as another.
#[must_use]
pub fn spread(hash: u32) -> u64 {
    mix(u64::from(hash)) >> (u64::BITS - KEY_BITS)
}

/// Returns the hash of a normalised text as an equality key.
#[must_use]
pub fn exact_key(hash: u128) -> u64 {
    (hash >> (u128::BITS - KEY_BITS)) as u64
}

/// Tells whether a table has equality keys.
#[must_use]
pub fn has_hashes(table: u8) -> bool {
    (EQUALITY..GONE).contains(&table)
}

/// Tells whether a table has rotated fingerprints.
#[must_use]
pub fn has_fingerprints(table: u8) -> bool {
    table < EQUALITY
}

/// A part of the index that is written once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub number: u32,
    /// Orders segments by when the first of their contents came.
    pub age: u32,
    /// Contents that were put into it.
    pub contents: u64,
    /// Its tables, in the order of their numbers.
    pub tables: Vec<SegmentTable>,
}

impl Segment {
    /// Makes one without postings.
    #[must_use]
    pub fn new(number: u32, age: u32) -> Self {
        Self { number, age, contents: 0, tables: Vec::new() }
    }

    /// Returns one of its tables.
    #[must_use]
    pub fn table(&self, table: u8) -> Option<&SegmentTable> {
        self.tables.iter().find(|other| other.table == table)
    }

    /// Returns its postings in all tables.
    #[must_use]
    pub fn postings(&self) -> u64 {
        self.tables.iter().map(|table| table.postings).sum()
    }

    /// Writes a segment at once, of postings behind the number of their table.
    #[must_use]
    pub fn of(
        number: u32,
        contents: u64,
        mut postings: Vec<(u8, Posting)>,
    ) -> (Self, Vec<Written>) {
        postings.sort_unstable();
        postings.dedup();
        let mut segment = Self { contents, ..Self::new(number, number) };
        let mut written = Vec::new();
        for table in postings.chunk_by(|a, b| a.0 == b.0) {
            let name = table[0].0;
            let mut writer = TreeWriter::new(number, name, table.len() as u64);
            for (_, posting) in table {
                writer.push(*posting);
            }
            segment.tables.extend(writer.finish());
            written.extend(writer.take_written());
        }
        (segment, written)
    }
}

#[cfg(test)]
mod tests;
