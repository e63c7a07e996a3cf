//! Numbers of documents and contents: each carries the number of the store that made it, so that
//! those of two stores are never the same.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use super::{BadRow, Codec, Decoder, Encoder, FixedKey, Key, TableRow};

/// Bits of a number that count within a store; those above them are the number of the store.
const SEQUENCE_BITS: u32 = 40;

/// Largest number of a store: 24 bits.
pub(super) const STORE_NUMBER_MAX: u64 = u64::MAX >> SEQUENCE_BITS;

/// The last of all that a store counts. One more is kept free, so that there always is a number
/// after one.
pub(super) const SEQUENCE_MAX: u64 = (1 << SEQUENCE_BITS) - 2;

/// Joins the number of a store and a place in the order of what it made, from 1; none if that is
/// beyond the last one.
#[must_use]
pub fn unique_number(store: u64, sequence: u64) -> Option<u64> {
    let fits = store <= STORE_NUMBER_MAX && sequence <= SEQUENCE_MAX;
    fits.then_some(store << SEQUENCE_BITS | sequence)
}

/// Returns the place of a number in the order of what its store made.
#[must_use]
pub fn sequence_of(number: u64) -> u64 {
    number & (u64::MAX >> (u64::BITS - SEQUENCE_BITS))
}

/// Draws the number of a new store; never 0, which is that of all stores before there were such
/// numbers.
pub(super) fn draw() -> u64 {
    loop {
        // Keyed by the random numbers of the system.
        let drawn = RandomState::new().build_hasher().finish() >> SEQUENCE_BITS;
        if drawn != 0 {
            return drawn;
        }
    }
}

/// Draws the number of a store that goes on from others: above theirs, and near to them, so that
/// there is room for more. None if there is none.
#[must_use]
pub fn number_above(last: u64) -> Option<u64> {
    let room = STORE_NUMBER_MAX.checked_sub(last).filter(|room| *room > 0)?;
    Some(last + 1 + draw() % (room / 16).max(1))
}

/// What becomes of the numbers in rows and keys that move to another numbering.
pub trait Renumber {
    /// Returns the new number of a document.
    fn document(&mut self, number: u64) -> u64;

    /// Returns the new number of a content.
    fn content(&mut self, number: u64) -> u64;
}

/// The number of a document: as a field, as a key, and as a row. It is a `u64` to whoever reads it.
pub struct DocumentNumber;

/// The number of a content, likewise.
pub struct ContentNumber;

/// The number of a content + 1, or 0 for none.
pub struct MaybeContentNumber;

macro_rules! numbers {
    ($($name:ident, $method:ident, $shape:literal;)*) => {$(
        impl Codec<u64> for $name {
            const SHAPE: &'static str = $shape;

            fn put(field: &u64, row: Encoder) -> Encoder {
                row.number(*field)
            }

            fn take(row: &mut Decoder<'_>) -> Result<u64, BadRow> {
                row.number()
            }

            fn renumber(field: &mut u64, numbers: &mut dyn Renumber) {
                *field = numbers.$method(*field);
            }
        }

        impl Key for $name {
            type Ref<'a> = u64;

            fn encode(key: Self::Ref<'_>) -> Cow<'_, [u8]> {
                <u64 as Key>::encode(key)
            }

            fn decode(bytes: &[u8]) -> Result<Self::Ref<'_>, BadRow> {
                <u64 as Key>::decode(bytes)
            }

            fn renumber<'a>(key: Self::Ref<'a>, numbers: &mut dyn Renumber) -> Self::Ref<'a> {
                numbers.$method(key)
            }
        }

        impl FixedKey for $name {
            const SIZE: usize = size_of::<u64>();
        }

        impl TableRow for $name {
            type Value = u64;

            fn renumber(row: &mut u64, numbers: &mut dyn Renumber) {
                *row = numbers.$method(*row);
            }
        }
    )*};
}
numbers! {
    DocumentNumber, document, "number of a document";
    ContentNumber, content, "number of a content";
}

impl Codec<Option<u64>> for MaybeContentNumber {
    const SHAPE: &'static str = "number of a content + 1, or 0";

    fn put(field: &Option<u64>, row: Encoder) -> Encoder {
        row.number(field.map_or(0, |number| number.saturating_add(1)))
    }

    fn take(row: &mut Decoder<'_>) -> Result<Option<u64>, BadRow> {
        Ok(row.number()?.checked_sub(1))
    }

    fn renumber(field: &mut Option<u64>, numbers: &mut dyn Renumber) {
        *field = field.map(|number| numbers.content(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_two_stores_are_never_the_same_and_those_of_one_keep_their_order() {
        let one = |sequence| unique_number(7, sequence).unwrap();
        assert!(one(1) < one(2) && one(SEQUENCE_MAX) < unique_number(8, 0).unwrap());
        assert_eq!((sequence_of(one(5)), one(5) >> SEQUENCE_BITS), (5, 7));
        assert_eq!(unique_number(0, 5), Some(5), "the old numbers");
        let last = unique_number(STORE_NUMBER_MAX, SEQUENCE_MAX).unwrap();
        assert_eq!(last, u64::MAX - 1, "there is a number after the last one");
        assert_eq!(unique_number(7, SEQUENCE_MAX + 1), None);
        assert_eq!(unique_number(STORE_NUMBER_MAX + 1, 1), None);
    }

    #[test]
    fn stores_are_given_different_numbers() {
        let drawn: std::collections::BTreeSet<u64> = (0..100).map(|_| draw()).collect();
        assert!(drawn.len() > 90 && drawn.iter().all(|n| (1..=STORE_NUMBER_MAX).contains(n)));
    }
}
