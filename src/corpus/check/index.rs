//! Contents, their texts, and the keys by which they are found.

use std::collections::{BTreeMap, HashMap};

use super::{Findings, Spot, row_of};
use crate::corpus::documents::read_body;
use crate::corpus::index;
use crate::corpus::tables::{BODIES, BODY_PARTS, CONTENTS, DOCUMENTS, INDEX_LOG, REVIEWS, UNSURE};
use crate::neardup::segment::{PER_KEY_MAX, Posting, exact_key};
use crate::store::{
    BadRow, Error, META, STORE_NUMBER, Snapshot, View as _, read_number, sequence_of, unique_number,
};
use crate::text::simhash::Fingerprint;

/// Contents: each is in a document, under its hash, with its text and in the index.
pub(super) fn contents(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    let stored = index::fingerprints(snapshot)?;
    let mut texts: HashMap<u64, Fingerprint> = HashMap::new();
    for Posting { key, content } in &stored.contents {
        findings.look("near");
        if texts.insert(*content, Fingerprint(*key)).is_some() {
            findings.fault("near", || format!("content {content} is twice in the index"));
        }
    }
    let titles = stored.titles.iter().map(|title| (title.content, Fingerprint(title.key)));
    let mut titles: HashMap<u64, Fingerprint> = titles.collect();
    let mut exact: HashMap<u64, u64> = HashMap::new();
    for Posting { key, content } in &stored.texts {
        findings.look("keys");
        exact.insert(*content, *key);
    }
    let mut missed: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in snapshot.rows(CONTENTS)? {
        let entry = entry?;
        let number = entry.key()?;
        findings.look("contents");
        // Texts that were too short for near-duplicates have no fingerprint in the index.
        let (print, title) = (texts.remove(&number), titles.remove(&number));
        if !snapshot.has(BODIES, number)? {
            findings.fault("contents", || format!("content {number} has no text"));
        }
        let Some(content) = findings.read("contents", number, entry.row()) else {
            continue;
        };
        if !snapshot.has(DOCUMENTS, content.document)? {
            findings.fault("contents", || format!("content {number} is in no document"));
        }
        let key = (content.words > 0).then(|| exact_key(content.hash));
        let found = exact.remove(&number);
        if stored.is_whole && found != key && !stored.recent.contains(&number) {
            match (found, key) {
                (None, Some(key)) => _ = missed.insert(number, key),
                _ => not_found(findings, number),
            }
        }
        if print.is_some() && print != Some(content.fingerprint) {
            findings
                .fault("near", || format!("content {number} has another fingerprint in the index"));
        }
        if title.is_some() && title != content.title_fingerprint {
            findings.fault("near", || format!("content {number} has another title in the index"));
        }
    }
    for content in texts.into_keys().chain(titles.into_keys()).chain(exact.into_keys()) {
        findings.fault("near", || format!("the index names content {content}, which is missing"));
    }
    unfound(snapshot, &missed, findings)
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

/// The index agrees with itself; texts, hashes and second looks are of contents that are there.
pub(super) fn index(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    for entry in snapshot.rows(INDEX_LOG)? {
        entry?;
        findings.look("index_log");
    }
    for (table, fault) in index::faults(snapshot)? {
        findings.fault(table, || format!("{table}, {fault}"));
    }
    for entry in snapshot.rows(BODIES)? {
        let number = entry?.key()?;
        findings.look("bodies");
        let text = row_of(read_body(snapshot, number))?.map(drop);
        findings.read("bodies", number, text);
        known(snapshot, findings, Spot { table: "bodies", key: &number.to_string() }, number)?;
    }
    for entry in snapshot.rows(BODY_PARTS)? {
        let (number, at) = entry?.key()?;
        findings.look("body_parts");
        if !snapshot.has(BODIES, number)? {
            findings.fault("body_parts", || {
                format!("body_parts, row {number} {at}: content {number} has no text")
            });
        }
    }
    looks(snapshot, findings)
}

/// Second looks are due at contents and documents that are there, and done at none that is to come.
fn looks(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    for entry in snapshot.rows(UNSURE)? {
        let number = entry?.key()?;
        findings.look("unsure");
        known(snapshot, findings, Spot { table: "unsure", key: &number.to_string() }, number)?;
    }
    for entry in snapshot.rows(REVIEWS)? {
        let number = entry?.key()?;
        findings.look("reviews");
        if !snapshot.has(DOCUMENTS, number)? {
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
fn known(
    snapshot: &Snapshot,
    findings: &mut Findings,
    spot: Spot<'_>,
    content: u64,
) -> Result<(), Error> {
    if !snapshot.has(CONTENTS, content)? {
        findings.fault(spot.table, || format!("{spot}: content {content} is missing"));
    }
    Ok(())
}
