//! What the index says of contents, and what is wrong with it.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeBounds;

use crate::corpus::tables::{INDEX_LOG, KEYS, NEAR, SEGMENTS};
use crate::neardup::segment::{
    BlockId, FILTERS, Filter, GONE, Posting, ROTATIONS, Segment, equality_table, has_hashes,
    near_table,
};
use crate::neardup::{Field, Key};
use crate::store::{Error, META, Table, View};
use crate::text::sketch::mix;

use super::blocks::{Kept, table_of};
use super::{SETTINGS, log};

/// Fingerprints of some contents, in the order of the numbers of these; those that went left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fingerprints {
    /// Of texts.
    pub contents: Vec<Posting>,
    /// Of titles.
    pub titles: Vec<Posting>,
    /// Keys of whole texts.
    pub texts: Vec<Posting>,
    /// Contents that are in no segment yet.
    pub recent: HashSet<u64>,
    /// The index is whole: it does not have to be made anew.
    pub is_whole: bool,
}

/// Returns the fingerprints in the segments of the store, of contents with numbers in a range; rows
/// that cannot be read are passed over, as [`faults`] lists them.
pub fn fingerprints(view: &impl View, range: impl RangeBounds<u64>) -> Result<Fingerprints, Error> {
    let is_whole = view.has(META, SETTINGS)?;
    let mut all = Fingerprints { is_whole, ..Fingerprints::default() };
    let mut gone: HashSet<u64> = HashSet::new();
    for row in view.rows(INDEX_LOG)? {
        for change in log::read(row?.bytes()).unwrap_or_default() {
            let of = if change.gone { &mut gone } else { &mut all.recent };
            of.extend(range.contains(&change.content).then_some(change.content));
        }
    }
    for row in view.rows(SEGMENTS)? {
        let row = row?;
        let (Ok(number), Ok(stored)) = (row.key(), row.row()) else { continue };
        if !stored.is_whole {
            continue;
        }
        let read = |table, each: &mut dyn FnMut(Posting)| postings(view, table, number, each);
        read(GONE, &mut |posting| {
            gone.extend(range.contains(&posting.key).then_some(posting.key));
        })?;
        let of_range = |list: &mut Vec<Posting>, table| {
            read(table, &mut |posting| {
                list.extend(range.contains(&posting.content).then_some(posting));
            })
        };
        of_range(&mut all.contents, near_table(Field::Content, 0))?;
        of_range(&mut all.titles, near_table(Field::Title, 0))?;
        of_range(&mut all.texts, equality_table(Key::Exact))?;
    }
    for list in [&mut all.contents, &mut all.titles, &mut all.texts] {
        list.sort_unstable_by_key(|posting| (posting.content, posting.key));
        // What is in the log as well may be in a segment twice.
        list.dedup();
        list.retain(|posting| !gone.contains(&posting.content));
    }
    Ok(all)
}

/// Calls `each` with the postings of a table of a segment that can be read.
fn postings(
    view: &impl View,
    table: u8,
    segment: u32,
    each: &mut dyn FnMut(Posting),
) -> Result<(), Error> {
    let id = |number| {
        let first = Posting { key: number, content: number };
        BlockId { table, segment, level: 0, first }
    };
    for row in view.range(table_of(table), id(0)..=id(u64::MAX))? {
        if let Ok(Kept::Block(block)) = Kept::read(id(0), row?.bytes()) {
            block.postings().for_each(&mut *each);
        }
    }
    Ok(())
}

/// A table of a segment, as its blocks have it.
#[derive(Debug, Default)]
struct Seen {
    postings: u64,
    /// Sum of hashes of all postings, not rotated.
    sum: u64,
    /// First postings of the blocks of each level, and what the level above says that they are.
    firsts: BTreeMap<u8, Vec<Posting>>,
    told: BTreeMap<u8, Vec<Posting>>,
    filters: u64,
}

