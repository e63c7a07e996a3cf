//! The newest contents of the index, in memory: asked there, and written as a segment when they are
//! many.

use std::collections::VecDeque;

use crate::neardup::segment::{GONE, Posting, Segment, Written};
use crate::neardup::{Config, Error, Finder, Nearby, Postings};
use crate::neardup::{Key, segment::SegmentPostings};
use crate::store::{self, View};
use crate::text::features::ArticleKeys;

use super::blocks::Source;

/// The contents that came last.
pub(super) struct Tail {
    pub finder: Finder,
    /// Their postings, and those of contents that went.
    pub postings: Vec<(u8, Posting)>,
    pub contents: u64,
}

impl Tail {
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        Ok(Self { finder: Finder::new(config)?, postings: Vec::new(), contents: 0 })
    }

    /// Adds the keys of a content. Returns how many postings it has.
    pub(super) fn insert(&mut self, content: u64, keys: &ArticleKeys) -> u64 {
        let postings = self.finder.postings(content, keys);
        let count = postings.len() as u64;
        if count > 0 {
            self.finder.insert(content, keys);
            self.postings.extend(postings);
            self.contents += 1;
        }
        count
    }

    /// Names a content no more, wherever it is.
    pub(super) fn forget(&mut self, content: u64) {
        self.finder.forget(content);
        self.postings.push((GONE, Posting { key: content, content: 0 }));
    }

    pub(super) fn bytes(&self) -> usize {
        self.finder.bytes() + self.postings.capacity() * size_of::<(u8, Posting)>()
    }
}

/// Contents that are on their way into the store.
pub(super) struct Frozen {
    pub finder: Finder,
    /// Their segment, whose number is not known before it is begun to be written.
    pub segment: Segment,
    pub blocks: VecDeque<Written>,
    /// Postings for each of its blocks.
    pub block_postings: u64,
    /// The last row of the log that they make needless; none if that is not known yet.
    pub logged: Option<u64>,
}

impl Frozen {
    pub(super) fn of(tail: Tail, logged: Option<u64>) -> Self {
        let Tail { finder, postings, contents } = tail;
        let (segment, written) = Segment::of(0, contents, postings);
        let block_postings = 1 + segment.postings() / (written.len() as u64).max(1);
        Self { finder, segment, blocks: written.into(), block_postings, logged }
    }

    /// Gives the segment its number, by which it is ordered as well.
    pub(super) fn number(&mut self, number: u32) {
        (self.segment.number, self.segment.age) = (number, number);
        self.blocks.iter_mut().for_each(|(id, _)| id.segment = number);
    }

    /// It is being written.
    pub(super) fn is_begun(&self) -> bool {
        self.segment.number != 0
    }

    pub(super) fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(|(_, bytes)| bytes.capacity()).sum();
        self.finder.bytes() + blocks + self.blocks.capacity() * size_of::<Written>()
    }
}

/// All postings but those of the tail.
pub(super) struct Others<'a, V> {
    pub frozen: &'a [Frozen],
    pub segments: &'a [Segment],
    pub blocks: &'a Source<'a, V>,
}

impl<'a, V: View> Others<'a, V> {
    fn stored(&self) -> SegmentPostings<'a, Source<'a, V>> {
        SegmentPostings { segments: self.segments, blocks: self.blocks }
    }
}

impl<V: View> Postings for Others<'_, V> {
    type Error = store::Error;

    fn near(&self, asked: Nearby, each: &mut dyn FnMut(u32, u64)) -> Result<(), store::Error> {
        for frozen in self.frozen {
            let Ok(()) = frozen.finder.near(asked, each);
        }
        self.stored().near(asked, each)
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), store::Error> {
        for frozen in self.frozen {
            let Ok(()) = frozen.finder.equal(key, hash, each);
        }
        self.stored().equal(key, hash, each)
    }
}
