//! How many bytes a table of a segment takes, and how many blocks a question reads: arithmetic for
//! keys that are spread evenly, as hashes and the fingerprints of unlike texts are.

use super::ROTATIONS;
use super::block::{BYTES_MAX, HEAD};
use super::filter::{
    COLUMNS, FINGERPRINT_KEYS, KEY_BITS, KEYS, KEYS_MAX, bytes_of, filters_of_fingerprints,
    key_values,
};

/// Bits by which a rotated fingerprint is found.
const PREFIX_BITS: u32 = u64::BITS / ROTATIONS as u32;

/// Keys that nobody has, of which one passes a filter of [`COLUMNS`].
const PASSES_ONE_IN: f64 = (1 << COLUMNS) as f64;

/// What a table is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableContent {
    /// Its postings.
    pub postings: u64,
    /// Contents that they name, whose numbers follow each other.
    pub contents: u64,
    /// Different keys that it can have; none if these are fingerprints.
    pub keys: Option<u64>,
}

/// The blocks of one level of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelSize {
    /// Their number.
    pub blocks: u64,
    /// What each has, but for the last one.
    pub postings_each: u64,
    /// Bytes of all.
    pub bytes: u64,
}

/// A table as large as it will be.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSize {
    /// What it holds.
    pub content: TableContent,
    /// Its levels: that of the postings, and those above it.
    pub levels: Vec<LevelSize>,
    /// Its filters.
    pub filters: u64,
    /// Bytes of all filters.
    pub filter_bytes: u64,
}

/// What a question does on the average.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct LookUpCost {
    /// Keys that are compared with the one that is asked for.
    pub comparisons: f64,
    /// Blocks that are read, those above the postings too.
    pub blocks: f64,
    /// Filters that are read.
    pub filters: f64,
}

impl LookUpCost {
    /// Returns the cost of so many of these questions.
    #[must_use]
    pub fn times(self, questions: f64) -> Self {
        Self {
            comparisons: self.comparisons * questions,
            blocks: self.blocks * questions,
            filters: self.filters * questions,
        }
    }
}

impl std::ops::AddAssign for LookUpCost {
    fn add_assign(&mut self, more: Self) {
        self.comparisons += more.comparisons;
        self.blocks += more.blocks;
        self.filters += more.filters;
    }
}

impl TableContent {
    /// Fingerprints in one rotation.
    #[must_use]
    pub fn fingerprints(contents: u64) -> Self {
        Self { postings: contents, contents, keys: None }
    }

    /// Equality keys: `each` of every content, of `keys` that there can be.
    #[must_use]
    pub fn hashes(contents: u64, each: u64, keys: u64) -> Self {
        let kept = keys.saturating_mul(super::PER_KEY_MAX as u64);
        Self { postings: contents.saturating_mul(each).min(kept), contents, keys: Some(keys) }
    }

    fn key_bits(&self) -> u32 {
        if self.keys.is_some() { KEY_BITS } else { u64::BITS }
    }
}

impl TableSize {
    /// Returns the size of a table; none if it has no postings.
    #[must_use]
    pub fn of(content: TableContent) -> Option<Self> {
        let mut levels = Vec::new();
        let mut postings = content.postings;
        while postings > 0 && levels.last().is_none_or(|below: &LevelSize| below.blocks > 1) {
            let level = level_of(postings, &content);
            postings = level.blocks;
            levels.push(level);
        }
        levels.first()?;
        let (filters, filter_bytes) = match content.keys {
            None => filters_near(content.postings),
            Some(keys) => filters_of(content.postings, keys),
        };
        Some(Self { content, levels, filters, filter_bytes })
    }

