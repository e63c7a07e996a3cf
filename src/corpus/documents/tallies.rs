//! What lists are made from without reading every document: the order of copies, and what came in
//! each hour.
//!
//! Documents of one copy, most of a store, have no row in `ranking`: they are last in that order,
//! and cost nothing here. What came in an hour stays in `arrivals` when documents end. The rows of
//! `verdict_log` and `verdict_places` lead from a sequence to a document, and back: documents that
//! have, or had, several copies, in the order of their last change.

use std::collections::HashMap;
use std::ops::Bound;

use crate::base::clock::Timestamp;
use crate::corpus::tables::{ARRIVALS, GROWTH, RANKING, VERDICT_LOG, VERDICT_PLACES};
use crate::store::{Error, Number, Transaction, Update as _, View, row};

/// Milliseconds of an hour.
pub const HOUR: u64 = 3_600_000;

/// Hours for which `growth` is kept.
pub const GROWTH_KEPT: u64 = 31 * 24;

row! {
    /// What came in an hour, or in several.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Arrivals: "arrivals", 1 to 1 {
        /// Documents that were new.
        pub documents: u64 = Number;
        /// Copies, the first ones of new documents among them.
        pub copies: u64 = Number;
    }
}

/// Moves a document in the order of copies.
pub(super) fn place(
    batch: &mut impl Transaction,
    document: u64,
    was: u64,
    copies: u64,
) -> Result<(), Error> {
    if was == copies {
        return Ok(());
    }
    if was > 1 {
        batch.remove(RANKING, (was, document))?;
    }
    if copies > 1 {
        batch.put(RANKING, (copies, document), &())?;
    }
    Ok(())
}

/// A place in the order of copies: copies and number of a document.
pub type CopiesPlace = (u64, u64);

/// Returns the documents of two copies and more, those of fewest copies first and among equals the
/// oldest: those between two places.
pub fn by_copies(
    view: &impl View,
    above: Option<CopiesPlace>,
    below: Option<CopiesPlace>,
) -> Result<impl DoubleEndedIterator<Item = Result<CopiesPlace, Error>>, Error> {
    let from = above.map_or(Bound::Unbounded, Bound::Excluded);
    let to = below.map_or(Bound::Unbounded, Bound::Excluded);
    Ok(view.range(RANKING, (from, to))?.map(|entry| Ok(entry?.key()?)))
}

fn hour_of(time: Timestamp) -> u64 {
    u64::try_from(time.0).unwrap_or(0) / HOUR
}

/// Notes that a copy of a document came, perhaps the first one.
pub fn note_arrival(
    batch: &mut impl Transaction,
    document: u64,
    first: bool,
    now: Timestamp,
) -> Result<(), Error> {
    let hour = hour_of(now);
    let known = batch.get(ARRIVALS, hour)?;
    if known.is_none() {
        // Once an hour.
        batch.clear(GROWTH, ..(hour.saturating_sub(GROWTH_KEPT), 0))?;
    }
    let mut arrivals = known.unwrap_or_default();
    arrivals.copies += 1;
    arrivals.documents += u64::from(first);
    batch.put(ARRIVALS, hour, &arrivals)?;
    if !first {
        let copies = batch.get(GROWTH, (hour, document))?.unwrap_or(0);
        batch.put(GROWTH, (hour, document), &(copies + 1))?;
    }
    Ok(())
}

/// Takes back that a copy joined a document at this moment: it had joined before.
pub fn take_back_arrival(
    batch: &mut impl Transaction,
    document: u64,
    now: Timestamp,
) -> Result<(), Error> {
    let hour = hour_of(now);
    if let Some(mut arrivals) = batch.get(ARRIVALS, hour)? {
        arrivals.copies = arrivals.copies.saturating_sub(1);
        batch.put(ARRIVALS, hour, &arrivals)?;
    }
    match batch.get(GROWTH, (hour, document))?.unwrap_or(0) {
        0 => Ok(()),
        1 => batch.remove(GROWTH, (hour, document)).map(drop),
        copies => batch.put(GROWTH, (hour, document), &(copies - 1)),
    }
}

/// Returns how many copies joined each document since an hour began, at most `rows_max` rows of
/// hours and documents, the newest ones, and whether these were all.
pub fn growth_since(
    view: &impl View,
    hour: u64,
    rows_max: usize,
) -> Result<(HashMap<u64, u64>, bool), Error> {
    let mut grown: HashMap<u64, u64> = HashMap::new();
    for (seen, entry) in view.range(GROWTH, (hour, 0)..)?.rev().enumerate() {
        if seen == rows_max {
            return Ok((grown, false));
        }
        let entry = entry?;
        let (_, document) = entry.key()?;
        *grown.entry(document).or_default() += entry.row()?;
    }
    Ok((grown, true))
}

/// Moves a document to the end of those whose copies have changed.
pub(super) fn note_duplicate_feed(batch: &mut impl Transaction, number: u64) -> Result<(), Error> {
    let place = batch.next_number("next_verdict")?;
    if let Some(was) = batch.replace(VERDICT_PLACES, number, &place)? {
        batch.remove(VERDICT_LOG, was)?;
    }
    batch.put(VERDICT_LOG, place, &number)
}
