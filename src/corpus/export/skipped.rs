//! URLs that were not fetched, because by a rule learned from duplicates, or by a feed of
//! duplicates, they are pages that are stored: they stand in the list of dropped copies too.

use std::collections::HashMap;

use super::Error;
use super::rows::Dropped;
use super::source::StoredDocument;
use super::value::Record;
use super::walk::{Shown, ShownDocument as ShownPart, Walk};
use crate::corpus::clusters;
use crate::corpus::tables::DOCUMENTS;
use crate::frontier::{ADDRESSES, Address, KNOWN_SKIPPED, SKIPPED, State};
use crate::store::{self, Snapshot, View as _};

/// Documents of which is remembered what is shown of them.
const KNOWN_MAX: usize = 100_000;

/// The identifier and the URL under which a document is in the corpus; none if it is not.
type ShownAs = Option<(String, String)>;

/// What is shown of the documents that were asked for lately.
#[derive(Debug, Default)]
pub(super) struct Skipped {
    known: HashMap<u64, ShownDocument>,
}

#[derive(Debug, Default)]
struct ShownDocument {
    whole: ShownAs,
    /// URLs of copies that may be documents of their own.
    apart: HashMap<String, ShownAs>,
}

impl Skipped {
    /// Returns them in the order of their rules and URLs; those of feeds come last.
    pub(super) fn urls(
        snapshot: &Snapshot,
    ) -> Result<impl Iterator<Item = Result<String, store::Error>> + '_, store::Error> {
        let by_rules = snapshot.rows(SKIPPED)?.map(|entry| Ok(entry?.key()?.1.to_owned()));
        let by_feeds = snapshot.rows(KNOWN_SKIPPED)?.map(|entry| Ok(entry?.key()?.1.to_owned()));
        Ok(by_rules.chain(by_feeds))
    }

    /// None for a URL of a kind that was stopped, which stands in the same table, and for one
    /// whose document is not in the corpus.
    pub(super) fn one(
        &mut self,
        walk: &Walk<'_>,
        snapshot: &Snapshot,
        url: String,
    ) -> Result<Option<Record>, Error> {
        let Some(address) = snapshot.get(ADDRESSES, &url)? else { return Ok(None) };
        let (reason, rule, feed, of) = match address.state {
            State::Skipped { rule, of } => ("skipped_by_rule", Some(rule), None, of),
            State::Known { feed, of } => ("skipped_by_feed", None, Some(feed), of),
            _ => return Ok(None),
        };
        let page = snapshot.get(ADDRESSES, &of)?;
        let Some(Address { state: State::Stored(number), .. }) = page else { return Ok(None) };
        if !walk.plan.takes(number) {
            return Ok(None);
        }
        let Some((doc_id, canonical)) = self.shown_as(walk, snapshot, number, &of)? else {
            return Ok(None);
        };
        let dropped = Dropped {
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
        };
        Ok(Some(dropped.record()))
    }

    /// Tells as what the page at a URL is in the corpus.
    fn shown_as(
        &mut self,
        walk: &Walk<'_>,
        snapshot: &Snapshot,
        number: u64,
        url: &str,
    ) -> Result<ShownAs, Error> {
        if !self.known.contains_key(&number) {
            if self.known.len() == KNOWN_MAX {
                self.known.clear();
            }
            self.known.insert(number, shown(walk, snapshot, number)?);
        }
        let known = &self.known[&number];
        Ok(known.apart.get(url).unwrap_or(&known.whole).clone())
    }
}

fn shown(walk: &Walk<'_>, snapshot: &Snapshot, number: u64) -> Result<ShownDocument, Error> {
    let mut shown = ShownDocument::default();
    let Some(document) = snapshot.get(DOCUMENTS, number)? else { return Ok(shown) };
    let settled = clusters::settled(snapshot)?;
    let stored = StoredDocument { view: snapshot, number, document, settled };
    for part in walk.parts(stored)? {
        let as_what = match walk.shown(&snapshot, &part)? {
            Shown::Document(shown) => {
                let ShownPart { document, .. } = *shown;
                Some((document.id.to_string(), document.canonical))
            }
            Shown::Withheld { .. } | Shown::Unfit { .. } | Shown::Filtered => None,
        };
        if part.unsettled_with.is_none() {
            shown.whole = as_what;
        } else {
            let urls = part.copies.into_iter().map(|(url, _)| (url, as_what.clone()));
            shown.apart.extend(urls);
        }
    }
    Ok(shown)
}
