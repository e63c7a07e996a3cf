//! Writes articles to be stored, and mixes of requests, as JSON lines.
//!
//! `articles corpus COUNT` writes the articles 0 to COUNT; `articles mix KNOWN NEAR NEW COUNT STORED
//! RUN` COUNT requests of which KNOWN per cent are stored articles as they are (nid and address are
//! known), NEAR near copies of stored ones, and NEW new ones. No RUN has copies or new articles of
//! another one.

use std::io::{BufWriter, Write, stdout};
use std::process::ExitCode;

use service::{Article, Random, Words};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Numbers of one run.
const RUN: u64 = 100_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Option<Vec<u64>> = arguments.iter().skip(1).map(|a| a.parse().ok()).collect();
    match (arguments.first().map(String::as_str), numbers.as_deref()) {
        (Some("corpus"), Some(&[count])) => {
            let words = Words::new();
            write((0..count).map(|number| words.article(number)))
        }
        (Some("mix"), Some(&[known, near, new, count, stored, run]))
            if known + near + new == 100 =>
        {
            let (words, mut random) = (Words::new(), Random::new(run ^ 0xa0_0001));
            write((0..count).map(|number| {
                let own = (run + 1) * RUN + number;
                let old = random.below(stored);
                match random.below(100) {
                    kind if kind < known => words.article(old),
                    kind if kind < known + near => words.near_copy(old, own),
                    _ => words.article(own),
                }
            }))
        }
        _ => {
            eprintln!("usage: articles corpus COUNT | mix KNOWN NEAR NEW COUNT STORED RUN");
            ExitCode::from(2)
        }
    }
}

fn write(articles: impl Iterator<Item = Article>) -> ExitCode {
    let mut out = BufWriter::with_capacity(1 << 20, stdout().lock());
    for article in articles {
        let line = serde_json::to_string(&article).expect("texts have a form in JSON");
        if writeln!(out, "{line}").is_err() {
            return ExitCode::FAILURE;
        }
    }
    out.flush().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}
