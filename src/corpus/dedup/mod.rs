//! The dedup stage over a store: the judge of [`crate::neardup`] is asked about what is stored, in
//! the transaction that stores its answer.

use crate::neardup;
use crate::store;

mod compare;
mod expiry;
mod looks;
mod place;
mod stored;

pub use compare::{Comparison, Side, compare, compare_sides};
pub use expiry::{Expiry, expire, old};
pub use looks::{Looked, Looks, PAGES_MAX, Placer, Range, TIME_MAX, United};
pub use place::{Corpus, Placed, Popularity};
pub use stored::{Judged, begin, judge_stored, load, lock};

/// Why the dedup stage of a store cannot work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Its settings cannot be.
    #[error(transparent)]
    Settings(#[from] neardup::Error),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
}
