//! Who has which shard: leases with a number that only grows, and the workers that are alive.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use redis::{Value, cmd};

use super::{Engine, Error};

/// Partition of what is of no shard.
pub(super) const COMMON: u64 = 0;

/// Most shards of a crawl: 16 in each partition.
pub const SHARDS_MAX: u32 = 16_384;

/// A lease of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardLease {
    /// The shard.
    pub shard: u32,
    /// Larger than those of all leases before.
    pub fence: u64,
}

/// What became of a wish for a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It was got.
    Got {
        /// The lease.
        lease: ShardLease,
        /// Somebody had it before.
        was_held: bool,
    },
    /// A worker has it.
    HeldBy(String),
}

/// What is known of a shard, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShardState {
    /// The worker that holds it; empty if none does.
    pub holder: String,
    /// It has told that it has nothing to do.
    pub quiet: bool,
    /// How often it has told so, or the contrary.
    pub version: u64,
    /// Links that wait for it.
    pub links: u64,
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn odd(what: &str) -> Error {
    Error::Odd(format!("{what} gave something else"))
}

pub(super) fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

fn is_one(value: &Value) -> bool {
    number(value) == Some(1)
}

impl Engine {
    /// Asks for a shard for a time.
    pub fn take_shard(&mut self, shard: u32, worker: &str, time: Duration) -> Result<Taken, Error> {
        let mut call = self.function_of("lease_take", shard);
        call.arg(worker).arg(millis(time));
        let answer = self.ask_one(call)?;
        let parts = match &answer {
            Value::Array(parts) => parts.as_slice(),
            _ => &[],
        };
        let [fence, was_held, holder] = parts else { return Err(odd("lease_take")) };
        let (fence, holder) = text(fence).zip(text(holder)).ok_or_else(|| odd("lease_take"))?;
        Ok(match fence.parse() {
            Ok(fence) => {
                Taken::Got { lease: ShardLease { shard, fence }, was_held: is_one(was_held) }
            }
            Err(_) => Taken::HeldBy(holder),
        })
    }

    /// Has leases go on for a time from now. Returns for each whether it does: one that has ended
    /// never will.
    pub fn renew_shards(
        &mut self,
        leases: &[ShardLease],
        worker: &str,
        time: Duration,
    ) -> Result<Vec<bool>, Error> {
        let calls: Vec<_> = leases
            .iter()
            .map(|lease| {
                let mut call = self.function_of("lease_renew", lease.shard);
                call.arg(worker).arg(lease.fence).arg(millis(time));
                call
            })
            .collect();
        Ok(self.ask(&calls)?.iter().map(is_one).collect())
    }

    /// Gives a shard back. Returns whether it was held.
    pub fn release_shard(&mut self, lease: ShardLease, worker: &str) -> Result<bool, Error> {
        let mut call = self.function_of("lease_release", lease.shard);
        call.arg(worker).arg(lease.fence);
        Ok(is_one(&self.ask_one(call)?))
    }

    /// Tells whether a shard has nothing to do. Returns whether it is held.
    pub fn tell_quiet(
        &mut self,
        lease: ShardLease,
        worker: &str,
        quiet: bool,
    ) -> Result<bool, Error> {
        let mut call = self.function_of("lease_tell", lease.shard);
        call.arg(worker).arg(lease.fence).arg(u8::from(quiet));
        Ok(is_one(&self.ask_one(call)?))
    }

    /// Returns what is known of all shards of a crawl, each at one moment.
    pub fn shard_states(&mut self, shards: u32) -> Result<Vec<ShardState>, Error> {
        let calls: Vec<_> =
            (0..shards).map(|shard| self.function_of("lease_look", shard)).collect();
        let state = |answer: &Value| -> Option<ShardState> {
            let Value::Array(parts) = answer else { return None };
            let [holder, quiet, version, links] = parts.as_slice() else { return None };
            Some(ShardState {
                holder: text(holder)?,
                quiet: is_one(quiet),
                version: number(version)?.unsigned_abs(),
                links: number(links)?.unsigned_abs(),
            })
        };
        let answers = self.ask(&calls)?;
        answers.iter().map(|answer| state(answer).ok_or_else(|| odd("lease_look"))).collect()
    }

