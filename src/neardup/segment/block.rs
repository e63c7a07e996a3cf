//! Postings in order, packed: a block is what is read at once, and fits in a page of the store.
//!
//! Bytes, all numbers big-endian: how many postings (2), the least key (8), the least content (8),
//! the bytes that a key and a content take beyond these (1 and 1); then what each key has beyond
//! the least one, then what each content has. Columns of one width are searched where they lie.

use std::ops::Range;

/// A key, and a content that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Posting {
    /// The key: a rotated fingerprint, or a hash.
    pub key: u64,
    /// Number of the content.
    pub content: u64,
}

/// Bytes before the columns.
pub(super) const HEAD: usize = 20;

/// Bytes behind the columns in memory, so that eight can be read at any place of them.
const PADDING: usize = 8;

/// Bytes of a block at most, if nothing else is said: one page.
pub const BYTES_MAX: usize = bytes_of_pages(1);

/// Returns the bytes of a block at most that takes so many pages of the store, with its key and
/// what the store notes of it. Long blocks are read in fewer pieces by who reads most of them.
#[must_use]
pub const fn bytes_of_pages(pages: usize) -> usize {
    pages * 4_096 - 96
}

/// A block whose bytes make no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a block of the index {0}")]
pub struct BadBlock(pub &'static str);

/// Postings in increasing order, at least one.
#[derive(Clone, PartialEq, Eq)]
pub struct Block {
    bytes: Box<[u8]>,
    count: usize,
    least: Posting,
    key_width: usize,
    content_width: usize,
}

impl Block {
    /// Reads a block.
    ///
    /// # Errors
    ///
    /// If it is empty, or its length is not what it says. Whether it is in order is not looked at.
    pub fn read(bytes: &[u8]) -> Result<Self, BadBlock> {
        let head = bytes.get(..HEAD).ok_or(BadBlock("is cut short"))?;
        let count = usize::from(u16::from_be_bytes([head[0], head[1]]));
        let (key_width, content_width) = (usize::from(head[18]), usize::from(head[19]));
        if count == 0 || key_width > 8 || content_width > 8 {
            return Err(BadBlock("has an odd head"));
        }
        if bytes.len() != HEAD + count * (key_width + content_width) {
            return Err(BadBlock("is not as long as its head says"));
        }
        let least = Posting { key: wide(&head[2..]), content: wide(&head[10..]) };
        let mut padded = Vec::with_capacity(bytes.len() + PADDING);
        padded.extend_from_slice(bytes);
        padded.resize(bytes.len() + PADDING, 0);
        let bytes = padded.into_boxed_slice();
        Ok(Self { bytes, count, least, key_width, content_width })
    }

    /// Returns the number of postings.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the key of a posting.
    #[must_use]
    pub fn key(&self, at: usize) -> u64 {
        self.least.key.wrapping_add(self.beyond(HEAD + at * self.key_width, self.key_width))
    }

    /// Returns a posting.
    #[must_use]
    pub fn get(&self, at: usize) -> Posting {
        let start = HEAD + self.count * self.key_width + at * self.content_width;
        let beyond = self.beyond(start, self.content_width);
        Posting { key: self.key(at), content: self.least.content.wrapping_add(beyond) }
    }

    /// Puts the keys of a range of postings in the place of what a list has.
    pub fn keys(&self, range: Range<usize>, keys: &mut Vec<u64>) {
        keys.clear();
        match self.key_width {
            0 => keys.resize(range.len(), self.least.key),
            // Fingerprints: the more a segment has, the fewer bytes are beyond the least one.
            6 => keys.extend(range.map(|at| self.key_of::<6>(at))),
            7 => keys.extend(range.map(|at| self.key_of::<7>(at))),
            8 => keys.extend(range.map(|at| self.key_of::<8>(at))),
            _ => keys.extend(range.map(|at| self.key(at))),
        }
    }

    /// The key of a posting, of which so many bytes are beyond the least one.
    fn key_of<const WIDTH: usize>(&self, at: usize) -> u64 {
        let beyond = wide(&self.bytes[HEAD + at * WIDTH..]) >> (64 - 8 * WIDTH);
        self.least.key.wrapping_add(beyond)
    }

    /// Returns all postings.
    pub fn postings(&self) -> impl Iterator<Item = Posting> {
        (0..self.count).map(|at| self.get(at))
    }

    /// Returns how many postings are below one.
    #[must_use]
    pub fn below(&self, posting: Posting) -> usize {
        let is_below = |at| {
            let key = self.key(at);
            key < posting.key || key == posting.key && self.get(at) < posting
        };
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if is_below(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the memory that it takes, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.bytes.len() + size_of::<Self>()
    }

    fn beyond(&self, start: usize, width: usize) -> u64 {
        match width {
            0 => 0,
            _ => wide(&self.bytes[start..]) >> (64 - 8 * width),
        }
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.postings()).finish()
    }
}

/// Packs postings that come in increasing order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockWriter {
    postings: Vec<Posting>,
    /// The least and the largest content.
    contents: Option<(u64, u64)>,
}

