//! What lists are made from without reading every document: the order of copies, and what came in
//! each hour.
//!
//! Row of `ranking`: key: copies (8 bytes), document number (8 bytes), both big-endian. Documents
//! of one copy, most of a store, have none: they are last in that order, and cost nothing here.
//!
//! Row of `arrivals`: key: hours since 1970; value: version 1, new documents, copies with the first
//! ones. It tells what came, and stays when documents end.
//!
//! Rows of `verdict_log` and `verdict_places` lead from a sequence to a document, and back:
//! documents that have, or had, several copies, in the order of their last change.
//!
//! Row of `growth`: key: hours since 1970 (8 bytes), document number (8 bytes), both big-endian;
//! value: copies that joined the document in that hour.

use std::collections::HashMap;
use std::ops::Bound;

use redb::ReadableTable;

use crate::base::clock::Timestamp;
use crate::store::{BadRow, Decoder, Encoder, Error, Tables};

/// Milliseconds of an hour.
pub const HOUR: u64 = 3_600_000;

/// Hours for which `growth` is kept.
pub const GROWTH_KEPT: u64 = 31 * 24;

/// What came in an hour, or in several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Documents that were new.
    pub documents: u64,
    /// Copies, the first ones of new documents among them.
    pub copies: u64,
}

impl Arrivals {
    fn encode(self) -> Vec<u8> {
        Encoder::new(1).number(self.documents).number(self.copies).finish()
    }

    /// Reads a row.
    pub fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::new("arrivals", 1, row)?;
        Ok(Self { documents: row.number()?, copies: row.number()? })
    }
}

fn pair(first: u64, second: u64) -> [u8; 16] {
    (u128::from(first) << 64 | u128::from(second)).to_be_bytes()
}

fn split(key: &[u8]) -> Option<(u64, u64)> {
    let both = u128::from_be_bytes(key.try_into().ok()?);
    Some(((both >> 64) as u64, both as u64))
}

/// Takes a key of `ranking` apart: copies, document number.
pub fn split_ranking_key(key: &[u8]) -> Result<(u64, u64), BadRow> {
    split(key).ok_or(BadRow { kind: "ranking key", detail: "it has not 16 bytes" })
}

/// Moves a document in the order of copies.
pub(super) fn place(
    tables: &mut Tables<'_>,
    document: u64,
    was: u64,
    copies: u64,
) -> Result<(), Error> {
    if was == copies {
        return Ok(());
    }
    if was > 1 {
        tables.ranking.remove(pair(was, document).as_slice())?;
    }
    if copies > 1 {
        tables.ranking.insert(pair(copies, document).as_slice(), ())?;
    }
    Ok(())
}

/// A place in the order of copies: copies and number of a document.
pub type Place = (u64, u64);

/// Returns the documents of two copies and more, those of fewest copies first and among equals the
/// oldest: those between two places.
pub fn by_copies(
    ranking: &impl ReadableTable<&'static [u8], ()>,
    (above, below): (Option<Place>, Option<Place>),
) -> Result<impl DoubleEndedIterator<Item = Result<Place, Error>>, Error> {
    let (above, below) = (above.map(|(a, b)| pair(a, b)), below.map(|(a, b)| pair(a, b)));
    let from = above.as_ref().map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_slice()));
    let to = below.as_ref().map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_slice()));
    let rows = ranking.range::<&[u8]>((from, to))?;
    Ok(rows.map(|row| Ok(split_ranking_key(row?.0.value())?)))
}

fn hour_of(time: Timestamp) -> u64 {
    u64::try_from(time.0).unwrap_or(0) / HOUR
}

/// Notes that a copy of a document came, perhaps the first one.
pub fn note_arrival(
    tables: &mut Tables<'_>,
    document: u64,
    first: bool,
    now: Timestamp,
) -> Result<(), Error> {
    let hour = hour_of(now);
    let known = tables.arrivals.get(hour)?.map(|row| Arrivals::decode(row.value())).transpose()?;
    if known.is_none() {
        // Once an hour.
        let oldest = pair(hour.saturating_sub(GROWTH_KEPT), 0);
        tables.growth.retain_in(..oldest.as_slice(), |_, _| false)?;
    }
    let mut arrivals = known.unwrap_or_default();
    arrivals.copies += 1;
    arrivals.documents += u64::from(first);
    tables.arrivals.insert(hour, arrivals.encode().as_slice())?;
    if !first {
        let key = pair(hour, document);
        let copies = tables.growth.get(key.as_slice())?.map_or(0, |row| row.value());
        tables.growth.insert(key.as_slice(), copies + 1)?;
    }
    Ok(())
}

/// Takes back that a copy joined a document at this moment: it had joined before.
pub fn take_back_arrival(
    tables: &mut Tables<'_>,
    document: u64,
    now: Timestamp,
) -> Result<(), Error> {
    let hour = hour_of(now);
    let known = tables.arrivals.get(hour)?.map(|row| Arrivals::decode(row.value())).transpose()?;
    if let Some(mut arrivals) = known {
        arrivals.copies = arrivals.copies.saturating_sub(1);
        tables.arrivals.insert(hour, arrivals.encode().as_slice())?;
    }
    let key = pair(hour, document);
    let grown = tables.growth.get(key.as_slice())?.map_or(0, |row| row.value());
    match grown {
        0 => {}
        1 => drop(tables.growth.remove(key.as_slice())?),
        copies => drop(tables.growth.insert(key.as_slice(), copies - 1)?),
    }
    Ok(())
}

/// Returns how many copies joined each document since an hour began, at most `rows_max` rows of
/// hours and documents, the newest ones, and whether these were all.
pub fn growth_since(
    growth: &impl ReadableTable<&'static [u8], u64>,
    hour: u64,
    rows_max: usize,
) -> Result<(HashMap<u64, u64>, bool), Error> {
    let mut grown: HashMap<u64, u64> = HashMap::new();
    let first = pair(hour, 0);
    for (seen, row) in growth.range(first.as_slice()..)?.rev().enumerate() {
        if seen == rows_max {
            return Ok((grown, false));
        }
        let (key, copies) = row?;
        let bad = BadRow { kind: "growth key", detail: "it has not 16 bytes" };
        let (_, document) = split(key.value()).ok_or(bad)?;
        *grown.entry(document).or_default() += copies.value();
    }
    Ok((grown, true))
}

/// Moves a document to the end of those whose copies have changed.
pub(super) fn note_verdicts(tables: &mut Tables<'_>, number: u64) -> Result<(), Error> {
    let place = tables.next_number("next_verdict")?;
    if let Some(was) = tables.verdict_places.insert(number, place)?.map(|was| was.value()) {
        tables.verdict_log.remove(was)?;
    }
    tables.verdict_log.insert(place, number)?;
    Ok(())
}
