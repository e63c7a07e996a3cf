//! Contents that go from one document to another, documents that become one, and documents that
//! end.

use redb::ReadableTable as _;

use crate::base::clock::Timestamp;
use crate::corpus::documents::{
    Content, Copy, Document, copies_of, copy_key, forget_changes, note_again, note_change,
    read_body, read_content, read_document, remove_document, write_body, write_content, write_copy,
    write_document,
};
use crate::corpus::keys;
use crate::neardup::Change;
use crate::neardup::Field;
use crate::neardup::Key;
use crate::store::{BadRow, Error, Tables};

use super::{Joint, Left, Place, equal, free_id, must_read, note, ranked, stand};

/// A content that went to another document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Number of the document that it belonged to, which must be counted anew.
    pub from: u64,
    /// Number of the document that it belongs to now.
    pub document: u64,
    /// Addresses of the copies that carry it.
    pub addresses: Vec<String>,
}

/// What has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// Documents.
    pub documents: u64,
    /// Addresses of the copies that they had.
    pub addresses: Vec<String>,
    /// Contents that they had.
    pub contents: Vec<u64>,
}

/// A content whose joint was less than certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsure {
    /// Its number.
    pub content: u64,
    /// Address of the copy that brought it.
    pub address: String,
}

/// Returns the contents whose joints were less than certain and that came after `after`, in the
/// order of their numbers.
pub fn unsure(tables: &Tables<'_>, after: u64) -> Result<Vec<Unsure>, Error> {
    let rows = tables.unsure.range(after + 1..)?;
    let rows = rows.map(|row| {
        let (content, address) = row?;
        Ok(Unsure { content: content.value(), address: address.value().to_owned() })
    });
    rows.collect()
}

/// Moves a content that is a leaf to the tree that would take it now; none if that is its own.
pub fn replace(
    tables: &mut Tables<'_>,
    content: u64,
    place: &Place,
    now: Timestamp,
) -> Result<Option<Moved>, Error> {
    let document = must_content(tables, content)?.document;
    let is_root = must_read(tables, document)?.root == content;
    let stays = matches!(place, Place::Tree(joint) if joint.document == document);
    if is_root || matches!(place, Place::New) || matches!(place, Place::Tree(joint) if joint.sure) {
        tables.unsure.remove(content)?;
    }
    if is_root || stays {
        return Ok(None);
    }
    move_content(tables, content, place, now).map(Some)
}

/// Moves a content that is a leaf, with all copies that carry it, to another tree or to a document
/// of its own; both documents elect their canonical copies anew.
///
/// The document that it leaves is not counted anew: see [`recount`].
fn move_content(
    tables: &mut Tables<'_>,
    content: u64,
    place: &Place,
    now: Timestamp,
) -> Result<Moved, Error> {
    let mut row = must_content(tables, content)?;
    let from = row.document;
    let mut mine = copies_of(&tables.copies, from)?;
    let last = must_read(tables, from)?.last_arrival;
    let came_again = mine.iter().all(|(_, copy)| copy.arrival < last);
    mine.retain(|(_, copy)| copy.content == content);
    let text = read_body(&tables.bodies, content)?.ok_or_else(|| gone("its text is missing"))?;
    let (document, base, joint) = match place {
        Place::Tree(joint) => {
            (joint.document, Some(must_read(tables, joint.document)?.root), Some(joint))
        }
        Place::New => (tables.next_number("next_document")?, None, None),
    };
    // A text is packed against the root of its own tree, which may end before this one; a base is
    // always older.
    let base = base.filter(|base| *base < content);
    write_body(&mut tables.bodies, content, &text, base)?;
    row.document = document;
    write_content(&mut tables.contents, content, &row)?;
    let mut moved = Moved { from, document, addresses: Vec::new() };
    for (address, mut copy) in mine {
        tables.copies.remove(copy_key(from, &address).as_slice())?;
        hang(&mut copy, joint);
        write_copy(&mut tables.copies, document, &address, &copy)?;
        moved.addresses.push(address);
    }
    if joint.is_none() {
        let first = copies_of(&tables.copies, document)?;
        let (address, copy) = first.first().ok_or_else(|| gone("no copy carries it"))?;
        let id = free_id(&tables.doc_ids, address, &copy.title, row.hash)?;
        tables.doc_ids.insert(id.0, document)?;
        let empty = Document::first(id, content, address, copy);
        write_document(tables, document, &empty)?;
    }
    if came_again {
        // Which copy it was is not known: it may be one that has moved.
        note_again(tables, document, last)?;
    } else {
        // The newest copy may have moved: the newest of those that are left will be found.
        let mut left = must_read(tables, from)?;
        left.last_arrival = left.first_arrival;
        write_document(tables, from, &left)?;
    }
    recount(tables, document, now)?;
    Ok(moved)
}

