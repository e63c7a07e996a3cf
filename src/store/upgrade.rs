//! Stores of an older format, brought to the present one when they are opened.
//!
//! Rows that only have fewer fields stay as they are: whoever reads a row knows its older versions,
//! and what is written is written anew. What is done here is done in one transaction with the new
//! number of the format, so that a crash leaves the older store.

use std::collections::{BTreeMap, HashMap};

use redb::{Database, ReadableDatabase as _, ReadableTable, TableDefinition, TableError};

use super::{BadRow, Decoder, Error, FORMAT, Tables};

/// The oldest format that can be brought to the present one.
pub(super) const OLDEST: u64 = 5;

/// Content number -> (): contents whose matches deserved a second look, in format 5.
const UNSURE_5: TableDefinition<u64, ()> = TableDefinition::new("unsure");

/// Brings a store of format 5 to the present one: each content whose match deserves a second look
/// gets the URL of its first copy. All such looks are due again, because the rule is another
/// one.
///
/// Cost: reads the copies of the documents that have such contents.
pub(super) fn upgrade(db: &Database) -> Result<(), Error> {
    let unsure = match db.begin_read()?.open_table(UNSURE_5) {
        Ok(table) => table.iter()?.map(|row| Ok(row?.0.value())).collect::<Result<_, Error>>()?,
        Err(TableError::TableDoesNotExist(_)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let txn = db.begin_write()?;
    let mut tables = Tables::open(&txn)?;
    for (content, (_, address)) in carriers(&tables, &unsure)? {
        tables.unsure.insert(content, address.as_str())?;
    }
    tables.meta.insert("format", FORMAT.to_be_bytes().as_slice())?;
    drop(tables);
    txn.delete_table(UNSURE_5)?;
    tracing::trace!("upgraded");
    Ok(txn.commit()?)
}

/// Finds the first copy of each content that any copy carries: its arrival and its URL.
fn carriers(tables: &Tables<'_>, contents: &[u64]) -> Result<BTreeMap<u64, (i64, String)>, Error> {
    let mut wanted: HashMap<u64, Vec<u64>> = HashMap::new();
    for content in contents {
        if let Some(row) = tables.contents.get(content)? {
            // Rows that cannot be read are for `crawl check` to tell, which needs an open store.
            let Ok(document) = document_of(row.value()) else { continue };
            wanted.entry(document).or_default().push(*content);
        }
    }
    let mut found: BTreeMap<u64, (i64, String)> = BTreeMap::new();
    for (document, mut contents) in wanted {
        contents.sort_unstable();
        let (first, last) = (document.to_be_bytes(), (document + 1).to_be_bytes());
        for row in tables.copies.range(first.as_slice()..last.as_slice())? {
            let (key, row) = row?;
            let Ok((content, arrival)) = carried(row.value()) else { continue };
            if contents.binary_search(&content).is_ok() {
                let address = String::from_utf8_lossy(&key.value()[8..]).into_owned();
                let copy = (arrival, address);
                let first = found.entry(content).or_insert_with(|| copy.clone());
                if copy < *first {
                    *first = copy;
                }
            }
        }
    }
    Ok(found)
}

/// Reads the document of a content from a row of version 2 or 3, which begins with it.
fn document_of(row: &[u8]) -> Result<u64, BadRow> {
    Decoder::of("content", 2..=3, row)?.number()
}

/// Reads the content of a copy and when it came from a row of version 3 or 4: content, key,
/// distance, similarity, popularity, scored, title, language, facts (six texts and a number),
/// terms, has an end, end, blocks left out, arrival.
fn carried(row: &[u8]) -> Result<(u64, i64), BadRow> {
    let mut row = Decoder::of("copy", 3..=4, row)?;
    let content = row.number()?;
    for _ in 0..5 {
        row.number()?;
    }
    for _ in 0..8 {
        row.text()?;
    }
    for _ in 0..3 {
        row.number()?;
    }
    row.keys()?;
    row.number()?;
    Ok((content, row.keys()?))
}
