//! Memory of reading pages: what one page takes, and what those who read pages at the same time
//! share. Who would take more than is left waits for his turn.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use memchr::{memchr, memchr2};

use super::Limits;
use super::tree::{ALLOCATION_BYTES, ATTRIBUTE_BYTES, NODE_BYTES};
use crate::base::units::Size;

/// Nodes for each `<`, elements that the parser adds of itself and texts among them.
const NODES_PER_TAG: usize = 8;

/// Nodes for each `<`, and in all, that formatting elements may make which are opened anew.
const REOPENED_PER_TAG: usize = 64;
const REOPENED_MAX: usize = 70_000;

/// Times that the text of a page is in memory while it is read and fingerprinted, about.
const TEXTS: usize = 10;

/// What everything else takes that is made of the nodes of a tree, as a part of it.
const BESIDES_TREE: (usize, usize) = (2, 3);

impl Limits {
    /// Returns the limits for one page, whose tree gets no larger than its tags and attributes can
    /// make it, and the memory that it takes to read the page.
    #[must_use]
    pub fn for_page(&self, bytes: &[u8]) -> (Self, usize) {
        let bytes = &bytes[..bytes.len().min(self.input_size_max.bytes())];
        let (tags, marks) = count(bytes);
        let reopened = REOPENED_MAX.min(REOPENED_PER_TAG * tags);
        let tree = (NODES_PER_TAG * tags + reopened) * NODE_BYTES
            + marks * (ATTRIBUTE_BYTES + 2 * ALLOCATION_BYTES)
            + 2 * bytes.len()
            + (64 << 10);
        let tree = tree.min(self.tree_size_max.bytes());
        let all = tree + tree / BESIDES_TREE.1 * BESIDES_TREE.0 + TEXTS * bytes.len();
        (Self { tree_size_max: Size::from_bytes(tree as u64), ..self.clone() }, all)
    }
}

/// Returns how many `<` there are, and how many of the bytes in tags of which there is one between
/// two attributes.
fn count(bytes: &[u8]) -> (usize, usize) {
    let is_mark = |byte: &&u8| matches!(byte, b' ' | b'\t'..=b'\r' | b'/' | b'=' | b'"' | b'\'');
    let (mut tags, mut marks, mut at) = (0, 0, 0);
    while let Some(found) = memchr(b'<', &bytes[at..]) {
        tags += 1;
        let tag = &bytes[at + found + 1..];
        let tag = &tag[..memchr2(b'<', b'>', tag).unwrap_or(tag.len())];
        marks += tag.iter().filter(is_mark).count();
        at += found + 1 + tag.len();
    }
    (tags, marks)
}

/// A number of bytes that is lent out. Clones lend from the same number.
///
/// Who holds a part of it must not wait for more: that could last for ever.
#[derive(Debug, Clone)]
pub struct Memory(Arc<MemoryState>);

#[derive(Debug)]
struct MemoryState {
    max: usize,
    lent: Mutex<Lent>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lent {
    bytes: usize,
    /// Those who came, and those who have got what they wanted: who comes first is served first,
    /// so that nobody who wants much waits for ever.
    came: u64,
    served: u64,
}

impl Memory {
    /// Lends out so many bytes at a time.
    #[must_use]
    pub fn new(max: Size) -> Self {
        let (lent, changed) = (Mutex::default(), Condvar::new());
        Self(Arc::new(MemoryState { max: max.bytes().max(1), lent, changed }))
    }

    /// Waits until so many bytes are left. Who wants more than there are gets all of them.
    #[must_use]
    pub(crate) fn take(&self, bytes: usize) -> MemoryPermit {
        let bytes = bytes.min(self.0.max);
        let mut lent = self.lent();
        let number = lent.came;
        lent.came += 1;
        let waits = |lent: &mut Lent| lent.served != number || self.0.max - lent.bytes < bytes;
        let lent = self.0.changed.wait_while(lent, waits);
        let mut lent = lent.unwrap_or_else(PoisonError::into_inner);
        lent.bytes += bytes;
        lent.served += 1;
        drop(lent);
        self.0.changed.notify_all();
        MemoryPermit { memory: self.clone(), bytes }
    }

    fn lent(&self) -> MutexGuard<'_, Lent> {
        self.0.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that were lent; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryPermit {
    memory: Memory,
    bytes: usize,
}

impl MemoryPermit {
    /// Gives back what is not needed any more.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let over = self.bytes.saturating_sub(bytes);
        if over > 0 {
            self.bytes -= over;
            self.memory.lent().bytes -= over;
            self.memory.0.changed.notify_all();
        }
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn tags_and_what_parts_their_attributes_are_counted() {
        let cases = [
            ("words = and \"more\"", (0, 0)),
            ("<p>a b</p>", (2, 1)),
            ("<a href='x' b/c>d e<", (2, 6)),
            ("<a <b c>", (2, 2)),
            ("<a b c", (1, 2)),
        ];
        for (text, counts) in cases {
            assert_eq!(count(text.as_bytes()), counts, "{text}");
        }
    }

    #[test]
    fn never_more_is_lent_than_there_is_and_everybody_is_served() {
        let memory = Memory::new(Size::from_bytes(100));
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for number in 0..8 {
                let (memory, inside, most) = (&memory, &inside, &most);
                scope.spawn(move || {
                    for round in 0..200 {
                        // Some want more than there is.
                        let bytes = (number * 31 + round * 7) % 130;
                        let mut held = memory.take(bytes);
                        let now = inside.fetch_add(bytes.min(100), Ordering::SeqCst);
                        most.fetch_max(now + bytes.min(100), Ordering::SeqCst);
                        thread::yield_now();
                        let less = bytes.min(100) / 2;
                        inside.fetch_sub(bytes.min(100) - less, Ordering::SeqCst);
                        held.shrink(less);
                        thread::yield_now();
                        inside.fetch_sub(less, Ordering::SeqCst);
                    }
                });
            }
        });
        let most = most.into_inner();
        assert!(most <= 100 && most > 60, "{most}");
        assert_eq!(memory.lent().bytes, 0);
    }
}
