//! Contents, their texts, and the keys by which they are found.

use std::collections::HashMap;

use redb::ReadableTable as _;

use super::{Findings, row_of};
use crate::corpus::documents::{Content, read_body};
use crate::corpus::keys;
use crate::store::{BadRow, Error, ReadTables, read_number};
use crate::text::simhash::Fingerprint;

/// Contents: each is in a document, under its hash, with its text and in the index.
pub(super) fn contents(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    let entries = keys::load_sound(&tables.near, &tables.near_log)?;
    let mut texts: HashMap<u32, Fingerprint> = HashMap::new();
    for (fingerprint, content) in &entries.contents {
        findings.look("near");
        if texts.insert(*content, *fingerprint).is_some() {
            findings.fault("near", || format!("content {content} is twice in the index"));
        }
    }
    let mut titles: HashMap<u32, Fingerprint> =
        entries.titles.iter().map(|(print, content)| (*content, *print)).collect();
    for row in tables.contents.iter()? {
        let (number, row) = row?;
        let number = number.value();
        findings.look("contents");
        // Texts that were too short for near-duplicates have no fingerprint in the index.
        let (print, title) = (texts.remove(&(number as u32)), titles.remove(&(number as u32)));
        if tables.bodies.get(number)?.is_none() {
            findings.fault("contents", || format!("content {number} has no text"));
        }
        let Some(content) = findings.read("contents", number, Content::decode(row.value())) else {
            continue;
        };
        if tables.documents.get(content.document)?.is_none() {
            findings.fault("contents", || format!("content {number} is in no document"));
        }
        let first = tables.exact.get(content.hash)?.map(|row| row.value());
        if first != Some(number) && tables.twins.get((content.hash, number))?.is_none() {
            findings.fault("contents", || format!("content {number} is not found by its hash"));
        }
        if print.is_some() && print != Some(content.fingerprint) {
            findings
                .fault("near", || format!("content {number} has another fingerprint in the index"));
        }
        if title.is_some() && title != content.title_fingerprint {
            findings.fault("near", || format!("content {number} has another title in the index"));
        }
    }
    for content in texts.into_keys().chain(titles.into_keys()) {
        findings.fault("near", || format!("the index names content {content}, which is missing"));
    }
    Ok(())
}

/// The index agrees with itself; texts, hashes and second looks are of contents that are there.
pub(super) fn index(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    for row in tables.near_log.iter()? {
        row?;
        findings.look("near_log");
    }
    for (table, fault) in keys::faults(&tables.near, &tables.near_log)? {
        findings.fault(table, || format!("{table}, {fault}"));
    }
    for row in tables.bodies.iter()? {
        let number = row?.0.value();
        findings.look("bodies");
        let text = row_of(read_body(&tables.bodies, number))?.map(drop);
        findings.read("bodies", number, text);
        known(tables, findings, ("bodies", &number.to_string()), number)?;
    }
    hashes(tables, findings)?;
    looks(tables, findings)
}

/// Hashes of texts lead to contents that have them, each by one way: the first one of a text by
/// `exact`, those that follow it by `twins`.
fn hashes(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    for row in tables.exact.iter()? {
        let (hash, number) = row?;
        findings.look("exact");
        let (hash, number) = (hash.value(), number.value());
        of_hash(tables, findings, ("exact", &format!("{hash:032x}")), (hash, number))?;
    }
    for row in tables.twins.iter()? {
        let (hash, number) = row?.0.value();
        findings.look("twins");
        let key = format!("{hash:032x} {number}");
        of_hash(tables, findings, ("twins", &key), (hash, number))?;
        let first = tables.exact.get(hash)?.map(|row| row.value());
        if first.is_none_or(|first| first == number) {
            findings.fault("twins", || format!("twins, row {key}: it follows no other content"));
        }
    }
    Ok(())
}

/// Notes that a row leads to a content that is missing, or has another text.
fn of_hash(
    tables: &ReadTables,
    findings: &mut Findings,
    (table, key): (&'static str, &str),
    (hash, content): (u128, u64),
) -> Result<(), Error> {
    known(tables, findings, (table, key), content)?;
    let row = tables.contents.get(content)?;
    // One that cannot be read was listed before.
    let read = row.and_then(|row| Content::decode(row.value()).ok());
    if read.is_some_and(|read| read.hash != hash) {
        findings.fault(table, || format!("{table}, row {key}: content {content} has another text"));
    }
    Ok(())
}

/// Second looks are due at contents and documents that are there, and done at none that is to come.
fn looks(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    for row in tables.unsure.iter()? {
        let number = row?.0.value();
        findings.look("unsure");
        known(tables, findings, ("unsure", &number.to_string()), number)?;
    }
    for row in tables.reviews.iter()? {
        let number = row?.0.value();
        findings.look("reviews");
        if tables.documents.get(number)?.is_none() {
            findings.fault("reviews", || {
                format!("reviews, row {number}: document {number} is missing")
            });
        }
    }
    // Numbers that cannot be read were listed before.
    let number = |name| -> Result<Result<u64, BadRow>, Error> {
        Ok(tables.meta.get(name)?.map_or(Ok(0), |row| read_number(row.value())))
    };
    if let (Ok(settled), Ok(newest)) = (number("settled")?, number("next_content")?)
        && settled > newest
    {
        findings.fault("meta", || {
            format!("meta, row settled: content {settled} is to come after {newest}")
        });
    }
    Ok(())
}

/// Notes that a row names a content that is missing.
fn known(
    tables: &ReadTables,
    findings: &mut Findings,
    (table, key): (&'static str, &str),
    content: u64,
) -> Result<(), Error> {
    if tables.contents.get(content)?.is_none() {
        findings.fault(table, || format!("{table}, row {key}: content {content} is missing"));
    }
    Ok(())
}
