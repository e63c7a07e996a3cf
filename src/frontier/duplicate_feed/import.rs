//! Taking a feed into a store, so that its duplicates need no memory and outlive the run.

use std::ops::Bound;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use crate::frontier::tables::{ADDRESSES, FEEDS, KNOWN_PAGES};
use crate::store::{self, Batch, Store, Update as _, View as _};
use crate::urls::{Normalize, PageUrl};

use super::known::{put, said_of};
use super::rows::Feed;
use super::{Addresses, Error, FeedItem, Reader};

/// Duplicates in one transaction: with their rows some 20 MB.
const BATCH: usize = 100_000;

/// A feed that was read to its end.
#[derive(Debug, Clone)]
pub struct WholeFeed {
    path: PathBuf,
    feed: Feed,
}

impl WholeFeed {
    /// Reads feeds to their ends, so that nothing is taken in if any of them is damaged.
    ///
    /// # Errors
    ///
    /// If one is damaged, or of another kind or normal form than that of `rules`.
    pub fn all(paths: &[PathBuf], rules: &Normalize) -> Result<Vec<Self>, Error> {
        let whole = |path: &PathBuf| Ok(Self { path: path.clone(), feed: verified(path, rules)? });
        paths.iter().map(whole).collect()
    }

    /// Takes the feed in, unless the store has it. Returns its number. Where the URLs of the store
    /// are told, copies that are none of them are left out; a hashed feed does not tell its URLs.
    ///
    /// # Errors
    ///
    /// If it cannot be read any more.
    pub fn take_in(
        &self,
        store: &Store,
        rules: &Normalize,
        is_own: Option<&dyn Fn(&PageUrl) -> bool>,
    ) -> Result<u64, Error> {
        take_in(store, self, rules, is_own)
    }
}

/// Takes feeds in. Returns their numbers.
pub fn import_all(store: &Store, paths: &[PathBuf], rules: &Normalize) -> Result<Vec<u64>, Error> {
    let feeds = WholeFeed::all(paths, rules)?;
    feeds.iter().map(|feed| feed.take_in(store, rules, None)).collect()
}

/// Reads a feed to its end.
fn verified(path: &Path, rules: &Normalize) -> Result<Feed, Error> {
    let mut reader = Reader::open(path, rules)?;
    while reader.next_item()?.is_some() {}
    Ok(Feed {
        sum: reader.sum(),
        name: path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        publisher: reader.header.publisher.clone(),
        made: reader.header.made.clone(),
        duplicates: reader.duplicates(),
        hashed: reader.header.addresses == Addresses::Hashed,
        ..Feed::default()
    })
}

fn take_in(
    store: &Store,
    WholeFeed { path, feed }: &WholeFeed,
    rules: &Normalize,
    is_own: Option<&dyn Fn(&PageUrl) -> bool>,
) -> Result<u64, Error> {
    let known = numbered(store, feed)?;
    let number = match known {
        Some((number, true)) => return Ok(number),
        // A run that was killed has left it: the same rows are written again.
        Some((number, false)) => number,
        None => write(store, |snapshot| {
            let number = snapshot.next_number("next_feed")?;
            snapshot.put(FEEDS, number, feed)?;
            Ok(number)
        })?,
    };
    let mut reader = Reader::open(path, rules)?;
    let mut batch: Vec<FeedItem> = Vec::new();
    loop {
        let item = reader.next_item_of(is_own)?;
        let is_last = item.is_none();
        batch.extend(item);
        if batch.len() == BATCH || is_last && !batch.is_empty() {
            // In the order of their keys they are written several times faster.
            batch.sort_unstable();
            write(store, |snapshot| {
                for item in &batch {
                    put(snapshot, number, item)?;
                }
                Ok(())
            })?;
            batch.clear();
        }
        if is_last {
            break;
        }
    }
    if reader.sum() != feed.sum {
        return Err(Error::Changed { path: path.clone() });
    }
    write(store, |snapshot| {
        name_pages(snapshot, number)?;
        let feed = Feed { complete: true, ..feed.clone() };
        snapshot.put(FEEDS, number, &feed)
    })?;
    Ok(number)
}

/// Returns the number of a feed that the store has, and whether it has all of it.
fn numbered(store: &Store, feed: &Feed) -> Result<Option<(u64, bool)>, store::Error> {
    for entry in store.snapshot()?.rows(FEEDS)? {
        let entry = entry?;
        let known = entry.row()?;
        if (known.sum, known.duplicates) == (feed.sum, feed.duplicates) {
            return Ok(Some((entry.key()?, known.complete)));
        }
    }
    Ok(None)
}

/// Names the canonical pages that were known before the feed came.
fn name_pages(batch: &mut Batch, feed: u64) -> Result<(), store::Error> {
    let mut after = String::new();
    loop {
        let (mut last, mut found) = (None, Vec::new());
        let from = Bound::Excluded(after.as_str());
        for entry in batch.range(ADDRESSES, (from, Bound::Unbounded))?.take(BATCH) {
            let entry = entry?;
            let url = entry.key()?;
            let said = said_of(batch, url)?;
            if said.iter().any(|said| said.feed == feed && said.is_canonical()) {
                found.push(url.to_owned());
            }
            last = Some(url.to_owned());
        }
        for url in &found {
            batch.put(KNOWN_PAGES, (xxh3_128(url.as_bytes()), None), url)?;
        }
        let Some(last) = last else { return Ok(()) };
        after = last;
    }
}

fn write<T>(
    store: &Store,
    work: impl FnOnce(&mut Batch) -> Result<T, store::Error>,
) -> Result<T, store::Error> {
    let _turn = store.turn();
    let mut batch = store.begin()?;
    let done = work(&mut batch)?;
    batch.commit()?;
    Ok(done)
}
