//! The thread that keeps the leases of a worker, and tells others that it is alive.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::base::clock::Timestamp;
use crate::cluster::{Engine, Error, Settings, ShardLease, TurnOf};

use super::Common;
use super::shard::{Shard, lock};
use super::status::{self, Pace};

/// Renewals in the time of a lease.
const PER_LEASE: u32 = 3;

/// The part of a lease that a worker does not use, whatever the clocks do.
const MARGIN_PART: u32 = 10;

/// Returns until when a lease holds that was asked for at `asked`.
pub(super) fn end_of(asked: Timestamp, lease: Duration) -> Timestamp {
    asked.after(lease.saturating_sub(lease / MARGIN_PART))
}

/// Renews leases until the worker is over, and tells then that it leaves.
pub(super) fn run(settings: &Settings, common: &Common) {
    let lease = common.config.lease.duration();
    let (mut engine, mut pace) = (None, Pace::default());
    let mut answered = Instant::now();
    while !common.is_over() {
        let begun = Instant::now();
        match round(&mut engine, settings, common) {
            Ok(()) => {
                answered = Instant::now();
                tell(&mut engine, common, &mut pace);
            }
            Err(error) => {
                engine = None;
                tracing::warn!(%error, "leases cannot be renewed");
                if answered.elapsed() > common.config.wait_max.duration() {
                    common.fail(error.to_string());
                }
            }
        }
        common.rest((lease / PER_LEASE).saturating_sub(begun.elapsed()));
    }
    // Here, behind the last word that it is alive.
    let engine = engine.map_or_else(|| Engine::connect(settings), Ok);
    if let Err(error) = engine.and_then(|mut engine| engine.leave(&common.worker)) {
        tracing::warn!(%error, "others learn only by its absence that this worker has left");
    }
}

/// Tells what the worker does. Nothing depends on it: what fails is told the next time.
fn tell(engine: &mut Option<Engine>, common: &Common, pace: &mut Pace) {
    let told = status::write(common, pace).map_err(|error| error.to_string());
    let Some(engine) = engine.as_mut() else { return };
    let lease = common.config.lease.duration();
    let told = told.and_then(|told| {
        engine.tell(&common.worker, &told, lease).map_err(|error| error.to_string())
    });
    if let Err(error) = told {
        tracing::warn!(error, "others do not learn what this worker does");
    }
}

fn round(engine: &mut Option<Engine>, settings: &Settings, common: &Common) -> Result<(), Error> {
    let lease = common.config.lease.duration();
    let engine = match engine {
        Some(engine) => engine,
        none => none.insert(Engine::connect(settings)?),
    };
    let shards: Vec<Arc<Shard>> = lock(&common.shards).values().cloned().collect();
    let leases: Vec<ShardLease> = shards.iter().map(|shard| shard.lease).collect();
    // Counted from before the request, whenever the answer comes.
    let asked = common.clock.now();
    // Before the leases: none outlasts a turn by which a request is sent.
    let turns: Vec<TurnOf> = lock(&common.turns).values().copied().collect();
    engine.keep_turns(&turns, common.limits)?;
    let renewed = engine.renew_shards(&leases, &common.worker, lease)?;
    for (shard, renewed) in shards.iter().zip(renewed) {
        if renewed {
            shard.hold_until(end_of(asked, lease));
        } else if lock(&common.shards).contains_key(&shard.number()) {
            shard.lose();
        }
    }
    let members = engine.beat(&common.worker, lease)?;
    *lock(&common.members) = members;
    Ok(())
}
