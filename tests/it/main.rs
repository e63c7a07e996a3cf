//! All integration tests, in one binary. `tidy` fails when a file is missing from this list.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stderr, reason = "a test says what it had no data for")]
#![allow(clippy::format_collect, reason = "pages of tests are small")]

mod batch;
mod boilerplate;
mod bounds;
mod charset;
mod check;
mod cli;
mod corpus;
mod crawl;
mod dedup;
mod discover;
mod extract;
mod features;
mod forest;
mod hostile;
mod index;
mod judge;
mod kill;
mod layouts;
mod main_text;
mod metadata;
mod moves;
mod robots;
mod sitemaps;
mod store;
mod support;
mod terms;
mod tidy;
mod urls;
