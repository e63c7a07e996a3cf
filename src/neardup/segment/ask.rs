//! The postings of an article in segments.

use super::tree::Blocks;
use super::{ROTATIONS, Segment, equality_table, near_table};
use crate::neardup::Key;
use crate::neardup::finder::{Nearby, Postings};
use crate::neardup::index::rotated::key_flips;

/// Segments, and where their blocks are.
#[derive(Debug, Clone, Copy)]
pub struct SegmentPostings<'a, B> {
    /// The segments.
    pub segments: &'a [Segment],
    /// Their blocks.
    pub blocks: &'a B,
}

impl<B: Blocks> Postings for SegmentPostings<'_, B> {
    type Error = B::Error;

    fn near(&self, asked: Nearby, each: &mut dyn FnMut(u32, u64)) -> Result<(), B::Error> {
        for rotation in 0..ROTATIONS {
            let query = asked.fingerprint.0.rotate_left(16 * u32::from(rotation));
            let table = near_table(asked.field, rotation);
            for segment in self.segments {
                let Some(table) = segment.table(table) else { continue };
                for flips in key_flips(asked.k, rotation) {
                    let first = (query ^ u64::from(flips) << 48) & !(u64::MAX >> 16);
                    let keys = first..=first | u64::MAX >> 16;
                    table.postings_of(self.blocks, segment.number, keys, |block, range| {
                        for at in range {
                            let distance = (block.key(at) ^ query).count_ones();
                            if distance <= asked.k {
                                each(distance, block.get(at).content);
                            }
                        }
                    })?;
                }
            }
        }
        Ok(())
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), B::Error> {
        let (table, key) = (equality_table(key), hash);
        for segment in self.segments {
            let Some(table) = segment.table(table) else { continue };
            if table.may_have(self.blocks, segment.number, key)? {
                table.postings_of(self.blocks, segment.number, key..=key, |block, range| {
                    range.for_each(|at| each(block.get(at).content));
                })?;
            }
        }
        Ok(())
    }
}
