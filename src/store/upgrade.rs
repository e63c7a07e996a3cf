//! Stores of format 5, brought to format 6 in memory, as the first step of a migration; and a table
//! that was given another name since.
//!
//! Rows that only have fewer fields stay as they are: whoever reads a row knows its older versions,
//! and what is written is written anew.

use std::collections::{BTreeMap, HashMap};

use redb::{
    Database, ReadableDatabase as _, ReadableTable, ReadableTableMetadata as _, TableDefinition,
    TableError, TableHandle as _,
};

use super::file::begin_write;
use super::tables::{IN_FILE, Tables};
use super::{BadRow, Decoder, Error};

/// Content number -> (): contents whose matches deserved a second look, in format 5.
const UNSURE_5: TableDefinition<u64, ()> = TableDefinition::new("unsure");

/// Tables whose rows are not needed: parts of the index before they lay in segments, which is made
/// anew, and documents of runs over files, which lay in stores of their own.
const NEEDLESS: [&str; 4] = ["near_log", "exact", "twins", "lines"];

/// Hash of a kind of URLs -> what it has given.
const URL_PATTERNS: TableDefinition<u64, &[u8]> = TableDefinition::new("url_patterns");

/// What that table was called first.
const FAMILIES: TableDefinition<u64, &[u8]> = TableDefinition::new("families");

/// Gives the table of URL patterns its present name. If a later version has begun another one under
/// that name, what it knows better stays.
pub(super) fn rename_patterns(db: &Database) -> Result<(), Error> {
    let txn = begin_write(db)?;
    if !txn.list_tables()?.any(|table| table.name() == FAMILIES.name()) {
        return Ok(txn.abort()?);
    }
    if txn.open_table(URL_PATTERNS)?.is_empty()? {
        txn.delete_table(URL_PATTERNS)?;
        txn.rename_table(FAMILIES, URL_PATTERNS)?;
        return Ok(txn.commit()?);
    }
    let mut patterns = txn.open_table(URL_PATTERNS)?;
    for row in txn.open_table(FAMILIES)?.iter()? {
        let (pattern, row) = row?;
        if patterns.get(pattern.value())?.is_none() {
            patterns.insert(pattern.value(), row.value())?;
        }
    }
    drop(patterns);
    txn.delete_table(FAMILIES)?;
    Ok(txn.commit()?)
}

/// Returns the tables of a file that the present format does not have, nor knows to be needless.
pub(super) fn unknown_tables(db: &Database) -> Result<Vec<String>, Error> {
    let txn = db.begin_read()?;
    let names = txn.list_tables()?.map(|table| table.name().to_owned());
    let is_known = |name: &str| IN_FILE.contains(&name) || NEEDLESS.contains(&name);
    Ok(names.filter(|name| !is_known(name)).collect())
}

/// Brings a store of format 5 to format 6: each content whose match deserves a second look
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
    let txn = begin_write(db)?;
    let mut tables = Tables::open(&txn)?;
    for (content, (_, address)) in carriers(&tables, &unsure)? {
        tables.unsure.insert(content, address.as_str())?;
    }
    tables.meta.insert("format", 6u64.to_be_bytes().as_slice())?;
    drop(tables);
    txn.delete_table(UNSURE_5)?;
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
