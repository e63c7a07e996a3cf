//! Published duplicates: which URLs are copies of which document, as another crawl has found.
//!
//! A feed is a file of lines: a header, one line for each copy, and a last line with their number
//! and checksum. A crawl that is given a feed does not fetch a copy whose canonical page it has, or
//! is about to have. It believes no feed for long: some copies are fetched all the same, and a
//! single one that is no copy ends the force of the feed for that host.

mod feed;
mod import;
mod known;
mod read;
mod rows;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::store;

pub use feed::{Addresses, Duplicate, FeedEnd, FeedWriter, Header};
pub use import::{WholeFeed, import_all};
pub use known::{DAY_MS, FeedSays, Known, Lost, said_of};
pub use read::{FeedItem, Reader};
pub use rows::{Feed, FeedHost, Role};

/// Which feeds are used, and how far they are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Feeds that are in force in this run.
    pub known: Vec<PathBuf>,
    /// Of so many copies of a host that a feed names, one is fetched all the same; 0 for none.
    pub explore_one_in: u64,
    /// Until so many duplicates of a feed have held, the first copy of each host is fetched.
    pub proof_pairs: u64,
    /// Hosts for which a feed has been wrong after which it is not believed for any; 0 for no
    /// such limit.
    pub lost_hosts_max: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { known: Vec::new(), explore_one_in: 30, proof_pairs: 20, lost_hosts_max: 3 }
    }
}

/// Why a feed cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be opened.
    #[error("cannot read the feed {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// A line is not what it should be.
    #[error("{}:{line}: {detail}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        detail: String,
    },
    /// Its URLs have another normal form.
    #[error(
        "{}:1: its URLs were made with {name} = {theirs}, not {ours}: they would not be found",
        path.display()
    )]
    Rules {
        /// The file.
        path: PathBuf,
        /// The rule that differs.
        name: String,
        /// Its value in the feed.
        theirs: String,
        /// Its value here.
        ours: String,
    },
    /// It was exchanged since it was read for the first time.
    #[error("the feed {} is another one than it was", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}
