//! The start of a run.

use crate::base::clock::Timestamp;
use crate::frontier::{Frontier, Offer, Rank};
use crate::store::{self, Tables};
use crate::urls::{Filter, PageUrl, Scope};

use super::super::Error;
use super::Ledger;

/// Seeds that are offered in one transaction.
const SEEDS_PER_BATCH: usize = 10_000;

impl Ledger<'_> {
    /// Takes up the frontier, lets in what is kept out no more, and offers the seeds.
    pub(super) fn start(&mut self, seeds: &[PageUrl], feeds: &[u64]) -> Result<Frontier, Error> {
        let filter = Filter::new(&self.settings.filter)?;
        let scope = Scope::new(self.settings.scope, seeds);
        let now = self.context.clock.now_rounded_up();
        let turn = self.store.turn();
        let txn = self.store.db().begin_write().map_err(store::Error::from)?;
        let mut tables = Tables::open(&txn)?;
        let config = self.settings.frontier.clone();
        let mut frontier = Frontier::open(&mut tables, config, scope, now)?
            .with_recrawl(self.settings.recrawl.clone())
            .with_filter(filter, self.settings.fetch.allow_private)
            .with_known(&mut tables, feeds)?;
        let rest = frontier.readmit(&mut tables, "", now)?;
        frontier.flush(&mut tables)?;
        drop(tables);
        txn.commit().map_err(store::Error::from)?;
        drop(turn);
        self.readmit(&mut frontier, rest, now)?;
        for some in seeds.chunks(SEEDS_PER_BATCH) {
            let _turn = self.store.turn();
            let txn = self.store.db().begin_write().map_err(store::Error::from)?;
            let mut tables = Tables::open(&txn)?;
            for url in some {
                let rank = Rank::Seed;
                let offer = Offer { url, depth: 0, rank, hops: 0, from: None, nofollow: false };
                frontier.offer(&mut tables, &offer, now)?;
            }
            tracing::trace!(seeds = some.len(), "offered");
            frontier.flush(&mut tables)?;
            drop(tables);
            txn.commit().map_err(store::Error::from)?;
        }
        Ok(frontier)
    }

    /// Looks at the rest of what was kept out, a part of it in each transaction.
    fn readmit(
        &self,
        frontier: &mut Frontier,
        mut from: Option<String>,
        now: Timestamp,
    ) -> Result<(), Error> {
        while let Some(at) = from {
            let _turn = self.store.turn();
            let txn = self.store.db().begin_write().map_err(store::Error::from)?;
            let mut tables = Tables::open(&txn)?;
            from = frontier.readmit(&mut tables, &at, now)?;
            frontier.flush(&mut tables)?;
            drop(tables);
            txn.commit().map_err(store::Error::from)?;
        }
        Ok(())
    }
}
