//! What rows of one table say of rows of another, compared without a look-up for each.
//!
//! What a row says is kept as a hash of 128 bits, in order. There is room for so many hashes: where
//! a store has more, its tables are read in several passes, each of which looks at one part.

use std::collections::HashSet;

use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

/// One part of all hashes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    number: u64,
    of: u64,
}

impl Part {
    /// Returns the parts of so many hashes, each of about `at_a_time` of them.
    pub(super) fn all(hashes: u64, at_a_time: u64) -> impl Iterator<Item = Self> {
        let of = hashes.div_ceil(at_a_time).max(1);
        (0..of).map(move |number| Self { number, of })
    }

    /// Tells whether a hash is in this part.
    pub(super) fn has(self, hash: u128) -> bool {
        (hash >> 64) as u64 % self.of == self.number
    }
}

/// Returns the hash of a URL.
pub(super) fn of_url(url: &str) -> u128 {
    xxh3_128(url.as_bytes())
}

/// Returns the hash of a copy: a URL and the number of its document.
pub(super) fn of_copy(document: u64, url: &str) -> u128 {
    xxh3_128_with_seed(url.as_bytes(), document)
}

/// Returns the hash of an identifier and the number of the document that it leads to.
pub(super) fn of_id(id: u128, document: u64) -> u128 {
    xxh3_128_with_seed(&id.to_be_bytes(), document)
}

/// URLs that are there more than once, which is rare: they are told in a second reading.
pub(super) struct Again {
    hashes: HashSet<u128>,
    met: HashSet<String>,
}

impl Again {
    /// Returns those of which there are two hashes and more, in a sorted list.
    pub(super) fn among(sorted: impl Iterator<Item = u128>) -> Self {
        let mut last = None;
        let hashes = sorted.filter(|hash| last.replace(*hash) == Some(*hash)).collect();
        Self { hashes, met: HashSet::new() }
    }

    /// Tells whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Tells whether a URL is met for the second time, or a further one.
    pub(super) fn meets(&mut self, url: &str) -> bool {
        self.hashes.contains(&of_url(url)) && !self.met.insert(url.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_is_in_one_part() {
        for (hashes, at_a_time, parts) in [(0, 8, 1), (8, 8, 1), (9, 8, 2), (9, 1, 9)] {
            let all: Vec<Part> = Part::all(hashes, at_a_time).collect();
            assert_eq!(all.len(), parts);
            for number in 0..100 {
                let hash = of_copy(number, "http://a.example/");
                assert_eq!(all.iter().filter(|part| part.has(hash)).count(), 1);
            }
        }
    }

    #[test]
    fn a_url_that_is_there_twice_is_met_again() {
        let mut hashes = ["a", "b", "c", "b", "b"].map(of_url);
        hashes.sort_unstable();
        let mut again = Again::among(hashes.into_iter());
        assert!(!again.is_empty());
        let met = ["a", "b", "c", "b", "b"].map(|url| again.meets(url));
        assert_eq!(met, [false, false, false, true, true]);
        assert!(Again::among(["a", "b"].map(of_url).into_iter()).is_empty());
    }
}
