//! Rows of documents, each with its state and version.

use std::collections::HashMap;
use std::time::Duration;

use redis::{Cmd, Value, cmd};

use super::keys::{DocumentPlace, NUMBER_MAX, PARTITIONS, Step, partition_of, partitions};
use super::{Engine, Error};

/// The partition at which numbers are taken for the second time.
pub(super) const SECOND: u64 = PARTITIONS / 2;

/// A row, as it lies in the cluster.
pub type Row = Vec<u8>;

/// How often a document was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(pub(super) [u8; 4]);

impl Version {
    /// That of a document that is not there yet.
    pub const NONE: Self = Self([0; 4]);

    /// That of a document that was announced, in a change of several.
    pub const ANNOUNCED: Self = Self([0xFF; 4]);

    /// That of the same document when it is written the next time.
    #[must_use]
    pub fn next(self) -> Self {
        Self(u32::from_be_bytes(self.0).wrapping_add(1).to_be_bytes())
    }

    /// Returns it as a number.
    #[must_use]
    pub fn number(self) -> u64 {
        u64::from(u32::from_be_bytes(self.0))
    }
}

/// A document that is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Its number.
    pub document: u64,
    /// By whom.
    pub how: How,
}

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Somebody who only reads.
    Read,
    /// Somebody newer, who waits for what is pending.
    Newer,
    /// Somebody older, who marks what is pending and takes no notice of it.
    Older,
}

/// What is there of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing that counts.
    Nothing,
    /// It is pending, and must be waited for.
    Waits,
    /// A row.
    Live(Live),
    /// A row that is locked by a change of several documents.
    Locked([u8; 16]),
}

/// A row that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Its version.
    pub version: Version,
    /// The row.
    pub row: Row,
}

/// What became of a document that was to be settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It is live.
    Live,
    /// Somebody older was announced since: it must look again.
    Marked,
    /// It came too late: others took no notice of it.
    Late,
}

/// What state a document is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is not there.
    Nothing,
    /// It was announced.
    Pending,
    /// It was announced, and is past its deadline since so long, or nobody minds it any more.
    Late(Duration),
    /// It has a row.
    Live,
    /// It has a row, and is locked by a change.
    Locked([u8; 16]),
}

/// A row that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The document.
    pub document: u64,
    /// The version that was read.
    pub version: Version,
    /// The row; empty to remove the document.
    pub row: Row,
}

/// A step on a document with further arguments.
pub(super) fn step(document: u64, more: Vec<Vec<u8>>) -> Step {
    let place = DocumentPlace::of(document);
    let mut arguments = vec![place.hash.into_bytes(), place.field.into_bytes()];
    arguments.extend(more);
    Step { partition: place.partition, arguments }
}

/// A span of time as an argument.
pub(super) fn in_millis(span: Duration) -> Vec<u8> {
    span.as_millis().to_string().into_bytes()
}

/// Reads a row behind the letter of its state.
fn live(value: &[u8]) -> Option<Live> {
    let (version, row) = value.strip_prefix(b"l")?.split_first_chunk()?;
    Some(Live { version: Version(*version), row: row.to_vec() })
}

impl Engine {
    /// Announces documents: they are pending for so long. Returns which are: another worker may
    /// have been given the same number, when a primary was lost with its last writes.
    pub fn announce(&mut self, documents: &[u64], span: Duration) -> Result<Vec<bool>, Error> {
        let steps = documents.iter().map(|document| step(*document, Vec::new())).collect();
        let answers = self.steps("announce", &[in_millis(span), self.name()], steps)?;
        Ok(answers.iter().map(|answer| answer == b"+").collect())
    }

    /// Takes the marks off pending documents, before another look. Returns which still are pending.
    pub fn renew(&mut self, documents: &[u64], span: Duration) -> Result<Vec<bool>, Error> {
        let steps = documents.iter().map(|document| step(*document, Vec::new())).collect();
        let answers = self.steps("renew", &[in_millis(span), self.name()], steps)?;
        Ok(answers.iter().map(|answer| answer == b"+").collect())
    }

    /// Looks at documents.
    pub fn look(&mut self, looks: &[Look]) -> Result<Vec<Found>, Error> {
        let how = |how| match how {
            How::Read => b"r".to_vec(),
            How::Newer => b"w".to_vec(),
            How::Older => b"m".to_vec(),
        };
        let answers = if looks.iter().all(|look| look.how == How::Read) {
            // Also on a node that is full.
            let steps = looks.iter().map(|look| step(look.document, Vec::new())).collect();
            self.steps("read", &[], steps)?
        } else {
            let steps = looks.iter().map(|look| step(look.document, vec![how(look.how)]));
            self.steps("look", &[], steps.collect())?
        };
        answers.iter().map(|value| found(value)).collect()
    }

