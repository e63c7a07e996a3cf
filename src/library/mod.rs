//! The library as a program uses it: run a crawl, read what it stored, read a page, ask a
//! robots.txt, find near-duplicates in memory. Its items are found at the root of the crate.

mod crawler;
mod extracted;
mod reader;
#[cfg(feature = "service")]
mod server;

use std::error::Error as StdError;
use std::path::Path;

use crate::config::Config;
use crate::store::Store;
use crate::text::features::Fingerprinter;

pub use crawler::{CrawlSummary, Crawler, CrawlerBuilder, StopHandle};
pub use extracted::{Extracted, extract};
pub use reader::{CrawledDocument, Documents, StoreReader};
#[cfg(feature = "service")]
pub use server::Server;

/// Why something that a program asked for could not be done. A bad page or site is never among the
/// reasons: it is an outcome of a crawl.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// A setting is unknown, or has a value that it cannot have.
    #[error("the settings cannot be used: {0}")]
    Settings(#[source] Box<dyn StdError + Send + Sync>),
    /// A seed is no URL.
    #[error("the seed cannot be crawled: {0}")]
    Seed(#[source] Box<dyn StdError + Send + Sync>),
    /// There is nothing to start from.
    #[error("there is no seed: name one with `CrawlerBuilder::seed`")]
    NoSeed,
    /// The store cannot be opened, read or written.
    #[error("the store failed: {0}")]
    Store(#[source] Box<dyn StdError + Send + Sync>),
    /// The crawl could not begin or go on. What it has committed stays.
    #[error("the crawl failed: {0}")]
    Crawl(#[source] Box<dyn StdError + Send + Sync>),
    /// The service cannot begin.
    #[error("the service cannot begin: {0}")]
    Service(#[source] Box<dyn StdError + Send + Sync>),
}

impl LibraryError {
    fn store(error: impl StdError + Send + Sync + 'static) -> Self {
        Self::Store(Box::new(error))
    }

    #[cfg(feature = "service")]
    fn service(error: impl StdError + Send + Sync + 'static) -> Self {
        Self::Service(Box::new(error))
    }

    fn settings(error: impl StdError + Send + Sync + 'static) -> Self {
        Self::Settings(Box::new(error))
    }
}

/// Opens the store of a crawl or a service, or makes it, once its settings are known to be right.
fn open_store(config: &Config, folder: &Path) -> Result<Store, LibraryError> {
    config.settings().check().map_err(LibraryError::settings)?;
    let features = Fingerprinter::for_articles(config.dedup.features.clone());
    let features = features.map_err(LibraryError::settings)?.name();
    let store = Store::open_or_create(folder, config.cache_bytes());
    let store = store.map_err(LibraryError::store)?;
    store.fix_setting("features", &features).map_err(LibraryError::store)?;
    Ok(store)
}
