//! A cluster of servers that many workers share, by the protocol of Redis Cluster.
//!
//! In: rows of documents, and postings by which these are found. Out: the same, from any worker.
//! Nothing here knows what a document or a duplicate is.
//!
//! | step | atomic on | what holds |
//! |---|---|---|
//! | announce | a document | its number is pending until a deadline |
//! | post | a bucket | whoever looks from then on sees its postings, and it sees those before |
//! | look | a document | what is pending and older is waited for; what is newer is marked |
//! | settle | a document | it is live unless it was marked, and so must look again, or is late |
//! | write | a document | only if nobody has written it since it was read |
//! | change | several documents | all are written or none, whoever dies in between |
//!
//! All who race announce and post before they look, so that of two at least one sees the other, and
//! the newer one waits: the same text never becomes two documents.

mod assignment;
mod changes;
mod documents;
mod engine;
mod error;
mod keys;
mod leases;
mod links;
mod postings;
mod scan;
mod settings;
mod told;
mod turns;

pub use assignment::owners;
pub use changes::{Change, Written};
pub use documents::{Found, How, Live, Look, Row, Settled, State, Version, Write};
pub use engine::{Engine, Traffic};
pub use error::Error;
pub use keys::{Buckets, NUMBER_MAX, PARTITIONS, Table};
pub use leases::{SHARDS_MAX, ShardLease, ShardState, Taken};
pub use links::{LinksRead, LinksTo, ReadFrom};
pub use postings::Posting;
pub use scan::{NodeMemory, SETTINGS};
pub use settings::{Node, PREFIX, Secret, Settings};
pub use told::ShardLook;
pub use turns::{TurnAnswer, TurnLimits, TurnOf};
