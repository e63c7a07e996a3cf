//! Contents of the index in memory, by places of 32 bits: half the bytes of their numbers, in every
//! key that leads to them.

use std::collections::HashMap;

/// Content numbers by their places, and places by content numbers.
#[derive(Debug, Default)]
pub(super) struct Places {
    contents: Vec<u64>,
    /// So many of them, at the start, are in the order of their numbers.
    in_order: usize,
    /// The places of the others: those that came behind one of a larger number.
    late: HashMap<u64, u32>,
}

impl Places {
    /// Returns the place of a content, which gets one if it has none.
    pub(super) fn of(&mut self, content: u64) -> u32 {
        if let Some(place) = self.find(content) {
            return place;
        }
        let place = u32::try_from(self.contents.len()).expect("fewer than 2^32 contents");
        let is_next = self.in_order == self.contents.len()
            && self.contents.last().is_none_or(|last| *last < content);
        if is_next {
            self.in_order += 1;
        } else {
            self.late.insert(content, place);
        }
        self.contents.push(content);
        place
    }

    /// Returns the place of a content; none if it has none.
    pub(super) fn find(&self, content: u64) -> Option<u32> {
        let in_order = &self.contents[..self.in_order];
        // Most are asked for when they have just come.
        if in_order.last() == Some(&content) {
            return Some(in_order.len() as u32 - 1);
        }
        match in_order.binary_search(&content) {
            Ok(place) => Some(place as u32),
            Err(_) => self.late.get(&content).copied(),
        }
    }

    /// Returns the content at a place.
    pub(super) fn content(&self, place: u32) -> u64 {
        self.contents[place as usize]
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let late = self.late.capacity() * size_of::<(u64, u32)>();
        self.contents.capacity() * size_of::<u64>() + late
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn contents_in_order_take_eight_bytes_each() {
        let mut places = Places::default();
        let first = 7 << 40;
        (0..1_000).for_each(|n| _ = places.of(first + n));
        assert_eq!((places.content(0), places.find(first + 999)), (first, Some(999)));
        assert!(places.late.is_empty() && places.bytes() <= 8 * 1_024);
        // Of another store, which was joined.
        assert_eq!((places.of(3 << 40), places.of(8 << 40)), (1_000, 1_001));
        assert_eq!((places.of(3 << 40), places.content(1_001)), (1_000, 8 << 40));
    }

    proptest! {
        #[test]
        fn every_content_has_one_place(steps in prop::collection::vec(0u64..200, 0..400)) {
            let (mut places, mut model) = (Places::default(), HashMap::new());
            for content in steps {
                let next = model.len() as u32;
                let place = *model.entry(content).or_insert(next);
                prop_assert_eq!(places.of(content), place);
            }
            for (content, place) in &model {
                prop_assert_eq!(places.find(*content), Some(*place));
                prop_assert_eq!(places.content(*place), *content);
            }
            prop_assert_eq!(places.find(200), None);
        }
    }
}
