//! What hosts answer for addresses that they do not have, and the pages that are no more than that.

use redb::ReadableTable as _;

use crate::base::clock::Timestamp;
use crate::corpus::boilerplate::{Answer, is_probe, probe_of};
use crate::corpus::clusters::{self, Article};
use crate::corpus::documents::{read_content, read_copy};
use crate::frontier::{Address, Frontier, Lease, Offer, Rank, Reason, Settlement, State};
use crate::store::{self, Tables};
use crate::urls::PageUrl;

use super::super::Error;
use super::super::sign::Yield;
use super::Ledger;

/// Addresses of a host that are looked at again when its error page is known.
const LOOKED_AT_MAX: usize = 20_000;

impl Ledger<'_> {
    /// Sends a host its probe when the first page of it is stored.
    pub(super) fn probe(
        &mut self,
        frontier: &mut Frontier,
        tables: &mut Tables<'_>,
        lease: &Lease,
        now: Timestamp,
    ) -> Result<(), Error> {
        if !self.settings.limits.probe_error_page || !self.error_pages.ask(tables, lease.host)? {
            return Ok(());
        }
        if let Some(url) = probe_of(&lease.url) {
            let rank = Rank::Redirect;
            let offer = Offer { url: &url, depth: 0, rank, hops: 0, from: None, nofollow: false };
            frontier.offer(tables, &offer, now)?;
        }
        Ok(())
    }

    /// Takes the answer to a probe for what it is: no page, wherever it leads. An address that is
    /// sent where the probe was sent is none that the host has, and no alias of where it leads.
    pub(super) fn probed(
        &mut self,
        (frontier, tables): (&mut Frontier, &mut Tables<'_>),
        lease: &Lease,
        yielded: Yield,
        now: Timestamp,
    ) -> Result<Yield, Error> {
        if !is_probe(&lease.url) {
            return match yielded {
                Yield::Settled(Settlement::Redirect(target))
                    if !is_front(lease.url.as_str())
                        && self.error_pages.is_target(tables, lease.host, &target)? =>
                {
                    offer_target(frontier, tables, (lease, &target), now)?;
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
                let has_text = article.signed.text.words > 0;
                if has_text {
                    self.error_pages.learn(tables, lease.host, answer_of(article))?;
                }
                has_text
            }
            Yield::Settled(Settlement::Redirect(target)) => {
                self.error_pages.learn_target(tables, lease.host, target)?;
                true
            }
            Yield::Settled(_) | Yield::List(_) | Yield::Unsent(_) => false,
        };
        if learned {
            self.look_back((frontier, tables), lease, now)?;
        }
        let probe = Yield::Settled(Settlement::Refused(Reason::Probe));
        Ok(if is_final { probe } else { yielded })
    }

    /// Takes pages and aliases back that came before the error page of their host was known.
    fn look_back(
        &mut self,
        (frontier, tables): (&mut Frontier, &mut Tables<'_>),
        lease: &Lease,
        now: Timestamp,
    ) -> Result<(), Error> {
        let host = lease.url.host_key();
        let (first, last) = (format!("{host}/"), format!("{host}0"));
        let mut known = Vec::new();
        for row in tables
            .addresses
            .range(first.as_str()..last.as_str())
            .map_err(store::Error::from)?
            .take(LOOKED_AT_MAX)
        {
            let (url, row) = row.map_err(store::Error::from)?;
            let state = Address::decode(row.value()).map_err(store::Error::from)?.state;
            if matches!(state, State::Stored(_) | State::Redirect(_)) && !is_front(url.value()) {
                known.push((url.value().to_owned(), state));
            }
        }
        for (url, state) in known {
            let is_error = match &state {
                State::Stored(document) => match stored_answer(tables, *document, &url)? {
                    Some(answer) => self.error_pages.is_error(tables, lease.host, &answer)?,
                    None => false,
                },
                State::Redirect(target) => match PageUrl::parse_stored(target) {
                    Some(target) => self.error_pages.is_target(tables, lease.host, &target)?,
                    None => false,
                },
                _ => false,
            };
            if !is_error {
                continue;
            }
            frontier.take_back(tables, &url, Reason::SoftNotFound)?;
            if let State::Stored(document) = state {
                let mut left = clusters::leave(tables, document, &url, now)?;
                if left.gone {
                    // No page ever carried it, so that it is not gone either.
                    clusters::end(tables, document, &mut left)?;
                    left.gone = false;
                }
                self.drop_left(frontier, tables, left, now)?;
            }
        }
        Ok(())
    }
}

/// What a host answered, with the boilerplate of its pages.
pub(super) fn answer_of(article: &Article) -> Answer {
    let text = &article.signed.text;
    Answer::new(&article.title, text.hash, &text.sketch)
}

/// The same of a page that is stored.
fn stored_answer(
    tables: &Tables<'_>,
    document: u64,
    url: &str,
) -> Result<Option<Answer>, store::Error> {
    let Some(copy) = read_copy(&tables.copies, document, url)? else { return Ok(None) };
    let content = read_content(&tables.contents, copy.content)?;
    Ok(content.map(|content| Answer::new(&copy.title, content.hash, &content.sketch)))
}

/// Some hosts answer with their front page, which is a page.
pub(super) fn is_front(address: &str) -> bool {
    PageUrl::parse_stored(address).is_some_and(|url| url.path_and_query() == "/")
}

/// Where a host sends addresses that it does not have may still be a page, as its front page is.
fn offer_target(
    frontier: &mut Frontier,
    tables: &mut Tables<'_>,
    (lease, target): (&Lease, &PageUrl),
    now: Timestamp,
) -> Result<(), store::Error> {
    let Some(address) = Address::read(&tables.addresses, lease.url.as_str())? else {
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
    frontier.offer(tables, &offer, now).map(drop)
}
