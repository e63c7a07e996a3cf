//! The postings of many articles in segments.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::block::Block;
use super::cursor::Cursor;
use super::tree::{Blocks, SegmentTable};
use super::{PER_KEY_MAX, ROTATIONS, Segment, equality_table, has_hashes, near_of, near_table};
use crate::neardup::finder::{Asked, Nearby, Postings, first_of};
use crate::neardup::index::rotated::key_flips;
use crate::neardup::index::simd::{Level, near};
use crate::neardup::{Field, Key};
use crate::text::simhash::Fingerprint;

/// Postings of a table that are asked for: those of a range of keys that are near one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask {
    pub(super) table: u8,
    /// The first bits of the fingerprints that are looked at; 0 where a hash is asked for.
    prefix: u16,
    pub(super) key: u64,
    /// Largest distance, in bits.
    pub(super) k: u8,
    /// By which kind of key.
    pub kind: Key,
    /// Who asks.
    pub number: u32,
}

impl Ask {
    /// Asks for the contents that have a hash of a kind.
    #[must_use]
    pub fn equal(kind: Key, hash: u64, number: u32) -> Self {
        Self { table: equality_table(kind), prefix: 0, key: hash, k: 0, kind, number }
    }

    /// Asks for the contents that have a fingerprint near one.
    pub fn near(kind: Key, asked: Nearby, number: u32) -> impl Iterator<Item = Self> {
        let Nearby { field, fingerprint, k } = asked;
        (0..ROTATIONS).flat_map(move |rotation| {
            let key = fingerprint.0.rotate_left(rotated_by(rotation));
            key_flips(k, rotation).map(move |flips| {
                let prefix = (key >> 48) as u16 ^ flips;
                Self { table: near_table(field, rotation), prefix, key, k: k as u8, kind, number }
            })
        })
    }

    /// Returns what was asked for.
    #[must_use]
    pub fn asked(&self) -> Asked {
        if has_hashes(self.table) {
            return Asked::Equal(self.key);
        }
        let (field, rotation) = near_of(self.table);
        let fingerprint = self.key.rotate_right(rotated_by(rotation));
        let (fingerprint, k) = (Fingerprint(fingerprint), u32::from(self.k));
        Asked::Near(Nearby { field, fingerprint, k })
    }

    /// Returns the keys that are looked at.
    pub(super) fn keys(&self) -> RangeInclusive<u64> {
        if has_hashes(self.table) {
            return self.key..=self.key;
        }
        let first = u64::from(self.prefix) << 48;
        first..=first | u64::MAX >> 16
    }

    /// Returns the fingerprint that is looked for, with the first bits that are looked at.
    pub(super) fn with_prefix(&self) -> u64 {
        u64::from(self.prefix) << 48 | self.key & u64::MAX >> 16
    }

    /// Returns in how many bits behind the first ones a fingerprint may differ.
    pub(super) fn errors_max(&self) -> u32 {
        u32::from(self.k) - (self.with_prefix() ^ self.key).count_ones()
    }

    /// Tells whether another one asks for the same.
    fn is_as(&self, other: &Self) -> bool {
        *self == Self { number: self.number, ..*other }
    }
}

/// Returns the bits by which a rotation turns fingerprints.
fn rotated_by(rotation: u8) -> u32 {
    16 * u32::from(rotation)
}

/// What is asked for is dealt with so much at a time: what was found is held until all segments
/// were asked.
const ASKS: usize = 1 << 16;

/// Blocks of titles that have the same first bits of which one look-up looks at the first ones: of
/// some two thousand titles, where a block is a page.
const TITLE_BLOCKS_MAX: usize = 4;

/// Places in filters that are asked from memory before the first of them is read.
const PREFETCHED: usize = 64;

/// Contents that were found by a key, at least one: nearest and oldest first, as many as a key may
/// have. Those who asked for the same share them.
#[derive(Debug, Clone)]
pub enum Found {
    /// By a fingerprint, with their distances.
    Near(Arc<[(u32, u64)]>),
    /// By a hash.
    Equal(Arc<[u64]>),
}

impl Found {
    /// Takes what was found, of which nothing is left.
    pub(crate) fn of(asked: Asked, found: &mut Vec<(u32, u64)>) -> Self {
        let first = first_of(found);
        match asked {
            Asked::Near(_) => Self::Near(first.collect()),
            Asked::Equal(_) => Self::Equal(first.map(|(_, content)| content).collect()),
        }
    }

    /// Returns distances and contents; the distances of those with an equal hash are 0.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, u64)> {
        let (near, equal): (&[(u32, u64)], &[u64]) = match self {
            Self::Near(near) => (near, &[]),
            Self::Equal(equal) => (&[], equal),
        };
        near.iter().copied().chain(equal.iter().map(|content| (0, *content)))
    }

    /// Returns the memory that it takes, in bytes, as if it shared none.
    #[must_use]
    pub fn memory(&self) -> usize {
        match self {
            Self::Near(near) => size_of_val(&**near),
            Self::Equal(equal) => size_of_val(&**equal),
        }
    }
}

/// What was found by an ask.
#[derive(Debug, Clone)]
pub struct Answer {
    /// What was asked.
    pub ask: Ask,
    /// What was found.
    pub found: Found,
}

/// Segments, and where their blocks are.
#[derive(Debug, Clone, Copy)]
pub struct SegmentPostings<'a, B> {
    /// The segments, oldest first.
    pub segments: &'a [Segment],
    /// Their blocks.
    pub blocks: &'a B,
}

