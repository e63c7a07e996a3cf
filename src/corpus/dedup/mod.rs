//! The dedup stage over a store: the judge of [`crate::neardup`] is asked about what is stored, in
//! the transaction that stores its answer.

mod compare;
mod expiry;
mod lookup;
mod looks;
mod place;
mod stored;

pub use super::index::Error;
pub use compare::{Comparison, Side, compare, compare_sides};
pub use expiry::{Expiry, expire, old};
pub use lookup::{Keep, Lookup};
pub use looks::{Looked, Looks, PAGES_MAX, Placer, Range, TIME_MAX, United};
pub use place::{Corpus, Placed, Popularity};
pub use stored::{Judged, begin, equal_contents, judge_stored, settle};
