//! The judge: is this article stored already, and where does it belong?
//!
//! An article is signed once ([`crate::features::Signer`]): an exact hash, a simhash of its
//! text and one of its title, a sketch of its shingles, keys of its longest sentences. The
//! index names candidates by any of them; no candidate is believed before its tree confirms it
//! by the sketch ([`Rule`]), and before the pages of the article's own site do if the tree has any,
//! so that an accident of 64 bits, a template, or a title such as "Home", never discards a page.

mod classes;
mod compare;
mod config;
mod deduplicator;
mod expiry;
mod finder;
mod judge;
mod known;
mod looks;
mod memory;
mod pair;
mod rule;
mod second_look;
mod site;
mod stored;

pub use compare::{Comparison, Side, compare, compare_sides};
pub use config::{Config, Error, Preset};
pub use deduplicator::{Cluster, Deduplicator, Document, Fate, Verdict};
pub use expiry::{Expiry, expire, old};
pub use finder::{Candidate, Finder};
pub use judge::{Allowed, Joint, Judgement, judge, site_allows, takes_place};
pub use known::{Mate, Question, Text, Tree, Trees};
pub use looks::{Desk, Looked, Looks, PAGES_MAX, Range, TIME_MAX, United};
pub use rule::{Bond, Likeness, Rule};
pub use second_look::{LOOKS_MAX, loose_leaves};
pub use stored::{Judged, catch_up, judge_stored, load, lock};
