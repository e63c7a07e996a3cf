//! The start of a run.

use crate::base::clock::Timestamp;
use crate::frontier::{Frontier, Offer, Rank};
use crate::store::Store;
use crate::urls::{Filter, PageUrl, Scope};

use super::super::{Beyond, Context, Error, Settings};

/// Seeds that are offered in one transaction.
const SEEDS_PER_BATCH: usize = 10_000;

/// Takes up the frontier, lets in what is kept out no more, and offers the seeds.
pub(super) fn take_up(
    store: &Store,
    settings: &Settings,
    context: &Context,
    seeds: &[PageUrl],
    feeds: &[u64],
) -> Result<Frontier, Error> {
    let filter = Filter::new(&settings.filter)?;
    let scope = Scope::new(settings.scope, seeds);
    let now = context.clock.now_rounded_up();
    let turn = store.turn();
    let mut batch = store.begin()?;
    let config = settings.frontier.clone();
    let beyond = context.beyond.as_deref();
    let opened = match beyond {
        Some(beyond) if beyond.was_held() => Frontier::take_over(&mut batch, config, scope, now)?,
        _ => Frontier::open(&mut batch, config, scope, now)?,
    };
    let mut frontier = opened
        .with_share(beyond.map(Beyond::share))
        .with_recrawl(settings.recrawl.clone())
        .with_filter(filter, settings.fetch.allow_private)
        .with_known(&mut batch, feeds)?;
    let rest = frontier.readmit(&mut batch, "", now)?;
    frontier.flush(&mut batch)?;
    batch.commit()?;
    drop(turn);
    readmit(store, &mut frontier, rest, now)?;
    if beyond.is_some() {
        // They come as the links of others do, each to where it belongs.
        return Ok(frontier);
    }
    for some in seeds.chunks(SEEDS_PER_BATCH) {
        let _turn = store.turn();
        let mut batch = store.begin()?;
        for url in some {
            let rank = Rank::Seed;
            let offer = Offer { url, depth: 0, rank, hops: 0, from: None, nofollow: false };
            frontier.offer(&mut batch, &offer, now)?;
        }
        tracing::trace!(seeds = some.len(), "offered");
        frontier.flush(&mut batch)?;
        batch.commit()?;
    }
    Ok(frontier)
}

/// Looks at the rest of what was kept out, a part of it in each transaction.
fn readmit(
    store: &Store,
    frontier: &mut Frontier,
    mut from: Option<String>,
    now: Timestamp,
) -> Result<(), Error> {
    while let Some(at) = from {
        let _turn = store.turn();
        let mut batch = store.begin()?;
        from = frontier.readmit(&mut batch, &at, now)?;
        frontier.flush(&mut batch)?;
        batch.commit()?;
    }
    Ok(())
}