impl BlockWriter {
    /// Adds a posting, unless the block would have more bytes than this then: false, and it is as
    /// before.
    pub fn push(&mut self, posting: Posting, bytes_max: usize) -> bool {
        let (least, largest) = self.contents.unwrap_or((posting.content, posting.content));
        let contents = (least.min(posting.content), largest.max(posting.content));
        let first = self.first().unwrap_or(posting);
        let width = width(posting.key - first.key) + width(contents.1 - contents.0);
        let count = self.postings.len() + 1;
        if HEAD + count * width > bytes_max || count > usize::from(u16::MAX) {
            return false;
        }
        self.contents = Some(contents);
        self.postings.push(posting);
        true
    }

    /// Returns the first posting.
    #[must_use]
    pub fn first(&self) -> Option<Posting> {
        self.postings.first().copied()
    }

    /// Returns the bytes of the block; none if no posting came. It is empty from here on.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let bytes = self.bytes();
        self.postings.clear();
        self.contents = None;
        bytes
    }

    /// Returns the bytes of the block as it is now; none if no posting came.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let (first, end) = (self.postings.first()?, self.postings.last()?);
        let (least, largest) = self.contents?;
        let (key_width, content_width) = (width(end.key - first.key), width(largest - least));
        let count = self.postings.len();
        let mut bytes = Vec::with_capacity(HEAD + count * (key_width + content_width));
        bytes.extend_from_slice(&(count as u16).to_be_bytes());
        bytes.extend_from_slice(&first.key.to_be_bytes());
        bytes.extend_from_slice(&least.to_be_bytes());
        bytes.extend([key_width as u8, content_width as u8]);
        for posting in &self.postings {
            let beyond = posting.key - first.key;
            bytes.extend_from_slice(&beyond.to_be_bytes()[8 - key_width..]);
        }
        for posting in &self.postings {
            let beyond = posting.content - least;
            bytes.extend_from_slice(&beyond.to_be_bytes()[8 - content_width..]);
        }
        Some(bytes)
    }

    /// Goes on with a block that was written as it was.
    #[must_use]
    pub fn resumed(block: &Block) -> Self {
        let postings: Vec<Posting> = block.postings().collect();
        let contents = postings.iter().map(|posting| posting.content);
        let contents = contents.clone().min().zip(contents.max());
        Self { postings, contents }
    }
}

/// Returns the bytes that a number takes.
fn width(number: u64) -> usize {
    (64 - number.leading_zeros() as usize).div_ceil(8)
}

fn wide(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(*bytes.first_chunk().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn posting() -> impl Strategy<Value = Posting> {
        // Near each other, at both ends of what a number can be, and anywhere.
        let number = || {
            prop_oneof![0u64..9, (u64::MAX - 9)..=u64::MAX, any::<u64>(), (1u64 << 40)..(1 << 41)]
        };
        (number(), number()).prop_map(|(key, content)| Posting { key, content })
    }

    proptest! {
        #[test]
        fn what_is_packed_is_found_again(
            postings in prop::collection::btree_set(posting(), 1..600),
            asked in posting(),
            bytes_max in 100..BYTES_MAX,
        ) {
            let mut writer = BlockWriter::default();
            let mut held = Vec::new();
            for posting in postings {
                if !writer.push(posting, bytes_max) {
                    break;
                }
                held.push(posting);
            }
            let bytes = writer.bytes().unwrap();
            prop_assert!(bytes.len() <= bytes_max);
            let block = Block::read(&bytes).unwrap();
            prop_assert_eq!(block.postings().collect::<Vec<_>>(), held.clone());
            let (from, mut keys) = (held.len() / 3, vec![7]);
            block.keys(from..held.len(), &mut keys);
            prop_assert!(keys.iter().eq(held[from..].iter().map(|posting| &posting.key)));
            prop_assert_eq!(block.below(asked), held.partition_point(|held| *held < asked));
            prop_assert_eq!(BlockWriter::resumed(&block), writer.clone());
            prop_assert_eq!(writer.take(), Some(bytes));
            prop_assert_eq!(writer.take(), None);
        }

        #[test]
        fn odd_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(block) = Block::read(&bytes) {
                prop_assert_eq!(block.postings().count(), block.count());
                let below = block.below(Posting { key: 1 << 60, content: 0 });
                prop_assert!(below <= block.count());
            }
        }
    }

    #[test]
    fn a_block_is_refused_when_bytes_are_missing() {
        let mut writer = BlockWriter::default();
        for key in 0..100 {
            assert!(writer.push(Posting { key, content: 7 << 40 | key }, BYTES_MAX));
        }
        let bytes = writer.take().unwrap();
        // A byte of each key and of each content.
        assert_eq!(bytes.len(), HEAD + 200);
        assert!(Block::read(&bytes).is_ok());
        for length in 0..bytes.len() {
            assert!(Block::read(&bytes[..length]).is_err(), "{length}");
        }
    }
}
