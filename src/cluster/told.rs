//! What workers tell of themselves, which shards they hold, and what those who write have counted:
//! for whoever looks on.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::{Value, cmd};

use super::leases::{COMMON, millis, text};
use super::scan::digits;
use super::{Engine, Error, ShardState};

/// What is known of a shard for somebody who looks on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardLook {
    /// Who holds it, whether it is quiet, and what waits.
    pub state: ShardState,
    /// When it was taken last, in milliseconds since 1970; 0 if it never was. A fence is no smaller
    /// than the time at which it was given.
    pub since: u64,
}

impl Engine {
    /// Tells something of a worker, to be forgotten after a time.
    pub fn tell(&mut self, worker: &str, told: &str, time: Duration) -> Result<(), Error> {
        let mut set = cmd("SET");
        set.arg(self.told_of(worker)).arg(told).arg("PX").arg(millis(time).max(1));
        self.ask_one(set).map(drop)
    }

    /// Forgets what was told of a worker.
    pub(super) fn forget_told(&mut self, worker: &str) -> Result<(), Error> {
        let mut forget = cmd("DEL");
        forget.arg(self.told_of(worker));
        self.ask_one(forget).map(drop)
    }

    /// Returns what the workers tell that are alive.
    pub fn told(&mut self) -> Result<Vec<String>, Error> {
        let mut names = cmd("HKEYS");
        names.arg(format!("{}workers", self.base(COMMON)));
        let reads: Vec<_> = texts(self.ask_one(names)?)
            .iter()
            .map(|worker| {
                let mut read = cmd("GET");
                read.arg(self.told_of(worker));
                read
            })
            .collect();
        Ok(self.ask(&reads)?.iter().filter_map(text).collect())
    }

    fn told_of(&self, worker: &str) -> String {
        format!("{}told:{worker}", self.base(COMMON))
    }

    /// Looks at all shards of a crawl.
    pub fn look_at_shards(&mut self, shards: u32) -> Result<Vec<ShardLook>, Error> {
        let fences: Vec<_> = (0..shards)
            .map(|shard| {
                let mut read = cmd("HGET");
                read.arg(format!("{}lease", self.base(shard.into()))).arg("fence");
                read
            })
            .collect();
        let fences = self.ask(&fences)?;
        let states = self.shard_states(shards)?.into_iter().zip(&fences);
        Ok(states.map(|(state, fence)| ShardLook { state, since: digits(fence) }).collect())
    }

    /// Returns what all who ever wrote have counted, by name.
    pub fn counted(&mut self) -> Result<BTreeMap<String, u64>, Error> {
        let mut names = cmd("SMEMBERS");
        names.arg(format!("{}counters", self.base(COMMON)));
        let reads: Vec<_> = texts(self.ask_one(names)?)
            .into_iter()
            .filter_map(|worker| u64::from_str_radix(&worker, 16).ok())
            .map(|worker| {
                let mut read = cmd("HGETALL");
                read.arg(self.counts_of(worker));
                read
            })
            .collect();
        let mut counted = BTreeMap::new();
        for answer in self.ask(&reads)? {
            let Value::Array(parts) = answer else { continue };
            for pair in parts.chunks_exact(2) {
                let Some(name) = text(&pair[0]) else { continue };
                *counted.entry(name).or_default() += digits(&pair[1]);
            }
        }
        Ok(counted)
    }
}

fn texts(answer: Value) -> Vec<String> {
    match answer {
        Value::Array(all) | Value::Set(all) => all.iter().filter_map(text).collect(),
        _ => Vec::new(),
    }
}
