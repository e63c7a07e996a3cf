//! Addresses that were not fetched, because by a rule learned from duplicates, or by a feed of
//! verdicts, they are pages that are stored: they stand in the list of dropped copies too.

use redb::ReadableTable as _;

use crate::corpus::documents::read_document;
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
    let Some((doc_id, canonical)) = shown_as(tables, shown, (number, &of))? else {
        return Ok(None);
    };
    Ok(Some(Dropped {
        url,
        doc_id,
        canonical,
        reason,
        rule,
        feed,
        distance: 0,
        similarity: 0.0,
        root_similarity: 0.0,
        popularity: address.links,
        title: String::new(),
        declared_canonical: String::new(),
        seen: address.discovered.to_string(),
    }))
}

/// The identifier and the address under which the page at an address is in the corpus; none if it
/// is not.
fn shown_as(
    tables: &ReadTables,
    shown: &Shown,
    (number, address): (u64, &str),
) -> Result<Option<(String, String)>, Error> {
    if let Some(own) = shown.unsettled.get(address) {
        return Ok(own.clone());
    }
    let Some(document) = read_document(&tables.documents, number)? else { return Ok(None) };
    let canonical = match shown.documents.get(&number) {
        None => Some(document.canonical),
        Some(shown) => shown.clone(),
    };
    Ok(canonical.map(|canonical| (document.id.to_string(), canonical)))
}
