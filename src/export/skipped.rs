//! Addresses that were not fetched, because by a rule learned from duplicates, or by a feed of
//! verdicts, they are pages that are stored: they stand in the list of dropped copies too.

use redb::ReadableTable as _;

use crate::documents::read_document;
use crate::frontier::{Address, State};
use crate::store::{Error, ReadTables};

use super::{Dropped, Shown};

/// Returns them in the order of their rules and addresses; those of feeds come last.
pub(super) fn all<'a>(
    tables: &'a ReadTables,
    shown: &'a Shown,
) -> Result<impl Iterator<Item = Result<Dropped, Error>> + 'a, Error> {
    // Before the address stands the number of the rule, or the hash of the page.
    let address =
        |key: &[u8], from: usize| Some(String::from_utf8_lossy(key.get(from..)?).into_owned());
    let by_rules = tables.skipped.iter()?.map(move |row| Ok(address(row?.0.value(), 8)));
    let by_feeds = tables.known_skipped.iter()?.map(move |row| Ok(address(row?.0.value(), 16)));
    Ok(by_rules.chain(by_feeds).filter_map(move |row: Result<_, redb::StorageError>| match row {
        Ok(address) => one(tables, shown, address?).transpose(),
        Err(error) => Some(Err(error.into())),
    }))
}

/// None for an address of a kind that was stopped, which stands in the same table, and for one
/// whose document is not in the corpus.
fn one(tables: &ReadTables, shown: &Shown, url: String) -> Result<Option<Dropped>, Error> {
    let Some(address) = Address::read(&tables.addresses, &url)? else { return Ok(None) };
    let (reason, rule, feed, of) = match address.state {
        State::Skipped { rule, of } => ("skipped_by_rule", Some(rule), None, of),
        State::Known { feed, of } => ("skipped_by_feed", None, Some(feed), of),
        _ => return Ok(None),
    };
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
        reason,
        rule,
        feed,
        distance: 0,
        similarity: 0.0,
        popularity: address.links,
        title: String::new(),
        declared_canonical: String::new(),
        seen: address.discovered.to_string(),
    }))
}