/// What is asked for, once, and what was found.
struct SharedAsk<'a> {
    asks: &'a [Ask],
    found: Vec<(u32, u64)>,
}

impl SharedAsk<'_> {
    fn ask(&self) -> Ask {
        self.asks[0]
    }

    /// Compares the fingerprints of postings of a block, from the first of them on.
    fn compare(&mut self, level: Level, keys: &[u64], block: &Block, first: usize) {
        let Ask { key, k, .. } = self.ask();
        near(level, keys, key, k.into(), &mut |at| {
            let distance = (keys[at] ^ key).count_ones();
            self.found.push((distance, block.get(first + at).content));
        });
    }
}

impl<B: Blocks> SegmentPostings<'_, B> {
    /// Looks up what is asked for; `asks` are in order. Calls `answer` where something was found.
    pub fn find(&self, asks: &[Ask], answer: &mut impl FnMut(Answer)) -> Result<(), B::Error> {
        let level = Level::default();
        let of_tables = asks.chunk_by(|one, next| one.table == next.table);
        for asks in of_tables.flat_map(|asks| asks.chunks(ASKS)) {
            let shared = asks.chunk_by(Ask::is_as);
            let mut shared: Vec<SharedAsk<'_>> =
                shared.map(|asks| SharedAsk { asks, found: Vec::new() }).collect();
            for segment in self.segments {
                self.find_in(segment, level, &mut shared)?;
            }
            for SharedAsk { asks, mut found } in shared {
                if !found.is_empty() {
                    let found = Found::of(asks[0].asked(), &mut found);
                    let answers = asks.iter().map(|ask| Answer { ask: *ask, found: found.clone() });
                    answers.for_each(&mut *answer);
                }
            }
        }
        Ok(())
    }

    /// Looks up in one segment what is asked of one table.
    fn find_in(
        &self,
        segment: &Segment,
        level: Level,
        asks: &mut [SharedAsk<'_>],
    ) -> Result<(), B::Error> {
        let Some(table) = asks.first().and_then(|one| segment.table(one.ask().table)) else {
            return Ok(());
        };
        if !has_hashes(table.table) {
            return self.near_in(segment.number, table, level, asks);
        }
        let mut cursor = Cursor::new(self.blocks, segment.number, table);
        for asks in asks.chunks_mut(PREFETCHED) {
            let keys = asks.iter().map(|one| one.ask().key);
            keys.for_each(|key| table.prefetch(self.blocks, segment.number, key));
            for shared in asks {
                let key = shared.ask().key;
                // Contents of segments behind it are newer, and a key has its oldest ones.
                let is_full = shared.found.len() >= PER_KEY_MAX;
                if is_full || !table.may_have(self.blocks, segment.number, key)? {
                    continue;
                }
                cursor.postings_of(shared.asks[0].keys(), |block, range| {
                    shared.found.extend(range.map(|at| (0, block.get(at).content)));
                })?;
            }
        }
        Ok(())
    }

    /// Looks up fingerprints in a table. Where too many blocks have the first bits, those that have
    /// more of them are looked at as well, and those that have all.
    fn near_in(
        &self,
        segment: u32,
        table: &SegmentTable,
        level: Level,
        asks: &mut [SharedAsk<'_>],
    ) -> Result<(), B::Error> {
        let blocks_max = blocks_max(table.table);
        let cursor = || Cursor::new(self.blocks, segment, table);
        let (mut keys, mut all) = (Vec::new(), cursor());
        for asks in asks.chunk_by_mut(|one, next| one.ask().prefix == next.ask().prefix) {
            let mut some = Vec::new();
            for shared in asks {
                if table.may_be_near(self.blocks, segment, shared.ask())? {
                    some.push(shared);
                }
            }
            let Some(first) = some.first() else { continue };
            let whole = all.some_of(first.ask().keys(), blocks_max, |block, range| {
                let first = range.start;
                block.keys(range, &mut keys);
                for shared in &mut some {
                    shared.compare(level, &keys, block, first);
                }
            })?;
            if whole {
                continue;
            }
            for shared in some {
                for others in [u64::MAX >> 32, 0] {
                    let key = shared.ask().key;
                    let nearer = key & !others..=key | others;
                    let whole = cursor().some_of(nearer, blocks_max, |block, range| {
                        let first = range.start;
                        block.keys(range, &mut keys);
                        shared.compare(level, &keys, block, first);
                    })?;
                    if whole {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns how many blocks of fingerprints that have the same first bits are looked at.
///
/// Titles of two or three words that a site has in common (`Page 7`, `Page 8`) have few
/// fingerprints: of a million of them, tens of thousands share their first bits with each.
fn blocks_max(table: u8) -> usize {
    match near_of(table) {
        (Field::Content, _) => usize::MAX,
        (Field::Title, _) => TITLE_BLOCKS_MAX,
    }
}

/// One article at a time.
impl<B: Blocks> Postings for SegmentPostings<'_, B> {
    type Error = B::Error;

    fn near(&self, asked: Nearby, each: &mut dyn FnMut(u32, u64)) -> Result<(), B::Error> {
        let mut asks: Vec<Ask> = Ask::near(Key::Near, asked, 0).collect();
        asks.sort_unstable();
        self.find(&asks, &mut |answer| {
            answer.found.each().for_each(|(distance, content)| each(distance, content));
        })
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), B::Error> {
        self.find(&[Ask::equal(key, hash, 0)], &mut |answer| {
            answer.found.each().for_each(|(_, content)| each(content));
        })
    }
}
