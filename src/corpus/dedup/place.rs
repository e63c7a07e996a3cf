//! The one way on which an article comes into a corpus, whoever brings it: it is judged, stored at
//! its place, found by its keys from then on, and what has to make room for it goes.

use crate::corpus::clusters::{self, Arrival, Article, Joined, Left};
use crate::neardup::Question;
use crate::store::{Error, Transaction};

use super::looks::Placer;
use super::lookup::Keep;
use super::stored::Judged;

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

/// A corpus, wherever it is kept: the one way on which articles come into it, change and leave.
pub trait Corpus {
    /// What can go wrong.
    type Error;

    /// Stores an article to which `links` hosts link, in the document that has it already, or in
    /// one of its own.
    fn place(&mut self, article: &Article, links: u64) -> Result<Placed, Self::Error>;

    /// Stores what the page of a copy of `document` says by now. Also returns what else the copy
    /// has left behind there.
    fn revise(
        &mut self,
        document: u64,
        article: &Article,
        links: u64,
    ) -> Result<(Placed, Left), Self::Error>;

    /// Takes the copy of `document` at `url` out: its page is gone.
    fn leave(&mut self, document: u64, url: &str) -> Result<Left, Self::Error>;

    /// Takes the copy of `document` at `url` out, as if it had never come: what it carried was no
    /// page.
    fn retract(&mut self, document: u64, url: &str) -> Result<Left, Self::Error>;

    /// Gives a copy its popularity, and elects the canonical copy anew. Returns whether another one
    /// is canonical by that.
    fn set_popularity(
        &mut self,
        document: u64,
        url: &str,
        popularity: Popularity,
    ) -> Result<bool, Self::Error>;
}

/// How popular a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Popularity {
    /// So many hosts link to it. Counts unless it has a score.
    Links(u64),
    /// It was given a score.
    Score(u64),
}

impl<T: Transaction, I: Keep<T>> Corpus for Placer<'_, T, I> {
    type Error = Error;

    fn place(&mut self, article: &Article, links: u64) -> Result<Placed, Error> {
        let judged = self.judge(&Question::new(&article.keys, &article.address))?;
        let joined = clusters::join(self.batch, article, &judged.place, links, self.now)?;
        tracing::trace!(url = %article.address, document = joined.document, "joined");
        self.finish(article, judged, joined)
    }

    fn revise(
        &mut self,
        document: u64,
        article: &Article,
        links: u64,
    ) -> Result<(Placed, Left), Error> {
        let judged = self.judge(&Question::new(&article.keys, &article.address))?;
        let arrival = Arrival { article, links, now: self.now };
        let (joined, left) = clusters::change(self.batch, document, arrival, &judged.place)?;
        tracing::trace!(url = %article.address, document = joined.document, "changed");
        self.forget(&left);
        Ok((self.finish(article, judged, joined)?, left))
    }

    fn leave(&mut self, document: u64, url: &str) -> Result<Left, Error> {
        let left = clusters::leave(self.batch, document, url, self.now)?;
        tracing::trace!(url, document, "left");
        self.forget(&left);
        Ok(left)
    }

    fn retract(&mut self, document: u64, url: &str) -> Result<Left, Error> {
        let mut left = clusters::leave(self.batch, document, url, self.now)?;
        if left.gone {
            clusters::end(self.batch, document, &mut left)?;
            left.gone = false;
        }
        self.forget(&left);
        Ok(left)
    }

    fn set_popularity(
        &mut self,
        document: u64,
        url: &str,
        popularity: Popularity,
    ) -> Result<bool, Error> {
        match popularity {
            Popularity::Links(links) => {
                clusters::set_links(self.batch, document, url, links, self.now)
            }
            Popularity::Score(score) => {
                clusters::set_score(self.batch, document, url, score, self.now)
            }
        }
    }
}

impl<T: Transaction, I: Keep<T>> Placer<'_, T, I> {
    /// Names contents no more that are removed.
    fn forget(&self, left: &Left) {
        left.contents.iter().for_each(|content| self.index.forget(*content));
    }

    fn finish(
        &mut self,
        article: &Article,
        judged: Judged,
        joined: Joined,
    ) -> Result<Placed, Error> {
        if let Some(content) = joined.content {
            self.index.insert(self.batch, content, &article.keys);
        }
        clusters::count_found(self.batch, &judged.place)?;
        let united = self.follow(article, &joined, &judged)?;
        let (document, merged) = (united.document, united.merged);
        Ok(Placed { judged, joined, document, merged })
    }
}
