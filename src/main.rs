//! The binary `crawl`.
fn main() {}
