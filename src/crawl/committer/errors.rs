//! What hosts answer for URLs that they do not have, and the pages that are no more than that.

use crate::base::clock::Timestamp;
use crate::corpus::boilerplate::{Answer, is_probe, probe_of};
use crate::corpus::clusters::Article;
use crate::corpus::dedup::Corpus as _;
use crate::corpus::tables::{CONTENTS, COPIES};
use crate::frontier::{ADDRESSES, Lease, Offer, Rank, Reason, Settlement, State};
use crate::store::{self, Batch, View as _};
use crate::urls::PageUrl;

use super::super::fingerprint::Yield;
use super::super::{CorpusChange, Error};
use super::Committer;

/// URLs of a host that are looked at again when its error page is known.
const LOOKED_AT_MAX: usize = 20_000;

impl Committer<'_> {
    /// Sends a host its probe when the first page of it is stored.
    pub(super) fn probe(
        &mut self,
        batch: &mut Batch,
        lease: &Lease,
        now: Timestamp,
    ) -> Result<(), Error> {
        if !self.settings.limits.probe_error_page || !self.error_pages.ask(batch, lease.host)? {
            return Ok(());
        }
        if let Some(url) = probe_of(&lease.url) {
            let rank = Rank::Redirect;
            let offer = Offer { url: &url, depth: 0, rank, hops: 0, from: None, nofollow: false };
            self.frontier.offer(batch, &offer, now)?;
        }
        Ok(())
    }

    /// Takes the answer to a probe for what it is: no page, wherever it leads. A URL that is
    /// sent where the probe was sent is none that the host has, and no alias of where it leads.
    pub(super) fn probed(
        &mut self,
        batch: &mut Batch,
        lease: &Lease,
        yielded: Yield,
        now: Timestamp,
    ) -> Result<Yield, Error> {
        if !is_probe(&lease.url) {
            return match yielded {
                Yield::Settled(Settlement::Redirect(target))
                    if !is_front(lease.url.as_str())
                        && self.error_pages.is_target(batch, lease.host, &target)? =>
                {
                    self.offer_target(batch, lease, &target, now)?;
                    Ok(Yield::Settled(Settlement::Refused(Reason::SoftNotFound)))
                }
                yielded => Ok(yielded),
            };
        }
        let is_final = !matches!(
            yielded,
            Yield::Settled(Settlement::Busy(_) | Settlement::Failed { again: true, .. })
        );
        let learned = match &yielded {
            Yield::Page(page) => {
                let article = page.whole.as_deref().unwrap_or(&page.article);
                let has_text = article.keys.text.words > 0;
                if has_text {
                    self.error_pages.learn(batch, lease.host, answer_of(article))?;
                }
                has_text
            }
            Yield::Settled(Settlement::Redirect(target)) => {
                self.error_pages.learn_target(batch, lease.host, target)?;
                true
            }
            Yield::Settled(_) | Yield::List(_) | Yield::Unsent(_) | Yield::Later(_) => false,
        };
        if learned {
            self.look_back(batch, lease, now)?;
        }
        let probe = Yield::Settled(Settlement::Refused(Reason::Probe));
        Ok(if is_final { probe } else { yielded })
    }

    /// Where a host sends URLs that it does not have may still be a page, as its front page
    /// is.
    fn offer_target(
        &mut self,
        batch: &mut Batch,
        lease: &Lease,
        target: &PageUrl,
        now: Timestamp,
    ) -> Result<(), store::Error> {
        let Some(address) = batch.get(ADDRESSES, lease.url.as_str())? else {
            return Ok(());
        };
        let offer = Offer {
            url: target,
            depth: address.place.depth,
            rank: Rank::Redirect,
            hops: address.hops.saturating_add(1),
            from: Some(&lease.url),
            nofollow: false,
        };
        self.frontier.offer(batch, &offer, now).map(drop)
    }

    /// Takes pages and aliases back that came before the error page of their host was known.
    fn look_back(&mut self, batch: &mut Batch, lease: &Lease, now: Timestamp) -> Result<(), Error> {
        let host = lease.url.host_key();
        let (first, last) = (format!("{host}/"), format!("{host}0"));
        let mut known = Vec::new();
        let rows = batch.range(ADDRESSES, first.as_str()..last.as_str())?;
        for row in rows.take(LOOKED_AT_MAX) {
            let row = row?;
            let url = row.key().map_err(store::Error::from)?;
            let state = row.row().map_err(store::Error::from)?.state;
            if matches!(state, State::Stored(_) | State::Redirect(_)) && !is_front(url) {
                known.push((url.to_owned(), state));
            }
        }
        for (url, state) in known {
            let is_error = match &state {
                State::Stored(document) => match stored_answer(batch, *document, &url)? {
                    Some(answer) => self.error_pages.is_error(batch, lease.host, &answer)?,
                    None => false,
                },
                State::Redirect(target) => match PageUrl::parse_stored(target) {
                    Some(target) => self.error_pages.is_target(batch, lease.host, &target)?,
                    None => false,
                },
                _ => false,
            };
            if !is_error {
                continue;
            }
            self.frontier.take_back(batch, &url, Reason::SoftNotFound)?;
            if let State::Stored(document) = state {
                let left = self.placer(batch, now).retract(document, &url)?;
                self.hand_over(|| CorpusChange::Retract(url.clone()));
                self.drop_left(batch, left, now)?;
            }
        }
        Ok(())
    }
}

/// What a host answered, with the boilerplate of its pages.
pub(super) fn answer_of(article: &Article) -> Answer {
    let text = &article.keys.text;
    Answer::new(&article.title, text.hash, &text.sketch)
}

/// The same of a page that is stored.
fn stored_answer(batch: &Batch, document: u64, url: &str) -> Result<Option<Answer>, store::Error> {
    let Some(copy) = batch.get(COPIES, (document, url))? else { return Ok(None) };
    let content = batch.get(CONTENTS, copy.content)?;
    Ok(content.map(|content| Answer::new(&copy.title, content.hash, &content.sketch)))
}

/// Some hosts answer with their front page, which is a page.
pub(super) fn is_front(address: &str) -> bool {
    PageUrl::parse_stored(address).is_some_and(|url| url.path_and_query() == "/")
}
