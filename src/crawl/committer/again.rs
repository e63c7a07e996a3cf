//! Pages that were stored before and are read again, and matches that are looked at again.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::base::clock::Timestamp;
use crate::corpus::clusters::{self, Article, Left, Place};
use crate::corpus::dedup::{Corpus as _, Looked, Range, equal_contents};
use crate::corpus::documents::{Content, sent_content};
use crate::corpus::index::Index;
use crate::corpus::tables::{CONTENTS, COPIES};
use crate::frontier::{Settled, Settlement, State, Visited};
use crate::neardup;
use crate::store::{self, Batch, View as _};

use super::super::fingerprint::ReadPage;
use super::super::{CorpusChange, Error};
use super::Committer;

/// Longest time for which matches are looked at again while others want to write.
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(250);

/// Passes over the matches after the first one, while any of them moves.
const LOOKS_MAX: u32 = neardup::LOOKS_MAX - 1;

/// How far the look at the end of the run is.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// The last content whose match was settled when the run began.
    first: u64,
    /// The last content that got its look in this pass.
    at: u64,
    /// Anything changed in this pass.
    changed: bool,
    /// Passes that have ended.
    passes: u32,
}

/// What is known of a page beside what it says.
pub(super) struct SeenPage {
    /// Number of its host.
    pub host: u32,
    /// Hosts that link to it.
    pub links: u64,
    /// What became of its URL at the visits before.
    pub state: State,
    /// When it was read.
    pub now: Timestamp,
}

impl SeenPage {
    /// Takes it from the row of the URL.
    pub(super) fn of(visited: &Visited<'_>) -> Self {
        let address = visited.address.as_ref();
        let links = address.map_or(0, |address| address.links);
        let state = address.map_or(State::Queued, |address| address.state.clone());
        Self { host: visited.lease.host, links, state, now: visited.told.finished }
    }
}

impl Look {
    /// Notes what the runs before have settled.
    pub(super) fn begin(&mut self, view: &store::Snapshot) -> Result<(), store::Error> {
        self.first = clusters::settled(view)?;
        self.at = self.first;
        Ok(())
    }
}

