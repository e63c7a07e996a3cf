//! In-memory indexes of fingerprints behind one trait, so that they can be exchanged and compared.
//!
//! All of them are exact: a look-up returns what [`Linear`] returns, in any order.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::expanded::{self, Expanded};
use super::expansion::{self, Expansion};
use super::linear::Linear;
use super::rotated::{self, Rotated};
use super::{pairs, two_level};
use crate::text::simhash::{BITS, Fingerprint};

/// A stored entry near the fingerprint that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Near {
    /// Number of the document.
    pub number: u32,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// Bits in which it differs, 0 to `k`.
    pub distance: u32,
}

/// A set of pairs of a fingerprint and a document number, searched by Hamming distance.
///
/// Several numbers may share one fingerprint. A pair that is inserted twice is stored once.
/// At most 2^32 - 1 entries.
pub trait Layout: Send + Sync {
    /// Adds one entry. Batches are much faster, see [`Layout::insert_all`].
    fn insert(&mut self, fingerprint: Fingerprint, number: u32);

    /// Adds entries in any order; sorts a copy of them (16 bytes each) inside.
    fn insert_all(&mut self, entries: &[(Fingerprint, u32)]);

    /// Removes one entry and tells whether it was there.
    fn remove(&mut self, fingerprint: Fingerprint, number: u32) -> bool;

    /// Appends every entry within `k` bits of `query` once to `found`, in no particular order.
    ///
    /// # Panics
    ///
    /// When `k` is above [`Layout::k_max`]: the answer would not be complete.
    fn probe(&self, query: Fingerprint, k: u32, found: &mut Vec<Near>);

    /// Does the same for many queries and adds to each result the place of its query. Faster
    /// than one after the other where a layout can overlap their waiting for memory.
    fn probe_all(&self, queries: &[Fingerprint], k: u32, found: &mut Vec<(usize, Near)>) {
        let mut near = Vec::new();
        for (place, query) in queries.iter().enumerate() {
            self.probe(*query, k, &mut near);
            found.extend(near.drain(..).map(|near| (place, near)));
        }
    }

    /// Returns the number of entries.
    fn len(&self) -> usize;

    /// Tells whether there is no entry.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the largest distance that [`Layout::probe`] takes.
    fn k_max(&self) -> u32;

    /// Returns the bytes of heap memory that the index holds.
    fn bytes(&self) -> usize;
}

/// Adds entries one after the other: what a layout does with a few of them, which fit in the list
/// that it keeps unsorted.
pub(super) fn insert_each(layout: &mut impl Layout, entries: &[(Fingerprint, u32)]) {
    for (fingerprint, number) in entries {
        layout.insert(*fingerprint, *number);
    }
}

/// Names of the layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutKind {
    /// Four tables by 16-bit block; see [`Rotated`].
    #[default]
    Rotated,
    /// Ten tables by two of five blocks; see [`pairs`].
    Pairs,
    /// Sixteen tables by a 16-bit block and 12 further bits; see [`two_level`].
    TwoLevel,
    /// An exact set, asked for every fingerprint near the query; see [`Expansion`].
    QueryExpansion,
    /// A set of every fingerprint near a stored one, asked once; see [`Expanded`].
    Expanded,
    /// A scan of everything; see [`Linear`].
    Linear,
}

impl LayoutKind {
    /// All layouts.
    pub const ALL: [Self; 6] = [
        Self::Rotated,
        Self::Pairs,
        Self::TwoLevel,
        Self::QueryExpansion,
        Self::Expanded,
        Self::Linear,
    ];

    /// Returns the name that [`FromStr`] and serde read.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rotated => "rotated",
            Self::Pairs => "pairs",
            Self::TwoLevel => "two-level",
            Self::QueryExpansion => "query-expansion",
            Self::Expanded => "expanded",
            Self::Linear => "linear",
        }
    }

    /// Returns the largest distance for which the layout can be built.
    #[must_use]
    pub fn k_max(self) -> u32 {
        match self {
            Self::Rotated => rotated::K_MAX,
            Self::Pairs => pairs::K_MAX,
            Self::TwoLevel => two_level::K_MAX,
            Self::QueryExpansion => expansion::K_MAX,
            Self::Expanded => expanded::K_MAX,
            Self::Linear => BITS,
        }
    }
}

impl fmt::Display for LayoutKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No layout has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no index layout is called {0:?}; there are {all}", all = names())]
pub struct UnknownKind(pub String);

fn names() -> String {
    LayoutKind::ALL.map(LayoutKind::name).join(", ")
}

impl FromStr for LayoutKind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| UnknownKind(name.to_owned()))
    }
}

/// A layout cannot find entries as far away as was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the index layout {layout} finds at most {largest} differing bits, not {k}")]
pub struct KTooLarge {
    /// The layout.
    pub layout: LayoutKind,
    /// The distance that was asked for, in bits.
    pub k: u32,
    /// The largest distance of this layout.
    pub largest: u32,
}

/// Makes an empty index that answers distances up to `k` (and more, where that costs nothing:
/// see [`Layout::k_max`]).
pub fn build(kind: LayoutKind, k: u32) -> Result<Box<dyn Layout>, KTooLarge> {
    let largest = kind.k_max();
    if k > largest {
        return Err(KTooLarge { layout: kind, k, largest });
    }
    Ok(match kind {
        LayoutKind::Rotated => Box::new(Rotated::new()),
        LayoutKind::Pairs => Box::new(pairs::pairs()),
        LayoutKind::TwoLevel => Box::new(two_level::two_level()),
        LayoutKind::QueryExpansion => Box::new(Expansion::new()),
        LayoutKind::Expanded => Box::new(Expanded::new(k)),
        LayoutKind::Linear => Box::new(Linear::new()),
    })
}
