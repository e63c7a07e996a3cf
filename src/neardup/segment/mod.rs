//! The index of a store as a log-structured merge tree: segments that are written once, in order,
//! and become fewer and larger ones in small steps.
//!
//! In: postings, each a key and a content that has it. Out: blocks to be kept, and what was found in
//! those that are. Nothing here knows where blocks are kept ([`Blocks`]).
//!
//! A segment has a table for each rotation of a kind of fingerprints, for each kind of equality keys,
//! and one of contents that are gone. Equality keys have filters.

mod block;
mod filter;
mod levels;
mod merge;
mod tree;

pub use block::{BYTES_MAX, BadBlock, Block, BlockWriter, Posting};
pub use filter::Filter;
pub use levels::{SegmentSize, due};
pub use merge::{Merge, MergeState, PausedTable, Step};
pub use tree::{BlockId, Blocks, FILTERS, SegmentTable, TreeState, TreeWriter, Written};

/// The first table of equality keys; those before it are of rotated fingerprints.
pub const EQUALITY: u8 = 64;

/// The table of contents that are gone: their numbers are its keys.
pub const GONE: u8 = u8::MAX;

/// Contents of one equality key at most, those with the lowest numbers: what more texts than that
/// have in common is a commonplace that tells nothing.
pub const PER_KEY_MAX: usize = 64;

/// Tells whether a table has equality keys, and so filters.
#[must_use]
pub fn is_filtered(table: u8) -> bool {
    (EQUALITY..GONE).contains(&table)
}

/// A part of the index that is written once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub number: u32,
    /// Contents that were put into it.
    pub contents: u64,
    /// Its tables, in the order of their numbers.
    pub tables: Vec<SegmentTable>,
}

impl Segment {
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
    pub fn of(number: u32, contents: u64, mut postings: Vec<(u8, Posting)>) -> (Self, Vec<Written>) {
        postings.sort_unstable();
        postings.dedup();
        let mut segment = Self { number, contents, tables: Vec::new() };
        let mut written = Vec::new();
        for table in postings.chunk_by(|a, b| a.0 == b.0) {
            let name = table[0].0;
            let mut writer = TreeWriter::new(number, name, table.len() as u64, is_filtered(name));
            table.iter().for_each(|(_, posting)| writer.push(*posting));
            segment.tables.extend(writer.finish());
            written.extend(writer.take_written());
        }
        (segment, written)
    }
}

#[cfg(test)]
mod tests;
