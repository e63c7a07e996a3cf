//! Articles come into a corpus of many workers: announced, looked for, settled.

use crate::corpus::clusters::{Article, Joined, Left, Place};
use crate::corpus::dedup::{Corpus, Judged, Placed, Popularity};
use crate::corpus::tables::{CONTENTS, COPIES, DOCUMENTS};
use crate::store::{self, BadRow, View as _};

use super::change::SharedPlacer;
use super::unit::Unit;
use super::{Error, SharedCorpus};

/// An article that came, to which so many hosts link.
#[derive(Debug, Clone, Copy)]
pub struct SentArticle<'a> {
    /// The article.
    pub article: &'a Article,
    /// Distinct hosts that link to it.
    pub links: u64,
}

impl SharedCorpus {
    /// Stores articles that came together, each with the number of hosts that link to it. What they
    /// ask the cluster for is asked together.
    ///
    /// # Errors
    ///
    /// Some of the articles may be stored; to send all again stores none twice.
    pub fn place_all(&mut self, sent: &[SentArticle<'_>]) -> Result<Vec<Placed>, Error> {
        let articles: Vec<Option<&Article>> = sent.iter().map(|one| Some(one.article)).collect();
        self.change_all(&articles, &mut |at, placer| {
            let SentArticle { article, links } = sent[at];
            let Some(document) = at_url(placer, None, &article.address)? else {
                let placed = placer.place(article, links)?;
                // Another worker may have stored the same page since its URL was looked for.
                placer.batch.refuse_if_copied(placed.joined.document, &article.address);
                return Ok(placed);
            };
            match Self::placed_before(placer.batch, document, article)? {
                Some(placed) => Ok(placed),
                None => Ok(placer.revise(document, article, links)?.0),
            }
        })
    }

    /// Does one thing by the rules and writes it.
    pub(super) fn change<R>(
        &self,
        article: Option<&Article>,
        mut work: impl FnMut(&mut SharedPlacer<'_, '_>) -> Result<R, store::Error>,
    ) -> Result<R, Error> {
        let mut done = self.change_all(&[article], &mut |_, placer| work(placer))?;
        Ok(done.pop().expect("one thing was done"))
    }

    /// What was said when an article came that comes a second time: whoever sent it did not hear.
    fn placed_before(
        unit: &Unit<'_>,
        document: u64,
        article: &Article,
    ) -> Result<Option<Placed>, store::Error> {
        let Some(copy) = unit.get(COPIES, (document, &article.address))? else { return Ok(None) };
        let content = unit.get(CONTENTS, copy.content)?;
        if content.is_none_or(|content| content.hash != article.keys.text.hash) {
            return Ok(None);
        }
        let missing = BadRow { kind: "document", detail: "a copy names one that is missing" };
        let row = unit.get(DOCUMENTS, document)?.ok_or(missing)?;
        let canonical = row.canonical == article.address;
        let joined = Joined { document, id: row.id, canonical, content: None };
        let judged = Judged {
            place: Place::New,
            also: Vec::new(),
            perhaps: Vec::new(),
            evicts: Vec::new(),
            refused: false,
            repeats: false,
        };
        Ok(Some(Placed { judged, joined, document, merged: 0 }))
    }
}

/// Finds the document that has a copy at a URL: the one that is named, unless the copy has moved.
fn at_url(
    placer: &SharedPlacer<'_, '_>,
    document: Option<u64>,
    url: &str,
) -> Result<Option<u64>, store::Error> {
    if let Some(document) = document
        && placer.batch.has(COPIES, (document, url))?
    {
        return Ok(Some(document));
    }
    placer.index.document_at(placer.batch, url)
}

impl Corpus for SharedCorpus {
    type Error = Error;

    fn place(&mut self, article: &Article, links: u64) -> Result<Placed, Error> {
        let mut placed = self.place_all(&[SentArticle { article, links }])?;
        Ok(placed.pop().expect("one article was placed"))
    }

    fn revise(
        &mut self,
        document: u64,
        article: &Article,
        links: u64,
    ) -> Result<(Placed, Left), Error> {
        self.change(Some(article), |placer| {
            match at_url(placer, Some(document), &article.address)? {
                Some(document) => placer.revise(document, article, links),
                None => Ok((placer.place(article, links)?, Left::default())),
            }
        })
    }

    fn leave(&mut self, document: u64, url: &str) -> Result<Left, Error> {
        self.change(None, |placer| match at_url(placer, Some(document), url)? {
            Some(document) => placer.leave(document, url),
            None => Ok(Left::default()),
        })
    }

    fn retract(&mut self, document: u64, url: &str) -> Result<Left, Error> {
        self.change(None, |placer| match at_url(placer, Some(document), url)? {
            Some(document) => placer.retract(document, url),
            None => Ok(Left::default()),
        })
    }

    fn set_popularity(
        &mut self,
        document: u64,
        url: &str,
        popularity: Popularity,
    ) -> Result<bool, Error> {
        self.change(None, |placer| match at_url(placer, Some(document), url)? {
            Some(document) => placer.set_popularity(document, url, popularity),
            None => Ok(false),
        })
    }
}
