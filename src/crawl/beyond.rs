//! What lies beyond the store of a crawl that is one of many: the corpus that all of them share,
//! links to and from the others, and the right to go on. A crawl on one machine has nothing of it.

use std::any::Any;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::corpus::clusters::Article;
use crate::frontier::{LinksSent, Mark, SentLink, Share};

/// A turn at an IP address, which ends when this is dropped.
pub type HeldTurn = Box<dyn Any + Send>;

/// The turn of an IP address, or the time after which to ask again.
pub type Turn<'a> = Pin<Box<dyn Future<Output = Result<HeldTurn, Duration>> + Send + 'a>>;

/// What a crawl asks of those beyond it. Its committer calls all of it but [`Beyond::is_held`] and
/// [`Beyond::turn`], which are those of visitors.
pub trait Beyond: Debug + Send + Sync {
    /// Returns which hosts are those of this crawl.
    fn share(&self) -> Share;

    /// Tells whether the crawl goes on until it is stopped: then it visits again what becomes due
    /// meanwhile.
    fn goes_on(&self) -> bool;

    /// Tells whether somebody else may have contacted these hosts before.
    fn was_held(&self) -> bool;

    /// Tells whether requests may be sent and batches may be committed at this moment.
    fn is_held(&self) -> bool;

    /// Tells whether that will never be so again: the crawl has to end.
    fn is_lost(&self) -> bool;

    /// Asks for the turn of an IP address, by its hash.
    fn turn(&self, address: u64) -> Turn<'_>;

    /// Takes what has happened in the corpus of this crawl, in the order in which it did. May wait
    /// while too much of it is under way.
    fn hand_over(&self, change: CorpusChange);

    /// Waits until all that was handed over is stored, and tells whether the batch that it came
    /// from may be committed.
    ///
    /// # Errors
    ///
    /// If it must not be: then its pages are visited again, and what was stored of them is found.
    fn settle(&self) -> Result<(), BeyondError>;

    /// Returns the mark of the batch that is about to be committed.
    fn mark(&self) -> Mark;

    /// Tells whether [`Beyond::news`] has anything.
    fn has_news(&self) -> bool;

    /// Takes what has come since the last call.
    fn news(&self) -> News;

    /// Hears that a batch is on the disk.
    fn committed(&self, batch: CommittedBatch);

    /// Hears whether the crawl has nothing to do at the moment.
    fn set_quiet(&self, quiet: bool);
}

/// What has happened in the corpus of a crawl.
#[derive(Debug, Clone)]
pub enum CorpusChange {
    /// A page was read for the first time, or says something else.
    Place {
        /// What it says.
        article: Box<Article>,
        /// Distinct hosts that link to it.
        links: u64,
    },
    /// The page of a copy is gone.
    Leave(String),
    /// What came as a page was none.
    Retract(String),
    /// More hosts link to a copy.
    Links {
        /// URL of the copy.
        url: String,
        /// Distinct hosts that link to it.
        links: u64,
    },
}

/// What has come for a crawl.
#[derive(Debug, Default)]
pub struct News {
    /// Links that others have found.
    pub links: Vec<SentLink>,
    /// Where in the stream of links the last of them stands.
    pub last: Option<String>,
    /// Links to others that have arrived there.
    pub sent: Vec<LinksSent>,
}

impl News {
    /// Tells whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.is_none() && self.sent.is_empty()
    }
}

/// A batch that is on the disk.
#[derive(Debug, Default)]
pub struct CommittedBatch {
    /// Where in the stream of links the last one stands that was offered in it.
    pub last: Option<String>,
    /// It has links to others.
    pub has_links: bool,
}

/// Why a batch must not be committed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BeyondError {
    /// Somebody else may have these hosts by now.
    #[error("the lease of shard {0} has ended: what was not committed is visited again")]
    Lost(u32),
    /// The corpus that is shared cannot be written.
    #[error("shard {shard} cannot store its pages: {detail}")]
    Failed {
        /// The shard.
        shard: u32,
        /// Why, and the way out.
        detail: String,
    },
}
