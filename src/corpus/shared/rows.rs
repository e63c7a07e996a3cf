//! The row of a document: all rows that are said of it, in one.
//!
//! What a document is when it comes is written to a file, as a record: memory of the cluster is
//! scarce, and what a text is like is asked for candidates alone. The cluster has where the record
//! lies, and what has changed since; when that becomes more, a new record is written.
//!
//! ```text
//! record    version, how many rows, of each: kind, rest of its key, row
//! cluster   version, place of the record, of each change: kind, rest of its key, row
//! ```
//!
//! What the row of the document itself repeats of its canonical copy is left out.

use std::collections::BTreeMap;

use crate::base::clock::Timestamp;
use crate::corpus::documents::{Copy, DocId, Document};
use crate::store::{BadRow, Decoder, Encoder, List, Name, Number, Row as _, Signed, Wide, row};

use super::texts::StoredPlaceOfText;

/// A row of a document, its key without the number of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartRow {
    pub table: Name,
    pub key: Vec<u8>,
    pub row: Vec<u8>,
}

/// Kinds of rows, in the order of their codes. Texts lie in files, and their places here.
const TABLES: [Name; 7] = [
    Name::Documents,
    Name::Copies,
    Name::History,
    Name::Reviews,
    Name::Contents,
    Name::Unsure,
    Name::Bodies,
];

/// The code of a document without what its canonical copy says.
const SHORT: u64 = 7;

row! {
    /// A document without what its canonical copy says.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ShortDocument: "short_document", 1 to 1 {
        /// Its public identifier.
        pub id: DocId = Wide;
        /// Content at the root of its tree.
        pub root: u64 = Number;
        /// Which of its copies is canonical, in their order.
        pub canonical: u64 = Number;
        /// When the first copy came.
        pub first_arrival: Timestamp = Signed;
        /// When the newest copy came.
        pub last_arrival: Timestamp = Signed;
        /// Identifiers of documents that were merged into it.
        pub merged: Vec<DocId> = List<Wide>;
    }
}

impl ShortDocument {
    /// Leaves out what can be made again; none if something else stands there.
    fn of(document: &Document, rows: &[PartRow]) -> Option<Self> {
        let url = document.canonical.as_bytes();
        let canonical = copies(rows).position(|row| row.key == url)? as u64;
        let Document { id, root, first_arrival, last_arrival, .. } = *document;
        let merged = document.merged.clone();
        let short = Self { id, root, canonical, first_arrival, last_arrival, merged };
        (short.whole(rows).ok()? == *document).then_some(short)
    }

    fn whole(&self, rows: &[PartRow]) -> Result<Document, BadRow> {
        let bad = |detail| BadRow { kind: "short_document", detail };
        let canonical = usize::try_from(self.canonical).unwrap_or(usize::MAX);
        let row =
            copies(rows).nth(canonical).ok_or_else(|| bad("its canonical copy is missing"))?;
        let url = str::from_utf8(&row.key).map_err(|_| bad("a URL is not UTF-8"))?;
        let first = Document::first(self.id, self.root, url, &Copy::decode(&row.row)?);
        Ok(Document {
            copies: copies(rows).count() as u64,
            first_arrival: self.first_arrival,
            last_arrival: self.last_arrival,
            merged: self.merged.clone(),
            ..first
        })
    }
}

fn copies(rows: &[PartRow]) -> impl Iterator<Item = &PartRow> {
    rows.iter().filter(|row| row.table == Name::Copies)
}

/// Tells whether keys of a table begin with the number of a document.
pub(super) fn is_by_document(table: Name) -> bool {
    matches!(table, Name::Documents | Name::Copies | Name::History | Name::Reviews)
}

/// Tells whether keys of a table are numbers of contents.
pub(super) fn is_by_content(table: Name) -> bool {
    matches!(table, Name::Contents | Name::Unsure | Name::Bodies)
}

/// Bytes of changes beside a record: more of them are written as a new record, which costs the file
/// as much again as is known of the document.
const CHANGES_MIN: usize = 96;
const CHANGES_MAX: usize = 8_192;

/// Kind and rest of the key of a row -> the row.
type Parts = BTreeMap<(u64, Vec<u8>), Vec<u8>>;

