//! The hosts of a running crawl: counts with the thread that writes, what follows from them with
//! all.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use crate::corpus::tables::BOILERPLATE;
use crate::store::{Batch, Error, Update as _, View as _};

use super::Counts;

/// Hosts whose counts are in memory; those of the others wait in the store.
const HOSTS_MAX: usize = 512;

/// Hashes of the blocks of a host that are left out.
pub type Repeated = HashSet<u64>;

/// What is known of the hosts, shared between threads.
#[derive(Debug, Clone, Default)]
pub struct KnownBlocks(Arc<RwLock<HashMap<u32, Arc<Repeated>>>>);

impl KnownBlocks {
    /// What is known of one host.
    #[must_use]
    pub fn of_host(host: u32, repeated: Repeated) -> Self {
        let known = Self::default();
        known.set(host, repeated);
        known
    }

    /// Returns the blocks that a host repeats, as of the last batch.
    #[must_use]
    pub fn of(&self, host: u32) -> Arc<Repeated> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&host).cloned().unwrap_or_default()
    }

    fn set(&self, host: u32, repeated: Repeated) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(host, Arc::new(repeated));
    }

    fn forget(&self, host: u32) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&host);
    }
}

/// The counts of the hosts at work.
#[derive(Debug, Default)]
pub struct HostBlocks {
    known: KnownBlocks,
    counts: HashMap<u32, (Counts, u64)>,
    /// Hosts whose counts differ from the store.
    changed: BTreeSet<u32>,
    /// Counts uses, to find the host that was not used for longest.
    uses: u64,
}

impl HostBlocks {
    /// Starts with no host; what follows from the counts goes to `known`.
    #[must_use]
    pub fn new(known: KnownBlocks) -> Self {
        Self { known, ..Self::default() }
    }

    /// Reads what is stored of a host, before a page of it is fetched or counted.
    pub fn load(&mut self, batch: &Batch, host: u32) -> Result<&mut Counts, Error> {
        self.uses += 1;
        if !self.counts.contains_key(&host) {
            self.make_room();
            let counts = batch.get(BOILERPLATE, host)?.unwrap_or_default();
            self.known.set(host, counts.repeated());
            self.counts.insert(host, (counts, self.uses));
        }
        let (counts, used) = self.counts.entry(host).or_default();
        *used = self.uses;
        Ok(counts)
    }

    /// Counts a page, given the hashes of its blocks.
    pub fn count(&mut self, batch: &Batch, host: u32, blocks: &[u64]) -> Result<(), Error> {
        if self.load(batch, host)?.add(blocks) {
            self.changed.insert(host);
        }
        Ok(())
    }

    /// Writes what has changed, and tells it to all threads.
    pub fn flush(&mut self, batch: &mut Batch) -> Result<(), Error> {
        for host in std::mem::take(&mut self.changed) {
            let Some((counts, _)) = self.counts.get(&host) else { continue };
            batch.put(BOILERPLATE, host, counts)?;
            self.known.set(host, counts.repeated());
        }
        Ok(())
    }

    /// Forgets half of the hosts that have nothing to write, those not used for longest.
    fn make_room(&mut self) {
        if self.counts.len() < HOSTS_MAX {
            return;
        }
        let unchanged = self.counts.iter().filter(|(host, _)| !self.changed.contains(host));
        let mut old: Vec<(u64, u32)> = unchanged.map(|(host, (_, used))| (*used, *host)).collect();
        old.sort_unstable();
        old.truncate(HOSTS_MAX / 2);
        for (_, host) in old {
            self.counts.remove(&host);
            self.known.forget(host);
        }
    }
}
