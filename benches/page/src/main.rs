//! Where the processor time of a page goes, stage by stage, beside the bare limit: a client that
//! only reads and a parser that only parses.
//! Usage: page-cost [--pages N] [--rounds N] [--digests] [english|chinese|FOLDER]
//!
//! Without a folder the pages are made; with one, all files in it are pages.
//! Each page goes through all stages in each round. Of each stage of each page the median of all
//! rounds counts, so that whatever else the machine does has little weight; beside it stands the
//! least. `--digests` prints
//! a hash of all that is made of each page instead: two builds that differ in time alone print the
//! same.

mod http;
mod made;
mod stages;
mod write;

use std::path::Path;
use std::time::Duration;

use made::Words;
use stages::{Stages, Taken};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is asked for.
struct Arguments {
    pages: usize,
    rounds: usize,
    digests: bool,
    /// A language or a folder.
    of: Option<String>,
}

impl Arguments {
    fn read() -> Self {
        let mut arguments = std::env::args().skip(1);
        let mut all = Self { pages: 500, rounds: 7, digests: false, of: None };
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().and_then(|number| number.parse().ok());
            match argument.as_str() {
                "--pages" => all.pages = number().expect("a number of pages"),
                "--rounds" => all.rounds = number().expect("a number of rounds"),
                "--digests" => all.digests = true,
                _ => all.of = Some(argument),
            }
        }
        all
    }
}

fn main() {
    let arguments = Arguments::read();
    let of = arguments.of.as_deref();
    if let Some(folder) = of.filter(|of| !["english", "chinese"].contains(of)) {
        let pages = files(Path::new(folder), arguments.pages);
        return show(folder, &pages, &arguments);
    }
    let made: [(&str, fn() -> Words); 2] =
        [("english", Words::english), ("chinese", Words::chinese)];
    for (name, words) in made.into_iter().filter(|(name, _)| of.is_none_or(|of| of == *name)) {
        let words = words();
        let pages = (0..arguments.pages as u64).map(|number| words.page(number).into_bytes());
        show(name, &pages.collect::<Vec<_>>(), &arguments);
    }
}

/// Reads the files of a folder, in the order of their names.
fn files(folder: &Path, most: usize) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths.truncate(most);
    paths.iter().map(|path| std::fs::read(path).expect("the file can be read")).collect()
}

fn show(name: &str, pages: &[Vec<u8>], arguments: &Arguments) {
    if !arguments.digests {
        return table(name, pages, arguments.rounds);
    }
    let mut stages = Stages::new(pages, true);
    stages.round();
    for (at, digest) in stages.digests().iter().enumerate() {
        println!("{name} {at} {digest:016x}");
    }
}

fn table(name: &str, pages: &[Vec<u8>], rounds: usize) {
    assert!(!pages.is_empty(), "there is no page");
    let bytes: usize = pages.iter().map(Vec::len).sum();
    let mean = |time: Duration| time.as_secs_f64() * 1e6 / pages.len() as f64;
    let line = |name: &str, taken: Taken| {
        println!("  {name:28} {:8.1} {:8.1}", mean(taken.median), mean(taken.least));
    };
    println!("{name}: {} pages of {} bytes, microseconds a page", pages.len(), bytes / pages.len());
    println!("  {:28} {:>8} {:>8}", "", "median", "least");
    let bare = [http::read(pages, rounds), parse(pages, rounds)];
    line("bare: HTTP client", bare[0]);
    line("bare: parser", bare[1]);
    let mut stages = Stages::new(pages, false);
    let mut articles = Vec::new();
    for _ in 0..rounds {
        articles = stages.round();
    }
    let mut all = stages.times();
    all.extend(write::write(&articles, rounds));
    all.iter().for_each(|(name, taken)| line(name, *taken));
    line("all without HTTP client", all.into_iter().map(|(_, taken)| taken).sum());
    line("bare limit", bare.into_iter().sum());
}

/// Parses all pages.
fn parse(pages: &[Vec<u8>], rounds: usize) -> Taken {
    let of = |page: &Vec<u8>| {
        let mut times: Vec<Duration> = (0..rounds)
            .map(|_| {
                let started = stages::now();
                let text = String::from_utf8_lossy(page);
                let nodes = scraper::Html::parse_document(&text).tree.values().len();
                assert!(nodes > 0);
                stages::now().saturating_sub(started)
            })
            .collect();
        Taken::of(&mut times)
    };
    pages.iter().map(of).sum()
}