/// Rows as they lie in a record.
fn parts_of(rows: &[PartRow]) -> Parts {
    let parts = rows.iter().map(|PartRow { table, key, row }| {
        let short = (*table == Name::Documents)
            .then(|| ShortDocument::of(&Document::decode(row).ok()?, rows))
            .flatten();
        match short {
            Some(short) => ((SHORT, key.clone()), short.encode().into_owned()),
            None => ((code_of(*table), key.clone()), row.clone()),
        }
    });
    parts.collect()
}

/// Takes rows back, in their order.
fn rows_of(parts: Parts) -> Result<Vec<PartRow>, BadRow> {
    let bad = BadRow { kind: "shared_document", detail: "a kind of rows is unknown" };
    let (mut rows, mut short) = (Vec::new(), None);
    for ((code, key), row) in parts {
        if code == SHORT {
            short = Some((key, ShortDocument::decode(&row)?));
            continue;
        }
        let table = usize::try_from(code).ok().and_then(|code| TABLES.get(code));
        rows.push(PartRow { table: *table.ok_or(bad.clone())?, key, row });
    }
    if let Some((key, short)) = short {
        let row = short.whole(&rows)?.encode().into_owned();
        rows.push(PartRow { table: Name::Documents, key, row });
    }
    sort(&mut rows);
    Ok(rows)
}

fn code_of(table: Name) -> u64 {
    TABLES.iter().position(|known| *known == table).unwrap_or(0) as u64
}

/// Puts rows into the order in which they are compared.
pub(super) fn sort(rows: &mut [PartRow]) {
    rows.sort_by(|one, other| {
        (code_of(one.table), &one.key).cmp(&(code_of(other.table), &other.key))
    });
}

/// Makes a record.
pub(super) fn record_of(rows: &[PartRow]) -> Vec<u8> {
    let parts = parts_of(rows);
    let start = Encoder::new(1).number(parts.len() as u64);
    let add = |bytes: Encoder, ((code, key), row): (&(u64, Vec<u8>), &Vec<u8>)| {
        bytes.number(*code).bytes(key).bytes(row)
    };
    parts.iter().fold(start, add).finish()
}

fn parts_in(record: &[u8]) -> Result<Parts, BadRow> {
    let mut row = Decoder::of("shared_document", 1..=1, record)?;
    let mut parts = Parts::new();
    for _ in 0..row.number()? {
        let (code, key) = (row.number()?, row.bytes()?.to_vec());
        parts.insert((code, key), row.bytes()?.to_vec());
    }
    Ok(parts)
}

/// What the cluster has of a document whose record is new.
pub(super) fn packed(place: &StoredPlaceOfText) -> Vec<u8> {
    Encoder::new(2).bytes(&place.encode()).finish()
}

/// Returns where the record of a document lies.
pub(super) fn record_place(row: &[u8]) -> Result<StoredPlaceOfText, BadRow> {
    let mut row = Decoder::of("shared_document", 2..=2, row)?;
    StoredPlaceOfText::decode(row.bytes()?)
}

/// Returns all rows of a document.
pub(super) fn unpack(row: &[u8], record: &[u8]) -> Result<Vec<PartRow>, BadRow> {
    let mut parts = parts_in(record)?;
    let mut row = Decoder::of("shared_document", 2..=2, row)?;
    row.bytes()?;
    while !row.is_at_end() {
        let code = row.number()?;
        let key = (code >> 1, row.bytes()?.to_vec());
        if code & 1 == 0 {
            parts.insert(key, row.bytes()?.to_vec());
        } else {
            parts.remove(&key);
        }
    }
    rows_of(parts)
}

