//! How much of a host, of a pattern of its addresses and of a domain is let in: where traps end
//! that no single address gives away.

use crate::store::{Batch, Error, Update as _, View as _};
use crate::urls::{OddShape, PageUrl, pattern};

use super::offer::By;
use super::rows::{Address, Rank, State};
use super::tables::{DOMAINS, PATTERNS, QUEUE};
use super::{Frontier, Offer, Reason, UNSTORED};

impl Frontier {
    /// Tells why there is no room for an address that is not in yet, if there is none.
    pub(super) fn over_budget(
        &mut self,
        batch: &mut Batch,
        offer: &Offer<'_>,
        by: By,
    ) -> Result<Option<Reason>, Error> {
        if !matches!(offer.rank, Rank::Link | Rank::Redirect) {
            return Ok(None);
        }
        let key = offer.url.host_key();
        let Some(host) = self.hosts.known(batch, &key)? else {
            let most = self.config.hosts_per_domain_max;
            let hosts = batch.get(DOMAINS, key.domain().as_str())?.unwrap_or(0);
            return Ok((most > 0 && hosts >= most).then_some(Reason::DomainHosts));
        };
        if offer.rank == Rank::Redirect {
            return Ok(None);
        }
        let row = &self.hosts.get(batch, host)?.row;
        if by == By::Feed && row.feeds >= self.config.discover.feeds_per_host_max {
            return Ok(Some(Reason::FeedLimit));
        }
        let most = self.config.host_addresses_max;
        if most > 0 && row.admitted >= most {
            return Ok(Some(Reason::HostBudget));
        }
        let most = self.config.host_size_max.bytes() as u64;
        if most > 0 && self.queued_bytes(batch, host)? + offer.size() > most {
            return Ok(Some(Reason::HostSize));
        }
        let most = self.config.pattern_addresses_max;
        if most == 0 {
            return Ok(None);
        }
        let count = batch.get(PATTERNS, (host, pattern_hash(offer.url)))?;
        Ok(count.is_some_and(|count| count >= most).then_some(Reason::PatternBudget))
    }

    /// Bytes of the addresses in the queue of a host. Rows of older versions do not tell: their
    /// queue is added up once.
    fn queued_bytes(&mut self, batch: &Batch, host: u32) -> Result<u64, Error> {
        if let Some(bytes) = self.hosts.get(batch, host)?.row.queued_bytes {
            return Ok(bytes);
        }
        let mut bytes = 0;
        for entry in batch.under(QUEUE, host)? {
            bytes += entry?.row()?.size();
        }
        let live = self.hosts.get(batch, host)?;
        live.row.queued_bytes = Some(bytes);
        live.dirty = true;
        Ok(bytes)
    }

    /// Tells whether an address that is turned away gets a row that says why. Those that the pages
    /// of one host name, or the host itself has no room for, are counted beyond the limit.
    pub(super) fn has_room_to_refuse(
        &mut self,
        batch: &mut Batch,
        offer: &Offer<'_>,
    ) -> Result<bool, Error> {
        let most = self.config.host_size_max.bytes() as u64;
        let Some(from) = offer.from.filter(|_| most > 0) else { return Ok(true) };
        let from = self.hosts.number(batch, &from.host_key())?;
        let live = self.hosts.get(batch, from)?;
        live.dirty = true;
        let fits = live.row.refused_bytes + offer.size() <= most;
        if fits {
            live.row.refused_bytes += offer.size();
        } else {
            live.row.unstored += 1;
            *self.tally.entry(UNSTORED.to_owned()).or_default() += 1;
            self.unstored += 1;
        }
        Ok(fits)
    }

    /// Counts a link that was let in.
    pub(super) fn count_link(
        &mut self,
        batch: &mut Batch,
        url: &PageUrl,
        address: &Address,
    ) -> Result<(), Error> {
        if address.place.rank != Rank::Link {
            return Ok(());
        }
        let live = self.hosts.get(batch, address.host)?;
        live.row.admitted += 1;
        live.dirty = true;
        if self.config.pattern_addresses_max == 0 {
            return Ok(());
        }
        let key = (address.host, pattern_hash(url));
        let count = batch.get(PATTERNS, key)?;
        if count.is_none() {
            let most = self.config.patterns_per_host_max.max(1);
            if self.hosts.get(batch, address.host)?.row.patterns >= most {
                let left = forget_rare(batch, address.host)?;
                self.hosts.get(batch, address.host)?.row.patterns = left;
            }
            self.hosts.get(batch, address.host)?.row.patterns += 1;
        }
        batch.put(PATTERNS, key, &(count.unwrap_or(0) + 1))
    }
}

/// Stands for the pattern of an address.
#[must_use]
pub fn pattern_hash(url: &PageUrl) -> u64 {
    xxhash_rust::xxh3::xxh3_64(pattern(url).as_bytes())
}

/// Forgets the rarer half of the patterns of a host. Returns how many are left.
fn forget_rare(batch: &mut Batch, host: u32) -> Result<u64, Error> {
    let mut counted = Vec::new();
    for entry in batch.under(PATTERNS, host)? {
        let entry = entry?;
        counted.push((entry.row()?, entry.key()?));
    }
    counted.sort_unstable();
    let rare = counted.len().div_ceil(2);
    for (_, key) in &counted[..rare] {
        batch.remove(PATTERNS, *key)?;
    }
    Ok((counted.len() - rare) as u64)
}

impl State {
    /// The address was let in at some time.
    pub(super) fn is_in(&self) -> bool {
        !matches!(self, Self::Refused(reason) if reason.before_visit())
    }
}

impl From<OddShape> for Reason {
    fn from(odd: OddShape) -> Self {
        match odd {
            OddShape::TooLong => Self::UrlTooLong,
            OddShape::TooDeep => Self::PathTooDeep,
            OddShape::RepeatedSegment => Self::RepeatedSegment,
            OddShape::RepeatedSequence => Self::RepeatedSequence,
            OddShape::HostInPath => Self::HostInPath,
            OddShape::RepeatedParameter => Self::RepeatedParameter,
            OddShape::NestedEscapes => Self::NestedEscapes,
            OddShape::Calendar => Self::Calendar,
            OddShape::SessionInPath => Self::SessionInPath,
        }
    }
}
