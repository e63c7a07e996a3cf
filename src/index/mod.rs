//! Which stored contents could be the same as a new one: exact hashes, and the rotated tables
//! that find every fingerprint within `k` bits.
//!
//! A 64-bit fingerprint is cut into four blocks of 16 bits. Fingerprints that differ in at most
//! three bits agree in at least one block (pigeonhole). Table `t` holds every fingerprint rotated
//! left by `16 * t`, so that block `t` comes first and one range scan finds all that agree in it.
//!
//! Row of `near`: table number (1 byte: 0-3 content, 4-7 title), rotated fingerprint (8 bytes),
//! content number (8 bytes), all big-endian.
//!
//! Source: Manku et al., "Detecting Near-Duplicates for Web Crawling", WWW 2007; the row key is
//! that of the text on simhash engineering with the table number first, so that tables do not
//! interleave, and the content number last, so that equal fingerprints do not overwrite each other.

use std::collections::BTreeMap;

use redb::{ReadableTable, Table};

use crate::simhash::Fingerprint;
use crate::store::Error;

/// Largest distance that four tables find without fail.
pub const K_MAX: u32 = 3;

/// Tables of one field.
const TABLES: u8 = 4;

/// Bits of one block.
const BLOCK: u32 = 16;

/// Rows of one block that a look-up reads at most; a fuller block holds a commonplace such as an
/// error page, and reading all of it would make one page cost as much as a thousand.
const ROWS_MAX: usize = 20_000;

/// Which fingerprint of a page a table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Of the main text.
    Content,
    /// Of the title.
    Title,
}

/// A stored fingerprint near the one that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// Number of the content.
    pub content: u64,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// Bits in which it differs, 0 to `k`.
    pub distance: u32,
}

/// The rotated tables of one field.
#[derive(Debug, Clone, Copy)]
pub struct Tables {
    field: Field,
}

impl Tables {
    /// Names the tables of `field`.
    #[must_use]
    pub fn new(field: Field) -> Self {
        Self { field }
    }

    /// Adds the fingerprint of `content`: four rows.
    pub fn insert(
        self,
        near: &mut Table<&[u8], ()>,
        fingerprint: Fingerprint,
        content: u64,
    ) -> Result<(), Error> {
        for table in 0..TABLES {
            near.insert(self.key(table, fingerprint, content).as_slice(), ())?;
        }
        Ok(())
    }

    /// Removes the fingerprint of `content`, which must be the one that was inserted.
    pub fn remove(
        self,
        near: &mut Table<&[u8], ()>,
        fingerprint: Fingerprint,
        content: u64,
    ) -> Result<(), Error> {
        for table in 0..TABLES {
            near.remove(self.key(table, fingerprint, content).as_slice())?;
        }
        Ok(())
    }

    /// Tells whether all four rows of the fingerprint of `content` are there.
    pub fn contains(
        self,
        near: &impl ReadableTable<&'static [u8], ()>,
        fingerprint: Fingerprint,
        content: u64,
    ) -> Result<bool, Error> {
        for table in 0..TABLES {
            if near.get(self.key(table, fingerprint, content).as_slice())?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns every stored fingerprint within `k` bits of `query`, nearest first, then in the
    /// order of the content numbers.
    ///
    /// `k` is inclusive and at most [`K_MAX`]; four differing bits may touch all four blocks.
    /// Reads one key range a table, about `n / 65_536` rows each for `n` fingerprints.
    pub fn probe(
        self,
        near: &impl ReadableTable<&'static [u8], ()>,
        query: Fingerprint,
        k: u32,
    ) -> Result<Vec<Match>, Error> {
        assert!(k <= K_MAX, "four tables find at most {K_MAX} differing bits");
        let mut found = BTreeMap::new();
        for table in 0..TABLES {
            let rotated = query.0.rotate_left(BLOCK * u32::from(table));
            let block = rotated >> (64 - BLOCK) << (64 - BLOCK);
            let first = self.row(table, block, 0);
            let last = self.row(table, block | (u64::MAX >> BLOCK), u64::MAX);
            for row in near.range(first.as_slice()..=last.as_slice())?.take(ROWS_MAX) {
                let row = row?;
                let (stored, content) = split(row.0.value());
                let distance = (stored ^ rotated).count_ones();
                if distance <= k {
                    let fingerprint = stored.rotate_right(BLOCK * u32::from(table));
                    found.insert((distance, content), Fingerprint(fingerprint));
                }
            }
        }
        let matches = found.into_iter();
        Ok(matches
            .map(|((distance, content), fingerprint)| Match { content, fingerprint, distance })
            .collect())
    }

    fn key(self, table: u8, fingerprint: Fingerprint, content: u64) -> [u8; 17] {
        self.row(table, fingerprint.0.rotate_left(BLOCK * u32::from(table)), content)
    }

    fn row(self, table: u8, rotated: u64, content: u64) -> [u8; 17] {
        let mut row = [0; 17];
        row[0] = match self.field {
            Field::Content => table,
            Field::Title => TABLES + table,
        };
        row[1..9].copy_from_slice(&rotated.to_be_bytes());
        row[9..].copy_from_slice(&content.to_be_bytes());
        row
    }
}

fn split(row: &[u8]) -> (u64, u64) {
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    (number(&row[1..9]), number(&row[9..17]))
}