/// Returns what is wrong with the index, each fault with the name of its table: rows that cannot be
/// read, blocks that are not in order or not where they belong, keys that filters keep out,
/// segments that have not what their rows say, rotations that have not all the same fingerprints.
pub fn faults(view: &impl View) -> Result<Vec<(&'static str, String)>, Error> {
    let mut faults = Vec::new();
    for row in view.rows(INDEX_LOG)? {
        let row = row?;
        if let Err(bad) = log::read(row.bytes()) {
            faults.push(("index_log", format!("row {}: {bad}", row.key()?)));
        }
    }
    let mut segments: BTreeMap<u32, Option<Segment>> = BTreeMap::new();
    for row in view.rows(SEGMENTS)? {
        let row = row?;
        match (row.key(), row.row()) {
            (Ok(number), Ok(stored)) => {
                let whole = stored.is_whole.then(|| stored.segment(number));
                segments.insert(number, whole);
            }
            (key, row) => {
                let bad = key.err().or(row.err()).map(|bad| bad.to_string()).unwrap_or_default();
                faults.push(("segments", bad));
            }
        }
    }
    let mut seen: BTreeMap<(u32, u8), Seen> = BTreeMap::new();
    for (name, table) in [("near", NEAR), ("keys", KEYS)] {
        let mut filters = StoredFilters { view, table, last: None };
        for row in view.rows(table)? {
            let row = row?;
            let id = match row.key() {
                Ok(id) => id,
                Err(bad) => {
                    faults.push((name, format!("row {:?}: {bad}", row.key_bytes())));
                    continue;
                }
            };
            let kept = Kept::read(id, row.bytes()).map_err(super::blocks::bad);
            let mut fault = |what: &str| faults.push((name, format!("row {}: {what}", place(id))));
            match (segments.get(&id.segment), kept) {
                (_, Err(bad)) => fault(&bad.to_string()),
                (None, _) => fault("its segment is missing"),
                // What is being made, or removed, is not asked.
                (Some(None), _) => {}
                (Some(Some(segment)), Ok(kept)) => {
                    let seen = seen.entry((id.segment, id.table)).or_default();
                    if let Err(what) = seen.note(id, &kept) {
                        fault(what);
                    }
                    if filters.keep_out(segment, id, &kept)? {
                        fault("it has a key that its filter keeps out");
                    }
                }
            }
        }
    }
    for segment in segments.values().flatten() {
        of_segment(segment, &mut seen, &mut faults);
    }
    for ((segment, table), _) in seen {
        let fault = format!("row {segment}: table {table} is not in it");
        faults.push(("segments", fault));
    }
    Ok(faults)
}

/// The filters of a table, read one after the other.
struct StoredFilters<'v, V> {
    view: &'v V,
    table: Table<BlockId, Vec<u8>>,
    /// The one that was read last; none where there is none that can be read.
    last: Option<(BlockId, Option<Filter>)>,
}

impl<V: View> StoredFilters<'_, V> {
    /// Tells whether a block of postings has a key that does not pass.
    fn keep_out(&mut self, segment: &Segment, id: BlockId, kept: &Kept) -> Result<bool, Error> {
        let table = segment.tables.iter().find(|table| table.table == id.table);
        let filtered = table.filter(|table| table.filters > 0 && id.level == 0);
        let (Some(table), Kept::Block(block)) = (filtered, kept) else { return Ok(false) };
        for posting in block.postings() {
            let (at, keys) = table.in_filter(segment.number, posting.key);
            let filter = match self.last.take() {
                Some((last, filter)) if last == at => filter,
                _ => self.view.get(self.table, at)?.and_then(|row| Filter::read(&row).ok()),
            };
            let (_, filter) = self.last.insert((at, filter));
            let kept_out = |filter: &Filter| keys.iter().any(|key| !filter.may_have(*key));
            if filter.as_ref().is_some_and(kept_out) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns a key in words.
fn place(id: BlockId) -> String {
    let BlockId { table, segment, level, first: Posting { key, content } } = id;
    format!("table {table}, segment {segment}, level {level}, {key:016x} {content}")
}

impl Seen {
    fn note(&mut self, id: BlockId, kept: &Kept) -> Result<(), &'static str> {
        let block = match kept {
            Kept::Filter if id.level == FILTERS => {
                self.filters += 1;
                return Ok(());
            }
            Kept::Block(block) if id.level != FILTERS => block,
            _ => return Err("it is not of its level"),
        };
        let postings: Vec<Posting> = block.postings().collect();
        if postings.first() != Some(&id.first) {
            return Err("it begins with another posting than its key says");
        }
        if !postings.is_sorted_by(|one, other| one < other) {
            return Err("it is not in order");
        }
        self.firsts.entry(id.level).or_default().push(id.first);
        if let Some(below) = id.level.checked_sub(1) {
            self.told.entry(below).or_default().extend(postings);
            return Ok(());
        }
        self.postings += postings.len() as u64;
        let rotation = if has_hashes(id.table) { 0 } else { id.table % ROTATIONS };
        for Posting { key, content } in postings {
            let straight = key.rotate_right(16 * u32::from(rotation));
            self.sum = self.sum.wrapping_add(mix(straight ^ mix(content)));
        }
        Ok(())
    }
}

/// Compares a segment with its blocks.
fn of_segment(
    segment: &Segment,
    seen: &mut BTreeMap<(u32, u8), Seen>,
    faults: &mut Vec<(&'static str, String)>,
) {
    let mut sums: BTreeMap<u8, u64> = BTreeMap::new();
    for table in &segment.tables {
        let found = seen.remove(&(segment.number, table.table)).unwrap_or_default();
        let place = format!("row {}: table {}", segment.number, table.table);
        let mut fault = |what: &str| faults.push(("segments", format!("{place} {what}")));
        if found.postings != table.postings || found.filters != u64::from(table.filters) {
            fault("has not as many postings and filters as its row says");
        }
        let below = found.firsts.iter().filter(|(level, _)| **level < table.top);
        if !below.eq(&found.told) || found.firsts.get(&table.top) != Some(&vec![table.first]) {
            fault("has blocks that are not found from above");
        }
        if table.table < GONE && !has_hashes(table.table) {
            let field = table.table / ROTATIONS;
            if *sums.entry(field).or_insert(found.sum) != found.sum {
                fault("does not agree with the other rotations");
            }
        }
    }
}
