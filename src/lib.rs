//! A polite, crash-safe web crawler that removes duplicate pages while it crawls.
//!
//! The modules stand in reading order, lowest layer first: a module uses only modules of lower
//! ranks (`tests/it/tidy.rs` holds the list and enforces it).

pub mod clock;
pub mod localweb;
pub mod outputs;
pub mod simhash;
pub mod sketch;
pub mod store;
pub mod system;
pub mod text;
pub mod units;
pub mod urls;

pub mod boilerplate;
pub mod extract;
pub mod features;
pub mod index;
pub mod robots;
pub mod rules;
pub mod verdicts;

pub mod discover;
pub mod documents;
pub mod forest;

pub mod clusters;
pub mod fetch;
pub mod frontier;

pub mod check;
pub mod dedup;
pub mod explain;
pub mod export;
pub mod search;

pub mod corpus;
pub mod crawl;

pub mod intake;
pub mod jobs;

pub mod api;

pub mod config;
