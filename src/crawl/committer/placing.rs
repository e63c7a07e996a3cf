//! How pages get their places: the index as it is asked, and what is counted of it.

use std::sync::atomic::Ordering;

use crate::base::clock::Timestamp;
use crate::corpus::clusters::{Article, Place};
use crate::corpus::dedup::{AskedAhead, CommittedContents, Placed, Placer};
use crate::frontier::Settlement;
use crate::store::Batch;

use super::super::Error;
use super::super::fingerprint::ReadPage;
use super::super::told::NewDocument;
use super::Committer;

impl Committer<'_> {
    pub(super) fn placer<'b>(&'b self, batch: &'b mut Batch, now: Timestamp) -> Placer<'b> {
        self.placer_of(batch, &*self.index, now)
    }

    pub(super) fn placer_of<'b, I>(
        &'b self,
        batch: &'b mut Batch,
        index: &'b I,
        now: Timestamp,
    ) -> Placer<'b, Batch, I> {
        Placer { batch, index, config: &self.settings.dedup, now }
    }

    /// The index, with what was found there for a page before.
    pub(super) fn asked<'b>(&'b self, page: &'b ReadPage) -> AskedAhead<'b> {
        AskedAhead { index: &self.index, found: [page.ahead.as_slice(), &[]] }
    }

    /// Has pages looked up in the state of the last commit from here on.
    pub(super) fn show_committed(&self) -> Result<(), Error> {
        if let Some(home) = &self.home {
            home.committed.set(Some(CommittedContents::of(self.store, &self.index)?));
        }
        Ok(())
    }

    /// Has no page looked up before its turn from here on, until another state is shown.
    pub(super) fn hide_committed(&self) {
        if let Some(home) = &self.home {
            home.committed.set(None);
        }
    }

    /// Notes a new document for whoever is told of them.
    pub(super) fn tell_of(&mut self, placed: &Placed, article: &Article, links: u64) {
        if self.context.on_document.is_some() {
            self.fresh.push(NewDocument::of(placed.joined.id, article, links));
        }
    }

    /// Counts a page that was stored. Returns what became of it.
    pub(super) fn placed(&mut self, placed: &Placed) -> Settlement {
        let Placed { judged, joined, document, merged } = placed;
        let place = &judged.place;
        self.tally.merged += merged;
        self.tally.joined(place, joined);
        // Boilerplate that is not known yet makes copies of pages that are none.
        let sure = matches!(place, Place::Tree(matched) if matched.sure);
        self.promising += u64::from(!sure && !judged.repeats);
        let live = &self.context.live;
        match place {
            Place::New => live.new.fetch_add(1, Ordering::Relaxed),
            Place::Tree(_) => live.duplicates.fetch_add(1, Ordering::Relaxed),
        };
        Settlement::Stored(*document)
    }
}
