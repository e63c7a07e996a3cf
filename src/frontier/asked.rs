//! Requests that were sent in an earlier crawl, taken out of their turn: for a store that is made
//! anew from what was exchanged then.

use crate::base::clock::Timestamp;
use crate::store::{Batch, Error, Update as _, View as _};
use crate::urls::PageUrl;

use super::again::unplan;
use super::rows::{Address, Purpose, QueuePlace, Rank, State};
use super::tables::{ADDRESSES, LATER, QUEUE};
use super::{Frontier, Lease, Offer, Offered, Validators};

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The URL.
    pub url: PageUrl,
    /// It was asked for as a robots.txt.
    pub robots: bool,
    /// Kind of request; none if that is not known.
    pub rank: Option<Rank>,
    /// Links between a seed and the URL.
    pub depth: u16,
    /// Redirects that led to it.
    pub hops: u8,
}

impl Frontier {
    /// Returns the number of a host, which may be new.
    pub fn host_number(&mut self, batch: &mut Batch, url: &PageUrl) -> Result<u32, Error> {
        self.hosts.number(batch, &url.host_key())
    }

    /// Returns the lease of a request that was sent, as if its turn had come now; none if the
    /// settings keep its URL out.
    pub fn lease_again(
        &mut self,
        batch: &mut Batch,
        asked: &Asked,
        now: Timestamp,
    ) -> Result<Option<Lease>, Error> {
        self.wrote_at(now);
        let lease = if asked.robots {
            self.robots_again(batch, asked)?
        } else {
            let Some(address) = self.queued_again(batch, asked, now)? else { return Ok(None) };
            Lease {
                host: address.host,
                place: Some(address.place),
                purpose: address.place.rank.purpose(),
                url: asked.url.clone(),
                hops: address.hops,
                validators: self.validators(&address, now),
                after_commit: false,
                groups: [None; 2],
            }
        };
        self.take(batch, &lease, now)?;
        Ok(Some(lease))
    }

    fn robots_again(&mut self, batch: &mut Batch, asked: &Asked) -> Result<Lease, Error> {
        let host = self.host_number(batch, &asked.url)?;
        let mut found = None;
        for entry in batch.under(QUEUE, host)? {
            let entry = entry?;
            let request = entry.row()?;
            if !matches!(request.purpose, Purpose::Robots { .. }) {
                break;
            }
            if request.url == asked.url.as_str() {
                found = Some((entry.key()?.1, request.purpose));
                break;
            }
        }
        let (place, purpose) = match found {
            // Another host has sent us here for its rules.
            Some((place, purpose)) => (Some(place), purpose),
            None => (None, Purpose::Robots { of: host, hops: 0 }),
        };
        Ok(Lease {
            host,
            place,
            purpose,
            url: asked.url.clone(),
            hops: 0,
            validators: Validators::default(),
            after_commit: false,
            groups: [None; 2],
        })
    }

    /// Puts a URL in the queue of its host, wherever it was, with the place that it had.
    fn queued_again(
        &mut self,
        batch: &mut Batch,
        asked: &Asked,
        now: Timestamp,
    ) -> Result<Option<Address>, Error> {
        let url = &asked.url;
        let rank = asked.rank.unwrap_or(Rank::Link);
        let mut address = match batch.get(ADDRESSES, url.as_str())? {
            Some(address) => address,
            None if rank.is_sitemap() => {
                let found = Address::found(now, "");
                self.recount(None, &found.state);
                found
            }
            None => {
                let (depth, hops) = (asked.depth, asked.hops);
                let offer = Offer { url, depth, rank, hops, from: None, nofollow: false };
                if let Offered::Refused(_) = self.offer(batch, &offer, now)? {
                    return Ok(None);
                }
                let Some(address) = batch.get(ADDRESSES, url.as_str())? else { return Ok(None) };
                address
            }
        };
        match address.state {
            State::Queued => {}
            State::Refused(reason) if reason.is_of_filter() => return Ok(None),
            State::Refused(reason) if reason.before_visit() => self.let_in(&mut address),
            State::Skipped { .. } | State::Known { .. } => self.let_in(&mut address),
            State::Stored(_) | State::Redirect(_) | State::Refused(_) => {
                address.revisit.waits = true;
                (address.failures, address.busy) = (0, 0);
            }
        }
        self.unwait(batch, url, &mut address)?;
        if let Some(rank) = asked.rank {
            address.place = QueuePlace { rank, depth: asked.depth, sequence: 0 };
            address.hops = asked.hops;
        }
        self.enqueue(batch, url, &mut address)?;
        Ok(Some(address))
    }

    fn let_in(&mut self, address: &mut Address) {
        let was = std::mem::replace(&mut address.state, State::Queued);
        self.recount(Some(&was), &State::Queued);
    }

    /// Takes a URL out of where it waits.
    fn unwait(
        &mut self,
        batch: &mut Batch,
        url: &PageUrl,
        address: &mut Address,
    ) -> Result<(), Error> {
        if address.revisit.due.0 != 0 {
            unplan(batch, url.as_str(), address)?;
        }
        if address.host == 0 {
            return Ok(());
        }
        let later = (address.not_before, (address.host, address.place));
        if address.not_before.0 != 0 && batch.remove(LATER, later)? {
            self.queued -= 1;
        }
        address.not_before = Timestamp(0);
        let queued = batch.get(QUEUE, (address.host, address.place))?;
        if queued.is_some_and(|request| request.url == url.as_str()) {
            self.unqueue(batch, address.host, address.place)?;
        }
        Ok(())
    }
}
