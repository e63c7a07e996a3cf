//! Matches that wait for their second look, and what their documents are without them.

use std::collections::BTreeMap;

use crate::corpus::documents::{Copy, DocId, Document, copies_of};
use crate::corpus::tables::{CONTENTS, UNSURE};
use crate::store::{BadRow, Error, META, View, read_number};

use super::moves::hang;
use super::{free_id, ranked, stand};

/// A document without the copies whose matches wait for their second look, or such copies as the
/// document that they would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The document, with the best of these copies as the canonical one.
    pub document: Document,
    /// Its copies, in the order of their URLs.
    pub copies: Vec<(String, Copy)>,
    /// The document on which they hang, if they wait for their second look.
    pub unsettled_with: Option<DocId>,
}

/// Returns the number of the text up to which all matches have had their second look.
pub fn settled(view: &impl View) -> Result<u64, Error> {
    number(view, "settled")
}

/// Returns the number of the text that came last.
pub fn newest(view: &impl View) -> Result<u64, Error> {
    number(view, "next_content")
}

fn number(view: &impl View, name: &str) -> Result<u64, Error> {
    Ok(view.bytes(META, name)?.map(|row| read_number(&row)).transpose()?.unwrap_or(0))
}

/// Takes the copies out of a document whose matches wait for their second look, because their texts
/// came after `settled`: those of one text together are what would be a document of its own if that
/// moved out, with the identifier that it would have. What is left comes first.
///
/// The text at the root of a tree hangs on nothing. If all copies wait, the canonical one and those
/// of its text are left.
///
/// Cost: one look-up for each copy of a text that came after `settled`.
pub fn parts(
    view: &impl View,
    number: u64,
    mut document: Document,
    settled: u64,
) -> Result<Vec<Part>, Error> {
    let mut left = Vec::new();
    let mut waiting: BTreeMap<u64, Vec<(String, Copy)>> = BTreeMap::new();
    for (address, copy) in copies_of(view, number)? {
        let content = copy.content;
        let waits = content > settled && content != document.root && view.has(UNSURE, content)?;
        let part = if waits { waiting.entry(content).or_default() } else { &mut left };
        part.push((address, copy));
    }
    if left.is_empty() {
        left = waiting.remove(&document.content).unwrap_or_default();
    }
    let hangs_on = document.id;
    if !waiting.is_empty() {
        count(&mut document, &left);
    }
    let mut parts = vec![Part { document, copies: left, unsettled_with: None }];
    for (content, copies) in waiting {
        let (document, copies) = moved_out(view, content, copies)?;
        parts.push(Part { document, copies, unsettled_with: Some(hangs_on) });
    }
    Ok(parts)
}

/// What a text and its copies would be if it moved to a document of its own.
fn moved_out(
    view: &impl View,
    content: u64,
    mut copies: Vec<(String, Copy)>,
) -> Result<(Document, Vec<(String, Copy)>), Error> {
    let missing = |detail| BadRow { kind: "content", detail };
    let row = view.get(CONTENTS, content)?;
    let row = row.ok_or_else(|| missing("a copy carries one that is missing"))?;
    for (_, copy) in &mut copies {
        hang(copy, None);
    }
    let (address, first) = copies.first().ok_or_else(|| missing("no copy carries it"))?;
    let id = free_id(view, address, &first.title, row.hash)?;
    let mut document = Document::first(id, content, address, first);
    count(&mut document, &copies);
    Ok((document, copies))
}

/// Makes a document show the best of some copies, and counts these.
fn count(document: &mut Document, copies: &[(String, Copy)]) {
    let best = ranked(copies).min_by(|(one, ..), (other, ..)| one.cmp(other));
    if let Some((_, address, copy)) = best {
        stand(document, address, copy);
    }
    document.copies = copies.len() as u64;
    let arrivals = || copies.iter().map(|(_, copy)| copy.arrival);
    document.first_arrival = arrivals().min().unwrap_or(document.first_arrival);
    document.last_arrival = arrivals().max().unwrap_or(document.last_arrival);
}
