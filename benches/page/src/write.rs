//! Articles into a store: judged, written, committed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::clusters::Article;
use uniqcrawl::corpus::dedup::{self, Corpus as _, Placer};
use uniqcrawl::corpus::index::Index;
use uniqcrawl::neardup::Config;
use uniqcrawl::store::Store;

use super::stages::{Taken, now};

/// Pages in one commit, as a crawl at full speed has them.
const BATCH: usize = 256;

/// Bytes of the page cache of the store.
const CACHE: usize = 128 << 20;

/// Stores all articles, each round in a new store.
pub fn write(articles: &[Article], rounds: usize) -> [(&'static str, Taken); 2] {
    let times: Vec<_> = (0..rounds).map(|_| once(articles)).collect();
    let of = |at: usize| Taken::of(&mut times.iter().map(|times| times[at]).collect::<Vec<_>>());
    [("judge and rows", of(0)), ("commit", of(1))]
}

fn once(articles: &[Article]) -> [Duration; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open_or_create(folder.path(), CACHE).expect("a store");
    let config = Config::default();
    let index = Arc::new(Mutex::new(Index::open(&store, &config).expect("an index")));
    let mut times = [Duration::ZERO; 2];
    for some in articles.chunks(BATCH) {
        let started = now();
        let mut batch = dedup::begin(&store, &index, &config).expect("a batch");
        for article in some {
            let (batch, index) = (&mut batch, &*index);
            let mut placer = Placer { batch, index, config: &config, now: Timestamp(1) };
            placer.place(article, 1).expect("it is stored");
        }
        times[0] += now().saturating_sub(started);
        let started = now();
        batch.commit().expect("it is committed");
        times[1] += now().saturating_sub(started);
    }
    times
}
