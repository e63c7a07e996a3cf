//! A store that takes articles one after the other, as the committer does.

use std::sync::Mutex;

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::clusters::{Article, Place};
use uniqcrawl::corpus::dedup::{Corpus as _, Placer, Range};
use uniqcrawl::corpus::documents::{Facts, copies_of, read_body};
use uniqcrawl::corpus::index::{Index, Sizes, lock};
use uniqcrawl::corpus::tables::{CONTENTS, DOCUMENTS};
use uniqcrawl::neardup::{self, Config};
use uniqcrawl::store::{Batch, View as _};
use uniqcrawl::text::features::{ArticleKeys, Fingerprinter, Input};
use uniqcrawl::text::sketch::ShownSketch;
use uniqcrawl::web::robots::meta::Terms;

use crate::support::Crawled;

/// A page as it comes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Came {
    pub address: String,
    pub title: String,
    pub text: String,
    /// The address that it names as canonical.
    pub declared: String,
    pub shown: Option<ShownSketch>,
    pub doubtful: bool,
    pub popularity: u64,
}

impl Came {
    pub(crate) fn new(address: &str, title: &str, text: &str) -> Self {
        let [address, title, text] = [address, title, text].map(str::to_owned);
        Self { address, title, text, ..Self::default() }
    }

    /// Its keys, with all that is known of the page.
    pub(crate) fn keys(&self, fingerprinter: &Fingerprinter) -> ArticleKeys {
        let Self { address, title, text, .. } = self;
        let mut keys = neardup::article_keys(
            fingerprinter,
            &Input { title, text, url: address, ..Input::default() },
        );
        let standing = uniqcrawl::text::features::Standing::of(address, title, &self.declared);
        (keys.standing, keys.standing.shown) = (standing, self.shown.clone());
        keys.standing.doubtful = self.doubtful;
        keys
    }

    /// The article that is placed.
    pub(crate) fn article(&self, fingerprinter: &Fingerprinter) -> Article {
        Article {
            address: self.address.clone(),
            title: self.title.clone(),
            text: self.text.clone(),
            language: String::new(),
            facts: Facts::default(),
            left_out: 0,
            score: Some(self.popularity).filter(|popularity| *popularity > 0),
            terms: Terms::default(),
            declared: self.declared.clone(),
            keys: self.keys(fingerprinter),
        }
    }
}

/// An index whose parts are so small that a few articles reach all of them.
pub(crate) const SMALL: Sizes = Sizes { tail: 3, step: 1, block_bytes: 300, more_filters: 0 };

/// A store that takes articles one after the other.
pub(crate) struct Shelf {
    pub crawled: Crawled,
    pub index: Mutex<Index>,
    fingerprinter: Fingerprinter,
    config: Config,
    time: i64,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    /// That judges with other settings.
    pub(crate) fn with(config: Config) -> Self {
        let crawled = Crawled::new();
        let index = Mutex::new(Index::open_with(&crawled.store, &config, SMALL).unwrap());
        let fingerprinter = Fingerprinter::new(config.features.clone()).unwrap();
        Self { crawled, index, fingerprinter, config, time: 0 }
    }

    /// Works on the tables and commits; the store must be sound afterwards.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&mut Batch) -> T) -> T {
        let mut batch = self.crawled.store.begin().unwrap();
        let result = work(&mut batch);
        lock(&self.index).merge_some(&mut batch).unwrap();
        batch.commit().unwrap();
        lock(&self.index).committed();
        self.crawled.assert_clean();
        let snapshot = self.crawled.store.snapshot().unwrap();
        for content in 1..20 {
            if snapshot.get(CONTENTS, content).unwrap().is_some() {
                assert!(read_body(&snapshot, content).unwrap().is_some(), "{content}");
            }
        }
        result
    }

    /// The time moves on.
    pub(crate) fn tick(&mut self) -> Timestamp {
        self.time += 1;
        Timestamp(self.time)
    }

    pub(crate) fn add(&mut self, address: &str, text: &str) -> u64 {
        self.put(&Came::new(address, "", text))
    }

    pub(crate) fn add_titled(&mut self, address: &str, title: &str, text: &str) -> u64 {
        self.put(&Came::new(address, title, text))
    }

    /// Takes a page. Returns the number of its document.
    pub(crate) fn put(&mut self, page: &Came) -> u64 {
        let now = self.tick();
        let article = page.article(&self.fingerprinter);
        self.write(|snapshot| {
            let placed = self.placer(snapshot, now).place(&article, 0).unwrap();
            if let Place::Tree(matched) = &placed.judged.place {
                assert_eq!(matched.document, placed.joined.document);
            }
            placed.document
        })
    }

    pub(crate) fn placer<'a>(&'a self, batch: &'a mut Batch, now: Timestamp) -> Placer<'a> {
        Placer { batch, index: &self.index, config: &self.config, now }
    }

    /// Looks again at all unsure contents. Returns how many moved.
    pub(crate) fn look_again(&self) -> u64 {
        self.write(|snapshot| {
            let until = uniqcrawl::corpus::clusters::newest(snapshot).unwrap();
            let range = Range { after: 0, until, apart: true };
            let (looked, at) = self.placer(snapshot, Timestamp(99)).look(range, || true).unwrap();
            assert_eq!(at, until, "nothing stops it");
            looked.moved
        })
    }

    /// The number of the document that each of some pages is of.
    pub(crate) fn documents_of(&self, pages: &[Came]) -> Vec<u64> {
        let snapshot = self.crawled.store.snapshot().unwrap();
        let carries = |number: u64, address: &str| {
            let copies = copies_of(&snapshot, number).unwrap();
            copies.iter().any(|(other, _)| other == address)
        };
        let numbers: Vec<u64> = (1..=2 * pages.len() as u64)
            .filter(|number| snapshot.get(DOCUMENTS, *number).unwrap().is_some())
            .collect();
        let of = |page: &Came| {
            let mut found = numbers.iter().filter(|number| carries(**number, &page.address));
            *found.next().unwrap()
        };
        pages.iter().map(of).collect()
    }
}
