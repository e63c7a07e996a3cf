//! A crawl that is one of many: what it hands over, and what comes for it.

use std::time::Duration;

use crate::base::clock::Timestamp;
use crate::corpus::dedup::{Corpus as _, Popularity};
use crate::frontier::{Lease, Offered};
use crate::store::Batch;
use crate::urls::PageUrl;

use super::super::{Beyond, CorpusChange, Error, News};
use super::{Committer, is_page};

/// A copy to which more hosts link than before.
#[derive(Clone, Copy)]
pub(super) struct Risen<'a> {
    pub document: u64,
    pub url: &'a PageUrl,
    pub links: u64,
}

impl Committer<'_> {
    /// The crawl is one of many.
    pub(super) fn is_one_of_many(&self) -> bool {
        self.context.beyond.is_some()
    }

    /// It has no right to go on.
    pub(super) fn is_lost(&self) -> bool {
        self.context.beyond.as_deref().is_some_and(Beyond::is_lost)
    }

    /// Hands a change of the corpus over, if there is anybody.
    pub(super) fn hand_over(&self, change: impl FnOnce() -> CorpusChange) {
        if let Some(beyond) = &self.context.beyond {
            beyond.hand_over(change());
        }
    }

    /// Tells whether there is something to write that no page of this crawl has brought, or nobody
    /// has looked yet whether there is. If there
    /// is not, and nothing else is to be done, says so.
    pub(super) fn has_news(&self) -> bool {
        let Some(beyond) = &self.context.beyond else { return false };
        if !self.has_looked || beyond.has_news() {
            return true;
        }
        let longest = self.settings.limits.idle_wait_max.duration();
        let now = self.context.clock.now();
        let waits = self.worth_waiting.is_some_and(|due| now.until(due) <= longest);
        beyond.set_quiet(self.has_looked && self.in_flight == 0 && !waits);
        false
    }

    /// Takes what has come: links are offered, and those that have arrived are forgotten.
    pub(super) fn take_news(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let Some(beyond) = self.context.beyond.clone() else { return Ok(()) };
        self.has_looked = true;
        // Before anything is taken: what is on its way is always told by somebody.
        beyond.set_quiet(false);
        let News { links, last, sent } = beyond.news();
        let now = self.context.clock.now_rounded_up();
        if beyond.goes_on() {
            self.frontier.go_on(now);
        }
        for sent in &sent {
            self.frontier.forget_sent(batch, *sent)?;
        }
        for link in &links {
            let offered = self.frontier.receive(batch, link, now)?;
            if let (Offered::MoreLinks { document, links }, Some(url)) = (offered, link.page()) {
                self.rise(batch, Risen { document, url: &url, links }, now)?;
            }
        }
        if let Some(last) = last {
            self.frontier.note_received(batch, &last)?;
            self.batch_beyond.last = Some(last);
        }
        Ok(())
    }

    /// Gives a copy its popularity.
    pub(super) fn rise(
        &mut self,
        batch: &mut Batch,
        risen: Risen<'_>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Risen { document, url, links } = risen;
        let popularity = Popularity::Links(links);
        let took_over =
            self.placer(batch, now).set_popularity(document, url.as_str(), popularity)?;
        self.hand_over(|| CorpusChange::Links { url: url.as_str().to_owned(), links });
        self.tally.takeovers += u64::from(took_over);
        Ok(())
    }

    /// Takes back a lease whose request was not sent because it was somebody else's turn.
    pub(super) fn not_our_turn(
        &mut self,
        batch: &mut Batch,
        lease: &Lease,
        wait: Duration,
    ) -> Result<(), Error> {
        let until = self.context.clock.now_rounded_up().after(wait);
        self.frontier.give_back_until(batch, lease, until)?;
        self.pages_leased -= u64::from(is_page(lease));
        Ok(())
    }

    /// Waits until all that was handed over is stored.
    pub(super) fn settle_beyond(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let Some(beyond) = &self.context.beyond else { return Ok(()) };
        self.batch_beyond.has_links = self.frontier.has_sent();
        beyond.mark().note(batch)?;
        Ok(beyond.settle()?)
    }

    /// Says that the batch is on the disk.
    pub(super) fn tell_beyond(&mut self) {
        if let Some(beyond) = &self.context.beyond {
            beyond.committed(std::mem::take(&mut self.batch_beyond));
        }
    }
}
