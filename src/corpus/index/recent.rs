//! The newest contents of the index, in memory: asked there, and written as a segment when they are
//! many.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::neardup::segment::{
    GONE, PER_KEY_MAX, Posting, Segment, Written, equality_table, exact_key,
};
use crate::neardup::{Asked, Config, Error, Finder, Key, Nearby, Postings};
use crate::text::features::ArticleKeys;

/// Returns the postings of a content: that of its whole text, unless it is empty, and those by
/// which near-duplicates are found.
pub(super) fn postings_of(finder: &Finder, content: u64, keys: &ArticleKeys) -> Vec<(u8, Posting)> {
    let mut postings = finder.postings(content, keys);
    postings.extend(exact(content, keys).map(|posting| (equality_table(Key::Exact), posting)));
    postings
}

/// Returns the posting of a whole text. No two texts are the same because both are empty.
fn exact(content: u64, keys: &ArticleKeys) -> Option<Posting> {
    (keys.text.words > 0).then(|| Posting { key: exact_key(keys.text.hash), content })
}

/// Contents in memory, as they are asked.
pub(super) struct InMemory {
    pub finder: Finder,
    /// Hashes of their whole texts.
    exact: BTreeSet<Posting>,
}

impl InMemory {
    fn bytes(&self) -> usize {
        self.finder.bytes() + self.exact.len() * size_of::<Posting>()
    }
}

impl Postings for InMemory {
    type Error = Infallible;

    fn prefetch(&self, asked: &[(Key, Asked)]) {
        self.finder.prefetch(asked);
    }

    fn near(&self, asked: Nearby, each: &mut dyn FnMut(u32, u64)) -> Result<(), Infallible> {
        self.finder.near(asked, each)
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), Infallible> {
        if key == Key::Exact {
            let of = |content| Posting { key: hash, content };
            let found = self.exact.range(of(0)..=of(u64::MAX));
            found.for_each(|posting| each(posting.content));
        }
        self.finder.equal(key, hash, each)
    }
}

/// The contents that came last.
pub(super) struct Tail {
    pub contents: InMemory,
    pub count: u64,
    /// Their postings, and those of contents that went.
    pub postings: Vec<(u8, Posting)>,
}

impl Tail {
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        let contents = InMemory { finder: Finder::new(config)?, exact: BTreeSet::new() };
        Ok(Self { contents, count: 0, postings: Vec::new() })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.postings.is_empty()
    }

    /// Adds the keys of a content. Returns how many postings it has.
    pub(super) fn insert(&mut self, content: u64, keys: &ArticleKeys) -> u64 {
        let InMemory { finder, exact: hashes } = &mut self.contents;
        let postings = postings_of(finder, content, keys);
        let count = postings.len() as u64;
        if count > 0 {
            finder.insert(content, keys);
            hashes.extend(exact(content, keys));
            self.postings.extend(postings);
            self.count += 1;
        }
        count
    }

    /// Leaves of contents that were found by the hash of a whole text the oldest, as many as a key
    /// may have.
    pub(super) fn oldest(&self, mut found: Vec<u64>) -> Vec<u64> {
        found.sort_unstable();
        found.dedup();
        found.retain(|content| !self.contents.finder.has_forgotten(*content));
        found.truncate(PER_KEY_MAX);
        found
    }

    /// Names a content no more, wherever it is.
    pub(super) fn forget(&mut self, content: u64) {
        self.contents.finder.forget(content);
        self.postings.push((GONE, Posting { key: content, content: 0 }));
    }

    pub(super) fn bytes(&self) -> usize {
        self.contents.bytes() + self.postings.capacity() * size_of::<(u8, Posting)>()
    }
}

/// Contents that are on their way into the store.
pub(super) struct Frozen {
    /// They may be asked elsewhere meanwhile.
    pub contents: Arc<InMemory>,
    made: Made,
    /// The last row of the log that they make needless; none if that is not known yet.
    pub logged: Option<u64>,
}

/// The segment of contents in memory.
enum Made {
    /// It is being made, of so many bytes of postings, while whoever writes goes on.
    Coming(Option<JoinHandle<FrozenSegment>>, usize),
    There(FrozenSegment),
}

/// A segment, as far as it is not written.
pub(super) struct FrozenSegment {
    /// Its number is not known before it is begun to be written.
    pub segment: Segment,
    pub blocks: VecDeque<Written>,
    /// Postings for each of its blocks.
    pub block_postings: u64,
}

impl FrozenSegment {
    fn of(contents: u64, postings: Vec<(u8, Posting)>) -> Self {
        let (segment, written) = Segment::of(0, contents, postings);
        let block_postings = 1 + segment.postings() / (written.len() as u64).max(1);
        Self { segment, blocks: written.into(), block_postings }
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
}

impl Frozen {
    pub(super) fn of(tail: Tail, logged: Option<u64>) -> Self {
        let Tail { contents, count, postings } = tail;
        let bytes = postings.capacity() * size_of::<(u8, Posting)>();
        let made = thread::spawn(move || FrozenSegment::of(count, postings));
        Self { contents: Arc::new(contents), made: Made::Coming(Some(made), bytes), logged }
    }

    /// Returns the segment, when it is made.
    pub(super) fn segment(&mut self) -> &mut FrozenSegment {
        if let Made::Coming(made, _) = &mut self.made
            && let Some(made) = made.take()
        {
            self.made = Made::There(made.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        match &mut self.made {
            Made::There(segment) => segment,
            Made::Coming(..) => unreachable!("whoever waited for it has died with it"),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let made = match &self.made {
            Made::Coming(_, bytes) => 2 * bytes,
            Made::There(FrozenSegment { blocks, .. }) => {
                let bytes: usize = blocks.iter().map(|(_, bytes)| bytes.capacity()).sum();
                bytes + blocks.capacity() * size_of::<Written>()
            }
        };
        self.contents.bytes() + made
    }
}
