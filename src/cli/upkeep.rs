//! Commands on a store or a corpus that run now and then: expire, idf.

use std::time::SystemTime;

use anyhow::Result;
use uniqcrawl::clock::Timestamp;
use uniqcrawl::clusters;
use uniqcrawl::config::Config;
use uniqcrawl::corpus::{Lines, Record};
use uniqcrawl::frontier::Frontier;
use uniqcrawl::store::{Store, Tables};
use uniqcrawl::text::{DocumentFrequencies, Normal, Segmenter};

use super::args::{ExpireArgs, IdfArgs};
use super::exit::{Exit, Usage};
use super::screen::{self, number};
use super::settings;

/// `crawl expire --older-than TIME`.
pub(super) fn expire(args: &ExpireArgs, json: bool) -> Result<Exit> {
    let store = Store::open(&args.store.store, Config::default().cache_bytes())?;
    let oldest =
        SystemTime::now().checked_sub(args.older_than.duration()).unwrap_or(SystemTime::UNIX_EPOCH);
    let since = oldest.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let before = Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    let txn = store.db().begin_write()?;
    let mut tables = Tables::open(&txn)?;
    let ended = clusters::expire(&mut tables, before)?;
    Frontier::forget_expired(&mut tables, &ended.addresses)?;
    drop(tables);
    txn.commit()?;
    if json {
        return screen::json(&serde_json::json!({
            "documents": ended.documents,
            "copies": ended.addresses.len(),
            "before": before.to_string(),
        }));
    }
    println!("{} documents had no new copy since {before} and are gone", number(ended.documents));
    screen::facts([("copies of them", number(ended.addresses.len() as u64))])?;
    Ok(Exit::Done)
}

/// `crawl idf FILE... --out FILE`.
pub(super) fn idf(args: &IdfArgs, json: bool) -> Result<Exit> {
    let features = settings::read(args.config.as_deref())?.config.dedup.features;
    let normal = Normal { simplify: features.simplify };
    let segmenter = match features.dictionary_file.as_str() {
        "" => Segmenter::default(),
        path => Segmenter::read(path.as_ref(), normal).map_err(|error| Usage(error.to_string()))?,
    };
    let mut frequencies = DocumentFrequencies::new(segmenter, normal);
    let mut rejected = 0;
    for path in &args.files {
        let mut lines = Lines::open(path).map_err(|error| Usage(error.to_string()))?;
        let mut line = Vec::new();
        while lines.next(&mut line)? {
            match Record::parse(&String::from_utf8_lossy(&line)) {
                Ok(record) => frequencies.add(&record.text),
                Err(_) => rejected += 1,
            }
        }
    }
    frequencies.write(&args.out, args.min_documents)?;
    let (documents, words) = frequencies.counts();
    if json {
        return screen::json(&serde_json::json!({
            "documents": documents, "words": words, "rejected": rejected,
        }));
    }
    println!("{} distinct words of {} documents", number(words as u64), number(documents));
    if rejected > 0 {
        println!("{} lines are no document and were left out", number(rejected));
    }
    println!("written to {}: name it as idf_file in [dedup.features]", args.out.display());
    Ok(Exit::Done)
}
