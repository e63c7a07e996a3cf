//! Articles placed by several processes into one corpus on six nodes of a cluster.
//!
//! ```text
//! cargo bench --bench cluster -- place ARTICLES WORKERS BATCH [FILLED]
//! cargo bench --bench cluster -- race ARTICLES WORKERS KILLED PAUSED      (in hundredths)
//! cargo bench --bench cluster -- failures LOOPS [FAILURE]
//! cargo bench --bench cluster -- recall TEXTS
//! cargo bench --bench cluster -- links LINKS SHARDS BATCH
//! ```
//!
//! `place` tells articles a second, round trips, bytes, processor time and memory of the nodes; one
//! article of five is an edited copy. With `FILLED`, six primaries hold that many documents before,
//! of made keys. `race` has five edited copies of each text next to each other, kills and pauses
//! workers at random steps, and tells what was lost or doubled. `failures` does the same with each
//! failure of nodes and workers in a loop. `recall` tells how many edited copies are found by how
//! many bands of the sketch. `links` tells what links cost that go from shard to shard.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    missing_docs,
    reason = "a bench"
)]

mod chance;
mod failures;
mod fill;
mod links;
mod made;
mod memory;
mod nodes;
mod place;
mod race;
mod recall;
mod work;

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let number = |at: usize, or: u64| words.get(at).map_or(or, |word| word.parse().unwrap());
    match words.first().map(String::as_str) {
        Some("worker") => work::work(&work::Task::read(&words[1..])),
        Some("links-send") => links::send(&words[1..]),
        Some("links-take") => links::take(&words[1..]),
        Some("links") => links::links(number(1, 200_000), number(2, 16) as u32, number(3, 1_000)),
        Some("race") => race::race(number(1, 20_000), number(2, 4), number(3, 1), number(4, 1)),
        Some("failures") => failures::run(number(1, 20), words.get(2).map(String::as_str)),
        Some("recall") => recall::run(number(1, 2_000)),
        Some("place") | None => {
            let articles = number(1, 20_000);
            for workers in words.get(2).map_or(vec![1, 2, 4], |word| vec![word.parse().unwrap()]) {
                place::place(articles, workers, number(3, 128), number(4, 0));
            }
        }
        Some(other) => panic!("`{other}` is none of place, race, failures, recall, links"),
    }
}
