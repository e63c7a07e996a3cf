//! The corpus: articles in their places.
//!
//! In: an article with its keys. Out: its document, copy and canonical copy; and what is made of
//! them: exports, answers to searches, explanations, checks.

pub mod boilerplate;
pub mod changes;
pub mod check;
pub mod clusters;
pub mod dedup;
pub mod documents;
pub mod explain;
pub mod export;
pub mod files;
pub mod import;
pub mod index;
pub mod merge;
pub mod migrate;
pub mod rewrite;
#[cfg(feature = "search")]
pub mod search;
#[cfg(feature = "cluster")]
pub mod shared;
pub mod tables;
#[cfg(feature = "cluster")]
pub mod transfer;
