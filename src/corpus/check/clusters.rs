//! Documents, their copies and their trees.

use std::collections::HashMap;

use super::{Findings, hex, row_of};
use crate::corpus::clusters::{defers, rank};
use crate::corpus::documents::{Copy, DocId, Document};
use crate::corpus::tables::{CONTENTS, COPIES, DOC_IDS, DOCUMENTS, HISTORY, SEARCH_CHANGES};
use crate::store::{Error, Snapshot, View as _};

/// The copies of one document.
#[derive(Default)]
struct Copies {
    count: u64,
    /// Its URL, whether it defers, and itself.
    best: Option<(String, bool, Copy)>,
    /// One of them cannot be read: it may be the best.
    unread: bool,
}

/// Documents: identifiers lead back, copies are counted, the canonical copy is the best one.
pub(super) fn documents(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    let mut copies: HashMap<u64, Copies> = HashMap::new();
    for entry in snapshot.rows(COPIES)? {
        let entry = entry?;
        findings.look("copies");
        let key = findings.read("copies", hex(entry.key_bytes()), entry.key());
        let Some((number, address)) = key else { continue };
        let copies = copies.entry(number).or_default();
        copies.count += 1;
        let name = format_args!("{number} {address}");
        let Some(copy) = findings.read("copies", name, entry.row()) else {
            copies.unread = true;
            continue;
        };
        let defers = defers(snapshot, number, &copy)?;
        let better = copies.best.as_ref().is_none_or(|(other, held, best)| {
            rank(copy.popularity, defers, address) < rank(best.popularity, *held, other)
        });
        if better {
            copies.best = Some((address.to_owned(), defers, copy));
        }
    }
    for entry in snapshot.rows(DOCUMENTS)? {
        let entry = entry?;
        findings.look("documents");
        let number = entry.key()?;
        let copies = copies.remove(&number);
        let Some(document) = findings.read("documents", number, entry.row()) else { continue };
        agree(&document, copies, findings);
        let id = document.id;
        if snapshot.get(DOC_IDS, id)? != Some(number) {
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
pub(super) fn names(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    for entry in snapshot.rows(DOC_IDS)? {
        let entry = entry?;
        findings.look("doc_ids");
        let (DocId(id), number) = (entry.key()?, entry.row()?);
        if !snapshot.has(DOCUMENTS, number)? {
            findings.fault("doc_ids", || {
                format!("doc_ids, row {id:032x}: document {number} is missing")
            });
        }
    }
    for entry in snapshot.rows(HISTORY)? {
        let entry = entry?;
        findings.look("history");
        let name = hex(entry.key_bytes());
        findings.read("history", &name, entry.row());
        let Some((document, _)) = findings.read("history", &name, entry.key()) else { continue };
        if !snapshot.has(DOCUMENTS, document)? {
            findings.fault("history", || {
                format!("history, row {name}: document {document} is missing")
            });
        }
    }
    Ok(())
}

/// What is noted for the search is what its documents show now.
pub(super) fn search(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    for entry in snapshot.rows(SEARCH_CHANGES)? {
        let entry = entry?;
        findings.look("search_changes");
        let (number, noted) = (entry.key()?, entry.row()?);
        let document = row_of(snapshot.get(DOCUMENTS, number))?;
        let shown = document.map(|row| row.map_or(0, |row| row.shown()));
        if shown.is_ok_and(|shown| shown != noted) {
            findings.fault("search_changes", || {
                format!("search_changes, row {number}: the document shows something else")
            });
        }
    }
    Ok(())
}

/// The parent forest: every root is a content of its own tree, and every copy carries a content of
/// the tree it hangs on. Rows that cannot be read were listed before.
pub(super) fn forest(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    // Whether a content is there and, as far as it can be read, in the tree of a document.
    let in_tree = |content: u64, document: u64| -> Result<bool, Error> {
        let row = row_of(snapshot.get(CONTENTS, content))?.transpose();
        Ok(row.is_some_and(|row| row.map_or(true, |row| row.document == document)))
    };
    for entry in snapshot.rows(DOCUMENTS)? {
        let entry = entry?;
        let Ok(document) = entry.row() else { continue };
        if !in_tree(document.root, entry.key()?)? {
            findings
                .fault("documents", || format!("the root of {} is not in its tree", document.id));
        }
    }
    let mut carriers: HashMap<u64, u64> = HashMap::new();
    let mut unread = false;
    for entry in snapshot.rows(COPIES)? {
        let entry = entry?;
        let (Ok((number, _)), Ok(copy)) = (entry.key(), entry.row()) else {
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
    for entry in snapshot.rows(CONTENTS)? {
        let entry = entry?;
        let number = entry.key()?;
        let found = carriers.remove(&number).unwrap_or(0);
        let Ok(content) = entry.row() else { continue };
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
