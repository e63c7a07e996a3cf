//! Near-duplicates: is this article known already, and where does it belong?
//!
//! In: the fingerprints and keys of an article, and a view of the trees that there are (`Trees`).
//! Out: candidates ([`Finder`]) and a judgement (`judge`). Nothing here knows a store:
//! [`Deduplicator`] keeps all in memory, [`files`] runs it over JSON lines, and
//! [`crate::corpus::dedup`] asks about what is stored.
//!
//! An article is fingerprinted once ([`crate::text::features::Fingerprinter`]): an exact hash, a
//! simhash of its text and one of its title, a sketch of its shingles, keys of its longest
//! sentences. The index names candidates by any of them; no candidate is believed before its tree
//! confirms it by the sketch ([`Rule`]), and before the pages of the article's own site do if the
//! tree has any, so that an accident of 64 bits, a template, or a title such as "Home", never
//! discards a page.

mod classes;
mod config;
mod deduplicator;
mod field;
pub mod files;
mod finder;
pub mod forest;
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
mod site;

pub use config::{Config, Error, Preset};
pub use deduplicator::{Cluster, Deduplicator, InputDocument, Membership, Verdict};
pub use field::Field;
pub use finder::{Candidate, Finder, Nearby, Postings};
pub(crate) use judge::{
    Attachment, Judgement, SiteRelation, judge, site_allows, takes_place, texts_of,
};
pub use key::{Key, article_keys, article_keys_in_stages};
pub use known::Question;
pub(crate) use known::{KnownText, KnownTree, Mate, Trees};
pub(crate) use pair::ArticlePair;
pub use rule::{Bond, Likeness, Rule};
pub(crate) use second_look::LOOKS_MAX;
pub use second_look::loose_leaves;
