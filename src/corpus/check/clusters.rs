//! Documents, their copies and their trees.

use std::collections::HashMap;

use redb::ReadableTable as _;

use super::{Findings, hex};
use crate::corpus::clusters::{defers, rank};
use crate::corpus::documents::{Content, Copy, Document};
use crate::store::{BadRow, Decoder, Error, ReadTables};

/// The copies of one document.
#[derive(Default)]
struct Copies {
    count: u64,
    /// Its address, whether it defers, and itself.
    best: Option<(String, bool, Copy)>,
    /// One of them cannot be read: it may be the best.
    unread: bool,
}

/// Documents: identifiers lead back, copies are counted, the canonical copy is the best one.
pub(super) fn documents(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    let mut copies: HashMap<u64, Copies> = HashMap::new();
    for row in tables.copies.iter()? {
        let (key, row) = row?;
        findings.look("copies");
        let Some((number, address)) =
            findings.read("copies", hex(key.value()), split_copy_key(key.value()))
        else {
            continue;
        };
        let copies = copies.entry(number).or_default();
        copies.count += 1;
        let name = format_args!("{number} {address}");
        let Some(copy) = findings.read("copies", name, Copy::decode(row.value())) else {
            copies.unread = true;
            continue;
        };
        let defers = defers(&tables.copies, number, &copy)?;
        let better = copies.best.as_ref().is_none_or(|(other, held, best)| {
            rank(copy.popularity, defers, address) < rank(best.popularity, *held, other)
        });
        if better {
            copies.best = Some((address.to_owned(), defers, copy));
        }
    }
    for row in tables.documents.iter()? {
        let (number, row) = row?;
        findings.look("documents");
        let copies = copies.remove(&number.value());
        let Some(document) =
            findings.read("documents", number.value(), Document::decode(row.value()))
        else {
            continue;
        };
        agree(&document, copies, findings);
        let id = document.id;
        if tables.doc_ids.get(id.0)?.map(|row| row.value()) != Some(number.value()) {
            findings.fault("documents", || format!("{id} leads to another document"));
        }
    }
    for number in copies.into_keys() {
        findings.fault("copies", || format!("copies name document {number}, which is missing"));
    }
    Ok(())
}

/// Looks whether a document counts its copies and keeps the best of them.
fn agree(document: &Document, copies: Option<Copies>, findings: &mut Findings) {
    let id = document.id;
    let Some(Copies { count, best, unread }) = copies else {
        if document.gone.0 == 0 || document.copies != 0 {
            findings.fault("documents", || format!("{id} has no copy and is not gone"));
        } else if document.content != document.root {
            findings
                .fault("documents", || format!("{id} is gone and has not the text of its root"));
        }
        return;
    };
    if document.gone.0 != 0 {
        findings.fault("documents", || format!("{id} is gone and has copies"));
    }
    if count != document.copies {
        findings
            .fault("documents", || format!("{id} counts {} of {count} copies", document.copies));
    }
    if let Some((address, _, best)) = best.filter(|_| !unread)
        && (address != document.canonical || best.content != document.content)
    {
        findings.fault("documents", || format!("{id} keeps {}, not {address}", document.canonical));
    }
}

/// Identifiers and histories are of documents that are there.
pub(super) fn names(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    for row in tables.doc_ids.iter()? {
        let (id, number) = row?;
        findings.look("doc_ids");
        let (id, number) = (id.value(), number.value());
        if tables.documents.get(number)?.is_none() {
            findings.fault("doc_ids", || {
                format!("doc_ids, row {id:032x}: document {number} is missing")
            });
        }
    }
    for row in tables.history.iter()? {
        let (key, row) = row?;
        findings.look("history");
        let name = hex(key.value());
        findings.read("history", &name, change(row.value()));
        let Some(document) = findings.read("history", &name, history_key(key.value())) else {
            continue;
        };
        if tables.documents.get(document)?.is_none() {
            findings.fault("history", || {
                format!("history, row {name}: document {document} is missing")
            });
        }
    }
    Ok(())
}

/// What is noted for the search is what its documents show now.
pub(super) fn search(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    for row in tables.search_changes.iter()? {
        let (number, noted) = row?;
        findings.look("search_changes");
        let number = number.value();
        let row = tables.documents.get(number)?;
        let shown = row.map_or(Ok(0), |row| Document::decode(row.value()).map(|row| row.shown()));
        if shown.is_ok_and(|shown| shown != noted.value()) {
            findings.fault("search_changes", || {
                format!("search_changes, row {number}: the document shows something else")
            });
        }
    }
    Ok(())
}

/// Reads a change of a canonical copy as [`documents::changes_of`](crate::corpus::documents) does,
/// which reads those of a document all at once.
fn change(row: &[u8]) -> Result<(), BadRow> {
    let mut row = Decoder::new("history", 1, row)?;
    row.signed()?;
    row.text()?;
    row.text().map(drop)
}

/// Returns the document of a row of `history`.
fn history_key(key: &[u8]) -> Result<u64, BadRow> {
    let bad = BadRow { kind: "history key", detail: "it has not 16 bytes" };
    let key: [u8; 16] = key.try_into().map_err(|_| bad)?;
    Ok((u128::from_be_bytes(key) >> 64) as u64)
}

/// Takes the key of a copy apart: document, address.
fn split_copy_key(key: &[u8]) -> Result<(u64, &str), BadRow> {
    let bad = |detail| BadRow { kind: "copy key", detail };
    let (number, address) = key.split_first_chunk().ok_or_else(|| bad("it has no number"))?;
    let address = std::str::from_utf8(address).map_err(|_| bad("its address is not UTF-8"))?;
    Ok((u64::from_be_bytes(*number), address))
}

/// The parent forest: every root is a content of its own tree, and every copy carries a content of
/// the tree it hangs on. Rows that cannot be read were listed before.
pub(super) fn forest(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    // Whether a content is there and, as far as it can be read, in the tree of a document.
    let in_tree = |content: u64, document: u64| -> Result<bool, Error> {
        let row = tables.contents.get(content)?;
        let decoded = row.map(|row| Content::decode(row.value()));
        Ok(decoded.is_some_and(|row| row.map_or(true, |row| row.document == document)))
    };
    for row in tables.documents.iter()? {
        let (number, row) = row?;
        let Ok(document) = Document::decode(row.value()) else { continue };
        if !in_tree(document.root, number.value())? {
            findings
                .fault("documents", || format!("the root of {} is not in its tree", document.id));
        }
    }
    let mut carriers: HashMap<u64, u64> = HashMap::new();
    let mut unread = false;
    for row in tables.copies.iter()? {
        let (key, row) = row?;
        let (Ok((number, _)), Ok(copy)) = (split_copy_key(key.value()), Copy::decode(row.value()))
        else {
            unread = true;
            continue;
        };
        let content = copy.content;
        *carriers.entry(content).or_default() += 1;
        if !in_tree(content, number)? {
            findings.fault("copies", || {
                format!("a copy carries content {content}, which is not in its tree")
            });
        }
    }
    for row in tables.contents.iter()? {
        let (number, row) = row?;
        let (number, found) = (number.value(), carriers.remove(&number.value()).unwrap_or(0));
        let Ok(content) = Content::decode(row.value()) else { continue };
        // A copy that cannot be read may carry any content.
        if found != content.copies && !(unread && found < content.copies) {
            let counted = content.copies;
            findings.fault("contents", || {
                format!("content {number} counts {counted} of {found} copies")
            });
        }
    }
    Ok(())
}
