//! The row of a document in the cluster: all rows that are said of it, in one.
//!
//! Bytes: version; how many rows; of each its kind, the rest of its key, the row. What the row of
//! the document itself repeats of its canonical copy is left out.

use crate::base::clock::Timestamp;
use crate::corpus::documents::{Copy, DocId, Document};
use crate::store::{BadRow, Decoder, Encoder, List, Name, Number, Row as _, Signed, Wide, row};

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

pub(super) fn encode(rows: &[PartRow]) -> Vec<u8> {
    let mut bytes = Encoder::new(1).number(rows.len() as u64);
    for PartRow { table, key, row } in rows {
        let short = (*table == Name::Documents)
            .then(|| ShortDocument::of(&Document::decode(row).ok()?, rows))
            .flatten();
        let code = TABLES.iter().position(|known| known == table).unwrap_or(0) as u64;
        bytes = match short {
            Some(short) => bytes.number(SHORT).bytes(key).bytes(&short.encode()),
            None => bytes.number(code).bytes(key).bytes(row),
        };
    }
    bytes.finish()
}

pub(super) fn decode(bytes: &[u8]) -> Result<Vec<PartRow>, BadRow> {
    let mut row = Decoder::of("shared_document", 1..=1, bytes)?;
    let (mut rows, mut short) = (Vec::new(), None);
    for at in 0..row.number()? as usize {
        let bad = row.bad("a kind of rows is unknown");
        let code = row.number()?;
        let (key, part) = (row.bytes()?.to_vec(), row.bytes()?.to_vec());
        let table = if code == SHORT {
            short = Some(at);
            Name::Documents
        } else {
            *usize::try_from(code).ok().and_then(|code| TABLES.get(code)).ok_or(bad)?
        };
        rows.push(PartRow { table, key, row: part });
    }
    if let Some(at) = short {
        let document = ShortDocument::decode(&rows[at].row)?.whole(&rows)?;
        rows[at].row = document.encode().into_owned();
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::documents::Facts;
    use crate::neardup::Key;
    use crate::web::robots::meta::Terms;

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
        assert_eq!(decode(&encode(&usual)).unwrap(), usual);
        let merged = Document { merged: vec![DocId(3)], ..document.clone() };
        assert_eq!(decode(&encode(&rows(&merged))).unwrap(), rows(&merged));
        // Something else than the copy says is kept as it is, and takes more.
        for odd in [
            Document { title: "Another".to_owned(), ..document.clone() },
            Document { gone: Timestamp(3), ..document.clone() },
            Document { copies: 3, ..document.clone() },
            Document { canonical: "http://c/".to_owned(), ..document.clone() },
        ] {
            let odd = rows(&odd);
            assert_eq!(decode(&encode(&odd)).unwrap(), odd);
            assert!(encode(&odd).len() > encode(&usual).len());
        }
        assert!(decode(&encode(&usual)[..20]).is_err());
    }
}
