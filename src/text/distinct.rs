//! Counting hashes: how often each stands in a text.

/// A slot without a hash.
const FREE: (u64, u32, u32) = (0, 0, 0);

/// A table this many times larger than needed is given back.
const KEPT_MAX: usize = 64;

/// Counts 64-bit hashes in a flat table of the right size from the start.
#[derive(Debug)]
pub struct Counts {
    /// Hash, count, tag; a count of 0 is a free slot.
    slots: Vec<(u64, u32, u32)>,
    /// Slots in use, in the order of their first hash.
    order: Vec<u32>,
}

impl Counts {
    /// Makes a table for at most `most` distinct hashes.
    #[must_use]
    pub fn with_capacity(most: usize) -> Self {
        let mut table = Self { slots: Vec::new(), order: Vec::new() };
        table.clear(most);
        table
    }

    /// Empties the table for at most `most` distinct hashes, and keeps its memory.
    pub fn clear(&mut self, most: usize) {
        for at in self.order.drain(..) {
            self.slots[at as usize] = FREE;
        }
        let slots = (most * 2).next_power_of_two().max(16);
        if slots > self.slots.len() || slots * KEPT_MAX < self.slots.len() {
            self.slots = vec![FREE; slots];
        }
    }

    /// Counts a hash. `tag` is kept with the first of its kind.
    ///
    /// # Panics
    ///
    /// When there are more distinct hashes than the table was made for.
    pub fn add(&mut self, hash: u64, tag: u32) {
        let last = self.slots.len() - 1;
        // The upper bits of the product depend on all bits of the hash.
        let spread = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let mut at = spread as usize & last;
        loop {
            let (held, count, _) = &mut self.slots[at];
            if *count == 0 {
                assert!(self.order.len() < last, "the table is full");
                self.slots[at] = (hash, 1, tag);
                self.order.push(at as u32);
                return;
            }
            if *held == hash {
                *count = count.saturating_add(1);
                return;
            }
            at = (at + 1) & last;
        }
    }

    /// Returns the number of distinct hashes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Tells whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns each hash with its count and tag, in the order in which they first came.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32, u32)> {
        self.order.iter().map(|at| self.slots[*at as usize])
    }
}
