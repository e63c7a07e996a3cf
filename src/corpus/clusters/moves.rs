//! Contents that go from one document to another, documents that become one, and documents that
//! end.

use std::collections::BTreeSet;

use crate::base::clock::Timestamp;
use crate::corpus::documents::{
    Content, Copy, DocId, Document, copies_of, forget_changes, needs_body, note_again, note_change,
    read_body, remove_body, remove_document, remove_page, write_body, write_document,
};
use crate::corpus::index::{self, Change};
use crate::corpus::tables::{CONTENTS, COPIES, DOC_IDS, DOCUMENTS, REVIEWS, UNSURE};
use crate::neardup::Key;
use crate::store::{BadRow, Error, Transaction, Update as _, View};

use super::{Left, Match, Place, free_id, must_read, note, ranked, stand};

/// A content that went to another document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Number of the document that it belonged to, which must be counted anew.
    pub from: u64,
    /// Number of the document that it belongs to now.
    pub document: u64,
    /// URLs of the copies that carry it.
    pub addresses: Vec<String>,
}

/// What has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// Documents.
    pub documents: u64,
    /// URLs of the copies that they had.
    pub addresses: Vec<String>,
    /// Contents that they had.
    pub contents: Vec<u64>,
}

/// A content whose match was less than certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsure {
    /// Its number.
    pub content: u64,
    /// URL of the copy that brought it.
    pub address: String,
}

/// Returns the contents whose matches were less than certain and that came after `after`, in the
/// order of their numbers.
pub fn unsure(batch: &impl View, after: u64) -> Result<Vec<Unsure>, Error> {
    let rows = batch.range(UNSURE, after + 1..)?;
    let rows = rows.map(|entry| {
        let entry = entry?;
        Ok(Unsure { content: entry.key()?, address: entry.row()? })
    });
    rows.collect()
}

/// Moves a content that is a leaf to the tree that would take it now; none if that is its own.
pub fn replace(
    batch: &mut impl Transaction,
    content: u64,
    place: &Place,
    now: Timestamp,
) -> Result<Option<Moved>, Error> {
    let document = must_content(batch, content)?.document;
    let is_root = must_read(batch, document)?.root == content;
    let stays = matches!(place, Place::Tree(matched) if matched.document == document);
    if is_root
        || matches!(place, Place::New)
        || matches!(place, Place::Tree(matched) if matched.sure)
    {
        batch.remove(UNSURE, content)?;
    }
    if is_root || stays {
        return Ok(None);
    }
    move_content(batch, content, place, now).map(Some)
}

/// Moves a content that is a leaf, with all copies that carry it, to another tree or to a document
/// of its own; both documents elect their canonical copies anew.
///
/// The document that it leaves is not counted anew: see [`recount`].
fn move_content(
    batch: &mut impl Transaction,
    content: u64,
    place: &Place,
    now: Timestamp,
) -> Result<Moved, Error> {
    let mut row = must_content(batch, content)?;
    let from = row.document;
    let mut mine = copies_of(batch, from)?;
    let source = must_read(batch, from)?;
    let last = source.last_arrival;
    let came_again = mine.iter().all(|(_, copy)| copy.arrival < last);
    if !source.merged.is_empty() {
        unpack(batch, content, &mine)?;
    }
    mine.retain(|(_, copy)| copy.content == content);
    let text = read_body(batch, content)?.ok_or_else(|| gone("its text is missing"))?;
    let (document, base, matched) = match place {
        Place::Tree(matched) => {
            (matched.document, Some(must_read(batch, matched.document)?.root), Some(matched))
        }
        Place::New => (batch.next_unique_number("next_document")?, None, None),
    };
    // A text is packed against the root of its own tree, which may end before this one; a base is
    // always older.
    let base = base.filter(|base| *base < content);
    write_body(batch, content, &text, base)?;
    row.document = document;
    batch.put(CONTENTS, content, &row)?;
    let mut moved = Moved { from, document, addresses: Vec::new() };
    for (address, mut copy) in mine {
        batch.remove(COPIES, (from, &address))?;
        hang(&mut copy, matched);
        batch.put(COPIES, (document, &address), &copy)?;
        moved.addresses.push(address);
    }
    if matched.is_none() {
        let first = copies_of(batch, document)?;
        let (address, copy) = first.first().ok_or_else(|| gone("no copy carries it"))?;
        let id = free_id(batch, address, &copy.title, row.hash)?;
        batch.put(DOC_IDS, id, &document)?;
        let empty = Document::first(id, content, address, copy);
        write_document(batch, document, &empty)?;
    }
    if came_again {
        // Which copy it was is not known: it may be one that has moved.
        note_again(batch, document, last)?;
    } else {
        // The newest copy may have moved: the newest of those that are left will be found.
        let mut left = must_read(batch, from)?;
        left.last_arrival = left.first_arrival;
        write_document(batch, from, &left)?;
    }
    recount(batch, document, now)?;
    Ok(moved)
}

