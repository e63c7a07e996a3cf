//! The fingerprints of a store: a log, and the rotated tables into which it is folded.
//!
//! Each commit appends its fingerprints as one row of the log, 17 bytes each. When the log has
//! outgrown the tables, they are written anew with all entries: each entry is rewritten about once
//! per doubling of the store, instead of four random rows of a B-tree being changed for each.
//!
//! Row of `near`: key: number of the table (1 byte: 0-3 content, 4-7 title), top 12 bits of the
//! rotated fingerprint (2 bytes); value: entries of 16 bytes in increasing order, rotated
//! fingerprint and content number, all big-endian. Table `t` holds every fingerprint rotated
//! left by `16 * t`, so that fingerprints that differ in at most three bits agree in the first
//! 16 bits of one table.
//!
//! Row of `near_log`: entries of 17 bytes: 1 for a title plus 2 for a removal, fingerprint, content
//! number.
//!
//! Source: Manku et al., "Detecting Near-Duplicates for Web Crawling", WWW 2007; the row key is
//! that of the text on simhash engineering, table number first so that tables do not
//! interleave, many entries a row, and the content number with each so that equal fingerprints
//! do not overwrite each other.

use std::collections::{BTreeSet, HashSet};

use crate::corpus::tables::{NEAR, NEAR_LOG};
use crate::store::{BadRow, Batch, Error, Update as _, View};
use crate::text::simhash::Fingerprint;

use crate::neardup::{Change, Field};

/// Largest distance that [`probe`] finds without fail.
pub const K_MAX: u32 = 3;

/// Batch of one field.
const TABLES: u8 = 4;

/// Bits of one block.
const BLOCK: u32 = 16;

/// Bits of a rotated fingerprint that stand in the key of a row.
const PREFIX: u32 = 12;

/// Bytes of an entry in the tables, and in the log.
const ENTRY: usize = 16;
const LOGGED: usize = 17;

/// The log is not folded before it has this many entries.
const FOLD_MIN: usize = 1 << 16;

/// All entries of an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entries {
    /// Fingerprints of texts with the numbers of their contents.
    pub contents: Vec<(Fingerprint, u64)>,
    /// Fingerprints of titles with the numbers of their contents.
    pub titles: Vec<(Fingerprint, u64)>,
    /// Entries of the log among them, removals counted too.
    logged: usize,
}

impl Entries {
    fn of(&mut self, field: Field) -> &mut Vec<(Fingerprint, u64)> {
        match field {
            Field::Content => &mut self.contents,
            Field::Title => &mut self.titles,
        }
    }

    /// Tells whether the log has outgrown the tables.
    #[must_use]
    pub fn is_fold_due(&self) -> bool {
        let folded = (self.contents.len() + self.titles.len()).saturating_sub(self.logged);
        self.logged >= FOLD_MIN.max(folded)
    }
}

/// Appends changes to the log.
pub fn append(batch: &mut Batch, changes: impl IntoIterator<Item = Change>) {
    let mut row = Vec::new();
    for change in changes {
        let title = u8::from(change.field == Field::Title);
        row.push(title | u8::from(change.removed) << 1);
        row.extend_from_slice(&change.fingerprint.0.to_be_bytes());
        row.extend_from_slice(&change.content.to_be_bytes());
    }
    if !row.is_empty() {
        batch.append(NEAR_LOG, &row);
    }
}

/// Reads all entries: the first table of each field, and the log.
pub fn load(view: &impl View) -> Result<Entries, Error> {
    read(view, Err)
}

/// Reads all entries of the rows that can be read; [`faults`] lists the others.
pub fn load_sound(view: &impl View) -> Result<Entries, Error> {
    read(view, |_| Ok(()))
}

/// Reads all entries; `bad` says whether a row that cannot be read is passed over.
fn read(view: &impl View, bad: impl Fn(BadRow) -> Result<(), BadRow>) -> Result<Entries, Error> {
    let mut entries = Entries::default();
    for (field, table) in [(Field::Content, 0), (Field::Title, TABLES)] {
        for entry in view.under(NEAR, table)? {
            match split(entry?.bytes()) {
                Ok(row) => entries.of(field).extend(row),
                Err(error) => bad(error)?,
            }
        }
    }
    let mut removed = HashSet::new();
    for entry in view.rows(NEAR_LOG)? {
        let row = changes(entry?.bytes()).map(Iterator::collect::<Vec<_>>);
        for change in row.or_else(|error| bad(error).map(|()| Vec::new()))? {
            entries.logged += 1;
            let key = (change.field, change.fingerprint, change.content);
            if change.removed {
                removed.insert(key);
            } else if !removed.remove(&key) {
                // One that was removed before is still among the entries.
                entries.of(change.field).push((change.fingerprint, change.content));
            }
        }
    }
    if !removed.is_empty() {
        for field in [Field::Content, Field::Title] {
            entries
                .of(field)
                .retain(|(print, content)| !removed.contains(&(field, *print, *content)));
        }
    }
    Ok(entries)
}

/// Writes the tables anew with all entries, and empties the log.
pub fn fold(batch: &mut Batch, entries: &mut Entries) -> Result<(), Error> {
    batch.clear(NEAR, ..)?;
    batch.clear(NEAR_LOG, ..)?;
    for (first, all) in [(0, &entries.contents), (TABLES, &entries.titles)] {
        for table in 0..TABLES {
            let turn = BLOCK * u32::from(table);
            let mut rotated: Vec<(u64, u64)> =
                all.iter().map(|(print, content)| (print.0.rotate_left(turn), *content)).collect();
            rotated.sort_unstable();
            for row in rotated.chunk_by(|a, b| a.0 >> (64 - PREFIX) == b.0 >> (64 - PREFIX)) {
                let mut value = Vec::with_capacity(row.len() * ENTRY);
                for (print, content) in row {
                    value.extend_from_slice(&print.to_be_bytes());
                    value.extend_from_slice(&content.to_be_bytes());
                }
                batch.put(NEAR, key(first + table, row[0].0), &value)?;
            }
        }
    }
    entries.logged = 0;
    Ok(())
}

