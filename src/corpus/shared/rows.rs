//! The row of a document in the cluster: all rows that are said of it, in one.
//!
//! Bytes: version; how many rows; of each its kind, the rest of its key, the row.

use crate::store::{BadRow, Decoder, Encoder, Name};

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
        let code = TABLES.iter().position(|known| known == table).unwrap_or(0);
        bytes = bytes.number(code as u64).bytes(key).bytes(row);
    }
    bytes.finish()
}

pub(super) fn decode(bytes: &[u8]) -> Result<Vec<PartRow>, BadRow> {
    let mut row = Decoder::of("shared_document", 1..=1, bytes)?;
    let mut rows = Vec::new();
    for _ in 0..row.number()? {
        let bad = row.bad("a kind of rows is unknown");
        let table = usize::try_from(row.number()?).ok().and_then(|code| TABLES.get(code));
        let table = *table.ok_or(bad)?;
        let (key, row) = (row.bytes()?.to_vec(), row.bytes()?.to_vec());
        rows.push(PartRow { table, key, row });
    }
    Ok(rows)
}
