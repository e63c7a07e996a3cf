//! A polite, crash-safe web crawler that removes duplicate pages while it crawls.
//!
//! The rooms stand in reading order, lowest first: each uses only those before it
//! (`tests/it/tidy.rs` holds the order and enforces it).

pub mod base;
pub mod localweb;
pub mod urls;

pub mod store;

pub mod text;

pub mod page;

pub mod web;

pub mod neardup;

pub mod frontier;

pub mod corpus;

pub mod crawl;

pub mod service;

pub mod config;
