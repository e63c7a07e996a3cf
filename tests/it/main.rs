//! All integration tests, in one binary. `tidy` fails when a file is missing from this list.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stderr, reason = "a test says what it had no data for")]
#![allow(clippy::format_collect, reason = "pages of tests are small")]

mod batch;
mod boilerplate;
mod bounds;
mod browser;
mod canonical;
mod changes;
mod charset;
mod check;
mod cli;
mod corpus;
mod crawl;
mod dashboard;
mod dashboard_use;
mod dedup;
mod discover;
mod extract;
mod fairness;
mod features;
mod forest;
mod groups;
mod hops;
mod hostile;
mod index;
mod intake;
mod jobs;
mod jobs_day;
mod judge;
mod kill;
mod kill_points;
mod lab;
mod layouts;
mod main_text;
mod metadata;
mod moves;
mod operation;
mod pace;
mod polite;
mod reasons;
mod recrawl;
mod robots;
mod rules;
mod search;
mod search_index;
mod serve;
mod serve_crawl;
mod serve_jobs;
mod serve_lists;
mod serve_search;
mod serve_verdicts;
mod servers;
mod service;
mod sitemaps;
mod soft404;
mod standing;
mod store;
mod support;
mod terms;
mod tidy;
mod trap_crawls;
mod traps;
mod urls;
mod verdicts;
