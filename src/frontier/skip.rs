//! URLs that are not fetched, because a rule says which stored page they are.

use crate::frontier::rules::Pair;
use crate::store::{Batch, Error, META, Update as _, View as _};
use crate::urls::PageUrl;

use super::lease::Waiting;
use super::rows::State;
use super::tables::{ADDRESSES, SKIPPED};
use super::{Frontier, Reason, rules};

/// URLs of a rule that ceased to hold that are let in again in one step.
const REOPENED_MAX: usize = 1_000;

/// Row of `meta` that tells that pages are stored no more, to which rules may have linked others.
const LEFT: &str = "pages_left";

impl Frontier {
    /// Returns the stored page that a URL is, if a rule says so.
    pub(super) fn known_page(&self, batch: &Batch, url: &PageUrl) -> Result<Option<Pair>, Error> {
        self.rules.skip(batch, url)
    }

    /// Takes a URL out of the queue and links it to the page that it is.
    pub(super) fn link_unfetched(
        &mut self,
        batch: &mut Batch,
        Waiting { host, place, url }: Waiting<'_>,
        pair: Pair,
    ) -> Result<(), Error> {
        self.unqueue(batch, host, place)?;
        if let Some(mut address) = batch.get(ADDRESSES, url.as_str())? {
            self.rules.note_skipped(batch, pair.rule, url)?;
            let state = State::Skipped { rule: pair.rule, of: pair.partner };
            self.recount(Some(&address.state), &state);
            address.state = state;
            batch.put(ADDRESSES, url.as_str(), &address)?;
        }
        self.release_copies(batch, url.as_str())
    }

    /// Learns rules from a URL whose page is stored. `copies` are other URLs of its
    /// document.
    pub fn learn(
        &mut self,
        batch: &mut Batch,
        url: &PageUrl,
        document: u64,
        copies: &[String],
    ) -> Result<(), Error> {
        let ceased = self.rules.learn(batch, url, document, copies)?;
        if ceased.is_empty() { Ok(()) } else { self.reopen(batch) }
    }

    /// Lets URLs in again whose rules are not active any more.
    pub(super) fn reopen(&mut self, batch: &mut Batch) -> Result<(), Error> {
        for rule in self.rules.to_reopen() {
            loop {
                let some = self.rules.take_skipped(batch, rule, REOPENED_MAX)?;
                if some.is_empty() {
                    break;
                }
                for address in some {
                    self.let_in_again(batch, &address)?;
                }
            }
        }
        Ok(())
    }

    /// Notes that a page is stored no more.
    pub(super) fn note_left(&self, batch: &mut Batch) -> Result<(), Error> {
        if self.rules.have_skipped() {
            batch.put(META, LEFT, &vec![1])?;
        }
        Ok(())
    }

    /// Lets URLs in again that are, by a rule, a page that is stored no more: the page may
    /// still be there under them.
    pub(super) fn reopen_left(&mut self, batch: &mut Batch) -> Result<(), Error> {
        if !batch.remove(META, LEFT)? {
            return Ok(());
        }
        let mut stranded = Vec::new();
        for entry in batch.rows(SKIPPED)? {
            let entry = entry?;
            let (_, url) = entry.key()?;
            let address = batch.get(ADDRESSES, url)?;
            if let Some(State::Skipped { rule, of }) = address.map(|address| address.state)
                && rules::document_of(batch, &of)?.is_none()
            {
                stranded.push((rule, url.to_owned()));
            }
        }
        for (rule, url) in stranded {
            self.rules.release(batch, rule, &url)?;
            self.let_in_again(batch, &url)?;
        }
        Ok(())
    }

    pub(super) fn let_in_again(&mut self, batch: &mut Batch, address: &str) -> Result<(), Error> {
        let Some(url) = PageUrl::parse_stored(address) else { return Ok(()) };
        let Some(mut address) = batch.get(ADDRESSES, address)? else { return Ok(()) };
        let waits = State::Refused(Reason::NoYield);
        let is_linked = matches!(address.state, State::Skipped { .. } | State::Known { .. });
        if !is_linked && address.state != waits {
            return Ok(());
        }
        let was = std::mem::replace(&mut address.state, State::Queued);
        self.recount(Some(&was), &State::Queued);
        self.enqueue(batch, &url, &mut address)
    }
}
