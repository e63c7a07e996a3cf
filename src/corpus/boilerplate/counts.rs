//! The counts of one host.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use crate::store::{BadRow, Decoder, Encoder, Renumber, Row};

use super::Repeated;

/// Pages after which all counts are halved, so that a new layout replaces an old one.
const WINDOW: u32 = 256;

/// Blocks that are counted; beyond it the rare ones are dropped. A block that matters is back
/// within few pages.
const BLOCKS_MAX: usize = 2_048;

/// Pages that are remembered, so that copies of them do not count.
const PAGES_MAX: usize = 256;

/// Pages on which a block must have been seen before it is left out.
const SEEN_MIN: u32 = 5;

/// Least share of the last pages on which it must have been seen, in hundredths.
const SHARE_MIN: u32 = 30;

/// How often blocks were seen on the pages of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages that were counted, halved from time to time.
    pages: u32,
    /// Hash of a block -> pages that have it, halved along.
    blocks: HashMap<u64, u32>,
    /// Hashes of the last pages, the oldest first.
    last: VecDeque<u64>,
}

impl Counts {
    /// Counts a page, given the hashes of its blocks, each once and in order. Returns false if
    /// the page is a copy of one that was counted, or has no blocks.
    pub fn add(&mut self, blocks: &[u64]) -> bool {
        let page = blocks.iter().fold(blocks.len() as u64, |hash, block| {
            (hash ^ block).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        });
        if blocks.is_empty() || self.last.contains(&page) {
            return false;
        }
        if self.last.len() == PAGES_MAX {
            self.last.pop_front();
        }
        self.last.push_back(page);
        if self.pages >= WINDOW {
            self.halve();
        }
        self.pages += 1;
        for block in blocks.iter().take(BLOCKS_MAX / 2) {
            if self.blocks.len() >= BLOCKS_MAX && !self.blocks.contains_key(block) {
                self.drop_rare();
            }
            *self.blocks.entry(*block).or_default() += 1;
        }
        true
    }

    /// Returns the blocks that were seen on so many pages that they belong to none of them.
    #[must_use]
    pub fn repeated(&self) -> Repeated {
        let least = SEEN_MIN.max((self.pages * SHARE_MIN).div_ceil(100));
        let often = self.blocks.iter().filter(|(_, count)| **count >= least);
        often.map(|(block, _)| *block).collect()
    }

    fn halve(&mut self) {
        self.pages /= 2;
        self.blocks.retain(|_, count| {
            *count /= 2;
            *count > 0
        });
    }

    /// Makes room for at least half as many blocks.
    fn drop_rare(&mut self) {
        let mut counts: Vec<u32> = self.blocks.values().copied().collect();
        counts.sort_unstable();
        let rare = counts[counts.len() / 2];
        let most = counts.last().copied().unwrap_or_default();
        // If all are alike, none tells more than another, and all but the most frequent go.
        self.blocks.retain(|_, count| *count > rare || (*count == most && rare < most));
    }
}

/// What a row counts must fit together, and be no more than is ever counted.
impl Row for Counts {
    fn encode(&self) -> Cow<'_, [u8]> {
        let mut blocks: Vec<_> = self.blocks.iter().collect();
        blocks.sort_unstable();
        let row = Encoder::new(1).number(self.pages).number(blocks.len() as u64);
        let row = blocks.iter().fold(row, |row, (block, count)| row.fixed(**block).number(**count));
        let row = row.number(self.last.len() as u64);
        Cow::Owned(self.last.iter().fold(row, |row, page| row.fixed(*page)).finish())
    }

    fn decode(bytes: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::new("boilerplate", 1, bytes)?;
        let pages = row.narrow()?;
        if pages > WINDOW {
            return Err(row.bad("it counts too many pages"));
        }
        let mut counts = Self { pages, ..Self::default() };
        let blocks: usize = row.narrow()?;
        if blocks > BLOCKS_MAX {
            return Err(row.bad("it has too many blocks"));
        }
        for _ in 0..blocks {
            let (block, count) = (row.fixed()?, row.narrow()?);
            if count > pages {
                return Err(row.bad("a block is on more pages than there are"));
            }
            counts.blocks.insert(block, count);
        }
        let last: usize = row.narrow()?;
        if last > PAGES_MAX {
            return Err(row.bad("it has too many pages"));
        }
        for _ in 0..last {
            counts.last.push_back(row.fixed()?);
        }
        Ok(counts)
    }

    fn renumber(&mut self, _: &mut dyn Renumber) {}
}
