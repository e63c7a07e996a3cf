//! Finds near-duplicates among the lines of a file, in memory: `cargo run --example dedup -- FILE`

#![allow(clippy::print_stdout, reason = "it prints what it found")]

use std::error::Error;

use uniqcrawl::{DedupConfig, Deduplicator, InputDocument, Verdict};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name a file of one text a line")?;
    let mut dedup = Deduplicator::new(DedupConfig::default())?;
    for (number, text) in std::fs::read_to_string(path)?.lines().enumerate() {
        match dedup.judge(InputDocument { text, ..InputDocument::default() }) {
            Verdict::New => println!("{number} new"),
            Verdict::Duplicate { first, key, .. } => {
                println!("{number} copy of {first} by {}", key.as_str());
            }
        }
    }
    Ok(())
}
