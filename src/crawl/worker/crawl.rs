//! The crawl of a shard: its store is opened, after it was restored if a backup is newer, crawled,
//! backed up a last time and closed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::corpus::index::Index;
use crate::frontier::duplicate_feed::{self, WholeFeed};
use crate::store::{self, BackupError, Store};
use crate::text::features::Fingerprinter;
use crate::urls::PageUrl;

use super::super::crew::{Crew, Part};
use super::super::{Beyond, BeyondError, Context, Error, Settings, fix_rules};
use super::backups::ShardBackups;
use super::shard::{Shard, lock};

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// Time for which a shard that is given back waits until its links have arrived.
const LAST_LINKS: Duration = Duration::from_secs(5);

/// Time for a last backup of a shard that is given back.
const LAST_BACKUP: Duration = Duration::from_secs(10);

/// Attempts to read a backup that looks damaged.
const DAMAGED_MAX: u32 = 3;

/// A crawl of a shard, from the opening of its store to its end.
pub(super) struct ShardCrawl<'a> {
    pub shard: Arc<Shard>,
    pub backups: Option<&'a ShardBackups>,
    pub feeds: &'a [WholeFeed],
    pub folder: PathBuf,
    pub settings: Settings,
    pub cache_bytes: usize,
    pub seeds: &'a [PageUrl],
    pub clock: &'a Context,
}

impl ShardCrawl<'_> {
    pub(super) fn run(self, crew: &Crew) -> Result<(), Error> {
        let Some(store) = self.bring()? else { return Ok(()) };
        let result = self.crawl(crew, &store);
        // Whoever reads its links has it for a moment.
        lock(&self.shard.store).take();
        let mut store = Some(store);
        while let Some(open) = store.take() {
            match Arc::try_unwrap(open) {
                Ok(store) => drop(store),
                Err(shared) => {
                    store = Some(shared);
                    thread::sleep(LOOK / 20);
                }
            }
        }
        result
    }

    /// Opens the store, after it was restored if there is a newer backup. Waits for the place of
    /// backups: without it, nobody knows whether the state of the store is the last one.
    fn bring(&self) -> Result<Option<Arc<Store>>, Error> {
        let Some(backups) = self.backups else { return self.open() };
        let (shard, mut failures) = (self.shard.number(), 0);
        loop {
            let Some(store) = self.open()? else { return Ok(None) };
            let brought = backups.has_newer(shard, &store).and_then(|is_newer| {
                if !is_newer {
                    return Ok(Some(store));
                }
                drop(store);
                backups.restore(shard, &self.folder, self.cache_bytes).map(|()| None)
            });
            let error = match brought {
                Ok(Some(store)) => return Ok(Some(store)),
                Ok(None) => continue,
                Err(BackupError::Store(error)) => return Err(error.into()),
                Err(error) => error,
            };
            if self.shard.is_lost() {
                return Err(BeyondError::Lost(shard).into());
            }
            if self.shard.stop.asked() > 0 {
                return Ok(None);
            }
            failures += 1;
            // Whoever has lost the shard may remove an old one while it is read.
            let is_damaged = matches!(error, BackupError::Damaged { .. });
            if is_damaged && failures >= DAMAGED_MAX {
                return Err(std::io::Error::other(error).into());
            }
            if failures == 1 {
                tracing::warn!(shard, %error, "it waits for its backup, and tries again");
            }
            thread::sleep(LOOK * 5);
        }
    }

    /// Opens the store; waits while a worker that has lost it has it open still. None if this one
    /// is asked to stop meanwhile.
    fn open(&self) -> Result<Option<Arc<Store>>, Error> {
        let mut has_told = false;
        loop {
            match Store::open_or_create(&self.folder, self.cache_bytes) {
                Ok(store) => return Ok(Some(Arc::new(store))),
                Err(store::Error::InUse(path)) if self.shard.stop.asked() == 0 => {
                    if self.shard.is_lost() {
                        return Err(BeyondError::Lost(self.shard.number()).into());
                    }
                    if !has_told {
                        let (shard, path) = (self.shard.number(), path.display());
                        tracing::warn!(
                            shard,
                            "a process that has lost the shard has {path} open still: this one \
                             waits for it"
                        );
                        has_told = true;
                    }
                    thread::sleep(LOOK);
                }
                Err(store::Error::InUse(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes in what duplicate feeds say of the URLs of the shard. Returns their numbers. One that
    /// cannot be read any more spares nothing.
    fn take_in_feeds(&self, store: &Store) -> Result<Vec<u64>, Error> {
        let (own, mut numbers) = (self.shard.share(), Vec::new());
        for feed in self.feeds {
            match feed.take_in(store, &self.settings.normalize, Some(&|url| own.has(url))) {
                Ok(number) => numbers.push(number),
                Err(duplicate_feed::Error::Store(error)) => return Err(error.into()),
                Err(error) => {
                    let shard = self.shard.number();
                    tracing::warn!(shard, %error, "the shard is crawled without a duplicate feed");
                }
            }
        }
        Ok(numbers)
    }

    fn crawl(&self, crew: &Crew, store: &Arc<Store>) -> Result<(), Error> {
        let settings = &self.settings;
        let features = Fingerprinter::for_articles(settings.dedup.features.clone())
            .map_err(|error| crate::corpus::dedup::Error::Settings(error.into()))?;
        store.fix_setting("features", &features.name())?;
        fix_rules(store, &settings.normalize)?;
        let index = Arc::new(Mutex::new(Index::open(store, &settings.dedup)?));
        let beyond: Arc<dyn Beyond> = Arc::<Shard>::clone(&self.shard);
        let context = &Context {
            clock: self.clock.clock.clone(),
            stop: self.shard.stop.clone(),
            live: Arc::clone(&self.shard.live),
            index: None,
            on_document: None,
            beyond: Some(beyond),
        };
        let (seeds, feeds) = (self.seeds, &self.take_in_feeds(store)?);
        *lock(&self.shard.store) = Some(Arc::clone(store));
        crew.crawl(Part { store, index, settings, context, seeds, feeds })?;
        // Links that have not left are sent by whoever takes the store next, if anybody does.
        let begun = Instant::now();
        while begun.elapsed() < LAST_LINKS && self.shard.is_held() && !self.shard.has_no_links() {
            thread::sleep(LOOK / 5);
        }
        if let Some(backups) = self.backups {
            let begun = Instant::now();
            backups.back_up(&self.shard, store, || begun.elapsed() < LAST_BACKUP);
        }
        Ok(())
    }
}
