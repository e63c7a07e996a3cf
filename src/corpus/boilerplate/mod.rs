//! What the pages of a host have in common, learned while they are crawled.
//!
//! A crawler sees many pages of a host and a reader of one page does not: a block that stands in
//! the main text of many of them is no part of any. Counted are hashes of the blocks that the
//! reader of a page kept, by host, of bounded number, with the last pages counting most.

mod counts;
mod error_pages;
mod hosts;

use serde::{Deserialize, Serialize};

pub use counts::Counts;
pub use error_pages::{Answer, ErrorPage, ErrorPages, is_probe, probe_of};
pub use hosts::{HostBlocks, KnownBlocks, Repeated};

/// How what repeats is treated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Leave blocks that repeat on many pages of a host out of the text.
    pub learn_boilerplate: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { learn_boilerplate: true }
    }
}
