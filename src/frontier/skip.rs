//! Addresses that are not fetched, because a rule says which stored page they are.

use redb::ReadableTable as _;

use crate::frontier::rules::Pair;
use crate::store::{Error, Tables};
use crate::urls::PageUrl;

use super::rows::{Address, Place, State};
use super::{Frontier, Reason};

/// Addresses of a rule that ceased to hold that are let in again in one step.
const REOPENED_MAX: usize = 1_000;

/// Row of `meta` that tells that pages are stored no more, to which rules may have linked others.
const LEFT: &str = "pages_left";

/// The document of an address whose page is stored.
fn document_of(tables: &Tables<'_>, address: &str) -> Result<Option<u64>, Error> {
    let address = Address::read(&tables.addresses, address)?;
    Ok(address.and_then(|address| match address.state {
        State::Stored(document) => Some(document),
        _ => None,
    }))
}

impl Frontier {
    /// Returns the stored page that an address is, if a rule says so.
    pub(super) fn known_page(
        &self,
        tables: &Tables<'_>,
        url: &PageUrl,
    ) -> Result<Option<Pair>, Error> {
        self.rules.skip(tables, url, &document_of)
    }

    /// Takes an address out of the queue and links it to the page that it is.
    pub(super) fn link_unfetched(
        &mut self,
        tables: &mut Tables<'_>,
        (host, place): (u32, Place),
        url: &PageUrl,
        pair: Pair,
    ) -> Result<(), Error> {
        self.unqueue(tables, host, place)?;
        if let Some(mut address) = Address::read(&tables.addresses, url.as_str())? {
            self.rules.note_skipped(tables, pair.rule, url)?;
            let state = State::Skipped { rule: pair.rule, of: pair.partner };
            self.recount(Some(&address.state), &state);
            address.state = state;
            tables.addresses.insert(url.as_str(), address.encode().as_slice())?;
        }
        self.release_copies(tables, url.as_str())
    }

    /// Learns rules from an address whose page is stored. `copies` are other addresses of its
    /// document.
    pub fn learn(
        &mut self,
        tables: &mut Tables<'_>,
        stored: (&PageUrl, u64),
        copies: &[String],
    ) -> Result<(), Error> {
        let ceased = self.rules.learn(tables, stored, copies, &document_of)?;
        if ceased.is_empty() { Ok(()) } else { self.reopen(tables) }
    }

    /// Lets addresses in again whose rules are not active any more.
    pub(super) fn reopen(&mut self, tables: &mut Tables<'_>) -> Result<(), Error> {
        for rule in self.rules.to_reopen() {
            loop {
                let some = self.rules.take_skipped(tables, rule, REOPENED_MAX)?;
                if some.is_empty() {
                    break;
                }
                for address in some {
                    self.let_in_again(tables, &address)?;
                }
            }
        }
        Ok(())
    }

    /// Notes that a page is stored no more.
    pub(super) fn note_left(&self, tables: &mut Tables<'_>) -> Result<(), Error> {
        if self.rules.have_skipped() {
            tables.meta.insert(LEFT, [1].as_slice())?;
        }
        Ok(())
    }

    /// Lets addresses in again that are, by a rule, a page that is stored no more: the page may
    /// still be there under them.
    pub(super) fn reopen_left(&mut self, tables: &mut Tables<'_>) -> Result<(), Error> {
        if tables.meta.remove(LEFT)?.is_none() {
            return Ok(());
        }
        let mut stranded = Vec::new();
        for row in tables.skipped.iter()? {
            let (key, _) = row?;
            let url = String::from_utf8_lossy(key.value().get(8..).unwrap_or_default());
            let address = Address::read(&tables.addresses, &url)?;
            if let Some(State::Skipped { rule, of }) = address.map(|address| address.state)
                && document_of(tables, &of)?.is_none()
            {
                stranded.push((rule, url.into_owned()));
            }
        }
        for (rule, url) in stranded {
            self.rules.release(tables, rule, &url)?;
            self.let_in_again(tables, &url)?;
        }
        Ok(())
    }

    pub(super) fn let_in_again(
        &mut self,
        tables: &mut Tables<'_>,
        address: &str,
    ) -> Result<(), Error> {
        let Some(url) = PageUrl::parse_stored(address) else { return Ok(()) };
        let Some(mut address) = Address::read(&tables.addresses, address)? else { return Ok(()) };
        let waits = State::Refused(Reason::NoYield);
        let is_linked = matches!(address.state, State::Skipped { .. } | State::Known { .. });
        if !is_linked && address.state != waits {
            return Ok(());
        }
        let was = std::mem::replace(&mut address.state, State::Queued);
        self.recount(Some(&was), &State::Queued);
        self.enqueue(tables, &url, &mut address)
    }
}
