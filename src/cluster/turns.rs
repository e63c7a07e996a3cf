//! Turns at IP addresses: whose hosts are those of several shards, and want one request at a time.

use std::time::Duration;

use super::keys::partition_of;
use super::leases::number;
use super::{Engine, Error};

/// Limits of an IP address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnLimits {
    /// Time after which a turn ends that nobody has given back or kept. It outlasts the lease by
    /// which the request was sent.
    pub span: Duration,
    /// Least time between two requests.
    pub gap: Duration,
    /// Most requests at a time.
    pub most: usize,
}

/// A wish for a turn, or a turn that is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnOf {
    /// Hash of the IP address.
    pub address: u64,
    /// Tells this turn from all others.
    pub token: u64,
    /// The shard that asks: of several, the one that waits longest is the next.
    pub shard: u32,
}

/// What became of a wish for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnAnswer {
    /// It is got.
    Got,
    /// It is to be asked for again after this time.
    After(Duration),
}

impl Engine {
    /// Asks for turns.
    pub fn take_turns(
        &mut self,
        turns: &[TurnOf],
        limits: TurnLimits,
    ) -> Result<Vec<TurnAnswer>, Error> {
        let calls: Vec<_> = turns
            .iter()
            .map(|turn| {
                let mut call = self.function("turn_take", partition_of(turn.address));
                call.arg(name(turn)).arg(format!("{:x}", turn.token));
                call.arg(millis(limits.span)).arg(millis(limits.gap)).arg(limits.most);
                call.arg(turn.shard);
                call
            })
            .collect();
        let answers = self.ask(&calls)?;
        let answers = answers.iter().map(|answer| match number(answer) {
            Some(0) => Ok(TurnAnswer::Got),
            Some(wait @ 1..) => Ok(TurnAnswer::After(Duration::from_millis(wait.unsigned_abs()))),
            _ => Err(super::leases::odd("turn_take")),
        });
        answers.collect()
    }

    /// Has turns go on whose requests are under way.
    pub fn keep_turns(&mut self, turns: &[TurnOf], limits: TurnLimits) -> Result<(), Error> {
        let calls: Vec<_> = turns
            .iter()
            .map(|turn| {
                let mut call = self.function("turn_keep", partition_of(turn.address));
                call.arg(name(turn)).arg(format!("{:x}", turn.token)).arg(millis(limits.span));
                call
            })
            .collect();
        self.ask(&calls).map(drop)
    }

    /// Gives turns back: the next request may be sent after the gap, counted from now.
    pub fn end_turns(&mut self, turns: &[TurnOf], limits: TurnLimits) -> Result<(), Error> {
        let calls: Vec<_> = turns
            .iter()
            .map(|turn| {
                let mut call = self.function("turn_end", partition_of(turn.address));
                call.arg(name(turn)).arg(format!("{:x}", turn.token)).arg(millis(limits.gap));
                call
            })
            .collect();
        self.ask(&calls).map(drop)
    }
}

fn name(turn: &TurnOf) -> String {
    format!("a{:x}", turn.address)
}

/// Rounded up: no wait is too short.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