    /// Makes pending documents live.
    pub fn settle(&mut self, rows: Vec<Write>) -> Result<Vec<Settled>, Error> {
        let steps = rows.into_iter().map(|write| step(write.document, vec![write.row])).collect();
        let answers = self.steps("settle", &[self.name()], steps)?;
        let settled = answers.iter().map(|answer| match answer.as_slice() {
            b"+" => Ok(Settled::Live),
            b"m" => Ok(Settled::Marked),
            b"g" => Ok(Settled::Late),
            _ => Err(Error::Odd("settle gave no state".to_owned())),
        });
        settled.collect()
    }

    /// Forgets documents that were announced and are not wanted. Returns which are gone: one may
    /// be live, when the answer was lost that said so, or be that of another worker.
    pub fn withdraw(&mut self, documents: &[u64]) -> Result<Vec<bool>, Error> {
        let steps = documents.iter().map(|document| step(*document, Vec::new())).collect();
        let answers = self.steps("withdraw", &[self.name()], steps)?;
        Ok(answers.iter().map(|answer| answer == b"+").collect())
    }

    /// Writes documents, each unless somebody has written it since it was read. Returns which were.
    pub fn write(&mut self, writes: Vec<Write>) -> Result<Vec<bool>, Error> {
        let steps = writes
            .into_iter()
            .map(|Write { document, version, row }| step(document, vec![version.0.to_vec(), row]));
        let answers = self.steps("write", &[], steps.collect())?;
        Ok(answers.iter().map(|answer| answer == b"+").collect())
    }

    /// Takes so many numbers that nobody else gets; returns the first one.
    ///
    /// A primary that is lost may take the last ones with it that it has given. So they are taken
    /// at two partitions that lie far from each other, most likely on two nodes: what one of them
    /// has given to anybody is known to the other.
    pub fn numbers(&mut self, count: u64) -> Result<u64, Error> {
        loop {
            let last = self.last_of(0, count, self.last_number)?;
            self.last_number = self.last_of(SECOND, count, last - count)?;
            if self.last_number == last {
                return Ok(last - count + 1);
            }
        }
    }

    /// Takes so many numbers at a partition, behind all that it has given and behind `known`;
    /// returns the last one.
    fn last_of(&mut self, partition: u64, count: u64, known: u64) -> Result<u64, Error> {
        let mut take = self.function("numbers", partition);
        take.arg(count).arg(known);
        match self.ask_one(take)? {
            Value::Int(last) if last > 0 && last.cast_unsigned() <= NUMBER_MAX => {
                Ok(last.cast_unsigned())
            }
            other => Err(Error::Odd(format!("no number is left: {other:?}"))),
        }
    }

    /// Fixes a setting of the crawl as `given`, or compares it with what was fixed.
    pub fn fix(&mut self, name: &'static str, given: &str) -> Result<(), Error> {
        let key = format!("{}settings", self.base(0));
        let (mut set, mut read) = (cmd("HSETNX"), cmd("HGET"));
        set.arg(&key).arg(name).arg(given);
        read.arg(&key).arg(name);
        let answers = self.ask(&[set, read])?;
        let Some(Value::BulkString(stored)) = answers.last() else {
            return Err(Error::Odd(format!("the setting {name} is lost")));
        };
        if stored == given.as_bytes() {
            return Ok(());
        }
        let stored = String::from_utf8_lossy(stored).into_owned();
        let (prefix, given) = (self.prefix().to_owned(), given.to_owned());
        Err(Error::Setting { prefix, name, stored, given })
    }

    /// Writes how much a worker has counted in all: sent twice, it counts once.
    pub fn count(&mut self, worker: u64, counts: &HashMap<String, u64>) -> Result<(), Error> {
        if counts.is_empty() {
            return Ok(());
        }
        let (mut set, mut add) = (cmd("HSET"), cmd("SADD"));
        set.arg(self.counts_of(worker));
        for (name, count) in counts {
            set.arg(name).arg(*count);
        }
        // By this the counters of all are found.
        add.arg(format!("{}counters", self.base(0))).arg(format!("{worker:016x}"));
        self.ask(&[add, set]).map(drop)
    }

    /// The name of the counters of a worker.
    pub(super) fn counts_of(&self, worker: u64) -> String {
        format!("{}counts:{worker:016x}", self.base(partition_of(worker)))
    }

    /// Notes documents that deserve a second look.
    pub fn note_due(&mut self, documents: &[u64]) -> Result<(), Error> {
        let adds: Vec<_> = documents.iter().map(|one| self.of_due("SADD", *one)).collect();
        self.ask(&adds).map(drop)
    }