    /// Returns the bytes of all blocks and filters.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.bytes).sum::<u64>() + self.filter_bytes
    }

    /// Returns what it costs to find the fingerprints that are near one, or the contents of an
    /// equality key, which nobody need have.
    #[must_use]
    pub fn look_up(&self) -> LookUpCost {
        let postings = self.content.postings as f64;
        let Some(keys) = self.content.keys else {
            let tells = keys_of_filter(self.content.postings) <= KEYS_MAX as f64;
            let passes = if tells { passes(postings, key_values()) } else { 1.0 };
            let passes = 1.0 - (1.0 - passes).powi(FINGERPRINT_KEYS as i32);
            let found = self.found().times(passes);
            return LookUpCost { filters: FINGERPRINT_KEYS as f64, ..found };
        };
        let each = postings / keys as f64;
        let passes = passes(postings, keys as f64);
        // Whatever passes is looked for; what is found is not compared.
        let found = self.range(each / passes);
        LookUpCost { comparisons: 0.0, filters: 1.0, ..found.times(passes) }
    }

    /// Returns what it costs to go through the fingerprints that have the first bits of one.
    #[must_use]
    pub fn found(&self) -> LookUpCost {
        self.range(self.content.postings as f64 / f64::from(1 << PREFIX_BITS))
    }

    /// Returns the cost of a range of so many postings: from the top down to the first block that
    /// has them, and on to the last.
    fn range(&self, found: f64) -> LookUpCost {
        let [leaves, above @ ..] = &self.levels[..] else { return LookUpCost::default() };
        // A range begins anywhere in a block.
        let read = (1.0 + found / leaves.postings_each as f64).min(leaves.blocks as f64);
        LookUpCost { comparisons: found, blocks: read + above.len() as f64, filters: 0.0 }
    }
}

/// Returns the size of a level of so many postings. A block ends before the one that would make it
/// too long; keys take as many bytes as the last one needs beyond the first.
fn level_of(postings: u64, content: &TableContent) -> LevelSize {
    let content_width = width_of(content.contents.saturating_sub(1));
    let fits = |key_width: u32| {
        let room = (BYTES_MAX - HEAD) as u64 / u64::from(key_width + content_width).max(1);
        let spread = postings as f64 * 2f64.powi((8 * key_width).cast_signed());
        let spread = spread / 2f64.powi(content.key_bits().cast_signed());
        room.min(whole(spread)).min(postings)
    };
    let widths = 0..=content.key_bits() / 8;
    // Of several that hold as many, the narrowest.
    let key_width = widths.rev().max_by_key(|width| fits(*width)).unwrap_or(8);
    let postings_each = fits(key_width).max(1);
    let blocks = postings.div_ceil(postings_each);
    let bytes = blocks * HEAD as u64 + postings * u64::from(key_width + content_width);
    LevelSize { blocks, postings_each, bytes }
}

/// Returns the number of filters and their bytes.
fn filters_of(postings: u64, keys: u64) -> (u64, u64) {
    let filters = postings.div_ceil(KEYS);
    let distinct = keys as f64 * -(-(postings as f64) / keys as f64).exp_m1();
    (filters, filters * bytes_of(whole(distinct) as usize / filters.max(1) as usize) as u64)
}

/// The same for fingerprints.
fn filters_near(postings: u64) -> (u64, u64) {
    let filters = filters_of_fingerprints(postings);
    (filters, filters * bytes_of(whole(keys_of_filter(postings)) as usize) as u64)
}

/// Returns how many keys a filter of so many fingerprints has.
fn keys_of_filter(postings: u64) -> f64 {
    (postings * FINGERPRINT_KEYS) as f64 / filters_of_fingerprints(postings) as f64
}

/// Returns the share of keys that pass the filters of a table of so many postings, where there can
/// be so many keys.
fn passes(postings: f64, keys: f64) -> f64 {
    let nobody = (-postings / keys).exp();
    1.0 - nobody + nobody / PASSES_ONE_IN
}

#[expect(clippy::cast_sign_loss, reason = "nothing is counted below 0")]
fn whole(number: f64) -> u64 {
    number as u64
}

/// Returns the bytes that a number takes.
fn width_of(number: u64) -> u32 {
    (u64::BITS - number.leading_zeros()).div_ceil(8)
}