/// Packs the texts of copies by themselves that are packed against a text which leaves their
/// document: it may have been the root of one that was merged, and from now on it ends without
/// them.
fn unpack(
    batch: &mut impl Transaction,
    content: u64,
    copies: &[(String, Copy)],
) -> Result<(), Error> {
    let others: BTreeSet<u64> = copies.iter().map(|(_, copy)| copy.content).collect();
    for other in others {
        if needs_body(batch, other, content)? {
            let text = read_body(batch, other)?.ok_or_else(|| gone("its text is missing"))?;
            write_body(batch, other, &text, None)?;
        }
    }
    Ok(())
}

/// Makes the document `from` a part of the document `into`: its contents become leaves there, its
/// identifier leads there. Returns the URLs of the copies that moved.
pub fn merge(
    batch: &mut impl Transaction,
    from: u64,
    into: u64,
    now: Timestamp,
) -> Result<Vec<String>, Error> {
    if from == into {
        return Err(gone("it cannot be merged with itself").into());
    }
    let target = must_read(batch, into)?;
    let root = must_content(batch, target.root)?;
    let source = must_read(batch, from)?;
    let mut addresses = Vec::new();
    let mut contents: Vec<u64> = Vec::new();
    for (address, mut copy) in copies_of(batch, from)? {
        let content = must_content(batch, copy.content)?;
        let matched = Match {
            document: into,
            same: None,
            key: Key::Merged,
            distance: content.fingerprint.distance(root.fingerprint),
            similarity: content.sketch.similarity(&root.sketch),
            sure: true,
        };
        contents.push(copy.content);
        batch.remove(COPIES, (from, &address))?;
        hang(&mut copy, Some(&matched));
        batch.put(COPIES, (into, &address), &copy)?;
        addresses.push(address);
    }
    for number in all_contents(batch, from, &source, contents)? {
        let mut content = must_content(batch, number)?;
        content.document = into;
        batch.put(CONTENTS, number, &content)?;
        batch.remove(UNSURE, number)?;
    }
    let mut target = must_read(batch, into)?;
    for id in ids_of(batch, from)? {
        batch.put(DOC_IDS, id, &into)?;
        target.merged.push(id);
    }
    target.last_arrival = target.last_arrival.max(source.last_arrival);
    write_document(batch, into, &target)?;
    remove_document(batch, from, Some(target.id))?;
    batch.remove(REVIEWS, from)?;
    for change in forget_changes(batch, from)? {
        note_change(batch, into, &change)?;
    }
    recount(batch, into, now)?;
    Ok(addresses)
}

/// Ends every document whose newest copy came before `before`: its whole tree and nothing else.
///
/// Source: the text on near-duplicates of a public-opinion platform (a root lives as long as its
/// youngest leaf, so that a tree expires as a whole).
pub fn expire(batch: &mut impl Transaction, before: Timestamp) -> Result<Ended, Error> {
    let numbers = batch.rows(DOCUMENTS)?.map(|entry| Ok(entry?.key()?));
    let numbers = numbers.collect::<Result<Vec<u64>, Error>>()?;
    expire_some(batch, &numbers, before)
}

/// Does the same with some documents only, as far as they are still there.
pub fn expire_some(
    batch: &mut impl Transaction,
    numbers: &[u64],
    before: Timestamp,
) -> Result<Ended, Error> {
    let mut ended = Ended::default();
    for number in numbers {
        let document = batch.get(DOCUMENTS, *number)?;
        let Some(document) = document.filter(|row| row.last_arrival < before) else { continue };
        for (address, _) in copies_of(batch, *number)? {
            ended.addresses.push(address);
        }
        ended.contents.extend(end_one(batch, *number, &document)?);
        ended.documents += 1;
    }
    Ok(ended)
}

/// Ends a document that no URL carries any more, as if it had never been.
pub fn end(batch: &mut impl Transaction, number: u64, left: &mut Left) -> Result<(), Error> {
    let document = must_read(batch, number)?;
    left.contents.extend(end_one(batch, number, &document)?);
    Ok(())
}

