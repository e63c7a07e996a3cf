//! One immutable part of the rotated layout: four packed tables.
//!
//! Table `t` holds the fingerprints rotated left by `16 * t`. Its directory says where the bucket
//! of each value of the first 16 bits begins; the other 48 bits stand in the bucket: first the
//! low 32 bits of all its rows, then the 16 bits between. So one bucket is one piece of memory.
//! Table 0 has a row for every entry, in the order of fingerprint and number, and a column of
//! document numbers beside it. The others have a row for every different fingerprint, whose
//! numbers are found in table 0. 24 bytes of rows and 4 of numbers: 28 bytes an entry.

use std::ops::Range;
use std::thread;

use crate::text::simhash::Fingerprint;

/// Buckets of one table.
const BUCKETS: usize = 1 << 16;

/// Entries from which tables are built on several threads.
pub(super) const THREADS_MIN: usize = 1 << 20;

/// Half-words of one row.
const ROW: usize = 3;

/// Rows of one bucket.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) first: usize,
    /// The row behind the last one.
    pub(super) end: usize,
}

/// One table: directory and buckets.
#[derive(Debug, Clone)]
pub(super) struct PackedTable {
    /// First row of each bucket, and the number of rows.
    directory: Vec<u32>,
    rows: Vec<u16>,
}

impl PackedTable {
    /// Returns where the bucket of `key` is.
    #[inline]
    pub(super) fn span(&self, key: u16) -> Span {
        let key = usize::from(key);
        Span { first: self.directory[key] as usize, end: self.directory[key + 1] as usize }
    }

    /// Returns the rows of a bucket: the low 32 bits of all, lower half first, then the mids.
    #[inline]
    pub(super) fn bucket(&self, span: Span) -> &[u16] {
        &self.rows[ROW * span.first..ROW * span.end]
    }

    /// Makes a table of fingerprints that are rotated and in order.
    fn in_order(rotated: impl Iterator<Item = u64>, count: usize) -> Self {
        let mut writer = TableWriter::new(count);
        let mut key = 0;
        for word in rotated {
            while key < (word >> 48) as usize {
                writer.end_bucket();
                key += 1;
            }
            writer.push(word);
        }
        (key..BUCKETS).for_each(|_| writer.end_bucket());
        writer.table
    }

