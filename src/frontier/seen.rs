//! A small memory of links that were offered lately, so that the navigation that stands on every
//! page of a site does not cost a look-up in the store each time.

/// Direct-mapped: a new link takes the place of an old one. Forgetting costs a look-up, no more.
#[derive(Debug)]
pub(super) struct Seen {
    /// 48 bits of the hash, then the least depth at which the link was offered.
    slots: Vec<u64>,
}

impl Seen {
    /// Makes a memory of `slots` links (8 bytes each), rounded up to a power of two.
    pub(super) fn new(slots: usize) -> Self {
        Self { slots: vec![u64::MAX; slots.max(1).next_power_of_two()] }
    }

    /// Tells whether the link was offered at this depth or a lesser one, and remembers it.
    pub(super) fn check_and_set(&mut self, hash: u64, depth: u16) -> bool {
        let mask = self.slots.len() - 1;
        let slot = &mut self.slots[(hash as usize) & mask];
        let tag = hash & !0xFFFF;
        let known = (*slot & !0xFFFF) == tag && (*slot & 0xFFFF) <= u64::from(depth);
        if !known {
            *slot = tag | u64::from(depth);
        }
        known
    }
}
