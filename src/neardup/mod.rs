//! Near-duplicates: is this article known already, and where does it belong?
//!
//! In: the fingerprints and keys of an article, and a view of the trees that there are (`Trees`).
//! Out: candidates ([`Finder`]) and a judgement (`judge`). Nothing here knows a store:
//! `Clusterer` judges documents that come one after the other and keeps what it must remember in a
//! `Storage`. That of [`Deduplicator`] is memory, that of [`crate::corpus::files`] a file beside
//! its output. [`crate::corpus::dedup`] asks about the articles of a store.
//!
//! An article is fingerprinted once ([`crate::text::features::Fingerprinter`]): an exact hash, a
//! simhash of its text and one of its title, a sketch of its shingles, keys of its longest
//! sentences. The index names candidates by any of them; no candidate is believed before its tree
//! confirms it by the sketch ([`Rule`]), and before the pages of the article's own site do if the
//! tree has any, so that an accident of 64 bits, a template, or a title such as "Home", never
//! discards a page.

mod chance;
mod classes;
mod clusterer;
mod config;
mod deduplicator;
mod field;
mod finder;
pub mod forest;
mod found;
pub mod index;
mod judge;
mod key;
mod known;
mod memory;
mod pair;
mod places;
pub mod plan;
mod rule;
mod second_look;
pub mod segment;
mod shortlist;
mod site;
mod storage;

pub use chance::{Glimpse, Resemblance, Sieve};
pub(crate) use clusterer::Clusterer;
pub use config::{Config, Error, Preset};
pub use deduplicator::{Cluster, Deduplicator, InputDocument, Membership, Verdict};
pub use field::Field;
pub use finder::{Asked, Candidate, Finder, Nearby, Postings};
pub use found::{Asks, FoundPostings, LookUp};
#[cfg(feature = "cluster")]
pub(crate) use judge::looked_up;
pub(crate) use judge::{
    Attachment, Judgement, SiteRelation, is_its_text, judge, sift, site_allows, texts_of,
};
pub use key::{Key, article_keys, article_keys_in_stages};
pub use known::Question;
pub(crate) use known::{KnownText, KnownTree, Mate, Trees};
pub(crate) use memory::MemoryStorage;
pub(crate) use pair::ArticlePair;
pub use rule::{Bond, Likeness, Rule};
pub(crate) use second_look::LOOKS_MAX;
pub use second_look::loose_leaves;
pub use shortlist::Shortlist;
pub(crate) use storage::{
    JudgedPage, JudgedText, JudgedTree, LineStanding, PageList, Storage, TextPlace,
};