/// Makes what the cluster has of rows beside the record that is there; none if that is too much.
pub(super) fn pack(
    place: &StoredPlaceOfText,
    record: &[u8],
    rows: &[PartRow],
) -> Result<Option<Vec<u8>>, BadRow> {
    let (was, is) = (parts_in(record)?, parts_of(rows));
    let mut bytes = Encoder::new(2).bytes(&place.encode());
    for ((code, key), row) in &is {
        if was.get(&(*code, key.clone())) != Some(row) {
            bytes = bytes.number(code << 1).bytes(key).bytes(row);
        }
    }
    for (code, key) in was.keys().filter(|key| !is.contains_key(*key)) {
        bytes = bytes.number(code << 1 | 1).bytes(key);
    }
    let bytes = bytes.finish();
    let changes = bytes.len() - packed(place).len();
    let changes_max = (record.len() / 8).clamp(CHANGES_MIN, CHANGES_MAX);
    Ok((changes <= changes_max).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::documents::Facts;
    use crate::neardup::Key;
    use crate::web::robots::meta::Terms;

    const PLACE: StoredPlaceOfText =
        StoredPlaceOfText { worker: 1, segment: 2, offset: 300, length: 400, hash: 5 };

    fn copy(title: &str, popularity: u64) -> Copy {
        Copy {
            content: 5,
            key: Key::First,
            distance: 0,
            similarity: 1_000,
            popularity,
            scored: false,
            title: title.to_owned(),
            language: "en".to_owned(),
            facts: Facts::default(),
            terms: Terms::default(),
            left_out: 0,
            arrival: Timestamp(7),
            declared: String::new(),
            shown: None,
            doubtful: false,
            quality: None,
        }
    }

    #[test]
    fn a_document_is_read_as_it_was_whatever_its_canonical_copy_says() {
        let copies =
            [("http://a/", copy("A title of some words", 1)), ("http://b/", copy("Other", 2))];
        let mut document = Document::first(DocId(9), 5, "http://b/", &copies[1].1);
        (document.copies, document.last_arrival) = (2, Timestamp(8));
        let rows = |document: &Document| {
            let part = |table, key: &[u8], row: &[u8]| PartRow {
                table,
                key: key.to_vec(),
                row: row.to_vec(),
            };
            let mut rows = vec![part(Name::Documents, b"", &document.encode())];
            let of_copy =
                |(url, copy): &(&str, Copy)| part(Name::Copies, url.as_bytes(), &copy.encode());
            rows.extend(copies.iter().map(of_copy));
            rows.push(part(Name::Unsure, &5_u64.to_be_bytes(), b"http://a/"));
            rows
        };
        let usual = rows(&document);
        let again = |rows: &[PartRow]| {
            let record = record_of(rows);
            (unpack(&packed(&PLACE), &record).unwrap(), record.len())
        };
        assert_eq!(again(&usual).0, usual);
        let merged = rows(&Document { merged: vec![DocId(3)], ..document.clone() });
        assert_eq!(again(&merged).0, merged);
        // Something else than the copy says is kept as it is, and takes more.
        for odd in [
            Document { title: "Another".to_owned(), ..document.clone() },
            Document { gone: Timestamp(3), ..document.clone() },
            Document { copies: 3, ..document.clone() },
            Document { canonical: "http://c/".to_owned(), ..document.clone() },
        ] {
            let odd = rows(&odd);
            assert_eq!(again(&odd).0, odd);
            assert!(again(&odd).1 > again(&usual).1);
        }
        let record = record_of(&usual);
        assert!(unpack(&packed(&PLACE), &record[..20]).is_err());
        assert!(unpack(&packed(&PLACE)[..9], &record).is_err());
        assert_eq!(record_place(&packed(&PLACE)).unwrap(), PLACE);
    }

    #[test]
    fn what_has_changed_since_the_record_lies_beside_it_while_it_is_little() {
        let part =
            |table, key: &[u8], row: &[u8]| PartRow { table, key: key.to_vec(), row: row.to_vec() };
        let base = vec![
            part(Name::Copies, b"http://a/", &[1; 50]),
            part(Name::Copies, b"http://b/", &[2; 50]),
            part(Name::Contents, &[0; 8], &[3; 300]),
        ];
        let record = record_of(&base);
        let beside = |rows: &[PartRow]| pack(&PLACE, &record, rows).unwrap();
        assert_eq!(beside(&base), Some(packed(&PLACE)));
        let mut changed = base.clone();
        changed[0].row = vec![9; 20];
        changed.remove(1);
        changed.push(part(Name::Unsure, &[0; 8], b"http://a/"));
        let row = beside(&changed).unwrap();
        assert_eq!(unpack(&row, &record).unwrap(), changed);
        changed[1].row = vec![7; 300];
        assert_eq!(beside(&changed), None, "a new record is due");
    }
}