/// Makes the document `from` a part of the document `into`: its contents become leaves there, its
/// identifier leads there. Returns the addresses of the copies that moved.
pub fn merge(
    tables: &mut Tables<'_>,
    from: u64,
    into: u64,
    now: Timestamp,
) -> Result<Vec<String>, Error> {
    if from == into {
        return Err(gone("it cannot be merged with itself").into());
    }
    let target = must_read(tables, into)?;
    let root = must_content(tables, target.root)?;
    let source = must_read(tables, from)?;
    let mut addresses = Vec::new();
    let mut contents: Vec<u64> = Vec::new();
    for (address, mut copy) in copies_of(&tables.copies, from)? {
        let content = must_content(tables, copy.content)?;
        let joint = Joint {
            document: into,
            same: None,
            key: Key::Merged,
            distance: content.fingerprint.distance(root.fingerprint),
            similarity: content.sketch.similarity(&root.sketch),
            sure: true,
        };
        contents.push(copy.content);
        tables.copies.remove(copy_key(from, &address).as_slice())?;
        hang(&mut copy, Some(&joint));
        write_copy(&mut tables.copies, into, &address, &copy)?;
        addresses.push(address);
    }
    for number in all_contents(tables, (from, &source), contents)? {
        let mut content = must_content(tables, number)?;
        content.document = into;
        write_content(&mut tables.contents, number, &content)?;
        tables.unsure.remove(number)?;
    }
    let mut target = must_read(tables, into)?;
    for id in ids_of(tables, from)? {
        tables.doc_ids.insert(id, into)?;
        target.merged.push(id);
    }
    target.last_arrival = target.last_arrival.max(source.last_arrival);
    write_document(tables, into, &target)?;
    remove_document(tables, from)?;
    tables.reviews.remove(from)?;
    for change in forget_changes(&mut tables.history, from)? {
        note_change(&mut tables.history, into, &change)?;
    }
    recount(tables, into, now)?;
    Ok(addresses)
}

/// Ends every document whose newest copy came before `before`: its whole tree and nothing else.
///
/// Source: the text on near-duplicates of a public-opinion platform (a root lives as long as its
/// youngest leaf, so that a tree expires as a whole).
pub fn expire(tables: &mut Tables<'_>, before: Timestamp) -> Result<Ended, Error> {
    let numbers = tables.documents.iter()?.map(|row| Ok(row?.0.value()));
    let numbers = numbers.collect::<Result<Vec<u64>, Error>>()?;
    expire_some(tables, &numbers, before)
}

/// Does the same with some documents only, as far as they are still there.
pub fn expire_some(
    tables: &mut Tables<'_>,
    numbers: &[u64],
    before: Timestamp,
) -> Result<Ended, Error> {
    let mut ended = Ended::default();
    let mut changes = Vec::new();
    for number in numbers {
        let document = read_document(&tables.documents, *number)?;
        let Some(document) = document.filter(|row| row.last_arrival < before) else { continue };
        for (address, _) in copies_of(&tables.copies, *number)? {
            ended.addresses.push(address);
        }
        let (contents, removed) = end_one(tables, *number, &document)?;
        ended.contents.extend(contents);
        changes.extend(removed);
        ended.documents += 1;
    }
    keys::append(&mut tables.near_log, changes)?;
    Ok(ended)
}

/// Ends a document that no address carries any more, as if it had never been.
pub fn end(tables: &mut Tables<'_>, number: u64, left: &mut Left) -> Result<(), Error> {
    let document = must_read(tables, number)?;
    let (contents, changes) = end_one(tables, number, &document)?;
    left.contents.extend(contents);
    left.changes.extend(changes);
    Ok(())
}

