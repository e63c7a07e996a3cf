//! Contents, their texts, and the keys by which they are found.

use std::collections::{BTreeMap, HashMap};
use std::iter::Peekable;
use std::ops::RangeInclusive;
use std::vec::IntoIter;

use roaring::RoaringTreemap;

use super::{Findings, Numbers, Spot, row_of};
use crate::corpus::documents::read_body;
use crate::corpus::index;
use crate::corpus::tables::{BODIES, BODY_PARTS, CONTENTS, DOCUMENTS, INDEX_LOG, REVIEWS, UNSURE};
use crate::neardup::segment::{PER_KEY_MAX, Posting, exact_key};
use crate::store::{
    BadRow, Error, META, STORE_NUMBER, Snapshot, View as _, read_number, sequence_of, unique_number,
};
use crate::text::simhash::Fingerprint;

/// Postings of some contents, met in the order of these.
struct Postings {
    rest: Peekable<IntoIter<Posting>>,
    /// Contents that were not met.
    missing: Vec<u64>,
}

impl Postings {
    fn new(postings: Vec<Posting>) -> Self {
        Self { rest: postings.into_iter().peekable(), missing: Vec::new() }
    }

    /// Returns the key of a content.
    fn of(&mut self, content: u64) -> Option<u64> {
        self.pass(|other| other < content);
        let mut key = None;
        while let Some(posting) = self.rest.next_if(|posting| posting.content == content) {
            key = Some(posting.key);
        }
        key
    }

    fn pass(&mut self, which: impl Fn(u64) -> bool) {
        while let Some(posting) = self.rest.next_if(|posting| which(posting.content)) {
            self.missing.push(posting.content);
        }
    }

    /// Returns the contents that were not met, each once.
    fn missing(mut self) -> Vec<u64> {
        self.pass(|_| true);
        self.missing.dedup();
        self.missing
    }
}

/// Contents: each is in a document, under its hash, with its text and in the index.
pub(super) fn contents(
    snapshot: &Snapshot,
    numbers: &Numbers,
    texts: &RoaringTreemap,
    at_a_time: u64,
    findings: &mut Findings,
) -> Result<(), Error> {
    let mut missed: BTreeMap<u64, u64> = BTreeMap::new();
    for range in ranges(&numbers.contents, at_a_time) {
        let stored = index::fingerprints(snapshot, range.clone())?;
        findings.looked("near", stored.contents.len());
        findings.looked("keys", stored.texts.len());
        for pair in stored.contents.windows(2).filter(|pair| pair[0].content == pair[1].content) {
            let content = pair[0].content;
            findings.fault("near", || format!("content {content} is twice in the index"));
        }
        let mut prints = Postings::new(stored.contents);
        let mut titles = Postings::new(stored.titles);
        let mut exact = Postings::new(stored.texts);
        for entry in snapshot.range(CONTENTS, range)? {
            let entry = entry?;
            let number = entry.key()?;
            findings.look("contents");
            // Texts that were too short for near-duplicates have no fingerprint in the index.
            let (print, title) = (prints.of(number), titles.of(number));
            let found = exact.of(number);
            if !texts.contains(number) {
                findings.fault("contents", || format!("content {number} has no text"));
            }
            let Some(content) = findings.read("contents", number, entry.row()) else { continue };
            if !numbers.documents.contains(content.document) {
                findings.fault("contents", || format!("content {number} is in no document"));
            }
            let key = (content.words > 0).then(|| exact_key(content.hash));
            if stored.is_whole && found != key && !stored.recent.contains(&number) {
                match (found, key) {
                    (None, Some(key)) => _ = missed.insert(number, key),
                    _ => not_found(findings, number),
                }
            }
            let is_other = |print: u64, of: Option<Fingerprint>| of != Some(Fingerprint(print));
            if print.is_some_and(|print| is_other(print, Some(content.fingerprint))) {
                findings.fault("near", || {
                    format!("content {number} has another fingerprint in the index")
                });
            }
            if title.is_some_and(|title| is_other(title, content.title_fingerprint)) {
                findings
                    .fault("near", || format!("content {number} has another title in the index"));
            }
        }
        for content in [prints, titles, exact].into_iter().flat_map(Postings::missing) {
            findings
                .fault("near", || format!("the index names content {content}, which is missing"));
        }
    }
    unfound(snapshot, &missed, findings)
}

/// Returns all numbers in ranges that have as many contents as are looked at together.
fn ranges(contents: &RoaringTreemap, at_a_time: u64) -> Vec<RangeInclusive<u64>> {
    let firsts = (1..).map_while(|range: u64| contents.select(range * at_a_time));
    let mut ranges = Vec::new();
    let mut from = 0;
    for first in firsts {
        ranges.push(from..=first - 1);
        from = first;
    }
    ranges.push(from..=u64::MAX);
    ranges
}

/// Tells of contents that are not found by their keys, unless a key has as many as it may have:
/// pages of one site that are no copies of each other may have one text, such as an error.
fn unfound(
    snapshot: &Snapshot,
    missed: &BTreeMap<u64, u64>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let mut held: HashMap<u64, usize> = missed.values().map(|key| (*key, 0)).collect();
    if held.is_empty() {
        return Ok(());
    }
    for entry in snapshot.rows(CONTENTS)? {
        if let Ok(content) = entry?.row()
            && let Some(held) = held.get_mut(&exact_key(content.hash))
        {
            *held += 1;
        }
    }
    let few = missed.iter().filter(|(_, key)| held[*key] <= PER_KEY_MAX);
    few.for_each(|(number, _)| not_found(findings, *number));
    Ok(())
}

