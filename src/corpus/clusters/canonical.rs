//! Which copy of a document is canonical, and which of them leave that to another one.

use std::cmp::Reverse;

use crate::corpus::documents::{Copy, Document};
use crate::corpus::tables::COPIES;
use crate::store::{Error, View};

/// Orders copies: the better one is the smaller. Most popular first, then those that do not defer
/// to another copy, then the shorter URL, then the order of the URLs; none of it depends
/// on which copy came first, so that a crawl that was interrupted ends with the same canonical
/// copies.
#[must_use]
pub fn rank(popularity: u64, defers: bool, address: &str) -> impl Ord + use<'_> {
    (Reverse(popularity), defers, address.len(), address)
}

/// Tells whether a copy defers to another one: the URL that its page names as canonical carries
/// the same document. What the page says of any other URL is not believed.
///
/// Only one step is looked at: what the named page itself names changes nothing, so that there
/// are no chains or cycles to follow.
pub fn defers(view: &impl View, document: u64, copy: &Copy) -> Result<bool, Error> {
    Ok(!copy.declared.is_empty() && view.has(COPIES, (document, &copy.declared))?)
}

/// Returns the copies of a document, in the order of their URLs, each with its place in the
/// order of [`rank`]: the least is the canonical one.
pub fn ranked(
    copies: &[(String, Copy)],
) -> impl Iterator<Item = (impl Ord + use<'_>, &str, &Copy)> {
    copies.iter().map(|(address, copy)| {
        let find = |named: &str| copies.binary_search_by(|(other, _)| other.as_str().cmp(named));
        let defers = !copy.declared.is_empty() && find(&copy.declared).is_ok();
        (rank(copy.popularity, defers, address), address.as_str(), copy)
    })
}

/// Makes `copy` canonical if it is better than the present one. Returns whether it is canonical.
pub(super) fn elect(
    batch: &impl View,
    document: u64,
    row: &mut Document,
    address: &str,
    copy: &Copy,
) -> Result<bool, Error> {
    if row.canonical != address {
        let mine = rank(copy.popularity, defers(batch, document, copy)?, address);
        let held = match batch.get(COPIES, (document, &row.canonical))? {
            Some(held) => defers(batch, document, &held)?,
            None => false,
        };
        if mine >= rank(row.popularity, held, &row.canonical) {
            return Ok(false);
        }
    }
    stand(row, address, copy);
    Ok(true)
}

/// Makes `copy` canonical.
pub(super) fn stand(row: &mut Document, address: &str, copy: &Copy) {
    address.clone_into(&mut row.canonical);
    row.content = copy.content;
    row.title.clone_from(&copy.title);
    row.language.clone_from(&copy.language);
    row.facts.clone_from(&copy.facts);
    row.popularity = copy.popularity;
}
