//! Addresses that were not fetched, because by a rule learned from duplicates they are pages that
//! are stored: they stand in the list of dropped copies too.

use redb::ReadableTable as _;

use crate::documents::read_document;
use crate::frontier::{Address, State};
use crate::store::{Error, ReadTables};

use super::{Dropped, Shown};

/// Returns them in the order of their rules and addresses.
pub(super) fn all<'a>(
    tables: &'a ReadTables,
    shown: &'a Shown,
) -> Result<impl Iterator<Item = Result<Dropped, Error>> + 'a, Error> {
    let rows = tables.skipped.iter()?;
    Ok(rows.filter_map(move |row| match row {
        Ok((key, _)) => {
            let address = String::from_utf8_lossy(key.value().get(8..)?).into_owned();
            one(tables, shown, address).transpose()
        }
        Err(error) => Some(Err(error.into())),
    }))
}

/// None for an address of a kind that was stopped, which stands in the same table, and for one
/// whose document is not in the corpus.
fn one(tables: &ReadTables, shown: &Shown, url: String) -> Result<Option<Dropped>, Error> {
    let Some(address) = Address::read(&tables.addresses, &url)? else { return Ok(None) };
    let State::Skipped { rule, of } = address.state else { return Ok(None) };
    let Some(Address { state: State::Stored(number), .. }) = Address::read(&tables.addresses, &of)?
    else {
        return Ok(None);
    };
    let Some(document) = read_document(&tables.documents, number)? else { return Ok(None) };
    let canonical = match shown.get(&number) {
        None => document.canonical,
        Some(Some(other)) => other.clone(),
        Some(None) => return Ok(None),
    };
    Ok(Some(Dropped {
        url,
        doc_id: document.id.to_string(),
        canonical,
        reason: "skipped_by_rule",
        rule: Some(rule),
        distance: 0,
        similarity: 0.0,
        popularity: address.links,
        title: String::new(),
        declared_canonical: String::new(),
        seen: address.discovered.to_string(),
    }))
}
