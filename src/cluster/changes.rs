//! Changes of several documents: all are written, or none, whoever dies in between.
//!
//! ```text
//! begin the change -> lock each document -> decide -> write and unlock each -> forget the change
//! ```
//!
//! Whoever meets a lock asks for its change: a change that was decided is carried out, one whose
//! time is over never was. Only whoever began a change forgets it, who may ask again what became
//! of it; where that worker has died, a check does.

use std::thread::sleep;
use std::time::Duration;

use redis::{Value, cmd};

use super::documents::{in_millis, step};
use super::keys::partition_of;
use super::{Engine, Error, Found, How, Look, Version, Write};

/// Wait before a locked document is looked at again.
const WAIT: Duration = Duration::from_millis(5);

/// A change of several documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change(pub [u8; 16]);

/// What became of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// All were done.
    All,
    /// None was: somebody has written one of the documents since it was read.
    None,
}

impl Change {
    /// Names the change of a worker with such a number.
    #[must_use]
    pub fn of(worker: u64, number: u64) -> Self {
        let mut name = [0; 16];
        name[..8].copy_from_slice(&worker.to_be_bytes());
        name[8..].copy_from_slice(&number.to_be_bytes());
        Self(name)
    }

    /// Returns the partition in which it is noted.
    #[must_use]
    pub fn partition(self) -> u64 {
        let bytes: [u8; 8] = std::array::from_fn(|at| self.0[at] ^ self.0[8 + at]);
        partition_of(u64::from_be_bytes(bytes))
    }
}

/// Packs writes, for whoever has to carry them out.
fn pack(writes: &[Write]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Write { document, row, .. } in writes {
        bytes.extend_from_slice(&document.to_be_bytes());
        bytes.extend_from_slice(&(row.len() as u32).to_be_bytes());
        bytes.extend_from_slice(row);
    }
    bytes
}

fn unpack(mut bytes: &[u8]) -> Option<Vec<Write>> {
    let mut writes = Vec::new();
    while !bytes.is_empty() {
        let (document, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (row, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let (document, version) = (u64::from_be_bytes(*document), Version::NONE);
        writes.push(Write { document, version, row: row.to_vec() });
        bytes = rest;
    }
    Some(writes)
}

/// Where a change stands.
enum State {
    Undecided,
    Done(Vec<Write>),
    Over,
}

impl Engine {
    /// Writes several documents together; whether they are must be decided within `span`. A
    /// document of no version is new; one that was announced must be pending yet.
    pub fn write_together(
        &mut self,
        change: Change,
        writes: &[Write],
        span: Duration,
    ) -> Result<Written, Error> {
        self.ask_change(change, "u", in_millis(span))?;
        if !self.lock_all(change, writes)? {
            self.end_change(change, writes, false)?;
            return Ok(Written::None);
        }
        tracing::trace!("locked");
        match self.ask_change(change, "c", pack(writes))? {
            State::Done(_) => {}
            State::Undecided | State::Over => {
                self.end_change(change, writes, false)?;
                return Ok(Written::None);
            }
        }
        tracing::trace!("decided");
        self.end_change(change, writes, true)?;
        Ok(Written::All)
    }

    fn lock_all(&mut self, change: Change, writes: &[Write]) -> Result<bool, Error> {
        let steps = writes.iter().map(|write| step(write.document, vec![write.version.0.to_vec()]));
        let answers = self.steps("lock", &[change.0.to_vec(), self.name()], steps.collect())?;
        Ok(answers.iter().all(|answer| answer == b"+"))
    }

    /// Ends the locks of a change, and forgets it.
    fn end_change(&mut self, change: Change, writes: &[Write], done: bool) -> Result<(), Error> {
        self.end_locks(change, writes, done)?;
        self.ask_change(change, "f", Vec::new()).map(drop)
    }

    fn end_locks(&mut self, change: Change, writes: &[Write], done: bool) -> Result<(), Error> {
        let keep = if done { b"0" } else { b"1" };
        let steps = writes.iter().map(|write| {
            let row = if done { write.row.clone() } else { Vec::new() };
            step(write.document, vec![row, keep.to_vec()])
        });
        self.steps("unlock", &[change.0.to_vec()], steps.collect()).map(drop)
    }

    fn ask_change(&mut self, change: Change, what: &str, more: Vec<u8>) -> Result<State, Error> {
        let mut call = self.function("change", change.partition());
        call.arg(&change.0[..]).arg(what).arg(more);
        let odd = || Error::Odd("a change has no state".to_owned());
        let Value::BulkString(state) = self.ask_one(call)? else { return Err(odd()) };
        match state.split_first() {
            Some((b'u', _)) => Ok(State::Undecided),
            Some((b'c', writes)) => Ok(State::Done(unpack(writes).ok_or_else(odd)?)),
            Some((b'a', _)) => Ok(State::Over),
            _ => Err(odd()),
        }
    }

    /// Looks at documents, and waits until none is locked: what a change that was decided has left
    /// undone is done.
    pub fn look_unlocked(&mut self, looks: &[Look]) -> Result<Vec<Found>, Error> {
        let mut all = self.look(looks)?;
        loop {
            let locked: Vec<(usize, [u8; 16])> = all
                .iter()
                .enumerate()
                .filter_map(|(at, found)| match found {
                    Found::Locked(change) => Some((at, *change)),
                    _ => None,
                })
                .collect();
            if locked.is_empty() {
                return Ok(all);
            }
            for (at, change) in &locked {
                self.unlock(Change(*change), looks[*at].document)?;
            }
            let again: Vec<Look> = locked.iter().map(|(at, _)| looks[*at]).collect();
            for ((at, _), found) in locked.iter().zip(self.look(&again)?) {
                all[*at] = found;
            }
        }
    }

    /// Carries out a change that has locked a document, or ends its lock if it never was; waits a
    /// little while that is not decided.
    fn unlock(&mut self, change: Change, document: u64) -> Result<(), Error> {
        match self.ask_change(change, "x", Vec::new())? {
            State::Undecided => {
                sleep(WAIT);
                Ok(())
            }
            State::Done(writes) => self.end_locks(change, &writes, true),
            State::Over => {
                let lock = [Write { document, version: Version::NONE, row: Vec::new() }];
                self.end_locks(change, &lock, false)
            }
        }
    }

    /// Returns the changes of a partition that were begun and have not ended.
    pub fn changes(&mut self, partition: u64) -> Result<Vec<Change>, Error> {
        let mut keys = cmd("HKEYS");
        keys.arg(format!("{}t", self.base(partition)));
        let Value::Array(names) = self.ask_one(keys)? else { return Ok(Vec::new()) };
        let names = names.into_iter().filter_map(|name| match name {
            Value::BulkString(name) => Some(Change(name.try_into().ok()?)),
            _ => None,
        });
        Ok(names.collect())
    }

    /// Ends a change that nobody else ends: one that was decided is carried out, one past its
    /// deadline is dropped. Tells whether it has ended.
    pub fn finish(&mut self, change: Change) -> Result<bool, Error> {
        match self.ask_change(change, "x", Vec::new())? {
            State::Undecided => Ok(false),
            State::Done(writes) => self.end_change(change, &writes, true).map(|()| true),
            State::Over => Ok(true),
        }
    }

    /// Reads documents, whatever is pending.
    pub fn read(&mut self, documents: &[u64]) -> Result<Vec<Found>, Error> {
        let looks = documents.iter().map(|document| Look { document: *document, how: How::Read });
        self.look_unlocked(&looks.collect::<Vec<_>>())
    }
}