/// Returns every content with a stored fingerprint within `k` bits of `query`, each behind its
/// distance, nearest first, then in the order of the content numbers, straight from the store: for
/// a single look-up without the index in memory.
///
/// `k` is inclusive and at most [`K_MAX`]. Reads four rows and the whole log.
pub fn probe(
    view: &impl View,
    field: Field,
    query: Fingerprint,
    k: u32,
) -> Result<Vec<(u32, u64)>, Error> {
    assert!(k <= K_MAX, "four tables find at most {K_MAX} differing bits");
    let mut found = BTreeSet::new();
    let mut meet = |fingerprint: Fingerprint, number: u64| {
        let distance = fingerprint.distance(query);
        if distance <= k {
            found.insert((distance, number, fingerprint));
        }
    };
    let first = if field == Field::Title { TABLES } else { 0 };
    for table in 0..TABLES {
        let turn = BLOCK * u32::from(table);
        let rotated = query.0.rotate_left(turn);
        let Some(row) = view.bytes(NEAR, key(first + table, rotated))? else { continue };
        for (print, content) in split(&row)? {
            if (print.0 ^ rotated) >> (64 - BLOCK) == 0 {
                meet(Fingerprint(print.0.rotate_right(turn)), content);
            }
        }
    }
    let mut removed = HashSet::new();
    for entry in view.rows(NEAR_LOG)? {
        for change in changes(entry?.bytes())?.filter(|change| change.field == field) {
            let entry = (change.fingerprint, change.content);
            if change.removed {
                removed.insert(entry);
            } else {
                meet(change.fingerprint, change.content);
                removed.remove(&entry);
            }
        }
    }
    found.retain(|(_, number, fingerprint)| !removed.contains(&(*fingerprint, *number)));
    let mut all: Vec<(u32, u64)> =
        found.into_iter().map(|(distance, number, _)| (distance, number)).collect();
    all.dedup();
    Ok(all)
}

/// Returns what is wrong with the tables, each fault with the name of its table: rows that cannot
/// be read; rotated tables that have not all the same entries, each in the row of its prefix, in
/// order.
pub fn faults(view: &impl View) -> Result<Vec<(&'static str, String)>, Error> {
    let mut faults = Vec::new();
    for entry in view.rows(NEAR_LOG)? {
        let entry = entry?;
        if let Err(bad) = changes(entry.bytes()) {
            faults.push(("near_log", format!("row {}: {bad}", entry.key()?)));
        }
    }
    // The sum of hashes of the entries of each table.
    let mut sums = [(0u64, 0u64); 2 * TABLES as usize];
    for row in view.rows(NEAR)? {
        let row = row?;
        let Ok((table, prefix)) = row.key() else {
            faults.push(("near", format!("row {:?}: its key has not 3 bytes", row.key_bytes())));
            continue;
        };
        let turn = BLOCK * u32::from(table % TABLES);
        let entries: Vec<(Fingerprint, u64)> = match split(row.bytes()) {
            Ok(entries) => entries.collect(),
            Err(bad) => {
                faults.push(("near", format!("row {prefix} of table {table}: {bad}")));
                continue;
            }
        };
        let in_place = entries.iter().all(|(print, _)| key(table, print.0) == (table, prefix));
        if !in_place || !entries.is_sorted() || table >= 2 * TABLES {
            faults.push(("near", format!("row {prefix} of table {table}: it is not in order")));
            continue;
        }
        let (count, sum) = &mut sums[table as usize];
        *count += entries.len() as u64;
        for (print, content) in entries {
            let straight = print.0.rotate_right(turn);
            *sum = sum.wrapping_add(crate::text::sketch::mix(straight ^ content << 7));
        }
    }
    for tables in sums.chunks_exact(TABLES as usize) {
        if tables.iter().any(|table| *table != tables[0]) {
            let counts: Vec<u64> = tables.iter().map(|(count, _)| *count).collect();
            faults.push(("near", format!("tables that do not agree: {counts:?} entries")));
        }
    }
    Ok(faults)
}

fn key(table: u8, rotated: u64) -> (u8, u16) {
    (table, (rotated >> (64 - PREFIX)) as u16)
}

fn split(row: &[u8]) -> Result<impl Iterator<Item = (Fingerprint, u64)> + '_, BadRow> {
    if !row.len().is_multiple_of(ENTRY) {
        return Err(BadRow { kind: "rotated", detail: "an entry is cut short" });
    }
    Ok(row.chunks_exact(ENTRY).map(|entry| (Fingerprint(wide(entry)), wide(&entry[8..]))))
}

fn changes(row: &[u8]) -> Result<impl Iterator<Item = Change> + '_, BadRow> {
    if !row.len().is_multiple_of(LOGGED) {
        return Err(BadRow { kind: "near_log", detail: "an entry is cut short" });
    }
    if row.chunks_exact(LOGGED).any(|entry| entry[0] > 3) {
        return Err(BadRow { kind: "near_log", detail: "the kind of an entry is unknown" });
    }
    Ok(row.chunks_exact(LOGGED).map(|entry| Change {
        field: if entry[0] & 1 == 1 { Field::Title } else { Field::Content },
        fingerprint: Fingerprint(wide(&entry[1..])),
        content: wide(&entry[9..]),
        removed: entry[0] & 2 == 2,
    }))
}

fn wide(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(*bytes.first_chunk().expect("eight bytes"))
}
