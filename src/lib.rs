//! A polite, crash-safe web crawler that removes duplicate pages while it crawls.
//!
//! What programs use stands at the root: [`Crawler`] runs a crawl, [`StoreReader`] reads what it
//! stored, [`extract`] reads one page, [`robots`] a robots.txt, and [`Deduplicator`] finds
//! near-duplicates in memory.
//!
//! The rooms stand in reading order, lowest first: each uses only those before it
//! (`tests/it/tidy.rs` holds the order and enforces it).

#![cfg_attr(
    not(feature = "internals"),
    allow(
        dead_code,
        unused_imports,
        unreachable_pub,
        reason = "some of it is for tests and benches"
    )
)]

// Written out: the formatter does not find modules in a macro.
#[cfg(feature = "internals")]
pub mod base;
#[cfg(not(feature = "internals"))]
mod base;

#[cfg(feature = "internals")]
pub mod localweb;
#[cfg(not(feature = "internals"))]
mod localweb;

#[cfg(feature = "internals")]
pub mod urls;
#[cfg(not(feature = "internals"))]
mod urls;

#[cfg(feature = "internals")]
pub mod store;
#[cfg(not(feature = "internals"))]
mod store;

#[cfg(feature = "internals")]
pub mod text;
#[cfg(not(feature = "internals"))]
mod text;

#[cfg(feature = "internals")]
pub mod page;
#[cfg(not(feature = "internals"))]
mod page;

#[cfg(feature = "internals")]
pub mod web;
#[cfg(not(feature = "internals"))]
mod web;

#[cfg(feature = "internals")]
pub mod warc;
#[cfg(not(feature = "internals"))]
mod warc;

#[cfg(feature = "internals")]
pub mod neardup;
#[cfg(not(feature = "internals"))]
mod neardup;

#[cfg(feature = "internals")]
pub mod frontier;
#[cfg(not(feature = "internals"))]
mod frontier;

#[cfg(feature = "internals")]
pub mod corpus;
#[cfg(not(feature = "internals"))]
mod corpus;

#[cfg(feature = "internals")]
pub mod crawl;
#[cfg(not(feature = "internals"))]
mod crawl;

#[cfg(all(feature = "internals", feature = "service"))]
pub mod service;
#[cfg(all(not(feature = "internals"), feature = "service"))]
mod service;

#[cfg(feature = "internals")]
pub mod config;
#[cfg(not(feature = "internals"))]
mod config;

mod library;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;

#[cfg(feature = "service")]
pub use library::Server;
pub use library::{
    CrawlSummary, CrawledDocument, Crawler, CrawlerBuilder, Documents, Extracted, LibraryError,
    StopHandle, StoreReader, extract,
};
pub use neardup::{
    Config as DedupConfig, Deduplicator, Error as DedupError, InputDocument, Key, Likeness,
    Preset as DedupPreset, Verdict,
};
pub use web::robots;
