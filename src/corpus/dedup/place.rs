//! The one way on which an article comes into a corpus, whoever brings it: it is judged, stored at
//! its place, found by its keys from then on, and what has to make room for it goes.

use crate::corpus::clusters::{self, Arrival, Article, Joined, Left};
use crate::neardup::{Change, Question};
use crate::store::Error;

use super::looks::Placer;
use super::stored::{Judged, lock};

/// What became of an article.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// What the judge says of it.
    pub judged: Judged,
    /// How it was stored.
    pub joined: Joined,
    /// Number of its document by now: that in which it was stored may have become part of another.
    pub document: u64,
    /// Documents that became part of others by it.
    pub merged: u64,
}

impl Placer<'_> {
    /// Stores an article to which `links` hosts link. What it adds to the index is added to
    /// `changes`, which belong into the log of the same batch.
    pub fn place(
        &mut self,
        article: &Article,
        links: u64,
        changes: &mut Vec<Change>,
    ) -> Result<Placed, Error> {
        let judged = self.judge(&Question::new(&article.keys, &article.address))?;
        let joined = clusters::join(self.batch, article, &judged.place, links, self.now)?;
        tracing::trace!(url = %article.address, document = joined.document, "joined");
        self.finish(article, judged, joined, changes)
    }

    /// Stores what the page of a copy of `document` says by now. Also returns what else the copy
    /// has left behind there.
    pub fn revise(
        &mut self,
        document: u64,
        article: &Article,
        links: u64,
        changes: &mut Vec<Change>,
    ) -> Result<(Placed, Left), Error> {
        let judged = self.judge(&Question::new(&article.keys, &article.address))?;
        let arrival = Arrival { article, links, now: self.now };
        let (joined, mut left) = clusters::change(self.batch, document, arrival, &judged.place)?;
        tracing::trace!(url = %article.address, document = joined.document, "changed");
        for content in left.contents.drain(..) {
            lock(self.finder).forget(content as u32);
        }
        changes.append(&mut left.changes);
        Ok((self.finish(article, judged, joined, changes)?, left))
    }

    fn finish(
        &mut self,
        article: &Article,
        judged: Judged,
        joined: Joined,
        changes: &mut Vec<Change>,
    ) -> Result<Placed, Error> {
        if let Some(content) = joined.content {
            // For one article at a time: who only asks for keys waits neither for all nor the disk.
            let mut finder = lock(self.finder);
            finder.insert(content as u32, &article.keys);
            changes.extend(finder.changes(content as u32, &article.keys));
        }
        clusters::count_found(self.batch, &judged.place)?;
        let united = self.follow(article, &joined, &judged)?;
        let (document, merged) = (united.document, united.merged);
        Ok(Placed { judged, joined, document, merged })
    }
}
