//! The postings of many articles in segments.

use std::sync::Arc;

use super::cursor::Cursor;
use super::tree::Blocks;
use super::{PER_KEY_MAX, ROTATIONS, Segment, equality_table, is_filtered, near_table};
use crate::neardup::Key;
use crate::neardup::finder::{Nearby, Postings, first_of};
use crate::neardup::index::rotated::key_flips;

/// Postings of a table that are asked for: those of a range of keys that are near one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask {
    pub(super) table: u8,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) key: u64,
    /// Largest distance, in bits.
    pub(super) k: u32,
    /// Who asks.
    pub number: u32,
}

impl Ask {
    /// Asks for the contents that have a hash of a kind.
    #[must_use]
    pub fn equal(key: Key, hash: u64, number: u32) -> Self {
        Self { table: equality_table(key), first: hash, last: hash, key: hash, k: 0, number }
    }

    /// Asks for the contents that have a fingerprint near one.
    pub fn near(asked: Nearby, number: u32) -> impl Iterator<Item = Self> {
        let Nearby { field, fingerprint, k } = asked;
        (0..ROTATIONS).flat_map(move |rotation| {
            let key = fingerprint.0.rotate_left(16 * u32::from(rotation));
            key_flips(k, rotation).map(move |flips| {
                let first = (key ^ u64::from(flips) << 48) & !(u64::MAX >> 16);
                let last = first | u64::MAX >> 16;
                Self { table: near_table(field, rotation), first, last, key, k, number }
            })
        })
    }

    /// Tells whether another one asks for the same.
    fn is_as(&self, other: &Self) -> bool {
        *self == Self { number: self.number, ..*other }
    }
}

/// Distances and contents that were found, nearest and oldest first: as many as a key may have.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Who asked.
    pub number: u32,
    /// At least one; those who asked for the same share them.
    pub found: Arc<[(u32, u64)]>,
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
}

impl<B: Blocks> SegmentPostings<'_, B> {
    /// Looks up what is asked for; `asks` are in order. Calls `answer` where something was found.
    pub fn find(&self, asks: &[Ask], answer: &mut impl FnMut(Answer)) -> Result<(), B::Error> {
        for asks in asks.chunk_by(|one, next| one.table == next.table) {
            let shared = asks.chunk_by(Ask::is_as);
            let mut shared: Vec<SharedAsk<'_>> =
                shared.map(|asks| SharedAsk { asks, found: Vec::new() }).collect();
            for segment in self.segments {
                self.find_in(segment, &mut shared)?;
            }
            for SharedAsk { asks, mut found } in shared {
                if !found.is_empty() {
                    let found: Arc<[(u32, u64)]> = first_of(&mut found).collect();
                    let answers = asks
                        .iter()
                        .map(|ask| Answer { number: ask.number, found: Arc::clone(&found) });
                    answers.for_each(&mut *answer);
                }
            }
        }
        Ok(())
    }

    /// Looks up in one segment what is asked of one table.
    fn find_in(&self, segment: &Segment, asks: &mut [SharedAsk<'_>]) -> Result<(), B::Error> {
        let Some(table) = asks.first().and_then(|one| segment.table(one.ask().table)) else {
            return Ok(());
        };
        let mut cursor = Cursor::new(self.blocks, segment.number, table);
        for asks in asks.chunk_by_mut(|one, next| one.ask().first == next.ask().first) {
            let Ask { table: number, first, last, .. } = asks[0].ask();
            if is_filtered(number) {
                // Contents of segments behind it are newer, and a key has its oldest ones.
                let is_full = asks[0].found.len() >= PER_KEY_MAX;
                if is_full || !table.may_have(self.blocks, segment.number, first)? {
                    continue;
                }
            }
            cursor.postings_of(first..=last, |block, range| {
                for at in range {
                    let key = block.key(at);
                    for SharedAsk { asks, found } in &mut *asks {
                        let distance = (key ^ asks[0].key).count_ones();
                        if distance <= asks[0].k {
                            found.push((distance, block.get(at).content));
                        }
                    }
                }
            })?;
        }
        Ok(())
    }
}

/// One article at a time.
impl<B: Blocks> Postings for SegmentPostings<'_, B> {
    type Error = B::Error;

    fn near(&self, asked: Nearby, each: &mut dyn FnMut(u32, u64)) -> Result<(), B::Error> {
        let mut asks: Vec<Ask> = Ask::near(asked, 0).collect();
        asks.sort_unstable();
        self.find(&asks, &mut |answer| {
            answer.found.iter().for_each(|(distance, content)| each(*distance, *content));
        })
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), B::Error> {
        self.find(&[Ask::equal(key, hash, 0)], &mut |answer| {
            answer.found.iter().for_each(|(_, content)| each(*content));
        })
    }
}