    /// Tells that a worker is alive for a time. Returns all that are.
    pub fn beat(&mut self, worker: &str, time: Duration) -> Result<Vec<String>, Error> {
        self.beat_for(worker, millis(time).max(1))
    }

    /// Tells that a worker leaves. Returns those that are left.
    pub fn leave(&mut self, worker: &str) -> Result<Vec<String>, Error> {
        self.forget_told(worker)?;
        self.beat_for(worker, 0)
    }

    fn beat_for(&mut self, worker: &str, millis: u64) -> Result<Vec<String>, Error> {
        let mut call = self.function("worker_beat", COMMON);
        call.arg(worker).arg(millis);
        match self.ask_one(call)? {
            Value::Array(all) => Ok(all.iter().filter_map(text).collect()),
            _ => Err(odd("worker_beat")),
        }
    }

    /// Adds seeds to those that all workers know, some thousands at a time.
    pub fn add_seeds(&mut self, seeds: &[String]) -> Result<(), Error> {
        let name = format!("{}seeds", self.base(COMMON));
        let calls: Vec<_> = seeds
            .chunks(1_000)
            .map(|some| {
                let mut call = cmd("SADD");
                call.arg(&name).arg(some);
                call
            })
            .collect();
        self.ask(&calls).map(drop)
    }

    /// Notes that there was something to do: a worker has given its seeds.
    pub fn note_begun(&mut self) -> Result<(), Error> {
        let mut call = cmd("SET");
        call.arg(format!("{}begun", self.base(COMMON))).arg(1);
        self.ask_one(call).map(drop)
    }

    /// Tells whether there ever was something to do.
    pub fn is_begun(&mut self) -> Result<bool, Error> {
        let mut call = cmd("EXISTS");
        call.arg(format!("{}begun", self.base(COMMON)));
        Ok(is_one(&self.ask_one(call)?))
    }

    /// Names what is done from now on: there may be something to do, and who has found before that
    /// there is nothing is not believed any more.
    pub fn begin_term(&mut self) -> Result<(), Error> {
        let mut call = cmd("SET");
        let term = RandomState::new().build_hasher().finish();
        call.arg(format!("{}term", self.base(COMMON))).arg(format!("{term:016x}"));
        self.ask_one(call).map(drop)
    }

    /// Returns what was begun last.
    pub fn term(&mut self) -> Result<String, Error> {
        let mut call = cmd("GET");
        call.arg(format!("{}term", self.base(COMMON)));
        Ok(text(&self.ask_one(call)?).unwrap_or_default())
    }

    /// Notes for a time that nothing is left to do for any worker, if no other term has begun.
    pub fn note_done(&mut self, term: &str, time: Duration) -> Result<(), Error> {
        let mut call = cmd("SET");
        call.arg(format!("{}done", self.base(COMMON))).arg(term);
        call.arg("PX").arg(millis(time).max(1));
        self.ask_one(call).map(drop)
    }

    /// Tells whether it was noted of a term lately.
    pub fn is_done(&mut self, term: &str) -> Result<bool, Error> {
        let mut call = cmd("GET");
        call.arg(format!("{}done", self.base(COMMON)));
        Ok(text(&self.ask_one(call)?).is_some_and(|done| done == term))
    }

    /// Returns how many seeds all workers know.
    pub fn seeds_len(&mut self) -> Result<u64, Error> {
        let mut call = cmd("SCARD");
        call.arg(format!("{}seeds", self.base(COMMON)));
        let answer = self.ask_one(call)?;
        number(&answer).map(i64::unsigned_abs).ok_or_else(|| odd("SCARD"))
    }

    /// Returns the seeds that all workers know, in order.
    pub fn seeds(&mut self) -> Result<Vec<String>, Error> {
        let mut call = cmd("SMEMBERS");
        call.arg(format!("{}seeds", self.base(COMMON)));
        let mut seeds: Vec<String> = match self.ask_one(call)? {
            Value::Array(all) | Value::Set(all) => all.iter().filter_map(text).collect(),
            _ => return Err(odd("SMEMBERS")),
        };
        seeds.sort_unstable();
        Ok(seeds)
    }
}
