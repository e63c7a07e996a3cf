//! Numbers of documents and contents: a worker takes many at a time.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::Range;

use crate::cluster::{Engine, Error};

/// Numbers that are taken at a time.
const TAKEN: u64 = 1_024;

/// Numbers that were taken and not given yet.
#[derive(Debug, Default)]
pub(super) struct Numbers(Range<u64>);

impl Numbers {
    /// Returns a number that nobody else has.
    pub(super) fn next(&mut self, engine: &mut Engine) -> Result<u64, Error> {
        if self.0.is_empty() {
            let first = engine.numbers(TAKEN)?;
            self.0 = first..first + TAKEN;
        }
        Ok(self.0.next().expect("some were taken"))
    }
}

/// Draws the number of a worker, never 0.
pub(super) fn draw() -> u64 {
    // Keyed by the random numbers of the system.
    RandomState::new().build_hasher().finish().max(1)
}
