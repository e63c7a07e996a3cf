//! URLs that were not fetched, because by a rule learned from duplicates, or by a feed of
//! duplicates, they are pages that are stored: they stand in the list of dropped copies too.

use crate::corpus::tables::DOCUMENTS;
use crate::frontier::{ADDRESSES, Address, KNOWN_SKIPPED, SKIPPED, State};
use crate::store::{Error, Snapshot, View as _};

use super::{Dropped, Shown};

/// Returns them in the order of their rules and URLs; those of feeds come last.
pub(super) fn all<'a>(
    snapshot: &'a Snapshot,
    shown: &'a Shown,
) -> Result<impl Iterator<Item = Result<Dropped, Error>> + 'a, Error> {
    let by_rules = snapshot.rows(SKIPPED)?.map(|entry| Ok(entry?.key()?.1.to_owned()));
    let by_feeds = snapshot.rows(KNOWN_SKIPPED)?.map(|entry| Ok(entry?.key()?.1.to_owned()));
    Ok(by_rules.chain(by_feeds).filter_map(move |address: Result<String, Error>| {
        address.and_then(|address| one(snapshot, shown, address)).transpose()
    }))
}

/// None for a URL of a kind that was stopped, which stands in the same table, and for one
/// whose document is not in the corpus.
fn one(snapshot: &Snapshot, shown: &Shown, url: String) -> Result<Option<Dropped>, Error> {
    let Some(address) = snapshot.get(ADDRESSES, &url)? else { return Ok(None) };
    let (reason, rule, feed, of) = match address.state {
        State::Skipped { rule, of } => ("skipped_by_rule", Some(rule), None, of),
        State::Known { feed, of } => ("skipped_by_feed", None, Some(feed), of),
        _ => return Ok(None),
    };
    let Some(Address { state: State::Stored(number), .. }) = snapshot.get(ADDRESSES, &of)? else {
        return Ok(None);
    };
    let Some((doc_id, canonical)) = shown_as(snapshot, shown, number, &of)? else {
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

/// The identifier and the URL under which the page at a URL is in the corpus; none if it
/// is not.
fn shown_as(
    snapshot: &Snapshot,
    shown: &Shown,
    number: u64,
    address: &str,
) -> Result<Option<(String, String)>, Error> {
    if let Some(own) = shown.unsettled.get(address) {
        return Ok(own.clone());
    }
    let Some(document) = snapshot.get(DOCUMENTS, number)? else { return Ok(None) };
    let canonical = match shown.documents.get(&number) {
        None => Some(document.canonical),
        Some(shown) => shown.clone(),
    };
    Ok(canonical.map(|canonical| (document.id.to_string(), canonical)))
}