    /// Makes a table of rotated fingerprints in any order; goes over them twice.
    fn scattered(rotated: impl Iterator<Item = u64> + Clone) -> Self {
        let mut directory = vec![0u32; BUCKETS + 1];
        for word in rotated.clone() {
            directory[(word >> 48) as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut directory {
            sum += *start;
            *start = sum;
        }
        let mut rows = vec![0u16; ROW * sum as usize];
        let mut next = directory.clone();
        for word in rotated {
            let key = (word >> 48) as usize;
            let (first, last) = (directory[key] as usize, directory[key + 1] as usize);
            let row = next[key] as usize - first;
            next[key] += 1;
            rows[ROW * first + 2 * row] = word as u16;
            rows[ROW * first + 2 * row + 1] = (word >> 16) as u16;
            rows[ROW * first + 2 * (last - first) + row] = (word >> 32) as u16;
        }
        Self { directory, rows }
    }

    /// Joins two tables, without the fingerprints of `gone`, which are rotated and in order.
    fn joined(&self, other: &Self, gone: [&[u64]; 2]) -> Self {
        let mut writer = TableWriter::new((self.rows.len() + other.rows.len()) / ROW);
        for key in 0..=u16::MAX {
            let parts = [self, other].map(|table| table.bucket(table.span(key)));
            if gone.iter().all(|gone| gone.is_empty()) {
                for rows in parts {
                    let (lows, mids) = rows.split_at(rows.len() / ROW * 2);
                    writer.table.rows.extend_from_slice(lows);
                    writer.mids.extend_from_slice(mids);
                }
            } else {
                for (rows, gone) in parts.into_iter().zip(gone) {
                    let words = (0..rows.len() / ROW).map(|row| word(key, rows, row));
                    words
                        .filter(|word| gone.binary_search(word).is_err())
                        .for_each(|word| writer.push(word));
                }
            }
            writer.end_bucket();
        }
        writer.table.rows.shrink_to_fit();
        writer.table
    }

    /// Returns all rotated fingerprints, bucket by bucket.
    fn words(&self) -> impl Iterator<Item = u64> {
        (0..=u16::MAX).flat_map(|key| {
            let rows = self.bucket(self.span(key));
            (0..rows.len() / ROW).map(move |row| word(key, rows, row))
        })
    }

    fn bytes(&self) -> usize {
        4 * self.directory.capacity() + 2 * self.rows.capacity()
    }
}

/// Puts one row together.
fn word(key: u16, rows: &[u16], row: usize) -> u64 {
    let mids = &rows[rows.len() / ROW * 2..];
    let low = u64::from(rows[2 * row + 1]) << 16 | u64::from(rows[2 * row]);
    u64::from(key) << 48 | u64::from(mids[row]) << 32 | low
}

/// Writes a table bucket by bucket.
struct TableWriter {
    table: PackedTable,
    mids: Vec<u16>,
}

impl TableWriter {
    fn new(count: usize) -> Self {
        let mut directory = Vec::with_capacity(BUCKETS + 1);
        directory.push(0);
        let table = PackedTable { directory, rows: Vec::with_capacity(ROW * count) };
        Self { table, mids: Vec::new() }
    }

    fn push(&mut self, word: u64) {
        self.table.rows.extend([word as u16, (word >> 16) as u16]);
        self.mids.push((word >> 32) as u16);
    }

    fn end_bucket(&mut self) {
        self.table.rows.append(&mut self.mids);
        let count = self.table.rows.len() / ROW;
        self.table.directory.push(u32::try_from(count).expect("fewer than 2^32 entries"));
    }
}

/// The four tables, the document numbers and the marks of removed entries.
#[derive(Debug, Clone)]
pub(super) struct PackedPart {
    pub(super) tables: [PackedTable; 4],
    numbers: Vec<u32>,
    /// A bit for each row of table 0; empty while nothing is removed.
    dead: Vec<u64>,
    dead_count: usize,
}

impl PackedPart {
    /// Packs entries that are in order and all different.
    pub(super) fn of(entries: &[(Fingerprint, u32)]) -> Self {
        let all = entries.iter().map(|(fingerprint, _)| fingerprint.0);
        let mut distinct: Vec<u64> = all.clone().collect();
        distinct.dedup();
        let distinct = distinct.as_slice();
        let table =
            |left| PackedTable::scattered(distinct.iter().map(move |word| word.rotate_left(left)));
        let first = PackedTable::in_order(all, entries.len());
        let tables = if entries.len() < THREADS_MIN {
            [first, table(16), table(32), table(48)]
        } else {
            thread::scope(|scope| {
                let [second, third] = [16, 32].map(|left| scope.spawn(move || table(left)));
                let fourth = table(48);
                let [second, third] = [second, third].map(|built| built.join().expect("no panic"));
                [first, second, third, fourth]
            })
        };
        let numbers = entries.iter().map(|(_, number)| *number).collect();
        Self { tables, numbers, dead: Vec::new(), dead_count: 0 }
    }

    /// Joins two parts that have no entry in common and leaves out what is removed. Table after
    /// table, so that at most one is there twice.
    pub(super) fn merge(self, other: Self) -> Self {
        let [mut gone, mut other_gone] = [self.vanished(), other.vanished()];
        other_gone.extend(other.shared(&self));
        other_gone.sort_unstable();
        let entries = merged(self.live(), other.live());
        let count = self.len() + other.len();
        let mut numbers = Vec::with_capacity(count);
        let words = entries.map(|(word, number)| {
            numbers.push(number);
            word
        });
        let first = PackedTable::in_order(words, count);
        let mut pairs = self.tables.into_iter().zip(other.tables).skip(1);
        let mut next = || {
            for gone in [&mut gone, &mut other_gone] {
                for word in gone.iter_mut() {
                    *word = word.rotate_left(16);
                }
                gone.sort_unstable();
            }
            let (left, right) = pairs.next().expect("three more tables");
            left.joined(&right, [&gone, &other_gone])
        };
        Self { tables: [first, next(), next(), next()], numbers, dead: Vec::new(), dead_count: 0 }
    }

    /// Returns the entries that are not removed, in order.
    fn live(&self) -> impl Iterator<Item = (u64, u32)> {
        let entries = self.tables[0].words().zip(&self.numbers).enumerate();
        entries.filter(|(row, _)| !self.is_dead(*row)).map(|(_, (word, number))| (word, *number))
    }

    /// Returns the fingerprints of which every entry is removed, in order.
    fn vanished(&self) -> Vec<u64> {
        if self.dead_count == 0 {
            return Vec::new();
        }
        let mut words: Vec<u64> = self.tables[0].words().collect();
        words.dedup();
        words.retain(|word| !self.holds(*word));
        words
    }

    /// Returns the fingerprints that `other` holds too.
    fn shared(&self, other: &Self) -> Vec<u64> {
        let mut words: Vec<u64> = self.live().map(|(word, _)| word).collect();
        words.dedup();
        words.retain(|word| other.holds(*word));
        words
    }

    /// Tells whether any number of the fingerprint is there.
    fn holds(&self, word: u64) -> bool {
        self.equal(word).any(|row| !self.is_dead(row))
    }

    /// Returns the rows of table 0 with exactly this fingerprint.
    fn equal(&self, fingerprint: u64) -> Range<usize> {
        let first = self.lower_bound(fingerprint, 0);
        let last = (fingerprint < u64::MAX).then(|| self.lower_bound(fingerprint + 1, 0));
        let end = self.tables[0].span((fingerprint >> 48) as u16).end;
        first..last.unwrap_or(end).min(end)
    }

    /// Returns the first row of the bucket that is not below an entry, or the end of the bucket.
    fn lower_bound(&self, fingerprint: u64, number: u32) -> usize {
        let key = (fingerprint >> 48) as u16;
        let span = self.tables[0].span(key);
        let rows = self.tables[0].bucket(span);
        let (mut low, mut high) = (0, span.end - span.first);
        while low < high {
            let row = low.midpoint(high);
            if (word(key, rows, row), self.numbers[span.first + row]) < (fingerprint, number) {
                low = row + 1;
            } else {
                high = row;
            }
        }
        span.first + low
    }

    /// Returns the row of an entry in table 0, removed or not.
    pub(super) fn find(&self, fingerprint: Fingerprint, number: u32) -> Option<usize> {
        let (row, key) = (self.lower_bound(fingerprint.0, number), (fingerprint.0 >> 48) as u16);
        let span = self.tables[0].span(key);
        (row < span.end
            && word(key, self.tables[0].bucket(span), row - span.first) == fingerprint.0
            && self.numbers[row] == number)
            .then_some(row)
    }

    /// Returns the fingerprint of a row, rotated back.
    pub(super) fn fingerprint(&self, table: usize, key: u16, row: usize) -> Fingerprint {
        let span = self.tables[table].span(key);
        let word = word(key, self.tables[table].bucket(span), row - span.first);
        Fingerprint(word.rotate_right(16 * table as u32))
    }

    /// Returns the number of a row of table 0, if it is not removed.
    pub(super) fn number(&self, row: usize) -> Option<u32> {
        (!self.is_dead(row)).then(|| self.numbers[row])
    }

    /// Returns all numbers of a fingerprint.
    pub(super) fn numbers(&self, fingerprint: Fingerprint) -> impl Iterator<Item = u32> {
        self.equal(fingerprint.0).filter_map(|row| self.number(row))
    }

    /// Marks a row of table 0 as removed or as there, and tells whether that is a change.
    pub(super) fn mark(&mut self, row: usize, dead: bool) -> bool {
        if self.is_dead(row) == dead {
            return false;
        }
        self.dead.resize(self.numbers.len().div_ceil(64), 0);
        self.dead[row / 64] ^= 1 << (row % 64);
        if dead {
            self.dead_count += 1;
        } else {
            self.dead_count -= 1;
        }
        true
    }

    fn is_dead(&self, row: usize) -> bool {
        self.dead_count > 0 && self.dead[row / 64] >> (row % 64) & 1 == 1
    }

    /// Returns the number of entries that are not removed.
    pub(super) fn len(&self) -> usize {
        self.numbers.len() - self.dead_count
    }

    /// Returns the number of entries that are removed and still take space.
    pub(super) fn dead(&self) -> usize {
        self.dead_count
    }

    pub(super) fn bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(PackedTable::bytes).sum();
        tables + 4 * self.numbers.capacity() + 8 * self.dead.capacity()
    }
}

/// Merges two sequences that are in order.
fn merged(
    left: impl Iterator<Item = (u64, u32)>,
    right: impl Iterator<Item = (u64, u32)>,
) -> impl Iterator<Item = (u64, u32)> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    std::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some(one), Some(two)) if one <= two => left.next(),
        (Some(_), None) => left.next(),
        _ => right.next(),
    })
}