impl Committer<'_> {
    /// Keeps a page of `document` that was read again. One that says the same, or nearly the same,
    /// keeps its place and is not judged; another one is.
    pub(super) fn keep_again(
        &mut self,
        batch: &mut Batch,
        document: u64,
        page: &ReadPage,
        seen: &SeenPage,
    ) -> Result<(Settlement, bool), Error> {
        let SeenPage { links, now, .. } = *seen;
        if let Some(article) = self.unchanged(batch, document, page)? {
            clusters::refresh(batch, document, article, links, now)?;
            return Ok((Settlement::Stored(document), false));
        }
        let article = article_of(batch, &self.index, page)?;
        self.tally.left_out(article);
        let index = &self.asked(page);
        let (placed, left) = self.placer_of(batch, index, now).revise(document, article, links)?;
        self.hand_over(|| CorpusChange::Place { article: Box::new(article.clone()), links });
        if placed.judged.place == Place::New && placed.joined.document != document {
            self.tell_of(&placed, article, links);
        }
        self.drop_left(batch, left, now)?;
        Ok((self.placed(&placed), true))
    }

    /// Returns the article if its text is as the stored one, as far as readers care.
    fn unchanged<'a>(
        &self,
        batch: &Batch,
        document: u64,
        page: &'a ReadPage,
    ) -> Result<Option<&'a Article>, store::Error> {
        let copy = batch.get(COPIES, (document, page.article.address.as_str()))?;
        let Some(copy) = copy else { return Ok(None) };
        let Some(content) = batch.get(CONTENTS, copy.content)? else { return Ok(None) };
        // The stored text may be from before the boilerplate of the host was known.
        let mut forms = std::iter::once(&page.article).chain(page.whole.as_deref());
        Ok(forms.find(|article| self.is_same(article, &content)))
    }

    fn is_same(&self, article: &Article, content: &Content) -> bool {
        let (text, settings) = (&article.keys.text, self.settings);
        let long = text.words.min(content.words) >= settings.dedup.rule.words_min;
        text.hash == content.hash
            || (long && text.sketch.similarity(&content.sketch) >= settings.recrawl.unchanged_min)
    }

    /// Counts what a further visit has shown, and takes the copy out of the document that its
    /// URL carries no more.
    pub(super) fn part(
        &mut self,
        batch: &mut Batch,
        url: &str,
        settled: Settled,
        now: Timestamp,
    ) -> Result<(), Error> {
        if let Some(fate) = settled.fate {
            self.tally.revisits.count(fate);
        }
        if let Some(document) = settled.left {
            let left = self.placer(batch, now).leave(document, url)?;
            self.hand_over(|| CorpusChange::Leave(url.to_owned()));
            self.drop_left(batch, left, now)?;
        }
        Ok(())
    }

    pub(super) fn drop_left(
        &mut self,
        batch: &mut Batch,
        left: Left,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.tally.revisits.documents_gone += u64::from(left.gone);
        if let Some(heir) = left.heir {
            self.frontier.hasten(batch, &heir, now)?;
        }
        Ok(())
    }

    /// Looks at the matches whose second look is due while the crawl goes on.
    pub(super) fn look_on(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let now = self.context.clock.now();
        let mut looks = std::mem::take(&mut self.looks);
        let looked = looks.step(&mut self.placer(batch, now));
        self.looks = looks;
        self.tally.looked(looked?);
        Ok(())
    }

    /// Looks again at every match of this run that was less than certain. What is stopped goes on
    /// next time. Returns whether all were looked at: others that want to write get their turn
    /// meanwhile, and what moves may be a better place for what was looked at before.
    pub(super) fn look_again(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        let now = self.context.clock.now();
        let until = clusters::newest(batch)?;
        // Once is enough: the leaves of a tree that is taken apart may form another one.
        let range = Range { after: self.look.at, until, apart: self.look.passes == 0 };
        let began = Instant::now();
        let stopped = || self.context.stop.asked() > 0;
        let wanted = || began.elapsed() > LOOK_AGAIN_MAX && self.store.is_wanted();
        let mut placer = self.placer(batch, now);
        let (mut looked, at) = placer.look(range, || !stopped() && !wanted())?;
        if at == until {
            looked.merged += placer.review()?;
        }
        self.tally.looked(looked);
        self.look.at = at;
        self.look.changed |= looked != Looked::default();
        if stopped() {
            return Ok(true);
        }
        if at == until && self.look.changed && self.look.passes < LOOKS_MAX {
            let Look { first, passes, .. } = self.look;
            self.look = Look { first, at: first, changed: false, passes: passes + 1 };
            return Ok(false);
        }
        Ok(at == until)
    }
}

/// The document that has a copy of this address: from an earlier visit, or because it was sent.
pub(super) fn document_of(
    batch: &Batch,
    state: &State,
    url: &str,
) -> Result<Option<u64>, store::Error> {
    if let State::Stored(document) = state {
        return Ok(Some(*document));
    }
    let sent = sent_content(batch, url)?;
    let Some((_, document)) = sent else { return Ok(None) };
    Ok(batch.get(COPIES, (document, url))?.map(|_| document))
}

/// The article to be judged. A copy of a page that came before its boilerplate was known is that
/// page, with all of its text.
pub(super) fn article_of<'a>(
    batch: &Batch,
    index: &Mutex<Index>,
    page: &'a ReadPage,
) -> Result<&'a Article, store::Error> {
    if let Some(whole) = &page.whole
        && !equal_contents(batch, index, whole.keys.text.hash)?.is_empty()
    {
        return Ok(whole);
    }
    Ok(&page.article)
}
