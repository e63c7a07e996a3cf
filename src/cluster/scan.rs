//! What is asked of a cluster as a whole: its documents in the order of their numbers, how much
//! there is, and what was fixed when a crawl was begun.

use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo};
use redis::{Value, cmd};

use super::documents::SECOND;
use super::keys::{DocumentPlace, Step, partitions};
use super::{Engine, Error};

/// Names of settings: the format of keys and rows, what keys texts have, how many documents are
/// expected, and where the texts are.
pub const SETTINGS: [&str; 4] = ["format", "keys", "documents", "texts"];

/// Hashes whose versions are listed at a time, by all nodes: one takes about 0.1 ms.
const LISTED_TOGETHER: usize = 128;

/// The memory of a primary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeMemory {
    /// Its host and port.
    pub node: String,
    /// Bytes that it uses.
    pub used: u64,
    /// Bytes that it may use; 0 for no bound.
    pub most: u64,
}

pub(super) fn digits(value: &Value) -> u64 {
    match value {
        Value::BulkString(digits) => {
            std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
        }
        Value::Int(number) => u64::try_from(*number).unwrap_or(0),
        _ => 0,
    }
}

impl Engine {
    /// Returns the largest number that was given, or a little more; 0 for none.
    pub fn last_number(&mut self) -> Result<u64, Error> {
        let read = |partition| {
            let mut read = cmd("GET");
            read.arg(format!("{}next", self.base(partition)));
            read
        };
        let answers = self.ask(&[0, SECOND].map(read))?;
        Ok(answers.iter().map(digits).max().unwrap_or(0))
    }

    /// Returns which block of numbers one is in: documents are asked for by blocks.
    #[must_use]
    pub fn block_of(number: u64) -> u64 {
        DocumentPlace::hash_of(number)
    }

    /// Returns the numbers of all documents of a block, also of pending ones, in their order: of
    /// those for which `takes` says so of the partition, a number below 1,024 that is the rest of
    /// all numbers in it.
    pub fn numbers_of_block(
        &mut self,
        block: u64,
        takes: impl Fn(u64) -> bool,
    ) -> Result<Vec<u64>, Error> {
        let name = DocumentPlace::hash(block);
        let asked: Vec<u64> = partitions().filter(|partition| takes(*partition)).collect();
        let commands = asked.iter().map(|partition| {
            let mut keys = cmd("HKEYS");
            keys.arg(format!("{}{name}", self.base(*partition)));
            keys
        });
        let commands: Vec<_> = commands.collect();
        let mut numbers = Vec::new();
        for (partition, fields) in asked.into_iter().zip(self.ask(&commands)?) {
            let (Value::Array(fields) | Value::Set(fields)) = fields else { continue };
            numbers.extend(fields.iter().filter_map(|field| match field {
                Value::BulkString(field) => DocumentPlace::number(partition, block, field),
                _ => None,
            }));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns the numbers of the documents of a block that are there, with their versions; none
    /// for one that is locked. Of the partitions that `takes` names, in the order of numbers.
    pub fn versions_of_block(
        &mut self,
        block: u64,
        takes: impl Fn(u64) -> bool,
    ) -> Result<Vec<(u64, Option<u64>)>, Error> {
        let asked: Vec<u64> = partitions().filter(|partition| takes(*partition)).collect();
        let name = DocumentPlace::hash(block).into_bytes();
        let step = |partition: &u64| Step { partition: *partition, arguments: vec![name.clone()] };
        let mut versions = Vec::new();
        for asked in asked.chunks(LISTED_TOGETHER) {
            let answers = self.steps("versions", &[], asked.iter().map(step).collect())?;
            for (partition, answer) in asked.iter().zip(answers) {
                for [field, state, version @ ..] in answer.as_chunks::<6>().0 {
                    let number = DocumentPlace::number_at(*partition, block, u64::from(*field));
                    let version = u64::from(u32::from_be_bytes(*version));
                    versions.push((number, (*state == b'l').then_some(version)));
                }
            }
        }
        versions.sort_unstable();
        Ok(versions)
    }

    /// Counts all documents, without those that are merely announced. Nodes look at each: some
    /// seconds for ten million. Asks for 65,536 numbers at a time.
    pub fn count_documents(&mut self) -> Result<u64, Error> {
        let mut count = 0;
        for block in 0..=Self::block_of(self.last_number()?) {
            let name = DocumentPlace::hash(block);
            let step = |partition| Step { partition, arguments: vec![name.clone().into_bytes()] };
            let found = self.steps("lives", &[], partitions().map(step).collect())?;
            count += found.into_iter().map(|lives| digits(&Value::BulkString(lives))).sum::<u64>();
        }
        Ok(count)
    }

    /// Counts the documents that deserve a second look.
    pub fn count_due(&mut self) -> Result<u64, Error> {
        let commands = partitions().map(|partition| {
            let mut count = cmd("SCARD");
            count.arg(format!("{}due", self.base(partition)));
            count
        });
        let commands: Vec<_> = commands.collect();
        Ok(self.ask(&commands)?.iter().map(digits).sum())
    }

    /// Returns what was fixed when the crawl was begun; none if it was not.
    pub fn setting(&mut self, name: &str) -> Result<Option<String>, Error> {
        let mut read = cmd("HGET");
        read.arg(format!("{}settings", self.base(0))).arg(name);
        Ok(match self.ask_one(read)? {
            Value::BulkString(value) => Some(String::from_utf8_lossy(&value).into_owned()),
            _ => None,
        })
    }

    /// Notes a setting unless it is there.
    pub fn remember(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let mut set = cmd("HSETNX");
        set.arg(format!("{}settings", self.base(0))).arg(name).arg(value);
        self.ask_one(set).map(drop)
    }

    /// Writes a setting, whatever it was.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let mut set = cmd("HSET");
        set.arg(format!("{}settings", self.base(0))).arg(name).arg(value);
        self.ask_one(set).map(drop)
    }

    /// Asks all primaries for their memory, in the order of their names.
    pub fn memory(&mut self) -> Result<Vec<NodeMemory>, Error> {
        let mut info = cmd("INFO");
        info.arg("memory");
        let answer = self.patiently(|engine| {
            let routing = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
            engine.connection()?.route_command(&info, routing)
        })?;
        let Value::Map(nodes) = answer else {
            return Err(Error::Odd("nodes do not tell their memory".to_owned()));
        };
        let mut all: Vec<NodeMemory> = nodes
            .iter()
            .map(|(node, told)| {
                let told = text(told);
                let field = |name: &str| {
                    let line = told.lines().find_map(|line| line.strip_prefix(name));
                    line.and_then(|line| line.trim().parse().ok()).unwrap_or(0)
                };
                let (used, most) = (field("used_memory:"), field("maxmemory:"));
                NodeMemory { node: text(node), used, most }
            })
            .collect();
        all.sort_by(|one, other| one.node.cmp(&other.node));
        Ok(all)
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text.clone(),
        _ => String::new(),
    }
}
