//! Duplicates among documents that come one after the other, in memory.

use crate::text::features::{ArticleField, ArticleKeys, Fingerprinter, Input};

use super::clusterer::Clusterer;
use super::memory::MemoryStorage;
use super::{Config, Error, Key, Likeness, article_keys};

/// A document to be judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputDocument<'a> {
    /// Title, or empty.
    pub title: &'a str,
    /// Main text.
    pub text: &'a str,
    /// Language (ISO 639-1), or empty.
    pub language: &'a str,
    /// URL, or empty: pages of one host may share boilerplate.
    pub url: &'a str,
    /// Further fields, of which those matter that the settings of the features declare.
    pub fields: &'a [ArticleField<'a>],
    /// The copy of the highest popularity of a cluster is the one that is kept.
    pub popularity: u64,
}

/// What became of a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// No copy of what came before. What came before may be a copy of it all the same: one that
    /// hung on another page of its site.
    New,
    /// A copy.
    Duplicate {
        /// Number of the first document of the cluster: its place in the order of judging, from 0.
        first: u32,
        /// By which key it was found.
        key: Key,
        /// Bits between its fingerprint and that of the root of the cluster; 0 if another copy
        /// has the very same text.
        distance: u32,
        /// How alike its text is to that of the root, or of the copy with the same text.
        likeness: Likeness,
        /// It is more popular than all copies so far and takes their place.
        canonical: bool,
    },
}

/// Where a document is now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Membership {
    /// Number of its cluster, in the order of their making.
    pub cluster: u32,
    /// By which key it was found; [`Key::First`] for the first document of a cluster.
    pub key: Key,
    /// Bits between its fingerprint and that of the root of the cluster, 0 to 64.
    pub distance: u8,
    /// Similarity to the root of the cluster, 0 to 1.
    pub similarity: f32,
}

/// A cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// Number of its first document.
    pub first: u32,
    /// Number of its most popular document; of several, the first.
    pub canonical: u32,
    /// Its documents.
    pub copies: u32,
}

/// Judges documents one after the other.
///
/// ```
/// use uniqcrawl::neardup::{Config, Deduplicator, InputDocument, Verdict};
///
/// let mut dedup = Deduplicator::new(Config::default())?;
/// let text = "The harbour bridge opens on Monday after two years of work on its towers, \
///             and the ferry that took its place will sail for the last time on Sunday night.";
/// assert_eq!(dedup.judge(InputDocument { text, ..InputDocument::default() }), Verdict::New);
/// let reprint = format!("Updated at nine. {text} Read more.");
/// let verdict = dedup.judge(InputDocument { text: &reprint, ..InputDocument::default() });
/// assert!(matches!(verdict, Verdict::Duplicate { first: 0, .. }));
/// # Ok::<(), uniqcrawl::neardup::Error>(())
/// ```
pub struct Deduplicator {
    fingerprinter: Fingerprinter,
    clusterer: Clusterer<MemoryStorage>,
}

impl Deduplicator {
    /// Makes an empty one.
    pub fn new(config: Config) -> Result<Self, Error> {
        let fingerprinter = Fingerprinter::new(config.features.clone())?;
        let storage = MemoryStorage::new(&config)?;
        Ok(Self { fingerprinter, clusterer: Clusterer::new(storage, config)? })
    }

    /// Returns the fingerprinter, for fingerprinting on several threads.
    #[must_use]
    pub fn fingerprinter(&self) -> &Fingerprinter {
        &self.fingerprinter
    }

    /// Judges a document and remembers it. At most `u32::MAX - 1` documents.
    pub fn judge(&mut self, document: InputDocument<'_>) -> Verdict {
        let InputDocument { title, text, language, url, fields, popularity } = document;
        let input = Input { title, text, language, url, fields };
        let keys = article_keys(&self.fingerprinter, &input);
        self.judge_keys(keys, popularity)
    }

    /// Judges a document that is fingerprinted already.
    pub fn judge_keys(&mut self, keys: ArticleKeys, popularity: u64) -> Verdict {
        let Ok(verdict) = self.clusterer.judge(keys, popularity);
        verdict
    }

    /// Looks again at every match that was less than certain, now that more documents are known:
    /// what two pages have in common may since have turned out to be boilerplate of their site.
    /// Returns how many texts moved to another cluster or became one of their own, and clusters
    /// that became part of another one.
    ///
    /// The same documents in the same order give the same clusters. To be called after the last
    /// document; it may also be called in between.
    pub fn settle(&mut self) -> usize {
        let Ok(moved) = self.clusterer.settle();
        moved
    }

    /// Returns the number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.clusterer.documents() as usize
    }

    /// Tells whether nothing was judged yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns where a document is now.
    ///
    /// # Panics
    ///
    /// If no document has this number.
    #[must_use]
    pub fn fate(&self, number: u32) -> Membership {
        let Ok(membership) = self.clusterer.fate(number);
        membership
    }

    /// Returns the clusters; their numbers are their places. Those that became part of others are
    /// empty.
    pub fn clusters(&self) -> impl Iterator<Item = Cluster> {
        (0..self.clusterer.clusters()).map(|number| {
            let Ok(cluster) = self.clusterer.cluster(number);
            cluster
        })
    }

    /// Returns the memory of the index in bytes.
    #[must_use]
    pub fn index_bytes(&self) -> usize {
        self.clusterer.storage().index_bytes() + self.clusterer.class_bytes()
    }
}