    /// Takes documents that deserve a second look, at most so many of each partition. Nobody else
    /// gets them, unless an answer was lost, so that nobody knows who took them.
    pub fn take_due(&mut self, most: u64) -> Result<Vec<u64>, Error> {
        let reads = partitions().map(|partition| {
            let mut read = cmd("SRANDMEMBER");
            read.arg(format!("{}due", self.base(partition))).arg(most);
            read
        });
        let reads: Vec<_> = reads.collect();
        let mut due = Vec::new();
        for answer in self.ask(&reads)? {
            let (Value::Array(numbers) | Value::Set(numbers)) = answer else { continue };
            due.extend(numbers.iter().filter_map(|number| match number {
                Value::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse::<u64>().ok(),
                _ => None,
            }));
        }
        due.sort_unstable();
        let takes: Vec<_> = due.iter().map(|document| self.of_due("SREM", *document)).collect();
        let repeated = self.traffic().repeated;
        let mut answers = self.ask(&takes)?.into_iter();
        let is_sure = self.traffic().repeated == repeated;
        due.retain(|_| answers.next() == Some(Value::Int(1)) || !is_sure);
        Ok(due)
    }

    /// A command on the documents that deserve a second look.
    fn of_due(&self, name: &str, document: u64) -> Cmd {
        let mut command = cmd(name);
        command.arg(format!("{}due", self.base(DocumentPlace::of(document).partition)));
        command.arg(document);
        command
    }

    /// Returns the numbers of all documents of the hashes of a number in all partitions, also of
    /// pending ones, in their order.
    pub fn documents_in(&mut self, hash: u64) -> Result<Vec<u64>, Error> {
        let name = DocumentPlace::hash(hash);
        let commands = partitions().map(|partition| {
            let mut keys = cmd("HKEYS");
            keys.arg(format!("{}{name}", self.base(partition)));
            keys
        });
        let commands: Vec<_> = commands.collect();
        let mut numbers = Vec::new();
        for (partition, fields) in partitions().zip(self.ask(&commands)?) {
            let Value::Array(fields) = fields else { continue };
            numbers.extend(fields.iter().filter_map(|field| match field {
                Value::BulkString(field) => DocumentPlace::number(partition, hash, field),
                _ => None,
            }));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Tells what state documents are in, without their rows.
    pub fn states(&mut self, documents: &[u64]) -> Result<Vec<State>, Error> {
        let steps = documents.iter().map(|document| step(*document, Vec::new())).collect();
        let answers = self.steps("states", &[], steps)?;
        let odd = || Error::Odd("a document has no state".to_owned());
        let states = answers.iter().map(|state| match state.split_first() {
            None => Some(State::Nothing),
            Some((b'l', _)) => Some(State::Live),
            Some((b'g', _)) => Some(State::Late(Duration::ZERO)),
            Some((b'k', change)) => Some(State::Locked(change.try_into().ok()?)),
            Some((b'p', left)) => {
                let left: i64 = std::str::from_utf8(left).ok()?.parse().ok()?;
                let late = || State::Late(Duration::from_millis(left.unsigned_abs()));
                Some(if left < 0 { late() } else { State::Pending })
            }
            Some(_) => None,
        });
        states.map(|state| state.ok_or_else(odd)).collect()
    }

    /// Forgets documents that were announced and are past their deadline since so long. Returns
    /// which were.
    pub fn expire(&mut self, documents: &[u64], since: Duration) -> Result<Vec<bool>, Error> {
        let steps = documents.iter().map(|document| step(*document, Vec::new())).collect();
        let answers = self.steps("expire", &[in_millis(since)], steps)?;
        Ok(answers.iter().map(|answer| answer == b"+").collect())
    }

    /// Tells which documents are noted for a second look.
    pub fn are_due(&mut self, documents: &[u64]) -> Result<Vec<bool>, Error> {
        let looks: Vec<_> = documents.iter().map(|one| self.of_due("SISMEMBER", *one)).collect();
        Ok(self.ask(&looks)?.iter().map(|answer| *answer == Value::Int(1)).collect())
    }

    /// Returns the number of the last hash that a partition may have.
    pub fn last_hash(&mut self) -> Result<u64, Error> {
        Ok(DocumentPlace::hash_of(self.last_number()?))
    }
}

fn found(value: &[u8]) -> Result<Found, Error> {
    match value.first() {
        Some(b'l') => live(value).map(Found::Live),
        Some(b'k') => value[1..].first_chunk().map(|change| Found::Locked(*change)),
        Some(b'w') => Some(Found::Waits),
        // Pending and only read, newer, or late.
        None | Some(b'p' | b'n' | b'g') => Some(Found::Nothing),
        Some(_) => None,
    }
    .ok_or_else(|| Error::Odd("a document has no state".to_owned()))
}
