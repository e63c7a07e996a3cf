//! Taking a feed into a store, so that its verdicts need no memory and outlive the run.

use std::path::{Path, PathBuf};

use redb::ReadableTable as _;
use xxhash_rust::xxh3::xxh3_128;

use crate::store::{self, Store, Tables};
use crate::urls::Normalize;

use super::known::{put, said_of};
use super::rows::Feed;
use super::{Addresses, Error, Item, Reader};

/// Verdicts in one transaction: with their rows some 20 MB.
const BATCH: usize = 100_000;

/// Takes feeds in. Returns their numbers.
pub fn import_all(store: &Store, paths: &[PathBuf], rules: &Normalize) -> Result<Vec<u64>, Error> {
    // Nothing is taken in if any of them is damaged.
    let feeds: Vec<Feed> =
        paths.iter().map(|path| verified(path, rules)).collect::<Result<_, Error>>()?;
    let pairs = paths.iter().zip(feeds);
    pairs.map(|(path, feed)| take_in(store, path, feed, rules)).collect()
}

/// Takes a feed in, unless the store has it. Returns its number.
///
/// # Errors
///
/// If it is damaged, or of another kind or normal form; then nothing is taken in.
pub fn import(store: &Store, path: &Path, rules: &Normalize) -> Result<u64, Error> {
    take_in(store, path, verified(path, rules)?, rules)
}

/// Reads a feed to its end.
fn verified(path: &Path, rules: &Normalize) -> Result<Feed, Error> {
    let mut reader = Reader::open(path, rules)?;
    while reader.next_item()?.is_some() {}
    let end = reader.end.take();
    let end = end.as_ref().and_then(|end| u128::from_str_radix(&end.xxh3, 16).ok());
    Ok(Feed {
        sum: end.unwrap_or_default(),
        name: path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        publisher: reader.header.publisher.clone(),
        made: reader.header.made.clone(),
        verdicts: reader.verdicts(),
        hashed: reader.header.addresses == Addresses::Hashed,
        ..Feed::default()
    })
}

fn take_in(store: &Store, path: &Path, feed: Feed, rules: &Normalize) -> Result<u64, Error> {
    let known = numbered(store, &feed)?;
    let number = match known {
        Some((number, true)) => return Ok(number),
        // A run that was killed has left it: the same rows are written again.
        Some((number, false)) => number,
        None => write(store, |tables| {
            let number = tables.next_number("next_feed")?;
            tables.feeds.insert(number, feed.encode().as_slice())?;
            Ok(number)
        })?,
    };
    let mut reader = Reader::open(path, rules)?;
    let mut batch: Vec<Item> = Vec::new();
    loop {
        let item = reader.next_item()?;
        let is_last = item.is_none();
        batch.extend(item);
        if batch.len() == BATCH || is_last && !batch.is_empty() {
            // In the order of their keys they are written several times faster.
            batch.sort_unstable();
            write(store, |tables| {
                for item in &batch {
                    put(tables, number, item)?;
                }
                Ok(())
            })?;
            batch.clear();
        }
        if is_last {
            break;
        }
    }
    write(store, |tables| {
        name_pages(tables, number)?;
        let feed = Feed { complete: true, ..feed };
        tables.feeds.insert(number, feed.encode().as_slice())?;
        Ok(())
    })?;
    Ok(number)
}

/// Returns the number of a feed that the store has, and whether it has all of it.
fn numbered(store: &Store, feed: &Feed) -> Result<Option<(u64, bool)>, store::Error> {
    for row in store.read()?.feeds.iter()? {
        let (number, row) = row?;
        let known = Feed::decode(row.value())?;
        if (known.sum, known.verdicts) == (feed.sum, feed.verdicts) {
            return Ok(Some((number.value(), known.complete)));
        }
    }
    Ok(None)
}

/// Names the canonical pages that were known before the feed came.
fn name_pages(tables: &mut Tables<'_>, feed: u64) -> Result<(), store::Error> {
    for row in tables.addresses.iter()? {
        let (url, _) = row?;
        let said = said_of(&tables.verdicts, url.value())?;
        if said.iter().any(|said| said.feed == feed && said.copy_of.is_none()) {
            let key = xxh3_128(url.value().as_bytes()).to_be_bytes();
            tables.known_pages.insert(key.as_slice(), url.value())?;
        }
    }
    Ok(())
}

fn write<T>(
    store: &Store,
    work: impl FnOnce(&mut Tables<'_>) -> Result<T, store::Error>,
) -> Result<T, store::Error> {
    let _turn = store.turn();
    let txn = store.db().begin_write()?;
    let mut tables = Tables::open(&txn)?;
    let done = work(&mut tables)?;
    drop(tables);
    txn.commit()?;
    Ok(done)
}