fn not_found(findings: &mut Findings, number: u64) {
    findings.fault("contents", || format!("content {number} is not found by its hash"));
}

/// The index agrees with itself.
pub(super) fn index(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    for entry in snapshot.rows(INDEX_LOG)? {
        entry?;
        findings.look("index_log");
    }
    for (table, fault) in index::faults(snapshot)? {
        findings.fault(table, || format!("{table}, {fault}"));
    }
    Ok(())
}

/// Texts can be read, and are of contents that are there. Returns the numbers of these.
pub(super) fn texts(
    snapshot: &Snapshot,
    numbers: &Numbers,
    findings: &mut Findings,
) -> Result<RoaringTreemap, Error> {
    let mut texts = RoaringTreemap::new();
    for entry in snapshot.rows(BODIES)? {
        let number = entry?.key()?;
        findings.look("bodies");
        texts.insert(number);
        let text = row_of(read_body(snapshot, number))?.map(drop);
        findings.read("bodies", number, text);
        known(numbers, findings, Spot { table: "bodies", key: &number.to_string() }, number);
    }
    for entry in snapshot.rows(BODY_PARTS)? {
        let (number, at) = entry?.key()?;
        findings.look("body_parts");
        if !texts.contains(number) {
            findings.fault("body_parts", || {
                format!("body_parts, row {number} {at}: content {number} has no text")
            });
        }
    }
    Ok(texts)
}

/// Second looks are due at contents and documents that are there, and done at none that is to come.
pub(super) fn looks(
    snapshot: &Snapshot,
    numbers: &Numbers,
    findings: &mut Findings,
) -> Result<(), Error> {
    for entry in snapshot.rows(UNSURE)? {
        let number = entry?.key()?;
        findings.look("unsure");
        known(numbers, findings, Spot { table: "unsure", key: &number.to_string() }, number);
    }
    for entry in snapshot.rows(REVIEWS)? {
        let number = entry?.key()?;
        findings.look("reviews");
        if !numbers.documents.contains(number) {
            findings.fault("reviews", || {
                format!("reviews, row {number}: document {number} is missing")
            });
        }
    }
    // Numbers that cannot be read were listed before.
    let number = |name| -> Result<Result<u64, BadRow>, Error> {
        Ok(snapshot.bytes(META, name)?.map_or(Ok(0), |row| read_number(&row)))
    };
    let (settled, newest) = (number("settled")?, number("next_content")?);
    if let (Ok(settled), Ok(newest)) = (&settled, &newest)
        && settled > newest
    {
        findings.fault("meta", || {
            format!("meta, row settled: content {settled} is to come after {newest}")
        });
    }
    own_numbers(snapshot, findings)
}

/// The numbers that the store gives carry its own, and none of its documents and contents is to
/// come after the last one that it gave.
fn own_numbers(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    let Some(row) = snapshot.bytes(META, STORE_NUMBER)? else {
        findings.fault("meta", || format!("meta: it has no row {STORE_NUMBER}"));
        return Ok(());
    };
    // What cannot be read was listed before.
    let Ok(store) = read_number(&row) else { return Ok(()) };
    let Some(first) = unique_number(store, 0) else {
        findings.fault("meta", || format!("meta, row {STORE_NUMBER}: {store} is too large"));
        return Ok(());
    };
    let documents = snapshot.last(DOCUMENTS)?.map(|row| row.key()).transpose()?;
    let contents = snapshot.last(CONTENTS)?.map(|row| row.key()).transpose()?;
    for (name, last) in [("next_document", documents), ("next_content", contents)] {
        let next = snapshot.bytes(META, name)?.map(|row| read_number(&row));
        let Some(Ok(next)) = next.or_else(|| last.map(|_| Ok(first))) else { continue };
        let is_own = next.checked_sub(first) == Some(sequence_of(next));
        if !is_own || last.is_some_and(|last| last > next) {
            findings.fault("meta", || format!("meta, row {name}: {next} is not the last number"));
        }
    }
    Ok(())
}

/// Notes that a row names a content that is missing.
fn known(numbers: &Numbers, findings: &mut Findings, spot: Spot<'_>, content: u64) {
    if !numbers.contents.contains(content) {
        findings.fault(spot.table, || format!("{spot}: content {content} is missing"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_as_many_contents_as_are_looked_at_together() {
        let contents: RoaringTreemap = [5, 7, 8, 1 << 40, (1 << 40) + 3].into_iter().collect();
        assert_eq!(ranges(&contents, 2), [0..=7, 8..=(1 << 40) + 2, (1 << 40) + 3..=u64::MAX]);
        assert_eq!(ranges(&contents, 5), [0..=u64::MAX]);
        assert_eq!(ranges(&RoaringTreemap::new(), 1), [0..=u64::MAX]);
    }

    #[test]
    fn postings_that_are_not_met_are_told_once() {
        let posting = |key, content| Posting { key, content };
        let all = vec![posting(9, 1), posting(3, 2), posting(4, 2), posting(8, 4), posting(9, 4)];
        let mut postings = Postings::new(all);
        assert_eq!([postings.of(2), postings.of(3)], [Some(4), None]);
        assert_eq!(postings.missing(), [1, 4]);
    }
}
