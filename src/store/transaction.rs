//! Writes that are kept together, wherever they are kept: in a file ([`Batch`]), or by servers that
//! many share.

use super::{Batch, Error, Reading, Table, Writing};

/// Writes that are kept together, or not at all. A read sees the writes before it.
pub trait Transaction: Reading + Writing {
    /// Takes the next number of the sequence `name`, starting at 1.
    fn next_number(&mut self, name: &'static str) -> Result<u64, Error>;

    /// Takes the next number of the sequence `name` that nothing else gives.
    fn next_unique_number(&mut self, name: &'static str) -> Result<u64, Error>;

    /// Adds `by` to the counter `name`.
    fn count(&mut self, name: &str, by: u64) -> Result<(), Error>;

    /// Appends to a log.
    fn append(&mut self, log: Table<u64, Vec<u8>>, bytes: &[u8]);

    /// Tells whether the texts of other contents are at hand, so that one may be compressed against
    /// another.
    fn has_texts(&self) -> bool {
        true
    }
}

impl Transaction for Batch {
    fn next_number(&mut self, name: &'static str) -> Result<u64, Error> {
        self.next_number(name)
    }

    fn next_unique_number(&mut self, name: &'static str) -> Result<u64, Error> {
        self.next_unique_number(name)
    }

    fn count(&mut self, name: &str, by: u64) -> Result<(), Error> {
        self.count(name, by)
    }

    fn append(&mut self, log: Table<u64, Vec<u8>>, bytes: &[u8]) {
        self.append(log, bytes);
    }
}
