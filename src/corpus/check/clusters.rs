//! Documents, their copies and their trees.

use std::collections::HashMap;

use roaring::RoaringTreemap;

use super::facts::{Part, of_id};
use super::{Findings, hex, row_of};
use crate::corpus::clusters::{defers, rank};
use crate::corpus::documents::{Copy, DocId, Document};
use crate::corpus::tables::{CONTENTS, COPIES, DOC_IDS, DOCUMENTS, HISTORY, SEARCH_CHANGES};
use crate::store::{DocumentNumber, Entry, Error, Rows, Snapshot, View as _};

/// The copies of one document.
#[derive(Default)]
struct Copies {
    count: u64,
    /// Its URL, whether it defers, and itself.
    best: Option<(String, bool, Copy)>,
    /// One of them cannot be read: it may be the best.
    unread: bool,
}

type CopyEntry<'s> = Entry<'s, (DocumentNumber, &'static str), Copy>;

/// All copies, in the order of their documents.
struct CopyRows<'s> {
    snapshot: &'s Snapshot,
    rows: Rows<'s, (DocumentNumber, &'static str), Copy>,
    /// The next one, with the number of its document.
    next: Option<(u64, CopyEntry<'s>)>,
}

impl<'s> CopyRows<'s> {
    fn new(snapshot: &'s Snapshot, findings: &mut Findings) -> Result<Self, Error> {
        let mut copies = Self { snapshot, rows: snapshot.rows(COPIES)?, next: None };
        copies.advance(findings)?;
        Ok(copies)
    }

    /// Goes on to the next copy whose key can be read.
    fn advance(&mut self, findings: &mut Findings) -> Result<(), Error> {
        for entry in self.rows.by_ref() {
            let entry = entry?;
            findings.look("copies");
            let key = findings.read("copies", hex(entry.key_bytes()), entry.key());
            if let Some((document, _)) = key {
                self.next = Some((document, entry));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the copies of a document, which are the next ones if it has any.
    fn of(&mut self, number: u64, findings: &mut Findings) -> Result<Copies, Error> {
        let mut copies = Copies::default();
        while let Some((_, entry)) = self.next.take_if(|(document, _)| *document == number) {
            self.advance(findings)?;
            let (_, address) = entry.key()?;
            copies.count += 1;
            let name = format_args!("{number} {address}");
            let Some(copy) = findings.read("copies", name, entry.row()) else {
                copies.unread = true;
                continue;
            };
            let defers = defers(self.snapshot, number, &copy)?;
            let better = copies.best.as_ref().is_none_or(|(other, held, best)| {
                rank(copy.popularity, defers, address) < rank(best.popularity, *held, other)
            });
            if better {
                copies.best = Some((address.to_owned(), defers, copy));
            }
        }
        Ok(copies)
    }

    /// Passes over the copies of documents before this one: these are missing.
    fn pass(&mut self, before: Option<u64>, findings: &mut Findings) -> Result<(), Error> {
        while let Some((number, _)) = self.next
            && before.is_none_or(|before| number < before)
        {
            self.of(number, findings)?;
            findings.fault("copies", || format!("copies name document {number}, which is missing"));
        }
        Ok(())
    }
}

/// Documents: copies are counted, the canonical copy is the best one. Returns their numbers.
pub(super) fn documents(
    snapshot: &Snapshot,
    findings: &mut Findings,
) -> Result<RoaringTreemap, Error> {
    let mut numbers = RoaringTreemap::new();
    let mut copies = CopyRows::new(snapshot, findings)?;
    for entry in snapshot.rows(DOCUMENTS)? {
        let entry = entry?;
        findings.look("documents");
        let number = entry.key()?;
        numbers.insert(number);
        copies.pass(Some(number), findings)?;
        let copies = copies.of(number, findings)?;
        if let Some(document) = findings.read("documents", number, entry.row()) {
            agree(&document, copies, findings);
        }
    }
    copies.pass(None, findings)?;
    Ok(numbers)
}

/// Looks whether a document counts its copies and keeps the best of them.
fn agree(document: &Document, copies: Copies, findings: &mut Findings) {
    let id = document.id;
    let Copies { count, best, unread } = copies;
    if count == 0 {
        if document.gone.0 == 0 || document.copies != 0 {
            findings.fault("documents", || format!("{id} has no copy and is not gone"));
        } else if document.content != document.root {
            findings
                .fault("documents", || format!("{id} is gone and has not the text of its root"));
        }
        return;
    }
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

/// Identifiers and histories are of documents that are there, and every document is found by its
/// identifier.
pub(super) fn names(
    snapshot: &Snapshot,
    documents: &RoaringTreemap,
    at_a_time: u64,
    findings: &mut Findings,
) -> Result<(), Error> {
    for part in Part::all(snapshot.len(DOC_IDS)?, at_a_time) {
        let mut hashes = Vec::new();
        for entry in snapshot.rows(DOC_IDS)? {
            let entry = entry?;
            let (DocId(id), number) = (entry.key()?, entry.row()?);
            let hash = of_id(id, number);
            if !part.has(hash) {
                continue;
            }
            findings.look("doc_ids");
            hashes.push(hash);
            if !documents.contains(number) {
                findings.fault("doc_ids", || {
                    format!("doc_ids, row {id:032x}: document {number} is missing")
                });
            }
        }
        hashes.sort_unstable();
        for entry in snapshot.rows(DOCUMENTS)? {
            let entry = entry?;
            let (number, Ok(document)) = (entry.key()?, entry.row()) else { continue };
            let hash = of_id(document.id.0, number);
            if part.has(hash) && hashes.binary_search(&hash).is_err() {
                let id = document.id;
                findings.fault("documents", || format!("{id} leads to another document"));
            }
        }
    }
    for entry in snapshot.rows(HISTORY)? {
        let entry = entry?;
        findings.look("history");
        let name = hex(entry.key_bytes());
        findings.read("history", &name, entry.row());
        let Some((document, _)) = findings.read("history", &name, entry.key()) else { continue };
        if !documents.contains(document) {
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
/// the tree it hangs on. Rows that cannot be read were listed before. Returns the numbers of the
/// contents.
pub(super) fn forest(
    snapshot: &Snapshot,
    findings: &mut Findings,
) -> Result<RoaringTreemap, Error> {
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
    // Most contents are carried by one copy.
    let mut carried = RoaringTreemap::new();
    let mut again: HashMap<u64, u64> = HashMap::new();
    let mut unread = false;
    for entry in snapshot.rows(COPIES)? {
        let entry = entry?;
        let (Ok((number, _)), Ok(copy)) = (entry.key(), entry.row()) else {
            unread = true;
            continue;
        };
        let content = copy.content;
        if !carried.insert(content) {
            *again.entry(content).or_default() += 1;
        }
        if !in_tree(content, number)? {
            findings.fault("copies", || {
                format!("a copy carries content {content}, which is not in its tree")
            });
        }
    }
    let mut numbers = RoaringTreemap::new();
    for entry in snapshot.rows(CONTENTS)? {
        let entry = entry?;
        let number = entry.key()?;
        numbers.insert(number);
        let found = u64::from(carried.contains(number)) + again.get(&number).unwrap_or(&0);
        let Ok(content) = entry.row() else { continue };
        // A copy that cannot be read may carry any content.
        if found != content.copies && !(unread && found < content.copies) {
            let counted = content.copies;
            findings.fault("contents", || {
                format!("content {number} counts {counted} of {found} copies")
            });
        }
    }
    Ok(numbers)
}