/// Removes a document with all its copies and contents, and tells the contents.
fn end_one(
    batch: &mut impl Transaction,
    number: u64,
    document: &Document,
) -> Result<Vec<u64>, Error> {
    let mut carried = Vec::new();
    for (address, copy) in copies_of(batch, number)? {
        batch.remove(COPIES, (number, &address))?;
        remove_page(batch, &address)?;
        carried.push(copy.content);
    }
    let contents = all_contents(batch, number, document, carried)?;
    for content in &contents {
        remove_content(batch, *content)?;
    }
    for id in ids_of(batch, number)? {
        batch.remove(DOC_IDS, id)?;
    }
    remove_document(batch, number, None)?;
    batch.remove(REVIEWS, number)?;
    forget_changes(batch, number)?;
    Ok(contents)
}

/// Returns every content of a document, of which some are carried by its copies.
fn all_contents(
    batch: &impl View,
    number: u64,
    document: &Document,
    mut carried: Vec<u64>,
) -> Result<Vec<u64>, Error> {
    carried.push(document.root);
    if !document.merged.is_empty() {
        // Texts that no copy carries may have stayed because others are packed against them.
        for entry in batch.rows(CONTENTS)? {
            let entry = entry?;
            if entry.row()?.document == number {
                carried.push(entry.key()?);
            }
        }
    }
    carried.sort_unstable();
    carried.dedup();
    Ok(carried)
}

pub(super) fn remove_content(batch: &mut impl Transaction, number: u64) -> Result<(), Error> {
    must_content(batch, number)?;
    batch.remove(CONTENTS, number)?;
    remove_body(batch, number)?;
    batch.remove(UNSURE, number)?;
    index::note(batch, Change { content: number, gone: true });
    Ok(())
}

/// The identifier of a document, and those of the documents that were merged into it.
fn ids_of(batch: &impl View, document: u64) -> Result<Vec<DocId>, Error> {
    let row = must_read(batch, document)?;
    let mut ids = row.merged;
    ids.extend(row.joined);
    ids.push(row.id);
    Ok(ids)
}

/// Lets the identifiers of a document of another store lead to the document that it has become, or
/// become part of. One that is `new` here takes the first of them as its own.
pub fn take_ids(
    batch: &mut impl Transaction,
    number: u64,
    ids: &[DocId],
    new: bool,
) -> Result<(), Error> {
    let mut document = must_read(batch, number)?;
    let was = document.clone();
    for (place, id) in ids.iter().enumerate() {
        // It has it, or another document has the same first copy.
        if batch.has(DOC_IDS, *id)? {
            continue;
        }
        batch.put(DOC_IDS, *id, &number)?;
        if new && place == 0 {
            batch.remove(DOC_IDS, document.id)?;
            document.id = *id;
        } else {
            document.joined.push(*id);
        }
    }
    if document == was { Ok(()) } else { write_document(batch, number, &document) }
}

/// Copies of a text that hangs on its tree keep their key: they have the very same text.
pub(super) fn hang(copy: &mut Copy, matched: Option<&Match>) {
    if copy.key != Key::Exact {
        copy.key = matched.map_or(Key::First, |matched| matched.key);
    }
    copy.distance = matched.map_or(0, |matched| matched.distance as u8);
    copy.similarity = matched.map_or(1000, Match::thousandths);
}

/// Counts the copies of a document anew and elects the canonical one. A document without copies is
/// marked as gone.
pub fn recount(batch: &mut impl Transaction, number: u64, now: Timestamp) -> Result<(), Error> {
    let mut document = must_read(batch, number)?;
    let was = document.canonical.clone();
    let copies = copies_of(batch, number)?;
    let best = ranked(&copies).min_by(|(one, ..), (other, ..)| one.cmp(other));
    let Some((_, address, copy)) = best else {
        document.copies = 0;
        // The text of its last copy may be removed; that of its root is kept.
        document.content = document.root;
        if document.gone.0 == 0 {
            document.gone = Timestamp(now.0.max(1));
        }
        return write_document(batch, number, &document);
    };
    document.gone = Timestamp(0);
    document.copies = copies.len() as u64;
    stand(&mut document, address, copy);
    let arrivals = || copies.iter().map(|(_, copy)| copy.arrival);
    document.last_arrival = arrivals().fold(document.last_arrival, Timestamp::max);
    document.first_arrival = arrivals().min().unwrap_or(document.first_arrival);
    note(batch, number, was, &document, now)?;
    write_document(batch, number, &document)
}

fn must_content(batch: &impl View, content: u64) -> Result<Content, Error> {
    Ok(batch.get(CONTENTS, content)?.ok_or_else(|| gone("a content is missing"))?)
}

fn gone(detail: &'static str) -> BadRow {
    BadRow { kind: "document", detail }
}
