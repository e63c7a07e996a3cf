//! Links from one shard to another: a stream for each shard, whose holder takes them off.

use redis::{Value, cmd};

use super::leases::{number, odd};
use super::{Engine, Error, ShardLease};

/// Links that go to one shard.
#[derive(Debug, Clone, Default)]
pub struct LinksTo {
    /// The shard.
    pub shard: u32,
    /// The links, as whoever reads them wants them.
    pub links: Vec<Vec<u8>>,
}

/// Links that have come for a shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinksRead {
    /// The links, in the order in which they came.
    pub links: Vec<Vec<u8>>,
    /// Where the last one stands; none if there are none.
    pub last: Option<String>,
}

/// From where on links are read.
#[derive(Debug, Clone)]
pub struct ReadFrom {
    /// The shard.
    pub shard: u32,
    /// Where the last one stands that was read; `0` for none.
    pub last: String,
}

impl Engine {
    /// Adds links to the streams of their shards, unless `most` wait there. Returns for each shard
    /// whether they were added.
    pub fn send_links(&mut self, all: &[LinksTo], most: u64) -> Result<Vec<bool>, Error> {
        let calls: Vec<_> = all
            .iter()
            .map(|LinksTo { shard, links }| {
                let mut call = self.function_of("links_send", *shard);
                call.arg(most).arg(links);
                call
            })
            .collect();
        Ok(self.ask(&calls)?.iter().map(|answer| number(answer) == Some(1)).collect())
    }

    /// Reads up to `most` links of each of some shards.
    pub fn read_links(&mut self, all: &[ReadFrom], most: usize) -> Result<Vec<LinksRead>, Error> {
        let calls: Vec<_> = all
            .iter()
            .map(|ReadFrom { shard, last }| {
                let mut call = cmd("XRANGE");
                call.arg(format!("{}links", self.base_of(*shard)));
                call.arg(format!("({last}")).arg("+").arg("COUNT").arg(most);
                call
            })
            .collect();
        let answers = self.ask(&calls)?;
        answers.iter().map(|answer| read(answer).ok_or_else(|| odd("XRANGE"))).collect()
    }

    /// Removes the links of a shard up to one of them. Returns whether it is held: nobody else can.
    pub fn trim_links(
        &mut self,
        lease: ShardLease,
        worker: &str,
        last: &str,
    ) -> Result<bool, Error> {
        let mut call = self.function_of("links_trim", lease.shard);
        call.arg(worker).arg(lease.fence).arg(last);
        Ok(number(&self.ask_one(call)?) == Some(1))
    }
}

fn read(answer: &Value) -> Option<LinksRead> {
    let Value::Array(entries) = answer else { return None };
    let mut all = LinksRead::default();
    for entry in entries {
        let Value::Array(parts) = entry else { return None };
        let [Value::BulkString(id), Value::Array(fields)] = parts.as_slice() else { return None };
        let [_, Value::BulkString(link)] = fields.as_slice() else { return None };
        all.last = Some(String::from_utf8(id.clone()).ok()?);
        all.links.push(link.clone());
    }
    Some(all)
}
