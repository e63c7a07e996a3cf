//! The dedup stage over a store: the judge of [`crate::neardup`] is asked about what is stored, in
//! the transaction that stores its answer.

mod ahead;
mod compare;
mod expiry;
mod looks;
mod lookup;
mod place;
mod sent;
mod stored;

pub use super::index::Error;
pub use ahead::{AskedAhead, CommittedContents};
pub use compare::{Comparison, Side, compare, compare_sides};
pub use expiry::{Expiry, expire, old};
pub use looks::{Looked, Looks, PAGES_MAX, Placer, Range, TIME_MAX, United};
pub use lookup::{Keep, Lookup};
pub use place::{Corpus, Placed, Popularity};
pub use sent::{known_content, sent_as};
pub use stored::{Judged, begin, equal_contents, judge_stored, keys_at, settle, settle_after};
