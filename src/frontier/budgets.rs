//! How much of a host, of a pattern of its addresses and of a domain is let in: where traps end
//! that no single address gives away.

use redb::ReadableTable as _;

use crate::store::{Error, Tables};
use crate::urls::{OddShape, PageUrl, pattern};

use super::offer::By;
use super::rows::{Address, Rank, Request, State};
use super::{Frontier, Offer, Reason, UNSTORED};

impl Frontier {
    /// Tells why there is no room for an address that is not in yet, if there is none.
    pub(super) fn over_budget(
        &mut self,
        tables: &mut Tables<'_>,
        offer: &Offer<'_>,
        by: By,
    ) -> Result<Option<Reason>, Error> {
        if !matches!(offer.rank, Rank::Link | Rank::Redirect) {
            return Ok(None);
        }
        let key = offer.url.host_key();
        let Some(host) = self.hosts.known(tables, &key)? else {
            let most = self.config.hosts_per_domain_max;
            let hosts = tables.domains.get(key.domain().as_str())?.map_or(0, |row| row.value());
            return Ok((most > 0 && hosts >= most).then_some(Reason::DomainHosts));
        };
        if offer.rank == Rank::Redirect {
            return Ok(None);
        }
        let row = &self.hosts.get(tables, host)?.row;
        if by == By::Feed && row.feeds >= self.config.discover.feeds_per_host_max {
            return Ok(Some(Reason::FeedLimit));
        }
        let most = self.config.host_addresses_max;
        if most > 0 && row.admitted >= most {
            return Ok(Some(Reason::HostBudget));
        }
        let most = self.config.host_size_max.bytes() as u64;
        if most > 0 && self.queued_bytes(tables, host)? + offer.size() > most {
            return Ok(Some(Reason::HostSize));
        }
        let most = self.config.pattern_addresses_max;
        if most == 0 {
            return Ok(None);
        }
        let count = tables.patterns.get(pattern_key(host, offer.url).as_slice())?;
        Ok(count.is_some_and(|count| count.value() >= most).then_some(Reason::PatternBudget))
    }

    /// Bytes of the addresses in the queue of a host. Rows of older versions do not tell: their
    /// queue is added up once.
    fn queued_bytes(&mut self, tables: &Tables<'_>, host: u32) -> Result<u64, Error> {
        if let Some(bytes) = self.hosts.get(tables, host)?.row.queued_bytes {
            return Ok(bytes);
        }
        let mut bytes = 0;
        let (first, last) = (host.to_be_bytes(), (host + 1).to_be_bytes());
        for row in tables.queue.range(first.as_slice()..last.as_slice())? {
            bytes += Request::decode(row?.1.value())?.size();
        }
        let live = self.hosts.get(tables, host)?;
        live.row.queued_bytes = Some(bytes);
        live.dirty = true;
        Ok(bytes)
    }

    /// Tells whether an address that is turned away gets a row that says why. Those that the pages
    /// of one host name, or the host itself has no room for, are counted beyond the limit.
    pub(super) fn has_room_to_refuse(
        &mut self,
        tables: &mut Tables<'_>,
        offer: &Offer<'_>,
    ) -> Result<bool, Error> {
        let most = self.config.host_size_max.bytes() as u64;
        let Some(from) = offer.from.filter(|_| most > 0) else { return Ok(true) };
        let from = self.hosts.number(tables, &from.host_key())?;
        let live = self.hosts.get(tables, from)?;
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
        tables: &mut Tables<'_>,
        url: &PageUrl,
        address: &Address,
    ) -> Result<(), Error> {
        if address.place.rank != Rank::Link {
            return Ok(());
        }
        let live = self.hosts.get(tables, address.host)?;
        live.row.admitted += 1;
        live.dirty = true;
        if self.config.pattern_addresses_max == 0 {
            return Ok(());
        }
        let key = pattern_key(address.host, url);
        let count = tables.patterns.get(key.as_slice())?.map(|row| row.value());
        if count.is_none() {
            let most = self.config.patterns_per_host_max.max(1);
            if self.hosts.get(tables, address.host)?.row.patterns >= most {
                let left = forget_rare(tables, address.host)?;
                self.hosts.get(tables, address.host)?.row.patterns = left;
            }
            self.hosts.get(tables, address.host)?.row.patterns += 1;
        }
        tables.patterns.insert(key.as_slice(), count.unwrap_or(0) + 1)?;
        Ok(())
    }
}

/// Key of a counted pattern: number of the host (4 bytes), hash of the pattern (8 bytes).
#[must_use]
pub fn pattern_key(host: u32, url: &PageUrl) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&host.to_be_bytes());
    let hash = xxhash_rust::xxh3::xxh3_64(pattern(url).as_bytes());
    key[4..].copy_from_slice(&hash.to_be_bytes());
    key
}

/// Forgets the rarer half of the patterns of a host. Returns how many are left.
fn forget_rare(tables: &mut Tables<'_>, host: u32) -> Result<u64, Error> {
    let (mut first, mut last) = ([0; 12], [0xFF; 12]);
    first[..4].copy_from_slice(&host.to_be_bytes());
    last[..4].copy_from_slice(&host.to_be_bytes());
    let mut counted = Vec::new();
    for row in tables.patterns.range(first.as_slice()..=last.as_slice())? {
        let (key, count) = row?;
        counted.push((count.value(), key.value().to_vec()));
    }
    counted.sort_unstable();
    let rare = counted.len().div_ceil(2);
    for (_, key) in &counted[..rare] {
        tables.patterns.remove(key.as_slice())?;
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
