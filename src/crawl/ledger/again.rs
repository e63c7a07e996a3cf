//! Pages that were stored before and are read again, and joints that are looked at again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::clock::Timestamp;
use crate::clusters::{self, Article, Left};
use crate::dedup;
use crate::documents::{Content, read_content, read_copy};
use crate::frontier::{Address, Frontier, Settled, Settlement};
use crate::store::{self, Tables};

use super::super::Error;
use super::super::sign::Page;
use super::{Ledger, article_of};

/// Longest time for which joints are looked at again while others want to write.
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(250);

/// Passes over the joints after the first one, while any of them moves.
const LOOKS_MAX: u32 = dedup::LOOKS_MAX - 1;

/// How far the second look is.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// The last content that got its look in this pass.
    at: u64,
    /// A content moved in this pass.
    moved: bool,
    /// Passes that have ended.
    passes: u32,
}

impl Ledger<'_> {
    /// Keeps a page of `document` that was read again. One that says the same, or nearly the same,
    /// keeps its place and is not judged; another one is.
    pub(super) fn keep_again(
        &mut self,
        (frontier, tables): (&mut Frontier, &mut Tables<'_>),
        document: u64,
        (page, links): (&Page, u64),
        now: Timestamp,
    ) -> Result<(Settlement, bool), Error> {
        if let Some(article) = self.unchanged(tables, document, page)? {
            clusters::refresh(tables, document, article, links, now)?;
            return Ok((Settlement::Stored(document), false));
        }
        let article = article_of(tables, page)?;
        self.tally.left_out(article);
        let place = self.judge(tables, article)?;
        let (joined, left) = clusters::change(tables, document, (article, &place), links, now)?;
        tracing::trace!(url = %article.address, document = joined.document, "changed");
        self.drop_left(frontier, tables, left, now)?;
        self.joined(tables, article, (&place, &joined))?;
        Ok((Settlement::Stored(joined.document), true))
    }

    /// Returns the article if its text is as the stored one, as far as readers care.
    fn unchanged<'a>(
        &self,
        tables: &Tables<'_>,
        document: u64,
        page: &'a Page,
    ) -> Result<Option<&'a Article>, store::Error> {
        let copy = read_copy(&tables.copies, document, &page.article.address)?;
        let Some(copy) = copy else { return Ok(None) };
        let Some(content) = read_content(&tables.contents, copy.content)? else { return Ok(None) };
        // The stored text may be from before the boilerplate of the host was known.
        let mut forms = std::iter::once(&page.article).chain(page.whole.as_deref());
        Ok(forms.find(|article| self.is_same(article, &content)))
    }

    fn is_same(&self, article: &Article, content: &Content) -> bool {
        let (text, settings) = (&article.signed.text, self.settings);
        let long = text.words.min(content.words) >= settings.dedup.rule.words_min;
        text.hash == content.hash
            || (long && text.sketch.similarity(&content.sketch) >= settings.recrawl.unchanged_min)
    }

    /// Counts what a further visit has shown, and takes the copy out of the document that its
    /// address carries no more.
    pub(super) fn part(
        &mut self,
        (frontier, tables): (&mut Frontier, &mut Tables<'_>),
        url: &str,
        settled: Settled,
        now: Timestamp,
    ) -> Result<(), Error> {
        if let Some(fate) = settled.fate {
            self.tally.revisits.count(fate);
        }
        if let Some(document) = settled.left {
            let left = clusters::leave(tables, document, url, now)?;
            tracing::trace!(url, document, "left");
            self.drop_left(frontier, tables, left, now)?;
        }
        Ok(())
    }

    pub(super) fn drop_left(
        &mut self,
        frontier: &mut Frontier,
        tables: &mut Tables<'_>,
        left: Left,
        now: Timestamp,
    ) -> Result<(), Error> {
        for content in left.contents {
            dedup::lock(&self.finder).forget(content as u32);
        }
        self.changes.extend(left.changes);
        self.tally.revisits.documents_gone += u64::from(left.gone);
        if let Some(heir) = left.heir {
            frontier.hasten(tables, &heir, now)?;
        }
        Ok(())
    }

    /// Looks again at every joint that was less than certain: what two pages have in common may
    /// since have turned out to be boilerplate of their site. What is stopped goes on next time.
    /// Returns whether all were looked at: others that want to write get their turn meanwhile, and
    /// what moves may be a better place for what was looked at before.
    pub(super) fn look_again(&mut self, tables: &mut Tables<'_>) -> Result<bool, Error> {
        let now = self.context.clock.now();
        let unsure = clusters::unsure(tables)?;
        // Once is enough: the leaves of a tree that is taken apart may form another one.
        let loose = match self.look.passes {
            0 => dedup::loose_contents(tables, &unsure)?,
            _ => vec![false; unsure.len()],
        };
        // At least one joint gets its look, or this would never end.
        let mut looked = false;
        let began = Instant::now();
        let mut left = BTreeSet::new();
        let mut complete = true;
        let (from, moved_before) = (self.look.at, self.tally.moved);
        for again in unsure.into_iter().zip(loose).filter(|(content, _)| *content > from) {
            if self.context.stop.asked() > 0 {
                break;
            }
            if looked && began.elapsed() > LOOK_AGAIN_MAX && self.store.is_wanted() {
                complete = false;
                break;
            }
            let content = again.0;
            (self.look.at, looked) = (content, true);
            let finder = dedup::lock(&self.finder);
            let place = dedup::judge_again(tables, &finder, again, &self.settings.dedup)?;
            drop(finder);
            let Some(moved) = clusters::replace(tables, content, &place, now)? else { continue };
            self.tally.moved += 1;
            tracing::trace!(content, document = moved.document, "moved");
            left.insert(moved.from);
            for address in moved.addresses {
                Address::set_document(&mut tables.addresses, &address, moved.document)?;
            }
        }
        for document in left {
            clusters::recount(tables, document, now)?;
        }
        self.look.moved |= self.tally.moved > moved_before;
        if complete && self.look.moved && self.look.passes < LOOKS_MAX {
            self.look = Look { passes: self.look.passes + 1, ..Look::default() };
            complete = false;
        }
        Ok(complete)
    }
}