/// Removes a document with all its copies and contents, and tells the contents.
fn end_one(
    tables: &mut Tables<'_>,
    number: u64,
    document: &Document,
) -> Result<(Vec<u64>, Vec<Change>), Error> {
    let mut carried = Vec::new();
    for (address, copy) in copies_of(&tables.copies, number)? {
        tables.copies.remove(copy_key(number, &address).as_slice())?;
        carried.push(copy.content);
    }
    let contents = all_contents(tables, (number, document), carried)?;
    let mut changes = Vec::new();
    for content in &contents {
        changes.extend(remove_content(tables, *content)?);
    }
    for id in ids_of(tables, number)? {
        tables.doc_ids.remove(id)?;
    }
    remove_document(tables, number)?;
    tables.reviews.remove(number)?;
    forget_changes(&mut tables.history, number)?;
    Ok((contents, changes))
}

/// Returns every content of a document, of which some are carried by its copies.
fn all_contents(
    tables: &Tables<'_>,
    (number, document): (u64, &Document),
    mut carried: Vec<u64>,
) -> Result<Vec<u64>, Error> {
    carried.push(document.root);
    if !document.merged.is_empty() {
        // Texts that no copy carries may have stayed because others are packed against them.
        for row in tables.contents.iter()? {
            let (content, row) = row?;
            if Content::decode(row.value())?.document == number {
                carried.push(content.value());
            }
        }
    }
    carried.sort_unstable();
    carried.dedup();
    Ok(carried)
}

pub(super) fn remove_content(
    tables: &mut Tables<'_>,
    number: u64,
) -> Result<impl Iterator<Item = Change> + use<>, Error> {
    let content = must_content(tables, number)?;
    tables.contents.remove(number)?;
    tables.bodies.remove(number)?;
    equal::remove(tables, content.hash, number)?;
    tables.unsure.remove(number)?;
    let change = move |field, fingerprint| Change {
        field,
        fingerprint,
        content: number as u32,
        removed: true,
    };
    let text = change(Field::Content, content.fingerprint);
    let title = content.title_fingerprint.map(|title| change(Field::Title, title));
    Ok(std::iter::once(text).chain(title))
}

/// The identifier of a document, and those of the documents that were merged into it.
fn ids_of(tables: &Tables<'_>, document: u64) -> Result<Vec<u128>, Error> {
    let row = must_read(tables, document)?;
    let mut ids = row.merged.clone();
    ids.push(row.id.0);
    Ok(ids)
}

/// Copies of a text that hangs on its tree keep their key: they have the very same text.
pub(super) fn hang(copy: &mut Copy, joint: Option<&Joint>) {
    if copy.key != Key::Exact {
        copy.key = joint.map_or(Key::First, |joint| joint.key);
    }
    copy.distance = joint.map_or(0, |joint| joint.distance as u8);
    copy.similarity = joint.map_or(1000, Joint::thousandths);
}

/// Counts the copies of a document anew and elects the canonical one. A document without copies is
/// marked as gone.
pub fn recount(tables: &mut Tables<'_>, number: u64, now: Timestamp) -> Result<(), Error> {
    let mut document = must_read(tables, number)?;
    let was = document.canonical.clone();
    let copies = copies_of(&tables.copies, number)?;
    let best = ranked(&copies).min_by(|(one, ..), (other, ..)| one.cmp(other));
    let Some((_, address, copy)) = best else {
        document.copies = 0;
        // The text of its last copy may be removed; that of its root is kept.
        document.content = document.root;
        if document.gone.0 == 0 {
            document.gone = Timestamp(now.0.max(1));
        }
        return write_document(tables, number, &document);
    };
    document.gone = Timestamp(0);
    document.copies = copies.len() as u64;
    stand(&mut document, address, copy);
    let arrivals = || copies.iter().map(|(_, copy)| copy.arrival);
    document.last_arrival = arrivals().fold(document.last_arrival, Timestamp::max);
    document.first_arrival = arrivals().min().unwrap_or(document.first_arrival);
    note(tables, number, was, &document, now)?;
    write_document(tables, number, &document)
}

fn must_content(tables: &Tables<'_>, content: u64) -> Result<Content, Error> {
    Ok(read_content(&tables.contents, content)?.ok_or_else(|| gone("a content is missing"))?)
}

fn gone(detail: &'static str) -> BadRow {
    BadRow { kind: "document", detail }
}
